// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: timers of libuv, a binary heap of linked nodes
 *
 * The handles are embedded and initialised once. Times are whole milliseconds, counted from when
 * the loop last read the clock.
 */
#include <err.h>
#include <uv.h>

#include "program.h"

/* With a larger divisor, most timers would expire in the same millisecond. */
#define SHORTER		1000U

_Static_assert(sizeof(uv_timer_t) <= TIMER_BYTES, "a uv_timer_t does not fit in an object");

static uv_loop_t loop;
static unsigned int divisor;

static void count_expiry(uv_timer_t *timer)
{
	((struct object *)timer)->fired++;
}

static uv_timer_t *timer_of(struct object *objects, const struct step *step)
{
	return (uv_timer_t *)objects[step->object].timer;
}

static void libuv_create(size_t nr)
{
	(void)nr;
	if (uv_loop_init(&loop))
		errx(EXIT_FAILED, "libuv has no loop for us");
}

static void libuv_destroy(void)
{
}

static void libuv_init(struct object *object)
{
	uv_timer_t *timer = (uv_timer_t *)object->timer;

	if (!timer->loop)
		uv_timer_init(&loop, timer);
}

static void libuv_begin(unsigned int shorter)
{
	clock_start();
	uv_update_time(&loop);
	divisor = shorter;
}

/* Of a timer that is active, uv_timer_start() changes the time. */
static void libuv_arm(struct object *objects, const struct step *steps, size_t nr)
{
	uint64_t ns;
	size_t i;

	for (i = 0; i < nr; i++) {
		ns = ((uint64_t)steps[i].time << TIME_SHIFT) / divisor;
		uv_timer_start(timer_of(objects, &steps[i]), count_expiry, (ns + 999999) / 1000000,
			       0);
	}
}

static void libuv_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		uv_timer_stop(timer_of(objects, &steps[i]));
}

static void libuv_expire(uint32_t last)
{
	clock_sleep(last, divisor);
	uv_run(&loop, UV_RUN_NOWAIT);
}

static uint64_t libuv_turn(void)
{
	uv_run(&loop, UV_RUN_ONCE);
	return clock_elapsed();
}

static bool libuv_pending(const struct object *object)
{
	return uv_is_active((const uv_handle_t *)object->timer);
}

/* The time to count from is rounded down to a millisecond. */
uint64_t program_early(void)
{
	return 1000000;
}

const struct scheme scheme_libuv = {
	.name		= "libuv",
	.timer_bytes	= sizeof(uv_timer_t),
	.shorter	= SHORTER,
	.create		= libuv_create,
	.destroy	= libuv_destroy,
	.init		= libuv_init,
	.begin		= libuv_begin,
	.add		= libuv_arm,
	.rearm		= libuv_arm,
	.cancel		= libuv_cancel,
	.expire		= libuv_expire,
	.turn		= libuv_turn,
	.pending	= libuv_pending,
};
