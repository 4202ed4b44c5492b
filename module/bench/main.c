// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the device, and the table of schemes
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/preempt.h>
#include <linux/uaccess.h>

#include "bench.h"

/* What a run needs for each timer, besides its object: arrays, entries, and so on. */
#define BYTES_PER_TIMER	128

static const struct bench_scheme *const schemes[] = {
	&bench_scheme_wheel,
	&bench_scheme_timer_list,
	&bench_scheme_hrtimer,
	&bench_scheme_heap,
	&bench_scheme_limit,
};

/* Held during a run. */
static DEFINE_MUTEX(running);

union argument {
	struct twheel_bench_info	info;
	struct twheel_bench_scheme	scheme;
	struct twheel_bench_check	check;
	struct twheel_bench_run		run;
	struct twheel_bench_lateness	lateness;
	struct twheel_bench_memory	memory;
};

static const struct bench_scheme *scheme_at(u32 index)
{
	if (index >= ARRAY_SIZE(schemes))
		return NULL;
	return schemes[array_index_nospec(index, ARRAY_SIZE(schemes))];
}

static int do_info(union argument *arg)
{
	arg->info = (struct twheel_bench_info) {
		.tick_ns	= 1ULL << twheel_tick_shift(),
		.jiffy_ns	= TICK_NSEC,
		.clock_ps	= bench_clock_ps(),
		.nr_schemes	= ARRAY_SIZE(schemes),
		.stride		= sizeof(struct bench_obj),
		.free_bytes	= bench_free_bytes(),
	};
	return 0;
}

static int do_scheme(union argument *arg)
{
	const struct bench_scheme *scheme = scheme_at(arg->scheme.index);

	if (!scheme)
		return -ENOENT;
	arg->scheme.object_size = scheme->object_size;
	arg->scheme.workloads = scheme->workloads;
	arg->scheme.checked = !!scheme->add;
	memset(arg->scheme.name, 0, sizeof(arg->scheme.name));
	strscpy(arg->scheme.name, scheme->name, sizeof(arg->scheme.name));
	return 0;
}

/* Makes this the only run, and keeps it on its CPU. Returns 0 or -EBUSY. */
static int begin_run(void)
{
	if (!mutex_trylock(&running))
		return -EBUSY;
	migrate_disable();
	return 0;
}

static void end_run(void)
{
	migrate_enable();
	mutex_unlock(&running);
}

static int do_check(union argument *arg)
{
	const struct bench_scheme *scheme = scheme_at(arg->check.scheme);
	struct twheel_bench_check req = {
		.seed		= arg->check.seed,
		.scheme		= arg->check.scheme,
		.nr_timers	= arg->check.nr_timers,
	};
	int ret;

	if (!scheme)
		return -ENOENT;
	if (!scheme->add)
		return -EOPNOTSUPP;
	if (!req.nr_timers || req.nr_timers > TWHEEL_BENCH_MAX_CHECK_TIMERS)
		return -EINVAL;
	ret = begin_run();
	if (ret)
		return ret;
	ret = bench_check_run(scheme, &req);
	end_run();
	arg->check = req;
	return ret;
}

static bool fits_in_memory(u32 nr_timers)
{
	u64 bytes = (u64)nr_timers * (sizeof(struct bench_obj) + BYTES_PER_TIMER);

	return bytes >> PAGE_SHIFT < max(si_mem_available(), 0L);
}

static int do_run(union argument *arg)
{
	const struct bench_scheme *scheme = scheme_at(arg->run.scheme);
	struct twheel_bench_run req = {
		.seed		= arg->run.seed,
		.scheme		= arg->run.scheme,
		.order		= arg->run.order,
		.nr_timers	= arg->run.nr_timers,
		.workloads	= arg->run.workloads,
	};
	int ret;

	if (!scheme)
		return -ENOENT;
	if (arg->run.reserved || !req.workloads ||
	    !req.nr_timers || req.nr_timers > TWHEEL_BENCH_MAX_TIMERS)
		return -EINVAL;
	if (req.order > TWHEEL_BENCH_RANDOM || req.workloads & ~scheme->workloads)
		return -EOPNOTSUPP;
	if (!fits_in_memory(req.nr_timers))
		return -ENOMEM;
	ret = begin_run();
	if (ret)
		return ret;
	ret = bench_run(scheme, &req);
	end_run();
	arg->run = req;
	return ret;
}

static int do_lateness(union argument *arg)
{
	const struct bench_scheme *scheme = scheme_at(arg->lateness.scheme);
	struct twheel_bench_lateness req = {
		.seed		= arg->lateness.seed,
		.scheme		= arg->lateness.scheme,
		.nr_timers	= arg->lateness.nr_timers,
		.min_ns		= arg->lateness.min_ns,
		.max_ns		= arg->lateness.max_ns,
	};
	int ret;

	if (!scheme)
		return -ENOENT;
	if (!scheme->add)
		return -EOPNOTSUPP;
	if (!req.nr_timers || req.nr_timers > TWHEEL_BENCH_MAX_CHECK_TIMERS ||
	    !req.min_ns || req.min_ns > req.max_ns ||
	    req.max_ns > TWHEEL_BENCH_MAX_TIMEOUT_NS)
		return -EINVAL;
	ret = begin_run();
	if (ret)
		return ret;
	ret = bench_lateness(scheme, &req);
	end_run();
	arg->lateness = req;
	return ret;
}

static int do_memory(union argument *arg)
{
	const struct bench_scheme *scheme = scheme_at(arg->memory.scheme);
	struct twheel_bench_memory req = {
		.seed		= arg->memory.seed,
		.scheme		= arg->memory.scheme,
		.nr_timers	= arg->memory.nr_timers,
	};
	int ret;

	if (!scheme)
		return -ENOENT;
	if (!scheme->add)
		return -EOPNOTSUPP;
	if (!req.nr_timers || req.nr_timers > TWHEEL_BENCH_MAX_TIMERS)
		return -EINVAL;
	if (!fits_in_memory(req.nr_timers))
		return -ENOMEM;
	ret = begin_run();
	if (ret)
		return ret;
	ret = bench_memory(scheme, &req);
	end_run();
	arg->memory = req;
	return ret;
}

/**
 * struct operation - what there is to know of an ioctl
 * @cmd:	its number, with the size that this kernel knows
 * @min_size:	size of the structure's first version
 * @run:	does it; writes the answer over the question
 */
struct operation {
	unsigned int	cmd;
	unsigned int	min_size;
	int		(*run)(union argument *arg);
};

static const struct operation operations[] = {
	{
		.cmd		= TWHEEL_BENCH_IOC_INFO,
		.min_size	= offsetofend(struct twheel_bench_info, stride),
		.run		= do_info,
	}, {
		.cmd		= TWHEEL_BENCH_IOC_SCHEME,
		.min_size	= offsetofend(struct twheel_bench_scheme, name),
		.run		= do_scheme,
	}, {
		.cmd		= TWHEEL_BENCH_IOC_CHECK,
		.min_size	= offsetofend(struct twheel_bench_check, wrong),
		.run		= do_check,
	}, {
		.cmd		= TWHEEL_BENCH_IOC_RUN,
		.min_size	= offsetofend(struct twheel_bench_run, result),
		.run		= do_run,
	}, {
		.cmd		= TWHEEL_BENCH_IOC_LATENESS,
		.min_size	= offsetofend(struct twheel_bench_lateness, late),
		.run		= do_lateness,
	}, {
		.cmd		= TWHEEL_BENCH_IOC_MEMORY,
		.min_size	= offsetofend(struct twheel_bench_memory, most),
		.run		= do_memory,
	},
};

/* The ioctl of number @cmd, with a structure of whatever size; or NULL. */
static const struct operation *find_operation(unsigned int cmd)
{
	const unsigned int all_but_size = ~(_IOC_SIZEMASK << _IOC_SIZESHIFT);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(operations); i++)
		if (!((operations[i].cmd ^ cmd) & all_but_size))
			return &operations[i];
	return NULL;
}

static long bench_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	const struct operation *operation = find_operation(cmd);
	void __user *ptr = (void __user *)user;
	size_t size = _IOC_SIZE(cmd), known;
	union argument arg;
	int ret;

	if (!operation)
		return -ENOTTY;
	if (size < operation->min_size)
		return -EINVAL;
	known = _IOC_SIZE(operation->cmd);
	ret = copy_struct_from_user(&arg, known, ptr, size);
	if (!ret)
		ret = operation->run(&arg);
	if (!ret && copy_to_user(ptr, &arg, min(size, known)))
		ret = -EFAULT;
	return ret;
}

static int bench_open(struct inode *inode, struct file *file)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return stream_open(inode, file);
}

static const struct file_operations bench_fops = {
	.owner		= THIS_MODULE,
	.open		= bench_open,
	.unlocked_ioctl	= bench_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static struct miscdevice bench_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "twheel_bench",
	.fops	= &bench_fops,
	.mode	= 0600,
};

static int __init bench_module_init(void)
{
	return misc_register(&bench_device);
}

static void __exit bench_module_exit(void)
{
	misc_deregister(&bench_device);
}

module_init(bench_module_init);
module_exit(bench_module_exit);

MODULE_DESCRIPTION("Timer schemes compared");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(TWHEEL_VERSION);
