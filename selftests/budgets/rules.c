// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets of rules: how many connections and descriptors are looked at in one go
 */
#include "budget_test.h"

#include "flood.h"

/* Connections. */
#define CONNECTIONS	200
/* More than one share of the softirqs. */
#define MANY_CONNECTIONS 500
/* Descriptors of a process. */
#define SLOTS		(1 << 18)

/* Adds a rule for all connections. Returns its id, or -errno. */
static int add_for_all(int fd)
{
	struct twheel_rule rule = {
		.flags	= ABORT | TWHEEL_RULE_UID,
		.uid	= getuid(),
		.idle	= HOUR,
	};

	return add(fd, &rule) ?: (int)rule.id;
}

/* To remove a rule, all connections are looked at. */
TEST_F_TIMEOUT(budgets, of_a_rule_that_is_removed, TIMEOUT)
{
	/* All in sections of RCU. */
	const struct section section = {
		.step		= "queue_orphan",
		.end		= "__rcu_read_unlock",
		.end_from	= "queue_orphans",
	};
	static int pair[CONNECTIONS][2];
	struct steps steps;
	int rule;

	ASSERT_EQ(0, network());
	rule = add_for_all(self->fd);
	ASSERT_LT(0, rule);
	ASSERT_EQ(0, connections(AF_INET, pair, CONNECTIONS));
	EXPECT_EQ(true, wait_for(self->fd, rule, watched, 2 * CONNECTIONS));
	ASSERT_EQ(true, begin(&section));
	EXPECT_EQ(0, remove_rule(self->fd, rule));
	steps = finish(&section);
	EXPECT_LE(2 * CONNECTIONS, steps.all);
	EXPECT_GE(64, steps.most);
	close_all(pair, CONNECTIONS);
}

/* What a child is to do. */
struct removal {
	int fd;
	int rule;
};

static void remove_it(void *arg)
{
	const struct removal *removal = arg;

	remove_rule(removal->fd, removal->rule);
}

/* Who is killed goes on with no more than a portion of them: the rest is left to a worker. */
TEST_F_TIMEOUT(budgets, of_who_is_killed_as_he_removes_a_rule, TIMEOUT)
{
	const struct section section = {
		.step		= "queue_orphan",
		.end		= "twheel_rules_remove",
		.all_tasks	= true,
	};
	static int pair[CONNECTIONS][2];
	struct removal removal = { .fd = self->fd };
	struct twheel_rule left;
	__u64 give_up;
	pid_t child;

	ASSERT_EQ(0, network());
	removal.rule = add_for_all(self->fd);
	ASSERT_LT(0, removal.rule);
	ASSERT_EQ(0, connections(AF_INET, pair, CONNECTIONS));
	EXPECT_EQ(true, wait_for(self->fd, removal.rule, watched, 2 * CONNECTIONS));
	ASSERT_EQ(true, begin(&section));
	child = spawn(remove_it, &removal);
	ASSERT_LT(0, child);
	/* It waits for a grace period then, before it comes to the connections. */
	while (!next(self->fd, 0, &left))
		ASSERT_EQ(0, waitpid(child, NULL, WNOHANG));
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	for (give_up = now_ns() + GUARD_MS * MSEC; watch_count("rules watches");
	     sleep_ns(MSEC))
		ASSERT_GT(give_up, now_ns());
	EXPECT_EQ(64, steps_after(section.end, section.step));
	EXPECT_LE(2 * CONNECTIONS, finish(&section).all);
	close_all(pair, CONNECTIONS);
}

/* Ports that a process does not listen on are forgotten, of one rule after the other. */
TEST_F_TIMEOUT(budgets, of_ports_that_are_forgotten, TIMEOUT)
{
	const struct section section = {
		.step		= "retain_ports",
		.end		= "twheel_rules_from",
		.end_from	= "twheel_ports_retain",
	};
	struct twheel_rule rule = {
		.flags	= ABORT | TWHEEL_RULE_PID,
		.pid	= getpid(),
		.idle	= HOUR,
	};
	struct steps steps;
	int i;

	ASSERT_EQ(0, network());
	for (i = 0; i < 9; i++)
		ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(true, begin(&section));
	ASSERT_EQ(0, add(self->fd, &rule));
	steps = finish(&section);
	EXPECT_EQ(10, steps.all);
	EXPECT_EQ(1, steps.most);
}

/* However many connections are in one bucket of the kernel's table: a batch at a time. */
TEST_F_TIMEOUT(budgets, of_a_bucket_with_many_connections, TIMEOUT)
{
	const struct section scan = { .step = "twheel_track", .end = "twheel_socks_pause" };
	const struct section recheck = { .step = "recheck_conn", .end = "twheel_socks_pause" };
	struct twheel_rule before = { .flags = ABORT | LOCAL, .local_port = 1, .idle = HOUR };
	static int pair[CONNECTIONS][2];
	struct steps steps;
	int all;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, file_write("/proc/sys/net/ipv4/tcp_child_ehash_entries", 1));
	/* This one's table has one bucket. */
	ASSERT_EQ(0, network());
	ASSERT_EQ(0, connections(AF_INET, pair, CONNECTIONS));
	ASSERT_EQ(true, begin(&scan));
	all = add_for_all(self->fd);
	steps = finish(&scan);
	ASSERT_LT(0, all);
	EXPECT_LE(2 * CONNECTIONS, steps.all);
	EXPECT_GE(64, steps.most);
	before.before = all;
	ASSERT_EQ(true, begin(&recheck));
	ASSERT_EQ(0, add(self->fd, &before));
	steps = finish(&recheck);
	EXPECT_LE(2 * CONNECTIONS, steps.all);
	EXPECT_GE(64, steps.most);
	close_all(pair, CONNECTIONS);
}

/* One byte on each connection. */
static int say_all(int (*pair)[2], int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!say(pair[i][1], pair[i][0]))
			return i;
	return n;
}

/* Connections under a rule that are armed anew for ever: a softirq does so for as many as fit. */
TEST_F_TIMEOUT(budgets, of_a_namespace_with_rules, TIMEOUT)
{
	const struct section section = armed_anew();
	struct twheel_rule counts = {
		.flags	= ABORT | DRY | TWHEEL_RULE_UID,
		.uid	= getuid(),
		.idle	= TWHEEL_IDLE_MIN,
		.rate	= ~0U,
	};
	static int pair[MANY_CONNECTIONS][2];
	struct steps steps;
	int rule;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, connections(AF_INET, pair, MANY_CONNECTIONS));
	/* With QEMU, what is patched for the trace must not run on another CPU meanwhile. */
	ASSERT_EQ(true, begin(&section));
	ASSERT_EQ(true, text_write(INSTANCE "tracing_on", "0"));
	rule = add(self->fd, &counts) ?: (int)counts.id;
	ASSERT_LT(0, rule);
	EXPECT_EQ(true, wait_for(self->fd, rule, would_close, 2 * MANY_CONNECTIONS));
	ASSERT_EQ(true, forget_trace());
	ASSERT_EQ(true, text_write(INSTANCE "tracing_on", "1"));
	sleep_ns(300 * MSEC);
	ASSERT_EQ(true, text_write(INSTANCE "tracing_on", "0"));
	/* Each has been counted once. */
	EXPECT_EQ(2 * MANY_CONNECTIONS, look(self->fd, rule).would_close);
	ASSERT_EQ(0, remove_rule(self->fd, rule));
	steps = finish(&section);
	EXPECT_LT(64, steps.all);
	EXPECT_GE(64 + MARGIN, steps.most);
	/* And is once more for an activity: in a time that jiffies are not late by. */
	counts.idle = 300 * MSEC;
	rule = add(self->fd, &counts) ?: (int)counts.id;
	ASSERT_LT(0, rule);
	EXPECT_EQ(true, wait_for(self->fd, rule, would_close, 2 * MANY_CONNECTIONS));
	ASSERT_EQ(MANY_CONNECTIONS, say_all(pair, MANY_CONNECTIONS));
	EXPECT_EQ(true, wait_for(self->fd, rule, would_close, 4 * MANY_CONNECTIONS));
	sleep_ns(SEC);
	EXPECT_EQ(4 * MANY_CONNECTIONS, look(self->fd, rule).would_close);
	EXPECT_EQ(0, look(self->fd, rule).delayed);
	EXPECT_EQ(0, remove_rule(self->fd, rule));
	close_all(pair, MANY_CONNECTIONS);
}

/* The kernel's code is not patched for each rule that comes and goes, but when there is none. */
TEST_F_TIMEOUT(budgets, of_rules_that_come_and_go, TIMEOUT)
{
	const struct section section = {
		.step		= "tracepoint_probe_unregister",
		.end		= UNLOCK,
		.all_tasks	= true,
	};
	struct steps steps;
	int rule, i;

	ASSERT_EQ(0, network());
	ASSERT_EQ(true, begin(&section));
	for (i = 0; i < 20; i++) {
		rule = add_port(self->fd, LOCAL | ABORT, 1, HOUR);
		ASSERT_LT(0, rule);
		ASSERT_EQ(0, remove_rule(self->fd, rule));
	}
	/* One may be left of a test before. */
	EXPECT_GE(1, count_steps(&section).all);
	EXPECT_EQ(true, wait_for_steps(&section, 1));
	steps = finish(&section);
	EXPECT_LE(1, steps.all);
}

/* Adds a rule for this process. Returns its number, or -errno. */
static int add_own(int fd)
{
	struct twheel_rule own = {
		.flags	= ABORT | TWHEEL_RULE_PID,
		.pid	= getpid(),
		.idle	= HOUR,
	};

	return add(fd, &own) ?: (int)own.id;
}

/* Locks that are taken to add a rule for this process. */
static unsigned int locks_of_a_rule(int fd, int *rule)
{
	const struct section section = { .step = "_raw_spin_lock", .end = UNLOCK };

	*rule = begin(&section) ? add_own(fd) : -EIO;
	return finish(&section).all;
}

/* A process may have a table of descriptors as long as it likes, with next to nothing in it. */
TEST_F_TIMEOUT(budgets, of_a_table_of_descriptors, TIMEOUT)
{
	const struct rlimit limit = { .rlim_cur = SLOTS, .rlim_max = SLOTS };
	unsigned int few, many, again;
	int pair[1][2] = { { -1, -1 } }, rule[3];

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, connections(AF_INET, pair, 1));
	few = locks_of_a_rule(self->fd, &rule[0]);
	ASSERT_LT(0, rule[0]);
	EXPECT_EQ(2, look(self->fd, rule[0]).watched);
	ASSERT_EQ(0, remove_rule(self->fd, rule[0]));

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ASSERT_EQ(SLOTS - 1, dup2(pair[0][0], SLOTS - 1));
	ASSERT_EQ(SLOTS / 2 + 1, dup2(pair[0][1], SLOTS / 2 + 1));
	close(pair[0][0]);
	close(pair[0][1]);
	many = locks_of_a_rule(self->fd, &rule[0]);
	ASSERT_LT(0, rule[0]);
	EXPECT_EQ(2, look(self->fd, rule[0]).watched);
	/* 64 with the lock held. */
	EXPECT_LE(few + SLOTS / 64, many);
	/* All rules for a process are served by one walk. */
	locks_of_a_rule(self->fd, &rule[1]);
	ASSERT_LT(0, rule[1]);
	again = locks_of_a_rule(self->fd, &rule[2]);
	ASSERT_LT(0, rule[2]);
	EXPECT_GT(2 * many, again);
	close(SLOTS - 1);
	close(SLOTS / 2 + 1);
}

/* Descriptors of one connection, all of which are looked at. */
#define SAME		20000

/* A search for the connections of a process lets others have a turn. */
TEST_F_TIMEOUT(budgets, of_a_search, TIMEOUT)
{
	const struct rlimit limit = { .rlim_cur = SLOTS, .rlim_max = SLOTS };
	const struct section section = {
		.step		= "twheel_track",
		.end		= "twheel_scan_work",
		.all_tasks	= true,
		.tasks		= true,
	};
	int pair[1][2] = { { -1, -1 } }, sock, i, rule;
	struct steps steps;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	sock = socket(AF_INET, SOCK_STREAM, 0);
	ASSERT_LE(0, sock);
	ASSERT_EQ(0, connections(AF_INET, pair, 1));
	for (i = 0; i < SAME; i++)
		ASSERT_LE(0, dup(pair[0][0]));
	rule = add_own(self->fd);
	ASSERT_LT(0, rule);
	ASSERT_EQ(true, begin(&section));
	/* It has the descriptors looked at again. */
	ASSERT_EQ(0, listen(sock, 1));
	EXPECT_EQ(true, wait_for_steps(&section, SAME));
	steps = finish(&section);
	EXPECT_LE(SAME, steps.all);
	EXPECT_GE(16 * 64, steps.most);
	EXPECT_EQ(0, remove_rule(self->fd, rule));
	close_all(pair, 1);
}

/* A namespace with a rule for this process, and a socket in it. Returns the socket, or -1. */
static int namespace_with_rule(int fd)
{
	return network() || add_own(fd) < 0 ? -1 : socket(AF_INET, SOCK_STREAM, 0);
}

/* Connections are looked for in one namespace at a time, however many there are. */
TEST_F_TIMEOUT(budgets, of_searches, TIMEOUT)
{
	enum { NAMESPACES = 16 };
	const struct rlimit limit = { .rlim_cur = SLOTS, .rlim_max = SLOTS };
	struct steps steps;
	int sock[NAMESPACES], i;

	/* For a search to take a while. */
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ASSERT_EQ(SLOTS - 1, dup2(self->fd, SLOTS - 1));
	for (i = 0; i < NAMESPACES; i++) {
		sock[i] = namespace_with_rule(self->fd);
		ASSERT_LE(0, sock[i]);
	}
	ASSERT_EQ(true, trace_works("1"));
	/* Each has its processes looked at again. */
	for (i = 0; i < NAMESPACES; i++)
		ASSERT_EQ(0, listen(sock[i], 1));
	sleep_ns(3 * SEC);
	ASSERT_EQ(true, trace_works("0"));
	steps = count_works("twheel_scan_work");
	/* The process, and all connections. */
	EXPECT_LE(NAMESPACES, steps.all);
	EXPECT_EQ(1, steps.most);
	for (i = 0; i < NAMESPACES; i++)
		close(sock[i]);
}

/* Nor for long: where there are no connections, it goes on in portions as well. */
TEST_F_TIMEOUT(budgets, of_a_search_in_vain, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags	= ABORT | TWHEEL_RULE_UID,
		.uid	= OTHER_UID,
		.idle	= HOUR,
	};

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(true, trace_works("1"));
	/* Those of the rule that is left are looked for. */
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	sleep_ns(3 * SEC);
	ASSERT_EQ(true, trace_works("0"));
	/* The smallest of these kernels has 8192 buckets. */
	EXPECT_LE(8192 / 1024, count_works("twheel_scan_work").all);
}

/*
 * Has changes of sockets be lost, with a connection that a rule applies to, and waits until that is
 * made up for. The rule applies to @n ends of connections already.
 */
static bool lose_changes(int fd, __u32 rule, __u64 n)
{
	const int listener = serve(AF_INET, false, 0);
	struct pair pair;

	return flood(connect_pair, listener, &pair) && wait_for(fd, rule, watched, n + 2);
}

/* All watches are looked at then, some at a time. */
TEST_F_TIMEOUT(budgets, of_changes_that_are_lost, TIMEOUT)
{
	const struct section section = {
		.step		= "may_have_ended",
		.end		= "scan_some_watches",
		.all_tasks	= true,
	};
	static int pair[CONNECTIONS][2];
	struct steps steps;
	int all;

	ASSERT_EQ(0, network());
	all = add_for_all(self->fd);
	ASSERT_LT(0, all);
	ASSERT_EQ(0, connections(AF_INET, pair, CONNECTIONS));
	EXPECT_EQ(true, wait_for(self->fd, all, watched, 2 * CONNECTIONS));
	ASSERT_EQ(true, begin(&section));
	ASSERT_EQ(true, lose_changes(self->fd, all, 2 * CONNECTIONS));
	/* The connection may be found before that is over. */
	EXPECT_EQ(true, wait_for_steps(&section, 2 * CONNECTIONS));
	steps = finish(&section);
	EXPECT_GE(64, steps.most);
	close_all(pair, CONNECTIONS);
}

/* Causes more changes than are recorded, and expects the others to be handled some at a time. */
static void expect_batches(struct __test_metadata *_metadata, int fd, const struct section *section)
{
	struct steps steps;
	int all;

	ASSERT_EQ(0, network());
	all = add_for_all(fd);
	ASSERT_LT(0, all);
	/* What the connections of other tests have left would take room. */
	sleep_ns(100 * MSEC);
	ASSERT_EQ(true, begin(section));
	ASSERT_EQ(true, lose_changes(fd, all, 0));
	/* The connection may be found by a scan before all are passed on. */
	sleep_ns(SEC);
	steps = finish(section);
	/* Half of what a namespace has room for: the others are of who ceases to listen. */
	EXPECT_LE(256, steps.all);
	EXPECT_GE(64, steps.most);
}

/* By the worker that passes them on. */
TEST_F_TIMEOUT(budgets, of_changes_that_are_passed_on, TIMEOUT)
{
	const struct section section = {
		.step		= "twheel_changes_add",
		.end		= "process_changes",
		.all_tasks	= true,
	};

	expect_batches(_metadata, self->fd, &section);
}

/* And by that of the namespace. */
TEST_F_TIMEOUT(budgets, of_many_changes, TIMEOUT)
{
	const struct section section = {
		.step		= "twheel_ports_listener_added",
		.end		= "handle_changes",
		.all_tasks	= true,
	};

	expect_batches(_metadata, self->fd, &section);
}

/*
 * Who is notified of all sockets' changes compares none with rules, of which somebody may have
 * many: that is left to the worker of their namespace.
 */
TEST_F_TIMEOUT(budgets, of_changes_of_others, TIMEOUT)
{
	const struct section section = {
		.step		= "twheel_rules_match",
		.end		= "process_changes",
		.all_tasks	= true,
	};
	static int pair[CONNECTIONS][2];
	int all;

	ASSERT_EQ(0, network());
	all = add_for_all(self->fd);
	ASSERT_LT(0, all);
	ASSERT_EQ(true, begin(&section));
	ASSERT_EQ(0, connections(AF_INET, pair, CONNECTIONS));
	EXPECT_EQ(true, wait_for(self->fd, all, watched, 2 * CONNECTIONS));
	EXPECT_EQ(0, steps_after(section.end, section.step));
	EXPECT_LE(2 * CONNECTIONS, finish(&section).all);
	close_all(pair, CONNECTIONS);
}

TEST_HARNESS_MAIN
