/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the touch array, and the time published in it
 */
#ifndef _TWHEEL_DEVICE_TOUCH_H
#define _TWHEEL_DEVICE_TOUCH_H

#include <linux/types.h>

struct twheel_context;
struct twheel_mapping;
struct twheel_extended_timer;

int twheel_touch_init(void);
void twheel_touch_exit(void);
void twheel_touch_publish(u64 now);
bool twheel_touch_available(void);
int twheel_touch_create(struct twheel_context *ctx, u32 words);
void twheel_touch_destroy(struct twheel_context *ctx);
struct twheel_mapping *twheel_touch_mapping(const struct twheel_context *ctx);
u32 twheel_touch_words(const struct twheel_context *ctx);
u64 twheel_touch_active(struct twheel_context *ctx, struct twheel_extended_timer *et, u64 now);

#endif /* _TWHEEL_DEVICE_TOUCH_H */
