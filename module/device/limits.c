// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: timers with more than a deadline: periods, other clocks, idle timeouts and
 * lifetimes
 *
 * Such a timer is armed for the first of its limits, in the time of CLOCK_MONOTONIC. When
 * it comes up all limits are looked at again: there may have been activity, or its clock
 * may have been set back. If the first one lies ahead then, the timer is armed anew.
 *
 * A periodic timer waits for the delivery of its event before it is armed again, so it
 * has one event at most, and a program that does not read costs no wake-ups. The periods
 * that passed meanwhile are counted.
 */
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/random.h>
#include <linux/time.h>
#include <linux/ktime.h>

#include "clocks.h"
#include "context.h"
#include "limits.h"
#include "pool.h"
#include "tcp/watch.h"
#include "touch.h"
#include "twheel.h"

/* The sum of two times below 2^63, or the latest time there is. */
static u64 later(u64 time, u64 by)
{
	return min_t(u64, time + by, TWHEEL_TIME_MAX);
}

/* A time from @time, below 2^64 - 2^63, to @spread later, below 2^63: each as probable. */
static u64 spread_by(u64 time, u64 spread)
{
	return time + mul_u64_u64_shr(get_random_u64(), spread + 1, 64);
}

/**
 * twheel_deadline - the deadline of a timer that has nothing else
 * @op:		the operation, which has been checked
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: any.
 * Return: nanoseconds of CLOCK_MONOTONIC.
 */
u64 twheel_deadline(const struct twheel_op *op, u64 now)
{
	u64 time = twheel_basic_deadline(op, now);

	if (likely(!(op->spread | op->slack)))
		return time;
	return twheel_slack(min_t(u64, spread_by(time, op->spread), TWHEEL_TIME_MAX),
			    op->slack);
}

/* A deadline, or the end of a lifetime, as an operation gives it. */
static u64 new_time(const struct twheel_extended_timer *rt, const struct twheel_op *op, u64 now)
{
	u64 time = op->time;

	if (time == TWHEEL_TIME_NONE)
		return time;
	if (!(op->flags & TWHEEL_TIME_ABS))
		time = later(twheel_clock_read(rt->clock, now), time);
	return min_t(u64, spread_by(time, op->spread), TWHEEL_TIME_MAX);
}

static void set_deadline(struct twheel_context *ctx, struct twheel_extended_timer *rt,
			 const struct twheel_op *op, u64 now)
{
	u8 clock = rt->added_on;

	/* As with timer_settime(): a relative time does not care for the clock being set. */
	if (clock == CLOCK_REALTIME && !(op->flags & TWHEEL_TIME_ABS))
		clock = CLOCK_MONOTONIC;
	twheel_clock_set_deadline(ctx, rt, clock);
	rt->deadline = new_time(rt, op, now);
	rt->slack = op->slack;
}

/**
 * twheel_extended_init - give a timer what an add says
 * @ctx:	the context
 * @rt:		the timer, which is not armed
 * @op:		the add; it has been checked
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 */
void twheel_extended_init(struct twheel_context *ctx, struct twheel_extended_timer *rt,
			  const struct twheel_op *op, u64 now)
{
	rt->added_on = op->clock;
	rt->flags = op->flags & (TWHEEL_KEYED | TWHEEL_TOUCHED | TWHEEL_WATCHED);
	if (op->idle || op->lifetime)
		rt->flags |= TWHEEL_HAS_LIMITS;
	rt->period = op->period;
	rt->idle = op->idle;
	rt->touch = op->touch;
	rt->active = now;
	rt->after = TWHEEL_AFTER_NEXT;
	if (op->period)
		rt->missed = 0;
	else
		rt->future = 0;
	rt->death = TWHEEL_TIME_NONE;
	if (op->lifetime)
		rt->death = later(spread_by(later(now, op->lifetime), op->spread), 0);
	set_deadline(ctx, rt, op, now);
}

/* Activity is told with no time. */
static int check_active(const struct twheel_extended_timer *rt, const struct twheel_op *op)
{
	if (!rt->idle || op->limit != TWHEEL_LIMIT_IDLE)
		return -EINVAL;
	if (op->time || op->slack || op->spread || op->flags & TWHEEL_TIME_ABS)
		return -EINVAL;
	return 0;
}

/* Would a timer have another limit without this one? */
static bool has_other_limits(const struct twheel_extended_timer *rt, u32 limit)
{
	return (limit != TWHEEL_LIMIT_DEADLINE && rt->deadline != TWHEEL_TIME_NONE) ||
	       (limit != TWHEEL_LIMIT_IDLE && rt->idle) ||
	       (limit != TWHEEL_LIMIT_LIFETIME && rt->death != TWHEEL_TIME_NONE);
}

static int check_rearm(const struct twheel_extended_timer *rt, const struct twheel_op *op)
{
	if (op->flags & TWHEEL_ACTIVE)
		return check_active(rt, op);
	if (op->limit != TWHEEL_LIMIT_DEADLINE && !(rt->flags & TWHEEL_HAS_LIMITS))
		return -EINVAL;
	if (op->limit == TWHEEL_LIMIT_IDLE &&
	    (op->flags & TWHEEL_TIME_ABS || !op->time || op->slack || op->spread))
		return -EINVAL;
	if (op->limit == TWHEEL_LIMIT_IDLE && rt->flags & (TWHEEL_TOUCHED | TWHEEL_WATCHED) &&
	    op->time < TWHEEL_IDLE_MIN)
		return -EINVAL;
	if (op->limit == TWHEEL_LIMIT_IDLE && rt->flags & TWHEEL_WATCHED &&
	    op->time > TWHEEL_WATCH_IDLE_MAX && op->time != TWHEEL_TIME_NONE)
		return -EINVAL;
	if (op->time == TWHEEL_TIME_NONE && !has_other_limits(rt, op->limit))
		return -EINVAL;
	return 0;
}

/**
 * twheel_extended_rearm - give a timer what a re-arm says
 * @ctx:	the context
 * @rt:		the timer
 * @op:		the re-arm
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 * Return: 0; or -EINVAL if the timer has no such limit, or would have none.
 */
int twheel_extended_rearm(struct twheel_context *ctx, struct twheel_extended_timer *rt,
			  const struct twheel_op *op, u64 now)
{
	int ret = check_rearm(rt, op);

	if (ret)
		return ret;
	rt->active = now;
	if (op->flags & TWHEEL_ACTIVE)
		return 0;
	switch (op->limit) {
	case TWHEEL_LIMIT_DEADLINE:
		set_deadline(ctx, rt, op, now);
		break;
	case TWHEEL_LIMIT_IDLE:
		rt->idle = op->time == TWHEEL_TIME_NONE ? 0 : op->time;
		break;
	case TWHEEL_LIMIT_LIFETIME:
		rt->death = new_time(rt, op, now);
		break;
	}
	return 0;
}

static u64 last_activity(struct twheel_extended_timer *rt, u64 now)
{
	return twheel_kind_ops[twheel_kind_of(&rt->kt.ut)]->last_activity(rt, now);
}

/**
 * twheel_extended_expiry - when is a timer due?
 * @ctx:	the context
 * @rt:		the timer. Its limit is set to the one that comes first
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 * Return: nanoseconds of CLOCK_MONOTONIC, as far as its clock's relation to that is now.
 */
u64 twheel_extended_expiry(struct twheel_context *ctx, struct twheel_extended_timer *rt, u64 now)
{
	u64 first = TWHEEL_TIME_NONE, time;

	rt->limit = TWHEEL_LIMIT_DEADLINE;
	if (rt->deadline != TWHEEL_TIME_NONE)
		first = twheel_clock_to_monotonic(rt->clock,
						  twheel_slack(rt->deadline, rt->slack), now);
	if (rt->idle) {
		if (rt->flags & TWHEEL_TOUCHED)
			rt->active = twheel_touch_active(ctx, rt, now);
		else if (rt->flags & TWHEEL_WATCHED)
			rt->active = max(rt->active, last_activity(rt, now));
		time = later(rt->active, rt->idle);
		if (time < first) {
			first = time;
			rt->limit = TWHEEL_LIMIT_IDLE;
		}
	}
	if (rt->death < first) {
		first = rt->death;
		rt->limit = TWHEEL_LIMIT_LIFETIME;
	}
	/* No limit, but time for the worker to look again. */
	if (rt->flags & TWHEEL_WATCHED)
		first = min(first, twheel_sock_timer_of(&rt->kt.ut)->retry);
	return first;
}

/**
 * twheel_extended_fill_event - write what only the event of such a timer tells
 * @rt:		the timer, which has expired. If it is periodic, the periods that have passed
 *		are counted
 * @event:	where to
 *
 * Context: with the context's lock held.
 */
void twheel_extended_fill_event(struct twheel_extended_timer *rt, struct twheel_event *event)
{
	u64 now;

	event->reason = rt->limit;
	if (rt->limit == TWHEEL_LIMIT_DEADLINE)
		event->deadline = rt->deadline;
	if (!rt->period)
		return;
	now = twheel_clock_read(rt->clock, ktime_get_ns());
	rt->missed = now > rt->deadline ? div64_u64(now - rt->deadline, rt->period) : 0;
	event->overruns = min_t(u64, rt->missed, U32_MAX);
}

/**
 * twheel_extended_next_period - go on to the first period that was not counted
 * @rt:		a periodic timer, whose periods have been counted
 *
 * Context: with the context's lock held.
 */
void twheel_extended_next_period(struct twheel_extended_timer *rt)
{
	/* Up to now, which is below 2^63, and one period. */
	rt->deadline = later(rt->deadline + rt->missed * rt->period, rt->period);
}
