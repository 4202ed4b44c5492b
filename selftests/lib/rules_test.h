/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for the selftests of rules for idle connections: the calls, connections, and the
 * fixture.
 *
 * Each test has a network namespace of its own. Connections go over its loopback device, so both
 * ends are in it: what is local to the server is remote to the client.
 *
 * No test fails because the machine is slow: what must be open can only be closed late, and tests
 * wait for what must be closed.
 */
#ifndef _TWHEEL_RULES_TEST_H
#define _TWHEEL_RULES_TEST_H

#include "tcp_test.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <linux/twheel_rules.h>

#define LOCAL	TWHEEL_RULE_LOCAL_PORT
#define REMOTE	TWHEEL_RULE_REMOTE_PORT
#define ABORT	TWHEEL_WATCH_ABORT
#define DRY	TWHEEL_RULE_DRY_RUN

/* Seconds for a test, on a slow machine: removing a rule takes RCU grace periods. */
#define TIMEOUT	300

/* Somebody else's uid. */
#define OTHER_UID	1234

/* ---- the calls */

/* Does a rule read back as it was added? If @asked leaves a field 0, the kernel may choose it. */
static inline bool is_same_rule(const struct twheel_rule *asked, const struct twheel_rule *got)
{
	return asked->flags == got->flags && (!asked->rate || asked->rate == got->rate) &&
	       asked->local_port == got->local_port && asked->remote_port == got->remote_port &&
	       asked->uid == got->uid && asked->pid == got->pid &&
	       asked->cgroup == got->cgroup && asked->idle == got->idle &&
	       asked->lifetime == got->lifetime && asked->spread == got->spread &&
	       (!asked->stalled || asked->stalled == got->stalled) &&
	       !memcmp(asked->name, got->name, sizeof(got->name)) &&
	       asked->matches == got->matches && asked->nr_matches == got->nr_matches &&
	       asked->before == got->before;
}

/* Adds a rule, and checks that it is returned as it is. On an error, nothing may be written. */
static inline int add(int fd, struct twheel_rule *rule)
{
	struct twheel_rule asked;
	int ret;

	rule->id = 0xa5a5a5a5;
	asked = *rule;
	ret = wh_ioctl(fd, TWHEEL_IOC_RULE_ADD, rule);
	if (ret)
		return memcmp(&asked, rule, sizeof(asked)) ? -EPROTO : ret;
	if (!rule->id || rule->id == 0xa5a5a5a5 || !is_same_rule(&asked, rule))
		return -EPROTO;
	return 0;
}

/* Adds a rule for a port with an idle timeout. Returns its id or -errno. */
static inline int add_port(int fd, __u32 flags, __u16 port, __u64 idle)
{
	struct twheel_rule rule = {
		.flags		= flags,
		.local_port	= flags & LOCAL ? port : 0,
		.remote_port	= flags & REMOTE ? port : 0,
		.idle		= idle,
	};

	return add(fd, &rule) ?: (int)rule.id;
}

static inline int remove_rule(int fd, __u32 id)
{
	struct twheel_rule rule;

	memset(&rule, 0xa5, sizeof(rule));
	rule.id = id;
	return wh_ioctl(fd, TWHEEL_IOC_RULE_REMOVE, &rule);
}

/* Gets the rule after @id, without its lists. On an error, nothing may be written. */
static inline int next(int fd, __u32 id, struct twheel_rule *rule)
{
	struct twheel_rule copy;
	int ret;

	memset(rule, 0xa5, sizeof(*rule));
	rule->id = id;
	rule->matches = 0;
	rule->nr_matches = 0;
	copy = *rule;
	ret = wh_ioctl(fd, TWHEEL_IOC_RULE_NEXT, rule);
	return ret && memcmp(&copy, rule, sizeof(copy)) ? -EPROTO : ret;
}

/* Returns the rule @id; all POISON if there is none. */
static inline struct twheel_rule look(int fd, __u32 id)
{
	struct twheel_rule rule;

	if (next(fd, id - 1, &rule) || rule.id != id)
		memset(&rule, 0xa5, sizeof(rule));
	return rule;
}

/* Waits until a count of a rule has a value. Returns false if it times out. */
#define wait_for(_fd, _id, _count, _value)				\
	wait_for_count(_fd, _id, offsetof(struct twheel_rule, _count), _value)

static inline bool wait_for_count(int fd, __u32 id, size_t offset, __u64 value)
{
	__u64 end = now_ns() + GUARD_MS * MSEC, count;
	struct twheel_rule rule;

	do {
		rule = look(fd, id);
		memcpy(&count, (char *)&rule + offset, sizeof(count));
	} while (count != value && now_ns() < end && (sleep_ns(MSEC), true));
	return count == value;
}

static inline int list(int fd, __u32 id, void *records, __u32 nr, __u16 size, __u64 *cursor)
{
	struct twheel_connections connections = {
		.records	= (uintptr_t)records,
		.nr_records	= nr,
		.record_size	= size,
		.cursor		= *cursor,
		.id		= id,
	};
	int ret = wh_ioctl(fd, TWHEEL_IOC_RULE_CONNECTIONS, &connections);

	*cursor = connections.cursor;
	return ret;
}

/* ---- connections */

/**
 * struct pair - a connection
 * @client:	the end that connected
 * @server:	the end that was accepted
 */
struct pair {
	int client;
	int server;
};

static const struct in6_addr mapped = { .s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

static inline socklen_t address(int family, bool is_mapped, __u16 port, struct sockaddr_in6 *in6)
{
	struct sockaddr_in *in = (void *)in6;

	memset(in6, 0, sizeof(*in6));
	in6->sin6_family = family;
	in6->sin6_port = htons(port);
	if (family == AF_INET) {
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*in);
	}
	in6->sin6_addr = is_mapped ? mapped : in6addr_loopback;
	return sizeof(*in6);
}

static inline int serve(int family, bool is_mapped, __u16 port)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	/* A connection that is reset before the last ACK of its handshake can never be accepted. */
	const struct timeval patience = { .tv_sec = GUARD_MS / 1000 };
	struct sockaddr_in6 in6;
	socklen_t len = address(family, is_mapped, port, &in6);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (bind(fd, (void *)&in6, len) || listen(fd, 4096))
		return -errno;
	return fd;
}

static inline __u16 local_port(int fd)
{
	struct sockaddr_in6 in6 = { };
	socklen_t len = sizeof(in6);

	getsockname(fd, (void *)&in6, &len);
	return ntohs(in6.sin6_port);
}

static inline int reach(int family, bool is_mapped, __u16 port)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 in6;
	socklen_t len = address(family, is_mapped, port, &in6);

	return connect(fd, (void *)&in6, len) ? -errno : fd;
}

/* Makes a connection through @listener. Returns whether that worked. */
static inline bool connect_pair(int listener, struct pair *pair)
{
	pair->client = reach(AF_INET, false, local_port(listener));
	pair->server = pair->client < 0 ? -1 : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return pair->server >= 0;
}

static inline void close_pair(struct pair *pair)
{
	close(pair->client);
	close(pair->server);
}

static inline bool is_open(const struct pair *pair)
{
	return tcp_info(pair->client).tcpi_state == TCP_ESTABLISHED &&
	       tcp_info(pair->server).tcpi_state == TCP_ESTABLISHED;
}

/* Waits until a connection is closed. Returns the error of this end's socket, or -ETIME. */
static inline int error_of(int fd)
{
	return wait_tcp_state(fd, TCP_CLOSE) ? socket_error(fd) : -ETIME;
}

/* Has the server's end reset the connection? Waits for it. */
static inline bool is_reset(int client)
{
	return error_of(client) == ECONNRESET;
}

/* Sockets of this namespace that are open, or that are still referenced. */
static inline __u64 nr_sockets(void)
{
	return file_scan("/proc/self/net/sockstat", "sockets: used %llu");
}

/* Waits until there are @n: close() does not wait for that. Returns false if it times out. */
static inline bool wait_sockets(__u64 n)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (nr_sockets() != n)
		if (sleep_ns(MSEC), now_ns() > end)
			return false;
	return true;
}

/* ---- processes */

/* Runs a function in a child. What it has to report is its exit status. */
static inline pid_t spawn(void (*function)(void *arg), void *arg)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* If the test dies, so does this process. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	function(arg);
	_exit(0);
}

static inline int reap(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs a command with an argument. Returns its exit status, or -1. */
static inline int run_command(const char *command, const char *argument)
{
	pid_t pid = fork();

	if (pid)
		return reap(pid);
	execlp(command, command, argument, NULL);
	_exit(127);
}

/* ---- a test */

FIXTURE(rules) {
	int fd;
	int listener;
	__u16 port;
};

FIXTURE_SETUP(rules)
{
	self->fd = wh_open(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, network());
	self->listener = serve(AF_INET, false, 0);
	ASSERT_LE(0, self->listener);
	self->port = local_port(self->listener);
}

FIXTURE_TEARDOWN(rules)
{
	close(self->listener);
	close(self->fd);
}

#endif /* _TWHEEL_RULES_TEST_H */
