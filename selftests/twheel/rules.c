// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: which connections they apply to, when they close them, and
 * what they tell.
 *
 * Each test has a network namespace of its own. Connections are over its loopback, so both
 * ends are in it: what is local to the server is remote to the client.
 *
 * No test fails because the machine is slow: what has to be open is closed late at most, and
 * what has to be closed is waited for.
 */
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <linux/twheel_rules.h>

#include "twheel_test.h"

#define LOCAL	TWHEEL_RULE_LOCAL_PORT
#define REMOTE	TWHEEL_RULE_REMOTE_PORT
#define ABORT	TWHEEL_WATCH_ABORT
#define DRY	TWHEEL_RULE_DRY_RUN

/* Seconds for a test, on a slow machine: to remove a rule takes grace periods of RCU. */
#define TIMEOUT	300

/* Somebody else's uid. */
#define OTHER_UID	1234

/* ---- the calls */

/* Adds a rule: its id is written, and that only if there is no error. */
static int add(int fd, struct twheel_rule *rule)
{
	struct twheel_rule copy;
	int ret;

	rule->id = 0xa5a5a5a5;
	copy = *rule;
	ret = tw_ioctl(fd, TWHEEL_IOC_RULE_ADD, rule);
	if (!ret && (!rule->id || rule->id == 0xa5a5a5a5))
		return -EPROTO;
	if (!ret)
		copy.id = rule->id;
	return memcmp(&copy, rule, sizeof(copy)) ? -EPROTO : ret;
}

/* Adds a rule for a port with an idle timeout. Returns its id or -errno. */
static int add_port(int fd, __u32 flags, __u16 port, __u64 idle)
{
	struct twheel_rule rule = {
		.flags		= flags,
		.local_port	= flags & LOCAL ? port : 0,
		.remote_port	= flags & REMOTE ? port : 0,
		.idle		= idle,
	};

	return add(fd, &rule) ?: (int)rule.id;
}

static int remove_rule(int fd, __u32 id)
{
	struct twheel_rule rule;

	memset(&rule, 0xa5, sizeof(rule));
	rule.id = id;
	return tw_ioctl(fd, TWHEEL_IOC_RULE_REMOVE, &rule);
}

/* Asks for the rule after @id. Nothing is written on an error. */
static int next(int fd, __u32 id, struct twheel_rule *rule)
{
	struct twheel_rule copy;
	int ret;

	memset(rule, 0xa5, sizeof(*rule));
	rule->id = id;
	copy = *rule;
	ret = tw_ioctl(fd, TWHEEL_IOC_RULE_NEXT, rule);
	return ret && memcmp(&copy, rule, sizeof(copy)) ? -EPROTO : ret;
}

/* What there is to know of a rule. Without one, all is POISON. */
static struct twheel_rule look(int fd, __u32 id)
{
	struct twheel_rule rule;

	if (next(fd, id - 1, &rule) || rule.id != id)
		memset(&rule, 0xa5, sizeof(rule));
	return rule;
}

/* Waits until a count of a rule has a value. Returns whether that came true. */
#define wait_for(_fd, _id, _count, _value)				\
	wait_for_count(_fd, _id, offsetof(struct twheel_rule, _count), _value)

static bool wait_for_count(int fd, __u32 id, size_t offset, __u64 value)
{
	__u64 end = now_ns() + GUARD_MS * MSEC, count;
	struct twheel_rule rule;

	do {
		rule = look(fd, id);
		memcpy(&count, (char *)&rule + offset, sizeof(count));
	} while (count != value && now_ns() < end && (sleep_ns(MSEC), true));
	return count == value;
}

static int list(int fd, __u32 id, void *records, __u32 nr, __u16 size, __u64 *cursor)
{
	struct twheel_connections connections = {
		.records	= (uintptr_t)records,
		.nr_records	= nr,
		.record_size	= size,
		.cursor		= *cursor,
		.id		= id,
	};
	int ret = tw_ioctl(fd, TWHEEL_IOC_RULE_CONNECTIONS, &connections);

	*cursor = connections.cursor;
	return ret;
}

/* ---- connections */

/**
 * struct pair - a connection
 * @client:	the end that has connected
 * @server:	the end that was accepted
 */
struct pair {
	int client;
	int server;
};

static const struct in6_addr mapped = { .s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

static socklen_t address(int family, bool is_mapped, __u16 port, struct sockaddr_in6 *in6)
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

static int serve(int family, bool is_mapped, __u16 port)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in6 in6;
	socklen_t len = address(family, is_mapped, port, &in6);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (void *)&in6, len) || listen(fd, 4096))
		return -errno;
	return fd;
}

static __u16 local_port(int fd)
{
	struct sockaddr_in6 in6 = { };
	socklen_t len = sizeof(in6);

	getsockname(fd, (void *)&in6, &len);
	return ntohs(in6.sin6_port);
}

static __u64 cookie(int fd)
{
	__u64 value = 0;
	socklen_t len = sizeof(value);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &value, &len);
	return value;
}

static int reach(int family, bool is_mapped, __u16 port)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 in6;
	socklen_t len = address(family, is_mapped, port, &in6);

	return connect(fd, (void *)&in6, len) ? -errno : fd;
}

/* Connects to what listens at @listener. Returns whether that worked. */
static bool connect_pair(int listener, struct pair *pair)
{
	pair->client = reach(AF_INET, false, local_port(listener));
	pair->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return pair->client >= 0 && pair->server >= 0;
}

static void close_pair(struct pair *pair)
{
	close(pair->client);
	close(pair->server);
}

static int tcp_state(int fd)
{
	struct tcp_info info = { };
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? -errno : info.tcpi_state;
}

static bool is_open(const struct pair *pair)
{
	return tcp_state(pair->client) == TCP_ESTABLISHED &&
	       tcp_state(pair->server) == TCP_ESTABLISHED;
}

static bool say(int from, int to)
{
	char c = 'x';

	return send(from, &c, 1, MSG_NOSIGNAL) == 1 && recv(to, &c, 1, 0) == 1;
}

/* Waits until there is something to read, and reads. Returns what read() does, or -errno. */
static int wait_read(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	char c;
	int ret;

	if (poll(&pollfd, 1, GUARD_MS) != 1)
		return -ETIME;
	ret = read(fd, &c, 1);
	return ret < 0 ? -errno : ret;
}

/* Waits until a connection is no more. Returns the error that its end has, or -ETIME. */
static int error_of(int fd)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;
	socklen_t len = sizeof(int);
	int error = 0;

	while (tcp_state(fd) != TCP_CLOSE)
		if (sleep_ns(MSEC), now_ns() > end)
			return -ETIME;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return error;
}

/*
 * Is a connection reset by its server's end? Its client's may see that it ends first: before
 * 6.5 there is a FIN before the reset.
 */
static bool is_reset(int client)
{
	int error = error_of(client);

	return error == ECONNRESET || error == EPIPE;
}

/* ---- namespaces */

static int loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), ret;

	ret = ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
	return ret;
}

static int new_namespace(void)
{
	return unshare(CLONE_NEWNET) || loopback_up() ? -errno : 0;
}

/* Sockets of this namespace that are open, or that somebody has a reference to. */
static __u64 nr_sockets(void)
{
	FILE *file = fopen("/proc/self/net/sockstat", "r");
	unsigned long long n = POISON;

	if (!file)
		return POISON;
	if (fscanf(file, "sockets: used %llu", &n) != 1)
		n = POISON;
	fclose(file);
	return n;
}

/* Waits until there are @n: who closes one does not wait for it. Returns whether that came true. */
static bool wait_sockets(__u64 n)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (nr_sockets() != n)
		if (sleep_ns(MSEC), now_ns() > end)
			return false;
	return true;
}

FIXTURE(rules) {
	int fd;
	int listener;
	__u16 port;
};

FIXTURE_SETUP(rules)
{
	self->fd = tw_open(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, new_namespace());
	self->listener = serve(AF_INET, false, 0);
	ASSERT_LE(0, self->listener);
	self->port = local_port(self->listener);
}

FIXTURE_TEARDOWN(rules)
{
	close(self->listener);
	close(self->fd);
}

/* ---- connections are closed */

TEST_F_TIMEOUT(rules, closes_one_that_was_there, TIMEOUT)
{
	struct twheel_rule rule;
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	ASSERT_EQ(1, id);
	/* The one with the error is that which the rule is for. */
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	EXPECT_TRUE(is_reset(pair.client));
	rule = look(self->fd, id);
	EXPECT_EQ(0, rule.watched);
	EXPECT_EQ(1, rule.matched);
	EXPECT_EQ(1, rule.closed);
	EXPECT_EQ(0, rule.spared);
	EXPECT_EQ(0, rule.delayed);
	EXPECT_EQ(0, rule.missed);
}

TEST_F_TIMEOUT(rules, closes_a_new_one, TIMEOUT)
{
	int id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	struct pair pair;

	ASSERT_EQ(1, id);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	EXPECT_TRUE(is_reset(pair.client));
	EXPECT_EQ(1, look(self->fd, id).closed);
}

/* Of many, those that are not idle stay, on the same port. */
TEST_F_TIMEOUT(rules, leaves_busy_ones_alone, TIMEOUT)
{
	const __u64 idle = SEC;
	__u64 last, gap = 0, end;
	struct pair busy[4], silent[4];
	int id, i;

	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(connect_pair(self->listener, &busy[i]));
		ASSERT_TRUE(connect_pair(self->listener, &silent[i]));
	}
	id = add_port(self->fd, LOCAL | ABORT, self->port, idle);
	last = now_ns();
	end = last + 3 * SEC;
	while (now_ns() < end || look(self->fd, id).closed < 4) {
		for (i = 0; i < 4; i++)
			say(busy[i].client, busy[i].server);
		gap = now_ns() - last > gap ? now_ns() - last : gap;
		last = now_ns();
		sleep_ns(20 * MSEC);
		ASSERT_GT(end + GUARD_MS * MSEC, now_ns());
	}
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(ETIMEDOUT, error_of(silent[i].server));
		/* Unless the test itself was silent for so long. */
		EXPECT_TRUE(is_open(&busy[i]) || gap > idle / 2);
	}
}

TEST_F_TIMEOUT(rules, shuts_down, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | TWHEEL_WATCH_SHUTDOWN, self->port, 100 * MSEC);
	/* Nobody has an error: it has ended. */
	EXPECT_EQ(0, wait_read(pair.client));
	EXPECT_EQ(0, wait_read(pair.server));
	EXPECT_EQ(1, look(self->fd, id).closed);
	EXPECT_EQ(0, look(self->fd, id).watched);
}

/* It is closed as soon as somebody has. */
TEST_F_TIMEOUT(rules, leaves_alone_what_nobody_has_accepted, TIMEOUT)
{
	int id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	struct pair pair = { .client = reach(AF_INET, false, self->port) };

	sleep_ns(300 * MSEC);
	EXPECT_EQ(TCP_ESTABLISHED, tcp_state(pair.client));
	EXPECT_EQ(0, look(self->fd, id).watched);
	pair.server = accept(self->listener, NULL, NULL);
	EXPECT_TRUE(is_reset(pair.client));
	EXPECT_EQ(1, look(self->fd, id).closed);
	EXPECT_EQ(1, look(self->fd, id).matched);
}

/* The kernel closes what nobody has accepted: it must not meet the worker, and says so if. */
TEST_F_TIMEOUT(rules, listener_that_is_closed, TIMEOUT)
{
	int clients[32], id = add_port(self->fd, LOCAL | ABORT, self->port, 1), round;
	size_t i;

	for (round = 0; round < 50; round++) {
		for (i = 0; i < ARRAY_SIZE(clients); i++)
			clients[i] = reach(AF_INET, false, self->port);
		ASSERT_EQ(0, close(self->listener));
		for (i = 0; i < ARRAY_SIZE(clients); i++) {
			EXPECT_TRUE(is_reset(clients[i]));
			close(clients[i]);
		}
		self->listener = serve(AF_INET, false, self->port);
		ASSERT_LE(0, self->listener);
	}
	EXPECT_EQ(0, look(self->fd, id).closed);
	EXPECT_EQ(0, look(self->fd, id).watched);
}

/* Its peer has closed it, and it has not. */
TEST_F_TIMEOUT(rules, closes_half_a_connection, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, shutdown(pair.client, SHUT_WR));
	EXPECT_EQ(0, wait_read(pair.server));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	ASSERT_TRUE(wait_for(self->fd, id, closed, 1));
	/* With a FIN before the reset, that is the proper end of it, and no error. */
	EXPECT_NE(-ETIME, error_of(pair.server));
}

TEST_F_TIMEOUT(rules, forgets_what_is_closed, TIMEOUT)
{
	const __u64 sockets = nr_sockets();
	struct pair pair;
	int id, i;

	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	for (i = 0; i < 50; i++) {
		ASSERT_TRUE(connect_pair(self->listener, &pair));
		if (i % 2)
			say(pair.client, pair.server);
		close_pair(&pair);
	}
	ASSERT_TRUE(wait_for(self->fd, id, watched, 0));
	ASSERT_NE(POISON, sockets);
	EXPECT_TRUE(wait_sockets(sockets)) TH_LOG("%llu, not %llu", nr_sockets(), sockets);
	/* One can be closed before it is looked at. */
	EXPECT_GE(50, look(self->fd, id).matched);
	EXPECT_EQ(0, look(self->fd, id).closed);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(wait_for(self->fd, id, watched, 1));
}

static const struct {
	const char *what;
	__u32 flags;
	bool client_lives;
} activities[] = {
	{ "any",	0,			true },
	{ "received",	TWHEEL_WATCH_RECEIVED,	false },
	{ "sent",	TWHEEL_WATCH_SENT,	true },
	{ "both",	TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT, true },
};

/* The client sends and gets nothing: with each rule it lives or it does not. */
TEST_F_TIMEOUT(rules, activity, TIMEOUT)
{
	const __u64 idle = 500 * MSEC;
	__u64 last, gap, end;
	struct pair pair;
	size_t i;
	int id;

	for (i = 0; i < ARRAY_SIZE(activities); i++) {
		ASSERT_TRUE(connect_pair(self->listener, &pair));
		id = add_port(self->fd, REMOTE | ABORT | activities[i].flags, self->port, idle);
		ASSERT_LT(0, id);
		last = now_ns();
		end = last + (activities[i].client_lives ? 2 * idle : GUARD_MS * MSEC);
		for (gap = 0; now_ns() < end && say(pair.client, pair.server);) {
			gap = now_ns() - last > gap ? now_ns() - last : gap;
			last = now_ns();
			sleep_ns(10 * MSEC);
		}
		EXPECT_TRUE(is_open(&pair) == activities[i].client_lives || gap > idle / 2)
			TH_LOG("%s", activities[i].what);
		EXPECT_EQ(0, remove_rule(self->fd, id));
		close_pair(&pair);
	}
}

TEST_F_TIMEOUT(rules, lifetime_ends_a_busy_one, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.local_port	= self->port,
		.idle		= HOUR,
		.lifetime	= 500 * MSEC,
	};
	__u64 begin = now_ns();
	struct pair pair;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, add(self->fd, &rule));
	while (say(pair.client, pair.server) && now_ns() < begin + GUARD_MS * MSEC)
		sleep_ns(10 * MSEC);
	EXPECT_LE(begin + 500 * MSEC, now_ns());
	EXPECT_FALSE(is_open(&pair));
	EXPECT_EQ(1, look(self->fd, rule.id).closed);
	/* One that comes later lives longer. */
	begin = now_ns();
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	while (say(pair.client, pair.server) && now_ns() < begin + GUARD_MS * MSEC)
		sleep_ns(10 * MSEC);
	EXPECT_LE(begin + 500 * MSEC, now_ns());
	ASSERT_TRUE(wait_for(self->fd, rule.id, closed, 2));
}

/* Counts each time that a connection is idle, once, and does nothing. */
TEST_F_TIMEOUT(rules, dry_run, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT | DRY, self->port, 100 * MSEC);
	ASSERT_TRUE(wait_for(self->fd, id, closed, 1));
	sleep_ns(500 * MSEC);
	EXPECT_EQ(1, look(self->fd, id).closed);
	EXPECT_TRUE(say(pair.client, pair.server));
	ASSERT_TRUE(wait_for(self->fd, id, closed, 2));
	EXPECT_TRUE(is_open(&pair));
	EXPECT_EQ(1, look(self->fd, id).watched);
	EXPECT_EQ(1, look(self->fd, id).matched);
}

TEST_F_TIMEOUT(rules, dry_run_of_a_lifetime, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT | DRY,
		.local_port	= self->port,
		.lifetime	= 100 * MSEC,
	};
	struct pair pair;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_TRUE(wait_for(self->fd, rule.id, closed, 1));
	EXPECT_TRUE(say(pair.client, pair.server));
	sleep_ns(300 * MSEC);
	EXPECT_EQ(1, look(self->fd, rule.id).closed);
	EXPECT_TRUE(is_open(&pair));
}

/* ---- how many at a time */

/* 20 connections at 10 per second: the first at once, the others one after the other. */
TEST_F_TIMEOUT(rules, rate, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.rate		= 10,
		.local_port	= self->port,
		.idle		= 100 * MSEC,
	}, now;
	struct pair pairs[20];
	__u64 begin;
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	sleep_ns(150 * MSEC);
	begin = now_ns();
	ASSERT_EQ(0, add(self->fd, &rule));
	do {
		now = look(self->fd, rule.id);
		ASSERT_GE((now_ns() - begin) / (100 * MSEC) + 1, now.closed);
		sleep_ns(10 * MSEC);
	} while (now.closed < 20 && now_ns() < begin + GUARD_MS * MSEC);
	EXPECT_EQ(20, now.closed);
	EXPECT_EQ(0, now.watched);
	/* A slow machine may have let a token or two come while it looked. */
	EXPECT_LE(10, now.delayed);
	EXPECT_GE(19, now.delayed);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(ETIMEDOUT, error_of(pairs[i].server));
}

/* Who waits for its turn, and is active meanwhile, is spared. */
TEST_F_TIMEOUT(rules, activity_while_it_waits_for_its_turn, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.rate		= 1,
		.local_port	= self->port,
		.idle		= 300 * MSEC,
	};
	struct pair pairs[2];
	int other;

	ASSERT_TRUE(connect_pair(self->listener, &pairs[0]));
	ASSERT_TRUE(connect_pair(self->listener, &pairs[1]));
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_TRUE(wait_for(self->fd, rule.id, delayed, 1));
	ASSERT_TRUE(wait_for(self->fd, rule.id, closed, 1));
	other = tcp_state(pairs[0].server) == TCP_ESTABLISHED ? 0 : 1;
	/* It is looked at after a second. A slow machine may miss that. */
	while (!look(self->fd, rule.id).spared && is_open(&pairs[other])) {
		say(pairs[other].client, pairs[other].server);
		sleep_ns(10 * MSEC);
	}
	EXPECT_TRUE(is_open(&pairs[other]) || look(self->fd, rule.id).closed == 2);
	ASSERT_TRUE(wait_for(self->fd, rule.id, closed, 2));
}

TEST_F_TIMEOUT(rules, spread, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.local_port	= self->port,
		.idle		= HOUR,
		.spread		= HOUR,
	};
	struct twheel_connection records[64];
	__u64 cursor = 0, least = ~0ULL, most = 0;
	struct pair pair;
	int i;

	for (i = 0; i < 64; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(64, list(self->fd, rule.id, records, 64, sizeof(records[0]), &cursor));
	for (i = 0; i < 64; i++) {
		least = records[i].remaining < least ? records[i].remaining : least;
		most = records[i].remaining > most ? records[i].remaining : most;
	}
	/* That all of them are in one half by chance: 2^-63. */
	EXPECT_GT(HOUR + HOUR / 2, least);
	EXPECT_LT(HOUR + HOUR / 2 - GUARD_MS * MSEC, most);
	EXPECT_GE(2 * HOUR, most);
	EXPECT_LT(HOUR - 2 * GUARD_MS * MSEC, least);
}

/* ---- what rules match */

/* Each of what can be asked for and that the server's end has, and something else. */
static void ask(struct twheel_rule *rule, unsigned int what, unsigned int wrong,
		const struct pair *pair)
{
	memset(rule, 0, sizeof(*rule));
	rule->flags = ABORT | (what & 1 ? LOCAL : 0) | (what & 2 ? REMOTE : 0) |
		      (what & 4 ? TWHEEL_RULE_UID : 0) | (what & 8 ? TWHEEL_RULE_PID : 0);
	rule->idle = HOUR;
	if (what & 1)
		rule->local_port = local_port(pair->server) ^ (wrong & 1);
	if (what & 2)
		rule->remote_port = local_port(pair->client) ^ (wrong >> 1 & 1);
	if (what & 4)
		rule->uid = OTHER_UID ^ (wrong >> 2 & 1);
	if (what & 8)
		rule->pid = wrong & 8 ? 1 : getpid();
}

TEST_F_TIMEOUT(rules, matches_all_that_it_asks_for, TIMEOUT)
{
	unsigned int what, wrong;
	struct twheel_rule rule;
	struct pair pair;

	/* The server's end belongs to somebody else: he accepts. */
	pair.client = reach(AF_INET, false, self->port);
	ASSERT_EQ(0, seteuid(OTHER_UID));
	pair.server = accept(self->listener, NULL, NULL);
	ASSERT_EQ(0, seteuid(0));
	/* A rule that stays: to remove the last one takes longer. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	for (what = 1; what < 16; what++) {
		for (wrong = 0; wrong < 16; wrong++) {
			if (wrong & ~what)
				continue;
			ask(&rule, what, wrong, &pair);
			ASSERT_EQ(0, add(self->fd, &rule));
			/* By its process alone it is the client's end as well. */
			EXPECT_EQ(wrong ? 0 : what == 8 ? 2 : 1,
				  look(self->fd, rule.id).watched)
				TH_LOG("what %x wrong %x", what, wrong);
			ASSERT_EQ(0, remove_rule(self->fd, rule.id));
		}
	}
}

/* A server's connection is its listener's until somebody accepts it. */
TEST_F_TIMEOUT(rules, uid_of_who_accepts, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_UID | LOCAL | ABORT,
		.local_port	= self->port,
		.uid		= OTHER_UID,
		.idle		= HOUR,
	};
	struct pair pair;

	ASSERT_EQ(0, add(self->fd, &rule));
	pair.client = reach(AF_INET, false, self->port);
	sleep_ns(200 * MSEC);
	EXPECT_EQ(0, look(self->fd, rule.id).watched);
	ASSERT_EQ(0, seteuid(OTHER_UID));
	pair.server = accept(self->listener, NULL, NULL);
	ASSERT_EQ(0, seteuid(0));
	ASSERT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	EXPECT_EQ(TCP_ESTABLISHED, tcp_state(pair.server));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	sleep_ns(300 * MSEC);
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	EXPECT_EQ(1, look(self->fd, rule.id).matched);
}

TEST_F_TIMEOUT(rules, first_one_wins, TIMEOUT)
{
	struct pair pairs[3];
	int ids[3], i;

	for (i = 0; i < 3; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	ids[0] = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	ids[1] = add_port(self->fd, LOCAL | ABORT, self->port, 50 * MSEC);
	ids[2] = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	EXPECT_EQ(3, look(self->fd, ids[0]).watched);
	EXPECT_EQ(0, look(self->fd, ids[1]).watched);
	sleep_ns(300 * MSEC);
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(is_open(&pairs[i]));
	/* When it goes, the next one takes over. */
	ASSERT_EQ(0, remove_rule(self->fd, ids[1]));
	EXPECT_EQ(3, look(self->fd, ids[0]).watched);
	ASSERT_EQ(0, remove_rule(self->fd, ids[0]));
	EXPECT_EQ(3, look(self->fd, ids[2]).watched);
	EXPECT_EQ(3, look(self->fd, ids[2]).matched);
	ids[0] = add_port(self->fd, LOCAL | ABORT, self->port, 50 * MSEC);
	ASSERT_EQ(0, remove_rule(self->fd, ids[2]));
	ASSERT_TRUE(wait_for(self->fd, ids[0], closed, 3));
}

TEST_F_TIMEOUT(rules, removed_ones_close_nothing, TIMEOUT)
{
	struct pair pairs[20];
	int round, id, i;

	for (i = 0; i < 20; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 20; i++)
			ASSERT_TRUE(say(pairs[i].client, pairs[i].server));
		id = add_port(self->fd, LOCAL | ABORT, self->port, 10 * SEC);
		ASSERT_LT(0, id);
		EXPECT_EQ(20, look(self->fd, id).watched);
		ASSERT_EQ(0, remove_rule(self->fd, id));
		EXPECT_EQ(-ENOENT, remove_rule(self->fd, id));
	}
	for (i = 0; i < 20; i++)
		EXPECT_TRUE(is_open(&pairs[i]));
	/* The wheel has nothing of it any more. */
	EXPECT_TRUE(wait_total("pending", 0));
}

/* Removed at about the time at which it closes them: what is left stays open. */
TEST_F_TIMEOUT(rules, removed_while_it_closes, TIMEOUT)
{
	struct pair pairs[50];
	__u64 closed;
	int id, i, open;

	for (i = 0; i < 50; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	while (!(closed = look(self->fd, id).closed))
		sched_yield();
	ASSERT_EQ(0, remove_rule(self->fd, id));
	for (open = 0, i = 0; i < 50; i++)
		open += is_open(&pairs[i]);
	sleep_ns(300 * MSEC);
	for (i = 0; i < 50; i++)
		open -= is_open(&pairs[i]);
	EXPECT_EQ(0, open);
	EXPECT_LE(1, closed);
}

/* ---- processes and cgroups */

/* Runs a function in a child. Its result is what it is to be told of. */
static pid_t spawn(void (*function)(void *arg), void *arg)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* Should the test not come to an end, this does. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	function(arg);
	_exit(0);
}

static int reap(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	reap(pid);
}

/* Does something when it is told to, by a byte in a pipe. */
struct child {
	pid_t pid;
	int tell[2];
	int told[2];
	__u16 port;
	int listener;
};

static void wait_word(struct child *child)
{
	char c;

	if (read(child->tell[0], &c, 1) != 1)
		_exit(1);
}

static bool tell(struct child *child)
{
	return write(child->tell[1], "x", 1) == 1;
}

/* Hears of a port, or a file descriptor, that the child has to do with. */
static int hear(struct child *child)
{
	int value = -1;

	return read(child->told[0], &value, sizeof(value)) == sizeof(value) ? value : -1;
}

static void report(struct child *child, int value)
{
	if (write(child->told[1], &value, sizeof(value)) != sizeof(value))
		_exit(1);
}

static bool begin(struct child *child, void (*function)(void *arg))
{
	if (pipe2(child->tell, O_CLOEXEC) || pipe2(child->told, O_CLOEXEC))
		return false;
	child->pid = spawn(function, child);
	return child->pid > 0;
}

/* Connects, again each time it is told to, and tells of its port. */
static void connect_often(void *arg)
{
	struct child *child = arg;

	/* Or it would be one that listens. */
	close(child->listener);
	for (;;) {
		wait_word(child);
		report(child, local_port(reach(AF_INET, false, child->port)));
	}
}

TEST_F_TIMEOUT(rules, process_that_connects, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .port = self->port, .listener = self->listener };
	struct twheel_connection record;
	__u64 cursor = 0;
	struct pair pair;
	int port;

	ASSERT_TRUE(begin(&child, connect_often));
	ASSERT_TRUE(tell(&child));
	port = hear(&child);
	rule.pid = child.pid;
	/* One that it has begun before. */
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	EXPECT_EQ(child.pid, look(self->fd, rule.id).pid);
	ASSERT_EQ(1, list(self->fd, rule.id, &record, 1, sizeof(record), &cursor));
	EXPECT_EQ(port, record.local_port);
	/* One that it begins; and one of somebody else. */
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(tell(&child));
	hear(&child);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(tell(&child));
	hear(&child);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 3));
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	stop(child.pid);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 0));
	/* There is no such process any more. */
	EXPECT_EQ(-ESRCH, add(self->fd, &rule));
}

/* A process that nobody knows of begins a connection that never comes about. */
TEST_F_TIMEOUT(rules, process_that_cannot_connect, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags	= TWHEEL_RULE_PID | ABORT,
		.pid	= getpid(),
		.idle	= HOUR,
	};
	struct sockaddr_in6 in6;
	socklen_t len;
	int fd, i;

	ASSERT_EQ(0, add(self->fd, &rule));
	for (i = 0; i < 20; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		len = address(AF_INET, false, 1, &in6);
		EXPECT_EQ(-1, connect(fd, (void *)&in6, len));
		EXPECT_EQ(ECONNREFUSED, errno);
		close(fd);
	}
	EXPECT_EQ(0, look(self->fd, rule.id).matched);
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	EXPECT_TRUE(wait_total("pending", 0));
}

/* Listens when it is told to, has a child that accepts, and lives on. */
static void accept_all(void *arg)
{
	struct child *child = arg;

	/* It outlives its parent, but not the test. */
	prctl(PR_SET_PDEATHSIG, 0);
	alarm(2 * GUARD_MS / 1000);
	for (;;)
		report(child, accept(child->listener, NULL, NULL));
}

static void listen_often(void *arg)
{
	struct child *child = arg;

	setpgid(0, 0);
	/* It would listen there as well. */
	close(child->listener);
	for (;;) {
		child->listener = serve(AF_INET, false, 0);
		spawn(accept_all, child);
		report(child, local_port(child->listener));
		wait_word(child);
	}
}

TEST_F_TIMEOUT(rules, process_that_listens, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener };
	struct pair pair;
	int port;

	ASSERT_TRUE(begin(&child, listen_often));
	port = hear(&child);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, hear(&child));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	/* Its child has accepted it. */
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, hear(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
	/* Another port, from now on. */
	ASSERT_TRUE(tell(&child));
	port = hear(&child);
	sleep_ns(200 * MSEC);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, hear(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 3));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	/* Without it there are no new ones, though others accept. */
	stop(child.pid);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, hear(&child));
	sleep_ns(100 * MSEC);
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	EXPECT_EQ(3, look(self->fd, rule.id).watched);
	kill(-child.pid, SIGKILL);
}

#define CGROUPS	"/tmp/cgroups"

static __u64 make_cgroup(const char *path)
{
	struct stat stat_buf;

	mkdir(path, 0755);
	return stat(path, &stat_buf) ? 0 : stat_buf.st_ino;
}

TEST_F_TIMEOUT(rules, cgroup, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_CGROUP | ABORT, .idle = HOUR };
	__u64 parent, child, other;
	struct pair pair;
	int ret;

	mkdir(CGROUPS, 0755);
	if (mount("cgroup2", CGROUPS, "cgroup2", 0, NULL) && errno != EBUSY)
		SKIP(return, "this kernel has no cgroups");
	parent = make_cgroup(CGROUPS "/parent");
	child = make_cgroup(CGROUPS "/parent/child");
	other = make_cgroup(CGROUPS "/other");
	ASSERT_NE(0, child);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, file_write(CGROUPS "/parent/child/cgroup.procs", getpid()));
	/* This end is made in the child; the other one is the listener's. */
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	rule.cgroup = parent;
	ret = add(self->fd, &rule);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "sockets of this kernel have no cgroups");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	rule.cgroup = child;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
	rule.cgroup = other;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(0, look(self->fd, rule.id).watched);
	/* Its directory may go before the rule does. */
	EXPECT_EQ(0, rmdir(CGROUPS "/other"));
	EXPECT_EQ(other, look(self->fd, rule.id).cgroup);
	EXPECT_EQ(-ENOENT, add(self->fd, &rule));
	file_write(CGROUPS "/cgroup.procs", getpid());
}

/* ---- namespaces and rights */

TEST_F_TIMEOUT(rules, other_namespaces_are_left_alone, TIMEOUT)
{
	struct pair pair, other;
	int id, listener;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, new_namespace());
	listener = serve(AF_INET, false, self->port);
	ASSERT_TRUE(connect_pair(listener, &other));
	/* Both have the same ports. */
	id = add_port(self->fd, LOCAL | ABORT, self->port, 50 * MSEC);
	ASSERT_EQ(1, id);
	EXPECT_EQ(ETIMEDOUT, error_of(other.server));
	EXPECT_TRUE(is_open(&pair));
	EXPECT_EQ(1, look(self->fd, id).matched);
}

static void use_namespace(void *arg)
{
	int fd = *(int *)arg, listener, i;
	struct pair pair;

	if (new_namespace())
		_exit(1);
	listener = serve(AF_INET, false, 0);
	for (i = 0; i < 10; i++)
		if (!connect_pair(listener, &pair))
			_exit(2);
	if (add_port(fd, LOCAL | ABORT, local_port(listener), HOUR) != 1 ||
	    add_port(fd, REMOTE | ABORT, local_port(listener), HOUR) != 2)
		_exit(3);
	_exit(look(fd, 1).watched == 10 && look(fd, 2).watched == 10 ? 0 : 4);
}

TEST_F_TIMEOUT(rules, namespaces_go_with_their_rules, TIMEOUT)
{
	int i;

	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, reap(spawn(use_namespace, &self->fd)));
	EXPECT_TRUE(wait_total("pending", 0));
}

static int call_all(int fd, int id)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.local_port	= 1,
		.idle		= HOUR,
	};
	struct twheel_connection record;
	__u64 cursor = 0;

	return add(fd, &rule) == -EPERM && remove_rule(fd, id) == -EPERM &&
	       next(fd, 0, &rule) == -EPERM &&
	       list(fd, id, &record, 1, sizeof(record), &cursor) == -EPERM ? 0 : 1;
}

static void call_without_rights(void *arg)
{
	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(2);
	_exit(call_all(*(int *)arg, 1));
}

/* Who has made a namespace of users has rights in it, and not in that of the network. */
static void call_with_rights_elsewhere(void *arg)
{
	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(2);
	if (unshare(CLONE_NEWUSER))
		_exit(KSFT_SKIP);
	_exit(call_all(*(int *)arg, 1));
}

static void call_with_rights(void *arg)
{
	struct twheel_rule rule = {
		.flags	= TWHEEL_RULE_UID | ABORT,
		.uid	= 0,
		.idle	= HOUR,
	};

	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(2);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		_exit(KSFT_SKIP);
	/* Here he has no number. */
	_exit(add_port(*(int *)arg, LOCAL | ABORT, 1, HOUR) == 1 &&
	      add(*(int *)arg, &rule) == -EINVAL ? 0 : 1);
}

TEST_F_TIMEOUT(rules, rights, TIMEOUT)
{
	int ret;

	ASSERT_EQ(1, add_port(self->fd, LOCAL | ABORT, self->port, HOUR));
	EXPECT_EQ(0, reap(spawn(call_without_rights, &self->fd)));
	ret = reap(spawn(call_with_rights_elsewhere, &self->fd));
	if (ret == KSFT_SKIP)
		SKIP(return, "this kernel has no namespaces of users");
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, reap(spawn(call_with_rights, &self->fd)));
	EXPECT_EQ(1, look(self->fd, 1).id);
}

/* ---- what is told */

static int compare(const void *a, const void *b)
{
	__u64 one = *(const __u64 *)a, other = *(const __u64 *)b;

	return one < other ? -1 : one > other;
}

/* Many sizes of portions and records: each connection is told of once. */
TEST_F_TIMEOUT(rules, list_of_connections, TIMEOUT)
{
	static const struct {
		__u32 nr;
		__u16 size;
	} ways[] = { { 1, 72 }, { 7, 72 }, { 100, 80 }, { 99, 4096 }, { 1000, 104 } };
	__u64 cursor, told[100], known[100], seen;
	struct twheel_connection *record;
	struct pair pairs[100];
	char *records, *p;
	size_t way;
	int id, i, n;

	records = malloc(1000 * 4096);
	for (i = 0; i < 100; i++) {
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
		known[i] = cookie(pairs[i].server);
	}
	qsort(known, 100, sizeof(known[0]), compare);
	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	for (way = 0; way < ARRAY_SIZE(ways); way++) {
		for (cursor = 0, seen = 0;; seen += n) {
			memset(records, 0xa5, 1000 * 4096);
			n = list(self->fd, id, records, ways[way].nr, ways[way].size, &cursor);
			if (n <= 0)
				break;
			ASSERT_GE(ways[way].nr, n);
			ASSERT_GE(100, seen + n);
			for (i = 0; i < n; i++) {
				p = records + i * ways[way].size;
				record = (void *)p;
				told[seen + i] = record->cookie;
				EXPECT_EQ(AF_INET, record->family);
				EXPECT_EQ(self->port, record->local_port);
				EXPECT_EQ(0, record->uid);
				EXPECT_EQ(0, memcmp(record->local_address, "\x7f\0\0\1", 4));
				EXPECT_GE(HOUR, record->idle + record->remaining);
				EXPECT_EQ(0, record->reserved);
				for (p += sizeof(*record); p < records + (i + 1) * ways[way].size;)
					ASSERT_EQ(0, *p++);
			}
		}
		EXPECT_EQ(0, n);
		ASSERT_EQ(100, seen);
		qsort(told, 100, sizeof(told[0]), compare);
		EXPECT_EQ(0, memcmp(told, known, sizeof(known)));
	}
	free(records);
}

TEST_F_TIMEOUT(rules, ipv6, TIMEOUT)
{
	struct twheel_connection records[4];
	int listener = serve(AF_INET6, true, 0), listener6, id, i;
	__u64 cursor = 0;

	if (listener < 0)
		SKIP(return, "this kernel has no IPv6");
	/* The same port, by its own address. */
	listener6 = serve(AF_INET6, false, local_port(listener));
	ASSERT_LE(0, listener6);
	ASSERT_LE(0, reach(AF_INET6, false, local_port(listener)));
	ASSERT_LE(0, reach(AF_INET6, true, local_port(listener)));
	ASSERT_LE(0, accept(listener6, NULL, NULL));
	ASSERT_LE(0, accept(listener, NULL, NULL));
	id = add_port(self->fd, LOCAL | ABORT, local_port(listener), HOUR);
	ASSERT_EQ(2, list(self->fd, id, records, 4, sizeof(records[0]), &cursor));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(AF_INET6, records[i].family);
		EXPECT_EQ(0, memcmp(records[i].local_address, records[i].remote_address, 16));
		EXPECT_TRUE(!memcmp(records[i].local_address, &in6addr_loopback, 16) ||
			    !memcmp(records[i].local_address, &mapped, 16));
	}
	EXPECT_NE(0, memcmp(records[0].local_address, records[1].local_address, 16));
	add_port(self->fd, LOCAL | ABORT, local_port(listener), 50 * MSEC);
	ASSERT_EQ(0, remove_rule(self->fd, id));
	EXPECT_TRUE(wait_for(self->fd, id + 1, closed, 2));
}

TEST_F_TIMEOUT(rules, list_of_rules, TIMEOUT)
{
	struct {
		struct twheel_rule rule;
		__u64 more[4];
	} longer = { };
	struct twheel_rule asked = {
		.flags		= LOCAL | REMOTE | TWHEEL_RULE_UID | DRY | TWHEEL_WATCH_SENT |
				  TWHEEL_WATCH_SHUTDOWN,
		.rate		= 5,
		.local_port	= 1,
		.remote_port	= 2,
		.uid		= 3,
		.idle		= 4,
		.lifetime	= 5,
		.spread		= 6,
		.watched	= POISON,
	}, got;
	const unsigned int cmd = TWHEEL_IOC_RULE_NEXT & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT);

	EXPECT_EQ(-ENOENT, next(self->fd, 0, &got));
	ASSERT_EQ(0, add(self->fd, &asked));
	asked.watched = 0;
	ASSERT_EQ(0, next(self->fd, 0, &got));
	EXPECT_EQ(0, memcmp(&asked, &got, sizeof(got)));
	EXPECT_EQ(-ENOENT, next(self->fd, 1, &got));
	EXPECT_EQ(-ENOENT, next(self->fd, ~0U, &got));
	/* A rate of 0 is one, and ids are not given out again. */
	ASSERT_EQ(0, remove_rule(self->fd, 1));
	asked.rate = 0;
	ASSERT_EQ(0, add(self->fd, &asked));
	EXPECT_EQ(2, asked.id);
	EXPECT_EQ(TWHEEL_RULE_RATE, look(self->fd, 2).rate);
	/* Longer structures, and such as never were. */
	EXPECT_EQ(0, tw_ioctl(self->fd, cmd | sizeof(longer) << _IOC_SIZESHIFT, &longer));
	EXPECT_EQ(2, longer.rule.id);
	longer.rule.id = 0;
	longer.more[3] = 1;
	EXPECT_EQ(-E2BIG, tw_ioctl(self->fd, cmd | sizeof(longer) << _IOC_SIZESHIFT, &longer));
	EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, cmd | (sizeof(got) - 8) << _IOC_SIZESHIFT, &got));
}

TEST_F_TIMEOUT(rules, as_many_as_there_may_be, TIMEOUT)
{
	struct twheel_rule rule;
	int i;

	for (i = 1; i <= 256; i++)
		ASSERT_EQ(i, add_port(self->fd, LOCAL | ABORT, i, HOUR));
	EXPECT_EQ(-ENOSPC, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	for (i = 0; i < 256; i++) {
		ASSERT_EQ(0, next(self->fd, i, &rule));
		ASSERT_EQ(i + 1, rule.id);
		ASSERT_EQ(i + 1, rule.local_port);
	}
	ASSERT_EQ(0, remove_rule(self->fd, 100));
	EXPECT_EQ(257, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	EXPECT_EQ(-ENOSPC, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
}

static const struct {
	const char *what;
	int error;
	struct twheel_rule rule;
} wrong[] = {
	{ "asks for nothing", -EINVAL, { .flags = ABORT, .idle = 1 } },
	{ "no action", -EINVAL, { .flags = LOCAL, .local_port = 1, .idle = 1 } },
	{ "two actions", -EINVAL, { .flags = LOCAL | ABORT | TWHEEL_WATCH_SHUTDOWN,
				    .local_port = 1, .idle = 1 } },
	{ "no limit", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1 } },
	{ "port 0", -EINVAL, { .flags = LOCAL | ABORT, .idle = 1 } },
	{ "remote port 0", -EINVAL, { .flags = REMOTE | ABORT, .idle = 1 } },
	{ "port without flag", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
					  .remote_port = 1, .idle = 1 } },
	{ "uid without flag", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
					 .uid = 1, .idle = 1 } },
	{ "pid without flag", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
					 .pid = 1, .idle = 1 } },
	{ "cgroup without flag", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
					    .cgroup = 1, .idle = 1 } },
	{ "no uid", -EINVAL, { .flags = TWHEEL_RULE_UID | ABORT, .uid = -1U, .idle = 1 } },
	{ "no pid", -ESRCH, { .flags = TWHEEL_RULE_PID | ABORT, .pid = 0x7fffffff, .idle = 1 } },
	{ "pid 0", -ESRCH, { .flags = TWHEEL_RULE_PID | ABORT, .idle = 1 } },
	{ "pid -1", -ESRCH, { .flags = TWHEEL_RULE_PID | ABORT, .pid = -1, .idle = 1 } },
	{ "no cgroup", -ENOENT, { .flags = TWHEEL_RULE_CGROUP | ABORT, .cgroup = 1ULL << 60,
				  .idle = 1 } },
	{ "reserved", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1, .idle = 1,
				 .reserved = 1 } },
	{ "idle", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1, .idle = 1ULL << 63 } },
	{ "long idle", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
				  .idle = 1ULL << 62 } },
	{ "lifetime", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
				 .lifetime = 1ULL << 63 } },
	{ "spread", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1, .lifetime = 1,
			       .spread = 1ULL << 63 } },
	{ "unknown flag", -EOPNOTSUPP, { .flags = LOCAL | ABORT | 1U << 31, .local_port = 1,
					 .idle = 1 } },
	{ "a timer's flag", -EOPNOTSUPP, { .flags = LOCAL | ABORT | TWHEEL_WATCHED,
					   .local_port = 1, .idle = 1 } },
};

TEST_F_TIMEOUT(rules, errors, TIMEOUT)
{
	struct twheel_rule rule;
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		rule = wrong[i].rule;
		ret = add(self->fd, &rule);
		/* The kernel may know no cgroups at all. */
		EXPECT_TRUE(ret == wrong[i].error || (rule.cgroup && ret == -EOPNOTSUPP))
			TH_LOG("%s: %d", wrong[i].what, ret);
	}
	EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, TWHEEL_IOC_RULE_ADD, (void *)8));
	EXPECT_EQ(-ENOENT, next(self->fd, 0, &rule));
	EXPECT_EQ(-ENOENT, remove_rule(self->fd, 0));
	EXPECT_EQ(-ENOENT, remove_rule(self->fd, 1));
	EXPECT_EQ(-ENOTTY, tw_ioctl(self->fd, _IO(TWHEEL_IOC_MAGIC, 0xb4), NULL));
}

TEST_F_TIMEOUT(rules, errors_of_a_list, TIMEOUT)
{
	struct twheel_connections good = {
		.nr_records	= 1,
		.record_size	= sizeof(struct twheel_connection),
	}, bad;
	const __u64 sockets = nr_sockets();
	struct twheel_connection record;
	struct pair pair;

	ASSERT_NE(POISON, sockets);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	good.records = (uintptr_t)&record;
	good.id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
#define TRY(error, change) do {						\
	bad = good;							\
	change;								\
	EXPECT_EQ(error, tw_ioctl(self->fd, TWHEEL_IOC_RULE_CONNECTIONS, &bad)); \
} while (0)
	TRY(-EINVAL, bad.nr_records = 0);
	TRY(-EINVAL, bad.nr_records = 1U << 31);
	TRY(-EINVAL, bad.record_size = 64);
	TRY(-EINVAL, bad.record_size = 76);
	TRY(-EINVAL, bad.reserved = 1);
	TRY(-EOPNOTSUPP, bad.flags = 1);
	TRY(-ENOENT, bad.id++);
	TRY(-EFAULT, bad.records = 8);
	TRY(0, bad.cursor = ~0ULL);
	TRY(1, (void)bad);
	/* None of them keeps what it has found. */
	close_pair(&pair);
	EXPECT_TRUE(wait_sockets(sockets)) TH_LOG("%llu, not %llu", nr_sockets(), sockets);
}

/* ---- races */

static bool race_is_over;

static bool race_goes_on(void)
{
	return !__atomic_load_n(&race_is_over, __ATOMIC_RELAXED);
}

/* Opens and closes connections, and lets some fall silent for a moment. */
static void *churn(void *arg)
{
	int listener = *(int *)arg;
	struct pair pair;
	__u64 n;

	for (n = 0; race_goes_on(); n++) {
		if (!connect_pair(listener, &pair))
			continue;
		say(pair.client, pair.server);
		if (n % 8 == 0)
			sleep_ns(n % 5 * MSEC);
		close_pair(&pair);
	}
	return NULL;
}

static void *rule_and_unrule(void *arg)
{
	int listener = *(int *)arg, fd = tw_open(0), id;
	struct twheel_connection records[8];
	__u64 cursor = 0;

	while (race_goes_on()) {
		id = add_port(fd, LOCAL | ABORT, local_port(listener), MSEC);
		list(fd, id, records, 8, sizeof(records[0]), &cursor);
		cursor = 0;
		remove_rule(fd, id);
	}
	close(fd);
	return NULL;
}

TEST_F_TIMEOUT(rules, all_at_once, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = 2 * MSEC };
	pthread_t threads[4];
	int i;

	rule.pid = getpid();
	ASSERT_EQ(0, add(self->fd, &rule));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, churn, &self->listener));
		ASSERT_EQ(0, pthread_create(&threads[2 + i], NULL, rule_and_unrule,
					    &self->listener));
	}
	sleep_ns(2 * SEC);
	__atomic_store_n(&race_is_over, true, __ATOMIC_RELAXED);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 0));
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	EXPECT_TRUE(wait_total("pending", 0));
}

TEST_HARNESS_MAIN
