/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: waiters for the events of a context
 */
#ifndef _TWHEEL_DEVICE_WAITERS_H
#define _TWHEEL_DEVICE_WAITERS_H

#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

/**
 * struct twheel_steps - steps taken from a budget for each jiffy; see waiters.c
 * @jiffy:	the jiffy up to which past budgets have been deducted
 * @used:	number of steps taken
 */
struct twheel_steps {
	unsigned long	jiffy;
	unsigned int	used;
};

/**
 * struct twheel_waiters - waiters for the events of a context; see waiters.c
 * @queue:	the queue that they are in. Its lock guards the rest
 * @steps:	steps taken to wake waiters at once
 * @restart:	all waiters in the queue must be woken once more
 * @mark:	in @queue, after those that have been woken, while there are more
 * @work:	wakes the others
 * @wq:		where @work is queued; constant
 */
struct twheel_waiters {
	wait_queue_head_t		queue;
	struct twheel_steps		steps;
	bool				restart;
	struct wait_queue_entry		mark;
	struct work_struct		work;
	struct workqueue_struct		*wq;
};

void twheel_waiters_init(struct twheel_waiters *waiters, struct workqueue_struct *wq);
void twheel_waiters_stop(struct twheel_waiters *waiters);
void twheel_waiters_wake(struct twheel_waiters *waiters);

#endif /* _TWHEEL_DEVICE_WAITERS_H */
