// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: torture
 *
 * Threads on all CPUs arm, re-arm and cancel timers at random, while CPUs go offline and
 * come back. At the end, every arming must have ended in exactly one of "fired" and
 * "cancelled", and none early. insmod returns when the time is over; it fails if
 * something was wrong, and the kernel log says what. The account is in the
 * parameters.
 *
 * There are three kinds of timers, because each can prove something different:
 *
 *  - shared: all threads and the callbacks operate on them, on each timer under its lock, and
 *    wait for their callbacks without it. Only the account at the end can be checked;
 *  - private: one thread arms and cancels, so it knows at any moment which deadline
 *    may fire, and that after twheel_cancel_sync() none may;
 *  - short-lived: allocated, armed, and freed by their callback or after a
 *    twheel_cancel_sync(), for KASAN to check.
 */
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "twheel.h"

static uint seconds = 10;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long (default 10)");

static uint threads_per_cpu = 2;
module_param(threads_per_cpu, uint, 0444);
MODULE_PARM_DESC(threads_per_cpu, "threads on each CPU (default 2)");

static uint nr_shared = 32;
module_param(nr_shared, uint, 0444);
MODULE_PARM_DESC(nr_shared, "timers that all threads share (default 32)");

static bool duels;
module_param(duels, bool, 0444);
MODULE_PARM_DESC(duels, "timers of one thread are stopped about when they expire, and nothing else");

static uint nr_private = 8;
module_param(nr_private, uint, 0444);
MODULE_PARM_DESC(nr_private, "timers of each thread (default 8)");

static bool hotplug = true;
module_param(hotplug, bool, 0444);
MODULE_PARM_DESC(hotplug, "take CPUs off and on (default yes)");

static ulong operations, armings, fired, cancelled, short_lived, cpus_taken_off, errors;
module_param(operations, ulong, 0444);
MODULE_PARM_DESC(operations, "result: calls made");
module_param(armings, ulong, 0444);
MODULE_PARM_DESC(armings, "result: timers armed that were not pending");
module_param(fired, ulong, 0444);
MODULE_PARM_DESC(fired, "result: of these, fired");
module_param(cancelled, ulong, 0444);
MODULE_PARM_DESC(cancelled, "result: of these, cancelled");
module_param(short_lived, ulong, 0444);
MODULE_PARM_DESC(short_lived, "result: of these, timers freed after one arming");
module_param(cpus_taken_off, ulong, 0444);
MODULE_PARM_DESC(cpus_taken_off, "result: how often a CPU was taken off");
module_param(errors, ulong, 0444);
MODULE_PARM_DESC(errors, "result: faults found");

static atomic_long_t nr_operations, nr_errors, short_armed, short_fired, short_cancelled;

/* Reports a fault, the first few times, and counts it. */
#define FAULT(fmt, ...) do {						\
	if (atomic_long_inc_return(&nr_errors) <= 20)			\
		pr_err(fmt "\n", ##__VA_ARGS__);			\
	} while (0)

/**
 * struct victim - a timer and its account
 * @timer:	the timer
 * @armed:	armings begun
 * @fired:	armings ended by the callback
 * @cancelled:	armings ended by a cancel
 * @lock:	of a shared timer: serialises the calls for it. Taken with softirqs off
 * @stopping:	the callback is being waited for, and nobody else may touch the timer
 * @running:	callbacks running now: never more than 1
 * @allowed:	no callback may run before this time; U64_MAX: none at all. Written by the
 *		thread that owns the timer; 0 if it is shared
 */
struct victim {
	struct twheel_timer	timer;
	atomic_long_t		armed;
	atomic_long_t		fired;
	atomic_long_t		cancelled;
	spinlock_t		lock;
	bool			stopping;
	atomic_t		running;
	u64			allowed;
};

static struct victim *shared;

/* The threads have stopped: callbacks do not arm anything any more. */
static bool stopping;

/* Distances from overdue to some ticks, and now and then far in the future. */
static u64 draw_deadline(void)
{
	u32 r = get_random_u32();
	u64 now = ktime_get_ns();

	switch (r & 7) {
	case 0:
		return now - (r >> 8);
	case 1:
		return now + ((u64)r << 12);
	default:
		return now + (r >> 8);
	}
}

static void rearm_counted(struct victim *v, u64 deadline)
{
	if (!twheel_rearm(&v->timer, deadline))
		atomic_long_inc(&v->armed);
}

static void callback_begin(struct victim *v)
{
	u64 allowed = READ_ONCE(v->allowed), now = ktime_get_ns();

	if (atomic_inc_return(&v->running) != 1)
		FAULT("two callbacks of one timer at a time");
	if (allowed == U64_MAX)
		FAULT("a callback after twheel_cancel_sync()");
	else if (now < allowed)
		FAULT("%llu ns early", allowed - now);
	/* Fully ordered: whoever sees the count knows that @allowed has been read. */
	atomic_long_inc_return(&v->fired);
}

static void private_fired(struct twheel_timer *timer)
{
	struct victim *v = container_of(timer, struct victim, timer);

	callback_begin(v);
	if (duels || get_random_u32() % 8 == 0)
		udelay(get_random_u32() % (duels ? 500 : 50));
	atomic_dec(&v->running);
}

static void cancel_counted(struct victim *v)
{
	if (twheel_cancel(&v->timer))
		atomic_long_inc(&v->cancelled);
}

/* Calls made by a callback for another timer, or for its own. */
static void operate_in_callback(struct victim *v, u32 dice)
{
	spin_lock(&v->lock);
	if (!v->stopping && dice & 8)
		rearm_counted(v, draw_deadline());
	else if (!v->stopping)
		cancel_counted(v);
	spin_unlock(&v->lock);
}

static void shared_fired(struct twheel_timer *timer)
{
	struct victim *v = container_of(timer, struct victim, timer);
	u32 dice = get_random_u32();

	callback_begin(v);
	switch (READ_ONCE(stopping) ? 3 : dice % 8) {
	case 0:
		/* A callback may use its own timer even while it is being waited for. */
		spin_lock(&v->lock);
		for (; dice >> 8 & 7; dice -= 1 << 8) {
			rearm_counted(v, draw_deadline());
			if (dice & 1 << 16)
				cancel_counted(v);
		}
		spin_unlock(&v->lock);
		break;
	case 1:
	case 2:
		operate_in_callback(&shared[(dice >> 8) % nr_shared], dice);
		break;
	case 3:
		udelay(get_random_u32() % 50);
		break;
	}
	atomic_dec(&v->running);
}

/* Waits for the callback, without the lock. */
static void stop_victim(struct victim *v)
	__must_hold(&v->lock)
{
	v->stopping = true;
	spin_unlock_bh(&v->lock);
	if (twheel_cancel_sync(&v->timer))
		atomic_long_inc(&v->cancelled);
	spin_lock_bh(&v->lock);
	v->stopping = false;
}

/* Does any of the operations. */
static void operate_at_random(struct victim *v)
	__must_hold(&v->lock)
{
	switch (get_random_u32() % 4) {
	case 0:
		if (!twheel_add(&v->timer, draw_deadline()))
			atomic_long_inc(&v->armed);
		break;
	case 1:
		rearm_counted(v, draw_deadline());
		break;
	case 2:
		cancel_counted(v);
		break;
	default:
		stop_victim(v);
	}
}

/* Operates on a timer for which others compete. */
static void torture_shared(void)
{
	struct victim *v = &shared[get_random_u32() % nr_shared];

	spin_lock_bh(&v->lock);
	if (!v->stopping)
		operate_at_random(v);
	spin_unlock_bh(&v->lock);
}

/*
 * The earlier of the two deadlines may fire until it is known that the timer was
 * pending, and that no callback for an earlier arming is about to run.
 */
static void private_arm(struct victim *v, u64 deadline)
{
	u64 old = v->allowed;

	WRITE_ONCE(v->allowed, min(old, deadline));
	if (!twheel_rearm(&v->timer, deadline))
		atomic_long_inc(&v->armed);
	else if (atomic_long_read(&v->armed) - atomic_long_read(&v->cancelled) - 1 ==
		 atomic_long_read(&v->fired))
		WRITE_ONCE(v->allowed, deadline);
}

static void private_stop(struct victim *v)
{
	if (twheel_cancel_sync(&v->timer))
		atomic_long_inc(&v->cancelled);
	if (atomic_read(&v->running))
		FAULT("a callback runs on after twheel_cancel_sync()");
	WRITE_ONCE(v->allowed, U64_MAX);
}

/*
 * Arms a timer, moves to another CPU, and stops the timer at the moment it leaves the
 * wheel, when its callback is about to be called; or at the time it is due, so that it
 * leaves the wheel while it is being stopped.
 */
static void fight_duel(struct victim *v)
{
	/* A CPU may come or go meanwhile. */
	unsigned int cpu = data_race(cpumask_any_but(cpu_online_mask, raw_smp_processor_id()));
	const u64 tick = 1ULL << twheel_tick_shift();
	bool blind = get_random_u32() & 1;
	/* It takes some time to move to the other CPU. */
	u64 deadline = ktime_get_ns() + (blind ? 4 * tick : 0), end;

	private_arm(v, deadline);
	/* If the CPU goes offline now, there is no duel. */
	if (cpu >= nr_cpu_ids || set_cpus_allowed_ptr(current, cpumask_of(cpu)))
		return;
	end = blind ? ALIGN(deadline, tick) : ktime_get_ns() + 5 * NSEC_PER_MSEC;
	while (twheel_pending(&v->timer) && ktime_get_ns() < end)
		cpu_relax();
	private_stop(v);
}

static void torture_private(struct victim *v)
{
	switch (duels ? 0 : get_random_u32() % 64) {
	case 0:
		fight_duel(v);
		break;
	case 1 ... 8:
		if (twheel_cancel(&v->timer))
			atomic_long_inc(&v->cancelled);
		break;
	case 9 ... 16:
		private_stop(v);
		break;
	default:
		private_arm(v, draw_deadline());
	}
}

static void free_in_callback(struct twheel_timer *timer)
{
	atomic_long_inc(&short_fired);
	kfree(container_of(timer, struct victim, timer));
}

/* A timer that is freed by its callback, or here after a cancel. */
static void torture_short(void)
{
	bool forget = get_random_u32() & 1;
	struct victim *v = kzalloc(sizeof(*v), GFP_KERNEL);

	if (!v)
		return;
	if (forget) {
		twheel_timer_init(&v->timer, free_in_callback);
		twheel_add(&v->timer, ktime_get_ns() + get_random_u32() / 256);
	} else {
		twheel_timer_init(&v->timer, private_fired);
		twheel_add(&v->timer, draw_deadline());
		if (twheel_cancel_sync(&v->timer))
			atomic_long_inc(&short_cancelled);
		else
			atomic_long_inc(&short_fired);
		kfree(v);
	}
	atomic_long_inc(&short_armed);
}

/* Checks an account that nobody updates any more, and adds it to the sums. */
static void check_account(struct victim *v, const char *kind)
{
	long a, f, c;

	if (twheel_cancel_sync(&v->timer))
		atomic_long_inc(&v->cancelled);
	a = atomic_long_read(&v->armed);
	f = atomic_long_read(&v->fired);
	c = atomic_long_read(&v->cancelled);
	if (a != f + c)
		FAULT("%s timer: %ld armed, %ld fired, %ld cancelled", kind, a, f, c);
	if (twheel_pending(&v->timer))
		FAULT("%s timer: pending after twheel_cancel_sync()", kind);
	armings += a;
	fired += f;
	cancelled += c;
}

/**
 * struct torturer - a thread and its timers
 * @task:	the thread
 * @timers:	its private timers
 */
struct torturer {
	struct task_struct	*task;
	struct victim		timers[];
};

static int run_torturer(void *arg)
{
	struct torturer *t = arg;
	unsigned int n = 0;

	while (!kthread_should_stop()) {
		switch (get_random_u32() % 8) {
		case 0:
			torture_short();
			break;
		case 1:
		case 2:
		case 3:
			torture_shared();
			break;
		default:
			torture_private(&t->timers[get_random_u32() % nr_private]);
		}
		if (++n % 64 == 0) {
			atomic_long_add(64, &nr_operations);
			if (n % 4096 == 0)
				usleep_range(100, 3000);
			cond_resched();
		}
	}
	return 0;
}

static struct torturer *torturer_create(unsigned int cpu)
{
	struct torturer *t;
	unsigned int i;

	t = kvzalloc(struct_size(t, timers, nr_private), GFP_KERNEL);
	if (!t)
		return NULL;
	for (i = 0; i < nr_private; i++) {
		twheel_timer_init(&t->timers[i].timer, private_fired);
		t->timers[i].allowed = U64_MAX;
	}
	/* Not bound: when its CPU goes offline, the thread continues elsewhere. */
	t->task = kthread_create(run_torturer, t, "twheel_torture/%u", cpu);
	if (IS_ERR(t->task)) {
		kvfree(t);
		return NULL;
	}
	set_cpus_allowed_ptr(t->task, cpumask_of(cpu));
	wake_up_process(t->task);
	return t;
}

static void torturer_destroy(struct torturer *t)
{
	unsigned int i;

	if (!t)
		return;
	kthread_stop(t->task);
	for (i = 0; i < nr_private; i++)
		check_account(&t->timers[i], "private");
	kvfree(t);
}

/* Takes a random CPU offline and back online, if it can be. */
static void flip_cpu(void)
{
	unsigned int cpu = get_random_u32() % nr_cpu_ids;

	if (!cpu || !cpu_online(cpu) || num_online_cpus() < 2)
		return;
	if (remove_cpu(cpu))
		return;
	cpus_taken_off++;
	msleep(20);
	if (add_cpu(cpu))
		FAULT("CPU %u does not come back", cpu);
}

static void pass_time(void)
{
	unsigned long end = jiffies + seconds * HZ;

	while (time_before(jiffies, end) && !signal_pending(current)) {
		if (hotplug)
			flip_cpu();
		msleep_interruptible(100);
	}
}

static void check_short(void)
{
	long a = atomic_long_read(&short_armed), f, c;
	unsigned int patience = 1000;

	/* The forgotten timers fire within 17 ms, if the machine is not too busy. */
	do {
		msleep(20);
		f = atomic_long_read(&short_fired);
		c = atomic_long_read(&short_cancelled);
	} while (a != f + c && --patience);
	if (a != f + c)
		FAULT("short-lived timers: %ld armed, %ld fired, %ld cancelled", a, f, c);
	short_lived = a;
	armings += a;
	fired += f;
	cancelled += c;
}

static int torture_all(void)
{
	unsigned int nr = threads_per_cpu * nr_cpu_ids, n = 0, cpu, i;
	struct torturer **t;

	t = kcalloc(nr, sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	for (i = 0; i < threads_per_cpu; i++)
		for_each_online_cpu(cpu)
			t[n++] = torturer_create(cpu);
	pass_time();
	for (i = 0; i < n; i++)
		torturer_destroy(t[i]);
	kfree(t);
	return 0;
}

static void check_shared(void)
{
	unsigned int i;

	/* A callback that began before this may still arm another timer, once. */
	WRITE_ONCE(stopping, true);
	for (i = 0; i < nr_shared; i++) {
		spin_lock_bh(&shared[i].lock);
		stop_victim(&shared[i]);
		spin_unlock_bh(&shared[i].lock);
	}
	for (i = 0; i < nr_shared; i++)
		check_account(&shared[i], "shared");
}

static int __init torture_init(void)
{
	unsigned int i;
	int ret;

	if (!nr_shared || !nr_private || !threads_per_cpu)
		return -EINVAL;
	shared = kvcalloc(nr_shared, sizeof(*shared), GFP_KERNEL);
	if (!shared)
		return -ENOMEM;
	for (i = 0; i < nr_shared; i++) {
		spin_lock_init(&shared[i].lock);
		twheel_timer_init(&shared[i].timer, shared_fired);
	}
	ret = torture_all();
	if (ret)
		goto out;
	check_shared();
	check_short();
	operations = atomic_long_read(&nr_operations);
	errors = atomic_long_read(&nr_errors);
	pr_info("%lu operations, %lu armings = %lu fired + %lu cancelled, %lu short-lived, CPU off %lu times, %lu errors\n",
		operations, armings, fired, cancelled, short_lived, cpus_taken_off, errors);
	if (errors)
		ret = -EIO;
out:
	kvfree(shared);
	return ret;
}

static void __exit torture_exit(void)
{
}

module_init(torture_init);
module_exit(torture_exit);

MODULE_DESCRIPTION("Torture of twheel's timers");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
