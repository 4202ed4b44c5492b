// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: CPUs to be kept free of timers: which they are, and where their timers go
 *
 * What a CPU arms goes to another one if the CPU is isolated: by nohz_full=, or because it is in an
 * isolated partition of a cpuset (which includes isolcpus=, see compat.h). Partitions change at run
 * time, and the kernel notifies no module; it can only be asked. Asking for each timer would cost
 * more than arming it does. So a CPU that is not isolated gets a lease: for LEASE jiffies, it arms
 * timers without asking. The lease is granted by the first timer that is armed without one, and
 * ends when @lease_timer fires:
 *
 *	no lease	%TWHEEL_FREE_ASK is set, so each timer takes the path of a wheel that is
 *			short of chunks, and asks: see twheel_base_refill(). Not isolated: a lease
 *			is granted. Isolated: the timer goes to another CPU
 *	lease		%TWHEEL_FREE_ASK is clear (unless pages.c needs it, too), and a timer that
 *			is armed costs not a single instruction more
 *
 * An isolated CPU has no lease, so it is left alone by the timer of the lease as well, and notices
 * with the next timer that it no longer is isolated. On a CPU that arms nothing, the lease ends and
 * is not renewed. @lease_timer is deferrable, and wakes nobody up; as it may be late on a CPU that
 * is mostly idle, twheel_isolation_tick() does the same whenever the hrtimer is set anyway.
 *
 * Nothing depends on an answer that is still true when the timer is armed. Every wheel can take
 * every timer, and a timer stays on the wheel that it is on when that CPU becomes isolated, until
 * it is due, cancelled, or re-armed to an earlier time.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/numa.h>
#include <linux/sched/isolation.h>
#include <linux/timer.h>
#include <linux/topology.h>

#include "cpu_base.h"
#include "isolation.h"
#include "lib/compat.h"
#include "lib/inject.h"

#ifdef TWHEEL_INJECT
#define MAY_CHANGE	true
/* A torture test has little time. */
#define LEASE		1
#else
/* Can a CPU become isolated, or cease to be? */
#define MAY_CHANGE	TWHEEL_CPUSET_PARTITIONS
#define LEASE		(HZ / 10)
#endif

/* Is a CPU to be kept free of timers? Takes constant time. */
static bool is_isolated(unsigned int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_TIMER) || twheel_cpuset_isolated(cpu) ||
	       twheel_inject_isolated(cpu);
}

static bool may_take_timers(unsigned int cpu)
{
	return cpu_online(cpu) && !is_isolated(cpu);
}

/* Is a CPU online, and on the node, if one is given? */
static bool is_in_reach(unsigned int cpu, int node)
{
	/* A CPU that comes online may store its node, which it has had before. */
	return cpu_online(cpu) && (node == NUMA_NO_NODE || data_race(cpu_to_node(cpu)) == node);
}

/*
 * Chooses a CPU for the timers of @self, which is isolated, on a node, or on any. As a rule this is
 * the next CPU that may take timers. But all of a row of isolated CPUs have the same next CPU, so
 * the second of them gets the one after that, and so on. Returns @self if there is none.
 */
static unsigned int search_target(unsigned int self, int node)
{
	unsigned int cpu, nr = 0, skip = 0;

	/* Ends with the CPUs before @self. The mask is constant: others may change meanwhile. */
	for_each_cpu_wrap(cpu, cpu_possible_mask, self) {
		if (!is_in_reach(cpu, node))
			continue;
		if (!is_isolated(cpu)) {
			nr++;
			skip = 0;
		} else if (cpu != self) {
			skip++;
		}
	}
	if (!nr)
		return self;
	skip %= nr;
	for_each_cpu_wrap(cpu, cpu_possible_mask, self)
		if (is_in_reach(cpu, node) && !is_isolated(cpu) && !skip--)
			return cpu;
	/* They have changed meanwhile. */
	return self;
}

/*
 * The CPU for what this CPU, which is isolated, arms; this CPU itself if there is none. CPUs of
 * the same node come first. The CPUs are only searched when the one found last is isolated or has
 * gone offline, or when one has come online.
 */
static unsigned int find_target(struct twheel_base *base)
{
	/* Pairs with the WRITE_ONCE()s of @target, here and in twheel_isolation_spread(). */
	unsigned int self = base->cpu, cpu = READ_ONCE(base->target);

	if (cpu != self && may_take_timers(cpu))
		return cpu;
	cpu = search_target(self, cpu_to_node(self));
	if (cpu == self)
		cpu = search_target(self, NUMA_NO_NODE);
	/* Pairs with the READ_ONCE() above: a softirq of this CPU may find another one. */
	WRITE_ONCE(base->target, cpu);
	return cpu;
}

/**
 * twheel_isolation_spread - make all isolated CPUs search again for where their timers go
 *
 * To be called when a CPU has come online: otherwise those that it took timers from before it went
 * offline would keep to the CPUs that they have found since.
 *
 * Context: any in which no base is destroyed meanwhile.
 */
void twheel_isolation_spread(void)
{
	unsigned int cpu;

	/* Pairs with the READ_ONCE() in find_target(). What that is finding may overwrite it. */
	for_each_possible_cpu(cpu)
		WRITE_ONCE(twheel_base_of(cpu)->target, cpu);
}

/**
 * twheel_choose_target - choose the CPU for a timer that an isolated CPU arms
 * @timer:	the timer
 *
 * This is the CPU that it was last on, or else the one that this CPU's timers go to.
 *
 * Context: the caller must not migrate, and no CPU may go offline, until the timer has been
 * queued.
 * Return: the CPU's base; or NULL if it is this CPU, as it is not isolated, or as all are.
 */
struct twheel_base *twheel_choose_target(const struct twheel_timer *timer)
{
	unsigned int self = smp_processor_id();
	/* Pairs with the WRITE_ONCE()s of @owner. */
	unsigned int cpu = READ_ONCE(timer->node.owner);

	/* The caller may have migrated since twheel_isolation_check(). */
	if (!may_take_timers(cpu))
		cpu = is_isolated(self) ? find_target(twheel_base_of(self)) : self;
	return cpu == self ? NULL : twheel_base_of(cpu);
}

static void revoke_lease(struct twheel_base *base)
{
	base->has_lease = false;
	twheel_base_set_ask(base, TWHEEL_ASK_ISOLATION, true);
}

static void grant_lease(struct twheel_base *base)
{
	base->has_lease = true;
	twheel_base_set_ask(base, TWHEEL_ASK_ISOLATION, false);
	if (!MAY_CHANGE)
		return;
	base->lease_end = jiffies + LEASE;
	mod_timer(&base->lease_timer, base->lease_end);
}

/*
 * Fires on the CPU or, if that has gone offline, on another one, in vain: twheel_isolation_stop()
 * ends the lease before the CPU comes back. The other CPU's base may be gone already.
 */
static void end_lease(struct timer_list *timer)
{
	struct twheel_base *base = timer_container_of(base, timer, lease_timer);
	unsigned long flags;

	if (base->cpu != smp_processor_id())
		return;
	base = twheel_base_enter(&flags);
	revoke_lease(base);
	twheel_base_leave(base, flags);
}

/**
 * twheel_isolation_check - does what this CPU arms go to another one?
 * @base:	this CPU's base
 *
 * If not, the CPU need not ask again for a while. Takes constant time, except when the CPU that
 * the timers went to last has become isolated or gone offline, or one has come online.
 *
 * Context: between twheel_base_enter() and twheel_base_leave().
 * Return: true if this CPU is isolated and there is one that is not.
 */
bool twheel_isolation_check(struct twheel_base *base)
{
	bool elsewhere;

	if (base->has_lease && !MAY_CHANGE)
		return false;
	elsewhere = is_isolated(base->cpu) && find_target(base) != base->cpu;
	if (elsewhere)
		revoke_lease(base);
	else if (!base->has_lease)
		grant_lease(base);
	return elsewhere;
}

/**
 * twheel_isolation_tick - end a lease whose time is over
 * @base:	this CPU's base
 *
 * Context: between twheel_base_enter() and twheel_base_leave(), or in the hrtimer's function.
 */
void twheel_isolation_tick(struct twheel_base *base)
{
	if (MAY_CHANGE && base->has_lease && time_after(jiffies, base->lease_end))
		revoke_lease(base);
}

/**
 * twheel_isolation_setup - initialise a base's part of this: it has no lease
 * @base:	the base
 */
void twheel_isolation_setup(struct twheel_base *base)
{
	base->target = base->cpu;
	timer_setup(&base->lease_timer, end_lease, TIMER_DEFERRABLE | TIMER_PINNED);
	revoke_lease(base);
}

/**
 * twheel_isolation_stop - end the lease of a CPU that is offline, or will arm no timers any more
 * @base:	the CPU's base
 *
 * Context: process; nobody else uses the base.
 */
void twheel_isolation_stop(struct twheel_base *base)
{
	timer_delete_sync(&base->lease_timer);
	revoke_lease(base);
}
