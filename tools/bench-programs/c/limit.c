// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: the limit line, which only touches the objects
 *
 * No timers: each operation reads, changes and writes the object. No scheme that has to touch each
 * timer can be faster.
 */
#include "program.h"

/* The last bit says that a timer would be armed; so that each operation has to read, too. */
#define ARMED	1ULL

static struct object *armed;
static const struct step *armed_steps;
static size_t nr_armed;

static void limit_create(size_t nr)
{
	nr_armed = nr;
}

static void limit_destroy(void)
{
}

static void limit_init(struct object *object)
{
	object->value = 0;
}

static void limit_begin(unsigned int shorter)
{
	(void)shorter;
}

static void limit_arm(struct object *objects, const struct step *steps, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		objects[steps[i].object].value = (objects[steps[i].object].value + 2) | ARMED;
	armed = objects;
	armed_steps = steps;
}

static void limit_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		objects[steps[i].object].value &= ~ARMED;
}

static void limit_expire(uint32_t last)
{
	size_t i;

	(void)last;
	for (i = 0; i < nr_armed; i++) {
		armed[armed_steps[i].object].value &= ~ARMED;
		armed[armed_steps[i].object].fired++;
	}
}

static bool limit_pending(const struct object *object)
{
	return object->value & ARMED;
}

static size_t limit_memory(void)
{
	return 0;
}

const struct scheme scheme_limit = {
	.name		= "limit",
	.shorter	= 2,
	.create		= limit_create,
	.destroy	= limit_destroy,
	.init		= limit_init,
	.begin		= limit_begin,
	.add		= limit_arm,
	.rearm		= limit_arm,
	.cancel		= limit_cancel,
	.expire		= limit_expire,
	.pending	= limit_pending,
	.memory		= limit_memory,
};
