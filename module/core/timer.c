// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: timers: arming, re-arming and cancelling them, on the wheels of all CPUs
 *
 * Where a timer lives
 * -------------------
 *
 * twheel_timer::node.owner names the CPU whose wheel the timer is on, or was on last.
 * A timer is armed on the wheel of the CPU that arms it. On its own CPU everything
 * is done with plain loads and stores, between twheel_base_enter() and _leave(), which
 * keep the CPU's softirqs out; callbacks and cascading run in a softirq. Deferring a
 * timer on the CPU that armed it does not even need that: see try_defer(). It costs
 * no more than writing the timer's cache line.
 *
 * Another CPU takes the timer off the owner's wheel first (see wheel.c: one atomic
 * instruction decides between it and the owner's expiry), and then does what it wants
 * with the timer on its own wheel. There are four cases in which a timer gets onto a
 * wheel from another CPU:
 *
 *  - the timer's callback is running: the timer stays where that runs, so that two CPUs
 *    never run callbacks of one timer at the same time. It goes on the wheel's remote list,
 *    which the hrtimer's function finds when it is done with its callbacks, and empties
 *    in its next run;
 *  - a CPU is dead: the CPU that cleans up after it moves its timers to its own wheel;
 *  - twheel_add_on() names a CPU: the timer goes on that CPU's remote list, and the CPU is
 *    called;
 *  - a CPU is isolated, by nohz_full= or a cpuset: what it arms goes on the remote list of
 *    another CPU, which is called: see isolation.c. An isolated CPU has a wheel like any other,
 *    and a timer may be on it: because it was there before the CPU became isolated, because
 *    twheel_add_on() named the CPU, or because a task migrated in the middle of a call. The path
 *    to the other CPU is the one that a wheel without chunks takes: see twheel_base_refill().
 *
 * All this relies on one rule for callers: calls for one timer are serialised, for example
 * by the lock of the object that it belongs to. Callers that already hold such a lock pay
 * nothing; without one, the outcome of two concurrent calls is undefined. Expiry needs no
 * serialising, and neither does twheel_cancel_sync() against the timer's callback.
 */
#include <linux/cpumask.h>
#include <linux/export.h>

#include "cpu_base.h"
#include "debug_timers.h"
#include "expiry.h"
#include "isolation.h"
#include "lib/inject.h"
#include "timer.h"
#include "trace.h"
#include "twheel.h"
#include "wheel.h"

/**
 * twheel_base_enqueue_first - enqueue a timer that is to expire before all others
 * @base:	this CPU's base
 * @timer:	the timer, which has just been enqueued
 * @expires:	its deadline, in nanoseconds
 *
 * The wheel may have been idle for long: its time is brought up to date, so that the timer
 * goes on the finest level possible. Out of line, to keep the path short for all other timers.
 *
 * Context: between twheel_base_enter() and twheel_base_leave().
 * Return: the time, in nanoseconds, at which the wheel reaches the timer.
 */
noinline u64 twheel_base_enqueue_first(struct twheel_base *base, struct twheel_timer *timer,
				       u64 expires)
{
	u64 time;

	twheel_dequeue(&base->wheel, &timer->node);
	twheel_flush_dequeued(&base->wheel);
	twheel_isolation_tick(base);
	twheel_forward(&base->wheel, twheel_base_now(base));
	time = twheel_enqueue(&base->wheel, &timer->node, expires);
	twheel_expiry_program(base);
	return time;
}

static __always_inline bool tracing_arm(bool rearm)
{
	return rearm ? trace_twheel_timer_rearm_enabled() : trace_twheel_timer_add_enabled();
}

/* Out of line, to keep the path short while nothing is traced. */
static noinline void trace_arm(const struct twheel_base *base, const struct twheel_timer *timer,
			       u64 slot, bool rearm, bool remote)
{
	if (rearm)
		trace_twheel_timer_rearm(base, timer, slot, remote);
	else
		trace_twheel_timer_add(base, timer, slot, remote);
}

/*
 * Queues a timer to another CPU, if its callback is running there: then that CPU is going
 * to check its remote list.
 */
static bool queue_if_running(struct twheel_base *other, struct twheel_timer *timer, bool rearm)
{
	unsigned long flags;
	bool queued;

	raw_spin_lock_irqsave(&other->wheel.lock, flags);
	queued = twheel_base_running(other, timer);
	if (queued) {
		twheel_queue_remote(&other->wheel, &timer->node);
		/* Pairs with the READ_ONCE()s in expiry.c. */
		WRITE_ONCE(other->remote_pending, true);
		/* The lock keeps it on the list. */
		trace_arm(other, timer, 0, rearm, true);
	}
	raw_spin_unlock_irqrestore(&other->wheel.lock, flags);
	return queued;
}

/* As arm_timer(), for a timer that was last on another CPU's wheel. */
static noinline void arm_from_other(struct twheel_base *base, struct twheel_timer *timer,
				    u64 expires, bool rearm)
{
	struct twheel_base *other = twheel_base_of(timer->node.owner);

	if (twheel_base_running(other, timer) && queue_if_running(other, timer, rearm))
		return;
	twheel_inject(TWHEEL_POINT_SET_OWNER);
	/* Pairs with the READ_ONCE() in twheel_base_owner(). */
	WRITE_ONCE(timer->node.owner, base->cpu);
	trace_arm(base, timer, twheel_base_enqueue(base, timer, expires), rearm, true);
}

/**
 * twheel_base_queue_remote - ask another CPU to enqueue a timer
 * @other:	the CPU's base, from twheel_choose_target()
 * @timer:	the timer; it has no entry, and its deadline is set
 *
 * Context: as for twheel_choose_target().
 */
void twheel_base_queue_remote(struct twheel_base *other, struct twheel_timer *timer)
{
	unsigned long flags;

	/* Pairs with the READ_ONCE() in twheel_base_owner(). */
	WRITE_ONCE(timer->node.owner, other->cpu);
	raw_spin_lock_irqsave(&other->wheel.lock, flags);
	twheel_queue_remote(&other->wheel, &timer->node);
	/* Its CPU may set it without the lock. */
	if (!READ_ONCE(other->remote_pending)) {
		WRITE_ONCE(other->remote_pending, true);
		twheel_expiry_notify(other);
	}
	raw_spin_unlock_irqrestore(&other->wheel.lock, flags);
}

/* Queues a timer that is not pending to another CPU, if there is one for it. */
static bool queue_elsewhere(struct twheel_timer *timer, bool rearm)
{
	struct twheel_base *other = twheel_base_owner(timer);

	/* It stays where its callback runs, even if that CPU is isolated, too, or offline. */
	if (twheel_base_running(other, timer) && queue_if_running(other, timer, rearm))
		return true;
	twheel_inject(TWHEEL_POINT_SET_OWNER);
	/* No CPU goes offline while this one does not schedule. */
	preempt_disable();
	other = twheel_choose_target(timer);
	if (other) {
		if (tracing_arm(rearm))
			trace_arm(other, timer, 0, rearm, true);
		twheel_base_queue_remote(other, timer);
	}
	preempt_enable();
	return other;
}

/* Arms a timer that is not pending or, when re-arming, no longer is. */
static __always_inline void arm_timer(struct twheel_base *base, struct twheel_timer *timer,
				      u64 expires, bool rearm)
{
	u64 slot;

	timer->node.deadline = expires;
	if (unlikely(!twheel_base_owns(base, timer))) {
		arm_from_other(base, timer, expires, rearm);
		return;
	}
	slot = twheel_base_enqueue(base, timer, expires);
	if (tracing_arm(rearm))
		trace_arm(base, timer, slot, rearm, false);
}

static __always_inline void count_armed(struct twheel_base *base, bool rearm)
{
	if (rearm)
		base->counts.rearms++;
	else
		base->counts.adds++;
}

/* Is the timer's callback running on this CPU, which is the timer's? Then it stays here. */
static bool must_stay(const struct twheel_base *base, const struct twheel_timer *timer)
{
	return twheel_base_owns(base, timer) && twheel_base_running(base, timer);
}

/* As arm_timer(), for a caller that is on an isolated CPU, or was a moment ago. */
static noinline void arm_elsewhere(struct twheel_timer *timer, u64 expires, bool rearm)
{
	struct twheel_base *base;
	unsigned long flags;
	bool queued = false;

	timer->node.deadline = expires;
	base = twheel_base_enter(&flags);
	if (!must_stay(base, timer)) {
		twheel_base_leave(base, flags);
		queued = queue_elsewhere(timer, rearm);
		/* From here on, a timer that was queued elsewhere may be gone. */
		base = twheel_base_enter(&flags);
	}
	if (!queued)
		arm_timer(base, timer, expires, rearm);
	count_armed(base, rearm);
	twheel_base_leave(base, flags);
}

/* Takes a timer off its wheel, from any CPU. Returns 1 if it was pending, or 0. */
static int dequeue_timer(struct twheel_timer *timer)
{
	struct twheel_base *base;
	int ret;

	for (;;) {
		base = twheel_base_owner(timer);
		twheel_inject(TWHEEL_POINT_DEQUEUE);
		ret = twheel_dequeue_remote(&base->wheel, &timer->node);
		if (ret >= 0)
			break;
		twheel_base_wait_running(base);
	}
	twheel_inject(TWHEEL_POINT_DEQUEUED);
	return ret;
}

static void init_timer(struct twheel_timer *timer,
		       void (*function)(struct twheel_timer *timer),
		       const char *name, struct lock_class_key *key)
{
	memset(&timer->node, 0, sizeof(timer->node));
	timer->node.owner = raw_smp_processor_id();
	timer->function = function;
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&timer->map, name, key, 0);
#endif
	trace_twheel_timer_init(timer);
}

/**
 * twheel_timer_init_key - initialise a timer
 * @timer:	the timer; not armed
 * @function:	called in softirq context, with no lock held, when the timer is due.
 *		It may arm, cancel or free the timer
 * @name:	the timer's name in lockdep's reports
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
	twheel_debug_init(timer);
	init_timer(timer, function, name, key);
}
EXPORT_SYMBOL_GPL(twheel_timer_init_key);

/**
 * twheel_timer_init_on_stack_key - twheel_timer_init_key() for a timer on the stack
 * @timer:	the timer
 * @function:	as for twheel_timer_init_key()
 * @name:	as for twheel_timer_init_key()
 * @key:	as for twheel_timer_init_key()
 *
 * Use twheel_timer_init_on_stack().
 *
 * Context: process.
 */
void twheel_timer_init_on_stack_key(struct twheel_timer *timer,
				    void (*function)(struct twheel_timer *timer),
				    const char *name, struct lock_class_key *key)
{
	twheel_debug_init_on_stack(timer);
	init_timer(timer, function, name, key);
}
EXPORT_SYMBOL_GPL(twheel_timer_init_on_stack_key);

/**
 * twheel_timer_destroy_on_stack - end the use of a timer on the stack
 * @timer:	the timer, from twheel_timer_init_on_stack(), after twheel_cancel_sync() or
 *		twheel_shutdown_sync()
 *
 * Context: process.
 */
void twheel_timer_destroy_on_stack(struct twheel_timer *timer)
{
	twheel_debug_destroy_on_stack(timer);
}
EXPORT_SYMBOL_GPL(twheel_timer_destroy_on_stack);

/*
 * Is a timer neither armed nor shut down? If its callback is still running,
 * twheel_base_running() sees that from here on.
 */
static __always_inline bool may_add(const struct twheel_timer *timer)
{
	/* Pairs with the smp_store_release() in twheel_detach(). */
	return !smp_load_acquire(&timer->node.location);
}

static __always_inline bool is_shut(const struct twheel_timer *timer)
{
	/* Pairs with the WRITE_ONCE() in mark_shut(). */
	return READ_ONCE(timer->node.location) == TWHEEL_SHUT;
}

/* Why a timer may not be added. Out of line, to keep the path short for those that may. */
static noinline int add_error(const struct twheel_timer *timer)
{
	return is_shut(timer) ? -ESHUTDOWN : -EBUSY;
}

/**
 * twheel_add - arm a timer that is not armed
 * @timer:	the timer
 * @expires:	when it is due, in nanoseconds of CLOCK_MONOTONIC. If that time has passed, the
 *		timer expires at the next tick or, if expiry is behind, after whatever is overdue
 *		by then; a time after %TWHEEL_EXPIRES_MAX is taken as that
 *
 * The callback is called at @expires or up to one tick later, plus the delay of
 * the softirq; on the CPU that called this, as long as it is online; or on another one, if this
 * CPU is to be kept free of timers (by nohz_full=; since 6.8 by an isolated partition of a cpuset;
 * since 6.12 by isolcpus=). Timers of the same tick expire in any order, and so do all that are due
 * if the softirq is delayed by more than 16 ticks.
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %0		- the timer is armed
 * * %-EBUSY	- it was already armed, and is unchanged
 * * %-ESHUTDOWN	- it is shut down, and is unchanged
 */
int twheel_add(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	unsigned long flags;

	twheel_debug_assert_init(timer);
	if (!may_add(timer))
		return add_error(timer);
	twheel_debug_activate(timer);
	if (unlikely(!twheel_base_refill())) {
		arm_elsewhere(timer, min(expires, TWHEEL_EXPIRES_MAX), false);
		return 0;
	}
	base = twheel_base_enter(&flags);
	arm_timer(base, timer, min(expires, TWHEEL_EXPIRES_MAX), false);
	base->counts.adds++;
	twheel_base_leave(base, flags);
	return 0;
}
EXPORT_SYMBOL_GPL(twheel_add);

/**
 * twheel_add_bhoff - twheel_add() for callers with softirqs disabled
 * @timer:	the timer, which is not armed
 * @expires:	when it is due, not after %TWHEEL_EXPIRES_MAX
 *
 * Context: process or softirq, with softirqs disabled. Otherwise as twheel_add().
 */
void twheel_add_bhoff(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;

	twheel_debug_activate(timer);
	if (unlikely(!twheel_base_refill())) {
		arm_elsewhere(timer, expires, false);
		return;
	}
	base = twheel_base_enter_bhoff();
	arm_timer(base, timer, expires, false);
	base->counts.adds++;
	twheel_base_leave_bhoff(base);
}

/* Arms a timer on another CPU, unless that is offline. */
static int arm_on(struct twheel_base *other, struct twheel_timer *timer, u64 expires)
{
	int ret = -ENODEV;

	/* No CPU goes offline while this one does not schedule. */
	preempt_disable();
	if (cpu_online(other->cpu)) {
		twheel_debug_activate(timer);
		timer->node.deadline = expires;
		if (tracing_arm(false))
			trace_arm(other, timer, 0, false, true);
		twheel_base_queue_remote(other, timer);
		ret = 0;
	}
	preempt_enable();
	return ret;
}

/**
 * twheel_add_on - arm a timer that is not armed, on a given CPU
 * @timer:	the timer
 * @expires:	when it is due, as for twheel_add()
 * @cpu:	the CPU
 *
 * The callback is called on @cpu as long as that is online, even if it is to be kept free of
 * timers: see twheel_add(). When @cpu goes offline, the timer moves to another one. A
 * twheel_rearm() elsewhere moves the timer to the calling CPU; and one on @cpu, if that is to
 * be kept free of timers, moves it away, unless only a later deadline has to be stored, or the
 * timer's own callback makes the call. To keep the timer on @cpu, call twheel_cancel() and this
 * instead.
 *
 * While a CPU goes offline, callbacks of its timers may be called on another one until the timers
 * have moved. If such a callback calls this for its own timer it gets an error, whatever the CPU;
 * twheel_add() arms the timer.
 *
 * While the timer's callback is running, even if it is the caller of this, the timer can only be
 * armed on the CPU where it runs: two CPUs never run callbacks of one timer at the same time. For
 * a while after the callback has returned it may still appear to run; twheel_cancel_sync() waits
 * until it does not. Timers are identified by their address: if a callback frees its own timer, and
 * a new one is initialised at the same address on the same CPU before that callback is over, most
 * likely by the callback itself, the new timer appears to run until then.
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %0		- the timer is armed
 * * %-EBUSY	- it was already armed, and is unchanged
 * * %-ESHUTDOWN	- it is shut down, and is unchanged
 * * %-EINVAL	- such a CPU cannot exist; nothing has changed
 * * %-ENODEV	- the CPU is offline; nothing has changed
 * * %-EAGAIN	- the timer's callback is running on another CPU; nothing has changed
 */
int twheel_add_on(struct twheel_timer *timer, u64 expires, unsigned int cpu)
{
	struct twheel_base *base, *owner;
	unsigned long flags;
	int ret = 0;

	twheel_debug_assert_init(timer);
	if (!may_add(timer))
		return add_error(timer);
	if (cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return -EINVAL;
	/* It is not pending, so its callback will not start to run. */
	owner = twheel_base_owner(timer);
	if (owner->cpu != cpu && twheel_base_running(owner, timer))
		return -EAGAIN;
	expires = min(expires, TWHEEL_EXPIRES_MAX);
	/* Another CPU refills its own wheel. A hint: the task may migrate. */
	if (cpu == raw_smp_processor_id())
		twheel_base_refill_here();
	base = twheel_base_enter(&flags);
	if (base->cpu != cpu) {
		ret = arm_on(twheel_base_of(cpu), timer, expires);
	} else {
		twheel_debug_activate(timer);
		arm_timer(base, timer, expires, false);
	}
	if (!ret)
		base->counts.adds++;
	twheel_base_leave(base, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(twheel_add_on);

/* As rearm_timer(), for a timer that was last on another CPU's wheel. Leaves @base. */
static noinline int rearm_remote(struct twheel_base *base, struct twheel_timer *timer,
				 u64 expires, unsigned long flags)
{
	int pending;

	twheel_base_leave(base, flags);
	if (is_shut(timer))
		return -ESHUTDOWN;
	pending = dequeue_timer(timer);
	base = twheel_base_enter(&flags);
	if (!pending)
		twheel_debug_activate(timer);
	arm_timer(base, timer, expires, pending);
	count_armed(base, pending);
	twheel_base_leave(base, flags);
	return pending;
}

/*
 * As rearm_timer(), for a timer that is not pending, belongs to another CPU or is traced, and
 * for all timers with PREEMPT_RT. Leaves @base.
 */
static noinline int rearm_slow(struct twheel_base *base, struct twheel_timer *timer, u64 expires,
			       unsigned long flags)
{
	int ret = 0;

	if (unlikely(!twheel_base_owns(base, timer)))
		return rearm_remote(base, timer, expires, flags);
	if (twheel_pending(timer)) {
		ret = 1;
		if (twheel_may_defer(&timer->node, expires)) {
			timer->node.deadline = expires;
			if (tracing_arm(true))
				trace_arm(base, timer,
					  timer->node.defer_after + base->wheel.tick_ns,
					  true, false);
			goto out_count;
		}
		twheel_dequeue(&base->wheel, &timer->node);
	} else if (unlikely(is_shut(timer))) {
		ret = -ESHUTDOWN;
		goto out_leave;
	} else {
		twheel_debug_activate(timer);
	}
	arm_timer(base, timer, expires, ret);
out_count:
	count_armed(base, ret);
out_leave:
	twheel_base_leave(base, flags);
	return ret;
}

/* Is a later deadline all that has to be stored, as by try_defer()? Then the timer stays, too. */
static bool may_stay(const struct twheel_base *base, const struct twheel_timer *timer, u64 expires)
{
	return twheel_base_owns(base, timer) && twheel_may_defer(&timer->node, expires);
}

/*
 * As rearm_timer(), on an isolated CPU. A timer that is on this CPU's own wheel is dequeued as its
 * owner does: in a softirq, waiting for the owner would be waiting for oneself.
 */
static noinline int rearm_elsewhere(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending;

	if (is_shut(timer))
		return -ESHUTDOWN;
	base = twheel_base_enter(&flags);
	if (must_stay(base, timer) || may_stay(base, timer, expires))
		return rearm_slow(base, timer, expires, flags);
	if (twheel_base_owns(base, timer)) {
		pending = twheel_pending(timer);
		if (pending)
			twheel_dequeue(&base->wheel, &timer->node);
		twheel_base_leave(base, flags);
	} else {
		twheel_base_leave(base, flags);
		pending = dequeue_timer(timer);
	}
	if (!pending)
		twheel_debug_activate(timer);
	arm_elsewhere(timer, expires, pending);
	return pending;
}

/* Arms a timer for which storing a deadline is, as a rule, not enough. */
static noinline int rearm_timer(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	unsigned long flags;

	expires = min(expires, TWHEEL_EXPIRES_MAX);
	if (unlikely(!twheel_base_refill()))
		return rearm_elsewhere(timer, expires);
	base = twheel_base_enter(&flags);
	/* In the first two cases try_defer() has not tried, so that remains to be done. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || tracing_arm(true) ||
	    unlikely(!twheel_base_owns(base, timer) || !twheel_pending(timer)))
		return rearm_slow(base, timer, expires, flags);
	timer->node.deadline = expires;
	twheel_base_program(base, timer, expires,
			    twheel_requeue(&base->wheel, &timer->node, expires));
	base->counts.rearms++;
	twheel_base_leave(base, flags);
	return 1;
}

/*
 * Stores a deadline, if that is enough. Softirqs need not be disabled for this: if the hrtimer
 * fires in between, the wheel may have read the deadline before the store. Then it is as if
 * nothing had been done, and the slow path sorts it out. The slow path also handles timers that
 * are traced: here, the timer could be gone before it is traced.
 */
static __always_inline bool try_defer(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	bool deferred = false;
	u64 ticks;

	if (IS_ENABLED(CONFIG_PREEMPT_RT) || tracing_arm(true))
		return false;
	twheel_base_assert_context();
	preempt_disable();
	base = __this_cpu_read(twheel_bases);
	/* Counted by the hrtimer's function, before it reads any deadline. */
	ticks = READ_ONCE(base->counts.ticks);
	if (likely(twheel_base_owns(base, timer) && twheel_may_defer(&timer->node, expires))) {
		WRITE_ONCE(timer->node.deadline, expires);
		/* Orders the store against a softirq of this CPU. */
		barrier();
		deferred = likely(READ_ONCE(base->counts.ticks) == ticks);
		/* A softirq may count in between: on some machines, one of the two is then lost. */
		data_race(base->counts.rearms += deferred);
	}
	preempt_enable();
	return deferred;
}

/**
 * twheel_rearm - arm a timer, whether it is armed or not
 * @timer:	the timer
 * @expires:	when it is due, as for twheel_add()
 *
 * Re-arming to a later time only stores the deadline, however far away that is, on the CPU
 * that armed the timer. On any other CPU, the timer moves to that CPU.
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %1		- the timer was pending: its previous deadline no longer counts
 * * %0		- it was not. Its callback may be running for the previous arming
 * * %-ESHUTDOWN	- it is shut down, and is unchanged
 */
int twheel_rearm(struct twheel_timer *timer, u64 expires)
{
	twheel_debug_assert_init(timer);
	if (likely(try_defer(timer, expires)))
		return 1;
	return rearm_timer(timer, expires);
}
EXPORT_SYMBOL_GPL(twheel_rearm);

/**
 * twheel_rearm_bhoff - twheel_rearm() for callers with softirqs disabled
 * @timer:	the timer
 * @expires:	when it is due
 *
 * Context: process or softirq, with softirqs disabled. Otherwise as twheel_rearm().
 * Return: as twheel_rearm().
 */
int twheel_rearm_bhoff(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	bool deferred;

	if (tracing_arm(true))
		return rearm_timer(timer, expires);
	base = twheel_base_enter_bhoff();
	deferred = twheel_base_owns(base, timer) && twheel_may_defer(&timer->node, expires);
	if (likely(deferred)) {
		timer->node.deadline = expires;
		base->counts.rearms++;
	}
	twheel_base_leave_bhoff(base);
	return deferred ? 1 : rearm_timer(timer, expires);
}

/*
 * A timer was taken off another CPU's wheel, or was not pending. Nobody arms it before this
 * returns: calls for it are serialised. Those of its own callback are not serialised with
 * twheel_cancel_sync(), but in that case twheel_cancel_not_running() has seen that the callback is
 * not running, and without an entry it does not start.
 */
static void account_remote_cancel(struct twheel_timer *timer, unsigned int cpu, bool pending)
{
	struct twheel_base *base;
	unsigned long flags;

	trace_twheel_timer_cancel(timer, cpu, pending, true);
	if (!pending)
		return;
	twheel_debug_deactivate(timer);
	base = twheel_base_enter(&flags);
	base->counts.cancels++;
	base->counts.remote_cancels++;
	twheel_base_leave(base, flags);
}

/* Cancels a timer that is on another CPU's wheel. */
static noinline int cancel_remote(struct twheel_timer *timer)
{
	/* Pairs with the WRITE_ONCE()s of @owner. */
	unsigned int cpu = READ_ONCE(timer->node.owner);
	int pending = dequeue_timer(timer);

	account_remote_cancel(timer, cpu, pending);
	return pending;
}

/* Cancels a timer that is on this CPU's wheel, or was last. @traced is a constant. */
static __always_inline int cancel_local(struct twheel_base *base, struct twheel_timer *timer,
					bool traced)
{
	if (traced)
		trace_twheel_timer_cancel(timer, base->cpu, twheel_pending(timer), false);
	if (unlikely(!twheel_pending(timer)))
		return 0;
	base->counts.cancels++;
	twheel_debug_deactivate(timer);
	twheel_dequeue(&base->wheel, &timer->node);
	return 1;
}

static __always_inline int cancel_timer(struct twheel_timer *timer, bool traced)
{
	struct twheel_base *base;
	unsigned long flags;
	int ret;

	base = twheel_base_enter(&flags);
	if (unlikely(!twheel_base_owns(base, timer))) {
		twheel_base_leave(base, flags);
		return cancel_remote(timer);
	}
	ret = cancel_local(base, timer, traced);
	twheel_base_leave(base, flags);
	return ret;
}

static noinline int cancel_timer_traced(struct twheel_timer *timer)
{
	return cancel_timer(timer, true);
}

/**
 * twheel_cancel - disarm a timer
 * @timer:	the timer
 *
 * Does not wait for a running callback: to free the timer afterwards, use
 * twheel_cancel_sync().
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %1		- the timer was pending: its callback will not be called
 * * %0		- it was not. Its callback may be about to run, or running
 */
int twheel_cancel(struct twheel_timer *timer)
{
	twheel_debug_assert_init(timer);
	if (trace_twheel_timer_cancel_enabled())
		return cancel_timer_traced(timer);
	return cancel_timer(timer, false);
}
EXPORT_SYMBOL_GPL(twheel_cancel);

/**
 * twheel_cancel_bhoff - twheel_cancel() for callers with softirqs disabled
 * @timer:	the timer
 *
 * Context: process or softirq, with softirqs disabled. Otherwise as twheel_cancel().
 * Return: as twheel_cancel().
 */
int twheel_cancel_bhoff(struct twheel_timer *timer)
{
	struct twheel_base *base;
	int ret;

	if (trace_twheel_timer_cancel_enabled())
		return cancel_timer_traced(timer);
	base = twheel_base_enter_bhoff();
	if (unlikely(!twheel_base_owns(base, timer))) {
		twheel_base_leave_bhoff(base);
		return cancel_remote(timer);
	}
	ret = cancel_local(base, timer, false);
	twheel_base_leave_bhoff(base);
	return ret;
}

static bool is_running(const struct twheel *wheel, const struct twheel_node *node)
{
	return twheel_base_running(container_of(wheel, const struct twheel_base, wheel),
				   container_of(node, const struct twheel_timer, node));
}

static int cancel_remote_not_running(struct twheel_timer *timer)
{
	struct twheel_base *base = twheel_base_owner(timer);
	int ret = twheel_dequeue_not_running(&base->wheel, &timer->node, is_running);

	if (ret >= 0)
		account_remote_cancel(timer, base->cpu, ret);
	return ret;
}

/**
 * twheel_cancel_not_running - twheel_cancel(), unless the timer's callback is running
 * @timer:	the timer
 *
 * Whatever the callback does to the timer, it does without a lock.
 *
 * Context: process or softirq. Serialised with other calls for @timer, but not with
 * those of the timer's own callback. With PREEMPT_RT, preemptible.
 * Return:
 * * %1		- the timer was pending
 * * %0		- it was not, and its callback is not running
 * * %-EBUSY	- its callback is running, or about to; nothing has changed
 * * %-EAGAIN	- another CPU is handling it at this moment; nothing has changed
 */
int twheel_cancel_not_running(struct twheel_timer *timer)
{
	struct twheel_base *base;
	unsigned long flags;
	int ret = -EBUSY;

	base = twheel_base_enter(&flags);
	if (!twheel_base_owns(base, timer)) {
		twheel_base_leave(base, flags);
		return cancel_remote_not_running(timer);
	}
	/* It does not start, or continue, until this has left the base. */
	if (!twheel_base_running(base, timer))
		ret = cancel_local(base, timer, true);
	twheel_base_leave(base, flags);
	return ret;
}
