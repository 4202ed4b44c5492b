// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench compare: memory of pending timers
 *
 * It is measured once in a run, so what noise is cannot be told. The reader has to judge.
 */
#include <stdio.h>
#include <string.h>

#include "compare.h"

static const struct footprint *find(const struct run *run, const struct footprint *memory)
{
	size_t i;

	for (i = 0; i < run->nr_memory; i++)
		if (run->memory[i].nr_timers == memory->nr_timers &&
		    !strcmp(run->memory[i].scheme, memory->scheme) &&
		    !strcmp(run->memory[i].timer, memory->timer) &&
		    !strcmp(run->memory[i].part, memory->part))
			return &run->memory[i];
	return NULL;
}

static void print_head(void)
{
	printf("\nmemory, bytes per timer; measured once, and not judged\n");
	printf("%-14s %-16s %10s %10s %10s %9s\n", "figure", "scheme", "n", "before", "after",
	       "change, %");
}

static void print_footprint(const struct footprint *before, const struct footprint *after)
{
	char scheme[64];

	snprintf(scheme, sizeof(scheme), "%s%s%s", after->scheme, *after->timer ? " " : "",
		 after->timer);
	printf("%-14s %-16s %10u %10.1f %10.1f ", after->part, scheme, after->nr_timers,
	       before->bytes, after->bytes);
	if (before->bytes > 0)
		compare_percent(after->bytes / before->bytes - 1, 9);
	else
		printf("%9s", "-");
	putchar('\n');
}

/**
 * compare_memory - print what timers take in both runs
 * @comparison:	the comparison; if there is nothing to compare, nothing is printed
 */
void compare_memory(const struct comparison *comparison)
{
	const struct run *run = &comparison->after;
	const struct footprint *before;
	size_t nr = 0, i;

	for (i = 0; i < run->nr_memory; i++) {
		before = find(&comparison->before, &run->memory[i]);
		if (!before)
			continue;
		if (!nr++)
			print_head();
		print_footprint(before, &run->memory[i]);
	}
}
