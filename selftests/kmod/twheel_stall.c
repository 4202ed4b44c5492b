// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stalls CPUs, for tests of what is late then
 *
 * Writing a number of nanoseconds to /sys/module/twheel_stall/parameters/ns makes all other
 * CPUs spin for that long, with interrupts off. The write does not wait for them. If one of them
 * is the CPU that counts jiffies, jiffies stand still for some ticks.
 *
 * Writing one to parameters/update_ns stalls the CPU that sets a clock, from now on, in the middle
 * of the update: modules that were loaded before have been notified, and other CPUs that read a
 * clock spin until it is over.
 */
#include <linux/delay.h>
#include <linux/kstrtox.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/pvclock_gtod.h>
#include <linux/smp.h>
#include <linux/time64.h>

/* The kernel itself would complain about longer ones. */
#define MOST_NS	(200ULL * NSEC_PER_MSEC)

static void stall_cpu(void *us)
{
	udelay((unsigned long)us % USEC_PER_MSEC);
	mdelay((unsigned long)us / USEC_PER_MSEC);
}

static int parse_ns(const char *value, u64 *ns)
{
	int ret = kstrtou64(value, 0, ns);

	return ret ?: *ns > MOST_NS ? -ERANGE : 0;
}

static int set_ns(const char *value, const struct kernel_param *kp)
{
	u64 ns;
	int ret = parse_ns(value, &ns);

	if (ret)
		return ret;
	preempt_disable();
	smp_call_function(stall_cpu, (void *)(unsigned long)(ns / NSEC_PER_USEC), false);
	preempt_enable();
	return 0;
}

static const struct kernel_param_ops ns_ops = { .set = set_ns };
module_param_cb(ns, &ns_ops, NULL, 0200);
MODULE_PARM_DESC(ns, "hold up the other CPUs for so long");

/* Written by the parameter, and read by updates. */
static u64 update_ns;

static int stall_update(struct notifier_block *block, unsigned long was_set, void *priv)
{
	if (was_set)
		stall_cpu((void *)(unsigned long)(READ_ONCE(update_ns) / NSEC_PER_USEC));
	return NOTIFY_OK;
}

static struct notifier_block update_notifier = {
	.notifier_call	= stall_update,
	.priority	= INT_MIN,
};

static int set_update_ns(const char *value, const struct kernel_param *kp)
{
	u64 ns;
	int ret = parse_ns(value, &ns);

	if (!ret)
		WRITE_ONCE(update_ns, ns);
	return ret;
}

static const struct kernel_param_ops update_ns_ops = { .set = set_update_ns };
module_param_cb(update_ns, &update_ns_ops, NULL, 0200);
MODULE_PARM_DESC(update_ns, "hold up those who set a clock for so long");

static int __init twheel_stall_init(void)
{
	return pvclock_gtod_register_notifier(&update_notifier);
}
module_init(twheel_stall_init);

/* Only this waits for stalls: the code must not go away before they have ended. */
static void __exit twheel_stall_exit(void)
{
	pvclock_gtod_unregister_notifier(&update_notifier);
	kick_all_cpus_sync();
}
module_exit(twheel_stall_exit);

MODULE_DESCRIPTION("Holds CPUs up, for tests of twheel");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
