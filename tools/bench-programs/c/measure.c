// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: what the operations of a scheme cost
 */
#include <err.h>
#include <stdio.h>
#include <unistd.h>

#include "program.h"

static const char *const operation_names[NR_WORKLOADS] = {
	[ADD_RANDOM]	= "add",
	[REARM_LATER]	= "rearm_later",
	[REARM_EARLIER]	= "rearm_earlier",
	[CANCEL]	= "cancel",
	[EXPIRE]	= "expire",
};

/* Returns the number of bytes that this process has in memory. */
static double resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	unsigned long pages;

	if (!statm || fscanf(statm, "%*u %lu", &pages) != 1)
		errx(EXIT_FAILED, "/proc/self/statm cannot be read: is /proc mounted?");
	fclose(statm);
	return (double)pages * sysconf(_SC_PAGESIZE);
}

static double run_operation(struct work *work, enum workload operation, uint32_t last)
{
	double start = clock_ns();

	switch (operation) {
	case ADD_RANDOM:
		SCHEME.add(work->objects, work->steps, work->size);
		break;
	case REARM_LATER:
	case REARM_EARLIER:
		SCHEME.rearm(work->objects, work->steps, work->size);
		break;
	case CANCEL:
		SCHEME.cancel(work->objects, work->steps, work->size);
		break;
	default:
		SCHEME.expire(last);
	}
	return (clock_ns() - start) / work->size;
}

/* Exits unless all timers are pending, or none, and have fired as often as @operation implies. */
static void check_timers(const struct work *work, enum workload operation)
{
	bool pending = operation != CANCEL && operation != EXPIRE;
	uint64_t fired = operation == EXPIRE;
	const struct object *object;
	size_t i;

	for (i = 0; i < work->size; i++) {
		object = &work->objects[i];
		if (object->fired != fired)
			errx(EXIT_FAILED, "after %s, timer %zu has fired %llu times, and not %llu",
			     operation_names[operation], i, (unsigned long long)object->fired,
			     (unsigned long long)fired);
		if (SCHEME.pending(object) != pending)
			errx(EXIT_FAILED, "after %s, timer %zu is %spending",
			     operation_names[operation], i, pending ? "not " : "");
	}
}

/*
 * Measures all operations. Timers that expire have been re-armed to a later time: whoever only
 * notes that time has to do the rest when they come due.
 */
static void run_round(struct work *work, bool print)
{
	const char *order = work->sequential ? "sequential" : "random";
	enum workload operation;
	uint32_t last;
	double ns;

	begin_run(work, 1);
	for (operation = ADD_RANDOM; operation < NR_WORKLOADS; operation++) {
		if (operation == EXPIRE) {
			begin_run(work, SCHEME.shorter);
			make_steps(work, ADD_RANDOM);
			SCHEME.add(work->objects, work->steps, work->size);
			last = make_steps(work, REARM_LATER);
			SCHEME.rearm(work->objects, work->steps, work->size);
		} else {
			last = make_steps(work, operation);
		}
		ns = run_operation(work, operation, last);
		check_timers(work, operation);
		if (print)
			print_figure(work->size, order, operation_names[operation], ns);
	}
}

/* Adds all timers for the first time, and prints what they take. */
static void measure_memory(struct work *work)
{
	double before = resident_bytes(), bytes;

	SCHEME.create(work->size);
	begin_run(work, 1);
	make_steps(work, ADD_RANDOM);
	SCHEME.add(work->objects, work->steps, work->size);
	bytes = SCHEME.memory ? (double)SCHEME.memory() : resident_bytes() - before;
	print_figure(work->size, "-", "bytes", SCHEME.timer_bytes + bytes / work->size);
	make_steps(work, CANCEL);
	SCHEME.cancel(work->objects, work->steps, work->size);
}

/**
 * measure - measure a scheme, and print the figures
 * @wanted:	number of timers; if there can be fewer, figures are those of so many
 * @seed:	seed of the times and the orders
 *
 * The first of three rounds is a warm-up.
 */
void measure(size_t wanted, uint64_t seed)
{
	struct work *work = new_work(program_limit(wanted), seed);

	measure_memory(work);
	/* The slots of a wheel may begin anywhere. Nothing is pending, so only the clock moves. */
	if (SCHEME.shorter == 1)
		SCHEME.expire(work->time[0]);
	run_round(work, false);
	run_round(work, true);
	work->sequential = true;
	run_round(work, true);
	SCHEME.destroy();
}
