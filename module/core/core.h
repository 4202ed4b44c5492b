/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: initialisation and teardown of the timer core
 */
#ifndef _TWHEEL_CORE_CORE_H
#define _TWHEEL_CORE_CORE_H

int twheel_core_init(void);
void twheel_core_exit(void);

#endif /* _TWHEEL_CORE_CORE_H */
