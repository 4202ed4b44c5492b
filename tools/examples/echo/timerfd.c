// SPDX-License-Identifier: MIT
/*
 * echo: a timerfd for each connection, re-armed by each message
 */
#include <errno.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "echo.h"

static int *timers;

static void timerfd_begin(void)
{
	timers = allocate(max_files, sizeof(*timers));
}

static void timerfd_active(int fd)
{
	struct itimerspec time = {
		.it_value = { .tv_sec = limit / 1000000000, .tv_nsec = limit % 1000000000 },
	};

	check_errno(timerfd_settime(timers[fd], 0, &time, NULL), "timerfd_settime");
}

static void timerfd_add(int fd)
{
	timers[fd] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	check_errno(timers[fd], "timerfd_create");
	poll_timeouts(timers[fd], fd);
	timerfd_active(fd);
}

static void timerfd_remove(int fd)
{
	close(timers[fd]);
	timers[fd] = 0;
}

/* If a message has arrived meanwhile, there is nothing to read; or it is another connection's. */
static void timerfd_event(int fd)
{
	uint64_t expirations;

	if (timers[fd] && read(timers[fd], &expirations, sizeof(expirations)) > 0)
		timed_out(fd);
}

const struct timeouts timeouts_timerfd = {
	.name	= "timerfd",
	.begin	= timerfd_begin,
	.add	= timerfd_add,
	.active	= timerfd_active,
	.remove	= timerfd_remove,
	.event	= timerfd_event,
};
