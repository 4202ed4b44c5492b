// SPDX-License-Identifier: GPL-2.0-only
/*
 * The options common to all benchmarks
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench-common.h"
#include "stdout.h"

/**
 * parse_number - parse a number, or exit
 * @what:	what it is, for messages
 * @text:	the number, with an optional suffix: k for a thousand, M for a million
 * @min:	the smallest valid number
 * @max:	the largest valid number
 */
uint64_t parse_number(const char *what, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (end == text || *text == '-' || errno)
		errx(EXIT_USAGE, "%s '%s' is not a number", what, text);
	if (*end == 'k' || *end == 'M') {
		/* Larger numbers are out of range anyway. */
		if (number < UINT64_MAX / 1000000)
			number *= *end == 'k' ? 1000 : 1000000;
		end++;
	}
	if (*end)
		errx(EXIT_USAGE, "%s '%s' is not a number", what, text);
	if (number < min || number > max)
		errx(EXIT_USAGE, "%s %s is not in %llu to %llu", what, text,
		     (unsigned long long)min, (unsigned long long)max);
	return number;
}

static void parse_sizes(struct common_setup *setup, char *list)
{
	char *word;

	setup->nr_sizes = 0;
	setup->sizes = allocate(strlen(list) + 1, sizeof(*setup->sizes));
	for (word = strtok(list, ","); word; word = strtok(NULL, ","))
		setup->sizes[setup->nr_sizes++] =
			parse_number("number of timers", word, 1, setup->max_timers);
	if (!setup->nr_sizes)
		errx(EXIT_USAGE, "no number of timers given");
}

enum { OPTION_SEED = 256, OPTION_JSON };

static const struct argp_option options[] = {
	{ "timers", 'n', "LIST", 0, "numbers of timers, as 500 or 10k or 1M", 0 },
	{ "rounds", 'r', "N", 0, "measure everything N times", 0 },
	{ "cpu", 'c', "N", 0, "the CPU to run on [the last one allowed]", 0 },
	{ "seed", OPTION_SEED, "N", 0, "seed of timeouts and orders [1]", 0 },
	{ "json", OPTION_JSON, "FILE", 0, "write all figures as JSON; - is standard output", 0 },
	/* The large group number puts this after a program's own texts. */
	{ .doc = "Exit codes: 0 all went well, 1 something failed, 2 a wrong command line.",
	  .group = 9 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct common_setup *setup = state->input;

	switch (key) {
	case 'n':
		parse_sizes(setup, arg);
		break;
	case 'r':
		setup->rounds = parse_number("number of rounds", arg, 1, 10000);
		break;
	case 'c':
		setup->cpu = parse_number("CPU", arg, 0, CPU_SETSIZE - 1);
		break;
	case OPTION_SEED:
		setup->seed = parse_number("seed", arg, 0, UINT64_MAX);
		break;
	case OPTION_JSON:
		setup->json = arg;
		break;
	case ARGP_KEY_ARG:
		errx(EXIT_USAGE, "there is no argument '%s' (--help shows the options)", arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* For the children of a program's argp; their input is a struct common_setup. */
const struct argp_child common_options[] = {
	{ .argp = &(const struct argp) { .options = options, .parser = parse_option } },
	{ 0 },
};

static char *command;

/* Arguments are separated by spaces, whatever is in them: this is for people to read. */
static void keep_command(const char *name, int argc, char **argv)
{
	size_t size;
	FILE *text = open_memstream(&command, &size);
	int i;

	if (!text)
		err(EXIT_FAILED, "open_memstream");
	fputs(name, text);
	for (i = 1; i < argc; i++)
		fprintf(text, " %s", argv[i]);
	if (fclose(text))
		err(EXIT_FAILED, "open_memstream");
}

/**
 * command_line - the command line, as it was before it was parsed
 */
const char *command_line(void)
{
	return command;
}

/**
 * parse_command_line - parse the command line, or exit
 * @program:	the program's options, with the common ones as children
 * @name:	the program's name
 * @argc:	main()'s argument
 * @argv:	main()'s argument
 * @input:	the input of @program's parser, which is filled in
 */
void parse_command_line(const struct argp *program, const char *name, int argc, char **argv,
			void *input)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	atexit(close_stdout);
	argp_err_exit_status = EXIT_USAGE;
	/* For messages, which must not depend on the path. */
	argv[0] = (char *)name;
	keep_command(name, argc, argv);
	argp_parse(program, argc, argv, 0, NULL, input);
}
