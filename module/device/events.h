/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: events: who has expired, and who reads it
 */
#ifndef _TWHEEL_DEVICE_EVENTS_H
#define _TWHEEL_DEVICE_EVENTS_H

#include <linux/poll.h>
#include <linux/types.h>
#include <linux/uio.h>

struct twheel_context;
struct twheel_event;
struct twheel_user_timer;

void twheel_events_queue(struct twheel_context *ctx, struct twheel_user_timer *ut, u64 fired);
void twheel_events_unqueue(struct twheel_context *ctx, struct twheel_user_timer *ut);
void twheel_event_fill(const struct twheel_context *ctx, struct twheel_user_timer *ut, u64 seq,
		       struct twheel_event *event);
void twheel_events_to_ring(struct twheel_context *ctx);
ssize_t twheel_events_read(struct twheel_context *ctx, struct iov_iter *to, bool nonblock);
__poll_t twheel_events_poll(struct twheel_context *ctx, struct file *file, poll_table *wait);

#endif /* _TWHEEL_DEVICE_EVENTS_H */
