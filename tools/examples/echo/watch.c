// SPDX-License-Identifier: MIT
/*
 * echo: the kernel watches the connections
 *
 * Each is registered once. The kernel sees by itself whether data comes and goes, and resets
 * what is idle: the server's next read() says ETIMEDOUT. There is nothing to do for a
 * message, nor when a connection is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <libtwheel.h>

#include "echo.h"

static int context;

static void begin(void)
{
	context = twheel_open(O_NONBLOCK);
	check(context, "/dev/twheel");
	poll_timeouts(context, 0);
}

static void add(int fd)
{
	uint64_t handle;
	int ret = twheel_watch(context, fd, limit, TWHEEL_WATCH_ABORT, fd, &handle);

	/* The connection may have ended already, which read() will tell. */
	if (ret != -ENOTCONN)
		check(ret, "twheel_watch");
}

/* They tell what read() tells as well. */
static void event(int number)
{
	struct twheel_event events[64];

	(void)number;
	while (twheel_read(context, events, 64) > 0)
		;
}

const struct timeouts timeouts_watch = {
	.name	= "watch",
	.begin	= begin,
	.add	= add,
	.event	= event,
};
