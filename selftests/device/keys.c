// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers named by the program: a key names whichever timer has it now, and an add ensures that
 * there is exactly one.
 */
#include "twheel_test.h"

FIXTURE(keys)
{
	int fd;
};

FIXTURE_SETUP(keys)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	random_seed();
}

FIXTURE_TEARDOWN(keys)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Reads the one event that must come, and checks it. */
static void expect_event(struct __test_metadata *_metadata, int fd, __u64 handle, __u64 user_data)
{
	struct twheel_event event;

	ASSERT_EQ(true, wh_wait(fd));
	ASSERT_EQ(1, wh_read(fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(user_data, event.user_data);
}

/* Checks that no timer has the key, as every call sees it. */
static void expect_absent(struct __test_metadata *_metadata, int fd, __u64 key)
{
	struct twheel_timer_query query;

	EXPECT_EQ(-ENOENT, wh_query_key(fd, key, &query)) TH_LOG("key %llx", key);
	EXPECT_EQ(-ENOENT, wh_cancel_key(fd, key)) TH_LOG("key %llx", key);
	EXPECT_EQ(-ENOENT, wh_rearm_key(fd, key, HOUR, 0)) TH_LOG("key %llx", key);
}

static void expect_user_data(struct __test_metadata *_metadata, int fd, __u64 key, __u64 user_data)
{
	struct twheel_timer_query query;

	ASSERT_EQ(0, wh_query_key(fd, key, &query)) TH_LOG("key %llx", key);
	EXPECT_EQ(user_data, query.user_data) TH_LOG("key %llx", key);
	EXPECT_EQ(TWHEEL_KEYED, query.flags);
	EXPECT_EQ(key, query.key);
}

TEST_F(keys, what_an_add_finds)
{
	struct twheel_timer_query query;
	__u64 first, second, third;

	expect_absent(_metadata, self->fd, 7);
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 7, HOUR, 0, 1, &first));
	expect_user_data(_metadata, self->fd, 7, 1);
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_set(self->fd, 7, 0, 0, 2, &second));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	expect_user_data(_metadata, self->fd, 7, 2);
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_set(self->fd, 7, 2 * HOUR, 0, 3, &third));
	EXPECT_EQ(0, wh_nr_events(self->fd));
	EXPECT_EQ(false, wh_ready(self->fd));
	expect_user_data(_metadata, self->fd, 7, 3);
	EXPECT_EQ(1, wh_nr_timers(self->fd));

	/* The latest handle names the timer as well, and a query by key returns this handle. */
	ASSERT_EQ(0, wh_query(self->fd, third, &query));
	EXPECT_EQ(3, query.user_data);
	EXPECT_EQ(7, query.key);
	EXPECT_EQ(TWHEEL_KEYED, query.flags);
	ASSERT_EQ(0, wh_query_key(self->fd, 7, &query));
	EXPECT_EQ(third, query.handle);
	if (first != third)
		EXPECT_EQ(-ENOENT, wh_state(self->fd, first));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, third));
	expect_absent(_metadata, self->fd, 7);
	EXPECT_EQ(-ENOENT, wh_state(self->fd, third));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(keys, moved_and_cancelled_by_key)
{
	struct twheel_timer_query query;
	__u64 handle, deadline = now_ns() + HOUR;

	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 1, HOUR, 0, 1, &handle));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm_key(self->fd, 1, deadline, ABS));
	ASSERT_EQ(0, wh_query_key(self->fd, 1, &query));
	EXPECT_EQ(handle, query.handle);
	EXPECT_EQ(deadline, query.deadline);
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm_key(self->fd, 1, 0, 0));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(0, wh_query_key(self->fd, 1, &query));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, query.state);
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_rearm_key(self->fd, 1, 0, 0));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel_key(self->fd, 1));
	expect_absent(_metadata, self->fd, 1);
	EXPECT_EQ(-ENOENT, wh_cancel(self->fd, handle));
	EXPECT_EQ(0, wh_nr_events(self->fd));
}

TEST_F(keys, free_again_after_the_delivery)
{
	__u64 first, second;

	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 9, 0, 0, 1, &first));
	expect_event(_metadata, self->fd, first, 1);
	/* A call by key never fails with EALREADY: a key names the timer that has it now. */
	expect_absent(_metadata, self->fd, 9);
	EXPECT_EQ(-EALREADY, wh_cancel(self->fd, first));
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 9, 0, 0, 2, &second));
	EXPECT_NE(first, second);
	expect_event(_metadata, self->fd, second, 2);
	expect_absent(_metadata, self->fd, 9);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(keys, set_again_after_a_drain)
{
	__u64 cursor = 0, handle;

	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 3, HOUR, 0, 1, NULL));
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 4, 0, 0, 2, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(2, wh_drain(self->fd, NULL, 100, sizeof(struct twheel_timer_query), &cursor));
	ASSERT_EQ(0, wh_drain(self->fd, NULL, 100, sizeof(struct twheel_timer_query), &cursor));
	expect_absent(_metadata, self->fd, 3);
	expect_absent(_metadata, self->fd, 4);
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 3, 0, 0, 3, &handle));
	expect_event(_metadata, self->fd, handle, 3);
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 4, 0, 0, 4, &handle));
	expect_event(_metadata, self->fd, handle, 4);
}

TEST_F(keys, any_number_is_a_key)
{
	__u64 keys[130] = { 0, ~0ULL }, handle;
	size_t i, n = ARRAY_SIZE(keys);

	for (i = 0; i < 64; i++) {
		keys[2 + i] = 1ULL << i;
		keys[66 + i] = ~(1ULL << i);
	}
	for (i = 0; i < n; i++)
		ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, keys[i], HOUR, 0, i, NULL));
	EXPECT_EQ(n, wh_nr_timers(self->fd));
	for (i = 0; i < n; i++)
		expect_user_data(_metadata, self->fd, keys[i], i);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_set(self->fd, keys[i], 0, 0, i, &handle));
		expect_event(_metadata, self->fd, handle, i);
		expect_absent(_metadata, self->fd, keys[i]);
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/* Asks for events that have the timer's key, if it has one, in place of its handle. */
static int name_events_by_key(int fd)
{
	struct twheel_setup setup = { .flags = TWHEEL_SETUP_EVENT_KEYS };

	return wh_ioctl(fd, TWHEEL_IOC_SETUP, &setup);
}

TEST_F(keys, events_by_key)
{
	struct twheel_timer_add idle = {
		.idle = MSEC, .flags = TWHEEL_KEYED, .key = ~0ULL, .user_data = 3,
	};
	struct twheel_timer_add periodic = {
		.time = MSEC, .period = HOUR, .clock = CLOCK_MONOTONIC, .flags = TWHEEL_KEYED,
		.user_data = 4,
	};
	struct twheel_setup setup;
	struct twheel_event event;
	__u64 handle, unused;

	/* One that has expired before, and one without a key. */
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 7, 0, 0, 1, &unused));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(0, name_events_by_key(self->fd));
	ASSERT_EQ(0, wh_setup(self->fd, 0, 0, &setup));
	expect_event(_metadata, self->fd, 7, 1);
	ASSERT_EQ(0, wh_add(self->fd, MSEC, 0, 2, &handle));
	expect_event(_metadata, self->fd, handle, 2);

	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_add_timer(self->fd, &idle));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(~0ULL, event.handle);
	EXPECT_EQ(3, event.user_data);
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
	/* The timer is still there, for the next period. */
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_add_timer(self->fd, &periodic));
	expect_event(_metadata, self->fd, 0, 4);
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel_key(self->fd, 0));
}

TEST_F(keys, events_by_key_in_a_ring)
{
	struct twheel_setup setup = {
		.flags = TWHEEL_SETUP_EVENT_KEYS, .ring_entries = 8,
	};
	struct twheel_ring *ring;

	ASSERT_EQ(0, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	ring = wh_map(self->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, ring);
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 7, MSEC, 0, 1, NULL));
	ASSERT_EQ(true, wh_wait(self->fd));
	EXPECT_EQ(7, ring->events[0].handle);
	EXPECT_EQ(1, ring->events[0].user_data);
	/* The key is free again. */
	EXPECT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 7, HOUR, 0, 2, NULL));
	EXPECT_EQ(0, munmap(ring, setup.ring_bytes));
}

/* An event that waits for a read() when the ring is made has the key in the ring. */
TEST_F(keys, events_by_key_that_move_to_a_ring)
{
	struct twheel_setup setup = {
		.flags = TWHEEL_SETUP_EVENT_KEYS, .ring_entries = 1,
	};
	struct twheel_ring *ring;

	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 7, 0, 0, 1, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(0, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	ring = wh_map(self->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, ring);
	EXPECT_EQ(1, ring->head);
	EXPECT_EQ(7, ring->events[0].handle);
	EXPECT_EQ(1, ring->events[0].user_data);
	EXPECT_EQ(0, munmap(ring, setup.ring_bytes));
}

/* An event that is in the ring already does not change; one that did not fit yet has the key. */
TEST_F(keys, events_by_key_when_a_ring_is_full)
{
	struct twheel_setup setup;
	struct twheel_ring *ring;
	__u64 handle;

	ASSERT_EQ(0, wh_setup(self->fd, 1, 0, &setup));
	ring = wh_map(self->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, ring);
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 7, 0, 0, 1, &handle));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 8, 0, 0, 2, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(0, name_events_by_key(self->fd));
	EXPECT_EQ(handle, ring->events[0].handle);
	__atomic_store_n(&ring->tail, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(true, wh_wait(self->fd));
	EXPECT_EQ(8, ring->events[0].handle);
	EXPECT_EQ(2, ring->events[0].user_data);
	EXPECT_EQ(0, munmap(ring, setup.ring_bytes));
}

/* A call that fails does not set the flag. */
TEST_F(keys, events_by_key_if_asked_for)
{
	struct twheel_setup setup = {
		.flags = TWHEEL_SETUP_EVENT_KEYS, .ring_entries = 3,
	};
	__u64 handle;

	EXPECT_EQ(-EINVAL, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 7, MSEC, 0, 1, &handle));
	expect_event(_metadata, self->fd, handle, 1);
}

/* A handle is no key and a key no handle, and timers without a key have none. */
TEST_F(keys, other_names)
{
	struct twheel_timer_query query;
	__u64 plain, keyed;

	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &plain));
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 2, HOUR, 0, 2, &keyed));
	expect_absent(_metadata, self->fd, plain);
	expect_absent(_metadata, self->fd, keyed);
	expect_absent(_metadata, self->fd, 0);
	EXPECT_EQ(-ENOENT, wh_cancel(self->fd, 2));
	ASSERT_EQ(0, wh_query(self->fd, plain, &query));
	EXPECT_EQ(0, query.flags);
	EXPECT_EQ(0, query.key);
	/* The handle of one timer used as the key of another. */
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, plain, HOUR, 0, 3, NULL));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel_key(self->fd, plain));
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, plain));
	EXPECT_EQ(2, wh_nr_timers(self->fd));
}

TEST_F(keys, contexts_have_their_own)
{
	int other = wh_open(O_NONBLOCK);
	__u64 mine, theirs;

	ASSERT_GE(other, 0);
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 5, HOUR, 0, 1, &mine));
	expect_absent(_metadata, other, 5);
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(other, 5, 0, 0, 2, &theirs));
	expect_event(_metadata, other, theirs, 2);
	expect_user_data(_metadata, self->fd, 5, 1);
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(other, 5, HOUR, 0, 3, NULL));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel_key(self->fd, 5));
	expect_user_data(_metadata, other, 5, 3);
	EXPECT_EQ(0, close(other));
}

/* How long until a timer expires. */
static __u64 delay_of(const struct twheel_timer_add *add)
{
	__u64 min = add->time;

	if (add->idle && add->idle < min)
		min = add->idle;
	return add->lifetime && add->lifetime < min ? add->lifetime : min;
}

/* Whatever kind a key's timer was, an add changes it to the new kind, and it is still one timer. */
TEST_F_TIMEOUT(keys, of_another_kind, 60)
{
	const struct twheel_timer_add kinds[] = {
		{ .time = HOUR },
		{ .time = HOUR, .period = HOUR },
		{ .time = TWHEEL_TIME_NONE, .idle = HOUR },
		{ .time = HOUR, .idle = HOUR, .lifetime = 3 * HOUR },
		{ .time = HOUR, .clock = CLOCK_BOOTTIME },
		{ .time = HOUR, .slack = SEC, .spread = SEC },
		{ .time = 0 },
		{ .time = 0, .period = HOUR },
		{ .time = TWHEEL_TIME_NONE, .idle = 1 },
		{ .time = TWHEEL_TIME_NONE, .lifetime = 1 },
		{ .time = 0, .clock = CLOCK_BOOTTIME },
	};
	const size_t n = ARRAY_SIZE(kinds), expiring = 6;
	struct twheel_context_stats stats;
	struct twheel_timer_query query;
	struct twheel_timer_add add;
	__u64 before, after;
	size_t from, to;

	for (from = 0; from < n; from++) {
		for (to = 0; to < n; to++) {
			add = kinds[from];
			add.clock = add.clock ?: CLOCK_MONOTONIC;
			add.flags = TWHEEL_KEYED;
			add.key = 11;
			add.user_data = 1;
			ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_add_timer(self->fd, &add));
			ASSERT_EQ(true, wh_wait_events(self->fd, from >= expiring));
			add = kinds[to];
			add.clock = add.clock ?: CLOCK_MONOTONIC;
			add.flags = TWHEEL_KEYED;
			add.key = 11;
			add.user_data = 2;
			before = clock_ns(add.clock);
			ASSERT_EQ(from >= expiring ? TWHEEL_WAS_EXPIRED : TWHEEL_WAS_PENDING,
				  wh_add_timer(self->fd, &add))
				TH_LOG("from %zu to %zu", from, to);
			after = clock_ns(add.clock);
			ASSERT_EQ(1, wh_nr_timers(self->fd));
			ASSERT_EQ(true, wh_wait_events(self->fd, to >= expiring))
				TH_LOG("from %zu to %zu", from, to);
			ASSERT_EQ(0, wh_query_key(self->fd, 11, &query));
			EXPECT_EQ(add.handle, query.handle);
			EXPECT_EQ(2, query.user_data);
			EXPECT_EQ(kinds[to].period, query.period);
			EXPECT_EQ(add.clock, query.clock);
			EXPECT_EQ(to >= expiring ? TWHEEL_STATE_EXPIRED : TWHEEL_STATE_PENDING,
				  query.state);
			EXPECT_LE(before + delay_of(&add), query.deadline)
				TH_LOG("from %zu to %zu", from, to);
			EXPECT_GE(after + delay_of(&add) + add.slack + add.spread, query.deadline)
				TH_LOG("from %zu to %zu", from, to);
			ASSERT_EQ(to >= expiring ? TWHEEL_WAS_EXPIRED : TWHEEL_WAS_PENDING,
				  wh_cancel_key(self->fd, 11));
			ASSERT_EQ(0, wh_nr_timers(self->fd));
			ASSERT_EQ(0, wh_nr_events(self->fd));
		}
	}
	/* Each add is counted as an add or as a re-arm; and each timer has been cancelled. */
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(2 * n * n, stats.adds + stats.rearms);
	EXPECT_EQ(stats.adds, stats.cancels);
	EXPECT_EQ(stats.expiries, stats.taken_back);
}

/* An add that is rejected leaves the key's timer as it is. */
TEST_F(keys, a_refused_add_changes_nothing)
{
	struct twheel_timer_add add = {
		.time	= HOUR,
		.flags	= TWHEEL_KEYED,
		.clock	= CLOCK_MONOTONIC,
		.key	= 1,
		.period	= SEC,
		.idle	= SEC,
	};
	struct twheel_setup setup = { .max_timers = 2 };
	struct wh_view before, after;
	__u64 pending, expired;

	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 1, HOUR, 0, 1, &pending));
	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, 2, 0, 0, 2, &expired));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(0, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ(0, wh_look(self->fd, pending, expired, &before));
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	add.key = 2;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	EXPECT_EQ(-ENOSPC, wh_set(self->fd, 3, HOUR, 0, 3, NULL));
	expect_absent(_metadata, self->fd, 3);
	ASSERT_EQ(0, wh_look(self->fd, pending, expired, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	/* But a full context can still re-arm its timers, as any kind. */
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_set(self->fd, 1, 2 * HOUR, 0, 1, NULL));
	add.idle = 0;
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, wh_add_timer(self->fd, &add));
	EXPECT_EQ(2, wh_nr_timers(self->fd));
}

/**
 * struct model - what the test knows about a key
 * @handle:	the latest handle, if there is a timer
 * @there:	there is a timer
 * @near:	it may have expired
 * @user_data:	the latest user data
 */
struct model {
	__u64	handle;
	bool	there;
	bool	near;
	__u64	user_data;
};

#define MODELS 300

/* Is this what a call for this timer may return? */
static bool is_right_verdict(const struct model *model, int ret)
{
	if (!model->there)
		return ret == -ENOENT;
	return ret == TWHEEL_WAS_PENDING || (model->near && ret == TWHEEL_WAS_EXPIRED);
}

static void model_read(struct __test_metadata *_metadata, FIXTURE_DATA(keys) * self,
		       struct model *models)
{
	struct twheel_event events[64];
	struct model *model;
	int i, n;

	while ((n = wh_read(self->fd, events, 64)) > 0) {
		for (i = 0; i < n; i++) {
			EXPECT_EVENT_OK(&events[i]);
			ASSERT_GT(MODELS, events[i].user_data >> 32);
			model = &models[events[i].user_data >> 32];
			ASSERT_EQ(true, model->there);
			ASSERT_EQ(true, model->near);
			ASSERT_EQ(model->user_data, events[i].user_data);
			ASSERT_EQ(model->handle, events[i].handle);
			model->there = false;
		}
	}
	ASSERT_EQ(-EAGAIN, n);
}

/* Keys that agree in most of their bits. */
static __u64 model_key(size_t i)
{
	return (i << 56) + (i & 7) + (i >> 5 << 20);
}

TEST_F_TIMEOUT(keys, against_a_model, 90)
{
	static struct model models[MODELS];
	struct twheel_timer_query query;
	struct twheel_timer_add add;
	struct model *model;
	size_t i, step, there;
	int ret;

	for (step = 0; step < 60000; step++) {
		i = random_below(MODELS);
		model = &models[i];
		if (!(step & 63))
			model_read(_metadata, self, models);
		switch (random_below(4)) {
		case 0:
			memset(&add, 0, sizeof(add));
			model->near = !random_below(3);
			add.time = model->near ? random_below(20 * MSEC) : HOUR;
			add.flags = TWHEEL_KEYED;
			add.key = model_key(i);
			add.user_data = i << 32 | (step & 0xffffffff);
			add.clock = CLOCK_MONOTONIC;
			/* Of both kinds, basic and extended. */
			add.lifetime = random_below(2) ? 2 * HOUR : 0;
			ret = wh_add_timer(self->fd, &add);
			ASSERT_EQ(!model->there, ret == TWHEEL_WAS_ABSENT);
			ASSERT_LE(0, ret);
			ASSERT_GE(TWHEEL_WAS_ABSENT, ret);
			model->there = true;
			model->handle = add.handle;
			model->user_data = add.user_data;
			break;
		case 1:
			ret = wh_rearm_key(self->fd, model_key(i), HOUR, 0);
			ASSERT_EQ(true, is_right_verdict(model, ret)) TH_LOG("re-arm: %d", ret);
			model->near = false;
			break;
		case 2:
			if (random_below(2) || !model->there)
				ret = wh_cancel_key(self->fd, model_key(i));
			else
				ret = wh_cancel(self->fd, model->handle);
			ASSERT_EQ(true, is_right_verdict(model, ret)) TH_LOG("cancel: %d", ret);
			model->there = false;
			break;
		case 3:
			ret = wh_query_key(self->fd, model_key(i), &query);
			ASSERT_EQ(model->there ? 0 : -ENOENT, ret);
			if (ret)
				break;
			ASSERT_EQ(model->handle, query.handle);
			ASSERT_EQ(model->user_data, query.user_data);
			break;
		}
	}
	sleep_ns(25 * MSEC);
	model_read(_metadata, self, models);
	for (there = i = 0; i < MODELS; i++)
		there += models[i].there;
	EXPECT_EQ(there, wh_nr_timers(self->fd));
}

TEST_F_TIMEOUT(keys, very_many, 120)
{
	size_t i, n = very_many();
	const __u64 odd = random_u64() | 1;
	struct twheel_event event;

	/* Multiplying by an odd number permutes the keys. */
	for (i = 0; i < n; i++)
		ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, i * odd, HOUR, 0, i, NULL));
	EXPECT_EQ(n, wh_nr_timers(self->fd));
	for (i = 0; i < n; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_set(self->fd, i * odd, 2 * HOUR, 0, n + i, NULL));
	EXPECT_EQ(n, wh_nr_timers(self->fd));
	for (i = 0; i < n; i += 97)
		expect_user_data(_metadata, self->fd, i * odd, n + i);
	for (i = 0; i < n; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel_key(self->fd, i * odd));
	for (i = 0; i < n; i += 97)
		expect_absent(_metadata, self->fd, i * odd);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
}

#define RIVALS		4
#define RIVAL_KEYS	2000

/**
 * struct rivals - threads that set the same keys
 * @fd:		the context
 * @barrier:	where the threads start together
 * @absent:	adds that found nothing
 * @faults:	calls that returned a wrong result
 */
struct rivals {
	int			fd;
	pthread_barrier_t	barrier;
	unsigned int		absent;
	unsigned int		faults;
};

static void *run_rival(void *arg)
{
	struct rivals *rivals = arg;
	__u64 key;
	int ret;

	pthread_barrier_wait(&rivals->barrier);
	for (key = 0; key < RIVAL_KEYS; key++) {
		ret = wh_set(rivals->fd, key, HOUR, 0, key, NULL);
		if (ret == TWHEEL_WAS_ABSENT)
			__atomic_fetch_add(&rivals->absent, 1, __ATOMIC_RELAXED);
		else if (ret != TWHEEL_WAS_PENDING)
			__atomic_fetch_add(&rivals->faults, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The first thread adds, the others re-arm: there is one timer per key. */
TEST_F_TIMEOUT(keys, set_by_several_threads_at_once, 60)
{
	struct rivals rivals = { .fd = self->fd };
	pthread_t threads[RIVALS];
	__u64 key;
	int i;

	ASSERT_EQ(0, pthread_barrier_init(&rivals.barrier, NULL, RIVALS));
	for (i = 0; i < RIVALS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run_rival, &rivals));
	for (i = 0; i < RIVALS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, rivals.faults);
	EXPECT_EQ(RIVAL_KEYS, rivals.absent);
	EXPECT_EQ(RIVAL_KEYS, wh_nr_timers(self->fd));
	for (key = 0; key < RIVAL_KEYS; key++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel_key(self->fd, key));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_HARNESS_MAIN
