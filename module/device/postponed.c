// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: timers postponed because a context has used up its share of the softirqs (share.h)
 *
 * They are on a list, and a worker handles a batch of them at a time. Between two batches of a
 * context, all other contexts of the user get their turn: see users.c.
 *
 * The program sees a postponed timer as pending. Whatever comes first takes it off the list: the
 * worker, a cancel, a re-arm, or the end of its connection.
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
 * twheel_postpone - leave a due timer to the worker if the context's share is used up
 * @ctx:	the context
 * @et:		the timer, which is not armed any more
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: softirq, with the context's lock held.
 * Return: true if the timer was postponed, as it might have to be re-armed and nothing is left of
 * the context's share.
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
 * twheel_utimer_arm_again - arm a timer without a call from the program
 * @ctx:	the context
 * @ut:		the timer, armed or not; not on the list of events
 * @expires:	when it is due, in nanoseconds of CLOCK_MONOTONIC
 * @now:	the current time, likewise
 *
 * Memory is charged to the task that opened the context. In a softirq, arming uses up the context's
 * share; once nothing is left of it, the timer is left to the worker.
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
 * twheel_postponed_init - initialise a context's list of postponed timers
 * @ctx:	the context
 * @work:	the work that handles postponed timers
 *
 * Context: process.
 */
void twheel_postponed_init(struct twheel_context *ctx, work_func_t work)
{
	INIT_LIST_HEAD(&ctx->postponed);
	INIT_WORK(&ctx->postponed_work, work);
}

/**
 * twheel_postponed_stop - wait until the worker is done with a context
 * @ctx:	the context, which is closing
 *
 * Context: process; may sleep.
 */
void twheel_postponed_stop(struct twheel_context *ctx)
{
	cancel_work_sync(&ctx->postponed_work);
}
