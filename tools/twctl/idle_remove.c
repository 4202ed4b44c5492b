// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle remove: remove one rule, or all
 */
#include <string.h>
#include <unistd.h>

#include "twctl.h"

static const struct choice choices[] = { { 0 } };

static int run_idle_remove(int argc, char **argv)
{
	const struct twheel_rule *rule;
	struct rules rules = { 0 };
	const char *name;
	int fd;

	next_option(&idle_remove_command, argc, argv);
	if (optind == argc)
		usage(&idle_remove_command, "which rule? Give its ID or NAME, or 'all'");
	name = argv[optind++];
	no_operands(&idle_remove_command, argc, argv);
	fd = device_open();
	rules_lock();
	if (!strcmp(name, "all")) {
		rules_remove_all(fd);
		return 0;
	}
	rules_gather(fd, &rules);
	rule = rules_require(&rules, name);
	rules_remove(fd, rule->id);
	return 0;
}

const struct command idle_remove_command = {
	.name		= "idle remove",
	.operands	= "ID | NAME | all",
	.summary	= "remove a rule, or all; their connections stay as they are",
	.choices	= choices,
	.run		= run_idle_remove,
};
