// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets of softirqs: what they arm anew, what they expire, whom they wake, and what they leave to
 * workers
 */
#include "budget_test.h"

/* Contexts, and instances of epoll. */
#define CONTEXTS	64
#define MANY_WAIT	200
/* Instances of epoll that have another one. */
#define NESTED		400
/* Timers that come up at once, more than one softirq works off. */
#define MANY		10000

/* Gives a context a touch array, and as many timers, with the same idle timeout. */
static struct twheel_touch *add_touched(struct __test_metadata *_metadata, int fd, unsigned int n,
					__u64 idle)
{
	struct twheel_op *ops = calloc(n, sizeof(*ops));
	struct twheel_touch *touch;
	struct twheel_setup setup;
	unsigned int i;

	ASSERT_NE(NULL, ops);
	ASSERT_EQ(0, wh_setup(fd, 0, n, &setup));
	touch = wh_map(fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, touch);
	for (i = 0; i < n; i++) {
		ops[i].opcode = TWHEEL_OP_ADD;
		ops[i].time = TWHEEL_TIME_NONE;
		ops[i].flags = TWHEEL_TOUCHED;
		ops[i].clock = CLOCK_MONOTONIC;
		ops[i].idle = idle;
		ops[i].touch = i;
	}
	ASSERT_EQ(n, wh_submit(fd, ops, n, sizeof(*ops), 0));
	free(ops);
	return touch;
}

/* Stores in all words of some arrays, for so long. */
static void keep_touching(struct twheel_touch **touch, unsigned int arrays, unsigned int n,
			  __u64 ns)
{
	const __u64 end = now_ns() + ns;
	unsigned int i, k;

	while (now_ns() < end)
		for (i = 0; i < arrays; i++)
			for (k = 0; k < n; k++)
				__atomic_store_n(&touch[i]->words[k], touch[0]->now,
						 __ATOMIC_RELAXED);
}

/* Timers that a softirq leaves to a worker. */
TEST_F(budgets, of_the_worker_of_timers_that_are_postponed)
{
	const struct section section = {
		.step		= "handle_due_timer",
		.step_from	= "expire_postponed_work",
		.end		= UNLOCK,
		.all_tasks	= true,
	};
	struct twheel_touch *touch;
	struct steps steps;

	ASSERT_EQ(true, begin(&section));
	/* They come up at once, again and again. */
	touch = add_touched(_metadata, self->fd, N, 300 * MSEC);
	keep_touching(&touch, 1, N, SEC);
	steps = finish(&section);
	EXPECT_LT(32, steps.all);
	EXPECT_GE(32, steps.most);
}

TEST_F(budgets, of_a_context_in_a_tick)
{
	const struct section section = armed_anew();
	struct twheel_touch *touch;
	struct steps steps;

	ASSERT_EQ(true, begin(&section));
	touch = add_touched(_metadata, self->fd, N, 100 * MSEC);
	keep_touching(&touch, 1, N, SEC);
	steps = finish(&section);
	EXPECT_LT(64, steps.all);
	EXPECT_GE(64 + MARGIN, steps.most);
}

/* They are due at each tick, and their program reads at once. */
TEST_F(budgets, of_periodic_timers_with_a_ring)
{
	const struct section section = armed_anew();
	struct twheel_timer_add add = { .time = MSEC, .period = 1, .clock = CLOCK_MONOTONIC };
	const __u64 end = now_ns() + SEC;
	struct twheel_setup setup;
	struct twheel_ring *ring;
	struct steps steps;
	int i;

	ASSERT_EQ(0, wh_setup(self->fd, 65536, 0, &setup));
	ring = wh_map(self->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, ring);
	ASSERT_EQ(true, begin(&section));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	while (now_ns() < end)
		__atomic_store_n(&ring->tail, __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	steps = finish(&section);
	EXPECT_LT(64, steps.all);
	EXPECT_GE(64 + MARGIN, steps.most);
	EXPECT_EQ(0, munmap(ring, setup.ring_bytes));
}

/* As many contexts as descriptors. */
TEST_F_TIMEOUT(budgets, of_all_contexts_in_a_tick, TIMEOUT)
{
	const struct section section = armed_anew();
	struct twheel_touch *touch[CONTEXTS];
	struct steps steps;
	cpu_set_t cpu;
	int i, fd;

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpu), &cpu));
	for (i = 0; i < CONTEXTS; i++) {
		fd = wh_open(0);
		ASSERT_LE(0, fd);
		/* To begin may take a while, on a host that is busy. */
		touch[i] = add_touched(_metadata, fd, 60, 4 * SEC);
	}
	ASSERT_EQ(true, begin(&section));
	keep_touching(touch, CONTEXTS, 60, 6 * SEC);
	steps = finish(&section);
	EXPECT_LT(256, steps.all);
	EXPECT_GE(256 + MARGIN, steps.most);
}

/* Counts who is woken, by all, or by the worker. All of them are. */
static struct steps wake_many(struct __test_metadata *_metadata, int fd,
			      const struct section *section)
{
	struct steps steps;
	int epoll[MANY_WAIT], i;

	for (i = 0; i < MANY_WAIT; i++)
		epoll[i] = wh_epoll(fd, EPOLLIN);
	ASSERT_EQ(true, begin(section));
	add_timers(_metadata, fd, now_ns() + 200 * MSEC, ABS, NULL, 100);
	for (i = 0; i < MANY_WAIT; i++)
		EXPECT_EQ(1, woken(epoll[i]));
	steps = finish(section);
	for (i = 0; i < MANY_WAIT; i++)
		close(epoll[i]);
	return steps;
}

TEST_F_TIMEOUT(budgets, of_many_who_wait_in_a_softirq, TIMEOUT)
{
	const struct section section = {
		.step		= "ep_poll_callback",
		.end		= "twheel_utimer_expired",
		.all_tasks	= true,
		.softirqs	= true,
	};

	EXPECT_GE(64, wake_many(_metadata, self->fd, &section).most);
}

TEST_F_TIMEOUT(budgets, of_many_who_wait_for_the_worker, TIMEOUT)
{
	const struct section section = {
		.step		= "ep_poll_callback",
		.end		= "wake_batch_work",
		.all_tasks	= true,
		.tasks		= true,
	};
	struct steps steps = wake_many(_metadata, self->fd, &section);

	/* But for those whom the softirq has woken. */
	EXPECT_LE(MANY_WAIT - 64, steps.all);
	EXPECT_GE(64, steps.most);
}

/* What is too much for one softirq has another one. */
TEST_F(budgets, of_a_softirq)
{
	const struct section section = {
		.step		= "twheel_utimer_expired",
		.end		= "twheel_expiry_tick",
		.all_tasks	= true,
	};
	/* A chunk of entries is worked off whole. */
	const unsigned int budget = file_number(PARAMETERS "budget") + 5;
	struct steps steps;

	ASSERT_EQ(true, begin(&section));
	add_timers(_metadata, self->fd, now_ns() + 2 * SEC, ABS, NULL, MANY);
	ASSERT_EQ(true, wh_wait_events(self->fd, MANY));
	steps = finish(&section);
	EXPECT_EQ(MANY, steps.all);
	EXPECT_GE(budget, steps.most);
}

/* A tick, or a softirq, has the end of one jiffy, all of a short one, and the start of another. */
#define JIFFIES		3

/* However many events there are, so many are woken for them with interrupts off. */
TEST_F_TIMEOUT(budgets, of_wakes_for_a_context, TIMEOUT)
{
	const struct section section = {
		.step		= "ep_poll_callback",
		.all_tasks	= true,
		.softirqs	= true,
	};
	struct steps steps;
	int i;

	for (i = 0; i < 60; i++)
		ASSERT_LE(0, wh_epoll(self->fd, EPOLLIN));
	ASSERT_EQ(true, begin(&section));
	add_timers(_metadata, self->fd, now_ns() + 2 * SEC, ABS, NULL, MANY);
	ASSERT_EQ(true, wh_wait_events(self->fd, MANY));
	steps = finish(&section);
	/* As many as there is time for. */
	EXPECT_LT(0, steps.all);
	EXPECT_GE(JIFFIES * 64, steps.most);
}

/* All contexts of a CPU have the same softirqs. */
TEST_F_TIMEOUT(budgets, of_wakes_for_all_contexts, TIMEOUT)
{
	const struct section section = {
		.step		= "ep_poll_callback",
		.end		= "twheel_expiry_tick",
		.all_tasks	= true,
		.softirqs	= true,
	};
	const __u64 time = now_ns() + 4 * SEC;
	struct steps steps;
	int fd, i, j;

	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, pin(0));
	for (i = 0; i < 40; i++) {
		fd = wh_open(0);
		ASSERT_LE(0, fd);
		for (j = 0; j < 50; j++)
			ASSERT_LE(0, wh_epoll(fd, EPOLLIN));
		add_timers(_metadata, fd, time, ABS, NULL, 1);
	}
	ASSERT_EQ(true, begin(&section));
	sleep_ns(time + SEC - now_ns());
	steps = finish(&section);
	EXPECT_LT(0, steps.all);
	EXPECT_GE(JIFFIES * 256, steps.most);
}

/* Who waits may be an epoll that others have: all of them are woken with it. */
TEST_F_TIMEOUT(budgets, of_nested_epolls, TIMEOUT)
{
	const struct section section = {
		.step		= "ep_poll_callback",
		.all_tasks	= true,
		.softirqs	= true,
	};
	struct steps steps;
	int epoll, i;

	ASSERT_EQ(0, many_files());
	epoll = wh_epoll(self->fd, EPOLLIN);
	ASSERT_LE(0, epoll);
	for (i = 0; i < NESTED; i++)
		ASSERT_LE(0, wh_epoll(epoll, EPOLLIN));
	ASSERT_EQ(true, begin(&section));
	add_timers(_metadata, self->fd, now_ns() + 2 * SEC, ABS, NULL, MANY);
	ASSERT_EQ(true, wh_wait_events(self->fd, MANY));
	steps = finish(&section);
	EXPECT_LE(NESTED, steps.all);
	/* By their time: one or a few in a jiffy, not all of them for each event. */
	EXPECT_GE(MANY / 100 * NESTED, steps.all);
}

/*
 * A wheel on which nothing happens, and which has free chunks but no page to give back, has been
 * trimmed after three intervals of 4 s, or somewhat more, and its CPU is left alone.
 */
TEST_F_TIMEOUT(budgets, of_a_wheel_that_is_idle, TIMEOUT)
{
	static __u64 handles[4 * N];
	int list[8], i, round, nr = cpus(list, ARRAY_SIZE(list));
	unsigned int works[2];

	ASSERT_LT(1, nr);
	ASSERT_EQ(0, pin(list[1]));
	for (i = 0; i < 4 * N; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR + i, 0, i, &handles[i]));
	for (i = 0; i < 4 * N; i++)
		if (i % 64)
			ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i]));
	ASSERT_EQ(0, pin(list[0]));
	sleep_ns(17 * SEC);
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(true, trace_works("1"));
		for (i = 0; i < 10; i++) {
			/* The shrinker is called as well. */
			ASSERT_EQ(0, file_write("/proc/sys/vm/drop_caches", 2));
			sleep_ns(900 * MSEC);
		}
		ASSERT_EQ(true, trace_works("0"));
		/* At first, the shrinker may ask each CPU for what was kept, and once more. */
		works[round] = count_works("handle_request").all;
	}
	EXPECT_GE(2 * nr, works[0]);
	/* The trace has gone on where it was. */
	EXPECT_EQ(works[0], works[1]);
	/* What becomes free now is given back. */
	for (i = 0; i < 4 * N; i += 64)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i]));
	ASSERT_EQ(0, file_write("/proc/sys/vm/drop_caches", 2));
	sleep_ns(100 * MSEC);
	EXPECT_GE(63, cpu_number(list[1], "chunks"));
}

TEST_HARNESS_MAIN
