/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ioctls whose structures may grow at their end
 *
 * The ioctl number includes the size of the program's structure. If that is shorter than
 * the kernel's, the missing tail is taken as zero; if it is longer, the extra tail must be
 * zero.
 */
#ifndef _TWHEEL_LIB_IOCTL_H
#define _TWHEEL_LIB_IOCTL_H

#include <linux/build_bug.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <linux/uaccess.h>

/* Size of the largest structure, in bytes. */
#define TWHEEL_IOCTL_MAX	512

/**
 * struct twheel_ioctl_call - an ioctl in progress
 * @file:	the open device
 * @arg:	the kernel's copy of the program's structure
 * @user:	the program's structure
 * @size:	bytes of the answer that fit into @user
 */
struct twheel_ioctl_call {
	struct file	*file;
	void		*arg;
	void __user	*user;
	size_t		size;
};

/**
 * struct twheel_ioctl - description of an ioctl
 * @cmd:	its number, with the size that this kernel knows
 * @min_size:	size of the structure's first version
 * @run:	handler; returns what ioctl() returns. It copies out the answer by
 *		twheel_ioctl_respond(), before anything that cannot be undone
 */
struct twheel_ioctl {
	unsigned int	cmd;
	unsigned int	min_size;
	long		(*run)(const struct twheel_ioctl_call *call);
};

/**
 * TWHEEL_IOCTL - an entry of a device's table, which is sorted by number
 * @_cmd:	number of the ioctl
 * @_struct:	its structure
 * @_last:	last member of the structure's first version
 * @_run:	handler
 */
#define TWHEEL_IOCTL(_cmd, _struct, _last, _run)			\
	{								\
		.cmd		= _cmd,					\
		.min_size	= offsetofend(_struct, _last) +		\
			BUILD_BUG_ON_ZERO(sizeof(_struct) > TWHEEL_IOCTL_MAX), \
		.run		= _run,					\
	}

/**
 * twheel_ioctl_respond - copy out as much of the answer as the program's structure holds
 * @call:	the ioctl
 *
 * Return: 0 or -EFAULT.
 */
static inline int twheel_ioctl_respond(const struct twheel_ioctl_call *call)
{
	return copy_to_user(call->user, call->arg, call->size) ? -EFAULT : 0;
}

/**
 * twheel_ioctl_run - look up an ioctl and run it
 * @table:	the ioctls of the device, without gaps in their numbers
 * @nr:		number of entries in @table
 * @file:	argument of unlocked_ioctl(), like @cmd and @user
 * @cmd:	number, with the size of the program's structure
 * @user:	address of the program's structure
 *
 * Context: process.
 * Return: what the ioctl returns; -ENOTTY if there is no such ioctl; -EINVAL, -E2BIG or
 * -EFAULT if its structure is too short, has a non-zero unknown tail, or cannot be read.
 */
static inline long twheel_ioctl_run(const struct twheel_ioctl *table, unsigned int nr,
				    struct file *file, unsigned int cmd, unsigned long user)
{
	unsigned int i = _IOC_NR(cmd) - _IOC_NR(table->cmd), known;
	u64 arg[TWHEEL_IOCTL_MAX / sizeof(u64)];
	struct twheel_ioctl_call call = {
		.file	= file,
		.arg	= arg,
		.user	= (void __user *)user,
	};
	int ret;

	if (i >= nr)
		return -ENOTTY;
	table += array_index_nospec(i, nr);
	if ((table->cmd ^ cmd) & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT))
		return -ENOTTY;
	if (_IOC_SIZE(cmd) < table->min_size)
		return -EINVAL;
	known = _IOC_SIZE(table->cmd);
	call.size = min(_IOC_SIZE(cmd), known);
	ret = copy_struct_from_user(arg, known, call.user, _IOC_SIZE(cmd));
	return ret ?: table->run(&call);
}

/**
 * twheel_copy_record - copy out a structure whose size the program may know differently
 * @user:	the program's structure
 * @record:	the kernel's structure
 * @bytes:	size of @record
 * @size:	size of @user. What is beyond @bytes is set to zero
 *
 * Context: process; may sleep.
 * Return: 0, or -EFAULT.
 */
static inline int twheel_copy_record(void __user *user, const void *record, size_t bytes,
				     size_t size)
{
	const size_t known = min(size, bytes);

	if (copy_to_user(user, record, known) || clear_user(user + known, size - known))
		return -EFAULT;
	return 0;
}

#endif /* _TWHEEL_LIB_IOCTL_H */
