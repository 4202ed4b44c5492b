// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench connections: CPU time of everything, and of the kernel's timers
 */
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "connections.h"

/* The idle time of all CPUs; its resolution is 10 ms. */
static double idle_ns(void)
{
	unsigned long long idle, wait;
	FILE *file = fopen("/proc/stat", "r");

	if (!file || fscanf(file, "cpu %*u %*u %*u %llu %llu", &idle, &wait) != 2)
		err(EXIT_FAILED, "/proc/stat");
	fclose(file);
	return (idle + wait) * 1e9 / sysconf(_SC_CLK_TCK);
}

/**
 * cpu_use_now - get the CPU time used so far
 * @setup:	the device
 */
struct cpu_use cpu_use_now(const struct setup *setup)
{
	struct twheel_bench_cpu cpu;
	struct timespec ts;

	if (ioctl(setup->fd, TWHEEL_BENCH_IOC_CPU, &cpu))
		errx(EXIT_FAILED, "cannot ask for CPU time: %s", strerror(errno));
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct cpu_use) {
		.time	= ts.tv_sec * 1e9 + ts.tv_nsec,
		.busy	= (ts.tv_sec * 1e9 + ts.tv_nsec) * sysconf(_SC_NPROCESSORS_ONLN) -
			  idle_ns(),
		.part	= {
			[CPU_INTERRUPT]	= cpu.interrupt_ns,
			[CPU_SOFTIRQ]	= cpu.softirq_ns,
			[CPU_WORKER]	= cpu.worker_ns,
		},
	};
}

/**
 * cpu_use_since - get the CPU time used since an earlier point
 * @setup:	the device
 * @then:	what cpu_use_now() returned then
 */
struct cpu_use cpu_use_since(const struct setup *setup, const struct cpu_use *then)
{
	struct cpu_use use = cpu_use_now(setup);
	int part;

	use.time -= then->time;
	use.busy -= then->busy;
	for (part = 0; part < CPU_NR_PARTS; part++)
		use.part[part] -= then->part[part];
	return use;
}
