/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: state changes of sockets, and who is notified of them
 */
#ifndef _TWHEEL_TCP_SK_STATE_H
#define _TWHEEL_TCP_SK_STATE_H

#include <linux/types.h>

struct seq_file;
struct twheel_watch_kind;

#ifdef CONFIG_INET
int twheel_sk_state_init(void);
void twheel_sk_state_exit(void);
int twheel_sk_state_subscribe(struct twheel_watch_kind *kind);
void twheel_sk_state_unsubscribe(struct twheel_watch_kind *kind);
bool twheel_watch_available(void);
void twheel_watch_show(struct seq_file *m);
#else
static inline bool twheel_watch_available(void)
{
	return false;
}

static inline void twheel_watch_show(struct seq_file *m)
{
}
#endif /* CONFIG_INET */

#endif /* _TWHEEL_TCP_SK_STATE_H */
