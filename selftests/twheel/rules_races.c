// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections to which something happens at the very moment at which the worker
 * deals with them.
 */
#include "rules_test.h"

#define STALL	"/sys/module/twheel_stall/parameters/ns"

/* The kernel closes what nobody has accepted: it must not meet the worker, and says so if. */
TEST_F_TIMEOUT(rules, listener_that_is_closed, TIMEOUT)
{
	int clients[32], id = add_port(self->fd, LOCAL | ABORT, self->port, 1), round;
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

/* Removed at about the time at which it closes them: what is left stays open. */
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

static void be_busy(void *arg)
{
	if (!pin(*(int *)arg))
		for (;;)
			continue;
}

/*
 * Dry run: what comes while the kernel's jiffies stand still has an older stamp than it should,
 * and counts nevertheless. It takes a CPU that is busy, and so keeps them, and is held up, while
 * the timer comes up here.
 */
TEST_F_TIMEOUT(rules, dry_run_while_jiffies_stand_still, TIMEOUT)
{
	const __u64 idle = 200 * MSEC;
	int list[8], nr = cpus(list, ARRAY_SIZE(list)), late = 0, id, i;
	pid_t busy[ARRAY_SIZE(list)];
	struct pair pair;
	__u64 end;

	if (nr < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, system("modprobe twheel_stall"));
	EXPECT_EQ(-ERANGE, file_write(STALL, SEC));
	ASSERT_EQ(0, pin(list[0]));
	for (i = 1; i < nr; i++)
		busy[i] = spawn(be_busy, &list[i]);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT | DRY, self->port, idle);
	ASSERT_LT(0, id);
	for (i = 0; i < 30; i++) {
		ASSERT_TRUE(wait_for(self->fd, id, closed, i + 1)) TH_LOG("round %d", i);
		/* It is looked at again after an idle timeout. */
		sleep_ns(idle - (20 - i % 15) * MSEC);
		ASSERT_EQ(0, file_write(STALL, 18 * MSEC));
		/* Not later than the module can see through. */
		for (end = now_ns() + 16 * MSEC;
		     now_ns() < end || now_ns() - coarse_ns() > idle / 4;)
			continue;
		late += now_ns() - coarse_ns() > 8 * MSEC;
		ASSERT_TRUE(say(pair.client, pair.server));
	}
	printf("# %d of %d times, jiffies were late\n", late, i);
	EXPECT_LT(0, late);
	close_pair(&pair);
	for (i = 1; i < nr; i++) {
		kill(busy[i], SIGKILL);
		reap(busy[i]);
	}
	EXPECT_EQ(0, system("rmmod twheel_stall"));
}

static bool race_is_over;

static bool race_goes_on(void)
{
	return !__atomic_load_n(&race_is_over, __ATOMIC_RELAXED);
}

/* Opens and closes connections, and lets some fall silent for a moment. */
static void *churn(void *arg)
{
	int listener = *(int *)arg;
	struct pair pair;
	__u64 n;

	for (n = 0; race_goes_on(); n++) {
		if (!connect_pair(listener, &pair))
			continue;
		say(pair.client, pair.server);
		if (n % 8 == 0)
			sleep_ns(n % 5 * MSEC);
		close_pair(&pair);
	}
	return NULL;
}

static void *rule_and_unrule(void *arg)
{
	int listener = *(int *)arg, fd = wh_open(0), id;
	struct twheel_connection records[8];
	__u64 cursor = 0;

	while (race_goes_on()) {
		id = add_port(fd, LOCAL | ABORT, local_port(listener), MSEC);
		list(fd, id, records, 8, sizeof(records[0]), &cursor);
		cursor = 0;
		remove_rule(fd, id);
	}
	close(fd);
	return NULL;
}

TEST_F_TIMEOUT(rules, all_at_once, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = 2 * MSEC };
	pthread_t threads[4];
	int i;

	rule.pid = getpid();
	ASSERT_EQ(0, add(self->fd, &rule));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, churn, &self->listener));
		ASSERT_EQ(0, pthread_create(&threads[2 + i], NULL, rule_and_unrule,
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
 * struct tally - what was seen of races
 * @idle:	the idle timeout, in nanoseconds: longer on a slow kernel
 * @in_time:	connections whose data was in time
 * @late:	others
 * @spared:	of the first: the worker was to close them, and found the data
 */
struct tally {
	__u64 idle;
	__u64 in_time;
	__u64 late;
	__u64 spared;
};

/* Waits until a rule closes its first connection. Returns whether that came true. */
static bool wait_first(int fd, __u32 id)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (!look(fd, id).closed)
		if (sched_yield(), now_ns() > end)
			return false;
	return true;
}

/* Did data arrive at the server's end? If so it lives on, or has been idle once more since. */
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
 * Data at the moment of the kick. All connections fall silent at once, so that one tick finds
 * them idle. When the worker has closed the first one, it has yet to come to others: data that
 * arrives now is for the worker to find, with the socket locked. From one end or the other, as
 * they come due in an order that nobody promises.
 */
static void data_at_the_kick(struct __test_metadata *_metadata, FIXTURE_DATA(rules) * self,
			     __u32 action, bool backwards, struct tally *tally)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | action,
		/* Nobody waits for its turn. */
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
	ASSERT_TRUE(wait_first(self->fd, rule.id));
	for (i = 0; i < BATCH; i++) {
		k = backwards ? BATCH - 1 - i : i;
		sent[k] = coarse_ns();
		send(pairs[k].client, "x", 1, MSG_NOSIGNAL);
	}
	/* Who adds a rule waits until the worker has nothing more to do. */
	other = add_port(self->fd, LOCAL | ABORT, 1, HOUR);
	ASSERT_LT(0, other);
	for (i = 0; i < BATCH; i++)
		in_time += was_in_time(_metadata, &pairs[i], sent[i], rule.idle);
	/* Who was spared is not forgotten; and whoever is closed, the other end is told. */
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
	/* On a slow kernel all of them may be closed before the first one is heard of. */
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

	/* A slow machine may need more of them to see all that there is to see. */
	for (i = 0; i < rounds || ((!tally.spared || !tally.late) && now_ns() < end); i++)
		data_at_the_kick(_metadata, self, i % 2 ? TWHEEL_WATCH_SHUTDOWN : ABORT,
				 i / 2 % 2, &tally);
	printf("# %llu in time, %llu of them at the last moment; %llu too late\n",
	       tally.in_time, tally.spared, tally.late);
	EXPECT_LT(0, tally.spared);
	EXPECT_LT(0, tally.late);
}

TEST_HARNESS_MAIN
