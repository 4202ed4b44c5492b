// SPDX-License-Identifier: MIT
/*
 * echo: the timers of /dev/twheel, told of activity by a store into mapped memory
 *
 * It serves for any kind of activity, and for any file.
 */
#include <fcntl.h>
#include <stddef.h>
#include <libtwheel.h>

#include "echo.h"

static int context;
static struct twheel_touch *touch;
static uint64_t *handles;

static void begin(void)
{
	struct twheel_setup setup = { .touch_words = max_files };

	context = twheel_open(O_NONBLOCK);
	check(context, "/dev/twheel");
	check(twheel_setup(context, &setup), "twheel_setup");
	check(twheel_touch_map(context, setup.touch_bytes, &touch), "twheel_touch_map");
	handles = allocate(max_files, sizeof(*handles));
	poll_timeouts(context, 0);
}

static void add(int fd)
{
	struct twheel_timer_add timer = {
		.user_data	= fd,
		.flags		= TWHEEL_TOUCHED,
		.idle		= limit,
		.touch		= fd,
	};

	check(twheel_timer_add(context, &timer), "twheel_timer_add");
	handles[fd] = timer.handle;
}

static void active(int fd)
{
	twheel_touch(touch, fd);
}

/* Its event may have been delivered; then there is no timer. */
static void drop(int fd)
{
	twheel_cancel(context, handles[fd]);
	handles[fd] = 0;
}

/* An event may be of a connection that has gone, whose number another one has. */
static void event(int number)
{
	struct twheel_event events[64];
	int i, n;

	(void)number;
	while ((n = twheel_read(context, events, 64)) > 0)
		for (i = 0; i < n; i++)
			if (handles[events[i].user_data] == events[i].handle)
				timed_out(events[i].user_data);
}

const struct timeouts timeouts_touch = {
	.name	= "touch",
	.begin	= begin,
	.add	= add,
	.active	= active,
	.remove	= drop,
	.event	= event,
};
