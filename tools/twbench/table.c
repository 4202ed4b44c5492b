// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: tables
 */
#include <string.h>

#include "twbench.h"

/**
 * is_exact - is a nanosecond an instruction?
 * @setup:	names the lane
 */
bool is_exact(const struct setup *setup)
{
	return !strcmp(setup->lane, "exact");
}

/**
 * unit_name - the unit of all figures
 * @setup:	names the lane
 */
const char *unit_name(const struct setup *setup)
{
	return is_exact(setup) ? "instructions" : "ns";
}

/**
 * table_header - print what was the same for all tables
 * @out:	where to
 * @setup:	what is compared
 */
void table_header(FILE *out, const struct setup *setup)
{
	uint32_t i;

	fprintf(out, "twbench %s, kernel %s, CPU %d: %s\n", TWHEEL_VERSION, setup->kernel,
		setup->cpu, setup->cpu_model);
	fprintf(out, "lane %s, seed %llu, wheel tick %.3f ms, jiffy %.3f ms, clock read %.1f %s\n",
		setup->lane, (unsigned long long)setup->seed, setup->info.tick_ns / 1e6,
		setup->info.jiffy_ns / 1e6, setup->info.clock_ps / 1e3, unit_name(setup));
	fprintf(out, "objects of %u bytes; of these the timer takes:", setup->info.stride);
	for (i = 0; i < setup->info.nr_schemes; i++)
		if (setup->chosen[i] && setup->schemes[i].checked)
			fprintf(out, " %s %u", setup->schemes[i].name,
				setup->schemes[i].object_size);
	fputc('\n', out);
}

/* The median that others are compared with, or 0. */
static double median_of(const struct record *record, size_t nr, const char *scheme,
			uint32_t workload)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (record[i].workload == workload && !strcmp(record[i].scheme, scheme))
			return record[i].time.median;
	return 0;
}

static void print_ratio(FILE *out, double value, double base)
{
	if (base > 0)
		fprintf(out, " %12.2f", value / base);
	else
		fprintf(out, " %12s", "-");
}

static void print_row(FILE *out, const struct setup *setup, const struct record *row,
		      double timer_list, double limit)
{
	fprintf(out, "%-14s %-12s %10.1f %10.1f %10.1f", workload_names[row->workload],
		row->scheme, row->time.median, row->time.min, row->time.max);
	if (row->has_cpu)
		fprintf(out, " %10.1f", row->cpu.median);
	else
		fprintf(out, " %10s", "-");
	print_ratio(out, row->time.median, timer_list);
	if (!is_exact(setup))
		print_ratio(out, row->time.median, limit);
	fputc('\n', out);
}

/**
 * table_print - print the table of one number of timers and one order
 * @out:	where to
 * @setup:	what is compared
 * @record:	its records
 * @nr:		number of records
 */
void table_print(FILE *out, const struct setup *setup, const struct record *record, size_t nr)
{
	double limit = median_of(record, nr, "limit", TWHEEL_BENCH_RMW);
	size_t i;

	if (!nr)
		return;
	fprintf(out, "\nn = %u, %s order, %u round%s, %s per operation\n", record->size,
		order_names[record->order], record->time.nr, record->time.nr == 1 ? "" : "s",
		unit_name(setup));
	fprintf(out, "%-14s %-12s %10s %10s %10s %10s %12s", "workload", "scheme", "median",
		"min", "max", "cpu", "x timer_list");
	if (!is_exact(setup))
		fprintf(out, " %12s", "x limit");
	fputc('\n', out);
	for (i = 0; i < nr; i++) {
		if (i && record[i].workload != record[i - 1].workload)
			fputc('\n', out);
		print_row(out, setup, &record[i],
			  median_of(record, nr, "timer_list", record[i].workload), limit);
	}
	fflush(out);
}
