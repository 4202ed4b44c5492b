// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: the command line of a program
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "stdout.h"

__attribute__((weak)) size_t program_limit(size_t wanted)
{
	return wanted;
}

__attribute__((weak)) uint64_t program_early(void)
{
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t seed;
	size_t size;

	if (argc != 4 || (strcmp(argv[1], "measure") && strcmp(argv[1], "check"))) {
		fprintf(stderr, "usage: %s measure|check TIMERS SEED\n", SCHEME.name);
		return EXIT_USAGE;
	}
	size = parse_number("number of timers", argv[2], 1, 64U << 20);
	seed = parse_number("seed", argv[3], 0, UINT64_MAX);
	atexit(close_stdout);
	if (!strcmp(argv[1], "measure"))
		measure(size, seed);
	else
		check(size, seed);
	return EXIT_SUCCESS;
}
