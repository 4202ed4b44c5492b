// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers that watch connections: what is activity, what is done to a connection, and when a timer
 * ends without a word. Races are in watch_races.c.
 */
#include "watch_test.h"

/* Long enough for a program to do something in between, on a slow kernel. */
#define IDLE		(200 * MSEC)
/* A part of it. */
#define PAUSE		(IDLE / 5)

FIXTURE(watch)
{
	int fd;
	/* Connected with each other; the first one is watched. */
	int here;
	int there;
};

FIXTURE_VARIANT(watch)
{
	int family;
};

FIXTURE_VARIANT_ADD(watch, ipv4) { .family = AF_INET };
FIXTURE_VARIANT_ADD(watch, ipv6) { .family = AF_INET6 };

FIXTURE_SETUP(watch)
{
	ASSERT_EQ(0, network());
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, connection(variant->family, &self->here, &self->there));
}

FIXTURE_TEARDOWN(watch)
{
	EXPECT_EQ(0, close(self->fd));
	close(self->here);
	close(self->there);
}

/* Sends a byte, and sees it arrive. */
static bool say(int from, int to)
{
	char byte = 'x';

	return send(from, &byte, 1, MSG_NOSIGNAL) == 1 && recv(to, &byte, 1, 0) == 1;
}

/* Waits for the one event that there is to be, and checks it. */
static const char *expiry(int fd, __u64 handle, __u64 not_before, __u32 reason)
{
	struct twheel_event event[2];

	if (!tw_wait(fd))
		return "no event";
	if (tw_read(fd, event, 2) != 1)
		return "not one event";
	if (event->handle != handle || event->user_data != USER_DATA)
		return "another timer's event";
	if (event->reason != reason)
		return "wrong reason";
	if (event->deadline < not_before)
		return "before the limit";
	if (event->fired < event->deadline || event->fired > now_ns())
		return "wrong time";
	return NULL;
}

#define EXPECT_EXPIRY(handle, not_before, reason) do {			\
	const char *__fault = expiry(self->fd, handle, not_before, reason); \
									\
	EXPECT_EQ(NULL, __fault) TH_LOG("%s", __fault);			\
} while (0)

TEST_F(watch, silence_is_noticed)
{
	__u64 before = now_ns(), handle;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, 0, &handle));
	EXPECT_EQ(TWHEEL_STATE_PENDING, tw_state(self->fd, handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(-EALREADY, tw_state(self->fd, handle));
	/* Nothing was asked for, and nothing was done. */
	EXPECT_TRUE(say(self->here, self->there));
	EXPECT_TRUE(say(self->there, self->here));
	EXPECT_EQ(0, tw_nr_timers(self->fd));
}

TEST_F(watch, data_received_is_life)
{
	__u64 handle, last = 0;
	int i;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_RECEIVED, &handle));
	for (i = 0; i < 10; i++) {
		sleep_ns(PAUSE);
		last = now_ns();
		ASSERT_TRUE(say(self->there, self->here));
		EXPECT_EQ(TWHEEL_STATE_PENDING, tw_state(self->fd, handle));
	}
	EXPECT_EXPIRY(handle, last + IDLE, TWHEEL_LIMIT_IDLE);
}

TEST_F(watch, shutdown)
{
	__u64 before = now_ns(), handle;
	char byte;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_SHUTDOWN, &handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(0, recv(self->here, &byte, 1, 0));
	EXPECT_EQ(-1, send(self->here, &byte, 1, MSG_NOSIGNAL));
	EXPECT_EQ(EPIPE, errno);
	EXPECT_EQ(0, recv(self->there, &byte, 1, 0));
}

TEST_F(watch, abort)
{
	__u64 before = now_ns(), handle;
	int error;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	ASSERT_TRUE(wait_tcp_state(self->here, TCP_CLOSE));
	ASSERT_TRUE(wait_tcp_state(self->there, TCP_CLOSE));
	error = socket_error(self->here);
	EXPECT_EQ(ETIMEDOUT, error);
	error = socket_error(self->there);
	EXPECT_TRUE(error == ECONNRESET || error == EPIPE) TH_LOG("%d", error);
}

TEST_F(watch, ends_with_the_connection)
{
	struct twheel_context_stats stats;
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EQ(1, tw_nr_timers(self->fd));
	close(self->here);
	EXPECT_TRUE(wait_timers(self->fd, 0));
	EXPECT_EQ(-ENOENT, tw_state(self->fd, handle));
	EXPECT_FALSE(tw_ready(self->fd));
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(1, stats.ended);
	EXPECT_EQ(0, stats.expiries);
}

TEST_HARNESS_MAIN
