// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: hold_lock FILE: locks a file until it is killed, and says so
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd;

	if (argc != 2)
		errx(2, "usage: hold_lock FILE");
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX))
		err(1, "%s", argv[1]);
	puts("holding");
	fflush(stdout);
	for (;;)
		pause();
}
