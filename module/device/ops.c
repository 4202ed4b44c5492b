// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: operations of a program: add, cancel, re-arm, query
 *
 * They run with the context locked, a batch at a time. The common cases are inlined; the rest is in
 * functions whose names end in _slow.
 */
#include <linux/ktime.h>
#include <linux/time.h>

#include "clocks.h"
#include "context.h"
#include "core/timer.h"
#include "keys.h"
#include "limits.h"
#include "op.h"
#include "ops.h"
#include "pool.h"
#include "sock_timer.h"
#include "tcp/watch.h"
#include "utimer.h"

/* Looks up the timer that an operation names. */
static struct twheel_utimer *find_timer(struct twheel_context *ctx, u64 handle, u32 flags)
{
	struct twheel_utimer *ut;

	if (likely(!(flags & TWHEEL_BY_KEY)))
		return twheel_utimer_lookup(ctx, handle);
	ut = twheel_keys_find(ctx, handle);
	if (!ut)
		return ERR_PTR(-ENOENT);
	if (twheel_state_of(ut) == TWHEEL_IN_DELIVERY && !twheel_is_periodic(ut))
		return ERR_PTR(-EALREADY);
	return ut;
}

/*
 * Does an operation use nothing beyond its first 40 bytes? @min_size is a constant: true if this is
 * known of all operations of an array, which then need not be checked.
 */
static __always_inline bool is_min_size(const struct twheel_op *op, bool min_size)
{
	return min_size || !(op->key | op->period | op->slack | op->spread | op->idle |
			     op->lifetime | op->touch | op->limit);
}

/*
 * Adds a timer in place of another one that has its key: one of a different kind, or one whose
 * event is being delivered.
 */
static int replace_keyed(struct twheel_context *ctx, struct twheel_utimer *old,
			 struct twheel_op *op, u64 now)
{
	bool ends = twheel_state_of(old) == TWHEEL_IN_DELIVERY && !twheel_is_periodic(old);
	int verdict = TWHEEL_WAS_ABSENT;
	struct twheel_utimer *ut;

	/* The old one still counts until its delivery, or the worker, is done with it. */
	if (twheel_state_of(old) >= TWHEEL_IN_DELIVERY && twheel_timers_at_limit(ctx))
		return -ENOSPC;
	ut = twheel_utimer_alloc(ctx, twheel_op_kind(op));
	if (!ut)
		return -EAGAIN;
	twheel_keys_replace(ctx, old, ut);
	if (!ends)
		verdict = twheel_utimer_cancel(ctx, old);
	twheel_utimer_begin(ctx, ut, op, now);
	ctx->stats.adds++;
	return verdict;
}

/* Re-arms the timer that has the key, which is of the right kind, as an add says. */
static int rearm_keyed(struct twheel_context *ctx, struct twheel_utimer *ut,
		       struct twheel_op *op, u64 now)
{
	int verdict = TWHEEL_WAS_PENDING;

	if (twheel_state_of(ut) == TWHEEL_EXPIRED)
		verdict = twheel_utimer_revoke_event(ctx, ut);
	twheel_utimer_begin(ctx, ut, op, now);
	ctx->stats.rearms++;
	return verdict;
}

/* As do_add(), for a timer with a key. */
static int add_keyed(struct twheel_context *ctx, struct twheel_op *op, u64 now)
{
	struct twheel_utimer *old, *ut;

	old = twheel_keys_find(ctx, op->key);
	if (old && (twheel_kind_of(old) != twheel_op_kind(op) ||
		    twheel_state_of(old) == TWHEEL_IN_DELIVERY))
		return replace_keyed(ctx, old, op, now);
	if (old)
		return rearm_keyed(ctx, old, op, now);
	if (twheel_timers_at_limit(ctx))
		return -ENOSPC;
	if (!twheel_keys_has_room(ctx))
		return -EAGAIN;
	ut = twheel_utimer_alloc(ctx, twheel_op_kind(op));
	if (!ut)
		return -EAGAIN;
	twheel_keys_insert(ctx, ut, op->key);
	twheel_utimer_begin(ctx, ut, op, now);
	ctx->stats.adds++;
	return TWHEEL_WAS_ABSENT;
}

/* With an idle timeout or a lifetime, the deadline may be left out, and so may its clock. */
static void set_defaults(struct twheel_op *op)
{
	if (!op->idle && !op->lifetime)
		return;
	if (!op->time && !(op->flags & TWHEEL_TIME_ABS))
		op->time = TWHEEL_TIME_NONE;
	if (op->time == TWHEEL_TIME_NONE && !op->clock)
		op->clock = CLOCK_MONOTONIC;
}

static noinline int add_slow(struct twheel_context *ctx, struct twheel_op *op, u64 now)
{
	struct twheel_utimer *ut;
	int ret;

	set_defaults(op);
	ret = twheel_op_check_add(ctx, op);
	if (ret)
		return ret;
	/* The socket must be locked before the context. */
	if (op->flags & TWHEEL_WATCHED)
		return -EAGAIN;
	if (op->clock != CLOCK_MONOTONIC && !ctx->has_clocks)
		return -EAGAIN;
	if (op->flags & TWHEEL_KEYED)
		return add_keyed(ctx, op, now);
	if (twheel_timers_at_limit(ctx))
		return -ENOSPC;
	ut = twheel_utimer_alloc(ctx, twheel_op_kind(op));
	if (!ut)
		return -EAGAIN;
	twheel_utimer_begin(ctx, ut, op, now);
	ctx->stats.adds++;
	return 0;
}

/* The common case: a timer with a deadline, and nothing else. */
static __always_inline int do_add(struct twheel_context *ctx, struct twheel_op *op, u64 now,
				  bool min_size)
{
	struct twheel_utimer *ut;

	if (unlikely(op->flags & ~TWHEEL_TIME_ABS || op->clock != CLOCK_MONOTONIC ||
		     op->time > TWHEEL_TIME_MAX || !is_min_size(op, min_size) ||
		     twheel_timers_at_limit(ctx)))
		return add_slow(ctx, op, now);
	ut = twheel_utimer_alloc(ctx, TWHEEL_BASIC);
	if (unlikely(!ut))
		return -EAGAIN;
	ut->user_data = op->user_data;
	op->handle = twheel_handle_of(ut, sizeof(*ut));
	twheel_utimer_start(ut, twheel_basic_deadline(op, now));
	ctx->stats.adds++;
	return 0;
}

static noinline int cancel_slow(struct twheel_context *ctx, const struct twheel_op *op)
{
	struct twheel_utimer *ut;

	if (op->flags & ~TWHEEL_BY_KEY)
		return -EOPNOTSUPP;
	if (op->time | op->user_data | op->clock || !is_min_size(op, false))
		return -EINVAL;
	ut = find_timer(ctx, op->handle, op->flags);
	if (IS_ERR(ut))
		return PTR_ERR(ut);
	return twheel_utimer_cancel(ctx, ut);
}

/* The common case: the timer is pending. */
static __always_inline int do_cancel(struct twheel_context *ctx, const struct twheel_op *op,
				     bool min_size)
{
	struct twheel_utimer *ut;

	if (unlikely(op->flags | op->time | op->user_data | op->clock ||
		     !is_min_size(op, min_size)))
		return cancel_slow(ctx, op);
	ut = twheel_utimer_lookup_pending(ctx, op->handle);
	return likely(ut) ? twheel_utimer_cancel_pending(ctx, ut) : cancel_slow(ctx, op);
}

/* Defers a re-arm until the event of the timer has been delivered. */
static int rearm_after_delivery(struct twheel_context *ctx, struct twheel_extended_timer *et,
				const struct twheel_op *op, u64 now)
{
	int ret = twheel_extended_rearm(ctx, et, op, now);

	if (ret)
		return ret;
	et->deferred_op = TWHEEL_DEFERRED_REARM;
	ctx->stats.rearms++;
	return TWHEEL_WAS_DELIVERED;
}

/* Arms a timer for the first of its limits; if it is with the worker, the worker will. */
static void rearm_extended(struct twheel_context *ctx, struct twheel_utimer *ut, u64 now)
{
	u64 expires = twheel_extended_expiry(ctx, twheel_extended(ut), now);

	if (twheel_state_of(ut) == TWHEEL_WITH_WORKER)
		/* Pairs with the READ_ONCE() in process_watch(). */
		WRITE_ONCE(ut->node.deadline, expires);
	else
		twheel_utimer_arm(ut, expires);
}

static noinline int rearm_slow(struct twheel_context *ctx, const struct twheel_op *op, u64 now)
{
	int verdict = TWHEEL_WAS_PENDING, ret;
	struct twheel_utimer *ut;

	ret = twheel_op_check_rearm(op);
	if (ret)
		return ret;
	ut = find_timer(ctx, op->handle, op->flags);
	if (IS_ERR(ut))
		return PTR_ERR(ut);
	if (twheel_state_of(ut) == TWHEEL_IN_DELIVERY)
		return rearm_after_delivery(ctx, twheel_extended(ut), op, now);
	/* It does not watch a connection any more. */
	if (twheel_kind_of(ut) == TWHEEL_WITH_WATCH && !twheel_sock_timer_of(ut)->watch.sk)
		return -ENOTCONN;
	if (twheel_is_extended(ut))
		ret = twheel_extended_rearm(ctx, twheel_extended(ut), op, now);
	else if (op->flags & TWHEEL_ACTIVE || op->limit || op->time == TWHEEL_TIME_NONE)
		ret = -EINVAL;
	if (ret)
		return ret;
	if (twheel_state_of(ut) == TWHEEL_EXPIRED)
		verdict = twheel_utimer_revoke_event(ctx, ut);
	if (twheel_is_extended(ut))
		rearm_extended(ctx, ut, now);
	else
		twheel_utimer_arm(ut, twheel_deadline(op, now));
	ctx->stats.rearms++;
	return verdict;
}

/* The common case: a pending timer gets another deadline. */
static __always_inline int do_rearm(struct twheel_context *ctx, const struct twheel_op *op,
				    u64 now, bool min_size)
{
	struct twheel_utimer *ut;

	if (unlikely(op->flags & ~TWHEEL_TIME_ABS || op->time > TWHEEL_TIME_MAX ||
		     op->user_data | op->clock || !is_min_size(op, min_size)))
		return rearm_slow(ctx, op, now);
	ut = twheel_utimer_lookup_pending(ctx, op->handle);
	if (unlikely(!ut || twheel_is_extended(ut)))
		return rearm_slow(ctx, op, now);
	twheel_rearm_bhoff(&ut->timer, twheel_basic_deadline(op, now));
	ctx->stats.rearms++;
	return TWHEEL_WAS_PENDING;
}

static __always_inline int run_op(struct twheel_context *ctx, struct twheel_op *op, u64 now,
				  bool min_size)
{
	switch (op->opcode) {
	case TWHEEL_OP_ADD:
		return do_add(ctx, op, now, min_size);
	case TWHEEL_OP_CANCEL:
		return do_cancel(ctx, op, min_size);
	case TWHEEL_OP_REARM:
		return do_rearm(ctx, op, now, min_size);
	default:
		/* An operation that could not even be read has its result already. */
		return op->result ?: -EOPNOTSUPP;
	}
}

/*
 * Runs an operation that has returned -EAGAIN: it cannot run with the lock held, or needs something
 * that can only be provided without it. Drops the lock, and takes it again.
 */
static noinline int run_op_unlocked(struct twheel_context *ctx, struct twheel_op *op)
	__must_hold(&ctx->lock)
{
	int ret;

	if (op->flags & TWHEEL_WATCHED) {
		spin_unlock_bh(&ctx->lock);
		ret = twheel_sock_timer_add(ctx, op);
		spin_lock_bh(&ctx->lock);
		return ret;
	}
	do {
		spin_unlock_bh(&ctx->lock);
		ret = twheel_op_prepare(ctx, op);
		spin_lock_bh(&ctx->lock);
		if (!ret)
			ret = run_op(ctx, op, ktime_get_ns(), false);
	} while (ret == -EAGAIN);
	return ret;
}

static __always_inline unsigned int run_batch(struct twheel_context *ctx, struct twheel_op *ops,
					      unsigned int nr, bool stop, bool min_size)
{
	u64 now = ktime_get_ns();
	unsigned int i = 0;
	int ret = 0;

	spin_lock_bh(&ctx->lock);
	while (i < nr && !(unlikely(ret < 0) && stop)) {
		ret = run_op(ctx, &ops[i], now, min_size);
		if (unlikely(ret == -EAGAIN)) {
			ret = run_op_unlocked(ctx, &ops[i]);
			now = ktime_get_ns();
		}
		ops[i++].result = ret;
	}
	spin_unlock_bh(&ctx->lock);
	return i;
}

/**
 * twheel_ops_run - run an array of operations
 * @ctx:	the context
 * @ops:	the operations, with a result of 0; or, for one that could not be read, an invalid
 *		opcode and an errno. Results are filled in, and the handles of adds
 * @nr:		number of operations; a few only, as the context is locked meanwhile
 * @stop:	stop after the first one that fails
 * @min_size:	all are known to be zero beyond their first 40 bytes
 *
 * Context: process; may sleep.
 * Return: how many were run.
 */
unsigned int twheel_ops_run(struct twheel_context *ctx, struct twheel_op *ops, unsigned int nr,
			    bool stop, bool min_size)
{
	if (min_size)
		return run_batch(ctx, ops, nr, stop, true);
	return run_batch(ctx, ops, nr, stop, false);
}

/* Does a query report the timer as pending? */
static bool is_pending(const struct twheel_utimer *ut)
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
 * twheel_utimer_describe - describe a timer for a query
 * @ut:		the timer, as returned by twheel_utimer_lookup()
 * @query:	filled in
 *
 * Context: with the context's lock held.
 */
void twheel_utimer_describe(struct twheel_utimer *ut, struct twheel_timer_query *query)
{
	const struct twheel_extended_timer *et = twheel_extended(ut);
	u64 now = ktime_get_ns();

	*query = (struct twheel_timer_query) {
		.handle		= twheel_utimer_handle(ut),
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
		query->flags |= twheel_sock_timer_of(ut)->watch.flags & TWHEEL_WATCH_FLAGS;
	if (twheel_is_extended(ut)) {
		query->period = et->period;
		query->clock = et->clock;
		query->limit = et->limit;
		if (et->limit == TWHEEL_LIMIT_DEADLINE)
			query->deadline = et->deadline;
		now = twheel_clock_read(et->clock, now);
	}
	if (query->deadline > now)
		query->remaining = query->deadline - now;
}

/**
 * twheel_ops_query - query a timer's state
 * @ctx:	the context
 * @query:	in: the handle and flags; out: the rest
 *
 * Context: process.
 * Return: 0, -ENOENT, -EALREADY or -EOPNOTSUPP.
 */
int twheel_ops_query(struct twheel_context *ctx, struct twheel_timer_query *query)
{
	struct twheel_utimer *ut;

	if (query->flags & ~TWHEEL_BY_KEY)
		return -EOPNOTSUPP;
	spin_lock_bh(&ctx->lock);
	ut = find_timer(ctx, query->handle, query->flags);
	if (!IS_ERR(ut))
		twheel_utimer_describe(ut, query);
	spin_unlock_bh(&ctx->lock);
	return PTR_ERR_OR_ZERO(ut);
}
