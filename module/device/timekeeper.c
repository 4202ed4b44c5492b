// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: what runs whenever the kernel updates its clocks
 *
 * The kernel reports that on a notifier chain meant for the clocks of virtual machines, with the
 * timekeeping lock held and interrupts disabled, usually once a jiffy. So the same few steps run
 * here, whatever programs do.
 *
 * The notifier is registered for as long as the module is loaded. Registering one calls the whole
 * chain as if the clocks had been set: no program must be able to cause that.
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
	/* In this order: see twheel_note_jiffy(). */
	u64 jiffy = get_jiffies_64();
	/* The only clock that can be read during an update. */
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
 * twheel_timekeeper_init - begin to follow the kernel's clocks
 *
 * Context: process; may sleep. What the notifier calls is ready.
 * Return: 0, or an errno.
 */
int __init twheel_timekeeper_init(void)
{
	return pvclock_gtod_register_notifier(&clocks_notifier);
}

/**
 * twheel_timekeeper_exit - undo twheel_timekeeper_init()
 *
 * Context: process; may sleep.
 */
void twheel_timekeeper_exit(void)
{
	pvclock_gtod_unregister_notifier(&clocks_notifier);
}
