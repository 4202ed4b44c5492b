/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for the selftests of TCP connections, watched by timers or subject to rules.
 */
#ifndef _TWHEEL_TCP_TEST_H
#define _TWHEEL_TCP_TEST_H

#include "twheel_test.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Moves the process to a new network namespace, which has only "lo". */
static inline int network(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd, ret;

	if (unshare(CLONE_NEWNET))
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		return -errno;
	ret = ioctl(fd, SIOCSIFFLAGS, &request) ? -errno : 0;
	close(fd);
	return ret;
}

/*
 * A lower bound of what the kernel believes the time to be: if the CPU that updates jiffies is
 * delayed, jiffies stand still, and so does this clock.
 */
static inline __u64 coarse_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

/* A counter of twheel/watch in debugfs, or POISON. */
static inline __u64 watch_count(const char *kind_key)
{
	__u64 number, found = POISON;
	char name[64];
	FILE *file;

	/* Harmless if it is already mounted. */
	(void)!mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	file = fopen(DEBUGFS "/twheel/watch", "r");
	if (!file)
		return POISON;
	while (fscanf(file, "%63[^:]: %llu\n", name, &number) == 2)
		if (!strcmp(name, kind_key))
			found = number;
	fclose(file);
	return found;
}

/* Sends a byte and receives it at the other end. */
static inline bool say(int from, int to)
{
	char byte = 'x';

	return send(from, &byte, 1, MSG_NOSIGNAL) == 1 && recv(to, &byte, 1, 0) == 1;
}

/* Waits for a byte, or for the end of the connection. Returns what recv() returned, or -errno. */
static inline int hear(int sock)
{
	struct pollfd pollfd = { .fd = sock, .events = POLLIN };
	char byte;
	int ret;

	if (poll(&pollfd, 1, GUARD_MS) != 1)
		return -ETIME;
	ret = recv(sock, &byte, 1, MSG_DONTWAIT);
	return ret < 0 ? -errno : ret;
}

static inline struct tcp_info tcp_info(int sock)
{
	struct tcp_info info = {};
	socklen_t length = sizeof(info);

	getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &length);
	return info;
}

/* The error of a socket, which this clears. */
static inline int socket_error(int sock)
{
	socklen_t length = sizeof(int);
	int error = -1;

	getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &length);
	return error;
}

/* Waits until a socket is in a state. Returns false if it times out. */
static inline bool wait_tcp_state(int sock, int state)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (tcp_info(sock).tcpi_state != state) {
		if (now_ns() > end)
			return false;
		sleep_ns(MSEC);
	}
	return true;
}

#endif /* _TWHEEL_TCP_TEST_H */
