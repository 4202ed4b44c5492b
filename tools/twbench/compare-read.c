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
#include "utf8.h"

/*
 * Ratios and logarithms are taken of samples, and their logarithms are squared. Nothing that takes
 * less or more has been measured; the same goes for bytes.
 */
#define MIN_VALUE	0.000001
#define MAX_VALUE	1e15

/* Runs are far smaller. */
#define MAX_BYTES	(256U << 20)

#define HINT	"compare reads what 'twbench' and 'twbench api' write with --json"

/**
 * compare_printable - get a text that stays on one line and cannot control a terminal
 * @text:	the text, as a name in a file that somebody else has written
 *
 * Return: a copy, in which control characters and invalid UTF-8 are replaced. It is never freed.
 */
const char *compare_printable(const char *text)
{
	char *copy = strdup(text), *c;
	size_t length;

	if (!copy)
		errx(EXIT_TROUBLE, "out of memory");
	for (c = copy; *c; c += length) {
		length = utf8_length(c);
		if (length && !utf8_is_control(c))
			continue;
		length = length ?: 1;
		*c = '?';
		memmove(c + 1, c + length, strlen(c + length) + 1);
		length = 1;
	}
	return copy;
}

/* Reads all of a file. A NUL is added to it. */
static char *read_text(const char *name, const char *shown, size_t *size)
{
	FILE *file = strcmp(name, "-") ? fopen(name, "r") : stdin;
	size_t max = 0, n;
	char *text = NULL;

	if (!file)
		err(EXIT_TROUBLE, "%s", shown);
	*size = 0;
	do {
		if (*size > MAX_BYTES)
			errx(EXIT_TROUBLE, "%s: too large for a run", shown);
		max = *size + *size / 2 + 65536;
		text = realloc(text, max);
		if (!text)
			errx(EXIT_TROUBLE, "%s: too large", shown);
		n = fread(text + *size, 1, max - *size - 1, file);
		*size += n;
	} while (n);
	if (ferror(file))
		err(EXIT_TROUBLE, "%s", shown);
	if (!*size)
		errx(EXIT_TROUBLE, "%s: empty; " HINT, shown);
	if (file != stdin)
		fclose(file);
	text[*size] = '\0';
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

static struct json_object *load(const char *name, const char *shown)
{
	size_t size;
	char *text = read_text(name, shown, &size);
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object;
	enum json_tokener_error error;

	if (strlen(text) < size)
		errx(EXIT_TROUBLE, "%s: line %u: a NUL; " HINT, shown,
		     line_at(text, strlen(text)));
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	/* The NUL at its end says that no number goes on. */
	object = json_tokener_parse_ex(tokener, text, size + 1);
	error = json_tokener_get_error(tokener);
	if (error == json_tokener_continue || error == json_tokener_error_parse_eof)
		errx(EXIT_TROUBLE, "%s: the file ends in the middle; " HINT, shown);
	if (error != json_tokener_success)
		errx(EXIT_TROUBLE, "%s: line %u: %s; " HINT, shown,
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

	return value ? compare_printable(json_object_get_string(value)) : NULL;
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

/* The value of a number; 0 of anything else, and of what is no value. */
static double number(struct json_object *object)
{
	double value = 0;

	if (json_object_is_type(object, json_type_double) ||
	    json_object_is_type(object, json_type_int))
		value = json_object_get_double(object);
	return value >= MIN_VALUE && value <= MAX_VALUE ? value : 0;
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
		figure->sample[i] = number(json_object_array_get_idx(samples, i));
		if (!figure->sample[i])
			errx(EXIT_TROUBLE,
			     "%s: record %zu has a sample that is not a number from %g to %g; measure again, with more timers",
			     run->file, run->nr + 1, MIN_VALUE, MAX_VALUE);
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
	if (!run->nr)
		run->api = operation;
	if (run->api != !!operation || (operation && workload))
		errx(EXIT_TROUBLE, "%s: record %zu is %s; " HINT, run->file, run->nr + 1,
		     operation ? "of 'twbench api', and others are not" :
				 "not of 'twbench api', and others are");
	read_samples(run, record, figure);
	if (compare_find(run, figure))
		errx(EXIT_TROUBLE, "%s: %s of %s with n = %u is there twice; measure it once",
		     run->file, figure->workload, figure->scheme, figure->nr_timers);
	run->nr++;
}

static void add_footprint(struct run *run, size_t nr, struct json_object *record,
			  const char *part)
{
	struct json_object *bytes = member(record, part, json_type_double);

	if (!bytes)
		return;
	if (!(fabs(json_object_get_double(bytes)) <= MAX_VALUE))
		errx(EXIT_TROUBLE, "%s: memory %zu has a %s beyond %g; " HINT, run->file, nr, part,
		     MAX_VALUE);
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
			add_footprint(run, i + 1, json_object_array_get_idx(memory, i), parts[j]);
}

/**
 * compare_read - read a run; exit if that fails
 * @file:	name of the file; "-" is standard input
 * @run:	filled in
 */
void compare_read(const char *file, struct run *run)
{
	const char *shown = compare_printable(file);
	struct json_object *root = load(file, shown), *records;
	const char *tool;
	size_t nr, i;

	*run = (struct run) { .file = shown };
	tool = head_member(run, root, "tool");
	if (strcmp(tool, "twbench"))
		errx(EXIT_TROUBLE, "%s: written by %s; " HINT, shown, tool);
	run->version = head_member(run, root, "version");
	run->kernel = head_member(run, root, "kernel");
	run->cpu_model = head_member(run, root, "cpu_model");
	run->lane = head_member(run, root, "lane");
	run->seed = json_object_get_uint64(member(root, "seed", json_type_int));
	records = member(root, "records", json_type_array);
	nr = records ? json_object_array_length(records) : 0;
	if (!nr)
		errx(EXIT_TROUBLE, "%s: has no records; " HINT, shown);
	run->figure = allocate(nr, sizeof(*run->figure));
	for (i = 0; i < nr; i++)
		read_record(run, json_object_array_get_idx(records, i));
	read_memory(run, root);
}
