// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs and libraries of different versions: structures grow, and each side is compiled with its
 * own header. Built four times: with the same header for both; with longer structures for the
 * library, or for the program; and as a program of the first version, whose library has grown.
 * Whatever a call fills in, no byte after it may change.
 */
#include <liburing.h>

#include "twheel_test.h"

#include <libtwheel.h>
#include <libtwheel-uring.h>

#ifdef TWHEEL_FIRST
/* In the first version of the header, none of these was inline. */
#define FIRST(name, ...) int first_##name(__VA_ARGS__) __asm__("twheel_" #name)

FIRST(info, int fd, struct twheel_info *info);
FIRST(stats, int fd, struct twheel_context_stats *stats);
FIRST(setup, int fd, struct twheel_setup *setup);
FIRST(timer_add, int fd, struct twheel_timer_add *add);
FIRST(timer_rearm, int fd, const struct twheel_timer_rearm *rearm);
FIRST(query, int fd, uint64_t handle, struct twheel_timer_query *query);
FIRST(query_key, int fd, uint64_t key, struct twheel_timer_query *query);
FIRST(drain, int fd, struct twheel_timer_query *timers, unsigned int max, uint64_t *cursor);
FIRST(read, int fd, struct twheel_event *events, unsigned int max);
FIRST(batch_submit, int fd, const struct twheel_batch *batch, unsigned int flags);

#define twheel_info(...)		first_info(__VA_ARGS__)
#define twheel_stats(...)		first_stats(__VA_ARGS__)
#define twheel_setup(...)		first_setup(__VA_ARGS__)
#define twheel_timer_add(...)		first_timer_add(__VA_ARGS__)
#define twheel_timer_rearm(...)		first_timer_rearm(__VA_ARGS__)
#define twheel_query(...)		first_query(__VA_ARGS__)
#define twheel_query_key(...)		first_query_key(__VA_ARGS__)
#define twheel_drain(...)		first_drain(__VA_ARGS__)
#define twheel_read(...)		first_read(__VA_ARGS__)
#define twheel_batch_submit(...)	first_batch_submit(__VA_ARGS__)
#endif

#define TIMERS	20
#define GUARD	0xa5

/* A structure or array of the program, filled with garbage and followed by a guard. */
#define GUARDED(type, name, ...)					\
	struct {							\
		type		value __VA_ARGS__;			\
		unsigned char	guard[64];				\
	} name;								\
	memset(&name, GUARD, sizeof(name))

static bool all_bytes(const void *from, size_t size, unsigned char value)
{
	const unsigned char *bytes = from;

	while (size--)
		if (*bytes++ != value)
			return false;
	return true;
}

#define EXPECT_GUARD(name) \
	EXPECT_EQ(true, all_bytes((name).guard, sizeof((name).guard), GUARD))

/* Fields that this kernel does not know read as zero. */
#ifdef TWHEEL_LONGER
#define EXPECT_TAIL(structure) \
	EXPECT_EQ(true, all_bytes((structure).added, sizeof((structure).added), 0))
#else
#define EXPECT_TAIL(structure) ((void)&(structure))
#endif

FIXTURE(sizes)
{
	int fd;
};

FIXTURE_SETUP(sizes)
{
	self->fd = twheel_open(0);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(sizes)
{
	EXPECT_EQ(0, close(self->fd));
}

TEST_F(sizes, info)
{
	GUARDED(struct twheel_info, info);

	ASSERT_EQ(0, twheel_info(self->fd, &info.value));
	EXPECT_EQ(0, info.value.nr_timers);
	EXPECT_GT(info.value.tick_ns, 0);
	EXPECT_EQ(0, info.value.reserved);
	EXPECT_TAIL(info.value);
	EXPECT_GUARD(info);
}

TEST_F(sizes, stats)
{
	GUARDED(struct twheel_context_stats, stats);

	ASSERT_EQ(0, twheel_stats(self->fd, &stats.value));
	EXPECT_EQ(0, stats.value.adds);
	EXPECT_EQ(0, stats.value.postponed);
	EXPECT_TAIL(stats.value);
	EXPECT_GUARD(stats);
}

TEST_F(sizes, a_ring_and_a_limit)
{
	GUARDED(struct twheel_setup, setup);
	struct twheel_info info;

	memset(&setup.value, 0, sizeof(setup.value));
	setup.value.max_timers = 2;
	setup.value.ring_entries = 8;
	ASSERT_EQ(0, twheel_setup(self->fd, &setup.value));
	EXPECT_GT(setup.value.ring_bytes, 0);
	EXPECT_GUARD(setup);
	ASSERT_EQ(0, twheel_info(self->fd, &info));
	EXPECT_EQ(2, info.max_timers);
}

TEST_F(sizes, add_rearm_and_query)
{
	GUARDED(struct twheel_timer_add, add);
	GUARDED(struct twheel_timer_rearm, rearm);
	GUARDED(struct twheel_timer_query, query);

	memset(&add.value, 0, sizeof(add.value));
	add.value.time = HOUR;
	add.value.clock = CLOCK_MONOTONIC;
	add.value.flags = TWHEEL_KEYED;
	add.value.key = 5;
	add.value.user_data = 6;
	ASSERT_EQ(TWHEEL_WAS_ABSENT, twheel_timer_add(self->fd, &add.value));
	EXPECT_GUARD(add);

	memset(&rearm.value, 0, sizeof(rearm.value));
	rearm.value.handle = add.value.handle;
	rearm.value.time = 3 * HOUR;
	ASSERT_EQ(TWHEEL_WAS_PENDING, twheel_timer_rearm(self->fd, &rearm.value));
	EXPECT_GUARD(rearm);

	ASSERT_EQ(0, twheel_query(self->fd, add.value.handle, &query.value));
	EXPECT_EQ(5, query.value.key);
	EXPECT_GT(query.value.remaining, 2 * HOUR);
	EXPECT_TAIL(query.value);
	EXPECT_GUARD(query);
	memset(&query.value, GUARD, sizeof(query.value));
	ASSERT_EQ(0, twheel_query_key(self->fd, 5, &query.value));
	EXPECT_EQ(add.value.handle, query.value.handle);
	EXPECT_EQ(6, query.value.user_data);
	EXPECT_TAIL(query.value);
	EXPECT_GUARD(query);
}

/* Adds timers whose user data is their number, an hour apart unless they are due. */
static int add_timers(int fd, bool due)
{
	uint64_t handle;
	int i, ret = 0;

	for (i = 0; i < TIMERS && !ret; i++)
		ret = twheel_add(fd, due ? 1 : i * HOUR, due ? TWHEEL_TIME_ABS : 0, i, &handle);
	return ret;
}

TEST_F(sizes, drain)
{
	GUARDED(struct twheel_timer_query, timers, [TIMERS]);
	uint64_t cursor = 0, seen = 0;
	int i;

	ASSERT_EQ(0, add_timers(self->fd, false));
	ASSERT_EQ(TIMERS, twheel_drain(self->fd, timers.value, TIMERS, &cursor));
	for (i = 0; i < TIMERS; i++) {
		ASSERT_LT(timers.value[i].user_data, TIMERS);
		seen |= 1ULL << timers.value[i].user_data;
		EXPECT_EQ(CLOCK_MONOTONIC, timers.value[i].clock);
		EXPECT_TAIL(timers.value[i]);
	}
	EXPECT_EQ((1ULL << TIMERS) - 1, seen);
	EXPECT_GUARD(timers);
}

/* Waits until all timers have expired. wh_wait_events() belongs to neither version. */
static bool all_expired(int fd)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;
	struct twheel_info info;

	while (!twheel_info(fd, &info) && now_ns() < end) {
		if (info.nr_events == TIMERS)
			return true;
		sleep_ns(MSEC);
	}
	return false;
}

/* Reads a part of the events, and then the rest, into more room than they need. */
TEST_F(sizes, read)
{
	GUARDED(struct twheel_event, events, [TIMERS]);
	int i, n = TIMERS - 5;

	ASSERT_EQ(0, add_timers(self->fd, true));
	ASSERT_EQ(true, all_expired(self->fd));
	ASSERT_EQ(n, twheel_read(self->fd, events.value, n));
	EXPECT_EQ(true, all_bytes(&events.value[n], 5 * sizeof(events.value[0]), GUARD));
	ASSERT_EQ(5, twheel_read(self->fd, &events.value[n], TIMERS));
	for (i = 0; i < TIMERS; i++) {
		EXPECT_EQ(i, events.value[i].seq);
		EXPECT_EQ(i, events.value[i].user_data);
		EXPECT_EQ(1, events.value[i].deadline);
		EXPECT_EQ(TWHEEL_LIMIT_DEADLINE, events.value[i].reason);
		EXPECT_TAIL(events.value[i]);
	}
	EXPECT_GUARD(events);
}

/* Fills a batch: each timer is added, and then re-armed by its key. */
static void fill_batch(struct twheel_batch *batch, struct twheel_op *ops)
{
	int i;

	twheel_batch_init(batch, ops, 2 * TIMERS);
	for (i = 0; i < TIMERS; i++) {
		twheel_batch_add(batch, HOUR, TWHEEL_KEYED, i)->key = i;
		twheel_batch_rearm(batch, i, 2 * HOUR, TWHEEL_BY_KEY);
	}
}

static void expect_done(struct __test_metadata *_metadata, const struct twheel_op *ops)
{
	int i;

	for (i = 0; i < TIMERS; i++) {
		EXPECT_EQ(TWHEEL_WAS_ABSENT, ops[2 * i].result);
		EXPECT_NE(0, ops[2 * i].handle);
		EXPECT_EQ(i, ops[2 * i].key);
		EXPECT_EQ(TWHEEL_WAS_PENDING, ops[2 * i + 1].result);
	}
}

TEST_F(sizes, batch)
{
	GUARDED(struct twheel_op, ops, [2 * TIMERS]);
	struct twheel_batch batch;

	fill_batch(&batch, ops.value);
	ASSERT_EQ(2 * TIMERS, twheel_batch_submit(self->fd, &batch, 0));
	expect_done(_metadata, ops.value);
	EXPECT_GUARD(ops);
}

TEST_F(sizes, batch_through_io_uring)
{
	GUARDED(struct twheel_op, ops, [2 * TIMERS]);
	struct twheel_batch batch;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
	fill_batch(&batch, ops.value);
	sqe = io_uring_get_sqe(&ring);
	ASSERT_NE(NULL, sqe);
	twheel_uring_prep_submit(sqe, self->fd, &batch, 0);
	ASSERT_EQ(1, io_uring_submit(&ring));
	ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
	EXPECT_EQ(2 * TIMERS, cqe->res);
	expect_done(_metadata, ops.value);
	EXPECT_GUARD(ops);
	io_uring_queue_exit(&ring);
}

#ifdef TWHEEL_LONGER
/* A field that the program sets, and an older kernel does not know, is not silently dropped. */
TEST_F(sizes, something_in_an_unknown_tail)
{
	struct twheel_timer_add add = { .time = HOUR, .clock = CLOCK_MONOTONIC, .added = { 0, 1 } };
	struct twheel_timer_rearm rearm = { .time = HOUR, .added = { 1 } };
	struct twheel_setup setup = { .max_timers = 1, .added = { 1 } };
	struct twheel_batch batch;
	struct twheel_info info;
	struct twheel_op op;

	EXPECT_EQ(-E2BIG, twheel_timer_add(self->fd, &add));
	EXPECT_EQ(-E2BIG, twheel_setup(self->fd, &setup));
	twheel_batch_init(&batch, &op, 1);
	twheel_batch_add(&batch, HOUR, 0, 0)->added[1] = 1;
	EXPECT_EQ(1, twheel_batch_submit(self->fd, &batch, 0));
	EXPECT_EQ(-E2BIG, op.result);
	ASSERT_EQ(0, twheel_info(self->fd, &info));
	EXPECT_EQ(0, info.nr_timers);
	EXPECT_NE(1, info.max_timers);
	ASSERT_EQ(0, twheel_add(self->fd, HOUR, 0, 1, (uint64_t *)&rearm.handle));
	EXPECT_EQ(-E2BIG, twheel_timer_rearm(self->fd, &rearm));
}
#endif

TEST_HARNESS_MAIN
