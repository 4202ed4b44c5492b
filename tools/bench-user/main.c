// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: module/core/wheel.c natively in userspace, compared with libev and a limit line
 *
 * The command line, and the sequence of measurements.
 */
#include <stdlib.h>

#include "bench.h"

const char *argp_program_version = "bench-user " TWHEEL_VERSION;

static const struct argp argp = {
	.children	= common_options,
	.doc		=
		"Measures the timing wheel of module/core/wheel.c in userspace: with 10k, 1M and 4M timers, each 9 times, unless told otherwise.",
};

static void compare_schemes(const struct common_setup *setup)
{
	/* Before measuring, so as not to measure in vain if the file cannot be opened. */
	FILE *json = open_report(setup->json), *out = json == stdout ? stderr : stdout;
	size_t nr = nr_schemes * NR_WORKLOADS, i;
	struct memory memory;
	struct record *record = allocate(setup->nr_sizes * nr, sizeof(*record));

	table_header(out, setup);
	for (i = 0; i < setup->nr_sizes; i++) {
		measure_size(setup, setup->sizes[i], record + i * nr, &memory);
		table_print(out, record + i * nr, nr, &memory);
	}
	if (json) {
		report_json(json, setup, record, setup->nr_sizes * nr);
		close_report(setup->json, json);
	}
}

int main(int argc, char **argv)
{
	uint32_t default_sizes[] = { 10000, 1000000, 4000000 };
	struct common_setup setup = {
		.sizes		= default_sizes,
		.nr_sizes	= ARRAY_SIZE(default_sizes),
		.max_timers	= 64U << 20,
		.rounds		= 9,
		.seed		= 1,
		.cpu		= -1,
	};

	parse_command_line(&argp, "bench-user", argc, argv, &setup);
	describe_cpu(&setup);
	bind_cpu(&setup);
	compare_schemes(&setup);
	return EXIT_SUCCESS;
}
