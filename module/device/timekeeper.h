/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: what runs whenever the kernel updates its clocks
 */
#ifndef _TWHEEL_DEVICE_TIMEKEEPER_H
#define _TWHEEL_DEVICE_TIMEKEEPER_H

int twheel_timekeeper_init(void);
void twheel_timekeeper_exit(void);

#endif /* _TWHEEL_DEVICE_TIMEKEEPER_H */
