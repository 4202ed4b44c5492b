/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the blocks that hold a context's timers: looking up, allocating and freeing one
 *
 * Short functions that run for each operation of an array are here; the rest is in pool.c.
 */
#ifndef _TWHEEL_DEVICE_POOL_H
#define _TWHEEL_DEVICE_POOL_H

#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/nospec.h>

#include "context.h"

/**
 * struct twheel_kind_ops - what is specific to timers of a kind
 *
 * All are called with the context's lock held.
 *
 * @last_activity: the time of the last activity, in nanoseconds of CLOCK_MONOTONIC and not after
 *		@now
 * @handle_due:	the timer is due and not armed any more: find out whether it has expired, and act
 *		on it
 * @unqueue:	the timer, in state %TWHEEL_WITH_WORKER, is being cancelled. Returns true if it can
 *		be freed; if not, the worker will free it
 * @unlink:	the timer ends
 */
struct twheel_kind_ops {
	u64	(*last_activity)(struct twheel_extended_timer *et, u64 now);
	void	(*handle_due)(struct twheel_utimer *ut);
	bool	(*unqueue)(struct twheel_utimer *ut);
	void	(*unlink)(struct twheel_utimer *ut);
};

/* Indexed by kind; NULL if a kind needs nothing special. Constant once there are contexts. */
extern const struct twheel_kind_ops *twheel_kind_ops[TWHEEL_NR_KINDS];

/**
 * struct twheel_layout - the layout of a block of timers of one kind
 * @size:	bytes of a timer
 * @nr:		timers in a block
 */
struct twheel_layout {
	unsigned int	size;
	unsigned int	nr;
};

/* Indexed by kind. */
extern const struct twheel_layout twheel_layouts[TWHEEL_NR_KINDS];

/* The module parameter max_timers; may be written at any time. */
extern unsigned int twheel_max_timers_param;

int twheel_context_grow(struct twheel_context *ctx, enum twheel_kind kind,
			void (*expired)(struct twheel_timer *timer));
void twheel_pool_stop(struct twheel_context *ctx);
void twheel_pool_free(struct twheel_context *ctx, bool with_watch);
void twheel_utimer_unlink(struct twheel_context *ctx, struct twheel_utimer *ut);
struct twheel_utimer *twheel_utimer_lookup(struct twheel_context *ctx, u64 handle);
struct twheel_utimer *twheel_utimer_next(struct twheel_context *ctx, u64 *cursor,
					 unsigned int *budget);
u64 twheel_utimer_handle(const struct twheel_utimer *ut);

/* The timer at index @i of a block; the caller has checked @i. */
static __always_inline struct twheel_utimer *twheel_block_utimer(struct twheel_block *block,
								 unsigned int i)
{
	return (struct twheel_utimer *)(block->timers +
					i * twheel_layouts[block->kind].size);
}

/* The timer whose number is the lower half of a handle, or NULL. */
static __always_inline struct twheel_utimer *twheel_utimer_at(struct twheel_context *ctx,
							      u32 index)
{
	u32 number = index >> TWHEEL_SLOT_BITS, i = index & ((1 << TWHEEL_SLOT_BITS) - 1), nr;
	struct twheel_block *block;

	if (unlikely(number >= ctx->nr_blocks))
		return NULL;
	block = ctx->blocks[array_index_nospec(number, ctx->nr_blocks)];
	nr = twheel_layouts[block->kind].nr;
	if (unlikely(i >= nr))
		return NULL;
	return twheel_block_utimer(block, array_index_nospec(i, nr));
}

/**
 * twheel_utimer_lookup_pending - look up a handle that names a pending timer
 * @ctx:	the context
 * @handle:	any number
 *
 * Context: with the context's lock held.
 * Return: the timer; NULL if it is not pending or does not exist: call twheel_utimer_lookup().
 */
static __always_inline struct twheel_utimer *
twheel_utimer_lookup_pending(struct twheel_context *ctx, u64 handle)
{
	struct twheel_utimer *ut = twheel_utimer_at(ctx, handle);

	lockdep_assert_held(&ctx->lock);
	if (unlikely(!ut || ut->node.generation != handle >> TWHEEL_INDEX_BITS ||
		     twheel_state_of(ut) != TWHEEL_PENDING))
		return NULL;
	return ut;
}

/* The handle of a timer of @size bytes. If @size is a constant, this needs no division. */
static __always_inline u64 twheel_handle_of(const struct twheel_utimer *ut, u32 size)
{
	const struct twheel_block *block = twheel_block_of(ut);
	u32 i = (u32)((const u8 *)ut - block->timers) / size;

	return (u64)ut->node.generation << TWHEEL_INDEX_BITS |
	       (u64)block->number << TWHEEL_SLOT_BITS | i;
}

/**
 * twheel_max_timers - how many timers a context may have
 * @ctx:	the context
 *
 * Context: with the context's lock held.
 * Return: the number.
 */
static __always_inline u64 twheel_max_timers(const struct twheel_context *ctx)
{
	/* A module parameter: may be written at any time. */
	return min_t(u64, READ_ONCE(twheel_max_timers_param), ctx->max_timers);
}

/**
 * twheel_timers_at_limit - check whether a context has as many timers as it may have
 * @ctx:	the context
 *
 * Context: with the context's lock held.
 * Return: true if it does.
 */
static __always_inline bool twheel_timers_at_limit(const struct twheel_context *ctx)
{
	return ctx->nr_timers >= twheel_max_timers(ctx);
}

/**
 * twheel_utimer_alloc - allocate a timer, which no handle names yet
 * @ctx:	the context
 * @kind:	the kind of timer
 *
 * Context: with the context's lock held.
 * Return: the timer, which the caller arms or passes to twheel_utimer_free(); NULL if
 * twheel_context_grow() must be called first.
 */
static __always_inline struct twheel_utimer *
twheel_utimer_alloc(struct twheel_context *ctx, enum twheel_kind kind)
{
	struct twheel_node *node = ctx->free[kind];

	lockdep_assert_held(&ctx->lock);
	if (unlikely(!node))
		return NULL;
	ctx->free[kind] = node->next;
	ctx->nr_timers++;
	return container_of(node, struct twheel_utimer, node);
}

/* Puts a timer on the list of free ones. */
static __always_inline void twheel_utimer_put(struct twheel_context *ctx,
					      struct twheel_utimer *ut, enum twheel_kind kind)
{
	ut->node.next = ctx->free[kind];
	ctx->free[kind] = &ut->node;
}

/**
 * twheel_utimer_free - free a timer
 * @ctx:	the context
 * @ut:		a timer that is neither armed nor on the list of events
 * @delivered:	its event has been delivered
 *
 * Its handle is stale from here on.
 *
 * Context: with the context's lock held.
 */
static __always_inline void twheel_utimer_free(struct twheel_context *ctx,
					       struct twheel_utimer *ut, bool delivered)
{
	enum twheel_kind kind = twheel_kind_of(ut);
	unsigned int history;

	lockdep_assert_held(&ctx->lock);
	if (unlikely(kind != TWHEEL_BASIC))
		twheel_utimer_unlink(ctx, ut);
	history = ut->node.state >> TWHEEL_HISTORY_SHIFT << 1 | delivered;
	ut->node.state = history << TWHEEL_HISTORY_SHIFT | TWHEEL_FREE;
	ctx->nr_timers--;
	/* Once its generation has wrapped, the timer is never used again. */
	if (likely(++ut->node.generation))
		twheel_utimer_put(ctx, ut, kind);
}

#endif /* _TWHEEL_DEVICE_POOL_H */
