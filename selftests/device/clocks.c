// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clocks: CLOCK_REALTIME when it is set, CLOCK_BOOTTIME across a suspend.
 *
 * Sets the system's clock, and suspends the system as far as the kernel's suspend test does: all
 * but the last step, so that the clocks are suspended and resume later.
 */
#include "twheel_test.h"

#define STALL_UPDATES	"/sys/module/twheel_stall/parameters/update_ns"

FIXTURE(clocks)
{
	int fd;
	__u64 offset;
	__u64 tick;
};

FIXTURE_SETUP(clocks)
{
	struct twheel_info info;

	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_info(self->fd, &info));
	self->tick = info.tick_ns;
	self->offset = clock_ns(CLOCK_REALTIME) - now_ns();
	random_seed();
}

/*
 * Sets CLOCK_REALTIME to what it would show by itself, plus @more. A worker moves the timers, and
 * the next tick may come before it is done.
 */
static int set_clock(const FIXTURE_DATA(clocks) * self, __s64 more)
{
	__u64 time = now_ns() + self->offset + more;
	struct timespec ts = { .tv_sec = time / SEC, .tv_nsec = time % SEC };
	int ret;

	punctual_begin_arming();
	punctual_allow(punctual_tick());
	ret = clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
	punctual_end_arming();
	return ret;
}

FIXTURE_TEARDOWN(clocks)
{
	EXPECT_EQ(0, set_clock(self, 0));
	EXPECT_EQ(0, close(self->fd));
}

static int add_on(int fd, clockid_t clock, __u64 time, __u32 flags, __u64 user_data,
		  __u64 *handle)
{
	struct twheel_timer_add add = {
		.time		= time,
		.user_data	= user_data,
		.flags		= flags,
		.clock		= clock,
	};
	int ret = wh_add_timer(fd, &add);

	*handle = add.handle;
	return ret;
}

/* Reads the one event that must come, of a timer on @clock. */
static void expect_event(struct __test_metadata *_metadata, int fd, clockid_t clock,
			 __u64 handle, __u64 deadline)
{
	struct twheel_event event;

	ASSERT_EQ(true, wh_wait(fd));
	ASSERT_EQ(1, wh_read(fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_LE(deadline, event.fired);
	EXPECT_GE(clock_ns(clock), event.fired);
	EXPECT_EQ(TWHEEL_LIMIT_DEADLINE, event.reason);
}

TEST_F(clocks, each_counts_on_its_own)
{
	const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	struct twheel_timer_query query;
	__u64 handle, deadline, before, after;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		deadline = clock_ns(clocks[i]) + 20 * MSEC;
		ASSERT_EQ(0, add_on(self->fd, clocks[i], deadline, ABS, i, &handle));
		expect_event(_metadata, self->fd, clocks[i], handle, deadline);

		deadline = clock_ns(clocks[i]) + HOUR;
		ASSERT_EQ(0, add_on(self->fd, clocks[i], deadline, ABS, i, &handle));
		before = clock_ns(clocks[i]);
		ASSERT_EQ(0, wh_query(self->fd, handle, &query));
		after = clock_ns(clocks[i]);
		EXPECT_EQ(clocks[i], query.clock);
		EXPECT_EQ(deadline, query.deadline);
		EXPECT_GE(deadline - before, query.remaining);
		EXPECT_LE(deadline - after, query.remaining);

		/* A re-arm uses the timer's clock. */
		deadline = clock_ns(clocks[i]) + 10 * MSEC;
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, deadline, ABS));
		expect_event(_metadata, self->fd, clocks[i], handle, deadline);

		/* In the past, on that clock. */
		ASSERT_EQ(0, add_on(self->fd, clocks[i], 1, ABS, i, &handle));
		expect_event(_metadata, self->fd, clocks[i], handle, 1);
	}
}

TEST_F(clocks, set_forward)
{
	__u64 due, later, monotonic, deadline = clock_ns(CLOCK_REALTIME) + HOUR;
	struct twheel_timer_query query;

	ASSERT_EQ(0, add_on(self->fd, CLOCK_REALTIME, deadline, ABS, 1, &due));
	ASSERT_EQ(0, add_on(self->fd, CLOCK_REALTIME, deadline + HOUR, ABS, 2, &later));
	ASSERT_EQ(0, add_on(self->fd, CLOCK_MONOTONIC, HOUR / 2, 0, 3, &monotonic));
	sleep_ns(10 * MSEC);
	EXPECT_EQ(0, wh_nr_events(self->fd));
	ASSERT_EQ(0, set_clock(self, HOUR + SEC));
	expect_event(_metadata, self->fd, CLOCK_REALTIME, due, deadline);
	ASSERT_EQ(0, wh_query(self->fd, later, &query));
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	EXPECT_EQ(deadline + HOUR, query.deadline);
	EXPECT_GT(HOUR, query.remaining);
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, monotonic));
	ASSERT_EQ(0, set_clock(self, 3 * HOUR));
	expect_event(_metadata, self->fd, CLOCK_REALTIME, later, deadline + HOUR);
	EXPECT_EQ(1, wh_nr_timers(self->fd));
}

/* After a clock is set back, a timer waits until the clock reaches its deadline again. */
TEST_F(clocks, set_back)
{
	__u64 handle, witness, deadline = clock_ns(CLOCK_REALTIME) + 100 * MSEC;
	struct twheel_timer_query query;

	ASSERT_EQ(0, add_on(self->fd, CLOCK_REALTIME, deadline, ABS, 1, &handle));
	ASSERT_EQ(0, set_clock(self, -(__s64)HOUR));
	ASSERT_EQ(0, add_on(self->fd, CLOCK_MONOTONIC, 300 * MSEC, 0, 2, &witness));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, wh_state(self->fd, witness));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, witness));
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	EXPECT_EQ(deadline, query.deadline);
	EXPECT_LT(HOUR - SEC, query.remaining);
	/* Close to the deadline, but before it. */
	ASSERT_EQ(0, set_clock(self, deadline - self->offset - now_ns() - 50 * MSEC));
	expect_event(_metadata, self->fd, CLOCK_REALTIME, handle, deadline);
}

/* Set back and forth: the timer expires at its time, whatever happened in between. */
TEST_F_TIMEOUT(clocks, set_again_and_again, 60)
{
	__u64 handle, deadline = clock_ns(CLOCK_REALTIME) + 10 * HOUR;
	unsigned int i;
	__s64 more;

	ASSERT_EQ(0, add_on(self->fd, CLOCK_REALTIME, deadline, ABS, 1, &handle));
	for (i = 0; i < 300; i++) {
		more = random_below(18 * HOUR) - 9 * HOUR;
		ASSERT_EQ(0, set_clock(self, more));
		if (!(i % 10))
			sleep_ns(2 * self->tick);
		if (i & 1)
			ASSERT_EQ(TWHEEL_WAS_PENDING,
				  wh_rearm(self->fd, handle, deadline, ABS));
		ASSERT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle));
	}
	ASSERT_EQ(0, set_clock(self, deadline - self->offset - now_ns()));
	expect_event(_metadata, self->fd, CLOCK_REALTIME, handle, deadline);
}

TEST_F(clocks, relative_times_and_other_clocks_do_not_care)
{
	const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	const __s64 settings[] = { 2 * HOUR, -2 * (__s64)HOUR, 0 };
	__u64 far[3], near[3], begin, monotonic[3];
	struct twheel_timer_query query;
	struct twheel_event event;
	size_t i, k;

	for (i = 0; i < 3; i++) {
		begin = now_ns();
		ASSERT_EQ(0, add_on(self->fd, clocks[i], HOUR, 0, i, &far[i]));
		for (k = 0; k < ARRAY_SIZE(settings); k++) {
			ASSERT_EQ(0, set_clock(self, settings[k]));
			sleep_ns(2 * self->tick);
			ASSERT_EQ(0, wh_query(self->fd, far[i], &query));
			EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
			EXPECT_LE(begin + HOUR - now_ns(), query.remaining);
			EXPECT_GE(HOUR, query.remaining);
		}
	}
	/* They expire when they would have expired anyway. */
	for (i = 0; i < 3; i++) {
		monotonic[i] = now_ns() + 150 * MSEC;
		ASSERT_EQ(0, add_on(self->fd, clocks[i], 150 * MSEC, 0, i, &near[i]));
	}
	ASSERT_EQ(0, set_clock(self, -(__s64)HOUR));
	for (k = 0; k < 3; k++) {
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		ASSERT_GT(3, event.user_data);
		EXPECT_EQ(near[event.user_data], event.handle);
		EXPECT_LE(monotonic[event.user_data], now_ns());
	}
	/* So do absolute ones on the other clocks. */
	for (i = 1; i < 3; i++) {
		ASSERT_EQ(0, add_on(self->fd, clocks[i], clock_ns(clocks[i]) + HOUR, ABS, i,
				    &near[i]));
		ASSERT_EQ(0, set_clock(self, 2 * HOUR));
		sleep_ns(2 * self->tick);
		EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, near[i]));
		ASSERT_EQ(0, set_clock(self, 0));
	}
}

/* Each call says whether its time is absolute or relative, whatever the previous one said. */
TEST_F(clocks, rearmed_otherwise_than_added)
{
	struct twheel_timer_query query;
	__u64 handle, deadline;

	/*
	 * Added with an absolute time, re-armed with a relative one: setting the clock does not
	 * matter.
	 */
	deadline = clock_ns(CLOCK_REALTIME) + HOUR;
	ASSERT_EQ(0, add_on(self->fd, CLOCK_REALTIME, deadline, ABS, 1, &handle));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, 2 * HOUR, 0));
	ASSERT_EQ(0, set_clock(self, 10 * HOUR));
	sleep_ns(3 * self->tick);
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	EXPECT_LT(2 * HOUR - 10 * SEC, query.remaining);
	ASSERT_EQ(0, set_clock(self, 0));
	ASSERT_LE(0, wh_cancel(self->fd, handle));

	/* And the other way round. */
	ASSERT_EQ(0, add_on(self->fd, CLOCK_REALTIME, HOUR, 0, 1, &handle));
	deadline = clock_ns(CLOCK_REALTIME) + HOUR;
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, deadline, ABS));
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_GE(HOUR, query.remaining);
	ASSERT_EQ(0, set_clock(self, 2 * HOUR));
	expect_event(_metadata, self->fd, CLOCK_REALTIME, handle, deadline);
}

/*
 * Exactly the timers that the clock has passed expire, however many; the others can be cancelled.
 */
TEST_F_TIMEOUT(clocks, many_when_the_clock_is_set, 60)
{
	enum { N = 4000 };
	__u64 handles[N], deadlines[N], base = clock_ns(CLOCK_REALTIME), due = 0, seen = 0;
	static struct twheel_event events[N];
	bool read[N] = { };
	int list[64], cpu = cpus(list, 64), i, n;

	/* The worker re-arms all of them, step by step. */
	punctual_allow(100 * MSEC);
	for (i = 0; i < N; i++) {
		if (!(i % 100))
			ASSERT_EQ(0, pin(list[i / 100 % cpu]));
		deadlines[i] = base + HOUR + random_below(10 * HOUR);
		due += deadlines[i] <= base + 5 * HOUR;
		ASSERT_EQ(0, add_on(self->fd, CLOCK_REALTIME, deadlines[i], ABS, i, &handles[i]));
	}
	ASSERT_EQ(0, set_clock(self, base + 5 * HOUR - self->offset - now_ns()));
	while (seen < due) {
		ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("%llu of %llu", seen, due);
		n = wh_read(self->fd, events, N);
		for (i = 0; i < n; i++) {
			ASSERT_GT(N, events[i].user_data);
			ASSERT_EQ(handles[events[i].user_data], events[i].handle);
			ASSERT_EQ(deadlines[events[i].user_data], events[i].deadline);
			ASSERT_LE(events[i].deadline, events[i].fired);
			ASSERT_EQ(false, read[events[i].user_data]);
			read[events[i].user_data] = true;
		}
		seen += n;
	}
	for (i = 0; i < N; i++) {
		if (read[i])
			continue;
		/* It may have expired since. */
		n = wh_cancel(self->fd, handles[i]);
		ASSERT_LE(TWHEEL_WAS_PENDING, n);
		ASSERT_GE(TWHEEL_WAS_EXPIRED, n);
		if (deadlines[i] > clock_ns(CLOCK_REALTIME))
			ASSERT_EQ(TWHEEL_WAS_PENDING, n);
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/* If the clock is set forward by several periods, these are missed, and counted. */
TEST_F(clocks, a_period_when_the_clock_is_set)
{
	struct twheel_timer_add add = {
		.flags	= ABS,
		.clock	= CLOCK_REALTIME,
		.period	= 10 * SEC,
	};
	struct twheel_event event;
	__u64 first;

	first = clock_ns(CLOCK_REALTIME) + 20 * MSEC;
	add.time = first;
	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	expect_event(_metadata, self->fd, CLOCK_REALTIME, add.handle, first);
	ASSERT_EQ(0, set_clock(self, HOUR));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(first + add.period, event.deadline);
	EXPECT_LE(HOUR / add.period - 2, event.overruns);
	EXPECT_GE(clock_ns(CLOCK_REALTIME), event.deadline + event.overruns * add.period);
	/* The next period is in phase with the first, on this clock. */
	ASSERT_EQ(0, set_clock(self, HOUR + 20 * SEC));
	first = event.deadline + (event.overruns + 1) * add.period;
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(first, event.deadline);
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, add.handle));
}

/* Many timers on CLOCK_REALTIME, some hours from now. */
static void add_many(struct __test_metadata *_metadata, int fd, unsigned int n)
{
	__u64 base = clock_ns(CLOCK_REALTIME), handle;
	unsigned int i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, add_on(fd, CLOCK_REALTIME, base + HOUR + i, ABS, i, &handle));
}

/*
 * Contexts that use clocks are opened and closed. This must not re-arm the timers of others: no
 * clock has been set.
 */
TEST_F(clocks, others_do_not_move_them)
{
	enum { N = 1000, ROUNDS = 50 };
	struct twheel_setup setup;
	__u64 before, handle;
	int fd, i;

	add_many(_metadata, self->fd, N);
	/* Until the work of previous tests is done. */
	sleep_ns(100 * MSEC);
	before = total("rearms");
	for (i = 0; i < ROUNDS; i++) {
		fd = wh_open(0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, wh_setup(fd, 0, 1, &setup));
		ASSERT_EQ(0, add_on(fd, CLOCK_REALTIME, clock_ns(CLOCK_REALTIME) + HOUR, ABS, 1,
				    &handle));
		ASSERT_EQ(0, close(fd));
	}
	sleep_ns(100 * MSEC);
	EXPECT_GT(N, total("rearms") - before);
	ASSERT_EQ(0, set_clock(self, 10 * SEC));
	for (i = 0; i < 1000 && total("rearms") - before < N; i++)
		sleep_ns(10 * MSEC);
	EXPECT_LE(N, total("rearms") - before);
}

/* Closes a context while very many timers of another one are being re-armed. */
TEST_F_TIMEOUT(clocks, a_close_waits_for_nobody_else, 90)
{
	const unsigned int n = 2 * very_many();
	__u64 before, after, handle;
	unsigned int round;
	int fd;

	add_many(_metadata, self->fd, n);
	for (round = 0; round < 5; round++) {
		fd = wh_open(0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, add_on(fd, CLOCK_REALTIME, clock_ns(CLOCK_REALTIME) + HOUR, ABS, 1,
				    &handle));
		before = total("rearms");
		ASSERT_EQ(0, set_clock(self, (round + 1) * SEC));
		while (total("rearms") - before < n / 100)
			;
		ASSERT_EQ(0, close(fd));
		after = total("rearms");
		printf("# %llu of %u armed anew when the other one was closed\n", after - before,
		       n);
		if (after - before < n)
			break;
		/* On a slow machine, all of them may have been re-armed by then. */
		while (total("rearms") - before < n)
			sleep_ns(MSEC);
	}
	EXPECT_GT(5, round);
}

/* A thread that sets the clock while another one adds and cancels timers. */
static void *set_for_a_while(void *arg)
{
	FIXTURE_DATA(clocks) * self = arg;
	__u64 end = now_ns() + 500 * MSEC;
	unsigned int i = 0;

	while (now_ns() < end)
		if (set_clock(self, (i++ & 1 ? 1 : -1) * (__s64)HOUR))
			return arg;
	return NULL;
}

TEST_F_TIMEOUT(clocks, set_while_they_are_used, 60)
{
	__u64 handle, base = clock_ns(CLOCK_REALTIME), calls = 0, end = now_ns() + 500 * MSEC;
	struct twheel_event event;
	pthread_t thread;
	int ret, read;
	void *wrong;

	ASSERT_EQ(0, pthread_create(&thread, NULL, set_for_a_while, self));
	while (now_ns() < end) {
		/* Between the two times that the clock alternates between. */
		ASSERT_EQ(0, add_on(self->fd, CLOCK_REALTIME, base, ABS, 1, &handle));
		if (calls & 1)
			ASSERT_LE(0, wh_rearm(self->fd, handle, base, ABS));
		if (calls & 2)
			sched_yield();
		ret = wh_cancel(self->fd, handle);
		read = wh_read(self->fd, &event, 1);
		/* Each is either read or cancelled. */
		ASSERT_EQ(-EAGAIN, read);
		ASSERT_LE(0, ret);
		calls++;
	}
	ASSERT_EQ(0, pthread_join(thread, &wrong));
	EXPECT_EQ(NULL, wrong);
	printf("# %llu timers\n", calls);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/* Adds timers, as many at a time as the module reads the clock for, until told to stop. */
struct adder {
	pthread_t thread;
	int fd;
	int cpu;
	__u64 deadline;
	bool stop;
	__u64 added;
};

static void *add_for_a_while(void *arg)
{
	enum { N = 64 };
	struct adder *adder = arg;
	struct twheel_op ops[N];
	int i;

	if (pin(adder->cpu))
		return arg;
	while (!__atomic_load_n(&adder->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < N; i++)
			ops[i] = (struct twheel_op){
				.opcode	= TWHEEL_OP_ADD,
				.flags	= ABS,
				.clock	= CLOCK_REALTIME,
				.time	= adder->deadline,
			};
		if (wh_submit(adder->fd, ops, N, sizeof(ops[0]), 0) != N)
			return arg;
		__atomic_fetch_add(&adder->added, N, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * Modules hear of an update before the clock shows it, since Linux 6.13, so a timer can be armed in
 * between: here others are, while the update is held up.
 */
TEST_F_TIMEOUT(clocks, armed_in_the_middle_of_an_update, 60)
{
	static struct twheel_event events[1000];
	struct adder adder = { .fd = self->fd };
	int list[64], round, n;
	__u64 seen;
	void *wrong;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, system("modprobe twheel_stall"));
	EXPECT_EQ(-ERANGE, file_write(STALL_UPDATES, SEC));
	ASSERT_EQ(0, pin(list[0]));
	adder.cpu = list[1];
	/* Those that are armed before it are moved, step by step. */
	punctual_allow(100 * MSEC);
	for (round = 0; round < 10; round++) {
		adder.deadline = now_ns() + self->offset + HOUR / 2;
		adder.stop = false;
		adder.added = 0;
		ASSERT_EQ(0, pthread_create(&adder.thread, NULL, add_for_a_while, &adder));
		while (!__atomic_load_n(&adder.added, __ATOMIC_RELAXED))
			sched_yield();
		ASSERT_EQ(0, file_write(STALL_UPDATES, 3 * MSEC));
		ASSERT_EQ(0, set_clock(self, HOUR));
		ASSERT_EQ(0, file_write(STALL_UPDATES, 0));
		__atomic_store_n(&adder.stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(adder.thread, &wrong));
		ASSERT_EQ(NULL, wrong);
		for (seen = 0; seen < adder.added; seen += n) {
			ASSERT_EQ(true, wh_wait(self->fd))
				TH_LOG("round %d: %llu of %llu expire", round, seen, adder.added);
			n = wh_read(self->fd, events, ARRAY_SIZE(events));
			ASSERT_LT(0, n);
		}
		EXPECT_EQ(0, wh_nr_timers(self->fd));
		ASSERT_EQ(0, set_clock(self, 0));
	}
	EXPECT_EQ(0, system("rmmod twheel_stall"));
}

TEST_F_TIMEOUT(clocks, across_a_suspend, 60)
{
	const clockid_t clocks[] = { CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_MONOTONIC };
	__u64 handles[3], deadlines[3], relative, slept, woken, begin;
	struct twheel_timer_query query;
	struct twheel_event event;
	size_t i;

	if (access(PM_TEST, W_OK))
		SKIP(return, "this kernel cannot test a suspend");
	begin = now_ns();
	slept = clock_ns(CLOCK_BOOTTIME) - begin;
	for (i = 0; i < 3; i++) {
		deadlines[i] = clock_ns(clocks[i]) + SEC;
		ASSERT_EQ(0, add_on(self->fd, clocks[i], deadlines[i], ABS, i, &handles[i]));
	}
	ASSERT_EQ(0, add_on(self->fd, CLOCK_BOOTTIME, HOUR, 0, 9, &relative));
	/* A simulated CPU would spin for minutes. */
	ASSERT_EQ(true, suspend("core", simulated() ? 3 : 5));
	woken = now_ns();
	slept = clock_ns(CLOCK_BOOTTIME) - woken - slept;
	printf("# asleep for %llu ms, and busy for %llu\n", slept / MSEC, (woken - begin) / MSEC);
	/* The clock that measures the suspend counts whole seconds. */
	ASSERT_LE(SEC, slept);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		if (event.user_data == 2)
			break;
		ASSERT_GT(2, event.user_data);
		EXPECT_EQ(deadlines[event.user_data], event.deadline);
		EXPECT_LE(event.deadline, event.fired);
	}
	/* Unless the machine is very slow, timers on the clocks that kept counting expire first. */
	if (now_ns() < begin + SEC) {
		EXPECT_EQ(2, i);
		EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handles[2]));
	}
	ASSERT_EQ(0, wh_query(self->fd, relative, &query));
	EXPECT_GT(HOUR - slept, query.remaining);
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	if (i == 2) {
		EXPECT_EQ(handles[2], event.handle);
		EXPECT_EVENT_OK(&event);
	}
	/* The system's clock has advanced by itself. */
	self->offset += slept;
}

TEST_HARNESS_MAIN
