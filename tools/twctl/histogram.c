// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl histogram: how late timers have expired
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "twctl.h"

#define BAR	40

/* In tenths of a percent */
static const unsigned int percentiles[] = { 500, 900, 990, 999, 1000 };

/* The upper bound of a bucket, exclusive; UINT64_MAX for the last one, which is unbounded. */
static uint64_t bucket_bound(const struct pairs *late, size_t i)
{
	return strcmp(late->pair[i].name, "inf") ?
	       strtoull(late->pair[i].name, NULL, 10) : UINT64_MAX;
}

/* Counts all timers, and those in the fullest bucket. */
static void count_timers(const struct pairs *late, uint64_t *all, uint64_t *max)
{
	size_t i;

	*all = *max = 0;
	for (i = 0; i < late->nr; i++) {
		*all += late->pair[i].value;
		if (late->pair[i].value > *max)
			*max = late->pair[i].value;
	}
}

/* The bound that @permille of all timers are below; there is at least one timer. */
static uint64_t percentile_bound(const struct pairs *late, uint64_t all, unsigned int permille)
{
	unsigned __int128 wanted = (unsigned __int128)all * permille, sum = 0;
	size_t i;

	for (i = 0; i < late->nr - 1; i++) {
		sum += late->pair[i].value;
		if (sum * 1000 >= wanted)
			break;
	}
	return bucket_bound(late, i);
}

static struct text format_bound(uint64_t ns)
{
	struct text more = { "more" };

	return ns == UINT64_MAX ? more : duration_format(ns);
}

static void print_bar(uint64_t value, uint64_t max)
{
	int length = (unsigned __int128)value * BAR / max;

	while (length--)
		putchar('#');
	putchar('\n');
}

static void print_histogram(const struct pairs *late)
{
	uint64_t all, max, value;
	size_t i;

	count_timers(late, &all, &max);
	if (!all) {
		puts("no timer has expired yet");
		return;
	}
	printf("%12s %12s %8s\n", "less than", "timers", "percent");
	for (i = 0; i < late->nr; i++) {
		value = late->pair[i].value;
		printf("%12s %12" PRIu64 " %8.3f  ", format_bound(bucket_bound(late, i)).s, value,
		       100.0 * value / all);
		print_bar(value, max);
	}
	for (i = 0; i < ARRAY_SIZE(percentiles); i++)
		printf("%5.1f %% less than %s\n", percentiles[i] / 10.0,
		       format_bound(percentile_bound(late, all, percentiles[i])).s);
}

static void json_bound(struct json *json, const char *name, uint64_t ns)
{
	if (ns == UINT64_MAX)
		json_null(json, name);
	else
		json_number(json, name, ns);
}

static void json_histogram(const struct pairs *late)
{
	struct json json = { .out = stdout };
	uint64_t all, max;
	struct text name;
	size_t i;

	count_timers(late, &all, &max);
	json_object(&json, NULL);
	json_number(&json, "timers", all);
	json_array(&json, "buckets");
	for (i = 0; i < late->nr; i++) {
		json_object(&json, NULL);
		json_bound(&json, "below_ns", bucket_bound(late, i));
		json_number(&json, "timers", late->pair[i].value);
		json_end(&json);
	}
	json_end(&json);
	json_object(&json, "percentiles_below_ns");
	for (i = 0; all && i < ARRAY_SIZE(percentiles); i++) {
		snprintf(name.s, sizeof(name.s), "%g", percentiles[i] / 10.0);
		json_bound(&json, name.s, percentile_bound(late, all, percentiles[i]));
	}
	json_end(&json);
	json_end(&json);
}

static const struct choice choices[] = { CHOICE_JSON, { 0 } };

static int run_histogram(int argc, char **argv)
{
	bool as_json = false;
	struct pairs late;

	while (next_option(&histogram_command, argc, argv) >= 0)
		as_json = true;
	no_operands(&histogram_command, argc, argv);
	debugfs_read("lateness", &late);
	(as_json ? json_histogram : print_histogram)(&late);
	return 0;
}

const struct command histogram_command = {
	.name		= "histogram",
	.operands	= "",
	.summary	= "how late timers have expired since the module was loaded",
	.choices	= choices,
	.run		= run_histogram,
};
