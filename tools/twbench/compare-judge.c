// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench compare: is a change more than noise?
 *
 * What a figure would have been in other rounds is estimated by resampling (the bootstrap): as many
 * rounds are drawn from those there are, with replacement, and the figure is computed again, a few
 * thousand times. How much its logarithm varies is the noise of the figure. With Student's t, this
 * becomes a confidence interval for the change.
 *
 * There are two reasons not to read the interval off the resampled figures, between two of their
 * quantiles. With two to five rounds, these never leave the range of the samples; and for two
 * builds that are equal, the ranges of three rounds each are apart in one case out of ten.
 *
 * Of a hundred intervals that are right with 95 % probability each, five are wrong. So each one is
 * made wider, until all of a table are right at the same time with 95 % probability (Bonferroni's
 * correction).
 *
 * Samples that are equal do not show that there is no noise: there are few, and they may happen to
 * be. So a figure has at least a share of the noise that is usual in its table, and some in any
 * case.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench-common.h"
#include "compare.h"

#define RESAMPLES	4000
#define CONFIDENCE	0.95

/*
 * Smaller changes are left alone: two runs of the same build may differ by as much, which no rounds
 * of one run show. In the exact lane, for instance, one interrupt in the 10 thousand operations of
 * a round is up to 1 %.
 */
#define LEAST_CHANGE	0.02

/*
 * The noise of a figure is not taken for less than this: its share of the median of the table's,
 * for some figures do have less; and what it is at least in the exact lane, and in others, whose
 * clocks and caches are the same in no two rounds. These are standard deviations of one round.
 */
#define SHARE_OF_USUAL	0.5
#define LEAST_EXACT	0.001
#define LEAST_NOISE	0.005

/* Two rounds may agree by chance; in the exact lane, they hardly ever differ. */
#define ROUNDS_EXACT	2
#define ROUNDS		3

/* Knuth's MMIX generator, of which the high bits are used. */
static unsigned int draw(uint64_t *random, unsigned int below)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*random >> 33) % below;
}

/* Draws @nr of @nr rounds; @times is how often each of them was drawn. */
static void draw_rounds(uint64_t *random, unsigned int *times, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		times[i] = 0;
	for (i = 0; i < nr; i++)
		times[draw(random, nr)]++;
}

/* The median of the rounds drawn; of two middle values, the lower one. */
static double median_of(const struct measured *figure, const unsigned int *times)
{
	unsigned int i, passed = 0, middle = (figure->nr - 1) / 2;

	for (i = 0; i < figure->nr; i++) {
		passed += times[figure->ascending[i]];
		if (passed > middle)
			break;
	}
	return figure->sample[figure->ascending[i]];
}

static double value_of(const struct quotient *quotient)
{
	return quotient->figure->median / (quotient->reference ? quotient->reference->median : 1);
}

/* One resampled logarithm. */
static double resample(const struct quotient *quotient, uint64_t *random, unsigned int *times)
{
	double value;

	draw_rounds(random, times, quotient->figure->nr);
	value = log(median_of(quotient->figure, times));
	if (!quotient->reference)
		return value;
	if (!quotient->joint)
		draw_rounds(random, times, quotient->reference->nr);
	return value - log(median_of(quotient->reference, times));
}

static unsigned int rounds_of_quotient(const struct quotient *quotient)
{
	unsigned int nr = quotient->figure->nr;

	if (quotient->reference && quotient->reference->nr < nr)
		nr = quotient->reference->nr;
	return nr;
}

/* The variance of the logarithm of a figure. There are at least two rounds. */
static double variance_of(const struct quotient *quotient, uint64_t *random)
{
	unsigned int nr = rounds_of_quotient(quotient), most = quotient->figure->nr, i;
	double deviation, mean = 0, squares = 0;
	unsigned int *times;

	if (quotient->reference && quotient->reference->nr > most)
		most = quotient->reference->nr;
	times = allocate(most, sizeof(*times));
	for (i = 0; i < RESAMPLES; i++) {
		deviation = resample(quotient, random, times) - mean;
		mean += deviation / (i + 1);
		squares += deviation * deviation * i / (i + 1);
	}
	free(times);
	/* Rounds deviate less from their own middle than from the true one. */
	return squares / RESAMPLES * nr / (nr - 1);
}

/* The probability that Student's t is in -@t to @t; Abramowitz and Stegun, 26.7.3 and 26.7.4. */
static double student(double t, unsigned int freedom)
{
	double angle = atan(t / sqrt(freedom)), cosine = cos(angle);
	bool odd = freedom & 1;
	double term = odd ? cosine : 1, sum = 0;
	unsigned int i;

	for (i = odd ? 1 : 0; i + 2 <= freedom; i += 2) {
		sum += term;
		term *= cosine * cosine * (i + 1) / (i + 2);
	}
	sum *= sin(angle);
	return odd ? (angle + sum) * 2 / M_PI : sum;
}

/* The t for which student() is @confidence. */
static double student_quantile(double confidence, unsigned int freedom)
{
	double low = 0, high = 1, middle;
	int i;

	while (student(high, freedom) < confidence)
		high *= 2;
	for (i = 0; i < 50; i++) {
		middle = (low + high) / 2;
		if (student(middle, freedom) < confidence)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static bool is_exact(const struct comparison *comparison)
{
	return !strcmp(comparison->after.lane, "exact");
}

/**
 * compare_rounds_needed - get how many rounds a figure needs in both runs to be judged
 * @comparison:	the runs
 */
unsigned int compare_rounds_needed(const struct comparison *comparison)
{
	return is_exact(comparison) ? ROUNDS_EXACT : ROUNDS;
}

/* The smaller number of rounds of the two runs. */
static unsigned int rounds_of_change(const struct change *change)
{
	unsigned int before = rounds_of_quotient(&change->before);
	unsigned int after = rounds_of_quotient(&change->after);

	return before < after ? before : after;
}

static unsigned int freedom_of(const struct change *change)
{
	return rounds_of_quotient(&change->before) + rounds_of_quotient(&change->after) - 2;
}

/* The variance of the logarithm in a round. */
static double noise_of(const struct change *change)
{
	unsigned int before = rounds_of_quotient(&change->before);
	unsigned int after = rounds_of_quotient(&change->after);
	uint64_t random = 1;
	double noise;

	/* Both runs have the same noise; the one with more rounds knows more of it. */
	noise = variance_of(&change->before, &random) * before * (before - 1);
	noise += variance_of(&change->after, &random) * after * (after - 1);
	return noise / freedom_of(change);
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The noise that a figure has in any case. There are some that are judged. */
static double least_noise(const struct comparison *comparison)
{
	double least = is_exact(comparison) ? LEAST_EXACT : LEAST_NOISE, usual;
	double *noise = allocate(comparison->nr_judged, sizeof(*noise));
	size_t nr = 0, i;

	for (i = 0; i < comparison->nr; i++)
		if (comparison->change[i].judged)
			noise[nr++] = comparison->change[i].noise;
	qsort(noise, nr, sizeof(*noise), compare_numbers);
	usual = SHARE_OF_USUAL * SHARE_OF_USUAL * noise[(nr - 1) / 2];
	free(noise);
	return usual > least * least ? usual : least * least;
}

/* Adds the interval of a change, of which there are @nr in all. */
static void add_interval(struct change *change, double least, size_t nr)
{
	double noise = change->noise > least ? change->noise : least;
	double middle = log(change->to / change->from), half;

	half = sqrt(noise / rounds_of_quotient(&change->before) +
		    noise / rounds_of_quotient(&change->after));
	half *= student_quantile(1 - (1 - CONFIDENCE) / nr, freedom_of(change));
	change->low = expm1(middle - half);
	change->high = expm1(middle + half);
}

/* As printed: what is shown as 5.0 % is 5 %. */
static double shown(double change)
{
	return round(change * 1000) / 1000;
}

static enum verdict verdict_on(const struct change *change, double least)
{
	if (change->low > 0 && shown(change->change) >= least)
		return SLOWER;
	if (change->high < 0 && shown(change->change) <= -least)
		return FASTER;
	return SAME;
}

/**
 * compare_judge - decide which changes are more than noise
 * @comparison:	the changes, to which their intervals and verdicts are added; @nr_judged and
 *		@nr_failed are filled in
 */
void compare_judge(struct comparison *comparison)
{
	struct change *end = comparison->change + comparison->nr, *change;
	double least = comparison->fail < LEAST_CHANGE ? comparison->fail : LEAST_CHANGE, noise;

	for (change = comparison->change; change < end; change++) {
		change->from = value_of(&change->before);
		change->to = value_of(&change->after);
		change->change = change->to / change->from - 1;
		change->rounds = rounds_of_change(change);
		change->judged = change->rounds >= compare_rounds_needed(comparison);
		if (!change->judged)
			continue;
		change->noise = noise_of(change);
		comparison->nr_judged++;
	}
	if (!comparison->nr_judged)
		return;
	noise = least_noise(comparison);
	for (change = comparison->change; change < end; change++) {
		if (!change->judged)
			continue;
		add_interval(change, noise, comparison->nr_judged);
		change->verdict = verdict_on(change, least);
		if (change->verdict == SLOWER && shown(change->change) >= comparison->fail)
			comparison->nr_failed++;
	}
}
