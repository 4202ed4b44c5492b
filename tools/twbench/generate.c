// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: a trace from a mixture
 *
 * Each timer has an owner, whose life is simulated: it arms its timer, and then does something
 * with it or lets it expire, and after a while arms it again. Owners wait in a heap for the time
 * at which they are next.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace.h"

/* What happens to an owner next. */
enum next { ARM, ACT, EXPIRE };

/**
 * struct owner - an owner of a timer
 * @timeout:	of its timer, in microseconds like all times here
 * @at:		when something happens next
 * @next:	what that is, one of enum next
 * @far:	it has far timeouts
 * @streak:	number of expiries in a row
 */
struct owner {
	uint64_t	timeout;
	uint64_t	at;
	uint8_t		next;
	bool		far;
	uint16_t	streak;
};

/**
 * struct world - a simulation
 * @mixture:	what is simulated
 * @trace:	what happens
 * @random:	state of the random numbers
 * @owner:	the owners, by number
 * @heap:	a heap of owners' numbers, the first one being next
 * @nr:		number of owners in it
 */
struct world {
	const struct mixture	*mixture;
	struct trace		*trace;
	uint64_t		random;
	struct owner		*owner;
	uint32_t		*heap;
	size_t			nr;
};

static bool is_before(const struct world *world, uint32_t a, uint32_t b)
{
	const struct owner *first = &world->owner[a], *second = &world->owner[b];

	return first->at != second->at ? first->at < second->at : a < b;
}

static void push(struct world *world, uint32_t number)
{
	size_t i = world->nr++, parent;

	for (; i; i = parent) {
		parent = (i - 1) / 2;
		if (is_before(world, world->heap[parent], number))
			break;
		world->heap[i] = world->heap[parent];
	}
	world->heap[i] = number;
}

static uint32_t pop(struct world *world)
{
	const uint32_t first = world->heap[0], last = world->heap[--world->nr];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < world->nr; i = child) {
		if (child + 1 < world->nr &&
		    is_before(world, world->heap[child + 1], world->heap[child]))
			child++;
		if (is_before(world, last, world->heap[child]))
			break;
		world->heap[i] = world->heap[child];
	}
	world->heap[i] = last;
	return first;
}

/* Returns a random time from @min to @max nanoseconds, in microseconds. */
static uint64_t draw(struct world *world, double min, double max)
{
	const uint64_t from = min / NS_PER_US, to = max / NS_PER_US;

	return from + random_below(&world->random, to - from + 1);
}

static bool chance(struct world *world, double percent)
{
	return random_below(&world->random, 100000) < percent * 1000;
}

static uint64_t draw_timeout(struct world *world, const struct owner *owner)
{
	const struct mixture *mixture = world->mixture;
	double timeout;

	if (owner->far)
		return draw(world, mixture->far_min, mixture->far_max);
	if (!mixture->backoff)
		return draw(world, mixture->timeout_min, mixture->timeout_max);
	timeout = fmin(mixture->timeout_min * pow(mixture->backoff, owner->streak),
		       mixture->timeout_max);
	return draw(world, timeout, timeout);
}

/* Decides what the owner of a timer that is armed at a time does next. */
static void live_on(struct world *world, struct owner *owner, uint64_t time)
{
	const struct mixture *mixture = world->mixture;
	uint64_t next;

	owner->timeout = draw_timeout(world, owner);
	owner->next = EXPIRE;
	owner->at = time + owner->timeout;
	if (chance(world, mixture->silent))
		return;
	next = draw(world, mixture->next_min, mixture->next_max);
	if (next < owner->timeout) {
		owner->next = ACT;
		owner->at = time + next;
	}
}

/* Has the owner arm its timer after a pause. */
static void wait(struct world *world, struct owner *owner, uint64_t time, double min, double max)
{
	owner->next = ARM;
	owner->at = time + draw(world, min, max);
}

static void arm(struct world *world, uint32_t number, uint32_t kind, uint64_t time)
{
	struct owner *owner = &world->owner[number];

	live_on(world, owner, time);
	trace_add(world->trace, kind, time * NS_PER_US, number,
		  (time + owner->timeout) * NS_PER_US);
}

static void act(struct world *world, uint32_t number, uint64_t time)
{
	const struct mixture *mixture = world->mixture;
	struct owner *owner = &world->owner[number];

	owner->streak = 0;
	if (!chance(world, mixture->cancel)) {
		arm(world, number, TWHEEL_BENCH_OP_MOVE, time);
		return;
	}
	trace_add(world->trace, TWHEEL_BENCH_OP_CANCEL, time * NS_PER_US, number, 0);
	wait(world, owner, time, mixture->pause_min, mixture->pause_max);
}

/* Returns false if the owner is done. */
static bool expire(struct world *world, struct owner *owner, uint64_t time)
{
	const struct mixture *mixture = world->mixture;

	if (mixture->once)
		return false;
	owner->streak++;
	wait(world, owner, time, mixture->return_min, mixture->return_max);
	return true;
}

/*
 * Places an owner at time 0 at any point of its life, which consists of a timer and a pause:
 * as if the world had begun long before.
 */
static void begin_spread(struct world *world, uint32_t number)
{
	const struct mixture *mixture = world->mixture;
	struct owner *owner = &world->owner[number];
	uint64_t active, pause, age;

	live_on(world, owner, 0);
	active = owner->at;
	if (owner->next == EXPIRE)
		pause = draw(world, mixture->return_min, mixture->return_max);
	else if (chance(world, mixture->cancel))
		pause = draw(world, mixture->pause_min, mixture->pause_max);
	else
		pause = 0;
	age = random_below(&world->random, active + pause);
	if (age >= active) {
		owner->next = ARM;
		owner->at = active + pause - age;
		return;
	}
	owner->at -= age;
	trace_add(world->trace, TWHEEL_BENCH_OP_ARM, 0, number,
		  (owner->timeout - age) * NS_PER_US);
}

static void begin(struct world *world, uint32_t nr)
{
	uint32_t number;

	for (number = 0; number < nr; number++) {
		world->owner[number].far = chance(world, world->mixture->far);
		if (world->mixture->equal)
			arm(world, number, TWHEEL_BENCH_OP_ARM, 0);
		else
			begin_spread(world, number);
		push(world, number);
	}
}

/**
 * mixture_generate - make a trace
 * @mixture:	the numbers
 * @nr:		number of timers' owners
 * @seed:	seed of all random numbers
 * @trace:	filled in
 */
void mixture_generate(const struct mixture *mixture, uint32_t nr, uint64_t seed,
		      struct trace *trace)
{
	struct world world = {
		.mixture	= mixture,
		.trace		= trace,
		.random		= seed,
		.owner		= allocate(nr, sizeof(*world.owner)),
		.heap		= allocate(nr, sizeof(*world.heap)),
	};
	const uint64_t length = mixture->length / NS_PER_US;
	struct owner *owner;
	uint32_t number;

	*trace = (struct trace) { .length_ns = length * NS_PER_US, .nr_objects = nr };
	snprintf(trace->note, sizeof(trace->note), "%s: %s", mixture->name, mixture->what);
	/* The first numbers of seeds that are close are close, too. */
	random_below(&world.random, 1);
	random_below(&world.random, 1);
	begin(&world, nr);
	while (world.nr) {
		number = pop(&world);
		owner = &world.owner[number];
		if (owner->at > length)
			break;
		if (owner->next == ARM)
			arm(&world, number, TWHEEL_BENCH_OP_ARM, owner->at);
		else if (owner->next == ACT)
			act(&world, number, owner->at);
		else if (!expire(&world, owner, owner->at))
			continue;
		push(&world, number);
	}
	free(world.owner);
	free(world.heap);
}
