// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench compare: what has changed from one run to another
 *
 * This file has the command line, and decides which runs can be compared.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench-common.h"
#include "compare.h"
#include "stdout.h"

enum { OPTION_FAIL = 256, OPTION_ABSOLUTE };

static const struct argp_option options[] = {
	{ "fail", OPTION_FAIL, "PERCENT", 0,
	  "how much slower a figure has to be to count, as 5% [2%]", 0 },
	{ "absolute", OPTION_ABSOLUTE, NULL, 0,
	  "compare times, not their ratios to the kernel's own timers in the same run", 0 },
	{ .doc = "Exit codes: 0 nothing is slower beyond noise, 1 something is, 2 a failure.",
	  .group = 1 },
	{ 0 },
};

static double parse_percent(const char *text)
{
	double percent;
	char *end;

	errno = 0;
	percent = strtod(text, &end);
	if (end == text || errno || (*end && strcmp(end, "%")) ||
	    !(percent >= 0 && percent <= 1000))
		errx(EXIT_TROUBLE, "--fail '%s' is not a percentage from 0 to 1000, such as 5%%",
		     compare_printable(text));
	return percent / 100;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct comparison *comparison = state->input;

	switch (key) {
	case OPTION_FAIL:
		comparison->fail = parse_percent(arg);
		break;
	case OPTION_ABSOLUTE:
		comparison->absolute = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num >= 2)
			errx(EXIT_TROUBLE, "compare takes two files, and '%s' is one more",
			     compare_printable(arg));
		*(state->arg_num ? &comparison->after.file : &comparison->before.file) = arg;
		break;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			errx(EXIT_TROUBLE,
			     "compare takes two files: the run before, and the one after");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options	= options,
	.parser		= parse_option,
	.args_doc	= "BEFORE.json AFTER.json",
	.doc		=
		"Compare two runs, as written with --json: which figures have changed beyond noise?",
};

static void warn_of_difference(const char *what, const char *before, const char *after)
{
	if (strcmp(before, after))
		warnx("warning: %s differs, which may be what has changed the figures: %s, %s",
		      what, before, after);
}

/* Exits if the runs have nothing in common, and warns if they have not enough. */
static void check_runs(const struct run *before, const struct run *after)
{
	if (before->api != after->api)
		errx(EXIT_TROUBLE, "only %s was written by 'twbench api'; compare two of a kind",
		     before->api ? before->file : after->file);
	if (strcmp(before->lane, after->lane))
		errx(EXIT_TROUBLE, "the lanes differ: %s and %s; compare runs of the same one",
		     before->lane, after->lane);
	warn_of_difference("the kernel", before->kernel, after->kernel);
	warn_of_difference("the processor", before->cpu_model, after->cpu_model);
	if (before->seed != after->seed)
		warnx("warning: the seeds differ, and so do the timeouts and orders: %llu, %llu",
		      (unsigned long long)before->seed, (unsigned long long)after->seed);
}

/* A comparison that could not have found anything must not pass for a good one. */
static void check_figures(const struct comparison *comparison)
{
	if (!comparison->nr && comparison->nr_alone)
		errx(EXIT_TROUBLE, "%s was not measured in both runs; --absolute compares times",
		     compare_reference(&comparison->after));
	if (!comparison->nr)
		errx(EXIT_TROUBLE, "%s and %s have no figures in common to compare",
		     comparison->before.file, comparison->after.file);
}

/**
 * compare - compare two runs
 * @argc:	main()'s argument, without "compare"
 * @argv:	likewise
 *
 * Return: the exit status.
 */
int compare(int argc, char **argv)
{
	struct comparison comparison = { .fail = 0.02 };

	close_stdout_status = EXIT_TROUBLE;
	atexit(close_stdout);
	argp_err_exit_status = EXIT_TROUBLE;
	argv[0] = "twbench compare";
	argp_parse(&argp, argc, argv, 0, NULL, &comparison);
	compare_read(comparison.before.file, &comparison.before);
	compare_read(comparison.after.file, &comparison.after);
	check_runs(&comparison.before, &comparison.after);
	compare_match(&comparison);
	check_figures(&comparison);
	compare_judge(&comparison);
	if (!comparison.nr_judged)
		errx(EXIT_TROUBLE, "no figure has %s rounds in both runs; use --rounds 5",
		     compare_rounds_needed(&comparison) > 2 ? "three" : "two");
	compare_print(&comparison);
	return comparison.nr_failed ? EXIT_SLOWER : EXIT_SUCCESS;
}
