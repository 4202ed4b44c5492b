// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl info: print the properties of the device
 */
#include <inttypes.h>
#include <unistd.h>

#include "twctl.h"

/* By bit. Bit 6 was for an earlier form of touch arrays. */
static const char *const features[] = {
	"submit", "keys", "periodic", "clocks", "limits", "ring", NULL, "uring",
	"watch", "rules", "touch", "event-keys",
};

/* The name of a feature, or "bitN" if this program knows no name for it. */
static struct text feature_name(unsigned int bit)
{
	struct text text;

	if (bit < ARRAY_SIZE(features) && features[bit])
		snprintf(text.s, sizeof(text.s), "%s", features[bit]);
	else
		snprintf(text.s, sizeof(text.s), "bit%u", bit);
	return text;
}

static void json_features(struct json *json, uint64_t set)
{
	unsigned int bit;

	json_array(json, "features");
	for (bit = 0; bit < 64; bit++)
		if (set >> bit & 1)
			json_string(json, NULL, feature_name(bit).s);
	json_end(json);
}

/**
 * info_json - write the properties of the device as members of an object
 * @json:	the document
 * @info:	the properties
 */
void info_json(struct json *json, const struct twheel_info *info)
{
	json_number(json, "tick_ns", info->tick_ns);
	json_number(json, "max_timers", info->max_timers);
	json_number(json, "event_size", info->event_size);
	json_features(json, info->features);
}

/**
 * info_print - print the properties of the device
 * @info:	the properties
 */
void info_print(const struct twheel_info *info)
{
	unsigned int bit;

	printf("tick         %s\n", duration_format(info->tick_ns).s);
	printf("max_timers   %" PRIu64 "\n", (uint64_t)info->max_timers);
	printf("event_size   %u\n", info->event_size);
	printf("features    ");
	for (bit = 0; bit < 64; bit++)
		if (info->features >> bit & 1)
			printf(" %s", feature_name(bit).s);
	putchar('\n');
}

static const struct choice choices[] = { CHOICE_JSON, { 0 } };

static int run_info(int argc, char **argv)
{
	struct json json = { .out = stdout };
	struct twheel_info info;
	bool as_json = false;
	int fd;

	while (next_option(&info_command, argc, argv) >= 0)
		as_json = true;
	no_operands(&info_command, argc, argv);
	fd = device_open();
	device_info(fd, &info);
	close(fd);
	if (!as_json) {
		info_print(&info);
		return 0;
	}
	json_object(&json, NULL);
	info_json(&json, &info);
	json_end(&json);
	return 0;
}

const struct command info_command = {
	.name		= "info",
	.operands	= "",
	.summary	= "what the device says of itself: tick, limit, features",
	.choices	= choices,
	.run		= run_info,
};
