// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: compare timer schemes in the kernel
 *
 * The command line, and the sequence of measurements.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "api.h"
#include "compare.h"
#include "connections.h"
#include "trace.h"

/* What is compared unless told otherwise: the kernel's own timers, and what most programs use. */
#define MAIN_SCHEMES	"wheel,timer_list,hrtimer,heap,limit"

/**
 * struct options - the command line
 * @setup:	the options that can be interpreted without the device
 * @schemes:	names of schemes, or NULL for the main ones
 * @csv:	file to write CSV to, or NULL
 * @list:	only list schemes, workloads and orders
 * @api:	compare the interfaces through which programs can have timers
 * @connections: compare ways to implement idle timeouts of connections
 * @plan:	the load for @connections
 */
struct options {
	struct setup	*setup;
	char		*schemes;
	const char	*csv;
	bool		list;
	bool		api;
	bool		connections;
	struct connections_plan plan;
};

const char *const workload_names[TWHEEL_BENCH_NR_WORKLOADS] = {
	[TWHEEL_BENCH_ADD]		= "add",
	[TWHEEL_BENCH_REARM_LATER]	= "rearm_later",
	[TWHEEL_BENCH_REARM_EARLIER]	= "rearm_earlier",
	[TWHEEL_BENCH_CANCEL]		= "cancel",
	[TWHEEL_BENCH_EXPIRE]		= "expire",
	[TWHEEL_BENCH_RMW]		= "rmw",
};

const char *const order_names[2] = {
	[TWHEEL_BENCH_SEQUENTIAL]	= "sequential",
	[TWHEEL_BENCH_RANDOM]		= "random",
};

const char *argp_program_version = "twbench " TWHEEL_VERSION;

/* Returns the position of @word in @names, or exits and lists the valid names. */
static uint32_t find_name(const char *kind, const char *word, const char *const *names,
			  uint32_t nr)
{
	char all[512] = "";
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(names[i], word))
			return i;
	for (i = 0; i < nr; i++) {
		strncat(all, i ? ", " : "", sizeof(all) - strlen(all) - 1);
		strncat(all, names[i], sizeof(all) - strlen(all) - 1);
	}
	errx(EXIT_USAGE, "no %s '%s'; there are: %s", kind, word, all);
}

static void parse_orders(struct setup *setup, char *list)
{
	uint32_t order;
	char *word;

	setup->nr_orders = 0;
	for (word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		order = find_name("order", word, order_names, ARRAY_SIZE(order_names));
		if (setup->nr_orders == ARRAY_SIZE(setup->orders))
			errx(EXIT_USAGE, "too many orders given");
		setup->orders[setup->nr_orders++] = order;
	}
	if (!setup->nr_orders)
		errx(EXIT_USAGE, "no order given");
}

static void parse_workloads(struct setup *setup, char *list)
{
	char *word;

	/* The limit line is always measured, for comparison. */
	setup->workloads = 1U << TWHEEL_BENCH_RMW;
	for (word = strtok(list, ","); word; word = strtok(NULL, ","))
		setup->workloads |= 1U << find_name("workload", word, workload_names,
						    TWHEEL_BENCH_NR_WORKLOADS);
}

enum {
	OPTION_LANE = 256, OPTION_CSV, OPTION_MEMORY, OPTION_LATENESS, OPTION_HEARTBEAT,
	OPTION_TIMEOUT,
};

static const struct argp_option options[] = {
	{ "scheme", 's', "LIST", 0,
	  "schemes to compare, those with a number, as heap:1M, up to so many timers; or all ["
	  MAIN_SCHEMES "]", 0 },
	{ "workload", 'w', "LIST", 0, "workloads [all]", 0 },
	{ "order", 'o', "LIST", 0, "order of the objects: random, sequential [random]", 0 },
	{ "memory", OPTION_MEMORY, "N", 0, "measure the memory of N pending timers, too", 0 },
	{ "lateness", OPTION_LATENESS, "N", 0,
	  "measure how late N timers of 1 ms to 60 s are, too; takes minutes", 0 },
	{ "lane", OPTION_LANE, "NAME", 0,
	  "what this machine is: exact (a nanosecond is an instruction), native, guest, ... [guest]",
	  0 },
	{ "csv", OPTION_CSV, "FILE", 0, "write the tables as CSV; - is standard output", 0 },
	{ "heartbeat", OPTION_HEARTBEAT, "S", 0,
	  "with connections: seconds between messages of each [5]", 0 },
	{ "timeout", OPTION_TIMEOUT, "S", 0,
	  "with connections: seconds of silence after which one is closed [30]", 0 },
	{ "list", 'l', NULL, 0, "list schemes, workloads and orders", 0 },
	{ .doc = "All schemes are first tried for doing the same, then measured in rounds.",
	  .group = 1 },
	{ .doc = "Times are per operation; for expire, from the first to the last callback.",
	  .group = 2 },
	{ .doc = "expire_cpu: CPU time of that, and of what had to be done just before.",
	  .group = 3 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *opts = state->input;
	struct setup *setup = opts->setup;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &setup->common;
		break;
	case 's':
		opts->schemes = arg;
		break;
	case 'w':
		parse_workloads(setup, arg);
		break;
	case 'o':
		parse_orders(setup, arg);
		break;
	case OPTION_MEMORY:
		setup->nr_memory = parse_number("number of timers", arg, 1,
						TWHEEL_BENCH_MAX_TIMERS);
		break;
	case OPTION_LATENESS:
		setup->nr_lateness = parse_number("number of timers", arg, 1,
						  TWHEEL_BENCH_MAX_CHECK_TIMERS);
		break;
	case OPTION_LANE:
		setup->lane = arg;
		break;
	case OPTION_CSV:
		opts->csv = arg;
		break;
	case OPTION_HEARTBEAT:
		opts->plan.heartbeat = parse_number("heartbeat", arg, 1, 3600);
		break;
	case OPTION_TIMEOUT:
		opts->plan.timeout = parse_number("timeout", arg, 1, 3600);
		break;
	case 'l':
		opts->list = true;
		break;
	case ARGP_KEY_ARG:
		/* Any other argument is an error, which the common options' parser reports. */
		if (!strcmp(arg, "api"))
			opts->api = true;
		else if (!strcmp(arg, "connections"))
			opts->connections = true;
		else if (!strcmp(arg, "compare") || is_trace_command(arg))
			errx(EXIT_USAGE, "%s has to come before any options", arg);
		else
			return ARGP_ERR_UNKNOWN;
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
	.args_doc	=
		"[api | connections]\ncompare BEFORE.json AFTER.json\nmix [NAME...]\nreplay FILE...\nrecord FILE",
	.doc		=
		"Compare timer schemes in the kernel, through /dev/twheel_bench: with 10k, 100k and 1M timers, each 5 times, or 3 above 200k and 2 above 2M, unless told otherwise. Or, with api, what timers cost a program, through /dev/twheel, timerfd and others: with 100k timers. Or, with connections, what idle timeouts cost an echo server: with 10k connections. Or, with compare, what has changed from one run to another. For mix, replay and record, see 'twbench mix --help'.",
};

/**
 * choose_schemes - set which schemes are compared, or exit
 * @setup:	the device; @max_timers is filled in
 * @list:	names, separated by commas; all; or NULL for the main ones
 */
void choose_schemes(struct setup *setup, char *list)
{
	static char main_schemes[] = MAIN_SCHEMES;
	uint32_t nr = setup->info.nr_schemes, i;
	const char **names = allocate(nr, sizeof(*names));
	bool all = list && !strcmp(list, "all");
	char *word, *max;

	for (i = 0; i < nr; i++) {
		names[i] = setup->schemes[i].name;
		setup->max_timers[i] = all ? TWHEEL_BENCH_MAX_TIMERS : 0;
	}
	if (!list)
		list = main_schemes;
	for (word = all ? NULL : strtok(list, ","); word; word = strtok(NULL, ",")) {
		max = strchr(word, ':');
		if (max)
			*max++ = 0;
		setup->max_timers[find_name("scheme", word, names, nr)] = !max ?
			TWHEEL_BENCH_MAX_TIMERS :
			parse_number("number of timers", max, 1, TWHEEL_BENCH_MAX_TIMERS);
	}
	free(names);
}

static void print_list(const struct setup *setup)
{
	uint32_t i;

	printf("schemes:");
	for (i = 0; i < setup->info.nr_schemes; i++)
		printf(" %s", setup->schemes[i].name);
	printf("\nworkloads:");
	for (i = 0; i < TWHEEL_BENCH_NR_WORKLOADS; i++)
		printf(" %s", workload_names[i]);
	printf("\norders: %s %s\n", order_names[0], order_names[1]);
}

static void measure_all(const struct setup *setup, FILE *out, struct records *records)
{
	size_t i, j, first;

	for (i = 0; i < setup->common.nr_sizes; i++) {
		for (j = 0; j < setup->nr_orders; j++) {
			first = records->nr;
			measure_size(setup, setup->common.sizes[i], setup->orders[j], records);
			table_print(out, setup, records->record + first, records->nr - first);
		}
	}
	if (!records->nr)
		errx(EXIT_USAGE, "none of the chosen schemes knows the chosen workloads");
}

static void compare_schemes(const struct options *opts, const struct setup *setup)
{
	/* Before measuring, so as not to measure in vain if a file cannot be opened. */
	FILE *json = open_report(setup->common.json), *csv = open_report(opts->csv);
	FILE *out = json == stdout || csv == stdout ? stderr : stdout;
	struct results results = { 0 };

	table_header(out, setup);
	table_objects(out, setup);
	device_check(setup, out);
	/* Before larger numbers of timers leave more chunks in the wheel than it needs here. */
	memory_measure(setup, &results);
	memory_print(out, setup, &results);
	measure_all(setup, out, &results.records);
	table_growth(out, &results.records);
	lateness_measure(setup, &results);
	lateness_print(out, setup, &results);
	if (json) {
		report_json(json, setup, &results);
		close_report(setup->common.json, json);
	}
	if (csv) {
		report_csv(csv, setup, &results.records);
		close_report(opts->csv, csv);
	}
}

static void compare_api(const struct options *opts, const struct setup *setup)
{
	FILE *json = open_report(setup->common.json);
	FILE *out = json == stdout ? stderr : stdout;
	struct api_results results;

	if (opts->schemes || opts->csv || setup->nr_memory || setup->nr_lateness)
		errx(EXIT_USAGE, "api does not go with --scheme, --csv, --memory and --lateness");
	if (setup->common.nr_sizes != 1)
		errx(EXIT_USAGE, "api takes one number of timers");
	table_header(out, setup);
	api_measure(setup, setup->common.sizes[0], &results);
	api_print(out, setup, &results);
	if (json) {
		report_api(json, setup, &results);
		close_report(setup->common.json, json);
	}
}

static void compare_connections(const struct options *opts, const struct setup *setup)
{
	FILE *json = open_report(setup->common.json);
	FILE *out = json == stdout ? stderr : stdout;
	struct connections_plan plan = opts->plan;
	struct connections_results results;

	if (opts->csv || setup->nr_memory || setup->nr_lateness)
		errx(EXIT_USAGE, "connections does not go with --csv, --memory and --lateness");
	if (setup->common.nr_sizes != 1)
		errx(EXIT_USAGE, "connections takes one number of connections");
	if (plan.timeout <= plan.heartbeat)
		errx(EXIT_USAGE, "the timeout has to be longer than the heartbeat");
	plan.nr = setup->common.sizes[0];
	plan.silent = (plan.nr + 99) / 100;
	table_header(out, setup);
	connections_measure(setup, &plan, opts->schemes, &results);
	connections_print(out, setup, &results);
	if (json) {
		connections_json(json, setup, &results);
		close_report(setup->common.json, json);
	}
	if (!connections_went_well(&results))
		errx(EXIT_FAILED, "kicks were false or missed");
}

static void set_default_sizes(struct options *opts)
{
	static uint32_t sizes[] = { 10000, 100000, 1000000 }, api = 100000, connections = 10000;
	struct common_setup *common = &opts->setup->common;

	if (common->nr_sizes)
		return;
	common->sizes = opts->api ? &api : opts->connections ? &connections : sizes;
	common->nr_sizes = opts->api || opts->connections ? 1 : ARRAY_SIZE(sizes);
}

int main(int argc, char **argv)
{
	struct setup setup = {
		.common = {
			.max_timers	= TWHEEL_BENCH_MAX_TIMERS,
			.seed		= 1,
			.cpu		= -1,
		},
		.orders		= { TWHEEL_BENCH_RANDOM },
		.nr_orders	= 1,
		.workloads	= (1U << TWHEEL_BENCH_NR_WORKLOADS) - 1,
		.lane		= "guest",
	};
	struct options opts = { .setup = &setup, .plan = { .heartbeat = 5, .timeout = 30 } };
	struct utsname uts;

	if (argc > 1 && !strcmp(argv[1], "compare"))
		return compare(argc - 1, argv + 1);
	if (argc > 1 && is_trace_command(argv[1]))
		return trace_main(argc, argv);
	parse_command_line(&argp, "twbench", argc, argv, &opts);
	set_default_sizes(&opts);
	describe_cpu(&setup.common);
	if (!uname(&uts))
		snprintf(setup.kernel, sizeof(setup.kernel), "%s", uts.release);
	device_open(&setup);
	if (opts.list) {
		print_list(&setup);
		return EXIT_SUCCESS;
	}
	if (opts.connections) {
		/* Not bound to a CPU: server and load are processes that run where they like. */
		compare_connections(&opts, &setup);
		return EXIT_SUCCESS;
	}
	choose_schemes(&setup, opts.schemes);
	bind_cpu(&setup.common);
	if (opts.api)
		compare_api(&opts, &setup);
	else
		compare_schemes(&opts, &setup);
	return EXIT_SUCCESS;
}
