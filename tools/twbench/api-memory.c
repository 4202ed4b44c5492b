// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench api: how much memory pending timers take
 *
 * The kernel accounts for it in two ways. A child in a memory cgroup of its own adds timers: the
 * cgroup shows the kernel memory that was charged, and the page allocator what it has lost, charged
 * or not. Chunks that the wheels already had count in full.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api.h"

#define CGROUPS		"/sys/fs/cgroup"
#define CGROUP		CGROUPS "/twbench"

/* After this time, memory has been freed even if a grace period or a worker was waited for. */
#define SETTLE_NS	300000000L

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err(EXIT_FAILED, "%s: cannot write '%s'", path, text);
	close(fd);
}

/* The kernel memory charged to the cgroup, in bytes. */
static uint64_t charged_bytes(void)
{
	const char *path = CGROUP "/memory.stat";
	unsigned long long bytes;
	char line[128];
	FILE *file = fopen(path, "r");

	if (!file)
		err(EXIT_FAILED, "%s", path);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "kernel %llu", &bytes) != 1)
			continue;
		fclose(file);
		return bytes;
	}
	errx(EXIT_FAILED, "%s: no line 'kernel'", path);
}

static void wait_settled(void)
{
	const struct timespec ts = { .tv_nsec = SETTLE_NS };

	nanosleep(&ts, NULL);
}

static void add_all(const struct setup *setup, uint32_t nr, const struct api_scheme *scheme)
{
	struct api_timer timer[API_BATCH];
	uint64_t random = setup->common.seed;
	uint32_t i, batch = 0;

	for (i = 0; i < nr; i++) {
		timer[batch].number = i;
		timer[batch].timeout = api_timeout(&random);
		if (++batch < API_BATCH && i + 1 < nr)
			continue;
		scheme->add(timer, batch);
		batch = 0;
	}
}

/* Called by the child, which is in the cgroup. */
static void measure_in_cgroup(const struct setup *setup, uint32_t nr,
			      const struct api_scheme *scheme, struct api_memory *memory)
{
	uint64_t charged, pages;

	/* The memory in which the program itself keeps its timers must not be counted. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		err(EXIT_FAILED, "mlockall");
	scheme->begin(nr);
	wait_settled();
	charged = charged_bytes();
	pages = device_free_bytes(setup) + (scheme->wheel ? chunk_bytes() : 0);
	add_all(setup, nr, scheme);
	wait_settled();
	memory->charged = ((double)charged_bytes() - charged) / nr;
	memory->pages = ((double)pages - device_free_bytes(setup)) / nr;
}

/**
 * api_memory_measure - measure the memory of a scheme's pending timers
 * @setup:	the device
 * @nr:		number of timers
 * @result:	@scheme is set; @memory is filled in
 */
void api_memory_measure(const struct setup *setup, uint32_t nr, struct api_result *result)
{
	int pipes[2], status;
	pid_t child;

	write_file(CGROUPS "/cgroup.subtree_control", "+memory");
	if (mkdir(CGROUP, 0755) && errno != EEXIST)
		err(EXIT_FAILED, "%s", CGROUP);
	if (pipe(pipes))
		err(EXIT_FAILED, "pipe");
	child = fork();
	if (child < 0)
		err(EXIT_FAILED, "fork");
	if (!child) {
		write_file(CGROUP "/cgroup.procs", "0");
		measure_in_cgroup(setup, nr, result->scheme, &result->memory);
		_exit(write(pipes[1], &result->memory, sizeof(result->memory)) !=
		      sizeof(result->memory));
	}
	close(pipes[1]);
	if (read(pipes[0], &result->memory, sizeof(result->memory)) != sizeof(result->memory) ||
	    waitpid(child, &status, 0) != child || status)
		errx(EXIT_FAILED, "%s: its memory could not be measured", result->scheme->name);
	close(pipes[0]);
	wait_settled();
	if (rmdir(CGROUP))
		err(EXIT_FAILED, "%s", CGROUP);
}
