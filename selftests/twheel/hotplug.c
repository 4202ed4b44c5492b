// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CPU goes away while its timers are armed, and comes back: none is lost, none is
 * early, and all can still be moved and cancelled.
 */
#include "twheel_test.h"

#define N 2000

FIXTURE(hotplug)
{
	int fd;
	int n;
	int cpu[64];
	__u64 *handles;
	__u64 *deadlines;
	unsigned char *seen;
	__u64 seq;
};

static int set_online(int cpu, int online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return file_write(path, online);
}

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
		EXPECT_EQ(0, set_online(self->cpu[i], 1));
	free(self->handles);
	free(self->deadlines);
	free(self->seen);
	EXPECT_EQ(0, close(self->fd));
}

/* Arms all timers from one CPU, and goes back to the first one. */
static void arm_on(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) * self, int cpu,
		   __u64 spread)
{
	unsigned int i;

	ASSERT_EQ(0, pin(cpu));
	for (i = 0; i < N; i++) {
		self->seen[i] = 0;
		self->deadlines[i] = now_ns() + random_below(spread);
		ASSERT_EQ(0, wh_add(self->fd, self->deadlines[i], ABS, i, &self->handles[i]));
	}
	ASSERT_EQ(0, pin(self->cpu[0]));
}

/* Every timer must come, once, with the deadline it has. */
static void expect_all(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) * self)
{
	struct twheel_event events[64];
	unsigned int left = N;
	int i, n;

	while (left) {
		ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("%u of %u never fired", left, N);
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
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F_TIMEOUT(hotplug, fire_on_another_cpu, 120)
{
	int i;

	for (i = 1; i < self->n; i++) {
		arm_on(_metadata, self, self->cpu[i], SEC);
		ASSERT_EQ(0, set_online(self->cpu[i], 0));
		expect_all(_metadata, self);
		ASSERT_EQ(0, set_online(self->cpu[i], 1));
		/* The CPU is as good as before. */
		arm_on(_metadata, self, self->cpu[i], 50 * MSEC);
		expect_all(_metadata, self);
	}
}

/* It goes while they come due. */
TEST_F_TIMEOUT(hotplug, goes_while_they_fire, 120)
{
	unsigned int round;

	for (round = 0; round < 6; round++) {
		arm_on(_metadata, self, self->cpu[1], 250 * MSEC);
		ASSERT_EQ(0, set_online(self->cpu[1], 0));
		if (round & 1)
			expect_all(_metadata, self);
		ASSERT_EQ(0, set_online(self->cpu[1], 1));
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
	ASSERT_EQ(0, set_online(self->cpu[1], 0));
	for (i = 0; i < N; i++)
		ASSERT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, self->handles[i]));
	/* All of them are brought near. */
	for (i = 0; i < N; i++) {
		self->deadlines[i] = now_ns() + random_below(200 * MSEC);
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  wh_rearm(self->fd, self->handles[i], self->deadlines[i], ABS));
	}
	expect_all(_metadata, self);

	ASSERT_EQ(0, set_online(self->cpu[1], 1));
	arm_on(_metadata, self, self->cpu[1], SEC);
	for (i = 0; i < N; i++)
		ASSERT_LE(0, wh_rearm(self->fd, self->handles[i], HOUR, 0));
	ASSERT_EQ(0, set_online(self->cpu[1], 0));
	for (i = 0; i < N; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, self->handles[i]));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(0, wh_nr_events(self->fd));
}

TEST_HARNESS_MAIN
