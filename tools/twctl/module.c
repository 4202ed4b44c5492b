// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: is the module loaded?
 */
#include <err.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"

/**
 * module_is_loaded - is it?
 */
bool module_is_loaded(void)
{
	return !access(MODULE, F_OK);
}

/**
 * module_not_loaded - say that the module is not loaded, and what to do
 * @why:	filled in
 */
void module_not_loaded(struct message *why)
{
	snprintf(why->text, sizeof(why->text),
		 "twheel.ko is not loaded; as root, run: modprobe twheel");
}

/**
 * module_require - exit unless the module is loaded
 */
void module_require(void)
{
	struct message why;

	if (module_is_loaded())
		return;
	module_not_loaded(&why);
	errx(EXIT_FAILED, "%s", why.text);
}

/**
 * module_version - the version of the module, or an empty string
 */
struct text module_version(void)
{
	FILE *file = fopen(MODULE "/version", "r");
	struct text version = { "" };

	if (!file)
		return version;
	if (fgets(version.s, sizeof(version.s), file))
		version.s[strcspn(version.s, "\n")] = 0;
	fclose(file);
	return version;
}
