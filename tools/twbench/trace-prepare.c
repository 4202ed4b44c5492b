// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: making sure that a trace has one outcome, however late a scheme is
 *
 * An operation that comes when its timer has expired, or is about to, would find it pending in
 * one scheme and not in another. So a timer that is moved or cancelled shortly before its
 * deadline expires instead, and what arms it again does so with another object. An object whose
 * timer has expired is not used again before the latest scheme has noticed.
 *
 * With that, what expires, and with which object, follows from the trace alone.
 */
#include <err.h>
#include <stdlib.h>

#include "trace.h"

/* Unless told otherwise, no operation comes closer to a deadline than this share of the timeout. */
#define MARGIN_SHARE	4
#define MARGIN_MIN_NS	(2 * NS_PER_MS)
#define MARGIN_MAX_NS	(50 * NS_PER_MS)

/* An expired timer's object is not used for so long, and this share of its timeout. */
#define LATE_NS		(3 * NS_PER_S)
#define LATE_SHARE	7

#define NOT_ARMED	UINT64_MAX

/**
 * struct owner - an object of the trace
 * @object:	the object that it has now
 * @deadline:	of its timer; or %NOT_ARMED
 * @timeout:	that the timer was armed with
 * @safe_at:	when its object may be armed again
 */
struct owner {
	uint32_t	object;
	uint64_t	deadline;
	uint64_t	timeout;
	uint64_t	safe_at;
};

/**
 * struct spare - an object that no owner has
 * @safe_at:	when it may be armed again
 * @object:	its number
 */
struct spare {
	uint64_t	safe_at;
	uint32_t	object;
};

/**
 * struct plan - what is known while going through a trace
 * @trace:	the trace
 * @truth:	what expires
 * @margin_ns:	no operation comes closer to a deadline; 0: it depends on the timeout
 * @owner:	by object of the original trace
 * @spare:	a heap of spare objects, the first to be safe first
 * @nr_spare:	number of them
 * @max_spare:	number of allocated ones
 * @nr_objects:	number of objects so far
 */
struct plan {
	struct trace	*trace;
	struct truth	*truth;
	uint64_t	margin_ns;
	struct owner	*owner;
	struct spare	*spare;
	size_t		nr_spare;
	size_t		max_spare;
	uint32_t	nr_objects;
};

static void add_spare(struct plan *plan, struct spare spare)
{
	size_t i = plan->nr_spare++, parent;

	if (plan->nr_spare > plan->max_spare) {
		plan->max_spare = 2 * plan->nr_spare;
		plan->spare = reallocarray(plan->spare, plan->max_spare, sizeof(*plan->spare));
		if (!plan->spare)
			errx(EXIT_FAILED, "out of memory");
	}
	for (; i; i = parent) {
		parent = (i - 1) / 2;
		if (plan->spare[parent].safe_at <= spare.safe_at)
			break;
		plan->spare[i] = plan->spare[parent];
	}
	plan->spare[i] = spare;
}

static uint32_t take_spare(struct plan *plan)
{
	const uint32_t object = plan->spare[0].object;
	const struct spare last = plan->spare[--plan->nr_spare];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < plan->nr_spare; i = child) {
		if (child + 1 < plan->nr_spare &&
		    plan->spare[child + 1].safe_at < plan->spare[child].safe_at)
			child++;
		if (last.safe_at <= plan->spare[child].safe_at)
			break;
		plan->spare[i] = plan->spare[child];
	}
	plan->spare[i] = last;
	return object;
}

/* Makes sure that an owner has an object that may be armed now. */
static void refresh_object(struct plan *plan, struct owner *owner, uint64_t now)
{
	if (owner->safe_at <= now)
		return;
	add_spare(plan, (struct spare) { .safe_at = owner->safe_at, .object = owner->object });
	owner->safe_at = 0;
	if (plan->spare[0].safe_at <= now) {
		owner->object = take_spare(plan);
		return;
	}
	if (plan->nr_objects == TWHEEL_BENCH_MAX_TIMERS)
		errx(EXIT_FAILED, "too many timers: so many expire that %u objects do not suffice",
		     plan->nr_objects);
	owner->object = plan->nr_objects++;
}

/* As the kernel computes it. */
static uint64_t mix_bits(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	return x ^ (x >> 32);
}

static void count_expiry(struct plan *plan, const struct owner *owner)
{
	if (owner->deadline == NOT_ARMED || owner->deadline > plan->trace->length_ns)
		return;
	plan->truth->fired++;
	plan->truth->checksum += mix_bits(mix_bits(owner->object) + owner->deadline);
}

/* Has the timer expired by the time of an operation? Then its object is left alone for a while. */
static void expire_until(struct plan *plan, struct owner *owner, uint64_t time)
{
	if (owner->deadline == NOT_ARMED || owner->deadline > time)
		return;
	count_expiry(plan, owner);
	owner->safe_at = owner->deadline + LATE_NS + owner->timeout / LATE_SHARE;
	owner->deadline = NOT_ARMED;
}

static uint64_t margin_of(const struct plan *plan, const struct owner *owner)
{
	const uint64_t share = owner->timeout / MARGIN_SHARE;

	if (plan->margin_ns)
		return plan->margin_ns;
	if (share < MARGIN_MIN_NS)
		return MARGIN_MIN_NS;
	return share > MARGIN_MAX_NS ? MARGIN_MAX_NS : share;
}

/* Turns an operation into one that has one outcome. Returns false if there is nothing to do. */
static bool prepare_op(struct plan *plan, struct twheel_bench_op *op)
{
	struct owner *owner = &plan->owner[op->object];

	expire_until(plan, owner, op->time_ns + margin_of(plan, owner));
	if (op->kind == TWHEEL_BENCH_OP_CANCEL) {
		if (owner->deadline == NOT_ARMED)
			return false;
		op->object = owner->object;
		owner->deadline = NOT_ARMED;
		return true;
	}
	if (owner->deadline == NOT_ARMED) {
		op->kind = TWHEEL_BENCH_OP_ARM;
		refresh_object(plan, owner, op->time_ns);
	} else {
		op->kind = TWHEEL_BENCH_OP_MOVE;
	}
	if (op->deadline_ns < op->time_ns)
		op->deadline_ns = op->time_ns;
	op->object = owner->object;
	owner->deadline = op->deadline_ns;
	owner->timeout = op->deadline_ns - op->time_ns;
	return true;
}

/**
 * trace_prepare - make sure that a trace has one outcome
 * @trace:	the trace, which may get more objects
 * @margin_ns:	how far from its timer's deadline an operation has to be; 0: a quarter of the
 *		timeout, but 2 to 50 ms
 * @truth:	what that outcome is
 */
void trace_prepare(struct trace *trace, uint64_t margin_ns, struct truth *truth)
{
	struct plan plan = {
		.trace		= trace,
		.truth		= truth,
		.margin_ns	= margin_ns,
		.owner		= allocate(trace->nr_objects, sizeof(*plan.owner)),
		.nr_objects	= trace->nr_objects,
	};
	const uint64_t nr = trace->nr;
	uint64_t i;

	*truth = (struct truth) { 0 };
	for (i = 0; i < trace->nr_objects; i++)
		plan.owner[i] = (struct owner) { .object = i, .deadline = NOT_ARMED };
	trace->nr = 0;
	for (i = 0; i < nr; i++) {
		struct twheel_bench_op op = trace->op[i];

		if (prepare_op(&plan, &op))
			trace->op[trace->nr++] = op;
	}
	for (i = 0; i < trace->nr_objects; i++)
		count_expiry(&plan, &plan.owner[i]);
	trace->nr_objects = plan.nr_objects;
	free(plan.owner);
	free(plan.spare);
}
