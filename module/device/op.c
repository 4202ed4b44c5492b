// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: one operation of a program: checking it, and providing what it needs
 *
 * Anything wrong with an operation is found before anything is changed.
 */
#include <linux/time.h>

#include "clock_jumps.h"
#include "context.h"
#include "deliver.h"
#include "keys.h"
#include "op.h"
#include "pool.h"
#include "tcp/watch.h"
#include "touch.h"

/**
 * twheel_op_kind - the kind of timer that an add needs
 * @op:		the add
 *
 * Context: any.
 * Return: the kind.
 */
enum twheel_kind twheel_op_kind(const struct twheel_op *op)
{
	if (op->clock != CLOCK_MONOTONIC)
		return TWHEEL_EXTENDED;
	if (op->period || op->idle || op->lifetime)
		return op->flags & TWHEEL_WATCHED ? TWHEEL_WITH_WATCH : TWHEEL_EXTENDED;
	return op->flags & TWHEEL_KEYED ? TWHEEL_WITH_KEY : TWHEEL_BASIC;
}

/* Checks the fields beyond the first 40 bytes of an add. */
static int check_extended_fields(const struct twheel_context *ctx, const struct twheel_op *op)
{
	bool limits = op->idle || op->lifetime;

	if ((op->period | op->slack | op->spread | op->idle | op->lifetime) > TWHEEL_TIME_MAX)
		return -EINVAL;
	if (limits && (op->period || op->clock != CLOCK_MONOTONIC))
		return -EINVAL;
	if (op->time > TWHEEL_TIME_MAX && !limits)
		return -EINVAL;
	if (op->key && !(op->flags & TWHEEL_KEYED))
		return -EINVAL;
	if (op->flags & (TWHEEL_TOUCHED | TWHEEL_WATCHED) && op->idle &&
	    op->idle < TWHEEL_IDLE_MIN)
		return -EINVAL;
	if (op->flags & TWHEEL_WATCHED) {
		if (!limits || op->idle > TWHEEL_WATCH_IDLE_MAX)
			return -EINVAL;
	} else if (op->flags & TWHEEL_TOUCHED ? !op->idle || op->touch >= twheel_touch_words(ctx) :
						op->touch) {
		return -EINVAL;
	}
	return op->limit ? -EINVAL : 0;
}

static int check_fields(const struct twheel_context *ctx, const struct twheel_op *op)
{
	if (op->clock != CLOCK_MONOTONIC && op->clock != CLOCK_BOOTTIME &&
	    op->clock != CLOCK_REALTIME)
		return -EOPNOTSUPP;
	if (op->time > TWHEEL_TIME_MAX && op->time != TWHEEL_TIME_NONE)
		return -EINVAL;
	return check_extended_fields(ctx, op);
}

/* The flags of an ordinary add. */
#define ADD_FLAGS	(TWHEEL_TIME_ABS | TWHEEL_KEYED | TWHEEL_TOUCHED)

/* Checks the flags of an add that has others than these. */
static int check_flags(const struct twheel_op *op)
{
	if (op->flags & ~(ADD_FLAGS | TWHEEL_WATCH_FLAGS))
		return -EOPNOTSUPP;
	if (!(op->flags & TWHEEL_WATCHED) || op->flags & TWHEEL_TOUCHED ||
	    (op->flags & TWHEEL_WATCH_ACTIONS) == TWHEEL_WATCH_ACTIONS)
		return -EINVAL;
	return 0;
}

/**
 * twheel_op_check_add - check an add
 * @ctx:	the context
 * @op:		the add
 *
 * Context: any.
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int twheel_op_check_add(const struct twheel_context *ctx, const struct twheel_op *op)
{
	int ret = op->flags & ~ADD_FLAGS ? check_flags(op) : 0;

	return ret ?: check_fields(ctx, op);
}

/**
 * twheel_op_check_rearm - check what is the same for re-arms of all timers
 * @op:		the re-arm
 *
 * Context: any.
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int twheel_op_check_rearm(const struct twheel_op *op)
{
	if (op->flags & ~(TWHEEL_TIME_ABS | TWHEEL_BY_KEY | TWHEEL_ACTIVE))
		return -EOPNOTSUPP;
	if (op->time > TWHEEL_TIME_MAX && op->time != TWHEEL_TIME_NONE)
		return -EINVAL;
	if (op->user_data || op->clock)
		return -EINVAL;
	if (op->key || op->period || op->idle || op->lifetime || op->touch)
		return -EINVAL;
	if ((op->slack | op->spread) > TWHEEL_TIME_MAX)
		return -EINVAL;
	return op->limit > TWHEEL_LIMIT_LIFETIME ? -EOPNOTSUPP : 0;
}

/**
 * twheel_op_prepare - provide what an add needs and cannot get with the lock held
 * @ctx:	the context
 * @op:		the add
 *
 * Context: process; may sleep.
 * Return: 0, or an errno.
 */
int twheel_op_prepare(struct twheel_context *ctx, const struct twheel_op *op)
{
	int ret = 0;

	if (op->flags & TWHEEL_KEYED)
		ret = twheel_keys_grow(ctx);
	if (ret)
		return ret;
	if (op->clock != CLOCK_MONOTONIC)
		twheel_clocks_join(ctx);
	return twheel_context_grow(ctx, twheel_op_kind(op), twheel_utimer_expired);
}
