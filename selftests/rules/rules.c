// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: what is closed, when, how, and how many at a time.
 */
#include "rules_test.h"

TEST_F_TIMEOUT(rules, closes_one_that_was_there, TIMEOUT)
{
	struct twheel_rule rule;
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	ASSERT_EQ(1, id);
	/* The end that the rule applies to gets the error. */
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

/* Of many connections on the same port, those that are not idle stay open. */
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
		/* Unless the test itself was silent for that long. */
		EXPECT_TRUE(is_open(&busy[i]) || gap > idle / 2);
	}
}

TEST_F_TIMEOUT(rules, shuts_down, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | TWHEEL_WATCH_SHUTDOWN, self->port, 100 * MSEC);
	/* No error on either end: the connection has ended. */
	EXPECT_EQ(0, hear(pair.client));
	EXPECT_EQ(0, hear(pair.server));
	EXPECT_EQ(1, look(self->fd, id).closed);
	EXPECT_EQ(0, look(self->fd, id).watched);
}

/* It is closed as soon as it has been accepted. */
TEST_F_TIMEOUT(rules, leaves_alone_what_nobody_has_accepted, TIMEOUT)
{
	int id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	struct pair pair = { .client = reach(AF_INET, false, self->port) };

	sleep_ns(300 * MSEC);
	EXPECT_EQ(TCP_ESTABLISHED, tcp_info(pair.client).tcpi_state);
	EXPECT_EQ(0, look(self->fd, id).watched);
	pair.server = accept(self->listener, NULL, NULL);
	EXPECT_TRUE(is_reset(pair.client));
	EXPECT_EQ(1, look(self->fd, id).closed);
	EXPECT_EQ(1, look(self->fd, id).matched);
}

/* The peer has closed the connection, and this end has not. */
TEST_F_TIMEOUT(rules, closes_half_a_connection, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, shutdown(pair.client, SHUT_WR));
	EXPECT_EQ(0, hear(pair.server));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	ASSERT_TRUE(wait_for(self->fd, id, closed, 1));
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
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
	/* A connection can be closed before the rule is read. */
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

/* The client sends and receives nothing: whether the connection survives depends on the rule. */
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

/* A simultaneous open, of a socket with itself: TCP does not set the time of the last receipt. */
TEST_F_TIMEOUT(rules, connected_with_itself, TIMEOUT)
{
	/* Less than the uptime of this kernel. */
	const __u64 idle = 2 * SEC;
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), id;
	struct sockaddr_in6 in6;
	socklen_t len = address(AF_INET, false, 0, &in6);
	__u64 begun;

	ASSERT_EQ(0, bind(sock, (void *)&in6, len));
	id = add_port(self->fd, LOCAL | ABORT | TWHEEL_WATCH_RECEIVED, local_port(sock), idle);
	ASSERT_LT(0, id);
	begun = now_ns();
	address(AF_INET, false, local_port(sock), &in6);
	ASSERT_EQ(0, connect(sock, (void *)&in6, len));
	EXPECT_TRUE(wait_for(self->fd, id, watched, 1));
	sleep_ns(idle / 2);
	EXPECT_TRUE(tcp_info(sock).tcpi_state == TCP_ESTABLISHED || now_ns() > begun + idle);
	close(sock);
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
	/* One that is established later lives until later. */
	begin = now_ns();
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	while (say(pair.client, pair.server) && now_ns() < begin + GUARD_MS * MSEC)
		sleep_ns(10 * MSEC);
	EXPECT_LE(begin + 500 * MSEC, now_ns());
	ASSERT_TRUE(wait_for(self->fd, rule.id, closed, 2));
}

/* Counts a connection once each time it becomes idle, and does nothing. */
TEST_F_TIMEOUT(rules, dry_run, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT | DRY, self->port, 100 * MSEC);
	ASSERT_TRUE(wait_for(self->fd, id, would_close, 1));
	sleep_ns(500 * MSEC);
	EXPECT_EQ(1, look(self->fd, id).would_close);
	EXPECT_TRUE(say(pair.client, pair.server));
	ASSERT_TRUE(wait_for(self->fd, id, would_close, 2));
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
	ASSERT_TRUE(wait_for(self->fd, rule.id, would_close, 1));
	EXPECT_TRUE(say(pair.client, pair.server));
	sleep_ns(300 * MSEC);
	EXPECT_EQ(1, look(self->fd, rule.id).would_close);
	EXPECT_TRUE(is_open(&pair));
}

/* ---- rate limits */

/* 20 connections at 10 per second: the first ones at once, the others one after the other. */
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
	/* On a slow machine, a token or two may have been added before this look. */
	EXPECT_LE(10, now.delayed);
	EXPECT_GE(19, now.delayed);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(ETIMEDOUT, error_of(pairs[i].server));
}

/* A waiting connection that becomes active meanwhile is spared, when its timer expires. */
TEST_F_TIMEOUT(rules, activity_while_it_waits_for_its_turn, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.rate		= 1,
		.local_port	= self->port,
		.idle		= 300 * MSEC,
	};
	__u64 end = now_ns() + GUARD_MS * MSEC;
	struct pair pairs[2];
	int other;

	ASSERT_TRUE(connect_pair(self->listener, &pairs[0]));
	ASSERT_TRUE(connect_pair(self->listener, &pairs[1]));
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_TRUE(wait_for(self->fd, rule.id, delayed, 1));
	ASSERT_TRUE(wait_for(self->fd, rule.id, closed, 1));
	other = tcp_info(pairs[0].server).tcpi_state == TCP_ESTABLISHED ? 0 : 1;
	/* It is checked after a second. A slow machine may miss that. */
	while (!look(self->fd, rule.id).spared && is_open(&pairs[other])) {
		ASSERT_GT(end, now_ns());
		say(pairs[other].client, pairs[other].server);
		sleep_ns(10 * MSEC);
	}
	EXPECT_TRUE(is_open(&pairs[other]) || look(self->fd, rule.id).closed == 2);
	ASSERT_TRUE(wait_for(self->fd, rule.id, closed, 2));
}

/* All connections that are still open exchange a byte. */
static void keep_active(struct pair *pairs, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (is_open(&pairs[i]))
			say(pairs[i].client, pairs[i].server);
}

/* A spared connection leaves the queue: others do not wait behind it. */
TEST_F_TIMEOUT(rules, places_are_given_back, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.rate		= 4,
		.local_port	= self->port,
		.idle		= 500 * MSEC,
	}, now;
	__u64 end = now_ns() + 2 * GUARD_MS * MSEC;
	struct pair pairs[21];
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	ASSERT_EQ(0, add(self->fd, &rule));
	/* A queue of some 5 seconds. From here on they are active, except for the first one. */
	ASSERT_TRUE(wait_for(self->fd, rule.id, delayed, 19));
	do {
		keep_active(pairs, 20);
		sleep_ns(10 * MSEC);
		now = look(self->fd, rule.id);
		ASSERT_GT(end, now_ns());
	} while (now.closed + now.spared < 15);
	/* Most of the queue is gone: a new connection finds a token, and does not have to wait. */
	ASSERT_TRUE(connect_pair(self->listener, &pairs[20]));
	while (is_open(&pairs[20])) {
		ASSERT_GT(end, now_ns());
		keep_active(pairs, 20);
		sleep_ns(10 * MSEC);
	}
	EXPECT_EQ(19, look(self->fd, rule.id).delayed);
	for (i = 0; i < 21; i++)
		close_pair(&pairs[i]);
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
	/* The probability that all of them are in one half by chance is 2^-63. */
	EXPECT_GT(HOUR + HOUR / 2, least);
	EXPECT_LT(HOUR + HOUR / 2 - GUARD_MS * MSEC, most);
	EXPECT_GE(2 * HOUR, most);
	EXPECT_LT(HOUR - 2 * GUARD_MS * MSEC, least);
}

TEST_HARNESS_MAIN
