// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context lives as long as any process has it open, and nothing of it is left afterwards.
 */
#include <sys/prctl.h>
#include <sys/socket.h>

#include "twheel_test.h"

FIXTURE(lifetime)
{
	int fd;
	__u64 contexts;
	__u64 pending;
};

FIXTURE_SETUP(lifetime)
{
	self->contexts = total("contexts");
	self->pending = total("pending");
	ASSERT_NE(POISON, self->contexts);
	ASSERT_NE(POISON, self->pending);
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(self->contexts + 1, total("contexts"));
}

FIXTURE_TEARDOWN(lifetime)
{
	if (self->fd >= 0)
		EXPECT_EQ(0, close(self->fd));
	/* Nothing is left of what the test did. */
	EXPECT_EQ(self->contexts, total("contexts"));
	EXPECT_EQ(self->pending, total("pending"));
}

/* The exit status of a child, or -1. */
static int status_of(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Sends a file descriptor. */
static bool send_fd(int socket, int fd)
{
	union {
		struct cmsghdr	header;
		char		space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { "x", 1 };
	struct msghdr message = {
		.msg_iov	= &iov,
		.msg_iovlen	= 1,
		.msg_control	= &control,
		.msg_controllen	= sizeof(control),
	};

	memset(&control, 0, sizeof(control));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == 1;
}

/* Receives a file descriptor, or returns -1. */
static int receive_fd(int socket)
{
	union {
		struct cmsghdr	header;
		char		space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov	= &iov,
		.msg_iovlen	= 1,
		.msg_control	= &control,
		.msg_controllen	= sizeof(control),
	};
	int fd = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 ||
	    message.msg_controllen < CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

TEST_F(lifetime, a_child_shares_the_context)
{
	__u64 mine, theirs = 0;
	struct twheel_event event;
	int pipes[2];
	pid_t child;

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &mine));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		/* The child may cancel the parent's timer, and leaves one of its own. */
		if (wh_cancel(self->fd, mine) != TWHEEL_WAS_PENDING ||
		    wh_add(self->fd, 30 * MSEC, 0, 2, &theirs) ||
		    write(pipes[1], &theirs, sizeof(theirs)) != sizeof(theirs))
			_exit(1);
		_exit(0);
	}
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(sizeof(theirs), read(pipes[0], &theirs, sizeof(theirs)));
	EXPECT_EQ(-ENOENT, wh_state(self->fd, mine));
	EXPECT_EQ(self->contexts + 1, total("contexts"));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(theirs, event.handle);
	EXPECT_EQ(2, event.user_data);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(lifetime, a_child_outlives_the_parents_close)
{
	struct twheel_event event;
	int pipes[2];
	pid_t child;
	char byte;

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, wh_add(self->fd, 50 * MSEC, 0, 3, NULL));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		/* Until the parent has closed it. */
		if (read(pipes[0], &byte, 1) != 1 || !wh_wait(self->fd) ||
		    wh_read(self->fd, &event, 1) != 1 || event.user_data != 3)
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(0, close(self->fd));
	EXPECT_EQ(self->contexts + 1, total("contexts"));
	ASSERT_EQ(1, write(pipes[1], "x", 1));
	EXPECT_EQ(0, status_of(child));
	EXPECT_EQ(self->contexts, total("contexts"));
	self->fd = -1;
}

TEST_F(lifetime, a_duplicate_keeps_it)
{
	int copy = dup(self->fd);
	struct twheel_event event;
	__u64 handle;

	ASSERT_GE(copy, 0);
	ASSERT_EQ(0, wh_add(self->fd, 30 * MSEC, 0, 4, &handle));
	ASSERT_EQ(0, close(self->fd));
	self->fd = copy;
	ASSERT_EQ(true, wh_wait(copy));
	ASSERT_EQ(1, wh_read(copy, &event, 1));
	EXPECT_EQ(handle, event.handle);
}

TEST_F(lifetime, passed_to_another_process)
{
	int sockets[2], status, fd;
	struct twheel_event event;
	__u64 handle;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		close(self->fd);
		fd = receive_fd(sockets[1]);
		if (fd < 0 || wh_add(fd, 20 * MSEC, 0, 5, &handle) ||
		    write(sockets[1], &handle, sizeof(handle)) != sizeof(handle))
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(true, send_fd(sockets[0], self->fd));
	ASSERT_EQ(sizeof(handle), read(sockets[0], &handle, sizeof(handle)));
	status = status_of(child);
	EXPECT_EQ(0, status);
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(5, event.user_data);
}

/* While the descriptor is in flight no process has the context open, and still it lives. */
TEST_F(lifetime, on_its_way_through_a_socket)
{
	struct twheel_event event;
	int sockets[2];
	__u64 handle;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	ASSERT_EQ(0, wh_add(self->fd, 20 * MSEC, 0, 6, &handle));
	ASSERT_EQ(true, send_fd(sockets[0], self->fd));
	ASSERT_EQ(0, close(self->fd));
	EXPECT_EQ(self->contexts + 1, total("contexts"));
	sleep_ns(40 * MSEC);
	self->fd = receive_fd(sockets[1]);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(handle, event.handle);

	/* If nobody receives it, the context ends with the socket. */
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 7, &handle));
	ASSERT_EQ(true, send_fd(sockets[0], self->fd));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_EQ(self->contexts + 1, total("contexts"));
	ASSERT_EQ(0, close(sockets[0]));
	ASSERT_EQ(0, close(sockets[1]));
	EXPECT_EQ(true, wait_total("contexts", self->contexts));
	EXPECT_EQ(true, wait_total("pending", self->pending));
}

TEST_F(lifetime, opens_do_not_see_each_other)
{
	enum { N = 1000 };
	int other = wh_open(O_NONBLOCK);
	struct twheel_event event;
	unsigned int i;

	ASSERT_GE(other, 0);
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, wh_add(self->fd, i * 10 * USEC, 0, i, NULL));
		ASSERT_EQ(0, wh_add(other, i * 10 * USEC, 0, N + i, NULL));
	}
	ASSERT_EQ(true, wh_wait_events(self->fd, N));
	ASSERT_EQ(true, wh_wait_events(other, N));
	/* Each context numbers its own events. */
	for (i = 0; i < N; i++) {
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		ASSERT_GT(N, event.user_data);
		ASSERT_EQ(i, event.seq);
	}
	EXPECT_EQ(N, wh_nr_events(other));
	for (i = 0; i < N; i++) {
		ASSERT_EQ(1, wh_read(other, &event, 1));
		ASSERT_LE(N, event.user_data);
		ASSERT_EQ(i, event.seq);
	}
	ASSERT_EQ(0, close(other));
}

/* Closing one context does not affect another. */
TEST_F(lifetime, the_end_of_another_context)
{
	enum { N = 200 };
	__u64 handles[N];
	unsigned int i;
	int other;

	other = wh_open(O_NONBLOCK);
	ASSERT_GE(other, 0);
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, wh_add(self->fd, HOUR + i, 0, i, &handles[i]));
		ASSERT_EQ(0, wh_add(other, HOUR + i, 0, i, NULL));
	}
	EXPECT_EQ(self->pending + 2 * N, total("pending"));
	ASSERT_EQ(0, close(other));
	EXPECT_EQ(self->pending + N, total("pending"));
	for (i = 0; i < N; i++)
		EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i]));
}

TEST_F_TIMEOUT(lifetime, close_with_many_pending, 90)
{
	unsigned int i, n = very_many();

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(self->fd, 30 * SEC + i * MSEC, 0, i, NULL));
	EXPECT_EQ(self->pending + n, total("pending"));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_EQ(self->pending, total("pending"));
}

TEST_F_TIMEOUT(lifetime, close_with_many_unread, 90)
{
	unsigned int i, n = very_many() / 5;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, n));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, NULL));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
}

/* The last close races with expiries on all CPUs. */
TEST_F_TIMEOUT(lifetime, close_while_they_fire, 90)
{
	enum { N = 3000, ROUNDS = 30 };
	unsigned int round, i;
	int list[64], n = cpus(list, 64);
	__u64 start;

	random_seed();
	ASSERT_LT(0, n);
	for (round = 0; round < ROUNDS; round++) {
		start = now_ns() + 25 * MSEC;
		/* A third of them expire at once, and wait to be read. */
		for (i = 0; i < N; i++) {
			if (!(i % (N / 8)))
				ASSERT_EQ(0, pin(list[(round + i / (N / 8)) % n]));
			ASSERT_EQ(0, wh_add(self->fd, i % 3 ? start + random_below(20 * MSEC) : 0,
					    ABS, i, NULL));
		}
		while (now_ns() < start + random_below(20 * MSEC))
			sched_yield();
		ASSERT_EQ(0, close(self->fd));
		EXPECT_EQ(self->pending, total("pending"));
		EXPECT_EQ(self->contexts, total("contexts"));
		self->fd = wh_open(O_NONBLOCK);
		ASSERT_GE(self->fd, 0);
	}
}

/*
 * While the close works on the timers that were added first, one of which has the last event in the
 * queue, the timers that were added last expire.
 */
TEST_F_TIMEOUT(lifetime, expiries_behind_a_close, 90)
{
	enum { ROUNDS = 6 };
	unsigned int tail = very_many() / 10, all = 3 * tail, round, i;
	__u64 start, *handles = calloc(all, sizeof(*handles));
	int list[64], n = cpus(list, 64);

	random_seed();
	ASSERT_NE(NULL, handles);
	ASSERT_LT(0, n);
	for (round = 0; round < ROUNDS; round++) {
		/* Not on the CPU that will close the context. */
		ASSERT_EQ(0, pin(list[n - 1]));
		for (i = 0; i < all - tail; i++)
			ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &handles[i]));
		start = now_ns() + 150 * MSEC;
		for (; i < all; i++)
			ASSERT_EQ(0, wh_add(self->fd, start + random_below(30 * MSEC), ABS, i,
					    &handles[i]));
		ASSERT_EQ(0, pin(list[0]));
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handles[0], 0, 0));
		while (!wh_nr_events(self->fd) || now_ns() < start)
			sched_yield();
		ASSERT_EQ(0, close(self->fd));
		EXPECT_EQ(self->pending, total("pending"));
		self->fd = wh_open(O_NONBLOCK);
		ASSERT_GE(self->fd, 0);
	}
	free(handles);
}

/* A process that is killed leaves nothing behind, whatever its threads were doing. */
TEST_F(lifetime, killed_with_timers_armed)
{
	struct twheel_event event;
	int pipes[2], fd, status;
	unsigned int i;
	pid_t child;
	char byte;

	ASSERT_EQ(0, pipe(pipes));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		fd = wh_open(0);
		for (i = 0; i < 5000; i++)
			if (wh_add(fd, i & 1 ? HOUR : i * 10 * USEC, 0, i, NULL))
				_exit(1);
		if (write(pipes[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			wh_read(fd, &event, 1);
	}
	ASSERT_EQ(1, read(pipes[0], &byte, 1));
	EXPECT_EQ(self->contexts + 2, total("contexts"));
	EXPECT_LE(self->pending + 2500, total("pending"));
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(true, WIFSIGNALED(status));
	EXPECT_EQ(self->contexts + 1, total("contexts"));
	EXPECT_EQ(self->pending, total("pending"));
}

/* Executes a program, with the context still open or not, that writes a line and waits for one. */
static void expect_after_exec(struct __test_metadata *_metadata, FIXTURE_DATA(lifetime) * self,
			      int flags, __u64 contexts)
{
	int go[2], ready[2], fd;
	pid_t child;
	char line;

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(ready));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		fd = open(DEVICE, O_RDWR | flags);
		close(self->fd);
		close(go[1]);
		if (fd < 0 || wh_add(fd, HOUR, 0, 1, NULL) || dup2(go[0], 0) ||
		    dup2(ready[1], 1) != 1)
			_exit(1);
		execl("/bin/sh", "sh", "-c", "echo && read line", NULL);
		_exit(2);
	}
	close(go[0]);
	close(ready[1]);
	/* The context was there, and what its exec has closed is going. */
	EXPECT_EQ(1, read(ready[0], &line, 1));
	close(ready[0]);
	EXPECT_EQ(true, wait_total("contexts", contexts));
	EXPECT_EQ(true, wait_total("pending", self->pending + contexts - self->contexts - 1));
	/* The child is still running: the count above is not what it left after exiting. */
	EXPECT_EQ(0, waitpid(child, NULL, WNOHANG));
	ASSERT_EQ(2, write(go[1], "x\n", 2));
	EXPECT_EQ(0, status_of(child));
	EXPECT_EQ(self->contexts + 1, total("contexts"));
	close(go[1]);
}

TEST_F(lifetime, closed_on_exec)
{
	/* Its exec closes the child's context: only the parent's remains. */
	expect_after_exec(_metadata, self, O_CLOEXEC, self->contexts + 1);
}

TEST_F(lifetime, kept_over_exec)
{
	expect_after_exec(_metadata, self, 0, self->contexts + 2);
}

TEST_HARNESS_MAIN
