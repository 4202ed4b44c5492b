// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API: calls that race with callbacks and with other CPUs
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "test.h"

/* ---- cancel_sync */

/**
 * struct spinner - a timer with a slow callback
 * @timer:	the timer
 * @begun:	the callback has begun
 * @ended:	the callback has ended
 */
struct spinner {
	struct twheel_timer	timer;
	atomic_t		begun;
	atomic_t		ended;
};

static void spinner_called(struct twheel_timer *timer)
{
	struct spinner *spinner = container_of(timer, struct spinner, timer);

	atomic_set(&spinner->begun, 1);
	mdelay(20);
	atomic_set(&spinner->ended, 1);
}

static void spinner_add(void *arg)
{
	struct spinner *spinner = arg;

	twheel_add(&spinner->timer, 0);
}

void test_cancel_sync_waits(void)
{
	static struct spinner spinner;
	unsigned int i;
	int ret;

	if (num_online_cpus() < 2) {
		skip("takes two CPUs");
		return;
	}
	for (i = 0; i < 10; i++) {
		atomic_set(&spinner.begun, 0);
		atomic_set(&spinner.ended, 0);
		twheel_timer_init(&spinner.timer, spinner_called);
		on_cpu(other_cpu(), spinner_add, &spinner);
		EXPECT(WAIT_FOR(atomic_read(&spinner.begun)));
		EXPECT(!twheel_pending(&spinner.timer));
		EXPECT(twheel_cancel(&spinner.timer) == 0);
		/* Re-armed meanwhile, and then cancelled: the callback continues. */
		if (i & 1)
			EXPECT(twheel_rearm(&spinner.timer, in_ns(HOUR_NS)) == 0);
		ret = twheel_cancel_sync(&spinner.timer);
		EXPECT(atomic_read(&spinner.ended));
		EXPECT(ret == (i & 1));
		EXPECT(!twheel_pending(&spinner.timer));
	}
}

static void repeater_add(void *arg)
{
	struct repeater *repeater = arg;

	twheel_rearm(&repeater->timer, 0);
}

/* Whenever it is called, nothing of the timer is running afterwards. */
void test_cancel_sync_against_rearming(void)
{
	static struct repeater repeater;
	unsigned int i, called;

	for (i = 0; i < 60; i++) {
		repeater_init(&repeater, i % 3 * 1000, INT_MAX);
		repeater.spin_us = i % 5 * 50;
		on_cpu(i & 1 ? other_cpu() : raw_smp_processor_id(), repeater_add, &repeater);
		EXPECT(WAIT_FOR(atomic_read(&repeater.called) > 2));
		udelay(random_ns(500));
		twheel_cancel_sync(&repeater.timer);
		called = atomic_read(&repeater.called);
		EXPECT(!twheel_pending(&repeater.timer));
		EXPECT(atomic_read(&repeater.inside) == 0);
		if (!(i % 4))
			usleep_range(2500, 3000);
		EXPECT(atomic_read(&repeater.called) == called);
		EXPECT(atomic_read(&repeater.wrong) == 0);
		/* The memory belongs to somebody else from here on. */
		memset(&repeater, 0x5a, sizeof(repeater));
	}
}

/**
 * struct restless - a timer whose callback arms and cancels it repeatedly, and leaves it armed
 * @timer:	the timer
 * @called:	number of calls
 * @inside:	a call is in progress
 */
struct restless {
	struct twheel_timer	timer;
	atomic_t		called;
	atomic_t		inside;
};

static void restless_called(struct twheel_timer *timer)
{
	struct restless *restless = container_of(timer, struct restless, timer);
	u64 now = ktime_get_ns();
	unsigned int i;

	atomic_set(&restless->inside, 1);
	atomic_inc(&restless->called);
	for (i = 0; i < 200; i++) {
		twheel_rearm(timer, now + NSEC_PER_SEC);
		twheel_rearm(timer, now + NSEC_PER_MSEC);
		if (i % 2)
			EXPECT(twheel_cancel(timer) == 1);
	}
	twheel_rearm(timer, 0);
	atomic_set(&restless->inside, 0);
}

static void restless_add(void *arg)
{
	struct restless *restless = arg;

	twheel_add(&restless->timer, 0);
}

/* A callback that has begun meanwhile has its timer to itself. */
void test_cancel_sync_against_anything(void)
{
	static struct restless restless;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		memset(&restless, 0, sizeof(restless));
		twheel_timer_init(&restless.timer, restless_called);
		on_cpu(other_cpu(), restless_add, &restless);
		EXPECT(WAIT_FOR(atomic_read(&restless.called) > 1));
		udelay(random_ns(1000));
		EXPECT(twheel_cancel_sync(&restless.timer) == 1);
		EXPECT(atomic_read(&restless.inside) == 0);
		EXPECT(!twheel_pending(&restless.timer));
	}
}

/* ---- a softirq during a re-arm */

/**
 * struct pushed - a timer that records which deadline it is called for
 * @timer:	the timer
 * @called_for:	its deadline when it was last called
 * @called:	number of calls
 * @lost:	times it was armed but then neither pending nor called for that deadline
 */
struct pushed {
	struct twheel_timer	timer;
	u64			called_for;
	unsigned int		called;
	unsigned int		lost;
};

static void pushed_called(struct twheel_timer *timer)
{
	struct pushed *pushed = container_of(timer, struct pushed, timer);

	WRITE_ONCE(pushed->called_for, twheel_expires(timer));
	WRITE_ONCE(pushed->called, pushed->called + 1);
}

/*
 * The deadline has always passed, by less than a tick: so it is still after the timer's slot, and
 * the timer is due when the wheel reaches that slot.
 */
static void pushed_rearm(void *arg)
{
	struct pushed *pushed = arg;
	u64 end = in_ns(NSEC_PER_SEC / 2), now, deadline;

	while ((now = ktime_get_ns()) < end) {
		deadline = now - tick_ns() / 2;
		if (!twheel_rearm(&pushed->timer, deadline) || twheel_pending(&pushed->timer))
			continue;
		twheel_cancel_sync(&pushed->timer);
		pushed->lost += READ_ONCE(pushed->called_for) != deadline;
	}
	twheel_cancel_sync(&pushed->timer);
}

/* Re-armed by the CPU whose wheel it is on, which expires it between two steps of the re-arm. */
void test_push_while_it_expires(void)
{
	static struct pushed pushed;

	twheel_timer_init(&pushed.timer, pushed_called);
	on_cpu(raw_smp_processor_id(), pushed_rearm, &pushed);
	EXPECT(pushed.called > 0);
	EXPECT(pushed.lost == 0);
}

/* ---- between CPUs */

void test_from_one_cpu_to_another(void)
{
	static struct probe probe;
	unsigned int a, b;
	int times = 0;

	probe_init(&probe);
	for_each_online_cpu(a) {
		for_each_online_cpu(b) {
			EXPECT(add_on(a, &probe, in_ns(HOUR_NS)) == 0);
			EXPECT(cancel_on(b, &probe) == 1);
			EXPECT(!twheel_pending(&probe.timer));

			EXPECT(add_on(a, &probe, in_ns(HOUR_NS)) == 0);
			EXPECT(rearm_on(b, &probe, in_ns(2 * NSEC_PER_MSEC)) == 1);
			EXPECT(probe_is(&probe, ++times));

			EXPECT(add_on(a, &probe, in_ns(HOUR_NS)) == 0);
			EXPECT(rearm_on(b, &probe, in_ns(2 * HOUR_NS)) == 1);
			EXPECT(rearm_on(a, &probe, in_ns(NSEC_PER_MSEC)) == 1);
			EXPECT(probe_is(&probe, ++times));
		}
	}
	twheel_cancel_sync(&probe.timer);
	EXPECT(atomic_read(&probe.fired) == times);
}

static void repeater_move(void *arg)
{
	struct repeater *repeater = arg;
	unsigned int i;

	for (i = 0; i < 2000; i++) {
		spin_lock_bh(&repeater->lock);
		twheel_rearm(&repeater->timer, in_ns(random_ns(50 * NSEC_PER_USEC)));
		spin_unlock_bh(&repeater->lock);
		cpu_relax();
	}
}

/* Armed from another CPU while its callback runs: never two callbacks at a time. */
void test_rearm_while_it_runs(void)
{
	static struct repeater repeater;

	repeater_init(&repeater, 0, 0);
	repeater.spin_us = 100;
	on_all_cpus(repeater_move, &repeater);
	EXPECT(WAIT_FOR(!twheel_pending(&repeater.timer)));
	EXPECT(twheel_cancel_sync(&repeater.timer) == 0);
	EXPECT(atomic_read(&repeater.called) > 0);
	EXPECT(atomic_read(&repeater.wrong) == 0);
}

/* ---- everything at once */

#define STORM_TIMERS 64

/**
 * struct storm - timers that all CPUs operate on, and their account
 * @timers:	the timers
 * @armed:	times a timer became armed
 * @cancelled:	times a timer was cancelled while armed
 */
struct storm {
	struct repeater	timers[STORM_TIMERS];
	atomic_long_t	armed;
	atomic_long_t	cancelled;
};

/* Stops a timer. The lock is held on entry, and dropped while waiting for the callback. */
static bool storm_stop(struct repeater *repeater)
{
	bool pending;

	repeater->stopping = true;
	spin_unlock_bh(&repeater->lock);
	pending = twheel_cancel_sync(&repeater->timer);
	spin_lock_bh(&repeater->lock);
	repeater->stopping = false;
	return pending;
}

/* Does any of the operations. */
static void storm_operate(struct storm *storm, struct repeater *repeater, u32 dice)
{
	u64 deadline = in_ns(dice >> 12);

	switch (dice >> 8 & 7) {
	case 0:
		if (!twheel_add(&repeater->timer, deadline))
			atomic_long_inc(&storm->armed);
		break;
	case 1:
		if (twheel_cancel(&repeater->timer))
			atomic_long_inc(&storm->cancelled);
		break;
	case 2:
		if (storm_stop(repeater))
			atomic_long_inc(&storm->cancelled);
		break;
	default:
		if (!twheel_rearm(&repeater->timer, deadline))
			atomic_long_inc(&storm->armed);
	}
}

static void storm_step(struct storm *storm, u32 dice)
{
	struct repeater *repeater = &storm->timers[dice % STORM_TIMERS];

	spin_lock_bh(&repeater->lock);
	if (!repeater->stopping)
		storm_operate(storm, repeater, dice);
	spin_unlock_bh(&repeater->lock);
}

static int storm_thread(void *arg)
{
	unsigned int i;

	while (!kthread_should_stop()) {
		for (i = 0; i < 32; i++)
			storm_step(arg, get_random_u32());
		cond_resched();
	}
	return 0;
}

static void storm_account(struct storm *storm)
{
	long called = 0, wrong = 0;
	unsigned int i;

	for (i = 0; i < STORM_TIMERS; i++) {
		if (twheel_cancel_sync(&storm->timers[i].timer))
			atomic_long_inc(&storm->cancelled);
		called += atomic_read(&storm->timers[i].called);
		wrong += atomic_read(&storm->timers[i].wrong);
	}
	EXPECT(wrong == 0);
	EXPECT(called > 0);
	EXPECT(atomic_long_read(&storm->cancelled) > 0);
	EXPECT(atomic_long_read(&storm->armed) ==
	       atomic_long_read(&storm->cancelled) + called);
}

void test_storm(void)
{
	struct task_struct **threads = kcalloc(nr_cpu_ids, sizeof(*threads), GFP_KERNEL);
	struct storm *storm = kzalloc(sizeof(*storm), GFP_KERNEL);
	unsigned int cpu, i;

	EXPECT(threads && storm);
	if (!threads || !storm)
		goto out;
	for (i = 0; i < STORM_TIMERS; i++)
		repeater_init(&storm->timers[i], 0, 0);
	for_each_online_cpu(cpu) {
		threads[cpu] = kthread_create_on_cpu(storm_thread, storm, cpu, "twheel_test/%u");
		EXPECT(!IS_ERR(threads[cpu]));
		if (!IS_ERR(threads[cpu]))
			wake_up_process(threads[cpu]);
	}
	msleep(1000);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (!IS_ERR_OR_NULL(threads[cpu]))
			kthread_stop(threads[cpu]);
	storm_account(storm);
out:
	kfree(storm);
	kfree(threads);
}
