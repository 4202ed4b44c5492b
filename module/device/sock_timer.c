// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: timers of contexts that watch connections; tcp/ has the sockets' side
 *
 * Such a timer is armed like any other, for the first of its limits. When it comes due, and the
 * socket shows no activity that would defer it, it goes to the worker, which checks again with the
 * socket locked:
 *
 *	PENDING ---> WITH_WORKER ---> IN_ACTION ---> EXPIRED
 *	   ^            |    |
 *	   '------------'    '---> FREE: the connection is closed, there is no event
 *	 active, or busy
 *
 * Whatever happens meanwhile holds the context's lock, finds the timer in one of these states, and
 * is final. A cancel takes the timer back from the worker; if the worker has already started on it,
 * it finds when it gets the lock that nothing is left to decide, and frees the timer. In IN_ACTION
 * the decision has been made: the timer has expired.
 *
 * The watch leaves the table, and drops the socket, as soon as the timer has been cancelled or
 * decided on: from then on the socket can get another timer.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>

#include "context.h"
#include "deliver.h"
#include "keys.h"
#include "lib/users.h"
#include "limits.h"
#include "op.h"
#include "pool.h"
#include "postponed.h"
#include "sock_timer.h"
#include "tcp/last_activity.h"
#include "tcp/watch.h"
#include "tcp/watch_table.h"
#include "tcp/watch_worker.h"
#include "utimer.h"

static struct twheel_watch_kind sock_timer_kind;

/*
 * Guards @nr_joined, and is held while @sock_timer_kind is added and removed. Taken in process
 * context, outside all other locks.
 */
static DEFINE_MUTEX(join_lock);
/* Contexts with watches. */
static unsigned int nr_joined;

static struct twheel_sock_timer *sock_timer_of_watch(struct twheel_watch *watch)
{
	return container_of(watch, struct twheel_sock_timer, watch);
}

/* Makes a timer stop watching its connection. */
static void unlink_watch(struct twheel_utimer *ut)
{
	struct twheel_watch *watch = &twheel_sock_timer_of(ut)->watch;

	if (watch->sk)
		sock_put(twheel_watch_remove(&sock_timer_kind, watch));
}

/* The last activity of the connection that a timer watches. */
static u64 sock_last_activity(struct twheel_extended_timer *et, u64 now)
{
	const struct twheel_watch *watch = &twheel_sock_timer_of(&et->kt.ut)->watch;

	return twheel_last_activity(watch->sk, watch->flags, now);
}

/* Hands a timer to the worker that is pending, but not on the wheel any more. */
static void queue_for_worker(struct twheel_utimer *ut)
{
	twheel_set_state(ut, TWHEEL_WITH_WORKER);
	twheel_watch_enqueue(&twheel_block_of(ut)->ctx->watch_worker,
			     &twheel_sock_timer_of(ut)->watch);
}

/*
 * Takes a timer in state %TWHEEL_WITH_WORKER back from the worker, to cancel it. Its watch may have
 * been unqueued already, if another timer has replaced it. Returns true if the timer can be freed;
 * false if the worker is processing it, and will free it.
 */
static bool unqueue_from_worker(struct twheel_utimer *ut)
{
	if (twheel_watch_unqueue(&twheel_block_of(ut)->ctx->watch_worker,
				 &twheel_sock_timer_of(ut)->watch))
		return true;
	/* The socket can get another timer at once. */
	unlink_watch(ut);
	return false;
}

/* Ends a timer whose connection is closed. */
static void end_timer(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	twheel_utimer_free(ctx, ut, false);
	ctx->stats.ended++;
}

/* Checks a timer whose socket is locked, and open. Returns whether it has expired. */
static bool check_expiry(struct twheel_context *ctx, struct twheel_sock_timer *st)
{
	struct twheel_utimer *ut = &st->et.kt.ut;
	u64 now = ktime_get_ns(), expires;

	st->retry_at = TWHEEL_TIME_NONE;
	expires = twheel_extended_expiry(ctx, &st->et, now);
	if (expires > now) {
		ctx->stats.deferrals++;
		twheel_utimer_arm_again(ctx, ut, expires, now);
		return false;
	}
	ut->node.deadline = expires;
	twheel_set_state(ut, TWHEEL_IN_ACTION);
	unlink_watch(ut);
	return true;
}

static bool evaluate_timer(struct twheel_watch *watch, enum twheel_sk_status status)
{
	struct twheel_sock_timer *st = sock_timer_of_watch(watch);
	struct twheel_utimer *ut = &st->et.kt.ut;
	struct twheel_context *ctx = twheel_block_of(ut)->ctx;
	bool expired = false;
	u64 now;

	spin_lock_bh(&ctx->lock);
	twheel_watch_put_back(&ctx->watch_worker, watch);
	if (status != TWHEEL_SK_BUSY)
		twheel_watch_set_busy_count(watch, 0);
	/* After the last close(), nothing is decided any more. */
	if (st->et.deferred_op == TWHEEL_DEFERRED_CANCEL || ctx->closing) {
		twheel_utimer_free(ctx, ut, false);
	} else if (status == TWHEEL_SK_CLOSED) {
		end_timer(ctx, ut);
	} else if (status == TWHEEL_SK_BUSY) {
		now = ktime_get_ns();
		st->retry_at = now + twheel_watch_back_off(watch);
		twheel_utimer_arm_again(ctx, ut, st->retry_at, now);
	} else {
		expired = check_expiry(ctx, st);
	}
	spin_unlock_bh(&ctx->lock);
	return expired;
}

/* The action on the connection is complete: queues the event. */
static void finish_action(struct twheel_watch *watch)
{
	struct twheel_sock_timer *st = sock_timer_of_watch(watch);
	struct twheel_utimer *ut = &st->et.kt.ut;
	struct twheel_context *ctx = twheel_block_of(ut)->ctx;

	spin_lock_bh(&ctx->lock);
	if (st->et.deferred_op == TWHEEL_DEFERRED_CANCEL)
		twheel_utimer_free(ctx, ut, false);
	else if (!ctx->closing)
		twheel_deliver_queue(ctx, ut, ktime_get_ns());
	spin_unlock_bh(&ctx->lock);
}

static void handle_sk_closed(struct twheel_watch *watch, struct sock *sk)
{
	struct twheel_utimer *ut = &sock_timer_of_watch(watch)->et.kt.ut;
	struct twheel_context *ctx = twheel_block_of(ut)->ctx;

	spin_lock_bh(&ctx->lock);
	/* It will not be busy for long any more. */
	if (watch->sk == sk)
		twheel_watch_set_busy_count(watch, 0);
	/* In any other state, the worker will find out by itself. */
	if (watch->sk == sk && (twheel_state_of(ut) == TWHEEL_PENDING ||
				twheel_state_of(ut) == TWHEEL_POSTPONED)) {
		twheel_utimer_disarm(ut);
		queue_for_worker(ut);
	}
	spin_unlock_bh(&ctx->lock);
}

/* A timer's generation changes when it is freed. */
static u8 timer_life(const struct twheel_watch *watch)
{
	const struct twheel_sock_timer *st = container_of(watch, struct twheel_sock_timer,
							  watch);

	/* If it is being freed right now, that is noticed: see note_end() in sk_state.c. */
	return data_race(st->et.kt.ut.node.generation) | 1U << 7;
}

static struct twheel_watch_kind sock_timer_kind = {
	.name		= "timers",
	.timer_offset	= offsetof(struct twheel_sock_timer, watch),
	.evaluate	= evaluate_timer,
	.action_done	= finish_action,
	.sk_closed	= handle_sk_closed,
	.life		= timer_life,
};

static const struct twheel_kind_ops sock_timer_ops = {
	.last_activity	= sock_last_activity,
	.handle_due	= queue_for_worker,
	.unqueue	= unqueue_from_worker,
	.unlink		= unlink_watch,
};

/**
 * twheel_sock_timers_register - register the operations of timers that watch connections
 */
void __init twheel_sock_timers_register(void)
{
	twheel_kind_ops[TWHEEL_WITH_WATCH] = &sock_timer_ops;
}

/**
 * twheel_sock_timers_init - initialise a context's worker for watches
 * @ctx:	the context, whose user has been set
 *
 * Context: process.
 */
void twheel_sock_timers_init(struct twheel_context *ctx)
{
	twheel_watch_worker_init(&ctx->watch_worker, &sock_timer_kind, ctx->user->queue);
}

/* Allows a context to have watches. */
static int enable_watches(struct twheel_context *ctx)
{
	int ret = 0;

	/* Pairs with the smp_store_release() below. */
	if (smp_load_acquire(&ctx->has_watches))
		return 0;
	if (mutex_lock_killable(&join_lock))
		return -EINTR;
	if (!ctx->has_watches) {
		if (!nr_joined)
			ret = twheel_watch_kind_add(&sock_timer_kind);
		if (!ret) {
			nr_joined++;
			/* The kind has been added. Pairs with the smp_load_acquire() above. */
			smp_store_release(&ctx->has_watches, true);
		}
	}
	mutex_unlock(&join_lock);
	return ret;
}

/*
 * Gives a timer its watch. If it replaces another timer of the same socket, that one loses its own:
 * it is off the worker's list then, unless the worker is already processing it, and the caller must
 * still cancel it.
 */
static int begin_watch(struct twheel_context *ctx, struct twheel_utimer *old,
		       struct twheel_utimer *ut, struct sock *sk)
{
	struct twheel_watch *watch = &twheel_sock_timer_of(ut)->watch;

	if (old && twheel_kind_of(old) == TWHEEL_WITH_WATCH &&
	    twheel_sock_timer_of(old)->watch.sk == sk) {
		/* Before it loses its socket, which the worker needs. */
		twheel_watch_unqueue(&ctx->watch_worker, &twheel_sock_timer_of(old)->watch);
		twheel_watch_replace(&sock_timer_kind, &twheel_sock_timer_of(old)->watch, watch);
		return 0;
	}
	return twheel_watch_insert(&sock_timer_kind, watch, sk);
}

/* Gives a timer the key of another one, and ends that one. Returns a verdict. */
static int take_over_key(struct twheel_context *ctx, struct twheel_utimer *old,
			 struct twheel_utimer *ut)
{
	bool ends = twheel_state_of(old) == TWHEEL_IN_DELIVERY && !twheel_is_periodic(old);

	twheel_keys_replace(ctx, old, ut);
	return ends ? TWHEEL_WAS_ABSENT : twheel_utimer_cancel(ctx, old);
}

/* Gives a timer its watch and its key: all that can fail. Returns a verdict, or an errno. */
static int link_timer(struct twheel_context *ctx, struct twheel_utimer *old,
		      struct twheel_utimer *ut, const struct twheel_op *op, struct sock *sk)
{
	int ret = begin_watch(ctx, old, ut, sk);

	if (ret)
		return ret;
	if (op->flags & TWHEEL_KEYED && !old)
		twheel_keys_insert(ctx, ut, op->key);
	if (old)
		return take_over_key(ctx, old, ut);
	return op->flags & TWHEEL_KEYED ? TWHEEL_WAS_ABSENT : 0;
}

/* Adds a timer for a socket that is locked, and open. Allocates nothing but table memory. */
static int add_locked(struct twheel_context *ctx, struct twheel_op *op, struct sock *sk)
{
	struct twheel_utimer *old = NULL, *ut;
	struct twheel_sock_timer *st;
	int ret;

	if (op->flags & TWHEEL_KEYED) {
		old = twheel_keys_find(ctx, op->key);
		if (!old && !twheel_keys_has_room(ctx))
			return -EAGAIN;
	}
	/* There may be one more for a moment, if the old one can be freed. */
	if ((!old || twheel_state_of(old) >= TWHEEL_IN_DELIVERY) && twheel_timers_at_limit(ctx))
		return -ENOSPC;
	ut = twheel_utimer_alloc(ctx, TWHEEL_WITH_WATCH);
	if (!ut)
		return -EAGAIN;
	st = twheel_sock_timer_of(ut);
	st->watch.flags = op->flags & TWHEEL_WATCH_FLAGS;
	st->retry_at = TWHEEL_TIME_NONE;
	ret = link_timer(ctx, old, ut, op, sk);
	if (ret < 0) {
		twheel_utimer_free(ctx, ut, false);
		return ret;
	}
	twheel_utimer_begin(ctx, ut, op, ktime_get_ns());
	ctx->stats.adds++;
	return ret;
}

/*
 * Ends a timer, of whatever context, if the connection that it watches has ended, and the socket
 * has another one by now. The worker was about to. The socket is locked. Returns whether it did so.
 */
static bool end_stale_timer(struct sock *sk)
{
	struct twheel_watch *watch;
	struct twheel_context *ctx;
	struct twheel_utimer *ut;
	bool ended = false;

	rcu_read_lock();
	watch = twheel_watch_find(&sock_timer_kind, sk);
	if (watch && twheel_watch_has_ended(&sock_timer_kind, watch)) {
		ut = &sock_timer_of_watch(watch)->et.kt.ut;
		ctx = twheel_block_of(ut)->ctx;
		spin_lock_bh(&ctx->lock);
		ended = watch->sk == sk;
		if (ended) {
			twheel_utimer_cancel(ctx, ut);
			ctx->stats.cancels--;
			ctx->stats.ended++;
		}
		spin_unlock_bh(&ctx->lock);
	}
	rcu_read_unlock();
	return ended;
}

/*
 * Adds a timer, with the locks taken from the outside in: that of the socket, whose state must not
 * change until the watch is in the table, and that of the context.
 */
static int lock_and_add(struct twheel_context *ctx, struct twheel_op *op, struct sock *sk)
{
	int ret = -ENOTCONN;

	lock_sock(sk);
	if (twheel_watchable(sk->sk_state)) {
		spin_lock_bh(&ctx->lock);
		ret = add_locked(ctx, op, sk);
		spin_unlock_bh(&ctx->lock);
		if (ret == -EBUSY && end_stale_timer(sk))
			ret = -EAGAIN;
	}
	release_sock(sk);
	return ret;
}

/**
 * twheel_sock_timer_add - add a timer that watches a connection
 * @ctx:	the context
 * @op:		the add, with TWHEEL_WATCHED, which has been checked
 *
 * Context: process; may sleep.
 * Return: 0, or a verdict if it has a key; or
 * * %-EBADF	- no such file descriptor
 * * %-EOPNOTSUPP - it is not a TCP socket, or this kernel does not report changes of sockets
 * * %-ENOTCONN	- it has no connection that can be watched
 * * %-EBUSY	- another timer watches it
 * * %-ENOSPC, %-ENOMEM - no room for the timer
 * * %-EINTR	- killed while it waited for memory, or for others' first watch
 */
int twheel_sock_timer_add(struct twheel_context *ctx, struct twheel_op *op)
{
	struct sock *sk;
	int ret;

	sk = twheel_watch_sockfd_lookup(op->touch);
	if (IS_ERR(sk))
		return PTR_ERR(sk);
	ret = enable_watches(ctx);
	while (!ret && (ret = lock_and_add(ctx, op, sk)) == -EAGAIN)
		ret = twheel_op_prepare(ctx, op);
	sock_put(sk);
	return ret;
}

/* Cancels a batch of timers that watch. Returns whether there may be more. */
static bool cancel_some(struct twheel_context *ctx, u64 *cursor)
{
	struct twheel_utimer *ut = NULL;
	unsigned int budget = TWHEEL_LOCK_BATCH;

	spin_lock_bh(&ctx->lock);
	while (budget && !IS_ERR(ut)) {
		ut = twheel_utimer_next(ctx, cursor, &budget);
		if (!IS_ERR_OR_NULL(ut) && twheel_kind_of(ut) == TWHEEL_WITH_WATCH &&
		    twheel_sock_timer_of(ut)->watch.sk)
			twheel_utimer_cancel(ctx, ut);
	}
	spin_unlock_bh(&ctx->lock);
	return !IS_ERR(ut);
}

/**
 * twheel_sock_timers_stop - cancel the timers of a context that watch connections
 * @ctx:	the context, which is closing
 *
 * Does not wait for others: code that has found a watch in the table may access it until an RCU
 * grace period has passed.
 *
 * Context: process; may sleep.
 */
void twheel_sock_timers_stop(struct twheel_context *ctx)
{
	u64 cursor = 0;

	if (!ctx->has_watches)
		return;
	while (cancel_some(ctx, &cursor))
		cond_resched();
	twheel_watch_worker_stop(&ctx->watch_worker);
}

/**
 * twheel_sock_timers_leave - undo what allowed a context to have watches
 * @ctx:	the context, after twheel_sock_timers_stop()
 *
 * For the last such context this waits for an RCU grace period, and for a batch of changes or of a
 * scan for lost changes.
 *
 * Context: process; may sleep.
 */
void twheel_sock_timers_leave(struct twheel_context *ctx)
{
	if (!ctx->has_watches)
		return;
	mutex_lock(&join_lock);
	if (!--nr_joined)
		twheel_watch_kind_del(&sock_timer_kind);
	mutex_unlock(&join_lock);
}
