// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program on a CPU that the kernel was told to keep timers off: its timers work as they do
 * everywhere, but cause no work on that CPU.
 */
#include "twheel_test.h"

#define N 4000

FIXTURE(isolated)
{
	int fd;
	int cpu;
	struct record {
		__u64	handle;
		__u64	deadline;
		bool	pending;
	} records[N];
};

static int set_online(int cpu, int online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return file_write(path, online);
}

FIXTURE_SETUP(isolated)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	memset(self->records, 0, sizeof(self->records));
	random_seed();
	self->cpu = file_number("/sys/devices/system/cpu/nohz_full");
	ASSERT_LT(1, self->cpu) TH_LOG("this guest takes nohz_full=2");
	ASSERT_EQ(0, pin(self->cpu));
}

/* Nothing was ever enqueued on the CPU's wheel: it has no chunk, and nothing has spilled. */
FIXTURE_TEARDOWN(isolated)
{
	EXPECT_EQ(0, cpu_number(self->cpu, "ticks"));
	EXPECT_EQ(0, cpu_number(self->cpu, "expiries"));
	EXPECT_EQ(0, cpu_number(self->cpu, "cascades"));
	EXPECT_EQ(0, cpu_number(self->cpu, "pending"));
	EXPECT_EQ(0, cpu_number(self->cpu, "chunks"));
	EXPECT_EQ(0, cpu_number(self->cpu, "spilled"));
	EXPECT_EQ(0, set_online(1, 1));
	EXPECT_EQ(0, close(self->fd));
}

static void add_timer(struct __test_metadata *_metadata, FIXTURE_DATA(isolated) * self,
		      unsigned int i, __u64 distance)
{
	struct record *record = &self->records[i];

	record->deadline = now_ns() + distance;
	record->pending = true;
	ASSERT_EQ(0, wh_add(self->fd, record->deadline, ABS, i, &record->handle));
}

/* Re-arms it. It may have expired a moment ago, with its event not read yet. */
static void rearm_timer(struct __test_metadata *_metadata, FIXTURE_DATA(isolated) * self,
			unsigned int i, __u64 distance)
{
	struct record *record = &self->records[i];
	__u64 before = record->deadline;
	int ret;

	record->deadline = now_ns() + distance;
	ret = wh_rearm(self->fd, record->handle, record->deadline, ABS);
	if (ret != TWHEEL_WAS_EXPIRED || now_ns() < before)
		ASSERT_EQ(TWHEEL_WAS_PENDING, ret);
}

static void cancel_timer(struct __test_metadata *_metadata, FIXTURE_DATA(isolated) * self,
			 unsigned int i)
{
	struct record *record = &self->records[i];
	int ret = wh_cancel(self->fd, record->handle);

	if (ret != TWHEEL_WAS_EXPIRED || now_ns() < record->deadline)
		ASSERT_EQ(TWHEEL_WAS_PENDING, ret);
	record->pending = false;
	ASSERT_EQ(-ENOENT, wh_cancel(self->fd, record->handle));
}

/* Reads the pending events. */
static void drain_events(struct __test_metadata *_metadata, FIXTURE_DATA(isolated) * self)
{
	struct twheel_event events[64];
	struct record *record;
	int i, n;

	while ((n = wh_read(self->fd, events, 64)) > 0) {
		for (i = 0; i < n; i++) {
			EXPECT_EVENT_OK(&events[i]);
			ASSERT_GT(N, events[i].user_data);
			record = &self->records[events[i].user_data];
			ASSERT_EQ(true, record->pending);
			ASSERT_EQ(record->handle, events[i].handle);
			ASSERT_EQ(record->deadline, events[i].deadline);
			record->pending = false;
		}
	}
	ASSERT_EQ(-EAGAIN, n);
}

/* Everything armed must expire. */
static void drain_all(struct __test_metadata *_metadata, FIXTURE_DATA(isolated) * self)
{
	while (wh_nr_timers(self->fd)) {
		ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("%llu never fired",
							  wh_nr_timers(self->fd));
		drain_events(_metadata, self);
	}
}

TEST_F_TIMEOUT(isolated, armed_and_expired, 60)
{
	__u64 adds = cpu_number(self->cpu, "adds");
	unsigned int i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < N; i++)
			add_timer(_metadata, self, i, random_below(200 * MSEC));
		drain_all(_metadata, self);
	}
	for (i = 0; i < 200; i++) {
		add_timer(_metadata, self, 0, 0);
		drain_all(_metadata, self);
	}
	EXPECT_EQ(3 * N + 200, cpu_number(self->cpu, "adds") - adds);
}

TEST_F_TIMEOUT(isolated, moved_and_cancelled, 60)
{
	unsigned int i, round;

	for (i = 0; i < N; i++)
		add_timer(_metadata, self, i, HOUR);
	for (i = 0; i < N; i++)
		ASSERT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, self->records[i].handle));
	/* To later, to earlier, and back, some of them while still on the remote list. */
	for (i = 0; i < N; i++)
		rearm_timer(_metadata, self, i, 2 * HOUR);
	for (i = 0; i < N; i++)
		for (round = 0; round < i % 4; round++)
			rearm_timer(_metadata, self, i, (round & 1 ? 30 : 1) * HOUR);
	for (i = 0; i < N; i++) {
		if (i % 2)
			cancel_timer(_metadata, self, i);
		else
			rearm_timer(_metadata, self, i, random_below(100 * MSEC));
	}
	EXPECT_GE(N / 2, wh_nr_timers(self->fd));
	drain_all(_metadata, self);
	EXPECT_EQ(0, wh_nr_events(self->fd));
}

/* At random, and such that many operations race with expiry. */
TEST_F_TIMEOUT(isolated, all_at_random, 60)
{
	unsigned int i, n, pending = 0;

	for (n = 0; n < 60000; n++) {
		i = random_below(64);
		drain_events(_metadata, self);
		if (!self->records[i].pending)
			add_timer(_metadata, self, i, random_below(3 * MSEC));
		else if (random_below(2))
			rearm_timer(_metadata, self, i, random_below(3 * MSEC));
		else
			cancel_timer(_metadata, self, i);
	}
	for (i = 0; i < N; i++)
		pending += self->records[i].pending;
	EXPECT_GE(64, pending);
	drain_all(_metadata, self);
	for (i = 0; i < N; i++)
		EXPECT_EQ(false, self->records[i].pending);
}

static __u64 house_ticks(void)
{
	return cpu_number(0, "ticks") + cpu_number(1, "ticks");
}

/* However often it makes calls, the CPU that has the timers is woken at most once per tick. */
TEST_F_TIMEOUT(isolated, called_once_a_tick, 60)
{
	__u64 ticks, begin, elapsed;
	struct twheel_info info;
	unsigned int i, n;

	ASSERT_EQ(0, wh_info(self->fd, &info));
	add_timer(_metadata, self, 0, HOUR);
	sleep_ns(10 * MSEC);
	begin = now_ns();
	ticks = house_ticks();
	for (n = 0; n < 20; n++) {
		for (i = 0; i < N / 4; i++)
			rearm_timer(_metadata, self, 0, HOUR - n * SEC - i * MSEC);
	}
	elapsed = now_ns() - begin;
	sleep_ns(10 * MSEC);
	ticks = house_ticks() - ticks;
	printf("# %u calls, %llu ticks, %llu were called up\n", n * i, elapsed / info.tick_ns,
	       ticks);
	EXPECT_LT(0, ticks);
	EXPECT_GE(elapsed / info.tick_ns + 10, ticks);
	cancel_timer(_metadata, self, 0);
}

/* A timer stays where it was unless that CPU goes: then it moves, together with queued re-arms. */
TEST_F_TIMEOUT(isolated, sent_to_a_cpu_that_goes, 120)
{
	unsigned int i, round;

	/* Timers due meanwhile wait until the CPU is offline. */
	punctual_off();
	for (round = 0; round < 8; round++) {
		ASSERT_EQ(0, pin(1));
		for (i = 0; i < N; i++)
			add_timer(_metadata, self, i, HOUR);
		ASSERT_EQ(0, pin(self->cpu));
		for (i = 0; i < N; i++)
			rearm_timer(_metadata, self, i, HOUR / 2);
		EXPECT_EQ(N, cpu_number(1, "pending"));
		for (i = 0; i < N; i++)
			rearm_timer(_metadata, self, i, random_below(400 * MSEC));
		ASSERT_EQ(0, set_online(1, 0));
		EXPECT_EQ(0, cpu_number(1, "pending"));
		if (round & 1)
			drain_all(_metadata, self);
		/* And timers that were last on an offline CPU. */
		for (i = 0; i < N; i++) {
			if (self->records[i].pending && i & 1)
				rearm_timer(_metadata, self, i, random_below(50 * MSEC));
		}
		ASSERT_EQ(0, set_online(1, 1));
		drain_all(_metadata, self);
	}
}

/* Another thread takes the CPU offline and online while this one queues timers on it. */
static void *flip_cpu(void *arg)
{
	int i;

	if (pin(0))
		return arg;
	for (i = 0; i < 6; i++)
		if (set_online(1, i & 1))
			return arg;
	return NULL;
}

TEST_F_TIMEOUT(isolated, sent_while_it_goes, 120)
{
	unsigned int i, round = 0;
	pthread_t thread;
	void *wrong;

	/* Timers due meanwhile wait until the CPU is offline. */
	punctual_off();
	ASSERT_EQ(0, pin(1));
	for (i = 0; i < N; i++)
		add_timer(_metadata, self, i, HOUR);
	ASSERT_EQ(0, pin(self->cpu));
	ASSERT_EQ(0, pthread_create(&thread, NULL, flip_cpu, self));
	while (pthread_tryjoin_np(thread, &wrong)) {
		for (i = round++ % 4; i < N; i += 4)
			rearm_timer(_metadata, self, i, HOUR + random_below(HOUR));
	}
	EXPECT_EQ(NULL, wrong);
	for (i = 0; i < N; i++)
		ASSERT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, self->records[i].handle));
	for (i = 0; i < N; i++)
		rearm_timer(_metadata, self, i, random_below(100 * MSEC));
	drain_all(_metadata, self);
}

TEST_HARNESS_MAIN
