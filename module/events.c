// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the events of a context: queue, read, poll
 *
 * An expired timer is its own entry in the queue, so the queue cannot overflow,
 * and what is not read waits.
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
 *	announce(): nr_events++			puts itself on @wait
 *	full barrier (wq_has_sleeper())		full barrier (prepare_to_wait(), smp_mb())
 *	looks whether somebody is on @wait	looks at nr_events
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>
#include <uapi/linux/twheel.h>

#include "context.h"
#include "inject.h"

/* Events copied at a time. */
#define BATCH	16

static void announce(struct twheel_context *ctx, u64 nr)
{
	/* Pairs with the READ_ONCE() in nr_events(). */
	WRITE_ONCE(ctx->nr_events, ctx->nr_events + nr);
	if (wq_has_sleeper(&ctx->wait))
		wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}

/**
 * twheel_events_queue - add an expired timer to the events
 * @ctx:	the context
 * @ut:		the timer
 *
 * Context: softirq, with the context's lock held.
 */
void twheel_events_queue(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	lockdep_assert_held(&ctx->lock);
	list_add_tail(&ut->node.link, &ctx->events);
	announce(ctx, 1);
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

/* Takes up to @most timers from the queue. */
static unsigned int take(struct twheel_context *ctx, struct twheel_user_timer **batch,
			 unsigned int most)
{
	struct twheel_user_timer *ut;
	unsigned int n = 0;

	spin_lock_bh(&ctx->lock);
	while (n < most && !list_empty(&ctx->events)) {
		ut = list_first_entry(&ctx->events, struct twheel_user_timer, node.link);
		twheel_events_unqueue(ctx, ut);
		ut->node.state = TWHEEL_IN_DELIVERY;
		batch[n++] = ut;
	}
	spin_unlock_bh(&ctx->lock);
	return n;
}

/* Frees the first @done timers of a batch of @n; puts the others back. */
static void settle(struct twheel_context *ctx, struct twheel_user_timer **batch,
		   unsigned int done, unsigned int n)
{
	unsigned int back = n - done;

	spin_lock_bh(&ctx->lock);
	ctx->seq += done;
	while (n > done) {
		struct twheel_user_timer *ut = batch[--n];

		ut->node.state = TWHEEL_EXPIRED;
		list_add(&ut->node.link, &ctx->events);
	}
	/* Others may have gone to sleep while the queue seemed to be empty. */
	if (back)
		announce(ctx, back);
	while (n)
		twheel_timer_release(ctx, batch[--n]);
	spin_unlock_bh(&ctx->lock);
}

/* Copies a batch. Returns how many events arrived whole. */
static unsigned int copy(const struct twheel_context *ctx, struct twheel_user_timer **batch,
			 unsigned int n, struct iov_iter *to)
{
	struct twheel_event event = { .reason = TWHEEL_REASON_DEADLINE };
	unsigned int i;

	for (i = 0; i < n; i++) {
		event.handle = twheel_timer_handle(batch[i]);
		event.user_data = batch[i]->user_data;
		event.deadline = batch[i]->node.deadline;
		event.fired = batch[i]->fired;
		event.seq = ctx->seq + i;
		if (copy_to_iter(&event, sizeof(event), to) != sizeof(event))
			break;
	}
	return i;
}

/* Delivers what is there and fits. Returns the number of events, or -EFAULT. */
static ssize_t deliver(struct twheel_context *ctx, struct iov_iter *to)
{
	struct twheel_user_timer *batch[BATCH];
	size_t room = iov_iter_count(to) / sizeof(struct twheel_event);
	unsigned int n, done;
	ssize_t total = 0;

	while (room) {
		n = take(ctx, batch, min_t(size_t, room, BATCH));
		if (!n)
			break;
		twheel_inject(TWHEEL_POINT_DELIVER);
		done = copy(ctx, batch, n, to);
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
 * * %-EINVAL	- the buffer is too small for one
 * * %-EAGAIN	- there is none, or another reader is at work, and @nonblock
 * * %-EFAULT	- the buffer is bad; no event is lost
 * * %-ERESTARTSYS - a signal came
 */
ssize_t twheel_events_read(struct twheel_context *ctx, struct iov_iter *to, bool nonblock)
{
	ssize_t ret;

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
	poll_wait(file, &ctx->wait, wait);
	/* Pairs with wq_has_sleeper(). poll_wait() itself has no barrier before 6.13. */
	smp_mb();
	return nr_events(ctx) ? EPOLLIN | EPOLLRDNORM : 0;
}
