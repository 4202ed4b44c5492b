/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: operations of a program: add, cancel, re-arm, query
 */
#ifndef _TWHEEL_DEVICE_OPS_H
#define _TWHEEL_DEVICE_OPS_H

#include <linux/types.h>

struct twheel_context;
struct twheel_op;
struct twheel_timer_query;
struct twheel_user_timer;

unsigned int twheel_user_run(struct twheel_context *ctx, struct twheel_op *ops, unsigned int nr,
			     bool stop, bool slim);
int twheel_user_query(struct twheel_context *ctx, struct twheel_timer_query *query);
void twheel_user_describe(struct twheel_user_timer *ut, struct twheel_timer_query *query);

#endif /* _TWHEEL_DEVICE_OPS_H */
