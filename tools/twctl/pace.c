// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: looking at something again and again
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "twctl.h"

#define NSEC_PER_SEC	1000000000LL

static int64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Sleeps until @when; not a tick more, however long printing took. */
static void sleep_until(int64_t when)
{
	struct timespec ts = { when / NSEC_PER_SEC, when % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/*
 * When to look next: a multiple of the interval after @last that is still to come. What was missed,
 * as this was stopped or the output held up, is not made up for.
 */
static int64_t next_time(int64_t last, int64_t interval)
{
	int64_t next = last + (now(CLOCK_MONOTONIC) - last) / interval * interval;

	return __builtin_add_overflow(next, interval, &next) ? INT64_MAX : next;
}

/**
 * pace_options - read options and operand of a command that looks again and again
 * @command:	the command: its operand is SECONDS, its options --json and --count
 * @argc:	as its @run got it
 * @argv:	likewise
 */
struct pace pace_options(const struct command *command, int argc, char **argv)
{
	struct pace pace = { .interval = NSEC_PER_SEC };
	int letter;

	while ((letter = next_option(command, argc, argv)) >= 0) {
		if (letter == 'n')
			pace.count = parse_count(command, "--count", optarg, UINT32_MAX);
		else
			pace.json = true;
	}
	if (optind < argc)
		pace.interval = parse_time(command, "SECONDS", argv[optind++]);
	no_operands(command, argc, argv);
	if (!pace.interval)
		usage(command, "SECONDS is 0");
	return pace;
}

/**
 * pace_run - look again and again
 * @pace:	how often
 * @look:	looks, and prints
 * @data:	for @look
 */
void pace_run(struct pace *pace, void (*look)(struct pace *pace, void *data), void *data)
{
	int64_t next = now(CLOCK_MONOTONIC);
	uint64_t i;

	for (i = 0; !pace->count || i < pace->count; i++) {
		if (i) {
			next = next_time(next, pace->interval);
			sleep_until(next);
		}
		look(pace, data);
		if (fflush(stdout))
			break;
	}
}

/**
 * pace_seconds - seconds since it was last called; 0 the first time
 * @pace:	the looks
 */
double pace_seconds(struct pace *pace)
{
	int64_t then = now(CLOCK_MONOTONIC), last = pace->last ?: then;

	pace->last = then;
	return (then - last) / 1e9;
}

/**
 * pace_print_time - begin a look that is printed
 * @first:	it is the first one
 */
void pace_print_time(bool first)
{
	char date[32];
	time_t seconds = time(NULL);

	strftime(date, sizeof(date), "%F %T", localtime(&seconds));
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	else if (!first)
		putchar('\n');
	printf("time         %s\n", date);
}

/**
 * pace_json_time - the same in JSON
 * @json:	the document, in an object
 */
void pace_json_time(struct json *json)
{
	json_real(json, "time", now(CLOCK_REALTIME) / 1e9);
}
