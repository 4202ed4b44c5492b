// SPDX-License-Identifier: GPL-2.0-only
/*
 * A trace instance of the kernel, which is nobody else's, and is removed on exit
 *
 * It does not disturb anyone else's tracing. If the process is killed, its instance stays behind,
 * and the next process with the same prefix removes it. A process has one at most.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instance.h"

#define TRACING		"/sys/kernel/tracing"
#define INSTANCES	TRACING "/instances"

/* The path of the instance, empty if there is none; and its trace_pipe, or -1. */
static char instance[64];
static int pipe_fd = -1;

/**
 * instance_remove - remove the instance, unless somebody else is reading it
 *
 * Calls only async-signal-safe functions.
 */
void instance_remove(void)
{
	if (pipe_fd >= 0)
		close(pipe_fd);
	if (*instance)
		rmdir(instance);
}

static bool is_running(pid_t pid)
{
	/* One with our own PID is stale, too: it belonged to an earlier process. */
	return pid != getpid() && (!kill(pid, 0) || errno != ESRCH);
}

/* Removes the instances of processes that were killed. */
static void remove_stale(const char *prefix)
{
	const size_t length = strlen(prefix);
	DIR *dir = opendir(INSTANCES);
	struct dirent *entry;
	char path[PATH_MAX];
	pid_t pid;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, prefix, length))
			continue;
		pid = atoi(entry->d_name + length);
		if (pid <= 0 || is_running(pid))
			continue;
		snprintf(path, sizeof(path), INSTANCES "/%s", entry->d_name);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

/**
 * instance_create - create the instance of this process, or exit
 * @prefix:	its name is this and the process's PID
 */
void instance_create(const char *prefix)
{
	if (access(INSTANCES, F_OK))
		/* Ignore errors: mkdir() below reports whether tracefs is there. */
		(void)!mount("tracefs", TRACING, "tracefs", 0, NULL);
	remove_stale(prefix);
	snprintf(instance, sizeof(instance), INSTANCES "/%s%d", prefix, getpid());
	if (mkdir(instance, 0700)) {
		*instance = '\0';
		if (errno == ENOENT)
			errx(EXIT_FAILURE, "%s: no tracefs; this kernel has no tracing", TRACING);
		err(EXIT_FAILURE, "%s: cannot trace; run this as root", INSTANCES);
	}
	atexit(instance_remove);
}

/**
 * instance_write - write to a file of the instance
 * @name:	the file
 * @text:	the kernel takes all of it, or nothing
 *
 * Return: false with errno if there is no such file, or the kernel does not take it.
 */
bool instance_write(const char *name, const char *text)
{
	char path[PATH_MAX];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", instance, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) >= 0;
	close(fd);
	return done;
}

/**
 * instance_need - write to a file of the instance, or exit
 * @name:	the file
 * @text:	what to write
 */
void instance_need(const char *name, const char *text)
{
	if (!instance_write(name, text))
		err(EXIT_FAILURE, "%s/%s", instance, name);
}

/**
 * instance_open_pipe - open the trace of the instance, which never blocks a reader, or exit
 *
 * Return: a file descriptor to poll.
 */
int instance_open_pipe(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/trace_pipe", instance);
	pipe_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (pipe_fd < 0)
		err(EXIT_FAILURE, "%s", path);
	return pipe_fd;
}

/**
 * instance_read_pipe - read what there is of the trace, or exit
 * @buffer:	where it goes
 * @size:	the size of the buffer in bytes
 *
 * Return: the number of bytes, 0 if there are none now.
 */
ssize_t instance_read_pipe(char *buffer, size_t size)
{
	ssize_t n = read(pipe_fd, buffer, size);

	if (n >= 0)
		return n;
	if (errno != EAGAIN && errno != EINTR)
		err(EXIT_FAILURE, "%s/trace_pipe", instance);
	return 0;
}
