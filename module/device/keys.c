// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the timers of a context by key
 *
 * A hash table with chaining. Its memory is charged to the program, and no call spends more than a
 * few steps on it; that rules out the kernel's own tables, which allocate their memory in a worker
 * of their own, charged to nobody, and all at once.
 *
 * It grows by linear hashing, one bucket at a time: in a table of n buckets, the lower bits of a
 * hash give its bucket, as many as it takes to number all buckets; or one bit less where that
 * number is n or more. A key that makes the table too full adds bucket n, which takes over some of
 * the contents of the bucket whose number differs in this bit only. Buckets lie in segments of a
 * page each, which are allocated before they are used: growing needs no memory, and a key that
 * finds no room has another segment allocated. The hash is keyed with a secret, so a program
 * cannot make chains longer than they are by chance.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>

#include "context.h"
#include "keys.h"
#include "lib/memory.h"

/* Buckets in a segment. */
#define BUCKETS_PER_SEGMENT	(PAGE_SIZE / sizeof(struct twheel_keyed_timer *))

static u32 hash_key(const struct twheel_keys *keys, u64 key)
{
	return hsiphash_2u32(key, key >> 32, &keys->secret);
}

static struct twheel_keyed_timer **bucket_at(const struct twheel_keys *keys, u32 i)
{
	return &keys->segments[i / BUCKETS_PER_SEGMENT][i % BUCKETS_PER_SEGMENT];
}

/* The bucket that a key belongs in. There is at least one bucket. */
static struct twheel_keyed_timer **bucket_of(const struct twheel_keys *keys, u64 key)
{
	u32 i = hash_key(keys, key) & keys->mask;

	return bucket_at(keys, i < keys->nr_buckets ? i : i & (keys->mask >> 1));
}

/* Adds a bucket, whose memory is already there. */
static void add_bucket(struct twheel_keys *keys)
{
	struct twheel_keyed_timer **from, **to, *kt;
	u32 new = keys->nr_buckets;

	if (!new) {
		keys->nr_buckets = 1;
		return;
	}
	if (new > keys->mask)
		keys->mask = 2 * keys->mask + 1;
	from = bucket_at(keys, new & (keys->mask >> 1));
	to = bucket_at(keys, new);
	keys->nr_buckets++;
	while ((kt = *from)) {
		if ((hash_key(keys, kt->key) & keys->mask) != new) {
			from = &kt->next;
			continue;
		}
		*from = kt->next;
		kt->next = *to;
		*to = kt;
	}
}

/* The link that points to a timer with a key. */
static struct twheel_keyed_timer **find_link(const struct twheel_keys *keys,
					     const struct twheel_keyed_timer *kt)
{
	struct twheel_keyed_timer **link = bucket_of(keys, kt->key);

	while (*link != kt)
		link = &(*link)->next;
	return link;
}

/* Makes room for another segment in the array of segments, which changes only under @grow_lock. */
static int grow_segment_list(struct twheel_context *ctx)
{
	struct twheel_keys *keys = &ctx->keys;
	u32 capacity = keys->capacity ? 2 * keys->capacity : 4;
	struct twheel_keyed_timer ***segments, ***old = keys->segments;

	if (keys->nr_segments < keys->capacity)
		return 0;
	segments = kvcalloc(capacity, sizeof(*segments), TWHEEL_GFP_USER);
	if (!segments)
		return -ENOMEM;
	if (keys->nr_segments)
		memcpy(segments, old, keys->nr_segments * sizeof(*segments));
	spin_lock_bh(&ctx->lock);
	keys->segments = segments;
	keys->capacity = capacity;
	spin_unlock_bh(&ctx->lock);
	kvfree(old);
	return 0;
}

static int add_segment(struct twheel_context *ctx)
{
	struct twheel_keys *keys = &ctx->keys;
	struct twheel_keyed_timer **segment;
	int ret = grow_segment_list(ctx);

	if (ret)
		return ret;
	segment = (void *)__get_free_page(TWHEEL_GFP_USER | __GFP_ZERO);
	if (!segment)
		return -ENOMEM;
	if (!keys->nr_segments)
		get_random_bytes(&keys->secret, sizeof(keys->secret));
	spin_lock_bh(&ctx->lock);
	keys->segments[keys->nr_segments++] = segment;
	spin_unlock_bh(&ctx->lock);
	return 0;
}

/**
 * twheel_keys_has_room - check whether there is room for another key
 * @ctx:	the context
 *
 * Context: with the context's lock held.
 * Return: true if twheel_keys_insert() may be called; if not, call twheel_keys_grow().
 */
bool twheel_keys_has_room(const struct twheel_context *ctx)
{
	return ctx->keys.nr < (u64)ctx->keys.nr_segments * BUCKETS_PER_SEGMENT;
}

/**
 * twheel_keys_grow - make sure that there is room for another key
 * @ctx:	the context
 *
 * The room may be gone again by the time the caller takes the context's lock.
 *
 * Context: process; may sleep.
 * Return:
 * * %0		- there is room, or there was when this checked
 * * %-ENOMEM	- out of memory
 * * %-EINTR	- the task is being killed
 */
int twheel_keys_grow(struct twheel_context *ctx)
{
	bool has_room;
	int ret;

	ret = mutex_lock_killable(&ctx->grow_lock);
	if (ret)
		return ret;
	/* The previous holder of the lock may have made room. */
	spin_lock_bh(&ctx->lock);
	has_room = twheel_keys_has_room(ctx);
	spin_unlock_bh(&ctx->lock);
	if (!has_room)
		ret = add_segment(ctx);
	mutex_unlock(&ctx->grow_lock);
	return ret;
}

/**
 * twheel_keys_destroy - free the key table
 * @ctx:	the context, which is being destroyed
 *
 * Context: process; may sleep.
 */
void twheel_keys_destroy(struct twheel_context *ctx)
{
	u32 i;

	for (i = 0; i < ctx->keys.nr_segments; i++) {
		free_page((unsigned long)ctx->keys.segments[i]);
		cond_resched();
	}
	kvfree(ctx->keys.segments);
}

/**
 * twheel_keys_insert - give a timer a key
 * @ctx:	the context, which has room for the key
 * @ut:		the timer, of a kind that can have a key
 * @key:	a key that no other timer of the context has
 *
 * Context: with the context's lock held.
 */
void twheel_keys_insert(struct twheel_context *ctx, struct twheel_utimer *ut, u64 key)
{
	struct twheel_keyed_timer *kt = twheel_keyed(ut), **bucket;
	struct twheel_keys *keys = &ctx->keys;

	lockdep_assert_held(&ctx->lock);
	if (++keys->nr > keys->nr_buckets)
		add_bucket(keys);
	bucket = bucket_of(keys, key);
	kt->key = key;
	kt->next = *bucket;
	*bucket = kt;
	ut->node.state |= TWHEEL_HASHED;
}

/**
 * twheel_keys_replace - give a timer the key of another one
 * @ctx:	the context
 * @old:	a timer with a key, which it loses
 * @ut:		the timer, of a kind that can have a key
 *
 * Context: with the context's lock held.
 */
void twheel_keys_replace(struct twheel_context *ctx, struct twheel_utimer *old,
			 struct twheel_utimer *ut)
{
	struct twheel_keyed_timer *kt = twheel_keyed(ut);

	lockdep_assert_held(&ctx->lock);
	kt->key = twheel_keyed(old)->key;
	*find_link(&ctx->keys, twheel_keyed(old)) = kt;
	kt->next = twheel_keyed(old)->next;
	old->node.state &= ~TWHEEL_HASHED;
	ut->node.state |= TWHEEL_HASHED;
}

/**
 * twheel_keys_remove - take away a timer's key
 * @ctx:	the context
 * @ut:		a timer with a key
 *
 * Context: with the context's lock held.
 */
void twheel_keys_remove(struct twheel_context *ctx, struct twheel_utimer *ut)
{
	lockdep_assert_held(&ctx->lock);
	*find_link(&ctx->keys, twheel_keyed(ut)) = twheel_keyed(ut)->next;
	ctx->keys.nr--;
	ut->node.state &= ~TWHEEL_HASHED;
}

/**
 * twheel_keys_find - find a timer by its key
 * @ctx:	the context
 * @key:	any number
 *
 * Context: with the context's lock held, which keeps the timer from being freed.
 * Return: the timer, in whatever state; or NULL.
 */
struct twheel_utimer *twheel_keys_find(struct twheel_context *ctx, u64 key)
{
	struct twheel_keyed_timer *kt;

	lockdep_assert_held(&ctx->lock);
	if (!ctx->keys.nr)
		return NULL;
	for (kt = *bucket_of(&ctx->keys, key); kt; kt = kt->next)
		if (kt->key == key)
			return &kt->ut;
	return NULL;
}

/**
 * twheel_keys_bytes - how much memory the key table uses
 * @ctx:	the context
 *
 * Context: with the context's lock held.
 * Return: bytes.
 */
u64 twheel_keys_bytes(const struct twheel_context *ctx)
{
	return (u64)ctx->keys.nr_segments * PAGE_SIZE +
	       ctx->keys.capacity * sizeof(*ctx->keys.segments);
}
