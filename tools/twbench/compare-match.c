// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench compare: which figures belong together
 *
 * A figure of one run belongs to the same figure of the other. Unless times are asked for, it is
 * divided by a figure of its own run, that of the kernel's own timers: whatever makes a whole run
 * slower, be it another program or a lower clock frequency, makes both slower.
 */
#include <string.h>

#include "bench-common.h"
#include "compare.h"

/* What everything is divided by. */
#define SCHEMES_REFERENCE	"timer_list"
#define API_REFERENCE		"timerfd"
#define API_OPERATION		"rearm_later"

/**
 * compare_reference - get the name of the scheme whose figures the others are divided by
 * @run:	the run
 */
const char *compare_reference(const struct run *run)
{
	return run->api ? API_REFERENCE : SCHEMES_REFERENCE;
}

/**
 * compare_find - find a figure
 * @run:	the run in which to look for it
 * @figure:	its scheme, workload, order and number of timers
 *
 * Return: the figure, or NULL if the run has none.
 */
const struct measured *compare_find(const struct run *run, const struct measured *figure)
{
	const struct measured *candidate;

	for (candidate = run->figure; candidate < run->figure + run->nr; candidate++)
		if (candidate->nr_timers == figure->nr_timers &&
		    !strcmp(candidate->scheme, figure->scheme) &&
		    !strcmp(candidate->workload, figure->workload) &&
		    !strcmp(candidate->order, figure->order))
			return candidate;
	return NULL;
}

/* Divides @figure by its reference. Returns false if the run has none. */
static bool divide(const struct run *run, const struct measured *figure,
		   struct quotient *quotient)
{
	struct measured key = *figure;

	key.scheme = compare_reference(run);
	if (run->api)
		key.workload = API_OPERATION;
	*quotient = (struct quotient) {
		.figure		= figure,
		.reference	= compare_find(run, &key),
	};
	/* Schemes are measured in turn, round by round; the interfaces, one after the other. */
	quotient->joint = !run->api && quotient->reference &&
			  quotient->reference->nr == figure->nr;
	return quotient->reference;
}

static bool is_reference(const struct run *run, const struct measured *figure)
{
	return !strcmp(figure->scheme, compare_reference(run)) &&
	       (!run->api || !strcmp(figure->workload, API_OPERATION));
}

/* Returns false if there is nothing to compare. */
static bool match(struct comparison *comparison, const struct measured *after,
		  struct change *change)
{
	const struct measured *before = compare_find(&comparison->before, after);

	if (!before)
		return false;
	*change = (struct change) { .before.figure = before, .after.figure = after };
	if (comparison->absolute)
		return true;
	if (is_reference(&comparison->after, after))
		return false;
	if (divide(&comparison->before, before, &change->before) &&
	    divide(&comparison->after, after, &change->after))
		return true;
	if (strcmp(after->scheme, "limit"))
		comparison->nr_alone++;
	return false;
}

/**
 * compare_match - match the figures of two runs
 * @comparison:	@before and @after are the runs; @change, @nr and @nr_alone are filled in
 */
void compare_match(struct comparison *comparison)
{
	const struct run *after = &comparison->after;
	size_t i;

	comparison->change = allocate(after->nr, sizeof(*comparison->change));
	for (i = 0; i < after->nr; i++)
		if (match(comparison, &after->figure[i], &comparison->change[comparison->nr]))
			comparison->nr++;
}
