// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: long calls. A process killed during a call does not complete it, and
 * nobody waits for more than what existed when the wait began.
 */
#include "rules_test.h"
#include "watch_test.h"

#include "late_workers.h"

/* Descriptors of a process: enough that searching them takes a while. */
#define SLOTS		(1 << 18)

/* What a child does, and what it has seen. */
struct call {
	int			fd;
	struct twheel_rule	rule;
	__u32			other;
	__u64			closed;
};

static void *map_shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Adds a rule, and records how many connections another rule has closed by then. */
static void add_and_record(void *arg)
{
	struct call *call = arg;

	if (add(call->fd, &call->rule))
		_exit(1);
	call->closed = look(call->fd, call->other).closed;
}

/* Waits a limited time for a child to end. Returns whether it was killed. */
static bool is_dead(pid_t child, __u64 ns)
{
	__u64 end = now_ns() + ns;
	int status;

	while (now_ns() < end) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		sleep_ns(MSEC);
	}
	return false;
}

/* Kills the child, and waits for its end. */
static bool kill_child(pid_t child)
{
	return !kill(child, SIGKILL) && is_dead(child, GUARD_MS * MSEC);
}

/* The search for connections when a rule is added: the rest of it is done later. */
TEST_F_TIMEOUT(rules, add, TIMEOUT)
{
	const struct rlimit limit = { .rlim_cur = SLOTS, .rlim_max = SLOTS };
	struct call *call = map_shared(sizeof(*call));
	struct twheel_rule rule;
	struct pair pair;
	pid_t child;

	ASSERT_NE(NULL, call);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	/* Where the search reaches it last. */
	ASSERT_EQ(SLOTS - 2, dup2(pair.client, SLOTS - 2));
	ASSERT_EQ(SLOTS - 1, dup2(pair.server, SLOTS - 1));
	close_pair(&pair);
	*call = (struct call) {
		.fd	= self->fd,
		.rule	= { .flags = TWHEEL_RULE_PID | ABORT, .pid = getpid(), .idle = HOUR },
	};
	child = spawn(add_and_record, call);
	ASSERT_LT(0, child);
	while (next(self->fd, 0, &rule))
		ASSERT_EQ(0, waitpid(child, NULL, WNOHANG));
	ASSERT_TRUE(kill_child(child));
	/* Whatever the search had found would be watched by now. */
	sleep_ns(100 * MSEC);
	EXPECT_EQ(0, look(self->fd, rule.id).watched);
	/* A second later, the search is repeated. */
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
}

/* Where a child stores its list. */
struct listing {
	int			fd;
	__u32			id;
	struct {
		struct twheel_connection	connection;
		char				rest[4096 - sizeof(struct twheel_connection)];
	} records[500];
};

static void list_all(void *arg)
{
	struct listing *listing = arg;
	__u64 cursor = 0;

	list(listing->fd, listing->id, listing->records, ARRAY_SIZE(listing->records),
	     sizeof(listing->records[0]), &cursor);
}

static bool is_listed(const struct listing *listing, int i)
{
	return __atomic_load_n(&listing->records[i].connection.cookie, __ATOMIC_RELAXED);
}

TEST_F_TIMEOUT(rules, list, TIMEOUT)
{
	struct listing *listing = map_shared(sizeof(*listing));
	const int n = ARRAY_SIZE(listing->records);
	struct pair pair;
	int told = 0, i;
	pid_t child;

	ASSERT_NE(NULL, listing);
	ASSERT_EQ(0, many_files());
	for (i = 0; i < n; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pair));
	listing->fd = self->fd;
	listing->id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	ASSERT_EQ(n, look(self->fd, listing->id).watched);
	child = spawn(list_all, listing);
	ASSERT_LT(0, child);
	while (!is_listed(listing, 0))
		ASSERT_EQ(0, waitpid(child, NULL, WNOHANG));
	ASSERT_TRUE(kill_child(child));
	for (i = 0; i < n; i++)
		told += is_listed(listing, i);
	printf("# %d connections of %d were told of\n", told, n);
	EXPECT_LE(1, told);
	EXPECT_GT(n, told);
}

/* Makes a connection to another port, to which the rule that @call adds will apply. */
static bool prepare_call(FIXTURE_DATA(rules) * self, struct call *call, struct pair *pair)
{
	int listener = serve(AF_INET, false, 0);

	*call = (struct call) {
		.fd	= self->fd,
		.rule	= {
			.flags		= LOCAL | ABORT,
			.local_port	= local_port(listener),
			.idle		= HOUR,
		},
	};
	return connect_pair(listener, pair);
}

/* Adding a rule waits until a worker has checked its connections, unless the caller is killed. */
TEST_F_TIMEOUT(rules, wait_for_the_worker, TIMEOUT)
{
	struct call *call = map_shared(sizeof(*call));
	struct late_workers late;
	struct pair pair;
	pid_t child;
	bool dead;

	ASSERT_NE(NULL, call);
	ASSERT_TRUE(prepare_call(self, call, &pair));
	/* The preparations for the first rule need workers. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, self->port, HOUR));
	ASSERT_TRUE(hold_workers(&late));
	child = spawn(add_and_record, call);
	sleep_ns(100 * MSEC);
	EXPECT_EQ(0, waitpid(child, NULL, WNOHANG));
	EXPECT_EQ(0, kill(child, SIGKILL));
	dead = is_dead(child, 300 * MSEC);
	ASSERT_TRUE(let_workers_be(&late));
	EXPECT_TRUE(dead);
	if (!dead)
		waitpid(child, NULL, 0);
}

/* But it does not wait for connections that become due meanwhile, or it might never end. */
TEST_F_TIMEOUT(rules, wait_for_what_is_due, TIMEOUT)
{
	enum { N = 400 };
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.rate		= ~0U,
		.local_port	= self->port,
		.lifetime	= SEC,
	};
	struct call *call = map_shared(sizeof(*call));
	struct pair pairs[N], pair;
	struct late_workers late;
	__u64 last;
	pid_t child;
	int i;

	ASSERT_NE(NULL, call);
	ASSERT_EQ(0, many_files());
	ASSERT_TRUE(prepare_call(self, call, &pair));
	for (i = 0; i < N; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	/* For a rule, the lifetime of existing connections begins now. */
	ASSERT_EQ(0, add(self->fd, &rule));
	last = now_ns();
	ASSERT_TRUE(wait_for(self->fd, rule.id, watched, N));
	call->other = rule.id;
	sleep_ns(last + 700 * MSEC - now_ns());
	ASSERT_TRUE(hold_workers(&late));
	child = spawn(add_and_record, call);
	/* By then, all connections that the other rule applies to are due. */
	sleep_ns(last + SEC + 50 * MSEC - now_ns());
	EXPECT_EQ(0, waitpid(child, NULL, WNOHANG));
	ASSERT_TRUE(let_workers_be(&late));
	ASSERT_EQ(0, reap(child));
	printf("# of %d others %llu had been closed by then\n", N, call->closed);
	EXPECT_GT(N, call->closed);
	EXPECT_TRUE(wait_for(self->fd, rule.id, closed, N));
	EXPECT_EQ(1, look(self->fd, call->rule.id).watched);
}

TEST_HARNESS_MAIN
