// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stalls CPUs, for tests of what is late then
 *
 * Writing a number of nanoseconds to /sys/module/twheel_stall/parameters/ns makes all other
 * CPUs spin for that long, with interrupts off. The write does not wait for them. If one of them
 * is the CPU that counts jiffies, jiffies stand still for some ticks.
 */
#include <linux/delay.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/time64.h>

/* The kernel itself would complain about longer ones. */
#define MOST_NS	(200ULL * NSEC_PER_MSEC)

static void stall_cpu(void *us)
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
	smp_call_function(stall_cpu, (void *)(unsigned long)(ns / NSEC_PER_USEC), false);
	preempt_enable();
	return 0;
}

static const struct kernel_param_ops ns_ops = { .set = set_ns };
module_param_cb(ns, &ns_ops, NULL, 0200);
MODULE_PARM_DESC(ns, "hold up the other CPUs for so long");

/* Only this waits for stalls: the code must not go away before they have ended. */
static void __exit twheel_stall_exit(void)
{
	kick_all_cpus_sync();
}
module_exit(twheel_stall_exit);

MODULE_DESCRIPTION("Holds CPUs up, for tests of twheel");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
