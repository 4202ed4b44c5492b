// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API: one timer, and what its callback may do
 */
#include <linux/cpumask.h>
#include <linux/slab.h>
#include <linux/timer.h>

#include "test.h"

/* ---- one timer */

void test_size(void)
{
	if (IS_ENABLED(CONFIG_LOCKDEP)) {
		skip("lockdep adds a map to each timer");
		return;
	}
	EXPECT(sizeof(struct twheel_timer) <= 40);
	EXPECT(sizeof(struct twheel_timer) <= sizeof(struct timer_list));
}

void test_return_values(void)
{
	static struct probe probe;
	u64 deadline = in_ns(HOUR_NS);

	probe_init(&probe);
	EXPECT(!twheel_pending(&probe.timer));
	EXPECT(twheel_cancel(&probe.timer) == 0);
	EXPECT(twheel_cancel_sync(&probe.timer) == 0);
	EXPECT(twheel_add(&probe.timer, deadline) == 0);
	EXPECT(twheel_pending(&probe.timer));
	EXPECT(twheel_add(&probe.timer, deadline + 1) == -EBUSY);
	EXPECT(twheel_add(&probe.timer, 0) == -EBUSY);
	EXPECT(twheel_expires(&probe.timer) == deadline);
	EXPECT(twheel_rearm(&probe.timer, deadline + 1) == 1);
	EXPECT(twheel_pending(&probe.timer));
	EXPECT(twheel_rearm(&probe.timer, deadline - HOUR_NS / 2) == 1);
	EXPECT(twheel_pending(&probe.timer));
	EXPECT(twheel_cancel(&probe.timer) == 1);
	EXPECT(!twheel_pending(&probe.timer));
	EXPECT(twheel_cancel(&probe.timer) == 0);
	EXPECT(twheel_rearm(&probe.timer, deadline) == 0);
	EXPECT(twheel_pending(&probe.timer));
	EXPECT(twheel_cancel_sync(&probe.timer) == 1);
	EXPECT(!twheel_pending(&probe.timer));
	EXPECT(twheel_cancel_sync(&probe.timer) == 0);
	EXPECT(atomic_read(&probe.fired) == 0);
}

void test_expiry(void)
{
	static struct probe probe;
	unsigned int cpu;
	int times = 0;

	probe_init(&probe);
	for_each_online_cpu(cpu) {
		EXPECT(add_on(cpu, &probe, in_ns(5 * NSEC_PER_MSEC)) == 0);
		EXPECT(probe_is(&probe, ++times));
		/* The callback runs on the CPU that armed the timer. */
		EXPECT(READ_ONCE(probe.cpu) == cpu);
		EXPECT(!twheel_pending(&probe.timer));
		/* While its callback runs, the timer would be armed on that CPU. */
		EXPECT(twheel_cancel_sync(&probe.timer) == 0);
	}
}

/*
 * Softirqs of others, and virtual CPUs that take turns, may now and then delay a timer beyond its
 * tick: of these timers, most of which are on the first level of the wheel, less than one in four.
 * Both newly armed and re-armed from a distant deadline.
 */
void test_punctual(void)
{
	static struct probe probe;
	unsigned int i, late = 0, late_moved = 0;

	if (!simulated)
		return;
	probe_init(&probe);
	for (i = 0; i < 20; i++) {
		if (i & 1)
			EXPECT(probe_add(&probe, in_ns(HOUR_NS)) == 0);
		EXPECT(probe_rearm(&probe, in_ns((i + 3) * NSEC_PER_MSEC)) == (i & 1));
		EXPECT(probe_is(&probe, 2 * i + 1));
		late_moved += probe.at - probe.least >= tick_ns();
		EXPECT(probe_add(&probe, in_ns((i + 3) * NSEC_PER_MSEC)) == 0);
		EXPECT(probe_is(&probe, 2 * i + 2));
		late += probe.at - probe.least >= tick_ns();
	}
	if (late || late_moved)
		pr_info("%u added and %u moved were late, of %u\n", late, late_moved, i);
	EXPECT(late < 5);
	EXPECT(late_moved < 5);
}

void test_limits_of_time(void)
{
	static struct probe probe;
	u64 past[] = { 0, 1, ktime_get_ns() / 2, ktime_get_ns() };
	unsigned int i;

	probe_init(&probe);
	for (i = 0; i < ARRAY_SIZE(past); i++) {
		EXPECT(probe_add(&probe, past[i]) == 0);
		EXPECT(probe_is(&probe, i + 1));
	}
	EXPECT(twheel_add(&probe.timer, U64_MAX) == 0);
	EXPECT(twheel_expires(&probe.timer) == TWHEEL_EXPIRES_MAX);
	EXPECT(twheel_rearm(&probe.timer, TWHEEL_EXPIRES_MAX) == 1);
	EXPECT(twheel_rearm(&probe.timer, TWHEEL_EXPIRES_MAX + 1) == 1);
	EXPECT(twheel_expires(&probe.timer) == TWHEEL_EXPIRES_MAX);
	usleep_range(5000, 6000);
	EXPECT(atomic_read(&probe.fired) == ARRAY_SIZE(past));
	EXPECT(probe_rearm(&probe, in_ns(NSEC_PER_MSEC)) == 1);
	EXPECT(probe_is(&probe, ARRAY_SIZE(past) + 1));
	twheel_cancel_sync(&probe.timer);
}

void test_rearm(void)
{
	static struct probe probe;
	unsigned int i;
	u64 last;

	probe_init(&probe);
	/* Later, repeatedly. */
	EXPECT(probe_add(&probe, in_ns(HOUR_NS)) == 0);
	for (i = 0; i < 1000; i++)
		EXPECT(probe_rearm(&probe, in_ns(HOUR_NS + i * NSEC_PER_SEC)) == 1);
	/* Earlier, repeatedly. */
	for (i = 0; i < 1000; i++)
		EXPECT(probe_rearm(&probe, in_ns(HOUR_NS - i * NSEC_PER_SEC)) == 1);
	last = in_ns(10 * NSEC_PER_MSEC);
	EXPECT(probe_rearm(&probe, last) == 1);
	EXPECT(probe_is(&probe, 1));
	EXPECT(twheel_expires(&probe.timer) == last);
	twheel_cancel_sync(&probe.timer);
}

/* ---- what callbacks may do */

void test_callback_rearms(void)
{
	static struct repeater repeater;
	const u64 distances[] = { 0, 1, tick_ns(), 3 * tick_ns() };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(distances); i++) {
		repeater_init(&repeater, distances[i], 30);
		EXPECT(twheel_add(&repeater.timer, 0) == 0);
		EXPECT(WAIT_FOR(atomic_read(&repeater.called) == 31));
		EXPECT(twheel_cancel_sync(&repeater.timer) == 0);
		EXPECT(atomic_read(&repeater.called) == 31);
		EXPECT(atomic_read(&repeater.wrong) == 0);
	}
}

static void cancels_itself(struct twheel_timer *timer)
{
	struct repeater *repeater = container_of(timer, struct repeater, timer);

	if (twheel_cancel(timer) != 0 || twheel_add(timer, in_ns(HOUR_NS)) != 0 ||
	    twheel_add(timer, 0) != -EBUSY || twheel_cancel(timer) != 1 ||
	    twheel_pending(timer))
		atomic_inc(&repeater->wrong);
	atomic_inc(&repeater->called);
}

void test_callback_cancels(void)
{
	static struct repeater repeater;

	repeater_init(&repeater, 0, 0);
	twheel_timer_init(&repeater.timer, cancels_itself);
	EXPECT(twheel_add(&repeater.timer, 0) == 0);
	EXPECT(WAIT_FOR(atomic_read(&repeater.called) == 1));
	EXPECT(twheel_cancel_sync(&repeater.timer) == 0);
	EXPECT(atomic_read(&repeater.wrong) == 0);
	EXPECT(atomic_read(&repeater.called) == 1);
}

static atomic_t freed;

static void frees_itself(struct twheel_timer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);

	/* Makes later accesses noticeable. */
	memset(probe, 0x5a, sizeof(*probe));
	kfree(probe);
	atomic_inc(&freed);
}

void test_callback_frees(void)
{
	struct probe *probe;
	unsigned int i, armed = 0;

	atomic_set(&freed, 0);
	for (i = 0; i < 2000; i++) {
		probe = kmalloc(sizeof(*probe), GFP_KERNEL);
		if (!probe)
			break;
		probe_init(probe);
		twheel_timer_init(&probe->timer, frees_itself);
		armed++;
		EXPECT(twheel_add(&probe->timer, in_ns(random_ns(20 * NSEC_PER_MSEC))) == 0);
	}
	EXPECT(armed == 2000);
	EXPECT(WAIT_FOR(atomic_read(&freed) == armed));
}

/**
 * struct chain - timers each of which arms the next one
 * @timer:	the timer
 * @next:	the next one, or NULL
 * @called:	number of calls
 */
struct chain {
	struct twheel_timer	timer;
	struct chain		*next;
	atomic_t		called;
};

static void chain_called(struct twheel_timer *timer)
{
	struct chain *link = container_of(timer, struct chain, timer);

	if (link->next)
		twheel_add(&link->next->timer, 0);
	atomic_inc(&link->called);
}

void test_callback_arms_another(void)
{
	static struct chain links[200];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(links); i++) {
		twheel_timer_init(&links[i].timer, chain_called);
		links[i].next = i + 1 < ARRAY_SIZE(links) ? &links[i + 1] : NULL;
		atomic_set(&links[i].called, 0);
	}
	EXPECT(twheel_add(&links[0].timer, 0) == 0);
	EXPECT(WAIT_FOR(atomic_read(&links[ARRAY_SIZE(links) - 1].called)));
	for (i = 0; i < ARRAY_SIZE(links); i++) {
		EXPECT(twheel_cancel_sync(&links[i].timer) == 0);
		EXPECT(atomic_read(&links[i].called) == 1);
	}
}
