// SPDX-License-Identifier: GPL-2.0-only
/*
 * Misuses twheel's in-kernel API, for kernels that detect it
 *
 * Loading the module does what the parameter "how" names, and succeeds if the machine survives.
 * selftests/check/test-misuse.sh checks what the kernel has reported.
 */
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "lib/compat.h"
#include "twheel.h"

#define HOUR_NS		(3600ULL * NSEC_PER_SEC)

static char *how = "";
module_param(how, charp, 0444);
MODULE_PARM_DESC(how, "what to do wrong");

static void do_nothing(struct twheel_timer *timer)
{
}

static struct twheel_timer *new_timer(void)
{
	struct twheel_timer *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (timer)
		twheel_timer_init(timer, do_nothing);
	return timer;
}

/* Correct use. */
static void nothing(struct twheel_timer *timer)
{
	static DEFINE_TWHEEL_TIMER(static_timer, do_nothing);
	struct twheel_timer on_stack;

	twheel_timer_init_on_stack(&on_stack, do_nothing);
	twheel_add_rel(&on_stack, 0);
	twheel_rearm_rel(&static_timer, 0);
	twheel_rearm_rel(timer, HOUR_NS);
	twheel_rearm_rel(timer, 2 * HOUR_NS);
	twheel_cancel_sync(&on_stack);
	twheel_shutdown_sync(&static_timer);
	twheel_timer_destroy_on_stack(&on_stack);
	twheel_shutdown(timer);
	twheel_shutdown_sync(timer);
	kfree(timer);
}

static void armed_is_freed(struct twheel_timer *timer)
{
	twheel_add_rel(timer, HOUR_NS);
	kfree(timer);
}

static void armed_is_initialised(struct twheel_timer *timer)
{
	twheel_add_rel(timer, HOUR_NS);
	twheel_timer_init(timer, do_nothing);
	kfree(timer);
}

static void not_initialised(struct twheel_timer *timer)
{
	struct twheel_timer *none = kzalloc(sizeof(*none), GFP_KERNEL);

	kfree(timer);
	if (!none)
		return;
	twheel_add_rel(none, 0);
	twheel_cancel_sync(none);
	kfree(none);
}

static void cancelled_not_initialised(struct twheel_timer *timer)
{
	struct twheel_timer *none = kzalloc(sizeof(*none), GFP_KERNEL);

	kfree(timer);
	if (none)
		twheel_cancel_sync(none);
	kfree(none);
}

static void unknown_on_stack(struct twheel_timer *timer)
{
	struct twheel_timer on_stack;

	kfree(timer);
	twheel_timer_init(&on_stack, do_nothing);
	twheel_timer_destroy_on_stack(&on_stack);
}

static struct twheel_timer *from_interrupt;
static DECLARE_COMPLETION(interrupted);

static enum hrtimer_restart in_interrupt_later(struct hrtimer *hrtimer)
{
	twheel_rearm_rel(from_interrupt, 2 * HOUR_NS);
	complete(&interrupted);
	return HRTIMER_NORESTART;
}

/* Only its deadline is stored, which breaks nothing. */
static void in_hard_interrupt(struct twheel_timer *timer)
{
	static struct hrtimer hrtimer;

	from_interrupt = timer;
	hrtimer_setup(&hrtimer, in_interrupt_later, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	migrate_disable();
	twheel_rearm_rel(timer, HOUR_NS);
	hrtimer_start(&hrtimer, ns_to_ktime(NSEC_PER_MSEC), HRTIMER_MODE_REL_PINNED_HARD);
	wait_for_completion(&interrupted);
	migrate_enable();
	hrtimer_cancel(&hrtimer);
	twheel_cancel_sync(timer);
	kfree(timer);
}

static const struct {
	const char	*name;
	void		(*misuse)(struct twheel_timer *timer);
} misuses[] = {
	{ "nothing",			nothing },
	{ "armed-is-freed",		armed_is_freed },
	{ "armed-is-initialised",	armed_is_initialised },
	{ "not-initialised",		not_initialised },
	{ "cancelled-not-initialised",	cancelled_not_initialised },
	{ "unknown-on-stack",		unknown_on_stack },
	{ "in-hard-interrupt",		in_hard_interrupt },
};

static int __init twheel_misuse_init(void)
{
	struct twheel_timer *timer;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(misuses); i++) {
		if (strcmp(how, misuses[i].name))
			continue;
		timer = new_timer();
		if (!timer)
			return -ENOMEM;
		misuses[i].misuse(timer);
		return 0;
	}
	return -EINVAL;
}
module_init(twheel_misuse_init);

static void __exit twheel_misuse_exit(void)
{
}
module_exit(twheel_misuse_exit);

MODULE_DESCRIPTION("Misuse of twheel's in-kernel API, for tests");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
