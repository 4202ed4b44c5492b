// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: shares of the softirqs; see share.h
 */
#include <linux/percpu.h>

#include "share.h"
#include "twheel.h"

/* Timers that an owner has softirqs arm anew in a tick. */
#define OWNER_SHARE	64

/* Timers that a CPU's softirqs arm anew in a tick, for all owners. */
#define CPU_SHARE	256

/*
 * What was taken on a CPU. Used with softirqs off. Where that does not keep others off, as with
 * PREEMPT_RT, a few more may be taken.
 */
static DEFINE_PER_CPU(struct twheel_share, cpu_share);

static u64 tick_of(u64 now)
{
	return now >> twheel_tick_shift();
}

/**
 * twheel_share_left - may a softirq arm a timer anew?
 * @share:	what was taken of the owner's share
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: softirq, with what guards @share held.
 * Return: whether something is left of it, and of this CPU's.
 */
bool twheel_share_left(const struct twheel_share *share, u64 now)
{
	if (share->tick == tick_of(now) && share->taken >= OWNER_SHARE)
		return false;
	return this_cpu_read(cpu_share.tick) != tick_of(now) ||
	       this_cpu_read(cpu_share.taken) < CPU_SHARE;
}

/**
 * twheel_share_take - a softirq arms a timer anew
 * @share:	the owner's share, of which something is left
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: softirq, with what guards @share held.
 */
void twheel_share_take(struct twheel_share *share, u64 now)
{
	if (share->tick != tick_of(now)) {
		share->tick = tick_of(now);
		share->taken = 0;
	}
	share->taken++;
	if (this_cpu_read(cpu_share.tick) != tick_of(now)) {
		this_cpu_write(cpu_share.tick, tick_of(now));
		this_cpu_write(cpu_share.taken, 0);
	}
	this_cpu_inc(cpu_share.taken);
}
