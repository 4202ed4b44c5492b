// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench connections: tables and JSON
 */
#include <string.h>

#include "connections.h"
#include "json.h"

/**
 * connections_find - find the result of a scheme
 * @results:	the results
 * @name:	the scheme's name
 *
 * Return: the result, or NULL if it was not measured.
 */
const struct connections_result *
connections_find(const struct connections_results *results, const char *name)
{
	size_t i;

	for (i = 0; i < results->nr; i++)
		if (!strcmp(results->result[i].scheme->name, name))
			return &results->result[i];
	return NULL;
}

/**
 * connections_went_well - was every silent connection kicked, and no other one?
 * @results:	the results
 */
bool connections_went_well(const struct connections_results *results)
{
	const struct connections_result *result = results->result;
	size_t i;

	for (i = 0; i < results->nr; i++)
		if (result[i].false_kicks || result[i].missed_kicks ||
		    result[i].kicked < result[i].silent)
			return false;
	return true;
}

static double per_message(const struct connections_result *result, double ns)
{
	return ns / result->messages;
}

static double per_second(const struct connections_result *result, double ns)
{
	return ns * 1e9 / result->cpu.time;
}

/* The excess of the machine's CPU time over that without timeouts, per message. */
static double busy_more(const struct connections_results *results,
			const struct connections_result *result)
{
	return per_message(result, result->cpu.busy) -
	       per_message(results->result, results->result->cpu.busy);
}

static void print_cpu(FILE *out, const struct setup *setup,
		      const struct connections_results *results)
{
	const struct connections_result *heap = connections_find(results, "heap"), *result;
	const char *unit = unit_name(setup);

	fprintf(out, "\nCPU, %s per heartbeat\n", unit);
	fprintf(out, "%-8s %9s %9s %9s %9s %9s %8s %11s %11s %9s\n", "scheme", "server",
		"interrupt", "softirq", "worker", "timeouts", "x heap", "per second",
		"everything", "arming");
	for (result = results->result; result < results->result + results->nr; result++) {
		fprintf(out, "%-8s %9.1f %9.1f %9.1f %9.1f ", result->scheme->name,
			per_message(result, result->server),
			per_message(result, result->cpu.part[CPU_INTERRUPT]),
			per_message(result, result->cpu.part[CPU_SOFTIRQ]),
			per_message(result, result->cpu.part[CPU_WORKER]));
		fprintf(out, "%9.1f ", per_message(result, result->cpu_total));
		if (heap)
			fprintf(out, "%8.3f ", per_message(result, result->cpu_total) /
				per_message(heap, heap->cpu_total));
		else
			fprintf(out, "%8s ", "");
		fprintf(out, "%11.0f %+11.0f %9.0f\n", per_second(result, result->cpu_total),
			busy_more(results, result), result->arming);
	}
}

static void print_rest(FILE *out, const struct connections_results *results)
{
	const struct connections_result *heap = connections_find(results, "heap"), *result;

	fprintf(out, "\nmemory, bytes for each connection; kicks, and how late in ms\n");
	fprintf(out, "%-8s %9s %8s %8s %8s %8s %8s %9s %9s %9s\n", "scheme", "memory", "x heap",
		"silent", "kicked", "false", "missed", "half", "99 %", "most");
	for (result = results->result; result < results->result + results->nr; result++) {
		fprintf(out, "%-8s %9.1f ", result->scheme->name, result->memory);
		if (heap)
			fprintf(out, "%8.3f ", result->memory / heap->memory);
		else
			fprintf(out, "%8s ", "");
		fprintf(out, "%8llu %8llu %8llu %8llu %9.3f %9.3f %9.3f\n",
			(unsigned long long)result->silent,
			(unsigned long long)result->kicked,
			(unsigned long long)result->false_kicks,
			(unsigned long long)result->missed_kicks, result->late_p50 / 1e6,
			result->late_p99 / 1e6, result->late_max / 1e6);
	}
}

/**
 * connections_print - print the tables
 * @out:	the stream to write to
 * @setup:	what was chosen
 * @results:	the results
 */
void connections_print(FILE *out, const struct setup *setup,
		       const struct connections_results *results)
{
	const struct connections_plan *plan = &results->plan;

	fprintf(out, "\nn = %u connections, heartbeat %g s, timeout %g s, %u fall silent\n",
		plan->nr, plan->heartbeat, plan->timeout, plan->silent);
	print_cpu(out, setup, results);
	print_rest(out, results);
	fflush(out);
}

static void json_result(struct json *json, const struct setup *setup,
			const struct connections_results *results,
			const struct connections_result *result)
{
	json_object(json, NULL);
	json_string(json, "scheme", result->scheme->name);
	json_number(json, "n", results->plan.nr);
	json_string(json, "unit", unit_name(setup));
	json_real(json, "time_ns", result->cpu.time);
	json_real(json, "heartbeats", result->messages);
	json_real(json, "server", per_message(result, result->server));
	json_real(json, "interrupt", per_message(result, result->cpu.part[CPU_INTERRUPT]));
	json_real(json, "softirq", per_message(result, result->cpu.part[CPU_SOFTIRQ]));
	json_real(json, "worker", per_message(result, result->cpu.part[CPU_WORKER]));
	json_real(json, "timeouts", per_message(result, result->cpu_total));
	json_real(json, "per_second", per_second(result, result->cpu_total));
	json_real(json, "everything", busy_more(results, result));
	json_real(json, "arming", result->arming);
	json_real(json, "memory", result->memory);
	json_number(json, "silent", result->silent);
	json_number(json, "kicked", result->kicked);
	json_number(json, "false_kicks", result->false_kicks);
	json_number(json, "missed_kicks", result->missed_kicks);
	json_number(json, "latest_heartbeat_ns", result->latest_heartbeat);
	json_number(json, "late_p50_ns", result->late_p50);
	json_number(json, "late_p99_ns", result->late_p99);
	json_number(json, "late_max_ns", result->late_max);
	json_end(json);
}

/**
 * connections_json - write the results as JSON
 * @out:	the stream to write to
 * @setup:	what was chosen
 * @results:	the results
 */
void connections_json(FILE *out, const struct setup *setup,
		      const struct connections_results *results)
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
	json_real(&json, "heartbeat", results->plan.heartbeat);
	json_real(&json, "timeout", results->plan.timeout);
	json_array(&json, "records");
	for (i = 0; i < results->nr; i++)
		json_result(&json, setup, results, &results->result[i]);
	json_end(&json);
	json_end(&json);
}
