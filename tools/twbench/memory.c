// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: how much memory pending timers take
 *
 * That is what the page allocator has lost, by its own account. It does not include the chunks that
 * the wheels already had; debugfs shows these, and they count in full.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/time.h>
#include <linux/twheel.h>

#include "twbench.h"

#define DEVICE		"/dev/twheel"
#define TOTALS		"/sys/kernel/debug/twheel/totals"

/* See Documentation/internals.rst. */
#define CHUNK_BYTES	64

/* Timeouts of timers with a handle, the same as those of embedded ones. */
#define TIMEOUT_MIN	60000000000ULL
#define TIMEOUT_SPREAD	60000000000ULL

/**
 * chunk_bytes - get the size of all chunks in the wheels from debugfs, in bytes
 */
uint64_t chunk_bytes(void)
{
	FILE *file = fopen(TOTALS, "r");
	unsigned long long chunks;
	char line[128];

	if (!file)
		errx(EXIT_FAILED, "%s: %s (is debugfs mounted?)", TOTALS, strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "chunks: %llu", &chunks) != 1)
			continue;
		fclose(file);
		return chunks * CHUNK_BYTES;
	}
	errx(EXIT_FAILED, "%s: no line 'chunks'", TOTALS);
}

static void measure_embedded(const struct setup *setup, uint32_t scheme, struct memory *memory)
{
	struct twheel_bench_memory request = {
		.seed		= setup->common.seed,
		.scheme		= scheme,
		.nr_timers	= setup->nr_memory,
	};
	bool wheel = !strcmp(setup->schemes[scheme].name, "wheel");
	uint64_t before = wheel ? chunk_bytes() : 0;

	device_memory(setup, &request);
	*memory = (struct memory) {
		.scheme		= setup->schemes[scheme].name,
		.in_object	= setup->schemes[scheme].object_size,
		.elsewhere	= (double)(request.added + before) / setup->nr_memory,
		.max		= (double)(request.most + before) / setup->nr_memory,
		.chunks		= wheel ? (double)chunk_bytes() / setup->nr_memory : -1,
	};
}

static void add_timer(int fd, uint64_t timeout)
{
	struct twheel_timer_add add = { .time = timeout, .clock = CLOCK_MONOTONIC };

	if (ioctl(fd, TWHEEL_IOC_TIMER_ADD, &add) >= 0)
		return;
	errx(EXIT_FAILED, "%s: cannot add a timer: %s%s", DEVICE, strerror(errno),
	     errno == ENOSPC ? " (raise max_timers of twheel.ko)" : "");
}

static void measure_handles(const struct setup *setup, struct memory *memory)
{
	uint64_t before = device_free_bytes(setup) + chunk_bytes(), after;
	uint64_t random = setup->common.seed;
	uint32_t i;
	int fd;

	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(EXIT_FAILED, "%s", DEVICE);
	for (i = 0; i < setup->nr_memory; i++) {
		/* Knuth's MMIX generator; its low bits are not random enough. */
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		add_timer(fd, TIMEOUT_MIN + (random >> 16) % TIMEOUT_SPREAD);
	}
	after = device_free_bytes(setup);
	*memory = (struct memory) {
		.scheme		= "wheel",
		.handle		= true,
		.elsewhere	= ((double)before - after) / setup->nr_memory,
		.max		= -1,
		.chunks		= (double)chunk_bytes() / setup->nr_memory,
	};
	close(fd);
}

/**
 * memory_measure - measure the memory of the timers of each chosen scheme
 * @setup:	what was chosen; if @nr_memory is 0, nothing is measured
 * @results:	the results are added to these
 */
void memory_measure(const struct setup *setup, struct results *results)
{
	uint32_t i;

	if (!setup->nr_memory)
		return;
	results->memory = allocate(setup->info.nr_schemes + 1, sizeof(*results->memory));
	for (i = 0; i < setup->info.nr_schemes; i++) {
		if (setup->max_timers[i] < setup->nr_memory || !setup->schemes[i].checked)
			continue;
		/* This first: re-arming may leave more chunks in the wheel than adding takes. */
		if (!strcmp(setup->schemes[i].name, "wheel"))
			measure_handles(setup, &results->memory[results->nr_memory++]);
		measure_embedded(setup, i, &results->memory[results->nr_memory++]);
	}
}

/* Prints @value, or "-" if @there is negative. */
static void print_if_any(FILE *out, double value, double there)
{
	if (there >= 0)
		fprintf(out, " %10.1f", value);
	else
		fprintf(out, " %10s", "-");
}

/**
 * memory_print - print a table
 * @out:	the stream to write to
 * @setup:	what was compared
 * @results:	the results; without any, nothing is printed
 */
void memory_print(FILE *out, const struct setup *setup, const struct results *results)
{
	const struct memory *memory;

	if (!results->nr_memory)
		return;
	fprintf(out, "\nmemory, n = %u pending, bytes per timer\n", setup->nr_memory);
	fprintf(out, "%-12s %-10s %10s %10s %10s %10s %10s\n", "scheme", "timer", "in object",
		"elsewhere", "sum", "re-armed", "in chunks");
	for (memory = results->memory; memory < results->memory + results->nr_memory; memory++) {
		fprintf(out, "%-12s %-10s %10.1f %10.1f %10.1f", memory->scheme,
			memory->handle ? "handle" : "embedded", memory->in_object,
			memory->elsewhere, memory->in_object + memory->elsewhere);
		print_if_any(out, memory->in_object + memory->max, memory->max);
		print_if_any(out, memory->chunks, memory->chunks);
		fputc('\n', out);
	}
	fflush(out);
}
