// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: module/wheel.c natively, in userspace, beside libev and a limit line
 *
 * The command line, and what comes after what.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define MAX_TIMERS	(64UL << 20)

/**
 * struct options - the command line, as it was given
 * @setup:	what to measure
 * @json:	where to write JSON, or NULL
 */
struct options {
	struct setup	setup;
	const char	*json;
};

const char *argp_program_version = "bench-user " TWHEEL_VERSION;

/**
 * allocate - get zeroed memory, or exit
 * @nr:		number of elements
 * @size:	size of each
 */
void *allocate(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory)
		errx(EXIT_FAILED, "out of memory");
	return memory;
}

static uint64_t parse_number(const char *what, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (end == text || *text == '-' || errno)
		errx(EXIT_USAGE, "%s '%s' is not a number", what, text);
	if (*end == 'k' || *end == 'M') {
		/* What is that large is out of range anyway. */
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

static void parse_sizes(struct setup *setup, char *list)
{
	char *word;

	setup->nr_sizes = 0;
	setup->sizes = allocate(strlen(list) + 1, sizeof(*setup->sizes));
	for (word = strtok(list, ","); word; word = strtok(NULL, ","))
		setup->sizes[setup->nr_sizes++] =
			parse_number("number of timers", word, 1, MAX_TIMERS);
	if (!setup->nr_sizes)
		errx(EXIT_USAGE, "no number of timers given");
}

enum { OPTION_SEED = 256, OPTION_JSON };

static const struct argp_option options[] = {
	{ "timers", 'n', "LIST", 0, "numbers of timers, as 500 or 10k or 1M [10k,1M,4M]", 0 },
	{ "rounds", 'r', "N", 0, "measure everything N times [9]", 0 },
	{ "cpu", 'c', "N", 0, "the CPU to run on [the one it is on]", 0 },
	{ "seed", OPTION_SEED, "N", 0, "seed of timeouts and orders [1]", 0 },
	{ "json", OPTION_JSON, "FILE", 0, "write all figures as JSON; - is standard output", 0 },
	{ .doc = "Exit codes: 0 all went well, 1 something failed, 2 a wrong command line.",
	  .group = 1 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *opts = state->input;
	struct setup *setup = &opts->setup;

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
		opts->json = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options	= options,
	.parser		= parse_option,
	.doc		= "Measures the timing wheel of module/wheel.c in userspace.",
};

static void bind_cpu(const struct setup *setup)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(setup->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(EXIT_FAILED, "cannot run on CPU %d", setup->cpu);
}

static void describe_machine(struct setup *setup)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(setup->cpu_model, sizeof(setup->cpu_model), "unknown");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "model name : %127[^\n]", setup->cpu_model) == 1)
			break;
	fclose(file);
}

static FILE *open_report(const char *name)
{
	FILE *file;

	if (!name)
		return NULL;
	if (!strcmp(name, "-"))
		return stdout;
	file = fopen(name, "w");
	if (!file)
		err(EXIT_FAILED, "%s", name);
	return file;
}

static void close_report(const char *name, FILE *file)
{
	if (ferror(file) || (file == stdout ? fflush(file) : fclose(file)))
		err(EXIT_FAILED, "%s", name);
}

static void compare(const struct options *opts)
{
	/* Opened first: it would be a pity to have measured in vain. */
	FILE *json = open_report(opts->json), *out = json == stdout ? stderr : stdout;
	const struct setup *setup = &opts->setup;
	size_t nr = nr_schemes * NR_WORKLOADS, i;
	struct memory memory;
	struct record *record = allocate(setup->nr_sizes * nr, sizeof(*record));

	table_header(out, setup);
	for (i = 0; i < setup->nr_sizes; i++) {
		measure(setup, setup->sizes[i], record + i * nr, &memory);
		table_print(out, record + i * nr, nr, &memory);
	}
	if (json) {
		report_json(json, setup, record, setup->nr_sizes * nr);
		close_report(opts->json, json);
	}
}

int main(int argc, char **argv)
{
	size_t default_sizes[] = { 10000, 1000000, 4000000 };
	struct options opts = {
		.setup = {
			.sizes		= default_sizes,
			.nr_sizes	= ARRAY_SIZE(default_sizes),
			.rounds		= 9,
			.seed		= 1,
			.cpu		= sched_getcpu(),
		},
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	argp_err_exit_status = EXIT_USAGE;
	/* In messages, whatever the path was. */
	argv[0] = "bench-user";
	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	describe_machine(&opts.setup);
	bind_cpu(&opts.setup);
	compare(&opts);
	return EXIT_SUCCESS;
}
