// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: reads the lines of all programs, and prints tables, or JSON
 *
 * A line is "PEER TIMERS ORDER OPERATION VALUE", or "# a note". The value is ns per operation,
 * or bytes per timer, or what check.c counts. The same figure may be there once for each round.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "figures.h"
#include "json.h"

const char *argp_program_version = "bench-programs " TWHEEL_VERSION;

static const char *const orders[] = { "random", "sequential" };
static const char *const operations[] = {
	"add", "rearm_later", "rearm_earlier", "cancel", "expire",
};

static void print_times(const struct figures *figures, const char *peer, size_t size,
			const char *order)
{
	const struct figure *figure;
	char text[64];
	size_t i;

	printf("%-16s", peer);
	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		figure = find_figure(figures, peer, size, order, operations[i]);
		snprintf(text, sizeof(text), "-");
		if (figure)
			snprintf(text, sizeof(text), "%.1f (%.0f-%.0f)", figure->samples.median,
				 figure->samples.min, figure->samples.max);
		printf(" %20s", text);
	}
	putchar('\n');
}

static void print_ratio(const struct figures *figures, const char *peer, size_t size,
			const char *order, const char *operation)
{
	const struct figure *figure, *wheel;

	figure = find_figure(figures, peer, size, order, operation);
	wheel = find_figure(figures, "wheel", size, order, operation);
	if (figure && wheel && wheel->samples.median > 0)
		printf("%15.2f", figure->samples.median / wheel->samples.median);
	else
		printf("%15s", "-");
}

static void print_ratios(const struct figures *figures, const char *peer, size_t size,
			 const char *order)
{
	const struct figure *bytes = find_figure(figures, peer, size, "-", "bytes");
	size_t i;

	printf("%-16s", peer);
	for (i = 0; i < ARRAY_SIZE(operations); i++)
		print_ratio(figures, peer, size, order, operations[i]);
	if (bytes)
		printf("%15.1f\n", bytes->samples.median);
	else
		printf("%15s\n", "-");
}

static void print_heading(const char *last, int width)
{
	size_t i;

	printf("%-16s", "peer");
	for (i = 0; i < ARRAY_SIZE(operations); i++)
		printf("%*s", width, operations[i]);
	if (last)
		printf("%*s", width, last);
	putchar('\n');
}

static void print_tables(const struct figures *figures, size_t size, const char *order)
{
	size_t i;

	printf("\nn = %zu, %s order, CPU time in ns per operation: median (min-max)\n", size,
	       order);
	print_heading(NULL, 21);
	for (i = 0; i < figures->nr_peers; i++)
		if (find_figure(figures, figures->peers[i], size, order, "add"))
			print_times(figures, figures->peers[i], size, order);
	if (!find_figure(figures, "wheel", size, order, "add"))
		return;
	printf("\nn = %zu, %s order, as a multiple of the wheel's; and bytes per timer\n", size,
	       order);
	print_heading("bytes", 15);
	for (i = 0; i < figures->nr_peers; i++)
		if (find_figure(figures, figures->peers[i], size, order, "add"))
			print_ratios(figures, figures->peers[i], size, order);
}

static void print_heartbeats(const struct figures *figures)
{
	const struct figure *figure, *bytes;
	size_t i;

	if (!has_operation(figures, "heartbeat"))
		return;
	printf("\nheartbeats in PHP: ns per heartbeat, bytes per connection\n");
	printf("%-16s%12s%20s%10s%10s%10s\n", "scheme", "connections", "ns", "min", "max",
	       "bytes");
	for (i = 0; i < figures->nr; i++) {
		figure = &figures->figure[i];
		if (strcmp(figure->operation, "heartbeat"))
			continue;
		bytes = find_figure(figures, figure->peer, figure->size, "-", "bytes");
		printf("%-16s%12zu%20.1f%10.1f%10.1f%10.1f\n", figure->peer, figure->size,
		       figure->samples.median, figure->samples.min, figure->samples.max,
		       bytes ? bytes->samples.median : 0.);
	}
}

static double check_value(const struct figures *figures, const struct figure *fired,
			  const char *operation)
{
	const struct figure *figure;

	figure = find_figure(figures, fired->peer, fired->size, "-", operation);
	return figure ? figure->samples.median : 0;
}

static void print_checks(const struct figures *figures)
{
	const struct figure *fired;
	size_t i;

	if (!has_operation(figures, "fired"))
		return;
	printf("\nwhen timers fire: each has fired once, and none that was cancelled\n");
	printf("%-16s%8s%8s%20s%20s\n", "peer", "fired", "early", "earliest, us",
	       "median late, us");
	for (i = 0; i < figures->nr; i++) {
		fired = &figures->figure[i];
		if (strcmp(fired->operation, "fired"))
			continue;
		printf("%-16s%8.0f%8.0f%20.1f%20.1f\n", fired->peer, fired->samples.median,
		       check_value(figures, fired, "early"),
		       check_value(figures, fired, "earliest_us"),
		       check_value(figures, fired, "late_us"));
	}
}

static void print_report(const struct figures *figures, const struct common_setup *setup)
{
	size_t i, j;

	printf("bench-programs %s, %s\n", TWHEEL_VERSION, setup->cpu_model);
	for (i = 0; i < figures->nr_sizes; i++)
		for (j = 0; j < ARRAY_SIZE(orders); j++)
			if (has_size(figures, figures->sizes[i], orders[j]))
				print_tables(figures, figures->sizes[i], orders[j]);
	print_heartbeats(figures);
	print_checks(figures);
	if (figures->nr_notes)
		putchar('\n');
	for (i = 0; i < figures->nr_notes; i++)
		printf("%s\n", figures->notes[i]);
}

static void write_figure(struct json *json, const struct figures *figures,
			 const struct figure *figure)
{
	const struct figure *wheel;
	unsigned int i;

	json_object(json, NULL);
	json_string(json, "peer", figure->peer);
	json_number(json, "n", figure->size);
	json_string(json, "order", strcmp(figure->order, "-") ? figure->order : NULL);
	json_string(json, "operation", figure->operation);
	json_real(json, "median", figure->samples.median);
	json_real(json, "min", figure->samples.min);
	json_real(json, "max", figure->samples.max);
	wheel = find_figure(figures, "wheel", figure->size, figure->order, figure->operation);
	if (wheel && wheel->samples.median > 0 && strcmp(figure->order, "-"))
		json_real(json, "x_wheel", figure->samples.median / wheel->samples.median);
	json_array(json, "samples");
	for (i = 0; i < figure->samples.nr; i++)
		json_real(json, NULL, figure->samples.value[i]);
	json_end(json);
	json_end(json);
}

static void write_json(const struct figures *figures, const struct common_setup *setup, FILE *out)
{
	struct json json = { .out = out };
	struct utsname system;
	size_t i;

	uname(&system);
	json_object(&json, NULL);
	json_string(&json, "tool", "bench-programs");
	json_string(&json, "version", TWHEEL_VERSION);
	json_string(&json, "lane", "user");
	json_string(&json, "cpu_model", setup->cpu_model);
	json_string(&json, "kernel", system.release);
	json_number(&json, "seed", setup->seed);
	json_number(&json, "rounds", setup->rounds);
	json_array(&json, "notes");
	for (i = 0; i < figures->nr_notes; i++)
		json_string(&json, NULL, figures->notes[i]);
	json_end(&json);
	json_array(&json, "records");
	for (i = 0; i < figures->nr; i++)
		write_figure(&json, figures, &figures->figure[i]);
	json_end(&json);
	json_end(&json);
}

static const struct argp argp = {
	.children	= common_options,
	.doc		=
		"Reads the lines of the programs of bench-programs from standard input, and prints tables. Of the options, --rounds and --seed only say what was measured.",
};

int main(int argc, char **argv)
{
	struct common_setup setup = { .max_timers = UINT32_MAX };
	struct figures figures = { 0 };
	FILE *json;

	parse_command_line(&argp, "report", argc, argv, &setup);
	describe_cpu(&setup);
	read_figures(&figures, stdin);
	json = open_report(setup.json);
	if (json != stdout)
		print_report(&figures, &setup);
	if (json) {
		write_json(&figures, &setup, json);
		close_report(setup.json, json);
	}
	return EXIT_SUCCESS;
}
