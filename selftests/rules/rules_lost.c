// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: changes of sockets that cannot be noted, as there are too many at
 * once: they are found later, and are not mistaken for others.
 */
#include "child_test.h"
#include "watch_test.h"

#include "flood.h"

/* How often changes are lost. */
#define FLOODS		10

/* Disconnects a socket, and connects it again. */
static bool reconnect_pair(int listener, struct pair *pair)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct sockaddr_in6 in6;
	socklen_t len = address(AF_INET, false, local_port(listener), &in6);

	if (connect(pair->client, &nowhere, sizeof(nowhere)) ||
	    connect(pair->client, (void *)&in6, len))
		return false;
	close(pair->server);
	pair->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return pair->server >= 0;
}

/*
 * Changes that could not be recorded are made up for, however many there are: but the scan of
 * everything that this takes is slow, and is not done twice in a second.
 */
TEST_F_TIMEOUT(rules, changes_that_are_lost, TIMEOUT)
{
	/* Fewer on a slow kernel. */
	int floods = very_many() < 100000 ? 3 : FLOODS, id, i;
	__u64 scans, begin = now_ns();
	struct pair pairs[FLOODS];

	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	ASSERT_LT(0, id);
	scans = watch_count("rules scans");
	ASSERT_NE(POISON, scans);
	for (i = 0; i < floods; i++) {
		ASSERT_TRUE(flood(connect_pair, self->listener, &pairs[i]));
		/* Now the workers get to run. */
		sleep_ns(20 * MSEC);
	}
	EXPECT_TRUE(wait_for(self->fd, id, watched, floods));
	scans = watch_count("rules scans") - scans;
	printf("# looked at everything %llu times in %llu ms\n", scans,
	       (now_ns() - begin) / MSEC);
	if (!scans && floods < FLOODS)
		SKIP(return, "too slow to lose changes");
	EXPECT_LT(0, scans);
	/* The kernel's seconds are counted in jiffies, which may be late for a while. */
	EXPECT_GE((now_ns() - begin) / SEC + 2, scans);
	for (i = 0; i < floods; i++)
		close_pair(&pairs[i]);
}

/* The end of a connection is not lost with them: the socket's next one can be watched again. */
TEST_F_TIMEOUT(rules, end_that_is_lost, TIMEOUT)
{
	struct pair pair;
	__u64 scans;

	/* Listeners are recorded as long as there is a rule, for whatever port. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, watch(self->fd, pair.client, HOUR, 0, NULL));
	scans = watch_count("timers scans");
	ASSERT_TRUE(flood(reconnect_pair, self->listener, &pair));
	EXPECT_EQ(true, wait_timers(self->fd, 0));
	printf("# looked at everything %llu times\n", watch_count("timers scans") - scans);
	EXPECT_EQ(0, watch(self->fd, pair.client, HOUR, 0, NULL));
	close_pair(&pair);
}

/* With three changes each, more than 512 for a namespace, and fewer than 2048 for a CPU. */
#define MANY_PAIRS	600

/* Adds rules that compare each connection with a thousand ports, in vain. Returns 0 or -errno. */
static int add_in_vain(int fd)
{
	struct twheel_match list[TWHEEL_RULE_MATCHES];
	int i, ret = 0;

	for (i = 0; i < TWHEEL_RULE_MATCHES; i++)
		list[i] = (struct twheel_match) {
			.kind = TWHEEL_MATCH_LOCAL_PORT, .first = i + 1, .last = i + 1,
		};
	for (i = 0; i < 1024 / TWHEEL_RULE_MATCHES && !ret; i++) {
		struct twheel_rule rule = {
			.flags		= ABORT,
			.idle		= HOUR,
			.matches	= (uintptr_t)list,
			.nr_matches	= TWHEEL_RULE_MATCHES,
		};

		ret = add(fd, &rule);
	}
	return ret;
}

/* Connections of which a namespace cannot note as many as begin: the others are found, too. */
TEST_F_TIMEOUT(rules, more_than_can_wait, TIMEOUT)
{
	static struct pair pair[MANY_PAIRS];
	struct twheel_rule all = {
		.flags	= ABORT | TWHEEL_RULE_UID,
		.uid	= getuid(),
		.idle	= HOUR,
	};
	struct late_workers late;
	int i;

	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, add_in_vain(self->fd));
	ASSERT_EQ(0, add(self->fd, &all));
	ASSERT_EQ(true, hold_workers(&late));
	for (i = 0; i < MANY_PAIRS; i++)
		ASSERT_EQ(true, connect_pair(self->listener, &pair[i]));
	ASSERT_EQ(true, let_workers_be(&late));
	EXPECT_EQ(true, wait_for(self->fd, all.id, watched, 2 * MANY_PAIRS));
	for (i = 0; i < MANY_PAIRS; i++)
		close_pair(&pair[i]);
	EXPECT_EQ(true, wait_for(self->fd, all.id, watched, 0));
}

/* What connect_and_pass_on() is given: where, where to, when to begin, and whom to tell of it. */
struct passing_on {
	int cpu;
	int listener;
	int begin[2];
	int connected[2];
};

/* Connects, leaves the connection to another process, and stays. */
static void connect_and_pass_on(void *arg)
{
	struct passing_on *passing = arg;
	const __u16 port = local_port(passing->listener);
	char byte;
	int sock;

	close(passing->listener);
	/* Like the test, which holds up the others. */
	if (pin(passing->cpu) || !set_real_time(2) || read(passing->begin[0], &byte, 1) != 1)
		_exit(1);
	sock = reach(AF_INET, false, port);
	if (sock < 0)
		_exit(1);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	close(sock);
	if (write(passing->connected[1], "", 1) != 1)
		_exit(1);
	pause();
}

/* Who has begun a connection is known only when it begins, and may not keep it. */
TEST_F_TIMEOUT(rules, passed_on_while_more_begin_than_can_wait, TIMEOUT)
{
	static struct pair pair[MANY_PAIRS];
	struct passing_on passing = { .cpu = sched_getcpu(), .listener = self->listener };
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = HOUR };
	struct late_workers late;
	char byte;
	int i;

	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, pipe2(passing.begin, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(passing.connected, O_CLOEXEC));
	rule.pid = spawn(connect_and_pass_on, &passing);
	ASSERT_LT(0, rule.pid);
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(0, add_in_vain(self->fd));
	ASSERT_EQ(true, hold_workers(&late));
	/* All changes of a CPU are handed on in order. */
	ASSERT_EQ(0, pin(passing.cpu));
	for (i = 0; i < MANY_PAIRS; i++)
		ASSERT_EQ(true, connect_pair(self->listener, &pair[i]));
	ASSERT_EQ(1, write(passing.begin[1], "", 1));
	ASSERT_EQ(1, read(passing.connected[0], &byte, 1));
	ASSERT_EQ(true, let_workers_be(&late));
	EXPECT_EQ(true, wait_for(self->fd, rule.id, watched, 1));
	ASSERT_EQ(0, kill(rule.pid, SIGKILL));
	ASSERT_EQ(rule.pid, waitpid(rule.pid, NULL, 0));
	for (i = 0; i < MANY_PAIRS; i++)
		close_pair(&pair[i]);
}

/* Changes that a process causes: fewer than a namespace can note. */
#define WAITING		400

/* Accepts a connection on a port that was another process's, and expects its rule to spare it. */
static void expect_taken_over(struct __test_metadata *_metadata, int fd, __u32 id, __u16 port,
			      struct late_workers *late)
{
	int listener = serve(AF_INET, false, port);
	struct pair pair;

	ASSERT_LE(0, listener);
	ASSERT_TRUE(connect_pair(listener, &pair));
	ASSERT_EQ(true, let_workers_be(late));
	sleep_ns(4 * SEC);
	EXPECT_TRUE(is_open(&pair));
	EXPECT_EQ(0, look(fd, id).matched);
	close_pair(&pair);
	close(listener);
}

/* Starts a process that runs beside those that hold up the workers, on one CPU. */
static bool start_real_time(struct child *child, void (*function)(void *arg), int cpu)
{
	bool started = set_real_time(2) && start_child(child, function) && !read_answer(child);

	return set_real_time(0) && started && !pin_process(child->pid, cpu);
}

/* Listens when asked to; then causes many changes, and stops. */
static void listen_flood_and_stop(void *arg)
{
	struct child *child = arg;
	int other, i;

	listen_when_asked(child);
	other = serve(AF_INET, false, 0);
	wait_request(child);
	for (i = 0; i < WAITING / 2; i++)
		if (shutdown(other, SHUT_RDWR) || listen(other, 1))
			_exit(1);
	send_answer(child, shutdown(child->listener, SHUT_RDWR) ? -errno : 0);
	wait_request(child);
}

/*
 * A process stops listening, and another one listens on that port at once, on another CPU: changes
 * that this one has noted before wait there.
 */
TEST_F_TIMEOUT(rules, end_of_listening_behind_others, TIMEOUT)
{
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = 500 * MSEC };
	struct child child = { .listener = self->listener };
	struct late_workers late;
	int list[2], port;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_TRUE(start_real_time(&child, listen_flood_and_stop, list[0]));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	sleep_ns(2 * SEC);
	port = ask_child(&child);
	ASSERT_LT(0, port);
	/* Now it is scanned. */
	sleep_ns(200 * MSEC);
	ASSERT_EQ(true, hold_workers(&late));
	ASSERT_EQ(0, pin(list[1]));
	ASSERT_EQ(0, ask_child(&child));
	expect_taken_over(_metadata, self->fd, rule.id, port, &late);
	kill_child(child.pid);
}

/*
 * A process stops listening when a namespace cannot note any more changes, and another one listens
 * on that port at once: earlier than processes are scanned again, which is a second after the last
 * time.
 */
TEST_F_TIMEOUT(rules, end_of_listening_without_room, TIMEOUT)
{
	static struct pair pairs[MANY_PAIRS];
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = 500 * MSEC };
	struct child child = { .listener = self->listener };
	const int cpu = sched_getcpu();
	struct late_workers late;
	int port, i;

	ASSERT_EQ(0, many_files());
	ASSERT_TRUE(start_real_time(&child, listen_and_stop, cpu));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(0, add_in_vain(self->fd));
	/* Whatever scans these have caused are over, and a second more. */
	sleep_ns(2 * SEC);
	port = ask_child(&child);
	ASSERT_LT(0, port);
	/* Now it is scanned. */
	sleep_ns(200 * MSEC);
	ASSERT_EQ(true, hold_workers(&late));
	/* All changes of a CPU are handed on in order. */
	ASSERT_EQ(0, pin(cpu));
	for (i = 0; i < MANY_PAIRS; i++)
		ASSERT_EQ(true, connect_pair(self->listener, &pairs[i]));
	ASSERT_EQ(0, ask_child(&child));
	expect_taken_over(_metadata, self->fd, rule.id, port, &late);
	kill_child(child.pid);
	for (i = 0; i < MANY_PAIRS; i++)
		close_pair(&pairs[i]);
}

TEST_HARNESS_MAIN
