// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: timers in a binary heap
 *
 * To be a fair competitor, this is as good as a heap of timers gets: a timer knows
 * its index, so it is cancelled and moved without a search; entries are moved into
 * the hole that sifting leaves, not swapped; comparing deadlines does not touch the
 * timers; space for all entries is allocated beforehand; one hrtimer waits for the
 * first entry, is left alone when that is removed, and expires the due timers in
 * softirq context, in batches, with no lock held in the callbacks.
 */
#include <linux/mm.h>

#include "alarm.h"
#include "bench.h"

static void set_entry(struct bench_heap *heap, unsigned long index,
		      struct bench_heap_entry entry)
{
	heap->entry[index] = entry;
	/* Pairs with the READ_ONCE() in bench_heap_pending(). */
	WRITE_ONCE(entry.node->index, index);
}

/* Fills the hole at @index, or one above it, with @entry. */
static void sift_up(struct bench_heap *heap, unsigned long index,
		    struct bench_heap_entry entry)
{
	unsigned long parent;

	for (; index; index = parent) {
		parent = (index - 1) / 2;
		if (heap->entry[parent].deadline <= entry.deadline)
			break;
		set_entry(heap, index, heap->entry[parent]);
	}
	set_entry(heap, index, entry);
}

/* Fills the hole at @index, or one below it, with @entry. */
static void sift_down(struct bench_heap *heap, unsigned long index,
		      struct bench_heap_entry entry)
{
	unsigned long child;

	for (; (child = 2 * index + 1) < heap->nr; index = child) {
		if (child + 1 < heap->nr &&
		    heap->entry[child + 1].deadline < heap->entry[child].deadline)
			child++;
		if (entry.deadline <= heap->entry[child].deadline)
			break;
		set_entry(heap, index, heap->entry[child]);
	}
	set_entry(heap, index, entry);
}

static void sift_entry(struct bench_heap *heap, unsigned long index,
		       struct bench_heap_entry entry)
{
	if (index && entry.deadline < heap->entry[(index - 1) / 2].deadline)
		sift_up(heap, index, entry);
	else
		sift_down(heap, index, entry);
}

static void remove_node(struct bench_heap *heap, struct bench_heap_node *node)
{
	unsigned long index = node->index;

	/* Pairs with the READ_ONCE() in bench_heap_pending(). */
	WRITE_ONCE(node->index, BENCH_HEAP_NOWHERE);
	heap->nr--;
	if (index != heap->nr)
		sift_entry(heap, index, heap->entry[heap->nr]);
}

static u64 first_deadline(const struct bench_heap *heap)
{
	return heap->nr ? heap->entry[0].deadline : KTIME_MAX;
}

static enum hrtimer_restart expire_timers(struct hrtimer *hrtimer)
{
	struct bench_heap *heap = container_of(hrtimer, struct bench_heap, alarm.hrtimer);
	unsigned int left = BENCH_BUDGET;
	u64 now = ktime_get_ns();
	struct bench_heap_node *node;

	bench_alarm_begin(&heap->alarm);
	while (heap->nr && heap->entry[0].deadline <= now && left--) {
		node = heap->entry[0].node;
		remove_node(heap, node);
		spin_unlock(&heap->alarm.lock);
		node->function(node);
		spin_lock(&heap->alarm.lock);
	}
	return bench_alarm_end(&heap->alarm, first_deadline(heap), now);
}

/**
 * bench_heap_init - initialise an empty heap
 * @heap:	the heap
 * @max:	maximum number of timers
 * @slack:	by how many nanoseconds timers may be late
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int bench_heap_init(struct bench_heap *heap, unsigned long max, u64 slack)
{
	memset(heap, 0, sizeof(*heap));
	heap->entry = bench_alloc(max, sizeof(*heap->entry));
	if (!heap->entry)
		return -ENOMEM;
	heap->max = max;
	bench_alarm_init(&heap->alarm, slack, expire_timers);
	return 0;
}

/**
 * bench_heap_destroy - free a heap, after waiting for callbacks
 * @heap:	the heap; no timer may be armed any more
 *
 * Context: process.
 */
void bench_heap_destroy(struct bench_heap *heap)
{
	bench_alarm_stop(&heap->alarm);
	kvfree(heap->entry);
}

/**
 * bench_heap_arm - arm a timer, whether it is armed already or not
 * @heap:	the heap
 * @node:	the timer
 * @deadline:	when the timer is due, in nanoseconds of CLOCK_MONOTONIC
 *
 * Context: process or softirq, always on the same CPU.
 * Return: 1 if the timer was armed, else 0.
 */
int bench_heap_arm(struct bench_heap *heap, struct bench_heap_node *node, u64 deadline)
{
	struct bench_heap_entry entry = { .deadline = deadline, .node = node };
	int pending;

	spin_lock_bh(&heap->alarm.lock);
	pending = bench_heap_pending(node);
	if (pending)
		sift_entry(heap, node->index, entry);
	else if (!WARN_ON_ONCE(heap->nr == heap->max))
		sift_up(heap, heap->nr++, entry);
	bench_alarm_program(&heap->alarm, first_deadline(heap));
	spin_unlock_bh(&heap->alarm.lock);
	return pending;
}

/**
 * bench_heap_cancel - disarm a timer
 * @heap:	the heap
 * @node:	the timer
 *
 * Context: process or softirq.
 * Return: 1 if the timer was armed, else 0.
 */
int bench_heap_cancel(struct bench_heap *heap, struct bench_heap_node *node)
{
	int pending;

	spin_lock_bh(&heap->alarm.lock);
	pending = bench_heap_pending(node);
	if (pending)
		remove_node(heap, node);
	spin_unlock_bh(&heap->alarm.lock);
	return pending;
}
