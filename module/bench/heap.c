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
#include <linux/ktime.h>
#include <linux/mm.h>

#include "bench.h"
#include "lib/compat.h"

/* Maximum number of timers expired in one softirq, the same as the wheel's default. */
#define BUDGET	4096

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

/* Makes the hrtimer expire for the first entry. */
static void program_hrtimer(struct bench_heap *heap)
{
	u64 first = heap->entry[0].deadline;

	lockdep_assert_held(&heap->lock);
	if (first >= heap->programmed || heap->expiring)
		return;
	heap->programmed = first;
	hrtimer_start_range_ns(&heap->hrtimer, ns_to_ktime(first), heap->slack,
			       HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* The same, from the hrtimer's own function, which returns the result. */
static enum hrtimer_restart reprogram_hrtimer(struct bench_heap *heap, u64 now)
{
	u64 first;

	lockdep_assert_held(&heap->lock);
	heap->programmed = KTIME_MAX;
	if (!heap->nr)
		return HRTIMER_NORESTART;
	first = heap->entry[0].deadline;
	heap->programmed = first;
	if (first <= now)
		/* More than one batch: expire the rest at once, but in a softirq of its own. */
		hrtimer_set_expires(&heap->hrtimer, ktime_get());
	else
		hrtimer_set_expires_range_ns(&heap->hrtimer, ns_to_ktime(first), heap->slack);
	return HRTIMER_RESTART;
}

static enum hrtimer_restart expire_timers(struct hrtimer *hrtimer)
{
	struct bench_heap *heap = container_of(hrtimer, struct bench_heap, hrtimer);
	unsigned int left = BUDGET;
	u64 now = ktime_get_ns();
	enum hrtimer_restart restart;
	struct bench_heap_node *node;

	spin_lock(&heap->lock);
	heap->expiring = true;
	while (heap->nr && heap->entry[0].deadline <= now && left--) {
		node = heap->entry[0].node;
		remove_node(heap, node);
		spin_unlock(&heap->lock);
		node->function(node);
		spin_lock(&heap->lock);
	}
	heap->expiring = false;
	restart = reprogram_hrtimer(heap, now);
	spin_unlock(&heap->lock);
	return restart;
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
	spin_lock_init(&heap->lock);
	heap->max = max;
	heap->slack = slack;
	heap->programmed = KTIME_MAX;
	hrtimer_setup(&heap->hrtimer, expire_timers, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
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
	hrtimer_cancel(&heap->hrtimer);
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

	spin_lock_bh(&heap->lock);
	pending = bench_heap_pending(node);
	if (pending)
		sift_entry(heap, node->index, entry);
	else if (!WARN_ON_ONCE(heap->nr == heap->max))
		sift_up(heap, heap->nr++, entry);
	program_hrtimer(heap);
	spin_unlock_bh(&heap->lock);
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

	spin_lock_bh(&heap->lock);
	pending = bench_heap_pending(node);
	if (pending)
		remove_node(heap, node);
	spin_unlock_bh(&heap->lock);
	return pending;
}
