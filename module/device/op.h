/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: one operation of a program: checking it, and providing what it needs
 */
#ifndef _TWHEEL_DEVICE_OP_H
#define _TWHEEL_DEVICE_OP_H

#include <linux/types.h>

#include "context.h"

enum twheel_kind twheel_op_kind(const struct twheel_op *op);
int twheel_op_check_add(const struct twheel_context *ctx, const struct twheel_op *op);
int twheel_op_check_rearm(const struct twheel_op *op);
int twheel_op_prepare(struct twheel_context *ctx, const struct twheel_op *op);

#endif /* _TWHEEL_DEVICE_OP_H */
