// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: timers with more than a deadline: periods, other clocks, idle timeouts and
 * lifetimes
 *
 * Such a timer is armed for the first of its limits, in the time of CLOCK_MONOTONIC. When it comes
 * due, all limits are checked again: there may have been activity, or its clock may have been set
 * back. If the first limit then lies in the future, the timer is re-armed.
 *
 * A periodic timer is not armed again until its event has been delivered. So it has one event at
 * most, and a program that does not read causes no wake-ups. The periods that pass meanwhile are
 * counted.
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

/* The sum of two times below 2^63, capped at the latest time there is. */
static u64 add_capped(u64 time, u64 by)
{
	return min_t(u64, time + by, TWHEEL_TIME_MAX);
}

/* Adds a random time from 0 to @spread, uniformly. Both are below 2^63: the sum cannot wrap. */
static u64 add_spread(u64 time, u64 spread)
{
	return time + mul_u64_u64_shr(get_random_u64(), spread + 1, 64);
}

/**
 * twheel_deadline - compute the deadline of a timer that has no other limits
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
	return twheel_slack(min_t(u64, add_spread(time, op->spread), TWHEEL_TIME_MAX),
			    op->slack);
}

/* The deadline, or the end of the lifetime, that an operation sets. */
static u64 compute_time(const struct twheel_extended_timer *et, const struct twheel_op *op, u64 now)
{
	u64 time = op->time;

	if (time == TWHEEL_TIME_NONE)
		return time;
	if (!(op->flags & TWHEEL_TIME_ABS))
		time = add_capped(twheel_clock_read(et->clock, now), time);
	return min_t(u64, add_spread(time, op->spread), TWHEEL_TIME_MAX);
}

static void set_deadline(struct twheel_context *ctx, struct twheel_extended_timer *et,
			 const struct twheel_op *op, u64 now)
{
	u8 clock = et->added_on;

	/* As with timer_settime(): setting the clock does not affect a relative time. */
	if (clock == CLOCK_REALTIME && !(op->flags & TWHEEL_TIME_ABS))
		clock = CLOCK_MONOTONIC;
	twheel_clock_set_deadline(ctx, et, clock);
	et->deadline = compute_time(et, op, now);
	et->slack = op->slack;
}

/**
 * twheel_extended_init - initialise a timer from an add
 * @ctx:	the context
 * @et:		the timer. If it is armed, it stays so: the caller arms it for the new limits
 * @op:		the add, which has been checked
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 */
void twheel_extended_init(struct twheel_context *ctx, struct twheel_extended_timer *et,
			  const struct twheel_op *op, u64 now)
{
	et->added_on = op->clock;
	et->flags = op->flags & (TWHEEL_KEYED | TWHEEL_TOUCHED | TWHEEL_WATCHED);
	if (op->idle || op->lifetime)
		et->flags |= TWHEEL_HAS_LIMITS;
	et->period = op->period;
	et->idle = op->idle;
	et->touch = op->touch;
	et->last_active = now;
	et->deferred_op = TWHEEL_DEFERRED_NONE;
	if (op->period)
		et->missed = 0;
	else
		et->last_future = 0;
	et->lifetime_end = TWHEEL_TIME_NONE;
	if (op->lifetime)
		et->lifetime_end = add_capped(add_spread(add_capped(now, op->lifetime),
							 op->spread), 0);
	set_deadline(ctx, et, op, now);
}

/* A report of activity carries no time. */
static int check_activity(const struct twheel_extended_timer *et, const struct twheel_op *op)
{
	if (!et->idle || op->limit != TWHEEL_LIMIT_IDLE)
		return -EINVAL;
	if (op->time || op->slack || op->spread || op->flags & TWHEEL_TIME_ABS)
		return -EINVAL;
	return 0;
}

/* Would a timer still have a limit without this one? */
static bool has_other_limits(const struct twheel_extended_timer *et, u32 limit)
{
	return (limit != TWHEEL_LIMIT_DEADLINE && et->deadline != TWHEEL_TIME_NONE) ||
	       (limit != TWHEEL_LIMIT_IDLE && et->idle) ||
	       (limit != TWHEEL_LIMIT_LIFETIME && et->lifetime_end != TWHEEL_TIME_NONE);
}

static int check_rearm(const struct twheel_extended_timer *et, const struct twheel_op *op)
{
	if (op->flags & TWHEEL_ACTIVE)
		return check_activity(et, op);
	if (op->limit != TWHEEL_LIMIT_DEADLINE && !(et->flags & TWHEEL_HAS_LIMITS))
		return -EINVAL;
	if (op->limit == TWHEEL_LIMIT_IDLE &&
	    (op->flags & TWHEEL_TIME_ABS || !op->time || op->slack || op->spread))
		return -EINVAL;
	if (op->limit == TWHEEL_LIMIT_IDLE && et->flags & (TWHEEL_TOUCHED | TWHEEL_WATCHED) &&
	    op->time < TWHEEL_IDLE_MIN)
		return -EINVAL;
	if (op->limit == TWHEEL_LIMIT_IDLE && et->flags & TWHEEL_WATCHED &&
	    op->time > TWHEEL_WATCH_IDLE_MAX && op->time != TWHEEL_TIME_NONE)
		return -EINVAL;
	if (op->time == TWHEEL_TIME_NONE && !has_other_limits(et, op->limit))
		return -EINVAL;
	return 0;
}

/**
 * twheel_extended_rearm - apply a re-arm to a timer's limits
 * @ctx:	the context
 * @et:		the timer
 * @op:		the re-arm
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 * Return: 0; or -EINVAL if the timer does not have this limit, or would have none left.
 */
int twheel_extended_rearm(struct twheel_context *ctx, struct twheel_extended_timer *et,
			  const struct twheel_op *op, u64 now)
{
	int ret = check_rearm(et, op);

	if (ret)
		return ret;
	et->last_active = now;
	/* That was to be for a limit which may not be one any more. */
	if (et->flags & TWHEEL_WATCHED)
		twheel_sock_timer_of(&et->kt.ut)->retry_at = TWHEEL_TIME_NONE;
	if (op->flags & TWHEEL_ACTIVE)
		return 0;
	switch (op->limit) {
	case TWHEEL_LIMIT_DEADLINE:
		set_deadline(ctx, et, op, now);
		break;
	case TWHEEL_LIMIT_IDLE:
		et->idle = op->time == TWHEEL_TIME_NONE ? 0 : op->time;
		break;
	case TWHEEL_LIMIT_LIFETIME:
		et->lifetime_end = compute_time(et, op, now);
		break;
	}
	return 0;
}

static u64 get_last_activity(struct twheel_extended_timer *et, u64 now)
{
	return twheel_kind_ops[twheel_kind_of(&et->kt.ut)]->last_activity(et, now);
}

/**
 * twheel_extended_expiry - compute when a timer is due
 * @ctx:	the context
 * @et:		the timer. Its @limit is set to the one that comes first
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 * Return: nanoseconds of CLOCK_MONOTONIC, by its current relation to the timer's clock.
 */
u64 twheel_extended_expiry(struct twheel_context *ctx, struct twheel_extended_timer *et, u64 now)
{
	u64 first = TWHEEL_TIME_NONE, time;

	et->limit = TWHEEL_LIMIT_DEADLINE;
	if (et->deadline != TWHEEL_TIME_NONE)
		first = twheel_clock_to_monotonic(et->clock,
						  twheel_slack(et->deadline, et->slack), now);
	if (et->idle) {
		if (et->flags & TWHEEL_TOUCHED)
			et->last_active = twheel_touch_active(ctx, et, now);
		else if (et->flags & TWHEEL_WATCHED)
			et->last_active = max(et->last_active, get_last_activity(et, now));
		time = add_capped(et->last_active, et->idle);
		if (time < first) {
			first = time;
			et->limit = TWHEEL_LIMIT_IDLE;
		}
	}
	if (et->lifetime_end < first) {
		first = et->lifetime_end;
		et->limit = TWHEEL_LIMIT_LIFETIME;
	}
	/* Not a limit, but the time for the worker to try again. */
	if (et->flags & TWHEEL_WATCHED)
		first = min(first, twheel_sock_timer_of(&et->kt.ut)->retry_at);
	return first;
}

/**
 * twheel_extended_fill_event - fill in what is specific to the event of an extended timer
 * @et:		the timer, which has expired. If it is periodic, the periods that have passed are
 *		counted
 * @event:	the event to fill in
 *
 * Context: with the context's lock held.
 */
void twheel_extended_fill_event(struct twheel_extended_timer *et, struct twheel_event *event)
{
	u64 now;

	event->reason = et->limit;
	if (et->limit == TWHEEL_LIMIT_DEADLINE)
		event->deadline = et->deadline;
	if (!et->period)
		return;
	now = twheel_clock_read(et->clock, ktime_get_ns());
	et->missed = now > et->deadline ? div64_u64(now - et->deadline, et->period) : 0;
	event->overruns = min_t(u64, et->missed, U32_MAX);
}

/**
 * twheel_extended_next_period - advance a timer to the first period that was not counted
 * @et:		a periodic timer, whose periods have been counted
 *
 * Context: with the context's lock held.
 */
void twheel_extended_next_period(struct twheel_extended_timer *et)
{
	/* At most the current time, which is below 2^63, and one period. */
	et->deadline = add_capped(et->deadline + et->missed * et->period, et->period);
}
