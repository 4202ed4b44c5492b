/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: handling clock jumps
 */
#ifndef _TWHEEL_DEVICE_CLOCK_JUMPS_H
#define _TWHEEL_DEVICE_CLOCK_JUMPS_H

#include <linux/ktime.h>

struct twheel_context;

void twheel_clock_jumps_exit(void);
void twheel_clocks_jumped(ktime_t realtime, ktime_t boottime);
void twheel_clocks_init(struct twheel_context *ctx);
void twheel_clocks_join(struct twheel_context *ctx);
void twheel_clocks_leave(struct twheel_context *ctx);

#endif /* _TWHEEL_DEVICE_CLOCK_JUMPS_H */
