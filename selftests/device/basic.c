// SPDX-License-Identifier: GPL-2.0-only
/*
 * Add, expire, read, cancel, re-arm, query: what each call returns, and the state that it leaves.
 */
#include "twheel_test.h"

#define FEATURES	(TWHEEL_FEATURE_SUBMIT | TWHEEL_FEATURE_KEYS | TWHEEL_FEATURE_PERIODIC | \
			 TWHEEL_FEATURE_CLOCKS | TWHEEL_FEATURE_LIMITS | TWHEEL_FEATURE_RING | \
			 TWHEEL_FEATURE_TOUCH | TWHEEL_FEATURE_URING | TWHEEL_FEATURE_WATCH | \
			 TWHEEL_FEATURE_RULES | TWHEEL_FEATURE_EVENT_KEYS)

FIXTURE(basic)
{
	int fd;
};

FIXTURE_SETUP(basic)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(basic)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Is the context empty, with nothing to read? */
static bool is_empty(int fd)
{
	struct twheel_event event;
	struct twheel_info info;

	return !wh_info(fd, &info) && !info.nr_timers && !info.nr_events && !wh_ready(fd) &&
	       wh_read(fd, &event, 1) == -EAGAIN;
}

/* Adds a timer and waits until it has expired. */
static int add_expired(int fd, __u64 user_data, __u64 *handle)
{
	__u64 before = wh_nr_events(fd);
	int ret = wh_add(fd, 0, 0, user_data, handle);

	if (ret)
		return ret;
	return wh_wait_events(fd, before + 1) ? 0 : -ETIMEDOUT;
}

TEST_F(basic, info_of_a_new_context)
{
	struct twheel_info info;

	ASSERT_EQ(0, wh_info(self->fd, &info));
	EXPECT_EQ(FEATURES, info.features);
	EXPECT_GT(info.tick_ns, 0);
	EXPECT_EQ(0, info.tick_ns & (info.tick_ns - 1));
	EXPECT_EQ(file_number(PARAMETERS "max_timers"), info.max_timers);
	EXPECT_EQ(0, info.nr_timers);
	EXPECT_EQ(0, info.nr_events);
	EXPECT_EQ(sizeof(struct twheel_event), info.event_size);
	EXPECT_EQ(0, info.reserved);
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, relative_timer_expires)
{
	__u64 before, after, handle, distance = 20 * MSEC;
	struct twheel_event event;

	before = now_ns();
	ASSERT_EQ(0, wh_add(self->fd, distance, 0, 0x123456789abcdef0, &handle));
	after = now_ns();
	EXPECT_EQ(1, wh_nr_timers(self->fd));
	ASSERT_EQ(true, wh_wait(self->fd));
	EXPECT_EQ(1, wh_nr_timers(self->fd));
	EXPECT_EQ(1, wh_nr_events(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(0x123456789abcdef0, event.user_data);
	EXPECT_LE(before + distance, event.deadline);
	EXPECT_GE(after + distance, event.deadline);
	EXPECT_EQ(0, event.seq);
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, absolute_timer_expires)
{
	__u64 handle, deadline = now_ns() + 20 * MSEC + 12345;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, ~0ULL, &handle));
	ASSERT_EQ(true, wh_wait(self->fd));
	EXPECT_LE(deadline, now_ns());
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(~0ULL, event.user_data);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_EQ(0, event.seq);
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, past_deadlines_expire)
{
	const __u64 past[] = { 0, 1, now_ns() / 2, now_ns() - 1, now_ns() };
	struct twheel_event event;
	__u64 handle;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(past); i++) {
		ASSERT_EQ(0, wh_add(self->fd, past[i], ABS, i, &handle));
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(handle, event.handle);
		EXPECT_EQ(i, event.user_data);
		EXPECT_EQ(past[i], event.deadline);
		EXPECT_EQ(i, event.seq);
	}
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 99, &handle));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, query_tells_all)
{
	__u64 before, after, pending, expired, deadline = now_ns() + HOUR;
	struct twheel_timer_query query;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, 0xfedcba9876543210, &pending));
	before = now_ns();
	ASSERT_EQ(0, wh_query(self->fd, pending, &query));
	after = now_ns();
	EXPECT_EQ(deadline, query.deadline);
	EXPECT_GE(deadline - before, query.remaining);
	EXPECT_LE(deadline - after, query.remaining);
	EXPECT_EQ(0xfedcba9876543210, query.user_data);
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);

	ASSERT_EQ(0, wh_add(self->fd, 5, ABS, 77, &expired));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(0, wh_query(self->fd, expired, &query));
	EXPECT_EQ(5, query.deadline);
	EXPECT_EQ(0, query.remaining);
	EXPECT_EQ(77, query.user_data);
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, query.state);

	/* A query changes nothing. */
	EXPECT_EQ(2, wh_nr_timers(self->fd));
	EXPECT_EQ(1, wh_nr_events(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(expired, event.handle);
	EXPECT_EQ(-EALREADY, wh_query(self->fd, expired, &query));
	EXPECT_EQ(-EALREADY, wh_rearm(self->fd, expired, HOUR, 0));
	EXPECT_EQ(-EALREADY, wh_cancel(self->fd, expired));
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, pending));
}

TEST_F(basic, cancel_of_a_pending_timer)
{
	__u64 handle, witness;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add(self->fd, 300 * MSEC, 0, 1, &handle));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
	EXPECT_EQ(true, is_empty(self->fd));
	EXPECT_EQ(-ENOENT, wh_state(self->fd, handle));

	/* It causes no event: the first event is that of a timer armed for later. */
	ASSERT_EQ(0, wh_add(self->fd, 600 * MSEC, 0, 2, &witness));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(witness, event.handle);
	EXPECT_EQ(0, event.seq);
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, cancel_takes_an_unread_event_back)
{
	__u64 first, second, third;
	struct twheel_event event;

	ASSERT_EQ(0, add_expired(self->fd, 1, &first));
	ASSERT_EQ(0, add_expired(self->fd, 2, &second));
	ASSERT_EQ(0, add_expired(self->fd, 3, &third));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, second));
	EXPECT_EQ(2, wh_nr_timers(self->fd));
	EXPECT_EQ(2, wh_nr_events(self->fd));
	EXPECT_EQ(-ENOENT, wh_state(self->fd, second));

	/* A revoked event leaves no gap in the sequence numbers. */
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(first, event.handle);
	EXPECT_EQ(0, event.seq);
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(third, event.handle);
	EXPECT_EQ(1, event.seq);
	EXPECT_EQ(true, is_empty(self->fd));

	/* If the only event is revoked, poll() reports nothing. */
	ASSERT_EQ(0, add_expired(self->fd, 4, &first));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, first));
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, rearm_later)
{
	__u64 handle, witness, deadline = now_ns() + 600 * MSEC;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add(self->fd, deadline - 300 * MSEC, ABS, 7, &handle));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, deadline, ABS));
	EXPECT_EQ(1, wh_nr_timers(self->fd));
	ASSERT_EQ(0, wh_add(self->fd, deadline - 200 * MSEC, ABS, 8, &witness));
	/* The witness is due between the old deadline and the new one. */
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(witness, event.handle);
	ASSERT_EQ(true, wh_wait(self->fd));
	EXPECT_LE(deadline, now_ns());
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(7, event.user_data);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_EQ(1, event.seq);
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, rearm_earlier)
{
	__u64 handle, deadline = now_ns() + 20 * MSEC;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 7, &handle));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, deadline, ABS));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(7, event.user_data);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, rearm_by_a_relative_time)
{
	struct twheel_timer_query query;
	__u64 handle, before, after;

	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 7, &handle));
	before = now_ns();
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, 2 * HOUR, 0));
	after = now_ns();
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_LE(before + 2 * HOUR, query.deadline);
	EXPECT_GE(after + 2 * HOUR, query.deadline);
	EXPECT_EQ(7, query.user_data);
}

TEST_F(basic, rearm_takes_an_unread_event_back)
{
	__u64 handle, deadline;
	struct twheel_event event;

	ASSERT_EQ(0, add_expired(self->fd, 5, &handle));
	deadline = now_ns() + 200 * MSEC;
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_rearm(self->fd, handle, deadline, ABS));
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(5, event.user_data);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_EQ(0, event.seq);
	EXPECT_EQ(true, is_empty(self->fd));

	/* Once more, without an event at the end: expired, re-armed, cancelled. */
	ASSERT_EQ(0, add_expired(self->fd, 6, &handle));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_rearm(self->fd, handle, HOUR, 0));
	EXPECT_EQ(0, wh_nr_events(self->fd));
	EXPECT_EQ(false, wh_ready(self->fd));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, rearm_to_the_past_expires)
{
	struct twheel_event event;
	__u64 handle;

	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handle));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, 0, ABS));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(0, event.deadline);
}

TEST_F(basic, the_largest_times)
{
	struct twheel_timer_query query;
	__u64 absolute, relative, moved;

	ASSERT_EQ(0, wh_add(self->fd, TWHEEL_TIME_MAX, ABS, 1, &absolute));
	ASSERT_EQ(0, wh_query(self->fd, absolute, &query));
	EXPECT_EQ(TWHEEL_TIME_MAX, query.deadline);
	/* A relative time that would end after the maximum is capped. */
	ASSERT_EQ(0, wh_add(self->fd, TWHEEL_TIME_MAX, 0, 2, &relative));
	ASSERT_EQ(0, wh_query(self->fd, relative, &query));
	EXPECT_EQ(TWHEEL_TIME_MAX, query.deadline);
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 3, &moved));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, moved, TWHEEL_TIME_MAX, 0));
	ASSERT_EQ(0, wh_query(self->fd, moved, &query));
	EXPECT_EQ(TWHEEL_TIME_MAX, query.deadline);

	sleep_ns(20 * MSEC);
	EXPECT_EQ(0, wh_nr_events(self->fd));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, absolute));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, relative));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, moved));
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, long_and_short_timers_together)
{
	struct twheel_timer_query query;
	struct twheel_event event;
	__u64 far[63], deadline[63], near;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(far); i++) {
		deadline[i] = now_ns() + HOUR;
		if (deadline[i] < 1ULL << i)
			deadline[i] = 1ULL << i;
		ASSERT_EQ(0, wh_add(self->fd, deadline[i], ABS, i, &far[i]));
		ASSERT_EQ(0, wh_add(self->fd, 3 * MSEC, 0, 1000 + i, &near));
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(near, event.handle);
		EXPECT_EQ(1000 + i, event.user_data);
		EXPECT_EQ(i, event.seq);
	}
	EXPECT_EQ(ARRAY_SIZE(far), wh_nr_timers(self->fd));
	for (i = 0; i < ARRAY_SIZE(far); i++) {
		ASSERT_EQ(0, wh_query(self->fd, far[i], &query));
		EXPECT_EQ(deadline[i], query.deadline);
		EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
		/* Each of them can still be re-armed to expire soon. */
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, far[i], MSEC, 0));
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(far[i], event.handle);
		EXPECT_EQ(i, event.user_data);
	}
	EXPECT_EQ(true, is_empty(self->fd));
}

TEST_F(basic, opens_are_separate)
{
	int other = wh_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 handle;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, &handle));
	ASSERT_EQ(true, wh_wait(self->fd));
	EXPECT_EQ(true, is_empty(other));
	EXPECT_EQ(-EAGAIN, wh_read(other, &event, 1));
	EXPECT_EQ(0, close(other));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
}

TEST_F(basic, open_modes)
{
	const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR };
	struct twheel_info info;
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		fd = open(DEVICE, modes[i] | O_CLOEXEC);
		ASSERT_GE(fd, 0);
		EXPECT_EQ(0, wh_info(fd, &info));
		EXPECT_EQ(0, close(fd));
	}
	/* A stream has no position. */
	EXPECT_EQ(-1, lseek(self->fd, 0, SEEK_SET));
	EXPECT_EQ(ESPIPE, errno);
}

TEST_HARNESS_MAIN
