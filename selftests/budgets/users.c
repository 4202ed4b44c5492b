// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets of users: what one has done for him, others do not wait for
 */
#include <pthread.h>

#include "budget_test.h"

/* How many calls of a function has the trace after the mark? @before: and how many before? */
static unsigned int after_mark(const char *function, unsigned int *before)
{
	FILE *file = fopen(INSTANCE "trace", "r");
	unsigned int after = 0;
	bool marked = false;
	char text[512];

	for (*before = 0; file && fgets(text, sizeof(text), file);) {
		if (strstr(text, "tracing_mark_write:"))
			marked = true;
		else if (strstr(text, function))
			(*(marked ? &after : before))++;
	}
	if (file)
		fclose(file);
	printf("# %s: %u before, %u after\n", function, *before, after);
	return after;
}

/* How often that is tried, in seconds: on a busy host, who is woken may run late. */
#define ROUNDS		8

/*
 * Contexts of another user, or connections that he watches, and how many wait for the instance of
 * epoll that waits for them.
 */
#define OTHERS		50
#define ENTRIES		60000

/* Waits for an instance of epoll, very often, for what never comes. */
static void *wait_much(void *arg)
{
	struct pollfd *fds = calloc(ENTRIES, sizeof(*fds));
	int i;

	for (i = 0; fds && i < ENTRIES; i++)
		fds[i] = (struct pollfd){ .fd = *(int *)arg, .events = POLLPRI };
	if (fds)
		poll(fds, ENTRIES, -1);
	free(fds);
	return NULL;
}

/* Another user: contexts with timers for each round, and each time long to be woken for. */
static int be_another(int ready, __u64 time)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd, i, round;
	pthread_t thread;

	if (many_files() || setresuid(1000, 1000, 1000) || epoll < 0 ||
	    pthread_create(&thread, NULL, wait_much, &epoll))
		return 1;
	for (i = 0; i < OTHERS; i++) {
		fd = wh_open(0);
		if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
			return 2;
		for (round = 0; round < ROUNDS; round += 2)
			if (wh_add(fd, time + round * SEC, ABS, 0, NULL))
				return 3;
	}
	sleep_ns(SEC);
	if (write(ready, "", 1) != 1)
		return 4;
	pause();
	return 0;
}

/* Waits for an event at @time. How much is left to be done for others when it has come? */
static unsigned int left_when_woken(struct __test_metadata *_metadata, int fd, int epoll,
				    __u64 time)
{
	struct twheel_event event;
	unsigned int before, left;
	cpu_set_t all;

	ASSERT_EQ(true, forget_trace());
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
	ASSERT_EQ(0, pin(0));
	add_timers(_metadata, fd, time, ABS, NULL, 1);
	/* The timer is that CPU's, with the other ones; this task need not wait for it. */
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(all), &all));
	EXPECT_EQ(1, woken(epoll));
	EXPECT_EQ(true, text_write(INSTANCE "trace_marker", "woken"));
	EXPECT_EQ(1, wh_read(fd, &event, 1));
	sleep_ns(SEC);
	left = after_mark("wake_batch_work <-", &before);
	EXPECT_LT(OTHERS / 2, before + left);
	return left;
}

/* Who waits has not to wait for what others have left to workers. */
TEST_F_TIMEOUT(budgets, of_wakes_for_another_user, TIMEOUT)
{
	const struct section section = { .step = "wake_batch_work", .all_tasks = true };
	const __u64 time = now_ns() + 5 * SEC;
	unsigned int left = 0, round;
	int ready[2], epoll;
	pid_t other;
	char byte;

	ASSERT_EQ(0, chmod(DEVICE, 0666));
	ASSERT_EQ(0, pipe(ready));
	other = fork();
	if (!other)
		_exit(pin(0) ?: be_another(ready[1], time));
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	EXPECT_EQ(0, chmod(DEVICE, 0600));
	epoll = wh_epoll(self->fd, EPOLLIN);
	ASSERT_EQ(true, begin(&section));
	for (round = 0; round < ROUNDS && left < OTHERS / 5; round += 2)
		left = left_when_woken(_metadata, self->fd, epoll,
				       time + round * SEC + 2 * MSEC);
	EXPECT_LE(OTHERS / 5, left);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	finish(&section);
	close(epoll);
}

/* Opens contexts with other ids, when the parent has given this process some. */
static int open_with_ids(int go, int ready, int ids)
{
	char byte = 0;
	int i;

	if (setresuid(1000, 1000, 1000) || unshare(CLONE_NEWUSER) || write(ready, &byte, 1) != 1 ||
	    read(go, &byte, 1) != 1)
		return 1;
	for (i = 1; i < ids; i++)
		if (setresuid(i, 0, 0) || wh_open(0) < 0)
			return 2;
	return 0;
}

/* Who has many ids, in a user namespace, is one user, with one worker. */
TEST_F(budgets, of_ids_in_a_namespace)
{
	const struct section section = {
		.step	   = traceable("alloc_workqueue") ? "alloc_workqueue" :
							    "alloc_workqueue_noprof",
		.all_tasks = true,
	};
	const int ids = 50;
	int go[2], ready[2], status;
	char path[64], byte = 0;
	pid_t child;

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, chmod(DEVICE, 0666));
	child = fork();
	if (!child)
		_exit(open_with_ids(go[0], ready[1], ids));
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
	ASSERT_EQ(true, text_write(path, "0 100000 1000"));
	ASSERT_EQ(true, begin(&section));
	ASSERT_EQ(1, write(go[1], &byte, 1));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_GE(1, finish(&section).all);
	EXPECT_EQ(0, chmod(DEVICE, 0600));
}

/* Has a context watch connections, for which his epoll waits, that end at once after a while. */
static int watch_many(int (*pair)[2], int ready)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd, i;
	pthread_t thread;

	if (setresuid(1000, 1000, 1000) || epoll < 0 ||
	    pthread_create(&thread, NULL, wait_much, &epoll))
		return 1;
	fd = wh_open(0);
	for (i = 0; i < OTHERS; i++)
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, pair[i][0], &event) ||
		    watch(fd, pair[i][0], 3 * SEC, TWHEEL_WATCH_SHUTDOWN, NULL))
			return 2;
	if (write(ready, "", 1) != 1)
		return 3;
	pause();
	return 0;
}

/* How often was @step entered between two marks, at most? And how often @all in all? */
static unsigned int between_marks(const char *step, unsigned int *all)
{
	FILE *file = fopen(INSTANCE "trace", "r");
	unsigned int most = 0, n = 0;
	char text[512];

	for (*all = 0; file && fgets(text, sizeof(text), file);) {
		if (strstr(text, "tracing_mark_write: begin")) {
			n = 0;
		} else if (strstr(text, "tracing_mark_write: end")) {
			if (n > most)
				most = n;
		} else if (strstr(text, step)) {
			++*all;
			n++;
		}
	}
	if (file)
		fclose(file);
	return most;
}

/* A close() does not wait until connections are closed that others watch. */
TEST_F_TIMEOUT(budgets, of_a_close_beside_watches, TIMEOUT)
{
	const struct section section = { .step = "twheel_watch_put_back", .all_tasks = true };
	static int pair[OTHERS + 1][2];
	unsigned int most, all;
	int ready[2], fd;
	pid_t other;
	char byte;
	__u64 end;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, connections(AF_INET, pair, OTHERS + 1));
	ASSERT_EQ(0, chmod(DEVICE, 0666));
	ASSERT_EQ(0, pipe(ready));
	other = fork();
	if (!other)
		_exit(watch_many(pair, ready[1]));
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	EXPECT_EQ(0, chmod(DEVICE, 0600));
	ASSERT_EQ(true, begin(&section));
	for (end = now_ns() + 6 * SEC; now_ns() < end; sleep_ns(10 * MSEC)) {
		fd = wh_open(0);
		ASSERT_EQ(0, watch(fd, pair[OTHERS][0], HOUR, ABORT, NULL));
		ASSERT_EQ(true, text_write(INSTANCE "trace_marker", "begin"));
		ASSERT_EQ(0, close(fd));
		ASSERT_EQ(true, text_write(INSTANCE "trace_marker", "end"));
	}
	most = between_marks("twheel_watch_put_back <-", &all);
	printf("# %u of %u during a close()\n", most, all);
	EXPECT_LE(OTHERS, all);
	/* One that is under way, and what comes while who has closed waits for a CPU. */
	EXPECT_GE(OTHERS / 2, most);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	finish(&section);
	close_all(pair, OTHERS + 1);
}

/* Connections of a network, of which both ends are closed. */
#define CONNECTIONS	200

/*
 * A network of his: a rule closes connections, at once after a while, and the one of another rule
 * is to be looked at after that, for who removes this one and is killed.
 */
static int have_rules(int ready)
{
	struct twheel_rule other = { .flags = LOCAL | ABORT, .idle = HOUR }, rule = {
		.flags	= TWHEEL_RULE_UID | TWHEEL_WATCH_SHUTDOWN,
		.idle	= 2 * SEC,
		.rate	= 1000000,
	};
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd = wh_open(0), i;
	static int pair[CONNECTIONS][2], last[1][2];
	pthread_t thread;
	pid_t child;

	if (network() || connections(AF_INET, last, 1) || epoll < 0 ||
	    pthread_create(&thread, NULL, wait_much, &epoll))
		return 1;
	other.local_port = local_port(last[0][0]);
	if (add(fd, &other) || add(fd, &rule) || connections(AF_INET, pair, CONNECTIONS))
		return 2;
	for (i = 0; i < CONNECTIONS; i++)
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, pair[i][0], &event) ||
		    epoll_ctl(epoll, EPOLL_CTL_ADD, pair[i][1], &event))
			return 3;
	while (!look(fd, rule.id).closed)
		sleep_ns(MSEC);
	/* All of them are due by then. */
	sleep_ns(300 * MSEC);
	child = fork();
	if (!child)
		_exit(remove_rule(fd, other.id));
	sleep_ns(50 * MSEC);
	kill(child, SIGKILL);
	if (waitpid(child, NULL, 0) != child || write(ready, "", 1) != 1)
		return 4;
	pause();
	return 0;
}

/* How many watches were looked at after a namespace had gone? */
static unsigned int judged_after_stop(void)
{
	FILE *file = fopen(INSTANCE "trace", "r");
	unsigned int after = 0, before = 0;
	bool stopped = false;
	char text[512];

	while (file && fgets(text, sizeof(text), file)) {
		if (strstr(text, "twheel_scan_stop <-"))
			stopped = true;
		else if (strstr(text, "twheel_watch_put_back <-"))
			++*(stopped ? &after : &before);
	}
	if (file)
		fclose(file);
	printf("# %u before, %u after\n", before, after);
	return after;
}

/* Waits until there are so many watches of a kind. Returns whether that came true. */
static bool wait_watches(const char *kind, __u64 nr)
{
	__u64 end = now_ns() + 10 * GUARD_MS * MSEC;
	char key[32];

	snprintf(key, sizeof(key), "%s watches", kind);
	while (watch_count(key) != nr) {
		if (now_ns() > end)
			return false;
		sleep_ns(10 * MSEC);
	}
	return true;
}

/* A namespace goes, while the rule of another one still has connections that are to be closed. */
TEST_F_TIMEOUT(budgets, of_a_namespace_that_goes, TIMEOUT)
{
	const struct section section = {
		.step		= "twheel_watch_put_back",
		.end		= "twheel_scan_stop",
		.all_tasks	= true,
	};
	int ready[2], status;
	unsigned int after;
	pid_t other, child;
	char byte;

	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(true, begin(&section));
	other = fork();
	if (!other)
		_exit(have_rules(ready[1]));
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	child = fork();
	if (!child)
		_exit(unshare(CLONE_NEWNET));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	sleep_ns(3 * SEC);
	EXPECT_EQ(true, text_write(INSTANCE "tracing_on", "0"));
	after = judged_after_stop();
	EXPECT_LE(CONNECTIONS / 5, after);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	/* With QEMU, what is patched for the trace must not run on another CPU meanwhile. */
	EXPECT_EQ(true, wait_watches("rules", 0));
	finish(&section);
}

/* All works of a user take turns, those after a clock was set as well. */
TEST_F_TIMEOUT(budgets, of_contexts_when_a_clock_is_set, TIMEOUT)
{
	enum { CONTEXTS = 20 };
	struct twheel_timer_add add = { .flags = ABS, .clock = CLOCK_REALTIME };
	const __u64 now = clock_ns(CLOCK_REALTIME), begun = now_ns();
	struct steps steps;
	int fd[CONTEXTS], i, j;

	add.time = now + HOUR;
	for (i = 0; i < CONTEXTS; i++) {
		fd[i] = wh_open(0);
		for (j = 0; j < 10 * N; j++)
			ASSERT_EQ(0, wh_add_timer(fd[i], &add));
	}
	ASSERT_EQ(true, trace_works("1"));
	EXPECT_EQ(0, set_clock(now + 60 * SEC));
	sleep_ns(2 * SEC);
	ASSERT_EQ(true, trace_works("0"));
	EXPECT_EQ(0, set_clock(now + (now_ns() - begun)));
	steps = count_works("rearm_clocked_work");
	/* Portions of each. */
	EXPECT_LT(CONTEXTS, steps.all);
	EXPECT_EQ(1, steps.most);
	for (i = 0; i < CONTEXTS; i++)
		close(fd[i]);
}

/* How often has a task entered a function? */
static unsigned int entries_of(pid_t pid, const char *function)
{
	FILE *file = fopen(INSTANCE "trace", "r");
	unsigned int entries = 0;
	struct line line;
	char text[512];

	while (file && fgets(text, sizeof(text), file))
		if (parse(text, &line))
			entries += line.pid == pid && is_call(&line, function, NULL);
	if (file)
		fclose(file);
	return entries;
}

/* Who has got a descriptor from another user does not clear up what is behind it. */
TEST_F_TIMEOUT(budgets, of_a_close_by_another_user, TIMEOUT)
{
	const struct section section = { .step = "twheel_cancel_sync", .all_tasks = true };
	const int fd = wh_open(0);
	int go[2], status;
	pid_t other;
	char byte;

	add_timers(_metadata, fd, HOUR, 0, NULL, N);
	ASSERT_EQ(0, pipe(go));
	other = fork();
	if (!other)
		_exit(setresuid(1000, 1000, 1000) || read(go[0], &byte, 1) != 1 || close(fd));
	ASSERT_EQ(0, close(fd));
	ASSERT_EQ(true, begin(&section));
	ASSERT_EQ(1, write(go[1], "", 1));
	ASSERT_EQ(other, waitpid(other, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(true, wait_for_steps(&section, N));
	EXPECT_EQ(0, entries_of(other, section.step));
	finish(&section);
}

TEST_HARNESS_MAIN
