/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * More changes of sockets than the kernel notes, while its workers have no processor.
 */
#ifndef _TWHEEL_FLOOD_H
#define _TWHEEL_FLOOD_H

#include "rules_test.h"

static inline int be_first(int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param) ? -errno : 0;
}

/* What keeps a CPU busy, and how many are. */
struct first {
	int cpu;
	int *ready;
};

static inline void be_busy_first(void *arg)
{
	const struct first *first = arg;

	if (pin(first->cpu) || be_first(1))
		_exit(1);
	__atomic_fetch_add(first->ready, 1, __ATOMIC_RELAXED);
	for (;;)
		continue;
}

/* Shared with children. Never freed: the test is a process of its own. */
static inline int *shared_number(void)
{
	void *page = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* Changes at a time: more than the kernel notes. */
#define FLOOD		2500

/* What the scheduler leaves to others, whatever the priority of who is busy. */
#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

/*
 * Changes states in the kernel's sight, with all CPUs too busy for its workers. At the end there is
 * a connection, by @make.
 */
static inline bool flood(const int *list, int nr, bool (*make)(int, struct pair *), int listener,
			 struct pair *pair)
{
	int fd = serve(AF_INET, false, 0), *ready = shared_number(), i;
	pid_t busy[8];
	bool ok;

	for (i = 1; i < nr; i++) {
		struct first first = { .cpu = list[i], .ready = ready };

		busy[i] = spawn(be_busy_first, &first);
	}
	while (__atomic_load_n(ready, __ATOMIC_RELAXED) < nr - 1)
		sched_yield();
	ok = !be_first(2);
	/* Each time that it listens is one. */
	for (i = 0; i < FLOOD && ok; i++)
		ok = !shutdown(fd, SHUT_RDWR) && !listen(fd, 1);
	ok = make(listener, pair) && ok;
	be_first(0);
	for (i = 1; i < nr; i++) {
		kill(busy[i], SIGKILL);
		reap(busy[i]);
	}
	close(fd);
	return ok;
}

#endif /* _TWHEEL_FLOOD_H */
