/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the ioctls of rules
 */
#ifndef _TWHEEL_RULES_IOCTL_H
#define _TWHEEL_RULES_IOCTL_H

#include <linux/errno.h>

struct file;

#ifdef CONFIG_INET
long twheel_rules_ioctl(struct file *file, unsigned int cmd, unsigned long user);
#else
static inline long twheel_rules_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return -ENOTTY;
}
#endif /* CONFIG_INET */

#endif /* _TWHEEL_RULES_IOCTL_H */
