// SPDX-License-Identifier: GPL-2.0-only
/*
 * For libFuzzer: the input is a program that uses a wheel, checked against the oracle.
 */
#include <stdint.h>

#include "model.h"

#define TIMERS		48

/* The start of the input. */
struct setup {
	u8 shift;
	u8 chunks;
	u8 bits;
	u8 value;
};

/*
 * Instructions follow. The low half of @op is the operation; the next three bits say how many
 * times it is repeated (or on how many consecutive timers it is done); the highest bit allows a
 * callback to execute it, if one runs first.
 */
struct instruction {
	u8 op;
	u8 timer;
	u8 bits;
	u8 value;
};

#define IN_CALLBACK	0x80

enum op {
	ARM, CANCEL, TAKE, SEND, SUPPLY, ADVANCE, FORWARD, EMPTY,
};

static const enum op ops[16] = {
	ARM, ARM, ARM, ARM, ARM, ARM, CANCEL, CANCEL, TAKE, TAKE, SEND, SUPPLY,
	ADVANCE, ADVANCE, FORWARD, EMPTY,
};

struct run {
	struct model model;
	const struct instruction *next, *end;
	u64 clock, end_of_time;
};

void check_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	abort();
}

/* The last tick that a deadline can fall on. */
static u64 tick_max(unsigned int shift)
{
	return min(TICK_MAX, ~0ULL >> 1 >> shift);
}

/* A time not before @from. Most bugs are at the edges of slots. */
static u64 time_from(u64 from, u64 max, u8 bits, u8 value)
{
	unsigned int shift = bits % 64 % (64 - __builtin_clzll(max));
	u64 step = (u64)value << shift >> 4;
	u64 time = step < max - from ? from + step : max;

	switch (bits / 64) {
	case 1:
		return time >> shift << shift;
	case 2:
		return min((time >> shift << shift) + 1, max);
	case 3:
		return max((time >> shift << shift), 1ULL) - 1;
	default:
		return time;
	}
}

static void use_timer(struct run *run, const struct instruction *i, unsigned int nr)
{
	struct model *m = &run->model;
	struct timer *t = &m->timers[nr % TIMERS];
	unsigned int shift = m->wheel->shift;
	u64 deadline = time_from(run->clock << shift, tick_max(shift) << shift,
				 i->bits, i->value);

	switch (ops[i->op & 15]) {
	case ARM:
		if (t->armed)
			model_rearm(m, t, deadline);
		else
			model_arm(m, t, deadline);
		break;
	case CANCEL:
		if (t->armed)
			model_cancel(m, t);
		break;
	case TAKE:
		if (t->armed)
			model_dequeue_remote(m, t);
		break;
	default:
		if (!t->armed)
			model_queue_remote(m, t, deadline);
	}
}

/* Time passes, or seems not to, and expired timers are processed as far as @budget allows. */
static void advance_clock(struct run *run, const struct instruction *i, unsigned int budget)
{
	struct model *m = &run->model;
	u64 clock = time_from(run->clock, run->end_of_time, i->bits, i->value);

	run->clock = max(run->clock, clock);
	model_expire(m, clock, budget < 7 ? budget : ~0U);
}

static void execute_next(struct run *run)
{
	const struct instruction *i = run->next++;
	unsigned int times = i->op >> 4 & 7, nr;
	struct model *m = &run->model;

	switch (ops[i->op & 15]) {
	case SUPPLY:
		twheel_withhold_chunks(m->wheel, i->bits & 0x40);
		if (i->bits & 0x80) {
			model_release(m, i->value, i->timer);
			break;
		}
		model_withhold(m);
		model_add_chunks(m, i->value);
		break;
	case ADVANCE:
		advance_clock(run, i, times);
		break;
	case FORWARD:
		model_forward(m, min(run->clock, time_from(0, run->end_of_time, i->bits,
							   i->value)));
		break;
	case EMPTY:
		model_evict_all(m);
		run->clock = time_from(0, run->end_of_time, i->bits, i->value);
		twheel_reset(m->wheel, run->clock);
		break;
	default:
		for (nr = i->timer; nr <= i->timer + times; nr++)
			use_timer(run, i, nr);
	}
}

static void run_callback(struct model *m, struct timer *t __attribute__((unused)))
{
	struct run *run = container_of(m, struct run, model);
	const struct instruction *i = run->next;

	if (i < run->end && i->op & IN_CALLBACK && ops[i->op & 15] < ADVANCE)
		execute_next(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct setup *setup = (const struct setup *)data;
	unsigned int shift;
	struct model *m;
	struct run run;

	if (size < sizeof(*setup))
		return -1;
	run.next = (const struct instruction *)(setup + 1);
	run.end = run.next + (size - sizeof(*setup)) / sizeof(*run.next);
	shift = setup->shift % 21;
	/* One tick is always left for timers that are armed late. */
	run.end_of_time = tick_max(shift) - 1;
	run.clock = time_from(0, run.end_of_time, setup->bits, setup->value);
	m = &run.model;
	model_init(m, TIMERS, shift, run.clock);
	model_add_chunks(m, setup->chunks);
	m->expired = run_callback;
	while (run.next < run.end) {
		/* Not after every operation on a timer: the check takes much longer than that. */
		if (ops[run.next->op & 15] >= SUPPLY)
			model_check(m);
		execute_next(&run);
	}
	model_check(m);
	model_free(m);
	return 0;
}
