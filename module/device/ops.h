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
struct twheel_utimer;

unsigned int twheel_ops_run(struct twheel_context *ctx, struct twheel_op *ops, unsigned int nr,
			    bool stop, bool min_size);
int twheel_ops_query(struct twheel_context *ctx, struct twheel_timer_query *query);
void twheel_utimer_describe(struct twheel_utimer *ut, struct twheel_timer_query *query);

#endif /* _TWHEEL_DEVICE_OPS_H */
