// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl watch: print the counters periodically, with their rates
 */
#include "twctl.h"

/**
 * struct watch - the last two samples of the counters
 * @sample:	the samples: the one numbered n, from 0, is in element n % 2
 * @nr:		number of samples taken
 */
struct watch {
	struct pairs	sample[2];
	unsigned int	nr;
};

static void json_sample(const struct pairs *totals, const struct pairs *before, double seconds)
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
		if (old && metrics_is_counter(name))
			json_real(&json, name,
				  (int64_t)(totals->pair[i].value - *old) / seconds);
	}
	json_end(&json);
	json_end(&json);
}

static void sample_totals(struct pace *pace, void *data)
{
	struct watch *watch = data;
	struct pairs *totals = &watch->sample[watch->nr % 2];
	struct pairs *before = watch->nr ? &watch->sample[(watch->nr + 1) % 2] : NULL;
	double seconds;

	debugfs_read("totals", totals);
	seconds = pace_seconds(pace);
	watch->nr++;
	if (pace->json) {
		json_sample(totals, before, seconds);
		return;
	}
	pace_print_time(!before);
	status_print_totals(totals, before, seconds);
}

static const struct choice choices[] = { CHOICE_JSON, CHOICE_COUNT, { 0 } };

static int run_watch(int argc, char **argv)
{
	struct pace pace = pace_options(&watch_command, argc, argv);
	struct watch watch = { .nr = 0 };

	pace_run(&pace, sample_totals, &watch);
	return 0;
}

const struct command watch_command = {
	.name		= "watch",
	.operands	= "[SECONDS]",
	.summary	= "the numbers each SECONDS (1), and how they change",
	.choices	= choices,
	.run		= run_watch,
};
