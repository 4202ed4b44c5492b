// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory: a small memory cgroup lets a context have so many timers and no more. The
 * context goes on working, those of others are not concerned, and what it had is given
 * back with it.
 */
#include <sys/wait.h>

#include "twheel_test.h"

#define GROUPS	"/sys/fs/cgroup/"
#define GROUP	GROUPS "twheel-test"
/* To be filled; a slow kernel may do with less. */
#define LIMIT	((very_many() < 100000 ? 2ULL : 8ULL) << 20)
#define ENOUGH	(1U << 20)

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

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

FIXTURE_SETUP(memory)
{
	self->fd = -1;
	if (access(GROUPS "cgroup.controllers", R_OK) ||
	    write_text(GROUPS "cgroup.subtree_control", "+memory"))
		SKIP(return, "no memory cgroups");
	self->max_timers = file_number(PARAMETERS "max_timers");
	ASSERT_NE(POISON, self->max_timers);
	ASSERT_EQ(0, file_write(PARAMETERS "max_timers", 4 * ENOUGH));
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, mkdir(GROUP, 0755));
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
static __u64 kills(void)
{
	char name[32];
	__u64 number, found = POISON;
	FILE *file = fopen(GROUP "/memory.events", "r");

	if (!file)
		return POISON;
	while (fscanf(file, "%31s %llu", name, &number) == 2)
		if (!strcmp(name, "oom_kill"))
			found = number;
	fclose(file);
	return found;
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

/* Is the context still good for all that needs no more memory? */
static const char *goes_on(int fd, const struct twheel_timer_add *like, __u64 first, __u64 second)
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
	/* Whose memory is there for two others. */
	if (add_another(fd, like, &handle) || add_another(fd, like, &handle))
		return "add";
	if (wh_nr_timers(fd) != timers)
		return "number of timers";
	return NULL;
}

/* In the cgroup: fills a context. Returns what went wrong. */
static const char *in_the_group(const struct twheel_timer_add *like, unsigned int *n)
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
		wrong = goes_on(fd, like, handles[0], handles[1]);
		if (wrong)
			return wrong;
		/* What it had must be there again, for the next round as much. */
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
		/* What the program itself needs is there before memory is short. */
		if (mlockall(MCL_CURRENT | MCL_FUTURE))
			_exit(2);
		wrong = in_the_group(&variant->add, &shared->n);
		if (wrong)
			snprintf(shared->wrong, sizeof(shared->wrong), "%s", wrong);
		_exit(!!wrong);
	}
	/* Outside of it there is memory all the while. */
	end = now_ns() + GUARD_MS * MSEC * 10;
	while (!waitpid(child, &status, WNOHANG)) {
		ASSERT_GT(end, now_ns());
		ASSERT_EQ(0, add_another(self->fd, &variant->add, &handle));
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
		sleep_ns(MSEC);
	}
	EXPECT_EQ(true, WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status)) TH_LOG("%s", shared->wrong);
	/* Refused, not killed. */
	EXPECT_EQ(0, kills());
	printf("# %u timers in %llu kB\n", shared->n, LIMIT >> 10);
	/* It is the timers that have filled it. */
	EXPECT_LT(LIMIT / 256 / 2, shared->n);
	EXPECT_GT(LIMIT / 40, shared->n);
	EXPECT_EQ(pending, total("pending"));
	/* The memory is given back, as soon as those have come to it that do so. */
	end = now_ns() + GUARD_MS * MSEC;
	while ((current = file_number(GROUP "/memory.current")) > LIMIT / 8 && now_ns() < end)
		sleep_ns(10 * MSEC);
	EXPECT_GE(LIMIT / 8, current);
	munmap(shared, 4096);
}

TEST_HARNESS_MAIN
