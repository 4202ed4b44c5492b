/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: /dev/twheel for programs
 *
 * Every call returns a negative errno on failure, and leaves errno alone. None
 * prints anything. All may be called from any thread; a file descriptor may be
 * shared by threads. See uapi/linux/twheel.h for what the errors mean.
 */
#ifndef LIBTWHEEL_H
#define LIBTWHEEL_H

#include <stdint.h>
#include <time.h>
#include <linux/twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * twheel_open - open a context
 * @flags:	0, or O_NONBLOCK for a twheel_read() that does not wait. The file is
 *		always closed on exec
 *
 * Return: a file descriptor, to be given to the other calls, to poll() and, in the
 * end, to close(), which cancels all timers; or a negative errno of open().
 */
int twheel_open(int flags);

/**
 * twheel_info - ask what the module and a context are like
 * @fd:		the context
 * @info:	is filled in
 *
 * Return: 0, or a negative errno.
 */
int twheel_info(int fd, struct twheel_info *info);

/**
 * twheel_add - add a timer and arm it
 * @fd:		the context
 * @ns:		when to expire, in nanoseconds of CLOCK_MONOTONIC, up to
 *		TWHEEL_TIME_MAX
 * @flags:	TWHEEL_TIME_ABS if @ns is absolute; 0 if it counts from now
 * @user_data:	given back in the event
 * @handle:	is set to what names the timer
 *
 * Return: 0, or a negative errno: -EINVAL, -EOPNOTSUPP, -ENOSPC, -ENOMEM.
 */
int twheel_add(int fd, uint64_t ns, unsigned int flags, uint64_t user_data,
	       uint64_t *handle);

/**
 * twheel_cancel - cancel a timer
 * @fd:		the context
 * @handle:	the timer
 *
 * Return: TWHEEL_WAS_PENDING or TWHEEL_WAS_EXPIRED; either way no event of the timer
 * will be read. Or a negative errno: -ENOENT if its event has been read, or it was
 * cancelled before.
 */
int twheel_cancel(int fd, uint64_t handle);

/**
 * twheel_rearm - arm a timer anew
 * @fd:		the context
 * @handle:	the timer; it stays valid
 * @ns:		when to expire, as for twheel_add()
 * @flags:	as for twheel_add()
 *
 * Return: TWHEEL_WAS_PENDING or TWHEEL_WAS_EXPIRED; either way the earlier deadline
 * does not count any more. Or a negative errno: -ENOENT, -EINVAL, -EOPNOTSUPP.
 */
int twheel_rearm(int fd, uint64_t handle, uint64_t ns, unsigned int flags);

/**
 * twheel_query - ask for a timer's state
 * @fd:		the context
 * @handle:	the timer
 * @query:	is filled in
 *
 * Return: 0, or a negative errno: -ENOENT.
 */
int twheel_query(int fd, uint64_t handle, struct twheel_timer_query *query);

/**
 * twheel_read - read events
 * @fd:		the context
 * @events:	where to
 * @most:	how many fit, at least 1
 *
 * Waits for the first one, unless the context is non-blocking.
 *
 * Return: the number of events read; or a negative errno: -EAGAIN, -EINTR, -EINVAL.
 */
int twheel_read(int fd, struct twheel_event *events, unsigned int most);

#ifdef __cplusplus
}
#endif

#endif /* LIBTWHEEL_H */
