/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How late a timer may be where time is the number of instructions: not by a tick. It
 * comes at the first tick after its deadline, as soon as the processor has got to it.
 */
#ifndef _TWHEEL_PUNCTUAL_H
#define _TWHEEL_PUNCTUAL_H

#include <sys/utsname.h>

#include "twheel_test.h"

/* What a processor may be kept from a tick by others' interrupts, and timers before one. */
#define PUNCTUAL_LEAST	(100 * USEC)

/**
 * struct punctual - what is late
 * @tick:	the length of a tick, in nanoseconds
 * @slack:	how long after its tick a timer may come, in nanoseconds
 */
struct punctual {
	__u64	tick;
	__u64	slack;
};

/*
 * Can this guest be held to it? Not in real time, with delays in the module, where kmemleak scans
 * all memory now and then, nor where threads, for which others come first, expire timers.
 */
static inline bool punctual_guest(void)
{
	struct utsname name;

	return simulated() && !uname(&name) && !strstr(name.version, "PREEMPT_RT") &&
	       access(PARAMETERS "inject_points", F_OK) &&
	       access(DEBUGFS "/kmemleak", F_OK);
}

static inline struct punctual punctual(__u64 tick)
{
	struct punctual punctual = { .tick = tick, .slack = -1ULL };

	if (punctual_guest())
		punctual.slack = tick / 2 > PUNCTUAL_LEAST ? tick / 2 : PUNCTUAL_LEAST;
	return punctual;
}

/* By how much was an event late whose timer was armed no later than at @armed? 0 if it was not. */
static inline __u64 punctual_late(const struct punctual *punctual,
				  const struct twheel_event *event, __u64 armed)
{
	__u64 from = event->deadline > armed ? event->deadline : armed;
	__u64 due = (from + punctual->tick - 1) / punctual->tick * punctual->tick;

	if (event->fired <= due || event->fired - due <= punctual->slack)
		return 0;
	return event->fired - due;
}

#endif /* _TWHEEL_PUNCTUAL_H */
