// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: contexts: the memory of their timers, and the handles that name them
 *
 * A timer that is freed gets the next generation, so that the handles given out
 * before name it no more. When the generations of a timer are used up, it is not
 * used again: a handle is never given out twice.
 */
#include <linux/gfp.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "context.h"
#include "inject.h"

static unsigned int max_timers = 1 << 20;
module_param(max_timers, uint, 0644);
MODULE_PARM_DESC(max_timers, "most timers of one open file (default 1048576)");

static atomic_t nr_contexts = ATOMIC_INIT(0);

/**
 * twheel_max_timers - how many timers a context may have
 *
 * Context: any.
 * Return: the limit at this moment; contexts that have more keep them.
 */
u64 twheel_max_timers(void)
{
	/* A module parameter: may be written at any time. */
	return READ_ONCE(max_timers);
}

/**
 * twheel_nr_contexts - how many contexts are open
 *
 * Context: any.
 * Return: their number.
 */
unsigned int twheel_nr_contexts(void)
{
	return atomic_read(&nr_contexts);
}

/**
 * twheel_context_create - make an empty context
 *
 * Context: process.
 * Return: the context, or NULL if there is no memory.
 */
struct twheel_context *twheel_context_create(void)
{
	struct twheel_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return NULL;
	spin_lock_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->events);
	init_waitqueue_head(&ctx->wait);
	mutex_init(&ctx->read_lock);
	mutex_init(&ctx->grow_lock);
	xa_init_flags(&ctx->blocks, XA_FLAGS_ACCOUNT);
	atomic_inc(&nr_contexts);
	return ctx;
}

static void block_free(struct twheel_block *block)
{
	kmemleak_free(block);
	free_pages((unsigned long)block, TWHEEL_BLOCK_ORDER);
}

/* Expiry stops to link timers into the events, and those that are linked leave. */
static void close_events(struct twheel_context *ctx)
{
	struct twheel_user_timer *ut, *next;

	spin_lock_bh(&ctx->lock);
	ctx->closing = true;
	list_for_each_entry_safe(ut, next, &ctx->events, node.link)
		twheel_events_unqueue(ctx, ut);
	spin_unlock_bh(&ctx->lock);
}

/* A callback may still run for a timer that was cancelled long ago. */
static void block_stop(struct twheel_block *block)
{
	size_t i;

	for (i = 0; i < TWHEEL_BLOCK_TIMERS; i++)
		twheel_cancel_sync(&block->timers[i].timer);
}

/**
 * twheel_context_destroy - cancel all timers of a context and free it
 * @ctx:	the context; nobody uses it any more, but for callbacks
 *
 * Context: process.
 */
void twheel_context_destroy(struct twheel_context *ctx)
{
	struct twheel_block *block;
	unsigned long number;

	close_events(ctx);
	xa_for_each(&ctx->blocks, number, block) {
		block_stop(block);
		block_free(block);
		cond_resched();
	}
	xa_destroy(&ctx->blocks);
	kfree(ctx);
	atomic_dec(&nr_contexts);
}

static struct twheel_block *block_create(struct twheel_context *ctx, u64 number)
{
	struct twheel_block *block;
	struct page *pages;
	size_t i;

	BUILD_BUG_ON(TWHEEL_BLOCK_TIMERS > 1 << TWHEEL_SLOT_BITS);
	pages = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO, TWHEEL_BLOCK_ORDER);
	if (!pages)
		return NULL;
	block = page_address(pages);
	/* Pages are not what it looks for by itself. */
	kmemleak_alloc(block, TWHEEL_BLOCK_BYTES, 1, GFP_KERNEL);
	block->ctx = ctx;
	block->number = number;
	for (i = 0; i < TWHEEL_BLOCK_TIMERS; i++) {
		twheel_timer_init(&block->timers[i].timer, twheel_user_expired);
		block->timers[i].node.generation = twheel_inject_generation();
	}
	return block;
}

static void add_free(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	ut->node.next = ctx->free;
	ctx->free = &ut->node;
}

static void add_to_free(struct twheel_context *ctx, struct twheel_block *block)
{
	size_t i = TWHEEL_BLOCK_TIMERS;

	spin_lock_bh(&ctx->lock);
	while (i--)
		add_free(ctx, &block->timers[i]);
	spin_unlock_bh(&ctx->lock);
}

static bool has_free(struct twheel_context *ctx)
{
	bool has;

	spin_lock_bh(&ctx->lock);
	has = ctx->free;
	spin_unlock_bh(&ctx->lock);
	return has;
}

/* Makes sure that there is a free timer, for the moment. */
static int grow(struct twheel_context *ctx)
{
	struct twheel_block *block;
	int ret;

	ret = mutex_lock_killable(&ctx->grow_lock);
	if (ret)
		return ret;
	/* Whoever held the lock may have grown the context. */
	if (has_free(ctx))
		goto out;
	ret = -ENOSPC;
	if (ctx->nr_blocks >= 1UL << (TWHEEL_INDEX_BITS - TWHEEL_SLOT_BITS))
		goto out;
	ret = -ENOMEM;
	block = block_create(ctx, ctx->nr_blocks);
	if (!block)
		goto out;
	ret = xa_err(xa_store(&ctx->blocks, ctx->nr_blocks, block, GFP_KERNEL_ACCOUNT));
	if (ret) {
		block_free(block);
		goto out;
	}
	ctx->nr_blocks++;
	add_to_free(ctx, block);
out:
	mutex_unlock(&ctx->grow_lock);
	return ret;
}

/* Takes a free timer; NULL if a block must be added first. */
static struct twheel_user_timer *take_free(struct twheel_context *ctx)
{
	struct twheel_user_timer *ut;

	lockdep_assert_held(&ctx->lock);
	if (ctx->nr_timers >= twheel_max_timers())
		return ERR_PTR(-ENOSPC);
	if (!ctx->free)
		return NULL;
	ut = container_of(ctx->free, struct twheel_user_timer, node);
	ctx->free = ut->node.next;
	ctx->nr_timers++;
	return ut;
}

/**
 * twheel_timer_reserve - get a timer that no handle names yet
 * @ctx:	the context
 *
 * Context: process; may sleep.
 * Return: the timer, to be given to twheel_user_add() or twheel_timer_release(); or
 * an error pointer:
 * * %-ENOSPC	- the limit is reached
 * * %-ENOMEM	- no memory
 * * %-EINTR	- the task is being killed
 */
struct twheel_user_timer *twheel_timer_reserve(struct twheel_context *ctx)
{
	struct twheel_user_timer *ut;
	int ret;

	for (;;) {
		spin_lock_bh(&ctx->lock);
		ut = take_free(ctx);
		spin_unlock_bh(&ctx->lock);
		if (ut)
			return ut;
		ret = grow(ctx);
		if (ret)
			return ERR_PTR(ret);
	}
}

/**
 * twheel_timer_release - free a timer
 * @ctx:	the context; locked
 * @ut:		a timer that is neither armed nor in the list of events
 *
 * Its handle is stale from here on.
 *
 * Context: with the context's lock held.
 */
void twheel_timer_release(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	lockdep_assert_held(&ctx->lock);
	ut->node.state = TWHEEL_FREE;
	ut->node.generation++;
	ctx->nr_timers--;
	/* The generation has wrapped: the timer is never used again. */
	if (unlikely(!ut->node.generation))
		return;
	add_free(ctx, ut);
}

/**
 * twheel_timer_handle - what names a timer
 * @ut:		the timer
 *
 * Context: any; the handle changes when the timer is released.
 * Return: the handle.
 */
u64 twheel_timer_handle(const struct twheel_user_timer *ut)
{
	const struct twheel_block *block = twheel_block_of(ut);
	u64 handle = ut->node.generation;

	handle = handle << TWHEEL_INDEX_BITS | block->number << TWHEEL_SLOT_BITS;
	return handle | (ut - block->timers);
}

/**
 * twheel_timer_find - look up a handle
 * @ctx:	the context
 * @handle:	any number
 *
 * Context: with the context's lock held.
 * Return: the timer, pending or expired; NULL if the handle names none.
 */
struct twheel_user_timer *twheel_timer_find(struct twheel_context *ctx, u64 handle)
{
	u32 index = handle;
	struct twheel_user_timer *ut;
	struct twheel_block *block;

	lockdep_assert_held(&ctx->lock);
	block = xa_load(&ctx->blocks, index >> TWHEEL_SLOT_BITS);
	index &= (1 << TWHEEL_SLOT_BITS) - 1;
	if (!block || index >= TWHEEL_BLOCK_TIMERS)
		return NULL;
	ut = &block->timers[array_index_nospec(index, TWHEEL_BLOCK_TIMERS)];
	if (ut->node.generation != handle >> TWHEEL_INDEX_BITS)
		return NULL;
	if (ut->node.state != TWHEEL_PENDING && ut->node.state != TWHEEL_EXPIRED)
		return NULL;
	return ut;
}
