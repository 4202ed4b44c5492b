/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench: declarations shared by its files
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
 * @common:	what bench-user has as well; if @rounds is 0, rounds_of() decides
 * @fd:		the device
 * @info:	its properties
 * @schemes:	all schemes of the device
 * @max_timers:	by scheme, the maximum number of timers to run it with; 0: do not run it
 * @orders:	values of enum twheel_bench_order
 * @nr_orders:	number of orders
 * @workloads:	bits of the chosen workloads
 * @nr_memory:	number of timers to measure the memory of; 0: do not measure it
 * @nr_lateness: number of timers to measure the lateness of; 0: do not measure it
 * @lane:	what kind of machine this is, for the records
 * @kernel:	release of the running kernel
 */
struct setup {
	struct common_setup		common;
	int				fd;
	struct twheel_bench_info	info;
	struct twheel_bench_scheme	*schemes;
	uint32_t			*max_timers;
	uint32_t			orders[2];
	size_t				nr_orders;
	uint32_t			workloads;
	uint32_t			nr_memory;
	uint32_t			nr_lateness;
	const char			*lane;
	char				kernel[128];
};

/**
 * struct figure - a quantity that is measured of a workload
 * @name:	its name in the tables
 * @workload:	one of enum twheel_bench_workload
 * @cpu:	it is CPU time
 */
struct figure {
	const char	*name;
	uint32_t	workload;
	bool		cpu;
};

/**
 * struct record - the measured figure of a scheme
 * @scheme:	name of the scheme
 * @figure:	which figure
 * @size:	number of timers
 * @order:	one of enum twheel_bench_order
 * @time:	time per operation
 * @x_timer_list: the median as a multiple of that of timer_list; 0 if there is none
 * @x_limit:	likewise, as a multiple of that of the limit line
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
 * struct records - the figures measured
 * @record:	the records, in the order of the tables
 * @nr:		number of records
 */
struct records {
	struct record	*record;
	size_t		nr;
};

/**
 * struct growth - what more timers cost
 * @last:	the record of the largest number of timers
 * @from:	the smallest number of timers
 * @ratio:	the largest median with more timers, as a multiple of the median with @from
 */
struct growth {
	const struct record	*last;
	uint32_t		from;
	double			ratio;
};

/**
 * struct memory - memory of pending timers, in bytes per timer
 * @scheme:	name of the scheme
 * @handle:	the timers belong to a program, and were added through /dev/twheel
 * @in_object:	in the object of the timer's owner
 * @elsewhere:	from the page allocator, after all timers were added
 * @max:	the maximum of that, after the timers were re-armed as well; negative if not
 *		measured
 * @chunks:	the part of @max, or of @elsewhere if that was not measured, that according to
 *		debugfs is chunks of the wheels; negative for other schemes
 */
struct memory {
	const char	*scheme;
	bool		handle;
	double		in_object;
	double		elsewhere;
	double		max;
	double		chunks;
};

/**
 * struct results - all results
 * @records:	figures of speed
 * @memory:	memory
 * @nr_memory:	number of elements in @memory
 * @lateness:	lateness, by scheme
 * @nr_lateness: number of elements in @lateness
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

/* main.c */
void choose_schemes(struct setup *setup, char *list);

/* device.c */
const char *device_error(int error);
void device_open(struct setup *setup);
void device_check(const struct setup *setup, FILE *out);
void device_run(const struct setup *setup, struct twheel_bench_run *run);
void device_lateness(const struct setup *setup, struct twheel_bench_lateness *lateness);
void device_memory(const struct setup *setup, struct twheel_bench_memory *memory);
uint64_t device_free_bytes(const struct setup *setup);

/* measure.c */
unsigned int rounds_of(const struct setup *setup, uint32_t size);
void measure_size(const struct setup *setup, uint32_t size, uint32_t order,
		  struct records *records);
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
