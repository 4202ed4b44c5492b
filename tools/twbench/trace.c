// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: traces in memory
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* Of two numbers of 64 bits. */
__extension__ typedef unsigned __int128 product;

/* By how much copies of a trace may be shifted. */
#define SHIFT_MAX	NS_PER_S

/**
 * trace_add - add an operation
 * @trace:	the trace
 * @kind:	one of enum twheel_bench_op_kind
 * @time_ns:	its time
 * @object:	its object
 * @deadline_ns: the timer's deadline, or 0
 */
void trace_add(struct trace *trace, uint32_t kind, uint64_t time_ns, uint32_t object,
	       uint64_t deadline_ns)
{
	if (trace->nr == TWHEEL_BENCH_MAX_OPS)
		errx(EXIT_FAILED, "too many operations for a trace: shorten it");
	if (trace->nr == trace->max) {
		trace->max = trace->max ? trace->max * 2 : 1024;
		trace->op = reallocarray(trace->op, trace->max, sizeof(*trace->op));
		if (!trace->op)
			errx(EXIT_FAILED, "out of memory");
	}
	trace->op[trace->nr++] = (struct twheel_bench_op) {
		.time_ns	= time_ns,
		.deadline_ns	= deadline_ns,
		.object		= object,
		.kind		= kind,
	};
}

struct sorted {
	struct twheel_bench_op	op;
	uint64_t		index;
};

static int compare(const void *a, const void *b)
{
	const struct sorted *first = a, *second = b;

	if (first->op.time_ns != second->op.time_ns)
		return first->op.time_ns < second->op.time_ns ? -1 : 1;
	return first->index < second->index ? -1 : 1;
}

/**
 * trace_sort - sort the operations by time; those at the same time stay in their order
 * @trace:	the trace
 */
void trace_sort(struct trace *trace)
{
	struct sorted *sorted = allocate(trace->nr + 1, sizeof(*sorted));
	uint64_t i;

	for (i = 0; i < trace->nr; i++)
		sorted[i] = (struct sorted) { .op = trace->op[i], .index = i };
	qsort(sorted, trace->nr, sizeof(*sorted), compare);
	for (i = 0; i < trace->nr; i++)
		trace->op[i] = sorted[i].op;
	free(sorted);
}

static void check_length(double length_ns)
{
	if (length_ns > TWHEEL_BENCH_MAX_TIMEOUT_NS)
		errx(EXIT_FAILED, "a trace of more than an hour cannot be replayed");
}

/* What is beyond the furthest deadline that the kernel takes is not reached in a trace, either. */
static uint64_t limit_deadline(double deadline_ns)
{
	return deadline_ns < TWHEEL_BENCH_MAX_DEADLINE_NS ? deadline_ns :
	       TWHEEL_BENCH_MAX_DEADLINE_NS;
}

/**
 * trace_multiply - make copies of a trace run at once, or exit if that is too much
 * @trace:	the trace
 * @copies:	how many there shall be in all
 * @seed:	seed of the times by which they are shifted
 */
void trace_multiply(struct trace *trace, uint32_t copies, uint64_t seed)
{
	const uint64_t nr = trace->nr;
	uint32_t copy;
	uint64_t i;

	if (copies == 1)
		return;
	if ((uint64_t)trace->nr_objects * copies > TWHEEL_BENCH_MAX_TIMERS)
		errx(EXIT_FAILED, "too many timers: %u copies of %u", copies, trace->nr_objects);
	check_length(trace->length_ns + SHIFT_MAX);
	for (copy = 1; copy < copies; copy++) {
		const uint64_t shift = random_below(&seed, SHIFT_MAX / NS_PER_US) * NS_PER_US;
		const uint32_t base = copy * trace->nr_objects;

		for (i = 0; i < nr; i++) {
			const struct twheel_bench_op op = trace->op[i];

			trace_add(trace, op.kind, op.time_ns + shift, op.object + base,
				  op.deadline_ns ? limit_deadline(op.deadline_ns + shift) : 0);
		}
	}
	trace->nr_objects *= copies;
	trace->length_ns += SHIFT_MAX;
	trace_sort(trace);
}

/**
 * trace_hurry - divide all times of a trace, or exit if it gets too long
 * @trace:	the trace
 * @speed:	by what
 */
void trace_hurry(struct trace *trace, double speed)
{
	uint64_t i;

	if (speed == 1)
		return;
	check_length(trace->length_ns / speed + 1);
	for (i = 0; i < trace->nr; i++) {
		trace->op[i].time_ns /= speed;
		trace->op[i].deadline_ns = limit_deadline(trace->op[i].deadline_ns / speed);
	}
	trace->length_ns = trace->length_ns / speed + 1;
}

/**
 * trace_free - free the operations
 * @trace:	the trace
 */
void trace_free(struct trace *trace)
{
	free(trace->op);
	*trace = (struct trace) { 0 };
}

/**
 * random_below - get a random number
 * @state:	the state of the generator, first the seed
 * @limit:	more than the largest number wanted; not 0
 *
 * The generator is Knuth's of MMIX, whose high bits are the better ones.
 */
uint64_t random_below(uint64_t *state, uint64_t limit)
{
	product scaled;

	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	scaled = *state;
	scaled *= limit;
	return scaled >> 64;
}
