/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: places to delay, generations that run out, and memory that does, in test builds
 *
 * A race needs two CPUs between the same two steps. These points stand between the
 * steps of arming, cancelling and expiring, where no lock is held that both want, and make
 * the gap wide. They are empty unless the module is built with TWHEEL_INJECT.
 *
 * A timer's generations last for 2^32 uses, unless it begins with one of the last. And
 * there is next to always a page for a wheel, so that next to nothing ever spills. And the
 * kernels with the checkers are built without isolated CPUs.
 */
#ifndef _TWHEEL_LIB_INJECT_H
#define _TWHEEL_LIB_INJECT_H

#include <linux/delay.h>
#include <linux/types.h>

/**
 * enum twheel_point - a place to delay
 * @TWHEEL_POINT_DEQUEUE:	the owner of a timer has been read, the timer not taken
 * @TWHEEL_POINT_DEQUEUED:	a timer has been taken, or found not to be pending
 * @TWHEEL_POINT_SET_OWNER:	an idle timer is about to get another owner
 * @TWHEEL_POINT_CALL:		a timer has left the wheel, its callback not begun
 * @TWHEEL_POINT_CALLED:	the callback has returned
 * @TWHEEL_POINT_CANCEL:	a timer is about to be cancelled, unless its callback runs
 * @TWHEEL_POINT_WAIT:		a callback is waited for
 * @TWHEEL_POINT_MIGRATE:	between portions of a dead CPU's timers
 * @TWHEEL_POINT_DELIVER:	events have left the queue, and are not yet copied
 * @TWHEEL_POINT_RENEW:		a connection has ended, and the next one of its socket not begun
 * @TWHEEL_NR_POINTS:		their number
 */
enum twheel_point {
	TWHEEL_POINT_DEQUEUE,
	TWHEEL_POINT_DEQUEUED,
	TWHEEL_POINT_SET_OWNER,
	TWHEEL_POINT_CALL,
	TWHEEL_POINT_CALLED,
	TWHEEL_POINT_CANCEL,
	TWHEEL_POINT_WAIT,
	TWHEEL_POINT_MIGRATE,
	TWHEEL_POINT_DELIVER,
	TWHEEL_POINT_RENEW,
	TWHEEL_NR_POINTS,
};

#ifdef TWHEEL_INJECT
void twheel_inject(enum twheel_point point);

/* Delays until something has happened, but no longer than a delay may be. */
#define twheel_inject_until(point, condition) do {			\
	unsigned int __us = twheel_inject_most(point);			\
									\
	while (__us-- && !(condition))					\
		udelay(1);						\
} while (0)
unsigned int twheel_inject_most(enum twheel_point point);
u32 twheel_inject_generation(void);
bool twheel_inject_no_page(void);
bool twheel_inject_isolated(unsigned int cpu);
#else
static inline void twheel_inject(enum twheel_point point) { }
#define twheel_inject_until(point, condition)				\
	do { (void)(point); (void)sizeof(condition); } while (0)
static inline u32 twheel_inject_generation(void) { return 1; }
static inline bool twheel_inject_no_page(void) { return false; }
static inline bool twheel_inject_isolated(unsigned int cpu) { return false; }
#endif

#endif /* _TWHEEL_LIB_INJECT_H */
