/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: one CPU's wheel and what drives it, as the files of the timer core use it
 */
#ifndef _TWHEEL_CORE_CPU_BASE_H
#define _TWHEEL_CORE_CPU_BASE_H

#include <linux/hrtimer.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/timer.h>

#include "lib/compat.h"
#include "lib/inject.h"
#include "pages.h"
#include "stats.h"
#include "timer.h"
#include "twheel.h"
#include "wheel.h"

/* Chunks expired, or moved, in one go, at most. */
#define TWHEEL_BATCH		32U

/* When fewer chunks than this are free, a page is added: each entry may need a chunk. */
#define TWHEEL_CHUNKS_LOW	(TWHEEL_BATCH * TWHEEL_CHUNK_CELLS)

/* Tasks leave this many to the softirqs: see pages.c. */
#define TWHEEL_CHUNKS_LOW_TASK	(TWHEEL_CHUNKS_LOW + TWHEEL_PAGE_CHUNKS + 1)

/* Why %TWHEEL_FREE_ASK is set. */
#define TWHEEL_ASK_PAYERS	1U	/* payers could not be charged: see pages.c */
#define TWHEEL_ASK_ISOLATION	2U	/* the CPU may have become isolated: see isolation.c */

/**
 * struct twheel_base - one CPU's wheel and what drives it
 * @cpu:	the CPU; constant
 * @in_expiry:	the hrtimer's function is running: it will program the hrtimer, so
 *		nobody else has to
 * @running:	the timer whose callback is running, or which was called last by the
 *		hrtimer's function, which is still running; or NULL. Read by any CPU
 * @programmed:	the time that the hrtimer is set to, in nanoseconds, or %TWHEEL_NEVER
 * @rest_until:	when to go on with what is overdue, in nanoseconds, after expiry took too long
 * @batch:	chunks to expire in one go: fewer while callbacks take long
 * @behind:	nanoseconds from the time up to which timers are due until now, plus one
 * @counts:	statistics
 * @hrtimer:	fires at the next occupied slot of the wheel. Started on its own CPU
 *		only, except for the callbacks of a CPU that is going offline
 * @lock:	guards @wheel, everything else here except @running, and the timers whose
 *		owner is this CPU, against other tasks and softirqs of this CPU
 *		(PREEMPT_RT only). Taken in process and softirq context with softirqs
 *		disabled; never held across a callback. Outside of @wheel.lock
 * @waiters:	how many twheel_cancel_sync() are waiting for a callback (PREEMPT_RT only)
 * @expiry_lock: held while callbacks run, so that a task that waits for one lends
 *		it its priority (PREEMPT_RT only). Taken outside of @lock
 * @wheel:	the timers
 * @ask:	why %TWHEEL_FREE_ASK is set: any of TWHEEL_ASK_*
 * @has_lease:	the CPU may arm timers without checking whether it is isolated
 * @lease_end:	until when, in jiffies
 * @lease_timer: ends the lease. Started on its own CPU only
 * @target:	where the timers of this CPU went when it was last found to be isolated; @cpu if
 *		that has to be searched for. A hint; read and written by this CPU, and reset by
 *		any that comes online, without a lock
 * @remote_pending: timers have been added to the wheel's remote list, and the hrtimer's function
 *		has not checked it since; it will by the next tick. Set and cleared under
 *		@wheel.lock; the CPU itself also reads and sets it without the lock
 * @csd_in_flight: how many calls by @csd are on their way or still running
 * @csd:	makes the CPU check @remote_pending; sent under @wheel.lock
 *
 * Without PREEMPT_RT, all of this except @running and what @wheel.lock guards belongs to the
 * CPU alone: see twheel_base_enter().
 */
struct twheel_base {
	unsigned int		cpu;
	bool			in_expiry;
	struct twheel_timer	*running;
	u64			programmed;
	u64			rest_until;
	unsigned int		batch;
	u64			behind;
	struct twheel_counts	counts;
	struct hrtimer		hrtimer;
#ifdef CONFIG_PREEMPT_RT
	spinlock_t		lock;
	atomic_t		waiters;
	spinlock_t		expiry_lock;
#endif
	struct twheel		wheel;
	unsigned int		ask;
	bool			has_lease;
	unsigned long		lease_end;
	struct timer_list	lease_timer;
	unsigned int		target;
	bool			remote_pending;
	atomic_t		csd_in_flight;
	call_single_data_t	csd;
};

/* Each possible CPU's base. Constant between init and exit. */
DECLARE_PER_CPU(struct twheel_base *, twheel_bases);

static inline struct twheel_base *twheel_base_of(unsigned int cpu)
{
	return per_cpu(twheel_bases, cpu);
}

/* The base that a timer belongs to; another CPU may be migrating the timer right now. */
static inline struct twheel_base *twheel_base_owner(const struct twheel_timer *timer)
{
	/* Pairs with the WRITE_ONCE()s of @owner. */
	return twheel_base_of(READ_ONCE(timer->node.owner));
}

/* Is a timer on this CPU's wheel, or was it last? */
static __always_inline bool twheel_base_owns(const struct twheel_base *base,
					     const struct twheel_timer *timer)
{
	/* Pairs with the WRITE_ONCE()s of @owner. */
	return READ_ONCE(timer->node.owner) == base->cpu;
}

/* The current tick. */
static inline u64 twheel_base_now(const struct twheel_base *base)
{
	return ktime_get_ns() >> base->wheel.shift;
}

/* Is the timer's callback running, or about to run? */
static inline bool twheel_base_running(const struct twheel_base *base,
				       const struct twheel_timer *timer)
{
	/* Pairs with the stores in expiry.c. */
	return smp_load_acquire(&base->running) == timer;
}

/*
 * Makes lockdep warn about a call from a hard interrupt, which may have interrupted another
 * operation on the wheel.
 */
static __always_inline void twheel_base_assert_context(void)
{
	lockdep_assert_once(!in_hardirq());
}

/*
 * twheel_base_enter() and _leave() enclose any operation on this CPU's base outside of the
 * hrtimer's function, and _lock() and _unlock() the operations of that function. No softirq
 * runs while interrupts are off, and a softirq runs to completion before any task continues:
 * so it is enough to disable interrupts, and cheaper than to disable softirqs. Callers with
 * softirqs already disabled have nothing to do: _enter_bhoff() and _leave_bhoff(). With
 * PREEMPT_RT, a softirq is a thread that can be preempted, so a lock is taken. It is not a
 * local_lock_t because other CPUs take it, too: in twheel_base_wait_running(), and in the
 * hrtimer's function if the hrtimer has moved there.
 */
#ifdef CONFIG_PREEMPT_RT
static inline void twheel_base_lock(struct twheel_base *base)
	__acquires(&base->lock)
{
	spin_lock_bh(&base->lock);
}

static inline void twheel_base_unlock(struct twheel_base *base)
	__releases(&base->lock)
{
	spin_unlock_bh(&base->lock);
}

static inline struct twheel_base *twheel_base_enter(unsigned long *flags)
{
	struct twheel_base *base;

	twheel_base_assert_context();
	migrate_disable();
	base = __this_cpu_read(twheel_bases);
	twheel_base_lock(base);
	*flags = 0;
	return base;
}

static inline void twheel_base_leave(struct twheel_base *base, unsigned long flags)
{
	twheel_base_unlock(base);
	migrate_enable();
}

static inline struct twheel_base *twheel_base_enter_bhoff(void)
{
	unsigned long flags;

	return twheel_base_enter(&flags);
}

static inline void twheel_base_leave_bhoff(struct twheel_base *base)
{
	twheel_base_leave(base, 0);
}

/* Lets the owner of a base finish what it has begun. */
static inline void twheel_base_wait_running(struct twheel_base *base)
{
	twheel_base_lock(base);
	twheel_base_unlock(base);
}
#else
static inline void twheel_base_lock(struct twheel_base *base) { }
static inline void twheel_base_unlock(struct twheel_base *base) { }

static __always_inline struct twheel_base *twheel_base_enter(unsigned long *flags)
{
	twheel_base_assert_context();
	local_irq_save(*flags);
	return __this_cpu_read(twheel_bases);
}

static __always_inline void twheel_base_leave(struct twheel_base *base, unsigned long flags)
{
	local_irq_restore(flags);
}

static __always_inline struct twheel_base *twheel_base_enter_bhoff(void)
{
	lockdep_assert_in_softirq();
	return __this_cpu_read(twheel_bases);
}

static __always_inline void twheel_base_leave_bhoff(struct twheel_base *base) { }

static inline void twheel_base_wait_running(struct twheel_base *base)
{
	cpu_relax();
}
#endif

/* Sets, or clears, one of the reasons to consult the allocator before each new entry. */
static inline void twheel_base_set_ask(struct twheel_base *base, unsigned int reason, bool ask)
{
	base->ask = ask ? base->ask | reason : base->ask & ~reason;
	if (base->ask)
		base->wheel.stats.free |= TWHEEL_FREE_ASK;
	else
		base->wheel.stats.free &= ~TWHEEL_FREE_ASK;
}

/*
 * Before a timer is armed: gives this CPU's wheel a page of chunks when few are left, or if
 * %TWHEEL_FREE_ASK is set. Returns false if the timer must be enqueued on another wheel, because
 * this CPU is isolated.
 */
static __always_inline bool twheel_base_refill(void)
{
	struct twheel_base *base = raw_cpu_read(twheel_bases);

	/* A hint: the task may migrate at any moment, and nothing depends on it. */
	if (unlikely((long)data_race(base->wheel.stats.free) < (long)TWHEEL_CHUNKS_LOW_TASK))
		return twheel_pages_refill(true);
	return true;
}

/* The same for what is enqueued on this CPU's wheel even if the CPU is isolated. */
static __always_inline void twheel_base_refill_here(void)
{
	struct twheel_base *base = raw_cpu_read(twheel_bases);

	/* A hint, as above. */
	if (unlikely(data_race(twheel_nr_free(&base->wheel.stats)) < TWHEEL_CHUNKS_LOW_TASK ||
		     /* As above. */
		     data_race(base->ask) & TWHEEL_ASK_PAYERS))
		twheel_pages_refill(false);
}

/*
 * A timer has been enqueued on this CPU's wheel, which reaches it at @time. Makes sure that the
 * hrtimer fires by then. Returns when the wheel reaches the timer.
 */
static __always_inline u64 twheel_base_program(struct twheel_base *base, struct twheel_timer *timer,
					       u64 expires, u64 time)
{
	if (unlikely(time < base->programmed) && !base->in_expiry)
		time = twheel_base_enqueue_first(base, timer, expires);
	return time;
}

/*
 * Enqueues a timer that has no entry on this CPU's wheel. Returns when the wheel reaches
 * it.
 */
static __always_inline u64 twheel_base_enqueue(struct twheel_base *base,
					       struct twheel_timer *timer, u64 expires)
{
	return twheel_base_program(base, timer, expires,
				   twheel_enqueue(&base->wheel, &timer->node, expires));
}

#endif /* _TWHEEL_CORE_CPU_BASE_H */
