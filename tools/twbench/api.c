// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench api: the cost of timers to a program, through the interfaces that Linux has
 *
 * For each scheme, all timers are added; then, in rounds, some of them are re-armed, cancelled and
 * added again, in random order, while all others are pending. Finally some expire.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api.h"

#define NSEC_PER_SEC	1000000000ULL

/* Timeouts are between this and twice this. */
#define TIMEOUT		(60 * NSEC_PER_SEC)

/* Timers measured in a round; fewer for schemes that search all timers (@walks). */
#define SAMPLE		(40 * API_BATCH)
#define SAMPLE_WALKS	16

/* The timeout of timers that are to expire, and how long to wait until all have. */
#define DUE		(NSEC_PER_SEC / 2)
#define EXPIRY		(NSEC_PER_SEC + DUE)

const char *const api_operation_names[API_NR_OPERATIONS] = {
	[API_FILL]		= "first_add",
	[API_ADD]		= "add",
	[API_REARM_LATER]	= "rearm_later",
	[API_REARM_EARLIER]	= "rearm_earlier",
	[API_TOUCH]		= "touch",
	[API_CANCEL]		= "cancel",
	[API_EVENT]		= "event",
};

/* In the order of the tables. */
static const struct api_scheme *const schemes[] = {
	&api_submit, &api_keyed, &api_touched, &api_uring_cmd, &api_ioctl,
	&api_timerfd, &api_timerfd_epoll, &api_posix, &api_io_uring,
};

static uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Knuth's MMIX generator; its low bits are not random enough. */
static uint64_t random_below(uint64_t *random, uint64_t n)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*random >> 16) % n;
}

/**
 * api_timeout - draw a timeout in nanoseconds
 * @random:	state of the generator
 */
uint64_t api_timeout(uint64_t *random)
{
	return TIMEOUT + random_below(random, TIMEOUT);
}

static void shuffle(struct api_timer *timer, uint32_t nr, uint64_t *random)
{
	struct api_timer swap;
	uint32_t i, j;

	for (i = nr; i > 1; i--) {
		j = random_below(random, i);
		swap = timer[i - 1];
		timer[i - 1] = timer[j];
		timer[j] = swap;
	}
}

/* Calls @batch for @nr timers. */
static void run_in_batches(void (*batch)(const struct api_timer *timer, uint32_t nr),
			   const struct api_timer *timer, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i += API_BATCH)
		batch(timer + i, nr - i < API_BATCH ? nr - i : API_BATCH);
}

/* Calls @batch for @nr timers, and measures it. */
static void measure_batches(void (*batch)(const struct api_timer *timer, uint32_t nr),
			    const struct api_timer *timer, uint32_t nr, struct samples *samples)
{
	uint64_t begin = clock_now();

	run_in_batches(batch, timer, nr);
	add_sample(samples, (double)(clock_now() - begin) / nr);
}

static void sleep_for(uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC };

	/* Completions of io_uring timeouts interrupt the sleep. */
	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* Lets @nr timers expire, and measures fetching their events. */
static void run_events(const struct api_scheme *scheme, struct api_timer *timer, uint32_t nr,
		       struct samples *samples)
{
	uint32_t i, taken;
	uint64_t begin;

	for (i = 0; i < nr; i++)
		timer[i].timeout = DUE;
	run_in_batches(scheme->cancel, timer, nr);
	run_in_batches(scheme->add, timer, nr);
	sleep_for(EXPIRY);
	begin = clock_now();
	for (i = 0; i < nr; i += taken) {
		taken = scheme->collect(nr - i < API_BATCH ? nr - i : API_BATCH);
		if (!taken)
			errx(EXIT_FAILED, "%s: %u of %u timers have expired", scheme->name, i, nr);
	}
	add_sample(samples, (double)(clock_now() - begin) / nr);
}

static void run_round(const struct api_scheme *scheme, struct api_timer *timer, uint32_t nr,
		      struct samples *time)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		timer[i].timeout += TIMEOUT / 2;
	measure_batches(scheme->rearm, timer, nr, &time[API_REARM_LATER]);
	if (scheme->touch)
		measure_batches(scheme->touch, timer, nr, &time[API_TOUCH]);
	for (i = 0; i < nr; i++)
		timer[i].timeout -= TIMEOUT;
	measure_batches(scheme->rearm, timer, nr, &time[API_REARM_EARLIER]);
	for (i = 0; i < nr; i++)
		timer[i].timeout += TIMEOUT / 2;
	measure_batches(scheme->cancel, timer, nr, &time[API_CANCEL]);
	measure_batches(scheme->add, timer, nr, &time[API_ADD]);
}

static void run_scheme(const struct setup *setup, uint32_t nr, struct api_result *result)
{
	const struct api_scheme *scheme = result->scheme;
	uint32_t sample = scheme->walks ? SAMPLE_WALKS : SAMPLE, i;
	struct api_timer *timer = allocate(nr, sizeof(*timer));
	unsigned int rounds = rounds_of(setup, nr), round;
	uint64_t random = setup->common.seed;

	if (sample > nr)
		sample = nr;
	for (i = 0; i < API_NR_OPERATIONS; i++)
		result->time[i] = new_samples(rounds);
	for (i = 0; i < nr; i++) {
		timer[i].number = i;
		timer[i].timeout = api_timeout(&random);
	}
	scheme->begin(nr);
	measure_batches(scheme->add, timer, nr, &result->time[API_FILL]);
	for (round = 0; round < rounds; round++) {
		shuffle(timer, nr, &random);
		run_round(scheme, timer, sample, result->time);
	}
	if (scheme->collect)
		run_events(scheme, timer, sample, &result->time[API_EVENT]);
	scheme->end();
	free(timer);
	for (i = 0; i < API_NR_OPERATIONS; i++)
		summarise(&result->time[i]);
}

/**
 * api_measure - measure all schemes
 * @setup:	what was chosen
 * @nr:		number of timers
 * @results:	filled in
 */
void api_measure(const struct setup *setup, uint32_t nr, struct api_results *results)
{
	struct api_result *result = allocate(ARRAY_SIZE(schemes), sizeof(*result));
	size_t i;

	*results = (struct api_results) {
		.nr_timers	= nr,
		.result		= result,
		.nr		= ARRAY_SIZE(schemes),
	};
	for (i = 0; i < ARRAY_SIZE(schemes); i++) {
		result[i].scheme = schemes[i];
		api_memory_measure(setup, nr, &result[i]);
		run_scheme(setup, nr, &result[i]);
		if (schemes[i] != &api_timerfd)
			continue;
		results->settime = result[i].time[API_REARM_LATER].median;
		results->timerfd = result[i].memory.pages;
	}
}

static void print_operation(FILE *out, const struct api_results *results, int operation)
{
	const struct api_result *result;
	const struct samples *time;

	for (result = results->result; result < results->result + results->nr; result++) {
		time = &result->time[operation];
		if (time->nr)
			fprintf(out, "%-14s %-16s %10.1f %10.1f %10.1f %17.3f\n",
				api_operation_names[operation], result->scheme->name, time->median,
				time->min, time->max, time->median / results->settime);
	}
}

/**
 * api_print - print the tables
 * @out:	the stream to write to
 * @setup:	what was chosen
 * @results:	the results
 */
void api_print(FILE *out, const struct setup *setup, const struct api_results *results)
{
	const struct api_result *result;
	int operation;

	fprintf(out, "\nn = %u pending, %u per call, random order, %s per timer\n",
		results->nr_timers, API_BATCH, unit_name(setup));
	fprintf(out, "%-14s %-16s %10s %10s %10s %17s\n", "operation", "scheme", "median", "min",
		"max", "x timerfd_settime");
	for (operation = 0; operation < API_NR_OPERATIONS; operation++) {
		if (operation)
			fputc('\n', out);
		print_operation(out, results, operation);
	}
	fprintf(out, "\nmemory, n = %u pending, bytes per timer\n", results->nr_timers);
	fprintf(out, "%-16s %10s %10s %10s\n", "scheme", "charged", "pages", "x timerfd");
	for (result = results->result; result < results->result + results->nr; result++)
		fprintf(out, "%-16s %10.1f %10.1f %10.3f\n", result->scheme->name,
			result->memory.charged, result->memory.pages,
			result->memory.pages / results->timerfd);
	fflush(out);
}
