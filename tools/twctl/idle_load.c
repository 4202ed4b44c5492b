// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle load: replace the rules by those in files
 */
#include <unistd.h>

#include "twctl.h"

static const struct choice choices[] = {
	{ "check", 'c', NULL, "only read them, and print the rules; change nothing" },
	{ 0 },
};

static void print_wanted(const struct wanted_rules *all)
{
	size_t i;

	for (i = 0; i < all->nr; i++)
		rule_text(&all->wanted[i].rule);
}

static int run_idle_load(int argc, char **argv)
{
	struct wanted_rules all = { 0 };
	struct replaced replaced;
	bool check = false;
	const char *path;

	while (next_option(&idle_load_command, argc, argv) >= 0)
		check = true;
	if (optind == argc)
		usage(&idle_load_command, "which rules? Give a FILE, a DIRECTORY, or -");
	path = argv[optind++];
	no_operands(&idle_load_command, argc, argv);
	rule_files_read(path, &all);
	if (check) {
		print_wanted(&all);
		return 0;
	}
	replaced = replace_rules(device_open(), &all);
	printf("rules: %zu kept, %zu changed, %zu added, %zu removed\n", replaced.kept,
	       replaced.changed, replaced.added, replaced.removed);
	return 0;
}

const struct command idle_load_command = {
	.name		= "idle load",
	.operands	= "FILE | DIRECTORY | -",
	.summary	= "have these rules in place of those that there are",
	.choices	= choices,
	.run		= run_idle_load,
};
