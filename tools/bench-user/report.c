// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: tables and JSON
 */
#include <sys/utsname.h>

#include "bench.h"

/**
 * table_header - print what all tables have in common
 * @out:	the stream to write to
 * @setup:	what was measured
 */
void table_header(FILE *out, const struct common_setup *setup)
{
	fprintf(out, "bench-user %s, CPU %d: %s\n", TWHEEL_VERSION, setup->cpu,
		setup->cpu_model);
	fprintf(out, "seed %llu, %u rounds, CPU time per operation\n",
		(unsigned long long)setup->seed, setup->rounds);
}

static double to_mib(size_t bytes)
{
	return bytes / 1048576.;
}

/**
 * table_print - print the table for one number of timers
 * @out:	the stream to write to
 * @record:	its records: for each scheme, all workloads
 * @nr:		number of records
 * @memory:	the properties of the objects' memory
 */
void table_print(FILE *out, const struct record *record, size_t nr,
		 const struct memory *memory)
{
	const struct record *row;
	size_t i;

	fprintf(out, "\nn = %zu, %.1f MiB of objects, %.1f MiB in large pages\n", record->size,
		to_mib(record->size * OBJECT_BYTES), to_mib(memory->large));
	fprintf(out, "limit line %.2f ns; storing through a pointer %.1f x that\n",
		record->limit.median, memory->stores);
	fprintf(out, "%-16s%-8s%9s%9s%9s%12s%9s%9s\n", "workload", "scheme", "ns", "min", "max",
		"x limit", "min", "max");
	for (i = 0; i < nr; i++) {
		row = &record[i % nr_schemes * NR_WORKLOADS + i / nr_schemes];
		fprintf(out, "%-16s%-8s%9.1f%9.1f%9.1f%12.2f%9.2f%9.2f\n",
			workload_names[row->workload], row->scheme->name, row->ns.median,
			row->ns.min, row->ns.max, row->ratio.median, row->ratio.min,
			row->ratio.max);
	}
	for (i = 0; i < nr_schemes; i++) {
		row = &record[i * NR_WORKLOADS + ADD_RANDOM];
		fprintf(out, "bytes per timer, %s: %.1f, of these %zu in the object\n",
			row->scheme->name, row->memory, row->scheme->timer_bytes);
	}
	fflush(out);
}

static void json_quantity(FILE *out, const char *name, const struct samples *samples)
{
	fprintf(out, ", \"%s\": {", name);
	json_samples(out, samples);
	fputc('}', out);
}

static void json_record(FILE *out, const struct record *record)
{
	fputs("    {", out);
	json_member(out, "scheme", record->scheme->name);
	json_member(out, "workload", workload_names[record->workload]);
	fprintf(out, "\"n\": %zu", record->size);
	if (record->workload == ADD_RANDOM)
		fprintf(out, ", \"bytes_per_timer\": %.1f", record->memory);
	json_quantity(out, "ns", &record->ns);
	json_quantity(out, "limit_ns", &record->limit);
	json_quantity(out, "x_limit", &record->ratio);
	fputc('}', out);
}

/**
 * report_json - write all records as JSON
 * @out:	the stream to write to
 * @setup:	what was measured
 * @record:	the records
 * @nr:		number of records
 */
void report_json(FILE *out, const struct common_setup *setup, const struct record *record,
		 size_t nr)
{
	struct utsname system;
	size_t i;

	fputs("{\n  ", out);
	json_member(out, "tool", "bench-user");
	json_member(out, "version", TWHEEL_VERSION);
	json_member(out, "lane", "user");
	uname(&system);
	json_member(out, "kernel", system.release);
	json_member(out, "cpu_model", setup->cpu_model);
	json_member(out, "command", command_line());
	fprintf(out, "\"cpu\": %d, \"seed\": %llu,\n  \"records\": [\n", setup->cpu,
		(unsigned long long)setup->seed);
	for (i = 0; i < nr; i++) {
		json_record(out, &record[i]);
		fputs(i + 1 < nr ? ",\n" : "\n", out);
	}
	fputs("  ]\n}\n", out);
}
