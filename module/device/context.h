/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: contexts: what an open of /dev/twheel holds
 *
 * With the timers that it has: their memory, and the states that they go through.
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
 * Timers are allocated in blocks. A handle is the timer's generation, and below it
 * INDEX_BITS of its number: that of its block, and below it that within the block.
 */
#define TWHEEL_BLOCK_ORDER	3
#define TWHEEL_BLOCK_BYTES	(PAGE_SIZE << TWHEEL_BLOCK_ORDER)
#define TWHEEL_SLOT_BITS	10
#define TWHEEL_INDEX_BITS	32

/* Timers that are looked at before a context's lock is let go of. */
#define TWHEEL_LOCK_BATCH	64

/**
 * enum twheel_kind - how much memory a timer of a context has
 * @TWHEEL_BASIC: struct twheel_utimer
 * @TWHEEL_WITH_KEY: struct twheel_keyed_timer
 * @TWHEEL_EXTENDED: struct twheel_extended_timer
 * @TWHEEL_WITH_WATCH: struct twheel_sock_timer
 * @TWHEEL_NR_KINDS: their number
 *
 * Each begins with the one before.
 */
enum twheel_kind {
	TWHEEL_BASIC,
	TWHEEL_WITH_KEY,
	TWHEEL_EXTENDED,
	TWHEEL_WITH_WATCH,
	TWHEEL_NR_KINDS,
};

/*
 * struct twheel_node::state: an enum twheel_utimer_state, whether the timer is in its
 * context's keys, and for each of the lives before whether it ended with a delivery, the
 * last one first.
 */
#define TWHEEL_STATE_MASK	0x7
#define TWHEEL_HASHED		0x8
#define TWHEEL_HISTORY_SHIFT	4
#define TWHEEL_HISTORY_BITS	12

/* The number of no timer: see struct twheel_expired. */
#define TWHEEL_NO_EVENT		U32_MAX

struct mem_cgroup;
struct twheel_ring_buffer;
struct twheel_touch_array;

/**
 * struct twheel_context - an open of /dev/twheel
 * @lock:	guards what follows, up to @blocks, and every timer; the engine
 *		wants calls for one timer to be serialised, and its _bhoff() calls softirqs
 *		off. Taken with softirqs off, in process context and by the timers'
 *		callbacks. Outside of the engine's locks
 * @free:	of each kind, timers that are not in use, the last one freed first, by
 *		@timer.node.next
 * @first_event: the first of the timers that have expired, in this order, by
 *		@expired.next; %TWHEEL_NO_EVENT if there is none
 * @last_event:	the last of them, likewise
 * @postponed:	timers that postponed.c's worker is to look at, by @timer.node.link
 * @share:	what was taken of the context's share of the softirqs
 * @clocked:	timers on clocks that can jump, by twheel_extended_timer.clock_link
 * @closing:	the last close has come: nothing expires any more
 * @max_timers:	limit of this context; that of the module may be lower
 * @nr_timers:	timers in use
 * @nr_events:	how many timers have expired; read without @lock by poll
 * @stats:	see struct twheel_context_stats; @nr_timers and @nr_events are not used
 * @seq:	number of the next event; written with @read_lock held as well
 * @blocks:	the blocks, by number. Replaced under @grow_lock and @lock
 * @nr_blocks:	their number
 * @capacity:	how many @blocks can hold; under @grow_lock
 * @ring:	the ring, or NULL. Set once, under @grow_lock, @read_lock and @lock
 * @touch:	the touch array, or NULL. Set once, likewise
 * @keys:	timers with a key
 * @user:	who has opened the device; constant
 * @used_by:	who has called for it last, or opened it. Written by any caller, with no lock
 * @payer:	the memory cgroup that is charged for what the kernel arms by itself: that of who
 *		has opened the device. With a reference; constant
 * @event_keys:	events name timers by their keys. Set once, under @lock
 * @has_clocks:	timers on clocks that jump may be added. Set once, under @lock
 * @has_watches: timers that watch connections may be added. Set once, under sock_timer.c's
 *		lock
 * @waiters:	who waits for @nr_events to be more than 0, or for the ring
 * @read_lock:	one reader at a time, so that events are numbered in the order in
 *		which they are delivered. Outside of @lock, inside of @grow_lock
 * @grow_lock:	one at a time allocates. Outside of @lock and @read_lock
 * @clock_link:	in clocks.c's list of contexts with @clocked; guarded there
 * @queued_jump:	the jump of clocks up to which @clock_work has been queued; likewise
 * @clock_work:	arms the timers of @clocked anew
 * @postponed_work: looks at those of @postponed
 * @watch_worker:	watches that are due
 * @destroy_work: destroys the context, when a kernel's thread has closed it
 * @free_work: frees it, when it has had watches
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
 * @TWHEEL_FREE: in no use: no handle names it
 * @TWHEEL_PENDING: armed. The engine may have taken it out of the wheel already:
 *	it expires when its callback gets the context's lock
 * @TWHEEL_POSTPONED: has come up, and waits in a list for a worker to look at it. For the
 *	program it is pending
 * @TWHEEL_EXPIRED: in the list of events
 * @TWHEEL_IN_DELIVERY: out of the list, on its way to a reader. Becomes free, or pending
 *	if it is periodic; or expired again if the reader's buffer turns out to be bad
 * @TWHEEL_WITH_WORKER: due, as far as can be seen without the lock of the socket that it
 *	watches: twheel_watch_kind.judge() has the word. For the program it is pending
 * @TWHEEL_IN_ACTION: has expired, and its connection is being shut down or reset. The event
 *	comes when that is done
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
 * struct twheel_expired - what takes the place of a node's entry when its timer has expired
 * @deadline:	the node's
 * @fired:	when the timer expired, in nanoseconds
 * @prev:	the timer whose event is delivered before this one's, by the lower half of
 *		its handle; or %TWHEEL_NO_EVENT
 * @next:	the timer whose event is delivered after it, likewise
 *
 * Neighbours are named by number, not by address, so that all of it fits into what only an
 * armed timer uses, and nothing has to lie over the timer's function.
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
 * @timer:	the engine's part; its deadline is the timer's. @timer.node.state is
 *		explained above, @timer.node.generation the upper half of the
 *		handle that names the timer, or will name it when it is used next
 * @node:	the same, as far as it is there when the timer has expired
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
 * @next:	the next timer of the same bucket of the context's keys
 */
struct twheel_keyed_timer {
	struct twheel_utimer		ut;
	u64				key;
	struct twheel_keyed_timer	*next;
};

/**
 * enum twheel_deferred_op - what to do with a periodic timer when its event has been delivered, or
 * with one that watches a connection when the worker lets go of it
 * @TWHEEL_DEFERRED_NONE: arm it for its next period; or do what the worker has decided
 * @TWHEEL_DEFERRED_REARM: it was re-armed meanwhile: arm it for that
 * @TWHEEL_DEFERRED_CANCEL: it was cancelled meanwhile: free it
 */
enum twheel_deferred_op {
	TWHEEL_DEFERRED_NONE,
	TWHEEL_DEFERRED_REARM,
	TWHEEL_DEFERRED_CANCEL,
};

/* A flag of struct twheel_extended_timer: added with an idle timeout or a lifetime. */
#define TWHEEL_HAS_LIMITS	0x80

/**
 * struct twheel_extended_timer - a timer with more than a deadline on CLOCK_MONOTONIC
 * @kt:		the timer; @kt.key only with @flags TWHEEL_KEYED
 * @deadline:	the deadline on @clock, in nanoseconds; or %TWHEEL_TIME_NONE
 * @period:	in nanoseconds, or 0
 * @slack:	of each period's deadline, in nanoseconds
 * @idle:	the idle timeout in nanoseconds, or 0
 * @last_active:	the last activity known, in nanoseconds of CLOCK_MONOTONIC
 * @lifetime_end:	end of the lifetime, in nanoseconds of CLOCK_MONOTONIC; or %TWHEEL_TIME_NONE
 * @missed:	with @period: periods that passed since the one that its event is about
 * @last_future:	with @flags TWHEEL_TOUCHED: the last time that @touch held which lay in the future
 *		when it was read; or 0
 * @clock_link:	in the context's list if @clock can jump
 * @seen_jump:	the jump of clocks up to which the timer is armed rightly
 * @touch:	the word of the touch array, with @flags TWHEEL_TOUCHED
 * @flags:	TWHEEL_KEYED, TWHEEL_TOUCHED, TWHEEL_WATCHED, TWHEEL_HAS_LIMITS
 * @clock:	the clock of @deadline
 * @added_on:	the clock that the timer was added with
 * @limit:	an enum twheel_limit: the one that the timer is armed for
 * @deferred_op:	an enum twheel_deferred_op
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
 * @retry_at:	when to have the worker look again, in nanoseconds of CLOCK_MONOTONIC, as the
 *		socket was busy; or %TWHEEL_TIME_NONE
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
 * @kind:	an enum twheel_kind: what the timers are
 * @timers:	its timers
 */
struct twheel_block {
	struct twheel_context		*ctx;
	u32				number;
	u32				kind;
	u8				timers[];
};

/* The block that a timer is in. */
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

/* Is it a struct twheel_extended_timer, or more? */
static inline bool twheel_is_extended(const struct twheel_utimer *ut)
{
	return twheel_kind_of(ut) >= TWHEEL_EXTENDED;
}

static inline bool twheel_is_periodic(struct twheel_utimer *ut)
{
	return twheel_is_extended(ut) && twheel_extended(ut)->period;
}

/**
 * twheel_context_used - this task makes a call for a context
 * @ctx:	the context
 *
 * Its close() is that of a user of the context then; see twheel_context_destroy().
 *
 * Context: process.
 */
static inline void twheel_context_used(struct twheel_context *ctx)
{
	const kuid_t uid = current_uid();

	/* Pairs with twheel_context_destroy(). Mostly it is so, and the cache line stays shared. */
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
