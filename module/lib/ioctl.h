/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ioctls whose structures may grow at their end
 *
 * The size of the program's structure is part of the ioctl number that it uses. If it is
 * shorter than the kernel's, its tail is taken as zero; if it is longer, its tail has to
 * be zero.
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

/* Bytes of the largest structure. */
#define TWHEEL_IOCTL_MAX	512

/**
 * struct twheel_ioctl_call - an ioctl at work
 * @file:	the open device
 * @arg:	the kernel's copy of the program's structure
 * @user:	the program's structure
 * @size:	how many bytes of an answer the program has room for
 */
struct twheel_ioctl_call {
	struct file	*file;
	void		*arg;
	void __user	*user;
	size_t		size;
};

/**
 * struct twheel_ioctl - what there is to know of an ioctl
 * @cmd:	its number, with the size that this kernel knows
 * @min_size:	size of the structure's first version
 * @run:	does it; returns what ioctl() does. Answers by twheel_ioctl_respond(),
 *		before there is something that cannot be taken back
 */
struct twheel_ioctl {
	unsigned int	cmd;
	unsigned int	min_size;
	long		(*run)(const struct twheel_ioctl_call *call);
};

/**
 * TWHEEL_IOCTL - an entry of a device's table, which is in the order of numbers
 * @_cmd:	number of the ioctl
 * @_struct:	its structure
 * @_last:	last member of the structure's first version
 * @_run:	what does it
 */
#define TWHEEL_IOCTL(_cmd, _struct, _last, _run)			\
	{								\
		.cmd		= _cmd,					\
		.min_size	= offsetofend(_struct, _last) +		\
			BUILD_BUG_ON_ZERO(sizeof(_struct) > TWHEEL_IOCTL_MAX), \
		.run		= _run,					\
	}

/**
 * twheel_ioctl_respond - copy the answer to the program, as far as it knows the structure
 * @call:	the ioctl
 *
 * Return: 0 or -EFAULT.
 */
static inline int twheel_ioctl_respond(const struct twheel_ioctl_call *call)
{
	return copy_to_user(call->user, call->arg, call->size) ? -EFAULT : 0;
}

/**
 * twheel_ioctl_run - do an ioctl
 * @table:	those of the device, without gaps in their numbers
 * @nr:		how many these are
 * @file:	as given to the device, as are the others
 * @cmd:	number, with the size of the program's structure
 * @user:	where that is
 *
 * Context: process.
 * Return: what the ioctl returns; -ENOTTY if there is none, -EINVAL, -E2BIG or -EFAULT if
 * its structure is too short, has something in an unknown tail, or cannot be read.
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
 * twheel_copy_record - copy a structure to a program that knows another size of it
 * @user:	the program's
 * @record:	the structure
 * @bytes:	its size
 * @size:	the size that the program knows. What it knows beyond @bytes becomes zero
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
