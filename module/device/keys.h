/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: timers by key
 */
#ifndef _TWHEEL_DEVICE_KEYS_H
#define _TWHEEL_DEVICE_KEYS_H

#include <linux/siphash.h>
#include <linux/types.h>

struct twheel_context;
struct twheel_keyed_timer;
struct twheel_utimer;

/**
 * struct twheel_keys - the timers of a context that have a key; see keys.c
 * @segments:	the buckets, in arrays of a page each. Replaced under @grow_lock and @lock
 * @nr_segments: number of arrays
 * @capacity:	how many @segments can hold; under @grow_lock
 * @nr_buckets:	buckets in use
 * @mask:	the smallest power of two, less one, that is not below the last bucket's number
 * @nr:		number of timers
 * @secret:	the key of the hash. Set once
 */
struct twheel_keys {
	struct twheel_keyed_timer	***segments;
	u32				nr_segments;
	u32				capacity;
	u32				nr_buckets;
	u32				mask;
	u64				nr;
	hsiphash_key_t			secret;
};

bool twheel_keys_has_room(const struct twheel_context *ctx);
int twheel_keys_grow(struct twheel_context *ctx);
void twheel_keys_destroy(struct twheel_context *ctx);
void twheel_keys_insert(struct twheel_context *ctx, struct twheel_utimer *ut, u64 key);
void twheel_keys_replace(struct twheel_context *ctx, struct twheel_utimer *old,
			 struct twheel_utimer *ut);
void twheel_keys_remove(struct twheel_context *ctx, struct twheel_utimer *ut);
struct twheel_utimer *twheel_keys_find(struct twheel_context *ctx, u64 key);
u64 twheel_keys_bytes(const struct twheel_context *ctx);

#endif /* _TWHEEL_DEVICE_KEYS_H */
