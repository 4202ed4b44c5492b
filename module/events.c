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
 * is too late, as it would be after the read.
 *
 * No wake-up is lost:
 *
 *	expiry					reader, or poll
 *	nr_events++				puts itself on @wait
 *	full barrier (wq_has_sleeper())		full barrier (prepare_to_wait(), smp_mb())
 *	looks whether somebody is on @wait	looks at nr_events
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>
#include <uapi/linux/twheel.h>

#include "context.h"
#include "inject.h"

/* Events copied, or moved to the ring, at a time. */
#define BATCH	16

static void wake_readers(struct twheel_context *ctx)
{
	if (wq_has_sleeper(&ctx->wait))
		wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}

/* Moves some of what waits into the ring. Returns whether there may be more, and room. */
static bool move_to_ring(struct twheel_context *ctx)
{
	struct twheel_user_timer *ut, *next;
	unsigned int moved = 0;

	list_for_each_entry_safe(ut, next, &ctx->events, node.link) {
		if (moved == BATCH || !twheel_ring_put(ctx, ut))
			break;
		twheel_events_unqueue(ctx, ut);
		twheel_user_delivered(ctx, ut);
		moved++;
	}
	twheel_ring_set_waiting(ctx, !list_empty(&ctx->events));
	return moved == BATCH;
}

/**
 * twheel_events_queue - add an expired timer to the events
 * @ctx:	the context
 * @ut:		the timer
 *
 * Context: process and softirq, with the context's lock held.
 */
void twheel_events_queue(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	lockdep_assert_held(&ctx->lock);
	ctx->stats.expiries++;
	list_add_tail(&ut->node.link, &ctx->events);
	/* Pairs with the READ_ONCE() in nr_events(). */
	WRITE_ONCE(ctx->nr_events, ctx->nr_events + 1);
	if (ctx->ring)
		move_to_ring(ctx);
	wake_readers(ctx);
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
	lockdep_assert_held(&ctx->lock);
	list_del(&ut->node.link);
	/* Where the link was the engine has to find that the timer is not armed. */
	ut->node.place = 0;
	/* Pairs with the READ_ONCE() in nr_events(). */
	WRITE_ONCE(ctx->nr_events, ctx->nr_events - 1);
}

static u64 nr_events(const struct twheel_context *ctx)
{
	/* Pairs with the WRITE_ONCE()s above. */
	return READ_ONCE(ctx->nr_events);
}

/* Ends the delivery of the first @done timers of a batch of @n; puts the others back. */
static void settle(struct twheel_context *ctx, struct twheel_user_timer **batch,
		   unsigned int done, unsigned int n)
{
	unsigned int back = 0;

	spin_lock_bh(&ctx->lock);
	ctx->seq += done;
	while (n > done) {
		struct twheel_user_timer *ut = batch[--n];

		if (!twheel_user_undelivered(ctx, ut))
			continue;
		list_add(&ut->node.link, &ctx->events);
		back++;
	}
	/* Others may have gone to sleep while the queue seemed to be empty. */
	if (back) {
		/* Pairs with the READ_ONCE() in nr_events(). */
		WRITE_ONCE(ctx->nr_events, ctx->nr_events + back);
		wake_readers(ctx);
	}
	while (n)
		twheel_user_delivered(ctx, batch[--n]);
	spin_unlock_bh(&ctx->lock);
}

/**
 * twheel_event_fill - write the event of a timer
 * @ut:		the timer, which has expired
 * @seq:	the event's number
 * @event:	where to
 *
 * Context: with the context's lock held.
 */
void twheel_event_fill(struct twheel_user_timer *ut, u64 seq, struct twheel_event *event)
{
	event->handle = twheel_timer_handle(ut);
	event->user_data = ut->user_data;
	event->deadline = ut->node.deadline;
	event->fired = ut->fired;
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
	while (n < most && !list_empty(&ctx->events)) {
		ut = list_first_entry(&ctx->events, struct twheel_user_timer, node.link);
		twheel_events_unqueue(ctx, ut);
		twheel_set_state(ut, TWHEEL_IN_DELIVERY);
		twheel_event_fill(ut, ctx->seq + n, &events[n]);
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

/* Delivers what is there and fits. Returns the number of events, or -EFAULT. */
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
		settle(ctx, batch, done, n);
		total += done;
		if (done < n)
			return total ? total : -EFAULT;
		room -= n;
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

	/* Pairs with the WRITE_ONCE() in twheel_ring_create(). */
	if (READ_ONCE(ctx->ring))
		return -EBUSY;
	if (iov_iter_count(to) < sizeof(struct twheel_event))
		return -EINVAL;
	do {
		if (!nr_events(ctx)) {
			if (nonblock)
				return -EAGAIN;
			ret = wait_event_interruptible(ctx->wait, nr_events(ctx));
			if (ret)
				return ret;
		}
		ret = lock_reader(ctx, nonblock);
		if (ret)
			return ret;
		ret = deliver(ctx, to);
		mutex_unlock(&ctx->read_lock);
		/* 0: another reader was faster, or the events were taken back. */
	} while (!ret);
	return ret < 0 ? ret : ret * (ssize_t)sizeof(struct twheel_event);
}

/**
 * twheel_events_flush - move events that wait into the ring, as far as there is room
 * @ctx:	the context, which has a ring
 *
 * Context: process.
 */
void twheel_events_flush(struct twheel_context *ctx)
{
	bool more;

	do {
		spin_lock_bh(&ctx->lock);
		more = move_to_ring(ctx);
		wake_readers(ctx);
		spin_unlock_bh(&ctx->lock);
		cond_resched();
	} while (more);
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

	poll_wait(file, &ctx->wait, wait);
	/* Pairs with wq_has_sleeper(). poll_wait() itself has no barrier before 6.13. */
	smp_mb();
	readable = nr_events(ctx);
	/* Pairs with the WRITE_ONCE() in twheel_ring_create(). */
	if (READ_ONCE(ctx->ring)) {
		if (readable)
			twheel_events_flush(ctx);
		readable |= twheel_ring_readable(ctx);
	}
	return readable ? EPOLLIN | EPOLLRDNORM : 0;
}
