// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: a timerfd for each timer, in one epoll instance
 *
 * The descriptors are created before anything is measured, and kept. They are edge-triggered, so
 * that an expiry takes no read().
 */
#include <err.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>

#include "program.h"

#define SHORTER		1000U
#define EVENTS		256

/* A turn takes no longer than this, in ms. */
#define TURN_MS		20

/* Descriptors that are open for other purposes. */
#define OTHER_FDS	16

/* 0 if there is no timer yet: that is standard input. */
struct timer {
	int	fd;
	bool	armed;
};

static int epoll = -1;
static unsigned int divisor;
static struct timespec origin;

size_t program_limit(size_t wanted)
{
	struct rlimit limit = { wanted + OTHER_FDS, wanted + OTHER_FDS };
	struct rlimit before;

	getrlimit(RLIMIT_NOFILE, &before);
	/* Only root may exceed the hard limit, and nobody may exceed fs.nr_open. */
	if (before.rlim_cur >= limit.rlim_cur || !setrlimit(RLIMIT_NOFILE, &limit))
		return wanted;
	before.rlim_cur = before.rlim_max;
	setrlimit(RLIMIT_NOFILE, &before);
	if (before.rlim_cur >= limit.rlim_cur)
		return wanted;
	printf("# timerfd: %llu timers for %zu, as RLIMIT_NOFILE allows no more\n",
	       (unsigned long long)before.rlim_cur - OTHER_FDS, wanted);
	return before.rlim_cur - OTHER_FDS;
}

static void timerfd_create_all(size_t nr)
{
	(void)nr;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		err(EXIT_FAILED, "epoll_create1");
}

static void timerfd_destroy(void)
{
}

static void timerfd_init(struct object *object)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = object };
	struct timer *timer = (struct timer *)object->timer;

	timer->armed = false;
	if (timer->fd)
		return;
	timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timer->fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer->fd, &event))
		err(EXIT_FAILED, "timerfd in epoll");
}

static void timerfd_begin(unsigned int shorter)
{
	clock_start();
	clock_gettime(CLOCK_MONOTONIC, &origin);
	divisor = shorter;
}

static void timerfd_arm(struct object *objects, const struct step *steps, size_t nr)
{
	struct itimerspec when = { 0 };
	struct timer *timer;
	uint64_t ns;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = (struct timer *)objects[steps[i].object].timer;
		ns = ((uint64_t)steps[i].time << TIME_SHIFT) / divisor + origin.tv_nsec;
		when.it_value.tv_sec = origin.tv_sec + ns / 1000000000;
		when.it_value.tv_nsec = ns % 1000000000;
		timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &when, NULL);
		timer->armed = true;
	}
}

static void timerfd_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	const struct itimerspec never = { 0 };
	struct timer *timer;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = (struct timer *)objects[steps[i].object].timer;
		timerfd_settime(timer->fd, 0, &never, NULL);
		timer->armed = false;
	}
}

/* Receives events until there are none. The first may take @timeout ms. */
static void receive_events(int timeout)
{
	struct epoll_event events[EVENTS];
	struct object *object;
	int i, nr;

	do {
		nr = epoll_wait(epoll, events, EVENTS, timeout);
		for (i = 0; i < nr; i++) {
			object = (struct object *)events[i].data.ptr;
			object->fired++;
			((struct timer *)object->timer)->armed = false;
		}
		timeout = 0;
	} while (nr == EVENTS);
}

static void timerfd_expire(uint32_t last)
{
	clock_sleep(last, divisor);
	receive_events(0);
}

static uint64_t timerfd_turn(void)
{
	receive_events(TURN_MS);
	return clock_elapsed();
}

static bool timerfd_pending(const struct object *object)
{
	return ((const struct timer *)object->timer)->armed;
}

const struct scheme scheme_timerfd = {
	.name		= "timerfd",
	.timer_bytes	= sizeof(struct timer),
	.shorter	= SHORTER,
	.create		= timerfd_create_all,
	.destroy	= timerfd_destroy,
	.init		= timerfd_init,
	.begin		= timerfd_begin,
	.add		= timerfd_arm,
	.rearm		= timerfd_arm,
	.cancel		= timerfd_cancel,
	.expire		= timerfd_expire,
	.turn		= timerfd_turn,
	.pending	= timerfd_pending,
};
