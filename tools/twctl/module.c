// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: whether the module is loaded, and its version
 */
#include <err.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"

/**
 * module_is_loaded - is the module loaded?
 */
bool module_is_loaded(void)
{
	return !access(MODULE, F_OK);
}

/**
 * module_not_loaded - make the message for a module that is not loaded
 * @why:	filled in
 */
void module_not_loaded(struct message *why)
{
	snprintf(why->text, sizeof(why->text),
		 "twheel.ko is not loaded; as root, run: modprobe twheel");
}

/**
 * module_require - exit if the module is not loaded
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
 * module_version - get the version of the module
 *
 * Return: the version, or an empty string if it cannot be read.
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
