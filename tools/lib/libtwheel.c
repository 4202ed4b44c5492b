// SPDX-License-Identifier: MIT
/*
 * libtwheel: /dev/twheel for programs
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libtwheel.h"

/* Returns a negative errno, as the kernel does, and leaves errno alone. */
static int call_ioctl(int fd, unsigned long cmd, void *arg)
{
	int saved = errno;
	int ret = ioctl(fd, cmd, arg);

	if (ret < 0)
		ret = -errno;
	errno = saved;
	return ret;
}

/*
 * The ioctl number contains the size of the program's structure, not of the library's, which may
 * be of another version.
 */
static int ioctl_sized(int fd, unsigned long cmd, void *arg, size_t size)
{
	if (size > _IOC_SIZEMASK)
		return -EINVAL;
	cmd &= ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT);
	return call_ioctl(fd, cmd | size << _IOC_SIZESHIFT, arg);
}

/*
 * The same for a structure that the kernel only writes. A kernel that knows a shorter one requires
 * zeros in the rest, and leaves them there.
 */
static int get_sized(int fd, unsigned long cmd, void *arg, size_t size)
{
	int ret = ioctl_sized(fd, cmd, arg, size);

	if (ret != -E2BIG)
		return ret;
	memset(arg, 0, size);
	return ioctl_sized(fd, cmd, arg, size);
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

int twheel_info_sized(int fd, struct twheel_info *info, size_t size)
{
	return get_sized(fd, TWHEEL_IOC_INFO, info, size);
}

int twheel_stats_sized(int fd, struct twheel_context_stats *stats, size_t size)
{
	return get_sized(fd, TWHEEL_IOC_STATS, stats, size);
}

int twheel_setup_sized(int fd, struct twheel_setup *setup, size_t size)
{
	return ioctl_sized(fd, TWHEEL_IOC_SETUP, setup, size);
}

/* ---- timers ---- */

int twheel_timer_add_sized(int fd, struct twheel_timer_add *add, size_t size)
{
	return ioctl_sized(fd, TWHEEL_IOC_TIMER_ADD, add, size);
}

int twheel_timer_rearm_sized(int fd, const struct twheel_timer_rearm *rearm, size_t size)
{
	/* The kernel only reads it. */
	return ioctl_sized(fd, TWHEEL_IOC_TIMER_REARM, (void *)rearm, size);
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

static int cancel_timer(int fd, uint64_t handle, unsigned int flags)
{
	struct twheel_timer_cancel cancel = {
		.handle	= handle,
		.flags	= flags,
	};

	return call_ioctl(fd, TWHEEL_IOC_TIMER_CANCEL, &cancel);
}

int twheel_query_sized(int fd, uint64_t name, unsigned int flags,
		       struct twheel_timer_query *query, size_t size)
{
	if (size < TWHEEL_RECORD_SIZE_MIN || size > _IOC_SIZEMASK)
		return -EINVAL;
	memset(query, 0, size);
	query->handle = name;
	query->flags = flags;
	return ioctl_sized(fd, TWHEEL_IOC_TIMER_QUERY, query, size);
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
	int ret;

	/* There is no argument for a key. */
	if (flags & TWHEEL_KEYED)
		return -EINVAL;
	ret = twheel_timer_add(fd, &add);
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
	return cancel_timer(fd, handle, 0);
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
	return cancel_timer(fd, key, TWHEEL_BY_KEY);
}

int twheel_watch(int fd, int sock, uint64_t idle, unsigned int flags, uint64_t user_data,
		 uint64_t *handle)
{
	struct twheel_timer_add add = {
		.time		= TWHEEL_TIME_NONE,
		.user_data	= user_data,
		.flags		= flags | TWHEEL_WATCHED,
		.clock		= CLOCK_MONOTONIC,
		.idle		= idle,
		.sock_fd	= sock,
	};
	int ret;

	/* There is no argument for a key or a time. */
	if (flags & (TWHEEL_KEYED | TWHEEL_TIME_ABS))
		return -EINVAL;
	ret = twheel_timer_add(fd, &add);
	if (ret >= 0)
		*handle = add.handle;
	return ret;
}

/* ---- many timers at once ---- */

int twheel_submit_sized(int fd, struct twheel_op *ops, unsigned int nr_ops, unsigned int flags,
			size_t size)
{
	struct twheel_submit submit = {
		.ops		= (uintptr_t)ops,
		.nr_ops		= nr_ops,
		.op_size	= (uint16_t)size,
		.flags		= (uint16_t)flags,
	};

	if (flags > UINT16_MAX)
		return -EOPNOTSUPP;
	if (size > UINT16_MAX)
		return -EINVAL;
	return call_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit);
}

int twheel_drain_sized(int fd, struct twheel_timer_query *timers, unsigned int max,
		       uint64_t *cursor, size_t size)
{
	struct twheel_drain drain = {
		.records	= (uintptr_t)timers,
		.nr_records	= max,
		.record_size	= (uint16_t)size,
		.cursor		= *cursor,
	};
	int ret;

	if (size > UINT16_MAX)
		return -EINVAL;
	ret = call_ioctl(fd, TWHEEL_IOC_DRAIN, &drain);
	if (ret >= 0)
		*cursor = drain.cursor;
	return ret;
}

/* ---- events ---- */

/* The size of an event in read(), in every version. */
#define EVENT_SIZE	(offsetof(struct twheel_event, reason) + sizeof(uint32_t))

/* Moves contiguous events to where a program that knows longer ones expects them. */
static void spread_events(char *events, size_t nr, size_t size)
{
	while (nr--) {
		memmove(events + nr * size, events + nr * EVENT_SIZE, EVENT_SIZE);
		memset(events + nr * size + EVENT_SIZE, 0, size - EVENT_SIZE);
	}
}

int twheel_read_sized(int fd, struct twheel_event *events, unsigned int max, size_t size)
{
	const unsigned int limit = INT_MAX / EVENT_SIZE;
	int saved = errno;
	ssize_t ret;

	if (size < EVENT_SIZE || size > _IOC_SIZEMASK)
		return -EINVAL;
	ret = read(fd, events, (max < limit ? max : limit) * EVENT_SIZE);
	ret = ret < 0 ? -errno : ret / (ssize_t)EVENT_SIZE;
	if (ret > 0 && size > EVENT_SIZE)
		spread_events((char *)events, (size_t)ret, size);
	errno = saved;
	return (int)ret;
}

int twheel_wait(int fd, int timeout_ms)
{
	struct pollfd pollfd = {
		.fd	= fd,
		.events	= POLLIN,
	};
	int saved = errno;
	int ret;

	/* poll() would ignore it, and wait. */
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

static int map_context(int fd, uint64_t bytes, off_t offset, void **address)
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
	int ret = map_context(fd, bytes, TWHEEL_RING_OFFSET, &address);

	if (!ret)
		*ring = address;
	return ret;
}

int twheel_touch_map(int fd, uint64_t bytes, struct twheel_touch **touch)
{
	void *address = NULL;
	int ret = map_context(fd, bytes, TWHEEL_TOUCH_OFFSET, &address);

	if (!ret)
		*touch = address;
	return ret;
}
