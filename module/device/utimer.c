// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: one timer of a context: arming, disarming, initialising and cancelling it
 *
 * The state of a timer changes only under the context's lock. Once armed, it stays so until one of
 * these gets the lock:
 *
 *  - its callback, which queues the event, re-arms the timer for its next limit, postpones it, or
 *    hands it to the worker of watched connections: see sock_timer.c;
 *  - a cancel or a re-arm, the end of its connection, a jump of its clock, or the last close().
 *
 * When a cancel or a re-arm comes first, the core may have dequeued the timer already: its callback
 * is then on its way, finds the timer free or armed again, and does nothing:
 *
 *	softirq				re-arm
 *	the timer leaves the wheel
 *					lock; pending -> armed again; unlock
 *	lock; back on the wheel: return
 *
 * It cannot have left the wheel again by then: a timer that is armed while its callback runs goes
 * on the wheel of the CPU that runs it, which is busy with the callback.
 */
#include <linux/ktime.h>
#include <linux/time.h>

#include "context.h"
#include "core/timer.h"
#include "events.h"
#include "keys.h"
#include "limits.h"
#include "pool.h"
#include "utimer.h"

/**
 * twheel_utimer_unpostpone - take a timer off the list of postponed ones
 * @ut:		a timer that is postponed; from now on free, until the caller arms, queues or
 *		frees it
 *
 * Context: with the context's lock held.
 */
void twheel_utimer_unpostpone(struct twheel_utimer *ut)
{
	list_del(&ut->node.link);
	/* Overlaid by the link: the core must see that the timer is not armed. */
	ut->node.location = 0;
	twheel_set_state(ut, TWHEEL_FREE);
}

/**
 * twheel_utimer_arm - arm a timer, whether it is armed or not
 * @ut:		the timer; not on the list of events
 * @expires:	when it is due, in nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 */
void twheel_utimer_arm(struct twheel_utimer *ut, u64 expires)
{
	if (twheel_state_of(ut) == TWHEEL_PENDING) {
		twheel_rearm_bhoff(&ut->timer, expires);
		return;
	}
	if (twheel_state_of(ut) == TWHEEL_POSTPONED)
		twheel_utimer_unpostpone(ut);
	twheel_utimer_start(ut, expires);
}

/**
 * twheel_utimer_disarm - disarm a timer that is about to get another state
 * @ut:		the timer, pending or postponed. A callback on its way finds that the timer is
 *		not pending any more
 *
 * Context: with the context's lock held.
 */
void twheel_utimer_disarm(struct twheel_utimer *ut)
{
	if (twheel_state_of(ut) == TWHEEL_POSTPONED)
		twheel_utimer_unpostpone(ut);
	else
		twheel_cancel_bhoff(&ut->timer);
}

/**
 * twheel_utimer_revoke_event - take back the event of an expired timer
 * @ctx:	the context
 * @ut:		the timer
 *
 * Context: with the context's lock held.
 * Return: %TWHEEL_WAS_EXPIRED.
 */
int twheel_utimer_revoke_event(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	twheel_events_unqueue(ctx, ut);
	ctx->stats.taken_back++;
	return TWHEEL_WAS_EXPIRED;
}

/* Defers the cancel of a timer until its delivery is over, or the worker is done with it. */
static void defer_cancel(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	twheel_extended(ut)->deferred_op = TWHEEL_DEFERRED_CANCEL;
	if (ut->node.state & TWHEEL_HASHED)
		twheel_keys_remove(ctx, ut);
}

/* Cancels a timer that is not armed. */
static int cancel_unarmed(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	switch (twheel_state_of(ut)) {
	case TWHEEL_POSTPONED:
		twheel_utimer_unpostpone(ut);
		twheel_utimer_free(ctx, ut, false);
		return TWHEEL_WAS_PENDING;
	case TWHEEL_IN_DELIVERY:
		defer_cancel(ctx, ut);
		return TWHEEL_WAS_DELIVERED;
	case TWHEEL_WITH_WORKER:
		if (twheel_kind_ops[twheel_kind_of(ut)]->unqueue(ut))
			twheel_utimer_free(ctx, ut, false);
		else
			defer_cancel(ctx, ut);
		return TWHEEL_WAS_PENDING;
	case TWHEEL_IN_ACTION:
		defer_cancel(ctx, ut);
		/* Its event was about to be queued. */
		ctx->stats.expiries++;
		ctx->stats.taken_back++;
		return TWHEEL_WAS_EXPIRED;
	default:
		twheel_utimer_revoke_event(ctx, ut);
		twheel_utimer_free(ctx, ut, false);
		return TWHEEL_WAS_EXPIRED;
	}
}

/**
 * twheel_utimer_cancel - cancel and free a timer
 * @ctx:	the context
 * @ut:		the timer, as returned by twheel_utimer_lookup()
 *
 * Context: with the context's lock held.
 * Return: an enum twheel_verdict.
 */
int twheel_utimer_cancel(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	if (likely(twheel_state_of(ut) == TWHEEL_PENDING))
		return twheel_utimer_cancel_pending(ctx, ut);
	ctx->stats.cancels++;
	return cancel_unarmed(ctx, ut);
}

/**
 * twheel_utimer_begin - initialise a timer from an add, and arm it
 * @ctx:	the context
 * @ut:		the timer, as returned by twheel_utimer_alloc(), or one to be re-armed. If it is
 *		to have a key or a watch, it has been given these
 * @op:		the add. Its handle is set
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 */
void twheel_utimer_begin(struct twheel_context *ctx, struct twheel_utimer *ut,
			 struct twheel_op *op, u64 now)
{
	ut->user_data = op->user_data;
	op->handle = twheel_utimer_handle(ut);
	if (likely(!twheel_is_extended(ut))) {
		twheel_utimer_arm(ut, twheel_deadline(op, now));
		return;
	}
	twheel_extended_init(ctx, twheel_extended(ut), op, now);
	twheel_utimer_arm(ut, twheel_extended_expiry(ctx, twheel_extended(ut), now));
}
