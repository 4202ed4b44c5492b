// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl watch: the numbers as they change
 */
#include "twctl.h"

/**
 * struct watch - looks at the numbers
 * @look:	the last look, and the one before
 * @nr:		of looks
 */
struct watch {
	struct pairs	look[2];
	unsigned int	nr;
};

static void json_look(const struct pairs *totals, const struct pairs *before, double seconds)
{
	struct json json = { .out = stdout };
	const uint64_t *old;
	const char *name;
	size_t i;

	json_object(&json, NULL);
	pace_json_time(&json);
	status_json_totals(&json, totals);
	json_object(&json, "per_second");
	for (i = 0; before && i < totals->nr; i++) {
		name = totals->pair[i].name;
		old = pairs_find(before, name);
		if (old && metrics_is_count(name))
			json_real(&json, name,
				  (int64_t)(totals->pair[i].value - *old) / seconds);
	}
	json_end(&json);
	json_end(&json);
}

static void look(struct pace *pace, void *data)
{
	struct watch *watch = data;
	struct pairs *totals = &watch->look[watch->nr % 2];
	struct pairs *before = watch->nr ? &watch->look[(watch->nr + 1) % 2] : NULL;
	double seconds;

	debugfs_read("totals", totals);
	seconds = pace_seconds(pace);
	watch->nr++;
	if (pace->json) {
		json_look(totals, before, seconds);
		return;
	}
	pace_print_time(!before);
	status_print_totals(totals, before, seconds);
}

static const struct choice choices[] = { CHOICE_JSON, CHOICE_COUNT, { 0 } };

static int run(int argc, char **argv)
{
	struct pace pace = pace_options(&watch_command, argc, argv);
	struct watch watch = { .nr = 0 };

	pace_run(&pace, look, &watch);
	return 0;
}

const struct command watch_command = {
	.name		= "watch",
	.operands	= "[SECONDS]",
	.summary	= "the numbers each SECONDS (1), and how they change",
	.choices	= choices,
	.run		= run,
};
