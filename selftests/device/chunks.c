// SPDX-License-Identifier: GPL-2.0-only
/*
 * The chunks of the wheels: each CPU has as many as its timers need, and returns them to the kernel
 * when they are no longer needed.
 */
#include "twheel_test.h"

/* Free chunks that a CPU may keep. */
#define KEPT		448

/* Timers per chunk. */
#define CELLS		6

FIXTURE(chunks)
{
	int fd;
	int n;
	int cpu[64];
	unsigned int per_cpu;
	__u64 *handles;
	__u64 before;
};

/* The number of chunks once those left by previous tests have been returned; or POISON. */
static __u64 least_chunks(void)
{
	__u64 chunks = total("chunks"), last, end = now_ns() + 10 * SEC;

	do {
		last = chunks;
		if (file_write("/proc/sys/vm/drop_caches", 2))
			return POISON;
		sleep_ns(300 * MSEC);
		chunks = total("chunks");
	} while (chunks < last && now_ns() < end);
	return chunks;
}

FIXTURE_SETUP(chunks)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->n = cpus(self->cpu, 64);
	ASSERT_LT(0, self->n);
	self->per_cpu = very_many() / self->n;
	self->handles = calloc(very_many(), sizeof(*self->handles));
	ASSERT_NE(NULL, self->handles);
	self->before = least_chunks();
	ASSERT_NE(POISON, self->before);
}

FIXTURE_TEARDOWN(chunks)
{
	free(self->handles);
	EXPECT_EQ(0, close(self->fd));
}

/* Arms timers on each CPU, and checks that this takes chunks. */
static void arm_all(struct __test_metadata *_metadata, FIXTURE_DATA(chunks) * self)
{
	unsigned int i, sum = self->n * self->per_cpu;

	for (i = 0; i < sum; i++) {
		if (i % self->per_cpu == 0)
			ASSERT_EQ(0, pin(self->cpu[i / self->per_cpu]));
		ASSERT_EQ(0, wh_add(self->fd, HOUR + i, 0, i, &self->handles[i]));
	}
	ASSERT_LE(sum / CELLS, total("chunks"));
	/* Otherwise this test proves nothing. */
	ASSERT_LT(self->before + 2ULL * KEPT * self->n, total("chunks"));
}

/* Cancels them: every other one on its own CPU, the others on the next CPU. */
static void cancel_all(struct __test_metadata *_metadata, FIXTURE_DATA(chunks) * self)
{
	unsigned int i, other, cpu, sum = self->n * self->per_cpu;

	for (i = 0; i < 2 * sum; i++) {
		other = i >= sum;
		cpu = i % sum / self->per_cpu + other;
		if (i % self->per_cpu == 0)
			ASSERT_EQ(0, pin(self->cpu[cpu % self->n]));
		if (i % 2 == other)
			ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, self->handles[i % sum]));
	}
}

static bool are_back(FIXTURE_DATA(chunks) * self)
{
	return total("chunks") <= self->before + (__u64)KEPT * self->n;
}

/* The context stays open: its timers being gone is enough. */
TEST_F_TIMEOUT(chunks, come_back, 120)
{
	__u64 end;
	int round;

	for (round = 0; round < 2; round++) {
		arm_all(_metadata, self);
		cancel_all(_metadata, self);
		end = now_ns() + 10 * SEC;
		while (!are_back(self) && now_ns() < end)
			sleep_ns(10 * MSEC);
		EXPECT_EQ(true, are_back(self)) TH_LOG("%llu chunks, %llu before", total("chunks"),
						       self->before);
	}
}

/* Under memory pressure, chunks are returned at once; otherwise this takes at least 4 s. */
TEST_F_TIMEOUT(chunks, come_back_under_pressure, 120)
{
	__u64 end;

	arm_all(_metadata, self);
	cancel_all(_metadata, self);
	end = now_ns() + 3900 * MSEC;
	while (!are_back(self) && now_ns() < end) {
		ASSERT_EQ(0, file_write("/proc/sys/vm/drop_caches", 2));
		sleep_ns(10 * MSEC);
	}
	EXPECT_EQ(true, are_back(self)) TH_LOG("%llu chunks, %llu before", total("chunks"),
					       self->before);
}

/* Chunks with timers stay, and their timers still work. */
TEST_F_TIMEOUT(chunks, in_use_stay, 120)
{
	unsigned int i, sum = self->n * self->per_cpu;
	__u64 held;

	arm_all(_metadata, self);
	for (i = 0; i < sum; i++)
		if (i % 64)
			ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, self->handles[i]));
	held = total("pending");
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, file_write("/proc/sys/vm/drop_caches", 2));
		sleep_ns(100 * MSEC);
	}
	EXPECT_EQ(held, total("pending"));
	EXPECT_LE(sum / 64, total("chunks") - total("free_chunks"));
	for (i = 0; i < sum; i += 64)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, self->handles[i], HOUR / 2, 0));
	for (i = 0; i < sum; i += 64)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, self->handles[i]));
}

TEST_HARNESS_MAIN
