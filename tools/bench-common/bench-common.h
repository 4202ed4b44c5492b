/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations shared by the benchmarks, twbench and bench-user
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Exit statuses: the measurement failed; the command line is wrong. */
#define EXIT_FAILED	1
#define EXIT_USAGE	2

/**
 * struct common_setup - what is measured, and where
 * @sizes:	numbers of timers
 * @nr_sizes:	number of elements in @sizes
 * @max_timers:	the largest valid number of timers
 * @rounds:	how often everything is measured
 * @seed:	seed of the first round; each further round uses the next number
 * @cpu:	the CPU to run on; less than 0: the last one allowed
 * @cpu_model:	name of the processor
 * @json:	file to write JSON to, or NULL
 */
struct common_setup {
	uint32_t	*sizes;
	size_t		nr_sizes;
	uint32_t	max_timers;
	unsigned int	rounds;
	uint64_t	seed;
	int		cpu;
	char		cpu_model[128];
	const char	*json;
};

/**
 * struct samples - a quantity that is measured in each round
 * @value:	its values, by round
 * @nr:		number of rounds
 * @median:	the median; of two middle values, the lower one
 * @min:	the smallest
 * @max:	the largest
 */
struct samples {
	double		*value;
	unsigned int	nr;
	double		median;
	double		min;
	double		max;
};

/* options.c */
extern const struct argp_child common_options[];
uint64_t parse_number(const char *what, const char *text, uint64_t min, uint64_t max);
void parse_command_line(const struct argp *program, const char *name, int argc, char **argv,
			void *input);
const char *command_line(void);

/* machine.c */
void bind_cpu(struct common_setup *setup);
void describe_cpu(struct common_setup *setup);

/* samples.c */
void *allocate(size_t nr, size_t size);
struct samples new_samples(unsigned int rounds);
void add_sample(struct samples *samples, double value);
void summarise(struct samples *samples);

/* output.c */
FILE *open_report(const char *name);
void close_report(const char *name, FILE *file);
void json_member(FILE *out, const char *name, const char *value);
void json_samples(FILE *out, const struct samples *samples);

#endif /* BENCH_COMMON_H */
