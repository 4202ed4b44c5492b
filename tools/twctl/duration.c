// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: durations in human-readable form
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "twctl.h"

/**
 * struct unit - a unit of time
 * @name:	its name
 * @ns:		its length in nanoseconds
 */
struct unit {
	const char	*name;
	uint64_t	ns;
};

/* From largest to smallest. */
static const struct unit units[] = {
	{ "d",	86400000000000 },
	{ "h",	3600000000000 },
	{ "m",	60000000000 },
	{ "s",	1000000000 },
	{ "ms",	1000000 },
	{ "us",	1000 },
	{ "ns",	1 },
};

/* The length of a unit; of a second if @name is empty, 0 if there is no such unit. */
static uint64_t unit_length(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(units[i].name, *name ? name : "s"))
			return units[i].ns;
	return 0;
}

/**
 * duration_parse - parse a duration such as 300ms, 1.5s, 2m, or 10, which is in seconds
 * @text:	the text
 * @ns:		filled in: nanoseconds, up to TWHEEL_TIME_MAX; fractions of one are cut off
 *
 * Return: false if @text is not a valid duration.
 */
bool duration_parse(const char *text, uint64_t *ns)
{
	unsigned __int128 sum;
	uint64_t number = 0, scale = 1, unit;
	const char *c = text;
	bool point = false;

	/* The digits without the decimal point, and what to divide them by. */
	for (; isdigit((unsigned char)*c) || (*c == '.' && !point); c++) {
		if (*c == '.') {
			point = true;
			continue;
		}
		if (number > (UINT64_MAX - 9) / 10 || scale > UINT64_MAX / 10)
			return false;
		number = number * 10 + *c - '0';
		scale *= point ? 10 : 1;
	}
	if (c == text || (point && c == text + 1))
		return false;
	unit = unit_length(c);
	sum = (unsigned __int128)number * unit / scale;
	*ns = sum;
	return unit && sum <= TWHEEL_TIME_MAX;
}

/**
 * duration_exact - format a duration without rounding, as duration_parse() reads it
 * @ns:		nanoseconds
 */
struct text duration_exact(uint64_t ns)
{
	const struct unit *unit = units;
	struct text text;

	while (!ns || ns % unit->ns)
		unit++;
	snprintf(text.s, sizeof(text.s), "%" PRIu64 "%s", ns / unit->ns, unit->name);
	return text;
}

/**
 * duration_format - format a duration, rounded, in the largest unit that it reaches
 * @ns:		nanoseconds
 */
struct text duration_format(uint64_t ns)
{
	const struct unit *unit = units;
	struct text text;

	while (ns < unit->ns && unit->ns > 1)
		unit++;
	snprintf(text.s, sizeof(text.s), "%.4g %s", (double)ns / unit->ns, unit->name);
	return text;
}
