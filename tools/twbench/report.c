// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: JSON and CSV
 *
 * Both contain the same records; growth, memory and lateness are only in the JSON.
 */
#include "api.h"

/* A missing ratio is null. */
static void json_ratio(FILE *out, const char *name, double ratio)
{
	if (ratio > 0)
		fprintf(out, "\"%s\": %.4f, ", name, ratio);
	else
		fprintf(out, "\"%s\": null, ", name);
}

static void json_record(FILE *out, const struct setup *setup, const struct record *record)
{
	fputs("    {", out);
	json_member(out, "scheme", record->scheme);
	json_member(out, "workload", record->figure->name);
	fprintf(out, "\"n\": %u, ", record->size);
	json_member(out, "order", order_names[record->order]);
	json_member(out, "unit", unit_name(setup));
	json_member(out, "lane", setup->lane);
	json_ratio(out, "x_timer_list", record->x_timer_list);
	json_ratio(out, "x_limit", record->x_limit);
	json_member(out, "kernel", setup->kernel);
	fprintf(out, "\"seed\": %llu, ", (unsigned long long)setup->common.seed);
	json_samples(out, &record->time);
	fputc('}', out);
}

static void json_growth(FILE *out, const struct growth *growth)
{
	fputs("    {", out);
	json_member(out, "scheme", growth->last->scheme);
	json_member(out, "workload", growth->last->figure->name);
	json_member(out, "order", order_names[growth->last->order]);
	fprintf(out, "\"from_n\": %u, \"to_n\": %u, \"ratio\": %.4f}", growth->from,
		growth->last->size, growth->ratio);
}

static void json_memory(FILE *out, const struct setup *setup, const struct memory *memory)
{
	fputs("    {", out);
	json_member(out, "scheme", memory->scheme);
	json_member(out, "timer", memory->handle ? "handle" : "embedded");
	fprintf(out, "\"n\": %u, \"in_object\": %.3f, \"elsewhere\": %.3f, ",
		setup->nr_memory, memory->in_object, memory->elsewhere);
	if (memory->chunks >= 0)
		fprintf(out, "\"chunks\": %.3f, ", memory->chunks);
	if (memory->max >= 0)
		fprintf(out, "\"sum_rearmed\": %.3f, ", memory->in_object + memory->max);
	fprintf(out, "\"sum\": %.3f}", memory->in_object + memory->elsewhere);
}

static void json_lateness(FILE *out, const struct setup *setup,
			  const struct twheel_bench_lateness *lateness)
{
	unsigned int i;

	fputs("    {", out);
	json_member(out, "scheme", setup->schemes[lateness->scheme].name);
	fprintf(out, "\"n\": %u, \"min_ns\": %llu, \"max_ns\": %llu, ", lateness->nr_timers,
		lateness->min_ns, lateness->max_ns);
	fprintf(out, "\"early\": %llu, \"worst_ns\": %llu, \"late\": [", lateness->early,
		lateness->worst_ns);
	for (i = 0; i < TWHEEL_BENCH_LATE_BUCKETS; i++)
		fprintf(out, "%s%llu", i ? ", " : "", lateness->late[i]);
	fputs("]}", out);
}

static void json_begin(FILE *out, const char *name)
{
	fprintf(out, ",\n  \"%s\": [", name);
}

static void json_separate(FILE *out, size_t i)
{
	fputs(i ? ",\n" : "\n", out);
}

static void json_end(FILE *out)
{
	fputs("\n  ]", out);
}

static void json_all_growth(FILE *out, const struct records *records)
{
	struct growth growth;
	size_t nr = 0, i;

	json_begin(out, "growth");
	for (i = 0; i < records->nr; i++) {
		if (!growth_of(records, &records->record[i], &growth))
			continue;
		json_separate(out, nr++);
		json_growth(out, &growth);
	}
	json_end(out);
}

/* The beginning of both reports. */
static void json_head(FILE *out, const struct setup *setup)
{
	fputs("{\n  ", out);
	json_member(out, "tool", "twbench");
	json_member(out, "version", TWHEEL_VERSION);
	json_member(out, "kernel", setup->kernel);
	json_member(out, "cpu_model", setup->common.cpu_model);
	json_member(out, "lane", setup->lane);
	json_member(out, "command", command_line());
	fprintf(out, "\"cpu\": %d, \"seed\": %llu", setup->common.cpu,
		(unsigned long long)setup->common.seed);
}

static void json_api_record(FILE *out, const struct setup *setup,
			    const struct api_results *results,
			    const struct api_result *result, int operation)
{
	const struct samples *time = &result->time[operation];

	fputs("    {", out);
	json_member(out, "scheme", result->scheme->name);
	json_member(out, "operation", api_operation_names[operation]);
	fprintf(out, "\"n\": %u, \"per_call\": %u, ", results->nr_timers, API_BATCH);
	json_member(out, "unit", unit_name(setup));
	fprintf(out, "\"x_timerfd_settime\": %.4f, ", time->median / results->settime);
	json_samples(out, time);
	fputc('}', out);
}

static void json_api_memory(FILE *out, const struct api_results *results,
			    const struct api_result *result)
{
	fputs("    {", out);
	json_member(out, "scheme", result->scheme->name);
	fprintf(out, "\"n\": %u, \"charged\": %.3f, \"pages\": %.3f, \"x_timerfd\": %.4f}",
		results->nr_timers, result->memory.charged, result->memory.pages,
		result->memory.pages / results->timerfd);
}

/**
 * report_api - write the results of twbench api as JSON
 * @out:	the stream to write to
 * @setup:	what was chosen
 * @results:	the results
 */
void report_api(FILE *out, const struct setup *setup, const struct api_results *results)
{
	size_t nr = 0, i;
	int operation;

	json_head(out, setup);
	json_begin(out, "records");
	for (operation = 0; operation < API_NR_OPERATIONS; operation++) {
		for (i = 0; i < results->nr; i++) {
			if (!results->result[i].time[operation].nr)
				continue;
			json_separate(out, nr++);
			json_api_record(out, setup, results, &results->result[i], operation);
		}
	}
	json_end(out);
	json_begin(out, "memory");
	for (i = 0; i < results->nr; i++) {
		json_separate(out, i);
		json_api_memory(out, results, &results->result[i]);
	}
	json_end(out);
	fputs("\n}\n", out);
}

/**
 * report_json - write all results as JSON
 * @out:	the stream to write to
 * @setup:	what was compared
 * @results:	the results
 */
void report_json(FILE *out, const struct setup *setup, const struct results *results)
{
	const struct records *records = &results->records;
	size_t i;

	json_head(out, setup);
	fprintf(out, ", \"tick_ns\": %llu, \"jiffy_ns\": %llu, ", setup->info.tick_ns,
		setup->info.jiffy_ns);
	fprintf(out, "\"clock_read\": %.3f, \"stride\": %u", setup->info.clock_ps / 1e3,
		setup->info.stride);
	json_begin(out, "records");
	for (i = 0; i < records->nr; i++) {
		json_separate(out, i);
		json_record(out, setup, &records->record[i]);
	}
	json_end(out);
	json_all_growth(out, records);
	json_begin(out, "memory");
	for (i = 0; i < results->nr_memory; i++) {
		json_separate(out, i);
		json_memory(out, setup, &results->memory[i]);
	}
	json_end(out);
	json_begin(out, "lateness");
	for (i = 0; i < results->nr_lateness; i++) {
		json_separate(out, i);
		json_lateness(out, setup, &results->lateness[i]);
	}
	json_end(out);
	fputs("\n}\n", out);
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

static void csv_ratio(FILE *out, double ratio)
{
	if (ratio > 0)
		fprintf(out, "%.4f", ratio);
	fputc(',', out);
}

static void csv_record(FILE *out, const struct setup *setup, const struct record *record)
{
	fprintf(out, "%s,%s,%u,%s,%s,", record->scheme, record->figure->name,
		record->size, order_names[record->order], unit_name(setup));
	csv_string(out, setup->lane);
	fprintf(out, ",%.3f,%.3f,%.3f,", record->time.median, record->time.min,
		record->time.max);
	csv_ratio(out, record->x_timer_list);
	csv_ratio(out, record->x_limit);
	csv_string(out, setup->kernel);
	fprintf(out, ",%llu,", (unsigned long long)setup->common.seed);
	csv_samples(out, &record->time);
	fputc('\n', out);
}

/**
 * report_csv - write all records as CSV, with samples separated by spaces
 * @out:	the stream to write to
 * @setup:	what was compared
 * @records:	the records
 */
void report_csv(FILE *out, const struct setup *setup, const struct records *records)
{
	size_t i;

	fputs("scheme,workload,n,order,unit,lane,median,min,max,x_timer_list,x_limit,", out);
	fputs("kernel,seed,samples\n", out);
	for (i = 0; i < records->nr; i++)
		csv_record(out, setup, &records->record[i]);
}
