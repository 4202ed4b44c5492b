// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API: the calls other than add, re-arm and cancel
 */
#include <linux/bitops.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "test.h"

/* ---- initialisation */

static atomic_t static_called;

static void count_call(struct twheel_timer *timer)
{
	atomic_inc(&static_called);
}

static DEFINE_TWHEEL_TIMER(static_timer, count_call);

static struct {
	int			other;
	struct twheel_timer	timer;
} with_timer = { .timer = TWHEEL_TIMER_INITIALIZER(count_call) };

static void arm_static(void *timer)
{
	EXPECT(twheel_add(timer, 0) == 0);
}

/* Nothing was called for it before, on any CPU. */
void test_static(void)
{
	EXPECT(!twheel_pending(&static_timer));
	EXPECT(twheel_cancel(&static_timer) == 0);
	on_cpu(other_cpu(), arm_static, &static_timer);
	EXPECT(WAIT_FOR(atomic_read(&static_called) == 1));
	EXPECT(twheel_cancel_sync(&static_timer) == 0);

	EXPECT(twheel_rearm(&with_timer.timer, in_ns(HOUR_NS)) == 0);
	EXPECT(twheel_pending(&with_timer.timer));
	EXPECT(twheel_rearm(&with_timer.timer, 0) == 1);
	EXPECT(WAIT_FOR(atomic_read(&static_called) == 2));
	EXPECT(twheel_cancel_sync(&with_timer.timer) == 0);
}

/**
 * struct on_stack - a timer that is gone when its function returns
 * @timer:	the timer
 * @called:	number of calls
 */
struct on_stack {
	struct twheel_timer	timer;
	atomic_t		called;
};

static void on_stack_called(struct twheel_timer *timer)
{
	atomic_inc(&container_of(timer, struct on_stack, timer)->called);
}

static noinline void use_on_stack(u64 expires, int pending)
{
	struct on_stack on_stack = { };

	twheel_timer_init_on_stack(&on_stack.timer, on_stack_called);
	EXPECT(twheel_add(&on_stack.timer, expires) == 0);
	EXPECT(pending || WAIT_FOR(atomic_read(&on_stack.called) == 1));
	EXPECT(twheel_cancel_sync(&on_stack.timer) == pending);
	twheel_timer_destroy_on_stack(&on_stack.timer);
}

void test_on_stack(void)
{
	use_on_stack(0, 0);
	use_on_stack(in_ns(HOUR_NS), 1);
	use_on_stack(0, 0);
}

/* ---- when a timer is due */

void test_expires(void)
{
	const u64 deadline = in_ns(HOUR_NS);
	static struct probe probe;
	u64 last;

	probe_init(&probe);
	EXPECT(twheel_add(&probe.timer, deadline) == 0);
	EXPECT(twheel_expires(&probe.timer) == deadline);
	EXPECT(twheel_rearm(&probe.timer, deadline + 1) == 1);
	EXPECT(twheel_expires(&probe.timer) == deadline + 1);
	EXPECT(rearm_on(other_cpu(), &probe, deadline - 1) == 1);
	EXPECT(twheel_expires(&probe.timer) == deadline - 1);
	EXPECT(twheel_cancel(&probe.timer) == 1);
	EXPECT(twheel_expires(&probe.timer) == deadline - 1);
	last = in_ns(NSEC_PER_MSEC);
	EXPECT(probe_add(&probe, last) == 0);
	EXPECT(probe_is(&probe, 1));
	EXPECT(twheel_expires(&probe.timer) == last);
	EXPECT(twheel_cancel_sync(&probe.timer) == 0);
}

/* Was it armed for @delay after a time not before @begin? */
static bool is_rel(const struct probe *probe, u64 begin, u64 delay)
{
	return twheel_expires(&probe->timer) >= begin + delay &&
	       twheel_expires(&probe->timer) <= ktime_get_ns() + delay;
}

void test_relative(void)
{
	static struct probe probe;
	u64 begin;

	probe_init(&probe);
	begin = ktime_get_ns();
	EXPECT(twheel_add_rel(&probe.timer, HOUR_NS) == 0);
	EXPECT(is_rel(&probe, begin, HOUR_NS));
	EXPECT(twheel_add_rel(&probe.timer, 0) == -EBUSY);
	EXPECT(is_rel(&probe, begin, HOUR_NS));
	begin = ktime_get_ns();
	EXPECT(twheel_rearm_rel(&probe.timer, 2 * HOUR_NS) == 1);
	EXPECT(is_rel(&probe, begin, 2 * HOUR_NS));
	EXPECT(twheel_rearm_rel(&probe.timer, U64_MAX) == 1);
	EXPECT(twheel_expires(&probe.timer) == TWHEEL_EXPIRES_MAX);
	probe.least = in_ns(5 * NSEC_PER_MSEC);
	EXPECT(twheel_rearm_rel(&probe.timer, 5 * NSEC_PER_MSEC) == 1);
	EXPECT(probe_is(&probe, 1));
	probe.least = ktime_get_ns();
	EXPECT(twheel_add_rel(&probe.timer, 0) == 0);
	EXPECT(probe_is(&probe, 2));
	EXPECT(twheel_add_rel(&probe.timer, U64_MAX) == 0);
	EXPECT(twheel_expires(&probe.timer) == TWHEEL_EXPIRES_MAX);
	EXPECT(twheel_cancel_sync(&probe.timer) == 1);
}

/* Is @time the roundest of all times from @expires to @last? */
static bool is_roundest(u64 time, u64 expires, u64 last)
{
	unsigned int zeros = __ffs64(time);
	u64 rounder = (((expires - 1) >> (zeros + 1)) + 1) << (zeros + 1);

	return time >= expires && time <= last && rounder > last;
}

void test_slack(void)
{
	u64 expires, slack;
	unsigned int i;

	EXPECT(twheel_slack(0, 1000) == 0);
	EXPECT(twheel_slack(11, 0) == 11);
	EXPECT(twheel_slack(11, 1) == 12);
	EXPECT(twheel_slack(11, 4) == 12);
	EXPECT(twheel_slack(11, 5) == 16);
	EXPECT(twheel_slack(16, 15) == 16);
	EXPECT(twheel_slack(16, 16) == 32);
	EXPECT(twheel_slack(1, U64_MAX) == 1ULL << 62);
	EXPECT(twheel_slack(TWHEEL_EXPIRES_MAX, U64_MAX) == TWHEEL_EXPIRES_MAX);
	EXPECT(twheel_slack(U64_MAX, 5) == TWHEEL_EXPIRES_MAX);
	for (i = 0; i < 10000; i++) {
		expires = 1 + (get_random_u64() >> 2 >> get_random_u32_below(62));
		slack = get_random_u64() >> 2 >> get_random_u32_below(62);
		EXPECT(is_roundest(twheel_slack(expires, slack), expires, expires + slack));
	}
}

/* ---- where a timer is due */

void test_add_on(void)
{
	static struct probe probe;
	unsigned int cpu, late = 0;
	int times = 0, i;

	probe_init(&probe);
	for (i = 0; i < 10; i++) {
		for_each_online_cpu(cpu) {
			probe.least = in_ns((i + 3) * NSEC_PER_MSEC);
			EXPECT(twheel_add_on(&probe.timer, probe.least, cpu) == 0);
			EXPECT(twheel_pending(&probe.timer));
			EXPECT(twheel_expires(&probe.timer) == probe.least);
			EXPECT(probe_is(&probe, ++times));
			EXPECT(READ_ONCE(probe.cpu) == cpu);
			late += probe.at - probe.least >= tick_ns();
			EXPECT(twheel_cancel_sync(&probe.timer) == 0);
		}
	}
	/* As in test_punctual(). */
	if (simulated)
		EXPECT(4 * late < times);
	for_each_online_cpu(cpu) {
		EXPECT(twheel_add_on(&probe.timer, 0, cpu) == 0);
		EXPECT(probe_is(&probe, ++times));
		EXPECT(READ_ONCE(probe.cpu) == cpu);
		EXPECT(twheel_cancel_sync(&probe.timer) == 0);
		EXPECT(twheel_add_on(&probe.timer, U64_MAX, cpu) == 0);
		EXPECT(twheel_expires(&probe.timer) == TWHEEL_EXPIRES_MAX);
		EXPECT(twheel_cancel(&probe.timer) == 1);
	}
}

/* Armed there, and from then on like any other timer. */
void test_add_on_and_then(void)
{
	unsigned int other = other_cpu();
	static struct probe probe;
	int times = 0;

	probe_init(&probe);
	EXPECT(twheel_add_on(&probe.timer, in_ns(HOUR_NS), other) == 0);
	EXPECT(cancel_on(other, &probe) == 1);
	EXPECT(twheel_add_on(&probe.timer, in_ns(HOUR_NS), other) == 0);
	EXPECT(rearm_on(raw_smp_processor_id(), &probe, in_ns(NSEC_PER_MSEC)) == 1);
	EXPECT(probe_is(&probe, ++times));
	EXPECT(twheel_add_on(&probe.timer, in_ns(HOUR_NS), other) == 0);
	EXPECT(rearm_on(other, &probe, in_ns(2 * HOUR_NS)) == 1);
	EXPECT(rearm_on(other, &probe, in_ns(NSEC_PER_MSEC)) == 1);
	EXPECT(probe_is(&probe, ++times));
	EXPECT(READ_ONCE(probe.cpu) == other);
	EXPECT(twheel_cancel_sync(&probe.timer) == 0);
}

static unsigned int impossible_cpu(void)
{
	unsigned int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (!cpu_possible(cpu))
			break;
	return cpu;
}

/* A refused call changes nothing. */
void test_add_on_refused(void)
{
	const u64 deadline = in_ns(HOUR_NS);
	unsigned int other = other_cpu();
	static struct probe probe;

	probe_init(&probe);
	EXPECT(twheel_add(&probe.timer, deadline) == 0);
	EXPECT(twheel_add_on(&probe.timer, 0, other) == -EBUSY);
	EXPECT(twheel_cancel(&probe.timer) == 1);
	EXPECT(twheel_add_on(&probe.timer, 0, nr_cpu_ids) == -EINVAL);
	EXPECT(twheel_add_on(&probe.timer, 0, UINT_MAX) == -EINVAL);
	EXPECT(twheel_add_on(&probe.timer, 0, impossible_cpu()) == -EINVAL);
	if (other != raw_smp_processor_id() && !remove_cpu(other)) {
		EXPECT(twheel_add_on(&probe.timer, 0, other) == -ENODEV);
		EXPECT(add_cpu(other) == 0);
	}
	EXPECT(!twheel_pending(&probe.timer));
	EXPECT(twheel_expires(&probe.timer) == deadline);
	EXPECT(atomic_read(&probe.fired) == 0);
}

/**
 * struct mover - a timer whose callback arms it on a CPU
 * @timer:	the timer
 * @go_on:	the callback runs until this is set
 * @running:	the callback is running
 * @to:		the CPU
 * @ret:	the result
 */
struct mover {
	struct twheel_timer	timer;
	atomic_t		go_on;
	atomic_t		running;
	unsigned int		to;
	int			ret;
};

static void mover_called(struct twheel_timer *timer)
{
	struct mover *mover = container_of(timer, struct mover, timer);

	mover->ret = twheel_add_on(timer, in_ns(HOUR_NS), mover->to);
	atomic_inc(&mover->running);
	while (!atomic_read(&mover->go_on))
		cpu_relax();
}

static void mover_begins_anew(struct twheel_timer *timer)
{
	twheel_timer_init(timer, mover_called);
	mover_called(timer);
}

static void mover_run(struct mover *mover, unsigned int cpu, unsigned int to)
{
	atomic_set(&mover->go_on, 0);
	atomic_set(&mover->running, 0);
	mover->to = to;
	EXPECT(twheel_add_on(&mover->timer, 0, cpu) == 0);
	EXPECT(WAIT_FOR(atomic_read(&mover->running)));
}

/* A timer never runs on two CPUs at the same time, so it stays where its callback is running. */
void test_add_on_while_it_runs(void)
{
	unsigned int here = cpumask_first(cpu_online_mask);
	unsigned int other = cpumask_any_but(cpu_online_mask, here);
	static struct mover mover;

	if (num_online_cpus() < 2) {
		skip("takes two CPUs");
		return;
	}
	/* If it slept on the other CPU, it could not run there before the callback is over. */
	set_cpus_allowed_ptr(current, cpumask_of(here));
	twheel_timer_init(&mover.timer, mover_called);
	mover_run(&mover, other, here);
	EXPECT(mover.ret == -EAGAIN);
	EXPECT(twheel_add_on(&mover.timer, in_ns(HOUR_NS), here) == -EAGAIN);
	EXPECT(!twheel_pending(&mover.timer));
	EXPECT(twheel_add_on(&mover.timer, in_ns(HOUR_NS), other) == 0);
	EXPECT(twheel_cancel(&mover.timer) == 1);
	atomic_set(&mover.go_on, 1);
	EXPECT(twheel_cancel_sync(&mover.timer) == 0);

	mover_run(&mover, other, other);
	EXPECT(mover.ret == 0);
	EXPECT(twheel_pending(&mover.timer));
	atomic_set(&mover.go_on, 1);
	EXPECT(twheel_cancel_sync(&mover.timer) == 1);

	/* A new timer cannot be distinguished from the one previously at that address. */
	twheel_timer_init(&mover.timer, mover_begins_anew);
	mover_run(&mover, other, here);
	EXPECT(mover.ret == -EAGAIN);
	EXPECT(twheel_add_on(&mover.timer, in_ns(HOUR_NS), here) == -EAGAIN);
	atomic_set(&mover.go_on, 1);
	EXPECT(twheel_cancel_sync(&mover.timer) == 0);
	EXPECT(twheel_add_on(&mover.timer, in_ns(HOUR_NS), here) == 0);
	EXPECT(twheel_cancel(&mover.timer) == 1);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* ---- shutdown */

/* Checks that nothing arms the timer, from this CPU or another. */
static void expect_shut(struct probe *probe, unsigned int other)
{
	EXPECT(!twheel_pending(&probe->timer));
	EXPECT(twheel_add(&probe->timer, 0) == -ESHUTDOWN);
	EXPECT(twheel_add_rel(&probe->timer, 0) == -ESHUTDOWN);
	EXPECT(twheel_add_on(&probe->timer, 0, other) == -ESHUTDOWN);
	EXPECT(twheel_rearm(&probe->timer, 0) == -ESHUTDOWN);
	EXPECT(twheel_rearm(&probe->timer, in_ns(HOUR_NS)) == -ESHUTDOWN);
	EXPECT(twheel_rearm_rel(&probe->timer, 0) == -ESHUTDOWN);
	EXPECT(add_on(other, probe, 0) == -ESHUTDOWN);
	EXPECT(rearm_on(other, probe, in_ns(HOUR_NS)) == -ESHUTDOWN);
	EXPECT(twheel_cancel(&probe->timer) == 0);
	EXPECT(cancel_on(other, probe) == 0);
	EXPECT(twheel_cancel_sync(&probe->timer) == 0);
	EXPECT(twheel_shutdown(&probe->timer) == 0);
	EXPECT(twheel_shutdown_sync(&probe->timer) == 0);
	EXPECT(!twheel_pending(&probe->timer));
	usleep_range(3000, 4000);
	EXPECT(atomic_read(&probe->fired) == 0);
}

void test_shutdown(void)
{
	unsigned int cpu, other;
	static struct probe probe;

	for_each_online_cpu(cpu) {
		/* It does not matter where the timer was last. */
		other = cpu == raw_smp_processor_id() ? other_cpu() : raw_smp_processor_id();
		probe_init(&probe);
		EXPECT(twheel_shutdown(&probe.timer) == 0);
		expect_shut(&probe, other);

		probe_init(&probe);
		EXPECT(add_on(cpu, &probe, in_ns(HOUR_NS)) == 0);
		EXPECT(twheel_shutdown(&probe.timer) == 1);
		expect_shut(&probe, other);

		probe_init(&probe);
		EXPECT(add_on(cpu, &probe, in_ns(HOUR_NS)) == 0);
		EXPECT(twheel_shutdown_sync(&probe.timer) == 1);
		expect_shut(&probe, other);
	}
	/* Initialised again, it works like any other. */
	probe_init(&probe);
	EXPECT(probe_add(&probe, 0) == 0);
	EXPECT(probe_is(&probe, 1));
	EXPECT(twheel_shutdown_sync(&probe.timer) == 0);
}

/**
 * struct ended - a timer that its callback and all CPUs arm until it is shut down
 * @timer:	the timer
 * @lock:	serialises the calls for it
 * @shut:	whether it is shut down
 * @called:	number of calls
 * @inside:	whether a call is in progress
 * @wrong:	calls during a call, and wrong return values
 * @spin_us:	duration of a call
 */
struct ended {
	struct twheel_timer	timer;
	spinlock_t		lock;
	bool			shut;
	atomic_t		called;
	atomic_t		inside;
	atomic_t		wrong;
	unsigned int		spin_us;
};

/* Arms the timer, or finds it shut down. Returns whether it is shut down. */
static bool ended_arm(struct ended *ended)
{
	bool shut;
	int ret;

	spin_lock_bh(&ended->lock);
	ret = twheel_rearm(&ended->timer, in_ns(random_ns(20 * NSEC_PER_USEC)));
	shut = ended->shut;
	spin_unlock_bh(&ended->lock);
	if (shut != (ret == -ESHUTDOWN))
		atomic_inc(&ended->wrong);
	return shut;
}

static void ended_called(struct twheel_timer *timer)
{
	struct ended *ended = container_of(timer, struct ended, timer);

	if (atomic_inc_return(&ended->inside) != 1)
		atomic_inc(&ended->wrong);
	atomic_inc(&ended->called);
	ended_arm(ended);
	udelay(ended->spin_us);
	atomic_dec(&ended->inside);
}

static void ended_end(struct ended *ended)
{
	int called;

	EXPECT(WAIT_FOR(atomic_read(&ended->called) > 5));
	spin_lock_bh(&ended->lock);
	twheel_shutdown(&ended->timer);
	ended->shut = true;
	spin_unlock_bh(&ended->lock);
	EXPECT(twheel_shutdown_sync(&ended->timer) == 0);
	EXPECT(atomic_read(&ended->inside) == 0);
	called = atomic_read(&ended->called);
	EXPECT(!twheel_pending(&ended->timer));
	usleep_range(3000, 4000);
	EXPECT(atomic_read(&ended->called) == called);
}

static void arm_or_end(void *arg)
{
	struct ended *ended = arg;

	if (raw_smp_processor_id() == cpumask_first(cpu_online_mask)) {
		ended_end(ended);
		return;
	}
	while (!ended_arm(ended))
		cond_resched();
}

/* All callers that try to arm it get the error, and its callback is not called afterwards. */
void test_shutdown_while_it_is_armed(void)
{
	static struct ended ended;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		memset(&ended, 0, sizeof(ended));
		twheel_timer_init(&ended.timer, ended_called);
		spin_lock_init(&ended.lock);
		ended.spin_us = i % 5 * 50;
		EXPECT(twheel_add(&ended.timer, 0) == 0);
		on_all_cpus(arm_or_end, &ended);
		EXPECT(atomic_read(&ended.wrong) == 0);
	}
}
