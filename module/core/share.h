/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: shares of the softirqs
 *
 * Each expiry is paid for by the call that has armed the timer. What no call pays for is to arm it
 * anew, as a softirq does with what goes on by itself: with a timer whose activity the kernel
 * finds in a touch array or in a socket, with one of a rule's, and with a periodic one whose
 * events go to a ring. So who has such timers, a context or a network namespace, has a share: so
 * many are armed anew in a tick, and so many on each CPU for all together. What is beyond that is
 * left to a worker, which competes for the processor with everybody else, and so keeps nobody from
 * it. Only the timers of who has no share left are late then.
 */
#ifndef _TWHEEL_CORE_SHARE_H
#define _TWHEEL_CORE_SHARE_H

#include <linux/types.h>

/**
 * struct twheel_share - what was taken of a share
 * @tick:	the tick in which something was
 * @taken:	how many timers softirqs have armed anew in it
 *
 * Guarded by its owner. Begins with zeros.
 */
struct twheel_share {
	u64	tick;
	u32	taken;
};

bool twheel_share_left(const struct twheel_share *share, u64 now);
void twheel_share_take(struct twheel_share *share, u64 now);

#endif /* _TWHEEL_CORE_SHARE_H */
