// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API: timers on a CPU that goes offline
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "lib/compat.h"
#include "test.h"

#define MOST 100000

static DEFINE_MUTEX(hotplug_lock);
static struct probe *hotplug_probes;
static unsigned int hotplug_n;
static unsigned int hotplug_far;
static unsigned int hotplug_cancelled;

/* Registered after twheel's own states, so called after them. */
static enum cpuhp_state refusing_state;

/* Called before a CPU comes online: fails for CPUs that come back after a suspend. */
static int refuse_cpu(unsigned int cpu)
{
	return cpuhp_tasks_frozen ? -EIO : 0;
}

int hotplug_refuse(bool on)
{
	bool refusing = refusing_state > 0;
	int ret;

	if (on == refusing)
		return 0;
	if (!on) {
		cpuhp_remove_state_nocalls(refusing_state);
		refusing_state = 0;
		return 0;
	}
	ret = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "twheel_test:refuse", refuse_cpu,
					NULL);
	if (ret < 0)
		return ret;
	refusing_state = ret;
	return 0;
}

void hotplug_forget(void)
{
	if (hotplug_probes)
		probes_destroy(hotplug_probes, hotplug_n);
	hotplug_probes = NULL;
	hotplug_n = 0;
	hotplug_far = 0;
	hotplug_cancelled = 0;
}

/**
 * struct arming - timers to arm on one CPU
 * @spread_ms:	they are due within this many milliseconds; every tenth an hour later
 * @failures:	calls that returned the wrong value
 */
struct arming {
	unsigned int	spread_ms;
	unsigned int	failures;
};

static void hotplug_arm(void *arg)
{
	struct arming *arming = arg;
	unsigned int i;
	u64 deadline;

	for (i = 0; i < hotplug_n; i++) {
		deadline = in_ns(get_random_u32_below(arming->spread_ms) * (u64)NSEC_PER_MSEC +
				 random_ns(NSEC_PER_MSEC));
		if (i % 10 == 9) {
			deadline += HOUR_NS;
			hotplug_far++;
		}
		arming->failures += probe_add(&hotplug_probes[i], deadline) != 0;
	}
}

static int hotplug_cancel(void)
{
	unsigned int i;

	for (i = 0; i < hotplug_n; i++)
		hotplug_cancelled += twheel_cancel(&hotplug_probes[i].timer);
	return 0;
}

/* Brings back the CPUs that a suspend did not. Their devices do not know that they are offline. */
static int hotplug_bring_back(void)
{
	unsigned int cpu;
	int ret = 0;

	for_each_present_cpu(cpu) {
		if (cpu_online(cpu))
			continue;
		dev_set_offline(get_cpu_device(cpu));
		ret = ret ?: add_cpu(cpu);
	}
	return ret;
}

/* The wheel is given pages before it turns out that the timer may not be armed. */
static void hotplug_rearm_shut(void *arg)
{
	static struct probe probe;
	unsigned int i, *failures = arg;

	probe_init(&probe);
	twheel_shutdown(&probe.timer);
	for (i = 0; i < 10; i++)
		*failures += probe_rearm(&probe, 0) != -ESHUTDOWN;
}

static int hotplug_command(const char *command)
{
	struct arming arming = { };
	unsigned int cpu, n, failures = 0;

	if (sysfs_streq(command, "cancel"))
		return hotplug_cancel();
	if (sysfs_streq(command, "refuse"))
		return hotplug_refuse(true);
	if (sysfs_streq(command, "allow"))
		return hotplug_refuse(false);
	if (sysfs_streq(command, "bring"))
		return hotplug_bring_back();
	if (sscanf(command, "rearm-shut %u", &cpu) == 1 && cpu < nr_cpu_ids && cpu_online(cpu)) {
		on_cpu(cpu, hotplug_rearm_shut, &failures);
		return failures ? -EIO : 0;
	}
	if (sscanf(command, "arm %u %u %u", &cpu, &n, &arming.spread_ms) != 3 ||
	    cpu >= nr_cpu_ids || !cpu_online(cpu) || !n || n > MOST || !arming.spread_ms)
		return -EINVAL;
	hotplug_forget();
	hotplug_probes = probes_create(n);
	if (!hotplug_probes)
		return -ENOMEM;
	hotplug_n = n;
	on_cpu(cpu, hotplug_arm, &arming);
	return arming.failures ? -EIO : 0;
}

/*
 * "arm CPU N MS" arms N timers on a CPU: every tenth for an hour from now, the others within MS
 * milliseconds. "cancel" cancels those that are left. From "refuse" to "allow", no CPU comes back
 * after a suspend; "bring" brings it back. "rearm-shut CPU" re-arms one there that is shut down.
 */
static ssize_t hotplug_write(struct file *file, const char __user *from, size_t size,
			     loff_t *pos)
{
	char command[64];
	int ret;

	if (size >= sizeof(command))
		return -EINVAL;
	if (copy_from_user(command, from, size))
		return -EFAULT;
	command[size] = '\0';
	mutex_lock(&hotplug_lock);
	ret = hotplug_command(command);
	mutex_unlock(&hotplug_lock);
	return ret ?: size;
}

static int hotplug_show(struct seq_file *m, void *unused)
{
	unsigned int i, fired = 0, early = 0, twice = 0, pending = 0;
	const struct probe *probe;

	mutex_lock(&hotplug_lock);
	for (i = 0; i < hotplug_n; i++) {
		probe = &hotplug_probes[i];
		fired += atomic_read(&probe->fired);
		twice += atomic_read(&probe->fired) > 1;
		early += atomic_read(&probe->early) || atomic_read(&probe->wrong);
		pending += twheel_pending(&probe->timer);
	}
	seq_printf(m, "armed=%u near=%u far=%u fired=%u early=%u twice=%u pending=%u cancelled=%u\n",
		   hotplug_n, hotplug_n - hotplug_far, hotplug_far, fired, early, twice, pending,
		   hotplug_cancelled);
	mutex_unlock(&hotplug_lock);
	return 0;
}

static int hotplug_open(struct inode *inode, struct file *file)
{
	return single_open(file, hotplug_show, NULL);
}

const struct file_operations hotplug_fops = {
	.owner		= THIS_MODULE,
	.open		= hotplug_open,
	.read		= seq_read,
	.write		= hotplug_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};
