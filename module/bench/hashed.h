/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel_bench: timers in a hashed wheel
 */
#ifndef _TWHEEL_BENCH_HASHED_H
#define _TWHEEL_BENCH_HASHED_H

#include <linux/list.h>
#include <linux/types.h>

#include "nodes.h"
#include "ticker.h"

/**
 * struct bench_hashed - a hashed wheel, and what expires its timers
 * @ticker:	ticks as long as there are timers; its lock guards everything below
 * @slot:	the slots: a timer is in that of its tick, modulo @nr_slots
 * @nr_slots:	how many there are; constant
 * @lazy:	a timer that is moved to a later tick stays where it is, and moves on when its slot
 *		comes; constant
 * @expiring:	timers that are due, and have yet to be called
 * @nr:		number of timers, those in @expiring included
 */
struct bench_hashed {
	struct bench_ticker	ticker;
	struct hlist_head	*slot;
	u32			nr_slots;
	bool			lazy;
	struct hlist_head	expiring;
	unsigned long		nr;
};

int bench_hashed_init(struct bench_hashed *wheel, u32 nr_slots, u64 tick_ns, bool lazy);
void bench_hashed_destroy(struct bench_hashed *wheel);
int bench_hashed_arm(struct bench_hashed *wheel, struct bench_hashed_node *node, u64 deadline);
int bench_hashed_cancel(struct bench_hashed *wheel, struct bench_hashed_node *node);

/**
 * bench_hashed_pending - check whether a timer is armed
 * @node:	the timer
 *
 * Return: true if it is. What is read while it is expiring may be out of date.
 */
static inline bool bench_hashed_pending(const struct bench_hashed_node *node)
{
	return !hlist_unhashed_lockless(&node->link);
}

#endif /* _TWHEEL_BENCH_HASHED_H */
