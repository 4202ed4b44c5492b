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
 */
#include <math.h>
#include <stdlib.h>

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

/* Adds the interval of a change, of which there are @nr in all. */
static void add_interval(struct change *change, size_t nr)
{
	unsigned int before = rounds_of_quotient(&change->before);
	unsigned int after = rounds_of_quotient(&change->after);
	unsigned int freedom = before + after - 2;
	uint64_t random = 1;
	double middle = log(change->to / change->from), of_a_round, half;

	/* Both runs have the same noise; the one with more rounds knows more of it. */
	of_a_round = variance_of(&change->before, &random) * before * (before - 1);
	of_a_round += variance_of(&change->after, &random) * after * (after - 1);
	of_a_round /= freedom;
	half = sqrt(of_a_round / before + of_a_round / after);
	half *= student_quantile(1 - (1 - CONFIDENCE) / nr, freedom);
	change->low = expm1(middle - half);
	change->high = expm1(middle + half);
}

static bool has_noise(const struct change *change)
{
	return rounds_of_quotient(&change->before) > 1 && rounds_of_quotient(&change->after) > 1;
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
	double least = comparison->fail < LEAST_CHANGE ? comparison->fail : LEAST_CHANGE;

	for (change = comparison->change; change < end; change++) {
		change->from = value_of(&change->before);
		change->to = value_of(&change->after);
		change->change = change->to / change->from - 1;
		comparison->nr_judged += has_noise(change);
	}
	for (change = comparison->change; change < end; change++) {
		if (!has_noise(change))
			continue;
		add_interval(change, comparison->nr_judged);
		change->verdict = verdict_on(change, least);
		if (change->verdict == SLOWER && shown(change->change) >= comparison->fail)
			comparison->nr_failed++;
	}
}
