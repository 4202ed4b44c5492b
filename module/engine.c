// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the engine: a wheel per CPU, its clock and the callbacks
 *
 * Where a timer lives
 * -------------------
 *
 * twheel_timer::node.owner names the CPU whose wheel the timer is on, or was last.
 * A timer is armed on the wheel of the CPU that arms it. On its own CPU everything
 * is done with plain loads and stores, between enter() and leave(), which keep the
 * CPU's softirqs away; callbacks and cascading run in a softirq. So a timer that is
 * pushed on by the CPU that armed it costs what writing its cache line costs.
 *
 * Another CPU takes the timer off the owner's wheel first (see wheel.c: the one
 * atomic instruction decides between it and the owner's expiry), and then does what
 * it wants with it on its own. There are two cases in which a timer gets onto a wheel
 * from another CPU:
 *
 *  - the timer's callback is running: it stays where it runs, so that two CPUs never
 *    run the callbacks of one timer at a time. It is sent to the wheel's inbox, which
 *    tick() empties when it has called its callbacks;
 *  - a CPU is dead: its timers are moved by the CPU that buries it, to its own wheel.
 *
 * All this rests on one rule for the callers: calls for one timer are serialised, as
 * by the lock of the object that it belongs to. It is free for who has such a lock,
 * and who has none cannot know what two calls at once come to. Expiry needs no
 * serialising, and neither does twheel_cancel_sync() against the timer's callback.
 *
 * Callbacks
 * ---------
 *
 * tick() takes the nodes out of a chunk's cells one by one, and calls the functions of
 * those that are due, with nothing locked. A timer whose callback is about to be
 * called, is running or has run is not pending: twheel_cancel() then returns 0, and
 * twheel_cancel_sync() waits until @running names another timer. Only the address is
 * compared, so a callback may free its timer:
 *
 *	tick()					twheel_cancel_sync()
 *	the cell is emptied
 *	running = timer				place is 0: not pending any more
 *	timer->place = 0 (release)		(acquire) running == timer: wait
 *	callback
 *	running = the next one (release)	(acquire) running is another: done
 *
 * tick() looks at no more than @budget entries, and has the hrtimer call again at
 * once for the rest.
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

/* Chunks worked off between two looks at the clock. */
#define PORTION		32

/* With fewer free chunks than this, a page is added: each entry may need one. */
#define CHUNKS_LOW	(PORTION * TWHEEL_CHUNK_CELLS)

#define TICK_SHIFT_MIN	14
#define TICK_SHIFT_MAX	30

static unsigned long tick_ns = 1UL << 20;
module_param(tick_ns, ulong, 0444);
MODULE_PARM_DESC(tick_ns, "length of a tick in nanoseconds, 16384 to 1073741824, rounded down to a power of two (default 1048576)");

static unsigned int budget = 4096;
module_param(budget, uint, 0444);
MODULE_PARM_DESC(budget, "entries worked off in one softirq, at least 1, rounded up to a whole chunk of 6 (default 4096)");

static bool periodic;
module_param(periodic, bool, 0444);
MODULE_PARM_DESC(periodic, "call up the wheel at every tick once it is in use, to be compared with (default no)");

/* Each possible CPU's base. Constant between init and exit. */
static DEFINE_PER_CPU(struct twheel_base *, bases);
static unsigned int tick_shift;
static enum cpuhp_state hotplug_state;

static struct twheel_base *base_of(unsigned int cpu)
{
	return per_cpu(bases, cpu);
}

/* The base that a timer belongs to; another CPU may just be burying it. */
static struct twheel_base *owner_of(const struct twheel_timer *timer)
{
	/* Pairs with the WRITE_ONCE()s of @owner. */
	return base_of(READ_ONCE(timer->node.owner));
}

static u64 now_tick(void)
{
	return ktime_get_ns() >> tick_shift;
}

/*
 * enter() and leave() enclose what is done to this CPU's base outside of tick(), and
 * lock() and unlock() what tick() does to it. A softirq does not come while interrupts
 * are off, and runs to its end before any task goes on: so to keep interrupts off is
 * all that it takes, and cheaper than to keep off softirqs. With PREEMPT_RT a softirq
 * is a thread that others interrupt, so there it takes a lock.
 */
#ifdef CONFIG_PREEMPT_RT
static void lock(struct twheel_base *base)
	__acquires(&base->lock)
{
	spin_lock_bh(&base->lock);
}

static void unlock(struct twheel_base *base)
	__releases(&base->lock)
{
	spin_unlock_bh(&base->lock);
}

static struct twheel_base *enter(unsigned long *flags)
{
	struct twheel_base *base;

	migrate_disable();
	base = __this_cpu_read(bases);
	lock(base);
	*flags = 0;
	return base;
}

static void leave(struct twheel_base *base, unsigned long flags)
{
	unlock(base);
	migrate_enable();
}

/* Lets the owner of a base finish what it has begun. */
static void await(struct twheel_base *base)
{
	lock(base);
	unlock(base);
}
#else
static void lock(struct twheel_base *base) { }
static void unlock(struct twheel_base *base) { }

static __always_inline struct twheel_base *enter(unsigned long *flags)
{
	lockdep_assert(!in_hardirq());
	local_irq_save(*flags);
	return __this_cpu_read(bases);
}

static __always_inline void leave(struct twheel_base *base, unsigned long flags)
{
	local_irq_restore(flags);
}

static void await(struct twheel_base *base)
{
	cpu_relax();
}
#endif

static noinline void supply_page(void)
{
	struct twheel_base *base;
	unsigned long flags;
	struct page *page;

	page = alloc_page(GFP_NOWAIT | __GFP_NOWARN | __GFP_ZERO);
	if (!page)
		return;
	base = enter(&flags);
	twheel_supply(&base->wheel, page_address(page));
	leave(base, flags);
}

/* Gives this CPU's wheel a page of chunks when few are left. */
static __always_inline void supply(void)
{
	/* A hint: the CPU may be another in a moment, and nothing depends on it. */
	if (unlikely(data_race(raw_cpu_read(bases)->wheel.stats.free) < CHUNKS_LOW))
		supply_page();
}

/* Sets the hrtimer to the next occupied slot. On the base's CPU only. */
static void program(struct twheel_base *base)
{
	u64 next = periodic ? now_tick() + 1 : twheel_next(&base->wheel);

	if (next == TWHEEL_NEVER) {
		base->programmed = TWHEEL_NEVER;
		return;
	}
	next <<= tick_shift;
	base->programmed = next;
	/* What is overdue waits for the next softirq: this one has had its share. */
	next = max(next, ktime_get_ns());
	hrtimer_start(&base->hrtimer, ns_to_ktime(min(next, TWHEEL_EXPIRES_MAX)),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/*
 * Files a timer that will be the first to come up. The wheel may have slept for
 * long: it is told the time, so that the timer is filed as finely as it can be.
 */
static noinline void file_first(struct twheel_base *base, struct twheel_timer *timer,
				u64 expires)
{
	twheel_remove(&base->wheel, &timer->node);
	twheel_settle(&base->wheel);
	twheel_forward(&base->wheel, now_tick());
	twheel_file(&base->wheel, &timer->node, expires);
	program(base);
}

/* Files a timer that has no entry, on this CPU's wheel. */
static __always_inline void file(struct twheel_base *base, struct twheel_timer *timer,
				 u64 expires)
{
	u64 time = twheel_file(&base->wheel, &timer->node, expires);

	if (unlikely(time < base->programmed) && !base->expiring)
		file_first(base, timer, expires);
}

/* Is the timer's callback being called, or about to be? */
static bool running(const struct twheel_base *base, const struct twheel_timer *timer)
{
	/* Pairs with the stores in expire() and finish(). */
	return smp_load_acquire(&base->running) == timer;
}

/*
 * Has another CPU file a timer, if its callback is running there: then tick() is
 * going to look into the inbox.
 */
static bool send(struct twheel_base *other, struct twheel_timer *timer)
{
	unsigned long flags;
	bool sent;

	raw_spin_lock_irqsave(&other->wheel.lock, flags);
	sent = running(other, timer);
	if (sent)
		twheel_send(&other->wheel, &timer->node);
	raw_spin_unlock_irqrestore(&other->wheel.lock, flags);
	return sent;
}

/* Arms a timer that is not pending. */
static __always_inline void arm(struct twheel_base *base, struct twheel_timer *timer,
				u64 expires)
{
	struct twheel_base *other;

	timer->node.deadline = expires;
	if (unlikely(timer->node.owner != base->cpu)) {
		other = base_of(timer->node.owner);
		if (running(other, timer) && send(other, timer))
			return;
		twheel_inject(TWHEEL_POINT_TAKE_OVER);
		/* Pairs with the READ_ONCE() in owner_of(). */
		WRITE_ONCE(timer->node.owner, base->cpu);
	}
	file(base, timer, expires);
}

/* Takes a timer off its wheel, from any CPU. Returns 1 if it was pending, or 0. */
static int take(struct twheel_timer *timer)
{
	struct twheel_base *base;
	int ret;

	for (;;) {
		base = owner_of(timer);
		twheel_inject(TWHEEL_POINT_TAKE);
		ret = twheel_try_take(&base->wheel, &timer->node);
		if (ret >= 0)
			break;
		await(base);
	}
	twheel_inject(TWHEEL_POINT_TAKEN);
	return ret;
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
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %0		- the timer is armed
 * * %-EBUSY	- it was armed already, and is unchanged
 */
int twheel_add(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	unsigned long flags;

	if (twheel_pending(timer))
		return -EBUSY;
	supply();
	base = enter(&flags);
	arm(base, timer, min(expires, TWHEEL_EXPIRES_MAX));
	base->counts.adds++;
	leave(base, flags);
	return 0;
}
EXPORT_SYMBOL_GPL(twheel_add);

/* Arms a timer for which there is more to do than to store a deadline, most times. */
static noinline int rearm(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending;

	expires = min(expires, TWHEEL_EXPIRES_MAX);
	supply();
	base = enter(&flags);
	if (likely(timer->node.owner == base->cpu)) {
		pending = twheel_pending(timer);
		if (twheel_may_defer(&timer->node, expires)) {
			timer->node.deadline = expires;
			goto out;
		}
		if (pending)
			twheel_remove(&base->wheel, &timer->node);
	} else {
		leave(base, flags);
		pending = take(timer);
		base = enter(&flags);
	}
	arm(base, timer, expires);
out:
	if (pending)
		base->counts.rearms++;
	else
		base->counts.adds++;
	leave(base, flags);
	return pending;
}

/*
 * Stores a deadline, if that is enough. There is no need to keep off softirqs for it:
 * if the hrtimer came in between, the wheel may have looked at the timer before the
 * store, so it is as if nothing had been done, and the long way sorts it out.
 */
static __always_inline bool defer(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	bool deferred = false;
	u64 ticks;

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return false;
	preempt_disable();
	base = __this_cpu_read(bases);
	ticks = READ_ONCE(base->counts.ticks);
	if (likely(READ_ONCE(timer->node.owner) == base->cpu &&
		   twheel_may_defer(&timer->node, expires))) {
		WRITE_ONCE(timer->node.deadline, expires);
		/* Orders the store against a softirq of this CPU. */
		barrier();
		deferred = likely(READ_ONCE(base->counts.ticks) == ticks);
		/* A softirq may count in between: the one or the other, on some machines. */
		data_race(base->counts.rearms += deferred);
	}
	preempt_enable();
	return deferred;
}

/**
 * twheel_rearm - arm a timer, whether it is armed or not
 * @timer:	the timer
 * @expires:	when, as for twheel_add()
 *
 * To a later time than before this only stores the deadline, whatever the distance,
 * if this is the CPU that armed the timer. If it is not, the timer changes CPUs.
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %1		- the timer was pending: its earlier deadline does not count any more
 * * %0		- it was not. Its callback may be running for an earlier arming
 */
int twheel_rearm(struct twheel_timer *timer, u64 expires)
{
	if (likely(defer(timer, expires)))
		return 1;
	return rearm(timer, expires);
}
EXPORT_SYMBOL_GPL(twheel_rearm);

/* Cancels a timer that is on another CPU's wheel. */
static noinline int cancel_remote(struct twheel_timer *timer)
{
	struct twheel_base *base;
	unsigned long flags;

	if (!take(timer))
		return 0;
	base = enter(&flags);
	base->counts.cancels++;
	leave(base, flags);
	return 1;
}

/**
 * twheel_cancel - disarm a timer
 * @timer:	the timer
 *
 * Does not wait for a callback that is running: to free the timer afterwards, use
 * twheel_cancel_sync().
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %1		- the timer was pending: its callback will not be called
 * * %0		- it was not. Its callback may be about to be called, or running
 */
int twheel_cancel(struct twheel_timer *timer)
{
	struct twheel_base *base;
	unsigned long flags;

	base = enter(&flags);
	if (unlikely(timer->node.owner != base->cpu)) {
		leave(base, flags);
		return cancel_remote(timer);
	}
	if (unlikely(!twheel_pending(timer))) {
		leave(base, flags);
		return 0;
	}
	base->counts.cancels++;
	twheel_remove(&base->wheel, &timer->node);
	leave(base, flags);
	return 1;
}
EXPORT_SYMBOL_GPL(twheel_cancel);

/* Stands for a timer whose callback has been called, and is over. */
#define NOBODY	((struct twheel_timer *)1)

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
{
	if (!atomic_read(&base->waiters))
		return;
	/* The callback is over. Pairs with running(). */
	smp_store_release(&base->running, NOBODY);
	spin_unlock(&base->expiry_lock);
	spin_lock(&base->expiry_lock);
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
 * When this returns the timer is not armed and its callback not running. A callback
 * that arms its own timer is waited for and then cancelled. The caller must not hold a
 * lock that the callback takes:
 *
 *	CPU 0				CPU 1
 *	spin_lock_bh(&lock)		the timer expires
 *	twheel_cancel_sync()		callback: spin_lock(&lock)
 *	   waits for the callback	   waits for the lock
 *
 * lockdep tells who does so. Not to be called by the timer's own callback.
 *
 * Context: process or softirq. Serialised with other calls for @timer, but not with
 * those of the timer's own callback. With PREEMPT_RT, preemptible.
 * Return:
 * * %1		- the timer was pending: its callback has not been called for this
 *		  arming
 * * %0		- it was not
 */
int twheel_cancel_sync(struct twheel_timer *timer)
{
	struct twheel_base *base;

#ifdef CONFIG_LOCKDEP
	local_bh_disable();
	lock_map_acquire(&timer->map);
	lock_map_release(&timer->map);
	local_bh_enable();
#endif
	for (;;) {
		base = owner_of(timer);
		/* While the callback runs, the timer is the callback's. */
		if (!running(base, timer)) {
			if (twheel_cancel(timer))
				return 1;
			/* Its CPU may have died meanwhile. */
			base = owner_of(timer);
			if (!running(base, timer))
				return 0;
		}
		twheel_inject(TWHEEL_POINT_WAIT);
		wait_for_callback(base);
	}
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

static __always_inline void call(struct twheel_timer *timer)
{
	void (*function)(struct twheel_timer *timer);
#ifdef CONFIG_LOCKDEP
	/* A copy, because the callback may free the timer. */
	struct lockdep_map map;

	lockdep_copy_map(&map, &timer->map);
	lock_map_acquire(&map);
#endif
	/* Pairs with the WRITE_ONCE() of who reuses the timer's memory. */
	function = READ_ONCE(timer->function);
	function(timer);
#ifdef CONFIG_LOCKDEP
	lock_map_release(&map);
#endif
}

/* Calls back a timer that has just come out of the wheel. */
static __always_inline void expire(void *arg, struct twheel_node *node, u64 late)
{
	struct twheel_timer *timer = container_of(node, struct twheel_timer, node);
	struct twheel_base *base = arg;

	base->counts.late[__fls(late + base->behind)]++;
	/* Pairs with running(): the callback before is over. */
	smp_store_release(&base->running, timer);
	twheel_leave(node);
	unlock(base);
	twheel_inject(TWHEEL_POINT_CALL);
	call(timer);
	twheel_inject(TWHEEL_POINT_CALLED);
	let_waiters_in(base);
	lock(base);
}

/*
 * Works off up to PORTION chunks, of one slot. Returns how many entries it looked at;
 * 0 if nothing is due.
 */
static unsigned int work_off(struct twheel_base *base, unsigned int most)
{
	unsigned int chunks = min(DIV_ROUND_UP(most, TWHEEL_CHUNK_CELLS), PORTION), n;
	int count = preempt_count();
	u64 now = ktime_get_ns();

	if (!twheel_advance(&base->wheel, now >> tick_shift))
		return 0;
	/* One more, so that a sum with it has a logarithm. */
	base->behind = now + 1 - base->wheel.now_ns;
	n = twheel_expire(&base->wheel, chunks, expire, base);
	if (n < chunks)
		twheel_expire_spilled(&base->wheel, expire, base);
	if (WARN_ONCE(count != preempt_count(),
		      "twheel: a callback changed preempt_count from %08x to %08x\n",
		      count, preempt_count()))
		preempt_count_set(count);
	return n * TWHEEL_CHUNK_CELLS ?: 1;
}

/* The callbacks are over: files what has come meanwhile, and programs the hrtimer. */
static void finish(struct twheel_base *base)
{
	struct twheel_node *node;
	unsigned long flags;

	raw_spin_lock_irqsave(&base->wheel.lock, flags);
	/* Who has seen a callback run and sends its timer does so before this, or not. */
	smp_store_release(&base->running, NULL);
	raw_spin_unlock_irqrestore(&base->wheel.lock, flags);
	while ((node = twheel_unspill(&base->wheel, &base->wheel.inbox)))
		twheel_cascade(&base->wheel, node);
	base->expiring = false;
	program(base);
}

/* The hrtimer's function: softirq context. */
static enum hrtimer_restart tick(struct hrtimer *hrtimer)
{
	struct twheel_base *base = container_of(hrtimer, struct twheel_base, hrtimer);
	unsigned int done = 0, n;

	callbacks_begin(base);
	lock(base);
	base->expiring = true;
	base->counts.ticks++;
	do {
		unlock(base);
		supply();
		lock(base);
		n = work_off(base, budget - done);
		done += n;
	} while (n && done < budget);
	if (!base->running)
		base->counts.empty_ticks++;
	finish(base);
	unlock(base);
	callbacks_end(base);
	return HRTIMER_NORESTART;
}

/* Files a dead CPU's timer here. */
static void move_here(struct twheel_base *dead, struct twheel_base *live,
		      struct twheel_node *node)
{
	dead->wheel.stats.removed++;
	/* Pairs with the READ_ONCE()s of @owner. */
	WRITE_ONCE(node->owner, live->cpu);
	file(live, container_of(node, struct twheel_timer, node), node->deadline);
}

/* Moves some of a dead CPU's timers here. Returns whether there may be more. */
static bool bury_some(struct twheel_base *dead, struct twheel_base *live)
{
	struct twheel *wheel = &dead->wheel;
	struct twheel_chunk *chunk = twheel_chunk_get(wheel);
	struct twheel_node *node;
	unsigned int i;

	if (chunk) {
		for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
			/* Pairs with the cmpxchg() in twheel_try_take(). */
			node = xchg(&chunk->cell[i], NULL);
			if (node)
				move_here(dead, live, node);
		}
		twheel_chunk_put(wheel, chunk);
		return true;
	}
	node = twheel_unspill(wheel, &wheel->work_spill);
	if (node)
		move_here(dead, live, node);
	return twheel_advance(wheel, TWHEEL_NEVER - 1);
}

/*
 * Called on a live CPU when @cpu is gone for good. Until here the hrtimer, which
 * the hrtimer code moved when the CPU went, has expired its timers elsewhere.
 */
static int cpu_dead(unsigned int cpu)
{
	struct twheel_base *dead = base_of(cpu), *live;
	unsigned long flags;
	unsigned int i;
	bool more;

	hrtimer_cancel(&dead->hrtimer);
	twheel_settle(&dead->wheel);
	do {
		supply();
		live = enter(&flags);
		for (more = true, i = 0; more && i < PORTION; i++)
			more = bury_some(dead, live);
		leave(live, flags);
		twheel_inject(TWHEEL_POINT_BURY);
		cond_resched();
	} while (more);
	twheel_reset(&dead->wheel, now_tick());
	dead->programmed = TWHEEL_NEVER;
	return 0;
}

/**
 * twheel_engine_snapshot - read a base's numbers
 * @cpu:	a possible CPU
 * @snapshot:	where to write them. Their sums are exact if nothing happens meanwhile
 *
 * Context: any.
 */
void twheel_engine_snapshot(unsigned int cpu, struct twheel_snapshot *snapshot)
{
	struct twheel_base *base = base_of(cpu);
	unsigned int i;

	/* The owner goes on counting: numbers of this moment, or of the next. */
	data_race(snapshot->counts = base->counts);
	/* Likewise. */
	data_race(snapshot->wheel = base->wheel.stats);
	snapshot->expiries = 0;
	for (i = 0; i < TWHEEL_LATE_BUCKETS; i++)
		snapshot->expiries += snapshot->counts.late[i];
	snapshot->pending = snapshot->wheel.filed - snapshot->wheel.removed -
			    atomic_long_read(&base->wheel.taken) - snapshot->expiries;
}

static struct twheel_base *base_create(unsigned int cpu)
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
	twheel_init(&base->wheel, tick_shift, cpu, now_tick());
	hrtimer_setup(&base->hrtimer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
	return base;
}

static void base_destroy(struct twheel_base *base)
{
	struct twheel_snapshot snapshot;
	struct twheel_page *page;

	if (!base)
		return;
	hrtimer_cancel(&base->hrtimer);
	twheel_engine_snapshot(base->cpu, &snapshot);
	WARN_ON_ONCE(snapshot.pending);
	while ((page = base->wheel.pages)) {
		base->wheel.pages = page->next;
		free_page((unsigned long)page);
	}
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
