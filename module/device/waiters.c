// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: who waits for the events of a context
 *
 * There may be as many as a user has descriptors, times the instances of epoll that he has them
 * in, and each event wakes all. A few are woken at once, by the softirq in which a timer
 * expires; the others by a worker, some at a time, and then others have their turn.
 *
 * What has been woken is behind a mark in the queue, which is there while there are more; who
 * comes to wait is in front of it, and has seen what there is. Should all be to be woken again
 * meanwhile, then the worker begins anew when it is done.
 *
 * How much is at once
 * -------------------
 * To wake one is a step; but who waits may be an instance of epoll, for which others wait, and
 * these are woken with it, however many they are. So it is as many steps as it takes time. A
 * context has so many in a jiffy, and so has a CPU for all contexts; what is more is taken from
 * the jiffies to come.
 */
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/sched/clock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "waiters.h"

/* Steps with interrupts off, and those of a context in a jiffy. */
#define BATCH		64

/* Those of a CPU in a jiffy, for all contexts. */
#define CPU_BUDGET	256

/* Nanoseconds of a step, as a power of two. */
#define STEP_SHIFT	11

/* What nothing takes longer than. */
#define WAKE_STEPS_MAX	(1U << 22)

/*
 * Steps of a CPU. Used in a queue's lock. Where that does not keep others off, as on PREEMPT_RT, a
 * few more may be woken.
 */
static DEFINE_PER_CPU(struct twheel_steps, cpu_steps);

#define WAKE_EVENTS	(EPOLLIN | EPOLLRDNORM)

/* Nobody is woken by the mark. */
static int ignore_wakeup(struct wait_queue_entry *mark, unsigned int mode, int flags, void *key)
{
	return 0;
}

/* Are there some left of so many in a jiffy? */
static bool steps_left(struct twheel_steps *steps, unsigned int max)
{
	unsigned long passed = jiffies - steps->jiffy;

	steps->used = passed > steps->used / max ? 0 : steps->used - passed * max;
	steps->jiffy += passed;
	return steps->used < max;
}

/* Has all be woken. */
static void restart_wakeup(struct twheel_waiters *waiters)
{
	waiters->restart = false;
	list_move(&waiters->mark.entry, &waiters->queue.head);
}

/* Is anybody left to be woken? Those behind the mark may have left the queue. */
static bool wakeup_in_progress(struct twheel_waiters *waiters)
{
	struct list_head *mark = &waiters->mark.entry;

	if (!list_empty(mark) && list_is_last(mark, &waiters->queue.head))
		list_del_init(mark);
	return !list_empty(mark);
}

/* Wakes who is behind the mark, and has it move on. Returns how many steps that was. */
static unsigned int wake_next(struct twheel_waiters *waiters)
{
	struct list_head *mark = &waiters->mark.entry;
	struct wait_queue_entry *next = list_next_entry(&waiters->mark, entry);
	const bool exclusive = next->flags & WQ_FLAG_EXCLUSIVE;
	const u64 start = local_clock();

	/* It may leave the queue. */
	list_move(mark, &next->entry);
	/* One of those is enough. They are the last in the queue. */
	if (next->func(next, TASK_NORMAL, 0, poll_to_key(WAKE_EVENTS)) && exclusive)
		list_move_tail(mark, &waiters->queue.head);
	return 1 + min_t(u64, (local_clock() - start) >> STEP_SHIFT, WAKE_STEPS_MAX);
}

/* Wakes the next one, if there are steps left. Returns whether it has. */
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
 * twheel_waiters_create - nobody waits yet
 * @waiters:	who might
 * @wq:	where to queue what is not done at once
 *
 * Context: process.
 */
void twheel_waiters_create(struct twheel_waiters *waiters, struct workqueue_struct *wq)
{
	waiters->wq = wq;
	init_waitqueue_head(&waiters->queue);
	init_waitqueue_func_entry(&waiters->mark, ignore_wakeup);
	INIT_LIST_HEAD(&waiters->mark.entry);
	INIT_WORK(&waiters->work, wake_batch_work);
}

/**
 * twheel_waiters_leave - wait for the worker to be done
 * @waiters:	nobody waits, or is woken, any more
 *
 * Context: process; may sleep.
 */
void twheel_waiters_leave(struct twheel_waiters *waiters)
{
	cancel_work_sync(&waiters->work);
}

/**
 * twheel_waiters_wake - wake who waits, as there is something to read
 * @waiters:	who waits
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
