// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle set: change the limits of a rule, which keeps its connections and its counters
 */
#include <err.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"

static const struct choice choices[] = {
	{ "name", 'N', "NAME", "what the rule is called from now on; '' for no name" },
	{ "timeout", 't', "DURATION", "close connections after so long without data; or none" },
	{ "lifetime", 'l', "DURATION", "close them after so long, idle or not; or none" },
	{ "stalled", 'S', "DURATION", "but let a peer have so long for data on its way" },
	{ "activity", 'a', "WHAT", "what counts: data received, sent, or either" },
	{ "action", 'A', "ACTION", "how: abort, or shutdown" },
	{ "keep", 'k', NULL, "do not close them any more: they are exceptions" },
	{ "rate", 'R', "N", "close up to N a second" },
	{ "spread", 's', "DURATION", "each later by a random time of up to DURATION" },
	{ "dry-run", 'd', NULL, "only count what would be closed" },
	{ "live", 'L', NULL, "close it" },
	{ 0 },
};

/*
 * Turns the rule into an exception, which has nothing but its name, or an exception into a rule
 * that closes connections, and so needs limits and an action.
 */
static void apply_keep(struct rule_options *options, bool was_kept)
{
	struct twheel_rule *rule = &options->rule;

	if (rule_options_has(options, 'k')) {
		rule->flags = TWHEEL_RULE_KEEP;
		rule->rate = 0;
		rule->idle = 0;
		rule->lifetime = 0;
		rule->spread = 0;
		rule->stalled = 0;
	} else if (was_kept && options->given & ~(1ULL << ('N' - 'A'))) {
		rule->flags &= ~TWHEEL_RULE_KEEP;
		if (!(rule->flags & (TWHEEL_WATCH_ABORT | TWHEEL_WATCH_SHUTDOWN)))
			rule->flags |= TWHEEL_WATCH_ABORT;
	}
	if (!(rule->flags & TWHEEL_RULE_KEEP) && !rule->idle && !rule->lifetime)
		usage(&idle_set_command, "without a timeout and a lifetime %s",
		      "it would close nothing; give one, or --keep");
}

static int run_idle_set(int argc, char **argv)
{
	struct rule_options options = { .command = &idle_set_command };
	const struct twheel_rule *rule;
	struct rules rules = { 0 };
	const char *why, *name;
	int fd;

	/* Parse the options twice: first to find the rule's name, then to change the rule. */
	rule_options_read(&options, argc, argv);
	if (optind == argc)
		usage(&idle_set_command, "which rule? Give its ID or NAME");
	if (!options.given)
		usage(&idle_set_command, "what is to be changed?");
	if (rule_options_has(&options, 'k'))
		rule_options_check_keep(&options);
	name = argv[optind++];
	no_operands(&idle_set_command, argc, argv);
	fd = device_open();
	rules_lock();
	rules_gather(fd, &rules);
	rule = rules_require(&rules, name);
	options.rule = rule_limits(rule);
	optind = 0;
	rule_options_read(&options, argc, argv);
	if (rule_options_has(&options, 'L') && rule_options_has(&options, 'd'))
		usage(&idle_set_command, "--live and --dry-run exclude each other");
	if (rule_options_has(&options, 'L'))
		options.rule.flags &= ~TWHEEL_RULE_DRY_RUN;
	apply_keep(&options, rule->flags & TWHEEL_RULE_KEEP);
	why = rules_try_set(fd, &options.rule);
	if (why)
		errx(EXIT_FAILED, "%s: cannot change rule %s: %s", DEVICE, rule_label(rule).s, why);
	return 0;
}

const struct command idle_set_command = {
	.name		= "idle set",
	.operands	= "ID | NAME",
	.summary	= "change a rule; its connections and what it has counted stay",
	.choices	= choices,
	.run		= run_idle_set,
};
