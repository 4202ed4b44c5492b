// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections to which something happens at the very moment the worker handles
 * them.
 */
#include "rules_test.h"
#include "watch_test.h"

#include "late_memory.h"
#include "late_workers.h"

#define STALL	"/sys/module/twheel_stall/parameters/ns"

/* The kernel closes connections not accepted yet; it warns if that races with the worker. */
TEST_F_TIMEOUT(rules, listener_that_is_closed, TIMEOUT)
{
	int clients[32], id = add_port(self->fd, LOCAL | ABORT, self->port, TWHEEL_IDLE_MIN), round;
	size_t i;

	for (round = 0; round < 50; round++) {
		for (i = 0; i < ARRAY_SIZE(clients); i++)
			clients[i] = reach(AF_INET, false, self->port);
		ASSERT_EQ(0, close(self->listener));
		for (i = 0; i < ARRAY_SIZE(clients); i++) {
			EXPECT_TRUE(is_reset(clients[i]));
			close(clients[i]);
		}
		self->listener = serve(AF_INET, false, self->port);
		ASSERT_LE(0, self->listener);
	}
	EXPECT_EQ(0, look(self->fd, id).closed);
	EXPECT_EQ(0, look(self->fd, id).watched);
}

/* A socket in use for long is checked less and less often, like one with a timer. */
TEST_F_TIMEOUT(rules, busy_for_long, TIMEOUT)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	__u64 busy, spared, times[MOST_LOOKS];
	struct sender sender = {};
	const char *fault;
	struct pair pair;
	pthread_t thread;
	int uffd, id, n;

	uffd = late_memory(&sender.memory, page);
	if (uffd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	/* Longer than from one check to the next. */
	id = add_port(self->fd, LOCAL | ABORT, self->port, 3 * SEC);
	ASSERT_LT(0, id);
	sender.sock = pair.server;
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &sender));
	ASSERT_EQ(true, memory_wanted(uffd));
	busy = watch_count("rules busy");
	ASSERT_NE(POISON, busy);
	spared = watch_count("rules spared");
	n = busy_looks(6 * SEC, times);
	busy = watch_count("rules busy") - busy;
	printf("# found busy %llu times\n", busy);
	EXPECT_LE(8, busy);
	EXPECT_GE(30, busy);
	EXPECT_GE(busy, n);
	fault = looks_fault(times, n);
	EXPECT_EQ(NULL, fault) TH_LOG("%s", fault);
	EXPECT_EQ(0, look(self->fd, id).spared);
	EXPECT_EQ(TCP_ESTABLISHED, tcp_info(pair.client).tcpi_state);
	ASSERT_EQ(true, let_memory_be(uffd, sender.memory, page));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(1, sender.sent);
	EXPECT_TRUE(wait_for(self->fd, id, closed, 1));
	EXPECT_TRUE(is_reset(pair.client));
	/* When the socket was finally free, there had been activity. */
	EXPECT_EQ(1, look(self->fd, id).spared);
	EXPECT_EQ(spared + 1, watch_count("rules spared"));
	close_pair(&pair);
	close(uffd);
}

/*
 * A program that disconnects its sockets, and connects them again before the worker has checked
 * them: the new connections are only as old as they are.
 */
TEST_F_TIMEOUT(rules, connected_again_at_once, TIMEOUT)
{
	enum { SOCKETS = 10 };
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct twheel_rule rule = {
		.flags		= REMOTE | ABORT,
		.remote_port	= self->port,
		.lifetime	= 6 * SEC,
	};
	struct pair pairs[SOCKETS];
	struct late_workers late;
	struct sockaddr_in6 in6;
	socklen_t len = address(AF_INET, false, self->port, &in6);
	int there[SOCKETS], i;
	__u64 first, begun;

	ASSERT_EQ(0, add(self->fd, &rule));
	first = now_ns();
	for (i = 0; i < SOCKETS; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	ASSERT_EQ(true, wait_for(self->fd, rule.id, watched, SOCKETS));
	sleep_ns(first + 4 * SEC - now_ns());
	ASSERT_EQ(true, hold_workers(&late));
	begun = now_ns();
	for (i = 0; i < SOCKETS; i++) {
		EXPECT_EQ(0, connect(pairs[i].client, &nowhere, sizeof(nowhere)));
		EXPECT_EQ(0, connect(pairs[i].client, (void *)&in6, len));
		there[i] = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC);
	}
	ASSERT_EQ(true, let_workers_be(&late));
	sleep_ns(first + 8 * SEC - now_ns());
	for (i = 0; i < SOCKETS; i++)
		EXPECT_TRUE(tcp_info(pairs[i].client).tcpi_state == TCP_ESTABLISHED ||
			    now_ns() > begun + rule.lifetime);
	/* They are closed in time, too. */
	EXPECT_TRUE(wait_for(self->fd, rule.id, closed, SOCKETS));
	for (i = 0; i < SOCKETS; i++) {
		close_pair(&pairs[i]);
		close(there[i]);
	}
}

/**
 * struct again - a thread that disconnects its socket, and connects it again
 * @port:	the port to connect to
 * @listener:	the listener on that port
 * @stop:	ends the thread
 * @times:	number of connections
 */
struct again {
	__u16		port;
	int		listener;
	bool		stop;
	unsigned int	times;
};

static void *connect_again(void *argument)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct again *again = argument;
	struct sockaddr_in6 in6;
	socklen_t len = address(AF_INET, false, again->port, &in6);

	while (!__atomic_load_n(&again->stop, __ATOMIC_SEQ_CST)) {
		if (!connect(sock, (void *)&in6, len))
			close(accept4(again->listener, NULL, NULL, SOCK_CLOEXEC));
		again->times++;
		connect(sock, &nowhere, sizeof(nowhere));
	}
	close(sock);
	return NULL;
}

/*
 * Makes the unbound workers run on one CPU, on which those for watches that are due get no time
 * most of the time, while those for changes, which have priority, do. The caller runs on the other
 * CPUs from then on. Returns a process; this state lasts until it is killed. Stores where the
 * workers ran before.
 */
static pid_t keep_due_watches_waiting(char *before, int size)
{
	int list[64], n = cpus(list, ARRAY_SIZE(list)), i;
	cpu_set_t others;
	pid_t pid;

	if (n < 2)
		return -1;
	CPU_ZERO(&others);
	for (i = 0; i < n - 1; i++)
		CPU_SET(list[i], &others);
	if (!keep_workers_on(list[n - 1], before, size) ||
	    sched_setaffinity(0, sizeof(others), &others))
		return -1;
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(list[n - 1]);
	if (nice(-15) == -1)
		_exit(1);
	for (;;) {
		__u64 end = now_ns() + SEC;

		while (now_ns() < end)
			;
		sleep_ns(50 * MSEC);
	}
}

/* Removed just when an ended connection is about to be replaced by the next one of its socket. */
TEST_F_TIMEOUT(rules, removed_while_connected_again, TIMEOUT)
{
	struct again again = { .port = self->port, .listener = self->listener };
	const char *rounds = getenv("TWHEEL_ROUNDS");
	__u64 end = now_ns() + SEC * (rounds ? atoi(rounds) : 1);
	char everywhere[64];
	pthread_t thread;
	pid_t keeper;
	int id, next_id;

	keeper = keep_due_watches_waiting(everywhere, sizeof(everywhere));
	ASSERT_LT(0, keeper);
	id = add_port(self->fd, REMOTE | ABORT, self->port, HOUR);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_again, &again));
	while (now_ns() < end) {
		next_id = add_port(self->fd, REMOTE | ABORT, self->port, HOUR);
		ASSERT_LT(0, next_id);
		ASSERT_EQ(0, remove_rule(self->fd, id));
		id = next_id;
	}
	__atomic_store_n(&again.stop, true, __ATOMIC_SEQ_CST);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	printf("# connected %u times, removed %d rules\n", again.times, id - 1);
	ASSERT_EQ(0, remove_rule(self->fd, id));
	EXPECT_EQ(0, kill(keeper, SIGKILL));
	EXPECT_EQ(keeper, waitpid(keeper, NULL, 0));
	EXPECT_EQ(true, text_write(WORKERS_CPUS, everywhere));
}

/* Removed at about the time it closes connections: what is left stays open. */
TEST_F_TIMEOUT(rules, removed_while_it_closes, TIMEOUT)
{
	struct pair pairs[50];
	__u64 closed;
	int id, i, open;

	for (i = 0; i < 50; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 100 * MSEC);
	while (!(closed = look(self->fd, id).closed))
		sched_yield();
	ASSERT_EQ(0, remove_rule(self->fd, id));
	for (open = 0, i = 0; i < 50; i++)
		open += is_open(&pairs[i]);
	sleep_ns(300 * MSEC);
	for (i = 0; i < 50; i++)
		open -= is_open(&pairs[i]);
	EXPECT_EQ(0, open);
	EXPECT_LE(1, closed);
}

static void keep_busy(void *arg)
{
	if (!pin(*(int *)arg))
		for (;;)
			continue;
}

/* Keeps the other CPUs busy: one process each. The test itself is on list[0]. */
struct busy {
	int list[8], nr;
	pid_t pid[8];
};

/* Swaps the CPUs of the test and one of the processes. */
static bool swap_cpus(struct busy *busy, int which)
{
	const int cpu = busy->list[which];

	busy->list[which] = busy->list[0];
	busy->list[0] = cpu;
	return !pin_process(busy->pid[which], busy->list[which]) && !pin(cpu);
}

/*
 * Dry run: activity while the kernel's jiffies stand still has an older timestamp than it should,
 * and counts nevertheless. For this, the CPU that keeps jiffies must be stalled while the timer
 * expires on this one: a CPU that is busy, and so keeps that job. If this CPU has the job itself,
 * because it never went idle, it must become the busy one.
 */
TEST_F_TIMEOUT(rules, dry_run_while_jiffies_stand_still, TIMEOUT)
{
	/* Spinning is expensive to simulate. */
	const int rounds = simulated() ? 10 : 30;
	const __u64 idle = 200 * MSEC;
	struct busy busy;
	int late = 0, id, i;
	struct pair pair;
	bool stood;
	__u64 end;

	busy.nr = cpus(busy.list, ARRAY_SIZE(busy.list));
	if (busy.nr < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, system("modprobe twheel_stall"));
	EXPECT_EQ(-ERANGE, file_write(STALL, SEC));
	ASSERT_EQ(0, pin(busy.list[0]));
	for (i = 1; i < busy.nr; i++)
		busy.pid[i] = spawn(keep_busy, &busy.list[i]);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT | DRY, self->port, idle);
	ASSERT_LT(0, id);
	for (i = 0; i < rounds; i++) {
		ASSERT_TRUE(wait_for(self->fd, id, would_close, i + 1)) TH_LOG("round %d", i);
		/* The connection is checked again after an idle timeout. */
		sleep_ns(idle - (20 - i % 15) * MSEC);
		ASSERT_EQ(0, file_write(STALL, 18 * MSEC));
		/* Not later than the module can detect. */
		for (end = now_ns() + 16 * MSEC;
		     now_ns() < end || now_ns() - coarse_ns() > idle / 4;)
			continue;
		stood = now_ns() - coarse_ns() > 8 * MSEC;
		ASSERT_TRUE(say(pair.client, pair.server));
		late += stood;
		if (!stood)
			ASSERT_TRUE(swap_cpus(&busy, 1 + i % (busy.nr - 1)));
	}
	printf("# %d of %d times, jiffies were late\n", late, i);
	EXPECT_LT(0, late);
	close_pair(&pair);
	for (i = 1; i < busy.nr; i++) {
		kill(busy.pid[i], SIGKILL);
		reap(busy.pid[i]);
	}
	EXPECT_EQ(0, system("rmmod twheel_stall"));
}

static bool race_is_over;

static bool race_goes_on(void)
{
	return !__atomic_load_n(&race_is_over, __ATOMIC_RELAXED);
}

/* Opens and closes connections, and lets some fall silent for a moment. */
static void *churn_connections(void *arg)
{
	int listener = *(int *)arg;
	struct pair pair;
	__u64 n;

	for (n = 0; race_goes_on(); n++) {
		if (!connect_pair(listener, &pair)) {
			close(pair.client);
			continue;
		}
		say(pair.client, pair.server);
		if (n % 8 == 0)
			sleep_ns(n % 5 * MSEC);
		close_pair(&pair);
	}
	return NULL;
}

static void *add_and_remove_rules(void *arg)
{
	int listener = *(int *)arg, fd = wh_open(0), id;
	struct twheel_connection records[8];
	__u64 cursor = 0;

	while (race_goes_on()) {
		id = add_port(fd, LOCAL | ABORT, local_port(listener), TWHEEL_IDLE_MIN);
		list(fd, id, records, 8, sizeof(records[0]), &cursor);
		cursor = 0;
		remove_rule(fd, id);
	}
	close(fd);
	return NULL;
}

TEST_F_TIMEOUT(rules, all_at_once, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_PID | ABORT,
		.idle		= TWHEEL_IDLE_MIN,
		.lifetime	= 2 * MSEC,
	};
	pthread_t threads[4];
	int i;

	rule.pid = getpid();
	ASSERT_EQ(0, add(self->fd, &rule));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, churn_connections, &self->listener));
		ASSERT_EQ(0, pthread_create(&threads[2 + i], NULL, add_and_remove_rules,
					    &self->listener));
	}
	sleep_ns(2 * SEC);
	__atomic_store_n(&race_is_over, true, __ATOMIC_RELAXED);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 0));
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	EXPECT_TRUE(wait_total("pending", 0));
}

/* Connections that are closed at once, so that the worker has something to do. */
#define BATCH		200

/**
 * struct tally - the outcomes of races
 * @idle:	the idle timeout, in nanoseconds: longer on a slow kernel
 * @in_time:	connections whose data arrived in time
 * @late:	the others
 * @spared:	of those in time, the ones that the worker was about to close when it found the data
 */
struct tally {
	__u64 idle;
	__u64 in_time;
	__u64 late;
	__u64 spared;
};

/* Waits until a rule has closed its first connection. Returns false on a timeout. */
static bool wait_first_closed(int fd, __u32 id)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (!look(fd, id).closed)
		if (sched_yield(), now_ns() > end)
			return false;
	return true;
}

/* Did data arrive at the server's end? If so, it lives on, or has been idle once more since. */
static bool was_in_time(struct __test_metadata *_metadata, const struct pair *pair, __u64 sent,
			__u64 idle)
{
	int heard = hear(pair->server);

	if (heard == 1) {
		EXPECT_TRUE(is_open(pair) || sent + idle <= now_ns());
		return true;
	}
	EXPECT_TRUE(heard == 0 || heard == -ETIMEDOUT || heard == -ECONNRESET)
		TH_LOG("%d", heard);
	return false;
}

/*
 * Data arrives at the moment of closing. All connections fall silent at once, so that one tick
 * finds them idle. When the worker has closed the first one, it has yet to reach the others: data
 * that arrives now is for the worker to find, with the socket locked. Starting from one end or the
 * other, as the order in which they become due is not guaranteed.
 */
static void race_with_data(struct __test_metadata *_metadata, FIXTURE_DATA(rules) * self,
			   __u32 action, bool backwards, struct tally *tally)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | action,
		/* No connection waits for its turn. */
		.rate		= 1000000,
		.local_port	= self->port,
		.idle		= tally->idle,
	};
	__u64 sent[BATCH], in_time = 0;
	struct pair pairs[BATCH];
	int other, heard, i, k;

	for (i = 0; i < BATCH; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	for (i = 0; i < BATCH; i++)
		ASSERT_TRUE(say(pairs[i].client, pairs[i].server));
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_TRUE(wait_first_closed(self->fd, rule.id));
	for (i = 0; i < BATCH; i++) {
		k = backwards ? BATCH - 1 - i : i;
		sent[k] = coarse_ns();
		send(pairs[k].client, "x", 1, MSG_NOSIGNAL);
	}
	/* Adding a rule waits until the worker is idle. */
	other = add_port(self->fd, LOCAL | ABORT, 1, HOUR);
	ASSERT_LT(0, other);
	for (i = 0; i < BATCH; i++)
		in_time += was_in_time(_metadata, &pairs[i], sent[i], rule.idle);
	/* A spared connection is not forgotten; and if one is closed, the other end is notified. */
	for (i = 0; i < BATCH; i++) {
		heard = hear(pairs[i].client);
		EXPECT_TRUE(heard == 0 || heard == -ECONNRESET || heard == -EPIPE)
			TH_LOG("%d", heard);
		close_pair(&pairs[i]);
	}
	rule = look(self->fd, rule.id);
	EXPECT_EQ(0, rule.watched);
	EXPECT_EQ(BATCH, rule.matched);
	EXPECT_EQ(BATCH, rule.closed);
	EXPECT_EQ(0, rule.delayed);
	EXPECT_GE(in_time, rule.spared);
	tally->in_time += in_time;
	tally->late += BATCH - in_time;
	tally->spared += rule.spared;
	/* On a slow kernel, all of them may be closed before the first one is noticed. */
	if (!in_time)
		tally->idle *= 2;
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	ASSERT_EQ(0, remove_rule(self->fd, other));
}

TEST_F_TIMEOUT(rules, data_in_time, TIMEOUT)
{
	const int rounds = very_many() / 5000;
	__u64 end = now_ns() + 2 * GUARD_MS * MSEC;
	struct tally tally = { .idle = 100 * MSEC };
	int i;

	/* A slow machine may need more rounds to see every outcome. */
	for (i = 0; i < rounds || ((!tally.spared || !tally.late) && now_ns() < end); i++)
		race_with_data(_metadata, self, i % 2 ? TWHEEL_WATCH_SHUTDOWN : ABORT,
			       i / 2 % 2, &tally);
	printf("# %llu in time, %llu of them at the last moment; %llu too late\n",
	       tally.in_time, tally.spared, tally.late);
	EXPECT_LT(0, tally.spared);
	EXPECT_LT(0, tally.late);
}

TEST_HARNESS_MAIN
