// SPDX-License-Identifier: GPL-2.0-only
/*
 * The processor on which to measure
 */
#define _GNU_SOURCE
#include <err.h>
#include <sched.h>

#include "bench-common.h"

/**
 * bind_cpu - bind this program to a CPU, or exit
 * @setup:	@cpu is the CPU, or negative for the last one allowed, which is then filled in
 */
void bind_cpu(struct common_setup *setup)
{
	cpu_set_t set;
	int cpu;

	if (setup->cpu < 0) {
		if (sched_getaffinity(0, sizeof(set), &set))
			err(EXIT_FAILED, "sched_getaffinity");
		for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &set))
				setup->cpu = cpu;
	}
	CPU_ZERO(&set);
	CPU_SET(setup->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(EXIT_FAILED, "cannot run on CPU %d", setup->cpu);
}

/**
 * describe_cpu - get the model of the processor
 * @setup:	@cpu_model is filled in
 */
void describe_cpu(struct common_setup *setup)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(setup->cpu_model, sizeof(setup->cpu_model), "unknown");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "model name : %127[^\n]", setup->cpu_model) == 1)
			break;
	fclose(file);
}
