// SPDX-License-Identifier: MIT
/*
 * libtwheel: /dev/twheel for programs
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

unsigned int twheel_version(void)
{
	return LIBTWHEEL_VERSION;
}

/* ---- contexts ---- */

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

int twheel_stats(int fd, struct twheel_context_stats *stats)
{
	return call(fd, TWHEEL_IOC_STATS, stats);
}

int twheel_setup(int fd, struct twheel_setup *setup)
{
	return call(fd, TWHEEL_IOC_SETUP, setup);
}

/* ---- timers ---- */

int twheel_timer_add(int fd, struct twheel_timer_add *add)
{
	return call(fd, TWHEEL_IOC_TIMER_ADD, add);
}

int twheel_timer_rearm(int fd, const struct twheel_timer_rearm *rearm)
{
	/* The kernel only reads it. */
	return call(fd, TWHEEL_IOC_TIMER_REARM, (void *)rearm);
}

static int rearm_limit(int fd, uint64_t handle, uint64_t ns, unsigned int flags,
		       enum twheel_limit limit)
{
	struct twheel_timer_rearm rearm = {
		.handle	= handle,
		.time	= ns,
		.flags	= flags,
		.limit	= limit,
	};

	return twheel_timer_rearm(fd, &rearm);
}

static int cancel(int fd, uint64_t handle, unsigned int flags)
{
	struct twheel_timer_cancel cancel = {
		.handle	= handle,
		.flags	= flags,
	};

	return call(fd, TWHEEL_IOC_TIMER_CANCEL, &cancel);
}

static int query_timer(int fd, uint64_t handle, unsigned int flags,
		       struct twheel_timer_query *query)
{
	memset(query, 0, sizeof(*query));
	query->handle = handle;
	query->flags = flags;
	return call(fd, TWHEEL_IOC_TIMER_QUERY, query);
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
	int ret = twheel_timer_add(fd, &add);

	if (ret >= 0)
		*handle = add.handle;
	return ret;
}

int twheel_rearm(int fd, uint64_t handle, uint64_t ns, unsigned int flags)
{
	return rearm_limit(fd, handle, ns, flags, TWHEEL_LIMIT_DEADLINE);
}

int twheel_active(int fd, uint64_t handle)
{
	return rearm_limit(fd, handle, 0, TWHEEL_ACTIVE, TWHEEL_LIMIT_IDLE);
}

int twheel_cancel(int fd, uint64_t handle)
{
	return cancel(fd, handle, 0);
}

int twheel_query(int fd, uint64_t handle, struct twheel_timer_query *query)
{
	return query_timer(fd, handle, 0, query);
}

int twheel_add_key(int fd, uint64_t key, uint64_t ns, unsigned int flags,
		   uint64_t user_data)
{
	struct twheel_timer_add add = {
		.time		= ns,
		.user_data	= user_data,
		.flags		= flags | TWHEEL_KEYED,
		.clock		= CLOCK_MONOTONIC,
		.key		= key,
	};

	return twheel_timer_add(fd, &add);
}

int twheel_rearm_key(int fd, uint64_t key, uint64_t ns, unsigned int flags)
{
	return rearm_limit(fd, key, ns, flags | TWHEEL_BY_KEY, TWHEEL_LIMIT_DEADLINE);
}

int twheel_active_key(int fd, uint64_t key)
{
	return rearm_limit(fd, key, 0, TWHEEL_ACTIVE | TWHEEL_BY_KEY, TWHEEL_LIMIT_IDLE);
}

int twheel_cancel_key(int fd, uint64_t key)
{
	return cancel(fd, key, TWHEEL_BY_KEY);
}

int twheel_query_key(int fd, uint64_t key, struct twheel_timer_query *query)
{
	return query_timer(fd, key, TWHEEL_BY_KEY, query);
}

/* ---- many timers at once ---- */

int twheel_batch_submit(int fd, const struct twheel_batch *batch, unsigned int flags)
{
	struct twheel_submit submit = {
		.ops		= (uintptr_t)batch->ops,
		.nr_ops		= batch->nr_ops,
		.op_size	= sizeof(*batch->ops),
		.flags		= flags,
	};

	if (flags > UINT16_MAX)
		return -EOPNOTSUPP;
	return call(fd, TWHEEL_IOC_SUBMIT, &submit);
}

int twheel_drain(int fd, struct twheel_timer_query *timers, unsigned int most,
		 uint64_t *cursor)
{
	struct twheel_drain drain = {
		.records	= (uintptr_t)timers,
		.nr_records	= most,
		.record_size	= sizeof(*timers),
		.cursor		= *cursor,
	};
	int ret = call(fd, TWHEEL_IOC_DRAIN, &drain);

	if (ret >= 0)
		*cursor = drain.cursor;
	return ret;
}

/* ---- events ---- */

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

int twheel_wait(int fd, int timeout_ms)
{
	struct pollfd pollfd = {
		.fd	= fd,
		.events	= POLLIN,
	};
	int saved = errno;
	int ret;

	/* poll() would wait for nothing. */
	if (fd < 0)
		return -EBADF;
	ret = poll(&pollfd, 1, timeout_ms);
	if (ret < 0)
		ret = -errno;
	else if (pollfd.revents & POLLNVAL)
		ret = -EBADF;
	errno = saved;
	return ret;
}

static int map(int fd, uint64_t bytes, off_t offset, void **address)
{
	int saved = errno;
	int ret = 0;
	void *p;

	if (bytes > SIZE_MAX)
		return -EINVAL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	if (p == MAP_FAILED)
		ret = -errno;
	else
		*address = p;
	errno = saved;
	return ret;
}

int twheel_ring_map(int fd, uint64_t bytes, struct twheel_ring **ring)
{
	void *address = NULL;
	int ret = map(fd, bytes, TWHEEL_RING_OFFSET, &address);

	if (!ret)
		*ring = address;
	return ret;
}

int twheel_touch_map(int fd, uint64_t bytes, struct twheel_touch **touch)
{
	void *address = NULL;
	int ret = map(fd, bytes, TWHEEL_TOUCH_OFFSET, &address);

	if (!ret)
		*touch = address;
	return ret;
}
