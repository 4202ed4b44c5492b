/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers of the selftests of budgets: how many steps the module takes before it lets go of a lock.
 *
 * They are counted by the kernel's function tracer, not by the module: of each task, how often it
 * has entered the function that is the step, since it has last entered the one that ends the
 * section. What is counted in all says that there were steps.
 */
#ifndef _TWHEEL_BUDGET_TEST_H
#define _TWHEEL_BUDGET_TEST_H

#include "rules_test.h"
#include "watch_test.h"

#define TRACING		"/sys/kernel/tracing/"
#define INSTANCE	TRACING "instances/twheel_budgets/"

/* Timers, and events. */
#define N		1000
/* Nanoseconds of a tick, as a power of two. */
#define TICK_SHIFT	20

/* What begins and ends a section under a context's lock. */
#define LOCK		"_raw_spin_lock_bh"
#define UNLOCK		"_raw_spin_unlock_bh"

/**
 * struct steps - what was counted
 * @all:	steps
 * @most:	the most of them in a section
 */
struct steps {
	unsigned int	all;
	unsigned int	most;
};

/* Can this function be traced here? */
static inline bool traceable(const char *function)
{
	FILE *file = fopen(TRACING "available_filter_functions", "r");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n ")] = 0;
		found = !strcmp(line, function);
	}
	if (file)
		fclose(file);
	return found;
}

/**
 * struct section - what is counted
 * @step:	a function
 * @step_from:	only calls from there count; NULL: from anywhere
 * @end:	the function that ends a section; NULL: the end of a tick does, on each CPU
 * @end_from:	the same for that
 * @all_tasks:	not only this one
 * @softirqs:	only what softirqs do
 * @tasks:	only what they do not
 */
struct section {
	const char	*step;
	const char	*step_from;
	const char	*end;
	const char	*end_from;
	bool		all_tasks;
	bool		softirqs;
	bool		tasks;
};

/* Begins to trace both functions. Returns whether that works. */
static inline bool begin(const struct section *section)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	/* With a counter for a clock, what a task did on two CPUs is in order. */
	if (!text_write(INSTANCE "trace_clock", section->end ? "counter" : "mono"))
		return false;
	/* Each call adds one. */
	if (section->end && !(traceable(section->end) &&
			      text_write(INSTANCE "set_ftrace_filter", section->end)))
		return false;
	return traceable(section->step) &&
	       text_write(INSTANCE "set_ftrace_filter", section->step) &&
	       (section->all_tasks || text_write(INSTANCE "set_ftrace_pid", pid)) &&
	       text_write(INSTANCE "current_tracer", "function") &&
	       text_write(INSTANCE "tracing_on", "1");
}

/**
 * struct line - what the trace says of an entry into a function
 * @pid:	of the task
 * @cpu:	where
 * @softirq:	in a softirq
 * @ns:		when, if the trace's clock tells: to a microsecond
 * @tick:	likewise, in ticks
 * @function:	what was entered
 * @caller:	from where
 */
struct line {
	int		pid;
	int		cpu;
	bool		softirq;
	__u64		ns;
	unsigned long	tick;
	char		function[64];
	char		caller[64];
};

/* NAME-PID [CPU] FLAGS TIME: FUNCTION <-CALLER; the name may be anything. */
static inline bool parse(const char *text, struct line *line)
{
	const char *start = text, *cpu = strstr(text, " [0");
	unsigned long s, us = 0;
	char flags[16];

	if (!cpu || sscanf(cpu, " [%d] %15s", &line->cpu, flags) != 2)
		return false;
	text = strstr(cpu, ": ");
	if (!text || sscanf(text, ": %63s <-%63s", line->function, line->caller) != 2)
		return false;
	line->softirq = strchr(flags, 's');
	while (text > cpu && text[-1] != ' ')
		text--;
	if (sscanf(text, "%lu.%lu", &s, &us) < 1)
		return false;
	line->ns = s * SEC + us * USEC;
	line->tick = line->ns >> TICK_SHIFT;
	while (cpu > start && *cpu == ' ')
		cpu--;
	while (cpu > start && *cpu != '-')
		cpu--;
	return sscanf(cpu, "-%d", &line->pid) == 1;
}

static inline bool is_call(const struct line *line, const char *function, const char *caller)
{
	return !strcmp(line->function, function) && (!caller || !strcmp(line->caller, caller));
}

/**
 * struct counter - steps of a section that may be under way
 * @n:		how many
 * @tick:	in which tick, if that is what ends it
 */
struct counter {
	unsigned int	n;
	unsigned long	tick;
};

/* Counts an entry into a function. */
static inline void count_line(const struct section *section, const struct line *line,
			      struct counter *counter, struct steps *steps)
{
	if (section->end ? is_call(line, section->end, section->end_from) :
			   line->tick != counter->tick)
		counter->n = 0;
	counter->tick = line->tick;
	if (!is_call(line, section->step, section->step_from) ||
	    (line->softirq ? section->tasks : section->softirqs))
		return;
	steps->all++;
	if (++counter->n > steps->most)
		steps->most = counter->n;
}

/* Tells how many steps the trace has. */
static inline struct steps count_steps(const struct section *section)
{
	static struct counter counters[1 << 16];
	struct steps steps = {};
	char text[512];
	struct line line;
	FILE *file = fopen(INSTANCE "trace", "r");

	memset(counters, 0, sizeof(counters));
	while (file && fgets(text, sizeof(text), file)) {
		if (!parse(text, &line))
			continue;
		count_line(section, &line, &counters[(section->end ? line.pid : line.cpu) %
						     ARRAY_SIZE(counters)], &steps);
	}
	if (file)
		fclose(file);
	return steps;
}

/* Forgets the trace: it is emptied when it is opened for that, not when it is written. */
static inline bool forget_trace(void)
{
	const int fd = open(INSTANCE "trace", O_WRONLY | O_TRUNC);

	return fd >= 0 && !close(fd);
}

/* Ends that, and forgets the trace. */
static inline struct steps finish(const struct section *section)
{
	struct steps steps;

	text_write(INSTANCE "tracing_on", "0");
	steps = count_steps(section);
	text_write(INSTANCE "current_tracer", "nop");
	forget_trace();
	printf("# %s: %u, at most %u together\n", section->step, steps.all, steps.most);
	return steps;
}

/* Waits for others to have taken so many. Returns whether they have. */
static inline bool wait_for_steps(const struct section *section, unsigned int n)
{
	__u64 give_up = now_ns() + GUARD_MS * MSEC;

	while (count_steps(section).all < n) {
		if (now_ns() > give_up)
			return false;
		sleep_ns(20 * MSEC);
	}
	return true;
}

/* How often tasks have entered @step that have entered @first before. */
static inline unsigned int steps_after(const char *first, const char *step)
{
	static bool has[1 << 16];
	unsigned int steps = 0;
	char text[512];
	struct line line;
	FILE *file = fopen(INSTANCE "trace", "r");

	while (file && fgets(text, sizeof(text), file)) {
		if (!parse(text, &line))
			continue;
		if (!strcmp(line.function, first))
			has[line.pid % ARRAY_SIZE(has)] = true;
		else if (!strcmp(line.function, step))
			steps += has[line.pid % ARRAY_SIZE(has)];
	}
	if (file)
		fclose(file);
	return steps;
}

FIXTURE(budgets)
{
	int fd;
};

FIXTURE_SETUP(budgets)
{
	self->fd = -1;
	/* Harmless if it is mounted. */
	(void)!mount("tracefs", TRACING, "tracefs", 0, NULL);
	if (!traceable("twheel_rearm_bhoff"))
		SKIP(return, "this kernel cannot trace functions");
	/* And who holds one can be preempted. */
	if (traceable("rt_spin_lock"))
		SKIP(return, "all locks of this kernel are released by the same function");
	rmdir(INSTANCE);
	ASSERT_EQ(0, mkdir(INSTANCE, 0700));
	ASSERT_EQ(0, file_write(INSTANCE "buffer_size_kb", 4096));
	ASSERT_EQ(true, text_write(INSTANCE "tracing_on", "0"));
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(budgets)
{
	if (self->fd >= 0)
		close(self->fd);
	rmdir(INSTANCE);
}

/* Adds @n timers. */
static inline void add_timers(struct __test_metadata *_metadata, int fd, __u64 time,
			      __u32 flags, __u64 *handle, int n)
{
	int i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(fd, time, flags, i, handle ? &handle[i] : NULL));
}

/* What softirqs arm anew. */
static inline struct section armed_anew(void)
{
	return (struct section) {
		.step		= "twheel_share_take",
		.all_tasks	= true,
		.softirqs	= true,
	};
}

/* Some are told of a moment after the end of their tick. */
#define MARGIN		16

#define WORK_EVENT(which) INSTANCE "events/workqueue/workqueue_execute_" which "/enable"

/* Has the trace tell when works begin and end, or not. */
static inline bool trace_works(const char *on)
{
	return text_write(WORK_EVENT("start"), on) && text_write(WORK_EVENT("end"), on) &&
	       text_write(INSTANCE "tracing_on", on);
}

/* How many works with this function were there, and how many at a time? */
static inline struct steps count_works(const char *function)
{
	struct steps steps = {};
	unsigned int n = 0;
	char text[512];
	FILE *file = fopen(INSTANCE "trace", "r");

	while (file && fgets(text, sizeof(text), file)) {
		if (!strstr(text, function))
			continue;
		if (strstr(text, "execute_end: ") && n) {
			n--;
		} else if (strstr(text, "execute_start: ")) {
			steps.all++;
			if (++n > steps.most)
				steps.most = n;
		}
	}
	if (file)
		fclose(file);
	printf("# %s: %u, at most %u at a time\n", function, steps.all, steps.most);
	return steps;
}

/* Sets CLOCK_REALTIME. */
static inline int set_clock(__u64 time)
{
	struct timespec ts = { .tv_sec = time / SEC, .tv_nsec = time % SEC };

	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

/* How many events an instance of epoll has. */
static inline int woken(int epoll)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, GUARD_MS);
}

static inline void close_all(int (*pair)[2], int n)
{
	int i;

	for (i = 0; i < n; i++) {
		close(pair[i][0]);
		close(pair[i][1]);
	}
}

#endif /* _TWHEEL_BUDGET_TEST_H */
