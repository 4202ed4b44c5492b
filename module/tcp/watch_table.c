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
#include "watch_worker.h"

/* Is this the watch of another socket? It may just be removed, and inserted elsewhere. */
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
 * twheel_watch_table_init - make a kind's table
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
 * twheel_watch_socket - find a connection that can be watched
 * @fd:		a file descriptor of the calling process
 *
 * Context: process; may sleep.
 * Return: the socket, with a reference that the caller puts; or
 * * %-EBADF	- @fd is not open
 * * %-EOPNOTSUPP - it is no TCP socket
 * * %-ENOTCONN	- it has no connection that is established, or closed by its peer only
 */
struct sock *twheel_watch_socket(int fd)
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
 * twheel_watch_insert - begin to watch a socket
 * @kind:	a kind
 * @watch:	the watch; its flags are set. Its state becomes %TWHEEL_WATCH_IDLE
 * @sk:		the socket, which a watch of this kind must not have yet
 *
 * Unless the caller has the socket locked, and found it open, it has the worker look at the
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

	/* Pairs with note_end(), which may be late: then it tells of another life. */
	WRITE_ONCE(watch->ended, 0);
	/* Pairs with the READ_ONCE()s of who looks for another socket. */
	WRITE_ONCE(watch->sk, sk);
	watch->state = TWHEEL_WATCH_IDLE;
	sock_hold(sk);
	ret = rhashtable_lookup_insert_fast(&kind->table, &watch->hash, watch_rht_params);
	if (!ret)
		return 0;
	/* As above. */
	WRITE_ONCE(watch->sk, NULL);
	/* Not the last one: the caller has one, too. */
	sock_put(sk);
	return ret == -EEXIST ? -EBUSY : -ENOMEM;
}

/**
 * twheel_watch_replace - watch a socket by another watch
 * @worker:	those of the owner of both that are due
 * @old:	a watch in the table, which leaves it, and the list of those that are due if it is
 *		in there
 * @watch:	a watch that takes its place; as for twheel_watch_insert()
 *
 * Needs no memory. If @old is in state %TWHEEL_WATCH_IN_WORK it stays so: the worker has a
 * reference of its own to the socket, and gives the watch back by evaluate().
 *
 * Context: process and softirq, with the owner's lock held.
 */
void twheel_watch_replace(struct twheel_watch_worker *worker, struct twheel_watch *old,
			  struct twheel_watch *watch)
{
	/* Before it loses its socket: the worker takes a reference to that of each that is due. */
	twheel_watch_unqueue(worker, old);
	/* As in twheel_watch_insert(). */
	WRITE_ONCE(watch->ended, 0);
	WRITE_ONCE(watch->sk, old->sk);
	watch->state = TWHEEL_WATCH_IDLE;
	rhashtable_replace_fast(&worker->kind->table, &old->hash, &watch->hash, watch_rht_params);
	/* As there. */
	WRITE_ONCE(old->sk, NULL);
}

/**
 * twheel_watch_remove - watch a socket no more
 * @kind:	the kind of the watch
 * @watch:	a watch in the table, in state %TWHEEL_WATCH_IDLE or %TWHEEL_WATCH_IN_WORK. Its
 *		memory may be read until an RCU grace period is over
 *
 * Context: process and softirq, with the owner's lock held.
 * Return: the socket, whose reference the caller has to put. As TCP frees sockets with whatever
 * lock its devices hold when a packet is gone, so may the caller; but not with
 * twheel_watch_worker.lock.
 */
struct sock *twheel_watch_remove(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	struct sock *sk = watch->sk;

	/* Written with the owner's lock held, but by the worker, which takes watches out only. */
	WARN_ON_ONCE(READ_ONCE(watch->state) == TWHEEL_WATCH_QUEUED);
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
 * Return: the watch, which may just be removed; or NULL.
 */
struct twheel_watch *twheel_watch_find(struct twheel_watch_kind *kind, const struct sock *sk)
{
	return rhashtable_lookup(&kind->table, &sk, watch_rht_params);
}
