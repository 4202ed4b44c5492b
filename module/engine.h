/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the engine, as the rest of the module sees it
 */
#ifndef _TWHEEL_ENGINE_H
#define _TWHEEL_ENGINE_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include "twheel.h"

/* Lateness is counted by powers of two of nanoseconds; the last has no end. */
#define TWHEEL_LATE_BUCKETS	36

/**
 * struct twheel_counts - what has happened on one CPU's wheel
 * @adds:	timers armed that were not pending
 * @cancels:	pending timers cancelled
 * @rearms:	pending timers armed anew
 * @expiries:	callbacks called
 * @ticks:	calls of the hrtimer
 * @empty_ticks:	those in which no timer expired
 * @late:	expiries by nanoseconds after the deadline: bucket 0 counts those
 *		of 0 ns, bucket b those of less than 2^b ns
 */
struct twheel_counts {
	u64	adds;
	u64	cancels;
	u64	rearms;
	u64	expiries;
	u64	ticks;
	u64	empty_ticks;
	u64	late[TWHEEL_LATE_BUCKETS];
};

/**
 * struct twheel_base - one CPU's wheel and what drives it
 * @lock:	guards all of this but @expiry_lock, and the timers that name this
 *		CPU as their owner. Taken with softirqs off, from process and
 *		softirq context of any CPU. Innermost: only the move of a dead CPU's
 *		timers takes a second one, the live CPU's inside the dead one's
 * @cpu:	the CPU; constant
 * @running:	the timer whose callback is being called, or NULL
 * @expiring:	the hrtimer's function is at work: it will program the hrtimer, so
 *		nobody else has to
 * @programmed:	the tick that the hrtimer is set to, or %TWHEEL_NEVER
 * @hrtimer:	calls up the wheel at its next occupied slot. Started on its CPU
 *		only, but for the callbacks of a CPU that is going down
 * @pages:	the memory of the wheel's chunks
 * @counts:	statistics
 * @waiters:	how many twheel_cancel_sync() wait for a callback (PREEMPT_RT only)
 * @expiry_lock: held while callbacks are called, so that who waits for one lends
 *		it his priority (PREEMPT_RT only). Taken outside of @lock
 * @wheel:	the timers
 */
struct twheel_base {
	spinlock_t		lock;
	unsigned int		cpu;
	struct twheel_timer	*running;
	bool			expiring;
	u64			programmed;
	struct hrtimer		hrtimer;
	struct list_head	pages;
	struct twheel_counts	counts;
#ifdef CONFIG_PREEMPT_RT
	atomic_t		waiters;
	spinlock_t		expiry_lock;
#endif
	struct twheel		wheel;
};

/**
 * struct twheel_snapshot - a copy of a base's numbers, taken at one moment
 * @counts:	see struct twheel_counts
 * @wheel:	see struct twheel_stats
 */
struct twheel_snapshot {
	struct twheel_counts	counts;
	struct twheel_stats	wheel;
};

void twheel_engine_snapshot(unsigned int cpu, struct twheel_snapshot *snapshot);
int twheel_engine_init(void);
void twheel_engine_exit(void);

#endif /* _TWHEEL_ENGINE_H */
