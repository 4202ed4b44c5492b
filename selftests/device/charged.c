// SPDX-License-Identifier: GPL-2.0-only
/*
 * All kernel memory that a program causes to be allocated is charged to its memory cgroup:
 * contexts, users, the table of keys, rules. For timers, and for memory shared with programs, see
 * memory.c.
 */
#include "memory_test.h"
#include "rules_test.h"
#include "watch_test.h"

#define CONTEXTS	1000
#define USERS		500
/* A few less than a network namespace may have, and as many as may have full lists. */
#define RULES		200
#define FULL_RULES	(1024 / TWHEEL_RULE_MATCHES)
#define NAMESPACES	50

/* The uid of the first user who opens the device; the others follow. */
#define UID		10000

FIXTURE(charged)
{
	int fd;
	int group, outside;
};

FIXTURE_SETUP(charged)
{
	self->fd = -1;
	if (!have_groups())
		SKIP(return, "no memory cgroups");
	ASSERT_EQ(0, network());
	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, make_group());
	self->group = open(GROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC);
	self->outside = open(GROUPS "cgroup.procs", O_WRONLY | O_CLOEXEC);
	ASSERT_GE(self->group, 0);
	ASSERT_GE(self->outside, 0);
	ASSERT_EQ(1, write(self->group, "0", 1));
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(charged)
{
	if (self->fd < 0)
		return;
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(1, write(self->outside, "0", 1));
	EXPECT_EQ(0, close(self->outside));
	EXPECT_EQ(0, close(self->group));
	EXPECT_EQ(0, rmdir(GROUP));
}

/* Checks that the group is charged for at least @min bytes more than @before. */
static void expect_grown(struct __test_metadata *_metadata, FIXTURE_DATA(charged) * self,
			 __u64 before, __u64 min)
{
	const __s64 grown = wait_uncharged(self->group) - before;

	printf("# charged for %lld bytes more, at least %llu are due\n", grown, min);
	/* Some pages are charged in advance, and charges are not counted at once. */
	EXPECT_LE((__s64)(min - min / 4), grown);
}

TEST_F_TIMEOUT(charged, contexts, 120)
{
	struct twheel_context_stats stats;
	static int fd[CONTEXTS];
	__u64 before;
	int i;

	/* Files and their descriptors are charged anyway, whatever they refer to. */
	for (i = 0; i < CONTEXTS; i++) {
		fd[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, fd[i]);
	}
	before = wait_uncharged(self->group);
	for (i = 0; i < CONTEXTS; i++) {
		ASSERT_EQ(0, close(fd[i]));
		fd[i] = wh_open(0);
		ASSERT_LE(0, fd[i]);
	}
	ASSERT_EQ(0, wh_stats(fd[0], &stats));
	ASSERT_LT(0, stats.bytes);
	expect_grown(_metadata, self, before, CONTEXTS * stats.bytes);
	for (i = 0; i < CONTEXTS; i++)
		ASSERT_EQ(0, close(fd[i]));
}

/* Opens contexts, as @users users in turn. */
static void open_as(struct __test_metadata *_metadata, int *fd, int users)
{
	int i;

	for (i = 0; i < USERS; i++) {
		/* The capabilities are kept. */
		ASSERT_EQ(0, setresuid(UID + i % users, 0, 0));
		fd[i] = wh_open(0);
		ASSERT_LE(0, fd[i]);
	}
	ASSERT_EQ(0, setresuid(0, 0, 0));
}

TEST_F_TIMEOUT(charged, users, 120)
{
	static int fd[USERS];
	__u64 before;
	int i;

	/* The same, including credentials, with a single user. */
	open_as(_metadata, fd, 2);
	before = wait_uncharged(self->group);
	for (i = 0; i < USERS; i++)
		ASSERT_EQ(0, close(fd[i]));
	open_as(_metadata, fd, USERS);
	/* Each has at least a delayed work. */
	expect_grown(_metadata, self, before, USERS * 88);
	for (i = 0; i < USERS; i++)
		ASSERT_EQ(0, close(fd[i]));
}

/* Adds timers that have room for a key, with or without one. */
static void add_timers(struct __test_metadata *_metadata, int fd, unsigned int n, __u32 flags)
{
	struct twheel_timer_add add = {
		.time		= HOUR,
		.flags		= flags,
		.clock		= CLOCK_MONOTONIC,
		.lifetime	= 2 * HOUR,
	};
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (flags & TWHEEL_KEYED)
			add.key = i;
		ASSERT_EQ(flags & TWHEEL_KEYED ? TWHEEL_WAS_ABSENT : 0, wh_add_timer(fd, &add));
	}
}

/*
 * Waits until the wheels have given back what they do not need: pages that are free for two
 * intervals of 4 s. Returns how many chunks they have left.
 */
static __u64 wait_trimmed(void)
{
	__u64 end = now_ns() + GUARD_MS * MSEC, chunks = total("chunks"), last;

	do {
		last = chunks;
		sleep_ns(13 * SEC);
		chunks = total("chunks");
	} while (chunks != last && now_ns() < end);
	return chunks;
}

/* The memory of the timers has been allocated before: only the table is new. */
TEST_F_TIMEOUT(charged, keys, 240)
{
	const unsigned int n = very_many();
	__u64 before, chunks, cursor = 0;
	int list[8];

	/* The wheel of another CPU would need chunks of its own. */
	ASSERT_LT(0, cpus(list, ARRAY_SIZE(list)));
	ASSERT_EQ(0, pin(list[0]));
	add_timers(_metadata, self->fd, n, 0);
	chunks = wait_trimmed();
	before = wait_uncharged(self->group);
	ASSERT_EQ(n, wh_drain(self->fd, NULL, n, sizeof(struct twheel_timer_query), &cursor));
	add_timers(_metadata, self->fd, n, TWHEEL_KEYED);
	/* They may be in two slots now, instead of one: that is a chunk more, or a page of them. */
	EXPECT_GE(chunks + 63, wait_trimmed());
	expect_grown(_metadata, self, before, n * sizeof(void *));
}

/* Adds @nr rules like this one, each of which takes at least @bytes. */
static void add_rules(struct __test_metadata *_metadata, FIXTURE_DATA(charged) * self,
		      struct twheel_rule *rule, int nr, __u64 bytes)
{
	__u64 before = wait_uncharged(self->group);
	int i;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, add(self->fd, rule));
	expect_grown(_metadata, self, before, nr * bytes);
}

TEST_F_TIMEOUT(charged, rules, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags	= ABORT | TWHEEL_RULE_UID,
		.uid	= OTHER_UID,
		.idle	= HOUR,
	};

	/* Its counters. */
	add_rules(_metadata, self, &rule, RULES, 9 * sizeof(__u64) + sizeof(rule.late));
}

TEST_F_TIMEOUT(charged, lists_of_rules, TIMEOUT)
{
	struct twheel_match matches[TWHEEL_RULE_MATCHES] = {};
	struct twheel_rule rule = {
		.flags		= ABORT,
		.idle		= HOUR,
		.matches	= (uintptr_t)matches,
		.nr_matches	= TWHEEL_RULE_MATCHES,
	};
	int i;

	for (i = 0; i < TWHEEL_RULE_MATCHES; i++) {
		matches[i].kind = TWHEEL_MATCH_LOCAL_PORT;
		matches[i].first = i + 1;
		matches[i].last = i + 1;
	}
	add_rules(_metadata, self, &rule, FULL_RULES, sizeof(matches));
}

/* Such a rule has a bit for each port. */
TEST_F_TIMEOUT(charged, rules_for_a_process, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags	= ABORT | TWHEEL_RULE_PID,
		.pid	= getpid(),
		.idle	= HOUR,
	};

	add_rules(_metadata, self, &rule, RULES, 65536 / 8);
}

/* With its first rule, a network namespace gets a queue. */
TEST_F_TIMEOUT(charged, queues_of_namespaces, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags	= ABORT | TWHEEL_RULE_UID,
		.uid	= OTHER_UID,
		.idle	= HOUR,
	};
	static int space[NAMESPACES];
	__u64 before;
	int i;

	for (i = 0; i < NAMESPACES; i++) {
		ASSERT_EQ(0, network());
		space[i] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, space[i]);
	}
	before = wait_uncharged(self->group);
	for (i = 0; i < NAMESPACES; i++) {
		ASSERT_EQ(0, setns(space[i], CLONE_NEWNET));
		ASSERT_EQ(0, add(self->fd, &rule));
	}
	expect_grown(_metadata, self, before, NAMESPACES * 8192);
	for (i = 0; i < NAMESPACES; i++)
		ASSERT_EQ(0, close(space[i]));
}

TEST_HARNESS_MAIN
