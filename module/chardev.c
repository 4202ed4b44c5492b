// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the device
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/time.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <uapi/linux/twheel.h>

#include "context.h"

/**
 * struct command - an ioctl at work
 * @ctx:	the context
 * @user:	the program's structure
 * @size:	its size
 * @arg:	the kernel's copy of it
 */
struct command {
	struct twheel_context	*ctx;
	void __user		*user;
	size_t			size;
	union {
		struct twheel_info		info;
		struct twheel_timer_add		add;
		struct twheel_timer_cancel	cancel;
		struct twheel_timer_rearm	rearm;
		struct twheel_timer_query	query;
	} arg;
};

/**
 * struct operation - what there is to know of an ioctl
 * @cmd:	its number, with the size that this kernel knows
 * @min_size:	size of the structure's first version
 * @run:	does it; returns what ioctl() does. Writes nothing to the program
 *		once there is something that cannot be taken back
 */
struct operation {
	unsigned int	cmd;
	unsigned int	min_size;
	long		(*run)(struct command *command);
};

/* Copies the answer to the program, as far as it knows the structure. */
static int respond(const struct command *command, size_t size)
{
	if (copy_to_user(command->user, &command->arg, min(command->size, size)))
		return -EFAULT;
	return 0;
}

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

static long run_info(struct command *command)
{
	struct twheel_context *ctx = command->ctx;
	struct twheel_info *info = &command->arg.info;

	memset(info, 0, sizeof(*info));
	info->tick_ns = 1ULL << twheel_tick_shift();
	info->max_timers = twheel_max_timers();
	info->event_size = sizeof(struct twheel_event);
	spin_lock_bh(&ctx->lock);
	info->nr_timers = ctx->nr_timers;
	info->nr_events = ctx->nr_events;
	spin_unlock_bh(&ctx->lock);
	return respond(command, sizeof(*info));
}

static long run_add(struct command *command)
{
	struct twheel_context *ctx = command->ctx;
	struct twheel_timer_add *add = &command->arg.add;
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
	ret = respond(command, sizeof(*add));
	if (ret) {
		spin_lock_bh(&ctx->lock);
		twheel_timer_release(ctx, ut);
		spin_unlock_bh(&ctx->lock);
		return ret;
	}
	twheel_user_add(ctx, ut, expires, add->user_data);
	return 0;
}

static long run_cancel(struct command *command)
{
	const struct twheel_timer_cancel *cancel = &command->arg.cancel;

	if (cancel->flags)
		return -EOPNOTSUPP;
	if (cancel->reserved)
		return -EINVAL;
	return twheel_user_cancel(command->ctx, cancel->handle);
}

static long run_rearm(struct command *command)
{
	const struct twheel_timer_rearm *rearm = &command->arg.rearm;
	u64 expires;
	int ret;

	if (rearm->reserved)
		return -EINVAL;
	ret = absolute(rearm->time, rearm->flags, &expires);
	if (ret)
		return ret;
	return twheel_user_rearm(command->ctx, rearm->handle, expires);
}

static long run_query(struct command *command)
{
	struct twheel_timer_query *query = &command->arg.query;
	int ret;

	if (query->flags)
		return -EOPNOTSUPP;
	ret = twheel_user_query(command->ctx, query);
	if (ret)
		return ret;
	return respond(command, sizeof(*query));
}

#define FIRST_NR	_IOC_NR(TWHEEL_IOC_INFO)

#define OPERATION(_cmd, _struct, _last, _run)				\
	[_IOC_NR(_cmd) - FIRST_NR] = {					\
		.cmd		= _cmd,					\
		.min_size	= offsetofend(_struct, _last),		\
		.run		= _run,					\
	}

static const struct operation operations[] = {
	OPERATION(TWHEEL_IOC_INFO, struct twheel_info, reserved, run_info),
	OPERATION(TWHEEL_IOC_TIMER_ADD, struct twheel_timer_add, clock, run_add),
	OPERATION(TWHEEL_IOC_TIMER_CANCEL, struct twheel_timer_cancel, reserved, run_cancel),
	OPERATION(TWHEEL_IOC_TIMER_REARM, struct twheel_timer_rearm, reserved, run_rearm),
	OPERATION(TWHEEL_IOC_TIMER_QUERY, struct twheel_timer_query, flags, run_query),
};

/* The ioctl of number @cmd, with a structure of whatever size; or NULL. */
static const struct operation *find_operation(unsigned int cmd)
{
	const struct operation *operation;
	unsigned int nr = _IOC_NR(cmd) - FIRST_NR;

	if (nr >= ARRAY_SIZE(operations))
		return NULL;
	operation = &operations[array_index_nospec(nr, ARRAY_SIZE(operations))];
	if ((operation->cmd ^ cmd) & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT))
		return NULL;
	return operation;
}

static long twheel_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct operation *operation = find_operation(cmd);
	struct command command = {
		.ctx	= file->private_data,
		.user	= (void __user *)arg,
		.size	= _IOC_SIZE(cmd),
	};
	int ret;

	if (!operation)
		return -ENOTTY;
	if (command.size < operation->min_size)
		return -EINVAL;
	ret = copy_struct_from_user(&command.arg, _IOC_SIZE(operation->cmd),
				    command.user, command.size);
	if (ret)
		return ret;
	return operation->run(&command);
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
