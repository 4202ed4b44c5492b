// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle remove: remove a rule, or all
 */
#include <string.h>
#include <unistd.h>

#include "twctl.h"

static const struct choice choices[] = { { 0 } };

static int run(int argc, char **argv)
{
	uint32_t id = 0;
	int fd;

	next_option(&idle_remove_command, argc, argv);
	if (optind == argc)
		usage(&idle_remove_command, "which rule? Give its ID, or 'all'");
	if (strcmp(argv[optind], "all"))
		id = parse_count(&idle_remove_command, "ID", argv[optind], UINT32_MAX);
	optind++;
	no_operands(&idle_remove_command, argc, argv);
	fd = device_open();
	if (id) {
		rules_remove(fd, id);
		return 0;
	}
	rules_remove_all(fd);
	return 0;
}

const struct command idle_remove_command = {
	.name		= "idle remove",
	.operands	= "ID | all",
	.summary	= "remove a rule, or all; their connections stay as they are",
	.choices	= choices,
	.run		= run,
};
