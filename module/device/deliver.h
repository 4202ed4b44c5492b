/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: expiry of timers, and delivery of their events
 */
#ifndef _TWHEEL_DEVICE_DELIVER_H
#define _TWHEEL_DEVICE_DELIVER_H

#include <linux/poll.h>
#include <linux/types.h>
#include <linux/uio.h>

struct twheel_context;
struct twheel_timer;
struct twheel_utimer;

void twheel_deliver_init(struct twheel_context *ctx);
void twheel_utimer_expired(struct twheel_timer *timer);
void twheel_deliver_queue(struct twheel_context *ctx, struct twheel_utimer *ut, u64 fired);
void twheel_deliver_to_ring(struct twheel_context *ctx);
ssize_t twheel_deliver_read(struct twheel_context *ctx, struct iov_iter *to, bool nonblock);
__poll_t twheel_deliver_poll(struct twheel_context *ctx, struct file *file, poll_table *wait);

#endif /* _TWHEEL_DEVICE_DELIVER_H */
