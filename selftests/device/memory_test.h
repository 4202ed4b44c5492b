/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for the selftests of memory: a cgroup, and what the kernel charges to it.
 */
#ifndef _TWHEEL_MEMORY_TEST_H
#define _TWHEEL_MEMORY_TEST_H

#include "twheel_test.h"

#include <sys/wait.h>

#define GROUPS	"/sys/fs/cgroup/"
#define GROUP	GROUPS "twheel-test"
/* What unrelated charges may amount to. */
#define FEW	(16ULL << 10)

static inline int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static inline bool have_groups(void)
{
	return !access(GROUPS "cgroup.controllers", R_OK) &&
	       !write_text(GROUPS "cgroup.subtree_control", "+memory");
}

static inline int make_group(void)
{
	/* One is left if a test was aborted. */
	rmdir(GROUP);
	return mkdir(GROUP, 0755) ? -errno : 0;
}

/* A value from one of the group's files, or POISON. */
static inline __u64 group_number(const char *file_name, const char *key)
{
	__u64 number, found = POISON;
	char path[64], name[32];
	FILE *file;

	snprintf(path, sizeof(path), GROUP "/%s", file_name);
	file = fopen(path, "r");
	if (!file)
		return POISON;
	while (fscanf(file, "%31s %llu", name, &number) == 2)
		if (!strcmp(name, key))
			found = number;
	fclose(file);
	return found;
}

/* Bytes of kernel memory that are charged to the group. */
static inline __u64 kernel_bytes(void)
{
	return group_number("memory.stat", "kernel");
}

/*
 * Makes the kernel sum up the group's per-CPU counters: it does so when they have changed by 64
 * pages for each CPU, or when it is awake anyway. A child gets and returns pages, a few at a time,
 * as the group may be short of memory.
 */
static inline void flush_group_stats(int group)
{
	const long page = sysconf(_SC_PAGESIZE), few = 8 * page;
	long pages = 200 * sysconf(_SC_NPROCESSORS_ONLN), at;
	pid_t child = fork();
	char *memory;

	if (child) {
		waitpid(child, NULL, 0);
		return;
	}
	if (write(group, "0", 1) != 1)
		_exit(1);
	memory = mmap(NULL, few, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		_exit(1);
	for (; pages > 0; pages -= few / page) {
		for (at = 0; at < few; at += page)
			*(volatile char *)(memory + at) = 1;
		if (madvise(memory, few, MADV_DONTNEED))
			_exit(1);
	}
	_exit(0);
}

/* Waits until the group is charged for @min to @max bytes. Returns false if it times out. */
static inline bool wait_charged(int group, __u64 min, __u64 max)
{
	__u64 end = now_ns() + GUARD_MS * MSEC, bytes;

	while ((bytes = kernel_bytes()) < min || bytes > max) {
		if (now_ns() > end)
			return false;
		flush_group_stats(group);
		sleep_ns(100 * MSEC);
	}
	return true;
}

/* Waits until freed memory has been uncharged. Returns how many bytes are charged. */
static inline __u64 wait_uncharged(int group)
{
	__u64 end = now_ns() + GUARD_MS * MSEC, bytes = POISON, last;
	int same = 0;

	do {
		last = bytes;
		flush_group_stats(group);
		sleep_ns(SEC);
		bytes = kernel_bytes();
		same = bytes < last + FEW && last < bytes + FEW ? same + 1 : 0;
	} while (same < 3 && now_ns() < end);
	return bytes;
}

#endif /* _TWHEEL_MEMORY_TEST_H */
