/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What most twheel selftests need: kselftest's harness, the device's calls, waiting for events and
 * checking them.
 */
#ifndef _TWHEEL_TEST_H
#define _TWHEEL_TEST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "device_calls.h"
#include "kselftest_harness.h"
#include "punctual.h"
#include "system_test.h"

/* A timer's state, or -errno. */
static inline int wh_state(int fd, __u64 handle)
{
	struct twheel_timer_query query;
	int ret = wh_query(fd, handle, &query);

	return ret ? ret : (int)query.state;
}

/* Was an event punctual, as far as that can be checked? If not, prints how late it was. */
static inline bool wh_punctual(const struct twheel_event *event)
{
	__u64 late = punctual_late_any(event);

	if (late)
		printf("# late by %llu ns after its tick: deadline %llu fired %llu armed %llu\n",
		       late, event->deadline, event->fired, punctual.armed);
	return !late;
}

/* Reads up to @n events. Returns their number, or -errno; -ETIME if one of them was late. */
static inline int wh_read(int fd, struct twheel_event *events, int n)
{
	ssize_t ret;
	int i;

	memset(events, 0xa5, n * sizeof(*events));
	ret = read(fd, events, n * sizeof(*events));
	if (ret < 0)
		return -errno;
	if (ret % sizeof(*events))
		return -EPROTO;
	n = ret / sizeof(*events);
	for (i = 0; i < n; i++)
		if (!wh_punctual(&events[i]))
			return -ETIME;
	return n;
}

/* Waits for an event. Returns false if it times out. */
static inline bool wh_wait(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, GUARD_MS) == 1 && pollfd.revents == POLLIN;
}

/* Creates an epoll instance that waits for @events of @fd. Returns it, or -1. */
static inline int wh_epoll(int fd, __u32 events)
{
	struct epoll_event event = { .events = events };
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd >= 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event)) {
		close(epfd);
		return -1;
	}
	return epfd;
}

/* Is there an event now? */
static inline bool wh_ready(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

static inline __u64 wh_nr_timers(int fd)
{
	struct twheel_info info;

	return wh_info(fd, &info) ? POISON : info.nr_timers;
}

static inline __u64 wh_nr_events(int fd)
{
	struct twheel_info info;

	return wh_info(fd, &info) ? POISON : info.nr_events;
}

/* Waits until @n events can be read. Returns false if it times out. */
static inline bool wh_wait_events(int fd, __u64 n)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (wh_nr_events(fd) != n) {
		if (now_ns() > end)
			return false;
		sleep_ns(MSEC);
	}
	return true;
}

/* What is wrong with an event that was just read, of a timer with just a deadline; or NULL. */
static inline const char *wh_event_fault(const struct twheel_event *event)
{
	if (event->fired < event->deadline)
		return "fired before its deadline";
	if (now_ns() < event->fired)
		return "fired in the future";
	if (event->overruns)
		return "overruns of a one-shot timer";
	if (event->reason != TWHEEL_LIMIT_DEADLINE)
		return "wrong reason";
	if (!wh_punctual(event))
		return "came after its tick";
	return NULL;
}

#define EXPECT_EVENT_OK(event) do {					\
	const struct twheel_event *__event = (event);			\
	const char *__fault = wh_event_fault(__event);			\
									\
	EXPECT_EQ(NULL, __fault)					\
		TH_LOG("%s: handle %llx deadline %llu fired %llu",	\
		       __fault, __event->handle, __event->deadline,	\
		       __event->fired);					\
} while (0)

/*
 * What a program can see of a context with a pending and an expired timer: used to check that a
 * rejected call has changed nothing.
 */
struct wh_view {
	struct twheel_info		info;
	struct twheel_timer_query	pending;
	struct twheel_timer_query	expired;
};

static inline int wh_look(int fd, __u64 pending, __u64 expired, struct wh_view *view)
{
	int ret;

	ret = wh_info(fd, &view->info);
	if (!ret)
		ret = wh_query(fd, pending, &view->pending);
	if (!ret)
		ret = wh_query(fd, expired, &view->expired);
	/* Counts down by itself. */
	view->pending.remaining = 0;
	return ret;
}

/*
 * Suspends as far as @level for some seconds: "core" is everything but the last step, "processors"
 * stops before the clocks are suspended. Returns false if the kernel cannot.
 */
static inline bool suspend(const char *level, unsigned int seconds)
{
	bool can = text_write(PM_TEST, level) && !file_write(PM_TEST_DELAY, seconds) &&
		   text_write("/sys/power/state", "mem");

	punctual_from_now();
	return can;
}

static inline int set_cpu_online(int cpu, int online)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	ret = file_write(path, online);
	punctual_from_now();
	return ret;
}

/* Describes a mapping of a ring or touch array that must fail with EINVAL and does not; or NULL. */
static inline const char *wh_map_fault(int fd, size_t bytes, __u64 offset)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const int rw = PROT_READ | PROT_WRITE;
	const struct {
		const char	*what;
		size_t		bytes;
		int		protection;
		int		flags;
		__u64		offset;
	} wrong[] = {
		{ "a page more", bytes + page, rw, MAP_SHARED, offset },
		{ "less", bytes - page, rw, MAP_SHARED, offset },
		{ "twice as much", 2 * bytes, rw, MAP_SHARED, offset },
		{ "from the second page on", bytes, rw, MAP_SHARED, offset + page },
		{ "the last page", page, rw, MAP_SHARED, offset + bytes },
		{ "far off", bytes, rw, MAP_SHARED, offset + (1ULL << 40) },
		{ "a copy", bytes, rw, MAP_PRIVATE, offset },
		{ "code", bytes, rw | PROT_EXEC, MAP_SHARED, offset },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (mmap(NULL, wrong[i].bytes, wrong[i].protection, wrong[i].flags, fd,
			 wrong[i].offset) != MAP_FAILED || errno != EINVAL)
			return wrong[i].what;
	}
	return NULL;
}

#endif /* _TWHEEL_TEST_H */
