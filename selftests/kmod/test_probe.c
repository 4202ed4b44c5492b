// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API: timers that record how they are called
 */
#include <linux/cpumask.h>
#include <linux/overflow.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "test.h"

static void probe_called(struct twheel_timer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);

	WRITE_ONCE(probe->at, ktime_get_ns());
	if (probe->at < READ_ONCE(probe->least))
		atomic_inc(&probe->early);
	if (!in_softirq() || in_hardirq() || irqs_disabled() || twheel_pending(timer))
		atomic_inc(&probe->wrong);
	WRITE_ONCE(probe->cpu, raw_smp_processor_id());
	atomic_inc(&probe->fired);
}

void probe_init(struct probe *probe)
{
	memset(probe, 0, sizeof(*probe));
	twheel_timer_init(&probe->timer, probe_called);
}

int probe_add(struct probe *probe, u64 deadline)
{
	WRITE_ONCE(probe->least, deadline);
	return twheel_add(&probe->timer, deadline);
}

int probe_rearm(struct probe *probe, u64 deadline)
{
	WRITE_ONCE(probe->least, deadline);
	return twheel_rearm(&probe->timer, deadline);
}

/* Was it called @times times, never early, always in the promised context? */
bool probe_is(struct probe *probe, int times)
{
	return WAIT_FOR(atomic_read(&probe->fired) >= times) &&
	       atomic_read(&probe->fired) == times && !atomic_read(&probe->early) &&
	       !atomic_read(&probe->wrong);
}

struct probe *probes_create(unsigned int n)
{
	struct probe *probes = vzalloc(array_size(n, sizeof(*probes)));
	unsigned int i;

	for (i = 0; probes && i < n; i++)
		probe_init(&probes[i]);
	return probes;
}

void probes_destroy(struct probe *probes, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		twheel_cancel_sync(&probes[i].timer);
	vfree(probes);
}

static void repeater_called(struct twheel_timer *timer)
{
	struct repeater *repeater = container_of(timer, struct repeater, timer);

	if (atomic_inc_return(&repeater->inside) != 1)
		atomic_inc(&repeater->wrong);
	atomic_inc(&repeater->called);
	if (repeater->spin_us)
		udelay(repeater->spin_us);
	spin_lock(&repeater->lock);
	if (atomic_dec_if_positive(&repeater->left) >= 0 &&
	    twheel_rearm(timer, in_ns(READ_ONCE(repeater->distance))))
		atomic_inc(&repeater->wrong);
	spin_unlock(&repeater->lock);
	atomic_dec(&repeater->inside);
}

void repeater_init(struct repeater *repeater, u64 distance, int times)
{
	memset(repeater, 0, sizeof(*repeater));
	twheel_timer_init(&repeater->timer, repeater_called);
	spin_lock_init(&repeater->lock);
	repeater->distance = distance;
	atomic_set(&repeater->left, times);
}

/**
 * struct call - a call of a function on a CPU
 * @work:	does it
 * @function:	the function
 * @arg:	its argument
 */
struct call {
	struct work_struct	work;
	void			(*function)(void *arg);
	void			*arg;
};

static void call_work(struct work_struct *work)
{
	struct call *call = container_of(work, struct call, work);

	call->function(call->arg);
}

void on_cpu(unsigned int cpu, void (*function)(void *arg), void *arg)
{
	struct call call = { .function = function, .arg = arg };

	INIT_WORK_ONSTACK(&call.work, call_work);
	schedule_work_on(cpu, &call.work);
	flush_work(&call.work);
	destroy_work_on_stack(&call.work);
}

/* Calls a function on all CPUs at the same time. */
void on_all_cpus(void (*function)(void *arg), void *arg)
{
	struct call *calls = kcalloc(nr_cpu_ids, sizeof(*calls), GFP_KERNEL);
	unsigned int cpu, n = 0;

	EXPECT(calls);
	if (!calls)
		return;
	for_each_online_cpu(cpu) {
		calls[n].function = function;
		calls[n].arg = arg;
		INIT_WORK(&calls[n].work, call_work);
		schedule_work_on(cpu, &calls[n].work);
		n++;
	}
	while (n--)
		flush_work(&calls[n].work);
	kfree(calls);
}

/**
 * struct order - a call that a CPU is to make for a timer
 * @probe:	the timer
 * @deadline:	for add and re-arm
 * @ret:	the return value of the call
 */
struct order {
	struct probe	*probe;
	u64		deadline;
	int		ret;
};

static void order_add(void *arg)
{
	struct order *order = arg;

	order->ret = probe_add(order->probe, order->deadline);
}

static void order_rearm(void *arg)
{
	struct order *order = arg;

	order->ret = probe_rearm(order->probe, order->deadline);
}

static void order_cancel(void *arg)
{
	struct order *order = arg;

	order->ret = twheel_cancel(&order->probe->timer);
}

int add_on(unsigned int cpu, struct probe *probe, u64 deadline)
{
	struct order order = { .probe = probe, .deadline = deadline };

	on_cpu(cpu, order_add, &order);
	return order.ret;
}

int rearm_on(unsigned int cpu, struct probe *probe, u64 deadline)
{
	struct order order = { .probe = probe, .deadline = deadline };

	on_cpu(cpu, order_rearm, &order);
	return order.ret;
}

int cancel_on(unsigned int cpu, struct probe *probe)
{
	struct order order = { .probe = probe };

	on_cpu(cpu, order_cancel, &order);
	return order.ret;
}

/* A CPU other than the current one, or the current one if there is no other. */
unsigned int other_cpu(void)
{
	unsigned int cpu, here = raw_smp_processor_id();

	for_each_online_cpu(cpu)
		if (cpu != here)
			return cpu;
	return here;
}
