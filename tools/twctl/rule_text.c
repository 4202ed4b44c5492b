// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: a rule as the options that it was added with
 */
#include <inttypes.h>

#include "twctl.h"

/* Prints an option's name; @gap is what separates it from the one before. */
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
	if (rule->flags & TWHEEL_RULE_LOCAL_PORT)
		print_count(gap, "port", rule->local_port);
	if (rule->flags & TWHEEL_RULE_REMOTE_PORT)
		print_count(gap, "remote-port", rule->remote_port);
	if (rule->flags & TWHEEL_RULE_PID)
		print_count(gap, "pid", rule->pid);
	if (rule->flags & TWHEEL_RULE_UID)
		print_count(gap, "uid", rule->uid);
	if (rule->flags & TWHEEL_RULE_CGROUP)
		print_word(gap, "cgroup", cgroup_name(rule->cgroup).path);
}

/**
 * rule_text - print a rule's options
 * @rule:	the rule
 *
 * Defaults are left out. idle_options() makes the same rule of what is printed.
 */
void rule_text(const struct twheel_rule *rule)
{
	struct twheel_rule spec = rule_spec(rule);
	const char *gap = "";

	print_match(&gap, &spec);
	print_time(&gap, "timeout", spec.idle);
	print_time(&gap, "lifetime", spec.lifetime);
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
