// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: cancelling a timer and waiting for its callback
 *
 * The comment at the head of expiry.c shows how this and the callbacks synchronise.
 */
#include <linux/export.h>
#include <linux/lockdep.h>

#include "cpu_base.h"
#include "debug_timers.h"
#include "lib/inject.h"
#include "timer.h"
#include "twheel.h"

#ifdef CONFIG_PREEMPT_RT
/* Expiry releases this lock between callbacks if anybody is waiting. */
static void wait_for_callback(struct twheel_base *base)
{
	atomic_inc(&base->waiters);
	spin_lock_bh(&base->expiry_lock);
	atomic_dec(&base->waiters);
	spin_unlock_bh(&base->expiry_lock);
}
#else
static void wait_for_callback(struct twheel_base *base)
{
	cpu_relax();
}
#endif

/**
 * twheel_cancel_sync - disarm a timer and wait for its callback
 * @timer:	the timer
 *
 * When this returns, the timer is not armed and its callback is not running. A callback
 * that arms its own timer is waited for, and the timer is then cancelled. The caller must
 * not hold a lock that the callback takes:
 *
 *	CPU 0				CPU 1
 *	spin_lock_bh(&lock)		the timer expires
 *	twheel_cancel_sync()		callback: spin_lock(&lock)
 *	   waits for the callback	   waits for the lock
 *
 * lockdep reports this. Must not be called by the timer's own callback.
 *
 * Context: process or softirq. Serialised with other calls for @timer, but not with those of the
 * timer's own callback, unless that initialises it again. With PREEMPT_RT, preemptible.
 * Return:
 * * %1		- the timer was pending: its callback has not been called for this
 *		  arming
 * * %0		- it was not
 */
int twheel_cancel_sync(struct twheel_timer *timer)
{
	struct twheel_base *base;
	int ret;

	twheel_debug_assert_init(timer);
#ifdef CONFIG_LOCKDEP
	local_bh_disable();
	lock_map_acquire(&timer->map);
	lock_map_release(&timer->map);
	local_bh_enable();
#endif
	for (;;) {
		twheel_inject_until(TWHEEL_POINT_CANCEL, !twheel_pending(timer));
		ret = twheel_cancel_not_running(timer);
		if (ret >= 0)
			return ret;
		base = twheel_base_owner(timer);
		if (ret == -EAGAIN) {
			twheel_base_wait_running(base);
			continue;
		}
		twheel_inject(TWHEEL_POINT_WAIT);
		wait_for_callback(base);
	}
}
EXPORT_SYMBOL_GPL(twheel_cancel_sync);
