// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the connections of a network namespace, in the kernel's table
 *
 * References are taken under the kernel's locks, in batches; the sockets are processed without
 * these locks.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/inet_hashtables.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "rules.h"
#include "socks.h"
#include "tcp/watch.h"

/* Sockets of a batch, initially. */
#define INITIAL_CAPACITY	64

/* Buckets visited before others get their turn. */
#define BATCH		64

/**
 * twheel_socks_put - drop the references to sockets that were found
 * @found:	the sockets; empty afterwards
 *
 * Context: process; may sleep.
 */
void twheel_socks_put(struct twheel_socks *found)
{
	while (found->nr)
		sock_put(found->socks[--found->nr]);
}

/**
 * twheel_socks_free - drop the references to sockets that were found, and free their array
 * @found:	the sockets
 *
 * Context: process; may sleep.
 */
void twheel_socks_free(struct twheel_socks *found)
{
	twheel_socks_put(found);
	kvfree(found->socks);
}

/**
 * twheel_socks_grow - make room for more sockets
 * @found:	the sockets, of which there are none
 * @capacity:	how many have to fit
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int twheel_socks_grow(struct twheel_socks *found, u32 capacity)
{
	struct sock **socks;

	if (capacity <= found->capacity)
		return 0;
	socks = kvmalloc_array(capacity, sizeof(*socks), GFP_KERNEL | __GFP_NOWARN);
	if (!socks)
		return -ENOMEM;
	kvfree(found->socks);
	found->socks = socks;
	found->capacity = capacity;
	return 0;
}

/*
 * Is there a connection, or may there be one at once? That it is established may have been reported
 * already, and to nobody who cared.
 */
static bool is_established(const struct sock *sk)
{
	const int state = inet_sk_state_load(sk);

	if (!twheel_is_connecting(state))
		return twheel_watchable(state);
	return twheel_sk_may_change(sk) || twheel_watchable(inet_sk_state_load(sk));
}

/*
 * Takes references to the connections of a namespace in a bucket of the kernel's table. Returns how
 * many there are: if that is more than fit, no references are kept.
 */
static u32 collect_bucket(struct net *net, struct inet_hashinfo *table, u32 bucket,
			  struct twheel_socks *found)
{
	spinlock_t *lock = inet_ehash_lockp(table, bucket);
	struct hlist_nulls_node *node;
	struct sock *sk;
	u32 nr = 0;

	spin_lock_bh(lock);
	sk_nulls_for_each(sk, node, &table->ehash[bucket].chain) {
		if (!net_eq(sock_net(sk), net) || !sk_fullsock(sk) || !twheel_is_for_rules(sk))
			continue;
		if (!is_established(sk))
			continue;
		if (nr++ < found->capacity && refcount_inc_not_zero(&sk->sk_refcnt))
			found->socks[found->nr++] = sk;
	}
	spin_unlock_bh(lock);
	if (nr > found->capacity)
		twheel_socks_put(found);
	return nr;
}

/**
 * twheel_socks_pause - let others have their turn, between two batches
 * @net:	the namespace
 *
 * Context: process; may sleep.
 * Return: 0, or -EINTR if the caller is killed, or @net is going away.
 */
int twheel_socks_pause(const struct net *net)
{
	cond_resched();
	/* Pairs with twheel_scan_stop(). */
	return fatal_signal_pending(current) || READ_ONCE(twheel_rules_of_net(net)->exiting) ?
		       -EINTR : 0;
}

/**
 * twheel_socks_next - find the connections in the next bucket of the kernel's table
 * @net:	the namespace that they belong to
 * @bucket:	the bucket to start from; set to the one that has connections, or to the one to go
 *		on from
 * @max:	how many buckets to visit
 * @found:	gets references to the connections
 *
 * Context: process; may sleep.
 * Return: how many; 0 if there are none in so many buckets, or up to the end; -ENOMEM; or -EINTR if
 * the caller is killed, or @net is going away.
 */
int twheel_socks_next(struct net *net, u32 *bucket, u32 max, struct twheel_socks *found)
{
	struct inet_hashinfo *table = net->ipv4.tcp_death_row.hashinfo;
	const u64 end = min_t(u64, (u64)*bucket + max, (u64)table->ehash_mask + 1);
	u32 nr;
	int ret;

	ret = twheel_socks_grow(found, INITIAL_CAPACITY);
	for (; !ret && *bucket < end; ++*bucket) {
		if (!(*bucket % BATCH))
			ret = twheel_socks_pause(net);
		if (ret || hlist_nulls_empty(&table->ehash[*bucket].chain))
			continue;
		while ((nr = collect_bucket(net, table, *bucket, found)) > found->capacity && !ret)
			ret = twheel_socks_grow(found, roundup_pow_of_two(nr));
		if (found->nr)
			return found->nr;
	}
	return ret;
}
