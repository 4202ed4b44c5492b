/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: one timer of a context: arming, disarming, initialising and cancelling it
 */
#ifndef _TWHEEL_DEVICE_UTIMER_H
#define _TWHEEL_DEVICE_UTIMER_H

#include <linux/types.h>

#include "core/timer.h"
#include "pool.h"

struct twheel_op;

/* Arms a timer that is not armed; a callback of its previous life may still be running. */
static __always_inline void twheel_utimer_start(struct twheel_utimer *ut, u64 expires)
{
	twheel_set_state(ut, TWHEEL_PENDING);
	twheel_add_bhoff(&ut->timer, expires);
}

/* Cancels and frees a pending timer. Returns a verdict. */
static __always_inline int twheel_utimer_cancel_pending(struct twheel_context *ctx,
							struct twheel_utimer *ut)
{
	/* If this returns 0, the callback is waiting for the lock. */
	twheel_cancel_bhoff(&ut->timer);
	twheel_utimer_free(ctx, ut, false);
	ctx->stats.cancels++;
	return TWHEEL_WAS_PENDING;
}

void twheel_utimer_unpostpone(struct twheel_utimer *ut);
void twheel_utimer_arm(struct twheel_utimer *ut, u64 expires);
void twheel_utimer_disarm(struct twheel_utimer *ut);
int twheel_utimer_revoke_event(struct twheel_context *ctx, struct twheel_utimer *ut);
int twheel_utimer_cancel(struct twheel_context *ctx, struct twheel_utimer *ut);
void twheel_utimer_begin(struct twheel_context *ctx, struct twheel_utimer *ut,
			 struct twheel_op *op, u64 now);

#endif /* _TWHEEL_DEVICE_UTIMER_H */
