// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: printing a rule as the options that create it
 */
#include <inttypes.h>
#include <stdlib.h>

#include "twctl.h"

/* Prints an option's name after @gap, and sets @gap to what separates it from the next one. */
static void print_option(const char **gap, const char *option)
{
	printf("%s--%s", *gap, option);
	*gap = " ";
}

static void print_count(const char **gap, const char *option, uint64_t value)
{
	print_option(gap, option);
	printf(" %" PRIu64, value);
}

static void print_word(const char **gap, const char *option, const char *value)
{
	print_option(gap, option);
	putchar(' ');
	words_print(value);
}

static void print_time(const char **gap, const char *option, uint64_t ns)
{
	if (ns)
		print_word(gap, option, duration_exact(ns).s);
}

static void print_match(const char **gap, const struct twheel_rule *rule)
{
	const struct rule_list *list;
	char *text;

	for (list = rule_lists; list->option; list++) {
		text = rule_lists_text(rule, list);
		if (text)
			print_word(gap, list->option, text);
		free(text);
	}
	if (rule->flags & TWHEEL_RULE_PID)
		print_count(gap, "pid", rule->pid);
	if (rule->flags & TWHEEL_RULE_UID)
		print_count(gap, "uid", rule->uid);
	if (rule->flags & TWHEEL_RULE_CGROUP)
		print_word(gap, "cgroup", cgroup_name(rule->cgroup).path);
}

/**
 * rule_text - print a rule as options
 * @rule:	the rule
 *
 * Defaults are left out. rule_options_read() turns the output into the same rule again.
 */
void rule_text(const struct twheel_rule *rule)
{
	struct twheel_rule spec = rule_spec(rule);
	const char *gap = "";

	if (*spec.name)
		print_word(&gap, "name", spec.name);
	print_match(&gap, rule);
	if (spec.flags & TWHEEL_RULE_KEEP) {
		print_option(&gap, "keep");
		putchar('\n');
		return;
	}
	print_time(&gap, "timeout", spec.idle);
	print_time(&gap, "lifetime", spec.lifetime);
	if (spec.stalled == 1)
		print_word(&gap, "stalled", "none");
	else if (spec.stalled != TWHEEL_RULE_STALLED)
		print_time(&gap, "stalled", spec.stalled);
	print_time(&gap, "spread", spec.spread);
	if (spec.flags & (TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT))
		print_word(&gap, "activity", rule_activity(&spec));
	if (spec.flags & TWHEEL_WATCH_SHUTDOWN)
		print_word(&gap, "action", rule_action(&spec));
	if (spec.rate != TWHEEL_RULE_RATE)
		print_count(&gap, "rate", spec.rate);
	if (spec.flags & TWHEEL_RULE_DRY_RUN)
		print_option(&gap, "dry-run");
	putchar('\n');
}
