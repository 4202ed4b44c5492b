// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drain: every timer is returned once, as it was, and timers that could not be returned are still
 * there. Also the statistics of a context.
 */
#include <sys/wait.h>

#include "twheel_test.h"

#define PAGE	4096UL
#define RECORD	sizeof(struct twheel_timer_query)

FIXTURE(drain)
{
	int fd;
};

FIXTURE_SETUP(drain)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	random_seed();
}

FIXTURE_TEARDOWN(drain)
{
	EXPECT_EQ(0, close(self->fd));
}

/*
 * Adds timers of all kinds, and waits until the first @expired have expired. Records their state.
 */
static void add_mixed(struct __test_metadata *_metadata, int fd, size_t n, size_t expired,
		      struct twheel_timer_query *records)
{
	struct twheel_timer_add add;
	__u64 before = wh_nr_events(fd);
	size_t i;

	for (i = 0; i < n; i++) {
		memset(&add, 0, sizeof(add));
		/* With a lifetime, 0 would mean no deadline. */
		add.time = i < expired ? 1 : HOUR + i;
		add.user_data = i;
		add.clock = i % 7 == 1 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
		if (i % 3 == 1) {
			add.flags = TWHEEL_KEYED;
			add.key = ~i;
		}
		if (i % 5 == 1)
			add.period = HOUR;
		else if (i % 7 != 1 && i % 5 == 2)
			add.lifetime = 2 * HOUR;
		ASSERT_LE(0, wh_add_timer(fd, &add));
		records[i].handle = add.handle;
	}
	ASSERT_EQ(true, wh_wait_events(fd, before + expired));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_query(fd, records[i].handle, &records[i]));
}

/* Is this what a query returned, except for the time that has passed? */
static bool same_record(const struct twheel_timer_query *before, struct twheel_timer_query now)
{
	if (now.remaining > before->remaining)
		return false;
	now.remaining = before->remaining;
	return !memcmp(before, &now, sizeof(now));
}

TEST_F(drain, as_a_query_would_have_told)
{
	enum { N = 500, EXPIRED = 100 };
	static struct twheel_timer_query before[N], records[N];
	struct twheel_event event;
	__u64 cursor = 0, seen = 0;
	size_t max, i;
	int n;

	for (max = 1; max <= N; max = max * 3 + 1) {
		add_mixed(_metadata, self->fd, N, EXPIRED, before);
		for (cursor = seen = 0;; seen += n) {
			memset(records, 0xa5, sizeof(records));
			n = wh_drain(self->fd, records, max, RECORD, &cursor);
			ASSERT_LE(0, n);
			ASSERT_GE(max, (size_t)n);
			if (!n)
				break;
			for (i = 0; i < (size_t)n; i++) {
				ASSERT_GT(N, records[i].user_data);
				ASSERT_EQ(true, same_record(&before[records[i].user_data],
							    records[i]))
					TH_LOG("timer %llu", records[i].user_data);
				/* Never returned twice. */
				before[records[i].user_data].handle = 0;
			}
			EXPECT_EQ(N - seen - n, wh_nr_timers(self->fd));
		}
		EXPECT_EQ(N, seen);
		EXPECT_EQ(0, wh_nr_timers(self->fd));
		EXPECT_EQ(0, wh_nr_events(self->fd));
		EXPECT_EQ(false, wh_ready(self->fd));
		EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
		for (i = 0; i < N; i++)
			EXPECT_EQ(-ENOENT, wh_cancel_key(self->fd, ~i));
	}
}

TEST_F(drain, without_a_word)
{
	enum { N = 1000 };
	static struct twheel_timer_query before[N];
	__u64 cursor = 0;
	size_t i;
	int n;

	add_mixed(_metadata, self->fd, N, N / 10, before);
	ASSERT_EQ(300, wh_drain(self->fd, NULL, 300, RECORD, &cursor));
	EXPECT_EQ(N - 300, wh_nr_timers(self->fd));
	n = wh_drain(self->fd, NULL, 0x7fffffff, RECORD, &cursor);
	EXPECT_EQ(N - 300, n);
	EXPECT_EQ(0, wh_drain(self->fd, NULL, 0x7fffffff, RECORD, &cursor));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	for (i = 0; i < N; i++)
		EXPECT_EQ(-ENOENT, wh_state(self->fd, before[i].handle));
	/* Starts again from 0; draining an empty context does nothing. */
	cursor = 0;
	EXPECT_EQ(0, wh_drain(self->fd, NULL, 10, RECORD, &cursor));
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, NULL));
	cursor = 0;
	EXPECT_EQ(1, wh_drain(self->fd, NULL, 10, RECORD, &cursor));
}

/* A program's records may be shorter than the kernel's, or longer. */
TEST_F(drain, records_of_other_sizes)
{
	enum { N = 50, LONGER = 120 };
	static struct twheel_timer_query before[N];
	static unsigned char bytes[(N + 1) * LONGER];
	const size_t sizes[] = { 40, 48, 56, RECORD, RECORD + 8, LONGER };
	struct twheel_timer_query record;
	size_t i, k, size, known;
	__u64 cursor;

	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		size = sizes[k];
		known = size < RECORD ? size : RECORD;
		add_mixed(_metadata, self->fd, N, 5, before);
		memset(bytes, 0xa5, sizeof(bytes));
		cursor = 0;
		ASSERT_EQ(N, wh_drain(self->fd, bytes, N, size, &cursor));
		for (i = 0; i < N; i++) {
			memcpy(&record, bytes + i * size, known);
			ASSERT_GT(N, record.user_data);
			memcpy((unsigned char *)&record + known,
			       (unsigned char *)&before[record.user_data] + known,
			       RECORD - known);
			EXPECT_EQ(true, same_record(&before[record.user_data], record))
				TH_LOG("size %zu timer %llu", size, record.user_data);
		}
		/* Nothing is written after the last record. */
		for (i = N * size; i < sizeof(bytes); i++)
			ASSERT_EQ(0xa5, bytes[i]);
		EXPECT_EQ(0, wh_drain(self->fd, bytes, N, size, &cursor));
	}
}

/* Memory that ends midway: timers that were not returned have not been cancelled. */
TEST_F(drain, bad_memory_loses_nothing)
{
	enum { N = 200 };
	static struct twheel_timer_query before[N];
	unsigned char *memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *page;
	struct twheel_timer_query *records;
	int protections[] = { PROT_NONE, PROT_READ }, n, total;
	size_t i, k, fit, alive;
	__u64 cursor = 0;

	ASSERT_NE(MAP_FAILED, memory);
	page = memory + 7 * PAGE;
	add_mixed(_metadata, self->fd, N, N / 4, before);
	for (k = 0; k < 2; k++) {
		ASSERT_EQ(0, mprotect(page, PAGE, protections[k]));
		EXPECT_EQ(-EFAULT, wh_drain(self->fd, page, N, RECORD, &cursor));
		EXPECT_EQ(0, cursor);
		EXPECT_EQ(-EFAULT, wh_drain(self->fd, (void *)8, N, RECORD, &cursor));
		EXPECT_EQ(-EFAULT, wh_drain(self->fd, page - RECORD + 8, 1, RECORD, &cursor));
		EXPECT_EQ(N, wh_nr_timers(self->fd));
		EXPECT_EQ(N / 4, wh_nr_events(self->fd));
		ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
	}
	for (total = 0, fit = 1; fit < 100 && total < N; fit += 13) {
		records = (struct twheel_timer_query *)page - fit;
		ASSERT_EQ(0, mprotect(page, PAGE, PROT_NONE));
		n = wh_drain(self->fd, records, 100, RECORD, &cursor);
		ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
		/*
		 * It may return fewer records than fit, but must not cancel a timer that it does
		 * not return.
		 */
		if (n == -EFAULT)
			n = 0;
		ASSERT_LE(0, n);
		ASSERT_GE(fit, (size_t)n);
		total += n;
		EXPECT_EQ(N - total, wh_nr_timers(self->fd));
		for (i = 0; i < (size_t)n; i++) {
			ASSERT_GT(N, records[i].user_data);
			EXPECT_EQ(true, same_record(&before[records[i].user_data], records[i]));
			before[records[i].user_data].handle = 0;
		}
	}
	for (alive = i = 0; i < N; i++) {
		if (!before[i].handle)
			continue;
		alive++;
		EXPECT_EQ((int)before[i].state, wh_state(self->fd, before[i].handle));
	}
	EXPECT_EQ(N, total + alive);
	munmap(memory, 8 * PAGE);
}

TEST_F(drain, any_cursor)
{
	enum { N = 100 };
	static struct twheel_timer_query before[N];
	__u64 cursor, drained = 0;
	unsigned int i;
	int n;

	add_mixed(_metadata, self->fd, N, 10, before);
	for (i = 0; i < 2000; i++) {
		cursor = i & 1 ? random_u64() : random_magnitude(64);
		n = wh_drain(self->fd, NULL, 1, RECORD, &cursor);
		ASSERT_LE(0, n);
		drained += n;
	}
	EXPECT_EQ(N - drained, wh_nr_timers(self->fd));
	cursor = 0;
	ASSERT_EQ(N - (int)drained, wh_drain(self->fd, NULL, N, RECORD, &cursor));
}

/**
 * struct company - threads that use one context
 * @fd:		the context
 * @stop:	the threads must exit
 * @added:	timers added
 * @read:	events read
 * @drained:	timers drained
 * @faults:	violations
 */
struct company {
	int	fd;
	bool	stop;
	__u64	added;
	__u64	read;
	__u64	drained;
	__u64	faults;
};

static void add_count(__u64 *number, __u64 by)
{
	__atomic_fetch_add(number, by, __ATOMIC_RELAXED);
}

static void *run_adder(void *arg)
{
	struct company *company = arg;
	unsigned int i;

	random_thread(now_ns(), 1);
	for (i = 0; !__atomic_load_n(&company->stop, __ATOMIC_RELAXED); i++) {
		if (wh_add(company->fd, i & 1 ? HOUR : random_below(3 * MSEC), 0, 1, NULL))
			add_count(&company->faults, 1);
		else
			add_count(&company->added, 1);
	}
	return NULL;
}

static void *run_reader(void *arg)
{
	struct company *company = arg;
	struct twheel_event events[16];
	int n;

	while (!__atomic_load_n(&company->stop, __ATOMIC_RELAXED)) {
		n = wh_read(company->fd, events, 16);
		if (n > 0)
			add_count(&company->read, n);
		else if (n != -EAGAIN)
			add_count(&company->faults, 1);
	}
	return NULL;
}

static void *run_drainer(void *arg)
{
	struct company *company = arg;
	struct twheel_timer_query records[40];
	__u64 cursor = 0;
	int n, i;

	while (!__atomic_load_n(&company->stop, __ATOMIC_RELAXED)) {
		n = wh_drain(company->fd, records, 1 + company->drained % 40, RECORD, &cursor);
		if (n < 0)
			add_count(&company->faults, 1);
		if (n <= 0)
			cursor = 0;
		for (i = 0; i < n; i++)
			/* The drainer has removed it. */
			if (wh_cancel(company->fd, records[i].handle) != -ENOENT)
				add_count(&company->faults, 1);
		add_count(&company->drained, n > 0 ? n : 0);
	}
	return NULL;
}

static void *(*const bodies[])(void *) = {
	run_adder, run_reader, run_drainer, run_adder, run_drainer,
};

/* Each timer that was added is read, or drained, or still there: exactly one of them. */
TEST_F_TIMEOUT(drain, while_others_add_and_read, 60)
{
	struct company company = { .fd = self->fd };
	pthread_t threads[ARRAY_SIZE(bodies)];
	struct twheel_context_stats stats;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bodies); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, bodies[i], &company));
	sleep_ns(2 * SEC);
	__atomic_store_n(&company.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < ARRAY_SIZE(bodies); i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	printf("# %llu added, %llu read, %llu drained\n", company.added, company.read,
	       company.drained);
	EXPECT_EQ(0, company.faults);
	EXPECT_LT(0, company.read);
	EXPECT_LT(0, company.drained);
	EXPECT_EQ(company.added, company.read + company.drained + wh_nr_timers(self->fd));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(company.added, stats.adds);
	EXPECT_EQ(company.drained, stats.cancels);
	EXPECT_EQ(company.read, stats.delivered);
}

/* A timer whose event is being read is drained as well. */
TEST_F_TIMEOUT(drain, periodic_timers_while_they_are_read, 60)
{
	enum { N = 50, ROUNDS = 100 };
	struct company company = { .fd = self->fd };
	struct twheel_timer_add add = { .clock = CLOCK_MONOTONIC, .period = 10 * USEC };
	struct twheel_timer_query records[N];
	unsigned int round, drained;
	pthread_t thread;
	__u64 cursor;
	int i, n;

	/* The periods are much shorter than a tick. */
	punctual_off();
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_reader, &company));
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < N; i++)
			ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		sleep_ns(random_below(4 * MSEC));
		cursor = 0;
		drained = 0;
		while ((n = wh_drain(self->fd, records, N, RECORD, &cursor)) > 0) {
			drained += n;
			for (i = 0; i < n; i++)
				ASSERT_EQ(-ENOENT, wh_state(self->fd, records[i].handle));
		}
		ASSERT_EQ(0, n);
		ASSERT_EQ(N, drained);
	}
	__atomic_store_n(&company.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, company.faults);
	printf("# %llu events read\n", company.read);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(0, wh_nr_events(self->fd));
}

/* The context's counters, and its timers, agree with what was done. */
TEST_F(drain, stats)
{
	struct twheel_context_stats stats, zero = { };
	struct twheel_event events[10];
	__u64 handles[10], cursor = 0, bytes;
	int i;

	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	bytes = stats.bytes;
	stats.bytes = 0;
	EXPECT_EQ(0, memcmp(&zero, &stats, sizeof(stats)));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &handles[i]));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(10, stats.adds);
	EXPECT_EQ(10, stats.nr_timers);
	EXPECT_LE(bytes + 10 * 64, stats.bytes);
	/* Rejected calls are not counted. */
	EXPECT_EQ(-EINVAL, wh_add(self->fd, TWHEEL_TIME_MAX + 1, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, wh_rearm(self->fd, handles[0], TWHEEL_TIME_MAX + 1, 0));
	EXPECT_EQ(-ENOENT, wh_cancel(self->fd, 0));

	for (i = 0; i < 4; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handles[i], 0, 0));
	ASSERT_EQ(true, wh_wait_events(self->fd, 4));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_rearm(self->fd, handles[0], HOUR, 0));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, handles[1]));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[0]));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(5, stats.rearms);
	EXPECT_EQ(4, stats.expiries);
	EXPECT_EQ(2, stats.taken_back);
	EXPECT_EQ(2, stats.cancels);
	EXPECT_EQ(0, stats.delivered);
	EXPECT_EQ(8, stats.nr_timers);
	EXPECT_EQ(2, stats.nr_events);

	ASSERT_EQ(2, wh_read(self->fd, events, 10));
	ASSERT_EQ(6, wh_drain(self->fd, NULL, 10, RECORD, &cursor));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(10, stats.adds);
	EXPECT_EQ(8, stats.cancels);
	EXPECT_EQ(2, stats.delivered);
	EXPECT_EQ(0, stats.nr_timers);
	EXPECT_EQ(0, stats.nr_events);
}

/* Memory stays with the context, for the next timers. */
TEST_F(drain, bytes)
{
	struct twheel_context_stats before, full, empty, again;
	__u64 cursor = 0;
	size_t i;

	ASSERT_EQ(0, wh_stats(self->fd, &before));
	for (i = 0; i < 10000; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, NULL));
	ASSERT_EQ(0, wh_stats(self->fd, &full));
	/* 40 to 96 bytes each, plus what is left of the last block. */
	EXPECT_LE(10000 * 40, full.bytes - before.bytes);
	EXPECT_GE(10000 * 96 + 64 * 1024, full.bytes - before.bytes);
	ASSERT_EQ(10000, wh_drain(self->fd, NULL, 10000, RECORD, &cursor));
	ASSERT_EQ(0, wh_stats(self->fd, &empty));
	for (i = 0; i < 10000; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, NULL));
	ASSERT_EQ(0, wh_stats(self->fd, &again));
	EXPECT_EQ(full.bytes, again.bytes);
	EXPECT_GE(full.bytes, empty.bytes);
	for (i = 0; i < 10000; i++)
		ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_set(self->fd, i, HOUR, 0, i, NULL));
	ASSERT_EQ(0, wh_stats(self->fd, &full));
	EXPECT_LE(again.bytes + 10000 * 64, full.bytes);
}

/*
 * If a process is killed during a long drain, the drain stops: the remaining timers are still
 * there.
 */
TEST_F_TIMEOUT(drain, can_be_killed, 90)
{
	/* With fewer, a drain may be over before anybody can be killed. */
	const unsigned int n = 100000;
	__u64 cursor = 0, left, end;
	unsigned int i;
	pid_t child;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, NULL));
	end = now_ns() + GUARD_MS * MSEC;
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(wh_drain(self->fd, NULL, n, RECORD, &cursor) < 0);
	while (wh_nr_timers(self->fd) == n)
		ASSERT_GT(end, now_ns());
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	left = wh_nr_timers(self->fd);
	printf("# %llu of %u timers are left\n", left, n);
	EXPECT_LT(0, left);
	EXPECT_EQ(left, wh_drain(self->fd, NULL, n, RECORD, &cursor));
}

TEST_HARNESS_MAIN
