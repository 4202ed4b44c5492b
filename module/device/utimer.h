/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: one timer of a context, from an operation to its expiry
 */
#ifndef _TWHEEL_DEVICE_UTIMER_H
#define _TWHEEL_DEVICE_UTIMER_H

#include <linux/types.h>

#include "core/timer.h"
#include "pool.h"

struct twheel_op;

/* Arms a timer that is not armed; a callback of its last life may just be running. */
static __always_inline void twheel_user_start(struct twheel_user_timer *ut, u64 expires)
{
	twheel_set_state(ut, TWHEEL_PENDING);
	twheel_add_bhoff(&ut->timer, expires);
}

/* Cancels and frees a timer that is pending. Returns a verdict. */
static __always_inline int twheel_user_cancel_pending(struct twheel_context *ctx,
						       struct twheel_user_timer *ut)
{
	/* If this returns 0 the callback is waiting for the lock. */
	twheel_cancel_bhoff(&ut->timer);
	twheel_timer_release(ctx, ut, false);
	ctx->stats.cancels++;
	return TWHEEL_WAS_PENDING;
}

void twheel_postponed_take(struct twheel_user_timer *ut);
void twheel_user_arm(struct twheel_user_timer *ut, u64 expires);
void twheel_user_disarm(struct twheel_user_timer *ut);
int twheel_user_take_event_back(struct twheel_context *ctx, struct twheel_user_timer *ut);
int twheel_user_cancel(struct twheel_context *ctx, struct twheel_user_timer *ut);
void twheel_user_begin(struct twheel_context *ctx, struct twheel_user_timer *ut,
		       struct twheel_op *op, u64 now);

#endif /* _TWHEEL_DEVICE_UTIMER_H */
