// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets of calls and workers: how many steps are taken with a context locked, and what a close()
 * waits for
 */
#include <liburing.h>

#include "budget_test.h"

TEST_F(budgets, of_an_array)
{
	const struct section section = { .step = "twheel_rearm_bhoff", .end = UNLOCK };
	struct twheel_op ops[N] = {};
	struct steps steps;
	__u64 handle[N];
	int i;

	add_timers(_metadata, self->fd, HOUR, 0, handle, N);
	for (i = 0; i < N; i++) {
		ops[i].opcode = TWHEEL_OP_REARM;
		ops[i].handle = handle[i];
		ops[i].time = 2 * HOUR;
	}
	ASSERT_EQ(true, begin(&section));
	EXPECT_EQ(N, wh_submit(self->fd, ops, N, sizeof(*ops), 0));
	steps = finish(&section);
	EXPECT_EQ(N, steps.all);
	EXPECT_GE(16, steps.most);
}

TEST_F(budgets, of_a_read)
{
	const struct section section = { .step = "complete_delivered", .end = UNLOCK };
	struct twheel_event events[N];
	struct steps steps;

	add_timers(_metadata, self->fd, 0, 0, NULL, N);
	ASSERT_EQ(true, wh_wait_events(self->fd, N));
	ASSERT_EQ(true, begin(&section));
	EXPECT_EQ(N, wh_read(self->fd, events, N));
	steps = finish(&section);
	EXPECT_EQ(N, steps.all);
	EXPECT_GE(16, steps.most);
}

/* What has expired before there is a ring is moved into it. */
TEST_F(budgets, of_a_ring)
{
	const struct section section = { .step = "twheel_ring_commit", .end = UNLOCK };
	struct twheel_setup setup;
	struct steps steps;

	add_timers(_metadata, self->fd, 0, 0, NULL, N);
	ASSERT_EQ(true, wh_wait_events(self->fd, N));
	ASSERT_EQ(true, begin(&section));
	EXPECT_EQ(0, wh_setup(self->fd, 1024, 0, &setup));
	EXPECT_EQ(true, wh_ready(self->fd));
	steps = finish(&section);
	EXPECT_LE(N, steps.all);
	EXPECT_GE(16, steps.most);
}

TEST_F(budgets, of_a_drain)
{
	const struct section section = { .step = "twheel_utimer_describe", .end = UNLOCK };
	static struct twheel_timer_query records[N];
	struct steps steps;
	__u64 cursor = 0;

	add_timers(_metadata, self->fd, HOUR, 0, NULL, N);
	ASSERT_EQ(true, begin(&section));
	EXPECT_EQ(N, wh_drain(self->fd, records, N, sizeof(*records), &cursor));
	steps = finish(&section);
	EXPECT_EQ(N, steps.all);
	EXPECT_GE(64, steps.most);
}

/* Places of timers that are gone are looked at, too. */
TEST_F(budgets, of_a_drain_of_the_last_one)
{
	const struct section section = { .step = LOCK };
	__u64 handle[N], cursor = 0;
	int i;

	add_timers(_metadata, self->fd, HOUR, 0, handle, N);
	for (i = 0; i < N - 1; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle[i]));
	ASSERT_EQ(true, begin(&section));
	EXPECT_EQ(1, wh_drain(self->fd, NULL, N, sizeof(struct twheel_timer_query), &cursor));
	EXPECT_LE(N / 64, finish(&section).all);
}

TEST_F(budgets, of_fdinfo)
{
	const struct section section = { .step = "twheel_utimer_describe", .end = UNLOCK };
	struct steps steps;
	char path[64], text[4096];
	FILE *file;

	add_timers(_metadata, self->fd, HOUR, 0, NULL, N);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	file = fopen(path, "r");
	ASSERT_NE(NULL, file);
	ASSERT_EQ(true, begin(&section));
	while (fread(text, 1, sizeof(text), file) == sizeof(text))
		;
	steps = finish(&section);
	EXPECT_EQ(0, fclose(file));
	EXPECT_LT(0, steps.all);
	EXPECT_GE(64, steps.most);
}

TEST_F(budgets, of_a_clock_that_is_set)
{
	struct twheel_timer_add add = { .time = HOUR, .clock = CLOCK_REALTIME };
	const __u64 now = clock_ns(CLOCK_REALTIME), begun = now_ns();
	const struct section section = {
		.step		= "twheel_utimer_arm",
		.end		= UNLOCK,
		.all_tasks	= true,
	};
	struct steps steps;
	int i;

	add.flags = ABS;
	add.time += now;
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	ASSERT_EQ(true, begin(&section));
	EXPECT_EQ(0, set_clock(now + 60 * SEC));
	EXPECT_EQ(true, wait_for_steps(&section, N));
	steps = finish(&section);
	EXPECT_EQ(0, set_clock(now + (now_ns() - begun)));
	EXPECT_LE(N, steps.all);
	EXPECT_GE(32, steps.most);
}

/* What a CPU that goes offline leaves behind. */
TEST_F(budgets, of_a_cpu_that_goes_offline)
{
	const struct section section = {
		.step		= "twheel_enqueue",
		.end		= "migrate_batch",
		.all_tasks	= true,
	};
	struct steps steps;
	int list[8];

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, pin(list[1]));
	add_timers(_metadata, self->fd, HOUR, 0, NULL, N);
	ASSERT_EQ(0, pin(list[0]));
	ASSERT_EQ(true, begin(&section));
	EXPECT_EQ(0, set_cpu_online(list[1], 0));
	steps = finish(&section);
	EXPECT_EQ(0, set_cpu_online(list[1], 1));
	EXPECT_LE(N, steps.all);
	EXPECT_GE(192, steps.most);
}

/* Watched connections that are due at once. */
TEST_F_TIMEOUT(budgets, of_connections_that_are_due, TIMEOUT)
{
	const struct section section = {
		.step		= "evaluate_timer",
		.end		= "watch_work",
		.all_tasks	= true,
	};
	enum { PAIRS = 100 };
	static int pair[PAIRS][2];
	struct twheel_timer_add add;
	struct steps steps;
	__u64 deadline;
	int i;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, connections(AF_INET, pair, PAIRS));
	ASSERT_EQ(true, begin(&section));
	deadline = now_ns() + SEC;
	for (i = 0; i < 2 * PAIRS; i++) {
		add = watch_add(pair[i / 2][i % 2], HOUR, ABS);
		add.time = deadline;
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	}
	EXPECT_EQ(true, wait_for_steps(&section, 2 * PAIRS));
	steps = finish(&section);
	EXPECT_GE(64, steps.most);
	close_all(pair, PAIRS);
}

/*
 * A context that has watched is closed without a wait for others: of all files of which the last
 * reference is put by a thread of the kernel's, that waits for each.
 */
TEST_F_TIMEOUT(budgets, of_a_close, TIMEOUT)
{
	const struct section section = {
		.step		= "synchronize_rcu",
		.end		= "twheel_context_destroy",
	};
	struct steps steps;
	static int pair[1][2];
	int fd[50], i;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, connections(AF_INET, pair, 1));
	for (i = 0; i < 50; i++) {
		fd[i] = wh_open(0);
		ASSERT_LE(0, fd[i]);
		/* That the socket is another's does not keep it from being prepared. */
		ASSERT_EQ(i ? -EBUSY : 0, watch(fd[i], pair[0][0], HOUR, ABORT, NULL));
	}
	ASSERT_EQ(true, begin(&section));
	for (i = 0; i < 50; i++)
		ASSERT_EQ(0, close(fd[i]));
	steps = finish(&section);
	EXPECT_EQ(0, steps.all);
	close_all(pair, 1);
}

/* The kernel's thread that puts files, one after the other, does not cancel timers. */
TEST_F_TIMEOUT(budgets, of_a_close_by_the_kernel, TIMEOUT)
{
	const struct section section = {
		.step		= "twheel_cancel_sync",
		.end		= "delayed_fput",
		.all_tasks	= true,
	};
	const int fd = wh_open(0);
	struct io_uring ring;

	add_timers(_metadata, fd, HOUR, 0, NULL, N);
	ASSERT_EQ(0, io_uring_queue_init(2, &ring, 0));
	ASSERT_EQ(0, io_uring_register_files(&ring, &fd, 1));
	ASSERT_EQ(0, close(fd));
	ASSERT_EQ(true, begin(&section));
	io_uring_queue_exit(&ring);
	EXPECT_EQ(true, wait_for_steps(&section, N));
	EXPECT_EQ(0, steps_after("delayed_fput", section.step));
	finish(&section);
}

/* The longest time for which the trace has a task hold locks with softirqs off. */
static __u64 longest_section(void)
{
	__u64 begin = 0, longest = 0;
	char text[512];
	struct line line;
	int depth = 0;
	FILE *file = fopen(INSTANCE "trace", "r");

	while (file && fgets(text, sizeof(text), file)) {
		if (!parse(text, &line) || line.softirq)
			continue;
		if (!strcmp(line.function, LOCK) && !depth++)
			begin = line.ns;
		if (!strcmp(line.function, UNLOCK) && depth && !--depth &&
		    line.ns - begin > longest)
			longest = line.ns - begin;
	}
	if (file)
		fclose(file);
	return longest;
}

/*
 * However much there is to be cleared away, the context is not locked for long. What is done with
 * the lock held is no call that could be counted, but where time is the number of instructions, it
 * is these.
 */
TEST_F_TIMEOUT(budgets, of_a_close_with_much, TIMEOUT)
{
	enum { PAIRS = 1000 };
	const struct section section = { .step = LOCK };
	const unsigned int n = very_many();
	static int pair[PAIRS][2];
	__u64 longest;
	int i;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, connections(AF_INET, pair, PAIRS));
	add_timers(_metadata, self->fd, 0, 0, NULL, n);
	ASSERT_EQ(true, wh_wait_events(self->fd, n));
	add_timers(_metadata, self->fd, HOUR, 0, NULL, n);
	for (i = 0; i < 2 * PAIRS; i++)
		ASSERT_EQ(0, watch(self->fd, pair[i / 2][i % 2], HOUR, ABORT, NULL));
	ASSERT_EQ(true, text_write(INSTANCE "set_ftrace_filter", UNLOCK));
	ASSERT_EQ(true, begin(&section));
	ASSERT_EQ(0, close(self->fd));
	ASSERT_EQ(true, text_write(INSTANCE "tracing_on", "0"));
	longest = longest_section();
	EXPECT_LT(2 * PAIRS / 64, finish(&section).all);
	self->fd = -1;
	printf("# %u timers and as many events: locked for %llu us at most\n", n,
	       longest / USEC);
	/*
	 * For 64 watches it takes about a millisecond. The events would take ten instructions
	 * each, 40 ns, at least.
	 */
	if (simulated())
		EXPECT_GT(n * 40ULL, longest);
	close_all(pair, PAIRS);
}

TEST_HARNESS_MAIN
