// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the timers of a context: add, cancel, re-arm, query, expire
 *
 * Every change of a timer's state happens under the context's lock, and an
 * arming ends with the first of these that gets it:
 *
 *  - its callback, which queues the event;
 *  - a cancel or a re-arm.
 *
 * The engine may have taken the timer out of the wheel already when the latter
 * comes first: the callback is then on its way. It finds the timer free, or armed
 * anew, and does nothing:
 *
 *	softirq				re-arm
 *	the timer leaves the wheel
 *					lock; pending -> armed anew; unlock
 *	lock; back on the wheel: return
 *
 * The timer cannot have left the wheel again by then: the engine keeps a timer
 * whose callback runs on the same CPU, and that CPU is busy with the callback.
 */
#include <linux/ktime.h>
#include <linux/timekeeping.h>
#include <uapi/linux/twheel.h>

#include "context.h"

/**
 * twheel_user_expired - a timer of a context is due
 * @timer:	the engine's part of it
 *
 * Context: softirq.
 */
void twheel_user_expired(struct twheel_timer *timer)
{
	struct twheel_user_timer *ut = container_of(timer, struct twheel_user_timer, timer);
	struct twheel_context *ctx = twheel_block_of(ut)->ctx;

	spin_lock(&ctx->lock);
	if (ut->node.state == TWHEEL_PENDING && !twheel_pending(timer) && !ctx->closing) {
		ut->node.state = TWHEEL_EXPIRED;
		ut->fired = ktime_get_ns();
		twheel_events_queue(ctx, ut);
	}
	spin_unlock(&ctx->lock);
}

/* Arms a timer, whether it is armed or not. */
static void arm(struct twheel_user_timer *ut, u64 expires)
{
	if (ut->node.state != TWHEEL_PENDING) {
		ut->node.state = TWHEEL_PENDING;
		/* @fired may have taken its place. Pairs with the engine's call. */
		WRITE_ONCE(ut->timer.function, twheel_user_expired);
	}
	/* Not twheel_add(): a callback of its last life may just be running. */
	twheel_rearm(&ut->timer, expires);
}

/**
 * twheel_user_add - arm a reserved timer: from here on its handle names it
 * @ctx:	the context
 * @ut:		the timer
 * @expires:	when, in nanoseconds
 * @user_data:	the program's
 *
 * Context: process.
 */
void twheel_user_add(struct twheel_context *ctx, struct twheel_user_timer *ut,
		     u64 expires, u64 user_data)
{
	spin_lock_bh(&ctx->lock);
	ut->user_data = user_data;
	arm(ut, expires);
	spin_unlock_bh(&ctx->lock);
}

/* Ends a timer's arming. Returns the verdict. */
static int disarm(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	lockdep_assert_held(&ctx->lock);
	if (ut->node.state == TWHEEL_EXPIRED) {
		twheel_events_unqueue(ctx, ut);
		return TWHEEL_WAS_EXPIRED;
	}
	twheel_cancel(&ut->timer);
	return TWHEEL_WAS_PENDING;
}

/**
 * twheel_user_cancel - cancel and free a timer
 * @ctx:	the context
 * @handle:	the timer's handle
 *
 * Context: process.
 * Return: a verdict, or -ENOENT.
 */
int twheel_user_cancel(struct twheel_context *ctx, u64 handle)
{
	struct twheel_user_timer *ut;
	int ret = -ENOENT;

	spin_lock_bh(&ctx->lock);
	ut = twheel_timer_find(ctx, handle);
	if (ut) {
		ret = disarm(ctx, ut);
		twheel_timer_release(ctx, ut);
	}
	spin_unlock_bh(&ctx->lock);
	return ret;
}

/**
 * twheel_user_rearm - arm a timer anew
 * @ctx:	the context
 * @handle:	the timer's handle
 * @expires:	when, in nanoseconds
 *
 * Context: process.
 * Return: a verdict, or -ENOENT.
 */
int twheel_user_rearm(struct twheel_context *ctx, u64 handle, u64 expires)
{
	struct twheel_user_timer *ut;
	int ret = -ENOENT;

	spin_lock_bh(&ctx->lock);
	ut = twheel_timer_find(ctx, handle);
	if (ut) {
		ret = TWHEEL_WAS_PENDING;
		if (ut->node.state == TWHEEL_EXPIRED)
			ret = disarm(ctx, ut);
		arm(ut, expires);
	}
	spin_unlock_bh(&ctx->lock);
	return ret;
}

/**
 * twheel_user_query - tell a timer's state
 * @ctx:	the context
 * @query:	in: the handle; out: the rest
 *
 * Context: process.
 * Return: 0, or -ENOENT.
 */
int twheel_user_query(struct twheel_context *ctx, struct twheel_timer_query *query)
{
	struct twheel_user_timer *ut;
	u64 now = ktime_get_ns();
	int ret = -ENOENT;

	spin_lock_bh(&ctx->lock);
	ut = twheel_timer_find(ctx, query->handle);
	if (ut) {
		query->deadline = ut->node.deadline;
		query->remaining = query->deadline > now ? query->deadline - now : 0;
		query->user_data = ut->user_data;
		query->state = ut->node.state == TWHEEL_PENDING ? TWHEEL_STATE_PENDING :
							     TWHEEL_STATE_EXPIRED;
		ret = 0;
	}
	spin_unlock_bh(&ctx->lock);
	return ret;
}
