/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the hrtimer of a CPU's wheel, and the callbacks
 */
#ifndef _TWHEEL_CORE_EXPIRY_H
#define _TWHEEL_CORE_EXPIRY_H

#include <linux/hrtimer.h>

struct twheel_base;

int twheel_expiry_init(void);
enum hrtimer_restart twheel_expiry_tick(struct hrtimer *hrtimer);
void twheel_expiry_program(struct twheel_base *base);
void twheel_expiry_notify(struct twheel_base *base);
void twheel_expiry_notified(void *arg);

#endif /* _TWHEEL_CORE_EXPIRY_H */
