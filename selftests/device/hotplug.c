// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CPU goes offline while its timers are armed, and comes back: no timer is lost, none is early,
 * and all can still be moved and cancelled. If it goes offline for a suspend, its timers stay on
 * its wheel.
 */
#include "twheel_test.h"

#define N 2000

FIXTURE(hotplug)
{
	int fd;
	int n;
	int cpu[64];
	__u64 expiries[64];
	__u64 *handles;
	__u64 *deadlines;
	unsigned char *seen;
	__u64 seq;
};

FIXTURE_SETUP(hotplug)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->n = cpus(self->cpu, 64);
	self->handles = calloc(N, sizeof(*self->handles));
	self->deadlines = calloc(N, sizeof(*self->deadlines));
	self->seen = calloc(N, sizeof(*self->seen));
	ASSERT_NE(NULL, self->handles);
	ASSERT_NE(NULL, self->deadlines);
	ASSERT_NE(NULL, self->seen);
	self->seq = 0;
	random_seed();
	if (self->n < 2)
		SKIP(return, "takes two CPUs");
}

FIXTURE_TEARDOWN(hotplug)
{
	int i;

	for (i = 1; i < self->n; i++)
		EXPECT_EQ(0, set_cpu_online(self->cpu[i], 1));
	free(self->handles);
	free(self->deadlines);
	free(self->seen);
	EXPECT_EQ(0, close(self->fd));
}

static void arm_timer(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) * self,
		      unsigned int i, __u64 distance)
{
	self->seen[i] = 0;
	self->deadlines[i] = now_ns() + distance;
	ASSERT_EQ(0, wh_add(self->fd, self->deadlines[i], ABS, i, &self->handles[i]));
}

/* Arms all timers from one CPU, and moves back to the first CPU. */
static void arm_on(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) * self, int cpu,
		   __u64 spread)
{
	unsigned int i;

	ASSERT_EQ(0, pin(cpu));
	for (i = 0; i < N; i++)
		arm_timer(_metadata, self, i, random_below(spread));
	ASSERT_EQ(0, pin(self->cpu[0]));
}

/* Expects events of this many timers, each once and with its deadline. */
static void expect_events(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) * self,
			  unsigned int left)
{
	struct twheel_event events[64];
	int i, n;

	while (left) {
		ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("%u never fired", left);
		n = wh_read(self->fd, events, 64);
		ASSERT_LT(0, n);
		for (i = 0; i < n; i++) {
			EXPECT_EVENT_OK(&events[i]);
			ASSERT_GT(N, events[i].user_data);
			ASSERT_EQ(self->handles[events[i].user_data], events[i].handle);
			ASSERT_EQ(self->deadlines[events[i].user_data], events[i].deadline);
			ASSERT_EQ(0, self->seen[events[i].user_data]++);
			ASSERT_EQ(self->seq++, events[i].seq);
		}
		left -= n;
	}
}

static void expect_all(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) * self)
{
	expect_events(_metadata, self, N);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F_TIMEOUT(hotplug, fire_on_another_cpu, 120)
{
	int i;

	for (i = 1; i < self->n; i++) {
		arm_on(_metadata, self, self->cpu[i], SEC);
		ASSERT_EQ(0, set_cpu_online(self->cpu[i], 0));
		expect_all(_metadata, self);
		ASSERT_EQ(0, set_cpu_online(self->cpu[i], 1));
		/* The CPU works as before. */
		arm_on(_metadata, self, self->cpu[i], 50 * MSEC);
		expect_all(_metadata, self);
	}
}

/* The CPU goes offline while its timers expire. */
TEST_F_TIMEOUT(hotplug, goes_while_they_fire, 120)
{
	unsigned int round;

	for (round = 0; round < 6; round++) {
		arm_on(_metadata, self, self->cpu[1], 250 * MSEC);
		ASSERT_EQ(0, set_cpu_online(self->cpu[1], 0));
		if (round & 1)
			expect_all(_metadata, self);
		ASSERT_EQ(0, set_cpu_online(self->cpu[1], 1));
		if (!(round & 1))
			expect_all(_metadata, self);
	}
}

TEST_F_TIMEOUT(hotplug, moved_and_cancelled_when_it_is_gone, 120)
{
	unsigned int i;

	arm_on(_metadata, self, self->cpu[1], SEC);
	for (i = 0; i < N; i++)
		ASSERT_LE(0, wh_rearm(self->fd, self->handles[i], HOUR, 0));
	ASSERT_EQ(0, set_cpu_online(self->cpu[1], 0));
	for (i = 0; i < N; i++)
		ASSERT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, self->handles[i]));
	/* Re-arms all of them to expire soon. */
	for (i = 0; i < N; i++) {
		self->deadlines[i] = now_ns() + random_below(200 * MSEC);
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  wh_rearm(self->fd, self->handles[i], self->deadlines[i], ABS));
	}
	expect_all(_metadata, self);

	ASSERT_EQ(0, set_cpu_online(self->cpu[1], 1));
	arm_on(_metadata, self, self->cpu[1], SEC);
	for (i = 0; i < N; i++)
		ASSERT_LE(0, wh_rearm(self->fd, self->handles[i], HOUR, 0));
	ASSERT_EQ(0, set_cpu_online(self->cpu[1], 0));
	for (i = 0; i < N; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, self->handles[i]));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(0, wh_nr_events(self->fd));
}

/* Its wheel is empty afterwards: the timers are on another one. */
TEST_F_TIMEOUT(hotplug, moved_to_another_wheel, 120)
{
	__u64 pending;

	arm_on(_metadata, self, self->cpu[1], SEC);
	pending = total("pending");
	ASSERT_LT(0, pending);
	ASSERT_EQ(0, set_cpu_online(self->cpu[1], 0));
	EXPECT_EQ(0, cpu_number(self->cpu[1], "pending"));
	self->expiries[1] = cpu_number(self->cpu[1], "expiries");
	expect_all(_metadata, self);
	EXPECT_EQ(self->expiries[1], cpu_number(self->cpu[1], "expiries"));
}

/* Arms timers on all CPUs in turn, half of which expire soon. Returns how many on each CPU do. */
static unsigned int arm_on_all(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) * self,
			       __u64 spread)
{
	const unsigned int each = N / self->n;
	unsigned int i;
	int c;

	for (c = 0; c < self->n; c++) {
		self->expiries[c] = cpu_number(self->cpu[c], "expiries");
		ASSERT_EQ(0, pin(self->cpu[c]));
		for (i = c * each; i < (c + 1) * each; i++)
			arm_timer(_metadata, self, i, i & 1 ? HOUR : random_below(spread));
	}
	ASSERT_EQ(0, pin(self->cpu[0]));
	return each / 2;
}

/*
 * Each wheel still has its timers, due ones expire from there, and the wheel of a CPU that has come
 * back works as before.
 */
static void across_a_suspend(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) * self,
			     const char *level, __u64 spread)
{
	const unsigned int each = N / self->n;
	unsigned int near = arm_on_all(_metadata, self, spread), i;
	int c;

	ASSERT_EQ(true, suspend(level, 1));
	expect_events(_metadata, self, near * self->n);
	for (c = 0; c < self->n; c++) {
		EXPECT_EQ(near, cpu_number(self->cpu[c], "expiries") - self->expiries[c])
			TH_LOG("CPU %d", self->cpu[c]);
		EXPECT_EQ(near, cpu_number(self->cpu[c], "pending"))
			TH_LOG("CPU %d", self->cpu[c]);
	}
	/* Re-armed to expire soon, by their own CPU and by others. */
	for (c = 0; c < self->n; c++) {
		ASSERT_EQ(0, pin(self->cpu[c]));
		for (i = 1; i < each * self->n; i += 2) {
			if ((i / each + i / 2) % self->n != (unsigned int)c)
				continue;
			self->deadlines[i] = now_ns() + random_below(100 * MSEC);
			ASSERT_EQ(TWHEEL_WAS_PENDING,
				  wh_rearm(self->fd, self->handles[i], self->deadlines[i], ABS));
		}
	}
	ASSERT_EQ(0, pin(self->cpu[0]));
	expect_events(_metadata, self, near * self->n);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	for (c = 0; c < self->n; c++) {
		arm_on(_metadata, self, self->cpu[c], 50 * MSEC);
		expect_all(_metadata, self);
	}
}

/* Timers become due while the CPUs are offline, when they come back, and afterwards. */
TEST_F_TIMEOUT(hotplug, stay_when_it_is_away_for_a_suspend, 120)
{
	if (access(PM_TEST, W_OK))
		SKIP(return, "this kernel cannot test a suspend");
	across_a_suspend(_metadata, self, "processors", 4 * SEC);
}

TEST_F_TIMEOUT(hotplug, stay_when_the_clock_stands_still, 120)
{
	if (access(PM_TEST, W_OK))
		SKIP(return, "this kernel cannot test a suspend");
	across_a_suspend(_metadata, self, "core", 2 * SEC);
}

TEST_HARNESS_MAIN
