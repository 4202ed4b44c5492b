// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: mixtures, which are tables of numbers
 */
#include <err.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define US	1e3
#define MS	1e6
#define S	1e9
#define MINUTE	(60 * S)
#define HOUR	(60 * MINUTE)
#define DAY	(24 * HOUR)

const struct mixture mixtures[] = {
	{
		.name = "connections",
		.what = "heartbeats re-arm, 1 in 100 falls silent and is closed",
		.timeout_min = 60 * S, .timeout_max = 60 * S, .silent = 1,
		.next_min = 20 * S, .next_max = 40 * S,
		.return_min = 1 * S, .return_max = 1 * S, .length = 10 * S,
	}, {
		.name = "rpc",
		.what = "answered within milliseconds, 1 in 1000 is not",
		.timeout_min = 1 * S, .timeout_max = 1 * S, .silent = 0.1,
		.next_min = 1 * MS, .next_max = 20 * MS, .cancel = 100,
		.pause_min = 5 * S, .pause_max = 15 * S,
		.return_min = 5 * S, .return_max = 15 * S, .length = 4 * S,
	}, {
		.name = "cache",
		.what = "keys expire, some are replaced before",
		.timeout_min = 10 * S, .timeout_max = 30 * S, .silent = 70,
		.next_min = 1 * S, .next_max = 20 * S,
		.return_max = 1 * S, .length = 6 * S,
	}, {
		.name = "periodic",
		.what = "each is armed again when it expires, at any phase",
		.timeout_min = 1 * S, .timeout_max = 10 * S, .silent = 100, .length = 2 * S,
	}, {
		.name = "in_phase",
		.what = "the same, all at once",
		.timeout_min = 5 * S, .timeout_max = 5 * S, .silent = 100, .equal = 1,
		.length = 6 * S,
	}, {
		.name = "retry",
		.what = "what is not answered is tried again, after twice the time",
		.timeout_min = 1 * S, .timeout_max = 60 * S, .silent = 30, .backoff = 2,
		.next_min = 10 * MS, .next_max = 500 * MS, .cancel = 100,
		.pause_min = 5 * S, .pause_max = 15 * S, .length = 3 * S,
	}, {
		.name = "far",
		.what = "days and weeks among seconds",
		.timeout_min = 1 * S, .timeout_max = 10 * S, .silent = 20,
		.far = 90, .far_min = 1 * DAY, .far_max = 21 * DAY,
		.next_min = 2 * S, .next_max = 20 * S, .cancel = 30,
		.pause_max = 2 * S, .return_max = 2 * S, .length = 5 * S,
	}, {
		.name = "storm",
		.what = "everything expires at once",
		.timeout_min = 2 * S, .timeout_max = 2 * S, .silent = 100, .equal = 1,
		.once = 1, .length = 3 * S,
	}, {
		.name = "idle",
		.what = "nothing happens, and nothing is due",
		.timeout_min = 1 * MINUTE, .timeout_max = 1 * HOUR, .silent = 100, .equal = 1,
		.length = 10 * S,
	},
	{ 0 },
};

enum kind { DURATION, PERCENT, FACTOR, FLAG };

static const struct field {
	const char	*name;
	size_t		offset;
	enum kind	kind;
} fields[] = {
#define FIELD(name, kind)	{ #name, offsetof(struct mixture, name), kind }
	FIELD(timeout_min, DURATION),
	FIELD(timeout_max, DURATION),
	FIELD(far, PERCENT),
	FIELD(far_min, DURATION),
	FIELD(far_max, DURATION),
	FIELD(silent, PERCENT),
	FIELD(next_min, DURATION),
	FIELD(next_max, DURATION),
	FIELD(cancel, PERCENT),
	FIELD(pause_min, DURATION),
	FIELD(pause_max, DURATION),
	FIELD(return_min, DURATION),
	FIELD(return_max, DURATION),
	FIELD(once, FLAG),
	FIELD(backoff, FACTOR),
	FIELD(equal, FLAG),
	FIELD(length, DURATION),
#undef FIELD
};

static const struct unit {
	const char	*name;
	double		ns;
} units[] = {
	{ "us", US }, { "ms", MS }, { "s", S }, { "m", MINUTE }, { "h", HOUR }, { "d", DAY },
};

static double *member(const struct mixture *mixture, const struct field *field)
{
	return (double *)((char *)mixture + field->offset);
}

/**
 * mixture_find - find a mixture, or exit
 * @name:	its name
 */
const struct mixture *mixture_find(const char *name)
{
	const struct mixture *mixture;
	char all[256] = "";

	for (mixture = mixtures; mixture->name; mixture++) {
		if (!strcmp(mixture->name, name))
			return mixture;
		strcat(all, " ");
		strcat(all, mixture->name);
	}
	errx(EXIT_USAGE, "no mixture '%s'; there are:%s, and all", name, all);
}

/* Parses what follows a number. Returns by what to multiply that; 0 if it makes no sense. */
static double unit_of(enum kind kind, const char *text)
{
	size_t i;

	if (kind == PERCENT)
		return !strcmp(text, "%") || !*text;
	if (kind != DURATION)
		return !*text;
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(units[i].name, text))
			return units[i].ns;
	return 0;
}

static bool is_possible(enum kind kind, double value)
{
	static const double max[] = {
		[DURATION]	= TWHEEL_BENCH_MAX_DEADLINE_NS / 4,
		[PERCENT]	= 100,
		[FACTOR]	= 1000,
		[FLAG]		= 1,
	};

	/* Not so if it is no number. */
	return value >= 0 && value <= max[kind];
}

/**
 * mixture_set - change a number of a mixture, or exit
 * @mixture:	the mixture
 * @setting:	"NAME=VALUE"
 */
void mixture_set(struct mixture *mixture, const char *setting)
{
	const char *value = strchr(setting, '=');
	double number, unit;
	size_t i;
	char *end;

	if (!value++)
		errx(EXIT_USAGE, "--set '%s' is not NAME=VALUE", setting);
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (strlen(fields[i].name) == (size_t)(value - 1 - setting) &&
		    !strncmp(fields[i].name, setting, value - 1 - setting))
			break;
	if (i == ARRAY_SIZE(fields))
		errx(EXIT_USAGE, "--set %s: a mixture has no such number; 'twbench mix' shows them",
		     setting);
	number = strtod(value, &end);
	unit = unit_of(fields[i].kind, end);
	/* A time of nothing needs no unit. */
	if (end == value || (!unit && (*end || number)) ||
	    !is_possible(fields[i].kind, number * unit))
		errx(EXIT_USAGE, "--set %s: not %s", setting,
		     fields[i].kind == DURATION ? "a time, like 20ms, 1.5s, 3m, 2h or 7d" :
		     fields[i].kind == PERCENT ? "a share, of 0 to 100 %" :
		     "a number that is possible");
	*member(mixture, &fields[i]) = number * unit;
}

/**
 * mixture_check - check that the numbers of a mixture go together, or exit
 * @mixture:	the mixture
 */
void mixture_check(const struct mixture *mixture)
{
	size_t i;

	/* A number _max follows that with _min. */
	for (i = 1; i < ARRAY_SIZE(fields); i++)
		if (strstr(fields[i].name, "_max") && *member(mixture, &fields[i]) <
		    *member(mixture, &fields[i - 1]))
			errx(EXIT_USAGE, "%s: %s is less than %s", mixture->name, fields[i].name,
			     fields[i - 1].name);
	if (mixture->timeout_min < US || (mixture->far && mixture->far_min < US))
		errx(EXIT_USAGE, "%s: a timeout of nothing", mixture->name);
	/* With nothing between two operations of a timer, they would never end. */
	if (mixture->silent < 100 && mixture->next_max < US)
		errx(EXIT_USAGE, "%s: next_max is nothing", mixture->name);
	if (mixture->backoff && mixture->backoff < 1)
		errx(EXIT_USAGE, "%s: backoff is less than 1", mixture->name);
	if (mixture->length < MS || mixture->length > TWHEEL_BENCH_MAX_TIMEOUT_NS)
		errx(EXIT_USAGE, "%s: its length is not 1 ms to an hour", mixture->name);
}

static void print_value(FILE *out, const struct field *field, double value)
{
	size_t i = ARRAY_SIZE(units) - 1;

	if (field->kind != DURATION || !value) {
		fprintf(out, "%g", value);
		return;
	}
	while (i && (value < units[i].ns || fmod(value, units[i].ns)))
		i--;
	fprintf(out, "%g%s", value / units[i].ns, units[i].name);
}

/**
 * mixture_print - print a mixture and its numbers; those that are 0 are left out
 * @out:	the stream to write to
 * @mixture:	the mixture
 */
void mixture_print(FILE *out, const struct mixture *mixture)
{
	size_t i;

	fprintf(out, "%s: %s\n", mixture->name, mixture->what);
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!*member(mixture, &fields[i]))
			continue;
		fprintf(out, " %s=", fields[i].name);
		print_value(out, &fields[i], *member(mixture, &fields[i]));
	}
	fputc('\n', out);
}
