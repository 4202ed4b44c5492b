/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How late a timer may be where time is the number of instructions: less than a tick. It expires
 * at the first tick after its deadline, as soon as the CPU gets to it. That may take longer than a
 * tick: other softirqs may run first, thousands of timers may have to be moved to another level of
 * the wheel, and as simulated CPUs take turns, waiting for a lock that another CPU holds means
 * waiting for its turn. So the wheel's tracepoints show whether a late timer expired in a tick
 * that was programmed for it.
 *
 * This is checked for every event that a test reads with wh_read().
 */
#ifndef _TWHEEL_PUNCTUAL_H
#define _TWHEEL_PUNCTUAL_H

#include <sys/stat.h>
#include <sys/utsname.h>

#include <linux/twheel.h>

#include "system_test.h"

/* Records the ticks of all CPUs. */
#define PUNCTUAL_TRACE	"/sys/kernel/tracing/instances/punctual/"
#define PUNCTUAL_ENTRY	PUNCTUAL_TRACE "events/twheel/twheel_tick_entry/enable"
#define PUNCTUAL_EXIT	PUNCTUAL_TRACE "events/twheel/twheel_tick_exit/enable"
#define PUNCTUAL_KB	64
#define PUNCTUAL_CPUS	64

/* How often the trace is read: one that is written to meanwhile may be cut short. */
#define PUNCTUAL_TRIES	10

/* The minimum of what is allowed, where ticks are shorter: other interrupts may delay a CPU. */
#define PUNCTUAL_MIN	(100 * USEC)

/* Times above this are on CLOCK_REALTIME. */
#define PUNCTUAL_REALTIME	(1ULL << 60)

/**
 * struct punctual_run - a run of a CPU's tick
 * @set:	the time that it was programmed for
 * @time:	when it started, or ended
 * @runs:	it has started, and not ended
 */
struct punctual_run {
	__u64	set;
	__u64	time;
	bool	runs;
};

/*
 * What is known about this process's timers.
 *
 * @known:	@tick has been determined
 * @tick:	the module's tick; 0 if lateness cannot be checked here
 * @calls:	calls that arm timers and have not returned yet
 * @armed:	when the last of these returned
 * @slack:	the largest slack of its timers, in nanoseconds
 * @allowed:	how much later they may be for other reasons, also in nanoseconds
 * @last:	the run that was found last, for other timers that expired in it
 * @end:	when that run ended
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
 * Can lateness be checked in this guest? Not in real time, not with delays injected into the
 * module, not where kmemleak scans all memory now and then, and not where threads expire timers:
 * others may run before them.
 */
static inline bool punctual_guest(void)
{
	struct utsname name;

	return simulated() && !uname(&name) && !strstr(name.version, "PREEMPT_RT") &&
	       access(PARAMETERS "inject_points", F_OK) &&
	       access(DEBUGFS "/kmemleak", F_OK);
}

/* Starts to record ticks. Returns whether that worked. */
static inline bool punctual_start_trace(void)
{
	if (mkdir(PUNCTUAL_TRACE, 0700) && errno != EEXIST)
		return false;
	return !file_write(PUNCTUAL_TRACE "buffer_size_kb", PUNCTUAL_KB) &&
	       !file_write(PUNCTUAL_ENTRY, 1) && !file_write(PUNCTUAL_EXIT, 1);
}

/* The module's tick; 0 if lateness cannot be checked here. */
static inline __u64 punctual_tick(void)
{
	if (!punctual.known) {
		if (punctual_guest() && punctual_start_trace())
			punctual.tick = file_number(PARAMETERS "tick_ns");
		punctual.known = true;
	}
	return punctual.tick;
}

/* To be called after what delays timers, or makes them expire earlier. */
static inline void punctual_from_now(void)
{
	__atomic_store_n(&punctual.armed, now_ns(), __ATOMIC_SEQ_CST);
}

/* Before a call that may arm timers; and after it. */
static inline void punctual_begin_arming(void)
{
	punctual_tick();
	__atomic_add_fetch(&punctual.calls, 1, __ATOMIC_SEQ_CST);
}

static inline void punctual_end_arming(void)
{
	punctual_from_now();
	__atomic_sub_fetch(&punctual.calls, 1, __ATOMIC_SEQ_CST);
}

/* From here on, timers may be later by @ns. */
static inline void punctual_allow(__u64 ns)
{
	if (punctual.allowed < ns)
		punctual.allowed = ns;
}

/* From here on, lateness is not checked, as the test itself delays timers. */
static inline void punctual_off(void)
{
	punctual.known = true;
	punctual.tick = 0;
}

/* From here on, timers may have this much slack. */
static inline void punctual_slack(__u64 slack)
{
	if (punctual.slack < slack)
		punctual.slack = slack;
}

/* How long after its tick a timer may expire, in nanoseconds. */
static inline __u64 punctual_allowance(__u64 tick)
{
	__u64 max = tick > PUNCTUAL_MIN ? tick - 1 : PUNCTUAL_MIN;

	return max + punctual.slack + punctual.allowed;
}

/* How far the clock of @fired is ahead of CLOCK_MONOTONIC, or slightly less. */
static inline __u64 punctual_clock_offset(__u64 fired)
{
	__u64 clock;

	if (fired >= PUNCTUAL_REALTIME)
		clock = clock_ns(CLOCK_REALTIME);
	else if (fired > now_ns())
		clock = clock_ns(CLOCK_BOOTTIME);
	else
		return 0;
	return clock - now_ns();
}

/* Reads the next start or end of a tick. Returns false if there are no more. */
static inline bool punctual_read_tick(FILE *file, struct punctual_run *run, unsigned int *cpu)
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

/* Did @run, programmed for @due or earlier and over at @end, include @fired? */
static inline bool punctual_in_run(const struct punctual_run *run, __u64 end, __u64 due,
				   __u64 fired)
{
	return run->runs && run->set <= due && run->time <= fired && fired <= end;
}

/*
 * Did what expired at @fired expire in a tick that was programmed for @due or earlier? If the trace
 * does not go back that far, the answer is yes. Prints the ticks around that time if @print is set.
 */
static inline bool punctual_traced(__u64 due, __u64 fired, bool print)
{
	struct punctual_run runs[PUNCTUAL_CPUS] = { }, next, *run;
	FILE *file = fopen(PUNCTUAL_TRACE "trace", "r");
	bool came = false, more = false;
	unsigned int cpu;

	if (!file)
		return true;
	while (punctual_read_tick(file, &next, &cpu)) {
		if (print && next.time + 2 * MSEC > due && next.time < fired + 2 * MSEC)
			printf("# tick on CPU %u %s %llu, set to %llu\n", cpu,
			       next.runs ? "at" : "until", next.time, next.set);
		run = &runs[cpu];
		/* What came before has been overwritten. */
		more |= !run->time && next.time > due;
		if (punctual_in_run(run, next.time, due, fired)) {
			came = true;
			punctual.last = *run;
			punctual.end = next.time;
		}
		*run = next;
	}
	fclose(file);
	/* It may still be running. */
	for (run = runs; run < runs + PUNCTUAL_CPUS; run++)
		came |= punctual_in_run(run, fired, due, fired);
	return came || more;
}

/* How late an event is whose timer was armed no later than at @armed; 0 if it is punctual. */
static inline __u64 punctual_late(const struct twheel_event *event, __u64 armed)
{
	__u64 tick = punctual_tick(), ahead = punctual_clock_offset(event->fired);
	__u64 deadline = event->deadline > ahead ? event->deadline - ahead : 0;
	__u64 due = deadline > armed ? deadline : armed, fired = event->fired - ahead;
	int i;

	if (!tick)
		return 0;
	due = (due + tick - 1) / tick * tick;
	if (fired <= due + punctual_allowance(tick) ||
	    punctual_in_run(&punctual.last, punctual.end, due, fired))
		return 0;
	for (i = 0; i < PUNCTUAL_TRIES; i++)
		if (punctual_traced(due, fired, false))
			return 0;
	punctual_traced(due, fired, true);
	return fired - due;
}

/* The same for any timer that this process has armed; 0 if a call that arms one is running. */
static inline __u64 punctual_late_any(const struct twheel_event *event)
{
	if (__atomic_load_n(&punctual.calls, __ATOMIC_SEQ_CST))
		return 0;
	return punctual_late(event, __atomic_load_n(&punctual.armed, __ATOMIC_SEQ_CST));
}

/* The timer was armed no later than at @armed; 0 if that was before its deadline. */
#define EXPECT_PUNCTUAL(event, armed) do {				\
	__u64 __late = punctual_late(event, armed);			\
									\
	EXPECT_EQ(0, __late) TH_LOG("late by %llu ns after its tick", __late); \
} while (0)

#endif /* _TWHEEL_PUNCTUAL_H */
