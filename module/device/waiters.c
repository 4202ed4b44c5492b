// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: waiters for the events of a context
 *
 * There may be as many waiters as a user has descriptors, times the epoll instances that each of
 * them is in, and each event wakes all of them. A few are woken at once, by the softirq in which a
 * timer expires; a worker wakes the others, a batch at a time, and lets others have their turn in
 * between.
 *
 * As long as there are waiters left to wake, a mark in the queue separates those that have been
 * woken, before it, from those that have not, after it. A new waiter joins before the mark, and
 * sees the events that are there already. If all waiters must be woken again meanwhile, the worker
 * starts over when it is done.
 *
 * How much is done at once
 * ------------------------
 * Waking one waiter is a step; but a waiter may be an epoll instance that others wait for, and
 * these are woken with it, however many they are. So it counts as more steps the longer it takes.
 * A context may take so many steps in a jiffy, and so may a CPU for all contexts; any excess is
 * charged to the following jiffies.
 */
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/sched/clock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "waiters.h"

/* Steps taken with interrupts disabled, and steps of a context in a jiffy. */
#define BATCH		64

/* Steps of a CPU in a jiffy, for all contexts. */
#define CPU_BUDGET	256

/* The length of a step in nanoseconds, as a power of two. */
#define STEP_SHIFT	11

/* Waking one waiter never counts as more steps than this. */
#define WAKE_STEPS_MAX	(1U << 22)

/*
 * Steps taken on a CPU. Accessed with a queue's lock held. Where that does not exclude others, as
 * on PREEMPT_RT, a few more waiters may be woken.
 */
static DEFINE_PER_CPU(struct twheel_steps, cpu_steps);

#define WAKE_EVENTS	(EPOLLIN | EPOLLRDNORM)

/* The mark's wake function: there is nobody to wake. */
static int ignore_wakeup(struct wait_queue_entry *mark, unsigned int mode, int flags, void *key)
{
	return 0;
}

/* Are any steps left, of @max in each jiffy? */
static bool steps_left(struct twheel_steps *steps, unsigned int max)
{
	unsigned long passed = jiffies - steps->jiffy;

	steps->used = passed > steps->used / max ? 0 : steps->used - passed * max;
	steps->jiffy += passed;
	return steps->used < max;
}

/* Starts waking all waiters. */
static void restart_wakeup(struct twheel_waiters *waiters)
{
	waiters->restart = false;
	list_move(&waiters->mark.entry, &waiters->queue.head);
}

/* Are any waiters left to wake? Those after the mark may have left the queue. */
static bool wakeup_in_progress(struct twheel_waiters *waiters)
{
	struct list_head *mark = &waiters->mark.entry;

	if (!list_empty(mark) && list_is_last(mark, &waiters->queue.head))
		list_del_init(mark);
	return !list_empty(mark);
}

/* Wakes the waiter after the mark, and moves the mark past it. Returns the steps that this took. */
static unsigned int wake_next(struct twheel_waiters *waiters)
{
	struct list_head *mark = &waiters->mark.entry;
	struct wait_queue_entry *next = list_next_entry(&waiters->mark, entry);
	const bool exclusive = next->flags & WQ_FLAG_EXCLUSIVE;
	const u64 start = local_clock();

	/* The waiter may leave the queue. */
	list_move(mark, &next->entry);
	/* Waking one exclusive waiter is enough. They are at the end of the queue. */
	if (next->func(next, TASK_NORMAL, 0, poll_to_key(WAKE_EVENTS)) && exclusive)
		list_move_tail(mark, &waiters->queue.head);
	return 1 + min_t(u64, (local_clock() - start) >> STEP_SHIFT, WAKE_STEPS_MAX);
}

/* Wakes the next waiter if there are steps left. Returns whether it did. */
static bool wake_next_inline(struct twheel_waiters *waiters)
{
	struct twheel_steps *cpu = raw_cpu_ptr(&cpu_steps);
	unsigned int steps;

	if (!steps_left(&waiters->steps, BATCH) || !steps_left(cpu, CPU_BUDGET))
		return false;
	steps = wake_next(waiters);
	waiters->steps.used += steps;
	cpu->used += steps;
	return true;
}

static void wake_batch_work(struct work_struct *work)
{
	struct twheel_waiters *waiters = container_of(work, struct twheel_waiters, work);
	unsigned int steps = 0;

	spin_lock_irq(&waiters->queue.lock);
	while (wakeup_in_progress(waiters) && steps < BATCH)
		steps += wake_next(waiters);
	if (!wakeup_in_progress(waiters) && waiters->restart)
		restart_wakeup(waiters);
	if (wakeup_in_progress(waiters))
		queue_work(waiters->wq, &waiters->work);
	spin_unlock_irq(&waiters->queue.lock);
}

/**
 * twheel_waiters_init - initialise the waiters of a context
 * @waiters:	the waiters
 * @wq:		where to queue what is not done at once
 *
 * Context: process.
 */
void twheel_waiters_init(struct twheel_waiters *waiters, struct workqueue_struct *wq)
{
	waiters->wq = wq;
	init_waitqueue_head(&waiters->queue);
	init_waitqueue_func_entry(&waiters->mark, ignore_wakeup);
	INIT_LIST_HEAD(&waiters->mark.entry);
	INIT_WORK(&waiters->work, wake_batch_work);
}

/**
 * twheel_waiters_stop - stop the worker, and wait until it is done
 * @waiters:	the waiters; nobody waits, or is woken, any more
 *
 * Context: process; may sleep.
 */
void twheel_waiters_stop(struct twheel_waiters *waiters)
{
	cancel_work_sync(&waiters->work);
}

/**
 * twheel_waiters_wake - wake all waiters, as there is something to read
 * @waiters:	the waiters
 *
 * Context: any but NMI and hard interrupt.
 */
void twheel_waiters_wake(struct twheel_waiters *waiters)
{
	unsigned long flags;

	if (!wq_has_sleeper(&waiters->queue))
		return;
	spin_lock_irqsave(&waiters->queue.lock, flags);
	if (wakeup_in_progress(waiters)) {
		waiters->restart = true;
	} else {
		restart_wakeup(waiters);
		while (wakeup_in_progress(waiters) && wake_next_inline(waiters))
			;
	}
	if (wakeup_in_progress(waiters))
		queue_work(waiters->wq, &waiters->work);
	spin_unlock_irqrestore(&waiters->queue.lock, flags);
}
