/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: reading and converting clocks
 */
#ifndef _TWHEEL_DEVICE_CLOCKS_H
#define _TWHEEL_DEVICE_CLOCKS_H

#include <linux/atomic.h>
#include <linux/types.h>

struct twheel_context;
struct twheel_extended_timer;

/* How many times clocks have jumped. */
extern atomic_t twheel_clock_jumps;

void twheel_clock_set_deadline(struct twheel_context *ctx, struct twheel_extended_timer *et,
			       u8 clock);
u64 twheel_clock_read(u8 clock, u64 now);
u64 twheel_clock_to_monotonic(u8 clock, u64 time, u64 now);

#endif /* _TWHEEL_DEVICE_CLOCKS_H */
