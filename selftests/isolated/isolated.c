// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program on a CPU that the kernel was told to keep timers off: its timers work as they do
 * everywhere, but cause no work on that CPU.
 */
#include "timers.h"

FIXTURE(isolated)
{
	struct timers timers;
	int cpu;
};

static int set_online(int cpu, int online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return file_write(path, online);
}

FIXTURE_SETUP(isolated)
{
	self->timers.fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->timers.fd, 0);
	memset(self->timers.records, 0, sizeof(self->timers.records));
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
	EXPECT_EQ(0, close(self->timers.fd));
}

TEST_F_TIMEOUT(isolated, armed_and_expired, 60)
{
	__u64 adds = cpu_number(self->cpu, "adds");
	unsigned int i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < N; i++)
			add_timer(_metadata, &self->timers, i, random_below(200 * MSEC));
		drain_all(_metadata, &self->timers);
	}
	for (i = 0; i < 200; i++) {
		add_timer(_metadata, &self->timers, 0, 0);
		drain_all(_metadata, &self->timers);
	}
	EXPECT_EQ(3 * N + 200, cpu_number(self->cpu, "adds") - adds);
}

TEST_F_TIMEOUT(isolated, moved_and_cancelled, 60)
{
	unsigned int i, round;

	for (i = 0; i < N; i++)
		add_timer(_metadata, &self->timers, i, HOUR);
	for (i = 0; i < N; i++)
		ASSERT_EQ(true, is_pending(&self->timers, i));
	/* To later, to earlier, and back, some of them while still on the remote list. */
	for (i = 0; i < N; i++)
		rearm_timer(_metadata, &self->timers, i, 2 * HOUR);
	for (i = 0; i < N; i++)
		for (round = 0; round < i % 4; round++)
			rearm_timer(_metadata, &self->timers, i, (round & 1 ? 30 : 1) * HOUR);
	for (i = 0; i < N; i++) {
		if (i % 2)
			cancel_timer(_metadata, &self->timers, i);
		else
			rearm_timer(_metadata, &self->timers, i, random_below(100 * MSEC));
	}
	EXPECT_GE(N / 2, wh_nr_timers(self->timers.fd));
	drain_all(_metadata, &self->timers);
	EXPECT_EQ(0, wh_nr_events(self->timers.fd));
}

/* When an event is read, the timer is armed again, on behalf of whoever opened the context. */
TEST_F_TIMEOUT(isolated, armed_again_by_reading, 60)
{
	struct twheel_timer_add add = {
		.time		= now_ns() + 10 * MSEC,
		.flags		= ABS,
		.clock		= CLOCK_MONOTONIC,
		.period		= 10 * MSEC,
	};
	struct twheel_event event;
	unsigned int i;

	ASSERT_EQ(0, wh_add_timer(self->timers.fd, &add));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(true, wh_wait(self->timers.fd));
		ASSERT_EQ(1, wh_read(self->timers.fd, &event, 1));
		EXPECT_EQ(add.handle, event.handle);
		EXPECT_EQ(0, cpu_number(self->cpu, "chunks"));
	}
	EXPECT_LE(0, wh_cancel(self->timers.fd, add.handle));
}

/* At random, and such that many operations race with expiry. */
TEST_F_TIMEOUT(isolated, all_at_random, 60)
{
	unsigned int i, n, pending = 0;

	for (n = 0; n < 60000; n++) {
		i = random_below(64);
		drain_events(_metadata, &self->timers);
		if (!self->timers.records[i].pending)
			add_timer(_metadata, &self->timers, i, random_below(3 * MSEC));
		else if (random_below(2))
			rearm_timer(_metadata, &self->timers, i, random_below(3 * MSEC));
		else
			cancel_timer(_metadata, &self->timers, i);
	}
	for (i = 0; i < N; i++)
		pending += self->timers.records[i].pending;
	EXPECT_GE(64, pending);
	drain_all(_metadata, &self->timers);
	for (i = 0; i < N; i++)
		EXPECT_EQ(false, self->timers.records[i].pending);
}

/* What the housekeeping CPUs did: the isolated one does nothing. */
static __u64 house_ticks(void)
{
	return total("ticks");
}

/* However often it makes calls, the CPU that has the timers is woken at most once per tick. */
TEST_F_TIMEOUT(isolated, called_once_a_tick, 60)
{
	__u64 ticks, begin, elapsed;
	struct twheel_info info;
	unsigned int i, n;

	ASSERT_EQ(0, wh_info(self->timers.fd, &info));
	add_timer(_metadata, &self->timers, 0, HOUR);
	sleep_ns(10 * MSEC);
	begin = now_ns();
	ticks = house_ticks();
	for (n = 0; n < 20; n++) {
		for (i = 0; i < N / 4; i++)
			rearm_timer(_metadata, &self->timers, 0, HOUR - n * SEC - i * MSEC);
	}
	elapsed = now_ns() - begin;
	sleep_ns(10 * MSEC);
	ticks = house_ticks() - ticks;
	printf("# %u calls, %llu ticks, %llu were called up\n", n * i, elapsed / info.tick_ns,
	       ticks);
	EXPECT_LT(0, ticks);
	EXPECT_GE(elapsed / info.tick_ns + 10, ticks);
	cancel_timer(_metadata, &self->timers, 0);
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
			add_timer(_metadata, &self->timers, i, HOUR);
		ASSERT_EQ(0, pin(self->cpu));
		for (i = 0; i < N; i++)
			rearm_timer(_metadata, &self->timers, i, HOUR / 2);
		EXPECT_EQ(N, cpu_number(1, "pending"));
		for (i = 0; i < N; i++)
			rearm_timer(_metadata, &self->timers, i, random_below(400 * MSEC));
		ASSERT_EQ(0, set_online(1, 0));
		EXPECT_EQ(0, cpu_number(1, "pending"));
		if (round & 1)
			drain_all(_metadata, &self->timers);
		/* And timers that were last on an offline CPU. */
		for (i = 0; i < N; i++) {
			if (self->timers.records[i].pending && i & 1)
				rearm_timer(_metadata, &self->timers, i, random_below(50 * MSEC));
		}
		ASSERT_EQ(0, set_online(1, 1));
		drain_all(_metadata, &self->timers);
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
		add_timer(_metadata, &self->timers, i, HOUR);
	ASSERT_EQ(0, pin(self->cpu));
	ASSERT_EQ(0, pthread_create(&thread, NULL, flip_cpu, self));
	while (pthread_tryjoin_np(thread, &wrong)) {
		for (i = round++ % 4; i < N; i += 4)
			rearm_timer(_metadata, &self->timers, i, HOUR + random_below(HOUR));
	}
	EXPECT_EQ(NULL, wrong);
	for (i = 0; i < N; i++)
		ASSERT_EQ(true, is_pending(&self->timers, i));
	for (i = 0; i < N; i++)
		rearm_timer(_metadata, &self->timers, i, random_below(100 * MSEC));
	drain_all(_metadata, &self->timers);
}

TEST_HARNESS_MAIN
