// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle list: list the rules
 */
#include <inttypes.h>

#include "twctl.h"

static struct text format_limit(uint64_t ns)
{
	struct text none = { "-" };

	return ns ? duration_format(ns) : none;
}

static void print_rule(const struct twheel_rule *rule)
{
	printf("%5" PRIu32 " %-10s ", rule->id, *rule->name ? rule->name : "-");
	printf("%9s %9s %9s %-8s %-8s %8" PRIu32 " %10" PRIu64 " %10" PRIu64 " %11" PRIu64 "  ",
	       format_limit(rule->idle).s, format_limit(rule->lifetime).s,
	       format_limit(rule->spread).s, rule->idle ? rule_activity(rule) : "-",
	       rule->flags & TWHEEL_RULE_DRY_RUN ? "dry-run" : rule_action(rule), rule_rate(rule),
	       (uint64_t)rule->watched, (uint64_t)rule->closed, (uint64_t)rule->would_close);
	rule_print_match(rule);
	putchar('\n');
}

static const struct choice choices[] = { CHOICE_JSON, { 0 } };

static int run_idle_list(int argc, char **argv)
{
	struct json json = { .out = stdout };
	struct rules rules = { 0 };
	bool as_json = false;
	size_t i;

	while (next_option(&idle_list_command, argc, argv) >= 0)
		as_json = true;
	no_operands(&idle_list_command, argc, argv);
	rules_gather(device_open(), &rules);
	if (as_json)
		json_array(&json, NULL);
	else
		printf("%5s %-10s %9s %9s %9s %-8s %-8s %8s %10s %10s %11s  %s\n",
		       "ID", "NAME", "TIMEOUT",
		       "LIFETIME", "SPREAD", "ACTIVITY", "ACTION", "RATE", "WATCHED", "CLOSED",
		       "WOULD-CLOSE", "CONNECTIONS");
	for (i = 0; i < rules.nr; i++) {
		if (as_json) {
			rule_json(&json, &rules.rule[i]);
			json_end(&json);
		} else {
			print_rule(&rules.rule[i]);
		}
	}
	if (as_json)
		json_end(&json);
	return 0;
}

const struct command idle_list_command = {
	.name		= "idle list",
	.operands	= "",
	.summary	= "the rules",
	.choices	= choices,
	.run		= run_idle_list,
};
