/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: one timer of a context, from an operation to its expiry
 */
#ifndef _TWHEEL_DEVICE_UTIMER_H
#define _TWHEEL_DEVICE_UTIMER_H

#include <linux/types.h>

struct twheel_context;
struct twheel_op;
struct twheel_timer;
struct twheel_timer_query;
struct twheel_user_timer;

void twheel_user_expired(struct twheel_timer *timer);
void twheel_user_due(struct twheel_context *ctx, struct twheel_user_timer *ut, u64 now);
void twheel_user_arm(struct twheel_user_timer *ut, u64 expires);
void twheel_user_disarm(struct twheel_user_timer *ut);
void twheel_user_delivered(struct twheel_context *ctx, struct twheel_user_timer *ut);
bool twheel_user_undelivered(struct twheel_context *ctx, struct twheel_user_timer *ut);
int twheel_user_cancel(struct twheel_context *ctx, struct twheel_user_timer *ut);
int twheel_user_check_add(const struct twheel_context *ctx, const struct twheel_op *op);
int twheel_user_prepare(struct twheel_context *ctx, const struct twheel_op *op);
void twheel_user_begin(struct twheel_context *ctx, struct twheel_user_timer *ut,
		       struct twheel_op *op, u64 now);
unsigned int twheel_user_run(struct twheel_context *ctx, struct twheel_op *ops, unsigned int nr,
			     bool stop, bool slim);
int twheel_user_query(struct twheel_context *ctx, struct twheel_timer_query *query);
void twheel_user_describe(struct twheel_user_timer *ut, struct twheel_timer_query *query);

#endif /* _TWHEEL_DEVICE_UTIMER_H */
