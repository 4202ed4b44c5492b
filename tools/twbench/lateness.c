// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: how late timers are
 */
#include "twbench.h"

#define SHORTEST	1000000ULL
#define LONGEST		60000000000ULL

/**
 * lateness_measure - measure how late the timers of each chosen scheme are
 * @setup:	what was chosen; if @nr_lateness is 0, nothing is measured
 * @results:	the results are added to these
 */
void lateness_measure(const struct setup *setup, struct results *results)
{
	struct twheel_bench_lateness *lateness;
	uint32_t i;

	if (!setup->nr_lateness)
		return;
	results->lateness = allocate(setup->info.nr_schemes, sizeof(*lateness));
	for (i = 0; i < setup->info.nr_schemes; i++) {
		if (!setup->max_timers[i] || !setup->schemes[i].checked)
			continue;
		lateness = &results->lateness[results->nr_lateness++];
		*lateness = (struct twheel_bench_lateness) {
			.seed		= setup->common.seed,
			.scheme		= i,
			.nr_timers	= setup->nr_lateness,
			.min_ns		= SHORTEST,
			.max_ns		= LONGEST,
		};
		device_lateness(setup, lateness);
	}
}

/* Does any scheme have timers in this bucket, or beyond it in this direction? */
static bool has_timers_from(const struct results *results, int bucket, int direction)
{
	size_t i;

	for (; bucket >= 0 && bucket < TWHEEL_BENCH_LATE_BUCKETS; bucket += direction)
		for (i = 0; i < results->nr_lateness; i++)
			if (results->lateness[i].late[bucket])
				return true;
	return false;
}

static void print_bound(FILE *out, int bucket)
{
	if (bucket == TWHEEL_BENCH_LATE_BUCKETS - 1)
		fprintf(out, "%-19s", "more");
	else
		fprintf(out, "less than %9.4f", (1ULL << bucket) / 1e6);
}

/**
 * lateness_print - print a histogram
 * @out:	the stream to write to
 * @setup:	what was compared
 * @results:	the results; without any, nothing is printed
 */
void lateness_print(FILE *out, const struct setup *setup, const struct results *results)
{
	const struct twheel_bench_lateness *lateness = results->lateness;
	size_t nr = results->nr_lateness, i;
	int bucket;

	if (!nr)
		return;
	fprintf(out, "\nlateness of %u timers of %.0f ms to %.0f s, every magnitude alike\n",
		lateness->nr_timers, lateness->min_ns / 1e6, lateness->max_ns / 1e9);
	fprintf(out, "%-19s", "milliseconds");
	for (i = 0; i < nr; i++)
		fprintf(out, " %12s", setup->schemes[lateness[i].scheme].name);
	fprintf(out, "\n%-19s", "early");
	for (i = 0; i < nr; i++)
		fprintf(out, " %12llu", lateness[i].early);
	fputc('\n', out);
	for (bucket = 0; bucket < TWHEEL_BENCH_LATE_BUCKETS; bucket++) {
		if (!has_timers_from(results, bucket, -1) || !has_timers_from(results, bucket, 1))
			continue;
		print_bound(out, bucket);
		for (i = 0; i < nr; i++)
			fprintf(out, " %12llu", lateness[i].late[bucket]);
		fputc('\n', out);
	}
	fprintf(out, "%-19s", "worst");
	for (i = 0; i < nr; i++)
		fprintf(out, " %12.3f", lateness[i].worst_ns / 1e6);
	fputc('\n', out);
	fflush(out);
}
