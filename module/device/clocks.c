// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: reading clocks, and converting their times to CLOCK_MONOTONIC
 *
 * See clock_jumps.c for what happens when one of them jumps.
 */
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/time.h>

#include "clocks.h"
#include "context.h"

atomic_t twheel_clock_jumps = ATOMIC_INIT(0);

/**
 * twheel_clock_read - read a clock
 * @clock:	CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME
 * @now:	the time on CLOCK_MONOTONIC, in nanoseconds
 *
 * Context: any but NMI.
 * Return: the time on @clock, in nanoseconds.
 */
u64 twheel_clock_read(u8 clock, u64 now)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return ktime_mono_to_any(now, TK_OFFS_REAL);
	case CLOCK_BOOTTIME:
		return ktime_mono_to_any(now, TK_OFFS_BOOT);
	default:
		return now;
	}
}

/**
 * twheel_clock_to_monotonic - convert a time on a clock to CLOCK_MONOTONIC
 * @clock:	as for twheel_clock_read()
 * @time:	the time, in nanoseconds, below 2^63
 * @now:	the time on CLOCK_MONOTONIC, in nanoseconds
 *
 * Context: any but NMI.
 * Return: when the clock shows @time unless it is set, in nanoseconds of CLOCK_MONOTONIC; @now if
 * that has passed.
 */
u64 twheel_clock_to_monotonic(u8 clock, u64 time, u64 now)
{
	u64 reading;

	if (clock == CLOCK_MONOTONIC)
		return time;
	reading = twheel_clock_read(clock, now);
	return time > reading ? min_t(u64, now + (time - reading), TWHEEL_TIME_MAX) : now;
}

/**
 * twheel_clock_set_deadline - prepare a timer to be armed on a clock
 * @ctx:	the context
 * @et:		the timer
 * @clock:	the clock
 *
 * Context: with the context's lock held.
 */
void twheel_clock_set_deadline(struct twheel_context *ctx, struct twheel_extended_timer *et,
			       u8 clock)
{
	list_del_init(&et->clock_link);
	et->clock = clock;
	if (clock == CLOCK_MONOTONIC)
		return;
	/* The offset is read after this. Pairs with count_jump(). */
	et->seen_jump = atomic_read_acquire(&twheel_clock_jumps);
	list_add_tail(&et->clock_link, &ctx->clocked);
}
