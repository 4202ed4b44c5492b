// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: tables
 */
#include <string.h>

#include "twbench.h"

/**
 * is_exact - is this a machine on which a nanosecond is an instruction?
 * @setup:	@lane is the kind of machine
 */
bool is_exact(const struct setup *setup)
{
	return !strcmp(setup->lane, "exact");
}

/**
 * unit_name - get the name of the unit of all figures
 * @setup:	@lane is the kind of machine
 */
const char *unit_name(const struct setup *setup)
{
	return is_exact(setup) ? "instructions" : "ns";
}

/**
 * table_header - print what all tables have in common
 * @out:	the stream to write to
 * @setup:	what is compared
 */
void table_header(FILE *out, const struct setup *setup)
{
	fprintf(out, "twbench %s, kernel %s, CPU %d: %s\n", TWHEEL_VERSION, setup->kernel,
		setup->common.cpu, setup->common.cpu_model);
	fprintf(out, "lane %s, seed %llu, wheel tick %.3f ms, jiffy %.3f ms, clock read %.1f %s\n",
		setup->lane, (unsigned long long)setup->common.seed, setup->info.tick_ns / 1e6,
		setup->info.jiffy_ns / 1e6, setup->info.clock_ps / 1e3, unit_name(setup));
}

/**
 * table_objects - print how much of its object a timer of each scheme takes
 * @out:	the stream to write to
 * @setup:	what is compared
 */
void table_objects(FILE *out, const struct setup *setup)
{
	uint32_t i;

	fprintf(out, "objects of %u bytes; of these a timer takes:", setup->info.stride);
	for (i = 0; i < setup->info.nr_schemes; i++)
		if (setup->max_timers[i] && setup->schemes[i].checked)
			fprintf(out, " %s %u", setup->schemes[i].name,
				setup->schemes[i].object_size);
	fputc('\n', out);
}

static void print_ratio(FILE *out, double ratio)
{
	if (ratio > 0)
		fprintf(out, " %12.2f", ratio);
	else
		fprintf(out, " %12s", "-");
}

static void print_row(FILE *out, const struct setup *setup, const struct record *row)
{
	fprintf(out, "%-14s %-12s %10.1f %10.1f %10.1f", row->figure->name, row->scheme,
		row->time.median, row->time.min, row->time.max);
	print_ratio(out, row->x_timer_list);
	if (!is_exact(setup))
		print_ratio(out, row->x_limit);
	fputc('\n', out);
}

/**
 * table_print - print the table for one number of timers and one order
 * @out:	the stream to write to
 * @setup:	what is compared
 * @record:	its records
 * @nr:		number of records
 */
void table_print(FILE *out, const struct setup *setup, const struct record *record, size_t nr)
{
	size_t i;

	if (!nr)
		return;
	fprintf(out, "\nn = %u, %s order, %u round%s, %s per operation\n", record->size,
		order_names[record->order], record->time.nr, record->time.nr == 1 ? "" : "s",
		unit_name(setup));
	fprintf(out, "%-14s %-12s %10s %10s %10s %12s", "workload", "scheme", "median",
		"min", "max", "x timer_list");
	if (!is_exact(setup))
		fprintf(out, " %12s", "x limit");
	fputc('\n', out);
	for (i = 0; i < nr; i++) {
		if (i && record[i].figure != record[i - 1].figure)
			fputc('\n', out);
		print_row(out, setup, &record[i]);
	}
	fflush(out);
}

/**
 * table_growth - print what more timers cost
 * @out:	the stream to write to
 * @records:	all records; if they are all for one number of timers, nothing is printed
 */
void table_growth(FILE *out, const struct records *records)
{
	const struct record *record, *last = NULL;
	struct growth growth;
	size_t i;

	for (i = 0; i < records->nr; i++) {
		record = &records->record[i];
		if (!growth_of(records, record, &growth))
			continue;
		if (!last || record->order != last->order) {
			fprintf(out, "\ngrowth from n = %u to the worst of more, %s order\n",
				growth.from, order_names[record->order]);
			fprintf(out, "%-14s %-12s %10s %10s\n", "workload", "scheme", "up to n",
				"percent");
		} else if (record->figure != last->figure) {
			fputc('\n', out);
		}
		fprintf(out, "%-14s %-12s %10u %+10.1f\n", record->figure->name, record->scheme,
			record->size, (growth.ratio - 1) * 100);
		last = record;
	}
	fflush(out);
}
