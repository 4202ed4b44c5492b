// SPDX-License-Identifier: MIT
/*
 * echo: a look at all connections each second
 *
 * A message costs a store, but a connection is late by up to a second.
 */
#include <stddef.h>

#include "echo.h"

#define SECOND	1000000000ULL

/* When a connection was active last; 0: there is none. */
static uint64_t *last;
static uint64_t clock, next;
static int end;

static void begin(void)
{
	last = allocate(max_files, sizeof(*last));
	next = now() + SECOND;
}

static void active(int fd)
{
	last[fd] = clock;
}

static void add(int fd)
{
	if (fd >= end)
		end = fd + 1;
	active(fd);
}

static void drop(int fd)
{
	last[fd] = 0;
}

static int wait(void)
{
	return milliseconds_until(next);
}

static void woken(void)
{
	clock = now();
}

static void expire(void)
{
	int fd;

	if (clock < next)
		return;
	next = clock + SECOND;
	for (fd = 0; fd < end; fd++)
		if (last[fd] && clock - last[fd] >= limit)
			timed_out(fd);
}

const struct timeouts timeouts_scan = {
	.name	= "scan",
	.begin	= begin,
	.add	= add,
	.active	= active,
	.remove	= drop,
	.wait	= wait,
	.woken	= woken,
	.expire	= expire,
};
