/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of /dev/twheel as functions, for the selftests.
 *
 * Each returns what ioctl() returned, or -errno. Structures are poisoned before the call and
 * checked after it: -EPROTO means that the kernel wrote where it must not.
 */
#ifndef _DEVICE_CALLS_H
#define _DEVICE_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include <linux/twheel.h>

#include "punctual.h"
#include "system_test.h"

#define DEVICE		"/dev/twheel"
#define ABS		TWHEEL_TIME_ABS
/* The flags that a query reports for a watch. */
#define WATCH_FLAGS	(TWHEEL_WATCHED | TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT | \
			 TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)

static inline int wh_open(int flags)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);

	/* Now, not while a test measures time: it takes some milliseconds. */
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
		punctual_begin_arming();
	ret = ioctl(fd, cmd, arg);
	if (ret < 0)
		ret = -errno;
	if (arms)
		punctual_end_arming();
	return ret;
}

static inline int wh_info(int fd, struct twheel_info *info)
{
	memset(info, 0xa5, sizeof(*info));
	return wh_ioctl(fd, TWHEEL_IOC_INFO, info);
}

/* Adds any kind of timer. Only the handle may be written, and only on success. */
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

/* Adds a timer with just a deadline. @handle is not written on an error. */
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

/* Adds a timer with a key, or sets the key's timer to these values. Returns the verdict. */
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

/* Any kind of re-arm. The kernel must not write anything. */
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

/* Submits @nr_ops operations, @op_size bytes apart. */
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

/* Drains into @records. Only the cursor of the structure may be written. */
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

/* Creates a ring or a touch array. The kernel must not write to fields that it only reads. */
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

#endif /* _DEVICE_CALLS_H */
