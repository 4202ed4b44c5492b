// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench compare: the table, and what it comes to
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench-common.h"
#include "compare.h"

static const char *const verdict_names[] = {
	[NOT_JUDGED]	= "",
	[SAME]		= "",
	[FASTER]	= "faster",
	[SLOWER]	= "slower",
};

static void print_run(const char *name, const struct run *run)
{
	printf("%s %s: twbench %s, kernel %s, lane %s, seed %llu\n", name, run->file,
	       run->version, run->kernel, run->lane, (unsigned long long)run->seed);
}

/* What everything is measured in. */
static void print_unit(const struct comparison *comparison)
{
	const struct run *run = &comparison->after;

	if (!comparison->absolute)
		printf("x %s%s", compare_reference(run), run->api ? " of rearm_later" : "");
	else
		printf("%s per operation", strcmp(run->lane, "exact") ? "ns" : "instructions");
}

static void print_head(const struct comparison *comparison, const struct measured *figure)
{
	printf("\nn = %u, %s order, ", figure->nr_timers, figure->order);
	print_unit(comparison);
	printf("\n%-14s %-16s %10s %10s %9s  %18s\n", "workload", "scheme", "before", "after",
	       "change, %", "interval");
}

/**
 * compare_percent - print a change
 * @ratio:	the relative change: 0.05 is 5 %
 * @width:	width of the column
 */
void compare_percent(double ratio, int width)
{
	double percent = ratio * 100;

	/* Not "-0.0". */
	if (fabs(percent) < 0.05)
		percent = 0;
	/* With two rounds, an interval may have no end to speak of. */
	if (percent < 10000)
		printf("%+*.1f", width, percent);
	else
		printf("%*s", width, "> 10000");
}

static void print_change(const struct comparison *comparison, const struct change *change)
{
	const struct measured *figure = change->after.figure;
	int decimals = comparison->absolute ? 1 : 3;

	printf("%-14s %-16s %10.*f %10.*f ", figure->workload, figure->scheme, decimals,
	       change->from, decimals, change->to);
	compare_percent(change->change, 9);
	if (change->verdict == NOT_JUDGED) {
		printf("  %18s  %s", "-", change->rounds > 1 ? "two samples" : "one sample");
	} else {
		fputs("  ", stdout);
		compare_percent(change->low, 7);
		fputs(" to ", stdout);
		compare_percent(change->high, 7);
	}
	printf("%s%s\n", *verdict_names[change->verdict] ? "  " : "",
	       verdict_names[change->verdict]);
}

static void print_changes(const struct comparison *comparison)
{
	const struct measured *figure, *last = NULL;
	size_t i;

	for (i = 0; i < comparison->nr; i++) {
		figure = comparison->change[i].after.figure;
		if (!last || figure->nr_timers != last->nr_timers ||
		    strcmp(figure->order, last->order))
			print_head(comparison, figure);
		else if (strcmp(figure->workload, last->workload))
			putchar('\n');
		print_change(comparison, &comparison->change[i]);
		last = figure;
	}
}

/* Names the figures that only @run has. */
static void print_missing(const struct run *run, const struct run *other)
{
	const struct measured *first = NULL;
	size_t nr = 0, i;

	for (i = 0; i < run->nr; i++) {
		if (compare_find(other, &run->figure[i]))
			continue;
		if (!nr++)
			first = &run->figure[i];
	}
	if (!nr)
		return;
	printf("Only in %s: %s of %s with n = %u", run->file, first->workload, first->scheme,
	       first->nr_timers);
	if (nr > 1)
		printf(", and %zu more", nr - 1);
	puts(".");
}

static size_t count(const struct comparison *comparison, enum verdict verdict)
{
	size_t nr = 0, i;

	for (i = 0; i < comparison->nr; i++)
		nr += comparison->change[i].verdict == verdict;
	return nr;
}

static void print_summary(const struct comparison *comparison)
{
	size_t nr = comparison->nr_judged, few = count(comparison, NOT_JUDGED);

	printf("Of %zu figures, %zu are slower beyond noise and %zu faster. ", nr,
	       count(comparison, SLOWER), count(comparison, FASTER));
	puts("With 95 % confidence, all intervals are right.");
	if (few)
		printf("Not judged, having fewer than %s samples, which show no noise: %zu%s.\n",
		       compare_rounds_needed(comparison) > 2 ? "three" : "two", few,
		       comparison->after.api ? "" : "; use --rounds 5");
	if (comparison->nr_alone)
		printf("Not compared, having no %s beside them: %zu; --absolute compares times.\n",
		       compare_reference(&comparison->after), comparison->nr_alone);
	if (comparison->nr_failed)
		printf("Slower by %g %% or more: %zu.\n", comparison->fail * 100,
		       comparison->nr_failed);
}

/**
 * compare_print - print everything
 * @comparison:	the comparison, after compare_judge()
 */
void compare_print(const struct comparison *comparison)
{
	print_run("before", &comparison->before);
	print_run("after ", &comparison->after);
	print_changes(comparison);
	compare_memory(comparison);
	putchar('\n');
	print_missing(&comparison->before, &comparison->after);
	print_missing(&comparison->after, &comparison->before);
	print_summary(comparison);
}
