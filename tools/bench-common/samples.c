// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples of quantities that are measured in rounds: their median and their spread
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "bench-common.h"

/**
 * allocate - allocate zeroed memory, or exit
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
 * new_samples - allocate room for samples, or exit
 * @rounds:	number of samples
 */
struct samples new_samples(unsigned int rounds)
{
	return (struct samples) { .value = allocate(rounds, sizeof(double)) };
}

/**
 * add_sample - add the value measured in the next round
 * @samples:	the samples, with room for it
 * @value:	the value
 */
void add_sample(struct samples *samples, double value)
{
	samples->value[samples->nr++] = value;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/**
 * summarise - compute the median and the spread
 * @samples:	the samples, whose order is kept
 */
void summarise(struct samples *samples)
{
	unsigned int nr = samples->nr;
	double *sorted;

	if (!nr)
		return;
	sorted = allocate(nr, sizeof(*sorted));
	memcpy(sorted, samples->value, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), compare_doubles);
	samples->median = sorted[(nr - 1) / 2];
	samples->min = sorted[0];
	samples->max = sorted[nr - 1];
	free(sorted);
}
