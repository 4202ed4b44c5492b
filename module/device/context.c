// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: creating and destroying contexts
 */
#include <linux/cred.h>
#include <linux/gfp.h>
#include <linux/kmemleak.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "clock_jumps.h"
#include "context.h"
#include "core/pages.h"
#include "deliver.h"
#include "keys.h"
#include "lib/inject.h"
#include "lib/mapping.h"
#include "lib/memory.h"
#include "lib/users.h"
#include "pool.h"
#include "postponed.h"
#include "ring.h"
#include "sock_timer.h"
#include "touch.h"
#include "waiters.h"

/* Contexts that have not been destroyed yet. */
static atomic_t nr_contexts = ATOMIC_INIT(0);

/* Frees contexts that RCU readers might still access. */
static struct workqueue_struct *free_queue;

/**
 * twheel_contexts_init - prepare for contexts
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int __init twheel_contexts_init(void)
{
	twheel_sock_timers_register();
	free_queue = alloc_workqueue("twheel_free", WQ_UNBOUND, 0);
	return free_queue ? 0 : -ENOMEM;
}

/**
 * twheel_contexts_wait - wait until all closed contexts have been freed
 *
 * Context: process; may sleep. No context is open any more.
 */
void twheel_contexts_wait(void)
{
	wait_var_event(&nr_contexts, !atomic_read(&nr_contexts));
	/* After this, contexts that waited for a grace period are on the queue. */
	rcu_barrier();
	flush_workqueue(free_queue);
}

/**
 * twheel_contexts_exit - undo twheel_contexts_init()
 *
 * Context: process; may sleep. There are no contexts left.
 */
void twheel_contexts_exit(void)
{
	destroy_workqueue(free_queue);
}

/**
 * twheel_nr_contexts - number of contexts that have not been destroyed yet
 *
 * Context: any.
 * Return: the number.
 */
unsigned int twheel_nr_contexts(void)
{
	return atomic_read(&nr_contexts);
}

/**
 * twheel_context_create - create an empty context
 *
 * Context: process.
 * Return: the context, or NULL if out of memory.
 */
struct twheel_context *twheel_context_create(void)
{
	struct twheel_context *ctx = kzalloc(sizeof(*ctx), TWHEEL_GFP_USER);

	if (!ctx)
		return NULL;
	ctx->user = twheel_user_get(current_user_ns());
	if (!ctx->user) {
		kfree(ctx);
		return NULL;
	}
	ctx->used_by = current_uid();
	ctx->payer = get_mem_cgroup_from_mm(current->mm);
	spin_lock_init(&ctx->lock);
	ctx->first_event = TWHEEL_NO_EVENT;
	ctx->last_event = TWHEEL_NO_EVENT;
	twheel_clocks_init(ctx);
	twheel_deliver_init(ctx);
	twheel_sock_timers_init(ctx);
	twheel_waiters_init(&ctx->waiters, ctx->user->queue);
	mutex_init(&ctx->read_lock);
	mutex_init(&ctx->grow_lock);
	ctx->max_timers = U64_MAX;
	atomic_inc(&nr_contexts);
	return ctx;
}

/* From here on, expiry no longer adds timers to the events. */
static void stop_events(struct twheel_context *ctx)
{
	spin_lock_bh(&ctx->lock);
	ctx->closing = true;
	spin_unlock_bh(&ctx->lock);
}

/* Frees what cannot be reached through a watch that was found in the table. */
static void free_parts(struct twheel_context *ctx)
{
	twheel_keys_destroy(ctx);
	twheel_ring_destroy(ctx);
	twheel_touch_destroy(ctx);
	twheel_pool_free(ctx, false);
}

/* Frees the rest: no one can reach the context any more. */
static void free_context(struct twheel_context *ctx)
{
	twheel_sock_timers_leave(ctx);
	twheel_pool_free(ctx, true);
	kvfree(ctx->blocks);
	mem_cgroup_put(ctx->payer);
	kfree(ctx);
	twheel_pages_trim_later();
}

static void free_context_work(struct work_struct *work)
{
	free_context(container_of(to_rcu_work(work), struct twheel_context, free_work));
}

/*
 * Does not wait for code that has found a watch of the context in the table: what it accesses is
 * freed after a grace period.
 */
static void destroy_context(struct twheel_context *ctx)
{
	stop_events(ctx);
	twheel_waiters_stop(&ctx->waiters);
	twheel_clocks_leave(ctx);
	twheel_postponed_stop(ctx);
	twheel_sock_timers_stop(ctx);
	twheel_pool_stop(ctx);
	twheel_user_put(ctx->user);
	free_parts(ctx);
	if (ctx->has_watches) {
		INIT_RCU_WORK(&ctx->free_work, free_context_work);
		queue_rcu_work(free_queue, &ctx->free_work);
	} else {
		free_context(ctx);
	}
	if (atomic_dec_and_test(&nr_contexts))
		wake_up_var(&nr_contexts);
}

static void destroy_context_work(struct work_struct *work)
{
	destroy_context(container_of(work, struct twheel_context, destroy_work));
}

/**
 * twheel_context_destroy - cancel all timers of a context and free it
 * @ctx:	the context; only callbacks still use it
 *
 * A task that was passed the descriptor by another user, and has not used it, does not wait for
 * this. Nor does a kernel thread that puts the last reference to a file, as it has other files to
 * put. In both cases the user's worker does it.
 *
 * Context: process.
 */
void twheel_context_destroy(struct twheel_context *ctx)
{
	/* Pairs with twheel_context_note_caller(). */
	if (!(current->flags & PF_KTHREAD) && uid_eq(READ_ONCE(ctx->used_by), current_uid())) {
		destroy_context(ctx);
		return;
	}
	stop_events(ctx);
	INIT_WORK(&ctx->destroy_work, destroy_context_work);
	queue_work(ctx->user->queue, &ctx->destroy_work);
}

/**
 * twheel_context_limit - set a context's own limit on its timers
 * @ctx:	the context
 * @max:	the limit, at least 1
 *
 * Context: process.
 */
void twheel_context_limit(struct twheel_context *ctx, u64 max)
{
	spin_lock_bh(&ctx->lock);
	ctx->max_timers = max;
	spin_unlock_bh(&ctx->lock);
}

/**
 * twheel_context_bytes - how much memory a context uses
 * @ctx:	the context
 *
 * Context: process.
 * Return: bytes of its timers, keys and mappings.
 */
u64 twheel_context_bytes(struct twheel_context *ctx)
{
	u64 bytes;

	spin_lock_bh(&ctx->lock);
	bytes = sizeof(*ctx) + ctx->capacity * sizeof(*ctx->blocks) +
		ctx->nr_blocks * TWHEEL_BLOCK_BYTES + twheel_keys_bytes(ctx) +
		twheel_mapping_bytes(twheel_ring_mapping(ctx)) +
		twheel_mapping_bytes(twheel_touch_mapping(ctx));
	spin_unlock_bh(&ctx->lock);
	return bytes;
}
