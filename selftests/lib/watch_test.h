/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for the selftests of watched connections: connections, and timers that watch them.
 */
#ifndef _TWHEEL_WATCH_TEST_H
#define _TWHEEL_WATCH_TEST_H

#include "tcp_test.h"

#include <sys/resource.h>

#define USER_DATA	0x1234

/* Stores the loopback address of @family. Returns its length. */
static inline socklen_t loopback(int family, struct sockaddr_storage *address)
{
	struct sockaddr_in6 *in6 = (void *)address;
	struct sockaddr_in *in = (void *)address;

	memset(address, 0, sizeof(*address));
	if (family == AF_INET6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = in6addr_loopback;
		return sizeof(*in6);
	}
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof(*in);
}

/* Opens a listening socket and stores its address. Returns the socket, or -errno. */
static inline int listener(int family, struct sockaddr_storage *address, socklen_t *length)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	*length = loopback(family, address);
	if (bind(fd, (void *)address, *length) || listen(fd, 128) ||
	    getsockname(fd, (void *)address, length)) {
		close(fd);
		return -errno;
	}
	return fd;
}

/* Makes connections. Closing either end resets them, so that none is left in TIME_WAIT. */
static inline int connections(int family, int (*pair)[2], int n)
{
	struct linger linger = { .l_onoff = 1 };
	struct sockaddr_storage address;
	socklen_t length;
	int fd, i, k;

	fd = listener(family, &address, &length);
	if (fd < 0)
		return fd;
	for (i = 0; i < n; i++) {
		pair[i][1] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (pair[i][1] < 0 || connect(pair[i][1], (void *)&address, length))
			return -errno;
		pair[i][0] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (pair[i][0] < 0)
			return -errno;
		for (k = 0; k < 2; k++)
			setsockopt(pair[i][k], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	}
	return close(fd) ? -errno : 0;
}

static inline int connection(int family, int *here, int *there)
{
	int pair[1][2] = { { -1, -1 } }, ret;

	ret = connections(family, pair, 1);
	*here = pair[0][0];
	*there = pair[0][1];
	return ret;
}

/* The fields of a timer that watches a socket, for an add and for an operation of a submit. */
#define WATCHES(sock_, idle_, flags_)				\
	.time		= TWHEEL_TIME_NONE,			\
	.user_data	= USER_DATA,				\
	.flags		= TWHEEL_WATCHED | (flags_),		\
	.clock		= CLOCK_MONOTONIC,			\
	.idle		= (idle_),				\
	.touch		= (sock_)

/* The argument that adds a timer that watches @sock. */
static inline struct twheel_timer_add watch_add(int sock, __u64 idle, __u32 flags)
{
	return (struct twheel_timer_add) {
		WATCHES(sock, idle, flags),
	};
}

static inline __u64 jiffy_ns(void)
{
	struct timespec ts;

	clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_nsec;
}

/*
 * How long after an activity its idle timeout starts, at most: a jiffy, plus the error of the
 * kernel's idea of when jiffies start, which it learns by observation.
 */
static inline __u64 begins_within(void)
{
	return jiffy_ns() + jiffy_ns() / 4;
}

/* Raises the limit of open files to what the tests need. */
static inline int many_files(void)
{
	const struct rlimit limit = { .rlim_cur = 65536, .rlim_max = 65536 };

	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

static inline int watch(int fd, int sock, __u64 idle, __u32 flags, __u64 *handle)
{
	struct twheel_timer_add add = watch_add(sock, idle, flags);
	int ret = wh_add_timer(fd, &add);

	if (ret >= 0 && handle)
		*handle = add.handle;
	return ret;
}

/* Waits until a context has @n timers. Returns false if it times out. */
static inline bool wait_timers(int fd, __u64 n)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (wh_nr_timers(fd) != n) {
		if (now_ns() > end)
			return false;
		sleep_ns(MSEC);
	}
	return true;
}

/* Waits until all remaining timers have expired. Returns false if it times out. */
static inline bool wait_for_last(int fd)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;
	struct twheel_info info;

	while (!wh_info(fd, &info) && now_ns() < end) {
		if (info.nr_timers == info.nr_events)
			return true;
		sleep_ns(MSEC);
	}
	return false;
}

/* Records the worker's checks of sockets, on all CPUs; and more of them than a test causes. */
#define LOOKS_TRACE	"/sys/kernel/tracing/instances/looks/"
#define MOST_LOOKS	100

/* How many checks of a busy socket come a jiffy after the previous one. */
#define SOON_AGAIN	8

/* Starts or stops to record them. Returns whether that worked. */
static inline bool trace_looks(bool on)
{
	/* Harmless if it is already mounted. */
	(void)!mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	if (on && mkdir(LOOKS_TRACE, 0700))
		return false;
	if (file_write(LOOKS_TRACE "events/twheel/twheel_watch/enable", on))
		return false;
	return on || !rmdir(LOOKS_TRACE);
}

/*
 * Records for @ns at which times the worker finds sockets busy. Returns how often, up to
 * MOST_LOOKS; or -1.
 */
static inline int busy_looks(__u64 ns, __u64 *time)
{
	const char *now;
	char line[512];
	FILE *file;
	int n = 0;

	if (!trace_looks(true))
		return -1;
	sleep_ns(ns);
	file = fopen(LOOKS_TRACE "trace", "r");
	while (file && n < MOST_LOOKS && fgets(line, sizeof(line), file)) {
		now = strstr(line, " now=");
		if (now && strstr(now, "found=busy") && sscanf(now, " now=%llu", &time[n]) == 1)
			n++;
	}
	if (file)
		fclose(file);
	return trace_looks(false) ? n : -1;
}

/*
 * Was a socket that was busy all the time checked again a jiffy later, eight times, and then at
 * growing intervals of up to a second? Returns what is wrong, or NULL. How late a check may be is
 * known only in some guests: by a tick, and by the time it takes to get to it.
 */
static inline const char *looks_fault(const __u64 *time, int n)
{
	const __u64 slack = punctual_tick() + PUNCTUAL_MIN;
	__u64 gap = 0, last;
	int i;

	for (i = 1; i < n; i++) {
		last = gap;
		gap = time[i] - time[i - 1];
		if (gap < jiffy_ns())
			return "too soon";
		if (!punctual_tick())
			continue;
		if (i <= SOON_AGAIN && gap > jiffy_ns() + slack)
			return "one of the first looks came too late";
		if (i > SOON_AGAIN && gap < SEC && gap < last + jiffy_ns() / 2)
			return "a later one came no later than the one before";
		if (gap > SEC + slack || gap > time[i - 1] - time[0] + jiffy_ns() + slack)
			return "too late";
	}
	return n > SOON_AGAIN + 1 || !punctual_tick() ? NULL : "too rarely";
}

/* Waits for the one event that must come, and checks it. Returns what is wrong with it, or NULL. */
static inline const char *expiry_fault(int fd, __u64 handle, __u64 not_before, __u32 reason)
{
	struct twheel_event event[2];

	if (!wh_wait(fd))
		return "no event";
	if (wh_read(fd, event, 2) != 1)
		return "not one event";
	if (event->handle != handle || event->user_data != USER_DATA)
		return "another timer's event";
	if (event->reason != reason)
		return "wrong reason";
	if (event->deadline < not_before)
		return "before the limit";
	if (event->fired < event->deadline || event->fired > now_ns())
		return "wrong time";
	if (punctual_late(event, 0))
		return "late";
	return event->overruns ? "overruns" : NULL;
}

#define EXPECT_EXPIRY(handle, not_before, reason) do {			\
	const char *__fault = expiry_fault(self->fd, handle, not_before, reason); \
									\
	EXPECT_EQ(NULL, __fault) TH_LOG("%s", __fault);			\
} while (0)

/* The timer is gone, without an event. */
#define EXPECT_ENDED(handle) do {					\
	struct twheel_context_stats __stats;				\
									\
	EXPECT_TRUE(wait_timers(self->fd, 0));				\
	EXPECT_EQ(-ENOENT, wh_state(self->fd, handle));			\
	EXPECT_FALSE(wh_ready(self->fd));				\
	ASSERT_EQ(0, wh_stats(self->fd, &__stats));			\
	EXPECT_EQ(1, __stats.ended);					\
	EXPECT_EQ(0, __stats.expiries);					\
	EXPECT_EQ(0, __stats.cancels);					\
} while (0)

#endif /* _TWHEEL_WATCH_TEST_H */
