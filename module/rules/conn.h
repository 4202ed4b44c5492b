/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the watch of a connection that a rule applies to
 *
 * Watches begin in track.c, and end in enforce.c. A watch takes 64 bytes: a timer, the socket's
 * side of it, and in the unused part of the timer the time at which the connection was first seen.
 * It refers to its rule by number.
 */
#ifndef _TWHEEL_RULES_CONN_H
#define _TWHEEL_RULES_CONN_H

#include <linux/bits.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <net/tcp_states.h>
#include <uapi/linux/twheel.h>

#include "rules.h"
#include "tcp/watch.h"
#include "twheel.h"

/* Flags of a watch besides its action, which is that of linux/twheel.h: bit 8 or 9. */
#define TWHEEL_CONN_PROVISIONAL	BIT(0)	/* its rule is a guess, and nothing is counted */
#define TWHEEL_CONN_BY_PID	BIT(1)	/* the rule's process began the connection */
#define TWHEEL_CONN_EXPIRED	BIT(2)	/* with the worker because it was idle */
#define TWHEEL_CONN_TOKEN_WAIT	BIT(3)	/* has a place in the queue for a token */
#define TWHEEL_CONN_COUNTED	BIT(4)	/* dry run: no activity since it was counted */
#define TWHEEL_CONN_RECHECK	BIT(5)	/* the socket was busy: it may have ended */
#define TWHEEL_CONN_PEER_WAIT	BIT(6)	/* was spared while it waited for its peer */
#define TWHEEL_CONN_REMATCH	BIT(7)	/* a rule may have come before its own */
#define TWHEEL_CONN_POSTPONED	BIT(10)	/* with the worker, as no share was left */

/*
 * The value of struct twheel_watch::ended until the worker has locked the socket, if the socket
 * has, or may have, another connection than the one the watch began with.
 */
#define TWHEEL_CONN_RENEWED	2

/* The precision of a connection's age in nanoseconds, as a power of two. */
#define TWHEEL_CONN_FIRST_SHIFT	16

/**
 * struct twheel_conn - the watch of a connection
 * @timer:	its timer. @node.generation and @node.state hold the time at which the connection
 *		was first seen
 * @unused:	overlaps what has to stay as it is
 * @rcu:	frees the watch. It overlaps @node.link, which is no longer used then
 * @watch:	the socket's side
 */
struct twheel_conn {
	union {
		struct twheel_timer	timer;
		struct {
			u64		unused;
			struct rcu_head	rcu;
		};
	};
	struct twheel_watch		watch;
};

/* Number of locks of sockets, a power of two. */
#define TWHEEL_CONN_LOCKS	256

/* See the top of conn.c. */
extern spinlock_t twheel_conn_locks[TWHEEL_CONN_LOCKS];

extern struct twheel_watch_kind twheel_conn_kind;

static inline spinlock_t *twheel_conn_lock_of(const struct sock *sk)
{
	return &twheel_conn_locks[hash_ptr(sk, ilog2(TWHEEL_CONN_LOCKS))];
}

static inline struct twheel_conn *twheel_conn_of(struct twheel_watch *watch)
{
	return container_of(watch, struct twheel_conn, watch);
}

/* The rule of a watch that has one. The caller holds its lock and the RCU read lock. */
static inline struct twheel_idle_rule *twheel_conn_rule_of(const struct twheel_conn *conn)
{
	return twheel_rules_by_index(conn->watch.rule);
}

/* Stores when a connection was first seen, in nanoseconds of CLOCK_MONOTONIC. */
static inline void twheel_conn_set_first_seen(struct twheel_conn *conn, u64 now)
{
	/* Round up, so that this is not too early. */
	u64 first = (now >> TWHEEL_CONN_FIRST_SHIFT) + 1;

	conn->timer.node.generation = first;
	conn->timer.node.state = first >> 32;
}

/* May this be another connection than the watch began with, as nobody has locked it yet? */
static inline bool twheel_conn_is_renewed(const struct twheel_conn *conn)
{
	/* Pairs with note_end() in sk_state.c, and twheel_conn_renew(). */
	return READ_ONCE(conn->watch.ended) == TWHEEL_CONN_RENEWED;
}

/* The worker that evaluates the watch of a socket. */
static inline struct twheel_watch_worker *twheel_conn_worker_of(const struct sock *sk)
{
	return &twheel_rules_of_net(sock_net(sk))->worker;
}

/* When a connection was first seen, in nanoseconds of CLOCK_MONOTONIC. */
static inline u64 twheel_conn_first_seen(const struct twheel_conn *conn)
{
	u64 first = (u64)conn->timer.node.state << 32 | conn->timer.node.generation;

	return first << TWHEEL_CONN_FIRST_SHIFT;
}

/* Nanoseconds from one connection that a rule may close to the next. */
static inline u64 twheel_rule_token_interval(const struct twheel_idle_rule *rule)
{
	return div64_u64(NSEC_PER_SEC, twheel_limits_of(rule)->rate);
}

u64 twheel_connection_cookie(struct sock *sk);
void twheel_connection_addresses(const struct sock *sk, void *local, void *remote);
void twheel_conn_queue(struct twheel_conn *conn);
void twheel_conn_attach(struct twheel_conn *conn, struct twheel_idle_rule *rule, u16 flags);
void twheel_conn_return_token(struct twheel_conn *conn, struct twheel_idle_rule *rule);
void twheel_conn_detach(struct twheel_conn *conn, struct twheel_idle_rule *rule);
void twheel_conn_start_over(struct twheel_conn *conn);
void twheel_conn_renew(struct twheel_conn *conn);
void twheel_conn_change_rule(struct twheel_conn *conn, struct twheel_idle_rule *rule, u16 flags);

#endif /* _TWHEEL_RULES_CONN_H */
