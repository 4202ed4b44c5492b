/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: allocation flags
 */
#ifndef _TWHEEL_LIB_MEMORY_H
#define _TWHEEL_LIB_MEMORY_H

#include <linux/gfp.h>

/*
 * Memory that the kernel holds on behalf of a user is charged to the user's memory cgroup. If that
 * is full, the allocation fails, and the OOM killer is not invoked.
 */
#define TWHEEL_GFP_USER	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

#endif /* _TWHEEL_LIB_MEMORY_H */
