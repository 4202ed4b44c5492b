// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: does each timer fire once, and when?
 *
 * Unlike in the measurements, time passes while timers expire, as in an event loop, so that one
 * that fires early is seen. Of each 42 timers, 14 are re-armed to a later time and 14 to an earlier
 * one; then every seventh is cancelled.
 */
#include <err.h>
#include <stdlib.h>

#include "program.h"

/* The clock may stand still for others to work; a timer that takes this long is lost. */
#define LOST_NS		30000000000ULL

struct outcome {
	size_t		early;
	uint64_t	earliest;
	uint64_t	*late;
	size_t		fired;
};

static bool is_cancelled(size_t object)
{
	return object % 7 == 6;
}

/* Keeps the steps of those objects for which @object % @of == @rest. Returns their number. */
static size_t select_steps(struct work *work, size_t of, size_t rest)
{
	size_t i, nr = 0;

	for (i = 0; i < work->size; i++)
		if (work->steps[i].object % of == rest)
			work->steps[nr++] = work->steps[i];
	return nr;
}

/* Re-arms some timers. make_steps() changes the times of all: those of others are restored. */
static void rearm_some(struct work *work, uint32_t *time, enum workload workload, size_t rest)
{
	size_t i, nr;

	make_steps(work, workload);
	nr = select_steps(work, 3, rest);
	SCHEME.rearm(work->objects, work->steps, nr);
	for (i = 0; i < nr; i++)
		time[work->steps[i].object] = work->steps[i].time;
	for (i = 0; i < work->size; i++)
		work->time[i] = time[i];
}

/* Arms all timers. Returns, by object, the times at which they have to fire. */
static uint32_t *arm_timers(struct work *work)
{
	uint32_t *time = allocate(work->size, sizeof(*time));
	size_t i;

	make_steps(work, ADD_RANDOM);
	SCHEME.add(work->objects, work->steps, work->size);
	for (i = 0; i < work->size; i++)
		time[i] = work->time[i];
	rearm_some(work, time, REARM_LATER, 1);
	rearm_some(work, time, REARM_EARLIER, 2);
	make_steps(work, CANCEL);
	SCHEME.cancel(work->objects, work->steps, select_steps(work, 7, 6));
	return time;
}

static void note_expiry(struct outcome *outcome, size_t object, uint64_t now, uint64_t due)
{
	if (now < due) {
		outcome->early++;
		if (outcome->earliest < due - now)
			outcome->earliest = due - now;
	}
	outcome->late[outcome->fired++] = now < due ? 0 : now - due;
	if (outcome->earliest > program_early())
		errx(EXIT_FAILED, "timer %zu has fired %llu ns early; %llu ns are known of", object,
		     (unsigned long long)outcome->earliest, (unsigned long long)program_early());
}

/* Notes which timers have fired, at the latest at @now. */
static void look_at_timers(const struct work *work, const uint32_t *time, uint8_t *seen,
			   uint64_t now, unsigned int shorter, struct outcome *outcome)
{
	uint64_t fired;
	size_t i;

	for (i = 0; i < work->size; i++) {
		fired = work->objects[i].fired;
		if (fired == seen[i])
			continue;
		if (is_cancelled(i))
			errx(EXIT_FAILED, "timer %zu was cancelled, and has fired", i);
		if (fired > 1)
			errx(EXIT_FAILED, "timer %zu has fired %llu times", i,
			     (unsigned long long)fired);
		seen[i] = 1;
		note_expiry(outcome, i, now, ((uint64_t)time[i] << TIME_SHIFT) / shorter);
	}
}

/* Lets time pass until a while after the last timer, which may fire again. */
static void await_timers(const struct work *work, const uint32_t *time, unsigned int shorter,
			 struct outcome *outcome)
{
	uint8_t *seen = allocate(work->size, sizeof(*seen));
	uint64_t now, last = 0, due, allowed;
	size_t i, expected = 0;

	for (i = 0; i < work->size; i++) {
		due = ((uint64_t)time[i] << TIME_SHIFT) / shorter;
		expected += !is_cancelled(i);
		last = last < due ? due : last;
	}
	allowed = shorter == 1 ? last * 2 : last + LOST_NS;
	do {
		now = SCHEME.turn();
		look_at_timers(work, time, seen, now, shorter, outcome);
		if (now > allowed)
			errx(EXIT_FAILED, "%zu of %zu timers have not fired",
			     expected - outcome->fired, expected);
	} while (outcome->fired < expected || now < last + last / 4);
	free(seen);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/**
 * check - check when the timers of a scheme fire, and print it; exit if one is lost or fires twice
 * @wanted:	number of timers; if there can be fewer, figures are those of so many
 * @seed:	seed of the times and the orders
 */
void check(size_t wanted, uint64_t seed)
{
	unsigned int shorter = SCHEME.shorter < SHORTER_CHECK ? SCHEME.shorter : SHORTER_CHECK;
	struct work *work = new_work(program_limit(wanted), seed);
	struct outcome outcome = {
		.late = allocate(work->size, sizeof(*outcome.late)),
	};
	uint32_t *time;

	SCHEME.create(work->size);
	begin_run(work, shorter);
	time = arm_timers(work);
	await_timers(work, time, shorter, &outcome);
	SCHEME.destroy();
	qsort(outcome.late, outcome.fired, sizeof(*outcome.late), compare_times);
	print_figure(work->size, "-", "fired", outcome.fired);
	print_figure(work->size, "-", "early", outcome.early);
	print_figure(work->size, "-", "earliest_us", outcome.earliest / 1e3);
	if (outcome.fired)
		print_figure(work->size, "-", "late_us", outcome.late[outcome.fired / 2] / 1e3);
}
