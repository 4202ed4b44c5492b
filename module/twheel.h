/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the in-kernel API
 *
 * A timer embedded in the caller's own object, as a struct timer_list would be.
 * To arm, re-arm, cancel and expire it needs no memory and cannot fail for want
 * of it. Times are absolute nanoseconds of CLOCK_MONOTONIC.
 *
 * Calls for one timer must not come at the same time from several CPUs: let them be
 * made under the lock of the object, or by one thread. The timer's own expiry is no
 * such call, it may come at any time. twheel_cancel_sync() may come while the timer's
 * callback runs, and calls what it wants.
 */
#ifndef _TWHEEL_H
#define _TWHEEL_H

#include <linux/lockdep.h>
#include <linux/types.h>

#include "wheel.h"

/**
 * struct twheel_timer - a timer on the wheel of some CPU
 * @node:	the wheel's part; @node.deadline is when the timer is due. @node.owner
 *		is the CPU whose wheel the timer is or was last on. @node.state and
 *		@node.generation are the caller's
 * @function:	called in softirq context when the timer is due
 * @map:	tells lockdep that a callback runs, so that a twheel_cancel_sync()
 *		that would wait for itself is reported
 *
 * While the timer is not armed, @node.link is the caller's, to keep timers that
 * have expired in a list; @node.place must be 0 again before anything else is done to
 * the timer.
 */
struct twheel_timer {
	struct twheel_node	node;
	void			(*function)(struct twheel_timer *timer);
#ifdef CONFIG_LOCKDEP
	struct lockdep_map	map;
#endif
};

/* The largest expiry that is accepted; a later one is taken as this. */
#define TWHEEL_EXPIRES_MAX	((u64)KTIME_MAX)

void twheel_timer_init_key(struct twheel_timer *timer,
			   void (*function)(struct twheel_timer *timer),
			   const char *name, struct lock_class_key *key);

/**
 * twheel_timer_init - make a timer ready to be armed
 * @timer:	the timer: struct twheel_timer *
 * @fn:		what to call when it is due: void (*)(struct twheel_timer *)
 *
 * Context: any; the timer must not be armed.
 */
#define twheel_timer_init(timer, fn)					\
	do {								\
		static struct lock_class_key __key;			\
									\
		twheel_timer_init_key(timer, fn, #timer, &__key);	\
	} while (0)

int twheel_add(struct twheel_timer *timer, u64 expires);
int twheel_rearm(struct twheel_timer *timer, u64 expires);
int twheel_cancel(struct twheel_timer *timer);
int twheel_cancel_sync(struct twheel_timer *timer);

/**
 * twheel_pending - is a timer armed?
 * @timer:	the timer
 *
 * Context: any. The answer may be old when it arrives, unless the caller keeps
 * others from arming and cancelling the timer, and it from expiring.
 * Return: true from twheel_add() or twheel_rearm() until the timer is cancelled
 * or its callback is about to be called.
 */
static inline bool twheel_pending(const struct twheel_timer *timer)
{
	/* Pairs with the stores of @place in wheel.[ch]. */
	return READ_ONCE(timer->node.place);
}

unsigned int twheel_tick_shift(void);

#endif /* _TWHEEL_H */
