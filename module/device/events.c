// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the events of a context: the list of timers that have expired
 *
 * An expired timer is its own entry on the list, so the list cannot overflow, and events wait until
 * they are read.
 */
#include <linux/lockdep.h>
#include <uapi/linux/twheel.h>

#include "context.h"
#include "events.h"
#include "limits.h"
#include "pool.h"

/* The timer with a number from the list of events. */
static struct twheel_utimer *timer_at(struct twheel_context *ctx, u32 index)
{
	struct twheel_block *block = ctx->blocks[index >> TWHEEL_SLOT_BITS];

	return twheel_block_utimer(block, index & ((1 << TWHEEL_SLOT_BITS) - 1));
}

static u32 timer_index(const struct twheel_utimer *ut)
{
	return twheel_utimer_handle(ut);
}

static void set_nr_events(struct twheel_context *ctx, u64 nr)
{
	lockdep_assert_held(&ctx->lock);
	/* Pairs with the READ_ONCE() in read_nr_events(). */
	WRITE_ONCE(ctx->nr_events, nr);
}

/* Links an expired timer into the list of events, after @prev, or first. */
static void link_event(struct twheel_context *ctx, struct twheel_utimer *ut, u32 prev)
{
	u32 *link = prev == TWHEEL_NO_EVENT ? &ctx->first_event :
					      &timer_at(ctx, prev)->expired.next;
	u32 index = timer_index(ut), next = *link;

	ut->expired.prev = prev;
	ut->expired.next = next;
	*link = index;
	if (next == TWHEEL_NO_EVENT)
		ctx->last_event = index;
	else
		timer_at(ctx, next)->expired.prev = index;
	set_nr_events(ctx, ctx->nr_events + 1);
}

static void unlink_event(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	u32 prev = ut->expired.prev, next = ut->expired.next;

	if (prev == TWHEEL_NO_EVENT)
		ctx->first_event = next;
	else
		timer_at(ctx, prev)->expired.next = next;
	if (next == TWHEEL_NO_EVENT)
		ctx->last_event = prev;
	else
		timer_at(ctx, next)->expired.prev = prev;
	set_nr_events(ctx, ctx->nr_events - 1);
}

/**
 * twheel_events_first - the timer whose event is next
 * @ctx:	the context
 *
 * Context: with the context's lock held.
 * Return: the timer, or NULL if there is no event.
 */
struct twheel_utimer *twheel_events_first(struct twheel_context *ctx)
{
	return ctx->first_event == TWHEEL_NO_EVENT ? NULL : timer_at(ctx, ctx->first_event);
}

/**
 * twheel_events_append - append a timer to the events
 * @ctx:	the context
 * @ut:		the timer, which is not armed
 * @fired:	when it expired, in nanoseconds of its clock
 *
 * Context: process and softirq, with the context's lock held.
 */
void twheel_events_append(struct twheel_context *ctx, struct twheel_utimer *ut, u64 fired)
{
	twheel_set_state(ut, TWHEEL_EXPIRED);
	ut->expired.fired = fired;
	ctx->stats.expiries++;
	link_event(ctx, ut, ctx->last_event);
}

/**
 * twheel_events_unqueue - take a timer off the events
 * @ctx:	the context
 * @ut:		the timer
 *
 * Context: with the context's lock held.
 */
void twheel_events_unqueue(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	unlink_event(ctx, ut);
	/* The core must see that the timer is not armed. */
	ut->node.location = 0;
}

/**
 * twheel_events_put_back - put a timer back at the head of the events
 * @ctx:	the context
 * @ut:		the timer, whose event was not delivered
 * @fired:	as for twheel_events_append()
 *
 * Context: process, with the context's lock held.
 */
void twheel_events_put_back(struct twheel_context *ctx, struct twheel_utimer *ut, u64 fired)
{
	twheel_set_state(ut, TWHEEL_EXPIRED);
	ut->expired.fired = fired;
	link_event(ctx, ut, TWHEEL_NO_EVENT);
}

/**
 * twheel_event_fill - fill in the event of a timer
 * @ctx:	the context
 * @ut:		the timer, which has expired
 * @seq:	the event's number
 * @event:	the event to fill in
 *
 * Context: with the context's lock held.
 */
void twheel_event_fill(const struct twheel_context *ctx, struct twheel_utimer *ut, u64 seq,
		       struct twheel_event *event)
{
	if (ctx->event_keys && ut->node.state & TWHEEL_HASHED)
		event->handle = twheel_keyed(ut)->key;
	else
		event->handle = twheel_utimer_handle(ut);
	event->user_data = ut->user_data;
	event->deadline = ut->node.deadline;
	event->fired = ut->expired.fired;
	event->seq = seq;
	event->overruns = 0;
	event->reason = TWHEEL_LIMIT_DEADLINE;
	if (twheel_is_extended(ut))
		twheel_extended_fill_event(twheel_extended(ut), event);
}
