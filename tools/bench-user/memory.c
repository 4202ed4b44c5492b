// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: memory in large pages, like the kernel's own
 */
#include <err.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#define LARGE_PAGE	(2UL << 20)

static size_t round_up(size_t bytes)
{
	return (bytes + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
}

/**
 * large_alloc - allocate zeroed memory, aligned to large pages, and in large pages if possible
 * @bytes:	size
 *
 * All of it is populated when this returns. Exits if out of memory.
 */
void *large_alloc(size_t bytes)
{
	size_t size = round_up(bytes), before;
	char *memory;

	memory = mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(EXIT_FAILED, "%zu bytes", size);
	before = round_up((size_t)memory) - (size_t)memory;
	if (before)
		munmap(memory, before);
	munmap(memory + before + size, LARGE_PAGE - before);
	memory += before;
	/* Ignore errors: large_bytes() shows whether there are large pages. */
	(void)madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 0, size);
	return memory;
}

/**
 * large_free - free memory
 * @memory:	from large_alloc()
 * @bytes:	the size passed to it
 */
void large_free(void *memory, size_t bytes)
{
	munmap(memory, round_up(bytes));
}

/**
 * large_bytes - get how much of the memory is in large pages
 * @memory:	from large_alloc()
 */
size_t large_bytes(const void *memory)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long start, end, kib, bytes = 0;
	bool inside = false;
	char line[256];

	if (!smaps)
		return 0;
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (unsigned long)memory >= start && (unsigned long)memory < end;
		else if (inside && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
			bytes = kib << 10;
	}
	fclose(smaps);
	return bytes;
}
