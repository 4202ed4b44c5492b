/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: shares of softirq time
 *
 * Each expiry is paid for by the call that armed the timer. Nobody pays when a softirq re-arms a
 * timer by itself: one for which the kernel finds activity in a touch array or in a socket, one
 * that belongs to a rule, or a periodic one whose events go to a ring. So each owner of such
 * timers, a context or a network namespace, has a share: a number of timers that are re-armed per
 * tick; and each CPU has a number for all owners together. Anything beyond that is left to a
 * worker, which competes for the CPU with everybody else, and so cannot monopolise it. Only the
 * timers of owners that have used up their share are late then.
 */
#ifndef _TWHEEL_CORE_SHARE_H
#define _TWHEEL_CORE_SHARE_H

#include <linux/types.h>

/**
 * struct twheel_share - what has been taken of a share
 * @tick:	the tick in which something was taken last
 * @taken:	how many timers softirqs have re-armed in that tick
 *
 * Guarded by its owner. Initially all zeros.
 */
struct twheel_share {
	u64	tick;
	u32	taken;
};

bool twheel_share_left(const struct twheel_share *share, u64 now);
void twheel_share_take(struct twheel_share *share, u64 now);

#endif /* _TWHEEL_CORE_SHARE_H */
