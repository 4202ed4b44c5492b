// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: /proc/PID/fdinfo/FD of a context
 */
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "twctl.h"

/**
 * struct field - a line that consists of a name and a number
 * @name:	how the line begins
 * @offset:	the number's offset in struct context
 */
struct field {
	const char	*name;
	size_t		offset;
};

#define FIELD(name, member)	{ "twheel-" name ":", offsetof(struct context, member) }

static const struct field fields[] = {
	FIELD("timers", timers),
	FIELD("max-timers", max_timers),
	FIELD("events", events),
	FIELD("bytes", bytes),
	FIELD("ring", ring),
	FIELD("touch", touch),
	FIELD("timers-not-shown", not_shown),
};

/* Stores the number of a line in the field it is for. Returns false if it is another line. */
static bool parse_number(struct context *context, const char *line)
{
	size_t i, length;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		length = strlen(fields[i].name);
		if (strncmp(line, fields[i].name, length))
			continue;
		*(uint64_t *)((char *)context + fields[i].offset) =
			strtoull(line + length, NULL, 10);
		return true;
	}
	return false;
}

static bool parse_timer(const char *line, struct timer_line *timer)
{
	char state[16], key[24];
	int end = 0;

	if (sscanf(line,
		   "twheel-timer: %" SCNx64 " %15s deadline:%" SCNu64 " clock:%" SCNu32
		   " remaining:%" SCNu64 " period:%" SCNu64 " key:%23s user-data:%" SCNx64 "%n",
		   &timer->handle, state, &timer->deadline, &timer->clock, &timer->remaining,
		   &timer->period, key, &timer->user_data, &end) != 8 || line[end] != '\n')
		return false;
	timer->expired = !strcmp(state, "expired");
	timer->has_key = strcmp(key, "-");
	timer->key = timer->has_key ? strtoull(key, NULL, 16) : 0;
	return true;
}

static void append_timer(struct context *context, const char *line)
{
	size_t nr = context->nr_lines;

	/* The array is full when @nr is 0 or a power of two: double it. */
	if (!(nr & (nr - 1)))
		context->line = realloc(context->line,
					(nr ? 2 * nr : 1) * sizeof(*context->line));
	if (!context->line)
		errx(EXIT_FAILED, "out of memory");
	if (!parse_timer(line, &context->line[nr]))
		errx(EXIT_FAILED, "cannot read '%.*s'; use the twctl of this module",
		     (int)strcspn(line, "\n"), line);
	context->nr_lines++;
}

/**
 * fdinfo_read - read the fdinfo of a context
 * @context:	@pid and @fd say which; everything else but @command is filled in
 *
 * Return: false if the file is not a context: the context is gone and its descriptor reused, the
 * file merely has the device's name, or nothing can be read through it. Also if this user may not
 * read it.
 */
bool fdinfo_read(struct context *context)
{
	bool known = false;
	char *line = NULL;
	size_t size = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", context->pid, context->fd);
	file = fopen(path, "r");
	if (!file)
		return false;
	while (getline(&line, &size, file) > 0) {
		if (!strncmp(line, "twheel-timer:", 13))
			append_timer(context, line);
		else if (parse_number(context, line))
			known = true;
	}
	free(line);
	fclose(file);
	return known;
}
