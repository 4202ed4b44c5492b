/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context with a touch array, and timers that are touched through its words.
 */
#ifndef _TWHEEL_TOUCH_TEST_H
#define _TWHEEL_TOUCH_TEST_H

#include "twheel_test.h"

#define WORDS	1000
#define IDLE	(200 * MSEC)

FIXTURE(touch)
{
	int fd;
	struct twheel_touch *touch;
	size_t bytes;
	__u64 jiffy;
	int n;
	int cpu[64];
};

FIXTURE_SETUP(touch)
{
	struct twheel_setup setup;
	struct timespec jiffy;

	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, 0, WORDS, &setup));
	EXPECT_EQ(0, setup.ring_bytes);
	EXPECT_LE(sizeof(*self->touch) + WORDS * sizeof(self->touch->words[0]),
		  setup.touch_bytes);
	self->bytes = setup.touch_bytes;
	self->touch = wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, self->touch);
	/* The coarse clocks advance by jiffies. */
	ASSERT_EQ(0, clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy));
	self->jiffy = jiffy.tv_nsec;
	self->n = cpus(self->cpu, 64);
	random_seed();
}

FIXTURE_TEARDOWN(touch)
{
	EXPECT_EQ(0, munmap(self->touch, self->bytes));
	EXPECT_EQ(0, close(self->fd));
}

static inline __u64 published_time(const struct twheel_touch *touch)
{
	return __atomic_load_n(&touch->now, __ATOMIC_RELAXED);
}

static inline void store_word(struct twheel_touch *touch, unsigned int word, __u64 value)
{
	__atomic_store_n(&touch->words[word], value, __ATOMIC_RELAXED);
}

/* Touches a word, as a program does. Returns the time that it stored. */
static inline __u64 touch_word(struct twheel_touch *touch, unsigned int word)
{
	__u64 now = published_time(touch);

	store_word(touch, word, now);
	return now;
}

/* Adds a timer with an idle timeout that is touched through @word. */
static inline int add_idle(int fd, __u64 idle, __u64 lifetime, __u32 word, __u64 *handle)
{
	struct twheel_timer_add add = {
		.time		= TWHEEL_TIME_NONE,
		.user_data	= word,
		.flags		= TWHEEL_TOUCHED,
		.clock		= CLOCK_MONOTONIC,
		.idle		= idle,
		.lifetime	= lifetime,
		.touch		= word,
	};
	int ret = wh_add_timer(fd, &add);

	if (ret >= 0 && handle)
		*handle = add.handle;
	return ret;
}

/* Waits for the next event. Returns false if it times out. */
static inline bool next_event(int fd, struct twheel_event *event)
{
	return wh_wait(fd) && wh_read(fd, event, 1) == 1;
}

/* Checks that an event was due from @min to @max: later if the kernel has seen a touch too many. */
static inline void expect_due(struct __test_metadata *_metadata, const struct twheel_event *event,
			      __u32 reason, __u64 min, __u64 max)
{
	EXPECT_EQ(reason, event->reason);
	EXPECT_LE(event->deadline, event->fired);
	EXPECT_LE(min, event->deadline);
	EXPECT_LE(event->deadline, max);
}

static inline int compare_times(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorts times, prints the median and the maximum, and returns the median. */
static inline __u64 print_median(const char *what, __u64 *times, unsigned int n)
{
	qsort(times, n, sizeof(*times), compare_times);
	printf("# %s: %lld us, at most %lld us\n", what, (long long)times[n / 2] / 1000,
	       (long long)times[n - 1] / 1000);
	return times[n / 2];
}

#endif /* _TWHEEL_TOUCH_TEST_H */
