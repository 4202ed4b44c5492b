/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the list of timers that have expired
 */
#ifndef _TWHEEL_DEVICE_EVENTS_H
#define _TWHEEL_DEVICE_EVENTS_H

#include <linux/types.h>

struct twheel_context;
struct twheel_event;
struct twheel_utimer;

struct twheel_utimer *twheel_events_first(struct twheel_context *ctx);
void twheel_events_append(struct twheel_context *ctx, struct twheel_utimer *ut, u64 fired);
void twheel_events_put_back(struct twheel_context *ctx, struct twheel_utimer *ut, u64 fired);
void twheel_events_unqueue(struct twheel_context *ctx, struct twheel_utimer *ut);
void twheel_event_fill(const struct twheel_context *ctx, struct twheel_utimer *ut, u64 seq,
		       struct twheel_event *event);

#endif /* _TWHEEL_DEVICE_EVENTS_H */
