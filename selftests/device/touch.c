// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers that are touched: one does not expire while a program stores the time in its word.
 */
#include <sys/wait.h>

#include "touch_test.h"

/* As expect_due(), and that it was punctual. */
static void expect_fired(struct __test_metadata *_metadata, const struct twheel_event *event,
			 __u32 reason, __u64 min, __u64 max)
{
	expect_due(_metadata, event, reason, min, max);
	EXPECT_PUNCTUAL(event, 0);
}

/*
 * Touches a word every 20 ms, for @duration. Returns whether it did so in time: on a busy machine,
 * it may not have run for a while.
 */
static bool keep_touching(struct twheel_touch *touch, unsigned int word, __u64 duration)
{
	__u64 begin = now_ns(), last, touched = begin, gap = 0;

	while (touched < begin + duration) {
		sleep_ns(20 * MSEC);
		last = touched;
		touch_word(touch, word);
		touched = now_ns();
		if (touched - last > gap)
			gap = touched - last;
	}
	return gap < IDLE / 2;
}

/* How often to try what needs a machine that is not too busy. */
#define TRIES	(simulated() ? 1 : 20)

TEST_F_TIMEOUT(touch, a_touched_timer_lives, 90)
{
	struct twheel_context_stats stats, before;
	struct twheel_event event;
	int tries = TRIES;
	__u64 touched;
	bool in_time;

	do {
		ASSERT_EQ(0, wh_stats(self->fd, &before));
		ASSERT_EQ(0, add_idle(self->fd, IDLE, 0, 7, NULL));
		in_time = keep_touching(self->touch, 7, SEC);
		touched = self->touch->words[7];
		ASSERT_EQ(true, next_event(self->fd, &event));
	} while (!in_time && --tries);
	ASSERT_EQ(true, in_time) TH_LOG("the machine is too busy");
	expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE, touched + IDLE,
		     touched + IDLE + 2 * self->jiffy);
	EXPECT_EQ(7, event.user_data);
	printf("# fired %llu us after the touch and the idle timeout\n",
	       (event.fired - touched - IDLE) / USEC);
	/* A touch costs the kernel nothing: it checks the word about once per idle timeout. */
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_LE(5, stats.deferrals - before.deferrals);
	EXPECT_GE(2 * (SEC / IDLE + 1), stats.deferrals - before.deferrals);
}

/*
 * The stored time is some jiffies old, yet the idle timeout counts from the touch itself: no timer
 * is early because of this. On a busy host, time stands still now and then, so only the median of
 * many has to be right, and not at the first try.
 */
TEST_F_TIMEOUT(touch, no_jiffy_is_lost, 90)
{
	enum { N = 51 };
	__u64 touched[N], over[N], last;
	struct twheel_event event;
	int i, tries = TRIES;

	do {
		for (i = 0; i < N; i++)
			ASSERT_EQ(0, add_idle(self->fd, IDLE, 0, i, NULL));
		for (i = 0; i < N; i++) {
			touched[i] = now_ns();
			touch_word(self->touch, i);
			/* At random points of a jiffy. */
			while (now_ns() < touched[i] + random_below(self->jiffy))
				;
		}
		for (i = 0; i < N; i++) {
			ASSERT_EQ(true, next_event(self->fd, &event));
			ASSERT_GT(N, event.user_data);
			over[i] = event.deadline - touched[event.user_data] - IDLE;
			ASSERT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
		}
		/* If a timer is early, this is a very large number. */
		last = print_median("later than idle", over, N);
	} while (last > 2 * self->jiffy && --tries);
	EXPECT_GE(2 * self->jiffy, last);
}

/* Without a touch after the add, the idle timeout counts from the add. */
TEST_F(touch, an_untouched_timer_expires)
{
	__u64 before[3], after[3];
	struct twheel_event event;
	int i;

	store_word(self->touch, 1, 12345);
	store_word(self->touch, 2, now_ns() - SEC);
	for (i = 0; i < 3; i++) {
		before[i] = now_ns();
		ASSERT_EQ(0, add_idle(self->fd, 50 * MSEC, 0, i, NULL));
		after[i] = now_ns();
	}
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(true, next_event(self->fd, &event));
		ASSERT_GT(3, event.user_data);
		expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE,
			     before[event.user_data] + 50 * MSEC,
			     after[event.user_data] + 50 * MSEC + 2 * self->jiffy);
	}
}

/* Each timeout counts from two jiffies after the stored time, which may have been that old. */
TEST_F(touch, several_timers_share_a_word)
{
	struct twheel_event event;
	__u64 touched, due;
	int i;

	for (i = 1; i <= 4; i++)
		ASSERT_EQ(0, add_idle(self->fd, i * 50 * MSEC, 0, WORDS - 1, NULL));
	touched = now_ns();
	store_word(self->touch, WORDS - 1, touched);
	for (i = 1; i <= 4; i++) {
		ASSERT_EQ(true, next_event(self->fd, &event));
		due = touched + 2 * self->jiffy + i * 50 * MSEC;
		expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE, due, due);
	}
}

/* Activity is reported by a call and through the word: the later one counts. */
TEST_F_TIMEOUT(touch, the_call_counts_too, 90)
{
	struct twheel_event event;
	__u64 handle, before, after;
	int tries = TRIES, ret;

	do {
		ASSERT_EQ(0, add_idle(self->fd, IDLE, 0, 3, &handle));
		touch_word(self->touch, 3);
		sleep_ns(IDLE / 4);
		before = now_ns();
		ret = wh_active(self->fd, handle);
		after = now_ns();
		ASSERT_EQ(true, next_event(self->fd, &event));
	} while (ret != TWHEEL_WAS_PENDING && --tries);
	ASSERT_EQ(TWHEEL_WAS_PENDING, ret);
	expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE, before + IDLE,
		     after + IDLE + 2 * self->jiffy);
}

/* A time in the future counts as activity when the kernel first sees it, and only then. */
TEST_F(touch, the_future_counts_once)
{
	const __u64 values[] = { ~0ULL, 1ULL << 63, TWHEEL_TIME_MAX, now_ns() + HOUR };
	struct twheel_context_stats stats;
	struct twheel_event event;
	__u64 before[4], after[4];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		store_word(self->touch, i, values[i]);
		before[i] = now_ns();
		ASSERT_EQ(0, add_idle(self->fd, 50 * MSEC, HOUR, i, NULL));
		after[i] = now_ns();
	}
	/* The kernel sees it when the timer is added. */
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(true, next_event(self->fd, &event));
		ASSERT_GT(4, event.user_data);
		expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE,
			     before[event.user_data] + 50 * MSEC,
			     after[event.user_data] + 50 * MSEC);
	}
	/* A different one counts as activity again, at the time when the kernel sees it. */
	store_word(self->touch, 0, ~0ULL);
	before[0] = now_ns();
	ASSERT_EQ(0, add_idle(self->fd, 100 * MSEC, HOUR, 0, NULL));
	store_word(self->touch, 0, ~1ULL);
	ASSERT_EQ(true, next_event(self->fd, &event));
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
	EXPECT_LE(before[0] + 200 * MSEC, event.deadline);
	/* In all, the kernel has deferred a timer only once. */
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(1, stats.deferrals);
	EXPECT_EQ(5, stats.expiries);
}

/* The shortest idle timeout of a touched timer. */
TEST_F(touch, too_short)
{
	struct twheel_timer_rearm rearm = { .limit = TWHEEL_LIMIT_IDLE };

	EXPECT_EQ(-EINVAL, add_idle(self->fd, 1, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, add_idle(self->fd, TWHEEL_IDLE_MIN - 1, HOUR, 0, NULL));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	ASSERT_EQ(0, add_idle(self->fd, HOUR, 0, 0, &rearm.handle));
	rearm.time = TWHEEL_IDLE_MIN - 1;
	EXPECT_EQ(-EINVAL, wh_rearm_timer(self->fd, &rearm));
	rearm.time = TWHEEL_IDLE_MIN;
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm_timer(self->fd, &rearm));
	EXPECT_EQ(0, add_idle(self->fd, TWHEEL_IDLE_MIN, 0, 0, NULL));
}

TEST_F_TIMEOUT(touch, is_shared_by_processes, 90)
{
	struct twheel_event event;
	int tries = TRIES, status;
	__u64 last;
	pid_t child;

	do {
		ASSERT_EQ(0, add_idle(self->fd, IDLE, 0, 5, NULL));
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			_exit(keep_touching(self->touch, 5, 3 * IDLE) ? 0 : 1);
		ASSERT_EQ(child, waitpid(child, &status, 0));
		last = self->touch->words[5];
		ASSERT_EQ(true, next_event(self->fd, &event));
	} while (status && --tries);
	ASSERT_EQ(0, status);
	expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE, last + IDLE,
		     last + IDLE + 2 * self->jiffy);
}

TEST_F(touch, words_that_are_not_there)
{
	const __u32 words[] = { WORDS, WORDS + 1, self->bytes / 8, 1U << 31, ~0U };
	struct twheel_timer_add add = {
		.time	= TWHEEL_TIME_NONE,
		.clock	= CLOCK_MONOTONIC,
		.idle	= HOUR,
	};
	int bare = wh_open(0);
	size_t i;

	ASSERT_GE(bare, 0);
	for (i = 0; i < ARRAY_SIZE(words); i++)
		EXPECT_EQ(-EINVAL, add_idle(self->fd, HOUR, 0, words[i], NULL));
	EXPECT_EQ(-EINVAL, add_idle(bare, HOUR, 0, 0, NULL));
	/* Only an idle timeout can be touched. */
	EXPECT_EQ(-EINVAL, add_idle(self->fd, 0, HOUR, 0, NULL));
	add.touch = 1;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(0, close(bare));
}

TEST_HARNESS_MAIN
