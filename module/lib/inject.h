/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: for test builds: injection points for delays, generations that run out, and
 * memory that runs out
 *
 * A race needs two CPUs between the same two steps. The injection points are between the
 * steps of arming, cancelling and expiring, where no lock is held that both CPUs take, and
 * widen the window. They are empty unless the module is built with TWHEEL_INJECT.
 *
 * The other functions force cases that are rare or impossible otherwise. A timer's
 * generations last for 2^32 uses, unless it starts near the end. There is almost always a
 * page for a wheel, so almost nothing ever spills. And the kernels with the checkers are
 * built without isolated CPUs.
 */
#ifndef _TWHEEL_LIB_INJECT_H
#define _TWHEEL_LIB_INJECT_H

#include <linux/delay.h>
#include <linux/types.h>

/**
 * enum twheel_point - an injection point
 * @TWHEEL_POINT_DEQUEUE:	the timer's owner has been read, but the timer not dequeued yet
 * @TWHEEL_POINT_DEQUEUED:	the timer has been dequeued, or was found not to be pending
 * @TWHEEL_POINT_SET_OWNER:	a timer that is not pending is about to change owners
 * @TWHEEL_POINT_CALL:		the timer has left the wheel, but its callback has not started
 * @TWHEEL_POINT_CALLED:	the callback has returned
 * @TWHEEL_POINT_CANCEL:	the timer is about to be cancelled, unless its callback is running
 * @TWHEEL_POINT_WAIT:		the caller is about to wait for a callback
 * @TWHEEL_POINT_MIGRATE:	between two batches of an offline CPU's timers
 * @TWHEEL_POINT_DELIVER:	events have left the queue, but have not been copied yet
 * @TWHEEL_POINT_RENEW:		a connection has ended, but the next one of its socket not begun
 * @TWHEEL_NR_POINTS:		number of points
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

/* Delays until @condition is true, but no longer than the maximum delay. */
#define twheel_inject_until(point, condition) do {			\
	unsigned int __us = twheel_inject_max(point);			\
									\
	while (__us-- && !(condition))					\
		udelay(1);						\
} while (0)
unsigned int twheel_inject_max(enum twheel_point point);
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
