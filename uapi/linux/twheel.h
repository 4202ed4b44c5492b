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
 * Each open() of /dev/twheel creates a *context*: a set of timers, a limit on
 * their number, and a queue of expiry events. A context belongs to the open
 * file, so threads and forked children share it, and it can be passed over a
 * socket. The last close() cancels all its timers before it returns; or a worker
 * does so soon after, if the user closing it is not the one that made the most
 * recent call for it (or that opened it, if no call has been made since).
 *
 * All times are in nanoseconds. A timer never expires before its deadline.
 *
 * Every ioctl takes the address of one structure, whose size is part of the
 * ioctl number. Structures grow only at the end: a kernel that knows a longer
 * structure takes the missing tail as zero, and a kernel that knows a shorter one
 * accepts a longer one if the unknown tail is zero. If a call fails, nothing has
 * changed and, except with EFAULT, the structure holds what it held. (The kernel
 * checks that the result can be written before it does anything: it writes back
 * what it has read, so no other thread may write there meanwhile. If the memory
 * becomes inaccessible after that check, what was done stays done;
 * but a timer whose handle could not be returned is removed again, unless it has
 * a key: then the call has succeeded.)
 *
 * Each errno has one meaning for the whole device:
 *
 *  - ENOTTY: no such ioctl
 *  - EFAULT: the structure, a buffer that it refers to, or the buffer of a read()
 *    is not accessible
 *  - E2BIG: the structure is longer than this kernel knows, and its tail is
 *    not zero
 *  - EINVAL: the structure is shorter than it ever was, a reserved field is
 *    not zero, a number is out of range, fields contradict each other or the
 *    timer's kind, or the buffer of a read() is smaller than one event
 *  - EOPNOTSUPP: a flag, or a value of a known field, that this kernel does
 *    not know; or the socket to be watched is not a TCP socket
 *  - EALREADY: the event of the one-shot timer that the handle names has been
 *    delivered: a read() has returned it or is about to, or it is in the ring. If that
 *    read() fails with EFAULT, a later one returns the event
 *  - ENOENT: the handle or key names no timer of this context: it never existed, it
 *    was cancelled, or its event was delivered and the timer's memory has been used
 *    by twelve others since
 *  - ENOSPC: the context, or the module, has as many timers as its limit allows
 *  - ENOMEM: there is no memory for another timer, or the memory cgroup's limit is
 *    reached
 *  - EBUSY: the context already has a ring or a touch array; or a read() of a context
 *    whose events go to a ring; or another timer already watches the socket
 *  - EBADF: the socket's file descriptor is not open
 *  - ENOTCONN: the socket's connection is neither established nor closed only by its peer;
 *    or the timer to be re-armed has expired, and no longer watches its connection
 *  - EAGAIN: read() on a non-blocking file, and there is no event, or another read()
 *    is taking them
 *  - EINTR: a signal arrived before a blocking read() had an event, or a fatal signal
 *    before anything was done
 */

#define TWHEEL_IOC_MAGIC	't'

/*
 * Flags of every structure that contains a time, or names a timer.
 */

/* The time is absolute. Without this flag it is relative to the call. */
#define TWHEEL_TIME_ABS		(1U << 0)
/* The field @handle contains the timer's key. */
#define TWHEEL_BY_KEY		(1U << 1)
/*
 * Re-arm: report activity. The idle timeout restarts; the time must be 0, and the limit
 * TWHEEL_LIMIT_IDLE.
 */
#define TWHEEL_ACTIVE		(1U << 2)
/* Add: the timer has a key. */
#define TWHEEL_KEYED		(1U << 3)
/* Add: the timer's activity is reported in the touch array, see struct twheel_setup. */
#define TWHEEL_TOUCHED		(1U << 4)
/*
 * Add: the timer's activity is that of a TCP connection, see struct twheel_timer_add.
 */
#define TWHEEL_WATCHED		(1U << 5)
/* Add, with TWHEEL_WATCHED: what counts as activity. With neither of the two, both do. */
#define TWHEEL_WATCH_RECEIVED	(1U << 6)	/* received data */
#define TWHEEL_WATCH_SENT	(1U << 7)	/* sent data, retransmissions included */
/* Add, with TWHEEL_WATCHED: what to do before the event is delivered; without one, nothing. */
#define TWHEEL_WATCH_SHUTDOWN	(1U << 8)	/* as shutdown(SHUT_RDWR) does */
#define TWHEEL_WATCH_ABORT	(1U << 9)	/* reset the connection, with ETIMEDOUT */

/* The largest time that is accepted, absolute or relative: 2^63 - 1 ns. */
#define TWHEEL_TIME_MAX		0x7fffffffffffffffULL

/*
 * The shortest idle timeout of a timer whose activity the kernel has to check itself: 10 ms.
 * Other idle timeouts are restarted by a call each time, and may have any length.
 */
#define TWHEEL_IDLE_MIN		10000000ULL

/* No deadline, for a timer that has other limits. */
#define TWHEEL_TIME_NONE	0xffffffffffffffffULL

/**
 * enum twheel_verdict - the state in which a cancel or a re-arm found the timer
 * @TWHEEL_WAS_PENDING: the timer had not expired
 * @TWHEEL_WAS_EXPIRED: the timer had expired, and its event was still undelivered. The
 *	event has been revoked: it will not be read
 * @TWHEEL_WAS_ABSENT: there was no timer with this key; one has been added
 * @TWHEEL_WAS_DELIVERED: an event of the periodic timer was being delivered: it is the
 *	last one from before this call, and may or may not be read
 *
 * TWHEEL_IOC_TIMER_CANCEL, TWHEEL_IOC_TIMER_REARM, and an add of a timer with a key return
 * one of these when they succeed. From then on no event from before the call can be read,
 * except for the one in the case of @TWHEEL_WAS_DELIVERED.
 */
enum twheel_verdict {
	TWHEEL_WAS_PENDING = 0,
	TWHEEL_WAS_EXPIRED = 1,
	TWHEEL_WAS_ABSENT = 2,
	TWHEEL_WAS_DELIVERED = 3,
};

/**
 * enum twheel_state - the state of a timer, in a query
 * @TWHEEL_STATE_PENDING: the timer is armed and has not expired
 * @TWHEEL_STATE_EXPIRED: the timer has expired, and its event has not been delivered
 */
enum twheel_state {
	TWHEEL_STATE_PENDING = 1,
	TWHEEL_STATE_EXPIRED = 2,
};

/**
 * enum twheel_limit - the limits that a timer can have
 * @TWHEEL_LIMIT_DEADLINE: a point in time
 * @TWHEEL_LIMIT_IDLE: a time without activity
 * @TWHEEL_LIMIT_LIFETIME: a time since the timer was added, active or not
 *
 * A timer expires when the first of its limits is reached; the event says which.
 */
enum twheel_limit {
	TWHEEL_LIMIT_DEADLINE = 0,
	TWHEEL_LIMIT_IDLE = 1,
	TWHEEL_LIMIT_LIFETIME = 2,
};

/*
 * What a kernel supports: bits in @features of struct twheel_info.
 */
#define TWHEEL_FEATURE_SUBMIT	(1ULL << 0)	/* TWHEEL_IOC_SUBMIT, _DRAIN, _STATS */
#define TWHEEL_FEATURE_KEYS	(1ULL << 1)	/* TWHEEL_KEYED, TWHEEL_BY_KEY */
#define TWHEEL_FEATURE_PERIODIC	(1ULL << 2)	/* periods, slack, spread */
#define TWHEEL_FEATURE_CLOCKS	(1ULL << 3)	/* CLOCK_REALTIME, CLOCK_BOOTTIME */
#define TWHEEL_FEATURE_LIMITS	(1ULL << 4)	/* idle timeout and lifetime */
#define TWHEEL_FEATURE_RING	(1ULL << 5)	/* TWHEEL_IOC_SETUP: the ring */
/* Bit 6 stood for touch arrays whose words began at byte 64. */
#define TWHEEL_FEATURE_URING	(1ULL << 7)	/* TWHEEL_URING_SUBMIT */
#define TWHEEL_FEATURE_WATCH	(1ULL << 8)	/* TWHEEL_WATCHED */
#define TWHEEL_FEATURE_RULES	(1ULL << 9)	/* see linux/twheel_rules.h */
#define TWHEEL_FEATURE_TOUCH	(1ULL << 10)	/* TWHEEL_IOC_SETUP: the touch array */
#define TWHEEL_FEATURE_EVENT_KEYS (1ULL << 11)	/* TWHEEL_SETUP_EVENT_KEYS; @time/@clock optional */

/**
 * struct twheel_info - the result of TWHEEL_IOC_INFO
 * @features: bits for what this kernel supports beyond the first version
 * @tick_ns: length of the wheel's tick in nanoseconds, a power of two. A timer expires
 *	at most one tick, plus the latency of the softirq, after its deadline
 * @max_timers: limit on the timers of this context
 * @nr_timers: timers of this context that are pending, or expired and undelivered. One with
 *	TWHEEL_WATCHED that is cancelled while the kernel deals with its connection counts until
 *	that is done
 * @nr_events: events that have not been delivered
 * @event_size: size in bytes of an event in read() and in the ring
 * @reserved: zero
 *
 * The kernel writes all fields, and ignores what they contain before the call.
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
 * @time: in: when to expire, in nanoseconds, 0 to %TWHEEL_TIME_MAX. With a time in
 *	the past the timer expires at the next tick; a relative time that ends after
 *	%TWHEEL_TIME_MAX ends there. If there is an @idle or a @lifetime, %TWHEEL_TIME_NONE,
 *	or 0 without TWHEEL_TIME_ABS, means no deadline. This has changed: a kernel without
 *	TWHEEL_FEATURE_EVENT_KEYS takes such a 0 as the next tick
 * @user_data: in: returned in the event
 * @handle: out: names the timer in this context; never 0. A context never returns the same
 *	handle twice
 * @flags: in: TWHEEL_TIME_ABS for @time, TWHEEL_KEYED, TWHEEL_TOUCHED, or TWHEEL_WATCHED and
 *	its flags
 * @clock: in: the clock of @time and of the event: CLOCK_MONOTONIC, CLOCK_BOOTTIME
 *	(keeps running while the system is suspended), or CLOCK_REALTIME: if that clock is
 *	set, the timer expires when the clock shows its time. A relative time on
 *	CLOCK_REALTIME uses CLOCK_MONOTONIC, as with timer_settime(). With @idle or
 *	@lifetime this must be CLOCK_MONOTONIC; or, if there is no deadline, it may be 0
 * @key: in: with TWHEEL_KEYED, any number. If a timer with this key exists, it is re-armed
 *	and becomes this one, and its undelivered event, if any, is revoked
 * @period: in: if not 0, the timer expires again every @period nanoseconds after @time;
 *	up to %TWHEEL_TIME_MAX. Not with @idle or @lifetime
 * @slack: in: by how many nanoseconds later the timer may expire, up to
 *	%TWHEEL_TIME_MAX: timers due at about the same time then share a tick. The
 *	deadline moves to the roundest time in this range
 * @spread: in: the deadline moves by a random time from 0 to so many nanoseconds, so
 *	that timers added together do not expire together. A new random time is used for
 *	each add and re-arm; it applies to the lifetime as well
 * @idle: in: if not 0, the idle timeout in nanoseconds, up to %TWHEEL_TIME_MAX; with
 *	TWHEEL_TOUCHED or TWHEEL_WATCHED, at least %TWHEEL_IDLE_MIN
 * @lifetime: in: if not 0, the lifetime in nanoseconds, up to %TWHEEL_TIME_MAX
 * @touch: in: with TWHEEL_TOUCHED, the index of the word of the touch array that reports
 *	this timer's activity; needs an @idle. Several timers may share a word
 * @sock_fd: in: with TWHEEL_WATCHED, the file descriptor of a TCP socket; needs an @idle or a
 *	@lifetime
 * @reserved: in: 0
 *
 * A timer with TWHEEL_WATCHED ends with its connection, without an event. The connection
 * must be established, or closed only by its peer. A socket can have one such timer, until that
 * timer has expired. The socket is watched, not the file descriptor, whatever happens to the
 * latter. The idle timeout is exact to a jiffy, which is how the kernel records the times of
 * data, and is at most 2^31 jiffies long.
 */
__extension__ /* C99 has no anonymous unions */
struct twheel_timer_add {
	__aligned_u64 time;
	__aligned_u64 user_data;
	__aligned_u64 handle;
	__u32 flags;
	__u32 clock;
	__aligned_u64 key;
	__aligned_u64 period;
	__aligned_u64 slack;
	__aligned_u64 spread;
	__aligned_u64 idle;
	__aligned_u64 lifetime;
	union {
		__u32 touch;
		__s32 sock_fd;
	};
	__u32 reserved;
};

/**
 * struct twheel_timer_cancel - the argument of TWHEEL_IOC_TIMER_CANCEL
 * @handle: in: the timer; the handle is stale once the call has succeeded
 * @flags: in: 0 or TWHEEL_BY_KEY
 * @reserved: in: 0
 */
struct twheel_timer_cancel {
	__aligned_u64 handle;
	__u32 flags;
	__u32 reserved;
};

/**
 * struct twheel_timer_rearm - the argument of TWHEEL_IOC_TIMER_REARM
 * @handle: in: the timer; the handle stays valid
 * @time: in: the new value of the limit. For the deadline, when to expire, as in struct
 *	twheel_timer_add, on the clock that the timer was added with; likewise for the
 *	lifetime; for the idle timeout its length, starting now. %TWHEEL_TIME_NONE removes
 *	a limit, unless it is the last one. A re-arm counts as activity
 * @flags: in: TWHEEL_TIME_ABS, TWHEEL_BY_KEY, TWHEEL_ACTIVE
 * @limit: in: one of enum twheel_limit. Anything but the deadline is only for a timer that
 *	was added with an idle timeout or a lifetime
 * @slack: in: as in struct twheel_timer_add, for the deadline
 * @spread: in: likewise
 */
struct twheel_timer_rearm {
	__aligned_u64 handle;
	__aligned_u64 time;
	__u32 flags;
	__u32 limit;
	__aligned_u64 slack;
	__aligned_u64 spread;
};

/**
 * struct twheel_timer_query - the argument of TWHEEL_IOC_TIMER_QUERY
 * @handle: in: the timer; out: its handle
 * @deadline: out: when it expires or expired, in nanoseconds, absolute, on its clock;
 *	with several limits, the next one. Activity in the touch array is not included
 *	until the kernel has read it. If the socket of a timer with TWHEEL_WATCHED was busy
 *	when the kernel had to check it: when it will do so again
 * @remaining: out: nanoseconds until @deadline, 0 if it has passed
 * @user_data: out: as given when the timer was added
 * @state: out: one of enum twheel_state
 * @flags: in: 0 or TWHEEL_BY_KEY; out: TWHEEL_KEYED if it has a key; TWHEEL_WATCHED and its
 *	flags, as the timer was added with
 * @key: out: its key; 0 if it has none
 * @period: out: its period in nanoseconds; 0 if it is one-shot
 * @clock: out: the clock of @deadline
 * @limit: out: which limit @deadline is
 */
struct twheel_timer_query {
	__aligned_u64 handle;
	__aligned_u64 deadline;
	__aligned_u64 remaining;
	__aligned_u64 user_data;
	__u32 state;
	__u32 flags;
	__aligned_u64 key;
	__aligned_u64 period;
	__u32 clock;
	__u32 limit;
};

/**
 * enum twheel_opcode - what an operation in an array does
 * @TWHEEL_OP_ADD: as TWHEEL_IOC_TIMER_ADD
 * @TWHEEL_OP_CANCEL: as TWHEEL_IOC_TIMER_CANCEL
 * @TWHEEL_OP_REARM: as TWHEEL_IOC_TIMER_REARM
 */
enum twheel_opcode {
	TWHEEL_OP_ADD = 0,
	TWHEEL_OP_CANCEL = 1,
	TWHEEL_OP_REARM = 2,
};

/**
 * struct twheel_op - one operation in an array
 * @handle: in: the timer, or its key; out: for an add, the handle
 * @time: in: as in the structure of the ioctl, for adds and re-arms; otherwise 0
 * @user_data: in: for adds; otherwise 0
 * @opcode: in: one of enum twheel_opcode
 * @flags: in: as in the structure of the ioctl
 * @clock: in: for adds; otherwise 0
 * @result: out: what the ioctl would return: 0, a verdict, or a negative errno
 * @key: in: for adds; otherwise 0, as are the fields below
 * @period: in: for adds
 * @slack: in: for adds and re-arms
 * @spread: in: for adds and re-arms
 * @idle: in: for adds
 * @lifetime: in: for adds
 * @touch: in: for adds
 * @sock_fd: in: for adds
 * @limit: in: for re-arms
 *
 * The first 40 bytes, up to @result, are enough for an operation that uses none of the fields
 * below: see struct twheel_submit.
 */
__extension__ /* C99 has no anonymous unions */
struct twheel_op {
	__aligned_u64 handle;
	__aligned_u64 time;
	__aligned_u64 user_data;
	__u32 opcode;
	__u32 flags;
	__u32 clock;
	__s32 result;
	__aligned_u64 key;
	__aligned_u64 period;
	__aligned_u64 slack;
	__aligned_u64 spread;
	__aligned_u64 idle;
	__aligned_u64 lifetime;
	union {
		__u32 touch;
		__s32 sock_fd;
	};
	__u32 limit;
};

/* The shortest struct twheel_op that is accepted. */
#define TWHEEL_OP_SIZE_MIN	40

/* Submit: stop after the first operation that fails. */
#define TWHEEL_SUBMIT_STOP	(1U << 0)

/**
 * struct twheel_submit - the argument of TWHEEL_IOC_SUBMIT
 * @ops: in: address of an array of operations, see struct twheel_op
 * @nr_ops: in: their number, up to 2^31 - 1
 * @op_size: in: bytes from one to the next: the size of the structure that the
 *	program knows, or %TWHEEL_OP_SIZE_MIN; a multiple of 8
 * @flags: in: 0 or TWHEEL_SUBMIT_STOP
 *
 * The operations are carried out in order, each as its own ioctl would; one that fails
 * gets its result and does not stop the others. The call returns the number of operations
 * that have a result. This is less than @nr_ops if one failed and TWHEEL_SUBMIT_STOP is
 * set, upon a fatal signal, or at an operation that cannot be read or whose result cannot
 * be written (EFAULT if it is the first): neither that one nor any after it is carried out.
 */
struct twheel_submit {
	__aligned_u64 ops;
	__u32 nr_ops;
	__u16 op_size;
	__u16 flags;
};

/* The shortest record that is accepted. */
#define TWHEEL_RECORD_SIZE_MIN	40

/**
 * struct twheel_drain - the argument of TWHEEL_IOC_DRAIN
 * @records: in: address of an array of struct twheel_timer_query, for the timers
 *	that are cancelled; or 0 to cancel them without returning them
 * @nr_records: in: capacity of the array, 1 to 2^31 - 1; if @records is 0, the maximum
 *	number to cancel
 * @record_size: in: bytes from one to the next: the size of the structure that the
 *	program knows, at least %TWHEEL_RECORD_SIZE_MIN and a multiple of 8
 * @flags: in: 0
 * @cursor: in: 0 at first; out: where to continue
 *
 * Cancels timers of the context and returns each as a query just before would have shown it.
 * Returns their number; 0 at the end. To drain a context, repeat the call until it returns
 * 0. Timers that are added meanwhile may or may not be drained.
 */
struct twheel_drain {
	__aligned_u64 records;
	__u32 nr_records;
	__u16 record_size;
	__u16 flags;
	__aligned_u64 cursor;
};

/**
 * struct twheel_context_stats - the result of TWHEEL_IOC_STATS
 * @adds: timers added
 * @cancels: timers cancelled, by whatever call, before their event was delivered
 * @rearms: timers re-armed
 * @expiries: events queued
 * @taken_back: events revoked by a cancel or a re-arm
 * @delivered: events delivered
 * @deferrals: times that a timer with an idle timeout came due and turned out to have been
 *	active, or that a clock had been set back
 * @nr_timers: as in struct twheel_info
 * @nr_events: events that have not been delivered
 * @bytes: memory of this context's timers, keys and mappings, in bytes
 * @ended: timers that ended with the connection that they watched
 * @postponed: times that checking a timer with TWHEEL_TOUCHED or TWHEEL_WATCHED, or re-arming
 *	a periodic one whose event had gone to the ring, was left to a worker. This happens
 *	once expiry itself has re-armed, within a tick, 64 of the context's timers, or 256 of
 *	all contexts' timers on a CPU
 *
 * Counted since the context was opened. The kernel writes all fields.
 */
struct twheel_context_stats {
	__aligned_u64 adds;
	__aligned_u64 cancels;
	__aligned_u64 rearms;
	__aligned_u64 expiries;
	__aligned_u64 taken_back;
	__aligned_u64 delivered;
	__aligned_u64 deferrals;
	__aligned_u64 nr_timers;
	__aligned_u64 nr_events;
	__aligned_u64 bytes;
	__aligned_u64 ended;
	__aligned_u64 postponed;
};

/**
 * struct twheel_event - one expiry, as read() returns it
 * @handle: the timer. The handle of a one-shot timer is stale from here on, as the timer ends
 *	with the delivery of its event. In a context with TWHEEL_SETUP_EVENT_KEYS, if the timer
 *	has a key, the key
 * @user_data: as given when the timer was added
 * @deadline: when the timer was due, in nanoseconds, absolute, on its clock
 * @fired: when the kernel expired it, in nanoseconds of the same clock; never
 *	less than @deadline, unless the clock was set back since
 * @seq: number of this event in its context, from 0, without gaps
 * @overruns: periods missed since the last event of this timer, up to 2^32 - 1; 0 for
 *	a one-shot timer. @deadline is that of the first period that this event covers
 * @reason: one of enum twheel_limit: the limit that was reached
 *
 * read() returns as many whole events as there are and fit.
 *
 * Neither read() nor the ring knows which version of this structure a program was compiled with,
 * so their events stay at these 48 bytes. If an event ever grows, a context will have to request
 * the longer ones.
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

/*
 * Setup: once this call has returned, @handle in an event is the timer's key, if it has one, as
 * it is in calls with TWHEEL_BY_KEY. Events of other timers still contain the handle; so do events
 * that were already in a ring, or that a read() had begun to deliver.
 */
#define TWHEEL_SETUP_EVENT_KEYS	(1U << 0)

/**
 * struct twheel_setup - the argument of TWHEEL_IOC_SETUP
 * @max_timers: in: if not 0, a limit on the timers of this context, in place of the
 *	module's if that is larger
 * @ring_entries: in: if not 0, create a ring of so many events, a power of two up to
 *	2^20
 * @touch_words: in: if not 0, create a touch array of so many words, up to 2^24
 * @flags: in: 0 or TWHEEL_SETUP_EVENT_KEYS, which cannot be unset
 * @reserved: in: 0
 * @ring_bytes: out: length of the ring's mapping; 0 if there is no ring
 * @touch_bytes: out: length of the touch array's mapping; 0 if there is none
 *
 * May be called again for what has not been created yet; a ring and a touch array take one call
 * each. Both last as long as the context, and are mapped with mmap() of the file, MAP_SHARED, at
 * offset %TWHEEL_RING_OFFSET or %TWHEEL_TOUCH_OFFSET.
 */
struct twheel_setup {
	__aligned_u64 max_timers;
	__u32 ring_entries;
	__u32 touch_words;
	__u32 flags;
	__u32 reserved;
	__aligned_u64 ring_bytes;
	__aligned_u64 touch_bytes;
};

#define TWHEEL_RING_OFFSET	0x00000000
#define TWHEEL_TOUCH_OFFSET	0x40000000

/* Some events did not fit and are waiting: poll() the file once there is room. */
#define TWHEEL_RING_WAITING	(1U << 0)

/**
 * struct twheel_ring - what is mapped at TWHEEL_RING_OFFSET
 * @head: number of events ever written, modulo 2^32. Written by the kernel, read by the
 *	program with acquire semantics
 * @flags: 0 or TWHEEL_RING_WAITING; written by the kernel
 * @mask: number of entries minus one; constant
 * @reserved0: padding: keeps the kernel's and the program's stores on different cache lines
 * @tail: number of events ever read, modulo 2^32. Written by the program with release
 *	semantics, after it has read them
 * @reserved1: padding
 * @events: event number n is in events[n & mask]
 *
 * Once a context has a ring, its events go there, and read() fails with EBUSY. Events that do
 * not fit wait in the kernel, in order. poll() and epoll report the file readable as long as an
 * event is in the ring or waiting, and move waiting events into the free space.
 */
struct twheel_ring {
	__u32 head;
	__u32 flags;
	__u32 mask;
	__u32 reserved0[13];
	__u32 tail;
	__u32 reserved1[15];

	__extension__ struct twheel_event events[];
};

/**
 * struct twheel_touch - what is mapped at TWHEEL_TOUCH_OFFSET
 * @now: CLOCK_MONOTONIC in nanoseconds when the kernel last updated its clocks: never ahead of
 *	the clock itself, and normally at most two jiffies behind it. Written by the kernel
 * @reserved: padding to the end of the page. It shares with @now one page for all contexts,
 *	which is read-only: a store there raises SIGBUS
 * @words: the words for timers that were added with TWHEEL_TOUCHED
 *
 * To report activity, a program stores @now, or a reading of CLOCK_MONOTONIC, in the word. The
 * kernel reads the word when the timer would expire. If the time in it is later than the last
 * activity that the kernel knows of, the idle timeout counts from there, plus two jiffies, as
 * @now may have been that old. A time in the future counts as activity when the kernel
 * first sees it, and not again: the kernel remembers it.
 */
struct twheel_touch {
	__aligned_u64 now;
	__aligned_u64 reserved[511];

	__extension__ __aligned_u64 words[];
};

/* Describes the module and this context. Returns 0. */
#define TWHEEL_IOC_INFO		_IOR(TWHEEL_IOC_MAGIC, 0xa0, struct twheel_info)

/*
 * Adds and arms a timer. Returns 0; with TWHEEL_KEYED, a verdict.
 * Errors: EINVAL, EOPNOTSUPP, ENOSPC, ENOMEM; with TWHEEL_WATCHED EBADF, ENOTCONN, EBUSY.
 */
#define TWHEEL_IOC_TIMER_ADD	_IOWR(TWHEEL_IOC_MAGIC, 0xa1, struct twheel_timer_add)

/*
 * Cancels and frees a timer. Returns a verdict.
 * Errors: EINVAL, EOPNOTSUPP, ENOENT, EALREADY.
 */
#define TWHEEL_IOC_TIMER_CANCEL	_IOW(TWHEEL_IOC_MAGIC, 0xa2, struct twheel_timer_cancel)

/*
 * Re-arms a timer. Returns a verdict. Errors: EINVAL, EOPNOTSUPP, ENOENT, EALREADY; ENOTCONN
 * if it watched a connection and has expired.
 */
#define TWHEEL_IOC_TIMER_REARM	_IOW(TWHEEL_IOC_MAGIC, 0xa3, struct twheel_timer_rearm)

/* Queries a timer. Returns 0. Errors: EOPNOTSUPP, ENOENT, EALREADY. */
#define TWHEEL_IOC_TIMER_QUERY	_IOWR(TWHEEL_IOC_MAGIC, 0xa4, struct twheel_timer_query)

/*
 * Carries out an array of operations. Returns how many have a result.
 * Errors: EINVAL, EOPNOTSUPP, EINTR.
 */
#define TWHEEL_IOC_SUBMIT	_IOW(TWHEEL_IOC_MAGIC, 0xa5, struct twheel_submit)

/* Drains timers. Returns how many, 0 at the end. Errors: EINVAL, EOPNOTSUPP, E2BIG. */
#define TWHEEL_IOC_DRAIN	_IOWR(TWHEEL_IOC_MAGIC, 0xa6, struct twheel_drain)

/* Reads the counters of this context. Returns 0. */
#define TWHEEL_IOC_STATS	_IOR(TWHEEL_IOC_MAGIC, 0xa7, struct twheel_context_stats)

/* Sets limit, ring and touch array. Returns 0. Errors: EINVAL, EOPNOTSUPP, EBUSY, ENOMEM. */
#define TWHEEL_IOC_SETUP	_IOWR(TWHEEL_IOC_MAGIC, 0xa8, struct twheel_setup)

/*
 * TWHEEL_IOC_SUBMIT as a command of IORING_OP_URING_CMD: @cmd of the submission contains a struct
 * twheel_submit. The result of the completion is what the ioctl would return.
 */
#define TWHEEL_URING_SUBMIT	0

#endif /* _UAPI_LINUX_TWHEEL_H */
