// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: timers that must never be armed again
 *
 * The location of such a timer is %TWHEEL_SHUT. Code that arms a timer reads its location anyway,
 * to check whether it is already armed, and notices with the same comparison.
 */
#include <linux/export.h>

#include "twheel.h"

/* The timer is not pending, and expiry is done with its location. Other calls are excluded. */
static void mark_shut(struct twheel_timer *timer)
{
	/* Pairs with the READ_ONCE()s in timer.c. */
	WRITE_ONCE(timer->node.location, TWHEEL_SHUT);
}

/**
 * twheel_shutdown - disarm a timer for good
 * @timer:	the timer
 *
 * From here on nothing arms the timer, until twheel_timer_init() is called for it again:
 * twheel_add(), twheel_add_on() and twheel_rearm() return an error, and all other calls see a
 * timer that is not armed. A running callback continues: before the timer is freed, call
 * twheel_shutdown_sync(), without the lock that this is called under.
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return: as twheel_cancel().
 */
int twheel_shutdown(struct twheel_timer *timer)
{
	int pending = twheel_cancel(timer);

	mark_shut(timer);
	return pending;
}
EXPORT_SYMBOL_GPL(twheel_shutdown);

/**
 * twheel_shutdown_sync - disarm a timer for good and wait for its callback
 * @timer:	the timer
 *
 * When this returns, the timer is not armed, its callback is not running, and nothing arms the
 * timer again: see twheel_shutdown(). The timer may be freed, unless others may still use it.
 * Its callback must not take a lock that the caller holds, as for twheel_cancel_sync().
 *
 * To end a timer that others arm under the lock of its object, call twheel_shutdown() under that
 * lock, and then this function without it.
 *
 * Context: process or softirq. Must not be called by the timer's own callback. Serialised with
 * other calls for @timer, unless it is already shut down; but not with those of the timer's own
 * callback, unless that initialises it again. With PREEMPT_RT, preemptible.
 * Return: as twheel_cancel_sync().
 */
int twheel_shutdown_sync(struct twheel_timer *timer)
{
	int pending = twheel_cancel_sync(timer);

	mark_shut(timer);
	return pending;
}
EXPORT_SYMBOL_GPL(twheel_shutdown_sync);
