// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: expiry of timers, and delivery of their events: read, poll, the ring
 *
 * A context with a ring has its events delivered there at once, as long as there is room; the
 * others wait, and none overtakes them.
 *
 * A reader takes a batch of timers off the queue under the lock, copies their events to the program
 * without it, and then frees the timers. If the copy fails, the rest goes back to the head of the
 * queue, and the sequence numbers are used again. In between, such a timer is neither pending nor
 * expired: a cancel then comes too late, just as it would after the read. No ring can be created
 * meanwhile, as it would continue with the same numbers.
 *
 * Each event wakes waiters even if other events are queued already, as edge-triggered epoll relies
 * on that. No wake-up is lost:
 *
 *	expiry					reader, or poll
 *	nr_events++				puts itself on @waiters
 *	full barrier (wq_has_sleeper())		full barrier (prepare_to_wait(), smp_mb())
 *	checks for anyone on @waiters		checks nr_events
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>
#include <uapi/linux/twheel.h>

#include "clocks.h"
#include "context.h"
#include "deliver.h"
#include "events.h"
#include "lib/inject.h"
#include "lib/users.h"
#include "limits.h"
#include "pool.h"
#include "postponed.h"
#include "ring.h"
#include "twheel.h"
#include "utimer.h"
#include "waiters.h"

/* Events copied, or moved to the ring, at a time. */
#define BATCH	16

/* Postponed timers handled before the lock is dropped. */
#define POSTPONED_BATCH	32

/*
 * The event of a timer has been delivered, and the timer is off the list of events. Ends a one-shot
 * timer, and lets a periodic one go on.
 */
static void complete_delivered(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	struct twheel_extended_timer *et = twheel_extended(ut);
	u64 now;

	ctx->stats.delivered++;
	if (likely(!twheel_is_periodic(ut))) {
		twheel_utimer_free(ctx, ut, true);
	} else if (et->deferred_op == TWHEEL_DEFERRED_CANCEL) {
		twheel_utimer_free(ctx, ut, false);
	} else {
		if (et->deferred_op == TWHEEL_DEFERRED_NONE)
			twheel_extended_next_period(et);
		et->deferred_op = TWHEEL_DEFERRED_NONE;
		now = ktime_get_ns();
		twheel_utimer_arm_again(ctx, ut, twheel_extended_expiry(ctx, et, now), now);
	}
}

/*
 * The event of a timer could not be delivered, and the timer is off the list of events. Returns
 * true if the event is to be delivered later, and the caller must put the timer back on the list;
 * false if the timer was cancelled or re-armed during the attempt.
 */
static bool resolve_undelivered(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	struct twheel_extended_timer *et = twheel_extended(ut);

	if (twheel_is_periodic(ut) && et->deferred_op != TWHEEL_DEFERRED_NONE) {
		if (et->deferred_op == TWHEEL_DEFERRED_CANCEL)
			twheel_utimer_free(ctx, ut, false);
		else
			twheel_utimer_arm(ut, twheel_extended_expiry(ctx, et, ktime_get_ns()));
		et->deferred_op = TWHEEL_DEFERRED_NONE;
		ctx->stats.taken_back++;
		return false;
	}
	return true;
}

/* Moves up to BATCH waiting events into the ring. Returns how many: if BATCH, there may be more. */
static unsigned int move_to_ring(struct twheel_context *ctx)
{
	struct twheel_utimer *ut;
	struct twheel_event *event;
	unsigned int moved = 0;

	while (moved < BATCH && (ut = twheel_events_first(ctx)) &&
	       (event = twheel_ring_reserve(ctx))) {
		twheel_event_fill(ctx, ut, ctx->seq++, event);
		twheel_ring_commit(ctx);
		twheel_events_unqueue(ctx, ut);
		complete_delivered(ctx, ut);
		moved++;
	}
	twheel_ring_set_waiting(ctx, ctx->nr_events);
	return moved;
}

/**
 * twheel_deliver_queue - queue the event of a timer that has expired
 * @ctx:	the context
 * @ut:		the timer, which is not armed
 * @fired:	when it expired, in nanoseconds of its clock
 *
 * Context: process and softirq, with the context's lock held.
 */
void twheel_deliver_queue(struct twheel_context *ctx, struct twheel_utimer *ut, u64 fired)
{
	twheel_events_append(ctx, ut, fired);
	if (ctx->ring)
		move_to_ring(ctx);
	twheel_waiters_wake(&ctx->waiters);
}

/* Finds out whether a timer has expired that has come due and is not armed any more. */
static void handle_due_timer(struct twheel_context *ctx, struct twheel_utimer *ut, u64 now)
{
	u64 expires;

	if (twheel_is_extended(ut)) {
		expires = twheel_extended_expiry(ctx, twheel_extended(ut), now);
		if (expires > now) {
			ctx->stats.deferrals++;
			twheel_utimer_arm_again(ctx, ut, expires, now);
			return;
		}
		/* It may be due for a different limit than the one it was armed for. */
		ut->node.deadline = expires;
		if (twheel_kind_ops[twheel_kind_of(ut)]) {
			twheel_kind_ops[twheel_kind_of(ut)]->handle_due(ut);
			return;
		}
		now = twheel_clock_read(twheel_extended(ut)->clock, now);
	}
	twheel_deliver_queue(ctx, ut, now);
}

/**
 * twheel_utimer_expired - callback of a context's timers
 * @timer:	the core's part of the timer
 *
 * Context: softirq.
 */
void twheel_utimer_expired(struct twheel_timer *timer)
{
	struct twheel_utimer *ut = container_of(timer, struct twheel_utimer, timer);
	struct twheel_context *ctx = twheel_block_of(ut)->ctx;
	u64 now;

	spin_lock(&ctx->lock);
	if (twheel_state_of(ut) != TWHEEL_PENDING || twheel_pending(timer) || ctx->closing)
		goto out;
	now = ktime_get_ns();
	if (!twheel_is_extended(ut) || !twheel_postpone(ctx, twheel_extended(ut), now))
		handle_due_timer(ctx, ut, now);
out:
	spin_unlock(&ctx->lock);
}

static void expire_postponed_work(struct work_struct *work)
{
	struct twheel_context *ctx = container_of(work, struct twheel_context, postponed_work);
	struct twheel_utimer *ut;
	unsigned int i;
	u64 now;

	spin_lock_bh(&ctx->lock);
	now = ktime_get_ns();
	for (i = 0; i < POSTPONED_BATCH && !ctx->closing && !list_empty(&ctx->postponed); i++) {
		ut = list_first_entry(&ctx->postponed, struct twheel_utimer, node.link);
		twheel_utimer_unpostpone(ut);
		handle_due_timer(ctx, ut, now);
	}
	/* Timers postponed from now on find the list empty, or the work queued. */
	if (!ctx->closing && !list_empty(&ctx->postponed))
		queue_work(ctx->user->queue, &ctx->postponed_work);
	spin_unlock_bh(&ctx->lock);
}

/**
 * twheel_deliver_init - set up a context's worker for postponed timers
 * @ctx:	the context
 *
 * Context: process.
 */
void twheel_deliver_init(struct twheel_context *ctx)
{
	twheel_postponed_init(ctx, expire_postponed_work);
}

static u64 read_nr_events(const struct twheel_context *ctx)
{
	/* Pairs with the WRITE_ONCE() in set_nr_events(). */
	return READ_ONCE(ctx->nr_events);
}

static bool has_ring(const struct twheel_context *ctx)
{
	/* Pairs with the smp_store_release() in twheel_ring_create(). */
	return READ_ONCE(ctx->ring);
}

/* Completes the delivery of the first @done timers of a batch of @n; puts the others back. */
static void finish_delivery(struct twheel_context *ctx, struct twheel_utimer **batch,
			    const struct twheel_event *events, unsigned int done, unsigned int n)
{
	bool requeued = false;

	spin_lock_bh(&ctx->lock);
	ctx->seq += done;
	while (n > done) {
		if (!resolve_undelivered(ctx, batch[--n]))
			continue;
		twheel_events_put_back(ctx, batch[n], events[n].fired);
		requeued = true;
	}
	/* Others may have gone to sleep while there seemed to be no event. */
	if (requeued)
		twheel_waiters_wake(&ctx->waiters);
	while (n)
		complete_delivered(ctx, batch[--n]);
	spin_unlock_bh(&ctx->lock);
}

/* Takes up to @max timers off the queue, and fills in their events. */
static unsigned int take_batch(struct twheel_context *ctx, struct twheel_utimer **batch,
			       struct twheel_event *events, unsigned int max)
{
	struct twheel_utimer *ut;
	unsigned int n = 0;

	spin_lock_bh(&ctx->lock);
	while (n < max && (ut = twheel_events_first(ctx))) {
		twheel_event_fill(ctx, ut, ctx->seq + n, &events[n]);
		twheel_events_unqueue(ctx, ut);
		twheel_set_state(ut, TWHEEL_IN_DELIVERY);
		batch[n++] = ut;
	}
	spin_unlock_bh(&ctx->lock);
	return n;
}

/* Copies events. Returns how many were copied completely. */
static unsigned int copy_events(const struct twheel_event *events, unsigned int n,
				struct iov_iter *to)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (copy_to_iter(&events[i], sizeof(events[i]), to) != sizeof(events[i]))
			break;
	return i;
}

/*
 * Delivers the queued events that fit, or as many as it can before a signal arrives. Returns the
 * number of events, or -EFAULT.
 */
static ssize_t deliver_events(struct twheel_context *ctx, struct iov_iter *to)
{
	struct twheel_utimer *batch[BATCH];
	struct twheel_event events[BATCH];
	size_t left = iov_iter_count(to) / sizeof(struct twheel_event);
	unsigned int n, done;
	ssize_t total = 0;

	while (left) {
		n = take_batch(ctx, batch, events, min_t(size_t, left, BATCH));
		if (!n)
			break;
		twheel_inject(TWHEEL_POINT_DELIVER);
		done = copy_events(events, n, to);
		finish_delivery(ctx, batch, events, done, n);
		total += done;
		if (done < n)
			return total ? total : -EFAULT;
		left -= n;
		if (signal_pending(current))
			break;
		cond_resched();
	}
	return total;
}

/* A reader that must not block does not wait for another reader's page fault, either. */
static int lock_reader(struct twheel_context *ctx, bool nonblock)
{
	if (nonblock)
		return mutex_trylock(&ctx->read_lock) ? 0 : -EAGAIN;
	return mutex_lock_interruptible(&ctx->read_lock) ? -ERESTARTSYS : 0;
}

/**
 * twheel_deliver_read - read(2) of a context
 * @ctx:	the context
 * @to:		the buffer
 * @nonblock:	do not wait for an event
 *
 * Context: process; may sleep.
 * Return: the number of bytes, a multiple of the size of an event; or
 * * %-EBUSY	- the events go to the ring
 * * %-EINVAL	- the buffer is too small for one event
 * * %-EAGAIN	- with @nonblock: there is no event, or another reader is active
 * * %-EFAULT	- the buffer is bad; no event is lost
 * * %-ERESTARTSYS - a signal arrived
 */
ssize_t twheel_deliver_read(struct twheel_context *ctx, struct iov_iter *to, bool nonblock)
{
	ssize_t ret;

	if (has_ring(ctx))
		return -EBUSY;
	if (iov_iter_count(to) < sizeof(struct twheel_event))
		return -EINVAL;
	do {
		if (!read_nr_events(ctx)) {
			if (nonblock)
				return -EAGAIN;
			ret = wait_event_interruptible(ctx->waiters.queue,
						       read_nr_events(ctx) || has_ring(ctx));
			if (ret)
				return ret;
		}
		ret = lock_reader(ctx, nonblock);
		if (ret)
			return ret;
		/* No ring can be created while read_lock is held: see twheel_ring_create(). */
		ret = ctx->ring ? -EBUSY : deliver_events(ctx, to);
		mutex_unlock(&ctx->read_lock);
		/* 0: another reader was faster, or the events were revoked. */
	} while (!ret);
	return ret < 0 ? ret : ret * (ssize_t)sizeof(struct twheel_event);
}

/*
 * Moves waiting events into the ring, as far as there is room.
 *
 * Moves no more than an empty ring holds, in case the program keeps making room, and none after a
 * signal; the next poll() moves what is left. If any were moved, waiters are woken, as with
 * edge-triggered epoll they would not check again. If none were, they are not woken: the poller may
 * be one of them, and would keep waking itself for ever.
 */
static void flush_to_ring(struct twheel_context *ctx)
{
	u32 left = twheel_ring_entries(ctx);
	unsigned int moved;

	do {
		spin_lock_bh(&ctx->lock);
		moved = move_to_ring(ctx);
		if (moved)
			twheel_waiters_wake(&ctx->waiters);
		spin_unlock_bh(&ctx->lock);
		left -= min_t(u32, left, BATCH);
		cond_resched();
	} while (moved == BATCH && left && !signal_pending(current));
}

/**
 * twheel_deliver_to_ring - switch the delivery of events to a ring
 * @ctx:	the context, which has just been given one
 *
 * Events that waited for a read() are moved there. Tasks blocked in a read() are woken, and get
 * -EBUSY.
 *
 * Context: process; may sleep.
 */
void twheel_deliver_to_ring(struct twheel_context *ctx)
{
	flush_to_ring(ctx);
	spin_lock_bh(&ctx->lock);
	twheel_waiters_wake(&ctx->waiters);
	spin_unlock_bh(&ctx->lock);
}

/**
 * twheel_deliver_poll - poll(2) of a context
 * @ctx:	the context
 * @file:	its file
 * @wait:	the poll table
 *
 * Context: process.
 * Return: EPOLLIN and EPOLLRDNORM while there is an event to read.
 */
__poll_t twheel_deliver_poll(struct twheel_context *ctx, struct file *file, poll_table *wait)
{
	bool readable;

	poll_wait(file, &ctx->waiters.queue, wait);
	/* Pairs with wq_has_sleeper(). poll_wait() itself has no barrier before 6.13. */
	smp_mb();
	readable = read_nr_events(ctx);
	if (has_ring(ctx)) {
		if (readable)
			flush_to_ring(ctx);
		readable |= twheel_ring_readable(ctx);
	}
	return readable ? EPOLLIN | EPOLLRDNORM : 0;
}
