// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: hashed wheels with a map of keys
 *
 * keyed: 10 slots of 1 s, and a map from a timer's key to its place, as in a popular wheel for Go
 * (ouqiang/timewheel) and in its example: a caller keeps no pointer to a timer, but names it. There
 * the map leads to the slot, which is then searched; here it leads to the timer itself.
 *
 * idle_ring: how servers kick idle connections. A hand moves on by a set each second, and whatever
 * is in that set has been idle for a turn; activity moves a connection behind the hand, from the
 * set that a map leads to. All timeouts there are one turn long. Here a turn is longer than most,
 * so that few timers are looked at twice. Originals begin a turn wherever the hand is, so timers
 * are early by up to a second.
 *
 * The maps of Go, Java and PHP are the kernel's rhashtable here.
 */
#include <linux/bottom_half.h>
#include <linux/jhash.h>
#include <linux/rhashtable.h>

#include "bench.h"
#include "hashed.h"

static struct bench_hashed wheel;
static struct rhashtable keys;
static struct bench_obj *objs;

static u32 key_of(const struct bench_obj *obj)
{
	return obj - objs;
}

static struct bench_obj *obj_of(const struct bench_keyed_node *node)
{
	return container_of(node, struct bench_obj, keyed);
}

static u32 hash_key(const void *key, u32 length, u32 seed)
{
	return jhash_1word(*(const u32 *)key, seed);
}

static u32 hash_node(const void *node, u32 length, u32 seed)
{
	return jhash_1word(key_of(obj_of(node)), seed);
}

static int compare_key(struct rhashtable_compare_arg *arg, const void *node)
{
	return *(const u32 *)arg->key != key_of(obj_of(node));
}

/* The numbers of objects are the keys. */
static const struct rhashtable_params params = {
	.head_offset		= offsetof(struct bench_keyed_node, key),
	.hashfn			= hash_key,
	.obj_hashfn		= hash_node,
	.obj_cmpfn		= compare_key,
};

static void object_fired(struct bench_hashed_node *node)
{
	struct bench_keyed_node *keyed = container_of(node, struct bench_keyed_node, hashed);

	rhashtable_remove_fast(&keys, &keyed->key, params);
	bench_fired(obj_of(keyed));
}

static struct bench_keyed_node *find_key(u32 key)
{
	return rhashtable_lookup_fast(&keys, &key, params);
}

static int setup_map(const struct bench_work *work, u32 nr_slots)
{
	int ret = bench_hashed_init(&wheel, nr_slots, NSEC_PER_SEC / work->speed, false);

	if (ret)
		return ret;
	objs = work->pass.objs;
	ret = rhashtable_init(&keys, &params);
	if (ret)
		bench_hashed_destroy(&wheel);
	return ret;
}

static int setup_keyed(const struct bench_work *work)
{
	return setup_map(work, 10);
}

static int setup_ring(const struct bench_work *work)
{
	return setup_map(work, 180);
}

static void teardown_map(void)
{
	bench_hashed_destroy(&wheel);
	rhashtable_destroy(&keys);
}

static u64 align_expiry(u64 ns)
{
	return bench_ticker_align(&wheel.ticker, ns);
}

static u64 slack_of(u64 timeout)
{
	return wheel.ticker.period;
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	INIT_HLIST_NODE(&obj->keyed.hashed.link);
	obj->keyed.hashed.function = object_fired;
	return 0;
}

/* Without softirqs, so that none removes the key between the steps. */
static int arm(struct bench_obj *obj, u64 when)
{
	struct bench_keyed_node *node;
	int pending = 0;

	local_bh_disable();
	node = find_key(key_of(obj));
	if (!node) {
		node = &obj->keyed;
		/* It may fail for lack of memory: then the timer is not armed, which is noticed. */
		if (rhashtable_insert_fast(&keys, &node->key, params))
			goto out;
	}
	pending = bench_hashed_arm(&wheel, &node->hashed, when);
out:
	local_bh_enable();
	return pending;
}

static int cancel(struct bench_obj *obj)
{
	struct bench_keyed_node *node;
	int pending = 0;

	local_bh_disable();
	node = find_key(key_of(obj));
	if (node) {
		rhashtable_remove_fast(&keys, &node->key, params);
		pending = bench_hashed_cancel(&wheel, &node->hashed);
	}
	local_bh_enable();
	return pending;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	return arm(obj, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return cancel(obj);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return bench_hashed_pending(&obj->keyed.hashed);
}

static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	int found = cancel_one(obj, when);

	bench_ticker_stop(&wheel.ticker);
	return found;
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

#define KEYED_SCHEME(_name, _setup)					\
	DEFINE_BENCH_SCHEME(_name,					\
			    .object_size = sizeof(struct bench_keyed_node), \
			    .rearm = add_batch,				\
			    .align = align_expiry,			\
			    .slack = slack_of,				\
			    .setup = _setup,				\
			    .teardown = teardown_map)

KEYED_SCHEME(keyed, setup_keyed);
KEYED_SCHEME(idle_ring, setup_ring);
