// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench compare: reading the JSON that twbench has written
 *
 * json-c reads it. jansson could as well, but has functions of the same names as ours, which print
 * it; Debian 12 has no yyjson.
 */
#define _GNU_SOURCE
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "bench-common.h"
#include "compare.h"

#define HINT	"compare reads what 'twbench' and 'twbench api' write with --json"

static char *read_text(const char *name)
{
	FILE *file = strcmp(name, "-") ? fopen(name, "r") : stdin;
	size_t size = 0;
	char *text = NULL;

	if (!file)
		err(EXIT_TROUBLE, "%s", name);
	/* There is no NUL in JSON, so this reads all of it. */
	if (getdelim(&text, &size, 0, file) < 0) {
		if (ferror(file))
			err(EXIT_TROUBLE, "%s", name);
		errx(EXIT_TROUBLE, "%s: empty; " HINT, name);
	}
	if (file != stdin)
		fclose(file);
	return text;
}

static unsigned int line_at(const char *text, size_t position)
{
	unsigned int line = 1;
	size_t i;

	for (i = 0; i < position && text[i]; i++)
		line += text[i] == '\n';
	return line;
}

static struct json_object *load(const char *name)
{
	char *text = read_text(name);
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object;
	enum json_tokener_error error;

	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	object = json_tokener_parse_ex(tokener, text, strlen(text));
	error = json_tokener_get_error(tokener);
	if (error == json_tokener_continue)
		errx(EXIT_TROUBLE, "%s: the file ends in the middle; " HINT, name);
	if (error != json_tokener_success)
		errx(EXIT_TROUBLE, "%s: line %u: %s; " HINT, name,
		     line_at(text, json_tokener_get_parse_end(tokener)),
		     json_tokener_error_desc(error));
	json_tokener_free(tokener);
	free(text);
	return object;
}

/* The member of an object, or NULL if there is none of this type. */
static struct json_object *member(struct json_object *object, const char *name,
				  enum json_type type)
{
	struct json_object *value;

	if (!json_object_is_type(object, json_type_object) ||
	    !json_object_object_get_ex(object, name, &value) || !json_object_is_type(value, type))
		return NULL;
	return value;
}

/* The string is never freed. */
static const char *string_member(struct json_object *object, const char *name)
{
	struct json_object *value = member(object, name, json_type_string);

	return value ? json_object_get_string(value) : NULL;
}

static const char *head_member(const struct run *run, struct json_object *root, const char *name)
{
	const char *value = string_member(root, name);

	if (!value)
		errx(EXIT_TROUBLE, "%s: has no \"%s\"; " HINT, run->file, name);
	return value;
}

static int compare_rounds(const void *a, const void *b, void *samples)
{
	const double *sample = samples;
	double x = sample[*(const unsigned int *)a], y = sample[*(const unsigned int *)b];

	return (x > y) - (x < y);
}

static void sort_samples(struct measured *figure)
{
	unsigned int i;

	figure->ascending = allocate(figure->nr, sizeof(*figure->ascending));
	for (i = 0; i < figure->nr; i++)
		figure->ascending[i] = i;
	qsort_r(figure->ascending, figure->nr, sizeof(*figure->ascending), compare_rounds,
		figure->sample);
	figure->median = figure->sample[figure->ascending[(figure->nr - 1) / 2]];
}

static void read_samples(const struct run *run, struct json_object *record,
			 struct measured *figure)
{
	struct json_object *samples = member(record, "samples", json_type_array);
	unsigned int i;

	figure->nr = samples ? json_object_array_length(samples) : 0;
	if (!figure->nr)
		errx(EXIT_TROUBLE, "%s: record %zu has no samples; " HINT, run->file, run->nr + 1);
	figure->sample = allocate(figure->nr, sizeof(*figure->sample));
	for (i = 0; i < figure->nr; i++) {
		/* Of what is no number, it is 0. */
		figure->sample[i] = json_object_get_double(json_object_array_get_idx(samples, i));
		/* Ratios and logarithms are taken of them. */
		if (!isfinite(figure->sample[i]) || figure->sample[i] <= 0)
			errx(EXIT_TROUBLE,
			     "%s: record %zu has a sample that is not a number above 0; measure again, with more timers",
			     run->file, run->nr + 1);
	}
	sort_samples(figure);
}

/* The records of twbench api have an operation, and no order: it is always the same one. */
static void read_record(struct run *run, struct json_object *record)
{
	struct measured *figure = &run->figure[run->nr];
	const char *workload = string_member(record, "workload");
	const char *operation = string_member(record, "operation");
	int64_t nr_timers = json_object_get_int64(member(record, "n", json_type_int));

	*figure = (struct measured) {
		.scheme		= string_member(record, "scheme"),
		.workload	= workload ?: operation,
		.order		= string_member(record, "order") ?: "random",
		.nr_timers	= nr_timers,
	};
	if (!figure->scheme || !figure->workload || nr_timers < 1 || nr_timers > UINT32_MAX)
		errx(EXIT_TROUBLE, "%s: record %zu is not of a scheme, a workload and an n; " HINT,
		     run->file, run->nr + 1);
	run->api = !workload;
	read_samples(run, record, figure);
	if (compare_find(run, figure))
		errx(EXIT_TROUBLE, "%s: %s of %s with n = %u is there twice; measure it once",
		     run->file, figure->workload, figure->scheme, figure->nr_timers);
	run->nr++;
}

static void add_footprint(struct run *run, struct json_object *record, const char *part)
{
	struct json_object *bytes = member(record, part, json_type_double);

	if (!bytes)
		return;
	run->memory[run->nr_memory++] = (struct footprint) {
		.scheme		= string_member(record, "scheme") ?: "?",
		.timer		= string_member(record, "timer") ?: "",
		.part		= part,
		.nr_timers	= json_object_get_int64(member(record, "n", json_type_int)),
		.bytes		= json_object_get_double(bytes),
	};
}

/* Memory need not have been measured. */
static void read_memory(struct run *run, struct json_object *root)
{
	static const char *const parts[] = { "sum", "sum_rearmed", "charged", "pages" };
	struct json_object *memory = member(root, "memory", json_type_array);
	size_t nr = memory ? json_object_array_length(memory) : 0, i, j;

	run->memory = allocate(nr * ARRAY_SIZE(parts), sizeof(*run->memory));
	for (i = 0; i < nr; i++)
		for (j = 0; j < ARRAY_SIZE(parts); j++)
			add_footprint(run, json_object_array_get_idx(memory, i), parts[j]);
}

/**
 * compare_read - read a run; exit if that fails
 * @file:	name of the file; "-" is standard input
 * @run:	filled in
 */
void compare_read(const char *file, struct run *run)
{
	struct json_object *root = load(file), *records;
	const char *tool;
	size_t nr, i;

	*run = (struct run) { .file = file };
	tool = head_member(run, root, "tool");
	if (strcmp(tool, "twbench"))
		errx(EXIT_TROUBLE, "%s: written by %s; " HINT, file, tool);
	run->version = head_member(run, root, "version");
	run->kernel = head_member(run, root, "kernel");
	run->cpu_model = head_member(run, root, "cpu_model");
	run->lane = head_member(run, root, "lane");
	run->seed = json_object_get_uint64(member(root, "seed", json_type_int));
	records = member(root, "records", json_type_array);
	nr = records ? json_object_array_length(records) : 0;
	if (!nr)
		errx(EXIT_TROUBLE, "%s: has no records; " HINT, file);
	run->figure = allocate(nr, sizeof(*run->figure));
	for (i = 0; i < nr; i++)
		read_record(run, json_object_array_get_idx(records, i));
	read_memory(run, root);
}
