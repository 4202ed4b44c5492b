// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: cgroups and their ids
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "twctl.h"

#define CGROUPS		"/sys/fs/cgroup"

/* The type of a file handle that consists of a cgroup's id: the kernel's FILEID_KERNFS. */
#define KERNFS_HANDLE	0xfe

/* The whole path of a cgroup, from one that is absolute or relative to /sys/fs/cgroup. */
static struct cgroup whole_path(const char *name)
{
	const size_t length = strlen(CGROUPS);
	const bool whole = !strncmp(name, CGROUPS, length) &&
			   (!name[length] || name[length] == '/');
	struct cgroup cgroup;

	if (snprintf(cgroup.path, sizeof(cgroup.path), "%s%s", whole ? "" : CGROUPS "/", name) >=
	    (int)sizeof(cgroup.path))
		refuse("the path of the cgroup is too long");
	return cgroup;
}

/**
 * cgroup_find - find a cgroup, or exit
 * @name:	its path, absolute or relative to /sys/fs/cgroup
 *
 * Return: its id.
 */
uint64_t cgroup_find(const char *name)
{
	const struct cgroup cgroup = whole_path(name);
	struct statfs fs;
	struct stat st;

	if (statfs(cgroup.path, &fs) || stat(cgroup.path, &st))
		refuse("cgroup '%s': %s; see what there is in %s", name, strerror(errno), CGROUPS);
	if (fs.f_type != CGROUP2_SUPER_MAGIC || !S_ISDIR(st.st_mode))
		refuse("'%s' is no cgroup of version 2; see what there is in %s", name, CGROUPS);
	return st.st_ino;
}

/**
 * cgroup_name - get the path of a cgroup, relative to /sys/fs/cgroup
 * @id:		its id
 *
 * Return: the path, which is / for the root; or the id, if the cgroup is gone or this user may not
 * look it up.
 */
struct cgroup cgroup_name(uint64_t id)
{
	union {
		struct file_handle	handle;
		char			room[sizeof(struct file_handle) + sizeof(id)];
	} file = { .handle = { .handle_bytes = sizeof(id), .handle_type = KERNFS_HANDLE } };
	struct cgroup cgroup = { { 0 } };
	int root = open(CGROUPS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	char link[64];
	ssize_t length;

	memcpy(file.room + sizeof(struct file_handle), &id, sizeof(id));
	fd = open_by_handle_at(root, &file.handle, O_PATH | O_CLOEXEC);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, cgroup.path, sizeof(cgroup.path) - 1);
	if (length > 0 && !strcmp(cgroup.path, CGROUPS))
		memcpy(cgroup.path, "/", sizeof("/"));
	else if (length > 0 && !strncmp(cgroup.path, CGROUPS "/", strlen(CGROUPS "/")))
		memmove(cgroup.path, cgroup.path + strlen(CGROUPS "/"),
			length + 1 - strlen(CGROUPS "/"));
	else
		snprintf(cgroup.path, sizeof(cgroup.path), "%" PRIu64, id);
	if (fd >= 0)
		close(fd);
	if (root >= 0)
		close(root);
	return cgroup;
}

/**
 * cgroup_exists - does a cgroup exist, and can it be found by its path?
 * @id:		its id
 */
bool cgroup_exists(uint64_t id)
{
	const struct cgroup cgroup = whole_path(cgroup_name(id).path);
	struct stat st;

	return !stat(cgroup.path, &st) && st.st_ino == id;
}
