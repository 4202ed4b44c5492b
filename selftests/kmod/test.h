/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests of twheel's in-kernel API: shared declarations
 *
 * test_main.c runs the cases and shows the results; test_probe.c has timers that record how they
 * are called; test_timer.c, test_calls.c, test_race.c, test_many.c and test_turns.c have the cases;
 * and test_hotplug.c arms timers on a CPU that a script takes offline.
 */
#ifndef _TEST_H
#define _TEST_H

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/string.h>

#include "twheel.h"

/* Hang guard: nothing that works takes this long. */
#define GUARD_NS	(20ULL * NSEC_PER_SEC)
#define HOUR_NS		(3600ULL * NSEC_PER_SEC)

void expect(bool holds, const char *what, const char *file, int line);
void skip(const char *why);

/* Is time simulated, as a count of instructions? */
extern bool simulated;

/* The results show the first condition that does not hold. */
#define EXPECT(condition) expect(condition, #condition, __FILE__, __LINE__)

#define WAIT_FOR(condition)						\
({									\
	u64 __end = ktime_get_ns() + GUARD_NS;				\
									\
	while (!(condition) && ktime_get_ns() < __end)			\
		usleep_range(200, 400);					\
	(condition);							\
})

static inline u64 in_ns(u64 ns)
{
	return ktime_get_ns() + ns;
}

static inline u64 tick_ns(void)
{
	return 1ULL << twheel_tick_shift();
}

static inline u64 random_ns(u32 below)
{
	return get_random_u32_below(below);
}

/* ---- test_probe.c */

/**
 * struct probe - a timer that records how it is called
 * @timer:	the timer
 * @least:	must not be called before this time
 * @at:		when it was last called
 * @fired:	number of calls
 * @early:	calls before @least
 * @cpu:	where it was last called
 * @wrong:	calls in another context than promised
 */
struct probe {
	struct twheel_timer	timer;
	u64			least;
	u64			at;
	atomic_t		fired;
	atomic_t		early;
	unsigned int		cpu;
	atomic_t		wrong;
};

/**
 * struct repeater - a timer that arms itself
 * @timer:	the timer
 * @lock:	serialises the calls for it, including its callback's. Taken with softirqs off
 * @stopping:	the callback is being waited for, and nobody else may touch the timer
 * @distance:	time until the next call
 * @left:	how many more times it arms itself
 * @called:	number of calls
 * @inside:	whether a call is in progress
 * @wrong:	calls during a call, and failures to arm
 * @spin_us:	duration of a call
 */
struct repeater {
	struct twheel_timer	timer;
	spinlock_t		lock;
	bool			stopping;
	u64			distance;
	atomic_t		left;
	atomic_t		called;
	atomic_t		inside;
	atomic_t		wrong;
	unsigned int		spin_us;
};

void probe_init(struct probe *probe);
int probe_add(struct probe *probe, u64 deadline);
int probe_rearm(struct probe *probe, u64 deadline);
bool probe_is(struct probe *probe, int times);
struct probe *probes_create(unsigned int n);
void probes_destroy(struct probe *probes, unsigned int n);

void repeater_init(struct repeater *repeater, u64 distance, int times);

void on_cpu(unsigned int cpu, void (*function)(void *arg), void *arg);
void on_all_cpus(void (*function)(void *arg), void *arg);
int add_on(unsigned int cpu, struct probe *probe, u64 deadline);
int rearm_on(unsigned int cpu, struct probe *probe, u64 deadline);
int cancel_on(unsigned int cpu, struct probe *probe);
unsigned int other_cpu(void);

/* ---- the cases */

void test_size(void);
void test_return_values(void);
void test_expiry(void);
void test_punctual(void);
void test_limits_of_time(void);
void test_rearm(void);
void test_callback_rearms(void);
void test_callback_cancels(void);
void test_callback_frees(void);
void test_callback_arms_another(void);
void test_cancel_sync_waits(void);
void test_cancel_sync_against_rearming(void);
void test_cancel_sync_against_anything(void);
void test_push_while_it_expires(void);
void test_from_one_cpu_to_another(void);
void test_rearm_while_it_runs(void);
void test_storm(void);
void test_many(void);
void test_burst(void);
void test_turns(void);
void test_overdue(void);
void test_static(void);
void test_on_stack(void);
void test_expires(void);
void test_relative(void);
void test_slack(void);
void test_add_on(void);
void test_add_on_and_then(void);
void test_add_on_refused(void);
void test_add_on_while_it_runs(void);
void test_shutdown(void);
void test_shutdown_while_it_is_armed(void);

/* ---- test_hotplug.c */

extern const struct file_operations hotplug_fops;

void hotplug_forget(void);
int hotplug_refuse(bool on);

#endif /* _TEST_H */
