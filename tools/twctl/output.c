// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: a file instead of standard output, of which readers see all or nothing
 */
#include <err.h>
#include <stdlib.h>
#include <unistd.h>

#include "twctl.h"

/* The file, until it is there; and what is written first. */
static const char *file;
static char part[PATH_MAX + 8];

/* What there was before is not left to be taken for what could not be had. */
static void give_up(void)
{
	if (!file)
		return;
	unlink(part);
	unlink(file);
}

/**
 * output_begin - have what is printed go to a file
 * @path:	the file, which has to stay. What is there goes when it can be replaced by all of
 *		the output, or if the program exits before
 */
void output_begin(const char *path)
{
	if (snprintf(part, sizeof(part), "%s.new", path) >= (int)sizeof(part))
		refuse("the name of the file is too long");
	file = path;
	atexit(give_up);
	if (!freopen(part, "w", stdout))
		err(EXIT_FAILED, "%s", part);
}

/** output_end - all is printed: make that the file, if output_begin() has named one */
void output_end(void)
{
	if (!file)
		return;
	if (ferror(stdout) || fflush(stdout) || rename(part, file))
		err(EXIT_FAILED, "%s", file);
	file = NULL;
}
