// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: lets a debugging kernel keep track of all timers
 *
 * It then reports a timer that is armed without having been initialised, one that is initialised
 * or freed while it is armed, and one on the stack that was not initialised as such. Where it
 * can, it repairs what would bring the machine down: this is what the functions in
 * twheel_debug_descr are for.
 */
#include <linux/debugobjects.h>

#include "debug_timers.h"
#include "twheel.h"

static const struct debug_obj_descr twheel_debug_descr;

static void *debug_hint(void *addr)
{
	struct twheel_timer *timer = addr;

	return timer->function;
}

/* TWHEEL_TIMER_INITIALIZER() cannot announce the timer. */
static bool is_static(void *addr)
{
	struct twheel_timer *timer = addr;

	return timer->node.deadline == TWHEEL_EXPIRES_STATIC && timer->function;
}

/* An armed timer is being initialised. */
static bool fixup_init(void *addr, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	twheel_cancel_sync(addr);
	debug_object_init(addr, &twheel_debug_descr);
	return true;
}

static void do_nothing(struct twheel_timer *timer)
{
}

static void make_harmless(struct twheel_timer *timer)
{
	twheel_timer_init(timer, do_nothing);
}

/* A timer is being armed that has not been initialised, or that is already armed. */
static bool fixup_activate(void *addr, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_NOTAVAILABLE)
		return false;
	make_harmless(addr);
	return true;
}

/* An armed timer is being freed. */
static bool fixup_free(void *addr, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	twheel_cancel_sync(addr);
	debug_object_free(addr, &twheel_debug_descr);
	return true;
}

/* A timer is being cancelled that has not been initialised. */
static bool fixup_assert_init(void *addr, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_NOTAVAILABLE)
		return false;
	make_harmless(addr);
	return true;
}

static const struct debug_obj_descr twheel_debug_descr = {
	.name			= "twheel_timer",
	.debug_hint		= debug_hint,
	.is_static_object	= is_static,
	.fixup_init		= fixup_init,
	.fixup_activate		= fixup_activate,
	.fixup_free		= fixup_free,
	.fixup_assert_init	= fixup_assert_init,
};

void twheel_debug_init(struct twheel_timer *timer)
{
	debug_object_init(timer, &twheel_debug_descr);
}

void twheel_debug_init_on_stack(struct twheel_timer *timer)
{
	debug_object_init_on_stack(timer, &twheel_debug_descr);
}

void twheel_debug_destroy_on_stack(struct twheel_timer *timer)
{
	debug_object_free(timer, &twheel_debug_descr);
}

void twheel_debug_activate(struct twheel_timer *timer)
{
	debug_object_activate(timer, &twheel_debug_descr);
}

void twheel_debug_deactivate(struct twheel_timer *timer)
{
	debug_object_deactivate(timer, &twheel_debug_descr);
}

void twheel_debug_assert_init(struct twheel_timer *timer)
{
	debug_object_assert_init(timer, &twheel_debug_descr);
}
