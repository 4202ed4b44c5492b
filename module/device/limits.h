/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: timers with more than a deadline: periods, idle timeouts, lifetimes
 */
#ifndef _TWHEEL_DEVICE_LIMITS_H
#define _TWHEEL_DEVICE_LIMITS_H

#include <linux/types.h>

struct twheel_context;
struct twheel_event;
struct twheel_op;
struct twheel_rich_timer;

void twheel_rich_init(struct twheel_context *ctx, struct twheel_rich_timer *rt,
		      const struct twheel_op *op, u64 now);
int twheel_rich_rearm(struct twheel_context *ctx, struct twheel_rich_timer *rt,
		      const struct twheel_op *op, u64 now);
u64 twheel_rich_expiry(struct twheel_context *ctx, struct twheel_rich_timer *rt, u64 now);
void twheel_rich_fill(struct twheel_rich_timer *rt, struct twheel_event *event);
void twheel_rich_next(struct twheel_rich_timer *rt);
u64 twheel_spread(u64 time, u64 spread);

#endif /* _TWHEEL_DEVICE_LIMITS_H */
