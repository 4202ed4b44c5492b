// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: expiry: the hrtimer of a CPU's wheel, the callbacks, and how to wait for them
 *
 * twheel_expiry_tick() takes the nodes out of a chunk's cells one by one, and calls the
 * functions of those that are due, with no lock held. A timer whose callback is about to
 * run, is running or has run is not pending: twheel_cancel() then returns 0. While the
 * callback runs, the timer belongs to it, and it may arm and cancel the timer without a lock; so
 * twheel_cancel_sync() leaves the timer alone, and waits until @running names another one. Only
 * the address is compared, so a callback may free its timer:
 *
 *	expiry					twheel_dequeue_not_running(), twheel.lock held
 *	the cell is emptied
 *	running = timer				location is 0: not pending any more
 *	timer->location = 0 (release)		(acquire) running == timer: wait
 *	callback: location = anything		(acquire) location, running == timer: wait
 *	running = the next one (release)	(acquire) running is another: it is over,
 *						and location is what it left behind
 *
 * Whether expiry is traced is checked once per batch, and the code for a batch exists
 * twice: so timers do not pay for the possibility.
 *
 * The hrtimer's function processes no more than @budget entries, and has the hrtimer fire again at
 * once for the rest. But if callbacks take so long that MAX_RUN_NS pass first, it rests for as long
 * as it has run, but no longer than MAX_REST_NS, and leaves the CPU to others.
 *
 * Timers queued by other CPUs
 * ---------------------------
 *
 * A timer on the remote list is enqueued by twheel_expiry_tick(), before it checks what is
 * due. Nothing that is armed is due before the next tick, so it is enough if that checks the list.
 * The CPU that queues the first timer since the last check calls the wheel's CPU, which sets its
 * hrtimer to the next tick if it would fire later; so there is at most one call per tick, however
 * much is queued. What is queued while a batch is being enqueued comes after that batch:
 *
 *	another CPU, twheel.lock held		the wheel's CPU
 *	add to remote_list			twheel_expiry_notified():
 *	remote_pending? no: set it, call	   lock: remote_pending? hrtimer to the next tick
 *						twheel_expiry_tick():
 *						   lock: remote_pending = false
 *						   empty remote_list
 *
 * A call that is still on its way when another one is wanted does for both: it only reads
 * @remote_pending once it can be sent again. If a call arrives in the middle of
 * twheel_expiry_program(), which then overwrites what it has set, that sets the hrtimer again.
 * On a CPU that is going offline nothing is set any more: hotplug.c does what @remote_pending asks
 * for, or moves the remote list.
 */
#include <linux/interrupt.h>
#include <linux/module.h>

#include "cpu_base.h"
#include "debug_timers.h"
#include "expiry.h"
#include "isolation.h"
#include "lib/inject.h"
#include "trace.h"
#include "twheel.h"
#include "wheel.h"
#include "wheel_expire.h"

static unsigned int budget = 4096;
module_param(budget, uint, 0444);
MODULE_PARM_DESC(budget, "entries processed in one softirq, at least 1, rounded up to a whole chunk of 6 (default 4096)");

/*
 * Nanoseconds after which expiry rests, whatever is left of the budget: callbacks may have to wait
 * for locks.
 */
#define MAX_RUN_NS	(2 * NSEC_PER_MSEC)

/* The longest that it rests: perhaps it was the machine that stood still. */
#define MAX_REST_NS	(2 * MAX_RUN_NS)

/* The next batch is smaller if one takes longer than this, in nanoseconds. */
#define LONG_BATCH_NS	(MAX_RUN_NS / 4)

static bool periodic;
module_param(periodic, bool, 0444);
MODULE_PARM_DESC(periodic, "fire at every tick once the wheel is in use, for comparison (default no)");

/**
 * twheel_expiry_init - check the parameters
 *
 * Return: 0, or -EINVAL if one is out of range.
 */
int twheel_expiry_init(void)
{
	if (budget)
		return 0;
	pr_err("budget=0: give at least 1\n");
	return -EINVAL;
}

static void program_hrtimer(struct twheel_base *base, u64 next)
{
	u64 now;

	if (next != TWHEEL_NEVER)
		next <<= base->wheel.shift;
	/* Pairs with the READ_ONCE() in twheel_expiry_notified(), which may interrupt this. */
	WRITE_ONCE(base->programmed, next);
	if (next == TWHEEL_NEVER)
		return;
	/* What is overdue waits for the next softirq: this one has had its share. */
	now = ktime_get_ns();
	if (next < now)
		next = max(now, base->rest_until);
	hrtimer_start(&base->hrtimer, ns_to_ktime(min(next, TWHEEL_EXPIRES_MAX)),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * twheel_expiry_program - set the hrtimer to the next occupied slot
 * @base:	this CPU's base
 *
 * Context: between twheel_base_enter() and twheel_base_leave(), or in the hrtimer's
 * function.
 */
void twheel_expiry_program(struct twheel_base *base)
{
	u64 next = periodic ? twheel_base_now(base) + 1 : twheel_next_expiry(&base->wheel);
	bool remote_pending = READ_ONCE(base->remote_pending);

	program_hrtimer(base, remote_pending ? min(next, base->wheel.now + 1) : next);
	/* If the call has arrived meanwhile, this has overwritten what it set. */
	if (unlikely(!remote_pending && READ_ONCE(base->remote_pending)))
		program_hrtimer(base, min(next, base->wheel.now + 1));
}

/**
 * twheel_expiry_notify - make another CPU check its remote list by the next tick
 * @base:	the other CPU's base. Its wheel's lock is held, and the CPU stays online
 *
 * Context: any but NMI.
 */
void twheel_expiry_notify(struct twheel_base *base)
{
	atomic_inc(&base->csd_in_flight);
	/* Fails if a call is on its way already. */
	if (smp_call_function_single_async(base->cpu, &base->csd))
		atomic_dec(&base->csd_in_flight);
}

/**
 * twheel_expiry_notified - set the hrtimer to the next tick, on behalf of another CPU
 * @arg:	this CPU's base
 *
 * Context: hard interrupt, in the middle of any operation on the base.
 */
void twheel_expiry_notified(void *arg)
{
	struct twheel_base *base = arg;
	u64 next = (twheel_base_now(base) + 1) << base->wheel.shift;
	bool remote_pending;

	raw_spin_lock(&base->wheel.lock);
	remote_pending = base->remote_pending;
	raw_spin_unlock(&base->wheel.lock);
	/* Otherwise the hrtimer is programmed, or about to be, or its function will do it. */
	if (remote_pending && cpu_online(base->cpu) && next < READ_ONCE(base->programmed))
		hrtimer_start(&base->hrtimer, ns_to_ktime(next), HRTIMER_MODE_ABS_PINNED_SOFT);
	/* Pairs with the atomic_read() in destroy_base(). */
	atomic_dec(&base->csd_in_flight);
}

/* Stands for a timer whose callback was called and is over. */
#define CALLBACK_DONE	((struct twheel_timer *)1)

#ifdef CONFIG_PREEMPT_RT
/*
 * On PREEMPT_RT the waiter may have preempted the callback, and would spin for
 * ever. Instead, it blocks on a lock that expiry holds, and releases between callbacks
 * if anybody is waiting.
 */
static void begin_callbacks(struct twheel_base *base)
	__acquires(&base->expiry_lock)
{
	spin_lock(&base->expiry_lock);
}

static void end_callbacks(struct twheel_base *base)
	__releases(&base->expiry_lock)
{
	spin_unlock(&base->expiry_lock);
}

static void yield_to_waiters(struct twheel_base *base)
{
	if (!atomic_read(&base->waiters))
		return;
	/* The callback is over. Pairs with twheel_base_running(). */
	smp_store_release(&base->running, CALLBACK_DONE);
	spin_unlock(&base->expiry_lock);
	spin_lock(&base->expiry_lock);
}
#else
static void begin_callbacks(struct twheel_base *base) { }
static void end_callbacks(struct twheel_base *base) { }
static void yield_to_waiters(struct twheel_base *base) { }
#endif

/* @base is NULL, as a constant, if the call is not traced. */
static __always_inline void call_timer(struct twheel_timer *timer, const struct twheel_base *base,
				       u64 deadline)
{
	/* Constant while the timer is initialised: the field must not be reused. */
	void (*function)(struct twheel_timer *timer) = timer->function;
#ifdef CONFIG_LOCKDEP
	/* A copy, because the callback may free the timer. */
	struct lockdep_map map;

	lockdep_copy_map(&map, &timer->map);
	lock_map_acquire(&map);
#endif
	if (base)
		trace_twheel_timer_expire_entry(base, timer, function, deadline);
	function(timer);
	if (base)
		trace_twheel_timer_expire_exit(base, timer, function);
#ifdef CONFIG_LOCKDEP
	lock_map_release(&map);
#endif
}

/* Calls the function of a timer that has just come out of the wheel. @traced is a constant. */
static __always_inline void expire_one(struct twheel_base *base, struct twheel_node *node,
				       u64 late, bool traced)
{
	struct twheel_timer *timer = container_of(node, struct twheel_timer, node);
	u64 deadline = traced ? node->deadline : 0;

	base->counts.late[__fls(late + base->behind)]++;
	/* Pairs with twheel_base_running(): the previous callback is over. */
	smp_store_release(&base->running, timer);
	twheel_debug_deactivate(timer);
	twheel_detach(node);
	twheel_base_unlock(base);
	twheel_inject(TWHEEL_POINT_CALL);
	call_timer(timer, traced ? base : NULL, deadline);
	twheel_inject(TWHEEL_POINT_CALLED);
	yield_to_waiters(base);
	twheel_base_lock(base);
}

static __always_inline void expire_timer(void *arg, struct twheel_node *node, u64 late)
{
	expire_one(arg, node, late, false);
}

static __always_inline void expire_timer_traced(void *arg, struct twheel_node *node, u64 late)
{
	expire_one(arg, node, late, true);
}

/* @fn is twheel_cascade(), or does the same. */
static __always_inline u64 enqueue_traced(struct twheel *wheel, struct twheel_node *node,
					  u64 (*fn)(struct twheel *wheel, struct twheel_node *node))
{
	struct twheel_base *base = container_of(wheel, struct twheel_base, wheel);
	struct twheel_timer *timer = container_of(node, struct twheel_timer, node);
	void (*function)(struct twheel_timer *timer) = timer->function;
	u64 deadline = node->deadline;
	u64 slot = fn(wheel, node);

	trace_twheel_timer_cascade(base, timer, function, deadline, slot);
	return slot;
}

static noinline u64 cascade_traced(struct twheel *wheel, struct twheel_node *node)
{
	return enqueue_traced(wheel, node, twheel_cascade);
}

static noinline u64 enqueue_from_remote_traced(struct twheel *wheel, struct twheel_node *node)
{
	return enqueue_traced(wheel, node, twheel_enqueue_from_remote);
}

static __always_inline bool tracing_enabled(void)
{
	return trace_twheel_timer_expire_entry_enabled() ||
	       trace_twheel_timer_expire_exit_enabled() ||
	       trace_twheel_timer_cascade_enabled();
}

static noinline unsigned int expire_batch(struct twheel_base *base, unsigned int chunks, u64 due)
{
	unsigned int n = twheel_expire(&base->wheel, chunks, due, expire_timer, base), spilled = 0;

	while (n + spilled < chunks &&
	       twheel_expire_spilled(&base->wheel, due, expire_timer, base))
		spilled++;
	return n * TWHEEL_CHUNK_CELLS + spilled;
}

static noinline unsigned int expire_batch_traced(struct twheel_base *base, unsigned int chunks,
						 u64 due)
{
	unsigned int n = __twheel_expire(&base->wheel, chunks, due, expire_timer_traced, base,
					 cascade_traced), spilled = 0;

	while (n + spilled < chunks &&
	       __twheel_expire_spilled(&base->wheel, due, expire_timer_traced, base,
				       cascade_traced))
		spilled++;
	return n * TWHEEL_CHUNK_CELLS + spilled;
}

/*
 * Expires some chunks, of one slot, for up to @max_entries entries. Returns how many entries it
 * processed; 0 if nothing is due at @now.
 */
static unsigned int expire_from_slot(struct twheel_base *base, unsigned int max_entries, u64 now)
{
	unsigned int chunks = min(DIV_ROUND_UP(max_entries, TWHEEL_CHUNK_CELLS), base->batch), n;
	int count = preempt_count();
	u64 due;

	if (!twheel_advance(&base->wheel, now >> base->wheel.shift))
		return 0;
	due = twheel_due_until(&base->wheel, now);
	/* +1: __fls() is undefined for 0. */
	base->behind = now + 1 - due;
	n = tracing_enabled() ? expire_batch_traced(base, chunks, due) :
				expire_batch(base, chunks, due);
	if (WARN_ONCE(count != preempt_count(),
		      "twheel: a callback changed preempt_count from %08x to %08x\n",
		      count, preempt_count()))
		preempt_count_set(count);
	return n ?: 1;
}

static void refill_wheel(struct twheel_base *base)
{
	twheel_base_unlock(base);
	twheel_base_refill_here();
	twheel_base_lock(base);
}

/*
 * Enqueues what other CPUs have queued: no more than @max_entries, to leave expiry its share, and
 * not for longer than MAX_RUN_NS. Returns how many.
 */
static unsigned int enqueue_remote(struct twheel_base *base, unsigned int max_entries, u64 begin)
{
	struct twheel_node *node;
	unsigned long flags;
	unsigned int n;

	/* Pairs with the WRITE_ONCE()s of CPUs that queue timers. */
	if (likely(!READ_ONCE(base->remote_pending)))
		return 0;
	raw_spin_lock_irqsave(&base->wheel.lock, flags);
	WRITE_ONCE(base->remote_pending, false);
	raw_spin_unlock_irqrestore(&base->wheel.lock, flags);
	/* On levels as fine as possible, but so that what is due at this tick expires in it. */
	twheel_flush_dequeued(&base->wheel);
	twheel_forward(&base->wheel, twheel_base_now(base) - 1);
	for (n = 0; n < max_entries; n++) {
		if (n % TWHEEL_BATCH == TWHEEL_BATCH - 1 &&
		    ktime_get_ns() - begin >= MAX_RUN_NS)
			break;
		node = twheel_unqueue_remote(&base->wheel);
		if (!node)
			return n;
		twheel_cascade_spilled(&base->wheel, node,
				       trace_twheel_timer_cascade_enabled() ?
				       enqueue_from_remote_traced : twheel_enqueue_from_remote);
	}
	/* There may be more. A CPU that queues a timer meanwhile may call in vain. */
	WRITE_ONCE(base->remote_pending, true);
	return n;
}

/* The callbacks are over: programs the hrtimer, to fire again @at_once if there is reason. */
static void finish_expiry(struct twheel_base *base, bool at_once)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&base->wheel.lock, flags);
	/* A CPU that sees a callback running and queues its timer does so before this, or never. */
	smp_store_release(&base->running, NULL);
	raw_spin_unlock_irqrestore(&base->wheel.lock, flags);
	base->in_expiry = false;
	if (at_once)
		program_hrtimer(base, base->wheel.now);
	else
		twheel_expiry_program(base);
}

/*
 * Expires batches until nothing is due, or until MAX_RUN_NS after @begin, when it has to rest.
 * Returns how many entries it processed: at most @max_entries, rounded up to a whole chunk.
 */
static unsigned int expire_due(struct twheel_base *base, unsigned int max_entries, u64 begin)
{
	u64 now = ktime_get_ns(), last;
	unsigned int done = 0, n;

	do {
		refill_wheel(base);
		n = expire_from_slot(base, max(max_entries - done, 1U), now);
		if (!n)
			break;
		done += n;
		if (base->running) {
			/*
			 * Whoever waits for the last callback should not wait for what cascades
			 * after it. Pairs with twheel_base_running().
			 */
			smp_store_release(&base->running, CALLBACK_DONE);
		}
		last = now;
		now = ktime_get_ns();
		base->batch = now - last > LONG_BATCH_NS ? max(base->batch / 4, 1U) :
							   min(2 * base->batch, TWHEEL_BATCH);
	} while (done < max_entries && now - begin < MAX_RUN_NS);
	twheel_set_earliest(&base->wheel, now);
	/* In case more is due. */
	if (now - begin >= MAX_RUN_NS)
		base->rest_until = now + min(now - begin, MAX_REST_NS);
	return done;
}

/**
 * twheel_expiry_tick - the hrtimer's function
 * @hrtimer:	the hrtimer of a base
 *
 * Context: softirq, on the base's CPU or, while that goes offline, on the one that has
 * inherited its hrtimers.
 * Return: HRTIMER_NORESTART: it has programmed the hrtimer itself.
 */
enum hrtimer_restart twheel_expiry_tick(struct hrtimer *hrtimer)
{
	struct twheel_base *base = container_of(hrtimer, struct twheel_base, hrtimer);
	const unsigned int max_remote = max(budget / 2, 1U);
	const u64 begin = ktime_get_ns();
	unsigned int nr_remote, done;

	begin_callbacks(base);
	twheel_base_lock(base);
	trace_twheel_tick_entry(base);
	base->in_expiry = true;
	base->counts.ticks++;
	twheel_isolation_tick(base);
	nr_remote = enqueue_remote(base, max_remote, begin);
	done = nr_remote + expire_due(base, max(budget - nr_remote, 1U), begin);
	if (!base->running)
		base->counts.empty_ticks++;
	finish_expiry(base, nr_remote == max_remote);
	trace_twheel_tick_exit(base, done);
	twheel_base_unlock(base);
	end_callbacks(base);
	return HRTIMER_NORESTART;
}
