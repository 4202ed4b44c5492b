// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: a connection that a rule applies to, and its watch
 *
 * The lock of a socket, one of an array, serialises the calls for the timer of the socket's watch,
 * and guards the watch's @rule, @flags and membership in the table. It is taken in process and
 * softirq context; twheel_watch_worker.lock, twheel_idle_rule.lock, twheel_rules.share_lock and the
 * wheel's locks are taken inside of it. While it is held, the worker does not make a watch enter or
 * leave state TWHEEL_WATCH_IDLE: it takes the watch off its list without this lock, but takes the
 * lock to put the watch back.
 */
#include <linux/in6.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/sock_diag.h>
#include <linux/string.h>
#include <net/inet_sock.h>

#include "conn.h"
#include "lib/inject.h"
#include "rules.h"
#include "tcp/watch.h"
#include "tcp/watch_worker.h"
#include "twheel.h"

spinlock_t twheel_conn_locks[TWHEEL_CONN_LOCKS];

/* twheel_track_init() sets the callbacks. */
struct twheel_watch_kind twheel_conn_kind = {
	.name		= "rules",
	.timer_offset	= offsetof(struct twheel_conn, watch),
};

/**
 * twheel_connection_cookie - get the cookie of a socket, which ss -e shows
 * @sk:		the socket
 *
 * Context: any.
 * Return: the cookie.
 */
u64 twheel_connection_cookie(struct sock *sk)
{
	u32 halves[2];

	sock_diag_save_cookie(sk, halves);
	return (u64)halves[1] << 32 | halves[0];
}

static void set_address(struct sockaddr_in6 *address, const struct sock *sk, __be32 ipv4,
			const struct in6_addr *ipv6, __be16 port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	memset(address, 0, sizeof(*address));
	/* The port is at the same offset in both. */
	address->sin6_family = sk->sk_family;
	address->sin6_port = port;
	if (sk->sk_family == AF_INET6)
		address->sin6_addr = *ipv6;
	else
		in->sin_addr.s_addr = ipv4;
}

/**
 * twheel_connection_addresses - get the addresses of a connection
 * @sk:		its socket
 * @local:	filled with a struct sockaddr_in and zeros, or with a struct sockaddr_in6
 * @remote:	likewise
 *
 * Context: any.
 */
void twheel_connection_addresses(const struct sock *sk, void *local, void *remote)
{
	const struct in6_addr *local6 = NULL, *remote6 = NULL;

#if IS_ENABLED(CONFIG_IPV6)
	local6 = &sk->sk_v6_rcv_saddr;
	remote6 = &sk->sk_v6_daddr;
#endif
	set_address(local, sk, sk->sk_rcv_saddr, local6, inet_sk(sk)->inet_sport);
	set_address(remote, sk, sk->sk_daddr, remote6, inet_sk(sk)->inet_dport);
}

/**
 * twheel_conn_queue - queue a watch for the worker
 * @conn:	the watch
 *
 * Context: process and softirq; with twheel_conn_lock_of() the socket held, under rcu_read_lock().
 */
void twheel_conn_queue(struct twheel_conn *conn)
{
	const struct sock *sk = conn->watch.sk;

	/* Something happens: if the socket is busy, it will not be for long. */
	twheel_watch_set_busy_count(&conn->watch, 0);
	/* Pairs with the worker's stores. See the top of this file. */
	if (READ_ONCE(conn->watch.state) != TWHEEL_WATCH_IDLE)
		return;
	/* If this is too late, the callback finds the watch queued. */
	twheel_cancel(&conn->timer);
	twheel_watch_enqueue(twheel_conn_worker_of(sk), &conn->watch);
}

/**
 * twheel_conn_return_token - give up a watch's place in the queue for tokens
 * @conn:	the watch; it need not have one
 * @rule:	its rule. The connections that come next wait less
 *
 * Context: process and softirq; with twheel_conn_lock_of() the socket held.
 */
void twheel_conn_return_token(struct twheel_conn *conn, struct twheel_idle_rule *rule)
{
	u64 step;

	if (!(conn->watch.flags & TWHEEL_CONN_TOKEN_WAIT))
		return;
	/* Pairs with the worker's READ_ONCE(), which does not hold the lock. */
	WRITE_ONCE(conn->watch.flags, conn->watch.flags & ~TWHEEL_CONN_TOKEN_WAIT);
	step = twheel_rule_token_interval(rule);
	spin_lock(&rule->lock);
	rule->next_token -= min(rule->next_token, step);
	spin_unlock(&rule->lock);
}

/* Stops counting a watch for its rule. */
static void uncount_conn(struct twheel_conn *conn, struct twheel_idle_rule *rule)
{
	twheel_conn_return_token(conn, rule);
	if (!(conn->watch.flags & TWHEEL_CONN_PROVISIONAL))
		atomic64_dec(&rule->watched);
}

/**
 * twheel_conn_detach - detach a watch from its rule
 * @conn:	the watch
 * @rule:	the rule, which may be freed now, after a grace period
 *
 * Context: process; with twheel_conn_lock_of() the socket held, under rcu_read_lock().
 */
void twheel_conn_detach(struct twheel_conn *conn, struct twheel_idle_rule *rule)
{
	uncount_conn(conn, rule);
	conn->watch.rule = 0;
	atomic_dec(&rule->users);
}

/* Sets the rule of a watch that is already counted in the rule's @users. */
static void set_rule(struct twheel_conn *conn, struct twheel_idle_rule *rule, u16 flags)
{
	conn->watch.rule = rule->index;
	/* Pairs with the worker's READ_ONCE(), which does not hold the lock. */
	WRITE_ONCE(conn->watch.flags,
		   (twheel_limits_of(rule)->flags & TWHEEL_WATCH_ACTIONS) | flags);
	if (flags & TWHEEL_CONN_PROVISIONAL)
		return;
	atomic64_inc(&rule->watched);
	atomic64_inc(&rule->matched);
}

/**
 * twheel_conn_attach - attach a watch that has no rule to one
 * @conn:	the watch
 * @rule:	the rule
 * @flags:	as for twheel_conn_change_rule()
 *
 * Context: process; with twheel_conn_lock_of() the socket held, under rcu_read_lock().
 */
void twheel_conn_attach(struct twheel_conn *conn, struct twheel_idle_rule *rule, u16 flags)
{
	atomic_inc(&rule->users);
	set_rule(conn, rule, flags);
}

/**
 * twheel_conn_change_rule - attach a watch to another rule
 * @conn:	the watch
 * @rule:	the rule; it may be the same
 * @flags:	%TWHEEL_CONN_PROVISIONAL or 0, and %TWHEEL_CONN_BY_PID. The latter is kept if both
 *		rules are for the same process
 *
 * Context: process; with twheel_conn_lock_of() the socket held, under rcu_read_lock().
 */
void twheel_conn_change_rule(struct twheel_conn *conn, struct twheel_idle_rule *rule, u16 flags)
{
	struct twheel_idle_rule *old = twheel_conn_rule_of(conn);

	if (conn->watch.flags & TWHEEL_CONN_BY_PID && rule->pid == old->pid)
		flags |= TWHEEL_CONN_BY_PID;
	atomic_inc(&rule->users);
	twheel_conn_detach(conn, old);
	set_rule(conn, rule, flags);
}

/**
 * twheel_conn_start_over - let a watch start over with the next connection of its socket
 * @conn:	the watch, of a socket that has another connection, or is about to
 *
 * Rules treat the next connection as one that was never seen before. If the socket is not locked,
 * it may have ended as well, without this having been recorded separately: which connection it is,
 * and that it is not older than that, is only known once the socket is locked.
 *
 * The rule may be in the course of being removed. The task that removes it waits until it has no
 * users, and does not check again: so this watch remains one of its users.
 *
 * Context: process; with twheel_conn_lock_of() the socket held, under rcu_read_lock().
 */
void twheel_conn_start_over(struct twheel_conn *conn)
{
	struct twheel_idle_rule *rule = twheel_conn_rule_of(conn);

	/*
	 * Pairs with note_end() in sk_state.c: if the next connection ends as well, that is
	 * recorded.
	 */
	WRITE_ONCE(conn->watch.ended, TWHEEL_CONN_RENEWED);
	uncount_conn(conn, rule);
	twheel_inject(TWHEEL_POINT_RENEW);
	set_rule(conn, rule, TWHEEL_CONN_PROVISIONAL);
	twheel_conn_set_first_seen(conn, ktime_get_ns());
}

/**
 * twheel_conn_renew - if the connection of a watch has ended, start over with the next one
 * @conn:	as for twheel_conn_start_over()
 *
 * Context: as there.
 */
void twheel_conn_renew(struct twheel_conn *conn)
{
	if (twheel_watch_has_ended(&twheel_conn_kind, &conn->watch))
		twheel_conn_start_over(conn);
}
