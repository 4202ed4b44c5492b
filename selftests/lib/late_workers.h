/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delays the kernel's workers: each CPU is kept busy by a process with real-time priority, and the
 * test has a higher one. Ordinary tasks get only what the scheduler reserves for them, some
 * hundredths of each second.
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

static inline pid_t keep_cpu(int cpu)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* If the test dies, so does this process. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* On PREEMPT_RT, the threads that expire timers have the same priority. */
	if (!pin(cpu) && set_real_time(1))
		for (;;)
			sched_yield();
	_exit(1);
}

/* Starts to delay the workers. Returns whether that worked. */
static inline bool hold_workers(struct late_workers *late)
{
	int cpu[ARRAY_SIZE(late->pid)], i;
	bool all = set_real_time(2);

	late->n = cpus(cpu, ARRAY_SIZE(cpu));
	for (i = 0; i < late->n; i++) {
		late->pid[i] = keep_cpu(cpu[i]);
		all &= late->pid[i] > 0;
	}
	/* Until they have started. */
	sleep_ns(20 * MSEC);
	return all;
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

#endif /* _TWHEEL_LATE_WORKERS_H */
