// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: ev_timer of libev, a 4-ary heap
 */
#include <err.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

/*
 * The loop's clock cannot be set, so expiry is measured with all times divided by this factor:
 * the order is the same, and all timers are due when the loop is run, once.
 */
#define SHORTER		100000U

/* Blocks of at least this size are in large pages, as for the wheel. */
#define LARGE		(1L << 21)

_Static_assert(sizeof(ev_timer) <= TIMER_BYTES, "an ev_timer does not fit in an object");

/* The header before each block of memory. */
struct header {
	_Alignas(64) long size;
};

static struct ev_loop *loop;
static size_t allocated;
static struct timespec origin;
static double unit;

static struct header *block_alloc(long size)
{
	long bytes = size + sizeof(struct header);
	struct header *header = size < LARGE ? aligned_alloc(64, (bytes + 63) & ~63L) :
					       large_alloc(bytes);

	if (!header)
		errx(EXIT_FAILED, "out of memory");
	header->size = size;
	allocated += size;
	return header;
}

static void block_free(struct header *header)
{
	allocated -= header->size;
	if (header->size < LARGE)
		free(header);
	else
		large_free(header, header->size + sizeof(*header));
}

/* libev's allocator: realloc(), and free() if @size is 0. */
static void *libev_realloc(void *memory, long size)
{
	struct header *old = memory ? (struct header *)memory - 1 : NULL, *new = NULL;

	if (size) {
		new = block_alloc(size);
		if (old)
			memcpy(new + 1, old + 1, old->size < size ? old->size : size);
	}
	if (old)
		block_free(old);
	return new ? new + 1 : NULL;
}

static void count_expiry(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	((struct object *)timer)->fired++;
}

static ev_timer *timer_of(struct object *objects, const struct step *step)
{
	return (ev_timer *)objects[step->object].timer;
}

static void libev_create(size_t nr)
{
	(void)nr;
	ev_set_allocator(libev_realloc);
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!loop)
		errx(EXIT_FAILED, "libev: no event loop");
}

static void libev_destroy(void)
{
	ev_loop_destroy(loop);
}

static void libev_init(struct object *object)
{
	ev_timer_init((ev_timer *)object->timer, count_expiry, 0., 0.);
}

static void libev_begin(unsigned int shorter)
{
	/* Read first, so that no timer looks early that is not. */
	clock_gettime(CLOCK_MONOTONIC, &origin);
	ev_now_update(loop);
	unit = (1 << TIME_SHIFT) / 1e9 / shorter;
}

static void libev_add(struct object *objects, const struct step *steps, size_t nr)
{
	ev_timer *timer;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = timer_of(objects, &steps[i]);
		ev_timer_set(timer, steps[i].time * unit, 0.);
		ev_timer_start(loop, timer);
	}
}

/* As libev's manual recommends for inactivity timeouts, but such a timer expires once. */
static void libev_rearm(struct object *objects, const struct step *steps, size_t nr)
{
	ev_timer *timer;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = timer_of(objects, &steps[i]);
		timer->repeat = steps[i].time * unit;
		ev_timer_again(loop, timer);
		timer->repeat = 0.;
	}
}

static void libev_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		ev_timer_stop(loop, timer_of(objects, &steps[i]));
}

static void libev_expire(uint32_t last)
{
	/* Measured time is CPU time, which stands still meanwhile. */
	ev_sleep(last * unit);
	ev_run(loop, EVRUN_NOWAIT);
}

static uint64_t libev_turn(void)
{
	struct timespec now;

	ev_run(loop, EVRUN_ONCE);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - origin.tv_sec) * 1000000000LL + now.tv_nsec - origin.tv_nsec;
}

static bool libev_pending(const struct object *object)
{
	return ev_is_active((const ev_timer *)object->timer);
}

static size_t libev_memory(void)
{
	return allocated;
}

const struct scheme scheme_libev = {
	.name		= "libev",
	.timer_bytes	= sizeof(ev_timer),
	.shorter	= SHORTER,
	.create		= libev_create,
	.destroy	= libev_destroy,
	.init		= libev_init,
	.begin		= libev_begin,
	.add		= libev_add,
	.rearm		= libev_rearm,
	.cancel		= libev_cancel,
	.expire		= libev_expire,
	.turn		= libev_turn,
	.pending	= libev_pending,
	.memory		= libev_memory,
};
