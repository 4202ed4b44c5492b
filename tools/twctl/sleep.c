// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl sleep: wait until a timer expires
 */
#include <unistd.h>

#include "twctl.h"

static const struct choice choices[] = { CHOICE_CLOCK, CHOICE_UNTIL, { 0 } };

static int run_sleep(int argc, char **argv)
{
	struct twheel_timer_add add = { 0 };
	struct twheel_event event;
	struct when when = { 0 };
	int letter, fd;

	while ((letter = next_option(&sleep_command, argc, argv)) >= 0)
		when_option(&when, letter, optarg);
	when_resolve(&sleep_command, &when, optind < argc ? argv[optind++] : NULL, &add);
	no_operands(&sleep_command, argc, argv);
	fd = device_open();
	device_add(fd, &add);
	device_read(fd, &event);
	return 0;
}

const struct command sleep_command = {
	.name		= "sleep",
	.operands	= "[DURATION]",
	.summary	= "wait so long, or until a time",
	.choices	= choices,
	.run		= run_sleep,
};
