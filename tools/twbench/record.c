// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench record: what the timers of this machine do, as a trace
 *
 * The kernel reports when a timer is armed and with which deadline, when it is cancelled, and when
 * it expires. Moving a timer is reported as a cancel with an arm right after it, and expiring as a
 * cancel with the expiry after it. So a cancel is held back until it is known what follows.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace.h"
#include "tracefs.h"

/* An arm that comes so soon after a cancel of the same timer is a move. */
#define MOVE_NS		(20 * NS_PER_US)

/* Timeouts are not longer than this. */
#define TIMEOUT_MAX	(100ULL * 86400 * NS_PER_S)

/* A recording ends after so long, as no replay takes longer. */
#define MAX_SECONDS	(TWHEEL_BENCH_MAX_TIMEOUT_NS / NS_PER_S)

/* A later time cannot be since booting: it is in CLOCK_REALTIME. */
#define REALTIME_MIN	1000000000000000000ULL

#define NO_CANCEL	UINT64_MAX

/**
 * struct seen - a timer
 * @address:	where it is, as the kernel shows it, with its kind in the lowest bits; 0: none
 * @object:	its number
 * @armed:	it is armed
 * @cancelled:	when it was cancelled, if that is held back, or %NO_CANCEL
 */
struct seen {
	uint64_t	address;
	uint32_t	object;
	bool		armed;
	uint64_t	cancelled;
};

enum what { ARMED, CANCELLED, EXPIRED };

/**
 * struct event - a line of the kernel's trace
 * @name:	the tracepoint
 * @what:	what it reports
 * @timer:	how it names the timer
 * @deadline:	how it names the deadline; NULL unless @what is ARMED
 * @in_jiffies:	that is a timeout in jiffies, and not a time in nanoseconds
 */
struct event {
	const char	*name;
	enum what	what;
	const char	*timer;
	const char	*deadline;
	bool		in_jiffies;
};

static const struct event events[] = {
	{ "timer/timer_start", ARMED, " timer=", "[timeout=", true },
	{ "timer/timer_cancel", CANCELLED, " timer=", NULL, false },
	{ "timer/timer_expire_entry", EXPIRED, " timer=", NULL, false },
	{ "timer/hrtimer_start", ARMED, " hrtimer=", " softexpires=", false },
	{ "timer/hrtimer_cancel", CANCELLED, " hrtimer=", NULL, false },
	{ "timer/hrtimer_expire_entry", EXPIRED, " hrtimer=", NULL, false },
	{ "twheel/twheel_timer_add", ARMED, " timer=", " deadline=", false },
	{ "twheel/twheel_timer_rearm", ARMED, " timer=", " deadline=", false },
	{ "twheel/twheel_timer_cancel", CANCELLED, " timer=", NULL, false },
	{ "twheel/twheel_timer_expire_entry", EXPIRED, " timer=", NULL, false },
};

/* The recording in progress: the trace, its beginning, and the length of a jiffy. */
static struct trace *trace;
static uint64_t origin_ns;
static uint64_t jiffy_ns;
static uint64_t realtime_ns;

/* A hash table of timers, at most half full. */
static struct seen *table;
static size_t table_size;
static uint32_t nr_seen;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static struct seen *find_place(uint64_t address)
{
	size_t i = address * 0x9e3779b97f4a7c15ULL >> 20;

	for (;; i++) {
		struct seen *seen = &table[i & (table_size - 1)];

		if (!seen->address || seen->address == address)
			return seen;
	}
}

static void grow_table(void)
{
	struct seen *old = table;
	const size_t size = table_size;
	size_t i;

	table_size = size ? 2 * size : 1024;
	table = allocate(table_size, sizeof(*table));
	for (i = 0; i < size; i++)
		if (old[i].address)
			*find_place(old[i].address) = old[i];
	free(old);
}

/* Returns the timer at an address. */
static struct seen *find_timer(uint64_t address)
{
	struct seen *seen;

	if (2 * (nr_seen + 1) > table_size)
		grow_table();
	seen = find_place(address);
	if (!seen->address)
		*seen = (struct seen) {
			.address	= address,
			.object		= nr_seen++,
			.cancelled	= NO_CANCEL,
		};
	return seen;
}

static void release_cancel(struct seen *seen)
{
	if (seen->cancelled != NO_CANCEL)
		trace_add(trace, TWHEEL_BENCH_OP_CANCEL, seen->cancelled, seen->object, 0);
	seen->cancelled = NO_CANCEL;
}

static void note_armed(struct seen *seen, uint64_t time, uint64_t deadline)
{
	if (seen->cancelled != NO_CANCEL && time <= seen->cancelled + MOVE_NS) {
		seen->cancelled = NO_CANCEL;
		seen->armed = true;
	}
	release_cancel(seen);
	trace_add(trace, seen->armed ? TWHEEL_BENCH_OP_MOVE : TWHEEL_BENCH_OP_ARM, time,
		  seen->object, deadline);
	seen->armed = true;
}

static void note_cancelled(struct seen *seen, uint64_t time)
{
	if (!seen->armed)
		return;
	seen->armed = false;
	seen->cancelled = time;
}

static void note_expired(struct seen *seen)
{
	seen->armed = false;
	seen->cancelled = NO_CANCEL;
}

/* Reads the time before the event's name, as "12.345678". Returns 0 if there is none. */
static uint64_t parse_time(const char *line, const char *end)
{
	const char *begin = end;
	unsigned long long seconds, us;

	while (begin > line && strchr("0123456789.", begin[-1]))
		begin--;
	if (sscanf(begin, "%llu.%6llu", &seconds, &us) != 2)
		return 0;
	return seconds * NS_PER_S + us * NS_PER_US;
}

/* Reads a deadline, in nanoseconds of CLOCK_MONOTONIC. */
static bool parse_deadline(const struct event *event, const char *line, uint64_t time,
			   uint64_t *deadline)
{
	const char *at = strstr(line, event->deadline);
	long long timeout;

	if (!at)
		return false;
	at += strlen(event->deadline);
	if (event->in_jiffies) {
		timeout = strtoll(at, NULL, 10);
		if (timeout < 0)
			timeout = 0;
		*deadline = time + ((uint64_t)timeout < TIMEOUT_MAX / jiffy_ns ?
				    timeout * jiffy_ns : TIMEOUT_MAX);
		return true;
	}
	*deadline = strtoull(at, NULL, 10);
	if (*deadline > REALTIME_MIN && *deadline < INT64_MAX)
		*deadline -= realtime_ns;
	return true;
}

/* The kernel's own ticks are no timers that anybody could keep elsewhere. */
static bool is_tick(const char *line)
{
	return strstr(line, " function=tick_");
}

static uint64_t relative(uint64_t time)
{
	const uint64_t ns = time > origin_ns ? time - origin_ns : 0;

	/* Time 0 would be before the trace. */
	return ns < NS_PER_US ? NS_PER_US : ns / NS_PER_US * NS_PER_US;
}

static void take_event(const struct event *event, uint64_t time, const char *line)
{
	const char *at = strstr(line, event->timer);
	uint64_t deadline = 0;
	struct seen *seen;

	if (!at || is_tick(line))
		return;
	if (event->deadline && !parse_deadline(event, line, time, &deadline))
		return;
	/* Both kinds may be at one address, one after the other. */
	seen = find_timer((strtoull(at + strlen(event->timer), NULL, 16) << 2) |
			  (event->name[1] == 'w') << 1 | 1);
	if (event->what == CANCELLED) {
		note_cancelled(seen, relative(time));
	} else if (event->what == EXPIRED) {
		note_expired(seen);
	} else {
		if (deadline > time + TIMEOUT_MAX)
			deadline = time + TIMEOUT_MAX;
		if (deadline < time)
			deadline = time;
		note_armed(seen, relative(time), relative(deadline));
	}
}

/* Returns the last place of a text in a line, or NULL. */
static const char *find_last(const char *line, const char *text)
{
	const char *at = strstr(line, text), *last = NULL;

	for (; at; at = strstr(at + 1, text))
		last = at;
	return last;
}

/*
 * A line begins with the name of a process, which may be like a tracepoint's. What follows the
 * tracepoint's is the kernel's.
 */
static void take_line(char *line)
{
	const struct event *event = NULL;
	const char *at, *last = NULL;
	char text[64];
	uint64_t time;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(text, sizeof(text), ": %s: ", strchr(events[i].name, '/') + 1);
		at = find_last(line, text);
		if (at && (!last || at > last)) {
			last = at;
			event = &events[i];
		}
	}
	if (!event)
		return;
	time = parse_time(line, last);
	if (time)
		take_event(event, time, last);
}

/* What kind of timers a tracepoint is about. */
static const char *kind_of(const struct event *event)
{
	return !strncmp(event->name, "twheel/", 7) ? "twheel" :
	       !strncmp(event->name, "timer/h", 7) ? "hrtimer" : "timer";
}

static const char * const kinds[] = { "timer", "hrtimer", "twheel" };

/* Notes which kinds of timers are in a list of words, or exits. Without a list, all are. */
static void choose_kinds(const char *list, bool chosen[])
{
	char *words = strdup(list ?: ""), *rest = list ? words : NULL, *word;
	size_t i;

	if (!words)
		errx(EXIT_FAILED, "out of memory");
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		chosen[i] = !list;
	while ((word = strsep(&rest, ","))) {
		for (i = 0; i < ARRAY_SIZE(kinds) && strcmp(word, kinds[i]); i++)
			;
		if (i == ARRAY_SIZE(kinds))
			errx(EXIT_USAGE, "--events is a list of timer, hrtimer and twheel");
		chosen[i] = true;
	}
	free(words);
}

/* Enables the tracepoints of the kinds that were chosen; those that there are, or @all. */
static void enable_events(const bool chosen[], bool all)
{
	size_t kind, i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		for (kind = 0; strcmp(kind_of(&events[i]), kinds[kind]); kind++)
			;
		if (chosen[kind] && !tracefs_enable(events[i].name) && all)
			errx(EXIT_FAILED, "there is no tracepoint %s here", events[i].name);
	}
}

/* Timers that are only seen when they end have no part in the trace, and need no number. */
static void renumber(void)
{
	uint32_t *number = allocate(nr_seen, sizeof(*number)), nr = 0;
	uint64_t i;

	for (i = 0; i < trace->nr; i++) {
		struct twheel_bench_op *op = &trace->op[i];

		if (!number[op->object])
			number[op->object] = ++nr;
		op->object = number[op->object] - 1;
	}
	trace->nr_objects = nr;
	free(number);
}

/**
 * record_trace - record what timers do, or exit
 * @plan:	what, and for how long
 * @recorded:	filled in
 */
void record_trace(const struct record_plan *plan, struct trace *recorded)
{
	bool chosen[ARRAY_SIZE(kinds)];
	struct timespec resolution;
	uint64_t lost, end;
	size_t i;

	choose_kinds(plan->events, chosen);
	trace = recorded;
	*trace = (struct trace) { 0 };
	snprintf(trace->note, sizeof(trace->note), "%s", plan->note ? plan->note : "");
	/* The coarse clocks advance once a jiffy. */
	clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
	jiffy_ns = resolution.tv_nsec;
	realtime_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	tracefs_open();
	enable_events(chosen, plan->events);
	origin_ns = clock_ns(CLOCK_MONOTONIC);
	tracefs_start();
	lost = tracefs_follow(plan->seconds ?: MAX_SECONDS, take_line);
	end = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < table_size; i++)
		if (table[i].address)
			release_cancel(&table[i]);
	if (!trace->nr)
		errx(EXIT_FAILED, "no timer was armed meanwhile");
	trace_sort(trace);
	trace->length_ns = relative(end);
	/* It takes a moment to notice that an hour is over. */
	if (trace->length_ns > TWHEEL_BENCH_MAX_TIMEOUT_NS)
		trace->length_ns = TWHEEL_BENCH_MAX_TIMEOUT_NS;
	while (trace->nr > 1 && trace->op[trace->nr - 1].time_ns > trace->length_ns)
		trace->nr--;
	renumber();
	if (lost)
		warnx("%llu events were lost: the buffer was full", (unsigned long long)lost);
}
