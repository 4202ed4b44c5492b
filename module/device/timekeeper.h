/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: what is done whenever the kernel brings its clocks up to date
 */
#ifndef _TWHEEL_DEVICE_TIMEKEEPER_H
#define _TWHEEL_DEVICE_TIMEKEEPER_H

int twheel_timekeeper_init(void);
void twheel_timekeeper_exit(void);

#endif /* _TWHEEL_DEVICE_TIMEKEEPER_H */
