// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: a red-black tree, ordered by deadline
 *
 * This is what nginx keeps its timers in (ngx_event_timer.c), and the kernel its hrtimers; here it
 * is the kernel's timerqueue, with one hrtimer for all timers.
 */
#include <linux/timerqueue.h>

#include "alarm.h"
#include "bench.h"

static struct {
	struct bench_alarm	alarm;
	/* Guarded by the alarm's lock. */
	struct timerqueue_head	queue;
} tree;

static void object_fired(struct bench_rbtree_node *node)
{
	bench_fired(container_of(node, struct bench_obj, rbtree));
}

static struct bench_rbtree_node *first_timer(void)
{
	struct timerqueue_node *first = timerqueue_getnext(&tree.queue);

	return first ? container_of(first, struct bench_rbtree_node, queue) : NULL;
}

static u64 first_deadline(void)
{
	struct bench_rbtree_node *first = first_timer();

	return first ? first->queue.expires : KTIME_MAX;
}

static bool is_armed(const struct bench_rbtree_node *node)
{
	/* Its owner's softirq may be changing it: what is read then may be out of date. */
	return data_race(!RB_EMPTY_NODE(&node->queue.node));
}

static enum hrtimer_restart expire_timers(struct hrtimer *hrtimer)
{
	unsigned int left = BENCH_BUDGET;
	u64 now = ktime_get_ns();
	struct bench_rbtree_node *node;

	bench_alarm_begin(&tree.alarm);
	while (first_deadline() <= now && left--) {
		node = first_timer();
		timerqueue_del(&tree.queue, &node->queue);
		spin_unlock(&tree.alarm.lock);
		node->function(node);
		spin_lock(&tree.alarm.lock);
	}
	return bench_alarm_end(&tree.alarm, first_deadline(), now);
}

static int remove_node(struct bench_rbtree_node *node)
{
	if (!is_armed(node))
		return 0;
	timerqueue_del(&tree.queue, &node->queue);
	return 1;
}

static int arm(struct bench_rbtree_node *node, u64 deadline)
{
	int pending;

	spin_lock_bh(&tree.alarm.lock);
	pending = remove_node(node);
	node->queue.expires = deadline;
	timerqueue_add(&tree.queue, &node->queue);
	bench_alarm_program(&tree.alarm, first_deadline());
	spin_unlock_bh(&tree.alarm.lock);
	return pending;
}

static int cancel(struct bench_rbtree_node *node)
{
	int pending;

	spin_lock_bh(&tree.alarm.lock);
	pending = remove_node(node);
	spin_unlock_bh(&tree.alarm.lock);
	return pending;
}

/* It may be as late as the wheel. */
static int setup_tree(const struct bench_work *work)
{
	timerqueue_init_head(&tree.queue);
	bench_alarm_init(&tree.alarm, 1ULL << twheel_tick_shift(), expire_timers);
	return 0;
}

static void teardown_tree(void)
{
	bench_alarm_stop(&tree.alarm);
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	timerqueue_init(&obj->rbtree.queue);
	obj->rbtree.function = object_fired;
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	return arm(&obj->rbtree, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return cancel(&obj->rbtree);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return is_armed(&obj->rbtree);
}

static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	int found = cancel_one(obj, when);

	bench_alarm_stop(&tree.alarm);
	return found;
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

DEFINE_BENCH_SCHEME(rbtree,
		    .object_size = sizeof(struct bench_rbtree_node),
		    .rearm = add_batch,
		    .setup = setup_tree,
		    .teardown = teardown_tree);
