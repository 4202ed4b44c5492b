/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: timers of contexts that watch connections
 */
#ifndef _TWHEEL_DEVICE_SOCK_TIMER_H
#define _TWHEEL_DEVICE_SOCK_TIMER_H

#include <linux/errno.h>
#include <linux/types.h>

struct twheel_context;
struct twheel_op;

#ifdef CONFIG_INET
void twheel_sock_timers_register(void);
void twheel_sock_timers_init(struct twheel_context *ctx);
int twheel_sock_timer_add(struct twheel_context *ctx, struct twheel_op *op);
void twheel_sock_timers_stop(struct twheel_context *ctx);
void twheel_sock_timers_leave(struct twheel_context *ctx);
#else
static inline void twheel_sock_timers_register(void)
{
}

static inline void twheel_sock_timers_init(struct twheel_context *ctx)
{
}

static inline int twheel_sock_timer_add(struct twheel_context *ctx, struct twheel_op *op)
{
	return -EOPNOTSUPP;
}

static inline void twheel_sock_timers_stop(struct twheel_context *ctx)
{
}

static inline void twheel_sock_timers_leave(struct twheel_context *ctx)
{
}
#endif /* CONFIG_INET */

#endif /* _TWHEEL_DEVICE_SOCK_TIMER_H */
