/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers of the twheel selftests: the device's calls as functions.
 *
 * A call returns what ioctl() or read() returned, or -errno. The structures are
 * poisoned before each call and checked after it: -EPROTO says that the kernel
 * wrote where it must not.
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

#include "kselftest_harness.h"
#include "punctual.h"
#include "system_test.h"

#define DEVICE		"/dev/twheel"
#define ABS		TWHEEL_TIME_ABS
/* What a query tells of a watch. */
#define WATCH_FLAGS	(TWHEEL_WATCHED | TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT | \
			 TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)

static inline int wh_open(int flags)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);

	/* Not when it counts, as it takes some milliseconds. */
	if (fd >= 0)
		punctual_tick();
	return fd < 0 ? -errno : fd;
}

static inline int wh_ioctl(int fd, unsigned int cmd, void *arg)
{
	bool arms = cmd == TWHEEL_IOC_TIMER_ADD || cmd == TWHEEL_IOC_TIMER_REARM ||
		    cmd == TWHEEL_IOC_SUBMIT;
	int ret;

	if (arms)
		punctual_call();
	ret = ioctl(fd, cmd, arg);
	if (ret < 0)
		ret = -errno;
	if (arms)
		punctual_called();
	return ret;
}

static inline int wh_info(int fd, struct twheel_info *info)
{
	memset(info, 0xa5, sizeof(*info));
	return wh_ioctl(fd, TWHEEL_IOC_INFO, info);
}

/* Adds any timer: its handle is written, and that only if there is no error. */
static inline int wh_add_timer(int fd, struct twheel_timer_add *add)
{
	struct twheel_timer_add copy;
	int ret;

	punctual_slack(add->slack);
	add->handle = POISON;
	copy = *add;
	ret = wh_ioctl(fd, TWHEEL_IOC_TIMER_ADD, add);
	if (ret >= 0 && (!add->handle || add->handle == POISON))
		return -EPROTO;
	if (ret >= 0)
		copy.handle = add->handle;
	return memcmp(&copy, add, sizeof(copy)) ? -EPROTO : ret;
}

/* Adds a timer with no more than a deadline. @handle is not written on an error. */
static inline int wh_add(int fd, __u64 time, __u32 flags, __u64 user_data, __u64 *handle)
{
	struct twheel_timer_add add = {
		.time		= time,
		.user_data	= user_data,
		.flags		= flags,
		.clock		= CLOCK_MONOTONIC,
	};
	int ret = wh_add_timer(fd, &add);

	if (ret >= 0 && handle)
		*handle = add.handle;
	return ret;
}

/* Adds a timer with a key, or makes that of the key this one. Returns the verdict. */
static inline int wh_set(int fd, __u64 key, __u64 time, __u32 flags, __u64 user_data,
			 __u64 *handle)
{
	struct twheel_timer_add add = {
		.time		= time,
		.user_data	= user_data,
		.flags		= flags | TWHEEL_KEYED,
		.clock		= CLOCK_MONOTONIC,
		.key		= key,
	};
	int ret = wh_add_timer(fd, &add);

	if (ret >= 0 && handle)
		*handle = add.handle;
	return ret;
}

static inline int wh_cancel_flags(int fd, __u64 name, __u32 flags)
{
	struct twheel_timer_cancel cancel = { .handle = name, .flags = flags };
	int ret = wh_ioctl(fd, TWHEEL_IOC_TIMER_CANCEL, &cancel);

	if (cancel.handle != name || cancel.flags != flags || cancel.reserved)
		return -EPROTO;
	return ret;
}

static inline int wh_cancel(int fd, __u64 handle)
{
	return wh_cancel_flags(fd, handle, 0);
}

static inline int wh_cancel_key(int fd, __u64 key)
{
	return wh_cancel_flags(fd, key, TWHEEL_BY_KEY);
}

/* Re-arms in any way: nothing is written. */
static inline int wh_rearm_timer(int fd, const struct twheel_timer_rearm *rearm)
{
	struct twheel_timer_rearm copy = *rearm;
	int ret;

	punctual_slack(rearm->slack);
	ret = wh_ioctl(fd, TWHEEL_IOC_TIMER_REARM, &copy);
	return memcmp(&copy, rearm, sizeof(copy)) ? -EPROTO : ret;
}

static inline int wh_rearm_limit(int fd, __u64 name, __u64 time, __u32 flags, __u32 limit)
{
	const struct twheel_timer_rearm rearm = {
		.handle	= name,
		.time	= time,
		.flags	= flags,
		.limit	= limit,
	};

	return wh_rearm_timer(fd, &rearm);
}

static inline int wh_rearm(int fd, __u64 handle, __u64 time, __u32 flags)
{
	return wh_rearm_limit(fd, handle, time, flags, TWHEEL_LIMIT_DEADLINE);
}

static inline int wh_rearm_key(int fd, __u64 key, __u64 time, __u32 flags)
{
	return wh_rearm(fd, key, time, flags | TWHEEL_BY_KEY);
}

static inline int wh_active(int fd, __u64 handle)
{
	return wh_rearm_limit(fd, handle, 0, TWHEEL_ACTIVE, TWHEEL_LIMIT_IDLE);
}

static inline int wh_query_flags(int fd, __u64 name, __u32 flags,
				 struct twheel_timer_query *query)
{
	struct twheel_timer_query poison;
	int ret;

	memset(query, 0xa5, sizeof(*query));
	query->handle = name;
	query->flags = flags;
	poison = *query;
	ret = wh_ioctl(fd, TWHEEL_IOC_TIMER_QUERY, query);
	if (ret < 0)
		return memcmp(query, &poison, sizeof(poison)) ? -EPROTO : ret;
	if (query->flags & ~(TWHEEL_KEYED | WATCH_FLAGS) ||
	    (!(query->flags & TWHEEL_KEYED) && query->key))
		return -EPROTO;
	if ((flags & TWHEEL_BY_KEY ? query->key : query->handle) != name)
		return -EPROTO;
	return ret;
}

static inline int wh_query(int fd, __u64 handle, struct twheel_timer_query *query)
{
	return wh_query_flags(fd, handle, 0, query);
}

static inline int wh_query_key(int fd, __u64 key, struct twheel_timer_query *query)
{
	return wh_query_flags(fd, key, TWHEEL_BY_KEY, query);
}

/* Does @nr_ops operations, one each @op_size bytes. */
static inline int wh_submit(int fd, const void *ops, __u32 nr_ops, __u16 op_size, __u16 flags)
{
	const struct twheel_submit submit = {
		.ops		= (uintptr_t)ops,
		.nr_ops		= nr_ops,
		.op_size	= op_size,
		.flags		= flags,
	};
	struct twheel_submit copy = submit;
	int ret = wh_ioctl(fd, TWHEEL_IOC_SUBMIT, &copy);

	return memcmp(&copy, &submit, sizeof(copy)) ? -EPROTO : ret;
}

/* Drains into @records, or without a word; of the structure, the cursor is written. */
static inline int wh_drain(int fd, void *records, __u32 nr_records, __u16 record_size,
			   __u64 *cursor)
{
	const struct twheel_drain drain = {
		.records	= (uintptr_t)records,
		.nr_records	= nr_records,
		.record_size	= record_size,
		.cursor		= *cursor,
	};
	struct twheel_drain copy = drain;
	int ret = wh_ioctl(fd, TWHEEL_IOC_DRAIN, &copy);

	if (ret >= 0)
		*cursor = copy.cursor;
	return memcmp(&copy, &drain, offsetof(struct twheel_drain, cursor)) ? -EPROTO : ret;
}

static inline int wh_stats(int fd, struct twheel_context_stats *stats)
{
	memset(stats, 0xa5, sizeof(*stats));
	return wh_ioctl(fd, TWHEEL_IOC_STATS, stats);
}

/* A timer's state, or -errno. */
static inline int wh_state(int fd, __u64 handle)
{
	struct twheel_timer_query query;
	int ret = wh_query(fd, handle, &query);

	return ret ? ret : (int)query.state;
}

/* Was an event not late, where that is known? Says by how much it was. */
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

/* Waits for an event. Returns whether one came within the guard. */
static inline bool wh_wait(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, GUARD_MS) == 1 && pollfd.revents == POLLIN;
}

/* An epoll instance that waits for a file's @events; or -1. */
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

/* Waits until @n events are there to read. Returns whether that came true. */
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

/* The first fault of an event of a deadline that was just read, or NULL. */
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
 * What a program can see of a context with a pending and an expired timer, to show
 * that a refused call has changed nothing.
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
	/* This one runs. */
	view->pending.remaining = 0;
	return ret;
}

/*
 * Suspends as far as @level for some seconds: "core" is all but the last step, "processors"
 * ends before the clocks are stopped. Returns whether the kernel can.
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

/* Makes a ring or a touch array. What is only read must stay as it was. */
static inline int wh_setup(int fd, __u32 ring_entries, __u32 touch_words,
			   struct twheel_setup *setup)
{
	int ret;

	*setup = (struct twheel_setup){
		.ring_entries	= ring_entries,
		.touch_words	= touch_words,
		.ring_bytes	= POISON,
		.touch_bytes	= POISON,
	};
	ret = wh_ioctl(fd, TWHEEL_IOC_SETUP, setup);
	if (setup->max_timers || setup->flags || setup->reserved ||
	    setup->ring_entries != ring_entries || setup->touch_words != touch_words)
		return -EPROTO;
	if (ret < 0 && (setup->ring_bytes != POISON || setup->touch_bytes != POISON))
		return -EPROTO;
	return ret;
}

static inline void *wh_map(int fd, __u64 bytes, __u64 offset)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	return memory == MAP_FAILED ? NULL : memory;
}

/* What of a ring or a touch array can be mapped though it must not be, or NULL. */
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
