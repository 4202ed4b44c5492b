// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl status: print what this user may see of the module
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"

#define PARAMETERS	MODULE "/parameters"

/**
 * struct status - the state of the module
 * @version:	the module's version
 * @device:	the device could be opened
 * @info:	its properties, if @device
 * @no_device:	otherwise, why not
 * @debugfs:	the file totals could be read
 * @totals:	its contents, if @debugfs
 * @no_debugfs:	otherwise, why not
 */
struct status {
	struct text		version;
	bool			device;
	struct twheel_info	info;
	struct message		no_device;
	bool			debugfs;
	struct pairs		totals;
	struct message		no_debugfs;
};

static void collect_status(struct status *status)
{
	int fd;

	status->version = module_version();
	/* Before device_try(): the context that it creates would be counted. */
	status->debugfs = debugfs_try("totals", &status->totals, &status->no_debugfs);
	fd = device_try(&status->no_device);
	status->device = fd >= 0;
	if (!status->device)
		return;
	device_info(fd, &status->info);
	close(fd);
}

/* Calls @fn for each module parameter that can be read. */
static void walk_parameters(void (*fn)(void *data, const char *name, const char *value),
			    void *data)
{
	struct dirent **entries;
	int nr = scandir(PARAMETERS, &entries, NULL, alphasort), i;
	char path[512], value[64];
	FILE *file;

	for (i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), PARAMETERS "/%s", entries[i]->d_name);
		file = *entries[i]->d_name == '.' ? NULL : fopen(path, "r");
		if (file && fgets(value, sizeof(value), file)) {
			value[strcspn(value, "\n")] = 0;
			fn(data, entries[i]->d_name, value);
		}
		if (file)
			fclose(file);
		free(entries[i]);
	}
	if (nr >= 0)
		free(entries);
}

static void print_parameter(void *data, const char *name, const char *value)
{
	fprintf(data, "parameter    %s=%s\n", name, value);
}

/* A value that is all digits is a number in JSON, too. */
static void json_parameter(void *data, const char *name, const char *value)
{
	if (*value && !value[strspn(value, "0123456789")])
		json_number(data, name, strtoull(value, NULL, 10));
	else
		json_string(data, name, value);
}

/* The length of the longest name, but at least the width of the names in other lines. */
static int name_width(const struct pairs *pairs)
{
	size_t width = 12, length, i;

	for (i = 0; i < pairs->nr; i++) {
		length = strlen(pairs->pair[i].name);
		if (length > width)
			width = length;
	}
	return width;
}

/**
 * status_print_totals - print the numbers in the debugfs file totals
 * @totals:	the numbers
 * @before:	the numbers @seconds ago, to print rates of counters as well; or NULL
 * @seconds:	the time between @before and @totals
 */
void status_print_totals(const struct pairs *totals, const struct pairs *before, double seconds)
{
	const int width = name_width(totals);
	const uint64_t *old;
	const char *name;
	size_t i;

	for (i = 0; i < totals->nr; i++) {
		name = totals->pair[i].name;
		printf("%-*s %20" PRIu64, width, name, totals->pair[i].value);
		old = before ? pairs_find(before, name) : NULL;
		if (old && metrics_is_counter(name))
			printf(" %14.1f/s",
			       (int64_t)(totals->pair[i].value - *old) / seconds);
		putchar('\n');
	}
}

/**
 * status_json_totals - write the numbers in the debugfs file totals
 * @json:	the document
 * @totals:	the numbers
 */
void status_json_totals(struct json *json, const struct pairs *totals)
{
	size_t i;

	json_object(json, "totals");
	for (i = 0; i < totals->nr; i++)
		json_number(json, totals->pair[i].name, totals->pair[i].value);
	json_end(json);
}

static void print_status(const struct status *status)
{
	printf("module       twheel %s\n", status->version.s);
	walk_parameters(print_parameter, stdout);
	if (status->device)
		info_print(&status->info);
	else
		printf("device       %s\n", status->no_device.text);
	if (status->debugfs)
		status_print_totals(&status->totals, NULL, 0);
	else
		printf("totals       %s\n", status->no_debugfs.text);
}

static void json_status(const struct status *status)
{
	struct json json = { .out = stdout };

	json_object(&json, NULL);
	json_string(&json, "version", status->version.s);
	json_object(&json, "parameters");
	walk_parameters(json_parameter, &json);
	json_end(&json);
	json_object(&json, "device");
	json_string(&json, "problem", status->device ? NULL : status->no_device.text);
	if (status->device)
		info_json(&json, &status->info);
	json_end(&json);
	json_object(&json, "debugfs");
	json_string(&json, "problem", status->debugfs ? NULL : status->no_debugfs.text);
	if (status->debugfs)
		status_json_totals(&json, &status->totals);
	json_end(&json);
	json_end(&json);
}

static const struct choice choices[] = { CHOICE_JSON, { 0 } };

static int run_status(int argc, char **argv)
{
	struct status status;
	bool as_json = false;

	while (next_option(&status_command, argc, argv) >= 0)
		as_json = true;
	no_operands(&status_command, argc, argv);
	module_require();
	collect_status(&status);
	if (as_json)
		json_status(&status);
	else
		print_status(&status);
	return 0;
}

const struct command status_command = {
	.name		= "status",
	.operands	= "",
	.summary	= "the module: its version, parameters and numbers",
	.choices	= choices,
	.run		= run_status,
};
