/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the timers of a CPU that has gone offline
 */
#ifndef _TWHEEL_CORE_HOTPLUG_H
#define _TWHEEL_CORE_HOTPLUG_H

int twheel_hotplug_init(void);
void twheel_hotplug_exit(void);

#endif /* _TWHEEL_CORE_HOTPLUG_H */
