// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: expiry: the hrtimer of a CPU's wheel, the callbacks, and who waits for them
 *
 * twheel_expiry_tick() takes the nodes out of a chunk's cells one by one, and calls the
 * functions of those that are due, with nothing locked. A timer whose callback is about
 * to be called, is running or has run is not pending: twheel_cancel() then returns 0.
 * While it runs the timer is the callback's, which may arm and cancel it without a lock; so
 * twheel_cancel_sync() leaves it alone, and waits until @running names another timer. Only
 * the address is compared, so a callback may free its timer:
 *
 *	expiry					twheel_dequeue_not_running(), twheel.lock held
 *	the cell is emptied
 *	running = timer				place is 0: not pending any more
 *	timer->place = 0 (release)		(acquire) running == timer: wait
 *	callback: place = what it likes		(acquire) place, running == timer: wait
 *	running = the next one (release)	(acquire) running is another: it is over,
 *						and place what it has left behind
 *
 * Whether expiry is traced is asked once for each portion, and the code for a portion is
 * there twice: it costs a timer nothing that it could be.
 *
 * It looks at no more than @budget entries, and has the hrtimer call again at once for those
 * that are left. But should callbacks take so long that MAX_RUN_NS are over first, it rests for
 * as long as it has worked, or for MAX_REST_NS, and who else wants the CPU has it.
 *
 * What other CPUs have sent
 * -------------------------
 *
 * A timer in the inbox is filed by twheel_expiry_tick(), before it looks for what is due.
 * Nothing that is armed is due before the next tick, so it is enough if that looks. Who
 * sends the first one since the last look calls the CPU, which sets its hrtimer if that
 * would come later; so there is no more than one call a tick, however much is sent. What is sent
 * while a lot of it is filed comes after that lot:
 *
 *	another CPU, twheel.lock held		the wheel's CPU
 *	into the inbox				twheel_expiry_notified():
 *	sent? no: sent = true, call		   lock: sent? hrtimer to the next tick
 *						twheel_expiry_tick():
 *						   lock: sent = false
 *						   empty the inbox
 *
 * A call that is still on its way when another one is wanted will do for both: it looks at
 * @remote_pending when it can be sent again. What twheel_expiry_program() sets the hrtimer to, over
 * the head of a call that comes in the middle, it sets anew. On a CPU that goes nothing is
 * set any more: hotplug.c does what @remote_pending asks for, or moves the inbox.
 */
#include <linux/interrupt.h>
#include <linux/module.h>

#include "cpu_base.h"
#include "debug_timers.h"
#include "expiry.h"
#include "lib/inject.h"
#include "trace.h"
#include "twheel.h"
#include "wheel.h"
#include "wheel_expire.h"

static unsigned int budget = 4096;
module_param(budget, uint, 0444);
MODULE_PARM_DESC(budget, "entries worked off in one softirq, at least 1, rounded up to a whole chunk of 6 (default 4096)");

/*
 * Nanoseconds after which it rests, whatever is left of the budget: callbacks may have to wait for
 * locks.
 */
#define MAX_RUN_NS	(2 * NSEC_PER_MSEC)

/* So long it rests at the most: it may be the machine that has stood still. */
#define MAX_REST_NS	(2 * MAX_RUN_NS)

/* The next portion is smaller if one takes longer than this, in nanoseconds. */
#define LONG_BATCH_NS	(MAX_RUN_NS / 4)

static bool periodic;
module_param(periodic, bool, 0444);
MODULE_PARM_DESC(periodic, "call up the wheel at every tick once it is in use, to be compared with (default no)");

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
 * Context: between twheel_base_enter() and twheel_base_leave(), or by the hrtimer's
 * function.
 */
void twheel_expiry_program(struct twheel_base *base)
{
	u64 next = periodic ? twheel_base_now(base) + 1 : twheel_next_expiry(&base->wheel);
	bool remote_pending = READ_ONCE(base->remote_pending);

	program_hrtimer(base, remote_pending ? min(next, base->wheel.now + 1) : next);
	/* If the call has come since, this has undone what it has set. */
	if (unlikely(!remote_pending && READ_ONCE(base->remote_pending)))
		program_hrtimer(base, min(next, base->wheel.now + 1));
}

/**
 * twheel_expiry_notify - have another CPU look into its inbox by the next tick
 * @base:	the other CPU's base. Its lock is held, and the CPU stays online
 *
 * Context: any but NMI.
 */
void twheel_expiry_notify(struct twheel_base *base)
{
	atomic_inc(&base->csd_in_flight);
	/* It fails if it is on its way already. */
	if (smp_call_function_single_async(base->cpu, &base->csd))
		atomic_dec(&base->csd_in_flight);
}

/**
 * twheel_expiry_notified - set the hrtimer to the next tick, for another CPU's sake
 * @arg:	this CPU's base
 *
 * Context: hard interrupt, in the middle of anything that is done to the base.
 */
void twheel_expiry_notified(void *arg)
{
	struct twheel_base *base = arg;
	u64 next = (twheel_base_now(base) + 1) << base->wheel.shift;
	bool remote_pending;

	raw_spin_lock(&base->wheel.lock);
	remote_pending = base->remote_pending;
	raw_spin_unlock(&base->wheel.lock);
	/* It is programmed, or about to be, or the tick's function will do it. */
	if (remote_pending && cpu_online(base->cpu) && next < READ_ONCE(base->programmed))
		hrtimer_start(&base->hrtimer, ns_to_ktime(next), HRTIMER_MODE_ABS_PINNED_SOFT);
	/* Pairs with the atomic_read() in base_destroy(). */
	atomic_dec(&base->csd_in_flight);
}

/* Stands for a timer whose callback has been called, and is over. */
#define CALLBACK_DONE	((struct twheel_timer *)1)

#ifdef CONFIG_PREEMPT_RT
/*
 * On PREEMPT_RT the waiter may have preempted the callback, and would spin for
 * ever. It blocks on a lock that expiry holds, and lets go of between callbacks
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
static void callbacks_begin(struct twheel_base *base) { }
static void callbacks_end(struct twheel_base *base) { }
static void yield_to_waiters(struct twheel_base *base) { }
#endif

/* @base, where the call is to be traced, is a constant NULL where it is not. */
static __always_inline void call_timer(struct twheel_timer *timer, const struct twheel_base *base,
				       u64 deadline)
{
	/* Constant as long as the timer is initialised: nothing else may lie there. */
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

/* Calls back a timer that has just come out of the wheel. @traced is a constant. */
static __always_inline void expire_one(struct twheel_base *base, struct twheel_node *node,
				       u64 late, bool traced)
{
	struct twheel_timer *timer = container_of(node, struct twheel_timer, node);
	u64 deadline = traced ? node->deadline : 0;

	base->counts.late[__fls(late + base->behind)]++;
	/* Pairs with twheel_base_running(): the callback before is over. */
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

/* @fn is twheel_cascade() or what does the same. */
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
 * Works off some chunks, of one slot, for @max_entries entries. Returns how many entries it looked at;
 * 0 if nothing is due at @now.
 */
static unsigned int expire_from_slot(struct twheel_base *base, unsigned int max_entries, u64 now)
{
	unsigned int chunks = min(DIV_ROUND_UP(max_entries, TWHEEL_CHUNK_CELLS), base->batch), n;
	int count = preempt_count();
	u64 due;

	if (!twheel_advance(&base->wheel, now >> base->wheel.shift))
		return 0;
	due = twheel_due_until(&base->wheel, now);
	/* One more, so that a sum with it has a logarithm. */
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
	twheel_base_refill();
	twheel_base_lock(base);
}

/*
 * Files what was sent: no more than @max_entries, so that expiry has its share, and not for longer than
 * MAX_RUN_NS. Returns how many.
 */
static unsigned int enqueue_remote(struct twheel_base *base, unsigned int max_entries, u64 begin)
{
	struct twheel_node *node;
	unsigned long flags;
	unsigned int n;

	if (likely(!READ_ONCE(base->remote_pending)))
		return 0;
	raw_spin_lock_irqsave(&base->wheel.lock, flags);
	WRITE_ONCE(base->remote_pending, false);
	raw_spin_unlock_irqrestore(&base->wheel.lock, flags);
	/* As finely as it can be, but so that what is due at this tick will come up at it. */
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
	/* There may be more. Who sends meanwhile may call in vain. */
	WRITE_ONCE(base->remote_pending, true);
	return n;
}

/* The callbacks are over: programs the hrtimer, to come again @at_once if there is reason. */
static void finish_expiry(struct twheel_base *base, bool at_once)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&base->wheel.lock, flags);
	/* Who has seen a callback run and sends its timer does so before this, or not. */
	smp_store_release(&base->running, NULL);
	raw_spin_unlock_irqrestore(&base->wheel.lock, flags);
	base->in_expiry = false;
	if (at_once)
		program_hrtimer(base, base->wheel.now);
	else
		twheel_expiry_program(base);
}

/*
 * Works off portions, until nothing is due, or until MAX_RUN_NS after @begin, and then it is to
 * rest. Returns how many entries it looked at, no more than @max_entries or a portion.
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
			 * Who waits for the last callback does not wait for what cascades after
			 * it. Pairs with twheel_base_running().
			 */
			smp_store_release(&base->running, CALLBACK_DONE);
		}
		last = now;
		now = ktime_get_ns();
		base->batch = now - last > LONG_BATCH_NS ? max(base->batch / 4, 1U) :
							   min(2 * base->batch, TWHEEL_BATCH);
	} while (done < max_entries && now - begin < MAX_RUN_NS);
	twheel_set_earliest(&base->wheel, now);
	/* Should there be more that is due. */
	if (now - begin >= MAX_RUN_NS)
		base->rest_until = now + min(now - begin, MAX_REST_NS);
	return done;
}

/**
 * twheel_expiry_tick - the hrtimer's function
 * @hrtimer:	the hrtimer of a base
 *
 * Context: softirq, on the base's CPU or, while that goes down, on the one that has
 * inherited its hrtimers.
 * Return: HRTIMER_NORESTART: it has programmed the hrtimer itself.
 */
enum hrtimer_restart twheel_expiry_tick(struct hrtimer *hrtimer)
{
	struct twheel_base *base = container_of(hrtimer, struct twheel_base, hrtimer);
	const unsigned int max_remote = max(budget / 2, 1U);
	const u64 begin = ktime_get_ns();
	unsigned int nr_remote, done;

	callbacks_begin(base);
	twheel_base_lock(base);
	trace_twheel_tick_entry(base);
	base->in_expiry = true;
	base->counts.ticks++;
	nr_remote = enqueue_remote(base, max_remote, begin);
	done = nr_remote + expire_due(base, max(budget - nr_remote, 1U), begin);
	if (!base->running)
		base->counts.empty_ticks++;
	finish_expiry(base, nr_remote == max_remote);
	trace_twheel_tick_exit(base, done);
	twheel_base_unlock(base);
	callbacks_end(base);
	return HRTIMER_NORESTART;
}
