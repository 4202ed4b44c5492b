// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: what is done whenever the kernel brings its clocks up to date
 *
 * The kernel tells of that on the notifier chain that is there for the clocks of virtual
 * machines, with its clocks locked and interrupts off, as a rule once a jiffy. So what is done
 * here is the same few steps, whatever programs do.
 *
 * The notifier is there as long as the module is. To register one calls the whole chain as if
 * the clocks had been set: no program shall be able to cause that.
 */
#include <linux/jiffies.h>
#include <linux/pvclock_gtod.h>
#include <linux/timekeeper_internal.h>
#include <linux/timekeeping.h>

#include "clock_jumps.h"
#include "tcp/last_activity.h"
#include "timekeeper.h"
#include "touch.h"

static int clocks_updated(struct notifier_block *block, unsigned long was_set, void *priv)
{
	const struct timekeeper *tk = priv;
	/* In this order, see twheel_note_jiffy(). */
	u64 jiffy = get_jiffies_64();
	/* The only clock that can be read while the clocks are updated. */
	u64 now = ktime_get_mono_fast_ns();

	twheel_touch_publish(now);
	twheel_note_jiffy(jiffy, now);
	if (was_set)
		twheel_clocks_jumped(tk->offs_real, tk->offs_boot);
	return NOTIFY_OK;
}

static struct notifier_block clocks_notifier = {
	.notifier_call	= clocks_updated,
};

/**
 * twheel_timekeeper_init - from now on, follow the kernel's clocks
 *
 * Context: process; may sleep. What is called for it is ready.
 * Return: 0, or an errno.
 */
int __init twheel_timekeeper_init(void)
{
	return pvclock_gtod_register_notifier(&clocks_notifier);
}

/**
 * twheel_timekeeper_exit - the opposite of twheel_timekeeper_init()
 *
 * Context: process; may sleep.
 */
void twheel_timekeeper_exit(void)
{
	pvclock_gtod_unregister_notifier(&clocks_notifier);
}
