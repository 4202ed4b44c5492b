/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: contexts: the state behind an open of /dev/twheel
 *
 * Including the context's timers: their memory, and the states that they go through.
 */
#ifndef _TWHEEL_DEVICE_CONTEXT_H
#define _TWHEEL_DEVICE_CONTEXT_H

#include <linux/build_bug.h>
#include <linux/cred.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/uidgid.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/linux/twheel.h>

#include "core/share.h"
#include "keys.h"
#include "tcp/watch.h"
#include "tcp/watch_worker.h"
#include "twheel.h"
#include "waiters.h"

/*
 * Timers are allocated in blocks. The upper half of a handle is the timer's generation; the lower
 * TWHEEL_INDEX_BITS are its number: that of its block, and below it its index within the block.
 */
#define TWHEEL_BLOCK_ORDER	3
#define TWHEEL_BLOCK_BYTES	(PAGE_SIZE << TWHEEL_BLOCK_ORDER)
#define TWHEEL_SLOT_BITS	10
#define TWHEEL_INDEX_BITS	32

/* Timers looked at before a context's lock is dropped. */
#define TWHEEL_LOCK_BATCH	64

/**
 * enum twheel_kind - kinds of timers of a context, by the structure that each needs
 * @TWHEEL_BASIC: struct twheel_utimer
 * @TWHEEL_WITH_KEY: struct twheel_keyed_timer
 * @TWHEEL_EXTENDED: struct twheel_extended_timer
 * @TWHEEL_WITH_WATCH: struct twheel_sock_timer
 * @TWHEEL_NR_KINDS: the number of kinds
 *
 * Each structure begins with the one before it.
 */
enum twheel_kind {
	TWHEEL_BASIC,
	TWHEEL_WITH_KEY,
	TWHEEL_EXTENDED,
	TWHEEL_WITH_WATCH,
	TWHEEL_NR_KINDS,
};

/*
 * struct twheel_node::state holds an enum twheel_utimer_state, whether the timer is in the keys of
 * its context, and for each of its previous lives whether that ended with a delivery, the last one
 * first.
 */
#define TWHEEL_STATE_MASK	0x7
#define TWHEEL_HASHED		0x8
#define TWHEEL_HISTORY_SHIFT	4
#define TWHEEL_HISTORY_BITS	12

/* No timer has this number: the end of the list of events, see struct twheel_expired. */
#define TWHEEL_NO_EVENT		U32_MAX

struct mem_cgroup;
struct twheel_ring_buffer;
struct twheel_touch_array;

/**
 * struct twheel_context - an open of /dev/twheel
 * @lock:	guards the fields up to @blocks, and every timer: the core requires that calls for
 *		one timer are serialised, and its _bhoff() calls that softirqs are disabled. Taken
 *		with softirqs disabled, in process context and by timer callbacks. Nests outside
 *		the core's locks
 * @free:	free timers of each kind, linked by @timer.node.next; the last one freed comes
 *		first
 * @first_event: the timer that expired first, the head of a list linked by @expired.next;
 *		%TWHEEL_NO_EVENT if the list is empty
 * @last_event:	the tail of that list, likewise
 * @postponed:	postponed timers, for @postponed_work, linked by @timer.node.link
 * @share:	how much of its share of softirq time the context has used
 * @clocked:	timers on clocks that can jump, linked by twheel_extended_timer.clock_link
 * @closing:	the last close has happened: nothing expires any more
 * @max_timers:	this context's limit; the module's may be lower
 * @nr_timers:	timers in use
 * @nr_events:	number of expired timers; poll reads it without @lock
 * @stats:	see struct twheel_context_stats; its @nr_timers and @nr_events are not used
 * @seq:	number of the next event; without a ring, written with @read_lock held as well
 * @blocks:	the blocks, by number. Replaced under @grow_lock and @lock
 * @nr_blocks:	number of blocks
 * @capacity:	how many @blocks can hold; under @grow_lock
 * @ring:	the ring, or NULL. Set once, under @grow_lock, @read_lock and @lock
 * @touch:	the touch array, or NULL. Set once, under @grow_lock and @lock
 * @keys:	timers with a key
 * @user:	the user that opened the device; constant
 * @used_by:	the uid that made the last call for the context, or opened it. Written by any
 *		caller, without a lock
 * @payer:	the memory cgroup charged for what the kernel arms by itself: that of the task
 *		that opened the device. Holds a reference; constant
 * @event_keys:	events name timers by their keys. Set once, under @lock
 * @has_clocks:	timers on clocks that jump may be added. Set once, under @lock
 * @has_watches: timers that watch connections may be added. Set once, under sock_timer.c's
 *		lock
 * @waiters:	waiters for @nr_events to become non-zero, or for the ring
 * @read_lock:	admits one reader at a time, so that events are numbered in the order in which
 *		they are delivered. Nests outside @lock and inside @grow_lock
 * @grow_lock:	serialises allocations. Nests outside @lock and @read_lock
 * @clock_link:	in the list of contexts with @clocked in clock_jumps.c; guarded there
 * @queued_jump: the clock jump up to which @clock_work has been queued; likewise
 * @clock_work:	re-arms the timers on @clocked
 * @postponed_work: expires or re-arms the timers on @postponed
 * @watch_worker: the worker for watches that are due
 * @destroy_work: destroys the context if a kernel thread or another user closed it
 * @free_work:	frees the context after a grace period, if it has had watches
 */
struct twheel_context {
	spinlock_t			lock;
	struct twheel_node		*free[TWHEEL_NR_KINDS];
	u32				first_event;
	u32				last_event;
	struct list_head		postponed;
	struct twheel_share		share;
	struct list_head		clocked;
	bool				closing;
	u64				max_timers;
	u64				nr_timers;
	u64				nr_events;
	struct twheel_context_stats	stats;
	u64				seq;
	struct twheel_block		**blocks;
	unsigned long			nr_blocks;
	unsigned long			capacity;
	struct twheel_ring_buffer	*ring;
	struct twheel_touch_array	*touch;
	struct twheel_keys		keys;
	struct twheel_user		*user;
	kuid_t				used_by;
	struct mem_cgroup		*payer;
	bool				event_keys;
	bool				has_clocks;
	bool				has_watches;
	struct twheel_waiters		waiters;
	struct mutex			read_lock;
	struct mutex			grow_lock;
	struct list_head		clock_link;
	u32				queued_jump;
	struct work_struct		clock_work;
	struct work_struct		postponed_work;
	struct twheel_watch_worker	watch_worker;
	struct work_struct		destroy_work;
	struct rcu_work			free_work;
};

/**
 * enum twheel_utimer_state - the life of a struct twheel_utimer
 * @TWHEEL_FREE: not in use: no handle names it
 * @TWHEEL_PENDING: armed. The core may have dequeued it already: it expires once its callback
 *	gets the context's lock
 * @TWHEEL_POSTPONED: it came due and is on a list for a worker to check. The program sees it as
 *	pending
 * @TWHEEL_EXPIRED: on the list of events
 * @TWHEEL_IN_DELIVERY: off the list, on its way to a reader. Becomes free, or pending if it is
 *	periodic; or expired again if the reader's buffer turns out to be bad
 * @TWHEEL_WITH_WORKER: due, as far as can be known without the lock of the socket that it
 *	watches: twheel_watch_kind.evaluate() decides. The program sees it as pending
 * @TWHEEL_IN_ACTION: expired, and its connection is being shut down or reset. The event is
 *	queued when that is done
 */
enum twheel_utimer_state {
	TWHEEL_FREE,
	TWHEEL_PENDING,
	TWHEEL_POSTPONED,
	TWHEEL_EXPIRED,
	TWHEEL_IN_DELIVERY,
	TWHEEL_WITH_WORKER,
	TWHEEL_IN_ACTION,
};

/**
 * struct twheel_expired - overlays a node's entry once its timer has expired
 * @deadline:	the node's
 * @fired:	when the timer expired, in nanoseconds
 * @prev:	the timer whose event is delivered before this one's, by the lower half of its
 *		handle; or %TWHEEL_NO_EVENT
 * @next:	the timer whose event is delivered after this one's, likewise
 *
 * Neighbours are named by number rather than by address, so that the structure fits into fields
 * that only an armed timer uses, and need not overlay the timer's function.
 */
struct twheel_expired {
	u64				deadline;
	u64				fired;
	u32				prev;
	u32				next;
};

static_assert(offsetof(struct twheel_expired, deadline) ==
	      offsetof(struct twheel_node, deadline));
static_assert(offsetof(struct twheel_expired, fired) == offsetof(struct twheel_node, location));
static_assert(sizeof(struct twheel_expired) <= offsetof(struct twheel_node, owner));

/**
 * struct twheel_utimer - a timer of a context
 * @timer:	the core's part; its deadline is the timer's. See above for @timer.node.state.
 *		@timer.node.generation is the upper half of the handle that names the timer, or
 *		will name it when it is used next
 * @node:	the node of @timer, of which all but the entry is valid when the timer has expired
 * @expired:	in state %TWHEEL_EXPIRED
 * @user_data:	the program's
 */
struct twheel_utimer {
	union {
		struct twheel_timer	timer;
		struct twheel_node	node;
		struct twheel_expired	expired;
	};
	u64				user_data;
};

/**
 * struct twheel_keyed_timer - a timer with a key
 * @ut:		the timer
 * @key:	the program's
 * @next:	the next timer in the same bucket of the context's key table
 */
struct twheel_keyed_timer {
	struct twheel_utimer		ut;
	u64				key;
	struct twheel_keyed_timer	*next;
};

/**
 * enum twheel_deferred_op - an operation put off because its timer was busy
 * @TWHEEL_DEFERRED_NONE: none: arm the timer for its next period; or do what the worker decided
 * @TWHEEL_DEFERRED_REARM: it was re-armed meanwhile: arm it for that
 * @TWHEEL_DEFERRED_CANCEL: it was cancelled meanwhile: free it
 *
 * Carried out when the event of a periodic timer has been delivered, or when the worker is done
 * with a timer that watches a connection.
 */
enum twheel_deferred_op {
	TWHEEL_DEFERRED_NONE,
	TWHEEL_DEFERRED_REARM,
	TWHEEL_DEFERRED_CANCEL,
};

/* A flag of struct twheel_extended_timer: it was added with an idle timeout or a lifetime. */
#define TWHEEL_HAS_LIMITS	0x80

/**
 * struct twheel_extended_timer - a timer with more than a deadline on CLOCK_MONOTONIC
 * @kt:		the timer; @kt.key is valid only with TWHEEL_KEYED in @flags
 * @deadline:	the deadline on @clock, in nanoseconds; or %TWHEEL_TIME_NONE
 * @period:	in nanoseconds, or 0
 * @slack:	slack of each period's deadline, in nanoseconds
 * @idle:	the idle timeout in nanoseconds, or 0
 * @last_active: the last known activity, in nanoseconds of CLOCK_MONOTONIC
 * @lifetime_end: the end of the lifetime, in nanoseconds of CLOCK_MONOTONIC; or %TWHEEL_TIME_NONE
 * @missed:	with @period: periods that have passed since the one that the event is for
 * @last_future: with TWHEEL_TOUCHED in @flags: the last value of @touch that lay in the future
 *		when it was read; or 0
 * @clock_link:	in the context's list if @clock can jump
 * @seen_jump:	the last clock jump that the timer's arming takes into account
 * @touch:	the index into the touch array, with TWHEEL_TOUCHED in @flags
 * @flags:	TWHEEL_KEYED, TWHEEL_TOUCHED, TWHEEL_WATCHED, TWHEEL_HAS_LIMITS
 * @clock:	the clock of @deadline
 * @added_on:	the clock that the timer was added with
 * @limit:	an enum twheel_limit: the one that the timer is armed for
 * @deferred_op: an enum twheel_deferred_op
 */
struct twheel_extended_timer {
	struct twheel_keyed_timer	kt;
	u64				deadline;
	u64				period;
	u64				slack;
	u64				idle;
	u64				last_active;
	u64				lifetime_end;
	union {
		u64			missed;
		u64			last_future;
	};
	struct list_head		clock_link;
	u32				seen_jump;
	u32				touch;
	u8				flags;
	u8				clock;
	u8				added_on;
	u8				limit;
	u8				deferred_op;
};

/**
 * struct twheel_sock_timer - a timer that watches a connection
 * @et:		the timer
 * @watch:	the socket's side. In the table from the add until the timer ends or the worker
 *		decides that it has expired
 * @retry_at:	when the worker is to try again because the socket was busy, in nanoseconds of
 *		CLOCK_MONOTONIC; or %TWHEEL_TIME_NONE
 */
struct twheel_sock_timer {
	struct twheel_extended_timer	et;
	struct twheel_watch		watch;
	u64				retry_at;
};

/**
 * struct twheel_block - a block of timers, aligned to its size
 * @ctx:	the context
 * @number:	the block's number
 * @kind:	an enum twheel_kind: the kind of @timers
 * @timers:	the timers
 */
struct twheel_block {
	struct twheel_context		*ctx;
	u32				number;
	u32				kind;
	u8				timers[];
};

/* The block that holds a timer. */
static inline struct twheel_block *twheel_block_of(const struct twheel_utimer *ut)
{
	return (struct twheel_block *)((unsigned long)ut & ~(TWHEEL_BLOCK_BYTES - 1));
}

static inline enum twheel_utimer_state twheel_state_of(const struct twheel_utimer *ut)
{
	return ut->node.state & TWHEEL_STATE_MASK;
}

static inline void twheel_set_state(struct twheel_utimer *ut, enum twheel_utimer_state state)
{
	ut->node.state = (ut->node.state & ~TWHEEL_STATE_MASK) | state;
}

static inline enum twheel_kind twheel_kind_of(const struct twheel_utimer *ut)
{
	return twheel_block_of(ut)->kind;
}

static inline struct twheel_keyed_timer *twheel_keyed(struct twheel_utimer *ut)
{
	return container_of(ut, struct twheel_keyed_timer, ut);
}

static inline struct twheel_extended_timer *twheel_extended(struct twheel_utimer *ut)
{
	return container_of(ut, struct twheel_extended_timer, kt.ut);
}

static inline struct twheel_sock_timer *twheel_sock_timer_of(struct twheel_utimer *ut)
{
	return container_of(ut, struct twheel_sock_timer, et.kt.ut);
}

/* Is the timer a struct twheel_extended_timer, or more? */
static inline bool twheel_is_extended(const struct twheel_utimer *ut)
{
	return twheel_kind_of(ut) >= TWHEEL_EXTENDED;
}

static inline bool twheel_is_periodic(struct twheel_utimer *ut)
{
	return twheel_is_extended(ut) && twheel_extended(ut)->period;
}

/**
 * twheel_context_note_caller - note that the current task makes a call for a context
 * @ctx:	the context
 *
 * When this task closes the context, it counts as a user of it; see twheel_context_destroy().
 *
 * Context: process.
 */
static inline void twheel_context_note_caller(struct twheel_context *ctx)
{
	const kuid_t uid = current_uid();

	/* Pairs with twheel_context_destroy(). Usually unchanged: the cache line stays shared. */
	if (!uid_eq(READ_ONCE(ctx->used_by), uid))
		WRITE_ONCE(ctx->used_by, uid);
}

int twheel_contexts_init(void);
void twheel_contexts_wait(void);
void twheel_contexts_exit(void);
struct twheel_context *twheel_context_create(void);
void twheel_context_destroy(struct twheel_context *ctx);
void twheel_context_limit(struct twheel_context *ctx, u64 max);
u64 twheel_context_bytes(struct twheel_context *ctx);
unsigned int twheel_nr_contexts(void);

#endif /* _TWHEEL_DEVICE_CONTEXT_H */
