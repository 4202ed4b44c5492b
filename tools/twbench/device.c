// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: the calls of /dev/twheel_bench
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include "twbench.h"

#define DEVICE		"/dev/twheel_bench"

/* Number of timers in a self check. */
#define CHECK_TIMERS	4096

/* Of all timers of a self check, at least one is no later than this. */
#define LEAST_LATE_NS	5000000

/**
 * device_open - open the device and query its schemes
 * @setup:	@fd, @info and @schemes are filled in, and @max_timers is allocated
 */
void device_open(struct setup *setup)
{
	uint32_t i;

	setup->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (setup->fd < 0)
		errx(EXIT_FAILED, "%s: %s%s", DEVICE, strerror(errno),
		     errno == ENOENT ? " (is twheel_bench.ko loaded?)" : "");
	if (ioctl(setup->fd, TWHEEL_BENCH_IOC_INFO, &setup->info))
		err(EXIT_FAILED, "%s: cannot ask what it has", DEVICE);
	setup->schemes = allocate(setup->info.nr_schemes, sizeof(*setup->schemes));
	setup->max_timers = allocate(setup->info.nr_schemes, sizeof(*setup->max_timers));
	for (i = 0; i < setup->info.nr_schemes; i++) {
		setup->schemes[i].index = i;
		if (ioctl(setup->fd, TWHEEL_BENCH_IOC_SCHEME, &setup->schemes[i]))
			err(EXIT_FAILED, "%s: cannot ask for scheme %u", DEVICE, i);
	}
}

/**
 * device_error - explain why a run has failed
 * @error:	the errno of its ioctl
 */
const char *device_error(int error)
{
	if (error == EBUSY)
		return "another run is going on";
	if (error == ENOMEM)
		return "not enough memory for so many timers";
	if (error == ETIME)
		return "this machine is too slow for so many timers";
	return strerror(error);
}

/* Checks one scheme. What it did is returned in @check. */
static void check_scheme(const struct setup *setup, uint32_t scheme,
			 struct twheel_bench_check *check)
{
	const char *name = setup->schemes[scheme].name;

	*check = (struct twheel_bench_check) {
		.seed		= setup->common.seed,
		.scheme		= scheme,
		.nr_timers	= CHECK_TIMERS,
	};
	if (ioctl(setup->fd, TWHEEL_BENCH_IOC_CHECK, check))
		errx(EXIT_FAILED, "self check of %s: %s", name, device_error(errno));
	if (check->early || check->stray || check->missing || check->left ||
	    check->wrong || check->late || check->fired != check->expected ||
	    check->least_late_ns > LEAST_LATE_NS)
		errx(EXIT_FAILED,
		     "self check of %s failed (seed %llu): %llu of %llu expiries, %llu early, %llu late, all by %llu us at least, %llu of timers not armed, %llu missing; %llu timers left, %llu wrong answers",
		     name, check->seed, check->fired, check->expected, check->early, check->late,
		     check->least_late_ns / 1000, check->stray, check->missing, check->left,
		     check->wrong);
}

/**
 * device_check - run the same work with all chosen schemes, and compare; exit if they differ
 * @setup:	what was chosen
 * @out:	the stream to write the outcome to
 */
void device_check(const struct setup *setup, FILE *out)
{
	struct twheel_bench_check first = { 0 }, check;
	unsigned int nr = 0;
	uint32_t i;

	for (i = 0; i < setup->info.nr_schemes; i++) {
		if (!setup->max_timers[i] || !setup->schemes[i].checked)
			continue;
		check_scheme(setup, i, &check);
		if (!nr++)
			first = check;
		if (check.ops != first.ops || check.fired != first.fired ||
		    check.checksum != first.checksum)
			errx(EXIT_FAILED,
			     "self check (seed %llu): %s and %s did not do the same: %llu and %llu operations, %llu and %llu expiries, checksums %016llx and %016llx",
			     check.seed, setup->schemes[first.scheme].name,
			     setup->schemes[i].name, first.ops, check.ops, first.fired,
			     check.fired, first.checksum, check.checksum);
	}
	if (nr)
		fprintf(out,
			"self check: %llu operations, %llu expiries, none early, checksum %016llx: the same in %u scheme%s\n",
			first.ops, first.fired, first.checksum, nr, nr == 1 ? "" : "s");
}

static const char *fault_name(uint32_t fault)
{
	switch (fault) {
	case TWHEEL_BENCH_WRONG_VERDICT:
		return "timers found armed";
	case TWHEEL_BENCH_WRONG_PENDING:
		return "timers pending afterwards";
	case TWHEEL_BENCH_WRONG_FIRED:
		return "callbacks";
	case TWHEEL_BENCH_FIRED_EARLY:
		return "nanosecond of the first callback";
	}
	return "unknown fault";
}

/* Reports what is wrong with a run, and exits. */
static void exit_with_fault(const struct twheel_bench_run *run, const char *scheme)
{
	const char *workload = "?";

	if (run->fault_workload < TWHEEL_BENCH_NR_WORKLOADS)
		workload = workload_names[run->fault_workload];
	if (run->fault == TWHEEL_BENCH_TOO_SLOW)
		errx(EXIT_FAILED,
		     "%s, n = %u, %s: too many timers for this machine: it took %.3f s, but the first came due after %.3f s",
		     scheme, run->nr_timers, workload, run->fault_found / 1e9,
		     run->fault_expected / 1e9);
	errx(EXIT_FAILED, "%s, n = %u, seed %llu, %s: %s: %llu instead of %llu", scheme,
	     run->nr_timers, run->seed, workload, fault_name(run->fault), run->fault_found,
	     run->fault_expected);
}

/**
 * device_run - measure a scheme once
 * @setup:	the device
 * @run:	the request, and the result
 */
void device_run(const struct setup *setup, struct twheel_bench_run *run)
{
	const char *name = setup->schemes[run->scheme].name;

	if (ioctl(setup->fd, TWHEEL_BENCH_IOC_RUN, run))
		errx(EXIT_FAILED, "%s, n = %u: %s", name, run->nr_timers, device_error(errno));
	if (run->fault != TWHEEL_BENCH_OK)
		exit_with_fault(run, name);
	if (run->cpu != (uint32_t)setup->common.cpu)
		errx(EXIT_FAILED, "%s ran on CPU %u instead of %d", name, run->cpu,
		     setup->common.cpu);
}

/**
 * device_lateness - measure how late a scheme's timers are
 * @setup:	the device
 * @lateness:	the request, and the result
 */
void device_lateness(const struct setup *setup, struct twheel_bench_lateness *lateness)
{
	const char *name = setup->schemes[lateness->scheme].name;

	if (ioctl(setup->fd, TWHEEL_BENCH_IOC_LATENESS, lateness))
		errx(EXIT_FAILED, "lateness of %s: %s", name, device_error(errno));
	if (lateness->early || lateness->fired != lateness->nr_timers)
		errx(EXIT_FAILED,
		     "lateness of %s (seed %llu): %llu of %u timers expired, %llu of them early",
		     name, lateness->seed, lateness->fired, lateness->nr_timers,
		     lateness->early);
}

/**
 * device_memory - measure how much memory a scheme takes
 * @setup:	the device
 * @memory:	the request, and the result
 */
void device_memory(const struct setup *setup, struct twheel_bench_memory *memory)
{
	if (ioctl(setup->fd, TWHEEL_BENCH_IOC_MEMORY, memory))
		errx(EXIT_FAILED, "memory of %s, n = %u: %s",
		     setup->schemes[memory->scheme].name, memory->nr_timers, device_error(errno));
}

/**
 * device_free_bytes - get how much memory the page allocator has left
 * @setup:	the device
 */
uint64_t device_free_bytes(const struct setup *setup)
{
	struct twheel_bench_info info;

	if (ioctl(setup->fd, TWHEEL_BENCH_IOC_INFO, &info))
		err(EXIT_FAILED, "cannot ask how much memory is free");
	return info.free_bytes;
}
