// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports in files, and the parts of JSON
 *
 * Only this much of JSON is written: objects, arrays, numbers, null, and strings of names.
 */
#include <err.h>
#include <stdbool.h>
#include <string.h>

#include "bench-common.h"
#include "json.h"

/**
 * open_report - open a file for writing, or exit
 * @name:	its name; "-" is standard output, and NULL is no file
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
 * close_report - close a file; exit if not all could be written
 * @name:	its name
 * @file:	from open_report(), and not NULL
 */
void close_report(const char *name, FILE *file)
{
	if (ferror(file) || (file == stdout ? fflush(file) : fclose(file)))
		err(EXIT_FAILED, "%s", name);
}

/**
 * json_member - write a member whose value is a string, and a comma
 * @out:	where to
 * @name:	of the member
 * @value:	the string
 */
void json_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\": ", name);
	json_quote(out, value);
	fputs(", ", out);
}

/**
 * json_samples - write the members that tell of samples, without a comma behind them
 * @out:	where to
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
