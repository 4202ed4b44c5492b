// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors of standard output: output that was lost makes a program fail
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stdout.h"

/* The exit status if output was lost. */
int close_stdout_status = EXIT_FAILURE;

/**
 * close_stdout - flush standard output, and fail if anything could not be written
 *
 * To be registered with atexit().
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
	_exit(close_stdout_status);
}
