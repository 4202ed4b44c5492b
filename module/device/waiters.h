/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: who waits for the events of a context
 */
#ifndef _TWHEEL_DEVICE_WAITERS_H
#define _TWHEEL_DEVICE_WAITERS_H

#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

/**
 * struct twheel_steps - what was taken of a budget that there is for each jiffy; see waiters.c
 * @jiffy:	up to when the budgets that have passed are subtracted
 * @used:		steps
 */
struct twheel_steps {
	unsigned long	jiffy;
	unsigned int	used;
};

/**
 * struct twheel_waiters - who waits for events of a context; see waiters.c
 * @queue:	the queue that they are in. Its lock guards the rest
 * @steps:	to wake some at once
 * @restart:	all in the queue are to be woken once more
 * @mark:	in @queue, behind those that have been woken, while there are more
 * @work:	wakes those
 * @wq:	where it is queued; constant
 */
struct twheel_waiters {
	wait_queue_head_t		queue;
	struct twheel_steps		steps;
	bool				restart;
	struct wait_queue_entry		mark;
	struct work_struct		work;
	struct workqueue_struct		*wq;
};

void twheel_waiters_create(struct twheel_waiters *waiters, struct workqueue_struct *wq);
void twheel_waiters_leave(struct twheel_waiters *waiters);
void twheel_waiters_wake(struct twheel_waiters *waiters);

#endif /* _TWHEEL_DEVICE_WAITERS_H */
