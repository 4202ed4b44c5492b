/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delays the kernel's workers: each CPU is kept busy by a process with real-time priority, and the
 * test has a higher one. Ordinary tasks get no time; before 6.12, what the scheduler reserves for
 * them, some hundredths of each second.
 */
#ifndef _TWHEEL_LATE_WORKERS_H
#define _TWHEEL_LATE_WORKERS_H

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "twheel_test.h"

struct late_workers {
	pid_t pid[64];
	int n;
};

static inline bool set_real_time(int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return !sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param);
}

/* Has the CPU a fair server? From 6.12 on; the guest's init disables it, where the kernel can. */
static inline bool lends_time(int cpu)
{
	char path[64];

	snprintf(path, sizeof(path), DEBUGFS "/sched/fair_server/cpu%d/runtime", cpu);
	return kernel_is_at_least(6, 12) && file_number(path);
}

/* Starts to keep a CPU busy, and counts it. */
static inline pid_t keep_cpu(int cpu, int *busy)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* If the test dies, so does this process. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pin(cpu) || !set_real_time(1))
		_exit(1);
	__atomic_fetch_add(busy, 1, __ATOMIC_RELAXED);
	/* On PREEMPT_RT, the threads that expire timers have the same priority. */
	for (;;)
		sched_yield();
}

/* Starts to keep these CPUs busy. The caller has a higher priority. Returns whether that worked. */
static inline bool keep_cpus(struct late_workers *late, const int *cpu, int n)
{
	int *busy = number_shared();
	pid_t pid;

	for (late->n = 0; late->n < n; late->n++) {
		pid = busy && !lends_time(cpu[late->n]) ? keep_cpu(cpu[late->n], busy) : -1;
		if (pid < 0)
			return false;
		late->pid[late->n] = pid;
	}
	while (__atomic_load_n(busy, __ATOMIC_RELAXED) < n)
		sleep_ns(MSEC);
	return true;
}

/* Starts to delay the workers. Returns whether that worked. */
static inline bool hold_workers(struct late_workers *late)
{
	int cpu[ARRAY_SIZE(late->pid)];

	return set_real_time(2) && keep_cpus(late, cpu, cpus(cpu, ARRAY_SIZE(cpu)));
}

/* Stops delaying the workers. Returns whether that worked. */
static inline bool let_workers_be(struct late_workers *late)
{
	bool all = true;
	int i;

	for (i = 0; i < late->n; i++)
		all &= !kill(late->pid[i], SIGKILL) &&
		       waitpid(late->pid[i], NULL, 0) == late->pid[i];
	return set_real_time(0) && all;
}

#define WORKERS_CPUS	"/sys/devices/virtual/workqueue/cpumask"

/* Makes the unbound workers run on one CPU. Stores where they ran before, to be written there. */
static inline bool keep_workers_on(int cpu, char *before, int size)
{
	FILE *file = fopen(WORKERS_CPUS, "r");
	char mask[32];
	bool is_read;

	if (!file)
		return false;
	is_read = fgets(before, size, file);
	fclose(file);
	snprintf(mask, sizeof(mask), "%x", 1U << cpu);
	return is_read && text_write(WORKERS_CPUS, mask);
}

#endif /* _TWHEEL_LATE_WORKERS_H */
