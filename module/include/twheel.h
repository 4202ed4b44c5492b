/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the in-kernel API
 *
 * A timer is embedded in the caller's own object, as a struct timer_list would be.
 * Arming, re-arming, cancelling and expiry need no memory allocation and cannot fail for
 * lack of memory. Times are absolute nanoseconds of CLOCK_MONOTONIC, unless the name of a
 * function ends in _rel.
 *
 * Calls for one timer must not be made by several CPUs at the same time: make them under the
 * lock of the object, or from one thread. The timer's own expiry does not count as such a call,
 * and may happen at any time. twheel_cancel_sync() and twheel_shutdown_sync() may be called while
 * the timer's callback runs and makes any call, except for twheel_timer_init().
 *
 * Documentation/kernel-api.rst shows how to build against this, and how to convert a driver
 * from timer_list.
 */
#ifndef _TWHEEL_H
#define _TWHEEL_H

#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/stringify.h>
#include <linux/timekeeping.h>
#include <linux/types.h>

#include "twheel_types.h"

/**
 * struct twheel_timer - a timer on the wheel of some CPU
 * @node:	the wheel's part. @node.state and @node.generation are the caller's; for the rest,
 *		use twheel_expires() and twheel_pending()
 * @function:	called in softirq context when the timer is due
 * @map:	for lockdep: shows that a callback is running, so that a twheel_cancel_sync()
 *		that would wait for itself is reported
 *
 * While the timer is not armed, the caller may use @node.link, to keep timers that
 * have expired on a list; @node.location must be 0 again before anything else is done to
 * the timer.
 */
struct twheel_timer {
	struct twheel_node	node;
	void			(*function)(struct twheel_timer *timer);
#ifdef CONFIG_LOCKDEP
	struct lockdep_map	map;
#endif
};

/* The latest expiry that is accepted; a later one is taken as this. */
#define TWHEEL_EXPIRES_MAX	((u64)KTIME_MAX)

/* The deadline of a static timer that was never armed; no other timer has it. */
#define TWHEEL_EXPIRES_STATIC	(~0ULL)

/* A lockdep class for each place that defines a timer. */
#ifdef CONFIG_LOCKDEP
#define __TWHEEL_TIMER_PLACE	__FILE__ ":" __stringify(__LINE__)
#define __TWHEEL_TIMER_MAP						\
	.map = STATIC_LOCKDEP_MAP_INIT(__TWHEEL_TIMER_PLACE, &(__TWHEEL_TIMER_PLACE)),
#else
#define __TWHEEL_TIMER_MAP
#endif

/**
 * TWHEEL_TIMER_INITIALIZER - the initialiser of a static timer
 * @fn:		called when the timer is due: void (*)(struct twheel_timer *)
 *
 * A timer with this value is ready to be armed, as if by twheel_timer_init().
 */
#define TWHEEL_TIMER_INITIALIZER(fn)					\
	{								\
		.node.deadline	= TWHEEL_EXPIRES_STATIC,		\
		.function	= (fn),					\
		__TWHEEL_TIMER_MAP					\
	}

/**
 * DEFINE_TWHEEL_TIMER - define a static timer
 * @name:	the variable's name
 * @fn:		called when the timer is due: void (*)(struct twheel_timer *)
 *
 * May be preceded by the keyword static.
 */
#define DEFINE_TWHEEL_TIMER(name, fn)					\
	struct twheel_timer name = TWHEEL_TIMER_INITIALIZER(fn)

void twheel_timer_init_key(struct twheel_timer *timer,
			   void (*function)(struct twheel_timer *timer),
			   const char *name, struct lock_class_key *key);
void twheel_timer_init_on_stack_key(struct twheel_timer *timer,
				    void (*function)(struct twheel_timer *timer),
				    const char *name, struct lock_class_key *key);
void twheel_timer_destroy_on_stack(struct twheel_timer *timer);

/**
 * twheel_timer_init - initialise a timer
 * @timer:	the timer: struct twheel_timer *
 * @fn:		called when the timer is due: void (*)(struct twheel_timer *)
 *
 * Before a timer is initialised again, call twheel_cancel_sync(), unless its own callback does the
 * initialising, or has freed the timer; and meanwhile nobody else may call anything for it, not
 * even twheel_cancel_sync(). If its callback were still running, no call would notice: none would
 * wait for it, and the new callback could run at the same time. If it were just about to run, @fn
 * might be called in its place.
 *
 * Context: any; the timer must not be armed.
 */
#define twheel_timer_init(timer, fn)					\
	do {								\
		static struct lock_class_key __key;			\
									\
		twheel_timer_init_key(timer, fn, #timer, &__key);	\
	} while (0)

/**
 * twheel_timer_init_on_stack - twheel_timer_init() for a timer on the stack
 * @timer:	the timer: struct twheel_timer *
 * @fn:		called when the timer is due: void (*)(struct twheel_timer *)
 *
 * Call twheel_cancel_sync() and twheel_timer_destroy_on_stack() before the function that the
 * timer is in returns.
 *
 * Context: process.
 */
#define twheel_timer_init_on_stack(timer, fn)				\
	do {								\
		static struct lock_class_key __key;			\
									\
		twheel_timer_init_on_stack_key(timer, fn, #timer, &__key); \
	} while (0)

int twheel_add(struct twheel_timer *timer, u64 expires);
int twheel_add_on(struct twheel_timer *timer, u64 expires, unsigned int cpu);
int twheel_rearm(struct twheel_timer *timer, u64 expires);
int twheel_cancel(struct twheel_timer *timer);
int twheel_cancel_sync(struct twheel_timer *timer);
int twheel_shutdown(struct twheel_timer *timer);
int twheel_shutdown_sync(struct twheel_timer *timer);

/**
 * twheel_pending - is a timer armed?
 * @timer:	the timer
 *
 * Context: any. The answer may be stale by the time it is used, unless the caller keeps
 * others from arming and cancelling the timer, and the timer from expiring.
 * Return: true from twheel_add() or twheel_rearm() until the timer is cancelled
 * or its callback is about to run.
 */
static inline bool twheel_pending(const struct twheel_timer *timer)
{
	/* Pairs with the stores of @location in wheel.[ch]. */
	return READ_ONCE(timer->node.location) & TWHEEL_ENTRY;
}

/**
 * twheel_expires - when is a timer due?
 * @timer:	a timer that has been armed since it was initialised
 *
 * Context: any. The answer may be stale by the time it is used, as for twheel_pending().
 * Return: what it was last armed for, in nanoseconds of CLOCK_MONOTONIC, and not after
 * %TWHEEL_EXPIRES_MAX; whether it is still armed, has expired, or was cancelled.
 */
static inline u64 twheel_expires(const struct twheel_timer *timer)
{
	/* Pairs with the stores of @deadline in timer.c. */
	return READ_ONCE(timer->node.deadline);
}

/**
 * twheel_from_now - the time after a delay
 * @delay:	the delay, in nanoseconds; any
 *
 * Context: any but NMI.
 * Return: nanoseconds of CLOCK_MONOTONIC, not after %TWHEEL_EXPIRES_MAX.
 */
static inline u64 twheel_from_now(u64 delay)
{
	return min(ktime_get_ns() + min(delay, TWHEEL_EXPIRES_MAX), TWHEEL_EXPIRES_MAX);
}

/**
 * twheel_add_rel - arm a timer that is not armed, by a delay
 * @timer:	the timer
 * @delay:	how long from now, in nanoseconds; any
 *
 * Context: as twheel_add().
 * Return: as twheel_add().
 */
static inline int twheel_add_rel(struct twheel_timer *timer, u64 delay)
{
	return twheel_add(timer, twheel_from_now(delay));
}

/**
 * twheel_rearm_rel - arm a timer, whether it is armed or not, by a delay
 * @timer:	the timer
 * @delay:	how long from now, in nanoseconds; any
 *
 * Context: as twheel_rearm().
 * Return: as twheel_rearm().
 */
static inline int twheel_rearm_rel(struct twheel_timer *timer, u64 delay)
{
	return twheel_rearm(timer, twheel_from_now(delay));
}

/**
 * twheel_slack - round an expiry, within some slack, to the roundest time possible
 * @expires:	the earliest acceptable time, in nanoseconds
 * @slack:	how much later is acceptable as well, in nanoseconds; any
 *
 * Timers whose ranges overlap are likely to get the same time: then one interrupt, and one
 * wake-up of the CPU, is enough for all of them.
 *
 * Context: any.
 * Return: the time from @expires to @expires + @slack, and not after %TWHEEL_EXPIRES_MAX,
 * with the most trailing zeros in binary.
 */
static inline u64 twheel_slack(u64 expires, u64 slack)
{
	u64 last;

	expires = min(expires, TWHEEL_EXPIRES_MAX);
	last = expires + min(slack, TWHEEL_EXPIRES_MAX - expires);
	if (!expires || expires == last)
		return expires;
	/* The bits that change between the time before the first and the last may be 0. */
	return last & ~0ULL << (fls64((expires - 1) ^ last) - 1);
}

unsigned int twheel_tick_shift(void);

#endif /* _TWHEEL_H */
