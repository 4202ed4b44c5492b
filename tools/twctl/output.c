// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: output to a file that is replaced atomically: readers see all of it or none
 */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "twctl.h"

/* The file, until it is complete; and the temporary file that is renamed to it. */
static const char *file;
static char part[PATH_MAX + 8];

/* Removes the old file as well: readers must not take stale output for current. */
static void discard_output(void)
{
	if (!file)
		return;
	unlink(part);
	unlink(file);
}

/**
 * output_begin - redirect standard output to a file
 * @path:	the file; the string must stay valid. An existing file is replaced when the output
 *		is complete, and removed if the program exits before that
 */
void output_begin(const char *path)
{
	struct stat st;
	int fd;

	/* It would be replaced, and not written to. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		refuse("%s is no regular file; leave --file out, and redirect the output", path);
	if (snprintf(part, sizeof(part), "%s.new", path) >= (int)sizeof(part))
		refuse("the name of the file is too long");
	file = path;
	atexit(discard_output);
	/* Of one that was killed; or what another user has put there, such as a link. */
	unlink(part);
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		err(EXIT_FAILED, "%s", part);
	close(fd);
}

/** output_end - move the complete output to the file given to output_begin(), if any */
void output_end(void)
{
	if (!file)
		return;
	if (ferror(stdout) || fflush(stdout) || rename(part, file)) {
		warn("%s", file);
		discard_output();
		/* Not exit(): nothing more is to be said of standard output. */
		_exit(EXIT_FAILED);
	}
	file = NULL;
}
