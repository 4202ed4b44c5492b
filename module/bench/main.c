// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the device, and the table of schemes
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/preempt.h>
#include <linux/string.h>

#include "bench.h"
#include "lib/ioctl.h"

/* What a run needs per timer, besides its object: arrays, entries, and so on. */
#define BYTES_PER_TIMER	128

static const struct bench_scheme *const schemes[] = {
	&bench_scheme_wheel,
	&bench_scheme_timer_list,
	&bench_scheme_hrtimer,
	&bench_scheme_heap,
	&bench_scheme_heap_lazy,
	&bench_scheme_rbtree,
	&bench_scheme_netty,
	&bench_scheme_gozero,
	&bench_scheme_php,
	&bench_scheme_keyed,
	&bench_scheme_kafka,
	&bench_scheme_idle_ring,
	&bench_scheme_scan,
	&bench_scheme_limit,
};

/* Held during a run. Taken in process context. */
static DEFINE_MUTEX(run_lock);

static const struct bench_scheme *scheme_at(u32 index)
{
	if (index >= ARRAY_SIZE(schemes))
		return NULL;
	return schemes[array_index_nospec(index, ARRAY_SIZE(schemes))];
}

static long do_info(const struct twheel_ioctl_call *call)
{
	*(struct twheel_bench_info *)call->arg = (struct twheel_bench_info) {
		.tick_ns	= 1ULL << twheel_tick_shift(),
		.jiffy_ns	= TICK_NSEC,
		.clock_ps	= bench_clock_ps(),
		.nr_schemes	= ARRAY_SIZE(schemes),
		.stride		= sizeof(struct bench_obj),
		.free_bytes	= bench_free_bytes(),
	};
	return twheel_ioctl_respond(call);
}

static long do_scheme(const struct twheel_ioctl_call *call)
{
	struct twheel_bench_scheme *req = call->arg;
	const struct bench_scheme *scheme = scheme_at(req->index);

	if (!scheme)
		return -ENOENT;
	req->object_size = scheme->object_size;
	req->workloads = scheme->workloads;
	req->checked = !!scheme->add;
	memset(req->name, 0, sizeof(req->name));
	strscpy(req->name, scheme->name, sizeof(req->name));
	return twheel_ioctl_respond(call);
}

static bool fits_in_memory(u32 nr_timers)
{
	u64 bytes = (u64)nr_timers * (sizeof(struct bench_obj) + BYTES_PER_TIMER);

	return bytes >> PAGE_SHIFT < max(si_mem_available(), 0L);
}

/*
 * Makes this the only run, and keeps it on its CPU. Returns the scheme with this index; or
 * an ERR_PTR if there is none, if it does not support the workloads, if @nr_timers is 0 or
 * more than @max_timers, or if it cannot run now.
 */
static const struct bench_scheme *begin_run(u32 index, u32 workloads, u32 nr_timers,
					    u32 max_timers)
{
	const struct bench_scheme *scheme = scheme_at(index);

	if (!scheme)
		return ERR_PTR(-ENOENT);
	if (!nr_timers || nr_timers > max_timers)
		return ERR_PTR(-EINVAL);
	if (workloads & ~scheme->workloads)
		return ERR_PTR(-EOPNOTSUPP);
	if (!fits_in_memory(nr_timers))
		return ERR_PTR(-ENOMEM);
	if (!mutex_trylock(&run_lock))
		return ERR_PTR(-EBUSY);
	migrate_disable();
	return scheme;
}

/* Ends a run whose result is @ret, and copies out the answer if that is 0. */
static long end_run(const struct twheel_ioctl_call *call, int ret)
{
	migrate_enable();
	mutex_unlock(&run_lock);
	return ret ?: twheel_ioctl_respond(call);
}

static long do_check(const struct twheel_ioctl_call *call)
{
	struct twheel_bench_check *req = call->arg;
	const struct bench_scheme *scheme;

	scheme = begin_run(req->scheme, BENCH_TIMER_WORKLOADS, req->nr_timers,
			   TWHEEL_BENCH_MAX_CHECK_TIMERS);
	if (IS_ERR(scheme))
		return PTR_ERR(scheme);
	memset_startat(req, 0, ops);
	return end_run(call, bench_check_run(scheme, req));
}

static long do_run(const struct twheel_ioctl_call *call)
{
	struct twheel_bench_run *req = call->arg;
	const struct bench_scheme *scheme;

	if (req->reserved || !req->workloads)
		return -EINVAL;
	if (req->order > TWHEEL_BENCH_RANDOM)
		return -EOPNOTSUPP;
	scheme = begin_run(req->scheme, req->workloads, req->nr_timers, TWHEEL_BENCH_MAX_TIMERS);
	if (IS_ERR(scheme))
		return PTR_ERR(scheme);
	memset_startat(req, 0, cpu);
	return end_run(call, bench_run(scheme, req));
}

static long do_lateness(const struct twheel_ioctl_call *call)
{
	struct twheel_bench_lateness *req = call->arg;
	const struct bench_scheme *scheme;

	if (!req->min_ns || req->min_ns > req->max_ns ||
	    req->max_ns > TWHEEL_BENCH_MAX_TIMEOUT_NS)
		return -EINVAL;
	scheme = begin_run(req->scheme, BENCH_TIMER_WORKLOADS, req->nr_timers,
			   TWHEEL_BENCH_MAX_CHECK_TIMERS);
	if (IS_ERR(scheme))
		return PTR_ERR(scheme);
	memset_startat(req, 0, fired);
	return end_run(call, bench_lateness(scheme, req));
}

static long do_memory(const struct twheel_ioctl_call *call)
{
	struct twheel_bench_memory *req = call->arg;
	const struct bench_scheme *scheme;

	scheme = begin_run(req->scheme, BENCH_TIMER_WORKLOADS, req->nr_timers,
			   TWHEEL_BENCH_MAX_TIMERS);
	if (IS_ERR(scheme))
		return PTR_ERR(scheme);
	memset_startat(req, 0, added);
	return end_run(call, bench_memory(scheme, req));
}

static long do_replay(const struct twheel_ioctl_call *call)
{
	struct twheel_bench_replay *req = call->arg;
	const struct bench_scheme *scheme;

	if (req->reserved || !req->nr_ops || req->nr_ops > TWHEEL_BENCH_MAX_OPS ||
	    req->length_ns > TWHEEL_BENCH_MAX_TIMEOUT_NS)
		return -EINVAL;
	scheme = begin_run(req->scheme, 0, req->nr_objects, TWHEEL_BENCH_MAX_TIMERS);
	if (IS_ERR(scheme))
		return PTR_ERR(scheme);
	memset_startat(req, 0, cpu);
	return end_run(call, bench_replay(scheme, req));
}

static long do_cpu(const struct twheel_ioctl_call *call)
{
	return bench_cpu_read(call->arg) ?: twheel_ioctl_respond(call);
}

static const struct twheel_ioctl ioctls[] = {
	TWHEEL_IOCTL(TWHEEL_BENCH_IOC_INFO, struct twheel_bench_info, stride, do_info),
	TWHEEL_IOCTL(TWHEEL_BENCH_IOC_SCHEME, struct twheel_bench_scheme, name, do_scheme),
	TWHEEL_IOCTL(TWHEEL_BENCH_IOC_CHECK, struct twheel_bench_check, wrong, do_check),
	TWHEEL_IOCTL(TWHEEL_BENCH_IOC_RUN, struct twheel_bench_run, result, do_run),
	TWHEEL_IOCTL(TWHEEL_BENCH_IOC_LATENESS, struct twheel_bench_lateness, late, do_lateness),
	TWHEEL_IOCTL(TWHEEL_BENCH_IOC_MEMORY, struct twheel_bench_memory, most, do_memory),
	TWHEEL_IOCTL(TWHEEL_BENCH_IOC_CPU, struct twheel_bench_cpu, works, do_cpu),
	TWHEEL_IOCTL(TWHEEL_BENCH_IOC_REPLAY, struct twheel_bench_replay, most_bytes, do_replay),
};

static long bench_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return twheel_ioctl_run(ioctls, ARRAY_SIZE(ioctls), file, cmd, user);
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
	bench_cpu_exit();
}

module_init(bench_module_init);
module_exit(bench_module_exit);

MODULE_DESCRIPTION("Timer schemes compared");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(TWHEEL_VERSION);
