// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: a scheme with a fault, which the checks have to find
 *
 * Every timer is looked at in each turn. The environment variable FAULT is one of: none, lost,
 * twice, early, late-cancel, which are met by one timer only, or few.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define TURN_NS		1000000ULL

/* The number of that timer. In a check, 27 is one that is cancelled. */
#define VICTIM		26
#define CANCELLED_VICTIM 27

struct timer {
	uint64_t	due;
	bool		armed;
	bool		victim;
};

static struct object *all;
static size_t nr_all;
static uint64_t now, origin;
static const char *fault;
static size_t victim;

/* A scheme that cannot have as many timers as are wanted. */
size_t program_limit(size_t wanted)
{
	const char *few = getenv("FAULT");

	return few && !strcmp(few, "few") ? wanted / 2 : wanted;
}

static struct timer *timer_of(struct object *objects, const struct step *step)
{
	return (struct timer *)objects[step->object].timer;
}

static void broken_create(size_t nr)
{
	nr_all = nr;
	fault = getenv("FAULT");
	if (!fault)
		errx(EXIT_USAGE, "set FAULT to none, lost, twice, early, late-cancel or few");
	victim = strcmp(fault, "late-cancel") ? VICTIM : CANCELLED_VICTIM;
}

static void broken_destroy(void)
{
}

static void broken_init(struct object *object)
{
	*(struct timer *)object->timer = (struct timer) { 0 };
}

static void broken_begin(unsigned int shorter)
{
	(void)shorter;
	origin = now;
}

static void broken_arm(struct object *objects, const struct step *steps, size_t nr)
{
	struct timer *timer;
	size_t i;

	all = objects;
	for (i = 0; i < nr; i++) {
		timer = timer_of(objects, &steps[i]);
		timer->due = origin + ((uint64_t)steps[i].time << TIME_SHIFT);
		timer->armed = true;
		timer->victim = steps[i].object == victim;
		if (timer->victim && !strcmp(fault, "early"))
			timer->due -= 2 * TURN_NS;
	}
}

static void broken_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	struct timer *timer;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = timer_of(objects, &steps[i]);
		timer->armed = timer->victim && !strcmp(fault, "late-cancel");
	}
}

static uint64_t broken_turn(void)
{
	struct timer *timer;
	size_t i;

	now += TURN_NS;
	for (i = 0; i < nr_all; i++) {
		timer = (struct timer *)all[i].timer;
		if (!timer->armed || timer->due > now)
			continue;
		timer->armed = false;
		all[i].fired += !timer->victim || strcmp(fault, "lost");
		if (!timer->victim || strcmp(fault, "twice"))
			continue;
		timer->due = now + TURN_NS;
		timer->armed = all[i].fired < 2;
	}
	return now - origin;
}

static void broken_expire(uint32_t last)
{
	while (now < origin + ((uint64_t)last << TIME_SHIFT) + 2 * TURN_NS)
		broken_turn();
}

static bool broken_pending(const struct object *object)
{
	return ((const struct timer *)object->timer)->armed;
}

const struct scheme scheme_broken = {
	.name		= "broken",
	.timer_bytes	= sizeof(struct timer),
	.shorter	= 1,
	.create		= broken_create,
	.destroy	= broken_destroy,
	.init		= broken_init,
	.begin		= broken_begin,
	.add		= broken_arm,
	.rearm		= broken_arm,
	.cancel		= broken_cancel,
	.expire		= broken_expire,
	.turn		= broken_turn,
	.pending	= broken_pending,
};
