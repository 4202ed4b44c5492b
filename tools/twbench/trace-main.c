// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench mix, twbench replay and twbench record: the command line
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "trace.h"
#include "tracefs.h"

#define MAX_SETTINGS	32

static const char default_lane[] = "guest";

/**
 * struct options - the command line
 * @setup:	what is compared
 * @command:	mix, replay or record
 * @name:	names of mixtures, or of files
 * @nr_names:	how many there are
 * @schemes:	names of schemes, or NULL for all
 * @setting:	numbers of the mixture that are changed
 * @nr_settings: how many
 * @output:	file to write the generated trace to, instead of replaying it; or NULL
 * @speed:	how many times as fast to replay
 * @margin_ms:	how far from its timer's deadline an operation has to be, or 0
 * @record:	what to record
 */
struct options {
	struct setup		*setup;
	const char		*command;
	char			**name;
	size_t			nr_names;
	char			*schemes;
	const char		*setting[MAX_SETTINGS];
	size_t			nr_settings;
	const char		*output;
	double			speed;
	double			margin_ms;
	struct record_plan	record;
};

enum {
	OPTION_LANE = 256, OPTION_SET, OPTION_WRITE, OPTION_SPEED, OPTION_MARGIN, OPTION_SECONDS,
	OPTION_EVENTS, OPTION_NOTE,
};

static const struct argp_option options[] = {
	{ "scheme", 's', "LIST", 0,
	  "schemes to compare, those with a number, as heap:1M, up to so many timers [all]", 0 },
	{ "lane", OPTION_LANE, "NAME", 0, "what this machine is, as without mix or replay", 0 },
	{ "set", OPTION_SET, "NAME=VALUE", 0, "with mix: change a number of the mixture", 0 },
	{ "write", OPTION_WRITE, "FILE", 0, "with mix: write the trace to a file instead", 0 },
	{ "speed", OPTION_SPEED, "K", 0, "with replay: divide all times by this [1]", 0 },
	{ "margin", OPTION_MARGIN, "MS", 0,
	  "leave out operations closer to a deadline [a quarter of the timeout, 2 to 50]", 0 },
	{ "seconds", OPTION_SECONDS, "S", 0, "with record: end after so long", 0 },
	{ "events", OPTION_EVENTS, "LIST", 0,
	  "with record: kinds of timers: timer, hrtimer, twheel [those that there are]", 0 },
	{ "note", OPTION_NOTE, "TEXT", 0, "with record: what it is, for people", 0 },
	{ 0 },
};

static double parse_positive(const char *what, const char *text, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0 && value <= max))
		errx(EXIT_USAGE, "%s '%s' is not a number of up to %g", what, text, max);
	return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *opts = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &opts->setup->common;
		break;
	case 's':
		opts->schemes = arg;
		break;
	case OPTION_LANE:
		opts->setup->lane = arg;
		break;
	case OPTION_SET:
		if (opts->nr_settings == MAX_SETTINGS)
			errx(EXIT_USAGE, "too many --set");
		opts->setting[opts->nr_settings++] = arg;
		break;
	case OPTION_WRITE:
		opts->output = arg;
		break;
	case OPTION_SPEED:
		opts->speed = parse_positive("speed", arg, 1000);
		break;
	case OPTION_MARGIN:
		opts->margin_ms = parse_positive("margin", arg, 1000);
		break;
	case OPTION_SECONDS:
		opts->record.seconds = parse_positive("seconds", arg, 3600);
		break;
	case OPTION_EVENTS:
		opts->record.events = arg;
		break;
	case OPTION_NOTE:
		opts->record.note = arg;
		break;
	case ARGP_KEY_ARG:
		if (!opts->command)
			opts->command = arg;
		else
			opts->name[opts->nr_names++] = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options	= options,
	.parser		= parse_option,
	.children	= common_options,
	.args_doc	= "mix [NAME... | all]\nreplay FILE...\nrecord FILE",
	.doc		=
		"Replay traces of operations on timers with all schemes, through /dev/twheel_bench: with mix, those that are generated from a mixture, for 10k timers unless told otherwise (without a name, mixtures are listed); with replay, those in files, as so many copies as there are timers to be. With record, write what the timers of this machine do to a file.",
};

/* Refuses options about a comparison where there is none. */
static void refuse_comparing(const struct options *opts, const char *other)
{
	const struct setup *setup = opts->setup;
	const struct {
		const char	*name;
		bool		given;
	} option[] = {
		{ "--scheme", opts->schemes },
		{ "--lane", setup->lane != default_lane },
		{ "--margin", opts->margin_ms },
		{ "--rounds", setup->common.rounds > 1 },
		{ "--cpu", setup->common.cpu >= 0 },
		{ "--json", setup->common.json },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(option); i++)
		if (option[i].given)
			errx(EXIT_USAGE, "%s does not go with %s", option[i].name, other);
}

/* Refuses options that the command has no use for. */
static void check_options(const struct options *opts)
{
	const bool mix = !strcmp(opts->command, "mix"), record = !strcmp(opts->command, "record");

	if (!mix && (opts->nr_settings || opts->output))
		errx(EXIT_USAGE, "--set and --write go with mix");
	if (!record && (opts->record.seconds || opts->record.events || opts->record.note))
		errx(EXIT_USAGE, "--seconds, --events and --note go with record");
	if (opts->speed != 1 && strcmp(opts->command, "replay"))
		errx(EXIT_USAGE, "--speed goes with replay");
	if (record || opts->output)
		refuse_comparing(opts, record ? "record" : "--write");
	if (!mix && !opts->nr_names)
		errx(EXIT_USAGE, "%s needs a file", opts->command);
	if (record && opts->nr_names > 1)
		errx(EXIT_USAGE, "record takes one file");
	if (opts->output && (opts->nr_names != 1 || opts->setup->common.nr_sizes > 1))
		errx(EXIT_USAGE, "--write takes one mixture, and one number of timers");
}

static struct mixture changed(const struct options *opts, const char *name)
{
	struct mixture mixture = *mixture_find(name);
	size_t i;

	for (i = 0; i < opts->nr_settings; i++)
		mixture_set(&mixture, opts->setting[i]);
	mixture_check(&mixture);
	return mixture;
}

static void list_mixtures(void)
{
	const struct mixture *mixture;

	for (mixture = mixtures; mixture->name; mixture++)
		mixture_print(stdout, mixture);
}

/* Makes the trace of a round. */
static void make_trace(const struct options *opts, const char *name, uint32_t size,
		       unsigned int round, struct trace *trace)
{
	const uint64_t seed = opts->setup->common.seed + round;
	struct mixture mixture;

	if (!strcmp(opts->command, "mix")) {
		mixture = changed(opts, name);
		mixture_generate(&mixture, size, seed, trace);
		return;
	}
	trace_read(trace, name);
	trace_multiply(trace, size, seed);
	trace_hurry(trace, opts->speed);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void replay_one(const struct options *opts, const char *name, uint32_t size, FILE *out,
		       struct replay_result *result)
{
	const unsigned int rounds = opts->setup->common.rounds ?: 1;
	struct truth truth;
	struct trace trace;
	unsigned int round;

	*result = (struct replay_result) { .name = file_name(name), .size = size };
	replay_begin(opts->setup, rounds, result);
	for (round = 0; round < rounds; round++) {
		make_trace(opts, name, size, round, &trace);
		trace_prepare(&trace, opts->margin_ms * NS_PER_MS, &truth);
		if (!trace.nr)
			errx(EXIT_FAILED, "%s: nothing happens", result->name);
		replay_round(opts->setup, &trace, &truth, result);
		trace_free(&trace);
	}
	replay_end(result);
	replay_print(out, opts->setup, result);
}

static void replay_all(const struct options *opts)
{
	const struct common_setup *common = &opts->setup->common;
	FILE *json = open_report(common->json), *out = json == stdout ? stderr : stdout;
	struct replay_result *result;
	size_t nr = 0, i, j;

	table_header(out, opts->setup);
	result = allocate(opts->nr_names * common->nr_sizes, sizeof(*result));
	for (i = 0; i < opts->nr_names; i++)
		for (j = 0; j < common->nr_sizes; j++)
			replay_one(opts, opts->name[i], common->sizes[j], out, &result[nr++]);
	if (json) {
		replay_json(json, opts->setup, result, nr);
		close_report(common->json, json);
	}
}

/* All mixtures are named. */
static void name_all(struct options *opts)
{
	size_t nr = 0;

	while (mixtures[nr].name)
		nr++;
	opts->name = allocate(nr, sizeof(*opts->name));
	for (opts->nr_names = 0; opts->nr_names < nr; opts->nr_names++)
		opts->name[opts->nr_names] = (char *)mixtures[opts->nr_names].name;
}

static void compare(struct options *opts)
{
	struct setup *setup = opts->setup;
	struct utsname uts;

	describe_cpu(&setup->common);
	if (!uname(&uts))
		snprintf(setup->kernel, sizeof(setup->kernel), "%s", uts.release);
	device_open(setup);
	choose_schemes(setup, opts->schemes ?: strdup("all"));
	bind_cpu(&setup->common);
	replay_all(opts);
}

static void record(const struct options *opts)
{
	struct trace_file file;
	struct trace trace;
	FILE *out;

	/* Nothing may be left behind, however early it is ended. */
	tracefs_end_on_signals();
	/* Before an hour is recorded, so as not to do so in vain. */
	trace_create(&file, opts->name[0]);
	out = file.temporary ? stdout : stderr;
	record_trace(&opts->record, &trace);
	trace_finish(&file, &trace);
	fprintf(out, "%llu operations on %u timers in %.3f s\n", (unsigned long long)trace.nr,
		trace.nr_objects, trace.length_ns / 1e9);
}

/**
 * is_trace_command - does trace_main() know this command?
 * @word:	the first argument
 */
bool is_trace_command(const char *word)
{
	return !strcmp(word, "mix") || !strcmp(word, "replay") || !strcmp(word, "record");
}

/**
 * trace_main - replace main() for these commands
 * @argc:	main()'s argument
 * @argv:	main()'s argument
 *
 * Return: the exit status.
 */
int trace_main(int argc, char **argv)
{
	static uint32_t timers = 10000, copies = 1;
	struct setup setup = {
		.common	= { .max_timers = TWHEEL_BENCH_MAX_TIMERS, .seed = 1, .cpu = -1 },
		.lane	= default_lane,
	};
	struct options opts = {
		.setup	= &setup,
		.name	= allocate(argc, sizeof(*opts.name)),
		.speed	= 1,
	};
	struct trace trace;
	size_t i;

	parse_command_line(&argp, "twbench", argc, argv, &opts);
	check_options(&opts);
	if (!setup.common.nr_sizes) {
		setup.common.sizes = strcmp(opts.command, "mix") ? &copies : &timers;
		setup.common.nr_sizes = 1;
	}
	if (!strcmp(opts.command, "record")) {
		record(&opts);
		return EXIT_SUCCESS;
	}
	if (!opts.nr_names) {
		list_mixtures();
		return EXIT_SUCCESS;
	}
	if (!strcmp(opts.command, "mix") && opts.nr_names == 1 && !strcmp(opts.name[0], "all"))
		name_all(&opts);
	/* Before the first is replayed, so as not to do so in vain. */
	for (i = 0; i < opts.nr_names; i++) {
		if (!strcmp(opts.command, "mix")) {
			changed(&opts, opts.name[i]);
			continue;
		}
		trace_read(&trace, opts.name[i]);
		trace_free(&trace);
	}
	if (opts.output) {
		make_trace(&opts, opts.name[0], setup.common.sizes[0], 0, &trace);
		trace_write(&trace, opts.output);
		return EXIT_SUCCESS;
	}
	compare(&opts);
	return EXIT_SUCCESS;
}
