// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: clocks that jump
 *
 * The wheels know CLOCK_MONOTONIC only. A time of another clock is converted when its
 * timer is armed, and that is wrong as soon as the clock is set or the system has
 * slept: the timer would come late if the clock has jumped forward. (If it was set back
 * the timer comes up early, and is armed anew: see limits.c.)
 *
 * The timekeeping core tells of each jump (timekeeper.c). It does so with its lock held, so the
 * jump is counted and no more, and work is queued for each context that has timers of such
 * clocks: it arms anew all those that have not seen this jump. Contexts are kept in a list, and
 * their timers in one of the context; those that have seen the latest jump are at the ends. A
 * timer that is armed in between has
 *
 *	timekeeping			arming
 *	the clock's offset changes
 *	jumps++				jump = jumps
 *					reads the offset, not before the change is over
 *
 * seen the new offset, or is found by the work, or both. The works of a user's contexts take turns
 * (users.c), and whoever closes one waits for nothing but a portion of its own.
 */
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/workqueue.h>

#include "clock_jumps.h"
#include "clocks.h"
#include "context.h"
#include "lib/compat.h"
#include "lib/users.h"
#include "limits.h"
#include "postponed.h"

/* Timers armed anew before the lock is let go of. */
#define BATCH	32

/*
 * Guards @contexts, and their @clock_link and @clock_jump. Taken in process context; with no
 * other lock held, or taken inside.
 */
static DEFINE_SPINLOCK(contexts_lock);
static LIST_HEAD(contexts);

/* Arms some timers anew that have not seen a jump. Returns whether there may be more. */
static bool rearm_batch(struct twheel_context *ctx, u32 jump)
{
	struct twheel_extended_timer *et;
	u64 now = ktime_get_ns();
	unsigned int i;
	bool more;

	spin_lock_bh(&ctx->lock);
	more = !ctx->closing;
	for (i = 0; more && i < BATCH; i++) {
		et = list_first_entry_or_null(&ctx->clocked, struct twheel_extended_timer,
					      clock_link);
		more = et && et->seen_jump != jump;
		if (!more)
			break;
		et->seen_jump = jump;
		list_move_tail(&et->clock_link, &ctx->clocked);
		if (twheel_state_of(&et->kt.ut) == TWHEEL_PENDING)
			twheel_utimer_arm_again(ctx, &et->kt.ut,
						twheel_extended_expiry(ctx, et, now), now);
	}
	spin_unlock_bh(&ctx->lock);
	return more;
}

/* The work of a context: a portion. A jump that comes meanwhile has it queued again. */
static void rearm_clocked_work(struct work_struct *work)
{
	struct twheel_context *ctx = container_of(work, struct twheel_context, clock_work);

	if (rearm_batch(ctx, atomic_read(&twheel_clock_jumps)))
		queue_work(ctx->user->queue, &ctx->clock_work);
}

/* Queues the work of a context that has not seen a jump. Returns whether there may be more. */
static bool queue_next_context(u32 jump)
{
	struct twheel_context *ctx;
	bool more;

	spin_lock(&contexts_lock);
	ctx = list_first_entry_or_null(&contexts, struct twheel_context, clock_link);
	more = ctx && ctx->queued_jump != jump;
	if (more) {
		ctx->queued_jump = jump;
		list_move_tail(&ctx->clock_link, &contexts);
		queue_work(ctx->user->queue, &ctx->clock_work);
	}
	spin_unlock(&contexts_lock);
	return more;
}

static void handle_jump(struct work_struct *work)
{
	while (queue_next_context(atomic_read(&twheel_clock_jumps)))
		cond_resched();
}

static DECLARE_WORK(jump_work, handle_jump);

static void queue_jump_work(struct irq_work *work)
{
	queue_work(system_dfl_wq, &jump_work);
}

static DEFINE_IRQ_WORK(jump_irq_work, queue_jump_work);

/**
 * twheel_clocks_jumped - the kernel says that clocks were set
 * @realtime:	what CLOCK_REALTIME shows more than CLOCK_MONOTONIC
 * @boottime:	likewise CLOCK_BOOTTIME
 *
 * It says so on other occasions, too: nothing has jumped unless one of these has changed.
 *
 * Context: with the kernel's clocks locked: nothing here may take a lock.
 */
void twheel_clocks_jumped(ktime_t realtime, ktime_t boottime)
{
	static ktime_t last_realtime, last_boottime;

	if (realtime == last_realtime && boottime == last_boottime)
		return;
	last_realtime = realtime;
	last_boottime = boottime;
	/* Orders the new offset before the count. Pairs with twheel_clock_set_deadline(). */
	atomic_inc_return(&twheel_clock_jumps);
	irq_work_queue(&jump_irq_work);
}

/**
 * twheel_clocks_exit - wait for what the last jump has caused
 *
 * Context: process; may sleep. No jump is told of any more, and there are no contexts.
 */
void twheel_clocks_exit(void)
{
	irq_work_sync(&jump_irq_work);
	flush_work(&jump_work);
}

/**
 * twheel_clocks_create - a context is made
 * @ctx:	the context
 *
 * Context: process.
 */
void twheel_clocks_create(struct twheel_context *ctx)
{
	INIT_LIST_HEAD(&ctx->clocked);
	INIT_LIST_HEAD(&ctx->clock_link);
	INIT_WORK(&ctx->clock_work, rearm_clocked_work);
}

/**
 * twheel_clocks_join - from now on, a context may have timers on clocks that jump
 * @ctx:	the context
 *
 * Context: process.
 */
void twheel_clocks_join(struct twheel_context *ctx)
{
	spin_lock(&contexts_lock);
	if (list_empty(&ctx->clock_link)) {
		ctx->queued_jump = atomic_read(&twheel_clock_jumps);
		list_add_tail(&ctx->clock_link, &contexts);
	}
	spin_unlock(&contexts_lock);
	spin_lock_bh(&ctx->lock);
	ctx->has_clocks = true;
	spin_unlock_bh(&ctx->lock);
}

/**
 * twheel_clocks_leave - a context is about to end
 * @ctx:	the context, which is closing
 *
 * Context: process; may sleep.
 */
void twheel_clocks_leave(struct twheel_context *ctx)
{
	spin_lock(&contexts_lock);
	list_del_init(&ctx->clock_link);
	spin_unlock(&contexts_lock);
	cancel_work_sync(&ctx->clock_work);
}
