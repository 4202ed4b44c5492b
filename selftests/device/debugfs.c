// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters in debugfs match what was done, and the files agree with each other. For what an
 * idle wheel does, see idle.c.
 */
#include "twheel_test.h"

static const char * const keys[] = {
	"pending", "adds", "cancels", "remote_cancels", "rearms", "expiries", "cascades", "ticks",
	"empty_ticks",
};

#define KEYS ARRAY_SIZE(keys)

struct numbers {
	__u64 pending;
	__u64 adds;
	__u64 cancels;
	__u64 rearms;
	__u64 expiries;
	__u64 ticks;
};

static void read_numbers(struct numbers *numbers)
{
	numbers->pending = total("pending");
	numbers->adds = total("adds");
	numbers->cancels = total("cancels");
	numbers->rearms = total("rearms");
	numbers->expiries = total("expiries");
	numbers->ticks = total("ticks");
}

FIXTURE(debugfs)
{
	int fd;
	int n;
	int cpu[64];
	struct numbers before;
};

FIXTURE_SETUP(debugfs)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->n = cpus(self->cpu, 64);
	ASSERT_LT(0, self->n);
	read_numbers(&self->before);
}

FIXTURE_TEARDOWN(debugfs)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Checks that exactly this has happened since the test began. */
static void expect_since(struct __test_metadata *_metadata, FIXTURE_DATA(debugfs) * self,
			 __u64 pending, __u64 adds, __u64 cancels, __u64 rearms,
			 __u64 expiries)
{
	struct numbers now;

	read_numbers(&now);
	EXPECT_EQ(pending, now.pending - self->before.pending);
	EXPECT_EQ(adds, now.adds - self->before.adds);
	EXPECT_EQ(cancels, now.cancels - self->before.cancels);
	EXPECT_EQ(rearms, now.rearms - self->before.rearms);
	EXPECT_EQ(expiries, now.expiries - self->before.expiries);
}

TEST_F(debugfs, all_keys_are_there)
{
	const char *key;
	size_t i;

	for (i = 0; i < KEYS; i++) {
		key = keys[i];
		EXPECT_NE(POISON, total(key)) TH_LOG("no %s", key ?: "");
	}
	EXPECT_NE(POISON, total("contexts"));
	EXPECT_NE(POISON, total("chunks"));
	EXPECT_LE(1, total("contexts"));
}

TEST_F(debugfs, only_to_look_at)
{
	const char * const files[] = { "totals", "cpus", "levels", "lateness" };
	struct stat st;
	char path[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), DEBUGFS "/twheel/%s", files[i]);
		ASSERT_EQ(0, stat(path, &st)) TH_LOG("no %s", path);
		EXPECT_EQ(0444, st.st_mode & 0777);
	}
}

TEST_F(debugfs, counts_of_what_was_done)
{
	enum { N = 1000 };
	__u64 handles[N];
	int i;

	for (i = 0; i < N; i++) {
		/* From all CPUs: the totals are their sum. */
		if (!(i % 100))
			ASSERT_EQ(0, pin(self->cpu[i / 100 % self->n]));
		ASSERT_EQ(0, wh_add(self->fd, HOUR + i, 0, i, &handles[i]));
	}
	expect_since(_metadata, self, N, N, 0, 0, 0);
	/* Moved to later and to earlier times, from another CPU than before. */
	for (i = 0; i < 300; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  wh_rearm(self->fd, handles[i], i & 1 ? 2 * HOUR : HOUR / 2, 0));
	expect_since(_metadata, self, N, N, 0, 300, 0);
	for (i = 0; i < 400; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i]));
	expect_since(_metadata, self, N - 400, N, 400, 300, 0);
	for (i = 0; i < 200; i++)
		ASSERT_EQ(0, wh_add(self->fd, i * 20 * USEC, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 200));
	expect_since(_metadata, self, N - 400, N + 200, 400, 300, 200);
	/* Calls that are rejected are not counted. */
	EXPECT_EQ(-ENOENT, wh_cancel(self->fd, handles[0]));
	EXPECT_EQ(-EINVAL, wh_add(self->fd, TWHEEL_TIME_MAX + 1, 0, 0, NULL));
	expect_since(_metadata, self, N - 400, N + 200, 400, 300, 200);
	/* Closing the context cancels the rest. */
	ASSERT_EQ(0, close(self->fd));
	expect_since(_metadata, self, 0, N + 200, N, 300, 200);
	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
}

/* Parses a line of "cpus". Returns how many numbers there are, or -1. */
static int parse_numbers(char *line, __u64 *numbers, int max)
{
	char *word, *end, *rest = line;
	int n = 0;

	while ((word = strsep(&rest, "\n "))) {
		if (!*word)
			continue;
		if (n == max)
			return -1;
		numbers[n++] = strtoull(word, &end, 10);
		if (*end)
			return -1;
	}
	return n;
}

TEST_F(debugfs, cpus_add_up_to_totals)
{
	char heading[512], line[512], *word, *rest = heading;
	__u64 sum[32] = { }, numbers[32];
	char names[32][32];
	int i, columns = 0, lines = 0;
	size_t key, found = 0;
	FILE *file;

	for (i = 0; i < self->n * 20; i++) {
		ASSERT_EQ(0, pin(self->cpu[i % self->n]));
		ASSERT_EQ(0, wh_add(self->fd, i & 1 ? HOUR : 0, 0, i, NULL));
	}
	ASSERT_EQ(true, wh_wait_events(self->fd, self->n * 10));
	file = fopen(DEBUGFS "/twheel/cpus", "r");
	ASSERT_NE(NULL, file);
	ASSERT_NE(NULL, fgets(heading, sizeof(heading), file));
	while ((word = strsep(&rest, "\n "))) {
		if (!*word)
			continue;
		ASSERT_GT(32, columns);
		snprintf(names[columns++], sizeof(names[0]), "%s", word);
	}
	ASSERT_LT(0, columns);
	EXPECT_STREQ("cpu", names[0]);
	while (fgets(line, sizeof(line), file)) {
		ASSERT_EQ(columns, parse_numbers(line, numbers, 32)) TH_LOG("%s", line);
		for (i = 1; i < columns; i++)
			sum[i] += numbers[i];
		lines++;
	}
	fclose(file);
	EXPECT_LE(self->n, lines);
	for (i = 1; i < columns; i++) {
		for (key = 0; key < KEYS; key++) {
			if (strcmp(names[i], keys[key]))
				continue;
			found++;
			EXPECT_EQ(total(keys[key]), sum[i]) TH_LOG("%s", keys[key]);
		}
	}
	EXPECT_EQ(KEYS, found);
}

/* Each timer expires in a tick of its own; in the other ticks they only cascade. */
TEST_F(debugfs, ticks_in_which_nothing_expires)
{
	enum { N = 20 };
	__u64 ticks, empty = total("empty_ticks");
	int i;

	ASSERT_EQ(0, pin(self->cpu[0]));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, wh_add(self->fd, SEC + i * 20 * MSEC, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, N));
	ticks = total("ticks") - self->before.ticks;
	empty = total("empty_ticks") - empty;
	printf("# ticks: %llu, empty: %llu\n", ticks, empty);
	EXPECT_LT(0, empty);
	/* In a guest that is delayed, several may expire in one tick. */
	EXPECT_LE(simulated() ? N : 1, ticks - empty);
	EXPECT_GE(N, ticks - empty);
}

TEST_F(debugfs, cancels_from_another_cpu)
{
	enum { N = 100 };
	__u64 handles[N], before = total("remote_cancels");
	int i;

	ASSERT_EQ(0, pin(self->cpu[0]));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &handles[i]));
	for (i = 0; i < N / 4; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i]));
	EXPECT_EQ(before, total("remote_cancels"));
	ASSERT_EQ(0, pin(self->cpu[self->n - 1]));
	for (; i < N; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i]));
	EXPECT_EQ(before + (self->n > 1 ? N - N / 4 : 0), total("remote_cancels"));
	expect_since(_metadata, self, 0, N, N, 0, 0);
}

TEST_F(debugfs, share_of_cancels)
{
	__u64 handles[900], cancels, expiries;
	int i;

	for (i = 0; i < 900; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &handles[i]));
	for (i = 0; i < 900; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i]));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 100));
	cancels = total("cancels");
	expiries = total("expiries");
	EXPECT_EQ(1000 * cancels / (cancels + expiries), total("cancelled_permille"));
}

struct level {
	__u64 cpu, level, slots, chunks, timers, more;
};

/*
 * Reads the lines of "levels" that have timers. Returns how many there are, or -1. A line without
 * timers is of slots that other CPUs have emptied, which the owner has not noticed yet.
 */
static int read_levels(struct level *levels, int max)
{
	FILE *file = fopen(DEBUGFS "/twheel/levels", "r");
	char line[256];
	int n = -1;

	if (!file)
		return -1;
	if (fgets(line, sizeof(line), file) &&
	    !strcmp(line, "cpu level slots chunks timers more\n"))
		n = 0;
	while (n >= 0 && n < max && fgets(line, sizeof(line), file)) {
		if (parse_numbers(line, &levels[n].cpu, 6) != 6)
			n = -1;
		else if (levels[n].timers)
			n++;
	}
	fclose(file);
	return n;
}

/* The timers of all CPUs are shown, whichever CPU reads the file, each on its level. */
TEST_F(debugfs, levels_of_all_cpus)
{
	enum { N = 120, MOST = 64 * 9 };
	/* On four levels; if time advances meanwhile, the first may be on the next level. */
	const __u64 times[] = { 20 * SEC, 24 * HOUR, 1000 * HOUR, 100000 * HOUR };
	struct level levels[MOST], sum = { };
	unsigned long seen = 0;
	int i, lines;

	for (i = 0; i < self->n * N; i++) {
		ASSERT_EQ(0, pin(self->cpu[i / N]));
		ASSERT_EQ(0, wh_add(self->fd, times[i % 4], 0, i, NULL));
	}
	ASSERT_EQ(0, pin(self->cpu[0]));
	lines = read_levels(levels, MOST);
	ASSERT_LT(0, lines);
	for (i = 0; i < lines; i++) {
		EXPECT_LE(1, levels[i].slots);
		EXPECT_LE(levels[i].slots, levels[i].chunks);
		EXPECT_LE(levels[i].timers, 6 * levels[i].chunks);
		EXPECT_EQ(0, levels[i].more);
		sum.timers += levels[i].timers;
		ASSERT_GT(64, levels[i].cpu);
		seen |= 1UL << levels[i].cpu;
	}
	EXPECT_EQ(self->n * N, total("pending"));
	EXPECT_EQ(total("pending"), sum.timers);
	for (i = 0; i < self->n; i++)
		EXPECT_NE(0, seen >> self->cpu[i] & 1) TH_LOG("CPU %d", self->cpu[i]);
	/* Of the four times, no two are on one level. */
	EXPECT_LE(4 * self->n, lines);
	ASSERT_EQ(0, close(self->fd));
	EXPECT_EQ(0, read_levels(levels, MOST));
	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
}

/* A slot with very many timers is not walked to its end. */
TEST_F_TIMEOUT(debugfs, a_long_slot, 120)
{
	enum { N = 6 * 4096 + 600 };
	__u64 deadline = now_ns() + 1000 * HOUR;
	struct level levels[64 * 9];
	int i;

	ASSERT_EQ(0, pin(self->cpu[0]));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, i, NULL));
	ASSERT_EQ(1, read_levels(levels, ARRAY_SIZE(levels)));
	EXPECT_LE(1, levels[0].slots);
	EXPECT_LE(4096, levels[0].chunks);
	EXPECT_EQ(6 * 4096, levels[0].timers);
	EXPECT_EQ(1, levels[0].more);
}

TEST_F(debugfs, lateness_is_a_histogram_of_all_expiries)
{
	__u64 sum = 0, count, bound, last = 0, expiries;
	char name[64], *end;
	FILE *file;
	int i;

	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, wh_add(self->fd, i * 10 * USEC, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1000));
	expiries = total("expiries");
	EXPECT_EQ(1000, expiries - self->before.expiries);
	file = fopen(DEBUGFS "/twheel/lateness", "r");
	ASSERT_NE(NULL, file);
	while (fscanf(file, "%63[^:]: %llu\n", name, &count) == 2) {
		bound = strtoull(name, &end, 10);
		/* The last line may have no upper bound. */
		if (*end)
			bound = strcmp(name, "inf") ? 0 : ~0ULL;
		else
			EXPECT_EQ(0, bound & (bound - 1)) TH_LOG("bound %s", name);
		EXPECT_LT(last, bound) TH_LOG("bound %s", name);
		last = bound;
		sum += count;
	}
	EXPECT_NE(0, feof(file));
	fclose(file);
	EXPECT_EQ(expiries, sum);
}

/* Adds to @below[i] how many timers expired less than 2^i ns after their deadline. */
static bool add_lateness(__s64 *below, int sign)
{
	FILE *file = fopen(DEBUGFS "/twheel/lateness", "r");
	__u64 bound, count;
	int i;

	while (file && fscanf(file, "%llu: %llu\n", &bound, &count) == 2)
		for (i = 0; i < 64; i++)
			if (1ULL << i >= bound)
				below[i] += sign * (__s64)count;
	return file && !fclose(file);
}

/* How many of @n events are of timers that expired less than @bound ns after their deadline? */
static __s64 earlier_than(const struct twheel_event *events, int n, __u64 bound)
{
	__s64 earlier = 0;
	int i;

	for (i = 0; i < n; i++)
		earlier += events[i].fired - events[i].deadline < bound;
	return earlier;
}

/*
 * Of timers with the same deadline, exactly at a tick, each is late by the time that the previous
 * ones take. The histogram uses the time at which a batch of them was started.
 */
TEST_F(debugfs, lateness_is_what_events_tell)
{
	enum { N = 4000 };
	const __u64 tick = file_number(PARAMETERS "tick_ns"), batch = MSEC;
	const __u64 deadline = (now_ns() / tick + 200) * tick;
	const bool known = punctual_guest();
	static struct twheel_event events[N];
	__s64 below[64] = { };
	int i;

	/* These timers may be late. */
	punctual_off();
	ASSERT_EQ(true, add_lateness(below, -1));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, N));
	ASSERT_EQ(true, add_lateness(below, 1));
	ASSERT_EQ(N, wh_read(self->fd, events, N));
	printf("# from %llu to %llu us late\n", (events[0].fired - deadline) / USEC,
	       (events[N - 1].fired - deadline) / USEC);
	for (i = 0; i < 63; i++) {
		ASSERT_LE(earlier_than(events, N, 1ULL << i), below[i]) TH_LOG("2^%d", i);
		/* Elsewhere a batch may take any time. */
		if (known)
			ASSERT_GE(earlier_than(events, N, (1ULL << i) + batch), below[i])
				TH_LOG("2^%d", i);
	}
}

/* A burst is processed in batches of the module's budget. */
TEST_F_TIMEOUT(debugfs, a_burst_is_portioned, 60)
{
	enum { N = 20000 };
	__u64 ticks, budget = file_number(PARAMETERS "budget"), deadline = now_ns() + SEC;
	int i;

	ASSERT_NE(POISON, budget);
	ASSERT_LT(0, budget);
	ASSERT_EQ(0, pin(self->cpu[0]));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, i, NULL));
	ticks = total("ticks");
	ASSERT_EQ(true, wh_wait_events(self->fd, N));
	EXPECT_EQ(N, total("expiries") - self->before.expiries);
	/* The module examines whole chunks of six cells. */
	budget = (budget + 5) / 6 * 6;
	/* If adding took longer than a second, some expired meanwhile. */
	if (now_ns() > deadline && ticks == self->before.ticks)
		EXPECT_LE(N / budget, total("ticks") - ticks);
}

TEST_HARNESS_MAIN
