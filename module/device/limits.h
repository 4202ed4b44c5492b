/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: timers with more than a deadline: periods, idle timeouts, lifetimes
 */
#ifndef _TWHEEL_DEVICE_LIMITS_H
#define _TWHEEL_DEVICE_LIMITS_H

#include <linux/minmax.h>
#include <linux/types.h>
#include <uapi/linux/twheel.h>

struct twheel_context;
struct twheel_extended_timer;

/* The absolute deadline of an operation that has been checked, without slack and spread. */
static __always_inline u64 twheel_basic_deadline(const struct twheel_op *op, u64 now)
{
	u64 time = op->flags & TWHEEL_TIME_ABS ? op->time : op->time + now;

	return min_t(u64, time, TWHEEL_TIME_MAX);
}

void twheel_extended_init(struct twheel_context *ctx, struct twheel_extended_timer *et,
			  const struct twheel_op *op, u64 now);
int twheel_extended_rearm(struct twheel_context *ctx, struct twheel_extended_timer *et,
			  const struct twheel_op *op, u64 now);
u64 twheel_extended_expiry(struct twheel_context *ctx, struct twheel_extended_timer *et, u64 now);
void twheel_extended_fill_event(struct twheel_extended_timer *et, struct twheel_event *event);
void twheel_extended_next_period(struct twheel_extended_timer *et);
u64 twheel_deadline(const struct twheel_op *op, u64 now);

#endif /* _TWHEEL_DEVICE_LIMITS_H */
