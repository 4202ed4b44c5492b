/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel_bench: an hrtimer that ticks, for schemes that do not know what is due first
 */
#ifndef _TWHEEL_BENCH_TICKER_H
#define _TWHEEL_BENCH_TICKER_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "lib/compat.h"

/**
 * struct bench_ticker - the hrtimer
 * @lock:	guards the scheme's timers, and everything below. Taken in process and in softirq
 *		context; no other lock is taken while it is held
 * @origin:	when tick 0 was, in nanoseconds of CLOCK_MONOTONIC; constant
 * @period:	nanoseconds from one tick to the next; constant
 * @tick:	number of the last tick that has been handled
 * @ticking:	the hrtimer is running
 * @hrtimer:	expires at the next tick
 */
struct bench_ticker {
	spinlock_t		lock;
	u64			origin;
	u64			period;
	u64			tick;
	bool			ticking;
	struct hrtimer		hrtimer;
};

/**
 * bench_ticker_init - initialise a ticker, which does not tick yet
 * @ticker:	the ticker
 * @period:	nanoseconds from one tick to the next
 * @function:	called in softirq context for each tick, and returns bench_ticker_next()
 */
static inline void bench_ticker_init(struct bench_ticker *ticker, u64 period,
				     enum hrtimer_restart (*function)(struct hrtimer *hrtimer))
{
	spin_lock_init(&ticker->lock);
	ticker->origin = ktime_get_ns();
	ticker->period = period;
	ticker->tick = 0;
	ticker->ticking = false;
	hrtimer_setup(&ticker->hrtimer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* When a tick is, in nanoseconds of CLOCK_MONOTONIC. */
static inline u64 bench_ticker_time(const struct bench_ticker *ticker, u64 tick)
{
	return ticker->origin + tick * ticker->period;
}

/* The first tick that is not before @ns, as of the last one that has been handled. */
static inline u64 bench_ticker_due(const struct bench_ticker *ticker, u64 ns)
{
	u64 next = ticker->tick + 1;

	lockdep_assert_held(&ticker->lock);
	if (ns <= ticker->origin)
		return next;
	return max(div64_u64(ns - ticker->origin + ticker->period - 1, ticker->period), next);
}

/**
 * bench_ticker_align - when a timer would expire if it were armed now
 * @ticker:	the ticker
 * @ns:		the timer's deadline, in nanoseconds of CLOCK_MONOTONIC
 *
 * Context: process.
 * Return: the time of the first tick that is not before @ns.
 */
static inline u64 bench_ticker_align(struct bench_ticker *ticker, u64 ns)
{
	u64 due;

	spin_lock_bh(&ticker->lock);
	due = bench_ticker_due(ticker, ns);
	spin_unlock_bh(&ticker->lock);
	return bench_ticker_time(ticker, due);
}

/* The last tick that has come, whether it has been handled or not. */
static inline u64 bench_ticker_now(const struct bench_ticker *ticker)
{
	return div64_u64(ktime_get_ns() - ticker->origin, ticker->period);
}

/**
 * bench_ticker_start - tick; a timer is being armed
 * @ticker:	the ticker
 * @empty:	there was no timer: nothing has been missed
 */
static inline void bench_ticker_start(struct bench_ticker *ticker, bool empty)
{
	lockdep_assert_held(&ticker->lock);
	if (likely(ticker->ticking))
		return;
	if (empty)
		ticker->tick = bench_ticker_now(ticker);
	ticker->ticking = true;
	hrtimer_start(&ticker->hrtimer, ns_to_ktime(bench_ticker_time(ticker, ticker->tick + 1)),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * bench_ticker_next - set the hrtimer for what comes next
 * @ticker:	the ticker
 * @again:	there is more to do for this tick than fits into one softirq
 *
 * Return: what the hrtimer's function is to return.
 */
static inline enum hrtimer_restart bench_ticker_next(struct bench_ticker *ticker, bool again)
{
	u64 next = bench_ticker_time(ticker, ticker->tick + 1);

	hrtimer_set_expires(&ticker->hrtimer, again ? ktime_get() : ns_to_ktime(next));
	return HRTIMER_RESTART;
}

/**
 * bench_ticker_stop - wait for callbacks; arming a timer starts the ticker again
 * @ticker:	the ticker
 *
 * Context: process.
 */
static inline void bench_ticker_stop(struct bench_ticker *ticker)
{
	hrtimer_cancel(&ticker->hrtimer);
	ticker->ticking = false;
}

#endif /* _TWHEEL_BENCH_TICKER_H */
