/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * More state changes of sockets than the kernel records, while its workers get no CPU.
 */
#ifndef _TWHEEL_FLOOD_H
#define _TWHEEL_FLOOD_H

#include "rules_test.h"

static inline int set_fifo_priority(int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param) ? -errno : 0;
}

/* Argument of keep_cpu_busy(): the CPU to keep busy, and how many are busy so far. */
struct busy_cpu {
	int cpu;
	int *ready;
};

static inline void keep_cpu_busy(void *arg)
{
	const struct busy_cpu *busy = arg;

	if (pin(busy->cpu) || set_fifo_priority(1))
		_exit(1);
	__atomic_fetch_add(busy->ready, 1, __ATOMIC_RELAXED);
	for (;;)
		continue;
}

/* A number shared with children. Never freed: the test is a process of its own. */
static inline int *shared_number(void)
{
	void *page = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* State changes in one go: more than the kernel records. */
#define FLOOD		2500

/* The scheduler's limit on real-time tasks, which leaves the rest of the time to other tasks. */
#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

/*
 * Causes state changes that the kernel is notified of, with all CPUs too busy for its workers.
 * Finally makes a connection, with @make.
 */
static inline bool flood(const int *list, int nr, bool (*make)(int, struct pair *), int listener,
			 struct pair *pair)
{
	int fd = serve(AF_INET, false, 0), *ready = shared_number(), i;
	pid_t busy[8];
	bool ok;

	for (i = 1; i < nr; i++) {
		struct busy_cpu arg = { .cpu = list[i], .ready = ready };

		busy[i] = spawn(keep_cpu_busy, &arg);
	}
	while (__atomic_load_n(ready, __ATOMIC_RELAXED) < nr - 1)
		sched_yield();
	ok = !set_fifo_priority(2);
	/* Each listen() is a state change. */
	for (i = 0; i < FLOOD && ok; i++)
		ok = !shutdown(fd, SHUT_RDWR) && !listen(fd, 1);
	ok = make(listener, pair) && ok;
	set_fifo_priority(0);
	for (i = 1; i < nr; i++) {
		kill(busy[i], SIGKILL);
		reap(busy[i]);
	}
	close(fd);
	return ok;
}

#endif /* _TWHEEL_FLOOD_H */
