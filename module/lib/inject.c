// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: for test builds: delays at the injection points, generations that run out soon,
 * wheels without chunks, and CPUs treated as isolated
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/prandom.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "inject.h"

static uint inject_points;
module_param(inject_points, uint, 0644);
MODULE_PARM_DESC(inject_points, "bit mask of the points to delay at");

static uint inject_us = 20;
module_param(inject_us, uint, 0644);
MODULE_PARM_DESC(inject_us, "most microseconds to delay, up to 1000");

static bool inject_yield;
module_param(inject_yield, bool, 0644);
MODULE_PARM_DESC(inject_yield, "give up the CPU instead, where that is allowed");

static atomic_t hits[TWHEEL_NR_POINTS];

/**
 * struct plan - when and for how long a point delays, drawn from a seed
 * @one_in:	the point delays once in this many passes; 0 if there is no plan
 * @us:		maximum delay, in microseconds
 */
struct plan {
	u32	one_in;
	u32	us;
};

static struct plan plans[TWHEEL_NR_POINTS];

/*
 * What each CPU draws from, with SplitMix64 (Steele, Lea and Flood, 2014). get_random_u32() may
 * sleep on PREEMPT_RT; a draw that is interrupted by another may only be the same twice.
 */
static DEFINE_PER_CPU(u64, draws);

static u32 draw_below(u32 ceil)
{
	u64 *state = raw_cpu_ptr(&draws);
	/* Pairs with the WRITE_ONCE()s here and in set_seed(). */
	u64 draw = READ_ONCE(*state) + 0x9e3779b97f4a7c15ULL;

	/* Pairs with the READ_ONCE() above. */
	WRITE_ONCE(*state, draw);
	draw = (draw ^ draw >> 30) * 0xbf58476d1ce4e5b9ULL;
	draw = (draw ^ draw >> 27) * 0x94d049bb133111ebULL;
	return (u32)(draw >> 32) % ceil;
}

/*
 * Many races need a few long delays in the right places; others need many short ones. So each point
 * gets a rate and a length of its own, each of any magnitude, and half of the points get none.
 */
static int set_seed(const char *value, const struct kernel_param *kp)
{
	struct rnd_state state;
	u32 points = 0;
	unsigned int cpu;
	u64 seed;
	int i, ret = kstrtou64(value, 0, &seed);

	if (ret)
		return ret;
	prandom_seed_state(&state, seed);
	for (i = 0; i < TWHEEL_NR_POINTS; i++) {
		plans[i].one_in = 1U << prandom_u32_state(&state) % 12;
		plans[i].us = 1U << prandom_u32_state(&state) % 10;
		points |= (prandom_u32_state(&state) & 1) << i;
	}
	for_each_possible_cpu(cpu)
		/* Pairs with the READ_ONCE() in draw_below(). */
		WRITE_ONCE(*per_cpu_ptr(&draws, cpu), prandom_u32_state(&state));
	WRITE_ONCE(inject_points, points);
	return 0;
}

static const struct kernel_param_ops seed_ops = { .set = set_seed };
module_param_cb(inject_seed, &seed_ops, NULL, 0);
MODULE_PARM_DESC(inject_seed, "draw the points to delay at, how often and how long");

static int get_hits(char *buffer, const struct kernel_param *kp)
{
	int i, len = 0;

	for (i = 0; i < TWHEEL_NR_POINTS; i++)
		len += sysfs_emit_at(buffer, len, "%d%c", atomic_read(&hits[i]),
				     i == TWHEEL_NR_POINTS - 1 ? '\n' : ' ');
	return len;
}

static const struct kernel_param_ops hits_ops = { .get = get_hits };
module_param_cb(inject_hits, &hits_ops, NULL, 0444);
MODULE_PARM_DESC(inject_hits, "how often each point has delayed");

static uint inject_generation = 1;
module_param(inject_generation, uint, 0444);
MODULE_PARM_DESC(inject_generation, "the first generation of every timer");

static bool inject_no_page;
module_param(inject_no_page, bool, 0444);
MODULE_PARM_DESC(inject_no_page, "there is no memory for chunks");

static uint inject_isolated;
module_param(inject_isolated, uint, 0644);
MODULE_PARM_DESC(inject_isolated, "bit mask of CPUs that are taken to be isolated");

/**
 * twheel_inject_isolated - check whether to treat a CPU as isolated
 * @cpu:	the CPU
 *
 * Context: any.
 * Return: true if it is to be treated as isolated.
 */
bool twheel_inject_isolated(unsigned int cpu)
{
	/* Pairs with the store to the parameter. */
	return cpu < 32 && READ_ONCE(inject_isolated) & 1U << cpu;
}

/**
 * twheel_inject_generation - the initial generation of a new timer
 *
 * Context: any.
 * Return: the generation; it must be more than 0 for no handle to be 0.
 */
u32 twheel_inject_generation(void)
{
	return inject_generation;
}

/**
 * twheel_inject_no_page - check whether to deny wheels memory
 *
 * Context: any.
 * Return: true if a wheel is to get no page.
 */
bool twheel_inject_no_page(void)
{
	return inject_no_page;
}

/**
 * struct delays - how much of a CPU's time is spent on delays
 * @begin:	when the current tenth of a second began, in jiffies
 * @us:		upper bound of the microseconds spent in it
 */
struct delays {
	unsigned long	begin;
	unsigned int	us;
};

static DEFINE_PER_CPU(struct delays, delays);

/*
 * Limits delays to half of a CPU's time: if each of very many timers delayed in a softirq, nothing
 * else would get to run. Not exact, because this may be interrupted.
 */
static bool reserve_delay(unsigned int max_us)
{
	struct delays *delay = raw_cpu_ptr(&delays);
	unsigned int us = READ_ONCE(delay->us) + max_us;

	if (time_after_eq(jiffies, READ_ONCE(delay->begin) + HZ / 10)) {
		WRITE_ONCE(delay->begin, jiffies);
		us = 0;
	}
	if (us > USEC_PER_SEC / 20)
		return false;
	WRITE_ONCE(delay->us, us);
	return true;
}

static unsigned int max_delay_us(enum twheel_point point)
{
	return plans[point].us ?: min(READ_ONCE(inject_us), 1000U);
}

/*
 * Decides whether a selected point delays now: one time in four, unless a rate was drawn. The first
 * pass always delays, because some points are hardly ever passed.
 */
static bool should_delay(enum twheel_point point)
{
	if (!(READ_ONCE(inject_points) & 1U << point))
		return false;
	if (atomic_read(&hits[point]) &&
	    (draw_below(plans[point].one_in ?: 4) || !reserve_delay(max_delay_us(point))))
		return false;
	atomic_inc(&hits[point]);
	return true;
}

/**
 * twheel_inject_max - how long to wait for something to happen
 * @point:	the injection point
 *
 * Context: any, with interrupts enabled.
 * Return: maximum delay in microseconds; 0 if the point does not delay this time.
 */
unsigned int twheel_inject_max(enum twheel_point point)
{
	return should_delay(point) ? max_delay_us(point) : 0;
}

/**
 * twheel_inject - delay now and then, if the point is selected
 * @point:	the injection point
 *
 * Context: any, with interrupts enabled.
 */
void twheel_inject(enum twheel_point point)
{
	if (!should_delay(point))
		return;
	if (READ_ONCE(inject_yield) && preemptible() && !rcu_preempt_depth())
		schedule();
	else
		udelay(draw_below(max_delay_us(point) + 1));
}
