// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: the files in /sys/kernel/debug/twheel
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statfs.h>

#include <linux/magic.h>

#include "twctl.h"

#define DEBUGFS		"/sys/kernel/debug"

static bool is_mounted(void)
{
	struct statfs fs;

	return !statfs(DEBUGFS, &fs) && fs.f_type == DEBUGFS_MAGIC;
}

static void explain_error(const char *name, int error, struct message *why)
{
	size_t size = sizeof(why->text);

	if (!module_is_loaded())
		module_not_loaded(why);
	else if (!is_mounted())
		snprintf(why->text, size,
			 "debugfs is not mounted; as root, run: mount -t debugfs none %s",
			 DEBUGFS);
	else if (error == EACCES)
		snprintf(why->text, size, "%s is for root only; run this as root", DEBUGFS);
	else
		snprintf(why->text, size,
			 "%s/twheel/%s: %s; look into the kernel's log (dmesg)", DEBUGFS, name,
			 strerror(error));
}

/* Adds a line to @pairs. Ignores lines other than "name: number". */
static void parse_line(struct pairs *pairs, const char *line)
{
	int end = 0;

	if (pairs->nr == ARRAY_SIZE(pairs->pair))
		errx(EXIT_FAILED, "the module tells more than this twctl knows; use its own");
	if (sscanf(line, "%31[^:]: %" SCNu64 "%n", pairs->pair[pairs->nr].name,
		   &pairs->pair[pairs->nr].value, &end) == 2 && line[end] == '\n')
		pairs->nr++;
}

/**
 * debugfs_try - read a debugfs file of the module
 * @name:	its name
 * @pairs:	filled in
 * @why:	filled in if the file cannot be read
 *
 * Return: false if it cannot be read.
 */
bool debugfs_try(const char *name, struct pairs *pairs, struct message *why)
{
	char path[64], line[128];
	FILE *file;
	bool good;

	snprintf(path, sizeof(path), DEBUGFS "/twheel/%s", name);
	pairs->nr = 0;
	file = fopen(path, "r");
	if (!file) {
		explain_error(name, errno, why);
		return false;
	}
	while (fgets(line, sizeof(line), file))
		parse_line(pairs, line);
	good = !ferror(file);
	if (!good)
		explain_error(name, errno, why);
	fclose(file);
	return good;
}

/**
 * debugfs_read - read a debugfs file of the module, or exit
 * @name:	its name
 * @pairs:	filled in
 */
void debugfs_read(const char *name, struct pairs *pairs)
{
	struct message why;

	if (!debugfs_try(name, pairs, &why))
		errx(EXIT_FAILED, "%s", why.text);
}

/**
 * pairs_find - look up a number by its name
 * @pairs:	the numbers
 * @name:	its name
 *
 * Return: its value, or NULL.
 */
const uint64_t *pairs_find(const struct pairs *pairs, const char *name)
{
	size_t i;

	for (i = 0; i < pairs->nr; i++)
		if (!strcmp(pairs->pair[i].name, name))
			return &pairs->pair[i].value;
	return NULL;
}
