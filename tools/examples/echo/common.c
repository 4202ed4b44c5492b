// SPDX-License-Identifier: MIT
/*
 * echo: shared by the server and the load generator
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "echo.h"

/* The default of fs.nr_open. */
#define MAX_FILES	(1U << 20)

void check(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s: %s\n", program, what, strerror(-ret));
		exit(1);
	}
}

void check_errno(int ret, const char *what)
{
	check(ret < 0 ? -errno : ret, what);
}

/* The memory is zeroed, and not populated before it is used. */
void *allocate(uint64_t nr, uint64_t size)
{
	void *memory = calloc(nr, size);

	check(memory ? 0 : -ENOMEM, "memory");
	return memory;
}

uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Returns the milliseconds until a time, for epoll_wait(): rounded up, so never early. */
int milliseconds_until(uint64_t time)
{
	uint64_t begin = now();

	return time <= begin ? 0 : (time - begin + 999999) / 1000000;
}

/* Returns how many files may be open; root gets as many as any user can. */
unsigned int raise_file_limit(void)
{
	struct rlimit files = { MAX_FILES, MAX_FILES };

	if (!setrlimit(RLIMIT_NOFILE, &files))
		return MAX_FILES;
	check_errno(getrlimit(RLIMIT_NOFILE, &files), "getrlimit");
	if (files.rlim_max > MAX_FILES)
		files.rlim_max = MAX_FILES;
	files.rlim_cur = files.rlim_max;
	check_errno(setrlimit(RLIMIT_NOFILE, &files), "setrlimit");
	return files.rlim_max;
}

static void reject_argument(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s '%s' is out of range or no number\n", program, what, text);
	exit(2);
}

/* Returns a number of seconds, which may have a fraction, in nanoseconds. */
uint64_t parse_seconds(const char *what, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0.001 && value <= 1e6))
		reject_argument(what, text);
	return value * 1e9;
}

uint64_t parse_number(const char *what, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (end == text || *end || *text == '-' || value < min || value > max)
		reject_argument(what, text);
	return value;
}
