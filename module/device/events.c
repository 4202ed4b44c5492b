// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the events of a context: queue, read, poll
 *
 * An expired timer is its own entry in the queue, so the queue cannot overflow,
 * and what is not read waits. A context with a ring has its events delivered there at
 * once, as long as it has room; the others wait, and nothing passes them.
 *
 * A reader takes a batch of timers out of the queue under the lock, copies their
 * events to the program without it, and then frees them. If the copy fails the
 * rest goes back to the head of the queue, and the numbers are used again. In
 * between, such a timer is neither pending nor expired: a cancel that comes then
 * is too late, as it would be after the read. No ring is made meanwhile, which would
 * go on with the same numbers.
 *
 * Each event wakes who waits, also if others are there already: an edge-triggered epoll counts on
 * that. No wake-up is lost:
 *
 *	expiry					reader, or poll
 *	nr_events++				puts itself on @waiters
 *	full barrier (wq_has_sleeper())		full barrier (prepare_to_wait(), smp_mb())
 *	looks whether somebody is on @waiters	looks at nr_events
 */
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>
#include <uapi/linux/twheel.h>

#include "context.h"
#include "events.h"
#include "lib/inject.h"
#include "limits.h"
#include "pool.h"
#include "ring.h"
#include "utimer.h"
#include "waiters.h"

/* Events copied, or moved to the ring, at a time. */
#define BATCH	16

/* The timer of a number in the list of events. */
static struct twheel_user_timer *timer_of(struct twheel_context *ctx, u32 index)
{
	struct twheel_block *block = ctx->blocks[index >> TWHEEL_SLOT_BITS];

	return twheel_block_timer(block, index & ((1 << TWHEEL_SLOT_BITS) - 1));
}

static u32 index_of(const struct twheel_user_timer *ut)
{
	return twheel_timer_handle(ut);
}

static void set_nr_events(struct twheel_context *ctx, u64 nr)
{
	lockdep_assert_held(&ctx->lock);
	/* Pairs with the READ_ONCE() in nr_events(). */
	WRITE_ONCE(ctx->nr_events, nr);
}

/* Links an expired timer into the list of events, behind @prev, or first. */
static void link_event(struct twheel_context *ctx, struct twheel_user_timer *ut, u32 prev)
{
	u32 *link = prev == TWHEEL_NO_EVENT ? &ctx->first_event :
					      &timer_of(ctx, prev)->expired.next;
	u32 index = index_of(ut), next = *link;

	ut->expired.prev = prev;
	ut->expired.next = next;
	*link = index;
	if (next == TWHEEL_NO_EVENT)
		ctx->last_event = index;
	else
		timer_of(ctx, next)->expired.prev = index;
	set_nr_events(ctx, ctx->nr_events + 1);
}

static void unlink_event(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	u32 prev = ut->expired.prev, next = ut->expired.next;

	if (prev == TWHEEL_NO_EVENT)
		ctx->first_event = next;
	else
		timer_of(ctx, prev)->expired.next = next;
	if (next == TWHEEL_NO_EVENT)
		ctx->last_event = prev;
	else
		timer_of(ctx, next)->expired.prev = prev;
	set_nr_events(ctx, ctx->nr_events - 1);
}

static struct twheel_user_timer *first_event(struct twheel_context *ctx)
{
	return ctx->first_event == TWHEEL_NO_EVENT ? NULL : timer_of(ctx, ctx->first_event);
}

/* Moves some of what waits into the ring. Returns how many: BATCH, if there may be more. */
static unsigned int move_to_ring(struct twheel_context *ctx)
{
	struct twheel_user_timer *ut;
	unsigned int moved = 0;

	while (moved < BATCH && (ut = first_event(ctx)) && twheel_ring_put(ctx, ut)) {
		twheel_events_unqueue(ctx, ut);
		twheel_user_delivered(ctx, ut);
		moved++;
	}
	twheel_ring_set_waiting(ctx, ctx->nr_events);
	return moved;
}

/**
 * twheel_events_queue - a timer has expired: add it to the events
 * @ctx:	the context
 * @ut:		the timer, which is not armed
 * @fired:	when, in nanoseconds of its clock
 *
 * Context: process and softirq, with the context's lock held.
 */
void twheel_events_queue(struct twheel_context *ctx, struct twheel_user_timer *ut, u64 fired)
{
	twheel_set_state(ut, TWHEEL_EXPIRED);
	ut->expired.fired = fired;
	ctx->stats.expiries++;
	link_event(ctx, ut, ctx->last_event);
	if (ctx->ring)
		move_to_ring(ctx);
	twheel_waiters_wake(&ctx->waiters);
}

/**
 * twheel_events_unqueue - take a timer out of the events
 * @ctx:	the context
 * @ut:		the timer
 *
 * Context: with the context's lock held.
 */
void twheel_events_unqueue(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	unlink_event(ctx, ut);
	/* The engine has to find that the timer is not armed. */
	ut->node.place = 0;
}

static u64 nr_events(const struct twheel_context *ctx)
{
	/* Pairs with the WRITE_ONCE()s above. */
	return READ_ONCE(ctx->nr_events);
}

static bool has_ring(const struct twheel_context *ctx)
{
	/* Pairs with the smp_store_release() in twheel_ring_create(). */
	return READ_ONCE(ctx->ring);
}

/* Puts the event of a timer back to the head of the list. */
static void put_back(struct twheel_context *ctx, struct twheel_user_timer *ut, u64 fired)
{
	twheel_set_state(ut, TWHEEL_EXPIRED);
	ut->expired.fired = fired;
	link_event(ctx, ut, TWHEEL_NO_EVENT);
}

/* Ends the delivery of the first @done timers of a batch of @n; puts the others back. */
static void finish_delivery(struct twheel_context *ctx, struct twheel_user_timer **batch,
			    const struct twheel_event *events, unsigned int done, unsigned int n)
{
	bool back = false;

	spin_lock_bh(&ctx->lock);
	ctx->seq += done;
	while (n > done) {
		if (!twheel_user_undelivered(ctx, batch[--n]))
			continue;
		put_back(ctx, batch[n], events[n].fired);
		back = true;
	}
	/* Others may have gone to sleep while there seemed to be no event. */
	if (back)
		twheel_waiters_wake(&ctx->waiters);
	while (n)
		twheel_user_delivered(ctx, batch[--n]);
	spin_unlock_bh(&ctx->lock);
}

/**
 * twheel_event_fill - write the event of a timer
 * @ctx:	the context
 * @ut:		the timer, which has expired
 * @seq:	the event's number
 * @event:	where to
 *
 * Context: with the context's lock held.
 */
void twheel_event_fill(const struct twheel_context *ctx, struct twheel_user_timer *ut, u64 seq,
		       struct twheel_event *event)
{
	if (ctx->event_keys && ut->node.state & TWHEEL_HASHED)
		event->handle = twheel_keyed(ut)->key;
	else
		event->handle = twheel_timer_handle(ut);
	event->user_data = ut->user_data;
	event->deadline = ut->node.deadline;
	event->fired = ut->expired.fired;
	event->seq = seq;
	event->overruns = 0;
	event->reason = TWHEEL_LIMIT_DEADLINE;
	if (twheel_is_rich(ut))
		twheel_rich_fill(twheel_rich(ut), event);
}

/* Takes up to @most timers from the queue, and writes their events. */
static unsigned int take(struct twheel_context *ctx, struct twheel_user_timer **batch,
			 struct twheel_event *events, unsigned int most)
{
	struct twheel_user_timer *ut;
	unsigned int n = 0;

	spin_lock_bh(&ctx->lock);
	while (n < most && (ut = first_event(ctx))) {
		twheel_event_fill(ctx, ut, ctx->seq + n, &events[n]);
		twheel_events_unqueue(ctx, ut);
		twheel_set_state(ut, TWHEEL_IN_DELIVERY);
		batch[n++] = ut;
	}
	spin_unlock_bh(&ctx->lock);
	return n;
}

/* Copies events. Returns how many arrived whole. */
static unsigned int copy(const struct twheel_event *events, unsigned int n, struct iov_iter *to)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (copy_to_iter(&events[i], sizeof(events[i]), to) != sizeof(events[i]))
			break;
	return i;
}

/*
 * Delivers what is there and fits, or what could be before a signal came. Returns the number of
 * events, or -EFAULT.
 */
static ssize_t deliver(struct twheel_context *ctx, struct iov_iter *to)
{
	struct twheel_user_timer *batch[BATCH];
	struct twheel_event events[BATCH];
	size_t room = iov_iter_count(to) / sizeof(struct twheel_event);
	unsigned int n, done;
	ssize_t total = 0;

	while (room) {
		n = take(ctx, batch, events, min_t(size_t, room, BATCH));
		if (!n)
			break;
		twheel_inject(TWHEEL_POINT_DELIVER);
		done = copy(events, n, to);
		finish_delivery(ctx, batch, events, done, n);
		total += done;
		if (done < n)
			return total ? total : -EFAULT;
		room -= n;
		if (signal_pending(current))
			break;
		cond_resched();
	}
	return total;
}

/* Who does not want to wait does not wait for another reader's page fault, either. */
static int lock_reader(struct twheel_context *ctx, bool nonblock)
{
	if (nonblock)
		return mutex_trylock(&ctx->read_lock) ? 0 : -EAGAIN;
	return mutex_lock_interruptible(&ctx->read_lock) ? -ERESTARTSYS : 0;
}

/**
 * twheel_events_read - read(2) of a context
 * @ctx:	the context
 * @to:		the buffer
 * @nonblock:	do not wait for an event
 *
 * Context: process; may sleep.
 * Return: the number of bytes, a multiple of the size of an event; or
 * * %-EBUSY	- the events go to the ring
 * * %-EINVAL	- the buffer is too small for one
 * * %-EAGAIN	- there is none, or another reader is at work, and @nonblock
 * * %-EFAULT	- the buffer is bad; no event is lost
 * * %-ERESTARTSYS - a signal came
 */
ssize_t twheel_events_read(struct twheel_context *ctx, struct iov_iter *to, bool nonblock)
{
	ssize_t ret;

	if (has_ring(ctx))
		return -EBUSY;
	if (iov_iter_count(to) < sizeof(struct twheel_event))
		return -EINVAL;
	do {
		if (!nr_events(ctx)) {
			if (nonblock)
				return -EAGAIN;
			ret = wait_event_interruptible(ctx->waiters.queue,
						       nr_events(ctx) || has_ring(ctx));
			if (ret)
				return ret;
		}
		ret = lock_reader(ctx, nonblock);
		if (ret)
			return ret;
		/* There is none, or it is made when this is done: see twheel_ring_create(). */
		ret = ctx->ring ? -EBUSY : deliver(ctx, to);
		mutex_unlock(&ctx->read_lock);
		/* 0: another reader was faster, or the events were taken back. */
	} while (!ret);
	return ret < 0 ? ret : ret * (ssize_t)sizeof(struct twheel_event);
}

/*
 * Moves events that wait into the ring, as far as there is room.
 *
 * No more than fit into an empty ring, should the program go on to make room; and none after a
 * signal. What is left is moved by the next poll(). Those who wait are woken for what was moved,
 * as they would not look again with edge-triggered epoll. If nothing was, they are not: who polls
 * may be one of them, and would wake himself for ever.
 */
static void flush(struct twheel_context *ctx)
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
 * twheel_events_to_ring - from now on the events go to a ring
 * @ctx:	the context, which has got one
 *
 * What has waited for a read() is moved there, and who waits in one is woken: it is over.
 *
 * Context: process; may sleep.
 */
void twheel_events_to_ring(struct twheel_context *ctx)
{
	flush(ctx);
	spin_lock_bh(&ctx->lock);
	twheel_waiters_wake(&ctx->waiters);
	spin_unlock_bh(&ctx->lock);
}

/**
 * twheel_events_poll - poll(2) of a context
 * @ctx:	the context
 * @file:	its file
 * @wait:	the poll table
 *
 * Context: process.
 * Return: EPOLLIN and EPOLLRDNORM while there is an event to read.
 */
__poll_t twheel_events_poll(struct twheel_context *ctx, struct file *file, poll_table *wait)
{
	bool readable;

	poll_wait(file, &ctx->waiters.queue, wait);
	/* Pairs with wq_has_sleeper(). poll_wait() itself has no barrier before 6.13. */
	smp_mb();
	readable = nr_events(ctx);
	if (has_ring(ctx)) {
		if (readable)
			flush(ctx);
		readable |= twheel_ring_readable(ctx);
	}
	return readable ? EPOLLIN | EPOLLRDNORM : 0;
}
