// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench record: what the kernel traces, for a time or until a signal comes
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench-common.h"
#include "instance.h"
#include "tracefs.h"

#define PREFIX		"twbench-"

/* For each CPU; it is read when this is half full. */
#define BUFFER_KB	"16384"
#define READ_AT		"50"

/* The trace_pipe. */
static int trace;

static volatile sig_atomic_t ended;

static void handle_signal(int signal)
{
	(void)signal;
	ended = 1;
}

/**
 * tracefs_end_on_signals - from here on, signals that would end the process end the recording
 *
 * Those that are ignored, as under nohup, still are.
 */
void tracefs_end_on_signals(void)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = handle_signal };
	struct sigaction before;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ending); i++)
		if (!sigaction(ending[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
}

/**
 * tracefs_open - create an instance that records nothing yet, or exit
 *
 * Its times are those of CLOCK_MONOTONIC.
 */
void tracefs_open(void)
{
	instance_create(PREFIX);
	instance_need("tracing_on", "0");
	instance_need("trace_clock", "mono");
	instance_need("buffer_size_kb", BUFFER_KB);
	/* Older kernels have none of this, and wake up more often. */
	instance_write("buffer_percent", READ_AT);
	trace = instance_open_pipe();
}

/**
 * tracefs_enable - have a tracepoint recorded, but not what this process does itself
 * @event:	"SYSTEM/NAME"
 *
 * Return: false if there is no such tracepoint.
 */
bool tracefs_enable(const char *event)
{
	char name[128], filter[64];

	snprintf(filter, sizeof(filter), "common_pid != %d", getpid());
	snprintf(name, sizeof(name), "events/%s/filter", event);
	if (!instance_write(name, filter))
		return false;
	snprintf(name, sizeof(name), "events/%s/enable", event);
	return instance_write(name, "1");
}

/**
 * tracefs_start - begin to record
 */
void tracefs_start(void)
{
	instance_need("tracing_on", "1");
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Waits for more of the trace, for a signal, or until a time. */
static void wait_until(double end)
{
	struct pollfd pollfd = { .fd = trace, .events = POLLIN };
	const double left = end - now();

	if (left <= 0)
		ended = 1;
	else if (poll(&pollfd, 1, left * 1e3 + 1) < 0 && errno != EINTR)
		err(EXIT_FAILED, "poll");
}

/*
 * If a line says that events were lost, returns how many. A line may also begin with the name of a
 * process, which has up to 15 characters of its choice.
 */
static uint64_t count_lost(const char *line)
{
	unsigned long long nr;
	unsigned int cpu;
	int end = 0;

	if (sscanf(line, "CPU:%u [LOST %llu EVENTS]%n", &cpu, &nr, &end) == 2 && end && !line[end])
		return nr;
	/* The kernel does not always know. */
	if (sscanf(line, "CPU:%u [LOST EVENTS]%n", &cpu, &end) != 1)
		return 0;
	return end && !line[end];
}

/* Passes on the lines of a buffer. What is left of it is moved to its beginning. */
static void take_lines(char *buffer, size_t *length, uint64_t *lost, void (*take)(char *line))
{
	char *line = buffer, *end;

	buffer[*length] = '\0';
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		*lost += count_lost(line);
		take(line);
	}
	*length = strlen(line);
	memmove(buffer, line, *length + 1);
}

/**
 * tracefs_follow - read the trace, until a time has passed or a signal comes
 * @seconds:	the time
 * @take:	called for each line
 *
 * Return: the number of events that were lost.
 */
uint64_t tracefs_follow(double seconds, void (*take)(char *line))
{
	const double end = now() + seconds;
	static char buffer[65536];
	size_t length = 0;
	uint64_t lost = 0;
	ssize_t n;

	for (;;) {
		if (!ended)
			wait_until(end);
		if (ended)
			instance_write("tracing_on", "0");
		while ((n = instance_read_pipe(buffer + length, sizeof(buffer) - 1 - length))) {
			length += n;
			take_lines(buffer, &length, &lost, take);
			/* No line of the trace is that long. */
			if (length == sizeof(buffer) - 1)
				length = 0;
			if (!ended && now() >= end)
				break;
		}
		if (ended && !n)
			return lost;
	}
}
