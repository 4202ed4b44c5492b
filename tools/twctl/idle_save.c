// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle save: print the rules in the format of 'twctl idle load'
 */
#include <stddef.h>

#include "twctl.h"

/* Returns why a rule would be meaningless after a reboot, or NULL. */
static const char *explain_left_out(const struct twheel_rule *rule)
{
	if (rule->flags & TWHEEL_RULE_PID)
		return "a process does not survive a reboot";
	if ((rule->flags & TWHEEL_RULE_CGROUP) && !cgroup_exists(rule->cgroup))
		return "its cgroup is gone, or not visible from here";
	return NULL;
}

static const struct choice choices[] = { { 0 } };

static int run_idle_save(int argc, char **argv)
{
	struct rules rules = { 0 };
	const char *why;
	size_t i;

	next_option(&idle_save_command, argc, argv);
	no_operands(&idle_save_command, argc, argv);
	rules_gather(device_open(), &rules);
	puts("# For 'twctl idle load'.");
	for (i = 0; i < rules.nr; i++) {
		why = explain_left_out(&rules.rule[i]);
		if (why)
			printf("# Left out, as %s: ", why);
		rule_text(&rules.rule[i]);
	}
	return 0;
}

const struct command idle_save_command = {
	.name		= "idle save",
	.operands	= "",
	.summary	= "print the rules as 'idle load' reads them",
	.choices	= choices,
	.run		= run_idle_save,
};
