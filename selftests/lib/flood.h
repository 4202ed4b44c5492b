/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * More state changes of sockets than the kernel records, while its workers get no CPU.
 */
#ifndef _TWHEEL_FLOOD_H
#define _TWHEEL_FLOOD_H

#include "late_workers.h"
#include "rules_test.h"

/* State changes in one go: more than the kernel records. */
#define FLOOD		2500

/* The scheduler's limit on real-time tasks, which leaves the rest of the time to other tasks. */
#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

/*
 * Causes state changes that the kernel is notified of, with all CPUs too busy for its workers.
 * Finally makes a connection, with @make. The caller stays on one CPU, where the kernel's threads
 * get time when the connection needs it.
 */
static inline bool flood(bool (*make)(int, struct pair *), int listener, struct pair *pair)
{
	int list[8], n = cpus(list, ARRAY_SIZE(list)), fd = serve(AF_INET, false, 0), i;
	struct late_workers late = { .n = 0 };
	bool ok = text_write(RT_RUNTIME, "-1") && !pin(list[0]) && set_real_time(2) &&
		  keep_cpus(&late, list + 1, n - 1);

	/* Each listen() is a state change. */
	for (i = 0; i < FLOOD && ok; i++)
		ok = !shutdown(fd, SHUT_RDWR) && !listen(fd, 1);
	ok = ok && make(listener, pair);
	close(fd);
	return let_workers_be(&late) && !file_write(RT_RUNTIME, 950000) && ok;
}

#endif /* _TWHEEL_FLOOD_H */
