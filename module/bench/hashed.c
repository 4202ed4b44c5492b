// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: timers in a hashed wheel
 *
 * This is scheme 6 of Varghese and Lauck ("Hashed and Hierarchical Timing Wheels", SOSP 1987): one
 * level, in which timers whose timeout is longer than a turn stay in their slot for several turns.
 * Where libraries count the turns that are left, a timer here has the number of its tick, so that a
 * turn need not write to it.
 *
 * Each tick looks at all timers of its slot with the lock held, and then calls those that are due
 * without it. How long the former takes depends on how many timers there are for each slot: this
 * is how the libraries do it, and what they cost.
 */
#include <linux/minmax.h>
#include <linux/mm.h>

#include "alarm.h"
#include "bench.h"
#include "hashed.h"

static struct hlist_head *slot_of(struct bench_hashed *wheel, u64 tick)
{
	u32 index;

	div_u64_rem(tick, wheel->nr_slots, &index);
	return &wheel->slot[index];
}

static void enqueue(struct bench_hashed *wheel, struct bench_hashed_node *node)
{
	node->slot_tick = node->tick;
	hlist_add_head(&node->link, slot_of(wheel, node->tick));
}

/* Takes what is due out of the slot of a tick, and moves on what was moved lazily. */
static void collect_due(struct bench_hashed *wheel, u64 tick)
{
	struct bench_hashed_node *node;
	struct hlist_node *next;

	hlist_for_each_entry_safe(node, next, slot_of(wheel, tick), link) {
		if (node->slot_tick > tick)
			continue;
		hlist_del_init(&node->link);
		if (node->tick > tick)
			enqueue(wheel, node);
		else
			hlist_add_head(&node->link, &wheel->expiring);
	}
}

/* Calls what is due. Returns true if there is more. */
static bool call_due(struct bench_hashed *wheel)
{
	unsigned int left = BENCH_BUDGET;
	struct bench_hashed_node *node;

	while (!hlist_empty(&wheel->expiring) && left--) {
		node = hlist_entry(wheel->expiring.first, struct bench_hashed_node, link);
		hlist_del_init(&node->link);
		wheel->nr--;
		spin_unlock(&wheel->ticker.lock);
		node->function(node);
		spin_lock(&wheel->ticker.lock);
	}
	return !hlist_empty(&wheel->expiring);
}

static enum hrtimer_restart handle_tick(struct hrtimer *hrtimer)
{
	struct bench_hashed *wheel = container_of(hrtimer, struct bench_hashed, ticker.hrtimer);
	enum hrtimer_restart restart;
	u64 last;
	bool more;

	spin_lock(&wheel->ticker.lock);
	last = bench_ticker_now(&wheel->ticker);
	more = call_due(wheel);
	while (!more && wheel->ticker.tick < last) {
		collect_due(wheel, ++wheel->ticker.tick);
		more = call_due(wheel);
	}
	restart = bench_ticker_next(&wheel->ticker, more);
	spin_unlock(&wheel->ticker.lock);
	return restart;
}

/**
 * bench_hashed_init - initialise an empty wheel
 * @wheel:	the wheel
 * @nr_slots:	number of slots
 * @tick_ns:	length of a tick, in nanoseconds
 * @lazy:	timers that are moved to a later tick stay in their slot until that comes
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int bench_hashed_init(struct bench_hashed *wheel, u32 nr_slots, u64 tick_ns, bool lazy)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->slot = bench_alloc(nr_slots, sizeof(*wheel->slot));
	if (!wheel->slot)
		return -ENOMEM;
	wheel->nr_slots = nr_slots;
	wheel->lazy = lazy;
	bench_ticker_init(&wheel->ticker, tick_ns, handle_tick);
	return 0;
}

/**
 * bench_hashed_destroy - free a wheel, after waiting for callbacks
 * @wheel:	the wheel; no timer may be armed any more
 *
 * Context: process.
 */
void bench_hashed_destroy(struct bench_hashed *wheel)
{
	bench_ticker_stop(&wheel->ticker);
	kvfree(wheel->slot);
}

/**
 * bench_hashed_arm - arm a timer, whether it is armed already or not
 * @wheel:	the wheel
 * @node:	the timer
 * @deadline:	when it is due, in nanoseconds of CLOCK_MONOTONIC
 *
 * Context: process or softirq, always on the same CPU.
 * Return: 1 if the timer was armed, else 0.
 */
int bench_hashed_arm(struct bench_hashed *wheel, struct bench_hashed_node *node, u64 deadline)
{
	int pending;

	spin_lock_bh(&wheel->ticker.lock);
	pending = bench_hashed_pending(node);
	bench_ticker_start(&wheel->ticker, !wheel->nr);
	node->tick = bench_ticker_due(&wheel->ticker, deadline);
	/* One that is being expired is in no slot: its tick has been handled. */
	if (!pending || !wheel->lazy || node->tick < node->slot_tick ||
	    node->slot_tick <= wheel->ticker.tick) {
		if (pending)
			hlist_del(&node->link);
		enqueue(wheel, node);
	}
	wheel->nr += !pending;
	spin_unlock_bh(&wheel->ticker.lock);
	return pending;
}

/**
 * bench_hashed_cancel - disarm a timer
 * @wheel:	the wheel
 * @node:	the timer
 *
 * Context: process or softirq.
 * Return: 1 if the timer was armed, else 0.
 */
int bench_hashed_cancel(struct bench_hashed *wheel, struct bench_hashed_node *node)
{
	int pending;

	spin_lock_bh(&wheel->ticker.lock);
	pending = bench_hashed_pending(node);
	if (pending) {
		hlist_del_init(&node->link);
		wheel->nr--;
	}
	spin_unlock_bh(&wheel->ticker.lock);
	return pending;
}
