// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory: a small memory cgroup limits how many timers a context can have. The context keeps
 * working, those of others are not affected, and closing it returns its memory. Chunks, rings and
 * touch arrays are charged as well as timers.
 */
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "memory_test.h"
#include "watch_test.h"

/* The memory to fill; less on a slow kernel. */
#define LIMIT	((very_many() < 100000 ? 2ULL : 8ULL) << 20)
#define ENOUGH	(1U << 20)
/* Free chunks that a CPU may keep. */
#define KEPT	448

FIXTURE(memory)
{
	int fd;
	__u64 max_timers;
};

FIXTURE_VARIANT(memory)
{
	struct twheel_timer_add add;
};

FIXTURE_VARIANT_ADD(memory, plain)
{
	.add = { .time = HOUR, .clock = CLOCK_MONOTONIC },
};

FIXTURE_VARIANT_ADD(memory, keyed)
{
	.add = { .time = HOUR, .clock = CLOCK_MONOTONIC, .flags = TWHEEL_KEYED },
};

FIXTURE_VARIANT_ADD(memory, with_limits)
{
	.add = { .time = HOUR, .clock = CLOCK_MONOTONIC, .lifetime = HOUR },
};

FIXTURE_SETUP(memory)
{
	self->fd = -1;
	if (!have_groups())
		SKIP(return, "no memory cgroups");
	self->max_timers = file_number(PARAMETERS "max_timers");
	ASSERT_NE(POISON, self->max_timers);
	ASSERT_EQ(0, file_write(PARAMETERS "max_timers", 4 * ENOUGH));
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, make_group());
	ASSERT_EQ(0, file_write(GROUP "/memory.max", LIMIT));
}

FIXTURE_TEARDOWN(memory)
{
	if (self->fd < 0)
		return;
	EXPECT_EQ(0, file_write(PARAMETERS "max_timers", self->max_timers));
	EXPECT_EQ(0, rmdir(GROUP));
	EXPECT_EQ(0, close(self->fd));
}

/* The number of OOM kills in the group. */
static __u64 nr_oom_kills(void)
{
	return group_number("memory.events", "oom_kill");
}

static int add_another(int fd, const struct twheel_timer_add *like, __u64 *handle)
{
	struct twheel_timer_add add = *like;
	static __u64 key;
	int ret;

	if (add.flags & TWHEEL_KEYED)
		add.key = key++;
	ret = wh_add_timer(fd, &add);
	*handle = add.handle;
	if (add.flags & TWHEEL_KEYED)
		return ret == TWHEEL_WAS_ABSENT ? 0 : ret;
	return ret;
}

/* Does everything that needs no more memory still work? Returns what does not, or NULL. */
static const char *usage_fault(int fd, const struct twheel_timer_add *like, __u64 first,
			       __u64 second)
{
	struct twheel_event event;
	__u64 timers = wh_nr_timers(fd), handle;

	if (wh_rearm(fd, first, 2 * HOUR, 0) != TWHEEL_WAS_PENDING)
		return "re-arm";
	if (wh_rearm(fd, first, 0, 0) != TWHEEL_WAS_PENDING || !wh_wait(fd))
		return "expiry";
	if (wh_read(fd, &event, 1) != 1 || event.handle != first)
		return "read";
	if (wh_cancel(fd, second) != TWHEEL_WAS_PENDING)
		return "cancel";
	/* Their memory is available for two others. */
	if (add_another(fd, like, &handle) || add_another(fd, like, &handle))
		return "add";
	if (wh_nr_timers(fd) != timers)
		return "number of timers";
	return NULL;
}

/* Joins the cgroup and fills a context. Returns what went wrong, or NULL. */
static const char *fill_in_group(const struct twheel_timer_add *like, unsigned int *n)
{
	__u64 handles[2], handle;
	const char *wrong;
	int fd, ret = 0, round;

	if (write_text(GROUP "/cgroup.procs", "0"))
		return "cannot join the group";
	for (round = 0; round < 2; round++) {
		fd = wh_open(O_NONBLOCK);
		if (fd < 0)
			return "open";
		for (*n = 0; *n < ENOUGH; ++*n) {
			ret = add_another(fd, like, *n < 2 ? &handles[*n] : &handle);
			if (ret)
				break;
		}
		if (ret != -ENOMEM)
			return strerror(-ret);
		if (wh_nr_timers(fd) != *n)
			return "a timer that was refused counts";
		wrong = usage_fault(fd, like, handles[0], handles[1]);
		if (wrong)
			return wrong;
		/* Its memory must be available again: the next round needs as much. */
		if (close(fd))
			return "close";
	}
	return NULL;
}

TEST_F_TIMEOUT(memory, of_a_small_cgroup, 280)
{
	struct {
		char		wrong[64];
		unsigned int	n;
	} *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	__u64 pending = total("pending"), handle, current, end;
	const char *wrong;
	pid_t child;
	int status;

	ASSERT_NE(MAP_FAILED, shared);
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		/* Allocates what the program itself needs before memory is short. */
		if (mlockall(MCL_CURRENT | MCL_FUTURE))
			_exit(2);
		wrong = fill_in_group(&variant->add, &shared->n);
		if (wrong)
			snprintf(shared->wrong, sizeof(shared->wrong), "%s", wrong);
		_exit(!!wrong);
	}
	/* Outside the group there is memory all the time. */
	end = now_ns() + GUARD_MS * MSEC * 10;
	while (!waitpid(child, &status, WNOHANG)) {
		ASSERT_GT(end, now_ns());
		ASSERT_EQ(0, add_another(self->fd, &variant->add, &handle));
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
		sleep_ns(MSEC);
	}
	EXPECT_EQ(true, WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status)) TH_LOG("%s", shared->wrong);
	/* Calls were rejected, and nothing was killed. */
	EXPECT_EQ(0, nr_oom_kills());
	printf("# %u timers in %llu kB\n", shared->n, LIMIT >> 10);
	/* It was the timers that filled the group. */
	EXPECT_LT(LIMIT / 256 / 2, shared->n);
	EXPECT_GT(LIMIT / 40, shared->n);
	EXPECT_EQ(pending, total("pending"));
	/*
	 * The memory is returned as soon as the workers that do this have run. A CPU returns the
	 * pages that it keeps charged in advance when the group is over its limit.
	 */
	end = now_ns() + GUARD_MS * MSEC;
	do {
		sleep_ns(10 * MSEC);
		ASSERT_EQ(0, file_write(GROUP "/memory.high", LIMIT / 8));
		current = file_number(GROUP "/memory.current");
	} while (current > LIMIT / 8 && now_ns() < end);
	EXPECT_GE(LIMIT / 8, current);
	munmap(shared, 4096);
}

FIXTURE(charges)
{
	int fd;
	int group, outside;
	int n;
	int cpu[64];
	unsigned int timers;
	__u64 *handles;
	__u64 before, max_timers;
};

static bool wait_chunks(__u64 max, __u64 ns)
{
	__u64 end = now_ns() + ns;

	while (total("chunks") > max) {
		if (now_ns() > end)
			return false;
		sleep_ns(10 * MSEC);
	}
	return true;
}

FIXTURE_SETUP(charges)
{
	self->fd = -1;
	if (!have_groups())
		SKIP(return, "no memory cgroups");
	self->max_timers = file_number(PARAMETERS "max_timers");
	ASSERT_EQ(0, file_write(PARAMETERS "max_timers", 4 * ENOUGH));
	self->n = cpus(self->cpu, 64);
	ASSERT_LT(0, self->n);
	/* Chunks of previous tests may not have been returned yet. */
	ASSERT_EQ(true, wait_chunks(self->n * KEPT, 10 * SEC));
	self->before = total("chunks");
	ASSERT_EQ(0, make_group());
	/* Opened now: at the group's limit, the test could not do so. */
	self->group = open(GROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC);
	self->outside = open(GROUPS "cgroup.procs", O_WRONLY | O_CLOEXEC);
	ASSERT_GE(self->group, 0);
	ASSERT_GE(self->outside, 0);
	/* The test itself joins the group, and leaves it only to observe. */
	ASSERT_EQ(1, write(self->group, "0", 1));
	self->handles = calloc(ENOUGH, sizeof(*self->handles));
	ASSERT_NE(NULL, self->handles);
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(charges)
{
	if (self->fd < 0)
		return;
	EXPECT_EQ(1, write(self->outside, "0", 1));
	EXPECT_EQ(0, close(self->outside));
	EXPECT_EQ(0, close(self->group));
	EXPECT_EQ(0, file_write(PARAMETERS "max_timers", self->max_timers));
	EXPECT_EQ(0, rmdir(GROUP));
	free(self->handles);
}

static void cancel_but(struct __test_metadata *_metadata, FIXTURE_DATA(charges) * self,
		       unsigned int from, unsigned int each)
{
	unsigned int i;

	for (i = from; i < self->timers; i++) {
		if (each && (i - from) % each == 0)
			continue;
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, self->handles[i]));
	}
}

/*
 * Moves every sixth handle, which is that of an armed timer, to the front. Returns how many there
 * are.
 */
static unsigned int move_armed_to_front(__u64 *handles, unsigned int nr)
{
	unsigned int i, kept = 0;

	for (i = 0; i < nr; i += 6)
		handles[kept++] = handles[i];
	return kept;
}

/*
 * Limits the group to @bytes more than it has now. Up to 64 pages on each CPU are charged in
 * advance: setting a limit below the current usage returns most of them.
 */
static int limit_group(__u64 bytes)
{
	int ret = file_write(GROUP "/memory.high", 0);

	sleep_ns(100 * MSEC);
	ret = ret ?: write_text(GROUP "/memory.high", "max");
	return ret ?: file_write(GROUP "/memory.max", file_number(GROUP "/memory.current") + bytes);
}

/* Timers whose memory has been allocated before: only their chunks are new. */
TEST_F_TIMEOUT(charges, chunks, 120)
{
	__u64 kernel, chunks;
	unsigned int i, round;

	self->timers = very_many();
	for (round = 0; round < 2; round++) {
		kernel = wait_uncharged(self->group);
		chunks = total("chunks");
		for (i = 0; i < self->timers; i++)
			ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &self->handles[i]));
		chunks = total("chunks") - chunks;
		if (round)
			break;
		cancel_but(_metadata, self, 0, 0);
		ASSERT_EQ(true, wait_chunks(self->before + self->n * KEPT, 10 * SEC));
	}
	EXPECT_LE(self->timers / 6 - KEPT * self->n, chunks);
	/* With KASAN, memory that was freed earlier may be uncharged only now. */
	EXPECT_EQ(true, wait_charged(self->group, kernel + chunks * 64 * 3 / 4, ~0ULL))
		TH_LOG("%llu bytes in chunks, %lld charged", chunks * 64,
		       kernel_bytes() - kernel);
	EXPECT_EQ(0, close(self->fd));
}

TEST_F_TIMEOUT(charges, mappings, 120)
{
	const __u64 entries = 1 << 14, words = 1 << 17;
	__u64 kernel = kernel_bytes();
	struct twheel_setup setup;

	ASSERT_NE(POISON, kernel);
	ASSERT_EQ(0, wh_setup(self->fd, entries, 0, &setup));
	EXPECT_EQ(true, wait_charged(self->group, kernel + setup.ring_bytes, ~0ULL));
	kernel = kernel_bytes();
	ASSERT_EQ(0, wh_setup(self->fd, 0, words, &setup));
	/* The words, but not the page before them, which all contexts share. */
	EXPECT_EQ(true, wait_charged(self->group, kernel + words * sizeof(__u64), ~0ULL));
	EXPECT_EQ(0, close(self->fd));
}

/*
 * The watches of a closed context may be freed late, as others may still access them; the rest may
 * not.
 */
TEST_F_TIMEOUT(charges, mappings_of_a_context_that_has_watched, 120)
{
	const __u64 entries = 1 << 18, bytes = entries * sizeof(struct twheel_event);
	struct twheel_timer_add add;
	struct twheel_setup setup;
	int here, there, fd, i;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	add = watch_add(here, HOUR, 0);
	ASSERT_EQ(0, file_write(GROUP "/memory.max",
				file_number(GROUP "/memory.current") + bytes * 7 / 4));
	ASSERT_EQ(1, write(self->group, "0", 1));
	/* There is never room for two of them. */
	for (i = 0; i < 10; i++) {
		fd = wh_open(0);
		ASSERT_LE(0, fd);
		EXPECT_EQ(0, wh_setup(fd, entries, 0, &setup));
		EXPECT_EQ(0, wh_add_timer(fd, &add));
		EXPECT_EQ(0, close(fd));
	}
	EXPECT_EQ(1, write(self->outside, "0", 1));
	close(here);
	close(there);
}

/* How many more bytes of kernel memory the group has room for. */
static __u64 room_in_kernel(void)
{
	return file_number(GROUP "/memory.max") - group_number("memory.stat", "anon") -
	       group_number("memory.stat", "file") - kernel_bytes();
}

/*
 * The most chunks that timers can occupy: of the six timers in each chunk, five are cancelled and
 * added again, from one CPU after the other. Their memory in the kernel must roughly stay within
 * the limit, and be freed soon after they are gone.
 */
TEST_F_TIMEOUT(charges, chunks_within_the_limit, 280)
{
	__u64 kernel, room, timers_bytes, bytes;
	unsigned int round, from, i;

	memset(self->handles, 0, ENOUGH * sizeof(*self->handles));
	ASSERT_EQ(0, limit_group(LIMIT));
	kernel = wait_uncharged(self->group);
	room = room_in_kernel();
	for (i = 0; i < ENOUGH; i++)
		if (wh_add(self->fd, HOUR, 0, i, &self->handles[i]))
			break;
	ASSERT_GT(ENOUGH, i);
	self->timers = i;
	cancel_but(_metadata, self, 0, 0);
	ASSERT_EQ(1, write(self->outside, "0", 1));
	ASSERT_EQ(true, wait_chunks(self->before + self->n * KEPT, 10 * SEC));
	timers_bytes = wait_uncharged(self->group) - kernel;
	ASSERT_EQ(1, write(self->group, "0", 1));
	/* The timers before @from have a chunk each. */
	for (from = round = 0; self->timers - from > 600; round++) {
		ASSERT_EQ(0, pin(self->cpu[round % self->n]));
		for (i = from; i < self->timers; i++)
			ASSERT_EQ(0, wh_add(self->fd, HOUR + round, 0, i, &self->handles[i]));
		cancel_but(_metadata, self, from, 6);
		from += move_armed_to_front(self->handles + from, self->timers - from);
	}
	ASSERT_EQ(1, write(self->outside, "0", 1));
	bytes = timers_bytes + (total("chunks") - self->before) * 64;
	printf("# %u timers, %llu kB and %llu kB in chunks, of %llu kB\n", self->timers,
	       timers_bytes >> 10, (bytes - timers_bytes) >> 10, room >> 10);
	EXPECT_GE(room * 11 / 10 + self->n * KEPT * 64, bytes);
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(true, wait_chunks(self->before + self->n * KEPT, 10 * SEC));
}

static int add_key(int fd, __u64 key)
{
	struct twheel_timer_add add = {
		.time	= HOUR,
		.flags	= TWHEEL_KEYED,
		.clock	= CLOCK_MONOTONIC,
		.key	= key,
	};
	int ret = wh_add_timer(fd, &add);

	return ret == TWHEEL_WAS_ABSENT ? 0 : ret;
}

/*
 * Adds timers until the limit is reached, from each CPU: this uses up what is charged in advance
 * there. Returns the context.
 */
static int use_up_memory(FIXTURE_DATA(charges) * self)
{
	int fd = wh_open(O_NONBLOCK), ret = 0, i;
	__u64 n = 0;

	for (i = 0; i < self->n && fd >= 0; i++)
		for (ret = pin(self->cpu[i]); !ret; n++)
			ret = add_key(fd, n);
	return ret == -ENOMEM ? fd : -1;
}

/*
 * Adds the timers, whose memory exists, at a time that is on level 2 of the wheel. Returns when its
 * slot begins.
 */
static __u64 add_far(struct __test_metadata *_metadata, FIXTURE_DATA(charges) * self)
{
	const __u64 slot = 1ULL << 32, begin = (now_ns() / slot + 2) * slot;
	unsigned int i;

	for (i = 0; i < self->timers; i++)
		ASSERT_EQ(0, wh_add(self->fd, begin + 3 * SEC, ABS, i, &self->handles[i]));
	return begin;
}

/*
 * As add_far(), for timers that the kernel re-arms: there is activity at once, and again shortly
 * before they would expire. Returns the time of the latter.
 */
static __u64 add_touched(struct __test_metadata *_metadata, FIXTURE_DATA(charges) * self,
			 struct twheel_touch *touch)
{
	struct twheel_timer_add add = {
		.time	= TWHEEL_TIME_NONE,
		.flags	= TWHEEL_TOUCHED,
		.clock	= CLOCK_MONOTONIC,
		.idle	= 4 * SEC,
	};
	__u64 begin;

	for (add.touch = 0; add.touch < self->timers; add.touch++) {
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		self->handles[add.touch] = add.handle;
	}
	begin = now_ns() + 3 * SEC;
	if (!touch)
		return 0;
	sleep_ns(begin - now_ns());
	for (add.touch = 0; add.touch < self->timers; add.touch++)
		__atomic_store_n(&touch->words[add.touch], touch->now, __ATOMIC_RELAXED);
	return begin;
}

/*
 * Cancels the timers, which keep their memory, and leaves the group none for chunks. The test then
 * leaves the group, as it could not open files there. Returns the context that has used up the
 * memory.
 */
static int leave_no_memory(struct __test_metadata *_metadata, FIXTURE_DATA(charges) * self)
{
	int full;

	cancel_but(_metadata, self, 0, 0);
	EXPECT_EQ(true, wait_chunks(self->before + self->n * KEPT, 10 * SEC));
	EXPECT_EQ(0, limit_group(LIMIT / 8));
	full = use_up_memory(self);
	EXPECT_LE(0, full);
	EXPECT_EQ(1, write(self->outside, "0", 1));
	return full;
}

/*
 * Adds timers in a group that has memory for timers, but none for chunks. Two seconds after the
 * time that add_far() or add_touched() returns, they have been reached and are on the wheel again.
 */
static void run_without_memory(struct __test_metadata *_metadata, FIXTURE_DATA(charges) * self,
			       struct twheel_touch *touch)
{
	__u64 chunks, begin, after;
	int fd;

	self->timers = very_many() / 2;
	if (touch)
		add_touched(_metadata, self, NULL);
	else
		add_far(_metadata, self);
	fd = leave_no_memory(_metadata, self);
	chunks = total("chunks");
	ASSERT_EQ(1, write(self->group, "0", 1));
	begin = touch ? add_touched(_metadata, self, touch) : add_far(_metadata, self);
	ASSERT_EQ(1, write(self->outside, "0", 1));
	sleep_ns(begin + 2 * SEC - now_ns());
	after = total("chunks");
	printf("# %u timers, %llu chunks before, %llu after\n", self->timers, chunks, after);
	EXPECT_GE(chunks + self->n * KEPT, after);
	EXPECT_EQ(true, wh_wait_events(self->fd, self->timers));
	EXPECT_EQ(0, close(fd));
	EXPECT_EQ(0, close(self->fd));
}

/* A group without memory for chunks does not get any when its timers cascade. */
TEST_F_TIMEOUT(charges, timers_that_cascade, 120)
{
	run_without_memory(_metadata, self, NULL);
}

/* Nor when the kernel re-arms its timers. */
TEST_F_TIMEOUT(charges, timers_armed_anew, 120)
{
	struct twheel_touch *touch;
	struct twheel_setup setup;

	ASSERT_EQ(0, wh_setup(self->fd, 0, very_many() / 2, &setup));
	touch = wh_map(self->fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, touch);
	/* Allocates its pages. */
	memset((void *)touch->words, 0, very_many() / 2 * sizeof(touch->words[0]));
	run_without_memory(_metadata, self, touch);
	EXPECT_EQ(0, munmap(touch, setup.touch_bytes));
}

/*
 * Until @end, makes the group without memory use up the chunks of this CPU, which others may have
 * added, and the memory that the group has got back. @max timers have memory. Returns how many of
 * them were not needed.
 */
static unsigned int use_chunks_up(FIXTURE_DATA(charges) * self, unsigned int max, __u64 end)
{
	const __u64 spilled = total("spilled");
	__u64 handle;
	int i, ret = 0;

	while (max >= 100 && total("spilled") == spilled && !ret && now_ns() < end) {
		if (write(self->group, "0", 1) != 1)
			return 0;
		for (i = 0; i < 100 && !ret; i++)
			ret = wh_add(self->fd, HOUR + max-- * SEC, 0, i, &handle);
		if (write(self->outside, "0", 1) != 1)
			return 0;
	}
	return ret ? 0 : max;
}

/*
 * One slot has timers of a group without memory for chunks, which are re-armed as their context has
 * a ring; and timers of somebody else, which cascade and get chunks.
 */
TEST_F_TIMEOUT(charges, timers_beside_those_of_the_poor, 120)
{
	/*
	 * This many need several pages: a single page that becomes free in the group is not enough.
	 */
	enum { TIMERS = 3000, HAS = 10000 };
	struct twheel_timer_add add = {
		.time	= HOUR,
		.clock	= CLOCK_MONOTONIC,
		.period	= 2 * SEC,
	};
	struct twheel_setup setup;
	__u64 spilled, handle, end;
	int other, full, has, i;

	ASSERT_EQ(0, wh_setup(self->fd, 4096, 0, &setup));
	/* Allocates their memory. */
	self->timers = HAS;
	add_far(_metadata, self);
	for (i = 0; i < TIMERS; i++) {
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		self->handles[self->timers++] = add.handle;
	}
	full = leave_no_memory(_metadata, self);
	other = wh_open(O_NONBLOCK);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, pin(self->cpu[0]));
	/* The start of a slot of level 2. */
	add.time = ((now_ns() >> 32) + 3) << 32;
	add.flags = ABS;
	for (i = 0; i < TIMERS; i++) {
		ASSERT_EQ(0, wh_add(other, add.time + SEC, ABS, i, &handle));
		ASSERT_EQ(1, write(self->group, "0", 1));
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		ASSERT_EQ(1, write(self->outside, "0", 1));
	}
	sleep_ns(add.time - 500 * MSEC - now_ns());
	/*
	 * There may be chunks that others have added, and the kernel may not know yet that the
	 * group cannot pay.
	 */
	end = add.time - 60 * MSEC;
	for (has = HAS; now_ns() < end; sleep_ns(20 * MSEC))
		has = use_chunks_up(self, has, end);
	ASSERT_LT(0, has);
	ASSERT_GT(add.time, now_ns());
	spilled = total("spilled");
	sleep_ns(add.time + SEC / 2 - now_ns());
	spilled = total("spilled") - spilled;
	printf("# %llu were spilled\n", spilled);
	EXPECT_LT(0, spilled);
	/* None of the other's; but some of the group's twice, on a wheel that has to catch up. */
	EXPECT_GE(TIMERS * 3 / 2, spilled);
	EXPECT_EQ(true, wh_wait_events(other, TIMERS));
	EXPECT_EQ(0, close(full));
	EXPECT_EQ(0, close(other));
	EXPECT_EQ(0, close(self->fd));
}

/* A group without memory does not use up the chunks that others add, a few at a time. */
TEST_F_TIMEOUT(charges, chunks_of_others, 120)
{
	enum { ROUNDS = 80, EACH = 300 };
	__u64 before, chunks, handle;
	int other, full, round, i;

	/* Allocates their memory. */
	self->timers = ROUNDS * EACH;
	add_far(_metadata, self);
	full = leave_no_memory(_metadata, self);
	other = wh_open(O_NONBLOCK);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, pin(self->cpu[0]));
	before = total("chunks");
	self->timers = EACH;
	for (round = 0; round < ROUNDS; round++) {
		ASSERT_EQ(1, write(self->group, "0", 1));
		for (i = 0; i < EACH; i++)
			ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &self->handles[i]));
		/* Each remaining timer has a chunk of its own. */
		cancel_but(_metadata, self, 0, 6);
		ASSERT_EQ(1, write(self->outside, "0", 1));
		for (i = 0; i < 10; i++) {
			ASSERT_EQ(0, wh_add(other, HOUR, 0, 0, &handle));
			ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(other, handle));
		}
		/* By now the kernel would try to charge the group again. */
		sleep_ns(110 * MSEC);
	}
	chunks = total("chunks");
	printf("# %llu chunks before, %llu after\n", before, chunks);
	/* The group has paid for some, whenever one of its pages became free: for far from all. */
	EXPECT_GE(before + ROUNDS * EACH / 6 / 2, chunks);
	EXPECT_EQ(0, close(full));
	EXPECT_EQ(0, close(other));
	EXPECT_EQ(0, close(self->fd));
}

/* More groups than a CPU remembers. */
#define POOR		64
#define POOR_GROUP	GROUP "/poor-%d"

/* Timers that fill two chunks. */
#define TWO_CHUNKS	12

/* Takes two more chunks, with one timer each. Returns whether the calls succeeded. */
static bool take_chunks(int fd)
{
	__u64 handles[TWO_CHUNKS];
	int i;

	for (i = 0; i < TWO_CHUNKS; i++)
		if (wh_add(fd, HOUR, 0, 0, &handles[i]))
			return false;
	for (i = 0; i < TWO_CHUNKS; i++)
		if (i % 6 && wh_cancel(fd, handles[i]) != TWHEEL_WAS_PENDING)
			return false;
	return true;
}

/*
 * A process in one of the groups, which have no memory left once the first has used it up: takes
 * chunks whenever it is its turn.
 */
static void run_poor_process(FIXTURE_DATA(charges) * self, int number, int go, int ready)
{
	__u64 one = 1;
	char path[64];

	snprintf(path, sizeof(path), POOR_GROUP "/cgroup.procs", number);
	/* Copies all pages that it writes to later. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE) || write_text(path, "0") ||
	    write(ready, &one, sizeof(one)) != sizeof(one) ||
	    read(go, &one, sizeof(one)) != sizeof(one) || (!number && use_up_memory(self) < 0) ||
	    pin(self->cpu[0]))
		_exit(1);
	while (write(ready, &one, sizeof(one)) == sizeof(one) &&
	       read(go, &one, sizeof(one)) == sizeof(one) && take_chunks(self->fd))
		;
	_exit(2);
}

/* Lets one of the processes take its turn, and waits until it is done. */
static bool take_turn(int go, int ready)
{
	__u64 one = 1;

	return write(go, &one, sizeof(one)) == sizeof(one) &&
	       read(ready, &one, sizeof(one)) == sizeof(one);
}

/* Nor does somebody who has more groups than a CPU remembers, and uses them in turn. */
TEST_F_TIMEOUT(charges, chunks_of_others_by_turns, 280)
{
	enum { FIRST = 4 * POOR, TURNS = 64 * POOR };
	int go[POOR], ready = eventfd(0, 0), other = wh_open(O_NONBLOCK), turn, i;
	__u64 before = 0, chunks, one, handle;
	char path[64];
	pid_t pid[POOR];

	ASSERT_LE(0, ready);
	ASSERT_LE(0, other);
	/* Allocates their memory. */
	self->timers = TURNS * 2 + TWO_CHUNKS;
	add_far(_metadata, self);
	cancel_but(_metadata, self, 0, 0);
	ASSERT_EQ(1, write(self->outside, "0", 1));
	ASSERT_EQ(0, write_text(GROUP "/cgroup.subtree_control", "+memory"));
	for (i = 0; i < POOR; i++) {
		snprintf(path, sizeof(path), POOR_GROUP, i);
		ASSERT_EQ(0, mkdir(path, 0755));
		go[i] = eventfd(0, 0);
		ASSERT_LE(0, go[i]);
		pid[i] = fork();
		if (!pid[i])
			run_poor_process(self, i, go[i], ready);
		ASSERT_EQ(sizeof(one), read(ready, &one, sizeof(one)));
	}
	ASSERT_EQ(0, limit_group(LIMIT / 8));
	for (i = 0; i < POOR; i++)
		ASSERT_EQ(true, take_turn(go[i], ready));
	ASSERT_EQ(0, pin(self->cpu[0]));
	for (turn = 0; turn < TURNS; turn++) {
		/* They have paid for some by then, with what was left. */
		if (turn == FIRST)
			before = total("chunks");
		ASSERT_EQ(true, take_turn(go[turn % POOR], ready));
		for (i = 0; i < 10 && turn % 16 == 0; i++) {
			ASSERT_EQ(0, wh_add(other, HOUR, 0, 0, &handle));
			ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(other, handle));
		}
	}
	chunks = total("chunks");
	printf("# %llu chunks before, %llu after\n", before, chunks);
	EXPECT_GE(before + (TURNS - FIRST) * 2 / 2, chunks);
	for (i = 0; i < POOR; i++) {
		EXPECT_EQ(0, kill(pid[i], SIGKILL));
		EXPECT_EQ(pid[i], waitpid(pid[i], NULL, 0));
		close(go[i]);
		snprintf(path, sizeof(path), POOR_GROUP, i);
		EXPECT_EQ(0, rmdir(path));
	}
	EXPECT_EQ(0, close(ready));
	EXPECT_EQ(0, close(other));
	EXPECT_EQ(0, close(self->fd));
}

TEST_HARNESS_MAIN
