/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: /dev/twheel
 */
#ifndef _TWHEEL_DEVICE_CHARDEV_H
#define _TWHEEL_DEVICE_CHARDEV_H

int twheel_chardev_init(void);
void twheel_chardev_exit(void);

#endif /* _TWHEEL_DEVICE_CHARDEV_H */
