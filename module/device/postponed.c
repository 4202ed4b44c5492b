// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: timers that a context's share of the softirq (share.h) is not enough for
 *
 * They wait in a list for a worker to look at them, a portion at a time. Between two portions
 * of a context all others of the user have their turn: see users.c.
 *
 * For the program a timer that is postponed is pending. Whatever comes first takes it out of
 * the list: the worker, a cancel, a re-arm, or the end of its connection.
 */
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/workqueue.h>

#include "context.h"
#include "core/pages.h"
#include "core/share.h"
#include "lib/users.h"
#include "postponed.h"
#include "utimer.h"

static void postpone_timer(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	ctx->stats.postponed++;
	twheel_set_state(ut, TWHEEL_POSTPONED);
	if (list_empty(&ctx->postponed))
		queue_work(ctx->user->queue, &ctx->postponed_work);
	list_add_tail(&ut->node.link, &ctx->postponed);
}

/**
 * twheel_postpone - leave a timer that has come up to the worker, if that is due
 * @ctx:	the context
 * @et:		the timer, which is not armed any more
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: softirq, with the context's lock held.
 * Return: whether it was postponed, as it might have to be armed anew, and nothing is left of the
 * context's share.
 */
bool twheel_postpone(struct twheel_context *ctx, struct twheel_extended_timer *et, u64 now)
{
	if (!(et->flags & (TWHEEL_TOUCHED | TWHEEL_WATCHED)) ||
	    twheel_share_left(&ctx->share, now))
		return false;
	postpone_timer(ctx, &et->kt.ut);
	return true;
}

/**
 * twheel_utimer_arm_again - arm a timer of the kernel's own accord
 * @ctx:	the context
 * @ut:		the timer, armed or not; not in the list of events
 * @expires:	when, in nanoseconds of CLOCK_MONOTONIC
 * @now:	the time, likewise
 *
 * Who has opened the context is charged. In a softirq that is from the context's share; when
 * nothing is left of it, it is for the worker.
 *
 * Context: process and softirq, with the context's lock held.
 */
void twheel_utimer_arm_again(struct twheel_context *ctx, struct twheel_utimer *ut, u64 expires,
			     u64 now)
{
	struct mem_cgroup *other;

	if (in_serving_softirq()) {
		if (!twheel_share_left(&ctx->share, now)) {
			postpone_timer(ctx, ut);
			return;
		}
		twheel_share_take(&ctx->share, now);
	}
	other = twheel_payer_begin(ctx->payer);
	twheel_utimer_arm(ut, expires);
	twheel_payer_end(other);
}

/**
 * twheel_postponed_create - a context is made
 * @ctx:	the context
 * @work:	what is to look at timers that were postponed
 *
 * Context: process.
 */
void twheel_postponed_create(struct twheel_context *ctx, work_func_t work)
{
	INIT_LIST_HEAD(&ctx->postponed);
	INIT_WORK(&ctx->postponed_work, work);
}

/**
 * twheel_postponed_leave - wait for the worker to be done with a context
 * @ctx:	the context, which is closing
 *
 * Context: process; may sleep.
 */
void twheel_postponed_leave(struct twheel_context *ctx)
{
	cancel_work_sync(&ctx->postponed_work);
}
