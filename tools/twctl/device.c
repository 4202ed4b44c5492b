// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: the device
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "twctl.h"

static const char *const clock_names[] = {
	[CLOCK_REALTIME]	= "realtime",
	[CLOCK_MONOTONIC]	= "monotonic",
	[CLOCK_BOOTTIME]	= "boottime",
};

/**
 * clock_name - the name of a clock
 * @clock:	a CLOCK_*
 */
const char *clock_name(uint32_t clock)
{
	if (clock < ARRAY_SIZE(clock_names) && clock_names[clock])
		return clock_names[clock];
	return "?";
}

/**
 * clock_find - find a clock that the device supports
 * @name:	its name
 * @clock:	filled in: a CLOCK_*
 *
 * Return: false if there is none of that name.
 */
bool clock_find(const char *name, uint32_t *clock)
{
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(clock_names); i++) {
		if (clock_names[i] && !strcmp(clock_names[i], name)) {
			*clock = i;
			return true;
		}
	}
	return false;
}

static void explain_error(int error, struct message *why)
{
	size_t size = sizeof(why->text);

	if (!module_is_loaded())
		module_not_loaded(why);
	else if (error == ENOENT)
		snprintf(why->text, size,
			 "there is no %s, though the module is loaded; see that devtmpfs, or a container's own /dev, has it",
			 DEVICE);
	else if (error == EACCES || error == EPERM)
		snprintf(why->text, size, "%s: %s; run this as root, or join its group",
			 DEVICE, strerror(error));
	else
		snprintf(why->text, size, "%s: %s", DEVICE, strerror(error));
}

/**
 * device_try - open the device, which creates a context
 * @why:	filled in if that fails
 *
 * Return: the file descriptor, or -1.
 */
int device_try(struct message *why)
{
	struct twheel_info info = { 0 };
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		explain_error(errno, why);
	} else if (ioctl(fd, TWHEEL_IOC_INFO, &info) && errno == ENOTTY) {
		snprintf(why->text, sizeof(why->text),
			 "%s is not the module's device; remove it, and load the module again",
			 DEVICE);
		close(fd);
		fd = -1;
	}
	return fd;
}

/**
 * device_open - open the device, which creates a context, or exit
 *
 * Return: the file descriptor.
 */
int device_open(void)
{
	struct message why;
	int fd = device_try(&why);

	if (fd < 0)
		errx(EXIT_FAILED, "%s", why.text);
	return fd;
}

/**
 * device_info - query the properties of the module and of the context, or exit
 * @fd:		the context
 * @info:	filled in
 */
void device_info(int fd, struct twheel_info *info)
{
	if (ioctl(fd, TWHEEL_IOC_INFO, info))
		err(EXIT_FAILED, "%s: cannot ask what it has", DEVICE);
}

static const char *explain_add_error(int error)
{
	if (error == EOPNOTSUPP || error == E2BIG)
		return "this module cannot do that; use one of twctl's own version";
	if (error == ENOSPC)
		return "too many timers; raise max_timers or max_timers_total in "
			MODULE "/parameters";
	return strerror(error);
}

/**
 * device_add - add a timer, or exit
 * @fd:		the context
 * @add:	the timer
 */
void device_add(int fd, struct twheel_timer_add *add)
{
	if (ioctl(fd, TWHEEL_IOC_TIMER_ADD, add) < 0)
		errx(EXIT_FAILED, "%s: cannot add a timer: %s", DEVICE, explain_add_error(errno));
}

/**
 * device_read - wait for an event and read it, or exit
 * @fd:		the context
 * @event:	filled in
 */
void device_read(int fd, struct twheel_event *event)
{
	ssize_t length = read(fd, event, sizeof(*event));

	if (length < 0)
		err(EXIT_FAILED, "%s: cannot read the event", DEVICE);
	if (length != sizeof(*event))
		errx(EXIT_FAILED, "%s: an event of %zd bytes; use the twctl of this module",
		     DEVICE, length);
}
