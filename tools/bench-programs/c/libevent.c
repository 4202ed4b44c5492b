// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: timers of libevent, a binary heap of pointers
 *
 * The events are embedded and assigned once. There are no locks, as libevent's threads are not
 * used. Common timeouts, which are lists, would be faster, and want few different lengths; here,
 * each timer has its own.
 */
#include <err.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "program.h"

/* The heap orders by microseconds, so the times stay far enough apart. */
#define SHORTER		1000U

_Static_assert(sizeof(struct event) <= TIMER_BYTES, "an event does not fit in an object");

static struct event_base *base;
static unsigned int divisor;

static void count_expiry(evutil_socket_t fd, short what, void *object)
{
	(void)fd;
	(void)what;
	((struct object *)object)->fired++;
}

static struct event *timer_of(struct object *objects, const struct step *step)
{
	return (struct event *)objects[step->object].timer;
}

static void libevent_create(size_t nr)
{
	(void)nr;
	base = event_base_new();
	if (!base)
		errx(EXIT_FAILED, "libevent has no event base for us");
}

static void libevent_destroy(void)
{
	event_base_free(base);
}

static void libevent_init(struct object *object)
{
	evtimer_assign((struct event *)object->timer, base, count_expiry, object);
}

static void libevent_begin(unsigned int shorter)
{
	clock_start();
	divisor = shorter;
}

/* Of an event that is pending, event_add() changes the time. */
static void libevent_arm(struct object *objects, const struct step *steps, size_t nr)
{
	struct timeval timeout;
	uint64_t ns;
	size_t i;

	for (i = 0; i < nr; i++) {
		ns = ((uint64_t)steps[i].time << TIME_SHIFT) / divisor + 999;
		timeout.tv_sec = ns / 1000000000;
		timeout.tv_usec = ns % 1000000000 / 1000;
		event_add(timer_of(objects, &steps[i]), &timeout);
	}
}

static void libevent_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		event_del(timer_of(objects, &steps[i]));
}

static void libevent_expire(uint32_t last)
{
	clock_sleep(last, divisor);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static uint64_t libevent_turn(void)
{
	event_base_loop(base, EVLOOP_ONCE);
	return clock_elapsed();
}

static bool libevent_pending(const struct object *object)
{
	return evtimer_pending((const struct event *)object->timer, NULL);
}

/* By default it reads a clock that advances with the kernel's tick, 10 ms if HZ is 100. */
uint64_t program_early(void)
{
	return 10000000;
}

const struct scheme scheme_libevent = {
	.name		= "libevent",
	.timer_bytes	= sizeof(struct event),
	.shorter	= SHORTER,
	.create		= libevent_create,
	.destroy	= libevent_destroy,
	.init		= libevent_init,
	.begin		= libevent_begin,
	.add		= libevent_arm,
	.rearm		= libevent_arm,
	.cancel		= libevent_cancel,
	.expire		= libevent_expire,
	.turn		= libevent_turn,
	.pending	= libevent_pending,
};
