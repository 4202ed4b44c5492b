// SPDX-License-Identifier: GPL-2.0-only
/*
 * TWHEEL_IOC_SETUP: a context's own limit on its timers. For rings and touch arrays, see
 * ring_setup.c.
 */
#include "twheel_test.h"

FIXTURE(setup)
{
	int fd;
	__u64 saved;
};

FIXTURE_SETUP(setup)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->saved = file_number(PARAMETERS "max_timers");
	ASSERT_NE(POISON, self->saved);
}

FIXTURE_TEARDOWN(setup)
{
	EXPECT_EQ(0, file_write(PARAMETERS "max_timers", self->saved));
	EXPECT_EQ(0, close(self->fd));
}

static int setup_context(int fd, __u64 max_timers, __u32 ring_entries, __u32 touch_words,
			 struct twheel_setup *setup)
{
	memset(setup, 0, sizeof(*setup));
	setup->max_timers = max_timers;
	setup->ring_entries = ring_entries;
	setup->touch_words = touch_words;
	setup->ring_bytes = POISON;
	setup->touch_bytes = POISON;
	return wh_ioctl(fd, TWHEEL_IOC_SETUP, setup);
}

static __u64 limit_of(int fd)
{
	struct twheel_info info;

	return wh_info(fd, &info) ? POISON : info.max_timers;
}

/* Adds timers until the context is full. Returns how many it has. */
static __u64 fill_context(struct __test_metadata *_metadata, int fd)
{
	int ret;

	while (!(ret = wh_add(fd, HOUR, 0, 1, NULL)))
		;
	EXPECT_EQ(-ENOSPC, ret);
	return wh_nr_timers(fd);
}

TEST_F(setup, a_limit_of_its_own)
{
	struct twheel_setup setup;
	int other = wh_open(0);

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, setup_context(self->fd, 100, 0, 0, &setup));
	EXPECT_EQ(0, setup.ring_bytes);
	EXPECT_EQ(0, setup.touch_bytes);
	EXPECT_EQ(100, setup.max_timers);
	EXPECT_EQ(100, limit_of(self->fd));
	EXPECT_EQ(self->saved, limit_of(other));
	EXPECT_EQ(100, fill_context(_metadata, self->fd));
	/* 0 leaves the limit as it is, any other number replaces it. */
	ASSERT_EQ(0, setup_context(self->fd, 0, 0, 0, &setup));
	EXPECT_EQ(100, limit_of(self->fd));
	ASSERT_EQ(0, setup_context(self->fd, 150, 0, 0, &setup));
	EXPECT_EQ(150, fill_context(_metadata, self->fd));
	/* Existing timers may stay. */
	ASSERT_EQ(0, setup_context(self->fd, 10, 0, 0, &setup));
	EXPECT_EQ(10, limit_of(self->fd));
	EXPECT_EQ(150, wh_nr_timers(self->fd));
	EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, 1, NULL));
	EXPECT_EQ(0, close(other));
}

TEST_F(setup, the_lower_of_both_limits)
{
	struct twheel_setup setup;

	ASSERT_EQ(0, file_write(PARAMETERS "max_timers", 50));
	ASSERT_EQ(0, setup_context(self->fd, 1000, 0, 0, &setup));
	EXPECT_EQ(50, limit_of(self->fd));
	EXPECT_EQ(50, fill_context(_metadata, self->fd));
	ASSERT_EQ(0, file_write(PARAMETERS "max_timers", 2000));
	EXPECT_EQ(1000, limit_of(self->fd));
	EXPECT_EQ(1000, fill_context(_metadata, self->fd));
}

/* An add over the limit is rejected before anything else has changed, whatever its kind. */
TEST_F(setup, the_limit_is_of_all_kinds)
{
	struct twheel_timer_add extended = {
		.time		= HOUR,
		.clock		= CLOCK_MONOTONIC,
		.lifetime	= HOUR,
	};
	struct twheel_setup setup;
	unsigned int i;

	ASSERT_EQ(0, setup_context(self->fd, 9, 0, 0, &setup));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, NULL));
		ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, i, HOUR, 0, 1, NULL));
		ASSERT_EQ(0, wh_add_timer(self->fd, &extended));
	}
	EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, 1, NULL));
	EXPECT_EQ(-ENOSPC, wh_set(self->fd, 9, HOUR, 0, 1, NULL));
	EXPECT_EQ(-ENOSPC, wh_add_timer(self->fd, &extended));
	EXPECT_EQ(9, wh_nr_timers(self->fd));
	/* Cancelling a timer of another kind makes room as well. */
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel_key(self->fd, 0));
	EXPECT_EQ(0, wh_add_timer(self->fd, &extended));
	EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, 1, NULL));
}

TEST_F(setup, bytes_are_told_again)
{
	struct twheel_setup setup;
	__u64 ring, touch;

	ASSERT_EQ(0, setup_context(self->fd, 0, 64, 0, &setup));
	ring = setup.ring_bytes;
	EXPECT_LE(sizeof(struct twheel_ring) + 64 * sizeof(struct twheel_event), ring);
	EXPECT_EQ(0, setup.touch_bytes);
	ASSERT_EQ(0, setup_context(self->fd, 0, 0, 1000, &setup));
	touch = setup.touch_bytes;
	EXPECT_LE(sizeof(struct twheel_touch) + 1000 * sizeof(__u64), touch);
	EXPECT_EQ(ring, setup.ring_bytes);
	EXPECT_EQ(-EBUSY, setup_context(self->fd, 5, 64, 0, &setup));
	EXPECT_EQ(-EBUSY, setup_context(self->fd, 5, 0, 1000, &setup));
	EXPECT_EQ(self->saved, limit_of(self->fd));
	ASSERT_EQ(0, setup_context(self->fd, 7, 0, 0, &setup));
	EXPECT_EQ(ring, setup.ring_bytes);
	EXPECT_EQ(touch, setup.touch_bytes);
	EXPECT_EQ(7, limit_of(self->fd));
}

TEST_HARNESS_MAIN
