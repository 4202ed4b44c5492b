// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the tables of watches, by socket
 *
 * A watch in a table holds a reference to its socket.
 */
#include <linux/err.h>
#include <linux/net.h>
#include <linux/rhashtable.h>
#include <net/tcp.h>

#include "watch.h"
#include "watch_table.h"

/* Is this the watch of another socket? It may be removed concurrently, and inserted elsewhere. */
static int compare_socket(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct twheel_watch *watch = obj;
	struct sock *const *sk = arg->key;

	/* Pairs with the WRITE_ONCE()s of @sk. */
	return READ_ONCE(watch->sk) != *sk;
}

static const struct rhashtable_params watch_rht_params = {
	.key_len		= sizeof_field(struct twheel_watch, sk),
	.key_offset		= offsetof(struct twheel_watch, sk),
	.head_offset		= offsetof(struct twheel_watch, hash),
	.obj_cmpfn		= compare_socket,
	.automatic_shrinking	= true,
};

/**
 * twheel_watch_table_init - initialise a kind's table
 * @kind:	the kind
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int twheel_watch_table_init(struct twheel_watch_kind *kind)
{
	return rhashtable_init(&kind->table, &watch_rht_params);
}

/**
 * twheel_watch_table_destroy - free a kind's table
 * @kind:	the kind, whose watches have been removed
 *
 * Context: process; may sleep.
 */
void twheel_watch_table_destroy(struct twheel_watch_kind *kind)
{
	rhashtable_destroy(&kind->table);
}

/**
 * twheel_watch_sockfd_lookup - look up a connection that can be watched
 * @fd:		a file descriptor of the calling process
 *
 * Context: process; may sleep.
 * Return: the socket, with a reference that the caller has to put; or
 * * %-EBADF	- @fd is not open
 * * %-EOPNOTSUPP - it is not a TCP socket
 * * %-ENOTCONN	- it has no connection that is established, or closed by its peer only
 */
struct sock *twheel_watch_sockfd_lookup(int fd)
{
	struct socket *sock;
	struct sock *sk;
	int ret;

	sock = sockfd_lookup(fd, &ret);
	if (!sock)
		return ERR_PTR(ret == -ENOTSOCK ? -EOPNOTSUPP : ret);
	sk = sock->sk;
	if (!sk_is_tcp(sk) || (sk->sk_family != AF_INET && sk->sk_family != AF_INET6))
		ret = -EOPNOTSUPP;
	else if (!twheel_watchable(inet_sk_state_load(sk)))
		ret = -ENOTCONN;
	else
		ret = 0;
	if (!ret)
		sock_hold(sk);
	sockfd_put(sock);
	return ret ? ERR_PTR(ret) : sk;
}

/**
 * twheel_watch_insert - start to watch a socket
 * @kind:	a kind
 * @watch:	the watch, with its flags set. Its state becomes %TWHEEL_WATCH_IDLE
 * @sk:		the socket, which can have one watch of this kind
 *
 * Unless the caller has locked the socket and found it open, it must let the worker evaluate the
 * watch first.
 *
 * Context: process and softirq; the owner's lock may be held.
 * Return: 0; or
 * * %-EBUSY	- the socket has a watch of this kind
 * * %-ENOMEM	- no memory
 */
int twheel_watch_insert(struct twheel_watch_kind *kind, struct twheel_watch *watch,
			struct sock *sk)
{
	int ret;

	/* Pairs with note_end(), which may be late: then it records another life. */
	WRITE_ONCE(watch->ended, 0);
	/* Pairs with the READ_ONCE()s of lookups of other sockets. */
	WRITE_ONCE(watch->sk, sk);
	watch->state = TWHEEL_WATCH_IDLE;
	sock_hold(sk);
	ret = rhashtable_lookup_insert_fast(&kind->table, &watch->hash, watch_rht_params);
	if (!ret)
		return 0;
	/* As above. */
	WRITE_ONCE(watch->sk, NULL);
	/* Not the last reference: the caller holds one, too. */
	sock_put(sk);
	return ret == -EEXIST ? -EBUSY : -ENOMEM;
}

/*
 * A watch that is about to lose its socket must not be queued, as the worker takes a reference to
 * the socket of each watch it finds. The state is written with the owner's lock held, except by the
 * worker, which only takes watches off its list.
 */
static void warn_if_queued(const struct twheel_watch *watch)
{
	WARN_ON_ONCE(READ_ONCE(watch->state) == TWHEEL_WATCH_QUEUED);
}

/**
 * twheel_watch_replace - replace the watch of a socket by another one
 * @kind:	the kind of both
 * @old:	a watch in the table, which leaves it; as for twheel_watch_remove()
 * @watch:	the watch that takes its place; as for twheel_watch_insert()
 *
 * Needs no memory. If @old is in state %TWHEEL_WATCH_PROCESSING it stays so: the worker holds a
 * reference of its own to the socket, and returns the watch by evaluate().
 *
 * Context: process and softirq, with the lock of the owner of both held.
 */
void twheel_watch_replace(struct twheel_watch_kind *kind, struct twheel_watch *old,
			  struct twheel_watch *watch)
{
	warn_if_queued(old);
	/* As in twheel_watch_insert(). */
	WRITE_ONCE(watch->ended, 0);
	WRITE_ONCE(watch->sk, old->sk);
	watch->state = TWHEEL_WATCH_IDLE;
	rhashtable_replace_fast(&kind->table, &old->hash, &watch->hash, watch_rht_params);
	/* As in twheel_watch_insert(). */
	WRITE_ONCE(old->sk, NULL);
}

/**
 * twheel_watch_remove - stop watching a socket
 * @kind:	the kind of the watch
 * @watch:	a watch in the table, in state %TWHEEL_WATCH_IDLE or %TWHEEL_WATCH_PROCESSING. Its
 *		memory may be read until an RCU grace period has elapsed
 *
 * Context: process and softirq, with the owner's lock held.
 * Return: the socket, whose reference the caller has to put. The caller may hold locks meanwhile,
 * as TCP itself frees sockets under whatever lock a device holds when it is done with a packet; but
 * not twheel_watch_worker.lock.
 */
struct sock *twheel_watch_remove(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	struct sock *sk = watch->sk;

	warn_if_queued(watch);
	rhashtable_remove_fast(&kind->table, &watch->hash, watch_rht_params);
	/* As in twheel_watch_insert(). */
	WRITE_ONCE(watch->sk, NULL);
	/* Before the next life begins. Pairs with the smp_rmb() in note_end(). */
	smp_wmb();
	return sk;
}

/**
 * twheel_watch_find - find the watch of a socket
 * @kind:	its kind
 * @sk:		the socket
 *
 * Context: any but NMI, under rcu_read_lock().
 * Return: the watch, which may be removed concurrently; or NULL.
 */
struct twheel_watch *twheel_watch_find(struct twheel_watch_kind *kind, const struct sock *sk)
{
	return rhashtable_lookup(&kind->table, &sk, watch_rht_params);
}
