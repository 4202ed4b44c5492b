// SPDX-License-Identifier: GPL-2.0-only
/*
 * What was printed may have found no place: that is a failure, too
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stdout.h"

/**
 * close_stdout - to be called at exit, which fails if not all could be printed
 */
void close_stdout(void)
{
	const bool lost = ferror(stdout);

	if (fflush(stdout))
		warn("standard output");
	else if (lost)
		warnx("standard output: not all of it could be written");
	else
		return;
	_exit(EXIT_FAILURE);
}
