/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: how a CPU's wheel is occupied
 */
#ifndef _TWHEEL_CORE_STATS_H
#define _TWHEEL_CORE_STATS_H

#include <linux/types.h>

/**
 * struct twheel_level - what is filed on a level of a wheel
 * @slots:	slots with something in them
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

int twheel_engine_levels(unsigned int cpu, struct twheel_level *levels);

#endif /* _TWHEEL_CORE_STATS_H */
