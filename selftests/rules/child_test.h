/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules for idle connections: processes that begin connections, or listen, when asked to.
 */
#ifndef SELFTESTS_RULES_CHILD_TEST_H
#define SELFTESTS_RULES_CHILD_TEST_H

#include "rules_test.h"

/**
 * struct child - a process that acts when asked to by a byte in a pipe
 * @pid:	the process
 * @tell:	the pipe for requests
 * @told:	the pipe for answers
 * @port:	where to connect to, or to listen
 * @listener:	the test's listener; unless the child closes it, it listens there as well
 * @sock:	a socket that the test and the child share
 */
struct child {
	pid_t	pid;
	int	tell[2];
	int	told[2];
	__u16	port;
	int	listener;
	int	sock;
};

static inline void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	reap(pid);
}

static inline void wait_request(struct child *child)
{
	char c;

	if (read(child->tell[0], &c, 1) != 1)
		_exit(1);
}

static inline bool send_request(struct child *child)
{
	return write(child->tell[1], "x", 1) == 1;
}

/* Reads a port, a file descriptor or an error that the child has sent. */
static inline int read_answer(struct child *child)
{
	int value = -1;

	return read(child->told[0], &value, sizeof(value)) == sizeof(value) ? value : -1;
}

static inline void send_answer(struct child *child, int value)
{
	if (write(child->told[1], &value, sizeof(value)) != sizeof(value))
		_exit(1);
}

static inline bool start_child(struct child *child, void (*function)(void *arg))
{
	if (pipe2(child->tell, O_CLOEXEC) || pipe2(child->told, O_CLOEXEC))
		return false;
	child->pid = spawn(function, child);
	return child->pid > 0;
}

/* Has the child do the next thing. Returns its answer, or -1. */
static inline int ask_child(struct child *child)
{
	return send_request(child) ? read_answer(child) : -1;
}

/* Waits until it is asked to listen, does, and reports the port. */
static inline void listen_when_asked(struct child *child)
{
	/* Otherwise it would be listening there as well. */
	close(child->listener);
	send_answer(child, 0);
	wait_request(child);
	child->listener = serve(AF_INET, false, child->port);
	send_answer(child, local_port(child->listener));
}

/* Listens when asked to, and stops when asked to; the socket remains. */
static inline void listen_and_stop(void *arg)
{
	struct child *child = arg;

	listen_when_asked(child);
	wait_request(child);
	send_answer(child, shutdown(child->listener, SHUT_RDWR) ? -errno : 0);
	wait_request(child);
}

/*
 * Listens on a port on which the process with the rule @id does not listen, and accepts a
 * connection. Returns whether it gets the rule @others, which is for the port.
 */
static inline bool is_left_to_others(int fd, __u32 id, __u32 others, __u16 port)
{
	int listener = serve(AF_INET, false, port);
	struct pair pair;
	bool is_left;

	if (listener < 0 || !connect_pair(listener, &pair))
		return false;
	is_left = wait_for(fd, others, watched, 1) && !look(fd, id).matched;
	close_pair(&pair);
	close(listener);
	return is_left;
}

/* Connects, again each time it is asked to, and reports its port. */
static inline void connect_often(void *arg)
{
	struct child *child = arg;

	/* Otherwise it would be listening too. */
	close(child->listener);
	for (;;) {
		wait_request(child);
		send_answer(child, local_port(reach(AF_INET, false, child->port)));
	}
}

#endif /* SELFTESTS_RULES_CHILD_TEST_H */
