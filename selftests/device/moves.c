// SPDX-License-Identifier: GPL-2.0-only
/*
 * What timing wheels get wrong: timers that are re-armed again and again, to earlier and to later
 * times, by handle and by key; keys that are set again; moves by less than a tick. Each timer fires
 * exactly once, not before its deadline, and in the tick of its deadline.
 */
#include "twheel_test.h"

#define TIMERS	2000

/**
 * struct model - what the test knows about a timer
 * @handle:	its handle
 * @deadline:	when it is due
 * @armed:	when that was set, at the latest
 * @fired:	how often it has fired
 */
struct model {
	__u64	handle;
	__u64	deadline;
	__u64	armed;
	int	fired;
};

FIXTURE(moves)
{
	int fd;
	__u64 tick;
	__u64 latest;
	size_t checked;
	struct model models[TIMERS];
};

FIXTURE_VARIANT(moves)
{
	bool by_key;
};

FIXTURE_VARIANT_ADD(moves, by_handle)
{
	.by_key = false,
};

FIXTURE_VARIANT_ADD(moves, by_key)
{
	.by_key = true,
};

FIXTURE_SETUP(moves)
{
	struct twheel_info info;
	int list[64];

	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_info(self->fd, &info));
	self->tick = info.tick_ns;
	/* Only timers of a single CPU's wheel fire in order. */
	ASSERT_LT(0, cpus(list, 64));
	ASSERT_EQ(0, pin(list[0]));
	random_seed();
}

FIXTURE_TEARDOWN(moves)
{
	if (self->latest)
		printf("# late by %llu us at most\n", self->latest / USEC);
	fflush(stdout);
	EXPECT_EQ(0, close(self->fd));
}

static int model_add(FIXTURE_DATA(moves) * self, bool by_key, size_t i, __u64 deadline)
{
	struct model *model = &self->models[i];
	int ret;

	model->deadline = deadline;
	model->fired = 0;
	if (!by_key)
		ret = wh_add(self->fd, deadline, ABS, i, &model->handle);
	else if (wh_set(self->fd, i, deadline, ABS, i, &model->handle) == TWHEEL_WAS_ABSENT)
		ret = 0;
	else
		ret = -EPROTO;
	model->armed = now_ns();
	return ret;
}

/* Moves a timer, by its handle or by its key. The latter can be done in two ways. */
static int model_move(FIXTURE_DATA(moves) * self, bool by_key, size_t i, __u64 deadline)
{
	struct model *model = &self->models[i];
	int ret;

	model->deadline = deadline;
	if (!by_key)
		ret = wh_rearm(self->fd, model->handle, deadline, ABS);
	else if (random_below(2))
		ret = wh_rearm_key(self->fd, i, deadline, ABS);
	else
		ret = wh_set(self->fd, i, deadline, ABS, i, &model->handle);
	model->armed = now_ns();
	return ret;
}

/* The first tick that begins at or after a deadline. */
static __u64 tick_of(FIXTURE_DATA(moves) * self, __u64 deadline)
{
	return (deadline + self->tick - 1) / self->tick;
}

static void model_event(struct __test_metadata *_metadata, FIXTURE_DATA(moves) * self,
			const struct twheel_event *event)
{
	struct model *model;
	__u64 late = event->fired - event->deadline;

	EXPECT_EVENT_OK(event);
	ASSERT_GT(TIMERS, event->user_data);
	model = &self->models[event->user_data];
	ASSERT_EQ(model->handle, event->handle);
	ASSERT_EQ(model->deadline, event->deadline);
	ASSERT_EQ(0, model->fired++);
	EXPECT_PUNCTUAL(event, model->armed);
	self->latest = late > self->latest ? late : self->latest;
}

/* Was the softirq delayed? If so, timers may be out of order for some time. */
static bool was_delayed(FIXTURE_DATA(moves) * self, const struct twheel_event *event,
			__u64 last_fired)
{
	/* Half of the delay that it takes. */
	__u64 much = 8 * self->tick;

	return event->fired > event->deadline + much || event->fired > last_fired + much;
}

/*
 * Reads the events of all timers, which must come in order of their ticks, except for those that
 * were due while the softirq was delayed.
 */
static void expect_in_order(struct __test_metadata *_metadata, FIXTURE_DATA(moves) * self,
			    size_t left)
{
	struct twheel_event events[64];
	__u64 tick = 0, fired = 0, exempt = 0;
	size_t checked = 0;
	int i, n;

	while (left) {
		ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("%zu never fired", left);
		n = wh_read(self->fd, events, 64);
		for (i = 0; i < n; i++) {
			model_event(_metadata, self, &events[i]);
			if (was_delayed(self, &events[i], fired))
				exempt = events[i].fired + 32 * self->tick;
			fired = events[i].fired;
			if (events[i].deadline < exempt)
				continue;
			EXPECT_LE(tick, tick_of(self, events[i].deadline));
			tick = tick_of(self, events[i].deadline);
			checked++;
		}
		left -= n;
	}
	printf("# %zu of them came when nothing was held up\n", checked);
	self->checked += checked;
	/* No event comes twice. */
	sleep_ns(3 * self->tick);
	EXPECT_EQ(-EAGAIN, wh_read(self->fd, events, 1));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/*
 * In the end, a few timers are due in each tick: one that fired a tick late would come after one
 * that was due later.
 */
TEST_F_TIMEOUT(moves, earlier_and_later, 400)
{
	__u64 base = now_ns() + HOUR, far = 2 * HOUR, begin;
	const size_t moves = very_many();
	size_t i, move;

	for (i = 0; i < TIMERS; i++)
		ASSERT_EQ(0, model_add(self, variant->by_key, i, base + random_below(far)));
	begin = now_ns();
	for (move = 0; move < moves; move++) {
		i = random_below(TIMERS);
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  model_move(self, variant->by_key, i,
				     base + (move & 1 ? random_below(far) :
							random_magnitude(42))));
	}
	/*
	 * To soon, in several steps to earlier times and one to a later time. A quarter of the
	 * speed measured above is enough.
	 */
	base = now_ns() + 3 * SEC + 4 * 3 * TIMERS * (now_ns() - begin) / moves;
	for (i = 0; i < TIMERS; i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  model_move(self, variant->by_key, i, base + random_magnitude(38)));
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  model_move(self, variant->by_key, i, base - random_below(SEC)));
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  model_move(self, variant->by_key, i, base + random_below(500 * MSEC)));
	}
	EXPECT_EQ(TIMERS, wh_nr_timers(self->fd));
	expect_in_order(_metadata, self, TIMERS);
	/* Events that were exempt were not tested. */
	EXPECT_LT(0, self->checked);
}

/* The same while they fire: a timer that was moved in time does not fire at its old deadline. */
TEST_F_TIMEOUT(moves, while_they_fire, 400)
{
	struct twheel_event events[64];
	const size_t moves = very_many();
	unsigned int taken_back = 0;
	size_t i, move;
	__u64 end;
	int n, k, ret;

	for (i = 0; i < TIMERS; i++)
		ASSERT_EQ(0, model_add(self, variant->by_key, i,
				       now_ns() + random_magnitude(28)));
	end = now_ns() + 3 * SEC;
	for (move = 0; move < moves && now_ns() < end; move++) {
		if (!(move & 31)) {
			while ((n = wh_read(self->fd, events, 64)) > 0)
				for (k = 0; k < n; k++)
					model_event(_metadata, self, &events[k]);
		}
		i = random_below(TIMERS);
		if (self->models[i].fired) {
			ASSERT_EQ(0, model_add(self, variant->by_key, i,
					       now_ns() + random_magnitude(28)));
			continue;
		}
		ret = model_move(self, variant->by_key, i, now_ns() + random_magnitude(28));
		ASSERT_LE(0, ret);
		ASSERT_GE(TWHEEL_WAS_EXPIRED, ret);
		taken_back += ret;
	}
	printf("# %zu moves, %u events taken back\n", move, taken_back);
	for (i = 0;;) {
		while (i < TIMERS && self->models[i].fired)
			i++;
		if (i == TIMERS)
			break;
		ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("timer %zu never fired", i);
		n = wh_read(self->fd, events, 64);
		for (k = 0; k < n; k++)
			model_event(_metadata, self, &events[k]);
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(moves, by_less_than_a_tick)
{
	const __u64 distances[] = { 0, 1, self->tick / 2, self->tick - 1 };
	struct twheel_event event;
	size_t i, d, k;

	for (d = 0; d < ARRAY_SIZE(distances); d++) {
		for (i = 0; i < 50; i++) {
			ASSERT_EQ(0, model_add(self, variant->by_key, i, now_ns() + HOUR));
			ASSERT_EQ(TWHEEL_WAS_PENDING,
				  model_move(self, variant->by_key, i, now_ns() + distances[d]));
			/* And up to three times more, whether or not it has expired by then. */
			for (k = 0; k < i % 4; k++)
				ASSERT_LE(0, model_move(self, variant->by_key, i,
							now_ns() + distances[d]));
			ASSERT_EQ(true, wh_wait(self->fd));
			ASSERT_EQ(1, wh_read(self->fd, &event, 1));
			model_event(_metadata, self, &event);
		}
		sleep_ns(3 * self->tick);
		EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
		EXPECT_EQ(0, wh_nr_timers(self->fd));
	}
}

/* All timers are drained, from every level of the wheel, and set again: each fires. */
TEST_F_TIMEOUT(moves, set_again_after_a_drain, 400)
{
	__u64 cursor, base, took;
	size_t i, round;

	for (round = 0; round < 5; round++) {
		took = now_ns();
		for (i = 0; i < TIMERS; i++)
			ASSERT_EQ(0, model_add(self, variant->by_key, i,
					       now_ns() + SEC + random_magnitude(45)));
		took = now_ns() - took;
		cursor = 0;
		ASSERT_EQ(TIMERS, wh_drain(self->fd, NULL, 2 * TIMERS,
					   sizeof(struct twheel_timer_query), &cursor));
		ASSERT_EQ(0, wh_nr_timers(self->fd));
		base = now_ns() + SEC + 4 * took;
		for (i = 0; i < TIMERS; i++)
			ASSERT_EQ(0, model_add(self, variant->by_key, i,
					       base + random_below(SEC)));
		/* Otherwise they would not fire in order. */
		ASSERT_GT(base, now_ns());
		expect_in_order(_metadata, self, TIMERS);
	}
	/* Not in each round: a slow kernel, or delays in the module, may hold up a whole one. */
	EXPECT_LT(0, self->checked);
}

TEST_HARNESS_MAIN
