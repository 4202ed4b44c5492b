// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the timers of a context: add, cancel, re-arm, query, expire
 *
 * Every change of a timer's state happens under the context's lock, and an
 * arming ends with the first of these that gets it:
 *
 *  - its callback, which queues the event, or hands the timer to the worker of watched
 *    connections: see sock_timer.c;
 *  - a cancel or a re-arm.
 *
 * The engine may have taken the timer out of the wheel already when the latter
 * comes first: the callback is then on its way. It finds the timer free, or armed
 * anew, and does nothing:
 *
 *	softirq				re-arm
 *	the timer leaves the wheel
 *					lock; pending -> armed anew; unlock
 *	lock; back on the wheel: return
 *
 * The timer cannot have left the wheel again by then: the engine keeps a timer
 * whose callback runs on the same CPU, and that CPU is busy with the callback.
 *
 * All that can be wrong with an operation is found before anything is changed.
 */
#include <linux/ktime.h>
#include <linux/time.h>

#include "clocks.h"
#include "context.h"
#include "core/timer.h"
#include "events.h"
#include "keys.h"
#include "limits.h"
#include "pool.h"
#include "postponed.h"
#include "sock_timer.h"
#include "tcp/watch.h"
#include "touch.h"
#include "twheel.h"
#include "utimer.h"

/**
 * twheel_user_due - a timer has come up: see whether it has expired
 * @ctx:	the context
 * @ut:		the timer, which is not armed any more
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: softirq and process, with the context's lock held.
 */
void twheel_user_due(struct twheel_context *ctx, struct twheel_user_timer *ut, u64 now)
{
	u64 expires;

	if (twheel_is_rich(ut)) {
		expires = twheel_rich_expiry(ctx, twheel_rich(ut), now);
		if (expires > now) {
			ctx->stats.deferrals++;
			twheel_arm_anew(ctx, ut, expires, now);
			return;
		}
		/* It may be due for another limit than it was armed for. */
		ut->node.deadline = expires;
		if (twheel_kind_of(ut) == TWHEEL_WITH_WATCH) {
			twheel_watched_due(ut);
			return;
		}
		now = twheel_clock_read(twheel_rich(ut)->clock, now);
	}
	twheel_events_queue(ctx, ut, now);
}

/**
 * twheel_user_expired - a timer of a context has come up
 * @timer:	the engine's part of it
 *
 * Context: softirq.
 */
void twheel_user_expired(struct twheel_timer *timer)
{
	struct twheel_user_timer *ut = container_of(timer, struct twheel_user_timer, timer);
	struct twheel_context *ctx = twheel_block_of(ut)->ctx;
	u64 now;

	spin_lock(&ctx->lock);
	if (twheel_state_of(ut) != TWHEEL_PENDING || twheel_pending(timer) || ctx->closing)
		goto out;
	now = ktime_get_ns();
	if (!twheel_is_rich(ut) || !twheel_postpone(ctx, twheel_rich(ut), now))
		twheel_user_due(ctx, ut, now);
out:
	spin_unlock(&ctx->lock);
}

/* Arms a timer that is not armed; a callback of its last life may just be running. */
static __always_inline void start(struct twheel_user_timer *ut, u64 expires)
{
	twheel_set_state(ut, TWHEEL_PENDING);
	twheel_add_bhoff(&ut->timer, expires);
}

/**
 * twheel_user_arm - arm a timer, whether it is armed or not
 * @ut:		the timer; not in the list of events
 * @expires:	when, in nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 */
void twheel_user_arm(struct twheel_user_timer *ut, u64 expires)
{
	if (twheel_state_of(ut) == TWHEEL_PENDING) {
		twheel_rearm_bhoff(&ut->timer, expires);
		return;
	}
	if (twheel_state_of(ut) == TWHEEL_POSTPONED)
		twheel_postponed_take(ut);
	start(ut, expires);
}

/**
 * twheel_user_disarm - disarm a timer that gets another state
 * @ut:		the timer, pending or postponed. If its callback is on its way it finds that the
 *		timer is not pending any more
 *
 * Context: with the context's lock held.
 */
void twheel_user_disarm(struct twheel_user_timer *ut)
{
	if (twheel_state_of(ut) == TWHEEL_POSTPONED)
		twheel_postponed_take(ut);
	else
		twheel_cancel_bhoff(&ut->timer);
}

/**
 * twheel_user_delivered - the event of a timer has been delivered
 * @ctx:	the context
 * @ut:		the timer; not in the list of events
 *
 * A one-shot timer ends here. A periodic one goes on.
 *
 * Context: with the context's lock held.
 */
void twheel_user_delivered(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	struct twheel_rich_timer *rt = twheel_rich(ut);
	u64 now;

	ctx->stats.delivered++;
	if (likely(!twheel_is_periodic(ut))) {
		twheel_timer_release(ctx, ut, true);
	} else if (rt->after == TWHEEL_AFTER_STOP) {
		twheel_timer_release(ctx, ut, false);
	} else {
		if (rt->after == TWHEEL_AFTER_NEXT)
			twheel_rich_next(rt);
		rt->after = TWHEEL_AFTER_NEXT;
		now = ktime_get_ns();
		twheel_arm_anew(ctx, ut, twheel_rich_expiry(ctx, rt, now), now);
	}
}

/**
 * twheel_user_undelivered - the event of a timer could not be delivered
 * @ctx:	the context
 * @ut:		the timer; not in the list of events
 *
 * Context: with the context's lock held.
 * Return: true if the event is to be delivered later, and the timer to be put back into the
 * list; false if it was cancelled or re-armed while the delivery was tried.
 */
bool twheel_user_undelivered(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	struct twheel_rich_timer *rt = twheel_rich(ut);

	if (twheel_is_periodic(ut) && rt->after != TWHEEL_AFTER_NEXT) {
		if (rt->after == TWHEEL_AFTER_STOP)
			twheel_timer_release(ctx, ut, false);
		else
			twheel_user_arm(ut, twheel_rich_expiry(ctx, rt, ktime_get_ns()));
		rt->after = TWHEEL_AFTER_NEXT;
		return false;
	}
	return true;
}

/* Takes the event of an expired timer back. */
static int take_event_back(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	twheel_events_unqueue(ctx, ut);
	ctx->stats.taken_back++;
	return TWHEEL_WAS_EXPIRED;
}

/* Has a timer that is being delivered, or is with the worker, freed when that is over. */
static void cancel_later(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	twheel_rich(ut)->after = TWHEEL_AFTER_STOP;
	if (ut->node.state & TWHEEL_HASHED)
		twheel_keys_remove(ctx, ut);
}

/* Cancels a timer that is not armed. */
static int cancel_unarmed(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	switch (twheel_state_of(ut)) {
	case TWHEEL_POSTPONED:
		twheel_postponed_take(ut);
		twheel_timer_release(ctx, ut, false);
		return TWHEEL_WAS_PENDING;
	case TWHEEL_IN_DELIVERY:
		cancel_later(ctx, ut);
		return TWHEEL_WAS_DELIVERED;
	case TWHEEL_WITH_WORKER:
		if (twheel_watched_take_back(ut))
			twheel_timer_release(ctx, ut, false);
		else
			cancel_later(ctx, ut);
		return TWHEEL_WAS_PENDING;
	case TWHEEL_IN_ACTION:
		cancel_later(ctx, ut);
		/* It would have been queued in a moment. */
		ctx->stats.expiries++;
		ctx->stats.taken_back++;
		return TWHEEL_WAS_EXPIRED;
	default:
		take_event_back(ctx, ut);
		twheel_timer_release(ctx, ut, false);
		return TWHEEL_WAS_EXPIRED;
	}
}

/* Cancels and frees a timer that is pending. Returns a verdict. */
static __always_inline int cancel_pending(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	/* If this returns 0 the callback is waiting for the lock. */
	twheel_cancel_bhoff(&ut->timer);
	twheel_timer_release(ctx, ut, false);
	ctx->stats.cancels++;
	return TWHEEL_WAS_PENDING;
}

/**
 * twheel_user_cancel - cancel and free a timer
 * @ctx:	the context
 * @ut:		the timer, as twheel_timer_find() gives it
 *
 * Context: with the context's lock held.
 * Return: an enum twheel_verdict.
 */
int twheel_user_cancel(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	if (likely(twheel_state_of(ut) == TWHEEL_PENDING))
		return cancel_pending(ctx, ut);
	ctx->stats.cancels++;
	return cancel_unarmed(ctx, ut);
}

/* Finds the timer that an operation names. */
static struct twheel_user_timer *find(struct twheel_context *ctx, u64 handle, u32 flags)
{
	struct twheel_user_timer *ut;

	if (likely(!(flags & TWHEEL_BY_KEY)))
		return twheel_timer_find(ctx, handle);
	ut = twheel_keys_find(ctx, handle);
	if (!ut)
		return ERR_PTR(-ENOENT);
	if (twheel_state_of(ut) == TWHEEL_IN_DELIVERY && !twheel_is_periodic(ut))
		return ERR_PTR(-EALREADY);
	return ut;
}

/* An absolute deadline, from an operation that has been checked; with no slack or spread. */
static __always_inline u64 plain_deadline(const struct twheel_op *op, u64 now)
{
	u64 time = op->flags & TWHEEL_TIME_ABS ? op->time : op->time + now;

	return min_t(u64, time, TWHEEL_TIME_MAX);
}

static u64 deadline(const struct twheel_op *op, u64 now)
{
	u64 time = plain_deadline(op, now);

	if (likely(!(op->spread | op->slack)))
		return time;
	return twheel_slack(min_t(u64, twheel_spread(time, op->spread), TWHEEL_TIME_MAX),
			    op->slack);
}

/*
 * Does an operation use nothing beyond its first 40 bytes? @slim is a constant: whether that
 * is known of all of an array, whose operations then need not be looked at.
 */
static __always_inline bool is_slim(const struct twheel_op *op, bool slim)
{
	return slim || !(op->key | op->period | op->slack | op->spread | op->idle | op->lifetime |
		 op->touch | op->limit);
}

static enum twheel_kind kind_of(const struct twheel_op *op)
{
	if (op->clock != CLOCK_MONOTONIC)
		return TWHEEL_RICH;
	if (op->period || op->idle || op->lifetime)
		return op->flags & TWHEEL_WATCHED ? TWHEEL_WITH_WATCH : TWHEEL_RICH;
	return op->flags & TWHEEL_KEYED ? TWHEEL_WITH_KEY : TWHEEL_PLAIN;
}

/* Checks what stands behind the first 40 bytes of an add. */
static int check_rest(const struct twheel_context *ctx, const struct twheel_op *op)
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
	return check_rest(ctx, op);
}

/* Flags of most adds. */
#define ADD_FLAGS	(TWHEEL_TIME_ABS | TWHEEL_KEYED | TWHEEL_TOUCHED)

/* Checks the flags of an add that is not an ordinary one. */
static int check_flags(const struct twheel_op *op)
{
	if (op->flags & ~(ADD_FLAGS | TWHEEL_WATCH_FLAGS))
		return -EOPNOTSUPP;
	if (!(op->flags & TWHEEL_WATCHED) || op->flags & TWHEEL_TOUCHED ||
	    (op->flags & TWHEEL_WATCH_ACTIONS) == TWHEEL_WATCH_ACTIONS)
		return -EINVAL;
	/* It needs the socket, and is not for batches: see twheel_watched_add(). */
	return -EAGAIN;
}

static int check_add(const struct twheel_context *ctx, const struct twheel_op *op)
{
	if (op->flags & ~ADD_FLAGS)
		return check_flags(op);
	return check_fields(ctx, op);
}

/**
 * twheel_user_check_add - check an add whose flags have been checked
 * @ctx:	the context
 * @op:		the add
 *
 * Context: any.
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int twheel_user_check_add(const struct twheel_context *ctx, const struct twheel_op *op)
{
	return check_fields(ctx, op);
}

/**
 * twheel_user_begin - give a timer what an add says, and arm it
 * @ctx:	the context
 * @ut:		the timer, as twheel_timer_take() gives it, or to be armed anew. If it has a key or
 *		a watch, it has been given these
 * @op:		the add. Its handle is set
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: with the context's lock held.
 */
void twheel_user_begin(struct twheel_context *ctx, struct twheel_user_timer *ut,
		       struct twheel_op *op, u64 now)
{
	ut->user_data = op->user_data;
	op->handle = twheel_timer_handle(ut);
	if (likely(!twheel_is_rich(ut))) {
		twheel_user_arm(ut, deadline(op, now));
		return;
	}
	twheel_rich_init(ctx, twheel_rich(ut), op, now);
	twheel_user_arm(ut, twheel_rich_expiry(ctx, twheel_rich(ut), now));
}

/*
 * Adds a timer in place of another one that has its key: one of another kind, or one whose
 * event is being delivered.
 */
static int replace(struct twheel_context *ctx, struct twheel_user_timer *old,
		   struct twheel_op *op, u64 now)
{
	bool ends = twheel_state_of(old) == TWHEEL_IN_DELIVERY && !twheel_is_periodic(old);
	int verdict = TWHEEL_WAS_ABSENT;
	struct twheel_user_timer *ut;

	/* One more only as long as the other one is being delivered, or is with the worker. */
	if (twheel_state_of(old) >= TWHEEL_IN_DELIVERY && twheel_timers_limited(ctx))
		return -ENOSPC;
	ut = twheel_timer_take(ctx, kind_of(op));
	if (!ut)
		return -EAGAIN;
	twheel_keys_replace(ctx, old, ut);
	if (!ends)
		verdict = twheel_user_cancel(ctx, old);
	twheel_user_begin(ctx, ut, op, now);
	ctx->stats.adds++;
	return verdict;
}

/* Moves a timer that has the key, and is of the right kind. */
static int move(struct twheel_context *ctx, struct twheel_user_timer *ut,
		struct twheel_op *op, u64 now)
{
	int verdict = TWHEEL_WAS_PENDING;

	if (twheel_state_of(ut) == TWHEEL_EXPIRED)
		verdict = take_event_back(ctx, ut);
	twheel_user_begin(ctx, ut, op, now);
	ctx->stats.rearms++;
	return verdict;
}

/* As add(), for a timer with a key. */
static int add_keyed(struct twheel_context *ctx, struct twheel_op *op, u64 now)
{
	struct twheel_user_timer *old, *ut;

	old = twheel_keys_find(ctx, op->key);
	if (old && (twheel_kind_of(old) != kind_of(op) ||
		    twheel_state_of(old) == TWHEEL_IN_DELIVERY))
		return replace(ctx, old, op, now);
	if (old)
		return move(ctx, old, op, now);
	if (twheel_timers_limited(ctx))
		return -ENOSPC;
	if (!twheel_keys_room(ctx))
		return -EAGAIN;
	ut = twheel_timer_take(ctx, kind_of(op));
	if (!ut)
		return -EAGAIN;
	twheel_keys_insert(ctx, ut, op->key);
	twheel_user_begin(ctx, ut, op, now);
	ctx->stats.adds++;
	return TWHEEL_WAS_ABSENT;
}

/* With another limit the deadline, and so its clock, need not be given. */
static void set_defaults(struct twheel_op *op)
{
	if (!op->idle && !op->lifetime)
		return;
	if (!op->time && !(op->flags & TWHEEL_TIME_ABS))
		op->time = TWHEEL_TIME_NONE;
	if (op->time == TWHEEL_TIME_NONE && !op->clock)
		op->clock = CLOCK_MONOTONIC;
}

static noinline int add_any(struct twheel_context *ctx, struct twheel_op *op, u64 now)
{
	struct twheel_user_timer *ut;
	int ret;

	set_defaults(op);
	ret = check_add(ctx, op);
	if (ret)
		return ret;
	if (op->clock != CLOCK_MONOTONIC && !ctx->has_clocks)
		return -EAGAIN;
	if (op->flags & TWHEEL_KEYED)
		return add_keyed(ctx, op, now);
	if (twheel_timers_limited(ctx))
		return -ENOSPC;
	ut = twheel_timer_take(ctx, kind_of(op));
	if (!ut)
		return -EAGAIN;
	twheel_user_begin(ctx, ut, op, now);
	ctx->stats.adds++;
	return 0;
}

/* What is asked for most: a timer with a deadline, and nothing else. */
static __always_inline int add(struct twheel_context *ctx, struct twheel_op *op, u64 now,
			       bool slim)
{
	struct twheel_user_timer *ut;

	if (unlikely(op->flags & ~TWHEEL_TIME_ABS || op->clock != CLOCK_MONOTONIC ||
		     op->time > TWHEEL_TIME_MAX || !is_slim(op, slim) ||
		     twheel_timers_limited(ctx)))
		return add_any(ctx, op, now);
	ut = twheel_timer_take(ctx, TWHEEL_PLAIN);
	if (unlikely(!ut))
		return -EAGAIN;
	ut->user_data = op->user_data;
	op->handle = twheel_handle_of(ut, sizeof(*ut));
	start(ut, plain_deadline(op, now));
	ctx->stats.adds++;
	return 0;
}

static noinline int cancel_any(struct twheel_context *ctx, const struct twheel_op *op)
{
	struct twheel_user_timer *ut;

	if (op->flags & ~TWHEEL_BY_KEY)
		return -EOPNOTSUPP;
	if (op->time | op->user_data | op->clock || !is_slim(op, false))
		return -EINVAL;
	ut = find(ctx, op->handle, op->flags);
	if (IS_ERR(ut))
		return PTR_ERR(ut);
	return twheel_user_cancel(ctx, ut);
}

/* What is asked for most: a pending timer is cancelled. */
static __always_inline int cancel(struct twheel_context *ctx, const struct twheel_op *op,
				  bool slim)
{
	struct twheel_user_timer *ut;

	if (unlikely(op->flags | op->time | op->user_data | op->clock || !is_slim(op, slim)))
		return cancel_any(ctx, op);
	ut = twheel_timer_pending(ctx, op->handle);
	return likely(ut) ? cancel_pending(ctx, ut) : cancel_any(ctx, op);
}

static int check_rearm(const struct twheel_op *op)
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

/* Has a timer that is being delivered armed anew when that is over. */
static int rearm_later(struct twheel_context *ctx, struct twheel_rich_timer *rt,
		       const struct twheel_op *op, u64 now)
{
	int ret = twheel_rich_rearm(ctx, rt, op, now);

	if (ret)
		return ret;
	rt->after = TWHEEL_AFTER_ARM;
	ctx->stats.rearms++;
	return TWHEEL_WAS_DELIVERED;
}

/* Arms a timer for the first of its limits. If it is with the worker, that will do so. */
static void rearm_rich(struct twheel_context *ctx, struct twheel_user_timer *ut, u64 now)
{
	u64 expires = twheel_rich_expiry(ctx, twheel_rich(ut), now);

	if (twheel_state_of(ut) == TWHEEL_WITH_WORKER)
		ut->node.deadline = expires;
	else
		twheel_user_arm(ut, expires);
}

static noinline int rearm_any(struct twheel_context *ctx, const struct twheel_op *op, u64 now)
{
	int verdict = TWHEEL_WAS_PENDING, ret;
	struct twheel_user_timer *ut;

	ret = check_rearm(op);
	if (ret)
		return ret;
	ut = find(ctx, op->handle, op->flags);
	if (IS_ERR(ut))
		return PTR_ERR(ut);
	if (twheel_state_of(ut) == TWHEEL_IN_DELIVERY)
		return rearm_later(ctx, twheel_rich(ut), op, now);
	/* It watches no more. */
	if (twheel_kind_of(ut) == TWHEEL_WITH_WATCH && !twheel_watched(ut)->watch.sk)
		return -ENOTCONN;
	if (twheel_is_rich(ut))
		ret = twheel_rich_rearm(ctx, twheel_rich(ut), op, now);
	else if (op->flags & TWHEEL_ACTIVE || op->limit || op->time == TWHEEL_TIME_NONE)
		ret = -EINVAL;
	if (ret)
		return ret;
	if (twheel_state_of(ut) == TWHEEL_EXPIRED)
		verdict = take_event_back(ctx, ut);
	if (twheel_is_rich(ut))
		rearm_rich(ctx, ut, now);
	else
		twheel_user_arm(ut, deadline(op, now));
	ctx->stats.rearms++;
	return verdict;
}

/* What is asked for most: the deadline of a pending timer moves. */
static __always_inline int rearm(struct twheel_context *ctx, const struct twheel_op *op,
				 u64 now, bool slim)
{
	struct twheel_user_timer *ut;

	if (unlikely(op->flags & ~TWHEEL_TIME_ABS || op->time > TWHEEL_TIME_MAX ||
		     op->user_data | op->clock || !is_slim(op, slim)))
		return rearm_any(ctx, op, now);
	ut = twheel_timer_pending(ctx, op->handle);
	if (unlikely(!ut || twheel_is_rich(ut)))
		return rearm_any(ctx, op, now);
	twheel_rearm_bhoff(&ut->timer, plain_deadline(op, now));
	ctx->stats.rearms++;
	return TWHEEL_WAS_PENDING;
}

static __always_inline int run(struct twheel_context *ctx, struct twheel_op *op, u64 now,
			       bool slim)
{
	switch (op->opcode) {
	case TWHEEL_OP_ADD:
		return add(ctx, op, now, slim);
	case TWHEEL_OP_CANCEL:
		return cancel(ctx, op, slim);
	case TWHEEL_OP_REARM:
		return rearm(ctx, op, now, slim);
	default:
		/* What cannot even be read has its result already. */
		return op->result ?: -EOPNOTSUPP;
	}
}

/**
 * twheel_user_prepare - provide what an add needs and cannot be had under the lock
 * @ctx:	the context
 * @op:		the add
 *
 * Context: process; may sleep.
 * Return: 0, or an errno.
 */
int twheel_user_prepare(struct twheel_context *ctx, const struct twheel_op *op)
{
	int ret = 0;

	if (op->flags & TWHEEL_KEYED)
		ret = twheel_keys_grow(ctx);
	if (ret)
		return ret;
	if (op->clock != CLOCK_MONOTONIC)
		twheel_clocks_join(ctx);
	return twheel_context_grow(ctx, kind_of(op));
}

/* Does an operation that has returned -EAGAIN. Lets go of the lock for a while. */
static noinline int run_again(struct twheel_context *ctx, struct twheel_op *op)
	__must_hold(&ctx->lock)
{
	bool watched = op->flags & TWHEEL_WATCHED;
	int ret;

	do {
		spin_unlock_bh(&ctx->lock);
		ret = watched ? twheel_watched_add(ctx, op) : twheel_user_prepare(ctx, op);
		spin_lock_bh(&ctx->lock);
		if (!ret && !watched)
			ret = run(ctx, op, ktime_get_ns(), false);
	} while (ret == -EAGAIN);
	return ret;
}

static __always_inline unsigned int run_all(struct twheel_context *ctx, struct twheel_op *ops,
					    unsigned int nr, bool stop, bool slim)
{
	u64 now = ktime_get_ns();
	unsigned int i = 0;
	int ret = 0;

	spin_lock_bh(&ctx->lock);
	while (i < nr && !(unlikely(ret < 0) && stop)) {
		ret = run(ctx, &ops[i], now, slim);
		if (unlikely(ret == -EAGAIN)) {
			ret = run_again(ctx, &ops[i]);
			now = ktime_get_ns();
		}
		ops[i++].result = ret;
	}
	spin_unlock_bh(&ctx->lock);
	return i;
}

/**
 * twheel_user_run - do an array of operations
 * @ctx:	the context
 * @ops:	the operations, their results 0. These are set, and the handles of adds
 * @nr:		their number: few, as the context is locked meanwhile
 * @stop:	end with the first that fails
 * @slim:	all are known to be zero behind their first 40 bytes
 *
 * Context: process; may sleep.
 * Return: how many have been done.
 */
unsigned int twheel_user_run(struct twheel_context *ctx, struct twheel_op *ops, unsigned int nr,
			     bool stop, bool slim)
{
	if (slim)
		return run_all(ctx, ops, nr, stop, true);
	return run_all(ctx, ops, nr, stop, false);
}

/* Has the timer not expired? */
static bool is_pending(const struct twheel_user_timer *ut)
{
	switch (twheel_state_of(ut)) {
	case TWHEEL_PENDING:
	case TWHEEL_POSTPONED:
	case TWHEEL_WITH_WORKER:
		return true;
	default:
		return false;
	}
}

/**
 * twheel_user_describe - tell what there is to know of a timer
 * @ut:		the timer, as twheel_timer_find() gives it
 * @query:	is filled in
 *
 * Context: with the context's lock held.
 */
void twheel_user_describe(struct twheel_user_timer *ut, struct twheel_timer_query *query)
{
	const struct twheel_rich_timer *rt = twheel_rich(ut);
	u64 now = ktime_get_ns();

	*query = (struct twheel_timer_query) {
		.handle		= twheel_timer_handle(ut),
		.deadline	= ut->node.deadline,
		.user_data	= ut->user_data,
		.state		= is_pending(ut) ? TWHEEL_STATE_PENDING : TWHEEL_STATE_EXPIRED,
		.clock		= CLOCK_MONOTONIC,
	};
	if (ut->node.state & TWHEEL_HASHED) {
		query->flags = TWHEEL_KEYED;
		query->key = twheel_keyed(ut)->key;
	}
	if (twheel_kind_of(ut) == TWHEEL_WITH_WATCH)
		query->flags |= twheel_watched(ut)->watch.flags & TWHEEL_WATCH_FLAGS;
	if (twheel_is_rich(ut)) {
		query->period = rt->period;
		query->clock = rt->clock;
		query->limit = rt->limit;
		if (rt->limit == TWHEEL_LIMIT_DEADLINE)
			query->deadline = rt->deadline;
		now = twheel_clock_read(rt->clock, now);
	}
	if (query->deadline > now)
		query->remaining = query->deadline - now;
}

/**
 * twheel_user_query - tell a timer's state
 * @ctx:	the context
 * @query:	in: the handle and flags; out: the rest
 *
 * Context: process.
 * Return: 0, -ENOENT, -EALREADY or -EOPNOTSUPP.
 */
int twheel_user_query(struct twheel_context *ctx, struct twheel_timer_query *query)
{
	struct twheel_user_timer *ut;

	if (query->flags & ~TWHEEL_BY_KEY)
		return -EOPNOTSUPP;
	spin_lock_bh(&ctx->lock);
	ut = find(ctx, query->handle, query->flags);
	if (!IS_ERR(ut))
		twheel_user_describe(ut, query);
	spin_unlock_bh(&ctx->lock);
	return PTR_ERR_OR_ZERO(ut);
}
