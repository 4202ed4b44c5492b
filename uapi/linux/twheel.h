/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * twheel: timeouts by the million, through /dev/twheel
 */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General rules
 *
 * Each open of /dev/twheel is a *context*: a set of timers, a limit on their
 * number and a queue of expiry events. A context belongs to the open file, so
 * threads and forked children share it, and it can be passed over a socket.
 * The last close cancels every timer of it before it returns.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC. A timer never expires before
 * its deadline.
 *
 * Every ioctl takes the address of one structure. The structure's size is part
 * of the ioctl number. Structures grow at their end only: a kernel that knows a
 * longer one takes the missing tail as zero, and a kernel that knows a shorter
 * one accepts a longer one whose unknown tail is zero. On an error nothing has
 * changed, and but for EFAULT nothing has been written to the structure.
 *
 * An errno means the same for the whole device:
 *
 *  - ENOTTY: no such ioctl
 *  - EFAULT: the structure, or the buffer of a read(), is not accessible
 *  - E2BIG: the structure is longer than this kernel knows, and its tail is
 *    not zero
 *  - EINVAL: the structure is shorter than it ever was, a reserved field is
 *    not zero, a time is out of range, or the buffer of a read() is smaller
 *    than one event
 *  - EOPNOTSUPP: a flag, or a value of a known field, that this kernel does
 *    not know
 *  - ENOENT: the handle names no timer of this context: it was never given
 *    out, it was cancelled, or a read() has delivered its event, or is about
 *    to. Should that read() fail with EFAULT, the event is read by a later one
 *  - ENOSPC: the context has as many timers as its limit allows
 *  - ENOMEM: there is no memory for another timer
 *  - EAGAIN: read() on a non-blocking file, and no event is there, or another
 *    read() is taking them
 *  - EINTR: a signal came before a blocking read() had an event
 */

#define TWHEEL_IOC_MAGIC	't'

/*
 * Time flags, for every structure that holds a time.
 */

/* The time is absolute. Without it, it counts from the call. */
#define TWHEEL_TIME_ABS		(1U << 0)

/* The largest time that is accepted, absolute or relative: 2^63 - 1 ns. */
#define TWHEEL_TIME_MAX		0x7fffffffffffffffULL

/**
 * enum twheel_verdict - what a cancel or a re-arm found
 * @TWHEEL_WAS_PENDING: the timer had not expired
 * @TWHEEL_WAS_EXPIRED: the timer had expired, its event was not yet read and
 *	has been taken back: it will not be read
 *
 * The value that TWHEEL_IOC_TIMER_CANCEL and TWHEEL_IOC_TIMER_REARM return when
 * they succeed. After either of them no event of the earlier arming can be read.
 */
enum twheel_verdict {
	TWHEEL_WAS_PENDING = 0,
	TWHEEL_WAS_EXPIRED = 1,
};

/**
 * enum twheel_state - what a query found
 * @TWHEEL_STATE_PENDING: the timer is armed and has not expired
 * @TWHEEL_STATE_EXPIRED: the timer has expired, and its event waits to be read
 */
enum twheel_state {
	TWHEEL_STATE_PENDING = 1,
	TWHEEL_STATE_EXPIRED = 2,
};

/**
 * enum twheel_reason - which of a timer's limits an event is about
 * @TWHEEL_REASON_DEADLINE: the deadline that the timer was armed with
 */
enum twheel_reason {
	TWHEEL_REASON_DEADLINE = 0,
};

/**
 * struct twheel_info - the answer to TWHEEL_IOC_INFO
 * @features: bits for what this kernel can do beyond the first version; none
 *	is defined yet
 * @tick_ns: length of the wheel's tick in nanoseconds, a power of two. An event
 *	comes at most one tick, plus the delay of the softirq, after its deadline
 * @max_timers: limit on the timers of this context
 * @nr_timers: timers of this context that are pending, or expired and unread
 * @nr_events: events that wait to be read
 * @event_size: size of struct twheel_event in this kernel, in bytes
 * @reserved: zero
 *
 * All fields are written by the kernel; they are ignored on the way in.
 */
struct twheel_info {
	__aligned_u64 features;
	__aligned_u64 tick_ns;
	__aligned_u64 max_timers;
	__aligned_u64 nr_timers;
	__aligned_u64 nr_events;
	__u32 event_size;
	__u32 reserved;
};

/**
 * struct twheel_timer_add - the argument of TWHEEL_IOC_TIMER_ADD
 * @time: in: when to expire, in nanoseconds, 0 to %TWHEEL_TIME_MAX. A time that
 *	has passed expires at the next tick; a relative time that ends after
 *	%TWHEEL_TIME_MAX ends there
 * @user_data: in: given back in the event
 * @handle: out: names the timer in this context, never 0. A value is not given
 *	out twice by one context
 * @flags: in: 0 or TWHEEL_TIME_ABS
 * @clock: in: the clock of @time: CLOCK_MONOTONIC
 */
struct twheel_timer_add {
	__aligned_u64 time;
	__aligned_u64 user_data;
	__aligned_u64 handle;
	__u32 flags;
	__u32 clock;
};

/**
 * struct twheel_timer_cancel - the argument of TWHEEL_IOC_TIMER_CANCEL
 * @handle: in: the timer; it is stale once the call has succeeded
 * @flags: in: 0
 * @reserved: in: 0
 */
struct twheel_timer_cancel {
	__aligned_u64 handle;
	__u32 flags;
	__u32 reserved;
};

/**
 * struct twheel_timer_rearm - the argument of TWHEEL_IOC_TIMER_REARM
 * @handle: in: the timer; it stays valid
 * @time: in: the new time to expire, as in struct twheel_timer_add, on the
 *	clock that the timer was added with
 * @flags: in: 0 or TWHEEL_TIME_ABS
 * @reserved: in: 0
 */
struct twheel_timer_rearm {
	__aligned_u64 handle;
	__aligned_u64 time;
	__u32 flags;
	__u32 reserved;
};

/**
 * struct twheel_timer_query - the argument of TWHEEL_IOC_TIMER_QUERY
 * @handle: in: the timer
 * @deadline: out: when it expires or expired, in nanoseconds, absolute
 * @remaining: out: nanoseconds until @deadline, 0 if it has passed
 * @user_data: out: as given when the timer was added
 * @state: out: one of enum twheel_state
 * @flags: in: 0
 */
struct twheel_timer_query {
	__aligned_u64 handle;
	__aligned_u64 deadline;
	__aligned_u64 remaining;
	__aligned_u64 user_data;
	__u32 state;
	__u32 flags;
};

/**
 * struct twheel_event - one expiry, as read() gives it
 * @handle: the timer. It is stale from here on: a one-shot timer ends with the
 *	delivery of its event
 * @user_data: as given when the timer was added
 * @deadline: when the timer was due, in nanoseconds, absolute
 * @fired: when the kernel expired it, in nanoseconds of the same clock; never
 *	less than @deadline
 * @seq: number of this event in its context, from 0, without gaps
 * @overruns: periods missed since the last event of this timer; 0 for a
 *	one-shot timer
 * @reason: one of enum twheel_reason
 *
 * read() returns as many whole events as are there and fit.
 */
struct twheel_event {
	__aligned_u64 handle;
	__aligned_u64 user_data;
	__aligned_u64 deadline;
	__aligned_u64 fired;
	__aligned_u64 seq;
	__u32 overruns;
	__u32 reason;
};

/* What the module and this context are like. Returns 0. */
#define TWHEEL_IOC_INFO		_IOR(TWHEEL_IOC_MAGIC, 0xa0, struct twheel_info)

/* Adds and arms a timer. Returns 0. Errors: EINVAL, EOPNOTSUPP, ENOSPC, ENOMEM. */
#define TWHEEL_IOC_TIMER_ADD	_IOWR(TWHEEL_IOC_MAGIC, 0xa1, struct twheel_timer_add)

/* Cancels and frees a timer. Returns a verdict. Errors: EINVAL, EOPNOTSUPP, ENOENT. */
#define TWHEEL_IOC_TIMER_CANCEL	_IOW(TWHEEL_IOC_MAGIC, 0xa2, struct twheel_timer_cancel)

/* Arms a timer anew. Returns a verdict. Errors: EINVAL, EOPNOTSUPP, ENOENT. */
#define TWHEEL_IOC_TIMER_REARM	_IOW(TWHEEL_IOC_MAGIC, 0xa3, struct twheel_timer_rearm)

/* Tells a timer's state. Returns 0. Errors: EOPNOTSUPP, ENOENT. */
#define TWHEEL_IOC_TIMER_QUERY	_IOWR(TWHEEL_IOC_MAGIC, 0xa4, struct twheel_timer_query)

#endif /* _UAPI_LINUX_TWHEEL_H */
