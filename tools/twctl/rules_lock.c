// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: one command at a time changes the rules
 *
 * Commands first look at the rules, and then change some: 'idle load' keeps one rule and removes
 * another because of what it has seen. Two of them at once could remove each other's rules.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "twctl.h"

/* Only root can hold the lock, so that no other user can keep root waiting. */
#define DIRECTORY	"/run/twheel"
#define LOCK		DIRECTORY "/rules.lock"

/**
 * rules_lock - wait until no other twctl changes rules; none will before this process ends
 *
 * Rules of all network namespaces share the lock. Whoever may not write to /run, like the root
 * user of a user namespace, does without it, and so does everybody where files cannot be locked.
 * The kernel does not know of it.
 */
void rules_lock(void)
{
	int fd;

	mkdir(DIRECTORY, 0755);
	fd = open(LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS || errno == ENOENT))
		return;
	if (fd < 0)
		err(EXIT_FAILED, "%s", LOCK);
	if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return;
	warnx("waiting for another twctl that changes rules");
	while (flock(fd, LOCK_EX))
		if (errno != EINTR)
			err(EXIT_FAILED, "%s", LOCK);
}
