// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: an end that waits for its peer is not idle.
 */
#include "stalled_test.h"

#include <linux/sockios.h>

#define RECEIVED	TWHEEL_WATCH_RECEIVED

/* Reads up to @most bytes, waiting for them if necessary. Returns the number of bytes. */
static __u64 read_bytes(int fd, __u64 most)
{
	static char data[65536];
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	__u64 sum = 0;
	ssize_t n;

	while (sum < most && poll(&pollfd, 1, GUARD_MS) == 1) {
		n = recv(fd, data, most - sum < sizeof(data) ? most - sum : sizeof(data), 0);
		if (n <= 0)
			break;
		sum += n;
	}
	return sum;
}

TEST_F_TIMEOUT(rules, a_slow_reader_is_spared, TIMEOUT)
{
	const __u64 idle = 300 * MSEC;
	struct twheel_rule rule;
	struct pair pair;
	__u64 sum;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	sum = fill_queue(pair.server);
	ASSERT_LT(0, sum);
	id = add_port(self->fd, LOCAL | ABORT, self->port, idle);
	/* Nothing is read, sent or acknowledged, except for window probes. */
	sleep_ns(10 * idle);
	EXPECT_TRUE(is_open(&pair));
	rule = look(self->fd, id);
	EXPECT_LE(5, rule.waited);
	EXPECT_EQ(0, rule.closed);
	EXPECT_EQ(0, rule.spared);
	EXPECT_EQ(sum, read_bytes(pair.client, sum));
	/* Now it is idle. */
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	EXPECT_EQ(1, look(self->fd, id).closed);
}

/* A client that sends nothing gets what it has requested, and the idle timeout begins then. */
TEST_F_TIMEOUT(rules, a_download_is_no_idle_client, TIMEOUT)
{
	const __u64 idle = 300 * MSEC;
	__u64 sum, done, end;
	struct pair pair;
	int id, i;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	sum = fill_queue(pair.server);
	id = add_port(self->fd, LOCAL | ABORT | RECEIVED, self->port, idle);
	for (i = 0; i < 30; i++) {
		sum -= read_bytes(pair.client, 65536);
		sum += fill_queue(pair.server);
		sleep_ns(100 * MSEC);
	}
	ASSERT_TRUE(is_open(&pair));
	EXPECT_EQ(sum, read_bytes(pair.client, sum));
	done = now_ns();
	end = wait_closed(pair.server);
	EXPECT_LE(done + idle - LATE, end);
	EXPECT_GE(done + idle + LATE, end);
	EXPECT_LE(1, look(self->fd, id).waited);
}

#define STEP		(200 * MSEC)
#define IDLE_ONES	10

/* The server's end of a download, and what it still has to send. */
struct download {
	struct pair pair;
	__u64 unsent;
	__u64 taken;
};

/* The client reads @most bytes, if there are that many to come; the server sends what fits. */
static void download_step(struct download *download, __u64 most)
{
	static const char data[65536];
	ssize_t n;

	do {
		n = send(download->pair.server, data,
			 download->unsent < sizeof(data) ? download->unsent : sizeof(data),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0)
			download->unsent -= n;
	} while (n > 0 && download->unsent);
	download->taken += read_bytes(download->pair.client, most);
}

/* Is the server waiting for its client? */
static bool is_unfinished(const struct download *download)
{
	int unacked = 0;

	ioctl(download->pair.server, SIOCOUTQ, &unacked);
	return download->unsent || unacked;
}

static int nr_open(const struct pair *pairs)
{
	int i, n = 0;

	for (i = 0; i < IDLE_ONES; i++)
		n += is_open(&pairs[i]);
	return n;
}

/*
 * A download of 20 MB, of which the client reads 64 KB at a time, and one at 500 bytes a second,
 * both for a minute, next to connections that are idle for 3 s. Once everything has arrived in the
 * client's kernel, nothing is in flight any more, and the client still gets everything.
 */
TEST_F_TIMEOUT(rules, downloads_go_on_beside_idle_ones, TIMEOUT)
{
	struct download fast = { .unsent = 20000000 }, slow = { .unsent = 20000000 };
	const __u64 idle = 3 * SEC, portion = 65536;
	struct pair pairs[IDLE_ONES];
	const __u64 all = fast.unsent;
	struct twheel_rule rule;
	__u64 begin, on_time = 0;
	int id, i;

	ASSERT_TRUE(connect_pair(self->listener, &fast.pair));
	ASSERT_TRUE(connect_pair(self->listener, &slow.pair));
	for (i = 0; i < IDLE_ONES; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	id = add_port(self->fd, LOCAL | ABORT, self->port, idle);
	begin = now_ns();
	for (i = 0; fast.taken < all; i++) {
		download_step(&fast, portion < all - fast.taken ? portion : all - fast.taken);
		download_step(&slow, 100);
		ASSERT_TRUE(now_ns() > begin + idle - LATE || nr_open(pairs) == IDLE_ONES);
		ASSERT_TRUE(now_ns() < begin + idle + LATE || nr_open(pairs) == 0);
		ASSERT_TRUE(is_open(&fast.pair) || !is_unfinished(&fast));
		ASSERT_TRUE(is_open(&slow.pair));
		sleep_ns(STEP);
	}
	EXPECT_LE(all / portion, i);
	EXPECT_EQ(i * 100, slow.taken);
	rule = look(self->fd, id);
	EXPECT_EQ(IDLE_ONES + !is_open(&fast.pair), rule.closed);
	EXPECT_LE(1, rule.waited);
	/* Entries for less than 2^28 ns. */
	for (i = 0; i < 9; i++)
		on_time += rule.late[i];
	EXPECT_EQ(rule.closed, on_time);
}

/*
 * Data that is acknowledged at once does not keep a client that sends nothing: only if something is
 * in flight just when its timer expires, until the next time.
 */
TEST_F_TIMEOUT(rules, a_client_that_only_gets_is_closed, TIMEOUT)
{
	const __u64 idle = 300 * MSEC;
	struct pair pair;
	__u64 begin;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	begin = now_ns();
	id = add_port(self->fd, LOCAL | ABORT | RECEIVED, self->port, idle);
	while (!look(self->fd, id).closed && now_ns() < begin + 30 * idle) {
		say(pair.server, pair.client);
		sleep_ns(5 * MSEC);
	}
	EXPECT_EQ(1, look(self->fd, id).closed);
}

/* The peer is gone, with data in flight. */
TEST_F_TIMEOUT(rules, a_peer_that_acknowledges_nothing_has_its_time, TIMEOUT)
{
	const __u64 idle = 300 * MSEC, stalled = 2 * SEC;
	struct twheel_rule rule;
	__u64 sent, end, on_time = 0;
	struct pair pair;
	int id, i;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_stalled(self->fd, RECEIVED, self->port, idle, stalled);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, set_lo_up(false));
	sleep_ns(100 * MSEC);
	sent = now_ns();
	ASSERT_EQ(1, send(pair.server, "x", 1, 0));
	end = wait_closed(pair.server);
	EXPECT_LE(sent + stalled, end);
	EXPECT_GE(sent + stalled + LATE, end);
	EXPECT_EQ(ETIMEDOUT, socket_error(pair.server));
	rule = look(self->fd, id);
	EXPECT_EQ(1, rule.closed);
	EXPECT_LE(1, rule.waited);
	/* Lets its sockets go, and with them its network namespace. */
	ASSERT_EQ(0, set_lo_up(true));
	/* It was closed when the stalled limit was due, not the idle timeout. */
	for (i = 0; i < 9; i++)
		on_time += rule.late[i];
	EXPECT_EQ(1, on_time);
}

/* It is idle for longer than a new rule allows, but the rule does not close it. */
TEST_F_TIMEOUT(rules, who_waits_is_not_overdue, TIMEOUT)
{
	const __u64 idle = 300 * MSEC;
	struct pair pair, idle_pair;
	struct twheel_rule rule;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(connect_pair(self->listener, &idle_pair));
	ASSERT_LT(0, fill_queue(pair.server));
	sleep_ns(3 * idle);
	id = add_port(self->fd, LOCAL | ABORT, self->port, idle);
	ASSERT_LT(0, id);
	EXPECT_TRUE(wait_for(self->fd, id, closed, 1));
	sleep_ns(3 * idle);
	rule = look(self->fd, id);
	EXPECT_EQ(2, rule.matched);
	EXPECT_EQ(1, rule.overdue);
	EXPECT_EQ(1, rule.untimed);
	EXPECT_EQ(1, rule.closed);
	EXPECT_TRUE(is_open(&pair));
}

TEST_F_TIMEOUT(rules, who_has_no_time_is_not_spared, TIMEOUT)
{
	const __u64 idle = 300 * MSEC;
	struct pair pair;
	__u64 begin;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_LT(0, fill_queue(pair.server));
	begin = now_ns();
	id = add_stalled(self->fd, RECEIVED, self->port, idle, 1);
	ASSERT_LT(0, id);
	EXPECT_GE(begin + idle + LATE, wait_closed(pair.server));
	EXPECT_EQ(0, look(self->fd, id).waited);
	EXPECT_EQ(1, look(self->fd, id).closed);
}

/* A lifetime limit closes a connection whatever it does. */
TEST_F_TIMEOUT(rules, who_waits_does_not_live_longer, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.local_port	= self->port,
		.idle		= 300 * MSEC,
		.lifetime	= SEC,
	};
	struct pair pair;
	__u64 begin, end;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	begin = now_ns();
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_LT(0, fill_queue(pair.server));
	end = wait_closed(pair.server);
	EXPECT_LE(begin + SEC, end);
	EXPECT_GE(begin + SEC + LATE, end);
	EXPECT_LE(1, look(self->fd, rule.id).waited);
}

TEST_F_TIMEOUT(rules, a_dry_run_spares_them_too, TIMEOUT)
{
	const __u64 idle = 300 * MSEC;
	struct pair pair;
	__u64 sum;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	sum = fill_queue(pair.server);
	id = add_port(self->fd, LOCAL | ABORT | DRY, self->port, idle);
	sleep_ns(5 * idle);
	EXPECT_EQ(0, look(self->fd, id).would_close);
	EXPECT_EQ(sum, read_bytes(pair.client, sum));
	EXPECT_TRUE(wait_for(self->fd, id, would_close, 1));
	EXPECT_TRUE(is_open(&pair));
}

/* A peer that is gone stays gone: that is no activity, and is not counted again. */
TEST_F_TIMEOUT(rules, a_dry_run_counts_a_stalled_peer_once, TIMEOUT)
{
	const __u64 idle = 300 * MSEC, stalled = SEC;
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_stalled(self->fd, DRY | RECEIVED, self->port, idle, stalled);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, set_lo_up(false));
	ASSERT_EQ(1, send(pair.server, "x", 1, 0));
	EXPECT_TRUE(wait_for(self->fd, id, would_close, 1));
	EXPECT_LE(1, look(self->fd, id).waited);
	sleep_ns(5 * idle);
	EXPECT_EQ(1, look(self->fd, id).would_close);
	/* The peer is back, and the connection is idle again. */
	ASSERT_EQ(0, set_lo_up(true));
	EXPECT_EQ(1, hear(pair.client));
	EXPECT_TRUE(wait_for(self->fd, id, would_close, 2));
	sleep_ns(5 * idle);
	EXPECT_EQ(2, look(self->fd, id).would_close);
}

TEST_F_TIMEOUT(rules, the_queue_is_listed, TIMEOUT)
{
	struct twheel_connection connection;
	struct pair pair;
	__u64 sum, cursor = 0;
	int id, unsent;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	ASSERT_EQ(1, list(self->fd, id, &connection, 1, sizeof(connection), &cursor));
	EXPECT_EQ(0, connection.unsent);
	EXPECT_EQ(0, connection.unacked);
	sum = fill_queue(pair.server);
	cursor = 0;
	ASSERT_EQ(1, list(self->fd, id, &connection, 1, sizeof(connection), &cursor));
	ASSERT_EQ(0, ioctl(pair.server, SIOCOUTQNSD, &unsent));
	EXPECT_EQ(unsent, connection.unsent);
	EXPECT_LT(0, connection.unsent);
	EXPECT_GT(sum, connection.unsent);
	/* One that is lost in flight. */
	ASSERT_EQ(sum, read_bytes(pair.client, sum));
	ASSERT_EQ(0, set_lo_up(false));
	ASSERT_EQ(5, send(pair.server, "12345", 5, 0));
	cursor = 0;
	ASSERT_EQ(1, list(self->fd, id, &connection, 1, sizeof(connection), &cursor));
	EXPECT_EQ(0, connection.unsent);
	EXPECT_EQ(5, connection.unacked);
	ASSERT_EQ(0, set_lo_up(true));
}

TEST_HARNESS_MAIN
