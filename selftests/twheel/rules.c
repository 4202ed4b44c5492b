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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <linux/twheel_rules.h>

#include "twheel_test.h"

#define LOCAL	TWHEEL_RULE_LOCAL_PORT
#define REMOTE	TWHEEL_RULE_REMOTE_PORT
#define ABORT	TWHEEL_WATCH_ABORT
#define DRY	TWHEEL_RULE_DRY_RUN

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

static int next(int fd, __u32 id, struct twheel_rule *rule)
{
	memset(rule, 0xa5, sizeof(*rule));
	rule->id = id;
	return tw_ioctl(fd, TWHEEL_IOC_RULE_NEXT, rule);
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
#define wait_for(_fd, _id, _count, _value) ({				\
	__u64 __end = now_ns() + GUARD_MS * MSEC;			\
									\
	while (look(_fd, _id)._count != (_value) && now_ns() < __end)	\
		sleep_ns(MSEC);						\
	look(_fd, _id)._count == (_value);				\
})

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

static __attribute__((unused)) __u64 cookie(int fd)
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

/*
 * Is a connection reset whose server has ended it? Its client may read an end first: before
 * 6.5 there is a FIN before the reset.
 */
static bool is_reset(const struct pair *pair)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;
	int ret = wait_read(pair->client);

	if (ret && ret != -ECONNRESET)
		return false;
	while (tcp_state(pair->client) != TCP_CLOSE && now_ns() < end)
		sleep_ns(MSEC);
	return tcp_state(pair->client) == TCP_CLOSE;
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

TEST_F(rules, closes_one_that_was_there)
{
	struct twheel_rule rule;
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	ASSERT_EQ(1, id);
	/* The one with the error is that which the rule is for. */
	EXPECT_EQ(-ETIMEDOUT, wait_read(pair.server));
	EXPECT_TRUE(is_reset(&pair));
	rule = look(self->fd, id);
	EXPECT_EQ(0, rule.watched);
	EXPECT_EQ(1, rule.matched);
	EXPECT_EQ(1, rule.closed);
	EXPECT_EQ(0, rule.spared);
	EXPECT_EQ(0, rule.delayed);
	EXPECT_EQ(0, rule.missed);
}

TEST_F(rules, closes_a_new_one)
{
	int id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	struct pair pair;

	ASSERT_EQ(1, id);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_EQ(-ETIMEDOUT, wait_read(pair.server));
	EXPECT_TRUE(is_reset(&pair));
	EXPECT_EQ(1, look(self->fd, id).closed);
}

/* Of many, those that are not idle stay, on the same port. */
TEST_F(rules, leaves_busy_ones_alone)
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
		EXPECT_EQ(-ETIMEDOUT, wait_read(silent[i].server));
		/* Unless the test itself was silent for so long. */
		EXPECT_TRUE(is_open(&busy[i]) || gap > idle / 2);
	}
}

TEST_F(rules, shuts_down)
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

TEST_F(rules, closes_one_that_nobody_has_accepted)
{
	int id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	struct pair pair = { .client = reach(AF_INET, false, self->port) };

	EXPECT_TRUE(is_reset(&pair));
	EXPECT_EQ(1, look(self->fd, id).closed);
}

/* Its peer has closed it, and it has not. */
TEST_F(rules, closes_half_a_connection)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, shutdown(pair.client, SHUT_WR));
	EXPECT_EQ(0, wait_read(pair.server));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	ASSERT_TRUE(wait_for(self->fd, id, closed, 1));
	EXPECT_EQ(-ETIMEDOUT, wait_read(pair.server));
}

TEST_F(rules, forgets_what_is_closed)
{
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
TEST_F(rules, activity)
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

TEST_F(rules, lifetime_ends_a_busy_one)
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
TEST_F(rules, dry_run)
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

TEST_F(rules, dry_run_of_a_lifetime)
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
TEST_F(rules, rate)
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
		EXPECT_EQ(-ETIMEDOUT, wait_read(pairs[i].server));
}

/* Who waits for its turn, and is active meanwhile, is spared. */
TEST_F(rules, activity_while_it_waits_for_its_turn)
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

TEST_F(rules, spread)
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

TEST_F(rules, matches_all_that_it_asks_for)
{
	unsigned int what, wrong;
	struct twheel_rule rule;
	struct pair pair;

	/* The server's end belongs to somebody else: he accepts. */
	pair.client = reach(AF_INET, false, self->port);
	ASSERT_EQ(0, seteuid(OTHER_UID));
	pair.server = accept(self->listener, NULL, NULL);
	ASSERT_EQ(0, seteuid(0));
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
TEST_F(rules, uid_of_who_accepts)
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

TEST_F(rules, first_one_wins)
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

TEST_F(rules, removed_ones_close_nothing)
{
	struct pair pairs[20];
	int round, id, i;

	for (i = 0; i < 20; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	for (round = 0; round < 20; round++) {
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
TEST_F(rules, removed_while_it_closes)
{
	struct pair pairs[50];
	__u64 closed;
	int id, i, open;

	for (i = 0; i < 50; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	while (!(closed = look(self->fd, id).closed))
		;
	ASSERT_EQ(0, remove_rule(self->fd, id));
	for (open = 0, i = 0; i < 50; i++)
		open += is_open(&pairs[i]);
	sleep_ns(300 * MSEC);
	for (i = 0; i < 50; i++)
		open -= is_open(&pairs[i]);
	EXPECT_EQ(0, open);
	EXPECT_LE(1, closed);
}

TEST_HARNESS_MAIN
