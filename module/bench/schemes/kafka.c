// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: Kafka's timer (kafka.utils.timer.TimingWheel, SystemTimer)
 *
 * Levels of 20 slots, the first with a tick of 1 ms; a level is made when the first timer needs it.
 * Slots that hold something wait in a queue by the time at which they begin, so that no tick is
 * taken for nothing. When a slot of a higher level is due, all its timers move to lower levels at
 * once. A slot whose timers have all been cancelled stays in the queue.
 *
 * There, the queue is a DelayQueue, which is a heap; as it holds a slot of each level at most 20
 * times, it is the kernel's timerqueue here. Kafka rounds deadlines down, and so may be early by a
 * tick; here they are rounded up.
 */
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/timerqueue.h>

#include "alarm.h"
#include "bench.h"

#define NR_SLOTS	20
#define FIRST_TICK	NSEC_PER_MSEC

/**
 * struct slot - some of the timers of a level
 * @queue:	its place in the queue, if any, with the time at which it begins
 * @timers:	the timers
 */
struct slot {
	struct timerqueue_node	queue;
	struct hlist_head	timers;
};

/**
 * struct level - a level
 * @tick:	the length of a slot, in nanoseconds; constant
 * @now:	the beginning of the last slot that was due, rounded down to a tick of this level
 * @higher:	the next level, if it has been made
 * @slot:	the slots
 */
struct level {
	u64		tick;
	u64		now;
	struct level	*higher;
	struct slot	slot[NR_SLOTS];
};

static struct {
	struct bench_alarm	alarm;
	/* Guarded by the alarm's lock, as are the levels. */
	struct level		*first;
	struct timerqueue_head	queue;
	struct hlist_head	moving;
	struct hlist_head	expiring;
} kafka;

static void object_fired(struct bench_kafka_node *node)
{
	bench_fired(container_of(node, struct bench_obj, kafka));
}

static bool is_armed(const struct bench_kafka_node *node)
{
	return !hlist_unhashed_lockless(&node->link);
}

static u64 round_to(u64 ns, u64 tick)
{
	return div64_u64(ns, tick) * tick;
}

static struct slot *first_slot(void)
{
	struct timerqueue_node *first = timerqueue_getnext(&kafka.queue);

	return first ? container_of(first, struct slot, queue) : NULL;
}

static u64 first_deadline(void)
{
	struct slot *first = first_slot();

	return first ? first->queue.expires : KTIME_MAX;
}

static bool fits(const struct level *level, u64 due)
{
	return due < level->now + NR_SLOTS * level->tick;
}

/* Enqueues a timer. Returns false if that needs a level which has not been made. */
static bool enqueue(struct bench_kafka_node *node)
{
	struct level *level = kafka.first;
	struct slot *slot;
	u64 begin;
	u32 index;

	if (node->due <= level->now) {
		hlist_add_head(&node->link, &kafka.expiring);
		return true;
	}
	while (level && !fits(level, node->due))
		level = level->higher;
	if (!level)
		return false;
	begin = round_to(node->due, level->tick);
	div_u64_rem(div64_u64(begin, level->tick), NR_SLOTS, &index);
	slot = &level->slot[index];
	hlist_add_head(&node->link, &slot->timers);
	if (RB_EMPTY_NODE(&slot->queue.node)) {
		slot->queue.expires = begin;
		timerqueue_add(&kafka.queue, &slot->queue);
	}
	return true;
}

static struct level *make_level(u64 tick, u64 now)
{
	struct level *level = kzalloc(sizeof(*level), GFP_KERNEL_ACCOUNT);
	int i;

	if (!level)
		return NULL;
	level->tick = tick;
	level->now = round_to(now, tick);
	for (i = 0; i < NR_SLOTS; i++)
		timerqueue_init(&level->slot[i].queue);
	return level;
}

/* Makes the level above all others. Returns false if there is no memory. */
static bool add_level(void)
{
	struct level *level = kafka.first, *made;

	while (level->higher)
		level = level->higher;
	made = make_level(level->tick * NR_SLOTS, level->now);
	if (!made)
		return false;
	spin_lock_bh(&kafka.alarm.lock);
	/* Time may have passed meanwhile. */
	made->now = round_to(level->now, made->tick);
	level->higher = made;
	spin_unlock_bh(&kafka.alarm.lock);
	return true;
}

/* The first slot in the queue has begun: its timers are due, or move to lower levels. */
static void handle_slot(struct slot *slot)
{
	struct bench_kafka_node *node;
	struct hlist_node *next;
	struct level *level;

	timerqueue_del(&kafka.queue, &slot->queue);
	for (level = kafka.first; level; level = level->higher)
		level->now = round_to(slot->queue.expires, level->tick);
	hlist_move_list(&slot->timers, &kafka.moving);
	hlist_for_each_entry_safe(node, next, &kafka.moving, link) {
		hlist_del(&node->link);
		enqueue(node);
	}
}

/* Calls what is due. Returns true if there is more than fits into a softirq. */
static bool call_due(unsigned int *left)
{
	struct bench_kafka_node *node;

	while (!hlist_empty(&kafka.expiring)) {
		if (!*left)
			return true;
		--*left;
		node = hlist_entry(kafka.expiring.first, struct bench_kafka_node, link);
		hlist_del_init(&node->link);
		spin_unlock(&kafka.alarm.lock);
		node->function(node);
		spin_lock(&kafka.alarm.lock);
	}
	return false;
}

static enum hrtimer_restart expire_timers(struct hrtimer *hrtimer)
{
	unsigned int left = BENCH_BUDGET;
	u64 now = ktime_get_ns();
	bool more;

	bench_alarm_begin(&kafka.alarm);
	more = call_due(&left);
	while (!more && first_deadline() <= now) {
		handle_slot(first_slot());
		more = call_due(&left);
	}
	return bench_alarm_end(&kafka.alarm, more ? now : first_deadline(), now);
}

static int remove_node(struct bench_kafka_node *node)
{
	if (!is_armed(node))
		return 0;
	hlist_del_init(&node->link);
	return 1;
}

static int arm(struct bench_kafka_node *node, u64 deadline)
{
	int pending;
	bool done;

	spin_lock_bh(&kafka.alarm.lock);
	pending = remove_node(node);
	node->due = round_to(deadline + FIRST_TICK - 1, FIRST_TICK);
	for (;;) {
		done = enqueue(node);
		if (done)
			bench_alarm_program(&kafka.alarm, hlist_empty(&kafka.expiring) ?
					    first_deadline() : 0);
		spin_unlock_bh(&kafka.alarm.lock);
		/* Without memory for a level, the timer is not armed, which is noticed. */
		if (done || !add_level())
			return pending;
		spin_lock_bh(&kafka.alarm.lock);
	}
}

static int cancel(struct bench_kafka_node *node)
{
	int pending;

	spin_lock_bh(&kafka.alarm.lock);
	pending = remove_node(node);
	spin_unlock_bh(&kafka.alarm.lock);
	return pending;
}

static int setup_kafka(const struct bench_work *work)
{
	memset(&kafka, 0, sizeof(kafka));
	timerqueue_init_head(&kafka.queue);
	kafka.first = make_level(FIRST_TICK, ktime_get_ns());
	if (!kafka.first)
		return -ENOMEM;
	bench_alarm_init(&kafka.alarm, 0, expire_timers);
	return 0;
}

static void teardown_kafka(void)
{
	struct level *level, *higher;

	bench_alarm_stop(&kafka.alarm);
	for (level = kafka.first; level; level = higher) {
		higher = level->higher;
		kfree(level);
	}
}

static u64 align_expiry(u64 ns)
{
	return round_to(ns + FIRST_TICK - 1, FIRST_TICK);
}

static u64 slack_of(u64 timeout)
{
	return FIRST_TICK;
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	INIT_HLIST_NODE(&obj->kafka.link);
	obj->kafka.function = object_fired;
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	return arm(&obj->kafka, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return cancel(&obj->kafka);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return is_armed(&obj->kafka);
}

static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	int found = cancel_one(obj, when);

	bench_alarm_stop(&kafka.alarm);
	return found;
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

DEFINE_BENCH_SCHEME(kafka,
		    .object_size = sizeof(struct bench_kafka_node),
		    .rearm = add_batch,
		    .align = align_expiry,
		    .slack = slack_of,
		    .setup = setup_kafka,
		    .teardown = teardown_kafka);
