// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: shares of softirq time; see share.h
 */
#include <linux/percpu.h>

#include "share.h"
#include "twheel.h"

/* Timers of one owner that softirqs may re-arm per tick. */
#define OWNER_SHARE	64

/* Timers that the softirqs of one CPU may re-arm per tick, for all owners. */
#define CPU_SHARE	256

/*
 * What has been taken on a CPU. Used with softirqs disabled. Where that does not exclude others, as
 * on PREEMPT_RT, a few more may be taken.
 */
static DEFINE_PER_CPU(struct twheel_share, cpu_share);

static u64 tick_of(u64 now)
{
	return now >> twheel_tick_shift();
}

/**
 * twheel_share_left - may a softirq re-arm a timer?
 * @share:	what has been taken of the owner's share
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: softirq, with the lock that guards @share held.
 * Return: true if there is some left, both of the owner's share and of this CPU's.
 */
bool twheel_share_left(const struct twheel_share *share, u64 now)
{
	if (share->tick == tick_of(now) && share->taken >= OWNER_SHARE)
		return false;
	return this_cpu_read(cpu_share.tick) != tick_of(now) ||
	       this_cpu_read(cpu_share.taken) < CPU_SHARE;
}

/**
 * twheel_share_take - account for a timer that a softirq re-arms
 * @share:	the owner's share, which is not used up
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: softirq, with the lock that guards @share held.
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
