// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: which process began a connection, if its socket is shared, or if the
 * connection is long in the making.
 *
 * A connection gets the rule of the process that began it, or none: never that of a process that
 * used the same socket before.
 */
#include "child_test.h"
#include "late_workers.h"

#include <linux/filter.h>

#define PID	TWHEEL_RULE_PID
#define KEEP	TWHEEL_RULE_KEEP

/* Makes a listener ignore what it gets, or not: whoever connects meanwhile stays in SYN_SENT. */
static bool set_deaf(int listener, bool deaf)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { .len = 1, .filter = &nothing };

	return !setsockopt(listener, SOL_SOCKET, deaf ? SO_ATTACH_FILTER : SO_DETACH_FILTER,
			   &filter, sizeof(filter));
}

static int new_socket(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Begins a connection, without waiting for it. Returns -EINPROGRESS, or what went wrong. */
static int begin_connection(int sock, __u16 port)
{
	struct sockaddr_in6 in6;
	socklen_t len = address(AF_INET, false, port, &in6);

	return connect(sock, (void *)&in6, len) ? -errno : 0;
}

/* Ends a connection, or an attempt at one; the socket can have another one then. */
static bool disconnect(int sock)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

	return !connect(sock, &nowhere, sizeof(nowhere));
}

/* Accepts the connection that this end of it waits for. Returns the other end, or -1. */
static int accept_from(int listener, int sock)
{
	int there = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	return wait_tcp_state(sock, TCP_ESTABLISHED) ? there : -1;
}

/* Begins a connection with the shared socket, and leaves it to the test, each when asked to. */
static void begin_and_leave(void *arg)
{
	struct child *child = arg;

	/* Otherwise it would be listening there, too. */
	close(child->listener);
	send_answer(child, 0);
	wait_request(child);
	send_answer(child, begin_connection(child->sock, child->port));
	wait_request(child);
	close(child->sock);
	send_answer(child, 0);
	wait_request(child);
}

static bool start_initiator(struct child *child, int listener)
{
	*child = (struct child) {
		.listener	= listener,
		.port		= local_port(listener),
		.sock		= new_socket(),
	};
	return child->sock >= 0 && start_child(child, begin_and_leave) && !read_answer(child);
}

/* The child tries to connect in vain; then the test does, with the same socket, and succeeds. */
static int connect_after_attempt(struct child *child)
{
	if (!set_deaf(child->listener, true) || ask_child(child) != -EINPROGRESS)
		return -1;
	/* The attempt is on its way to the worker. */
	sleep_ns(100 * MSEC);
	if (tcp_info(child->sock).tcpi_state != TCP_SYN_SENT || ask_child(child) ||
	    !disconnect(child->sock) || !set_deaf(child->listener, false))
		return -1;
	if (begin_connection(child->sock, child->port) != -EINPROGRESS)
		return -1;
	return accept_from(child->listener, child->sock);
}

/* Waits until long after a rule would have closed a connection. Returns whether none applied. */
static bool was_left_alone(int fd, __u32 id, const struct pair *pair)
{
	struct twheel_rule rule;

	sleep_ns(3 * SEC);
	rule = look(fd, id);
	return is_open(pair) && !rule.matched && !rule.closed;
}

/* The process with the rule tried to connect, and gave up: the socket's connection is not its. */
TEST_F_TIMEOUT(rules, failed_attempt_of_another, TIMEOUT)
{
	struct twheel_rule rule = { .flags = PID | ABORT, .idle = 300 * MSEC };
	struct pair pair;
	struct child child;

	ASSERT_TRUE(start_initiator(&child, self->listener));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	pair.client = child.sock;
	pair.server = connect_after_attempt(&child);
	ASSERT_LE(0, pair.server);
	EXPECT_TRUE(was_left_alone(self->fd, rule.id, &pair));
	kill_child(child.pid);
	close_pair(&pair);
}

/* The same, and the process that begins the connection has an exception for its own. */
TEST_F_TIMEOUT(rules, exception_of_ones_own, TIMEOUT)
{
	struct twheel_rule keep = { .flags = PID | KEEP, .pid = getpid() };
	struct twheel_rule rule = { .flags = PID | ABORT, .idle = 300 * MSEC };
	struct pair pair;
	struct child child;

	ASSERT_TRUE(start_initiator(&child, self->listener));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(0, add(self->fd, &keep));
	pair.client = child.sock;
	pair.server = connect_after_attempt(&child);
	ASSERT_LE(0, pair.server);
	EXPECT_TRUE(was_left_alone(self->fd, rule.id, &pair));
	/* Both ends: it listens, too. */
	EXPECT_EQ(2, look(self->fd, keep.id).watched);
	kill_child(child.pid);
	close_pair(&pair);
}

/* The other way round: the process that begins the connection has the rule, the other does not. */
TEST_F_TIMEOUT(rules, own_connection_after_another, TIMEOUT)
{
	struct twheel_rule keep = { .flags = PID | KEEP };
	struct twheel_rule rule = {
		.flags		= PID | REMOTE | ABORT,
		.pid		= getpid(),
		.remote_port	= self->port,
		.idle		= HOUR,
	};
	struct pair pair;
	struct child child;

	ASSERT_TRUE(start_initiator(&child, self->listener));
	keep.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &keep));
	ASSERT_EQ(0, add(self->fd, &rule));
	pair.client = child.sock;
	pair.server = connect_after_attempt(&child);
	ASSERT_LE(0, pair.server);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	EXPECT_EQ(0, look(self->fd, keep.id).matched);
	kill_child(child.pid);
	close_pair(&pair);
}

/*
 * A connection that the process with the rule has begun is ended by another process, which begins
 * the next one at once: when the worker gets to see the end, that is only being established.
 */
TEST_F_TIMEOUT(rules, next_connection_of_another, TIMEOUT)
{
	struct twheel_rule rule = { .flags = PID | ABORT, .idle = HOUR };
	struct late_workers late;
	struct pair pair;
	struct child child;
	int first;

	ASSERT_TRUE(start_initiator(&child, self->listener));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(-EINPROGRESS, ask_child(&child));
	pair.client = child.sock;
	first = accept_from(self->listener, pair.client);
	ASSERT_LE(0, first);
	ASSERT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	ASSERT_EQ(0, ask_child(&child));
	ASSERT_TRUE(set_deaf(self->listener, true));
	ASSERT_EQ(true, hold_workers(&late));
	ASSERT_TRUE(disconnect(pair.client));
	ASSERT_EQ(-EINPROGRESS, begin_connection(pair.client, self->port));
	ASSERT_EQ(true, let_workers_be(&late));
	/* Some time for what waits. */
	sleep_ns(100 * MSEC);
	ASSERT_EQ(TCP_SYN_SENT, tcp_info(pair.client).tcpi_state);
	ASSERT_TRUE(set_deaf(self->listener, false));
	pair.server = accept_from(self->listener, pair.client);
	ASSERT_LE(0, pair.server);
	sleep_ns(2 * SEC);
	EXPECT_EQ(1, look(self->fd, rule.id).matched);
	EXPECT_EQ(0, look(self->fd, rule.id).watched);
	kill_child(child.pid);
	close_pair(&pair);
	close(first);
}

/*
 * Connects, with a rule that is added meanwhile, in more than a second: after that, the kernel
 * sends its request again. Returns 1 if the connection was watched less than a second after the
 * rule was about to be added, 0 if later, or -1.
 */
static int connect_slowly(int fd, int listener, struct twheel_rule *rule)
{
	int sock = new_socket(), there;
	bool is_watched, in_time;
	__u64 begin;

	if (!set_deaf(listener, true) || begin_connection(sock, rule->remote_port) != -EINPROGRESS)
		return -1;
	sleep_ns(500 * MSEC);
	begin = now_ns();
	/* Waits until the worker has seen it. */
	if (add(fd, rule) || !set_deaf(listener, false))
		return -1;
	there = accept_from(listener, sock);
	is_watched = there >= 0 && wait_for(fd, rule->id, watched, 1);
	in_time = now_ns() < begin + SEC;
	printf("# watched %llu ms after the rule was added\n", (now_ns() - begin) / MSEC);
	close(sock);
	close(there);
	return remove_rule(fd, rule->id) || !is_watched ? -1 : in_time;
}

/*
 * A connection is watched as soon as it is established, and not only when it is checked again
 * whether it is: a second after the last time. That is no sooner than a second after the rule was
 * added, however late timers are. So one connection that is watched sooner proves that it need not
 * wait for this; on a slow machine, several may have to be made.
 */
TEST_F_TIMEOUT(rules, established_late, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= PID | REMOTE | ABORT,
		.pid		= getpid(),
		.remote_port	= self->port,
		.idle		= HOUR,
	};
	int in_time = 0, i;

	for (i = 0; i < 10 && !in_time; i++) {
		in_time = connect_slowly(self->fd, self->listener, &rule);
		ASSERT_LE(0, in_time);
	}
	EXPECT_EQ(1, in_time);
}

TEST_HARNESS_MAIN
