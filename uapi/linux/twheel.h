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
 * The last close cancels every timer of it before it returns; if whoever closes
 * it is not the user who has called for it last, or has opened it if nobody has
 * called since, a worker does so soon after.
 *
 * All times are nanoseconds. A timer never expires before its deadline.
 *
 * Every ioctl takes the address of one structure. The structure's size is part
 * of the ioctl number. Structures grow at their end only: a kernel that knows a
 * longer one takes the missing tail as zero, and a kernel that knows a shorter
 * one accepts a longer one whose unknown tail is zero. On an error nothing has
 * changed, and but for EFAULT nothing has been written to the structure. (Whether the
 * answer can be written is tried before anything is done. Should the memory go away just
 * then, what was done stays done; but a timer whose handle could not be told is taken
 * back, unless it has a key: then the call has succeeded.)
 *
 * An errno means the same for the whole device:
 *
 *  - ENOTTY: no such ioctl
 *  - EFAULT: the structure, a buffer that it names, or the buffer of a read(), is
 *    not accessible
 *  - E2BIG: the structure is longer than this kernel knows, and its tail is
 *    not zero
 *  - EINVAL: the structure is shorter than it ever was, a reserved field is
 *    not zero, a number is out of range, fields contradict each other or the
 *    timer's kind, or the buffer of a read() is smaller than one event
 *  - EOPNOTSUPP: a flag, or a value of a known field, that this kernel does
 *    not know; or a socket that is to be watched, and is none of TCP
 *  - EALREADY: the event of the one-shot timer that the handle names has been
 *    delivered: a read() has it, or is about to, or it is in the ring. Should that
 *    read() fail with EFAULT, the event is read by a later one
 *  - ENOENT: the handle or key names no timer of this context: it was never given
 *    out, it was cancelled, or its event was delivered and the timer's memory has
 *    been used by twelve others since
 *  - ENOSPC: the context, or the module, has as many timers as its limit allows
 *  - ENOMEM: there is no memory for another timer, or none is left to the memory
 *    cgroup
 *  - EBUSY: the context has a ring or a touch array already; or a read() of a
 *    context whose events go to a ring; or the socket has a timer that watches it
 *  - EBADF: the socket's file descriptor is not open
 *  - ENOTCONN: the socket has no connection that is established, or closed by its peer only;
 *    or the timer that is to be re-armed has expired, and watches its connection no more
 *  - EAGAIN: read() on a non-blocking file, and no event is there, or another
 *    read() is taking them
 *  - EINTR: a signal came before a blocking read() had an event, or a fatal one
 *    before anything was done
 */

#define TWHEEL_IOC_MAGIC	't'

/*
 * Flags of every structure that holds a time, or names a timer.
 */

/* The time is absolute. Without it, it counts from the call. */
#define TWHEEL_TIME_ABS		(1U << 0)
/* The timer is named by its key, in the field @handle. */
#define TWHEEL_BY_KEY		(1U << 1)
/*
 * Re-arm: there was activity. The idle timeout begins anew; the time must be 0, the limit
 * TWHEEL_LIMIT_IDLE.
 */
#define TWHEEL_ACTIVE		(1U << 2)
/* Add: the timer has a key. */
#define TWHEEL_KEYED		(1U << 3)
/* Add: the timer's activity is in the touch array, see struct twheel_setup. */
#define TWHEEL_TOUCHED		(1U << 4)
/*
 * Add: the timer's activity is that of a TCP connection, see struct twheel_timer_add.
 */
#define TWHEEL_WATCHED		(1U << 5)
/* Add, with TWHEEL_WATCHED: what is activity. With neither of the two, both are. */
#define TWHEEL_WATCH_RECEIVED	(1U << 6)	/* data has come in */
#define TWHEEL_WATCH_SENT	(1U << 7)	/* data has gone out, for the first time or again */
/* Add, with TWHEEL_WATCHED: what to do before the event is delivered; else nothing. */
#define TWHEEL_WATCH_SHUTDOWN	(1U << 8)	/* as shutdown(SHUT_RDWR) */
#define TWHEEL_WATCH_ABORT	(1U << 9)	/* reset the connection, its error is ETIMEDOUT */

/* The largest time that is accepted, absolute or relative: 2^63 - 1 ns. */
#define TWHEEL_TIME_MAX		0x7fffffffffffffffULL

/*
 * The shortest idle timeout of a timer whose activity the kernel has to look for: 10 ms. Other
 * ones are put off by a call each time, and may have any length.
 */
#define TWHEEL_IDLE_MIN		10000000ULL

/* No deadline: for a timer that has other limits. */
#define TWHEEL_TIME_NONE	0xffffffffffffffffULL

/**
 * enum twheel_verdict - what a cancel or a re-arm found
 * @TWHEEL_WAS_PENDING: the timer had not expired
 * @TWHEEL_WAS_EXPIRED: the timer had expired, its event was not yet delivered and
 *	has been taken back: it will not be read
 * @TWHEEL_WAS_ABSENT: there was no timer of this key: it has been added
 * @TWHEEL_WAS_DELIVERED: an event of the periodic timer was being delivered: it is
 *	the last one of the earlier arming, and may be read or not
 *
 * The value that TWHEEL_IOC_TIMER_CANCEL and TWHEEL_IOC_TIMER_REARM, and an add of a
 * timer with a key, return when they succeed. After any of them no event of the
 * earlier arming can be read, but for the one that @TWHEEL_WAS_DELIVERED tells of.
 */
enum twheel_verdict {
	TWHEEL_WAS_PENDING = 0,
	TWHEEL_WAS_EXPIRED = 1,
	TWHEEL_WAS_ABSENT = 2,
	TWHEEL_WAS_DELIVERED = 3,
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
 * enum twheel_limit - the limits that a timer can have
 * @TWHEEL_LIMIT_DEADLINE: a point in time
 * @TWHEEL_LIMIT_IDLE: so long without activity
 * @TWHEEL_LIMIT_LIFETIME: so long since the timer was added, active or not
 *
 * A timer expires when the first of its limits is reached; the event tells which.
 */
enum twheel_limit {
	TWHEEL_LIMIT_DEADLINE = 0,
	TWHEEL_LIMIT_IDLE = 1,
	TWHEEL_LIMIT_LIFETIME = 2,
};

/*
 * What a kernel can do: bits of struct twheel_info's @features.
 */
#define TWHEEL_FEATURE_SUBMIT	(1ULL << 0)	/* TWHEEL_IOC_SUBMIT, _DRAIN, _STATS */
#define TWHEEL_FEATURE_KEYS	(1ULL << 1)	/* TWHEEL_KEYED, TWHEEL_BY_KEY */
#define TWHEEL_FEATURE_PERIODIC	(1ULL << 2)	/* periods, slack, spread */
#define TWHEEL_FEATURE_CLOCKS	(1ULL << 3)	/* CLOCK_REALTIME, CLOCK_BOOTTIME */
#define TWHEEL_FEATURE_LIMITS	(1ULL << 4)	/* idle timeout and lifetime */
#define TWHEEL_FEATURE_RING	(1ULL << 5)	/* TWHEEL_IOC_SETUP: the ring */
/* Bit 6 was that of touch arrays whose words began at byte 64. */
#define TWHEEL_FEATURE_URING	(1ULL << 7)	/* TWHEEL_URING_SUBMIT */
#define TWHEEL_FEATURE_WATCH	(1ULL << 8)	/* TWHEEL_WATCHED */
#define TWHEEL_FEATURE_RULES	(1ULL << 9)	/* see linux/twheel_rules.h */
#define TWHEEL_FEATURE_TOUCH	(1ULL << 10)	/* TWHEEL_IOC_SETUP: the touch array */
#define TWHEEL_FEATURE_EVENT_KEYS (1ULL << 11)	/* TWHEEL_SETUP_EVENT_KEYS; no @time or @clock */

/**
 * struct twheel_info - the answer to TWHEEL_IOC_INFO
 * @features: bits for what this kernel can do beyond the first version
 * @tick_ns: length of the wheel's tick in nanoseconds, a power of two. An event
 *	comes at most one tick, plus the delay of the softirq, after its deadline
 * @max_timers: limit on the timers of this context
 * @nr_timers: timers of this context that are pending, or expired and unread
 * @nr_events: events that wait to be delivered
 * @event_size: bytes of an event that read() or the ring gives
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
 *	%TWHEEL_TIME_MAX ends there. If there is an @idle or a @lifetime, %TWHEEL_TIME_NONE,
 *	or 0 without TWHEEL_TIME_ABS, is no deadline. This is a change: a kernel without
 *	TWHEEL_FEATURE_EVENT_KEYS takes such a 0 for the next tick
 * @user_data: in: given back in the event
 * @handle: out: names the timer in this context, never 0. A value is not given
 *	out twice by one context
 * @flags: in: TWHEEL_TIME_ABS for @time, TWHEEL_KEYED, TWHEEL_TOUCHED or TWHEEL_WATCHED and
 *	its flags
 * @clock: in: the clock of @time and of the event: CLOCK_MONOTONIC, CLOCK_BOOTTIME
 *	(counts while the system is suspended), or CLOCK_REALTIME: if that clock is
 *	set, the timer expires when the clock shows its time. A relative time on
 *	CLOCK_REALTIME is one on CLOCK_MONOTONIC, as with timer_settime(). With @idle or
 *	@lifetime it is CLOCK_MONOTONIC; or, if there is no deadline, 0
 * @key: in: with TWHEEL_KEYED, any number. If a timer of this key exists it becomes
 *	this one: its event, if any, is taken back
 * @period: in: if not 0, the timer expires again each so many nanoseconds after
 *	@time, up to %TWHEEL_TIME_MAX. Not with @idle or @lifetime
 * @slack: in: nanoseconds that the timer may expire later than it could, up to
 *	%TWHEEL_TIME_MAX: timers of much the same time then share one tick. The
 *	deadline moves to the roundest time within
 * @spread: in: the deadline moves by a random time from 0 to so many nanoseconds, so
 *	that timers added at once do not expire at once. Drawn at each add and re-arm;
 *	the lifetime is spread as well
 * @idle: in: if not 0, the idle timeout in nanoseconds, up to %TWHEEL_TIME_MAX; with
 *	TWHEEL_TOUCHED or TWHEEL_WATCHED from %TWHEEL_IDLE_MIN on
 * @lifetime: in: if not 0, the lifetime in nanoseconds, up to %TWHEEL_TIME_MAX
 * @touch: in: with TWHEEL_TOUCHED, the word of the touch array that tells of this
 *	timer's activity; needs an @idle. Several timers may share one
 * @sock_fd: in: with TWHEEL_WATCHED, the file descriptor of a TCP socket; needs an @idle or a
 *	@lifetime
 * @reserved: in: 0
 *
 * A timer with TWHEEL_WATCHED ends with its connection, without an event. The connection
 * must be established, or closed by its peer only; a socket can have one such timer, until that
 * has expired. It is the socket that is watched: what becomes of the file descriptor does not
 * matter. The idle timeout is exact to a jiffy, as the kernel notes the times of data in these,
 * and at most 2^31 jiffies long.
 */
__extension__ /* C99 knows no union without a name */
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
 * @handle: in: the timer; its handle is stale once the call has succeeded
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
 * @handle: in: the timer; it stays valid
 * @time: in: the new value of the limit: for the deadline when to expire, as in struct
 *	twheel_timer_add, on the clock that the timer was added with; for the lifetime
 *	likewise; for the idle timeout its length, which begins now. %TWHEEL_TIME_NONE
 *	takes a limit away, if it is not the last one. A re-arm counts as activity
 * @flags: in: TWHEEL_TIME_ABS, TWHEEL_BY_KEY, TWHEEL_ACTIVE
 * @limit: in: one of enum twheel_limit. Other than the deadline only for a timer that
 *	was added with an idle timeout or a lifetime
 * @slack: in: as in struct twheel_timer_add, for the deadline
 * @spread: in: as there
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
 *	of several limits the next. Activity in the touch array that the kernel has
 *	not looked at yet does not show
 * @remaining: out: nanoseconds until @deadline, 0 if it has passed
 * @user_data: out: as given when the timer was added
 * @state: out: one of enum twheel_state
 * @flags: in: 0 or TWHEEL_BY_KEY; out: TWHEEL_KEYED if it has a key; TWHEEL_WATCHED and the
 *	flags for that as the timer was added with
 * @key: out: its key; 0 if it has none
 * @period: out: its period in nanoseconds; 0 if it is one-shot
 * @clock: out: the clock of @deadline
 * @limit: out: the limit that @deadline is
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
 * enum twheel_opcode - what an operation of an array does
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
 * struct twheel_op - one operation of an array
 * @handle: in: the timer, or its key; out: of an add, the handle
 * @time: in: as in the structure of the ioctl, for adds and re-arms; else 0
 * @user_data: in: for adds; else 0
 * @opcode: in: one of enum twheel_opcode
 * @flags: in: as in the structure of the ioctl
 * @clock: in: for adds; else 0
 * @result: out: what the ioctl would return: 0, a verdict, or a negative errno
 * @key: in: for adds; else 0, and so are the rest
 * @period: in: for adds
 * @slack: in: for adds and re-arms
 * @spread: in: for adds and re-arms
 * @idle: in: for adds
 * @lifetime: in: for adds
 * @touch: in: for adds
 * @sock_fd: in: for adds
 * @limit: in: for re-arms
 *
 * The first 40 bytes, up to @result, are enough for what needs no more: see
 * struct twheel_submit.
 */
__extension__ /* C99 knows no union without a name */
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

/* Submit: no operation is begun after one that has failed. */
#define TWHEEL_SUBMIT_STOP	(1U << 0)

/**
 * struct twheel_submit - the argument of TWHEEL_IOC_SUBMIT
 * @ops: in: address of an array of operations, see struct twheel_op
 * @nr_ops: in: their number, up to 2^31 - 1
 * @op_size: in: bytes from one to the next: the size of the structure that the
 *	program knows, or %TWHEEL_OP_SIZE_MIN; a multiple of 8
 * @flags: in: 0 or TWHEEL_SUBMIT_STOP
 *
 * The operations are done in their order, each as by its own ioctl; a bad one gets
 * its result and does not stop the others. The call returns how many have got
 * their result, which is less than @nr_ops if one failed and TWHEEL_SUBMIT_STOP is
 * set, at a fatal signal, or at an operation that cannot be read or whose result cannot
 * be written (EFAULT if it is the first): that one is not done, and none behind it.
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
 *	that are cancelled; or 0 to cancel them without a word
 * @nr_records: in: how many fit, 1 to 2^31 - 1; with @records 0 how many to cancel at
 *	most
 * @record_size: in: bytes from one to the next: the size of the structure that the
 *	program knows, at least %TWHEEL_RECORD_SIZE_MIN and a multiple of 8
 * @flags: in: 0
 * @cursor: in: 0 at first; out: where to go on
 *
 * Cancels timers of the context and hands them back, each as a query would have told of
 * it before. Returns how many; 0 at the end. To drain a context the call is
 * repeated until it returns 0. Timers that are added meanwhile may be drained or not.
 */
struct twheel_drain {
	__aligned_u64 records;
	__u32 nr_records;
	__u16 record_size;
	__u16 flags;
	__aligned_u64 cursor;
};

/**
 * struct twheel_context_stats - the answer to TWHEEL_IOC_STATS
 * @adds: timers added
 * @cancels: timers cancelled, by whatever call, before their event was delivered
 * @rearms: timers armed anew
 * @expiries: events queued
 * @taken_back: events taken back by a cancel or a re-arm
 * @delivered: events delivered
 * @deferrals: times that the kernel came to a timer with an idle timeout and found that it
 *	had been active, or that a clock had been set back
 * @nr_timers: timers that are pending, or expired and undelivered
 * @nr_events: events that wait to be delivered
 * @bytes: memory of this context's timers, keys and mappings, in bytes
 * @ended: timers that ended with the connection that they watched
 * @postponed: times that it was left to a worker to look at a timer with TWHEEL_TOUCHED or
 *	TWHEEL_WATCHED, or to arm a periodic one whose event had gone to the ring. That is so
 *	when expiry has armed 64 of the context's timers anew in a tick by itself, or 256 of
 *	all contexts' on a CPU
 *
 * Counted since the context was opened. All fields are written by the kernel.
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
 * struct twheel_event - one expiry, as read() gives it
 * @handle: the timer. That of a one-shot timer is stale from here on: it ends with the
 *	delivery of its event. If the timer has a key, in a context with TWHEEL_SETUP_EVENT_KEYS,
 *	the key
 * @user_data: as given when the timer was added
 * @deadline: when the timer was due, in nanoseconds, absolute, on its clock
 * @fired: when the kernel expired it, in nanoseconds of the same clock; never
 *	less than @deadline, unless the clock was set back since
 * @seq: number of this event in its context, from 0, without gaps
 * @overruns: periods missed since the last event of this timer, up to 2^32 - 1; 0 for
 *	a one-shot timer. @deadline is that of the first period that this event is about
 * @reason: one of enum twheel_limit: the limit that was reached
 *
 * read() returns as many whole events as are there and fit.
 *
 * Neither read() nor the ring is told what a program knows of this structure, so what they
 * give are these 48 bytes, for good. Should an event grow, a context will have to ask for that.
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
 * Setup: when this call has returned, events name timers that have a key by that, in the field
 * @handle, as calls do with TWHEEL_BY_KEY. Those of other timers have their handle, as ever; and
 * so have events that were in a ring before, or that a read() has begun to deliver.
 */
#define TWHEEL_SETUP_EVENT_KEYS	(1U << 0)

/**
 * struct twheel_setup - the argument of TWHEEL_IOC_SETUP
 * @max_timers: in: if not 0, a limit on the timers of this context, instead of the
 *	module's if that is larger
 * @ring_entries: in: if not 0, make a ring of so many events, a power of two up to
 *	2^20
 * @touch_words: in: if not 0, make a touch array of so many words, up to 2^24
 * @flags: in: 0 or TWHEEL_SETUP_EVENT_KEYS, which stays
 * @reserved: in: 0
 * @ring_bytes: out: length of the ring's mapping; 0 if there is none
 * @touch_bytes: out: length of the touch array's mapping; 0 if there is none
 *
 * May be called again for what was not made yet; a ring and a touch array are made by a
 * call each. What it makes lasts as long as the
 * context, and is mapped with mmap() of the file, MAP_SHARED, at offset
 * %TWHEEL_RING_OFFSET or %TWHEEL_TOUCH_OFFSET.
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

/* Events wait that do not fit: poll() the file once there is room. */
#define TWHEEL_RING_WAITING	(1U << 0)

/**
 * struct twheel_ring - what is mapped at TWHEEL_RING_OFFSET
 * @head: number of events ever written, modulo 2^32. Written by the kernel, read by the
 *	program with acquire semantics
 * @flags: 0 or TWHEEL_RING_WAITING; written by the kernel
 * @mask: number of entries less one; constant
 * @reserved0: nothing, to keep what the kernel writes off what the program writes
 * @tail: number of events ever read, modulo 2^32. Written by the program, with release
 *	semantics, when it has read them
 * @reserved1: nothing
 * @events: event number n is in events[n & mask]
 *
 * Once a context has a ring its events go there, and read() fails with EBUSY. What
 * does not fit waits in the kernel, in its order: poll() and epoll report the file
 * readable as long as an event is in the ring or waits, and move what waits
 * into the room that there is.
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
 * @now: the time of CLOCK_MONOTONIC in nanoseconds, when the kernel last updated its clocks:
 *	not after the clock itself, and as a rule not more than two jiffies before it. Written
 *	by the kernel
 * @reserved: nothing, up to the end of the page. That and @now are in one page for all
 *	contexts, which can be read only: a store there is answered by SIGBUS
 * @words: a word for each timer that was added with TWHEEL_TOUCHED
 *
 * A program tells of activity by storing @now, or a reading of CLOCK_MONOTONIC, into the
 * word. The kernel looks at the word when the timer would expire, and if the
 * time in it is later than the last activity it knew of, the idle timeout counts
 * from there; and from two jiffies later, as @now may have been old by that. A time that
 * lies in the future when the kernel looks tells of activity then, once: the kernel remembers
 * it, and does not take it for activity when it finds it again.
 */
struct twheel_touch {
	__aligned_u64 now;
	__aligned_u64 reserved[511];

	__extension__ __aligned_u64 words[];
};

/* What the module and this context are like. Returns 0. */
#define TWHEEL_IOC_INFO		_IOR(TWHEEL_IOC_MAGIC, 0xa0, struct twheel_info)

/*
 * Adds and arms a timer. Returns 0; with TWHEEL_KEYED a verdict.
 * Errors: EINVAL, EOPNOTSUPP, ENOSPC, ENOMEM; with TWHEEL_WATCHED EBADF, ENOTCONN, EBUSY.
 */
#define TWHEEL_IOC_TIMER_ADD	_IOWR(TWHEEL_IOC_MAGIC, 0xa1, struct twheel_timer_add)

/*
 * Cancels and frees a timer. Returns a verdict.
 * Errors: EINVAL, EOPNOTSUPP, ENOENT, EALREADY.
 */
#define TWHEEL_IOC_TIMER_CANCEL	_IOW(TWHEEL_IOC_MAGIC, 0xa2, struct twheel_timer_cancel)

/*
 * Arms a timer anew. Returns a verdict. Errors: EINVAL, EOPNOTSUPP, ENOENT, EALREADY; ENOTCONN
 * if it has watched a connection, and has expired.
 */
#define TWHEEL_IOC_TIMER_REARM	_IOW(TWHEEL_IOC_MAGIC, 0xa3, struct twheel_timer_rearm)

/* Tells a timer's state. Returns 0. Errors: EOPNOTSUPP, ENOENT, EALREADY. */
#define TWHEEL_IOC_TIMER_QUERY	_IOWR(TWHEEL_IOC_MAGIC, 0xa4, struct twheel_timer_query)

/*
 * Does an array of operations. Returns how many have got their result.
 * Errors: EINVAL, EOPNOTSUPP, EINTR.
 */
#define TWHEEL_IOC_SUBMIT	_IOW(TWHEEL_IOC_MAGIC, 0xa5, struct twheel_submit)

/* Cancels all timers. Returns how many, 0 at the end. Errors: EINVAL, EOPNOTSUPP, E2BIG. */
#define TWHEEL_IOC_DRAIN	_IOWR(TWHEEL_IOC_MAGIC, 0xa6, struct twheel_drain)

/* What has happened in this context. Returns 0. */
#define TWHEEL_IOC_STATS	_IOR(TWHEEL_IOC_MAGIC, 0xa7, struct twheel_context_stats)

/* Limits, ring and touch array. Returns 0. Errors: EINVAL, EOPNOTSUPP, EBUSY, ENOMEM. */
#define TWHEEL_IOC_SETUP	_IOWR(TWHEEL_IOC_MAGIC, 0xa8, struct twheel_setup)

/*
 * The command of IORING_OP_URING_CMD that is TWHEEL_IOC_SUBMIT: the submission's @cmd
 * holds a struct twheel_submit. The completion's result is what the ioctl would return.
 */
#define TWHEEL_URING_SUBMIT	0

#endif /* _UAPI_LINUX_TWHEEL_H */
