/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the memory of the wheels
 */
#ifndef _TWHEEL_CORE_PAGES_H
#define _TWHEEL_CORE_PAGES_H

#include <linux/types.h>

struct mem_cgroup;
struct twheel;

int twheel_pages_init(void);
void twheel_pages_stop(void);
void twheel_pages_exit(void);
bool twheel_pages_refill(bool arming);
void twheel_pages_drain(struct twheel *wheel);

void twheel_pages_trim_later(void);
struct mem_cgroup *twheel_payer_begin(struct mem_cgroup *payer);
void twheel_payer_end(struct mem_cgroup *old);

#endif /* _TWHEEL_CORE_PAGES_H */
