// SPDX-License-Identifier: MIT
/*
 * echo: the kernel watches the connections
 *
 * Each is registered once. The kernel itself sees whether data is received or sent, and resets an
 * idle connection: the server's next read() fails with ETIMEDOUT. There is nothing to do per
 * message, nor when a connection is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <libtwheel.h>

#include "echo.h"

static int context;

static void watch_begin(void)
{
	context = twheel_open(O_NONBLOCK);
	check(context, "/dev/twheel");
	poll_timeouts(context, 0);
}

static void watch_add(int fd)
{
	uint64_t handle;
	int ret = twheel_watch(context, fd, limit, TWHEEL_WATCH_ABORT, fd, &handle);

	/* The connection may have ended already, which read() will report. */
	if (ret != -ENOTCONN)
		check(ret, "twheel_watch");
}

/* They repeat what read() reports. */
static void watch_event(int number)
{
	struct twheel_event events[64];

	(void)number;
	while (twheel_read(context, events, 64) > 0)
		;
}

const struct timeouts timeouts_watch = {
	.name	= "watch",
	.begin	= watch_begin,
	.add	= watch_add,
	.event	= watch_event,
};
