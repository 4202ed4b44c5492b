// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: clocks that jump
 *
 * The wheels know only CLOCK_MONOTONIC. A time on another clock is converted when its timer is
 * armed, and the result is wrong as soon as the clock is set or the system has slept: if the clock
 * has jumped forward, the timer would expire late. (If it was set back, the timer comes due early
 * and is re-armed: see limits.c.)
 *
 * The timekeeping core reports each jump (timekeeper.c). It does so with its lock held, and since
 * Linux 6.13 before it changes the offset that others read. So the jump is counted when the update
 * is over, and work is queued for each context that has timers on such clocks; the work re-arms all
 * of them that have not seen this jump. Contexts are on a list, and the timers of each on a list of
 * the context's; those that have seen the latest jump are at the tail. A timer that is armed
 * meanwhile has
 *
 *	timekeeping, then count_jump()	arming
 *	the clock's offset changes
 *	jumps++				seen_jump = jumps
 *					reads the offset
 *
 * seen the new offset, or the work finds it, or both. The work items of one user's contexts take
 * turns (users.c), and closing a context waits for no more than one batch of its own.
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

/* Timers re-armed before the lock is dropped. */
#define BATCH	32

/*
 * Guards @contexts, and their @clock_link and @queued_jump. Taken in process context, with no other
 * lock held or taken inside.
 */
static DEFINE_SPINLOCK(contexts_lock);
static LIST_HEAD(contexts);

/* Re-arms a batch of timers that have not seen a jump. Returns whether there may be more. */
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

/* Handles one batch of a context's timers. A jump in the meantime queues the work again. */
static void rearm_clocked_work(struct work_struct *work)
{
	struct twheel_context *ctx = container_of(work, struct twheel_context, clock_work);

	/* Offsets are read after this. Pairs with count_jump(). */
	if (rearm_batch(ctx, atomic_read_acquire(&twheel_clock_jumps)))
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

static void count_jump(struct irq_work *work)
{
	struct timespec64 unused;

	/*
	 * The update that was reported last may still go on, on another CPU. To read a clock is to
	 * wait for its end; offsets are read without that.
	 */
	ktime_get_coarse_real_ts64(&unused);
	/*
	 * Orders the new offset before the count. Pairs with twheel_clock_set_deadline() and
	 * rearm_clocked_work().
	 */
	atomic_inc_return(&twheel_clock_jumps);
	queue_work(system_dfl_wq, &jump_work);
}

static DEFINE_IRQ_WORK(jump_irq_work, count_jump);

/**
 * twheel_clocks_jumped - handle a notification that clocks were set
 * @realtime:	by how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC
 * @boottime:	likewise CLOCK_BOOTTIME
 *
 * The kernel sends it on other occasions, too: nothing has jumped unless one of these has changed.
 *
 * Context: with the timekeeping lock held: no lock may be taken here.
 */
void twheel_clocks_jumped(ktime_t realtime, ktime_t boottime)
{
	static ktime_t last_realtime, last_boottime;

	if (realtime == last_realtime && boottime == last_boottime)
		return;
	last_realtime = realtime;
	last_boottime = boottime;
	irq_work_queue(&jump_irq_work);
}

/**
 * twheel_clock_jumps_exit - wait for the work that the last jump has caused
 *
 * Context: process; may sleep. No more jumps are reported, and there are no contexts.
 */
void twheel_clock_jumps_exit(void)
{
	irq_work_sync(&jump_irq_work);
	flush_work(&jump_work);
}

/**
 * twheel_clocks_init - initialise a context's list of timers on clocks that jump
 * @ctx:	the context
 *
 * Context: process.
 */
void twheel_clocks_init(struct twheel_context *ctx)
{
	INIT_LIST_HEAD(&ctx->clocked);
	INIT_LIST_HEAD(&ctx->clock_link);
	INIT_WORK(&ctx->clock_work, rearm_clocked_work);
}

/**
 * twheel_clocks_join - allow a context to have timers on clocks that jump
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
 * twheel_clocks_leave - stop re-arming the timers of a context
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
