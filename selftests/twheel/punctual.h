/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How late a timer may be where time is the number of instructions: not by a tick. It
 * comes at the first tick after its deadline, as soon as the processor has got to it. Where
 * there are thousands, all of them may have to be moved to another level of the wheel before.
 */
#ifndef _TWHEEL_PUNCTUAL_H
#define _TWHEEL_PUNCTUAL_H

#include <sys/utsname.h>

#include "twheel_test.h"

/* By how much a processor may get to it later where ticks are shorter: others' interrupts. */
#define PUNCTUAL_LEAST	(100 * USEC)

/* To move one takes less than this, in nanoseconds; and so many are moved in no time. */
#define PUNCTUAL_MOVE	USEC
#define PUNCTUAL_FEW	256

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

/* How long after its tick one of @timers may come, in nanoseconds. */
static inline __u64 punctual_slack(__u64 tick, __u64 timers)
{
	__u64 slack = tick > PUNCTUAL_LEAST ? tick - 1 : PUNCTUAL_LEAST;

	return timers > PUNCTUAL_FEW ? slack + timers * PUNCTUAL_MOVE : slack;
}

/*
 * By how much was an event late whose timer was armed no later than at @armed, as one of @timers? 0
 * if it was not.
 */
static inline __u64 punctual_late(const struct twheel_event *event, __u64 armed, __u64 timers)
{
	__u64 from = event->deadline > armed ? event->deadline : armed;
	static __u64 tick = POISON;
	__u64 due;

	if (tick == POISON)
		tick = punctual_guest() ? file_number(PARAMETERS "tick_ns") : 0;
	if (!tick)
		return 0;
	due = (from + tick - 1) / tick * tick;
	if (event->fired <= due || event->fired - due <= punctual_slack(tick, timers))
		return 0;
	return event->fired - due;
}

/* For one of @timers, armed no later than at @armed; 0 if that was before its deadline. */
#define EXPECT_PUNCTUAL_OF(timers, event, armed) do {			\
	__u64 __late = punctual_late(event, armed, timers);		\
									\
	EXPECT_EQ(0, __late) TH_LOG("late by %llu ns after its tick", __late); \
} while (0)

/* The same for one of a few. */
#define EXPECT_PUNCTUAL(event, armed)	EXPECT_PUNCTUAL_OF(1, event, armed)

#endif /* _TWHEEL_PUNCTUAL_H */
