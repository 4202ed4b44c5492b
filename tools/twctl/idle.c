// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle: add a rule that closes idle connections; subcommands manage the rules
 */
#include "twctl.h"

static int run_idle(int argc, char **argv)
{
	struct rule_options options = { .command = &idle_command };

	rule_options_read(&options, argc, argv);
	no_operands(&idle_command, argc, argv);
	return idle_add(&options);
}

static const struct command *const parts[] = {
	&idle_add_command, &idle_set_command, &idle_list_command, &idle_show_command,
	&idle_stats_command, &idle_watch_command, &idle_log_command, &idle_remove_command,
	&idle_load_command, &idle_save_command, NULL,
};

const struct command idle_command = {
	.name		= "idle",
	.operands	= "",
	.summary	= "close idle TCP connections, of whatever program",
	.choices	= rule_choices,
	.parts		= parts,
	.run		= run_idle,
};
