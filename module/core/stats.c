// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: what has happened on a CPU's wheel, and how it is occupied, level by level
 *
 * The chains are the owner's alone, so the look is taken by a task on the owner's CPU, with
 * softirqs off: then nothing changes them meanwhile but other CPUs, which only empty
 * cells. Slots are looked at one at a time, and none for longer than a walk along
 * MAX_SLOT_CHUNKS chunks takes.
 */
#include <linux/bitops.h>
#include <linux/bottom_half.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "cpu_base.h"
#include "stats.h"
#include "wheel.h"

/**
 * twheel_stats_snapshot - read a base's numbers
 * @cpu:	a possible CPU
 * @snapshot:	where to write them. Their sums are exact if nothing happens meanwhile
 *
 * Context: any.
 */
void twheel_stats_snapshot(unsigned int cpu, struct twheel_snapshot *snapshot)
{
	struct twheel_base *base = twheel_base_of(cpu);
	unsigned int i;

	/* The owner goes on counting: numbers of this moment, or of the next. */
	data_race(snapshot->counts = base->counts);
	/* Likewise. */
	data_race(snapshot->wheel = base->wheel.stats);
	snapshot->wheel.free = twheel_nr_free(&snapshot->wheel);
	snapshot->expiries = 0;
	for (i = 0; i < TWHEEL_LATE_BUCKETS; i++)
		snapshot->expiries += snapshot->counts.late[i];
	snapshot->pending = snapshot->wheel.enqueued - snapshot->wheel.dequeued -
			    READ_ONCE(base->wheel.remote_dequeued) - snapshot->expiries;
}

/* Some 24 thousand timers. */
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
	/* Pairs with the WRITE_ONCE()s of the spill lists. Those are not walked. */
	if (!(link & TWHEEL_LAST) || READ_ONCE(wheel->spill[l * TWHEEL_SLOTS + s]))
		level->more = true;
}

/* On the CPU whose wheel it is. Of the last removals, no cell shall name what is gone. */
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
 * twheel_stats_levels - look at the levels of a CPU's wheel
 * @cpu:	a possible CPU
 * @levels:	where to add up what is there: %TWHEEL_LEVELS of them
 *
 * Slots come up, and timers move, while this goes on: it is a picture of the order of
 * things, not a sum.
 *
 * Context: process; sleeps until the CPU has had time for it.
 * Return: 0, or -ENODEV if the CPU is offline. It has no timers then.
 */
int twheel_stats_levels(unsigned int cpu, struct twheel_level *levels)
{
	return work_on_cpu_safe(cpu, read_levels, levels);
}
