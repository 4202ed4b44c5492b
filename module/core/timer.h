/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: timers: what timer.c provides to the rest of the module
 */
#ifndef _TWHEEL_CORE_TIMER_H
#define _TWHEEL_CORE_TIMER_H

#include <linux/types.h>

struct twheel_base;
struct twheel_timer;

/* The in-kernel API for callers with softirqs disabled. */
void twheel_add_bhoff(struct twheel_timer *timer, u64 expires);
int twheel_rearm_bhoff(struct twheel_timer *timer, u64 expires);
int twheel_cancel_bhoff(struct twheel_timer *timer);

/* For the timer core only. */
u64 twheel_base_enqueue_first(struct twheel_base *base, struct twheel_timer *timer, u64 expires);
void twheel_base_queue_remote(struct twheel_base *other, struct twheel_timer *timer);
int twheel_cancel_not_running(struct twheel_timer *timer);

#endif /* _TWHEEL_CORE_TIMER_H */
