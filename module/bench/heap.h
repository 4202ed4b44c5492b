/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel_bench: timers in a binary heap
 */
#ifndef _TWHEEL_BENCH_HEAP_H
#define _TWHEEL_BENCH_HEAP_H

#include <linux/types.h>

#include "alarm.h"

/* Index of a timer that is not in the heap. */
#define BENCH_HEAP_NOWHERE	(~0UL)

/**
 * struct bench_heap_node - a timer
 * @index:	index of its entry in the heap, or %BENCH_HEAP_NOWHERE. Written under
 *		the heap's lock, read without it to check whether the timer is armed
 * @function:	called in softirq context when the timer is due
 */
struct bench_heap_node {
	unsigned long	index;
	void		(*function)(struct bench_heap_node *node);
};

/**
 * struct bench_heap_entry - a timer's entry in the heap
 * @deadline:	when the timer is due, in nanoseconds. Kept here instead of in the
 *		timer, which is elsewhere in memory, so a comparison costs no cache miss
 * @node:	the timer
 */
struct bench_heap_entry {
	u64			deadline;
	struct bench_heap_node	*node;
};

/**
 * struct bench_heap - a heap, and what expires its timers
 * @alarm:	waits for the first entry; its lock guards everything below
 * @entry:	the heap: no entry is due before its parent, at half its index
 * @nr:		number of entries
 * @max:	number of entries allocated
 */
struct bench_heap {
	struct bench_alarm	alarm;
	struct bench_heap_entry	*entry;
	unsigned long		nr;
	unsigned long		max;
};

int bench_heap_init(struct bench_heap *heap, unsigned long max, u64 slack);
void bench_heap_destroy(struct bench_heap *heap);
int bench_heap_arm(struct bench_heap *heap, struct bench_heap_node *node, u64 deadline);
int bench_heap_cancel(struct bench_heap *heap, struct bench_heap_node *node);

/**
 * bench_heap_pending - check whether a timer is armed
 * @node:	the timer
 *
 * Return: true if it is.
 */
static inline bool bench_heap_pending(const struct bench_heap_node *node)
{
	/* Pairs with the WRITE_ONCE()s in heap.c. */
	return READ_ONCE(node->index) != BENCH_HEAP_NOWHERE;
}

#endif /* _TWHEEL_BENCH_HEAP_H */
