// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the memory of a context's timers, and the handles that name them
 *
 * Freeing a timer advances its generation, so that handles given out before no longer name it.
 * When the generations of a timer are used up, it is never used again: no handle is given out
 * twice.
 */
#include <linux/gfp.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "context.h"
#include "keys.h"
#include "lib/inject.h"
#include "lib/memory.h"
#include "pool.h"
#include "twheel.h"

unsigned int twheel_max_timers_param = 1 << 20;
module_param_named(max_timers, twheel_max_timers_param, uint, 0644);
MODULE_PARM_DESC(max_timers, "most timers of one open file (default 1048576)");

static unsigned int max_timers_total = 1 << 26;
module_param(max_timers_total, uint, 0644);
MODULE_PARM_DESC(max_timers_total, "most timers that all open files have memory for (default 67108864)");

const struct twheel_kind_ops *twheel_kind_ops[TWHEEL_NR_KINDS];

/* Timers that memory has been allocated for, in all contexts. */
static atomic_long_t nr_allocated = ATOMIC_LONG_INIT(0);

const struct twheel_layout twheel_layouts[TWHEEL_NR_KINDS] = {
#define FIT(type)	((TWHEEL_BLOCK_BYTES - sizeof(struct twheel_block)) / sizeof(type))
#define MAX_NR		(1U << TWHEEL_SLOT_BITS)
#define KIND(type)	{ sizeof(type), FIT(type) < MAX_NR ? FIT(type) : MAX_NR }
	[TWHEEL_BASIC]		= KIND(struct twheel_utimer),
	[TWHEEL_WITH_KEY]	= KIND(struct twheel_keyed_timer),
	[TWHEEL_EXTENDED]	= KIND(struct twheel_extended_timer),
	[TWHEEL_WITH_WATCH]	= KIND(struct twheel_sock_timer),
#undef KIND
#undef MAX_NR
#undef FIT
};

static void free_block(struct twheel_block *block)
{
	atomic_long_sub(twheel_layouts[block->kind].nr, &nr_allocated);
	kmemleak_free(block);
	free_pages((unsigned long)block, TWHEEL_BLOCK_ORDER);
}

static void stop_block(struct twheel_block *block)
{
	struct twheel_utimer *ut;
	unsigned int i;

	for (i = 0; i < twheel_layouts[block->kind].nr; i++) {
		ut = twheel_block_utimer(block, i);
		/* Not armed, but other data overlays the field that says so. */
		if (twheel_state_of(ut) == TWHEEL_EXPIRED ||
		    twheel_state_of(ut) == TWHEEL_POSTPONED)
			ut->node.location = 0;
		twheel_cancel_sync(&ut->timer);
	}
}

/**
 * twheel_pool_stop - wait for the callbacks of all timers of a context
 * @ctx:	the context, which is closing
 *
 * A callback may still be running for a timer that was cancelled long ago.
 *
 * Context: process; may sleep.
 */
void twheel_pool_stop(struct twheel_context *ctx)
{
	unsigned long i;

	for (i = 0; i < ctx->nr_blocks; i++) {
		stop_block(ctx->blocks[i]);
		cond_resched();
	}
}

/**
 * twheel_pool_free - free timers of a context
 * @ctx:	the context, which is not in use any more
 * @with_watch:	free those that can watch connections, or else the others
 *
 * Context: process; may sleep.
 */
void twheel_pool_free(struct twheel_context *ctx, bool with_watch)
{
	struct twheel_block *block;
	unsigned long i;
	bool watches;

	for (i = 0; i < ctx->nr_blocks; i++) {
		block = ctx->blocks[i];
		if (!block)
			continue;
		watches = block->kind == TWHEEL_WITH_WATCH;
		if (watches == with_watch) {
			free_block(block);
			ctx->blocks[i] = NULL;
		}
		cond_resched();
	}
}

/* Charges another block to the limit that all contexts share. */
static int reserve_block(enum twheel_kind kind)
{
	/* A module parameter: may be written at any time. */
	if (atomic_long_add_return(twheel_layouts[kind].nr, &nr_allocated) <=
	    READ_ONCE(max_timers_total))
		return 0;
	atomic_long_sub(twheel_layouts[kind].nr, &nr_allocated);
	return -ENOSPC;
}

static struct twheel_block *create_block(struct twheel_context *ctx, enum twheel_kind kind,
					 void (*expired)(struct twheel_timer *timer))
{
	struct twheel_utimer *ut;
	struct twheel_block *block;
	struct page *pages;
	unsigned int i;

	if (reserve_block(kind))
		return ERR_PTR(-ENOSPC);
	pages = alloc_pages(TWHEEL_GFP_USER | __GFP_ZERO, TWHEEL_BLOCK_ORDER);
	if (!pages) {
		atomic_long_sub(twheel_layouts[kind].nr, &nr_allocated);
		return ERR_PTR(-ENOMEM);
	}
	block = page_address(pages);
	/* kmemleak does not track pages by itself. */
	kmemleak_alloc(block, TWHEEL_BLOCK_BYTES, 1, GFP_KERNEL);
	block->ctx = ctx;
	block->number = ctx->nr_blocks;
	block->kind = kind;
	for (i = 0; i < twheel_layouts[kind].nr; i++) {
		ut = twheel_block_utimer(block, i);
		twheel_timer_init(&ut->timer, expired);
		ut->node.generation = twheel_inject_generation();
		if (kind >= TWHEEL_EXTENDED)
			INIT_LIST_HEAD(&twheel_extended(ut)->clock_link);
	}
	return block;
}

/* Adds a block to a context. Its timers are linked to each other before the lock is taken. */
static void add_block(struct twheel_context *ctx, struct twheel_block *block)
{
	unsigned int i, nr = twheel_layouts[block->kind].nr;

	for (i = 0; i < nr - 1; i++)
		twheel_block_utimer(block, i)->node.next = &twheel_block_utimer(block, i + 1)->node;
	spin_lock_bh(&ctx->lock);
	ctx->blocks[ctx->nr_blocks++] = block;
	twheel_block_utimer(block, nr - 1)->node.next = ctx->free[block->kind];
	ctx->free[block->kind] = &twheel_block_utimer(block, 0)->node;
	spin_unlock_bh(&ctx->lock);
}

/* Makes room for another block in the array of blocks, which changes only under @grow_lock. */
static int grow_block_list(struct twheel_context *ctx)
{
	unsigned long capacity = ctx->capacity ? 2 * ctx->capacity : 8;
	struct twheel_block **blocks, **old = ctx->blocks;

	if (ctx->nr_blocks < ctx->capacity)
		return 0;
	if (capacity > 1UL << (TWHEEL_INDEX_BITS - TWHEEL_SLOT_BITS))
		return -ENOSPC;
	blocks = kvcalloc(capacity, sizeof(*blocks), TWHEEL_GFP_USER);
	if (!blocks)
		return -ENOMEM;
	if (ctx->nr_blocks)
		memcpy(blocks, old, ctx->nr_blocks * sizeof(*blocks));
	spin_lock_bh(&ctx->lock);
	ctx->blocks = blocks;
	ctx->capacity = capacity;
	spin_unlock_bh(&ctx->lock);
	kvfree(old);
	return 0;
}

static bool has_free(struct twheel_context *ctx, enum twheel_kind kind)
{
	bool has;

	spin_lock_bh(&ctx->lock);
	has = ctx->free[kind];
	spin_unlock_bh(&ctx->lock);
	return has;
}

/**
 * twheel_context_grow - make sure that a context has a free timer
 * @ctx:	the context
 * @kind:	the kind of timer
 * @expired:	the callback of the kind's timers, called in softirq context
 *
 * The timer may be gone again by the time the caller takes the context's lock.
 *
 * Context: process; may sleep.
 * Return:
 * * %0		- there is one, or there was when this checked
 * * %-ENOSPC	- the module's limit is reached
 * * %-ENOMEM	- out of memory
 * * %-EINTR	- the task is being killed
 */
int twheel_context_grow(struct twheel_context *ctx, enum twheel_kind kind,
			void (*expired)(struct twheel_timer *timer))
{
	struct twheel_block *block;
	int ret;

	ret = mutex_lock_killable(&ctx->grow_lock);
	if (ret)
		return ret;
	/* The previous holder of the lock may have grown the context. */
	if (has_free(ctx, kind))
		goto out;
	ret = grow_block_list(ctx);
	if (ret)
		goto out;
	block = create_block(ctx, kind, expired);
	ret = PTR_ERR_OR_ZERO(block);
	if (!ret)
		add_block(ctx, block);
out:
	mutex_unlock(&ctx->grow_lock);
	return ret;
}

/**
 * twheel_utimer_unlink - unlink a timer from its context's keys and clocks, and from its watch
 * @ctx:	the context
 * @ut:		the timer
 *
 * Context: with the context's lock held.
 */
void twheel_utimer_unlink(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	enum twheel_kind kind = twheel_kind_of(ut);

	if (ut->node.state & TWHEEL_HASHED)
		twheel_keys_remove(ctx, ut);
	if (kind >= TWHEEL_EXTENDED)
		list_del_init(&twheel_extended(ut)->clock_link);
	if (twheel_kind_ops[kind])
		twheel_kind_ops[kind]->unlink(ut);
}

/**
 * twheel_utimer_handle - the handle that names a timer
 * @ut:		the timer
 *
 * Context: any; the handle changes when the timer is freed.
 * Return: the handle.
 */
u64 twheel_utimer_handle(const struct twheel_utimer *ut)
{
	return twheel_handle_of(ut, twheel_layouts[twheel_kind_of(ut)].size);
}

/* The errno for a handle of one of the timer's previous lives. */
static int stale_errno(const struct twheel_utimer *ut, u32 generation)
{
	u32 age = ut->node.generation - generation;

	if (age <= TWHEEL_HISTORY_BITS &&
	    ut->node.state >> TWHEEL_HISTORY_SHIFT & 1U << (age - 1))
		return -EALREADY;
	return -ENOENT;
}

/* Returns 0 if a handle finds the timer, or else the errno for it. */
static int lookup_errno(struct twheel_utimer *ut)
{
	switch (twheel_state_of(ut)) {
	case TWHEEL_FREE:
		return -ENOENT;
	case TWHEEL_IN_DELIVERY:
		if (!twheel_is_periodic(ut))
			return -EALREADY;
		break;
	case TWHEEL_WITH_WORKER:
	case TWHEEL_IN_ACTION:
		break;
	default:
		return 0;
	}
	return twheel_extended(ut)->deferred_op == TWHEEL_DEFERRED_CANCEL ? -ENOENT : 0;
}

/**
 * twheel_utimer_lookup - look up a handle
 * @ctx:	the context
 * @handle:	any number
 *
 * Context: with the context's lock held.
 * Return: the timer: pending, postponed, expired, with the worker, in action, or periodic and in
 * delivery; or an error pointer:
 * * %-ENOENT	- the handle names no timer
 * * %-EALREADY	- the timer's event has been delivered, or is about to be
 */
struct twheel_utimer *twheel_utimer_lookup(struct twheel_context *ctx, u64 handle)
{
	struct twheel_utimer *ut = twheel_utimer_at(ctx, handle);
	u32 generation = handle >> TWHEEL_INDEX_BITS;
	int ret;

	lockdep_assert_held(&ctx->lock);
	if (unlikely(!ut))
		return ERR_PTR(-ENOENT);
	if (unlikely(ut->node.generation != generation))
		return ERR_PTR(stale_errno(ut, generation));
	if (likely(twheel_state_of(ut) == TWHEEL_PENDING))
		return ut;
	ret = lookup_errno(ut);
	return ret ? ERR_PTR(ret) : ut;
}

/**
 * twheel_utimer_next - iterate over the timers of a context
 * @ctx:	the context
 * @cursor:	where to begin, 0 for the start; updated to where to continue
 * @budget:	how many timers may be looked at before the lock is dropped: %TWHEEL_LOCK_BATCH when
 *		it has just been taken. Counts down
 *
 * Context: with the context's lock held.
 * Return: a timer that twheel_utimer_lookup() would return; NULL if the rest of the block has none,
 * or @budget ran out before one was found; an error pointer with -ENOENT at the end.
 */
struct twheel_utimer *twheel_utimer_next(struct twheel_context *ctx, u64 *cursor,
					 unsigned int *budget)
{
	u32 number = *cursor >> TWHEEL_SLOT_BITS, i = *cursor & ((1 << TWHEEL_SLOT_BITS) - 1);
	struct twheel_utimer *ut;
	struct twheel_block *block;
	u32 nr;

	lockdep_assert_held(&ctx->lock);
	if (*cursor >> TWHEEL_INDEX_BITS || number >= ctx->nr_blocks)
		return ERR_PTR(-ENOENT);
	block = ctx->blocks[array_index_nospec(number, ctx->nr_blocks)];
	nr = twheel_layouts[block->kind].nr;
	for (; i < nr && *budget; i++, --*budget) {
		ut = twheel_block_utimer(block, array_index_nospec(i, nr));
		if (!lookup_errno(ut)) {
			*cursor = ((u64)number << TWHEEL_SLOT_BITS) + i + 1;
			--*budget;
			return ut;
		}
	}
	*cursor = i < nr ? ((u64)number << TWHEEL_SLOT_BITS) + i :
			   ((u64)number + 1) << TWHEEL_SLOT_BITS;
	return NULL;
}
