// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: rounds and statistics
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "twbench.h"

/* In the order of the tables. */
static const struct figure figures[] = {
	{ "add",		TWHEEL_BENCH_ADD,		false },
	{ "rearm_later",	TWHEEL_BENCH_REARM_LATER,	false },
	{ "rearm_earlier",	TWHEEL_BENCH_REARM_EARLIER,	false },
	{ "cancel",		TWHEEL_BENCH_CANCEL,		false },
	{ "expire",		TWHEEL_BENCH_EXPIRE,		false },
	{ "expire_cpu",		TWHEEL_BENCH_EXPIRE,		true },
	{ "rmw",		TWHEEL_BENCH_RMW,		false },
};

/**
 * rounds_of - get the number of rounds to run
 * @setup:	what was chosen
 * @size:	number of timers
 *
 * The default is smaller for more timers, whose rounds take longer.
 */
unsigned int rounds_of(const struct setup *setup, uint32_t size)
{
	if (setup->common.rounds)
		return setup->common.rounds;
	return size <= 200000 ? 5 : size <= 2000000 ? 3 : 2;
}

static uint32_t workloads_of(const struct setup *setup, uint32_t scheme, uint32_t size)
{
	uint32_t known = setup->schemes[scheme].workloads;

	return size <= setup->max_timers[scheme] ? known & setup->workloads : 0;
}

/* Makes the records of a table, by figure and then by scheme. Returns their number. */
static size_t make_records(const struct setup *setup, uint32_t size, uint32_t order,
			   struct record *record)
{
	unsigned int rounds = rounds_of(setup, size);
	uint32_t scheme;
	size_t nr = 0, i;

	for (i = 0; i < ARRAY_SIZE(figures); i++) {
		for (scheme = 0; scheme < setup->info.nr_schemes; scheme++) {
			if (!(workloads_of(setup, scheme, size) & 1U << figures[i].workload))
				continue;
			record[nr++] = (struct record) {
				.scheme		= setup->schemes[scheme].name,
				.figure		= &figures[i],
				.size		= size,
				.order		= order,
				.time		= new_samples(rounds),
			};
		}
	}
	return nr;
}

/* Adds the results of a run to the records of its scheme. */
static void add_results(const struct setup *setup, const struct twheel_bench_run *run,
			struct record *record, size_t nr)
{
	const char *scheme = setup->schemes[run->scheme].name;
	const struct twheel_bench_result *result;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (strcmp(record[i].scheme, scheme))
			continue;
		result = &run->result[record[i].figure->workload];
		if (!result->ops)
			errx(EXIT_FAILED, "%s: no result for %s", scheme,
			     record[i].figure->name);
		add_sample(&record[i].time,
			   (double)(record[i].figure->cpu ? result->cpu_ns : result->time_ns) /
			   result->ops);
	}
}

static void run_round(const struct setup *setup, struct record *record, size_t nr,
		      unsigned int round)
{
	uint32_t scheme;

	for (scheme = 0; scheme < setup->info.nr_schemes; scheme++) {
		struct twheel_bench_run run = {
			.seed		= setup->common.seed + round,
			.scheme		= scheme,
			.order		= record->order,
			.nr_timers	= record->size,
			.workloads	= workloads_of(setup, scheme, record->size),
		};

		if (!run.workloads)
			continue;
		device_run(setup, &run);
		add_results(setup, &run, record, nr);
	}
}

/* The median of @row as a multiple of that of a scheme's figure; 0 if that was not measured. */
static double multiple_of(const struct record *row, const struct record *record, size_t nr,
			  const char *scheme, const char *figure)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(record[i].scheme, scheme) && record[i].time.median > 0 &&
		    !strcmp(record[i].figure->name, figure))
			return row->time.median / record[i].time.median;
	return 0;
}

/**
 * measure_size - measure everything that was chosen, for one number of timers
 * @setup:	what was chosen
 * @size:	number of timers
 * @order:	order of the objects
 * @records:	the results are added to these
 *
 * Each round runs every scheme, so that variations over time on a busy machine affect all of them.
 */
void measure_size(const struct setup *setup, uint32_t size, uint32_t order,
		  struct records *records)
{
	size_t max = setup->info.nr_schemes * ARRAY_SIZE(figures), nr, i;
	unsigned int round;
	struct record *record;

	records->record = realloc(records->record,
				  (records->nr + max) * sizeof(*records->record));
	if (!records->record)
		errx(EXIT_FAILED, "out of memory");
	record = records->record + records->nr;
	nr = make_records(setup, size, order, record);
	for (round = 0; nr && round < rounds_of(setup, size); round++)
		run_round(setup, record, nr, round);
	for (i = 0; i < nr; i++)
		summarise(&record[i].time);
	for (i = 0; i < nr; i++) {
		record[i].x_timer_list = multiple_of(&record[i], record, nr, "timer_list",
						     record[i].figure->name);
		record[i].x_limit = multiple_of(&record[i], record, nr, "limit", "rmw");
	}
	records->nr += nr;
}

static bool same_row(const struct record *a, const struct record *b)
{
	return a->scheme == b->scheme && a->figure == b->figure && a->order == b->order;
}

/**
 * growth_of - compare a record with those of fewer timers
 * @records:	all records
 * @last:	one of them
 * @growth:	filled in
 *
 * Return: false if there is a record of more timers, or none of fewer.
 */
bool growth_of(const struct records *records, const struct record *last,
	       struct growth *growth)
{
	const struct record *first = last, *record;
	size_t i;

	for (i = 0; i < records->nr; i++) {
		record = &records->record[i];
		if (!same_row(record, last))
			continue;
		if (record->size > last->size)
			return false;
		if (record->size < first->size)
			first = record;
	}
	if (first == last || first->time.median <= 0)
		return false;
	*growth = (struct growth) { .last = last, .from = first->size };
	for (i = 0; i < records->nr; i++) {
		record = &records->record[i];
		if (same_row(record, last) && record->size > first->size &&
		    record->time.median / first->time.median > growth->ratio)
			growth->ratio = record->time.median / first->time.median;
	}
	return true;
}
