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

#include "block.h"
#include "inject.h"

unsigned int twheel_most_timers = 1 << 20;
module_param_named(max_timers, twheel_most_timers, uint, 0644);
MODULE_PARM_DESC(max_timers, "most timers of one open file (default 1048576)");

static unsigned int max_timers_total = 1 << 26;
module_param(max_timers_total, uint, 0644);
MODULE_PARM_DESC(max_timers_total, "most timers that all open files have memory for (default 67108864)");

static atomic_t nr_contexts = ATOMIC_INIT(0);

/* Timers that all contexts have memory for. */
static atomic_long_t nr_allocated = ATOMIC_LONG_INIT(0);

/* A program that fills its memory cgroup is told so, and not killed. */
#define GFP_CONTEXT	(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

const struct twheel_layout twheel_layouts[TWHEEL_NR_KINDS] = {
#define FIT(type)	((TWHEEL_BLOCK_BYTES - sizeof(struct twheel_block)) / sizeof(type))
#define MOST		(1U << TWHEEL_SLOT_BITS)
#define KIND(type)	{ sizeof(type), FIT(type) < MOST ? FIT(type) : MOST }
	[TWHEEL_PLAIN]		= KIND(struct twheel_user_timer),
	[TWHEEL_WITH_KEY]	= KIND(struct twheel_keyed_timer),
	[TWHEEL_RICH]		= KIND(struct twheel_rich_timer),
	[TWHEEL_WITH_WATCH]	= KIND(struct twheel_watched_timer),
#undef KIND
#undef MOST
#undef FIT
};

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
	INIT_LIST_HEAD(&ctx->clocked);
	INIT_LIST_HEAD(&ctx->clock_link);
	init_waitqueue_head(&ctx->wait);
	mutex_init(&ctx->read_lock);
	mutex_init(&ctx->grow_lock);
	ctx->max_timers = U64_MAX;
	atomic_inc(&nr_contexts);
	return ctx;
}

static void block_free(struct twheel_block *block)
{
	atomic_long_sub(twheel_layouts[block->kind].nr, &nr_allocated);
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
	unsigned int i;

	for (i = 0; i < twheel_layouts[block->kind].nr; i++)
		twheel_cancel_sync(&twheel_block_timer(block, i)->timer);
}

/**
 * twheel_context_destroy - cancel all timers of a context and free it
 * @ctx:	the context; nobody uses it any more, but for callbacks
 *
 * Context: process.
 */
void twheel_context_destroy(struct twheel_context *ctx)
{
	unsigned long i;

	twheel_clocks_leave(ctx);
	close_events(ctx);
	twheel_watched_leave(ctx);
	for (i = 0; i < ctx->nr_blocks; i++) {
		block_stop(ctx->blocks[i]);
		cond_resched();
	}
	twheel_keys_destroy(ctx);
	twheel_ring_destroy(ctx);
	twheel_touch_destroy(ctx);
	for (i = 0; i < ctx->nr_blocks; i++)
		block_free(ctx->blocks[i]);
	kvfree(ctx->blocks);
	kfree(ctx);
	atomic_dec(&nr_contexts);
}

/**
 * twheel_context_limit - set a context's own limit on its timers
 * @ctx:	the context
 * @most:	the limit, at least 1
 *
 * Context: process.
 */
void twheel_context_limit(struct twheel_context *ctx, u64 most)
{
	spin_lock_bh(&ctx->lock);
	ctx->max_timers = most;
	spin_unlock_bh(&ctx->lock);
}

/* Reserves the right to another block in what all contexts may have. */
static int reserve(enum twheel_kind kind)
{
	/* A module parameter: may be written at any time. */
	if (atomic_long_add_return(twheel_layouts[kind].nr, &nr_allocated) <=
	    READ_ONCE(max_timers_total))
		return 0;
	atomic_long_sub(twheel_layouts[kind].nr, &nr_allocated);
	return -ENOSPC;
}

static struct twheel_block *block_create(struct twheel_context *ctx, enum twheel_kind kind)
{
	struct twheel_user_timer *ut;
	struct twheel_block *block;
	struct page *pages;
	unsigned int i;

	if (reserve(kind))
		return ERR_PTR(-ENOSPC);
	pages = alloc_pages(GFP_CONTEXT, TWHEEL_BLOCK_ORDER);
	if (!pages) {
		atomic_long_sub(twheel_layouts[kind].nr, &nr_allocated);
		return ERR_PTR(-ENOMEM);
	}
	block = page_address(pages);
	/* Pages are not what it looks for by itself. */
	kmemleak_alloc(block, TWHEEL_BLOCK_BYTES, 1, GFP_KERNEL);
	block->ctx = ctx;
	block->number = ctx->nr_blocks;
	block->kind = kind;
	for (i = 0; i < twheel_layouts[kind].nr; i++) {
		ut = twheel_block_timer(block, i);
		twheel_timer_init(&ut->timer, twheel_user_expired);
		ut->node.generation = twheel_inject_generation();
		if (kind >= TWHEEL_RICH)
			INIT_LIST_HEAD(&twheel_rich(ut)->clocked);
	}
	return block;
}

static void add_block(struct twheel_context *ctx, struct twheel_block *block)
{
	unsigned int i = twheel_layouts[block->kind].nr;

	spin_lock_bh(&ctx->lock);
	ctx->blocks[ctx->nr_blocks++] = block;
	while (i--)
		twheel_timer_put(ctx, twheel_block_timer(block, i), block->kind);
	spin_unlock_bh(&ctx->lock);
}

/* Makes room for one block more in the list of them. */
static int make_room(struct twheel_context *ctx)
{
	unsigned long room = ctx->room ? 2 * ctx->room : 8;
	struct twheel_block **blocks, **old = ctx->blocks;

	if (ctx->nr_blocks < ctx->room)
		return 0;
	if (room > 1UL << (TWHEEL_INDEX_BITS - TWHEEL_SLOT_BITS))
		return -ENOSPC;
	blocks = kvcalloc(room, sizeof(*blocks), GFP_CONTEXT);
	if (!blocks)
		return -ENOMEM;
	spin_lock_bh(&ctx->lock);
	if (ctx->nr_blocks)
		memcpy(blocks, old, ctx->nr_blocks * sizeof(*blocks));
	ctx->blocks = blocks;
	ctx->room = room;
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
 * twheel_context_grow - see to it that there is a free timer, for the moment
 * @ctx:	the context
 * @kind:	which kind of timer
 *
 * Context: process; may sleep.
 * Return:
 * * %0		- there was one when this looked
 * * %-ENOSPC	- the limit of the module is reached
 * * %-ENOMEM	- no memory
 * * %-EINTR	- the task is being killed
 */
int twheel_context_grow(struct twheel_context *ctx, enum twheel_kind kind)
{
	struct twheel_block *block;
	int ret;

	ret = mutex_lock_killable(&ctx->grow_lock);
	if (ret)
		return ret;
	/* Whoever held the lock may have grown the context. */
	if (has_free(ctx, kind))
		goto out;
	ret = make_room(ctx);
	if (ret)
		goto out;
	block = block_create(ctx, kind);
	ret = PTR_ERR_OR_ZERO(block);
	if (!ret)
		add_block(ctx, block);
out:
	mutex_unlock(&ctx->grow_lock);
	return ret;
}

/**
 * twheel_context_bytes - how much memory a context has
 * @ctx:	the context
 *
 * Context: process.
 * Return: bytes of its timers, keys and mappings.
 */
u64 twheel_context_bytes(struct twheel_context *ctx)
{
	u64 bytes;

	spin_lock_bh(&ctx->lock);
	bytes = sizeof(*ctx) + ctx->room * sizeof(*ctx->blocks) +
		ctx->nr_blocks * TWHEEL_BLOCK_BYTES + twheel_keys_bytes(ctx) +
		twheel_ring_bytes(ctx) + twheel_touch_bytes(ctx);
	spin_unlock_bh(&ctx->lock);
	return bytes;
}

/**
 * twheel_timer_unlink - take a timer out of what only timers that are not plain are in
 * @ctx:	the context
 * @ut:		the timer
 *
 * Context: with the context's lock held.
 */
void twheel_timer_unlink(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	enum twheel_kind kind = twheel_kind_of(ut);

	if (ut->node.state & TWHEEL_HASHED)
		twheel_keys_remove(ctx, ut);
	if (kind >= TWHEEL_RICH)
		list_del_init(&twheel_rich(ut)->clocked);
	if (kind == TWHEEL_WITH_WATCH)
		twheel_watched_unlink(ut);
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
	return twheel_handle_of(ut, twheel_layouts[twheel_kind_of(ut)].size);
}

/* What has become of an earlier life of a timer. */
static int history_of(const struct twheel_user_timer *ut, u32 generation)
{
	u32 back = ut->node.generation - generation;

	if (back <= TWHEEL_HISTORY_BITS &&
	    ut->node.state >> TWHEEL_HISTORY_SHIFT & 1U << (back - 1))
		return -EALREADY;
	return -ENOENT;
}

/* Would a handle find the timer? If not, why? */
static int presence(struct twheel_user_timer *ut)
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
	return twheel_rich(ut)->after == TWHEEL_AFTER_STOP ? -ENOENT : 0;
}

/**
 * twheel_timer_find - look up a handle
 * @ctx:	the context
 * @handle:	any number
 *
 * Context: with the context's lock held.
 * Return: the timer: pending, expired, with the worker, or periodic and in delivery; or an
 * error pointer:
 * * %-ENOENT	- the handle names none
 * * %-EALREADY	- its event has been delivered, or is about to be
 */
struct twheel_user_timer *twheel_timer_find(struct twheel_context *ctx, u64 handle)
{
	struct twheel_user_timer *ut = twheel_timer_at(ctx, handle);
	u32 generation = handle >> TWHEEL_INDEX_BITS;
	int ret;

	lockdep_assert_held(&ctx->lock);
	if (unlikely(!ut))
		return ERR_PTR(-ENOENT);
	if (unlikely(ut->node.generation != generation))
		return ERR_PTR(history_of(ut, generation));
	if (likely(twheel_state_of(ut) == TWHEEL_PENDING))
		return ut;
	ret = presence(ut);
	return ret ? ERR_PTR(ret) : ut;
}

/**
 * twheel_timer_next - go through the timers of a context
 * @ctx:	the context
 * @cursor:	where to begin; is set to where to go on. 0 is the beginning
 *
 * Looks at no more than a block, so that the caller can let go of the lock in between.
 *
 * Context: with the context's lock held.
 * Return: a timer as twheel_timer_find() would give it; NULL if there is none up to the end
 * of the block; an error pointer with -ENOENT at the end.
 */
struct twheel_user_timer *twheel_timer_next(struct twheel_context *ctx, u64 *cursor)
{
	u32 number = *cursor >> TWHEEL_SLOT_BITS, i = *cursor & ((1 << TWHEEL_SLOT_BITS) - 1), nr;
	struct twheel_user_timer *ut;
	struct twheel_block *block;

	lockdep_assert_held(&ctx->lock);
	if (*cursor >> TWHEEL_INDEX_BITS || number >= ctx->nr_blocks)
		return ERR_PTR(-ENOENT);
	block = ctx->blocks[array_index_nospec(number, ctx->nr_blocks)];
	nr = twheel_layouts[block->kind].nr;
	for (; i < nr; i++) {
		ut = twheel_block_timer(block, array_index_nospec(i, nr));
		if (!presence(ut)) {
			*cursor = ((u64)number << TWHEEL_SLOT_BITS) + i + 1;
			return ut;
		}
	}
	*cursor = ((u64)number + 1) << TWHEEL_SLOT_BITS;
	return NULL;
}
