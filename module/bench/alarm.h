/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel_bench: an hrtimer that waits for the first of a scheme's timers
 *
 * Schemes that know which of their timers is due first share this. It is the best that such a
 * scheme can do: the hrtimer is left alone when the first timer is cancelled or moved to a later
 * time, and timers that are due at about the same time share an interrupt.
 */
#ifndef _TWHEEL_BENCH_ALARM_H
#define _TWHEEL_BENCH_ALARM_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "lib/compat.h"

/* Maximum number of timers expired in one softirq, the same as the wheel's default. */
#define BENCH_BUDGET	4096

/**
 * struct bench_alarm - the hrtimer
 * @lock:	guards the scheme's timers, and everything below. Taken in process and in softirq
 *		context; no other lock is taken while it is held
 * @programmed:	when the hrtimer expires, in nanoseconds; %KTIME_MAX: never
 * @expiring:	the hrtimer's function is running, and will program the hrtimer
 * @slack:	by how many nanoseconds a timer may be late
 * @hrtimer:	expires when the first timer is due, or earlier
 */
struct bench_alarm {
	spinlock_t		lock;
	u64			programmed;
	bool			expiring;
	u64			slack;
	struct hrtimer		hrtimer;
};

/**
 * bench_alarm_init - initialise an alarm
 * @alarm:	the alarm
 * @slack:	by how many nanoseconds timers may be late
 * @function:	called in softirq context; calls bench_alarm_begin() and bench_alarm_end()
 */
static inline void bench_alarm_init(struct bench_alarm *alarm, u64 slack,
				    enum hrtimer_restart (*function)(struct hrtimer *hrtimer))
{
	spin_lock_init(&alarm->lock);
	alarm->programmed = KTIME_MAX;
	alarm->expiring = false;
	alarm->slack = slack;
	hrtimer_setup(&alarm->hrtimer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * bench_alarm_program - make the hrtimer expire for the first timer
 * @alarm:	the alarm
 * @first:	when that is due, in nanoseconds of CLOCK_MONOTONIC
 */
static inline void bench_alarm_program(struct bench_alarm *alarm, u64 first)
{
	lockdep_assert_held(&alarm->lock);
	if (first >= alarm->programmed || alarm->expiring)
		return;
	alarm->programmed = first;
	hrtimer_start_range_ns(&alarm->hrtimer, ns_to_ktime(first), alarm->slack,
			       HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * bench_alarm_begin - begin to expire timers; takes the lock
 * @alarm:	the alarm
 */
static inline void bench_alarm_begin(struct bench_alarm *alarm)
{
	spin_lock(&alarm->lock);
	alarm->expiring = true;
}

/**
 * bench_alarm_end - end that, and wait for the first of the other timers; releases the lock
 * @alarm:	the alarm
 * @first:	when that is due; %KTIME_MAX if there is none
 * @now:	until when timers were expired, unless there were too many for one softirq
 *
 * Return: what the hrtimer's function is to return.
 */
static inline enum hrtimer_restart bench_alarm_end(struct bench_alarm *alarm, u64 first, u64 now)
{
	alarm->expiring = false;
	alarm->programmed = first;
	if (first <= now)
		/* Expire the rest at once, but in a softirq of its own. */
		hrtimer_set_expires(&alarm->hrtimer, ktime_get());
	else if (first != KTIME_MAX)
		hrtimer_set_expires_range_ns(&alarm->hrtimer, ns_to_ktime(first), alarm->slack);
	spin_unlock(&alarm->lock);
	return first == KTIME_MAX ? HRTIMER_NORESTART : HRTIMER_RESTART;
}

/**
 * bench_alarm_stop - wait for callbacks; arming a timer programs the hrtimer again
 * @alarm:	the alarm
 *
 * Context: process.
 */
static inline void bench_alarm_stop(struct bench_alarm *alarm)
{
	hrtimer_cancel(&alarm->hrtimer);
	alarm->programmed = KTIME_MAX;
}

#endif /* _TWHEEL_BENCH_ALARM_H */
