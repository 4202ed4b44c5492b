// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: clocks that jump
 *
 * The wheels know CLOCK_MONOTONIC only. A time of another clock is converted when its
 * timer is armed, and that is wrong as soon as the clock is set or the system has
 * slept: the timer would come late if the clock has jumped forward. (If it was set back
 * the timer comes up early, and is armed anew: see rich.c.)
 *
 * The timekeeping core tells of each jump. It does so with its lock held, so the
 * notifier counts the jump and no more, and a worker arms anew all timers of such clocks
 * that have not seen this jump. Contexts keep them in a list, those that have seen
 * the latest jump at its end. A timer that is armed in between has
 *
 *	notifier			arming
 *	the clock's offset changes
 *	jumps++				jump = jumps
 *					reads the offset, not before the change is over
 *
 * seen the new offset, or is found by the worker, or both.
 */
#include <linux/irq_work.h>
#include <linux/pvclock_gtod.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/ktime.h>
#include <linux/workqueue.h>

#include "context.h"

/* Timers armed anew before the lock is let go of. */
#define PORTION	32

/* Guards @contexts and the registration. Process context; outside of a context's locks. */
static DEFINE_MUTEX(clocks_lock);
static LIST_HEAD(contexts);
static atomic_t jumps = ATOMIC_INIT(0);

/**
 * twheel_clock_read - what a clock shows
 * @clock:	CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME
 * @now:	what CLOCK_MONOTONIC shows, in nanoseconds
 *
 * Context: any but NMI.
 * Return: nanoseconds.
 */
u64 twheel_clock_read(u8 clock, u64 now)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return ktime_mono_to_any(now, TK_OFFS_REAL);
	case CLOCK_BOOTTIME:
		return ktime_mono_to_any(now, TK_OFFS_BOOT);
	default:
		return now;
	}
}

/**
 * twheel_clock_to_monotonic - when does a clock show a time?
 * @clock:	as for twheel_clock_read()
 * @time:	the time, in nanoseconds, below 2^63
 * @now:	what CLOCK_MONOTONIC shows, in nanoseconds
 *
 * Context: any but NMI.
 * Return: nanoseconds of CLOCK_MONOTONIC, if the clock is not set; @now if it has shown
 * the time already.
 */
u64 twheel_clock_to_monotonic(u8 clock, u64 time, u64 now)
{
	u64 shows;

	if (clock == CLOCK_MONOTONIC)
		return time;
	shows = twheel_clock_read(clock, now);
	return time > shows ? min_t(u64, now + (time - shows), TWHEEL_TIME_MAX) : now;
}

/* Arms some timers anew that have not seen a jump. Returns whether there may be more. */
static bool rearm_some(struct twheel_context *ctx, u32 jump)
{
	struct twheel_rich_timer *rt;
	u64 now = ktime_get_ns();
	unsigned int i;
	bool more = true;

	spin_lock_bh(&ctx->lock);
	for (i = 0; i < PORTION; i++) {
		rt = list_first_entry_or_null(&ctx->clocked, struct twheel_rich_timer, clocked);
		more = rt && rt->jump != jump;
		if (!more)
			break;
		rt->jump = jump;
		list_move_tail(&rt->clocked, &ctx->clocked);
		if (twheel_state_of(&rt->kt.ut) == TWHEEL_PENDING)
			twheel_user_arm(&rt->kt.ut, twheel_rich_expiry(ctx, rt, now));
	}
	spin_unlock_bh(&ctx->lock);
	return more;
}

static void handle_jump(struct work_struct *work)
{
	struct twheel_context *ctx;

	mutex_lock(&clocks_lock);
	list_for_each_entry(ctx, &contexts, clock_link) {
		/* A jump that comes meanwhile has the worker called again. */
		while (rearm_some(ctx, atomic_read(&jumps)))
			cond_resched();
	}
	mutex_unlock(&clocks_lock);
}

static DECLARE_WORK(jump_work, handle_jump);

static void queue_jump_work(struct irq_work *work)
{
	queue_work(system_unbound_wq, &jump_work);
}

static DEFINE_IRQ_WORK(jump_irq_work, queue_jump_work);

/* Timekeeping has been updated, with its lock held: nothing here may take a lock. */
static int timekeeping_updated(struct notifier_block *block, unsigned long was_set, void *tk)
{
	if (was_set) {
		/* Orders the new offset before the count. Pairs with twheel_clocks_set(). */
		atomic_inc_return(&jumps);
		irq_work_queue(&jump_irq_work);
	}
	return NOTIFY_OK;
}

static struct notifier_block timekeeping_block = {
	.notifier_call = timekeeping_updated,
};

/**
 * twheel_clocks_join - from now on, a context may have timers on clocks that jump
 * @ctx:	the context
 *
 * Context: process; may sleep.
 * Return: 0, or an errno.
 */
int twheel_clocks_join(struct twheel_context *ctx)
{
	int ret = 0;

	mutex_lock(&clocks_lock);
	if (list_empty(&contexts))
		ret = pvclock_gtod_register_notifier(&timekeeping_block);
	if (!ret && list_empty(&ctx->clock_link)) {
		list_add_tail(&ctx->clock_link, &contexts);
		spin_lock_bh(&ctx->lock);
		ctx->has_clocks = true;
		spin_unlock_bh(&ctx->lock);
	}
	mutex_unlock(&clocks_lock);
	return ret;
}

/**
 * twheel_clocks_leave - a context is about to end
 * @ctx:	the context
 *
 * Context: process; may sleep.
 */
void twheel_clocks_leave(struct twheel_context *ctx)
{
	bool last;

	mutex_lock(&clocks_lock);
	last = !list_empty(&ctx->clock_link) && list_is_singular(&contexts);
	list_del_init(&ctx->clock_link);
	if (last)
		pvclock_gtod_unregister_notifier(&timekeeping_block);
	mutex_unlock(&clocks_lock);
	if (last) {
		irq_work_sync(&jump_irq_work);
		flush_work(&jump_work);
	}
}

/**
 * twheel_clocks_set - a timer is about to be armed on a clock
 * @ctx:	the context
 * @rt:		the timer
 * @clock:	the clock
 *
 * Context: with the context's lock held.
 */
void twheel_clocks_set(struct twheel_context *ctx, struct twheel_rich_timer *rt, u8 clock)
{
	list_del_init(&rt->clocked);
	rt->clock = clock;
	if (clock == CLOCK_MONOTONIC)
		return;
	rt->jump = atomic_read(&jumps);
	/* The offset is read after this. Pairs with timekeeping_updated(). */
	smp_rmb();
	list_add_tail(&rt->clocked, &ctx->clocked);
}
