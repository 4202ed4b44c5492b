/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench compare: declarations shared by its files
 */
#ifndef COMPARE_H
#define COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses, as diff has them: something is slower; the files could not be compared. */
#define EXIT_SLOWER	1
#define EXIT_TROUBLE	2

/**
 * struct measured - a figure of a run
 * @scheme:	name of the scheme
 * @workload:	name of the workload, or with twbench api of the operation
 * @order:	order of the objects
 * @nr_timers:	number of timers
 * @sample:	its values, by round; all of them are positive, and have logarithms
 * @ascending:	the rounds, in ascending order of their values
 * @nr:		number of rounds
 * @median:	the median of @sample; of two middle values, the lower one
 */
struct measured {
	const char	*scheme;
	const char	*workload;
	const char	*order;
	uint32_t	nr_timers;
	double		*sample;
	unsigned int	*ascending;
	unsigned int	nr;
	double		median;
};

/**
 * struct footprint - memory of pending timers
 * @scheme:	name of the scheme
 * @timer:	whose timer it is, handle or embedded; "" with twbench api
 * @part:	name of the figure
 * @nr_timers:	number of timers
 * @bytes:	bytes per timer, measured once
 */
struct footprint {
	const char	*scheme;
	const char	*timer;
	const char	*part;
	uint32_t	nr_timers;
	double		bytes;
};

/**
 * struct run - a run of twbench, as read from its JSON
 * @file:	name of the file
 * @version:	version of twbench
 * @kernel:	release of the kernel
 * @cpu_model:	name of the processor
 * @lane:	what kind of machine it was
 * @seed:	seed of the first round
 * @api:	it is of twbench api
 * @figure:	its figures
 * @nr:		number of figures
 * @memory:	its figures of memory
 * @nr_memory:	number of those
 */
struct run {
	const char		*file;
	const char		*version;
	const char		*kernel;
	const char		*cpu_model;
	const char		*lane;
	uint64_t		seed;
	bool			api;
	struct measured		*figure;
	size_t			nr;
	struct footprint	*memory;
	size_t			nr_memory;
};

/**
 * struct quotient - a figure, or the ratio of two figures of a run
 * @figure:	the figure
 * @reference:	what it is divided by; NULL if it stands for itself
 * @joint:	round by round, the two were measured together
 */
struct quotient {
	const struct measured	*figure;
	const struct measured	*reference;
	bool			joint;
};

/**
 * enum verdict - what became of a figure
 * @NOT_JUDGED:	there are too few samples to tell what noise is
 * @SAME:	any difference may be noise, or is too small to matter
 * @FASTER:	it is faster beyond noise
 * @SLOWER:	it is slower beyond noise
 */
enum verdict { NOT_JUDGED, SAME, FASTER, SLOWER };

/**
 * struct change - a figure of two runs
 * @before:	what it was
 * @after:	what it is
 * @from:	the value of @before
 * @to:		the value of @after
 * @change:	the relative change: 0.05 is 5 % more
 * @rounds:	the smaller number of rounds of the two
 * @judged:	these are enough
 * @noise:	the variance of the logarithm of a round, if it is judged
 * @low:	lower end of its confidence interval
 * @high:	upper end of it
 * @verdict:	what became of it
 */
struct change {
	struct quotient	before;
	struct quotient	after;
	double		from;
	double		to;
	double		change;
	unsigned int	rounds;
	bool		judged;
	double		noise;
	double		low;
	double		high;
	enum verdict	verdict;
};

/**
 * struct comparison - two runs
 * @before:	the first
 * @after:	the second
 * @absolute:	times are compared, not ratios
 * @fail:	relative slowdown that counts as a failure
 * @change:	the figures that both have, in the order of @after
 * @nr:		number of elements in @change
 * @nr_judged:	number of those that have an interval
 * @nr_failed:	number of those that are slower, by @fail or more
 * @nr_alone:	figures for which a run has no reference, except for the limit line
 */
struct comparison {
	struct run	before;
	struct run	after;
	bool		absolute;
	double		fail;
	struct change	*change;
	size_t		nr;
	size_t		nr_judged;
	size_t		nr_failed;
	size_t		nr_alone;
};

/* compare.c */
int compare(int argc, char **argv);

/* compare-read.c */
const char *compare_printable(const char *text);
void compare_read(const char *file, struct run *run);

/* compare-match.c */
const char *compare_reference(const struct run *run);
const struct measured *compare_find(const struct run *run, const struct measured *figure);
void compare_match(struct comparison *comparison);

/* compare-judge.c */
unsigned int compare_rounds_needed(const struct comparison *comparison);
void compare_judge(struct comparison *comparison);

/* compare-memory.c */
void compare_memory(const struct comparison *comparison);

/* compare-print.c */
void compare_percent(double ratio, int width);
void compare_print(const struct comparison *comparison);

#endif /* COMPARE_H */
