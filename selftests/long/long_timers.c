// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts of minutes to weeks, in a guest whose clock jumps when it is idle: User-mode
 * Linux with time travel, or QEMU's -icount with sleep=off. There the clock is also exact:
 * in the first, work takes no time, in the second as much as it has instructions; so
 * lateness can be judged.
 *
 * TWHEEL_LONGEST is the longest timeout, in seconds; TWHEEL_SLACK is what the interrupt, the
 * softirq and earlier callbacks may take after a timer's tick, in nanoseconds.
 */
#include "twheel_test.h"

#define LEVELS	9
#define SLOTS	64
#define MINUTE	(60 * SEC)
#define WEEK	(7 * 24 * HOUR)

/* Seconds for a test, on the guest's clock: not a guard, that is the runner's job. */
#define AGES	1000000000

static __u64 get_setting(const char *name, __u64 otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* How much later than its tick plus the allowed slack did an event fire? 0 if it did not. */
static __u64 lateness_of(__u64 tick, const struct twheel_event *event)
{
	__u64 due = (event->deadline + tick - 1) / tick * tick + get_setting("TWHEEL_SLACK", USEC);

	return event->fired > due ? event->fired - due : 0;
}

/* The next of a series from a minute to the longest timeout; 0 after its end. */
static __u64 next_distance(__u64 distance, unsigned int factor)
{
	__u64 longest = get_setting("TWHEEL_LONGEST", 10 * WEEK / SEC) * SEC;

	if (distance >= longest)
		return 0;
	return distance * factor < longest ? distance * factor : longest;
}

FIXTURE(long_timers)
{
	int fd;
	__u64 tick;
};

FIXTURE_SETUP(long_timers)
{
	struct twheel_info info;

	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_info(self->fd, &info));
	self->tick = info.tick_ns;
}

FIXTURE_TEARDOWN(long_timers)
{
	EXPECT_EQ(0, close(self->fd));
}

TEST_F_TIMEOUT(long_timers, each_on_its_tick, AGES)
{
	__u64 distance, n = 0, ticks = total("ticks"), start = now_ns();
	struct twheel_event event;

	for (distance = MINUTE; distance; distance = next_distance(distance, 4), n++)
		ASSERT_EQ(0, wh_add(self->fd, start + distance, ABS, distance, NULL));
	for (distance = MINUTE; distance; distance = next_distance(distance, 4)) {
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(distance, event.user_data);
		EXPECT_EQ(start + distance, event.deadline);
		EXPECT_EQ(0, lateness_of(self->tick, &event))
			TH_LOG("%llu s: %llu ns late", distance / SEC,
			       event.fired - event.deadline);
	}
	/* Only these timers woke the wheel. */
	EXPECT_LE(total("ticks") - ticks, n * LEVELS);
}

/* Alone, a timer wakes the wheel at most once per level, however far in the future it is. */
TEST_F_TIMEOUT(long_timers, a_wake_up_per_level, AGES)
{
	struct twheel_event event;
	__u64 distance, ticks;

	for (distance = MINUTE; distance; distance = next_distance(distance, SLOTS)) {
		ticks = total("ticks");
		ASSERT_EQ(0, wh_add(self->fd, distance, 0, distance, NULL));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(distance, event.user_data);
		EXPECT_EQ(0, lateness_of(self->tick, &event));
		EXPECT_LE(total("ticks") - ticks, LEVELS)
			TH_LOG("%llu s: %llu ticks", distance / SEC,
			       total("ticks") - ticks);
	}
}

/* In the first tick of a slot on each level: it cascades and is due at the same tick. */
TEST_F_TIMEOUT(long_timers, when_a_slot_begins, AGES)
{
	__u64 slot, deadline, longest = get_setting("TWHEEL_LONGEST", 10 * WEEK / SEC) * SEC;
	struct twheel_event event;

	for (slot = SLOTS * self->tick; slot < longest; slot *= SLOTS) {
		deadline = (now_ns() / slot + 2) * slot;
		ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, slot, NULL));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(slot, event.user_data);
		EXPECT_EQ(deadline, event.deadline);
		EXPECT_EQ(0, lateness_of(self->tick, &event))
			TH_LOG("slots of %llu ns: %llu ns late", slot,
			       event.fired - event.deadline);
	}
}

/* A heartbeat every 10 s defers a timeout of 30 s for an hour; then it fires. */
TEST_F_TIMEOUT(long_timers, heartbeats_for_an_hour, AGES)
{
	struct twheel_event event;
	__u64 handle, last = 0;
	int i;

	ASSERT_EQ(0, wh_add(self->fd, 30 * SEC, 0, 5, &handle));
	for (i = 0; i < 360; i++) {
		sleep_ns(10 * SEC);
		last = now_ns();
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, 30 * SEC, 0));
	}
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_GE(event.deadline, last + 30 * SEC);
	EXPECT_EQ(0, lateness_of(self->tick, &event));
}

/* Without a timer there is no tick. */
TEST_F_TIMEOUT(long_timers, idle_is_free, AGES)
{
	__u64 ticks;

	/* Something that was cancelled earlier may still cause one. */
	sleep_ns(SEC);
	ticks = total("ticks");
	sleep_ns(MINUTE);
	EXPECT_EQ(ticks, total("ticks"));
}

/* A thousand within a minute: at most a tick each, plus the cascades. */
TEST_F_TIMEOUT(long_timers, a_thousand_over_a_minute, AGES)
{
	__u64 ticks = total("ticks"), cascades = total("cascades");
	struct twheel_event event;
	int i;

	for (i = 1; i <= 1000; i++)
		ASSERT_EQ(0, wh_add(self->fd, i * 60 * MSEC, 0, i, NULL));
	for (i = 1; i <= 1000; i++) {
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EQ((__u64)i, event.user_data);
		EXPECT_EQ(0, lateness_of(self->tick, &event));
	}
	EXPECT_LE(total("ticks") - ticks, 1000 + total("cascades") - cascades);
}

TEST_HARNESS_MAIN
