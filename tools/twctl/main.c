// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: inspect twheel, and use it from a shell
 *
 * main() looks up the command and runs it. Each command has a file of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "stdout.h"
#include "twctl.h"

static const struct command *const commands[] = {
	&status_command, &watch_command, &list_command, &histogram_command,
	&metrics_command, &info_command, &sleep_command, &add_command, &idle_command,
};

static void print_help(void)
{
	const struct command *command;
	size_t i;

	puts("usage: twctl COMMAND [OPTION...] [OPERAND...]\n"
	     "Look at twheel, and use it from a shell.\n");
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		command = commands[i];
		printf("  %-12s %s\n", command->name, command->summary);
	}
	puts("\n  --help       print this; after a command, what there is to know of it\n"
	     "  --version    print the version\n\n"
	     "Exit status: 0 all went well, 1 something failed, 2 a wrong command line.");
}

/* Returns the subcommand called @word, or the command itself if it has no such subcommand. */
static const struct command *find_part(const struct command *command, const char *word)
{
	const struct command *const *part;

	for (part = command->parts; part && *part && word; part++)
		if (!strcmp(strchr((*part)->name, ' ') + 1, word))
			return *part;
	return command;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	const struct command *part = find_part(command, argv[1]);
	int skip = part != command;

	if (command->parts && !skip && argv[1] && *argv[1] != '-')
		usage(command, "there is no command '%s %s'", command->name, argv[1]);
	return part->run(argc - skip, argv + skip);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	size_t i;

	atexit(close_stdout);
	if (!name)
		usage(NULL, "there is no command");
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		print_help();
		return EXIT_SUCCESS;
	}
	if (!strcmp(name, "--version")) {
		puts("twctl " TWHEEL_VERSION);
		return EXIT_SUCCESS;
	}
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i]->name))
			return run_command(commands[i], argc - 1, argv + 1);
	usage(NULL, "there is no %s '%s'", *name == '-' ? "option" : "command", name);
}
