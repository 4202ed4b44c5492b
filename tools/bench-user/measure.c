// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: the rounds
 */
#include <err.h>

#include "bench.h"

const struct scheme *const schemes[] = {
	&scheme_wheel,
#ifdef WITH_LIBEV
	&scheme_libev,
#endif
};

const size_t nr_schemes = ARRAY_SIZE(schemes);

const char *const workload_names[NR_WORKLOADS] = {
	[ADD_SEQUENTIAL]	= "add_sequential",
	[ADD_RANDOM]		= "add_random",
	[REARM_LATER]		= "rearm_later",
	[REARM_EARLIER]		= "rearm_earlier",
	[CANCEL]		= "cancel",
	[EXPIRE]		= "expire",
};

/*
 * The limit line: reads, changes and writes each object, in random order. No scheme that has to
 * touch each timer can be faster.
 */
static __attribute__((noipa)) void touch_objects(struct object *objects, const uint32_t *order,
						 size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		objects[order[i]].value += i;
}

static double measure_limit(struct work *work)
{
	double start = clock_ns();

	touch_objects(work->objects, work->order, work->size);
	return (clock_ns() - start) / work->size;
}

/*
 * A store whose address has to be read from the object first. If the processor has been told not to
 * let later loads pass it (SSBD, which some hosts of virtual machines set), these wait for it: then
 * no cancel can be faster.
 */
static __attribute__((noipa)) void store_through(struct object *objects, const uint32_t *order,
						 size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		*(volatile size_t *)objects[order[i]].value = i;
}

/* Returns the ratio of that to the limit line, taking the minimum of each. */
static double measure_stores(struct work *work)
{
	double start, limit = 0, stores = 0, ns;
	uint64_t target[64];
	size_t i, j;

	shuffle(work);
	for (i = 0; i < 5; i++) {
		ns = measure_limit(work);
		if (!i || ns < limit)
			limit = ns;
		for (j = 0; j < work->size; j++)
			work->objects[j].value = (uint64_t)&target[j % ARRAY_SIZE(target)];
		start = clock_ns();
		store_through(work->objects, work->order, work->size);
		ns = (clock_ns() - start) / work->size;
		if (!i || ns < stores)
			stores = ns;
	}
	return stores / limit;
}

static double measure_workload(const struct scheme *scheme, struct work *work,
			       enum workload workload, uint32_t last)
{
	double start = clock_ns();

	switch (workload) {
	case ADD_SEQUENTIAL:
	case ADD_RANDOM:
		scheme->add(work->objects, work->steps, work->size);
		break;
	case REARM_LATER:
	case REARM_EARLIER:
		scheme->rearm(work->objects, work->steps, work->size);
		break;
	case CANCEL:
		scheme->cancel(work->objects, work->steps, work->size);
		break;
	default:
		scheme->expire(last);
	}
	return (clock_ns() - start) / work->size;
}

/* Exits unless all timers are pending, or none, and have fired as often as @workload implies. */
static void check_timers(const struct scheme *scheme, const struct work *work,
			 enum workload workload)
{
	bool pending = workload != CANCEL && workload != EXPIRE;
	uint64_t fired = workload == EXPIRE;
	const struct object *object;
	size_t i;

	for (i = 0; i < work->size; i++) {
		object = &work->objects[i];
		if (scheme->pending(object) != pending)
			errx(EXIT_FAILED, "%s: after %s, timer %zu is %spending", scheme->name,
			     workload_names[workload], i, pending ? "not " : "");
		if (object->fired != fired)
			errx(EXIT_FAILED, "%s: after %s, timer %zu has fired %llu times",
			     scheme->name, workload_names[workload], i,
			     (unsigned long long)object->fired);
	}
}

static void begin_run(const struct scheme *scheme, struct work *work, bool expire)
{
	size_t i;

	for (i = 0; i < work->size; i++) {
		work->objects[i] = (struct object) { 0 };
		scheme->init(&work->objects[i]);
	}
	scheme->begin(expire ? scheme->shorter : 1);
}

static void cancel_all(const struct scheme *scheme, struct work *work)
{
	make_steps(work, CANCEL);
	scheme->cancel(work->objects, work->steps, work->size);
	check_timers(scheme, work, CANCEL);
}

/* Runs all workloads of a scheme in sequence. If @round is negative, the results are dropped. */
static void run_scheme(const struct scheme *scheme, struct work *work, struct record *record,
		       int round)
{
	enum workload workload;
	double limit, ns;
	uint32_t last;

	begin_run(scheme, work, false);
	for (workload = 0; workload < NR_WORKLOADS; workload++) {
		if (workload == EXPIRE)
			begin_run(scheme, work, true);
		last = make_steps(work, workload);
		if (workload == EXPIRE)
			scheme->add(work->objects, work->steps, work->size);
		limit = measure_limit(work);
		ns = measure_workload(scheme, work, workload, last);
		check_timers(scheme, work, workload);
		if (workload == ADD_RANDOM)
			record[workload].memory = scheme->timer_bytes +
				(double)scheme->memory() / work->size;
		/* Does not help the following workloads: what this leaves is in random order. */
		if (workload == ADD_SEQUENTIAL)
			cancel_all(scheme, work);
		if (round < 0)
			continue;
		add_sample(&record[workload].ns, ns);
		add_sample(&record[workload].limit, limit);
		add_sample(&record[workload].ratio, ns / limit);
	}
}

static void make_records(size_t size, unsigned int rounds, struct record *record)
{
	size_t i;

	for (i = 0; i < nr_schemes * NR_WORKLOADS; i++)
		record[i] = (struct record) {
			.scheme		= schemes[i / NR_WORKLOADS],
			.workload	= i % NR_WORKLOADS,
			.size		= size,
			.ns		= new_samples(rounds),
			.limit		= new_samples(rounds),
			.ratio		= new_samples(rounds),
		};
}

/**
 * measure_size - measure all schemes, for one number of timers
 * @setup:	what was chosen
 * @size:	number of timers
 * @record:	filled in: for each scheme, all workloads
 * @memory:	filled in: the properties of the memory
 *
 * Each round runs every scheme, so that variations over time on a busy machine affect all of them.
 * The first round, in which memory is allocated, does not count.
 */
void measure_size(const struct common_setup *setup, size_t size, struct record *record,
		  struct memory *memory)
{
	struct work work = {
		.size		= size,
		.objects	= large_alloc(size * sizeof(*work.objects)),
		.order		= large_alloc(size * sizeof(*work.order)),
		.steps		= large_alloc(size * sizeof(*work.steps)),
		.time		= large_alloc(size * sizeof(*work.time)),
	};
	int round, rounds = setup->rounds;
	size_t i;

	make_records(size, rounds, record);
	for (i = 0; i < size; i++)
		work.order[i] = i;
	memory->large = large_bytes(work.objects);
	memory->stores = measure_stores(&work);
	for (i = 0; i < nr_schemes; i++)
		schemes[i]->create(size);
	for (round = -1; round < rounds; round++) {
		for (i = 0; i < nr_schemes; i++) {
			work.random = setup->seed + round;
			run_scheme(schemes[i], &work, record + i * NR_WORKLOADS, round);
		}
	}
	for (i = 0; i < nr_schemes; i++)
		schemes[i]->destroy();
	for (i = 0; i < nr_schemes * NR_WORKLOADS; i++) {
		summarise(&record[i].ns);
		summarise(&record[i].limit);
		summarise(&record[i].ratio);
	}
	large_free(work.time, size * sizeof(*work.time));
	large_free(work.steps, size * sizeof(*work.steps));
	large_free(work.order, size * sizeof(*work.order));
	large_free(work.objects, size * sizeof(*work.objects));
}
