/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel_bench: what the schemes keep in an object
 *
 * Each has a function of its own to call, as a facility for all kinds of timers has.
 */
#ifndef _TWHEEL_BENCH_NODES_H
#define _TWHEEL_BENCH_NODES_H

#include <linux/list.h>
#include <linux/rhashtable-types.h>
#include <linux/timerqueue.h>
#include <linux/types.h>

/**
 * struct bench_rbtree_node - a timer in a red-black tree
 * @queue:	its node there, with its deadline
 * @function:	called in softirq context when it is due
 */
struct bench_rbtree_node {
	struct timerqueue_node	queue;
	void			(*function)(struct bench_rbtree_node *node);
};

/**
 * struct bench_hashed_node - a timer in a hashed wheel
 * @link:	links it in its slot; not hashed: it is not armed
 * @tick:	the tick in which it is due. If it was moved lazily, it is in the slot of an earlier
 *		one
 * @slot_tick:	the tick that it was enqueued for; lazy moves only
 * @function:	called in softirq context when it is due
 */
struct bench_hashed_node {
	struct hlist_node	link;
	u64			tick;
	u64			slot_tick;
	void			(*function)(struct bench_hashed_node *node);
};

/**
 * struct bench_keyed_node - a timer in a hashed wheel that is found by its key
 * @hashed:	the timer
 * @key:	its entry in the map of keys
 */
struct bench_keyed_node {
	struct bench_hashed_node	hashed;
	struct rhash_head		key;
};

/**
 * struct bench_kafka_node - a timer in a wheel whose levels are made when they are needed
 * @link:	links it in its slot; not hashed: it is not armed
 * @due:	when it is due, rounded up to a tick of the first level, in nanoseconds
 * @function:	called in softirq context when it is due
 */
struct bench_kafka_node {
	struct hlist_node	link;
	u64			due;
	void			(*function)(struct bench_kafka_node *node);
};

/**
 * struct bench_lazy_node - a timer in a heap in which cancelled timers stay
 * @deadline:	when it is due, in nanoseconds; %KTIME_MAX: it is not armed
 * @function:	called in softirq context when it is due
 */
struct bench_lazy_node {
	u64			deadline;
	void			(*function)(struct bench_lazy_node *node);
};

/**
 * struct bench_scan_node - a timer that is looked at each second
 * @deadline:	when it is due, in nanoseconds; %KTIME_MAX: it is not armed
 * @function:	called in softirq context when it is due
 */
struct bench_scan_node {
	u64			deadline;
	void			(*function)(struct bench_scan_node *node);
};

#endif /* _TWHEEL_BENCH_NODES_H */
