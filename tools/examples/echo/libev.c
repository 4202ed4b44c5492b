// SPDX-License-Identifier: MIT
/*
 * echo: the timers of libev, a 4-ary heap, used as its manual recommends for idle timeouts
 *
 * The server calls epoll itself, so libev cannot tell it how long to wait: it runs libev every
 * 10 ms.
 */
#include <errno.h>
#include <ev.h>
#include <stddef.h>

#include "echo.h"

#define INTERVAL	10000000ULL

static struct ev_loop *loop;
static struct ev_timer *timers;
static uint64_t next;

static void libev_begin(void)
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

static void libev_add(int fd)
{
	ev_timer_init(&timers[fd], expired, 0., limit / 1e9);
	ev_timer_again(loop, &timers[fd]);
}

static void libev_active(int fd)
{
	ev_timer_again(loop, &timers[fd]);
}

static void libev_remove(int fd)
{
	ev_timer_stop(loop, &timers[fd]);
}

static int libev_wait(void)
{
	return INTERVAL / 1000000;
}

static void libev_woken(void)
{
	ev_now_update(loop);
}

static void libev_expire(void)
{
	uint64_t time = now();

	if (time < next)
		return;
	next = time + INTERVAL;
	ev_run(loop, EVRUN_NOWAIT);
}

const struct timeouts timeouts_libev = {
	.name	= "libev",
	.begin	= libev_begin,
	.add	= libev_add,
	.active	= libev_active,
	.remove	= libev_remove,
	.wait	= libev_wait,
	.woken	= libev_woken,
	.expire	= libev_expire,
};
