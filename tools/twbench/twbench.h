/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench: what its parts share
 */
#ifndef TWBENCH_H
#define TWBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <linux/twheel_bench.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Exit codes: the comparison failed, and the command line is wrong. */
#define EXIT_FAILED	1
#define EXIT_USAGE	2

/**
 * struct setup - what is compared, and where
 * @fd:		the device
 * @info:	what it says of itself
 * @schemes:	all schemes of the device
 * @chosen:	whether to run each of them
 * @sizes:	numbers of timers
 * @nr_sizes:	how many of these
 * @orders:	values of enum twheel_bench_order
 * @nr_orders:	how many of these
 * @workloads:	bits of the workloads that are asked for
 * @rounds:	0: as many as rounds_of() says
 * @seed:	of the first round; each further round takes the next number
 * @cpu:	the CPU to run on
 * @lane:	what kind of machine this is, for the records
 * @kernel:	release of the running kernel
 * @cpu_model:	name of the processor
 */
struct setup {
	int				fd;
	struct twheel_bench_info	info;
	struct twheel_bench_scheme	*schemes;
	bool				*chosen;
	uint32_t			*sizes;
	size_t				nr_sizes;
	uint32_t			orders[2];
	size_t				nr_orders;
	uint32_t			workloads;
	unsigned int			rounds;
	uint64_t			seed;
	int				cpu;
	const char			*lane;
	char				kernel[128];
	char				cpu_model[128];
};

/**
 * struct samples - one quantity, measured in each round, per operation
 * @value:	of each round
 * @nr:		number of rounds
 * @median:	the value in the middle
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

/**
 * struct record - a scheme and a workload, measured
 * @scheme:	name of the scheme
 * @workload:	one of enum twheel_bench_workload
 * @size:	number of timers
 * @order:	one of enum twheel_bench_order
 * @time:	time per operation
 * @cpu:	CPU time per operation; none if @has_cpu is false
 * @has_cpu:	whether it was measured
 */
struct record {
	const char	*scheme;
	uint32_t	workload;
	uint32_t	size;
	uint32_t	order;
	struct samples	time;
	struct samples	cpu;
	bool		has_cpu;
};

/**
 * struct records - all that was measured
 * @record:	in the order of the tables
 * @nr:		number of records
 */
struct records {
	struct record	*record;
	size_t		nr;
};

extern const char *const workload_names[TWHEEL_BENCH_NR_WORKLOADS];
extern const char *const order_names[2];

/* main.c */
void *allocate(size_t nr, size_t size);

/* device.c */
void device_open(struct setup *setup);
void device_check(const struct setup *setup, FILE *out);
void device_run(const struct setup *setup, struct twheel_bench_run *run);

/* measure.c */
unsigned int rounds_of(const struct setup *setup, uint32_t size);
void measure(const struct setup *setup, uint32_t size, uint32_t order, struct records *records);

/* table.c */
bool is_exact(const struct setup *setup);
const char *unit_name(const struct setup *setup);
void table_header(FILE *out, const struct setup *setup);
void table_print(FILE *out, const struct setup *setup, const struct record *record, size_t nr);

/* report.c */
void report_json(FILE *out, const struct setup *setup, const struct records *records);
void report_csv(FILE *out, const struct setup *setup, const struct records *records);

#endif /* TWBENCH_H */
