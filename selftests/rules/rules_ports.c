// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: the ports that a process listens on, and no others.
 */
#include "child_test.h"
#include "late_memory.h"

#include <linux/filter.h>
#include <pthread.h>
#include <sys/ptrace.h>

/* Connections made while a process keeps failing to listen. */
#define VAIN_ROUNDS	200

/* Owns a socket until memory is provided: the kernel reads a filter. */
static void *filter_late(void *arg)
{
	const struct sender *sender = arg;
	const struct sock_fprog filter = { .len = 1, .filter = (void *)sender->memory };

	setsockopt(sender->sock, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
	return NULL;
}

/* Shares a listener with the test, and owns a socket that is not connected, until it is killed. */
static void own_another(void *arg)
{
	struct child *child = arg;
	struct sender sender = { .sock = socket(AF_INET, SOCK_STREAM, 0) };
	pthread_t thread;
	int uffd = late_memory(&sender.memory, sysconf(_SC_PAGESIZE));

	/* Otherwise it would be listening there as well. */
	close(child->listener);
	if (uffd < 0)
		send_answer(child, -1);
	else if (!pthread_create(&thread, NULL, filter_late, &sender) && memory_wanted(uffd))
		send_answer(child, 0);
	pause();
}

/*
 * Another process ends the listening of a process, which has one of its other sockets locked: the
 * port is not its any more.
 */
TEST_F_TIMEOUT(rules, gone_while_another_is_locked, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener, .sock = serve(AF_INET, false, 0) };
	const __u16 port = local_port(child.sock);
	int others;

	ASSERT_LE(0, child.sock);
	ASSERT_TRUE(start_child(&child, own_another));
	if (read_answer(&child))
		SKIP(return, "no userfaultfd");
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(0, shutdown(child.sock, SHUT_RDWR));
	/* This scans the process. */
	others = add_port(self->fd, LOCAL | ABORT, port, HOUR);
	ASSERT_LT(0, others);
	EXPECT_TRUE(is_left_to_others(self->fd, rule.id, others, port));
	kill_child(child.pid);
	close(child.sock);
}

/* Shares a listener with the test. */
static void share(void *arg)
{
	struct child *child = arg;

	/* Otherwise it would be listening there as well. */
	close(child->listener);
	send_answer(child, 0);
	pause();
}

/* Another process ends the listening of a process; a third one listens there at once. */
TEST_F_TIMEOUT(rules, ended_by_another, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener, .sock = serve(AF_INET, false, 0) };
	const __u16 port = local_port(child.sock);
	int others;

	ASSERT_TRUE(start_child(&child, share));
	ASSERT_EQ(0, read_answer(&child));
	rule.pid = child.pid;
	others = add_port(self->fd, LOCAL | ABORT, port, HOUR);
	ASSERT_LT(0, others);
	rule.before = others;
	ASSERT_EQ(0, add(self->fd, &rule));
	sleep_ns(2 * SEC);
	/* This is followed by a scan, and that by none for a second. */
	ASSERT_LE(0, serve(AF_INET, false, 0));
	sleep_ns(200 * MSEC);
	ASSERT_EQ(0, shutdown(child.sock, SHUT_RDWR));
	ASSERT_EQ(0, close(child.sock));
	EXPECT_TRUE(is_left_to_others(self->fd, rule.id, others, port));
	kill_child(child.pid);
}

/* As another user, listens on the same port, on another address, and stops. */
static void listen_elsewhere(void *arg)
{
	struct child *child = arg;
	int sock;

	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(1);
	sock = serve(AF_INET6, false, child->port);
	_exit(sock < 0 || shutdown(sock, SHUT_RDWR));
}

/*
 * Another user stops listening on a port, on another address: the process still listens there, and
 * what its children accept is its own. Here the test is such a child.
 */
TEST_F_TIMEOUT(rules, ended_by_a_stranger, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener, .sock = serve(AF_INET, false, 0) };
	struct pair pair;
	int others;

	child.port = local_port(child.sock);
	ASSERT_TRUE(start_child(&child, share));
	ASSERT_EQ(0, read_answer(&child));
	rule.pid = child.pid;
	others = add_port(self->fd, LOCAL | ABORT, child.port, HOUR);
	ASSERT_LT(0, others);
	rule.before = others;
	ASSERT_EQ(0, add(self->fd, &rule));
	sleep_ns(2 * SEC);
	/* This is followed by a scan, and that by none for a second. */
	ASSERT_LE(0, serve(AF_INET, false, 0));
	sleep_ns(200 * MSEC);
	ASSERT_EQ(0, reap(spawn(listen_elsewhere, &child)));
	ASSERT_TRUE(connect_pair(child.sock, &pair));
	EXPECT_EQ(true, wait_for(self->fd, rule.id, watched, 1));
	EXPECT_EQ(0, look(self->fd, others).matched);
	kill_child(child.pid);
	close_pair(&pair);
}

/* Is bound to a port, on which another process comes to listen, and keeps trying to. */
static void keep_trying(void *arg)
{
	struct child *child = arg;
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in6 in6;
	socklen_t len = address(AF_INET, false, 0, &in6);

	/* Otherwise it would be listening there as well. */
	close(child->listener);
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(sock, (void *)&in6, len))
		_exit(1);
	send_answer(child, local_port(sock));
	wait_request(child);
	send_answer(child, listen(sock, 1) ? -errno : 0);
	for (;;)
		listen(sock, 1);
}

/* A process fails to listen on a port: what others accept there is not its. */
TEST_F_TIMEOUT(rules, listening_in_vain, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener };
	int port, listener, others;
	struct pair pair;
	__u64 i;

	ASSERT_TRUE(start_child(&child, keep_trying));
	port = read_answer(&child);
	ASSERT_LT(0, port);
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	others = add_port(self->fd, LOCAL | ABORT, port, HOUR);
	ASSERT_LT(0, others);
	listener = serve(AF_INET, false, port);
	ASSERT_LE(0, listener);
	ASSERT_EQ(-EADDRINUSE, ask_child(&child));
	for (i = 1; i <= VAIN_ROUNDS && !look(self->fd, rule.id).matched; i++) {
		ASSERT_TRUE(connect_pair(listener, &pair));
		/* One or the other. */
		while (look(self->fd, rule.id).matched + look(self->fd, others).matched < i)
			sleep_ns(100 * USEC);
		close_pair(&pair);
	}
	EXPECT_EQ(0, look(self->fd, rule.id).matched) TH_LOG("connection %llu", i - 1);
	EXPECT_EQ(VAIN_ROUNDS, look(self->fd, others).matched);
	kill_child(child.pid);
	close(listener);
}

/* A connection that a process has accepted is counted once, even if a scan finds it there. */
TEST_F_TIMEOUT(rules, accepted_and_scanned, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_PID | LOCAL | ABORT,
		.pid		= getpid(),
		.local_port	= self->port,
		.idle		= HOUR,
	};
	struct pair pair;

	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	/* This scans the process, and waits for the worker. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	EXPECT_EQ(1, look(self->fd, rule.id).matched);
	close_pair(&pair);
}

/* More than are looked through for one that still has files. */
#define EXITED_THREADS	70

/**
 * struct crowd - a process with many threads
 * @child:	what it has in common with others
 * @main:	its first thread
 * @thread:	threads that exit when the process is asked to listen
 * @exit:	tells them to
 * @last:	the thread that listens, and stays
 */
struct crowd {
	struct child	child;
	pthread_t	main;
	pthread_t	thread[EXITED_THREADS];
	int		exit[2];
	pthread_t	last;
};

static void *exit_when_told(void *arg)
{
	const struct crowd *crowd = arg;
	char byte;

	(void)!read(crowd->exit[0], &byte, 1);
	return NULL;
}

static void *outlive_them(void *arg)
{
	struct crowd *crowd = arg;
	int i;

	pthread_join(crowd->main, NULL);
	for (i = 0; i < EXITED_THREADS; i++)
		pthread_join(crowd->thread[i], NULL);
	crowd->child.listener = serve(AF_INET, false, 0);
	send_answer(&crowd->child, local_port(crowd->child.listener));
	for (;;)
		accept(crowd->child.listener, NULL, NULL);
	return NULL;
}

/* Starts the threads, and when asked to, has all but one exit. */
static void leave_to_the_last(void *arg)
{
	struct crowd *crowd = arg;
	int i;

	/* Otherwise it would be listening there as well. */
	close(crowd->child.listener);
	crowd->main = pthread_self();
	for (i = 0; i < EXITED_THREADS; i++)
		if (pthread_create(&crowd->thread[i], NULL, exit_when_told, crowd))
			_exit(1);
	send_answer(&crowd->child, 0);
	wait_request(&crowd->child);
	if (pthread_create(&crowd->last, NULL, outlive_them, crowd))
		_exit(1);
	close(crowd->exit[1]);
	pthread_exit(NULL);
}

/* Traces the threads of a process but for the first. Returns how many there are. */
static int trace_threads(pid_t pid, pid_t *thread, int max)
{
	char path[64];
	pid_t tid;
	int n = 0;

	for (tid = pid + 1; tid < pid + 10 * max && n < max; tid++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
		if (!access(path, F_OK) && !ptrace(PTRACE_SEIZE, tid, 0, 0))
			thread[n++] = tid;
	}
	return n;
}

/*
 * A process is scanned while many of its threads have exited, and cannot go, as they are traced: it
 * is scanned again.
 */
TEST_F_TIMEOUT(rules, behind_threads_that_have_exited, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct crowd crowd = { .child = { .listener = self->listener } };
	pid_t thread[EXITED_THREADS];
	int port, sock, i;

	ASSERT_EQ(0, pipe2(crowd.exit, O_CLOEXEC));
	ASSERT_TRUE(start_child(&crowd.child, leave_to_the_last));
	close(crowd.exit[1]);
	ASSERT_EQ(0, read_answer(&crowd.child));
	rule.pid = crowd.child.pid;
	ASSERT_EQ(EXITED_THREADS, trace_threads(rule.pid, thread, EXITED_THREADS));
	port = ask_child(&crowd.child);
	ASSERT_LT(0, port);
	/* This scans the process. */
	ASSERT_EQ(0, add(self->fd, &rule));
	for (i = 0; i < EXITED_THREADS; i++)
		EXPECT_EQ(thread[i], waitpid(thread[i], NULL, __WALL));
	sock = reach(AF_INET, false, port);
	ASSERT_LE(0, sock);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	kill_child(rule.pid);
	close(sock);
}

TEST_HARNESS_MAIN
