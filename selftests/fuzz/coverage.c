// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: what a sequence of calls has reached
 *
 * Two kinds of things count: places in the module as reported by KCOV, if the kernel and the
 * module are built with it; and answers, each a combination of an operation, the state in which
 * the model saw its timer, and the result. The latter exist on every kernel.
 */
#include "fuzz.h"

#include <linux/kcov.h>

#define PLACES		(1U << 18)
#define WORDS		(1U << 16)

static __u8 *seen;
static unsigned long *places;
static unsigned int fresh;

/* Counts what was not seen before. */
static void count_new(__u64 what)
{
	__u32 i = mix_seed(what, 1) % PLACES;

	if (seen[i / 8] & 1 << i % 8)
		return;
	seen[i / 8] |= 1 << i % 8;
	fresh++;
	add_count(&fuzz->covered, 1);
}

static unsigned long *map_places(void)
{
	int fd = open(DEBUGFS "/kcov", O_RDWR | O_CLOEXEC);
	unsigned long *map;

	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, WORDS)) {
		say_once("not here: KCOV");
		return NULL;
	}
	map = mmap(NULL, WORDS * sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC)) {
		say_once("not here: KCOV, errno %d", errno);
		return NULL;
	}
	return map;
}

/* Starts recording this thread's calls. */
void coverage_open(void)
{
	seen = calloc(1, PLACES / 8);
	if (!seen)
		fuzz_fail("no memory for the coverage");
	places = map_places();
}

/* A program begins. */
void coverage_begin(void)
{
	fresh = 0;
	if (places)
		__atomic_store_n(&places[0], 0, __ATOMIC_RELAXED);
}

/* A step of it is done: the list of places only has room for a limited number of calls. */
void coverage_step(void)
{
	unsigned long n = places ? __atomic_load_n(&places[0], __ATOMIC_RELAXED) : 0, i;

	for (i = 1; i <= n; i++)
		count_new(places[i]);
	if (places)
		__atomic_store_n(&places[0], 0, __ATOMIC_RELAXED);
}

/* The model has seen an answer: @result, of operation @what, for a timer in @state. */
void coverage_answer(__u32 what, __u32 state, long result)
{
	if (seen)
		count_new((__u64)what << 40 | (__u64)state << 16 | (result & 0xffff));
}

/* Returns how much of what was reached since coverage_begin() was new. */
unsigned int coverage_end(void)
{
	coverage_step();
	return fresh;
}
