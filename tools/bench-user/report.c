// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: tables and JSON
 */
#include "bench.h"

/**
 * table_header - print what was the same for all tables
 * @out:	where to
 * @setup:	what was measured
 */
void table_header(FILE *out, const struct setup *setup)
{
	fprintf(out, "bench-user %s, CPU %d: %s\n", TWHEEL_VERSION, setup->cpu,
		setup->cpu_model);
	fprintf(out, "seed %llu, %u rounds, CPU time per operation\n",
		(unsigned long long)setup->seed, setup->rounds);
}

static double mib(size_t bytes)
{
	return bytes / 1048576.;
}

/**
 * table_print - print the table of one number of timers
 * @out:	where to
 * @record:	its records: for each scheme all workloads
 * @nr:		number of records
 * @memory:	what their memory is like
 */
void table_print(FILE *out, const struct record *record, size_t nr,
		 const struct memory *memory)
{
	const struct record *row;
	size_t i;

	fprintf(out, "\nn = %zu, %.1f MiB of objects, %.1f MiB in large pages\n", record->size,
		mib(record->size * OBJECT_BYTES), mib(memory->large));
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

static void json_samples(FILE *out, const char *name, const struct samples *samples,
			 unsigned int nr)
{
	unsigned int i;

	fprintf(out, "\"%s\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f, \"samples\": [",
		name, samples->median, samples->min, samples->max);
	for (i = 0; i < nr; i++)
		fprintf(out, "%s%.3f", i ? ", " : "", samples->value[i]);
	fputs("]}", out);
}

static void json_record(FILE *out, const struct record *record)
{
	fprintf(out, "    {\"scheme\": \"%s\", \"workload\": \"%s\", \"n\": %zu, ",
		record->scheme->name, workload_names[record->workload], record->size);
	if (record->workload == ADD_RANDOM)
		fprintf(out, "\"bytes_per_timer\": %.1f, ", record->memory);
	json_samples(out, "ns", &record->ns, record->rounds);
	fputs(", ", out);
	json_samples(out, "limit_ns", &record->limit, record->rounds);
	fputs(", ", out);
	json_samples(out, "x_limit", &record->ratio, record->rounds);
	fputc('}', out);
}

/**
 * report_json - write all records as JSON
 * @out:	where to
 * @setup:	what was measured
 * @record:	the records
 * @nr:		number of records
 */
void report_json(FILE *out, const struct setup *setup, const struct record *record, size_t nr)
{
	const char *c;
	size_t i;

	fprintf(out, "{\n  \"tool\": \"bench-user\", \"version\": \"%s\", \"lane\": \"user\", ",
		TWHEEL_VERSION);
	fputs("\"cpu_model\": \"", out);
	for (c = setup->cpu_model; *c; c++)
		if (*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\')
			fputc(*c, out);
	fprintf(out, "\", \"cpu\": %d, \"seed\": %llu,\n  \"records\": [\n", setup->cpu,
		(unsigned long long)setup->seed);
	for (i = 0; i < nr; i++) {
		json_record(out, &record[i]);
		fputs(i + 1 < nr ? ",\n" : "\n", out);
	}
	fputs("  ]\n}\n", out);
}
