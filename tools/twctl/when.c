// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: the options that say when a timer expires
 */
#include <time.h>

#include "twctl.h"

#define NSEC_PER_SEC	1000000000ULL

/**
 * when_option - handle an option that says when a timer expires
 * @when:	updated if it is one
 * @letter:	the option
 * @value:	its value
 *
 * Return: false if it is another option.
 */
bool when_option(struct when *when, int letter, const char *value)
{
	if (letter == 'c')
		when->clock = value;
	else if (letter == 'u')
		when->until = value;
	else
		return false;
	return true;
}

/* mktime() for dates that exist only: it would take 31 February for 3 March. */
static bool make_time(struct tm *tm, time_t *seconds)
{
	const struct tm asked = *tm;

	*seconds = mktime(tm);
	return *seconds >= 0 && tm->tm_mon == asked.tm_mon && tm->tm_mday == asked.tm_mday;
}

/*
 * Parses a date with a time of day, or only a time of day, in local time. A time of day means
 * today, or tomorrow if it has passed.
 */
static bool parse_date(const char *text, time_t *seconds)
{
	static const char *const formats[] = {
		"%H:%M", "%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S",
	};
	time_t now = time(NULL);
	const char *end;
	struct tm tm;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		localtime_r(&now, &tm);
		tm.tm_sec = 0;
		tm.tm_isdst = -1;
		end = strptime(text, formats[i], &tm);
		if (!end || *end)
			continue;
		if (!make_time(&tm, seconds))
			return false;
		if (*seconds <= now && i < 2) {
			tm.tm_mday++;
			tm.tm_isdst = -1;
			*seconds = mktime(&tm);
		}
		return true;
	}
	return false;
}

static uint64_t parse_until(const struct command *command, const char *text, uint32_t clock)
{
	time_t seconds;
	uint64_t ns;

	if (*text == '@' && duration_parse(text + 1, &ns))
		return ns;
	if (!parse_date(text, &seconds) || seconds > (time_t)(TWHEEL_TIME_MAX / NSEC_PER_SEC))
		usage(command,
		      "--until '%s' is not @SECONDS, HH:MM[:SS] or 'YYYY-MM-DD HH:MM[:SS]'",
		      text);
	if (clock != CLOCK_REALTIME)
		usage(command, "a time of day or a date is one of --clock realtime");
	return seconds * NSEC_PER_SEC;
}

/**
 * when_resolve - convert options and operand to the arguments of the device, or exit
 * @command:	the command
 * @when:	its options
 * @duration:	its operand, or NULL
 * @add:	@time, @flags and @clock are filled in
 */
void when_resolve(const struct command *command, const struct when *when,
		  const char *duration, struct twheel_timer_add *add)
{
	add->clock = when->until ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	if (when->clock && !clock_find(when->clock, &add->clock))
		usage(command, "there is no clock '%s', but monotonic, boottime and realtime",
		      when->clock);
	if (!duration == !when->until)
		usage(command, "give a DURATION or --until, one of them");
	if (duration) {
		add->time = parse_time(command, "DURATION", duration);
		return;
	}
	add->time = parse_until(command, when->until, add->clock);
	add->flags = TWHEEL_TIME_ABS;
}
