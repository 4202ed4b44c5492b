/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: contexts: what an open of /dev/twheel holds
 *
 * context.c makes and ends contexts and the memory of their timers, timers.c adds,
 * cancels, re-arms and queries, events.c delivers, chardev.c is the device.
 */
#ifndef _TWHEEL_CONTEXT_H
#define _TWHEEL_CONTEXT_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "twheel.h"

/*
 * Timers are allocated in blocks. A handle is the timer's generation, and below it
 * INDEX_BITS of its number: that of its block, and below it that within the block.
 */
#define TWHEEL_BLOCK_ORDER	3
#define TWHEEL_BLOCK_BYTES	(PAGE_SIZE << TWHEEL_BLOCK_ORDER)
#define TWHEEL_SLOT_BITS	10
#define TWHEEL_INDEX_BITS	32

/**
 * struct twheel_context - an open of /dev/twheel
 * @lock:	guards what follows, up to @blocks, and every timer; the engine
 *		wants calls for one timer to be serialised. Taken with softirqs off, in process
 *		context and by the timers' callbacks. Outside of the engine's locks
 * @free:	timers that are not in use, the last one freed first, by @timer.node.next
 * @events:	timers that have expired, in this order, by @timer.node.link
 * @closing:	the last close has come: nothing expires any more
 * @nr_timers:	timers in use
 * @nr_events:	length of @events; read without @lock by poll
 * @seq:	number of the next event; written with @read_lock held as well
 * @wait:	who waits for @nr_events to be more than 0
 * @read_lock:	one reader at a time, so that events are numbered in the order in
 *		which they are delivered. Outside of @lock
 * @grow_lock:	one at a time allocates a block. Outside of @lock
 * @blocks:	the blocks, by number. Grows under @grow_lock, read without
 * @nr_blocks:	their number; under @grow_lock
 */
struct twheel_context {
	spinlock_t		lock;
	struct twheel_node	*free;
	struct list_head	events;
	bool			closing;
	u64			nr_timers;
	u64			nr_events;
	u64			seq;
	wait_queue_head_t	wait;
	struct mutex		read_lock;
	struct mutex		grow_lock;
	struct xarray		blocks;
	unsigned long		nr_blocks;
};

/**
 * enum twheel_user_state - the life of a struct twheel_user_timer
 * @TWHEEL_FREE: in no use, or reserved and not yet published: no handle names it
 * @TWHEEL_PENDING: armed. The engine may have taken it out of the wheel already:
 *	it expires when its callback gets the context's lock
 * @TWHEEL_EXPIRED: in the list of events
 * @TWHEEL_IN_DELIVERY: out of the list, on its way to a reader. Becomes free, or
 *	expired again if the reader's buffer turns out to be bad
 */
enum twheel_user_state {
	TWHEEL_FREE,
	TWHEEL_PENDING,
	TWHEEL_EXPIRED,
	TWHEEL_IN_DELIVERY,
};

/**
 * struct twheel_user_timer - a timer of a context
 * @timer:	the engine's part; its deadline is the timer's. @timer.node.state is
 *		an enum twheel_user_state, @timer.node.generation the upper half of the
 *		handle that names the timer, or will name it when it is used next
 * @node:	the same, as far as it is there when the timer has expired
 * @fired:	when it expired, in nanoseconds; takes the place of what only an armed
 *		timer has
 * @user_data:	the program's
 */
struct twheel_user_timer {
	union {
		struct twheel_timer		timer;
		struct {
			struct twheel_node	node;
			u64			fired;
		};
	};
	u64				user_data;
};

/**
 * struct twheel_block - a block of timers, aligned to its size
 * @ctx:	the context
 * @number:	the block's number
 * @timers:	its timers
 */
struct twheel_block {
	struct twheel_context		*ctx;
	u64				number;
	struct twheel_user_timer	timers[];
};

/* The block that a timer is in. */
static inline struct twheel_block *twheel_block_of(const struct twheel_user_timer *ut)
{
	return (struct twheel_block *)((unsigned long)ut & ~(TWHEEL_BLOCK_BYTES - 1));
}

#define TWHEEL_BLOCK_TIMERS \
	min_t(size_t, 1 << TWHEEL_SLOT_BITS, \
	      (TWHEEL_BLOCK_BYTES - offsetof(struct twheel_block, timers)) / \
	      sizeof(struct twheel_user_timer))

/* context.c */
struct twheel_context *twheel_context_create(void);
void twheel_context_destroy(struct twheel_context *ctx);
struct twheel_user_timer *twheel_timer_reserve(struct twheel_context *ctx);
void twheel_timer_release(struct twheel_context *ctx, struct twheel_user_timer *ut);
struct twheel_user_timer *twheel_timer_find(struct twheel_context *ctx, u64 handle);
u64 twheel_timer_handle(const struct twheel_user_timer *ut);
u64 twheel_max_timers(void);
unsigned int twheel_nr_contexts(void);

/* timers.c */
struct twheel_timer_query;
void twheel_user_expired(struct twheel_timer *timer);
void twheel_user_add(struct twheel_context *ctx, struct twheel_user_timer *ut,
		     u64 expires, u64 user_data);
int twheel_user_cancel(struct twheel_context *ctx, u64 handle);
int twheel_user_rearm(struct twheel_context *ctx, u64 handle, u64 expires);
int twheel_user_query(struct twheel_context *ctx, struct twheel_timer_query *query);

/* events.c */
void twheel_events_queue(struct twheel_context *ctx, struct twheel_user_timer *ut);
void twheel_events_unqueue(struct twheel_context *ctx, struct twheel_user_timer *ut);
ssize_t twheel_events_read(struct twheel_context *ctx, struct iov_iter *to, bool nonblock);
__poll_t twheel_events_poll(struct twheel_context *ctx, struct file *file, poll_table *wait);

/* chardev.c */
int twheel_chardev_init(void);
void twheel_chardev_exit(void);

/* debugfs.c */
void twheel_debugfs_init(void);
void twheel_debugfs_exit(void);

#endif /* _TWHEEL_CONTEXT_H */
