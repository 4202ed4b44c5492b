// SPDX-License-Identifier: MIT
/*
 * libtwheel: /dev/twheel for programs
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libtwheel.h"

/* As the kernel would return it, with the caller's errno as it was. */
static int call(int fd, unsigned long cmd, void *arg)
{
	int saved = errno;
	int ret = ioctl(fd, cmd, arg);

	if (ret < 0)
		ret = -errno;
	errno = saved;
	return ret;
}

int twheel_open(int flags)
{
	int saved = errno;
	int fd;

	if (flags & ~O_NONBLOCK)
		return -EINVAL;
	fd = open("/dev/twheel", O_RDWR | O_CLOEXEC | flags);
	if (fd < 0)
		fd = -errno;
	errno = saved;
	return fd;
}

int twheel_info(int fd, struct twheel_info *info)
{
	return call(fd, TWHEEL_IOC_INFO, info);
}

int twheel_add(int fd, uint64_t ns, unsigned int flags, uint64_t user_data,
	       uint64_t *handle)
{
	struct twheel_timer_add add = {
		.time		= ns,
		.user_data	= user_data,
		.flags		= flags,
		.clock		= CLOCK_MONOTONIC,
	};
	int ret = call(fd, TWHEEL_IOC_TIMER_ADD, &add);

	if (!ret)
		*handle = add.handle;
	return ret;
}

int twheel_cancel(int fd, uint64_t handle)
{
	struct twheel_timer_cancel cancel = { .handle = handle };

	return call(fd, TWHEEL_IOC_TIMER_CANCEL, &cancel);
}

int twheel_rearm(int fd, uint64_t handle, uint64_t ns, unsigned int flags)
{
	struct twheel_timer_rearm rearm = {
		.handle	= handle,
		.time	= ns,
		.flags	= flags,
	};

	return call(fd, TWHEEL_IOC_TIMER_REARM, &rearm);
}

int twheel_query(int fd, uint64_t handle, struct twheel_timer_query *query)
{
	memset(query, 0, sizeof(*query));
	query->handle = handle;
	return call(fd, TWHEEL_IOC_TIMER_QUERY, query);
}

int twheel_read(int fd, struct twheel_event *events, unsigned int most)
{
	const unsigned int limit = INT_MAX / sizeof(*events);
	int saved = errno;
	ssize_t ret;

	ret = read(fd, events, (most < limit ? most : limit) * sizeof(*events));
	ret = ret < 0 ? -errno : ret / (ssize_t)sizeof(*events);
	errno = saved;
	return ret;
}
