// SPDX-License-Identifier: GPL-2.0-only
/*
 * Values that are out of range, and fields that contradict each other: rejected with the right
 * errno, and nothing changes.
 */
#include "abi_test.h"

FIXTURE(values)
{
	struct sample sample;
};

FIXTURE_SETUP(values)
{
	ASSERT_EQ(0, sample_open(&self->sample));
}

FIXTURE_TEARDOWN(values)
{
	EXPECT_EQ(0, close(self->sample.fd));
}

TEST_F(values, clocks)
{
	static union argument argument;
	__u32 clock;

	ASSERT_EQ(0, good(&self->sample, TWHEEL_IOC_TIMER_ADD, &argument));
	for (clock = 0; clock < 32; clock++) {
		if (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME ||
		    clock == CLOCK_BOOTTIME)
			continue;
		argument.add.clock = clock;
		expect_error(_metadata, &self->sample, TWHEEL_IOC_TIMER_ADD, &argument, EOPNOTSUPP);
	}
	argument.add.clock = ~0U;
	expect_error(_metadata, &self->sample, TWHEEL_IOC_TIMER_ADD, &argument, EOPNOTSUPP);
	argument.add.clock = CLOCK_MONOTONIC | 1U << 31;
	expect_error(_metadata, &self->sample, TWHEEL_IOC_TIMER_ADD, &argument, EOPNOTSUPP);
	expect_unchanged(_metadata, &self->sample);
}

TEST_F(values, times_out_of_range)
{
	const __u64 times[] = { TWHEEL_TIME_MAX + 1, TWHEEL_TIME_MAX + 2, -2ULL, -1ULL };
	static union argument argument;
	unsigned int i, flags;

	for (flags = 0; flags <= ABS; flags += ABS) {
		for (i = 0; i < ARRAY_SIZE(times); i++) {
			ASSERT_EQ(0, good(&self->sample, TWHEEL_IOC_TIMER_ADD, &argument));
			argument.add.time = times[i];
			argument.add.flags = flags;
			expect_error(_metadata, &self->sample, TWHEEL_IOC_TIMER_ADD, &argument,
				     EINVAL);
			ASSERT_EQ(0, good(&self->sample, TWHEEL_IOC_TIMER_REARM, &argument));
			argument.rearm.time = times[i];
			argument.rearm.flags = flags;
			expect_error(_metadata, &self->sample, TWHEEL_IOC_TIMER_REARM, &argument,
				     EINVAL);
			argument.rearm.handle = self->sample.expired;
			expect_error(_metadata, &self->sample, TWHEEL_IOC_TIMER_REARM, &argument,
				     EINVAL);
		}
	}
	expect_unchanged(_metadata, &self->sample);
}

/* An add that must fail with EINVAL and change nothing. */
static void expect_bad_add(struct __test_metadata *_metadata, FIXTURE_DATA(values) * self,
			   struct twheel_timer_add add)
{
	static union argument argument;

	ASSERT_EQ(0, good(&self->sample, TWHEEL_IOC_TIMER_ADD, &argument));
	if (!add.time)
		add.time = argument.add.time;
	if (!add.clock)
		add.clock = CLOCK_MONOTONIC;
	argument.add = add;
	expect_error(_metadata, &self->sample, TWHEEL_IOC_TIMER_ADD, &argument, EINVAL);
}

#define EXPECT_BAD_ADD(...)						\
	expect_bad_add(_metadata, self, (struct twheel_timer_add){ __VA_ARGS__ })

TEST_F(values, adds_that_are_out_of_range)
{
	const __u64 large[] = { TWHEEL_TIME_MAX + 1, TWHEEL_TIME_NONE - 1, TWHEEL_TIME_NONE };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(large); i++) {
		EXPECT_BAD_ADD(.period = large[i]);
		EXPECT_BAD_ADD(.slack = large[i]);
		EXPECT_BAD_ADD(.spread = large[i]);
		EXPECT_BAD_ADD(.idle = large[i]);
		EXPECT_BAD_ADD(.lifetime = large[i]);
	}
	EXPECT_BAD_ADD(.time = TWHEEL_TIME_NONE - 1, .idle = SEC);
	expect_unchanged(_metadata, &self->sample);
}

TEST_F(values, adds_that_contradict_themselves)
{
	/* No limit at all. */
	EXPECT_BAD_ADD(.time = TWHEEL_TIME_NONE);
	EXPECT_BAD_ADD(.time = TWHEEL_TIME_NONE, .period = SEC);
	EXPECT_BAD_ADD(.time = TWHEEL_TIME_NONE, .slack = SEC, .spread = SEC);
	/* A period, and an idle timeout or lifetime. */
	EXPECT_BAD_ADD(.period = SEC, .idle = SEC);
	EXPECT_BAD_ADD(.period = SEC, .lifetime = SEC);
	/* Limits are on CLOCK_MONOTONIC. */
	EXPECT_BAD_ADD(.clock = CLOCK_BOOTTIME, .idle = SEC);
	EXPECT_BAD_ADD(.clock = CLOCK_BOOTTIME, .lifetime = SEC);
	/* Values that no flag makes use of. */
	EXPECT_BAD_ADD(.key = 1);
	EXPECT_BAD_ADD(.touch = 1, .idle = SEC);
	/* Without a touch array, and without an idle timeout. */
	EXPECT_BAD_ADD(.flags = TWHEEL_TOUCHED, .idle = SEC);
	EXPECT_BAD_ADD(.flags = TWHEEL_TOUCHED);
	EXPECT_BAD_ADD(.flags = TWHEEL_TOUCHED, .lifetime = SEC);
	expect_unchanged(_metadata, &self->sample);
}

/* A re-arm of the pending timer that must fail with EINVAL and change nothing. */
#define EXPECT_BAD_REARM(...)						\
	EXPECT_EQ(-EINVAL, wh_rearm_timer(self->sample.fd, &(struct twheel_timer_rearm){	\
		.handle = self->sample.pending, __VA_ARGS__ }))

TEST_F(values, rearms_that_are_out_of_range_or_contradict_themselves)
{
	const __u64 large[] = { TWHEEL_TIME_MAX + 1, TWHEEL_TIME_NONE - 1, TWHEEL_TIME_NONE };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(large); i++) {
		EXPECT_BAD_REARM(.time = SEC, .slack = large[i]);
		EXPECT_BAD_REARM(.time = SEC, .spread = large[i]);
	}
	/* The deadline is its last limit. */
	EXPECT_BAD_REARM(.time = TWHEEL_TIME_NONE);
	EXPECT_BAD_REARM(.time = SEC, .limit = TWHEEL_LIMIT_IDLE);
	EXPECT_BAD_REARM(.time = SEC, .limit = TWHEEL_LIMIT_LIFETIME);
	EXPECT_BAD_REARM(.flags = TWHEEL_ACTIVE, .limit = TWHEEL_LIMIT_IDLE);
	EXPECT_BAD_REARM(.flags = TWHEEL_ACTIVE);
	EXPECT_BAD_REARM(.flags = TWHEEL_ACTIVE, .limit = TWHEEL_LIMIT_LIFETIME);
	EXPECT_BAD_REARM(.flags = TWHEEL_ACTIVE, .limit = TWHEEL_LIMIT_IDLE, .time = 1);
	expect_unchanged(_metadata, &self->sample);
}

TEST_F(values, arrays_of_bad_sizes)
{
	const __u16 sizes[] = { 0, 8, 32, 39, 41, 44, 95, 97, 100, 0xffff };
	static union argument argument;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(0, good(&self->sample, TWHEEL_IOC_SUBMIT, &argument));
		argument.submit.op_size = sizes[i];
		expect_error(_metadata, &self->sample, TWHEEL_IOC_SUBMIT, &argument, EINVAL);
	}
	ASSERT_EQ(0, good(&self->sample, TWHEEL_IOC_SUBMIT, &argument));
	argument.submit.nr_ops = 1U << 31;
	expect_error(_metadata, &self->sample, TWHEEL_IOC_SUBMIT, &argument, EINVAL);
	argument.submit.nr_ops = ~0U;
	expect_error(_metadata, &self->sample, TWHEEL_IOC_SUBMIT, &argument, EINVAL);
	ASSERT_EQ(0, good(&self->sample, TWHEEL_IOC_DRAIN, &argument));
	argument.drain.nr_records = 0;
	expect_error(_metadata, &self->sample, TWHEEL_IOC_DRAIN, &argument, EINVAL);
	argument.drain.nr_records = 1U << 31;
	expect_error(_metadata, &self->sample, TWHEEL_IOC_DRAIN, &argument, EINVAL);
	for (i = 0; i < QUERY_SIZE_FIRST + 8; i++) {
		if (i == QUERY_SIZE_FIRST)
			continue;
		ASSERT_EQ(0, good(&self->sample, TWHEEL_IOC_DRAIN, &argument));
		argument.drain.records = (uintptr_t)&argument;
		argument.drain.record_size = i;
		expect_error(_metadata, &self->sample, TWHEEL_IOC_DRAIN, &argument, EINVAL);
	}
	expect_unchanged(_metadata, &self->sample);
}

TEST_F(values, setups_that_are_out_of_range)
{
	const __u32 entries[] = { 3, 5, 6, 7, 12, 1000, (1 << 20) - 1, (1 << 20) + 1, 1 << 21,
				  1U << 31, ~0U };
	const __u32 words[] = { (1 << 24) + 1, 1 << 25, 1U << 31, ~0U };
	static union argument argument;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(entries); i++) {
		argument.setup.ring_entries = entries[i];
		expect_error(_metadata, &self->sample, TWHEEL_IOC_SETUP, &argument, EINVAL);
	}
	argument.setup.ring_entries = 0;
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		argument.setup.touch_words = words[i];
		expect_error(_metadata, &self->sample, TWHEEL_IOC_SETUP, &argument, EINVAL);
		/* The rest of the call has no effect either. */
		argument.setup.ring_entries = 64;
		argument.setup.max_timers = 5;
		expect_error(_metadata, &self->sample, TWHEEL_IOC_SETUP, &argument, EINVAL);
		argument.setup.ring_entries = 0;
		argument.setup.max_timers = 0;
	}
	expect_unchanged(_metadata, &self->sample);
}

TEST_HARNESS_MAIN
