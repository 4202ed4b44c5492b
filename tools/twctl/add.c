// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl add: run a command, or print a line, when a timer expires, once or periodically
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "twctl.h"

static const struct choice choices[] = {
	{ "period", 'p', "DURATION", "expire again and again, each DURATION" },
	{ "count", 'n', "N", "end after N events" },
	{ "spread", 's', "DURATION", "later by a random time of up to DURATION" },
	{ "slack", 'l', "DURATION", "up to DURATION later, with others of that time" },
	CHOICE_CLOCK,
	CHOICE_UNTIL,
	{ 0 },
};

/* Exits if the line cannot be printed: nobody would see later events either. */
static void print_event(const struct twheel_event *event)
{
	uint64_t late = event->fired > event->deadline ? event->fired - event->deadline : 0;

	printf("event %" PRIu64 ": deadline %" PRIu64 " ns, %s late, %u overruns\n",
	       (uint64_t)event->seq, (uint64_t)event->deadline, duration_format(late).s,
	       event->overruns);
	if (fflush(stdout))
		exit(EXIT_FAILED);
}

/* Runs a command and waits for it. Returns false if it fails. */
static bool run_program(char **argv)
{
	int error, status;
	pid_t pid;

	error = posix_spawnp(&pid, *argv, NULL, NULL, argv, environ);
	if (error)
		errx(EXIT_FAILED, "cannot run '%s': %s", *argv, strerror(error));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			err(EXIT_FAILED, "cannot wait for '%s'", *argv);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	if (WIFEXITED(status))
		warnx("'%s' ended with status %d", *argv, WEXITSTATUS(status));
	else
		warnx("'%s' was killed by signal %d", *argv, WTERMSIG(status));
	return false;
}

/* Splits the arguments at "--". Returns the command after it, empty if there is none. */
static char **split_command(int *argc, char **argv)
{
	int i;

	for (i = 0; i < *argc && strcmp(argv[i], "--"); i++)
		;
	if (i == *argc)
		return argv + i;
	*argc = i;
	argv[i] = NULL;
	return argv + i + 1;
}

static void read_options(int argc, char **argv, struct when *when,
			 struct twheel_timer_add *add, uint64_t *count)
{
	const struct command *self = &add_command;
	int letter;

	while ((letter = next_option(self, argc, argv)) >= 0) {
		if (when_option(when, letter, optarg))
			continue;
		if (letter == 'n') {
			*count = parse_count(self, "--count", optarg, UINT32_MAX);
		} else if (letter == 's') {
			add->spread = parse_time(self, "--spread", optarg);
		} else if (letter == 'l') {
			add->slack = parse_time(self, "--slack", optarg);
		} else {
			add->period = parse_time(self, "--period", optarg);
			if (!add->period)
				usage(self, "--period is 0");
		}
	}
}

static int run_add(int argc, char **argv)
{
	struct twheel_timer_add add = { 0 };
	struct when when = { 0 };
	char **program = split_command(&argc, argv);
	uint64_t count = 0, i;
	struct twheel_event event;
	bool good = true;
	int fd;

	read_options(argc, argv, &when, &add, &count);
	when_resolve(&add_command, &when, optind < argc ? argv[optind++] : NULL, &add);
	if (optind < argc)
		usage(&add_command, "put '--' before the command '%s'", argv[optind]);
	if (!count && !add.period)
		count = 1;
	if (count > 1 && !add.period)
		usage(&add_command, "--count needs a --period");
	fd = device_open();
	device_add(fd, &add);
	for (i = 0; !count || i < count; i++) {
		device_read(fd, &event);
		if (*program)
			good = run_program(program) && good;
		else
			print_event(&event);
	}
	return good ? 0 : EXIT_FAILED;
}

const struct command add_command = {
	.name		= "add",
	.operands	= "[DURATION] [-- COMMAND...]",
	.summary	= "run a command, or print a line, when a timer expires",
	.choices	= choices,
	.run		= run_add,
};
