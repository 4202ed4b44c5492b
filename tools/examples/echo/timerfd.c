// SPDX-License-Identifier: MIT
/*
 * echo: a timerfd for each connection, set anew by each message
 */
#include <errno.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "echo.h"

static int *timers;

static void begin(void)
{
	timers = allocate(max_files, sizeof(*timers));
}

static void active(int fd)
{
	struct itimerspec time = {
		.it_value = { .tv_sec = limit / 1000000000, .tv_nsec = limit % 1000000000 },
	};

	check_errno(timerfd_settime(timers[fd], 0, &time, NULL), "timerfd_settime");
}

static void add(int fd)
{
	timers[fd] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	check_errno(timers[fd], "timerfd_create");
	poll_timeouts(timers[fd], fd);
	active(fd);
}

static void drop(int fd)
{
	close(timers[fd]);
	timers[fd] = 0;
}

/* If a message has come meanwhile, there is nothing to be read; or it is another's. */
static void event(int fd)
{
	uint64_t expirations;

	if (timers[fd] && read(timers[fd], &expirations, sizeof(expirations)) > 0)
		timed_out(fd);
}

const struct timeouts timeouts_timerfd = {
	.name	= "timerfd",
	.begin	= begin,
	.add	= add,
	.active	= active,
	.remove	= drop,
	.event	= event,
};
