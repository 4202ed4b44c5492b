// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the timers of a context by key
 */
#include <linux/rhashtable.h>

#include "context.h"

static const struct rhashtable_params params = {
	.key_len		= sizeof_field(struct twheel_keyed_timer, key),
	.key_offset		= offsetof(struct twheel_keyed_timer, key),
	.head_offset		= offsetof(struct twheel_keyed_timer, hash),
	.automatic_shrinking	= true,
};

/**
 * twheel_keys_init - from now on, a context may have timers with keys
 * @ctx:	the context
 *
 * Context: process; may sleep.
 * Return:
 * * %0		- twheel_keys_insert() may be called
 * * %-ENOMEM	- no memory
 * * %-EINTR	- the task is being killed
 */
int twheel_keys_init(struct twheel_context *ctx)
{
	int ret;

	ret = mutex_lock_killable(&ctx->grow_lock);
	if (ret)
		return ret;
	if (ctx->has_keys)
		goto out;
	ret = rhashtable_init(&ctx->keys, &params);
	if (ret)
		goto out;
	spin_lock_bh(&ctx->lock);
	ctx->has_keys = true;
	spin_unlock_bh(&ctx->lock);
out:
	mutex_unlock(&ctx->grow_lock);
	return ret;
}

/**
 * twheel_keys_destroy - forget all keys
 * @ctx:	the context, whose end has come
 *
 * Context: process; may sleep.
 */
void twheel_keys_destroy(struct twheel_context *ctx)
{
	if (ctx->has_keys)
		rhashtable_destroy(&ctx->keys);
}

/**
 * twheel_keys_insert - give a timer a key
 * @ctx:	the context
 * @ut:		the timer, of a kind that has room for it
 * @key:	a key that no other timer of the context has
 *
 * Context: with the context's lock held.
 * Return: 0, or an errno if there is no memory.
 */
int twheel_keys_insert(struct twheel_context *ctx, struct twheel_user_timer *ut, u64 key)
{
	struct twheel_keyed_timer *kt = twheel_keyed(ut);
	int ret;

	kt->key = key;
	ret = rhashtable_insert_fast(&ctx->keys, &kt->hash, params);
	if (!ret)
		ut->node.state |= TWHEEL_HASHED;
	return ret;
}

/**
 * twheel_keys_replace - give a timer the key of another one
 * @ctx:	the context
 * @old:	a timer that has a key, and loses it
 * @ut:		the timer, of a kind that has room for it
 *
 * Needs no memory.
 *
 * Context: with the context's lock held.
 */
void twheel_keys_replace(struct twheel_context *ctx, struct twheel_user_timer *old,
			 struct twheel_user_timer *ut)
{
	struct twheel_keyed_timer *kt = twheel_keyed(ut);

	kt->key = twheel_keyed(old)->key;
	rhashtable_replace_fast(&ctx->keys, &twheel_keyed(old)->hash, &kt->hash, params);
	old->node.state &= ~TWHEEL_HASHED;
	ut->node.state |= TWHEEL_HASHED;
}

/**
 * twheel_keys_remove - take a timer's key away
 * @ctx:	the context
 * @ut:		a timer that has one
 *
 * Context: with the context's lock held.
 */
void twheel_keys_remove(struct twheel_context *ctx, struct twheel_user_timer *ut)
{
	rhashtable_remove_fast(&ctx->keys, &twheel_keyed(ut)->hash, params);
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
struct twheel_user_timer *twheel_keys_find(struct twheel_context *ctx, u64 key)
{
	struct twheel_keyed_timer *kt;

	lockdep_assert_held(&ctx->lock);
	if (!ctx->has_keys)
		return NULL;
	kt = rhashtable_lookup_fast(&ctx->keys, &key, params);
	return kt ? &kt->ut : NULL;
}

/**
 * twheel_keys_bytes - how much memory the table of keys takes
 * @ctx:	the context
 *
 * Context: with the context's lock held.
 * Return: bytes.
 */
u64 twheel_keys_bytes(struct twheel_context *ctx)
{
	u64 bytes = 0;

	if (ctx->has_keys) {
		rcu_read_lock();
		bytes = rht_dereference_rcu(ctx->keys.tbl, &ctx->keys)->size *
			sizeof(struct rhash_lock_head *);
		rcu_read_unlock();
	}
	return bytes;
}
