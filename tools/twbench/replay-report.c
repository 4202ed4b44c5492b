// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: tables and JSON of replays
 */
#include <string.h>

#include "json.h"
#include "trace.h"

/* How the figures are shown: divided by @scale, with so many decimals; no @title: only in JSON. */
static const struct column {
	const char	*name;
	const char	*title;
	double		scale;
	int		decimals;
} columns[REPLAY_NR_FIGURES] = {
	[REPLAY_ARM]		= { "arm", "arm", 1, 1 },
	[REPLAY_MOVE]		= { "move", "move", 1, 1 },
	[REPLAY_CANCEL]		= { "cancel", "cancel", 1, 1 },
	[REPLAY_EXPIRY]		= { "expiry", "expiry", 1, 1 },
	[REPLAY_CPU]		= { "cpu_percent", "cpu %", 1, 3 },
	[REPLAY_INTERRUPTS]	= { "interrupts_per_s", "irq/s", 1, 1 },
	[REPLAY_SOFTIRQS]	= { "softirqs_per_s", "softirq/s", 1, 1 },
	[REPLAY_LATE_P50]	= { "late_p50_ns", "late ms", 1e6, 3 },
	[REPLAY_LATE_P99]	= { "late_p99_ns", "99 %", 1e6, 3 },
	[REPLAY_LATE_MAX]	= { "late_max_ns", "worst", 1e6, 3 },
	[REPLAY_LONGEST]	= { "longest_softirq_ns", "longest us", 1e3, 1 },
	[REPLAY_LONGEST_INTERRUPT] = { "longest_interrupt_ns", NULL, 1, 0 },
	[REPLAY_BYTES]		= { "bytes_per_timer", "bytes", 1, 1 },
};

static void print_title(FILE *out)
{
	int i;

	fprintf(out, "%-11s", "scheme");
	for (i = 0; i < REPLAY_NR_FIGURES; i++)
		if (columns[i].title)
			fprintf(out, " %10s", columns[i].title);
	fputc('\n', out);
}

static void print_record(FILE *out, const struct replay_record *record)
{
	int i;

	fprintf(out, "%-11s", record->scheme);
	for (i = 0; i < REPLAY_NR_FIGURES; i++) {
		if (!columns[i].title)
			continue;
		if (record->figure[i].nr)
			fprintf(out, " %10.*f", columns[i].decimals,
				record->figure[i].median / columns[i].scale);
		else
			fprintf(out, " %10s", "-");
	}
	fputc('\n', out);
}

/* The schemes that have timers. */
static size_t count_timers(const struct setup *setup, const struct replay_result *result)
{
	size_t nr = 0;
	uint32_t i;

	for (i = 0; i < setup->info.nr_schemes; i++)
		nr += setup->schemes[i].checked && setup->max_timers[i] >= result->size;
	return nr;
}

/**
 * replay_print - print a table
 * @out:	the stream to write to
 * @setup:	what was chosen
 * @result:	what the schemes made of a trace
 */
void replay_print(FILE *out, const struct setup *setup, const struct replay_result *result)
{
	const size_t nr = count_timers(setup, result);
	size_t i;

	fprintf(out, "\n%s, n = %u: in %.3f s, %llu arms, %llu moves, %llu cancels\n",
		result->name, result->size, result->length_ns / 1e9,
		(unsigned long long)result->ops[TWHEEL_BENCH_OP_ARM],
		(unsigned long long)result->ops[TWHEEL_BENCH_OP_MOVE],
		(unsigned long long)result->ops[TWHEEL_BENCH_OP_CANCEL]);
	fprintf(out, "%llu expiries, none early, checksum %016llx: the same in %zu scheme%s\n",
		(unsigned long long)result->truth.fired,
		(unsigned long long)result->truth.checksum, nr, nr == 1 ? "" : "s");
	fprintf(out, "%s per operation, and CPU time per expiry; lateness; the longest softirq\n",
		unit_name(setup));
	print_title(out);
	for (i = 0; i < result->nr; i++)
		print_record(out, &result->record[i]);
	fflush(out);
}

static void json_figure(struct json *json, const struct column *column,
			const struct samples *samples)
{
	unsigned int i;

	if (!samples->nr) {
		json_null(json, column->name);
		return;
	}
	json_object(json, column->name);
	json_real(json, "median", samples->median);
	json_real(json, "min", samples->min);
	json_real(json, "max", samples->max);
	json_array(json, "samples");
	for (i = 0; i < samples->nr; i++)
		json_real(json, NULL, samples->value[i]);
	json_end(json);
	json_end(json);
}

static void json_record(struct json *json, const struct setup *setup,
			const struct replay_result *result, const struct replay_record *record)
{
	int i;

	json_object(json, NULL);
	json_string(json, "trace", result->name);
	json_number(json, "n", result->size);
	json_string(json, "scheme", record->scheme);
	json_string(json, "unit", unit_name(setup));
	json_number(json, "length_ns", result->length_ns);
	json_number(json, "arms", result->ops[TWHEEL_BENCH_OP_ARM]);
	json_number(json, "moves", result->ops[TWHEEL_BENCH_OP_MOVE]);
	json_number(json, "cancels", result->ops[TWHEEL_BENCH_OP_CANCEL]);
	json_number(json, "objects", result->nr_objects);
	json_number(json, "most_armed", record->most_armed);
	json_number(json, "expiries", record->fired);
	json_hex(json, "checksum", result->truth.checksum);
	for (i = 0; i < REPLAY_NR_FIGURES; i++)
		json_figure(json, &columns[i], &record->figure[i]);
	json_end(json);
}

/**
 * replay_json - write all results as JSON
 * @out:	the stream to write to
 * @setup:	what was chosen
 * @result:	the results
 * @nr:		number of results
 */
void replay_json(FILE *out, const struct setup *setup, const struct replay_result *result,
		 size_t nr)
{
	struct json json = { .out = out };
	size_t i;

	json_object(&json, NULL);
	json_string(&json, "tool", "twbench");
	json_string(&json, "version", TWHEEL_VERSION);
	json_string(&json, "kernel", setup->kernel);
	json_string(&json, "cpu_model", setup->common.cpu_model);
	json_string(&json, "lane", setup->lane);
	json_string(&json, "command", command_line());
	json_number(&json, "seed", setup->common.seed);
	json_array(&json, "replays");
	for (; nr--; result++)
		for (i = 0; i < result->nr; i++)
			json_record(&json, setup, result, &result->record[i]);
	json_end(&json);
	json_end(&json);
}
