// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle stats: print what rules have done, since when, and how late
 */
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "twctl.h"

/* The first bucket of struct twheel_rule::late is for less than 2^LATE_SHIFT nanoseconds. */
#define LATE_SHIFT	20

static const struct choice choices[] = { CHOICE_JSON, { 0 } };

/* The upper bound of a bucket, exclusive; 0 for the last one, which is unbounded. */
static uint64_t bucket_bound(size_t i)
{
	return i < TWHEEL_RULE_LATE - 1 ? 1ULL << (LATE_SHIFT + i) : 0;
}

/* To the nearest second, so that it is the same when it is asked again. */
static time_t start_time_of(const struct twheel_rule *rule)
{
	const uint64_t second = 1000000000;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	/* Before 1970 if the clock has never been set. */
	return (int64_t)(now.tv_sec * second + now.tv_nsec - rule->age + second / 2) /
	       (int64_t)second;
}

static void print_late(const struct twheel_rule *rule)
{
	size_t i;

	for (i = 0; i < TWHEEL_RULE_LATE; i++) {
		if (!rule->late[i])
			continue;
		if (bucket_bound(i))
			printf("  late by less than %-9s %10" PRIu64 "\n",
			       duration_format(bucket_bound(i)).s, (uint64_t)rule->late[i]);
		else
			printf("  late by %s or more   %10" PRIu64 "\n",
			       duration_format(bucket_bound(i - 1)).s, (uint64_t)rule->late[i]);
	}
}

static void print_rule(const struct twheel_rule *rule)
{
	const time_t begin = start_time_of(rule);
	const char *name;
	char date[32];
	uint64_t value;
	size_t i;

	strftime(date, sizeof(date), "%F %T", localtime(&begin));
	printf("rule %s, id %" PRIu32 ", since %s: ", rule_label(rule).s, rule->id, date);
	rule_print_match(rule);
	putchar('\n');
	for (i = 0; rule_counter(rule, i, &name, &value); i++)
		printf("  %-27s %10" PRIu64 "\n", name, value);
	print_late(rule);
}

static void json_late(struct json *json, const struct twheel_rule *rule)
{
	size_t i;

	json_array(json, "late");
	for (i = 0; i < TWHEEL_RULE_LATE; i++) {
		json_object(json, NULL);
		if (bucket_bound(i))
			json_number(json, "below_ns", bucket_bound(i));
		else
			json_null(json, "below_ns");
		json_number(json, "connections", rule->late[i]);
		json_end(json);
	}
	json_end(json);
}

static void json_rule(struct json *json, const struct twheel_rule *rule)
{
	rule_json(json, rule);
	json_number(json, "since", start_time_of(rule));
	json_number(json, "age_ns", rule->age);
	json_late(json, rule);
	json_end(json);
}

static int run_idle_stats(int argc, char **argv)
{
	const struct twheel_rule *only;
	const char *name = NULL;
	struct json json = { .out = stdout };
	struct rules rules = { 0 };
	bool as_json = false;
	size_t i;

	while (next_option(&idle_stats_command, argc, argv) >= 0)
		as_json = true;
	if (optind < argc)
		name = argv[optind++];
	no_operands(&idle_stats_command, argc, argv);
	rules_gather(device_open(), &rules);
	only = name ? rules_require(&rules, name) : NULL;
	if (as_json)
		json_array(&json, NULL);
	for (i = 0; i < rules.nr; i++) {
		if (only && only != &rules.rule[i])
			continue;
		if (as_json)
			json_rule(&json, &rules.rule[i]);
		else
			print_rule(&rules.rule[i]);
	}
	if (as_json)
		json_end(&json);
	return 0;
}

const struct command idle_stats_command = {
	.name		= "idle stats",
	.operands	= "[ID | NAME]",
	.summary	= "what rules have closed, since when, and how late",
	.choices	= choices,
	.run		= run_idle_stats,
};
