// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: the work that is given to the schemes
 */
#include <time.h>

#include "bench.h"

#define TIMEOUT_MIN	TIME_OF_MS(60000)
#define TIMEOUT_SPREAD	TIME_OF_MS(60000)
#define LATER		TIME_OF_MS(30000)

/* Returns a random number below @limit, by splitmix64. */
static uint32_t random_below(struct work *work, uint32_t limit)
{
	uint64_t x = work->random += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (x >> 32) * limit >> 32;
}

/**
 * shuffle - put the numbers of the objects in another random order
 * @work:	the work
 */
void shuffle(struct work *work)
{
	uint32_t *order = work->order, other, object;
	size_t i;

	for (i = work->size - 1; i; i--) {
		other = random_below(work, i + 1);
		object = order[i];
		order[i] = order[other];
		order[other] = object;
	}
}

static uint32_t new_time(struct work *work, enum workload workload, uint32_t last)
{
	switch (workload) {
	case REARM_LATER:
		return last + LATER;
	case REARM_EARLIER:
		return last / 2;
	case CANCEL:
		return last;
	default:
		return TIMEOUT_MIN + random_below(work, TIMEOUT_SPREAD);
	}
}

/**
 * make_steps - make the steps of a workload
 * @work:	the work, whose steps are replaced
 * @workload:	the workload
 *
 * Return: the last time in them.
 */
uint32_t make_steps(struct work *work, enum workload workload)
{
	uint32_t object, last = 0;
	size_t i;

	shuffle(work);
	for (i = 0; i < work->size; i++) {
		object = work->sequential || workload == ADD_SEQUENTIAL ? i : work->order[i];
		work->time[object] = new_time(work, workload, work->time[object]);
		work->steps[i] = (struct step) { object, work->time[object] };
		if (last < work->time[object])
			last = work->time[object];
	}
	return last;
}

/**
 * clock_ns - read the clock of the CPU time that this thread has used
 *
 * Other programs use the machine, too.
 *
 * Return: ns.
 */
double clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}
