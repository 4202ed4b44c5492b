/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: how memory is asked for
 */
#ifndef _TWHEEL_LIB_MEMORY_H
#define _TWHEEL_LIB_MEMORY_H

#include <linux/gfp.h>

/*
 * What a user has the kernel hold is charged to his memory cgroup. If that is full he is told so,
 * and not killed.
 */
#define TWHEEL_GFP_USER	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

#endif /* _TWHEEL_LIB_MEMORY_H */
