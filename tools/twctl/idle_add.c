// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle add: add a rule, with a name, last or before another one
 */
#include <err.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"

/* Looks up the rule given to --before. */
static void find_place(struct rule_options *options, const struct rules *rules)
{
	const struct twheel_rule *before;

	if (!options->before)
		return;
	before = rules_find(rules, options->before);
	if (!before)
		errx(EXIT_FAILED, "there is no rule '%s' to come before; see 'twctl idle list'",
		     options->before);
	options->rule.before = before->id;
}

/* Refuses a rule that equals an existing one: it would never apply, so it must be a mistake. */
static void refuse_duplicate(const struct rule_options *options, const struct rules *rules)
{
	struct twheel_rule named;
	size_t i;

	for (i = 0; i < rules->nr; i++) {
		named = options->rule;
		memcpy(named.name, rules->rule[i].name, sizeof(named.name));
		if (rule_same(&named, &rules->rule[i]))
			errx(EXIT_FAILED, "rule %s is the same; change it with 'twctl idle set'",
			     rule_label(&rules->rule[i]).s);
	}
}

/* Warns if a rule that comes before the new one matches all of its connections. */
static void warn_if_covered(const struct twheel_rule *rule, const struct rules *rules)
{
	size_t i;

	for (i = 0; i < rules->nr && rules->rule[i].id != rule->before; i++) {
		if (!rule_covers(&rules->rule[i], rule))
			continue;
		warnx("rule %s will never apply: rule %s comes before it and takes all; %s",
		      rule_label(rule).s, rule_label(&rules->rule[i]).s,
		      "remove one, or add this one with --before");
		return;
	}
}

static void print_overdue(const struct twheel_rule *rule)
{
	const uint64_t ns = rule->overdue * (1000000000ULL / rule_rate(rule));

	if (!rule->overdue)
		return;
	printf("%" PRIu64 " of %" PRIu64 " connections have been idle for longer already: %s\n",
	       (uint64_t)rule->overdue, (uint64_t)rule->matched,
	       rule->flags & TWHEEL_RULE_DRY_RUN ? "only counted, as this is a dry run" :
						   "they are closed now");
	if (!(rule->flags & TWHEEL_RULE_DRY_RUN) && ns >= 1000000000ULL)
		printf("at %" PRIu32 " a second this takes %s\n", rule_rate(rule),
		       duration_format(ns).s);
}

static void print_json(const struct twheel_rule *rule)
{
	struct json json = { .out = stdout };

	json_object(&json, NULL);
	json_number(&json, "id", rule->id);
	json_number(&json, "matched", rule->matched);
	json_number(&json, "overdue", rule->overdue);
	json_end(&json);
}

/**
 * idle_add - add the rule that the options specify
 * @options:	the options
 *
 * Return: the exit status.
 */
int idle_add(struct rule_options *options)
{
	struct twheel_rule *rule = &options->rule;
	struct rules rules = { 0 };
	int fd;

	rule_options_check(options);
	if (!rule_families(rule))
		refuse("%s", NO_FAMILY);
	fd = device_open();
	rules_lock();
	rules_gather(fd, &rules);
	find_place(options, &rules);
	refuse_duplicate(options, &rules);
	rules_add(fd, rule);
	if (rule_options_has(options, 'j')) {
		print_json(rule);
	} else {
		printf("rule %s\n", rule_label(rule).s);
		print_overdue(rule);
	}
	warn_if_covered(rule, &rules);
	return 0;
}

static int run_idle_add(int argc, char **argv)
{
	struct rule_options options = { .command = &idle_add_command };

	rule_options_read(&options, argc, argv);
	if (optind < argc) {
		if (rule_options_has(&options, 'N'))
			usage(&idle_add_command, "give the name once");
		rule_name_parse(&idle_add_command, argv[optind++], options.rule.name);
	}
	no_operands(&idle_add_command, argc, argv);
	return idle_add(&options);
}

const struct command idle_add_command = {
	.name		= "idle add",
	.operands	= "[NAME]",
	.summary	= "add a rule, with a name",
	.choices	= rule_choices,
	.run		= run_idle_add,
};
