// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds CPUs up, for tests of what then is late
 *
 * Writing a number of nanoseconds to /sys/module/twheel_stall/parameters/ns has all other
 * CPUs do nothing, with interrupts off, for that long. The write does not wait for it. If one
 * of them is the one that counts jiffies, they stand still for some ticks.
 */
#include <linux/delay.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/time64.h>

/* Longer ones the kernel itself would find fault with. */
#define MOST_NS	(200ULL * NSEC_PER_MSEC)

static void stall(void *us)
{
	udelay((unsigned long)us % USEC_PER_MSEC);
	mdelay((unsigned long)us / USEC_PER_MSEC);
}

static int set_ns(const char *value, const struct kernel_param *kp)
{
	u64 ns;
	int ret = kstrtou64(value, 0, &ns);

	if (ret)
		return ret;
	if (ns > MOST_NS)
		return -ERANGE;
	preempt_disable();
	smp_call_function(stall, (void *)(unsigned long)(ns / NSEC_PER_USEC), false);
	preempt_enable();
	return 0;
}

static const struct kernel_param_ops ns_ops = { .set = set_ns };
module_param_cb(ns, &ns_ops, NULL, 0200);
MODULE_PARM_DESC(ns, "hold up the other CPUs for so long");

/* Nobody waits for a stall but this: its code must not go before it has ended. */
static void __exit twheel_stall_exit(void)
{
	kick_all_cpus_sync();
}
module_exit(twheel_stall_exit);

MODULE_DESCRIPTION("Holds CPUs up, for tests of twheel");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
