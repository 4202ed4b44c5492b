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

#include "bench-common.h"

/**
 * struct setup - what is compared, and where
 * @common:	what bench-user is told, too; 0 rounds: as many as rounds_of() says
 * @fd:		the device
 * @info:	what it says of itself
 * @schemes:	all schemes of the device
 * @most:	by scheme, with how many timers to run it at most; 0: not at all
 * @orders:	values of enum twheel_bench_order
 * @nr_orders:	how many of these
 * @workloads:	bits of the workloads that are asked for
 * @nr_memory:	how many timers to measure the memory of; 0: none
 * @nr_lateness: how many timers to measure the lateness of; 0: none
 * @lane:	what kind of machine this is, for the records
 * @kernel:	release of the running kernel
 */
struct setup {
	struct common_setup		common;
	int				fd;
	struct twheel_bench_info	info;
	struct twheel_bench_scheme	*schemes;
	uint32_t			*most;
	uint32_t			orders[2];
	size_t				nr_orders;
	uint32_t			workloads;
	uint32_t			nr_memory;
	uint32_t			nr_lateness;
	const char			*lane;
	char				kernel[128];
};

/**
 * struct figure - what a workload is measured in
 * @name:	as it is called in tables
 * @workload:	one of enum twheel_bench_workload
 * @cpu:	it is the CPU time
 */
struct figure {
	const char	*name;
	uint32_t	workload;
	bool		cpu;
};

/**
 * struct record - a figure of a scheme, measured
 * @scheme:	name of the scheme
 * @figure:	which figure
 * @size:	number of timers
 * @order:	one of enum twheel_bench_order
 * @time:	time per operation
 * @x_timer_list: the median, as a multiple of that of timer_list; 0 if there is none
 * @x_limit:	likewise, of the limit line
 */
struct record {
	const char		*scheme;
	const struct figure	*figure;
	uint32_t		size;
	uint32_t		order;
	struct samples		time;
	double			x_timer_list;
	double			x_limit;
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

/**
 * struct growth - what more timers cost
 * @last:	the record of the largest number of timers
 * @from:	the smallest
 * @ratio:	the largest median of more timers than that, as a multiple of its median
 */
struct growth {
	const struct record	*last;
	uint32_t		from;
	double			ratio;
};

/**
 * struct memory - what pending timers take, in bytes for each
 * @scheme:	name of the scheme
 * @handle:	the timers are those of a program, added to /dev/twheel
 * @in_object:	in the object of the timer's owner
 * @elsewhere:	from the page allocator, when all have been added
 * @most:	the same at most, when they have been re-armed, too; less than 0 if that
 *		was not measured
 * @chunks:	what debugfs says of @elsewhere for the slots of the wheels, or of @most
 *		if that was measured; less than 0 if it is another scheme
 */
struct memory {
	const char	*scheme;
	bool		handle;
	double		in_object;
	double		elsewhere;
	double		most;
	double		chunks;
};

/**
 * struct results - all that was measured
 * @records:	figures of speed
 * @memory:	memory
 * @nr_memory:	how many of these
 * @lateness:	lateness, by scheme
 * @nr_lateness: how many of these
 */
struct results {
	struct records			records;
	struct memory			*memory;
	size_t				nr_memory;
	struct twheel_bench_lateness	*lateness;
	size_t				nr_lateness;
};

extern const char *const workload_names[TWHEEL_BENCH_NR_WORKLOADS];
extern const char *const order_names[2];

/* device.c */
void device_open(struct setup *setup);
void device_check(const struct setup *setup, FILE *out);
void device_run(const struct setup *setup, struct twheel_bench_run *run);
void device_lateness(const struct setup *setup, struct twheel_bench_lateness *lateness);
void device_memory(const struct setup *setup, struct twheel_bench_memory *memory);
uint64_t device_free_bytes(const struct setup *setup);

/* measure.c */
unsigned int rounds_of(const struct setup *setup, uint32_t size);
void measure(const struct setup *setup, uint32_t size, uint32_t order, struct records *records);
bool growth_of(const struct records *records, const struct record *last, struct growth *growth);

/* memory.c */
uint64_t chunk_bytes(void);
void memory_measure(const struct setup *setup, struct results *results);
void memory_print(FILE *out, const struct setup *setup, const struct results *results);

/* lateness.c */
void lateness_measure(const struct setup *setup, struct results *results);
void lateness_print(FILE *out, const struct setup *setup, const struct results *results);

/* table.c */
bool is_exact(const struct setup *setup);
const char *unit_name(const struct setup *setup);
void table_header(FILE *out, const struct setup *setup);
void table_objects(FILE *out, const struct setup *setup);
void table_print(FILE *out, const struct setup *setup, const struct record *record, size_t nr);
void table_growth(FILE *out, const struct records *records);

/* report.c */
void report_json(FILE *out, const struct setup *setup, const struct results *results);
void report_csv(FILE *out, const struct setup *setup, const struct records *records);

#endif /* TWBENCH_H */
