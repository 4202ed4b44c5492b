/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the engine, as the rest of the module sees it
 */
#ifndef _TWHEEL_ENGINE_H
#define _TWHEEL_ENGINE_H

#include <linux/hrtimer.h>
#include <linux/spinlock.h>

#include "twheel.h"

/* Lateness is counted by powers of two of nanoseconds, as far as a u64 goes. */
#define TWHEEL_LATE_BUCKETS	64

/**
 * struct twheel_counts - what has happened on a CPU
 * @adds:	timers armed that were not pending
 * @cancels:	pending timers cancelled
 * @rearms:	pending timers armed anew
 * @ticks:	calls of the hrtimer
 * @empty_ticks:	those in which no timer expired
 * @late:	expiries by nanoseconds after the deadline: bucket b counts those of
 *		less than 2^(b+1) ns
 */
struct twheel_counts {
	u64	adds;
	u64	cancels;
	u64	rearms;
	u64	ticks;
	u64	empty_ticks;
	u64	late[TWHEEL_LATE_BUCKETS];
};

/**
 * struct twheel_base - one CPU's wheel and what drives it
 * @cpu:	the CPU; constant
 * @expiring:	the hrtimer's function is at work: it will program the hrtimer, so
 *		nobody else has to
 * @running:	the timer whose callback is being called, or was called last by the
 *		hrtimer's function, which is still at work; or NULL. Read by any CPU
 * @programmed:	the time that the hrtimer is set to, in nanoseconds, or %TWHEEL_NEVER
 * @behind:	how many nanoseconds the wheel's tick that is being worked off lies back,
 *		plus one
 * @counts:	statistics
 * @hrtimer:	calls up the wheel at its next occupied slot. Started on its CPU
 *		only, but for the callbacks of a CPU that is going down
 * @lock:	guards all of this but @running, and @wheel, and the timers that name
 *		this CPU as their owner, against other tasks and softirqs of this CPU
 *		(PREEMPT_RT only). Taken in process and softirq context with softirqs
 *		off; never held for a callback. Outside of @wheel.lock
 * @waiters:	how many twheel_cancel_sync() wait for a callback (PREEMPT_RT only)
 * @expiry_lock: held while callbacks are called, so that who waits for one lends
 *		it his priority (PREEMPT_RT only). Taken outside of @lock
 * @wheel:	the timers
 */
struct twheel_base {
	unsigned int		cpu;
	bool			expiring;
	struct twheel_timer	*running;
	u64			programmed;
	u64			behind;
	struct twheel_counts	counts;
	struct hrtimer		hrtimer;
#ifdef CONFIG_PREEMPT_RT
	spinlock_t		lock;
	atomic_t		waiters;
	spinlock_t		expiry_lock;
#endif
	struct twheel		wheel;
};

/**
 * struct twheel_snapshot - a copy of a base's numbers
 * @counts:	see struct twheel_counts
 * @wheel:	see struct twheel_stats
 * @expiries:	callbacks called
 * @pending:	timers pending
 */
struct twheel_snapshot {
	struct twheel_counts	counts;
	struct twheel_stats	wheel;
	u64			expiries;
	u64			pending;
};

void twheel_engine_snapshot(unsigned int cpu, struct twheel_snapshot *snapshot);
int twheel_engine_init(void);
void twheel_engine_exit(void);

#endif /* _TWHEEL_ENGINE_H */
