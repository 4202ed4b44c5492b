// SPDX-License-Identifier: MIT
/*
 * echo: the timers of libev, a 4-ary heap, as its manual recommends for idle timeouts
 *
 * epoll stays the server's own, so libev cannot say how long to wait: it is asked each 10 ms.
 */
#include <errno.h>
#include <ev.h>
#include <stddef.h>

#include "echo.h"

#define INTERVAL	10000000ULL

static struct ev_loop *loop;
static struct ev_timer *timers;
static uint64_t next;

static void begin(void)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	check(loop ? 0 : -ENOMEM, "ev_loop_new");
	timers = allocate(max_files, sizeof(*timers));
}

static void expired(struct ev_loop *unused, struct ev_timer *timer, int revents)
{
	(void)unused;
	(void)revents;
	ev_timer_stop(loop, timer);
	timed_out(timer - timers);
}

static void add(int fd)
{
	ev_timer_init(&timers[fd], expired, 0., limit / 1e9);
	ev_timer_again(loop, &timers[fd]);
}

static void active(int fd)
{
	ev_timer_again(loop, &timers[fd]);
}

static void drop(int fd)
{
	ev_timer_stop(loop, &timers[fd]);
}

static int wait(void)
{
	return INTERVAL / 1000000;
}

static void woken(void)
{
	ev_now_update(loop);
}

static void expire(void)
{
	uint64_t time = now();

	if (time < next)
		return;
	next = time + INTERVAL;
	ev_run(loop, EVRUN_NOWAIT);
}

const struct timeouts timeouts_libev = {
	.name	= "libev",
	.begin	= begin,
	.add	= add,
	.active	= active,
	.remove	= drop,
	.wait	= wait,
	.woken	= woken,
	.expire	= expire,
};
