// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: the work, the clock and the output
 */
#include <stdio.h>
#include <time.h>

#include "program.h"

/* Of the coarsest clock of the kernel, with some room. */
#define CLOCK_STEP_NS	12000000

static struct timespec origin;

/**
 * new_work - allocate the work
 * @size:	number of timers
 * @seed:	of the times and the orders
 */
struct work *new_work(size_t size, uint64_t seed)
{
	struct work *work = allocate(1, sizeof(*work));
	size_t i;

	work->size = size;
	work->random = seed;
	work->objects = large_alloc(size * sizeof(*work->objects));
	work->order = large_alloc(size * sizeof(*work->order));
	work->steps = large_alloc(size * sizeof(*work->steps));
	work->time = large_alloc(size * sizeof(*work->time));
	for (i = 0; i < size; i++)
		work->order[i] = i;
	return work;
}

/**
 * begin_run - begin a run: no timer is armed, and none has fired
 * @work:	the work
 * @shorter:	all times are divided by this
 */
void begin_run(struct work *work, unsigned int shorter)
{
	size_t i;

	for (i = 0; i < work->size; i++) {
		work->objects[i].fired = 0;
		SCHEME.init(&work->objects[i]);
	}
	SCHEME.begin(shorter);
}

/**
 * clock_start - now is time 0; to be called before the scheme reads its own clock
 */
void clock_start(void)
{
	clock_gettime(CLOCK_MONOTONIC, &origin);
}

/**
 * clock_elapsed - read the clock
 *
 * Return: ns since clock_start().
 */
uint64_t clock_elapsed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - origin.tv_sec) * 1000000000LL + now.tv_nsec - origin.tv_nsec;
}

/**
 * clock_sleep - sleep for a time, and some milliseconds more, for clocks that advance in steps
 * @time:	the time in the unit of steps
 * @shorter:	what it is divided by
 *
 * Takes no CPU time, which is what is measured.
 */
void clock_sleep(uint32_t time, unsigned int shorter)
{
	uint64_t ns = ((uint64_t)time << TIME_SHIFT) / shorter + CLOCK_STEP_NS;
	struct timespec rest = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	while (nanosleep(&rest, &rest))
		;
}

/**
 * print_figure - print a line for the report
 * @size:	number of timers
 * @order:	order in which they are visited, or "-"
 * @operation:	what was measured
 * @value:	the figure
 */
void print_figure(size_t size, const char *order, const char *operation, double value)
{
	printf("%s %zu %s %s %.3f\n", SCHEME.name, size, order, operation, value);
}
