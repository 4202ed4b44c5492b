/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: clocks that jump
 */
#ifndef _TWHEEL_DEVICE_CLOCKS_H
#define _TWHEEL_DEVICE_CLOCKS_H

#include <linux/ktime.h>
#include <linux/types.h>

struct twheel_context;
struct twheel_rich_timer;

void twheel_clocks_exit(void);
void twheel_clocks_set_to(ktime_t realtime, ktime_t boottime);
void twheel_clocks_create(struct twheel_context *ctx);
void twheel_clocks_join(struct twheel_context *ctx);
void twheel_clocks_leave(struct twheel_context *ctx);
void twheel_clocks_set(struct twheel_context *ctx, struct twheel_rich_timer *rt, u8 clock);
u64 twheel_clock_read(u8 clock, u64 now);
u64 twheel_clock_to_monotonic(u8 clock, u64 time, u64 now);

#endif /* _TWHEEL_DEVICE_CLOCKS_H */
