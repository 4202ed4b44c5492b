/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the workers that evaluate watches that are due
 */
#ifndef _TWHEEL_TCP_WATCH_WORKER_H
#define _TWHEEL_TCP_WATCH_WORKER_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct seq_file;
struct twheel_watch;
struct twheel_watch_kind;

/**
 * struct twheel_watch_worker - the worker of a context, or of a namespace's rules
 * @kind:	the kind of its watches; constant
 * @queue:	the workqueue for @work: that of the user. Constant as long as there are watches
 * @lock:	guards the fields below, and the watches' state. Taken in process and softirq
 *		context, inside of the owner's locks
 * @list:	watches that are due, by their timers' @node.link
 * @nr:		number of watches in @list
 * @taken:	number of watches taken off @list so far
 * @processing:	the worker is processing the last one taken
 * @work:	the work item
 */
struct twheel_watch_worker {
	struct twheel_watch_kind *kind;
	struct workqueue_struct	*queue;
	spinlock_t		lock;
	struct list_head	list;
	unsigned int		nr;
	unsigned int		taken;
	bool			processing;
	struct work_struct	work;
};

/* For workers that belong to no user. Exists as long as the module does. */
extern struct workqueue_struct *twheel_watch_queue;

void twheel_watch_worker_init(struct twheel_watch_worker *worker, struct twheel_watch_kind *kind,
			      struct workqueue_struct *queue);
void twheel_watch_worker_stop(struct twheel_watch_worker *worker);
int twheel_watch_worker_flush(struct twheel_watch_worker *worker);
void twheel_watch_enqueue(struct twheel_watch_worker *worker, struct twheel_watch *watch);
bool twheel_watch_unqueue(struct twheel_watch_worker *worker, struct twheel_watch *watch);
void twheel_watch_put_back(struct twheel_watch_worker *worker, struct twheel_watch *watch);
u64 twheel_watch_back_off(struct twheel_watch *watch);
void twheel_watch_show_counts(struct seq_file *m, const struct twheel_watch_kind *kind);

#endif /* _TWHEEL_TCP_WATCH_WORKER_H */
