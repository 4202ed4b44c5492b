// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts of minutes, hours and days, in a guest whose clock jumps when it is idle
 * (QEMU's -icount with sleep=off). There the clock is exact, too: time passes only by
 * the instructions of the guest, so lateness can be judged.
 *
 * TWHEEL_LONGEST is the longest one, in seconds.
 */
#include "../twheel/twheel_test.h"

#define LEVELS	9

/* A tick, and what the interrupt, the softirq and the callbacks before may take. */
static __u64 most_late(int fd)
{
	struct twheel_info info;

	return tw_info(fd, &info) ? 0 : info.tick_ns + 2 * MSEC;
}

static __u64 longest(void)
{
	const char *text = getenv("TWHEEL_LONGEST");

	return (text ? strtoull(text, NULL, 0) : 24 * 3600) * SEC;
}

FIXTURE(long_timers)
{
	int fd;
};

FIXTURE_SETUP(long_timers)
{
	self->fd = tw_open(0);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(long_timers)
{
	EXPECT_EQ(0, close(self->fd));
}

/* A minute, and 4 times that, and so on: on every level there is one. */
TEST_F_TIMEOUT(long_timers, each_on_its_tick, 36000)
{
	__u64 distance, n = 0, ticks = total("ticks");
	struct twheel_event event;

	for (distance = 60 * SEC; distance <= longest(); distance *= 4, n++)
		ASSERT_EQ(0, tw_add(self->fd, distance, 0, distance, NULL));
	for (distance = 60 * SEC; distance <= longest(); distance *= 4) {
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(distance, event.user_data);
		EXPECT_LT(event.fired - event.deadline, most_late(self->fd))
			TH_LOG("%llu s: %llu ns late", distance / SEC,
			       event.fired - event.deadline);
	}
	/* Nothing but these timers woke the wheel. */
	EXPECT_LE(total("ticks") - ticks, n * LEVELS);
}

/* A heartbeat each 10 s holds off a timeout of 30 s for an hour; then it fires. */
TEST_F_TIMEOUT(long_timers, heartbeats_for_an_hour, 36000)
{
	struct twheel_event event;
	__u64 handle, last = 0;
	int i;

	ASSERT_EQ(0, tw_add(self->fd, 30 * SEC, 0, 5, &handle));
	for (i = 0; i < 360; i++) {
		sleep_ns(10 * SEC);
		last = now_ns();
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm(self->fd, handle, 30 * SEC, 0));
	}
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_GE(event.deadline, last + 30 * SEC);
	EXPECT_LT(event.fired - event.deadline, most_late(self->fd));
}

/* With no timer there is no tick; a lone one costs at most one per level. */
TEST_F_TIMEOUT(long_timers, idle_is_free, 36000)
{
	struct twheel_event event;
	__u64 ticks;

	/* Whatever was cancelled before may still cause one. */
	sleep_ns(SEC);
	ticks = total("ticks");
	sleep_ns(60 * SEC);
	EXPECT_EQ(ticks, total("ticks"));

	ASSERT_EQ(0, tw_add(self->fd, 500 * SEC, 0, 0, NULL));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_LE(total("ticks") - ticks, LEVELS);
	EXPECT_EVENT_OK(&event);
}

/* A thousand over a minute: at most a tick each, and the cascades. */
TEST_F_TIMEOUT(long_timers, a_thousand_over_a_minute, 36000)
{
	__u64 ticks = total("ticks"), cascades = total("cascades");
	struct twheel_event event;
	int i;

	for (i = 1; i <= 1000; i++)
		ASSERT_EQ(0, tw_add(self->fd, i * 60 * MSEC, 0, i, NULL));
	for (i = 1; i <= 1000; i++) {
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		EXPECT_EQ((__u64)i, event.user_data);
		EXPECT_LT(event.fired - event.deadline, most_late(self->fd));
	}
	EXPECT_LE(total("ticks") - ticks, 1000 + total("cascades") - cascades);
}

TEST_HARNESS_MAIN
