// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the engine: arming, re-arming and cancelling the timers of all CPUs' wheels
 *
 * cpu_base.h is one CPU's wheel and what keeps others off it, expiry.c the hrtimer and the
 * callbacks, hotplug.c moves a dead CPU's timers, core.c sets it all up.
 *
 * Where a timer lives
 * -------------------
 *
 * twheel_timer::node.owner names the CPU whose wheel the timer is on, or was last.
 * A timer is armed on the wheel of the CPU that arms it. On its own CPU everything
 * is done with plain loads and stores, between twheel_base_enter() and _leave(), which
 * keep the CPU's softirqs away; callbacks and cascading run in a softirq. A timer that
 * is pushed on by the CPU that armed it does not even need that: see try_defer(). It costs
 * what writing its cache line costs.
 *
 * Another CPU takes the timer off the owner's wheel first (see wheel.c: the one
 * atomic instruction decides between it and the owner's expiry), and then does what
 * it wants with it on its own. There are four cases in which a timer gets onto a wheel
 * from another CPU:
 *
 *  - the timer's callback is running: it stays where it runs, so that two CPUs never
 *    run the callbacks of one timer at a time. It is sent to the wheel's inbox, which
 *    the hrtimer's function empties when it has called its callbacks;
 *  - a CPU is dead: its timers are moved by the CPU that buries it, to its own wheel;
 *  - twheel_add_on() is told to: the timer is sent to the inbox of the CPU, which is called;
 *  - a CPU is isolated, by nohz_full=: what it arms is sent to the inbox of another
 *    one, which is called. It has a wheel as all have, and on that a timer may be filed
 *    if the CPU is changed in the middle of a call. That does no harm; but for such a
 *    moment, it is empty, and so the way there is the one that a wheel without chunks
 *    takes: see twheel_base_refill().
 *
 * All this rests on one rule for the callers: calls for one timer are serialised, as
 * by the lock of the object that it belongs to. It is free for who has such a lock,
 * and who has none cannot know what two calls at once come to. Expiry needs no
 * serialising, and neither does twheel_cancel_sync() against the timer's callback.
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/sched/isolation.h>

#include "cpu_base.h"
#include "debug_timers.h"
#include "expiry.h"
#include "lib/inject.h"
#include "timer.h"
#include "trace.h"
#include "twheel.h"
#include "wheel.h"

/**
 * twheel_base_enqueue_first - file a timer that will be the first to come up
 * @base:	this CPU's base
 * @timer:	the timer, which has just been filed
 * @expires:	its deadline, in nanoseconds
 *
 * The wheel may have slept for long: it is told the time, so that the timer is filed
 * as finely as it can be. Out of line, to keep the way short for all other timers.
 *
 * Context: between twheel_base_enter() and twheel_base_leave().
 * Return: the time, in nanoseconds, at which the wheel comes to the timer.
 */
noinline u64 twheel_base_enqueue_first(struct twheel_base *base, struct twheel_timer *timer,
				       u64 expires)
{
	u64 time;

	twheel_dequeue(&base->wheel, &timer->node);
	twheel_flush_dequeued(&base->wheel);
	twheel_forward(&base->wheel, twheel_base_now(base));
	time = twheel_enqueue(&base->wheel, &timer->node, expires);
	twheel_expiry_program(base);
	return time;
}

static __always_inline bool tracing_arm(bool rearm)
{
	return rearm ? trace_twheel_timer_rearm_enabled() : trace_twheel_timer_add_enabled();
}

/* Out of line, to keep the way short for who does not trace. */
static noinline void trace_arm(const struct twheel_base *base, const struct twheel_timer *timer,
			       u64 slot, bool rearm, bool remote)
{
	if (rearm)
		trace_twheel_timer_rearm(base, timer, slot, remote);
	else
		trace_twheel_timer_add(base, timer, slot, remote);
}

/*
 * Has another CPU file a timer, if its callback is running there: then that is going
 * to look into the inbox.
 */
static bool queue_if_running(struct twheel_base *other, struct twheel_timer *timer, bool rearm)
{
	unsigned long flags;
	bool queued;

	raw_spin_lock_irqsave(&other->wheel.lock, flags);
	queued = twheel_base_running(other, timer);
	if (queued) {
		twheel_queue_remote(&other->wheel, &timer->node);
		WRITE_ONCE(other->remote_pending, true);
		/* The lock keeps it where it is. */
		trace_arm(other, timer, 0, rearm, true);
	}
	raw_spin_unlock_irqrestore(&other->wheel.lock, flags);
	return queued;
}

/* As arm_timer(), for a timer that was on another CPU's wheel last. */
static noinline void arm_from_other(struct twheel_base *base, struct twheel_timer *timer,
				    u64 expires, bool rearm)
{
	struct twheel_base *other = twheel_base_of(timer->node.owner);

	if (twheel_base_running(other, timer) && queue_if_running(other, timer, rearm))
		return;
	twheel_inject(TWHEEL_POINT_TAKE_OVER);
	/* Pairs with the READ_ONCE() in twheel_base_owner(). */
	WRITE_ONCE(timer->node.owner, base->cpu);
	trace_arm(base, timer, twheel_base_enqueue(base, timer, expires), rearm, true);
}

/**
 * twheel_base_target - which CPU is to have an isolated CPU's timer?
 * @timer:	the timer
 *
 * The one that it was on last; else one that the kernel has chosen for its own timers.
 *
 * Context: the CPU is not changed, and none goes, until the timer has been given away.
 * Return: the CPU's base; or NULL if there is none but this.
 */
struct twheel_base *twheel_base_target(const struct twheel_timer *timer)
{
	/* Pairs with the WRITE_ONCE()s of @owner. */
	unsigned int cpu = READ_ONCE(timer->node.owner);

	if (!cpu_online(cpu) || twheel_base_of(cpu)->isolated)
		cpu = housekeeping_any_cpu(HK_TYPE_TIMER);
	/* The kernel does not know of this one. */
	if (twheel_inject_isolated(cpu))
		cpu = cpumask_first(cpu_online_mask);
	return cpu == smp_processor_id() ? NULL : twheel_base_of(cpu);
}

/**
 * twheel_base_queue_remote - have another CPU file a timer
 * @other:	the CPU's base, from twheel_base_target()
 * @timer:	the timer; it has no entry, and its deadline is set
 *
 * Context: as for twheel_base_target().
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

/* Sends a timer that is not pending to another CPU, if there is one for it. */
static bool queue_elsewhere(struct twheel_timer *timer, bool rearm)
{
	struct twheel_base *other = twheel_base_owner(timer);

	/* Where its callback runs it stays, even if that CPU is isolated, or gone. */
	if (twheel_base_running(other, timer) && queue_if_running(other, timer, rearm))
		return true;
	twheel_inject(TWHEEL_POINT_TAKE_OVER);
	/* No CPU goes while this one is not preempted. */
	preempt_disable();
	other = twheel_base_target(timer);
	if (other) {
		if (tracing_arm(rearm))
			trace_arm(other, timer, 0, rearm, true);
		twheel_base_queue_remote(other, timer);
	}
	preempt_enable();
	return other;
}

/* Arms a timer that is not pending, or, if this is a re-arm, not any more. */
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

/* As arm_timer(), on an isolated CPU, or what was one a moment ago. */
static noinline void arm_elsewhere(struct twheel_timer *timer, u64 expires, bool rearm)
{
	struct twheel_base *base;
	unsigned long flags;
	bool queued;

	timer->node.deadline = expires;
	queued = queue_elsewhere(timer, rearm);
	/* From here on a timer that was given away may be gone. */
	base = twheel_base_enter(&flags);
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
		twheel_inject(TWHEEL_POINT_TAKE);
		ret = twheel_dequeue_remote(&base->wheel, &timer->node);
		if (ret >= 0)
			break;
		twheel_base_wait_running(base);
	}
	twheel_inject(TWHEEL_POINT_TAKEN);
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
	twheel_debug_init(timer);
	init_timer(timer, function, name, key);
}
EXPORT_SYMBOL_GPL(twheel_timer_init_key);

/**
 * twheel_timer_init_on_stack_key - twheel_timer_init_key() for a timer on the stack
 * @timer:	the timer
 * @function:	as for twheel_timer_init_key()
 * @name:	as there
 * @key:	as there
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
 * twheel_timer_destroy_on_stack - a timer on the stack is not used any more
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
 * twheel_base_running() finds that out from here on.
 */
static __always_inline bool may_add(const struct twheel_timer *timer)
{
	/* Pairs with the smp_store_release() in twheel_detach(). */
	return !smp_load_acquire(&timer->node.location);
}

static __always_inline bool is_shut(const struct twheel_timer *timer)
{
	/* Pairs with the WRITE_ONCE() in shut(). */
	return READ_ONCE(timer->node.location) == TWHEEL_SHUT;
}

/* Why a timer may not be added. Out of line, to keep the way short for those that may. */
static noinline int add_error(const struct twheel_timer *timer)
{
	return is_shut(timer) ? -ESHUTDOWN : -EBUSY;
}

/**
 * twheel_add - arm a timer that is not armed
 * @timer:	the timer
 * @expires:	when, in nanoseconds of CLOCK_MONOTONIC. A time that has passed
 *		comes at the next tick, or, if expiry is behind, after what is overdue by
 *		then; one after %TWHEEL_EXPIRES_MAX is taken as that
 *
 * The callback is called at @expires or up to one tick later, plus the delay of
 * the softirq; on the CPU that called this, as long as it is online; on another one, if
 * the kernel was told to keep timers off it (nohz_full=). Timers of the same tick come in
 * any order, and so do all that are due if the softirq is held up by more than 16 ticks.
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %0		- the timer is armed
 * * %-EBUSY	- it was armed already, and is unchanged
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
 * twheel_add_bhoff - twheel_add(), for who has softirqs off
 * @timer:	the timer, which is not armed
 * @expires:	when, not after %TWHEEL_EXPIRES_MAX
 *
 * Context: process or softirq, with softirqs off. Otherwise as twheel_add().
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

/* Arms a timer on another CPU, unless that is not online. */
static int arm_on(struct twheel_base *other, struct twheel_timer *timer, u64 expires)
{
	int ret = -ENODEV;

	/* No CPU goes while this one is not preempted. */
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
 * twheel_add_on - arm a timer that is not armed, on a CPU
 * @timer:	the timer
 * @expires:	when, as for twheel_add()
 * @cpu:	the CPU
 *
 * The callback is called on @cpu as long as that is online, even if it is one that the kernel
 * was told to keep timers off (nohz_full=). When it goes, the timer moves to another one. When
 * twheel_rearm() is called elsewhere, it moves there; and when it is called on @cpu, if that is to
 * be kept free of timers, away from there, unless a later deadline only has to be stored. To
 * have it stay, call twheel_cancel() and this instead.
 *
 * When a CPU goes, callbacks of its timers may be called on another one until they have moved. What
 * these get here for their own timer is an error, whatever the CPU; twheel_add() arms it.
 *
 * While the timer's callback runs, also if that is what calls this, the timer can only be armed
 * on the CPU where it does: two CPUs never run callbacks of one timer at a time. For a
 * while after the callback has returned it may still seem to run; twheel_cancel_sync() waits
 * until it does not. Timers are told apart by their address: where a callback has freed its own
 * timer, and on the same CPU a new one is initialised before that callback is over, most likely
 * by itself, the new one seems to run until it is.
 *
 * Context: process or softirq. Serialised with other calls for @timer. With
 * PREEMPT_RT, preemptible.
 * Return:
 * * %0		- the timer is armed
 * * %-EBUSY	- it was armed already, and is unchanged
 * * %-ESHUTDOWN	- it is shut down, and is unchanged
 * * %-EINVAL	- there can be no such CPU; nothing has changed
 * * %-ENODEV	- the CPU is not online; nothing has changed
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
	/* It is not pending, so it will not begin to run. */
	owner = twheel_base_owner(timer);
	if (owner->cpu != cpu && twheel_base_running(owner, timer))
		return -EAGAIN;
	expires = min(expires, TWHEEL_EXPIRES_MAX);
	/* If it is isolated it has no chunks, and does without. */
	twheel_base_refill();
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

/* As rearm_timer(), for a timer that was on another CPU's wheel last. Leaves @base. */
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
 * As rearm_timer(), for a timer that is not pending, that is another CPU's, or that is traced, and
 * for all with PREEMPT_RT. Leaves @base.
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

/* As rearm_timer(), on an isolated CPU. */
static noinline int rearm_elsewhere(struct twheel_timer *timer, u64 expires)
{
	int pending;

	if (is_shut(timer))
		return -ESHUTDOWN;
	pending = dequeue_timer(timer);
	if (!pending)
		twheel_debug_activate(timer);
	arm_elsewhere(timer, expires, pending);
	return pending;
}

/* Arms a timer for which it is not enough to store a deadline, as a rule. */
static noinline int rearm_timer(struct twheel_timer *timer, u64 expires)
{
	struct twheel_base *base;
	unsigned long flags;

	expires = min(expires, TWHEEL_EXPIRES_MAX);
	if (unlikely(!twheel_base_refill()))
		return rearm_elsewhere(timer, expires);
	base = twheel_base_enter(&flags);
	/* In the first two cases try_defer() has not tried, so that is still to be done. */
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
 * Stores a deadline, if that is enough. There is no need to keep off softirqs for it:
 * if the hrtimer came in between, the wheel may have looked at the timer before the
 * store, so it is as if nothing had been done, and the long way sorts it out. So it does
 * when it is traced: here the timer could be gone before it is told of.
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
	ticks = READ_ONCE(base->counts.ticks);
	if (likely(twheel_base_owns(base, timer) && twheel_may_defer(&timer->node, expires))) {
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
 * twheel_rearm_bhoff - twheel_rearm(), for who has softirqs off
 * @timer:	the timer
 * @expires:	when
 *
 * Context: process or softirq, with softirqs off. Otherwise as twheel_rearm().
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
 * returns: calls for it are serialised. Against twheel_cancel_sync() those of its callback are not,
 * but then twheel_cancel_not_running() has seen that it is not running, and without an entry it
 * does not begin.
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

/* Cancels a timer that is, or was last, on this CPU's wheel. @traced is a constant. */
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
	twheel_debug_assert_init(timer);
	if (trace_twheel_timer_cancel_enabled())
		return cancel_timer_traced(timer);
	return cancel_timer(timer, false);
}
EXPORT_SYMBOL_GPL(twheel_cancel);

/**
 * twheel_cancel_bhoff - twheel_cancel(), for who has softirqs off
 * @timer:	the timer
 *
 * Context: process or softirq, with softirqs off. Otherwise as twheel_cancel().
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
 * What the callback does to the timer, it does without a lock.
 *
 * Context: process or softirq. Serialised with other calls for @timer, but not with
 * those of the timer's own callback. With PREEMPT_RT, preemptible.
 * Return:
 * * %1		- the timer was pending
 * * %0		- it was not, and its callback is not running
 * * %-EBUSY	- its callback is running, or about to; nothing has changed
 * * %-EAGAIN	- another CPU has it in its hands, for a moment; nothing has changed
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
	/* It does not begin, or go on, until this has left the base. */
	if (!twheel_base_running(base, timer))
		ret = cancel_local(base, timer, true);
	twheel_base_leave(base, flags);
	return ret;
}
