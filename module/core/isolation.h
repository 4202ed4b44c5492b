/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: CPUs to be kept free of timers
 */
#ifndef _TWHEEL_CORE_ISOLATION_H
#define _TWHEEL_CORE_ISOLATION_H

#include <linux/types.h>

struct twheel_base;
struct twheel_timer;

void twheel_isolation_setup(struct twheel_base *base);
void twheel_isolation_stop(struct twheel_base *base);
bool twheel_isolation_check(struct twheel_base *base);
void twheel_isolation_spread(void);
void twheel_isolation_tick(struct twheel_base *base);
struct twheel_base *twheel_choose_target(const struct twheel_timer *timer);

#endif /* _TWHEEL_CORE_ISOLATION_H */
