// SPDX-License-Identifier: MIT
/*
 * echo: timers of /dev/twheel, with activity reported by a store to mapped memory
 *
 * This works for any kind of activity and any file.
 */
#include <fcntl.h>
#include <stddef.h>
#include <libtwheel.h>

#include "echo.h"

static int context;
static struct twheel_touch *touch;
static uint64_t *handles;

static void touch_begin(void)
{
	struct twheel_setup setup = { .touch_words = max_files };

	context = twheel_open(O_NONBLOCK);
	check(context, "/dev/twheel");
	check(twheel_setup(context, &setup), "twheel_setup");
	check(twheel_touch_map(context, setup.touch_bytes, &touch), "twheel_touch_map");
	handles = allocate(max_files, sizeof(*handles));
	poll_timeouts(context, 0);
}

static void touch_add(int fd)
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

static void touch_active(int fd)
{
	twheel_touch(touch, fd);
}

/* If its event has been delivered, there is no timer left, and this fails. */
static void touch_remove(int fd)
{
	twheel_cancel(context, handles[fd]);
	handles[fd] = 0;
}

/* An event may be from a closed connection whose number has been reused. */
static void touch_event(int number)
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
	.begin	= touch_begin,
	.add	= touch_add,
	.active	= touch_active,
	.remove	= touch_remove,
	.event	= touch_event,
};
