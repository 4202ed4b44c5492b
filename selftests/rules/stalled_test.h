/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules for idle connections: an end that waits for its peer, and a peer that is gone.
 */
#ifndef SELFTESTS_RULES_STALLED_TEST_H
#define SELFTESTS_RULES_STALLED_TEST_H

#include "rules_test.h"

/* The most a connection may be closed late, on the slowest kernel, or early, due to jiffies. */
#define LATE		(200 * MSEC)

/* Writes until the send queue is full. Returns the number of bytes. */
static inline __u64 fill_queue(int fd)
{
	static const char data[65536];
	__u64 sum = 0;
	ssize_t n;

	while ((n = send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
		sum += n;
	return sum;
}

/* From now on, what either end sends arrives, or is lost. */
static inline int set_lo_up(bool up)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int ret = ioctl(fd, SIOCSIFFLAGS, &request) ? -errno : 0;

	close(fd);
	return ret;
}

/* Adds a rule with a separate limit for peers that acknowledge nothing. */
static inline int add_stalled(int fd, __u32 flags, __u16 port, __u64 idle, __u64 stalled)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT | flags,
		.local_port	= port,
		.idle		= idle,
		.stalled	= stalled,
	};

	return add(fd, &rule) ?: (int)rule.id;
}

/* Waits until a connection is closed. Returns the time, or 0. */
static inline __u64 wait_closed(int fd)
{
	return wait_tcp_state(fd, TCP_CLOSE) ? now_ns() : 0;
}

#endif /* SELFTESTS_RULES_STALLED_TEST_H */
