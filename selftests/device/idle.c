// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an idle wheel costs: runs of its hrtimer, which debugfs counts as ticks.
 *
 * TWHEEL_IDLE is how long to observe it, in seconds. A minute is meant for guests in which idle
 * time costs nothing; the lone timer then is one of 500 s.
 */
#include "twheel_test.h"

/* A wheel has no more levels than this. */
#define LEVELS		9

#define MAX_CPUS	64
#define N		1000

static __u64 idle_time(void)
{
	const char *text = getenv("TWHEEL_IDLE");

	return (text ? strtoull(text, NULL, 0) : 3) * SEC;
}

FIXTURE(idle)
{
	int fd;
	__u64 ticks;
	__u64 cascades;
};

/*
 * A wheel may run once for a timer that a previous test has cancelled. To get this over with, a
 * timer expires on each CPU.
 */
FIXTURE_SETUP(idle)
{
	struct twheel_event event;
	int cpu[MAX_CPUS], n, i;

	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, total("pending")) TH_LOG("somebody else uses the wheels");
	n = cpus(cpu, MAX_CPUS);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, pin(cpu[i]));
		ASSERT_EQ(0, wh_add(self->fd, 5 * MSEC, 0, 0, NULL));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	}
	self->ticks = total("ticks");
	self->cascades = total("cascades");
}

FIXTURE_TEARDOWN(idle)
{
	EXPECT_EQ(0, close(self->fd));
}

TEST_F_TIMEOUT(idle, no_timer_no_tick, 36000)
{
	sleep_ns(idle_time());
	EXPECT_EQ(self->ticks, total("ticks"));
}

TEST_F_TIMEOUT(idle, a_lone_timer_costs_a_tick_for_each_level, 36000)
{
	__u64 distance = idle_time() < 60 * SEC ? idle_time() : 500 * SEC;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add(self->fd, distance, 0, 0, NULL));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_LE(total("ticks") - self->ticks, LEVELS);
}

TEST_F_TIMEOUT(idle, scattered_timers_cost_a_tick_each, 36000)
{
	struct twheel_event event;
	int i;

	for (i = 1; i <= N; i++)
		ASSERT_EQ(0, wh_add(self->fd, i * idle_time() / N, 0, i, NULL));
	for (i = 1; i <= N; i++) {
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ((__u64)i, event.user_data);
	}
	EXPECT_LE(total("ticks") - self->ticks, N + total("cascades") - self->cascades);
}

TEST_F_TIMEOUT(idle, cancelled_timers_cost_one_tick, 36000)
{
	__u64 handle[N];
	int i;

	/* Even the first is far enough away to be cancelled before it expires. */
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, wh_add(self->fd, idle_time() + i * MSEC, 0, i, &handle[i]));
	for (i = 0; i < N; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle[i]));
	sleep_ns(idle_time() + N * MSEC);
	/*
	 * One more if a slot of a coarser level was reached while these were added and cancelled.
	 */
	EXPECT_LE(total("ticks") - self->ticks, total("cascades") == self->cascades ? 1 : 2);
}

TEST_HARNESS_MAIN
