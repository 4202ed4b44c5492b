// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl list: list the contexts of processes, found through /proc
 *
 * A context that several processes share is shown for each of them.
 */
#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"

/**
 * struct listing - a list being printed
 * @json:	the document, if @as_json
 * @as_json:	print JSON
 * @timers:	print the timers, too
 */
struct listing {
	struct json	json;
	bool		as_json;
	bool		timers;
};

/* Reads the name of a process, which may contain any bytes. */
static void read_command(struct context *context)
{
	size_t length = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", context->pid);
	file = fopen(path, "r");
	if (file) {
		length = fread(context->command, 1, sizeof(context->command) - 1, file);
		fclose(file);
	}
	if (length && context->command[length - 1] == '\n')
		length--;
	context->command[length] = 0;
}

/* Replaces characters that a terminal might not print in exactly one column. */
static void make_printable(const char *from, char *to)
{
	for (; *from; from++)
		*to++ = isprint((unsigned char)*from) ? *from : '?';
	*to = 0;
}

static struct text format_key(const struct timer_line *timer)
{
	struct text text = { "-" };

	if (timer->has_key)
		snprintf(text.s, sizeof(text.s), "0x%" PRIx64, timer->key);
	return text;
}

static void print_timer(const struct timer_line *timer)
{
	printf("        %016" PRIx64 " %-7s %12s %-9s %12s %-18s 0x%" PRIx64 "\n", timer->handle,
	       timer->expired ? "expired" : "pending", duration_format(timer->remaining).s,
	       clock_name(timer->clock),
	       timer->period ? duration_format(timer->period).s : "-", format_key(timer).s,
	       timer->user_data);
}

static void print_timers(const struct context *context)
{
	size_t i;

	if (context->nr_lines)
		printf("        %-16s %-7s %12s %-9s %12s %-18s %s\n", "HANDLE", "STATE",
		       "REMAINING", "CLOCK", "PERIOD", "KEY", "USER-DATA");
	for (i = 0; i < context->nr_lines; i++)
		print_timer(&context->line[i]);
	if (context->not_shown)
		printf("        and %" PRIu64 " more\n", context->not_shown);
}

static void json_timer(struct json *json, const struct timer_line *timer)
{
	json_object(json, NULL);
	json_hex(json, "handle", timer->handle);
	json_string(json, "state", timer->expired ? "expired" : "pending");
	if (timer->deadline == TWHEEL_TIME_NONE)
		json_null(json, "deadline_ns");
	else
		json_number(json, "deadline_ns", timer->deadline);
	json_string(json, "clock", clock_name(timer->clock));
	json_number(json, "remaining_ns", timer->remaining);
	json_number(json, "period_ns", timer->period);
	if (timer->has_key)
		json_hex(json, "key", timer->key);
	else
		json_null(json, "key");
	json_hex(json, "user_data", timer->user_data);
	json_end(json);
}

static void json_context(struct json *json, const struct context *context, bool timers)
{
	size_t i;

	json_object(json, NULL);
	json_number(json, "pid", context->pid);
	json_string(json, "command", context->command);
	json_number(json, "fd", context->fd);
	json_number(json, "nr_timers", context->timers);
	json_number(json, "max_timers", context->max_timers);
	json_number(json, "nr_events", context->events);
	json_number(json, "bytes", context->bytes);
	json_number(json, "ring_entries", context->ring);
	json_number(json, "touch_words", context->touch);
	if (timers) {
		json_array(json, "timers");
		for (i = 0; i < context->nr_lines; i++)
			json_timer(json, &context->line[i]);
		json_end(json);
		json_number(json, "timers_not_shown", context->not_shown);
	}
	json_end(json);
}

static void show_header(struct listing *listing)
{
	if (listing->as_json)
		json_array(&listing->json, NULL);
	else
		printf("%7s %-15s %4s %10s %10s %10s %12s %8s %8s\n", "PID", "COMMAND", "FD",
		       "TIMERS", "LIMIT", "EVENTS", "BYTES", "RING", "TOUCH");
}

static void show_context(struct listing *listing, const struct context *context)
{
	char command[sizeof(context->command)];

	if (listing->as_json) {
		json_context(&listing->json, context, listing->timers);
		return;
	}
	make_printable(context->command, command);
	printf("%7d %-15s %4d %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %12" PRIu64
	       " %8" PRIu64 " %8" PRIu64 "\n", context->pid, command, context->fd,
	       context->timers, context->max_timers, context->events, context->bytes,
	       context->ring, context->touch);
	if (listing->timers)
		print_timers(context);
}

/* Does this file have the device's name? Only fdinfo shows whether it is a context. */
static bool is_called_device(pid_t pid, const char *fd)
{
	char path[64], target[sizeof(DEVICE) + 1];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", pid, fd);
	length = readlink(path, target, sizeof(target));
	return length == strlen(DEVICE) && !strncmp(target, DEVICE, length);
}

/* Opens /proc/PID/fd. Returns NULL if this user may not read it, or the process is gone. */
static DIR *open_process(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return opendir(path);
}

/* Shows the contexts of a process. */
static void list_process(struct listing *listing, pid_t pid, DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct context context = { .pid = pid, .fd = atoi(entry->d_name) };

		if (!is_called_device(pid, entry->d_name))
			continue;
		read_command(&context);
		if (fdinfo_read(&context))
			show_context(listing, &context);
		free(context.line);
	}
	closedir(dir);
}

/* Shows the contexts of all processes. Returns how many this user may not inspect. */
static unsigned int list_all(struct listing *listing)
{
	DIR *proc = opendir("/proc"), *dir;
	unsigned int hidden = 0;
	struct dirent *entry;

	if (!proc)
		err(EXIT_FAILED, "/proc");
	while ((entry = readdir(proc))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		dir = open_process(atoi(entry->d_name));
		if (dir)
			list_process(listing, atoi(entry->d_name), dir);
		else if (errno == EACCES)
			hidden++;
	}
	closedir(proc);
	return hidden;
}

/* Opens /proc/PID/fd of the process given on the command line, or exits. */
static DIR *find_process(pid_t pid)
{
	DIR *dir = open_process(pid);

	if (!dir && errno == ENOENT)
		errx(EXIT_FAILED, "there is no process %d; 'twctl list' shows those with timers",
		     pid);
	if (!dir)
		err(EXIT_FAILED, "run this as root: process %d", pid);
	return dir;
}

static const struct choice choices[] = {
	CHOICE_JSON,
	{ "timers", 't', NULL, "show the timers, too" },
	{ 0 },
};

static int run_list(int argc, char **argv)
{
	struct listing listing = { .json.out = stdout };
	unsigned int hidden = 0;
	pid_t pid = 0;
	int letter;
	DIR *dir;

	while ((letter = next_option(&list_command, argc, argv)) >= 0) {
		if (letter == 't')
			listing.timers = true;
		else
			listing.as_json = true;
	}
	if (optind < argc)
		pid = parse_count(&list_command, "PID", argv[optind++], INT_MAX);
	no_operands(&list_command, argc, argv);
	module_require();
	dir = pid ? find_process(pid) : NULL;
	show_header(&listing);
	if (dir)
		list_process(&listing, pid, dir);
	else
		hidden = list_all(&listing);
	if (listing.as_json)
		json_end(&listing.json);
	if (hidden)
		warnx("%u processes may not be looked at; run this as root to see all", hidden);
	return 0;
}

const struct command list_command = {
	.name		= "list",
	.operands	= "[PID]",
	.summary	= "who has which contexts, of all processes or of one",
	.choices	= choices,
	.run		= run_list,
};
