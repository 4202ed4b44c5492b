// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: a CPU wheel's counters, and how the wheel is occupied, level by level
 *
 * Only the owner may access the chains, so they are read by a task on the owner's CPU, with
 * softirqs disabled: meanwhile nothing changes them, except that other CPUs empty cells.
 * Slots are read one at a time, and none for longer than a walk along MAX_SLOT_CHUNKS
 * chunks takes.
 */
#include <linux/bitops.h>
#include <linux/bottom_half.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "cpu_base.h"
#include "stats.h"
#include "wheel.h"

/**
 * twheel_stats_snapshot - read a base's counters
 * @cpu:	a possible CPU
 * @snapshot:	where to store them. Their sums are exact if nothing happens meanwhile
 *
 * Context: any.
 */
void twheel_stats_snapshot(unsigned int cpu, struct twheel_snapshot *snapshot)
{
	struct twheel_base *base = twheel_base_of(cpu);
	unsigned int i;

	/* The owner keeps counting: these values are current, or about to be. */
	data_race(snapshot->counts = base->counts);
	/* As above. */
	data_race(snapshot->wheel = base->wheel.stats);
	snapshot->wheel.free = twheel_nr_free(&snapshot->wheel);
	snapshot->expiries = 0;
	for (i = 0; i < TWHEEL_LATE_BUCKETS; i++)
		snapshot->expiries += snapshot->counts.late[i];
	snapshot->pending = snapshot->wheel.enqueued - snapshot->wheel.dequeued -
			    READ_ONCE(base->wheel.remote_dequeued) - snapshot->expiries;
}

/* About 24 thousand timers. */
#define MAX_SLOT_CHUNKS	4096

static void count_chunk(const struct twheel_chunk *chunk, struct twheel_level *level)
{
	unsigned int i;

	level->chunks++;
	for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
		/* Pairs with the cmpxchg() in twheel_dequeue_remote(). */
		if (READ_ONCE(chunk->cell[i]))
			level->timers++;
	}
}

static void count_slot(const struct twheel *wheel, unsigned int l, unsigned int s,
		       struct twheel_level *level)
{
	unsigned long link = wheel->slot[l][s].head;
	unsigned int n;

	if (!(wheel->occupied[l] & 1ULL << s))
		return;
	level->slots++;
	for (n = 0; n < MAX_SLOT_CHUNKS && !(link & TWHEEL_LAST); n++) {
		count_chunk((const struct twheel_chunk *)link, level);
		link = ((const struct twheel_chunk *)link)->link;
	}
	/* Pairs with the WRITE_ONCE()s of the spill lists, which are not walked. */
	if (!(link & TWHEEL_LAST) || READ_ONCE(wheel->spill[l * TWHEEL_SLOTS + s]))
		level->more = true;
}

/* Runs on the wheel's CPU. Flushes, so that no cell still names a node that was removed. */
static long read_levels(void *arg)
{
	struct twheel_base *base = twheel_base_of(raw_smp_processor_id());
	struct twheel_level *levels = arg;
	unsigned int l, s;

	for (l = 0; l < TWHEEL_LEVELS; l++) {
		for (s = 0; s < TWHEEL_SLOTS; s++) {
			local_bh_disable();
			twheel_base_lock(base);
			twheel_flush_dequeued(&base->wheel);
			count_slot(&base->wheel, l, s, &levels[l]);
			twheel_base_unlock(base);
			local_bh_enable();
		}
		cond_resched();
	}
	return 0;
}

/**
 * twheel_stats_levels - read how the levels of a CPU's wheel are occupied
 * @cpu:	a possible CPU
 * @levels:	where to add up what is there: %TWHEEL_LEVELS of them
 *
 * Slots expire, and timers move, meanwhile: the result shows the order of magnitude,
 * and is not an exact sum.
 *
 * Context: process; sleeps until the task has run on the CPU.
 * Return: 0, or -ENODEV if the CPU is offline. It has no timers then.
 */
int twheel_stats_levels(unsigned int cpu, struct twheel_level *levels)
{
	return work_on_cpu_safe(cpu, read_levels, levels);
}
