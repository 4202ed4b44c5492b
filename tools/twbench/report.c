// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: JSON and CSV
 *
 * Both hold the same records. Only this much of JSON is written: objects, arrays,
 * numbers, and strings of names.
 */
#include "twbench.h"

static void json_string(FILE *out, const char *string)
{
	const unsigned char *c;

	fputc('"', out);
	for (c = (const unsigned char *)string; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < ' ' || *c > '~')
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

static void json_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\": ", name);
	json_string(out, value);
	fputs(", ", out);
}

static void json_samples(FILE *out, const char *name, const struct samples *samples)
{
	unsigned int i;

	fprintf(out, "\"%s\": [", name);
	for (i = 0; i < samples->nr; i++)
		fprintf(out, "%s%.3f", i ? ", " : "", samples->value[i]);
	fputc(']', out);
}

static void json_record(FILE *out, const struct setup *setup, const struct record *record)
{
	fputs("    {", out);
	json_member(out, "scheme", record->scheme);
	json_member(out, "workload", workload_names[record->workload]);
	fprintf(out, "\"n\": %u, ", record->size);
	json_member(out, "order", order_names[record->order]);
	json_member(out, "unit", unit_name(setup));
	json_member(out, "lane", setup->lane);
	fprintf(out, "\"median\": %.3f, \"min\": %.3f, \"max\": %.3f, ",
		record->time.median, record->time.min, record->time.max);
	json_samples(out, "samples", &record->time);
	fputs(", ", out);
	if (record->has_cpu) {
		fprintf(out, "\"cpu\": %.3f, ", record->cpu.median);
		json_samples(out, "cpu_samples", &record->cpu);
		fputs(", ", out);
	}
	json_member(out, "kernel", setup->kernel);
	fprintf(out, "\"seed\": %llu}", (unsigned long long)setup->seed);
}

/**
 * report_json - write all records as JSON
 * @out:	where to
 * @setup:	what was compared
 * @records:	the records
 */
void report_json(FILE *out, const struct setup *setup, const struct records *records)
{
	size_t i;

	fputs("{\n  ", out);
	json_member(out, "tool", "twbench");
	json_member(out, "version", TWHEEL_VERSION);
	json_member(out, "kernel", setup->kernel);
	json_member(out, "cpu_model", setup->cpu_model);
	json_member(out, "lane", setup->lane);
	fprintf(out, "\"cpu\": %d, \"seed\": %llu, \"tick_ns\": %llu, \"jiffy_ns\": %llu, ",
		setup->cpu, (unsigned long long)setup->seed, setup->info.tick_ns,
		setup->info.jiffy_ns);
	fprintf(out, "\"clock_read\": %.3f, \"stride\": %u,\n  \"records\": [\n",
		setup->info.clock_ps / 1e3, setup->info.stride);
	for (i = 0; i < records->nr; i++) {
		json_record(out, setup, &records->record[i]);
		fputs(i + 1 < records->nr ? ",\n" : "\n", out);
	}
	fputs("  ]\n}\n", out);
}

static void csv_string(FILE *out, const char *string)
{
	fputc('"', out);
	for (; *string; string++) {
		if (*string == '"')
			fputc('"', out);
		fputc(*string, out);
	}
	fputc('"', out);
}

static void csv_samples(FILE *out, const struct samples *samples)
{
	unsigned int i;

	for (i = 0; i < samples->nr; i++)
		fprintf(out, "%s%.3f", i ? " " : "", samples->value[i]);
}

static void csv_record(FILE *out, const struct setup *setup, const struct record *record)
{
	fprintf(out, "%s,%s,%u,%s,%s,", record->scheme, workload_names[record->workload],
		record->size, order_names[record->order], unit_name(setup));
	csv_string(out, setup->lane);
	fprintf(out, ",%.3f,%.3f,%.3f,", record->time.median, record->time.min,
		record->time.max);
	if (record->has_cpu)
		fprintf(out, "%.3f", record->cpu.median);
	fputc(',', out);
	csv_string(out, setup->kernel);
	fprintf(out, ",%llu,", (unsigned long long)setup->seed);
	csv_samples(out, &record->time);
	fputc(',', out);
	if (record->has_cpu)
		csv_samples(out, &record->cpu);
	fputc('\n', out);
}

/**
 * report_csv - write all records as CSV, samples separated by blanks
 * @out:	where to
 * @setup:	what was compared
 * @records:	the records
 */
void report_csv(FILE *out, const struct setup *setup, const struct records *records)
{
	size_t i;

	fputs("scheme,workload,n,order,unit,lane,median,min,max,cpu,kernel,seed,", out);
	fputs("samples,cpu_samples\n", out);
	for (i = 0; i < records->nr; i++)
		csv_record(out, setup, &records->record[i]);
}
