// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtwheel with the device: each call does what its man page says. The device itself is tested by
 * the other tests.
 */
#include <liburing.h>

#include "watch_test.h"

#include <libtwheel.h>
#include <libtwheel-uring.h>

#define TIMERS		1000
#define ROOM		64

FIXTURE(library)
{
	int fd;
};

FIXTURE_SETUP(library)
{
	self->fd = twheel_open(0);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(library)
{
	EXPECT_EQ(0, close(self->fd));
}

TEST_F(library, one_timer)
{
	struct twheel_event event;
	struct twheel_timer_query query;
	struct twheel_info info;
	uint64_t handle;

	ASSERT_EQ(0, twheel_info(self->fd, &info));
	ASSERT_EQ(0, twheel_add(self->fd, HOUR, 0, 7, &handle));
	ASSERT_EQ(0, twheel_query(self->fd, handle, &query));
	EXPECT_EQ(7, query.user_data);
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	EXPECT_LE(query.remaining, HOUR + info.tick_ns);
	EXPECT_EQ(0, twheel_wait(self->fd, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  twheel_rearm(self->fd, handle, now_ns() + MSEC, TWHEEL_TIME_ABS));
	EXPECT_EQ(1, twheel_wait(self->fd, GUARD_MS));
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, twheel_rearm(self->fd, handle, MSEC, 0));
	ASSERT_EQ(1, twheel_read(self->fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(7, event.user_data);
	EXPECT_EQ(-EALREADY, twheel_cancel(self->fd, handle));
	ASSERT_EQ(0, twheel_add(self->fd, HOUR, 0, 8, &handle));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_cancel(self->fd, handle));
	EXPECT_EQ(-ENOENT, twheel_cancel(self->fd, handle));
	EXPECT_EQ(-EINVAL, twheel_add(self->fd, TWHEEL_TIME_MAX + 1, 0, 8, &handle));
	EXPECT_EQ(-EOPNOTSUPP, twheel_add(self->fd, 0, 1U << 31, 8, &handle));
	EXPECT_EQ(-EINVAL, twheel_add(self->fd, HOUR, TWHEEL_KEYED, 8, &handle));
	EXPECT_EQ(-EINVAL, twheel_read(self->fd, &event, 0));
}

TEST_F(library, a_smaller_context)
{
	struct twheel_setup setup = { .max_timers = 2 };
	struct twheel_info info;
	uint64_t handle;

	ASSERT_EQ(0, twheel_setup(self->fd, &setup));
	EXPECT_EQ(0, setup.ring_bytes);
	ASSERT_EQ(0, twheel_add(self->fd, HOUR, 0, 1, &handle));
	ASSERT_EQ(0, twheel_add(self->fd, HOUR, 0, 2, &handle));
	handle = 4711;
	EXPECT_EQ(-ENOSPC, twheel_add(self->fd, HOUR, 0, 3, &handle));
	EXPECT_EQ(4711, handle);
	ASSERT_EQ(0, twheel_info(self->fd, &info));
	EXPECT_EQ(2, info.max_timers);
	EXPECT_EQ(2, info.nr_timers);
}

TEST_F(library, keys)
{
	struct twheel_timer_query query;
	struct twheel_event event;
	const uint64_t key = ~0ULL;

	EXPECT_EQ(-ENOENT, twheel_cancel_key(self->fd, key));
	EXPECT_EQ(TWHEEL_WAS_ABSENT, twheel_add_key(self->fd, key, HOUR, 0, 1));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_add_key(self->fd, key, 2 * HOUR, 0, 2));
	ASSERT_EQ(0, twheel_query_key(self->fd, key, &query));
	EXPECT_EQ(key, query.key);
	EXPECT_EQ(2, query.user_data);
	EXPECT_GT(query.remaining, HOUR);
	EXPECT_EQ(-EINVAL, twheel_active_key(self->fd, key));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_rearm_key(self->fd, key, MSEC, 0));
	ASSERT_EQ(1, twheel_read(self->fd, &event, 1));
	EXPECT_EQ(query.handle, event.handle);
	EXPECT_EQ(TWHEEL_WAS_ABSENT, twheel_add_key(self->fd, key, HOUR, 0, 3));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_cancel_key(self->fd, key));
}

TEST_F(library, limits)
{
	struct twheel_timer_add add = {
		.time = TWHEEL_TIME_NONE, .clock = CLOCK_MONOTONIC, .user_data = 3,
		.idle = HOUR, .lifetime = 2 * HOUR, .key = 5, .flags = TWHEEL_KEYED,
	};
	struct twheel_timer_rearm rearm = {
		.handle = 5, .time = MSEC, .limit = TWHEEL_LIMIT_LIFETIME,
		.flags = TWHEEL_BY_KEY,
	};
	struct twheel_event event;

	ASSERT_EQ(TWHEEL_WAS_ABSENT, twheel_timer_add(self->fd, &add));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_active(self->fd, add.handle));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_active_key(self->fd, 5));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_timer_rearm(self->fd, &rearm));
	ASSERT_EQ(1, twheel_read(self->fd, &event, 1));
	EXPECT_EQ(TWHEEL_LIMIT_LIFETIME, event.reason);
	EXPECT_EQ(3, event.user_data);
}

TEST_F(library, watch)
{
	const unsigned int flags = TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_ABORT;
	struct twheel_timer_query query;
	struct twheel_event event;
	uint64_t handle = 4711;
	int here, there;
	char byte;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	EXPECT_EQ(-EBADF, twheel_watch(self->fd, -1, SEC, flags, 1, &handle));
	EXPECT_EQ(-EOPNOTSUPP, twheel_watch(self->fd, self->fd, SEC, flags, 1, &handle));
	EXPECT_EQ(-EINVAL, twheel_watch(self->fd, here, TWHEEL_IDLE_MIN - 1, flags, 1, &handle));
	EXPECT_EQ(-EINVAL, twheel_watch(self->fd, here, SEC, TWHEEL_KEYED, 1, &handle));
	EXPECT_EQ(-EOPNOTSUPP, twheel_watch(self->fd, here, SEC, TWHEEL_BY_KEY, 1, &handle));
	EXPECT_EQ(4711, handle);
	ASSERT_EQ(0, twheel_watch(self->fd, here, 100 * MSEC, flags, 1, &handle));
	EXPECT_EQ(-EBUSY, twheel_watch(self->fd, here, SEC, flags, 2, &(uint64_t){ 0 }));
	ASSERT_EQ(0, twheel_query(self->fd, handle, &query));
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, query.limit);
	EXPECT_EQ(TWHEEL_WATCHED | flags, query.flags);
	ASSERT_EQ(1, twheel_read(self->fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(1, event.user_data);
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
	EXPECT_EQ(-1, recv(here, &byte, 1, 0));
	EXPECT_EQ(ETIMEDOUT, errno);
	close(here);
	close(there);
}

/* What the man page says about a connection that is closed before its event is read. */
TEST_F(library, a_connection_that_is_closed_first)
{
	uint64_t handle;
	int here, there;
	char byte;

	ASSERT_EQ(0, network());
	/* Closed by the kernel: the event is revoked. */
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	ASSERT_EQ(0, twheel_watch(self->fd, here, 50 * MSEC, TWHEEL_WATCH_SHUTDOWN, 1, &handle));
	EXPECT_EQ(0, recv(here, &byte, 1, 0));
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, twheel_cancel(self->fd, handle));
	close(here);
	close(there);
	/* Closed by the peer: there is no event. */
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	ASSERT_EQ(0, twheel_watch(self->fd, here, HOUR, TWHEEL_WATCH_SHUTDOWN, 1, &handle));
	EXPECT_EQ(0, shutdown(there, SHUT_WR));
	EXPECT_EQ(0, recv(here, &byte, 1, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_cancel(self->fd, handle));
	close(here);
	close(there);
	/* Closed by this side: the timer has ended with it. */
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	ASSERT_EQ(0, twheel_watch(self->fd, here, HOUR, TWHEEL_WATCH_SHUTDOWN, 1, &handle));
	close(here);
	ASSERT_EQ(true, wait_timers(self->fd, 0));
	EXPECT_EQ(-ENOENT, twheel_cancel(self->fd, handle));
	close(there);
	EXPECT_EQ(0, twheel_wait(self->fd, 0));
}

TEST_F(library, events_by_key)
{
	struct twheel_setup setup = { .flags = TWHEEL_SETUP_EVENT_KEYS };
	struct twheel_event event;
	struct twheel_info info;

	ASSERT_EQ(0, twheel_info(self->fd, &info));
	EXPECT_NE(0, info.features & TWHEEL_FEATURE_EVENT_KEYS);
	ASSERT_EQ(0, twheel_setup(self->fd, &setup));
	ASSERT_EQ(TWHEEL_WAS_ABSENT, twheel_add_key(self->fd, 77, MSEC, 0, 1));
	ASSERT_EQ(1, twheel_read(self->fd, &event, 1));
	EXPECT_EQ(77, event.handle);
	EXPECT_EQ(1, event.user_data);
}

/* Adds timers whose keys equal their user data. Timer @i is due in 2 * (@i + 1) hours. */
static int add_many(int fd, unsigned int nr)
{
	struct twheel_op ops[ROOM], *op;
	struct twheel_batch batch;
	unsigned int i, j;

	twheel_batch_init(&batch, ops, ROOM);
	for (i = 0; i < nr; i++) {
		op = twheel_batch_add(&batch, (1 + i) * 2 * HOUR, TWHEEL_KEYED, i);
		op->key = i;
		if (batch.nr_ops < ROOM && i + 1 < nr)
			continue;
		if (twheel_batch_submit(fd, &batch, 0) != (int)batch.nr_ops)
			return -1;
		for (j = 0; j < batch.nr_ops; j++)
			if (ops[j].result != TWHEEL_WAS_ABSENT || !ops[j].handle)
				return -1;
		twheel_batch_clear(&batch);
	}
	return 0;
}

TEST_F(library, batches)
{
	struct twheel_timer_query query;
	struct twheel_context_stats stats;
	struct twheel_op ops[5];
	struct twheel_batch batch;

	ASSERT_EQ(0, add_many(self->fd, TIMERS));
	twheel_batch_init(&batch, ops, 5);
	twheel_batch_rearm(&batch, 17, HOUR, TWHEEL_BY_KEY);
	twheel_batch_cancel(&batch, 18, TWHEEL_BY_KEY);
	twheel_batch_cancel(&batch, TIMERS, TWHEEL_BY_KEY);
	twheel_batch_cancel(&batch, 19, TWHEEL_BY_KEY);
	twheel_batch_add(&batch, TWHEEL_TIME_MAX + 1, 0, 0);
	EXPECT_EQ(3, twheel_batch_submit(self->fd, &batch, TWHEEL_SUBMIT_STOP));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ops[0].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ops[1].result);
	EXPECT_EQ(-ENOENT, ops[2].result);
	ASSERT_EQ(0, twheel_query_key(self->fd, 17, &query));
	EXPECT_LE(query.remaining, 2 * HOUR);
	EXPECT_EQ(-ENOENT, twheel_query_key(self->fd, 18, &query));
	EXPECT_EQ(0, twheel_query_key(self->fd, 19, &query));
	EXPECT_EQ(5, twheel_batch_submit(self->fd, &batch, 0));
	EXPECT_EQ(-ENOENT, ops[1].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ops[3].result);
	EXPECT_EQ(-EINVAL, ops[4].result);
	EXPECT_EQ(-EOPNOTSUPP, twheel_batch_submit(self->fd, &batch, 1U << 15));
	ASSERT_EQ(0, twheel_stats(self->fd, &stats));
	EXPECT_EQ(TIMERS, stats.adds);
	EXPECT_EQ(2, stats.cancels);
	EXPECT_EQ(TIMERS - 2, stats.nr_timers);
}

TEST_F(library, a_batch_through_io_uring)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct twheel_batch batch;
	struct twheel_op ops[2];
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
	twheel_batch_init(&batch, ops, 2);
	twheel_batch_add(&batch, HOUR, TWHEEL_KEYED, 1)->key = 9;
	twheel_batch_cancel(&batch, 9, TWHEEL_BY_KEY);
	sqe = io_uring_get_sqe(&ring);
	ASSERT_NE(NULL, sqe);
	twheel_uring_prep_submit(sqe, self->fd, &batch, 0);
	sqe->user_data = 5;
	EXPECT_EQ(1, io_uring_submit(&ring));
	ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
	EXPECT_EQ(2, cqe->res);
	EXPECT_EQ(5, cqe->user_data);
	EXPECT_EQ(TWHEEL_WAS_ABSENT, ops[0].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ops[1].result);
	io_uring_cqe_seen(&ring, cqe);

	/* Flags that are too wide are not truncated to valid ones. */
	sqe = io_uring_get_sqe(&ring);
	ASSERT_NE(NULL, sqe);
	twheel_uring_prep_submit(sqe, self->fd, &batch, 0x10000);
	EXPECT_EQ(1, io_uring_submit(&ring));
	ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
	EXPECT_EQ(-EOPNOTSUPP, cqe->res);
	io_uring_queue_exit(&ring);
}

TEST_F(library, drain)
{
	struct twheel_timer_query timers[ROOM];
	char seen[TIMERS] = { 0 };
	uint64_t cursor = 0;
	int i, n, sum = 0;

	ASSERT_EQ(0, add_many(self->fd, TIMERS));
	while ((n = twheel_drain(self->fd, timers, ROOM, &cursor)) > 0) {
		ASSERT_LE(n, ROOM);
		for (i = 0; i < n; i++) {
			ASSERT_LT(timers[i].user_data, TIMERS);
			EXPECT_EQ(timers[i].user_data, timers[i].key);
			EXPECT_EQ(0, seen[timers[i].user_data]++);
		}
		sum += n;
	}
	EXPECT_EQ(0, n);
	EXPECT_EQ(TIMERS, sum);
	ASSERT_EQ(0, add_many(self->fd, TIMERS));
	cursor = 0;
	for (sum = 0; (n = twheel_drain(self->fd, NULL, ROOM, &cursor)) > 0; sum += n)
		ASSERT_LE(n, ROOM);
	EXPECT_EQ(TIMERS, sum);
}

TEST_F(library, ring)
{
	struct twheel_setup setup = { .ring_entries = 16 };
	const struct twheel_event *events;
	unsigned int i, n, taken = 0;
	struct twheel_event event;
	struct twheel_ring *ring;
	__u64 end;
	uint64_t handle;

	ASSERT_EQ(0, twheel_setup(self->fd, &setup));
	ASSERT_EQ(0, twheel_ring_map(self->fd, setup.ring_bytes, &ring));
	EXPECT_EQ(0, twheel_ring_peek(ring, &events));
	EXPECT_EQ(0, twheel_ring_waiting(ring));
	for (i = 0; i < TIMERS; i++)
		ASSERT_EQ(0, twheel_add(self->fd, i * 10 * USEC, 0, i, &handle));
	EXPECT_EQ(-EBUSY, twheel_read(self->fd, &event, 1));
	end = now_ns() + GUARD_MS * MSEC;
	while (!twheel_ring_waiting(ring) && now_ns() < end)
		sleep_ns(MSEC);
	EXPECT_EQ(1, twheel_ring_waiting(ring));
	while (taken < TIMERS) {
		ASSERT_EQ(1, twheel_wait(self->fd, GUARD_MS));
		n = twheel_ring_peek(ring, &events);
		ASSERT_GE(n, 1);
		ASSERT_LE(n, 16);
		for (i = 0; i < n; i++)
			EXPECT_EQ(taken++, events[i].seq);
		twheel_ring_advance(ring, n);
	}
	EXPECT_EQ(0, twheel_wait(self->fd, 0));
	EXPECT_EQ(0, munmap(ring, setup.ring_bytes));
}

TEST_F(library, touch)
{
	struct twheel_setup setup = { .touch_words = 2 };
	struct twheel_timer_add add = {
		.time = TWHEEL_TIME_NONE, .clock = CLOCK_MONOTONIC,
		.idle = SEC, .flags = TWHEEL_TOUCHED,
	};
	struct twheel_touch *touch;
	struct twheel_event event;
	uint64_t last;
	int i;

	ASSERT_EQ(0, twheel_setup(self->fd, &setup));
	ASSERT_EQ(0, twheel_touch_map(self->fd, setup.touch_bytes, &touch));
	for (i = 0; i < 2; i++) {
		add.touch = i;
		add.user_data = i;
		ASSERT_EQ(0, twheel_timer_add(self->fd, &add));
	}
	/* Until the timer that is not touched has expired. */
	do {
		last = touch->now;
		twheel_touch(touch, 1);
	} while (!twheel_wait(self->fd, 10));
	ASSERT_EQ(1, twheel_read(self->fd, &event, 1));
	EXPECT_EQ(0, event.user_data);
	ASSERT_EQ(1, twheel_read(self->fd, &event, 1));
	EXPECT_EQ(1, event.user_data);
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
	EXPECT_GE(event.fired, last + add.idle);
	EXPECT_EQ(0, munmap(touch, setup.touch_bytes));
}

TEST_HARNESS_MAIN
