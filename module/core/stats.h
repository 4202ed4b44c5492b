/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: a CPU wheel's counters, and how the wheel is occupied
 */
#ifndef _TWHEEL_CORE_STATS_H
#define _TWHEEL_CORE_STATS_H

#include <linux/types.h>

#include "wheel.h"

/* Lateness is counted by powers of two of nanoseconds, over the range of a u64. */
#define TWHEEL_LATE_BUCKETS	64

/**
 * struct twheel_counts - what has happened on a CPU
 * @adds:	timers armed that were not pending
 * @cancels:	pending timers cancelled
 * @remote_cancels: those of them that were on another CPU's wheel
 * @rearms:	pending timers re-armed
 * @ticks:	calls of the hrtimer's function
 * @empty_ticks:	those in which no timer expired
 * @late:	expiries by nanoseconds after the deadline: bucket b counts those of
 *		less than 2^(b+1) ns
 */
struct twheel_counts {
	u64	adds;
	u64	cancels;
	u64	remote_cancels;
	u64	rearms;
	u64	ticks;
	u64	empty_ticks;
	u64	late[TWHEEL_LATE_BUCKETS];
};

/**
 * struct twheel_snapshot - a copy of a base's counters
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

/**
 * struct twheel_level - what is on one level of a wheel
 * @slots:	slots that are not empty
 * @chunks:	chunks in these
 * @timers:	timers in these
 * @more:	there are more chunks and timers than were counted
 */
struct twheel_level {
	unsigned long	slots;
	unsigned long	chunks;
	unsigned long	timers;
	bool		more;
};

void twheel_stats_snapshot(unsigned int cpu, struct twheel_snapshot *snapshot);
int twheel_stats_levels(unsigned int cpu, struct twheel_level *levels);

#endif /* _TWHEEL_CORE_STATS_H */
