// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the device
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/time.h>
#include <linux/timekeeping.h>
#include <uapi/linux/twheel.h>

#include "context.h"
#include "ioctl.h"

/* Checks a time, and turns it into an absolute one. */
static int absolute(u64 time, u32 flags, u64 *expires)
{
	if (flags & ~TWHEEL_TIME_ABS)
		return -EOPNOTSUPP;
	if (time > TWHEEL_TIME_MAX)
		return -EINVAL;
	if (!(flags & TWHEEL_TIME_ABS))
		time += ktime_get_ns();
	*expires = min(time, TWHEEL_TIME_MAX);
	return 0;
}

static long run_info(const struct twheel_ioctl_call *call)
{
	struct twheel_context *ctx = call->file->private_data;
	struct twheel_info *info = call->arg;

	memset(info, 0, sizeof(*info));
	info->tick_ns = 1ULL << twheel_tick_shift();
	info->max_timers = twheel_max_timers();
	info->event_size = sizeof(struct twheel_event);
	spin_lock_bh(&ctx->lock);
	info->nr_timers = ctx->nr_timers;
	info->nr_events = ctx->nr_events;
	spin_unlock_bh(&ctx->lock);
	return twheel_ioctl_respond(call);
}

static long run_add(const struct twheel_ioctl_call *call)
{
	struct twheel_context *ctx = call->file->private_data;
	struct twheel_timer_add *add = call->arg;
	struct twheel_user_timer *ut;
	u64 expires;
	int ret;

	if (add->clock != CLOCK_MONOTONIC)
		return -EOPNOTSUPP;
	ret = absolute(add->time, add->flags, &expires);
	if (ret)
		return ret;
	ut = twheel_timer_reserve(ctx);
	if (IS_ERR(ut))
		return PTR_ERR(ut);
	add->handle = twheel_timer_handle(ut);
	ret = twheel_ioctl_respond(call);
	if (ret) {
		spin_lock_bh(&ctx->lock);
		twheel_timer_release(ctx, ut);
		spin_unlock_bh(&ctx->lock);
		return ret;
	}
	twheel_user_add(ctx, ut, expires, add->user_data);
	return 0;
}

static long run_cancel(const struct twheel_ioctl_call *call)
{
	const struct twheel_timer_cancel *cancel = call->arg;

	if (cancel->flags)
		return -EOPNOTSUPP;
	if (cancel->reserved)
		return -EINVAL;
	return twheel_user_cancel(call->file->private_data, cancel->handle);
}

static long run_rearm(const struct twheel_ioctl_call *call)
{
	const struct twheel_timer_rearm *rearm = call->arg;
	u64 expires;
	int ret;

	if (rearm->reserved)
		return -EINVAL;
	ret = absolute(rearm->time, rearm->flags, &expires);
	if (ret)
		return ret;
	return twheel_user_rearm(call->file->private_data, rearm->handle, expires);
}

static long run_query(const struct twheel_ioctl_call *call)
{
	struct twheel_timer_query *query = call->arg;
	int ret;

	if (query->flags)
		return -EOPNOTSUPP;
	ret = twheel_user_query(call->file->private_data, query);
	if (ret)
		return ret;
	return twheel_ioctl_respond(call);
}

static const struct twheel_ioctl ioctls[] = {
	TWHEEL_IOCTL(TWHEEL_IOC_INFO, struct twheel_info, reserved, run_info),
	TWHEEL_IOCTL(TWHEEL_IOC_TIMER_ADD, struct twheel_timer_add, clock, run_add),
	TWHEEL_IOCTL(TWHEEL_IOC_TIMER_CANCEL, struct twheel_timer_cancel, reserved, run_cancel),
	TWHEEL_IOCTL(TWHEEL_IOC_TIMER_REARM, struct twheel_timer_rearm, reserved, run_rearm),
	TWHEEL_IOCTL(TWHEEL_IOC_TIMER_QUERY, struct twheel_timer_query, flags, run_query),
};

static long twheel_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return twheel_ioctl_run(ioctls, ARRAY_SIZE(ioctls), file, cmd, user);
}

static int twheel_open(struct inode *inode, struct file *file)
{
	struct twheel_context *ctx = twheel_context_create();

	if (!ctx)
		return -ENOMEM;
	file->private_data = ctx;
	return stream_open(inode, file);
}

static int twheel_release(struct inode *inode, struct file *file)
{
	twheel_context_destroy(file->private_data);
	return 0;
}

static ssize_t twheel_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *file = iocb->ki_filp;
	bool nonblock = file->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT;

	return twheel_events_read(file->private_data, to, nonblock);
}

static __poll_t twheel_poll(struct file *file, poll_table *wait)
{
	return twheel_events_poll(file->private_data, file, wait);
}

static const struct file_operations twheel_fops = {
	.owner		= THIS_MODULE,
	.open		= twheel_open,
	.release	= twheel_release,
	.read_iter	= twheel_read_iter,
	.poll		= twheel_poll,
	.unlocked_ioctl	= twheel_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static struct miscdevice twheel_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "twheel",
	.fops	= &twheel_fops,
	.mode	= 0600,
};

/**
 * twheel_chardev_init - make /dev/twheel
 *
 * Return: 0, or an errno.
 */
int twheel_chardev_init(void)
{
	return misc_register(&twheel_device);
}

/**
 * twheel_chardev_exit - remove /dev/twheel; it is not open any more
 */
void twheel_chardev_exit(void)
{
	misc_deregister(&twheel_device);
}
