/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: what can be seen from outside
 */
#ifndef _TWHEEL_DEBUGFS_H
#define _TWHEEL_DEBUGFS_H

void twheel_debugfs_init(void);
void twheel_debugfs_exit(void);

#endif /* _TWHEEL_DEBUGFS_H */
