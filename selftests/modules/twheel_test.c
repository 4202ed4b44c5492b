// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API
 *
 * Loading runs them. /sys/kernel/debug/twheel_test/results then has the results in
 * TAP; kernel.sh reads them and unloads the module. The file "hotplug" arms timers
 * on a CPU that the script takes away; see hotplug_write().
 */
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "twheel.h"

/* Hang guard: nothing that works takes that long. */
#define GUARD_NS	(20ULL * NSEC_PER_SEC)
#define HOUR_NS		(3600ULL * NSEC_PER_SEC)

/**
 * struct test_case - a test and how it went
 * @name:	its name in the results
 * @run:	does it
 * @fault:	the first expectation that did not hold, or NULL
 * @line:	where that stands
 * @skipped:	why it could not be done, or NULL
 */
struct test_case {
	const char	*name;
	void		(*run)(void);
	const char	*fault;
	int		line;
	const char	*skipped;
};

static struct test_case *running;

static void expect(bool holds, const char *what, int line)
{
	if (holds || running->fault)
		return;
	running->fault = what;
	running->line = line;
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

#define WAIT_FOR(condition)						\
({									\
	u64 __end = ktime_get_ns() + GUARD_NS;				\
									\
	while (!(condition) && ktime_get_ns() < __end)			\
		usleep_range(200, 400);					\
	(condition);							\
})

static u64 in_ns(u64 ns)
{
	return ktime_get_ns() + ns;
}

static u64 tick_ns(void)
{
	return 1ULL << twheel_tick_shift();
}

static u64 random_ns(u32 below)
{
	return get_random_u32_below(below);
}

/**
 * struct probe - a timer that notes how it is called
 * @timer:	the timer
 * @least:	not to be called before
 * @fired:	number of calls
 * @early:	calls before @least
 * @cpu:	where it was called last
 * @wrong:	calls in another context than promised
 */
struct probe {
	struct twheel_timer	timer;
	u64			least;
	atomic_t		fired;
	atomic_t		early;
	unsigned int		cpu;
	atomic_t		wrong;
};

static void probe_called(struct twheel_timer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);

	if (ktime_get_ns() < READ_ONCE(probe->least))
		atomic_inc(&probe->early);
	if (!in_softirq() || in_hardirq() || irqs_disabled() || twheel_pending(timer))
		atomic_inc(&probe->wrong);
	WRITE_ONCE(probe->cpu, raw_smp_processor_id());
	atomic_inc(&probe->fired);
}

static void probe_init(struct probe *probe)
{
	memset(probe, 0, sizeof(*probe));
	twheel_timer_init(&probe->timer, probe_called);
}

static int probe_add(struct probe *probe, u64 deadline)
{
	WRITE_ONCE(probe->least, deadline);
	return twheel_add(&probe->timer, deadline);
}

static int probe_rearm(struct probe *probe, u64 deadline)
{
	WRITE_ONCE(probe->least, deadline);
	return twheel_rearm(&probe->timer, deadline);
}

/* Was it called @times times, never early, always as promised? */
static bool probe_is(struct probe *probe, int times)
{
	return WAIT_FOR(atomic_read(&probe->fired) >= times) &&
	       atomic_read(&probe->fired) == times && !atomic_read(&probe->early) &&
	       !atomic_read(&probe->wrong);
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

static void on_cpu(unsigned int cpu, void (*function)(void *arg), void *arg)
{
	struct call call = { .function = function, .arg = arg };

	INIT_WORK_ONSTACK(&call.work, call_work);
	schedule_work_on(cpu, &call.work);
	flush_work(&call.work);
	destroy_work_on_stack(&call.work);
}

/**
 * struct order - what a CPU shall do to a timer
 * @probe:	the timer
 * @deadline:	for add and re-arm
 * @ret:	what the call returned
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

static int add_on(unsigned int cpu, struct probe *probe, u64 deadline)
{
	struct order order = { .probe = probe, .deadline = deadline };

	on_cpu(cpu, order_add, &order);
	return order.ret;
}

static int rearm_on(unsigned int cpu, struct probe *probe, u64 deadline)
{
	struct order order = { .probe = probe, .deadline = deadline };

	on_cpu(cpu, order_rearm, &order);
	return order.ret;
}

static int cancel_on(unsigned int cpu, struct probe *probe)
{
	struct order order = { .probe = probe };

	on_cpu(cpu, order_cancel, &order);
	return order.ret;
}

/* A CPU other than this one's, or this one if there is none. */
static unsigned int other_cpu(void)
{
	unsigned int cpu, here = raw_smp_processor_id();

	for_each_online_cpu(cpu)
		if (cpu != here)
			return cpu;
	return here;
}

/* ---- one timer */

static void test_size(void)
{
	if (IS_ENABLED(CONFIG_LOCKDEP)) {
		running->skipped = "lockdep adds a map to each timer";
		return;
	}
	EXPECT(sizeof(struct twheel_timer) <= 40);
	EXPECT(sizeof(struct twheel_timer) <= sizeof(struct timer_list));
}

static void test_return_values(void)
{
	struct probe probe;
	u64 deadline = in_ns(HOUR_NS);

	probe_init(&probe);
	EXPECT(!twheel_pending(&probe.timer));
	EXPECT(twheel_cancel(&probe.timer) == 0);
	EXPECT(twheel_cancel_sync(&probe.timer) == 0);
	EXPECT(twheel_add(&probe.timer, deadline) == 0);
	EXPECT(twheel_pending(&probe.timer));
	EXPECT(twheel_add(&probe.timer, deadline + 1) == -EBUSY);
	EXPECT(twheel_add(&probe.timer, 0) == -EBUSY);
	EXPECT(probe.timer.node.deadline == deadline);
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

static void test_expiry(void)
{
	struct probe probe;
	unsigned int cpu;
	int times = 0;

	probe_init(&probe);
	for_each_online_cpu(cpu) {
		EXPECT(add_on(cpu, &probe, in_ns(5 * NSEC_PER_MSEC)) == 0);
		EXPECT(probe_is(&probe, ++times));
		/* It is called on the CPU that armed it. */
		EXPECT(READ_ONCE(probe.cpu) == cpu);
		EXPECT(!twheel_pending(&probe.timer));
		EXPECT(twheel_cancel(&probe.timer) == 0);
	}
	twheel_cancel_sync(&probe.timer);
}

static void test_limits_of_time(void)
{
	u64 past[] = { 0, 1, ktime_get_ns() / 2, ktime_get_ns() };
	struct probe probe;
	unsigned int i;

	probe_init(&probe);
	for (i = 0; i < ARRAY_SIZE(past); i++) {
		EXPECT(probe_add(&probe, past[i]) == 0);
		EXPECT(probe_is(&probe, i + 1));
	}
	EXPECT(twheel_add(&probe.timer, U64_MAX) == 0);
	EXPECT(probe.timer.node.deadline == TWHEEL_EXPIRES_MAX);
	EXPECT(twheel_rearm(&probe.timer, TWHEEL_EXPIRES_MAX) == 1);
	EXPECT(twheel_rearm(&probe.timer, TWHEEL_EXPIRES_MAX + 1) == 1);
	EXPECT(probe.timer.node.deadline == TWHEEL_EXPIRES_MAX);
	usleep_range(5000, 6000);
	EXPECT(atomic_read(&probe.fired) == ARRAY_SIZE(past));
	EXPECT(probe_rearm(&probe, in_ns(NSEC_PER_MSEC)) == 1);
	EXPECT(probe_is(&probe, ARRAY_SIZE(past) + 1));
	twheel_cancel_sync(&probe.timer);
}

static void test_rearm(void)
{
	struct probe probe;
	unsigned int i;
	u64 last;

	probe_init(&probe);
	/* Later, again and again. */
	EXPECT(probe_add(&probe, in_ns(HOUR_NS)) == 0);
	for (i = 0; i < 1000; i++)
		EXPECT(probe_rearm(&probe, in_ns(HOUR_NS + i * NSEC_PER_SEC)) == 1);
	/* Earlier, again and again. */
	for (i = 0; i < 1000; i++)
		EXPECT(probe_rearm(&probe, in_ns(HOUR_NS - i * NSEC_PER_SEC)) == 1);
	last = in_ns(10 * NSEC_PER_MSEC);
	EXPECT(probe_rearm(&probe, last) == 1);
	EXPECT(probe_is(&probe, 1));
	EXPECT(probe.timer.node.deadline == last);
	twheel_cancel_sync(&probe.timer);
}

/* ---- what a callback may do */

/**
 * struct repeater - a timer that arms itself
 * @timer:	the timer
 * @distance:	to the next time
 * @left:	how often it still arms itself
 * @called:	number of calls
 * @inside:	whether a call is under way
 * @wrong:	calls during a call, and failures to arm
 * @spin_us:	how long a call takes
 */
struct repeater {
	struct twheel_timer	timer;
	u64			distance;
	atomic_t		left;
	atomic_t		called;
	atomic_t		inside;
	atomic_t		wrong;
	unsigned int		spin_us;
};

static void repeater_called(struct twheel_timer *timer)
{
	struct repeater *repeater = container_of(timer, struct repeater, timer);

	if (atomic_inc_return(&repeater->inside) != 1)
		atomic_inc(&repeater->wrong);
	atomic_inc(&repeater->called);
	if (repeater->spin_us)
		udelay(repeater->spin_us);
	if (atomic_dec_if_positive(&repeater->left) >= 0 &&
	    twheel_rearm(timer, in_ns(READ_ONCE(repeater->distance))))
		atomic_inc(&repeater->wrong);
	atomic_dec(&repeater->inside);
}

static void repeater_init(struct repeater *repeater, u64 distance, int times)
{
	memset(repeater, 0, sizeof(*repeater));
	twheel_timer_init(&repeater->timer, repeater_called);
	repeater->distance = distance;
	atomic_set(&repeater->left, times);
}

static void test_callback_rearms(void)
{
	const u64 distances[] = { 0, 1, tick_ns(), 3 * tick_ns() };
	struct repeater repeater;
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

static void test_callback_cancels(void)
{
	struct repeater repeater;

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

	/* So that a later look at it would be seen. */
	memset(probe, 0x5a, sizeof(*probe));
	kfree(probe);
	atomic_inc(&freed);
}

static void test_callback_frees(void)
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
 * struct chain - timers of which each arms the next one
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

static void test_callback_arms_another(void)
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

/* ---- cancel_sync */

/**
 * struct spinner - a timer whose callback takes its time
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

static void test_cancel_sync_waits(void)
{
	struct spinner spinner;
	unsigned int i;
	int ret;

	if (num_online_cpus() < 2) {
		running->skipped = "takes two CPUs";
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
		/* Armed anew meanwhile, and then cancelled: the callback goes on. */
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

/* Whenever it comes, nothing of the timer is under way afterwards. */
static void test_cancel_sync_against_rearming(void)
{
	struct repeater repeater;
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
		/* The memory is somebody else's from here on. */
		memset(&repeater, 0x5a, sizeof(repeater));
	}
}

/* ---- between CPUs */

static void test_from_one_cpu_to_another(void)
{
	struct probe probe;
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
		twheel_rearm(&repeater->timer, in_ns(random_ns(50 * NSEC_PER_USEC)));
		cpu_relax();
	}
}

/* Armed from elsewhere while its callback runs: never two callbacks at a time. */
static void test_rearm_while_it_runs(void)
{
	struct repeater repeater;
	struct call *calls;
	unsigned int cpu, n = 0;

	calls = kcalloc(nr_cpu_ids, sizeof(*calls), GFP_KERNEL);
	EXPECT(calls);
	if (!calls)
		return;
	repeater_init(&repeater, 0, 0);
	repeater.spin_us = 100;
	for_each_online_cpu(cpu) {
		calls[n].function = repeater_move;
		calls[n].arg = &repeater;
		INIT_WORK(&calls[n].work, call_work);
		schedule_work_on(cpu, &calls[n].work);
		n++;
	}
	while (n--)
		flush_work(&calls[n].work);
	kfree(calls);
	EXPECT(WAIT_FOR(!twheel_pending(&repeater.timer)));
	EXPECT(twheel_cancel_sync(&repeater.timer) == 0);
	EXPECT(atomic_read(&repeater.called) > 0);
	EXPECT(atomic_read(&repeater.wrong) == 0);
}

/* ---- many */

#define MANY 100000

/**
 * struct many - timers of a test
 * @probes:	the timers
 * @from:	the first one for a CPU to arm
 * @to:		the one behind its last
 * @deadline:	of all, or 0 for random ones
 * @failures:	calls that did not return what they must
 */
struct many {
	struct probe	*probes;
	unsigned int	from;
	unsigned int	to;
	u64		deadline;
	unsigned int	failures;
};

static void many_add(void *arg)
{
	struct many *many = arg;
	unsigned int i;
	u64 deadline;

	for (i = many->from; i < many->to; i++) {
		deadline = many->deadline ?: in_ns(random_ns(NSEC_PER_SEC));
		many->failures += probe_add(&many->probes[i], deadline) != 0;
		if (!(i & 255))
			cond_resched();
	}
}

static struct probe *probes_create(unsigned int n)
{
	struct probe *probes = vzalloc(array_size(n, sizeof(*probes)));
	unsigned int i;

	for (i = 0; probes && i < n; i++)
		probe_init(&probes[i]);
	return probes;
}

static unsigned int probes_sum(const struct probe *probes, unsigned int n)
{
	unsigned int i, sum = 0;

	for (i = 0; i < n; i++)
		sum += atomic_read(&probes[i].fired);
	return sum;
}

/* Has each of them been called once, as promised? */
static void expect_all_called(struct probe *probes, unsigned int n)
{
	unsigned int i, wrong = 0;

	EXPECT(WAIT_FOR(probes_sum(probes, n) >= n));
	for (i = 0; i < n; i++)
		wrong += atomic_read(&probes[i].fired) != 1 || atomic_read(&probes[i].early) ||
			 atomic_read(&probes[i].wrong) || twheel_pending(&probes[i].timer);
	EXPECT(wrong == 0);
}

static void probes_destroy(struct probe *probes, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		twheel_cancel_sync(&probes[i].timer);
	vfree(probes);
}

static void test_many(void)
{
	unsigned int cpu, share = MANY / num_online_cpus();
	struct many many = { };

	many.probes = probes_create(MANY);
	EXPECT(many.probes);
	if (!many.probes)
		return;
	for_each_online_cpu(cpu) {
		many.to = min_t(unsigned int, MANY, many.from + share);
		on_cpu(cpu, many_add, &many);
		many.from = many.to;
	}
	many.to = MANY;
	many_add(&many);
	EXPECT(many.failures == 0);
	expect_all_called(many.probes, MANY);
	probes_destroy(many.probes, MANY);
}

static void test_burst(void)
{
	struct many many = { .to = MANY / 4, .deadline = in_ns(300 * NSEC_PER_MSEC) };

	many.probes = probes_create(many.to);
	EXPECT(many.probes);
	if (!many.probes)
		return;
	on_cpu(other_cpu(), many_add, &many);
	EXPECT(many.failures == 0);
	expect_all_called(many.probes, many.to);
	probes_destroy(many.probes, many.to);
}

/* ---- all at once */

#define STORM_TIMERS 64

/**
 * struct storm - timers that all CPUs pull at, and the account
 * @timers:	the timers
 * @armed:	times that a timer became armed
 * @cancelled:	times that it was cancelled while armed
 */
struct storm {
	struct repeater	timers[STORM_TIMERS];
	atomic_long_t	armed;
	atomic_long_t	cancelled;
};

static void storm_step(struct storm *storm, u32 dice)
{
	struct twheel_timer *timer = &storm->timers[dice % STORM_TIMERS].timer;
	u64 deadline = in_ns(dice >> 12);

	switch (dice >> 8 & 7) {
	case 0:
		if (!twheel_add(timer, deadline))
			atomic_long_inc(&storm->armed);
		break;
	case 1:
		if (twheel_cancel(timer))
			atomic_long_inc(&storm->cancelled);
		break;
	case 2:
		if (twheel_cancel_sync(timer))
			atomic_long_inc(&storm->cancelled);
		break;
	default:
		if (!twheel_rearm(timer, deadline))
			atomic_long_inc(&storm->armed);
	}
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

static void test_storm(void)
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

static struct test_case cases[] = {
	{ "a timer is no larger than a timer_list",	test_size },
	{ "return values",				test_return_values },
	{ "expiry: when, where, in which context",	test_expiry },
	{ "times in the past and after the end",	test_limits_of_time },
	{ "re-arm to earlier and later",		test_rearm },
	{ "a callback arms its timer",			test_callback_rearms },
	{ "a callback cancels its timer",		test_callback_cancels },
	{ "a callback frees its timer",			test_callback_frees },
	{ "a callback arms another timer",		test_callback_arms_another },
	{ "cancel_sync waits for the callback",		test_cancel_sync_waits },
	{ "cancel_sync of a timer that arms itself",	test_cancel_sync_against_rearming },
	{ "armed on one CPU, moved from another",	test_from_one_cpu_to_another },
	{ "armed while its callback runs",		test_rearm_while_it_runs },
	{ "100000 timers",				test_many },
	{ "25000 timers at one moment",			test_burst },
	{ "all CPUs at the same timers",		test_storm },
};

static int results_show(struct seq_file *m, void *unused)
{
	const struct test_case *test;
	unsigned int i;

	seq_printf(m, "TAP version 13\n1..%zu\n", ARRAY_SIZE(cases));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		test = &cases[i];
		if (test->fault)
			seq_printf(m, "# twheel_test.c:%d: expected %s\n", test->line,
				   test->fault);
		seq_printf(m, "%sok %u %s", test->fault ? "not " : "", i + 1, test->name);
		if (test->skipped)
			seq_printf(m, " # SKIP %s", test->skipped);
		seq_putc(m, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(results);

/* ---- a CPU goes away */

static DEFINE_MUTEX(hotplug_lock);
static struct probe *hotplug_probes;
static unsigned int hotplug_n;
static unsigned int hotplug_far;
static unsigned int hotplug_cancelled;

static void hotplug_forget(void)
{
	if (hotplug_probes)
		probes_destroy(hotplug_probes, hotplug_n);
	hotplug_probes = NULL;
	hotplug_n = 0;
	hotplug_far = 0;
	hotplug_cancelled = 0;
}

/**
 * struct arming - timers to arm on one CPU
 * @spread_ms:	they come within so many milliseconds; each tenth in an hour
 * @failures:	calls that did not return what they must
 */
struct arming {
	unsigned int	spread_ms;
	unsigned int	failures;
};

static void hotplug_arm(void *arg)
{
	struct arming *arming = arg;
	unsigned int i;
	u64 deadline;

	for (i = 0; i < hotplug_n; i++) {
		deadline = in_ns(get_random_u32_below(arming->spread_ms) * (u64)NSEC_PER_MSEC +
				 random_ns(NSEC_PER_MSEC));
		if (i % 10 == 9) {
			deadline += HOUR_NS;
			hotplug_far++;
		}
		arming->failures += probe_add(&hotplug_probes[i], deadline) != 0;
	}
}

static int hotplug_cancel(void)
{
	unsigned int i;

	for (i = 0; i < hotplug_n; i++)
		hotplug_cancelled += twheel_cancel(&hotplug_probes[i].timer);
	return 0;
}

static int hotplug_command(const char *command)
{
	struct arming arming = { };
	unsigned int cpu, n;

	if (sysfs_streq(command, "cancel"))
		return hotplug_cancel();
	if (sscanf(command, "arm %u %u %u", &cpu, &n, &arming.spread_ms) != 3 ||
	    cpu >= nr_cpu_ids || !cpu_online(cpu) || !n || n > MANY || !arming.spread_ms)
		return -EINVAL;
	hotplug_forget();
	hotplug_probes = probes_create(n);
	if (!hotplug_probes)
		return -ENOMEM;
	hotplug_n = n;
	on_cpu(cpu, hotplug_arm, &arming);
	return arming.failures ? -EIO : 0;
}

/*
 * "arm CPU N MS" arms N timers on a CPU: each tenth in an hour, the others within MS
 * milliseconds. "cancel" cancels those that are left.
 */
static ssize_t hotplug_write(struct file *file, const char __user *from, size_t size,
			     loff_t *pos)
{
	char command[64];
	int ret;

	if (size >= sizeof(command))
		return -EINVAL;
	if (copy_from_user(command, from, size))
		return -EFAULT;
	command[size] = '\0';
	mutex_lock(&hotplug_lock);
	ret = hotplug_command(command);
	mutex_unlock(&hotplug_lock);
	return ret ?: size;
}

static int hotplug_show(struct seq_file *m, void *unused)
{
	unsigned int i, fired = 0, early = 0, twice = 0, pending = 0;
	const struct probe *probe;

	mutex_lock(&hotplug_lock);
	for (i = 0; i < hotplug_n; i++) {
		probe = &hotplug_probes[i];
		fired += atomic_read(&probe->fired);
		twice += atomic_read(&probe->fired) > 1;
		early += atomic_read(&probe->early) || atomic_read(&probe->wrong);
		pending += twheel_pending(&probe->timer);
	}
	seq_printf(m, "armed=%u near=%u far=%u fired=%u early=%u twice=%u pending=%u cancelled=%u\n",
		   hotplug_n, hotplug_n - hotplug_far, hotplug_far, fired, early, twice, pending,
		   hotplug_cancelled);
	mutex_unlock(&hotplug_lock);
	return 0;
}

static int hotplug_open(struct inode *inode, struct file *file)
{
	return single_open(file, hotplug_show, NULL);
}

static const struct file_operations hotplug_fops = {
	.owner		= THIS_MODULE,
	.open		= hotplug_open,
	.read		= seq_read,
	.write		= hotplug_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static struct dentry *root;

static int __init twheel_test_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		running = &cases[i];
		running->run();
		if (running->fault)
			pr_err("%s: line %d: expected %s\n", running->name, running->line,
			       running->fault);
		cond_resched();
	}
	root = debugfs_create_dir("twheel_test", NULL);
	debugfs_create_file("results", 0444, root, NULL, &results_fops);
	debugfs_create_file("hotplug", 0644, root, NULL, &hotplug_fops);
	return 0;
}

static void __exit twheel_test_exit(void)
{
	debugfs_remove(root);
	hotplug_forget();
}

module_init(twheel_test_init);
module_exit(twheel_test_exit);

MODULE_DESCRIPTION("Tests of twheel's in-kernel API");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
