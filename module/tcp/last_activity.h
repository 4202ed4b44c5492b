/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: when data last came and went on a connection
 */
#ifndef _TWHEEL_TCP_LAST_ACTIVITY_H
#define _TWHEEL_TCP_LAST_ACTIVITY_H

#include <linux/types.h>

struct sock;

#ifdef CONFIG_INET
void twheel_note_jiffy(u64 jiffy, u64 now);
u64 twheel_last_activity(const struct sock *sk, u16 flags, u64 now);
u64 twheel_last_ack(const struct sock *sk, u64 now);
u64 twheel_owed_since(const struct sock *sk, u64 now);
u32 twheel_unacked_queue(const struct sock *sk, u32 *unacked);
#else
static inline void twheel_note_jiffy(u64 jiffy, u64 now)
{
}
#endif /* CONFIG_INET */

#endif /* _TWHEEL_TCP_LAST_ACTIVITY_H */
