/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the workers that look at watches that are due
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
 * struct twheel_watch_worker - watches of a context, or of a namespace's rules, that are due
 * @kind:	theirs; constant
 * @queue:	for @work: that of the user. Constant as long as there are watches
 * @lock:	guards what follows, and the watches' state. Taken in process and softirq context,
 *		inside of the owner's locks
 * @list:	watches for the worker, by their timers' @node.link
 * @nr:		how many these are
 * @taken:	how many it has taken out of the list
 * @processing:	it looks at the last of those
 * @work:	the worker
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

/* The workers' who are nobody's. There as long as the module is. */
extern struct workqueue_struct *twheel_watch_queue;

void twheel_watch_worker_init(struct twheel_watch_worker *worker, struct twheel_watch_kind *kind,
			      struct workqueue_struct *queue);
void twheel_watch_worker_stop(struct twheel_watch_worker *worker);
int twheel_watch_worker_flush(struct twheel_watch_worker *worker);
void twheel_watch_enqueue(struct twheel_watch_worker *worker, struct twheel_watch *watch);
bool twheel_watch_unqueue(struct twheel_watch_worker *worker, struct twheel_watch *watch);
void twheel_watch_put_back(struct twheel_watch_worker *worker, struct twheel_watch *watch);
u64 twheel_watch_retry_at(struct twheel_watch *watch);
void twheel_watch_show_counts(struct seq_file *m, const struct twheel_watch_kind *kind);

#endif /* _TWHEEL_TCP_WATCH_WORKER_H */
