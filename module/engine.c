// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the engine: a wheel per CPU, its clock and the callbacks
 *
 * Where a timer lives
 * -------------------
 *
 * twheel_timer::node.owner names the CPU whose base the timer belongs to, armed
 * or not. Everything about a timer is decided under the lock of that base, and
 * @owner changes under that lock only. Who wants the lock reads @owner, takes
 * the lock and looks again: see lock_base().
 *
 * A timer is armed on the wheel of the CPU that arms it: the timer is taken over
 * from its old base first, if it is idle. This way only the own CPU ever has to
 * start a base's hrtimer. There are three cases in which a timer is filed on a
 * wheel of another CPU, and none of them starts an hrtimer over there:
 *
 *  - a pending timer is moved to later, or little enough to earlier: storing the
 *    deadline is enough (see twheel_may_defer());
 *  - the timer's callback is running: it stays where it runs, so that two CPUs
 *    never run the callbacks of one timer at a time. The CPU is in tick(), which
 *    programs the hrtimer when it leaves;
 *  - a CPU is dead: its timers are moved to the wheel of the CPU that buries it.
 *
 * A pending timer that is moved to earlier from another CPU changes wheels. It
 * is %TWHEEL_IN_TRANSIT between the two locks: pending for everyone who looks,
 * but without an entry. Who gets the new base's lock first may cancel it or arm
 * it anew; the mover then finds that it is no longer in transit, and is done.
 *
 *	CPU 0, twheel_rearm()			CPU 1, twheel_cancel()
 *	lock(base 1)
 *	remove; in transit; owner = 0
 *	unlock(base 1)				lock(base 0)
 *						in transit -> nowhere
 *	lock(base 0)				unlock(base 0); was pending
 *	not in transit: done
 *
 * That is the order re-arm, cancel.
 *
 * Callbacks
 * ---------
 *
 * tick() takes one due timer at a time out of the wheel, under the lock, notes it
 * in @running and calls its function without the lock. A timer whose callback is
 * about to be called, is running or has run is not pending: twheel_cancel() then
 * returns 0, and twheel_cancel_sync() waits until @running names another timer.
 * Only the address is compared after the callback, so a callback may free its
 * timer.
 *
 * tick() looks at no more than @twheel_budget entries, lets go of the lock every
 * PORTION of them, and has the hrtimer call again at once for the rest.
 *
 * Memory
 * ------
 *
 * The wheel is given a page of chunks when few are left, from whoever arms or
 * expires a timer, with no wait. If there is none the wheel goes on without
 * (see wheel.c), so arming never fails. A page is kept until the module goes:
 * the wheel never needs more chunks than there were timers at the peak.
 */
#include <linux/cpu.h>
#include <linux/gfp.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "engine.h"
#include "inject.h"

/* Entries looked at with the lock held; enough to keep prefetched lines in use. */
#define PORTION		64

/* With fewer free chunks than this, a page is added: each entry may need one. */
#define CHUNKS_LOW	PORTION

#define TICK_SHIFT_MIN	14
#define TICK_SHIFT_MAX	30

static unsigned long tick_ns = 1UL << 20;
module_param(tick_ns, ulong, 0444);
MODULE_PARM_DESC(tick_ns, "length of a tick in nanoseconds, 16384 to 1073741824, rounded down to a power of two (default 1048576)");

static unsigned int budget = 4096;
module_param(budget, uint, 0444);
MODULE_PARM_DESC(budget, "entries worked off in one softirq, at least 1 (default 4096)");

/* Each possible CPU's base. Constant between init and exit. */
static DEFINE_PER_CPU(struct twheel_base *, bases);
static unsigned int tick_shift;
static enum cpuhp_state hotplug_state;

static struct twheel_base *base_of(unsigned int cpu)
{
	return per_cpu(bases, cpu);
}

static u64 now_tick(void)
{
	return ktime_get_ns() >> tick_shift;
}

/*
 * Locks the base that a timer belongs to. Softirqs are off.
 */
static struct twheel_base *lock_base(const struct twheel_timer *timer)
	__acquires(&base->lock)
{
	struct twheel_base *base;

	for (;;) {
		/* Pairs with the WRITE_ONCE()s of @owner, under the lock. */
		base = base_of(READ_ONCE(timer->node.owner));
		twheel_inject(TWHEEL_POINT_LOCK);
		spin_lock(&base->lock);
		if (likely(timer->node.owner == base->cpu))
			return base;
		spin_unlock(&base->lock);
	}
}

/* Gives the wheel a page of chunks when few are left. */
static void supply(struct twheel_base *base)
{
	struct twheel_chunk *chunk;
	struct page *page;
	unsigned int i;

	/* A hint: the answer may be old, and nothing depends on it. */
	if (likely(data_race(base->wheel.stats.free) >= CHUNKS_LOW))
		return;
	page = alloc_page(GFP_NOWAIT | __GFP_NOWARN | __GFP_ZERO);
	if (!page)
		return;
	chunk = page_address(page);
	spin_lock(&base->lock);
	list_add(&page->lru, &base->pages);
	for (i = 0; i < PAGE_SIZE / sizeof(*chunk); i++)
		twheel_supply(&base->wheel, chunk + i);
	spin_unlock(&base->lock);
}

/* Sets the hrtimer to the next occupied slot. On the base's CPU only. */
static void program(struct twheel_base *base)
{
	u64 next = twheel_next(&base->wheel);

	lockdep_assert_held(&base->lock);
	base->programmed = next;
	if (next == TWHEEL_NEVER)
		return;
	/* What is overdue waits for the next softirq: this one has had its share. */
	next = max(next << tick_shift, ktime_get_ns());
	hrtimer_start(&base->hrtimer, ns_to_ktime(min(next, TWHEEL_EXPIRES_MAX)),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/*
 * Files a timer that will be the first to come up. The wheel may have slept for
 * long: it is told the time, so that the timer is filed as finely as it can be.
 */
static void file_first(struct twheel_base *base, struct twheel_timer *timer)
{
	twheel_remove(&base->wheel, &timer->node);
	twheel_forward(&base->wheel, now_tick());
	twheel_file(&base->wheel, &timer->node);
	program(base);
}

/* Enters a timer that has no entry. */
static void file(struct twheel_base *base, struct twheel_timer *timer)
{
	u64 tick;

	lockdep_assert_held(&base->lock);
	tick = twheel_file(&base->wheel, &timer->node);
	if (tick < base->programmed && !base->expiring)
		file_first(base, timer);
}

static void set_deadline(struct twheel_timer *timer, u64 expires)
{
	/* Pairs with the READ_ONCE()s in wheel.c. */
	WRITE_ONCE(timer->node.deadline, min(expires, TWHEEL_EXPIRES_MAX));
}

/*
 * Locks the base on which a timer is to be armed: its own if it is pending or its
 * callback runs there, else this CPU's.
 */
static struct twheel_base *lock_base_to_arm(struct twheel_timer *timer)
	__acquires(&base->lock)
{
	struct twheel_base *local = __this_cpu_read(bases);
	struct twheel_base *base;

	supply(local);
	for (;;) {
		base = lock_base(timer);
		if (base == local || twheel_pending(timer) || base->running == timer)
			return base;
		/* Idle: take it over. Pairs with the READ_ONCE() in lock_base(). */
		WRITE_ONCE(timer->node.owner, local->cpu);
		spin_unlock(&base->lock);
		twheel_inject(TWHEEL_POINT_TAKE_OVER);
	}
}

/* Moves a pending timer from @base, which is locked, to this CPU's. */
static struct twheel_base *bring_here(struct twheel_base *base, struct twheel_timer *timer)
	__must_hold(&base->lock)
{
	struct twheel_base *local = __this_cpu_read(bases);

	/* Pairs with the READ_ONCE()s in twheel_pending() and lock_base(). */
	WRITE_ONCE(timer->node.where, TWHEEL_IN_TRANSIT);
	WRITE_ONCE(timer->node.owner, local->cpu);
	spin_unlock(&base->lock);
	twheel_inject(TWHEEL_POINT_TRANSIT);
	spin_lock(&local->lock);
	if (timer->node.owner == local->cpu && timer->node.where == TWHEEL_IN_TRANSIT)
		file(local, timer);
	return local;
}

/* Takes a pending timer's entry away, if it has one. */
static void unfile(struct twheel_base *base, struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (timer->node.where == TWHEEL_IN_TRANSIT)
		WRITE_ONCE(timer->node.where, TWHEEL_NOWHERE);
	else
		twheel_remove(&base->wheel, &timer->node);
}

/* Gives a pending timer another deadline. Returns the base that is locked then. */
static struct twheel_base *move(struct twheel_base *base, struct twheel_timer *timer,
				u64 expires)
	__must_hold(&base->lock)
{
	lockdep_assert_held(&base->lock);
	base->counts.rearms++;
	if (timer->node.where != TWHEEL_IN_TRANSIT &&
	    twheel_may_defer(&base->wheel, &timer->node, expires)) {
		set_deadline(timer, expires);
		return base;
	}
	unfile(base, timer);
	set_deadline(timer, expires);
	if (base != __this_cpu_read(bases) && base->running != timer)
		return bring_here(base, timer);
	file(base, timer);
	return base;
}

/**
 * twheel_timer_init_key - make a timer ready to be armed
 * @timer:	the timer; not armed
 * @function:	what to call when it is due, in softirq context with no lock held.
 *		It may arm, cancel or free the timer
 * @name:	names the timer in lockdep's reports
 * @key:	the timer's class, for lockdep
 *
 * Use twheel_timer_init().
 *
 * Context: any.
 */
void twheel_timer_init_key(struct twheel_timer *timer,
			   void (*function)(struct twheel_timer *timer),
			   const char *name, struct lock_class_key *key)
{
	memset(&timer->node, 0, sizeof(timer->node));
	timer->node.owner = raw_smp_processor_id();
	timer->function = function;
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&timer->map, name, key, 0);
#endif
}
EXPORT_SYMBOL_GPL(twheel_timer_init_key);

/**
 * twheel_add - arm a timer that is not armed
 * @timer:	the timer
 * @expires:	when, in nanoseconds of CLOCK_MONOTONIC. A time that has passed
 *		comes at the next tick; one after %TWHEEL_EXPIRES_MAX is taken as
 *		that
 *
 * The callback is called at @expires or up to one tick later, plus the delay of
 * the softirq; on the CPU that called this, as long as it is online.
 *
 * Context: process or softirq, with interrupts on.
 * Return:
 * * %0		- the timer is armed
 * * %-EBUSY	- it was armed already, and is unchanged
 */
int twheel_add(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	int ret = -EBUSY;

	local_bh_disable();
	base = lock_base_to_arm(timer);
	if (!twheel_pending(timer)) {
		set_deadline(timer, expires);
		file(base, timer);
		base->counts.adds++;
		ret = 0;
	}
	spin_unlock(&base->lock);
	local_bh_enable();
	return ret;
}
EXPORT_SYMBOL_GPL(twheel_add);

/**
 * twheel_rearm - arm a timer, whether it is armed or not
 * @timer:	the timer
 * @expires:	when, as for twheel_add()
 *
 * To a later time than before this only stores the deadline, under the base's lock,
 * whatever the distance.
 *
 * Context: process or softirq, with interrupts on.
 * Return:
 * * %1		- the timer was pending: its earlier deadline does not count any more
 * * %0		- it was not. Its callback may be running for an earlier arming
 */
int twheel_rearm(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	int pending;

	local_bh_disable();
	base = lock_base_to_arm(timer);
	pending = twheel_pending(timer);
	if (pending) {
		base = move(base, timer, expires);
	} else {
		set_deadline(timer, expires);
		file(base, timer);
		base->counts.adds++;
	}
	spin_unlock(&base->lock);
	local_bh_enable();
	return pending;
}
EXPORT_SYMBOL_GPL(twheel_rearm);

/*
 * Cancels. If @running is given and the callback runs, tells on which base instead
 * and returns -EAGAIN.
 */
static int cancel(struct twheel_timer *timer, struct twheel_base **running)
{
	struct twheel_base *base;
	int pending = 0;

	local_bh_disable();
	base = lock_base(timer);
	if (running && base->running == timer) {
		*running = base;
		pending = -EAGAIN;
	} else if (twheel_pending(timer)) {
		unfile(base, timer);
		base->counts.cancels++;
		pending = 1;
	}
	spin_unlock(&base->lock);
	local_bh_enable();
	return pending;
}

/**
 * twheel_cancel - disarm a timer
 * @timer:	the timer
 *
 * Does not wait for a callback that is running: to free the timer afterwards, use
 * twheel_cancel_sync().
 *
 * Context: process or softirq, with interrupts on.
 * Return:
 * * %1		- the timer was pending: its callback will not be called
 * * %0		- it was not. Its callback may be about to be called, or running
 */
int twheel_cancel(struct twheel_timer *timer)
{
	return cancel(timer, NULL);
}
EXPORT_SYMBOL_GPL(twheel_cancel);

#ifdef CONFIG_PREEMPT_RT
/*
 * On PREEMPT_RT the waiter may have preempted the callback, and would spin for
 * ever. It blocks on a lock that tick() holds, and lets go of between callbacks
 * when somebody waits.
 */
static void callbacks_begin(struct twheel_base *base)
	__acquires(&base->expiry_lock)
{
	spin_lock(&base->expiry_lock);
}

static void callbacks_end(struct twheel_base *base)
	__releases(&base->expiry_lock)
{
	spin_unlock(&base->expiry_lock);
}

static void let_waiters_in(struct twheel_base *base)
	__must_hold(&base->lock)
{
	if (!atomic_read(&base->waiters))
		return;
	spin_unlock(&base->lock);
	spin_unlock(&base->expiry_lock);
	spin_lock(&base->expiry_lock);
	spin_lock(&base->lock);
}

static void wait_for_callback(struct twheel_base *base)
{
	atomic_inc(&base->waiters);
	spin_lock_bh(&base->expiry_lock);
	atomic_dec(&base->waiters);
	spin_unlock_bh(&base->expiry_lock);
}
#else
static void callbacks_begin(struct twheel_base *base) { }
static void callbacks_end(struct twheel_base *base) { }
static void let_waiters_in(struct twheel_base *base) { }

static void wait_for_callback(struct twheel_base *base)
{
	cpu_relax();
}
#endif

/**
 * twheel_cancel_sync - disarm a timer and wait for its callback
 * @timer:	the timer
 *
 * When this returns the timer is not armed and its callback not running, unless
 * somebody else arms it. A callback that arms its own timer is waited for and then
 * cancelled. The caller must not hold a lock that the callback takes:
 *
 *	CPU 0				CPU 1
 *	spin_lock_bh(&lock)		the timer expires
 *	twheel_cancel_sync()		callback: spin_lock(&lock)
 *	   waits for the callback	   waits for the lock
 *
 * lockdep tells who does so. Not to be called by the timer's own callback.
 *
 * Context: process or softirq, with interrupts on.
 * Return:
 * * %1		- the timer was pending: its callback has not been called for this
 *		  arming
 * * %0		- it was not
 */
int twheel_cancel_sync(struct twheel_timer *timer)
{
	struct twheel_base *running;
	int ret;

#ifdef CONFIG_LOCKDEP
	local_bh_disable();
	lock_map_acquire(&timer->map);
	lock_map_release(&timer->map);
	local_bh_enable();
#endif
	WARN_ON_ONCE(in_hardirq());
	while ((ret = cancel(timer, &running)) < 0) {
		twheel_inject(TWHEEL_POINT_WAIT);
		wait_for_callback(running);
	}
	return ret;
}
EXPORT_SYMBOL_GPL(twheel_cancel_sync);

/**
 * twheel_tick_shift - the length of a tick
 *
 * Context: any.
 * Return: the power of two that a tick has nanoseconds.
 */
unsigned int twheel_tick_shift(void)
{
	return tick_shift;
}
EXPORT_SYMBOL_GPL(twheel_tick_shift);

static void count_expiry(struct twheel_base *base, u64 late)
{
	base->counts.expiries++;
	base->counts.late[min(fls64(late), TWHEEL_LATE_BUCKETS - 1)]++;
}

static void call(struct twheel_timer *timer)
{
	void (*function)(struct twheel_timer *timer) = timer->function;
	int count = preempt_count();
#ifdef CONFIG_LOCKDEP
	/* A copy, because the callback may free the timer. */
	struct lockdep_map map;

	lockdep_copy_map(&map, &timer->map);
	lock_map_acquire(&map);
#endif
	function(timer);
#ifdef CONFIG_LOCKDEP
	lock_map_release(&map);
#endif
	if (WARN_ONCE(count != preempt_count(), "twheel: %pS changed preempt_count %08x to %08x\n",
		      function, count, preempt_count()))
		preempt_count_set(count);
}

/* Calls back a timer that has just been taken out of the wheel. */
static void expire(struct twheel_base *base, struct twheel_timer *timer, u64 now)
	__must_hold(&base->lock)
{
	count_expiry(base, now - timer->node.deadline);
	base->running = timer;
	spin_unlock(&base->lock);
	twheel_inject(TWHEEL_POINT_CALL);
	call(timer);
	twheel_inject(TWHEEL_POINT_CALLED);
	spin_lock(&base->lock);
	base->running = NULL;
	let_waiters_in(base);
}

/*
 * Works off up to PORTION entries. Returns how many it looked at: less than that
 * means that nothing is due any more.
 */
static unsigned int work_off(struct twheel_base *base, unsigned int most)
	__must_hold(&base->lock)
{
	unsigned int left = min_t(unsigned int, most, PORTION), portion = left;
	u64 now = ktime_get_ns();
	struct twheel_node *node;

	while ((node = twheel_expire(&base->wheel, now >> tick_shift, &left)))
		expire(base, container_of(node, struct twheel_timer, node), now);
	return portion - left;
}

/* The hrtimer's function: softirq context. */
static enum hrtimer_restart tick(struct hrtimer *hrtimer)
{
	struct twheel_base *base = container_of(hrtimer, struct twheel_base, hrtimer);
	unsigned int left = budget, portion;
	u64 expiries;

	callbacks_begin(base);
	spin_lock(&base->lock);
	base->expiring = true;
	base->counts.ticks++;
	expiries = base->counts.expiries;
	do {
		spin_unlock(&base->lock);
		supply(base);
		spin_lock(&base->lock);
		portion = work_off(base, left);
		left -= portion;
	} while (left && portion == PORTION);
	if (base->counts.expiries == expiries)
		base->counts.empty_ticks++;
	base->expiring = false;
	program(base);
	spin_unlock(&base->lock);
	callbacks_end(base);
	return HRTIMER_NORESTART;
}

/* Moves a portion of a dead CPU's timers here. Returns whether there are more. */
static bool bury_portion(struct twheel_base *dead)
{
	struct twheel_base *live = __this_cpu_read(bases);
	struct twheel_node *node;
	struct twheel_timer *timer;
	unsigned int i;

	supply(live);
	spin_lock(&dead->lock);
	spin_lock_nested(&live->lock, SINGLE_DEPTH_NESTING);
	for (i = 0; i < PORTION; i++) {
		node = twheel_evict(&dead->wheel);
		if (!node)
			break;
		timer = container_of(node, struct twheel_timer, node);
		/* Pairs with the READ_ONCE() in lock_base(). */
		WRITE_ONCE(node->owner, live->cpu);
		file(live, timer);
	}
	spin_unlock(&live->lock);
	if (!node) {
		twheel_reset(&dead->wheel, now_tick());
		dead->programmed = TWHEEL_NEVER;
	}
	spin_unlock(&dead->lock);
	return node;
}

/*
 * Called on a live CPU when @cpu is gone for good. Until here the hrtimer, which
 * the hrtimer code moved when the CPU went, has expired its timers elsewhere.
 */
static int cpu_dead(unsigned int cpu)
{
	struct twheel_base *dead = base_of(cpu);
	bool more;

	hrtimer_cancel(&dead->hrtimer);
	do {
		local_bh_disable();
		more = bury_portion(dead);
		local_bh_enable();
		twheel_inject(TWHEEL_POINT_BURY);
		cond_resched();
	} while (more);
	return 0;
}

/**
 * twheel_engine_snapshot - read a base's numbers
 * @cpu:	a possible CPU
 * @snapshot:	where to write them
 *
 * Context: process or softirq.
 */
void twheel_engine_snapshot(unsigned int cpu, struct twheel_snapshot *snapshot)
{
	struct twheel_base *base = base_of(cpu);

	spin_lock_bh(&base->lock);
	snapshot->counts = base->counts;
	snapshot->wheel = base->wheel.stats;
	spin_unlock_bh(&base->lock);
}

static struct twheel_base *base_create(unsigned int cpu)
{
	struct twheel_base *base;

	base = kvzalloc_node(sizeof(*base), GFP_KERNEL, cpu_to_node(cpu));
	if (!base)
		return NULL;
	spin_lock_init(&base->lock);
#ifdef CONFIG_PREEMPT_RT
	spin_lock_init(&base->expiry_lock);
#endif
	base->cpu = cpu;
	base->programmed = TWHEEL_NEVER;
	INIT_LIST_HEAD(&base->pages);
	twheel_init(&base->wheel, tick_shift, now_tick());
	hrtimer_setup(&base->hrtimer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
	return base;
}

static void base_destroy(struct twheel_base *base)
{
	struct page *page, *next;

	if (!base)
		return;
	hrtimer_cancel(&base->hrtimer);
	WARN_ON_ONCE(base->wheel.stats.entries);
	list_for_each_entry_safe(page, next, &base->pages, lru)
		__free_page(page);
	kvfree(base);
}

static void destroy_bases(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		base_destroy(base_of(cpu));
}

static int check_parameters(void)
{
	if (tick_ns < 1UL << TICK_SHIFT_MIN || tick_ns > 1UL << TICK_SHIFT_MAX) {
		pr_err("tick_ns=%lu: give %lu to %lu\n", tick_ns,
		       1UL << TICK_SHIFT_MIN, 1UL << TICK_SHIFT_MAX);
		return -EINVAL;
	}
	if (!budget) {
		pr_err("budget=0: give at least 1\n");
		return -EINVAL;
	}
	tick_shift = ilog2(tick_ns);
	tick_ns = 1UL << tick_shift;
	return 0;
}

/**
 * twheel_engine_init - set up the wheels
 *
 * Return:
 * * %0		- the in-kernel API can be used
 * * %-EINVAL	- a module parameter is out of range
 * * %-ENOMEM	- no memory
 */
int twheel_engine_init(void)
{
	unsigned int cpu;
	int ret;

	ret = check_parameters();
	if (ret)
		return ret;
	for_each_possible_cpu(cpu) {
		per_cpu(bases, cpu) = base_create(cpu);
		if (!base_of(cpu)) {
			ret = -ENOMEM;
			goto err_bases;
		}
	}
	/* Called after the CPU has gone, so there is no need for a call when it comes. */
	ret = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "twheel:dead", NULL, cpu_dead);
	if (ret < 0)
		goto err_bases;
	hotplug_state = ret;
	return 0;

err_bases:
	destroy_bases();
	return ret;
}

/**
 * twheel_engine_exit - take the wheels down; no timer is armed any more
 */
void twheel_engine_exit(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
	destroy_bases();
}
