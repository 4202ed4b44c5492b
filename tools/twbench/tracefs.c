// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: a trace instance of the kernel, which is nobody else's, and is removed on exit
 *
 * If the process is killed, its instance stays behind, and the next one removes it.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench-common.h"
#include "tracefs.h"

#define TRACING		"/sys/kernel/tracing"
#define INSTANCES	TRACING "/instances"
#define PREFIX		"twbench-"

/* For each CPU; it is read when this is half full. */
#define BUFFER_KB	"16384"
#define READ_AT		"50"

/* The path of the instance, empty if there is none; and its trace_pipe, or -1. */
static char instance[64];
static int trace_pipe = -1;

static volatile sig_atomic_t ended;

static void remove_instance(void)
{
	if (trace_pipe >= 0)
		close(trace_pipe);
	if (*instance)
		rmdir(instance);
}

/* Removes the instances of processes that were killed. */
static void remove_stale_instances(void)
{
	DIR *dir = opendir(INSTANCES);
	struct dirent *entry;
	char path[PATH_MAX];
	pid_t pid;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			continue;
		pid = atoi(entry->d_name + strlen(PREFIX));
		if (pid <= 0 || (pid != getpid() && (!kill(pid, 0) || errno != ESRCH)))
			continue;
		snprintf(path, sizeof(path), INSTANCES "/%s", entry->d_name);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

static bool write_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", instance, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* The files of the kernel take it as a whole, or not at all. */
	done = write(fd, text, strlen(text)) >= 0;
	close(fd);
	return done;
}

static void need_file(const char *name, const char *text)
{
	if (!write_file(name, text))
		err(EXIT_FAILED, "%s/%s", instance, name);
}

static void handle_signal(int signal)
{
	(void)signal;
	ended = 1;
}

/* Not for those that are ignored, as under nohup. */
static void handle_signals(void)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
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
	char path[PATH_MAX];

	if (access(INSTANCES, F_OK))
		/* Ignore errors: mkdir() below reports whether tracefs is there. */
		(void)!mount("tracefs", TRACING, "tracefs", 0, NULL);
	remove_stale_instances();
	snprintf(instance, sizeof(instance), INSTANCES "/" PREFIX "%d", getpid());
	if (mkdir(instance, 0700)) {
		*instance = '\0';
		if (errno == ENOENT)
			errx(EXIT_FAILED, "%s: no tracefs; this kernel has no tracing", TRACING);
		err(EXIT_FAILED, "%s: cannot trace; run this as root", INSTANCES);
	}
	atexit(remove_instance);
	handle_signals();
	need_file("tracing_on", "0");
	need_file("trace_clock", "mono");
	need_file("buffer_size_kb", BUFFER_KB);
	/* Older kernels have none of this, and wake up more often. */
	write_file("buffer_percent", READ_AT);
	snprintf(path, sizeof(path), "%s/trace_pipe", instance);
	trace_pipe = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (trace_pipe < 0)
		err(EXIT_FAILED, "%s", path);
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
	if (!write_file(name, filter))
		return false;
	snprintf(name, sizeof(name), "events/%s/enable", event);
	return write_file(name, "1");
}

/**
 * tracefs_start - begin to record
 */
void tracefs_start(void)
{
	need_file("tracing_on", "1");
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
	struct pollfd pollfd = { .fd = trace_pipe, .events = POLLIN };
	const double left = end - now();

	if (left <= 0)
		ended = 1;
	else if (poll(&pollfd, 1, left * 1e3 + 1) < 0 && errno != EINTR)
		err(EXIT_FAILED, "poll");
}

/* If a line says that events were lost, returns how many. */
static uint64_t count_lost(const char *line)
{
	const char *lost = strstr(line, " [LOST ");
	uint64_t nr;

	if (strncmp(line, "CPU:", strlen("CPU:")) || !lost)
		return 0;
	nr = strtoull(lost + strlen(" [LOST "), NULL, 10);
	/* The kernel does not always know. */
	return nr ? nr : 1;
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
			write_file("tracing_on", "0");
		while ((n = read(trace_pipe, buffer + length, sizeof(buffer) - 1 - length)) > 0) {
			length += n;
			take_lines(buffer, &length, &lost, take);
			/* No line of the trace is that long. */
			if (length == sizeof(buffer) - 1)
				length = 0;
			if (!ended && now() >= end)
				break;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			err(EXIT_FAILED, "%s/trace_pipe", instance);
		if (ended && n <= 0)
			return lost;
	}
}
