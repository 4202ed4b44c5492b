// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: initialisation and teardown of the timer core
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "core.h"
#include "cpu_base.h"
#include "expiry.h"
#include "hotplug.h"
#include "isolation.h"
#include "pages.h"
#include "stats.h"
#include "twheel.h"
#include "wheel.h"

#define TICK_SHIFT_MIN	14
#define TICK_SHIFT_MAX	30

static unsigned long tick_ns = 1UL << 20;
module_param(tick_ns, ulong, 0444);
MODULE_PARM_DESC(tick_ns, "length of a tick in nanoseconds, 16384 to 1073741824, rounded down to a power of two (default 1048576)");

static unsigned int tick_shift;

/**
 * twheel_tick_shift - get the length of a tick
 *
 * Context: any.
 * Return: n, for a tick of 2^n nanoseconds.
 */
unsigned int twheel_tick_shift(void)
{
	return tick_shift;
}
EXPORT_SYMBOL_GPL(twheel_tick_shift);

static struct twheel_base *create_base(unsigned int cpu)
{
	struct twheel_base *base;

	base = kvzalloc_node(sizeof(*base), GFP_KERNEL, cpu_to_node(cpu));
	if (!base)
		return NULL;
#ifdef CONFIG_PREEMPT_RT
	spin_lock_init(&base->lock);
	spin_lock_init(&base->expiry_lock);
#endif
	base->cpu = cpu;
	base->programmed = TWHEEL_NEVER;
	INIT_CSD(&base->csd, twheel_expiry_notified, base);
	twheel_init(&base->wheel, tick_shift, cpu, ktime_get_ns() >> tick_shift);
	base->batch = TWHEEL_BATCH;
	twheel_isolation_setup(base);
	hrtimer_setup(&base->hrtimer, twheel_expiry_tick, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_SOFT);
	return base;
}

static void destroy_base(struct twheel_base *base)
{
	struct twheel_snapshot snapshot;

	if (!base)
		return;
	/* Calls whose timer was cancelled before they arrived. */
	while (atomic_read(&base->csd_in_flight))
		usleep_range(100, 1000);
	hrtimer_cancel(&base->hrtimer);
	twheel_isolation_stop(base);
	twheel_stats_snapshot(base->cpu, &snapshot);
	WARN_ON_ONCE(snapshot.pending);
	twheel_pages_drain(&base->wheel);
	kvfree(base);
}

static void destroy_bases(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		destroy_base(twheel_base_of(cpu));
}

static int set_tick(void)
{
	if (tick_ns < 1UL << TICK_SHIFT_MIN || tick_ns > 1UL << TICK_SHIFT_MAX) {
		pr_err("tick_ns=%lu: give %lu to %lu\n", tick_ns,
		       1UL << TICK_SHIFT_MIN, 1UL << TICK_SHIFT_MAX);
		return -EINVAL;
	}
	tick_shift = ilog2(tick_ns);
	tick_ns = 1UL << tick_shift;
	return 0;
}

/**
 * twheel_core_init - set up the wheels
 *
 * Return:
 * * %0		- the in-kernel API can be used
 * * %-EINVAL	- a module parameter is out of range
 * * %-ENOMEM	- no memory
 */
int twheel_core_init(void)
{
	unsigned int cpu;
	int ret;

	ret = set_tick();
	if (ret)
		return ret;
	ret = twheel_expiry_init();
	if (ret)
		return ret;
	for_each_possible_cpu(cpu) {
		per_cpu(twheel_bases, cpu) = create_base(cpu);
		if (!twheel_base_of(cpu)) {
			ret = -ENOMEM;
			goto err_bases;
		}
	}
	ret = twheel_pages_init();
	if (ret)
		goto err_bases;
	ret = twheel_hotplug_init();
	if (ret)
		goto err_pages;
	return 0;

err_pages:
	twheel_pages_stop();
err_bases:
	destroy_bases();
	return ret;
}

/**
 * twheel_core_exit - tear down the wheels; no timer may be armed any more
 */
void twheel_core_exit(void)
{
	twheel_hotplug_exit();
	twheel_pages_stop();
	destroy_bases();
	twheel_pages_exit();
	/* Wait for the last instructions of the last twheel_expiry_notified(). */
	synchronize_rcu();
}
