// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: timers of GLib, a list of all sources
 *
 * A source is allocated by GLib, so that arming one cannot do without. Re-arming does: it changes
 * the time at which the source is ready. This thread owns the context, as in a callback.
 */
#include <glib.h>

#include "program.h"

#define SHORTER		1000U

/* A turn takes no longer than this, in ms. */
#define TURN_MS		20

/* In an object. */
struct timer {
	GSource *source;
};

/* What GLib allocates. */
struct source {
	GSource		source;
	struct object	*object;
};

static GMainContext *context;
static unsigned int divisor;
static gint64 origin;

static gboolean count_expiry(GSource *source, GSourceFunc callback, gpointer data)
{
	struct object *object = ((struct source *)source)->object;

	(void)callback;
	(void)data;
	object->fired++;
	((struct timer *)object->timer)->source = NULL;
	g_source_unref(source);
	return G_SOURCE_REMOVE;
}

static GSourceFuncs functions = { .dispatch = count_expiry };

static gint64 time_of(const struct step *step)
{
	return origin + (((gint64)step->time << TIME_SHIFT) / divisor + 999) / 1000;
}

static void glib_create(size_t nr)
{
	(void)nr;
	context = g_main_context_new();
	g_main_context_acquire(context);
}

static void glib_destroy(void)
{
	g_main_context_release(context);
	g_main_context_unref(context);
}

static void glib_init(struct object *object)
{
	((struct timer *)object->timer)->source = NULL;
}

static void glib_begin(unsigned int shorter)
{
	clock_start();
	origin = g_get_monotonic_time() + 1;
	divisor = shorter;
}

static void glib_add(struct object *objects, const struct step *steps, size_t nr)
{
	struct object *object;
	struct timer *timer;
	size_t i;

	for (i = 0; i < nr; i++) {
		object = &objects[steps[i].object];
		timer = (struct timer *)object->timer;
		timer->source = g_source_new(&functions, sizeof(struct source));
		((struct source *)timer->source)->object = object;
		g_source_set_ready_time(timer->source, time_of(&steps[i]));
		g_source_attach(timer->source, context);
	}
}

static void glib_rearm(struct object *objects, const struct step *steps, size_t nr)
{
	struct timer *timer;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = (struct timer *)objects[steps[i].object].timer;
		g_source_set_ready_time(timer->source, time_of(&steps[i]));
	}
}

static void glib_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	struct timer *timer;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = (struct timer *)objects[steps[i].object].timer;
		g_source_destroy(timer->source);
		g_source_unref(timer->source);
		timer->source = NULL;
	}
}

static void glib_expire(uint32_t last)
{
	clock_sleep(last, divisor);
	g_main_context_iteration(context, FALSE);
}

static gboolean end_turn(gpointer data)
{
	(void)data;
	return G_SOURCE_REMOVE;
}

static uint64_t glib_turn(void)
{
	GSource *source = g_timeout_source_new(TURN_MS);

	g_source_set_callback(source, end_turn, NULL, NULL);
	g_source_attach(source, context);
	g_main_context_iteration(context, TRUE);
	g_source_destroy(source);
	g_source_unref(source);
	return clock_elapsed();
}

static bool glib_pending(const struct object *object)
{
	return ((const struct timer *)object->timer)->source;
}

const struct scheme scheme_glib = {
	.name		= "glib",
	.timer_bytes	= sizeof(struct timer),
	.shorter	= SHORTER,
	.create		= glib_create,
	.destroy	= glib_destroy,
	.init		= glib_init,
	.begin		= glib_begin,
	.add		= glib_add,
	.rearm		= glib_rearm,
	.cancel		= glib_cancel,
	.expire		= glib_expire,
	.turn		= glib_turn,
	.pending	= glib_pending,
};
