/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: events in memory that the program maps
 */
#ifndef _TWHEEL_DEVICE_RING_H
#define _TWHEEL_DEVICE_RING_H

#include <linux/types.h>

struct twheel_context;
struct twheel_event;
struct twheel_mapping;

int twheel_ring_create(struct twheel_context *ctx, u32 entries, bool event_keys);
void twheel_ring_destroy(struct twheel_context *ctx);
struct twheel_mapping *twheel_ring_mapping(const struct twheel_context *ctx);
u32 twheel_ring_entries(const struct twheel_context *ctx);
struct twheel_event *twheel_ring_reserve(struct twheel_context *ctx);
void twheel_ring_commit(struct twheel_context *ctx);
bool twheel_ring_readable(const struct twheel_context *ctx);
void twheel_ring_set_waiting(struct twheel_context *ctx, bool waiting);

#endif /* _TWHEEL_DEVICE_RING_H */
