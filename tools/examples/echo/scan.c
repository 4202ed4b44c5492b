// SPDX-License-Identifier: MIT
/*
 * echo: a scan of all connections every second
 *
 * A message costs one store, but a timeout is up to a second late.
 */
#include <stddef.h>

#include "echo.h"

#define SECOND	1000000000ULL

/* When each connection was last active; 0: no such connection. */
static uint64_t *last;
static uint64_t clock, next;
static int end;

static void scan_begin(void)
{
	last = allocate(max_files, sizeof(*last));
	next = now() + SECOND;
}

static void scan_active(int fd)
{
	last[fd] = clock;
}

static void scan_add(int fd)
{
	if (fd >= end)
		end = fd + 1;
	scan_active(fd);
}

static void scan_remove(int fd)
{
	last[fd] = 0;
}

static int scan_wait(void)
{
	return milliseconds_until(next);
}

static void scan_woken(void)
{
	clock = now();
}

static void scan_expire(void)
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
	.begin	= scan_begin,
	.add	= scan_add,
	.active	= scan_active,
	.remove	= scan_remove,
	.wait	= scan_wait,
	.woken	= scan_woken,
	.expire	= scan_expire,
};
