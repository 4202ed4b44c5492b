/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that is missing until a test provides it: until then, a task that accesses it in the
 * kernel sleeps in the page fault.
 */
#ifndef _TWHEEL_LATE_MEMORY_H
#define _TWHEEL_LATE_MEMORY_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Maps memory that is missing until let_memory_be(). Returns the userfaultfd, or -1. */
static inline int late_memory(char **memory, size_t size)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (uffd < 0)
		return -1;
	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)*memory;
	range.range.len = size;
	if (*memory == MAP_FAILED || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &range)) {
		close(uffd);
		return -1;
	}
	return uffd;
}

/* Waits until a task sleeps in a fault on the memory. Returns whether one does. */
static inline bool memory_wanted(int uffd)
{
	struct uffd_msg message;

	return read(uffd, &message, sizeof(message)) == sizeof(message);
}

/* Provides the memory, filled with zeros. Returns whether that worked. */
static inline bool let_memory_be(int uffd, char *memory, size_t size)
{
	struct uffdio_zeropage zero = { .range = { .start = (uintptr_t)memory, .len = size } };

	return !ioctl(uffd, UFFDIO_ZEROPAGE, &zero);
}

/* Makes the memory inaccessible: tasks that wait for it get EFAULT. Returns whether that worked. */
static inline bool let_memory_go(int uffd, char *memory, size_t size)
{
	struct uffdio_range range = { .start = (uintptr_t)memory, .len = size };

	return !mprotect(memory, size, PROT_NONE) && !ioctl(uffd, UFFDIO_WAKE, &range);
}

/**
 * struct sender - a thread that owns a socket until memory is provided
 * @sock:	the socket
 * @memory:	the memory that it sends a byte of
 * @sent:	the return value of send()
 */
struct sender {
	int sock;
	char *memory;
	ssize_t sent;
};

static inline void *send_late(void *arg)
{
	struct sender *sender = arg;

	sender->sent = send(sender->sock, sender->memory, 1, MSG_NOSIGNAL);
	return NULL;
}

#endif /* _TWHEEL_LATE_MEMORY_H */
