// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writing reports to files, and the JSON in them
 *
 * This subset of JSON is used: objects, arrays, numbers, null, and strings that are names.
 */
#include <err.h>
#include <stdbool.h>
#include <string.h>

#include "bench-common.h"
#include "json.h"

/**
 * open_report - open a file for writing, or exit
 * @name:	its name; "-" is standard output, and NULL is no file
 *
 * Return: the file, or NULL if @name is NULL.
 */
FILE *open_report(const char *name)
{
	FILE *file;

	if (!name)
		return NULL;
	if (!strcmp(name, "-"))
		return stdout;
	file = fopen(name, "w");
	if (!file)
		err(EXIT_FAILED, "%s", name);
	return file;
}

/**
 * close_report - close a file; exit if anything could not be written
 * @name:	its name
 * @file:	from open_report(), and not NULL
 */
void close_report(const char *name, FILE *file)
{
	if (ferror(file) || (file == stdout ? fflush(file) : fclose(file)))
		err(EXIT_FAILED, "%s", name);
}

/**
 * json_member - write a member whose value is a string, followed by a comma
 * @out:	the stream to write to
 * @name:	the member's name
 * @value:	the string
 */
void json_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\": ", name);
	json_quote(out, value);
	fputs(", ", out);
}

/**
 * json_samples - write samples as members of an object, with no comma after them
 * @out:	the stream to write to
 * @samples:	the samples
 */
void json_samples(FILE *out, const struct samples *samples)
{
	unsigned int i;

	fprintf(out, "\"median\": %.3f, \"min\": %.3f, \"max\": %.3f, \"samples\": [",
		samples->median, samples->min, samples->max);
	for (i = 0; i < samples->nr; i++)
		fprintf(out, "%s%.3f", i ? ", " : "", samples->value[i]);
	fputc(']', out);
}
