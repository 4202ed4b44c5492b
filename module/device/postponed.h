/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: timers postponed because a context has used up its share of the softirqs
 */
#ifndef _TWHEEL_DEVICE_POSTPONED_H
#define _TWHEEL_DEVICE_POSTPONED_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct twheel_context;
struct twheel_extended_timer;
struct twheel_utimer;

void twheel_postponed_init(struct twheel_context *ctx, work_func_t work);
void twheel_postponed_stop(struct twheel_context *ctx);
bool twheel_postpone(struct twheel_context *ctx, struct twheel_extended_timer *et, u64 now);
void twheel_utimer_arm_again(struct twheel_context *ctx, struct twheel_utimer *ut, u64 expires,
			     u64 now);

#endif /* _TWHEEL_DEVICE_POSTPONED_H */
