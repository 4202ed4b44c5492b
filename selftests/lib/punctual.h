/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How late a timer may be where time is the number of instructions: not by a tick. It
 * comes at the first tick after its deadline, as soon as the processor has got to it. That may take
 * longer than a tick: other softirqs may be first, thousands of timers may have to be moved to
 * another level of the wheel, and as simulated processors run in turn, who waits for a lock of
 * another's waits for a turn. So the wheel's tracepoints are asked whether it came in a tick that
 * was set for it.
 *
 * Every event that a test reads with wh_read() is held to that.
 */
#ifndef _TWHEEL_PUNCTUAL_H
#define _TWHEEL_PUNCTUAL_H

#include <sys/stat.h>
#include <sys/utsname.h>

#include <linux/twheel.h>

#include "system_test.h"

/* Where the ticks of all CPUs are noted. */
#define PUNCTUAL_TRACE	"/sys/kernel/tracing/instances/punctual/"
#define PUNCTUAL_ENTRY	PUNCTUAL_TRACE "events/twheel/twheel_tick_entry/enable"
#define PUNCTUAL_EXIT	PUNCTUAL_TRACE "events/twheel/twheel_tick_exit/enable"
#define PUNCTUAL_KB	64
#define PUNCTUAL_CPUS	64

/* How often that is read: one that is written meanwhile may end before its end. */
#define PUNCTUAL_LOOKS	10

/* By how much a processor may get to it later where ticks are shorter: others' interrupts. */
#define PUNCTUAL_LEAST	(100 * USEC)

/* What is later than this is a time of day. */
#define PUNCTUAL_DATE	(1ULL << 60)

/**
 * struct punctual_run - a tick's run on a CPU
 * @set:	the time it was set to
 * @time:	when it came, or ended
 * @runs:	whether it has come
 */
struct punctual_run {
	__u64	set;
	__u64	time;
	bool	runs;
};

/*
 * What is known of this process's timers.
 *
 * @known:	@tick is
 * @tick:	the module's; 0 if nothing can be held to it here
 * @calls:	calls that arm timers, and have not returned
 * @armed:	when the last of these had returned
 * @slack:	what its timers have at most, in nanoseconds
 * @allowed:	how much later they may be for other reasons, likewise
 * @last:	the run that was found last, for others that came in it
 * @end:	when it was over
 */
static struct {
	bool		known;
	__u64		tick;
	unsigned int	calls;
	__u64		armed;
	__u64		slack;
	__u64		allowed;
	struct punctual_run last;
	__u64		end;
} punctual;

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

/* Begins to note ticks. Returns whether it can. */
static inline bool punctual_note(void)
{
	if (mkdir(PUNCTUAL_TRACE, 0700) && errno != EEXIST)
		return false;
	return !file_write(PUNCTUAL_TRACE "buffer_size_kb", PUNCTUAL_KB) &&
	       !file_write(PUNCTUAL_ENTRY, 1) && !file_write(PUNCTUAL_EXIT, 1);
}

/* The module's tick, if its timers can be held to it. */
static inline __u64 punctual_tick(void)
{
	if (!punctual.known) {
		if (punctual_guest() && punctual_note())
			punctual.tick = file_number(PARAMETERS "tick_ns");
		punctual.known = true;
	}
	return punctual.tick;
}

/* Something is over that keeps timers from coming, or has them come earlier. */
static inline void punctual_from_now(void)
{
	__atomic_store_n(&punctual.armed, now_ns(), __ATOMIC_SEQ_CST);
}

/* A call begins that may arm timers; and it has ended. */
static inline void punctual_call(void)
{
	punctual_tick();
	__atomic_add_fetch(&punctual.calls, 1, __ATOMIC_SEQ_CST);
}

static inline void punctual_called(void)
{
	punctual_from_now();
	__atomic_sub_fetch(&punctual.calls, 1, __ATOMIC_SEQ_CST);
}

/* From here on timers may be so much later. */
static inline void punctual_allow(__u64 ns)
{
	if (punctual.allowed < ns)
		punctual.allowed = ns;
}

/* From here on nothing that it reads is held to anything, as what it does delays timers. */
static inline void punctual_off(void)
{
	punctual.known = true;
	punctual.tick = 0;
}

/* From here on timers may have so much slack. */
static inline void punctual_slack(__u64 slack)
{
	if (punctual.slack < slack)
		punctual.slack = slack;
}

/* How long after its tick a timer may come, in nanoseconds. */
static inline __u64 punctual_most(__u64 tick)
{
	__u64 most = tick > PUNCTUAL_LEAST ? tick - 1 : PUNCTUAL_LEAST;

	return most + punctual.slack + punctual.allowed;
}

/* By how much is the clock ahead, or a little less, by which an event has @fired? */
static inline __u64 punctual_ahead(__u64 fired)
{
	__u64 clock;

	if (fired >= PUNCTUAL_DATE)
		clock = clock_ns(CLOCK_REALTIME);
	else if (fired > now_ns())
		clock = clock_ns(CLOCK_BOOTTIME);
	else
		return 0;
	return clock - now_ns();
}

/* Reads of the next tick that it has come, or that it ends. Returns whether there was one. */
static inline bool punctual_next(FILE *file, struct punctual_run *run, unsigned int *cpu)
{
	const char *tick;
	char line[256], what;

	while (fgets(line, sizeof(line), file)) {
		tick = strstr(line, "twheel_tick_e");
		if (!tick ||
		    sscanf(tick, "twheel_tick_e%c%*s now=%llu programmed=%llu cpu=%u", &what,
			   &run->time, &run->set, cpu) != 4 || *cpu >= PUNCTUAL_CPUS)
			continue;
		run->runs = what == 'n';
		return true;
	}
	return false;
}

/* Was a tick that was set to @due or before, came as @run says and ended at @end the one? */
static inline bool punctual_in(const struct punctual_run *run, __u64 end, __u64 due, __u64 fired)
{
	return run->runs && run->set <= due && run->time <= fired && fired <= end;
}

/*
 * Did what came at @fired come in a tick that was set to @due or before? It may have, if what has
 * been noted does not go back that far. Prints the ticks about then, if it is to @tell.
 */
static inline bool punctual_came(__u64 due, __u64 fired, bool tell)
{
	struct punctual_run runs[PUNCTUAL_CPUS] = { }, next, *run;
	FILE *file = fopen(PUNCTUAL_TRACE "trace", "r");
	bool came = false, more = false;
	unsigned int cpu;

	if (!file)
		return true;
	while (punctual_next(file, &next, &cpu)) {
		if (tell && next.time + 2 * MSEC > due && next.time < fired + 2 * MSEC)
			printf("# tick on CPU %u %s %llu, set to %llu\n", cpu,
			       next.runs ? "at" : "until", next.time, next.set);
		run = &runs[cpu];
		/* What was before has been overwritten. */
		more |= !run->time && next.time > due;
		if (punctual_in(run, next.time, due, fired)) {
			came = true;
			punctual.last = *run;
			punctual.end = next.time;
		}
		*run = next;
	}
	fclose(file);
	/* It may run yet. */
	for (run = runs; run < runs + PUNCTUAL_CPUS; run++)
		came |= punctual_in(run, fired, due, fired);
	return came || more;
}

/* By how much was an event late whose timer was armed no later than at @armed? 0 if it was not. */
static inline __u64 punctual_late(const struct twheel_event *event, __u64 armed)
{
	__u64 tick = punctual_tick(), ahead = punctual_ahead(event->fired);
	__u64 deadline = event->deadline > ahead ? event->deadline - ahead : 0;
	__u64 due = deadline > armed ? deadline : armed, fired = event->fired - ahead;
	int i;

	if (!tick)
		return 0;
	due = (due + tick - 1) / tick * tick;
	if (fired <= due + punctual_most(tick) ||
	    punctual_in(&punctual.last, punctual.end, due, fired))
		return 0;
	for (i = 0; i < PUNCTUAL_LOOKS; i++)
		if (punctual_came(due, fired, false))
			return 0;
	punctual_came(due, fired, true);
	return fired - due;
}

/* The same for any timer that this process has armed; 0 if one may be armed just now. */
static inline __u64 punctual_late_any(const struct twheel_event *event)
{
	if (__atomic_load_n(&punctual.calls, __ATOMIC_SEQ_CST))
		return 0;
	return punctual_late(event, __atomic_load_n(&punctual.armed, __ATOMIC_SEQ_CST));
}

/* For a timer armed no later than at @armed; 0 if that was before its deadline. */
#define EXPECT_PUNCTUAL(event, armed) do {				\
	__u64 __late = punctual_late(event, armed);			\
									\
	EXPECT_EQ(0, __late) TH_LOG("late by %llu ns after its tick", __late); \
} while (0)

#endif /* _TWHEEL_PUNCTUAL_H */
