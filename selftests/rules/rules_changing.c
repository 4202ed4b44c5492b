// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: changes of sockets that take so long that connections are scanned
 * between the notification and the change itself.
 */
#include "child_test.h"
#include "late_workers.h"

#include <pthread.h>
#include <sys/syscall.h>

#define STALLS	"/sys/module/twheel_stall/parameters/"

/* As long as twheel_stall.ko stalls. */
#define LONG_STALL	(200 * MSEC)

/* Stalls the next socket that is about to get a state. Returns whether that worked. */
static bool stall_change(int state, __u16 port, __u64 ns)
{
	return !file_write(STALLS "state", state) && !file_write(STALLS "port", port) &&
	       !file_write(STALLS "state_ns", ns);
}

/* Stalls whoever next calls a function. Returns whether that worked. */
static bool stall_function(const char *name)
{
	return text_write(STALLS "function", name) && !file_write(STALLS "function_ns", LONG_STALL);
}

/* Waits until the stall of that parameter has begun. Returns false if it times out. */
static bool wait_stalled(const char *parameter)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;
	char path[128];

	snprintf(path, sizeof(path), STALLS "%s", parameter);
	while (file_number(path))
		if (sleep_ns(MSEC), now_ns() > end)
			return false;
	return true;
}

/*
 * Loads the module, and starts a child on one CPU, which is to be stalled, while the test and
 * the workers are on another. Stores where the workers ran before. Returns whether all that worked.
 */
static bool start_apart(struct child *child, void (*function)(void *arg), const int *list,
			char *before, int size)
{
	return !run_command("modprobe", "twheel_stall") && start_child(child, function) &&
	       !pin_process(child->pid, list[1]) && !pin(list[0]) &&
	       keep_workers_on(list[0], before, size);
}

/* Undoes that. */
static bool end_apart(const struct child *child, const char *before)
{
	kill_child(child->pid);
	return text_write(WORKERS_CPUS, before) && !run_command("rmmod", "twheel_stall");
}

/* Listens when asked to, and accepts. */
static void listen_and_accept(void *arg)
{
	struct child *child = arg;

	listen_when_asked(child);
	for (;;)
		send_answer(child, accept(child->listener, NULL, NULL));
}

/* The same, once it has listened elsewhere. */
static void listen_again_and_accept(void *arg)
{
	struct child *child = arg;

	wait_request(child);
	send_answer(child, local_port(serve(AF_INET, false, 0)));
	listen_and_accept(arg);
}

/*
 * A process is so slow to listen that it is scanned between the notification and the change itself:
 * it will listen, and this is not forgotten.
 */
TEST_F_TIMEOUT(rules, slow_to_listen, TIMEOUT)
{
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = HOUR };
	/* Not one that the kernel chooses. */
	struct child child = { .listener = self->listener, .port = 4321 };
	char everywhere[64];
	int list[2], sock;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_TRUE(start_apart(&child, listen_and_accept, list, everywhere, sizeof(everywhere)));
	ASSERT_EQ(0, read_answer(&child));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	/* The next scan is as soon as it can be. */
	sleep_ns(2 * SEC);
	ASSERT_TRUE(stall_change(TCP_LISTEN, child.port, LONG_STALL));
	ASSERT_EQ(child.port, ask_child(&child));
	EXPECT_EQ(0, file_number(STALLS "state_ns"));
	/* And whatever scans that causes are over. */
	sleep_ns(3 * SEC);
	sock = reach(AF_INET, false, child.port);
	ASSERT_LE(0, sock);
	ASSERT_LE(0, read_answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	EXPECT_TRUE(end_apart(&child, everywhere));
	close(sock);
}

/*
 * A process takes a little longer to listen than to be notified of, soon after it has been scanned:
 * that is waited for, and not only found by the next scan, a second after the last one.
 */
TEST_F_TIMEOUT(rules, soon_to_listen, TIMEOUT)
{
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = HOUR };
	struct child child = { .listener = self->listener, .port = 4323 };
	char everywhere[64];
	int list[2], sock;
	__u64 begin;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_TRUE(start_apart(&child, listen_again_and_accept, list, everywhere,
				sizeof(everywhere)));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	sleep_ns(2 * SEC);
	/* This is followed by a scan. */
	ASSERT_LT(0, ask_child(&child));
	ASSERT_EQ(0, read_answer(&child));
	sleep_ns(200 * MSEC);
	ASSERT_TRUE(stall_change(TCP_LISTEN, child.port, 300 * USEC));
	begin = now_ns();
	ASSERT_EQ(child.port, ask_child(&child));
	EXPECT_EQ(0, file_number(STALLS "state_ns"));
	sock = reach(AF_INET, false, child.port);
	ASSERT_LE(0, sock);
	ASSERT_LE(0, read_answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	EXPECT_GT(begin + SEC / 2, now_ns());
	EXPECT_TRUE(end_apart(&child, everywhere));
	close(sock);
}

/* A rule is added between the notification that a connection is established, and the change. */
TEST_F_TIMEOUT(rules, added_while_it_is_established, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= REMOTE | ABORT,
		.remote_port	= self->port,
		.idle		= HOUR,
	};
	struct child child = { .listener = self->listener, .port = self->port };
	char everywhere[64];
	int list[2];

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_TRUE(start_apart(&child, connect_often, list, everywhere, sizeof(everywhere)));
	/* Without a rule, nobody would be notified. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	ASSERT_TRUE(stall_change(TCP_ESTABLISHED, self->port, LONG_STALL));
	ASSERT_TRUE(send_request(&child));
	ASSERT_TRUE(wait_stalled("state_ns"));
	/* No rule is found for it. */
	sleep_ns(20 * MSEC);
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_LT(0, read_answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	EXPECT_TRUE(end_apart(&child, everywhere));
}

/* Not one that the kernel chooses. */
#define STOP_PORT	4322

/* Has a child stop to listen on that port, and be slow. Returns whether it is now about to. */
static bool begin_to_stop(struct child *child)
{
	if (!stall_change(TCP_CLOSE, STOP_PORT, LONG_STALL) || !send_request(child) ||
	    !wait_stalled("state_ns"))
		return false;
	/* So that the notification is handled. */
	sleep_ns(20 * MSEC);
	return true;
}

/*
 * Starts a child that listens on that port, and stops when asked to, apart from the test. Adds a
 * rule for what anybody accepts there, and stores it. Returns whether all that worked.
 */
static bool start_to_listen(int fd, struct child *child, const int *list, char *before, int size,
			    int *others)
{
	if (!start_apart(child, listen_and_stop, list, before, size) || read_answer(child) ||
	    ask_child(child) != STOP_PORT)
		return false;
	*others = add_port(fd, LOCAL | ABORT, STOP_PORT, HOUR);
	return *others > 0;
}

/* A process is scanned between the notification that it stops to listen, and the change. */
TEST_F_TIMEOUT(rules, slow_to_stop, TIMEOUT)
{
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = HOUR };
	struct child child = { .listener = self->listener, .port = STOP_PORT };
	char everywhere[64];
	int list[2], others;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_TRUE(start_to_listen(self->fd, &child, list, everywhere, sizeof(everywhere),
				    &others));
	rule.pid = child.pid;
	rule.before = others;
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_TRUE(begin_to_stop(&child));
	/* This scans the process. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	ASSERT_EQ(0, read_answer(&child));
	EXPECT_TRUE(is_left_to_others(self->fd, rule.id, others, STOP_PORT));
	EXPECT_TRUE(end_apart(&child, everywhere));
}

/* A rule for a process is added then. */
TEST_F_TIMEOUT(rules, added_while_it_stops, TIMEOUT)
{
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = HOUR };
	struct child child = { .listener = self->listener, .port = STOP_PORT };
	char everywhere[64];
	int list[2], others;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_TRUE(start_to_listen(self->fd, &child, list, everywhere, sizeof(everywhere),
				    &others));
	ASSERT_TRUE(begin_to_stop(&child));
	rule.pid = child.pid;
	rule.before = others;
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(0, read_answer(&child));
	EXPECT_TRUE(is_left_to_others(self->fd, rule.id, others, STOP_PORT));
	EXPECT_TRUE(end_apart(&child, everywhere));
}

/**
 * struct adder - a thread that adds a rule
 * @fd:		the device
 * @cpu:	where it runs
 * @rule:	the rule
 * @ret:	what came of it
 */
struct adder {
	int			fd;
	int			cpu;
	struct twheel_rule	*rule;
	int			ret;
};

static void *add_rule(void *arg)
{
	struct adder *adder = arg;

	adder->ret = pin(adder->cpu) ?: add(adder->fd, adder->rule);
	return NULL;
}

/*
 * A process stops to listen after a scan has found that it does, and before the scan has recorded
 * it.
 */
TEST_F_TIMEOUT(rules, stopped_while_it_is_scanned, TIMEOUT)
{
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = HOUR };
	struct child child = { .listener = self->listener, .port = STOP_PORT };
	struct adder adder = { .fd = self->fd, .rule = &rule };
	char everywhere[64];
	pthread_t thread;
	int list[2], others;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_TRUE(start_to_listen(self->fd, &child, list, everywhere, sizeof(everywhere),
				    &others));
	/* The thread is to be stalled. */
	ASSERT_EQ(0, pin_process(child.pid, list[0]));
	rule.pid = child.pid;
	rule.before = others;
	adder.cpu = list[1];
	ASSERT_TRUE(stall_function("twheel_ports_record"));
	ASSERT_EQ(0, pthread_create(&thread, NULL, add_rule, &adder));
	ASSERT_TRUE(wait_stalled("function_ns"));
	ASSERT_EQ(0, ask_child(&child));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, adder.ret);
	EXPECT_TRUE(is_left_to_others(self->fd, rule.id, others, STOP_PORT));
	EXPECT_TRUE(end_apart(&child, everywhere));
}

/*
 * Closes a listener of the test and has a scan look for listeners; then gets it again, and accepts.
 */
static void listen_and_get_another(void *arg)
{
	struct child *child = arg;
	const int test = syscall(SYS_pidfd_open, getppid(), 0);
	int sock;

	wait_request(child);
	close(child->sock);
	send_answer(child, 0);
	wait_request(child);
	send_answer(child, local_port(serve(AF_INET, false, 0)));
	wait_request(child);
	sock = syscall(SYS_pidfd_getfd, test, child->sock, 0);
	send_answer(child, sock);
	for (;;)
		accept(sock, NULL, NULL);
}

/*
 * A process gets a listener after a scan has passed its place, and then a rule is added, which
 * finds the listener: the scan must not forget it as it ends. @known_before: the listener was the
 * process's before, and is taken for it still.
 */
static void pass_on_while_scanned(struct __test_metadata *_metadata, int fd, int listener,
				  bool known_before)
{
	struct twheel_rule rule = { .flags = ABORT | TWHEEL_RULE_PID, .idle = HOUR };
	struct child child = { .listener = listener, .sock = serve(AF_INET, false, 0) };
	const __u16 port = local_port(child.sock);
	__u32 first;
	char everywhere[64];
	int list[2], sock;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_TRUE(start_apart(&child, listen_and_get_another, list, everywhere,
				sizeof(everywhere)));
	/* The worker is to be stalled, and neither the process nor the test. */
	ASSERT_EQ(0, pin(list[1]));
	rule.pid = child.pid;
	if (!known_before)
		ASSERT_EQ(0, ask_child(&child));
	ASSERT_EQ(0, add(fd, &rule));
	first = rule.id;
	sleep_ns(2 * SEC);
	if (known_before)
		ASSERT_EQ(0, ask_child(&child));
	ASSERT_TRUE(stall_function("twheel_ports_retain"));
	ASSERT_LT(0, ask_child(&child));
	ASSERT_TRUE(wait_stalled("function_ns"));
	ASSERT_LT(0, ask_child(&child));
	/* It is for others. */
	ASSERT_LT(0, add_port(fd, LOCAL | ABORT, STOP_PORT, HOUR));
	ASSERT_EQ(0, close(child.sock));
	sleep_ns(3 * SEC);
	sock = reach(AF_INET, false, port);
	ASSERT_LE(0, sock);
	EXPECT_TRUE(wait_for(fd, first, watched, 1));
	EXPECT_TRUE(end_apart(&child, everywhere));
	close(sock);
}

TEST_F_TIMEOUT(rules, passed_on_while_it_is_scanned, TIMEOUT)
{
	pass_on_while_scanned(_metadata, self->fd, self->listener, false);
}

TEST_F_TIMEOUT(rules, passed_on_again_while_it_is_scanned, TIMEOUT)
{
	pass_on_while_scanned(_metadata, self->fd, self->listener, true);
}

TEST_HARNESS_MAIN
