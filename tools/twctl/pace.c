// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: printing samples periodically
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "twctl.h"

#define NSEC_PER_SEC	1000000000LL

static int64_t clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Sleeps until an absolute time, so that the time printing takes does not add up. */
static void sleep_until(int64_t when)
{
	struct timespec ts = { when / NSEC_PER_SEC, when % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/*
 * When to take the next sample: the next multiple of the interval after @last. Samples that were
 * missed, because this program was stopped or its output was held up, are skipped.
 */
static int64_t next_sample_time(int64_t last, int64_t interval)
{
	int64_t next = last + (clock_now(CLOCK_MONOTONIC) - last) / interval * interval;

	return __builtin_add_overflow(next, interval, &next) ? INT64_MAX : next;
}

/**
 * pace_options - parse the arguments of a command that prints samples periodically
 * @command:	the command: its operand is SECONDS, its options are --json and --count
 * @argc:	as passed to its @run
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
 * pace_run - take and print samples until @pace->count is reached or output fails
 * @pace:	the options
 * @sample:	takes and prints a sample
 * @data:	passed to @sample
 */
void pace_run(struct pace *pace, void (*sample)(struct pace *pace, void *data), void *data)
{
	int64_t next = clock_now(CLOCK_MONOTONIC);
	uint64_t i;

	for (i = 0; !pace->count || i < pace->count; i++) {
		if (i) {
			next = next_sample_time(next, pace->interval);
			sleep_until(next);
		}
		sample(pace, data);
		if (fflush(stdout))
			break;
	}
}

/**
 * pace_seconds - get the time since this was last called
 * @pace:	the options
 *
 * Return: seconds; 0 the first time.
 */
double pace_seconds(struct pace *pace)
{
	int64_t then = clock_now(CLOCK_MONOTONIC), last = pace->last ?: then;

	pace->last = then;
	return (then - last) / 1e9;
}

/**
 * pace_print_time - begin a sample as text: clear the terminal, and print the time
 * @first:	it is the first sample
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
 * pace_json_time - write the time as a member of an object
 * @json:	the document
 */
void pace_json_time(struct json *json)
{
	json_real(json, "time", clock_now(CLOCK_REALTIME) / 1e9);
}
