/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: scans for connections that exist already
 */
#ifndef _TWHEEL_RULES_SCAN_H
#define _TWHEEL_RULES_SCAN_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct net;

int twheel_scan_init(void);
void twheel_scan_exit(void);
int twheel_scan_run(struct net *net);
void twheel_scan_work(struct work_struct *work);
void twheel_scan_stop(struct list_head *nets);

#endif /* _TWHEEL_RULES_SCAN_H */
