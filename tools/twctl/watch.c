// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl watch: the numbers as they change
 */
#include <err.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "twctl.h"

#define NSEC_PER_SEC	1000000000LL

/**
 * struct look - the numbers, and when it was that they were these
 * @totals:	the numbers
 * @when:	nanoseconds of CLOCK_MONOTONIC
 */
struct look {
	struct pairs	totals;
	int64_t		when;
};

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

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static double seconds_between(const struct look *before, const struct look *after)
{
	return (after->when - before->when) / 1e9;
}

/* @before is NULL the first time. */
static void print_look(const struct look *look, const struct look *before)
{
	char date[32];
	time_t seconds = time(NULL);

	strftime(date, sizeof(date), "%F %T", localtime(&seconds));
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	else if (before)
		putchar('\n');
	printf("time         %s\n", date);
	status_print_totals(&look->totals, before ? &before->totals : NULL,
			    before ? seconds_between(before, look) : 0);
}

static void json_look(const struct look *look, const struct look *before)
{
	struct json json = { .out = stdout };
	const uint64_t *old;
	size_t i;

	json_object(&json, NULL);
	json_real(&json, "time", now(CLOCK_REALTIME) / 1e9);
	status_json_totals(&json, &look->totals);
	json_object(&json, "per_second");
	for (i = 0; before && i < look->totals.nr; i++) {
		old = pairs_find(&before->totals, look->totals.pair[i].name);
		if (old)
			json_real(&json, look->totals.pair[i].name,
				  (int64_t)(look->totals.pair[i].value - *old) /
				  seconds_between(before, look));
	}
	json_end(&json);
	json_end(&json);
}

static const struct choice choices[] = {
	CHOICE_JSON,
	{ "count", 'n', "N", "end after N times" },
	{ 0 },
};

static int run(int argc, char **argv)
{
	struct look looks[2], *look;
	uint64_t count = 0, interval = NSEC_PER_SEC, i;
	int64_t begin = now(CLOCK_MONOTONIC);
	bool as_json = false;
	int letter;

	while ((letter = next_option(&watch_command, argc, argv)) >= 0) {
		if (letter == 'n')
			count = parse_count(&watch_command, "--count", optarg, UINT32_MAX);
		else
			as_json = true;
	}
	if (optind < argc)
		interval = parse_time(&watch_command, "SECONDS", argv[optind++]);
	no_operands(&watch_command, argc, argv);
	if (!interval)
		usage(&watch_command, "SECONDS is 0");
	for (i = 0; !count || i < count; i++) {
		if (i)
			sleep_until(begin + i * interval);
		look = &looks[i % 2];
		debugfs_read("totals", &look->totals);
		look->when = now(CLOCK_MONOTONIC);
		(as_json ? json_look : print_look)(look, i ? &looks[(i + 1) % 2] : NULL);
		if (fflush(stdout))
			break;
	}
	return 0;
}

const struct command watch_command = {
	.name		= "watch",
	.operands	= "[SECONDS]",
	.summary	= "the numbers each SECONDS (1), and how they change",
	.choices	= choices,
	.run		= run,
};
