// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the CPU time of timer interrupts, of the softirqs of timers, and of twheel's
 * work items
 *
 * Each is the time between two tracepoints, minus the other parts that interrupt it. The
 * probes are registered on the first request.
 */
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/kallsyms.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "bench.h"

/* Each part can be interrupted by those before it. */
enum part {
	INTERRUPT,
	SOFTIRQ,
	LIST_SOFTIRQ,
	WORKER,
	NR_PARTS,
};

/**
 * struct cpu_time - the time that a CPU has spent
 * @sum:	nanoseconds, by part
 * @count:	number of runs, by part
 * @begin:	start time of the current run, by part; 0 if there is none
 * @inner:	nanoseconds of all parts that can interrupt it, at its start, by part
 * @longest:	nanoseconds of the longest run, by part
 * @worker:	the task that runs the current work item
 *
 * Changed only by probes on this CPU: a part that interrupts another one ends before that
 * resumes, and changes nothing of it. @sum and @count are read from any CPU.
 */
struct cpu_time {
	u64			sum[NR_PARTS];
	u64			count[NR_PARTS];
	u64			begin[NR_PARTS];
	u64			inner[NR_PARTS];
	u64			longest[NR_PARTS];
	struct task_struct	*worker;
};

static DEFINE_PER_CPU(struct cpu_time, times);

static u64 sum_inner(const struct cpu_time *time, enum part part)
{
	u64 sum = 0;

	while (part--)
		sum += time->sum[part];
	return sum;
}

/* An interrupt between the two reads would count for both parts, or for none. */
static void begin_part(enum part part)
{
	struct cpu_time *time = this_cpu_ptr(&times);
	unsigned long flags;

	local_irq_save(flags);
	time->inner[part] = sum_inner(time, part);
	time->begin[part] = ktime_get_mono_fast_ns();
	local_irq_restore(flags);
}

static void count_part(enum part part, u64 now)
{
	struct cpu_time *time = this_cpu_ptr(&times);
	u64 took = now - time->begin[part];

	/* The exit probe may have been registered while this part was running. */
	if (!time->begin[part])
		return;
	time->begin[part] = 0;
	took -= sum_inner(time, part) - time->inner[part];
	/* Pair with the READ_ONCE()s of those who read them. */
	WRITE_ONCE(time->sum[part], time->sum[part] + took);
	WRITE_ONCE(time->count[part], time->count[part] + 1);
	if (took > time->longest[part])
		WRITE_ONCE(time->longest[part], took);
}

static void end_part(enum part part)
{
	unsigned long flags;

	local_irq_save(flags);
	count_part(part, ktime_get_mono_fast_ns());
	local_irq_restore(flags);
}

static void interrupt_entry(void *unused, int vector)
{
	begin_part(INTERRUPT);
}

static void interrupt_exit(void *unused, int vector)
{
	end_part(INTERRUPT);
}

static void softirq_entry(void *unused, unsigned int vector)
{
	if (vector == HRTIMER_SOFTIRQ)
		begin_part(SOFTIRQ);
	else if (vector == TIMER_SOFTIRQ)
		begin_part(LIST_SOFTIRQ);
}

static void softirq_exit(void *unused, unsigned int vector)
{
	if (vector == HRTIMER_SOFTIRQ)
		end_part(SOFTIRQ);
	else if (vector == TIMER_SOFTIRQ)
		end_part(LIST_SOFTIRQ);
}

static bool is_twheel_work(work_func_t function)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol(name, (unsigned long)function);
	return strstr(name, "[twheel]");
}

/*
 * Called with preemption disabled, as all probes are. A work item that sleeps may resume
 * on another CPU, and then does not count; one that is preempted counts together with what
 * preempted it.
 */
static void work_start(void *unused, struct work_struct *work)
{
	if (!is_twheel_work(work->func))
		return;
	__this_cpu_write(times.worker, current);
	begin_part(WORKER);
}

static void work_end(void *unused, struct work_struct *work, work_func_t function)
{
	if (__this_cpu_read(times.worker) != current)
		return;
	__this_cpu_write(times.worker, NULL);
	end_part(WORKER);
}

static struct probe {
	const char		*name;
	void			*function;
	struct tracepoint	*tracepoint;
} probes[] = {
	{ "local_timer_entry", interrupt_entry },
	{ "local_timer_exit", interrupt_exit },
	{ "softirq_entry", softirq_entry },
	{ "softirq_exit", softirq_exit },
	{ "workqueue_execute_start", work_start },
	{ "workqueue_execute_end", work_end },
};

/* Protects the registration of the probes. Taken in process context; no lock nests inside it. */
static DEFINE_MUTEX(probes_lock);
static bool probes_registered;

static void find_tracepoint(struct tracepoint *tp, void *unused)
{
	struct probe *probe;

	for (probe = probes; probe < probes + ARRAY_SIZE(probes); probe++)
		if (!strcmp(probe->name, tp->name))
			probe->tracepoint = tp;
}

static void unregister_probes(unsigned int nr)
{
	while (nr--)
		tracepoint_probe_unregister(probes[nr].tracepoint, probes[nr].function, NULL);
	tracepoint_synchronize_unregister();
}

static int register_probes(void)
{
	unsigned int i;
	int ret;

	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		return -EOPNOTSUPP;
	for_each_kernel_tracepoint(find_tracepoint, NULL);
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		ret = -EOPNOTSUPP;
		if (probes[i].tracepoint)
			ret = tracepoint_probe_register(probes[i].tracepoint,
							probes[i].function, NULL);
		if (ret) {
			unregister_probes(i);
			return ret;
		}
	}
	probes_registered = true;
	return 0;
}

/**
 * bench_cpu_read - read the time that all CPUs have spent since the first call
 * @answer:	filled in
 *
 * Context: process; may sleep.
 * Return: 0, -EOPNOTSUPP if this kernel lacks a tracepoint, or -ENOMEM.
 */
int bench_cpu_read(struct twheel_bench_cpu *answer)
{
	const struct cpu_time *time;
	int cpu, ret = 0;

	mutex_lock(&probes_lock);
	if (!probes_registered)
		ret = register_probes();
	mutex_unlock(&probes_lock);
	memset(answer, 0, sizeof(*answer));
	/* Pair with the WRITE_ONCE()s in end_part(). */
	for_each_possible_cpu(cpu) {
		time = per_cpu_ptr(&times, cpu);
		answer->interrupt_ns += READ_ONCE(time->sum[INTERRUPT]);
		answer->softirq_ns += READ_ONCE(time->sum[SOFTIRQ]);
		answer->worker_ns += READ_ONCE(time->sum[WORKER]);
		answer->interrupts += READ_ONCE(time->count[INTERRUPT]);
		answer->softirqs += READ_ONCE(time->count[SOFTIRQ]);
		answer->works += READ_ONCE(time->count[WORKER]);
	}
	return ret;
}

/**
 * bench_cpu_use - read what timers have taken on this CPU
 * @use:	filled in; all 0 if bench_cpu_read() was never called
 *
 * Context: process; the caller stays on its CPU.
 */
void bench_cpu_use(struct bench_cpu_use *use)
{
	const struct cpu_time *time = raw_cpu_ptr(&times);

	/* Pair with the WRITE_ONCE()s in end_part(). */
	*use = (struct bench_cpu_use) {
		.interrupt_ns	= READ_ONCE(time->sum[INTERRUPT]),
		.softirq_ns	= READ_ONCE(time->sum[SOFTIRQ]) +
				  READ_ONCE(time->sum[LIST_SOFTIRQ]),
		.interrupts	= READ_ONCE(time->count[INTERRUPT]),
		.softirqs	= READ_ONCE(time->count[SOFTIRQ]) +
				  READ_ONCE(time->count[LIST_SOFTIRQ]),
		.longest_interrupt_ns = READ_ONCE(time->longest[INTERRUPT]),
		.longest_softirq_ns = max(READ_ONCE(time->longest[SOFTIRQ]),
					  READ_ONCE(time->longest[LIST_SOFTIRQ])),
	};
}

/**
 * bench_cpu_taken - read for how long timers have had this CPU
 *
 * Context: process; the caller stays on its CPU.
 * Return: nanoseconds of interrupts and softirqs.
 */
u64 bench_cpu_taken(void)
{
	const struct cpu_time *time = raw_cpu_ptr(&times);

	/* Pair with the WRITE_ONCE()s in end_part(). */
	return READ_ONCE(time->sum[INTERRUPT]) + READ_ONCE(time->sum[SOFTIRQ]) +
	       READ_ONCE(time->sum[LIST_SOFTIRQ]);
}

/**
 * bench_cpu_reset_longest - forget the longest runs of this CPU
 *
 * Context: process; the caller stays on its CPU.
 */
void bench_cpu_reset_longest(void)
{
	struct cpu_time *time = raw_cpu_ptr(&times);
	enum part part;

	for (part = 0; part < NR_PARTS; part++)
		WRITE_ONCE(time->longest[part], 0);
}

/**
 * bench_cpu_exit - unregister the probes
 *
 * Context: process; may sleep.
 */
void bench_cpu_exit(void)
{
	if (probes_registered)
		unregister_probes(ARRAY_SIZE(probes));
}
