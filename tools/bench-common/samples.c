// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is measured in rounds, and its median and spread
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "bench-common.h"

/**
 * allocate - get zeroed memory, or exit
 * @nr:		number of elements
 * @size:	size of each
 */
void *allocate(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory && nr)
		errx(EXIT_FAILED, "out of memory");
	return memory;
}

/**
 * new_samples - make room for samples, or exit
 * @rounds:	for how many
 */
struct samples new_samples(unsigned int rounds)
{
	return (struct samples) { .value = allocate(rounds, sizeof(double)) };
}

/**
 * add_sample - enter what was measured in the next round
 * @samples:	the samples, with room for it
 * @value:	the value
 */
void add_sample(struct samples *samples, double value)
{
	samples->value[samples->nr++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/**
 * summarise - compute the median and the spread
 * @samples:	the samples, which keep their order
 */
void summarise(struct samples *samples)
{
	unsigned int nr = samples->nr;
	double *sorted;

	if (!nr)
		return;
	sorted = allocate(nr, sizeof(*sorted));
	memcpy(sorted, samples->value, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), compare);
	samples->median = sorted[(nr - 1) / 2];
	samples->min = sorted[0];
	samples->max = sorted[nr - 1];
	free(sorted);
}
