/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the watch of a connection that a rule applies to
 *
 * Watches begin in track.c, and end in enforce.c. One is 64 bytes: a timer, the socket's side of
 * it, and in what is left of the timer the time at which the connection was first seen. It names
 * its rule by number.
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

/* Flags of a watch beside its action as in linux/twheel.h, which is bit 8 or 9. */
#define TWHEEL_CONN_PROVISIONAL	BIT(0)	/* the rule is a guess, and counts nothing */
#define TWHEEL_CONN_BY_PID	BIT(1)	/* the process of the rule has begun the connection */
#define TWHEEL_CONN_EXPIRED	BIT(2)	/* it is with the worker because it was idle */
#define TWHEEL_CONN_WAITS	BIT(3)	/* it has a place in the queue, and waits */
#define TWHEEL_CONN_COUNTED	BIT(4)	/* dry run: nothing has come since it was counted */
#define TWHEEL_CONN_RECHECK	BIT(5)	/* the socket was busy: it may be over */
#define TWHEEL_CONN_WAITED	BIT(6)	/* it was spared, as it waited for its peer */
#define TWHEEL_CONN_REMATCH	BIT(7)	/* a rule may have come before its own */
#define TWHEEL_CONN_POSTPONED	BIT(10)	/* it is with the worker for want of a share */

/*
 * What struct twheel_watch::ended is until the worker has locked the socket, when that has, or may
 * have, another connection than the watch has begun with.
 */
#define TWHEEL_CONN_RENEWED	2

/* Nanoseconds that a connection's age is exact to, as a power of two. */
#define TWHEEL_CONN_FIRST_SHIFT	16

/**
 * struct twheel_conn - a watch of a connection
 * @timer:	its timer. @node.generation and @node.state hold when the connection
 *		was first seen
 * @unused:	lies over what must stay as it is
 * @rcu:	frees the watch. It lies over @node.link, which nobody uses any more
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

/* See the head of conn.c. */
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

/* The rule of a watch that has one. Its socket's lock is held, and the RCU read lock. */
static inline struct twheel_idle_rule *twheel_conn_rule_of(const struct twheel_conn *conn)
{
	return twheel_rules_by_index(conn->watch.rule);
}

/* Notes when a connection was first seen, in nanoseconds of CLOCK_MONOTONIC. */
static inline void twheel_conn_set_first_seen(struct twheel_conn *conn, u64 now)
{
	/* Not before it was. */
	u64 first = (now >> TWHEEL_CONN_FIRST_SHIFT) + 1;

	conn->timer.node.generation = first;
	conn->timer.node.state = first >> 32;
}

/* May the connection be another one than the watch has begun with, as nobody has locked it yet? */
static inline bool twheel_conn_is_renewed(const struct twheel_conn *conn)
{
	/* Pairs with note_end() in sk_state.c, and twheel_conn_renew(). */
	return READ_ONCE(conn->watch.ended) == TWHEEL_CONN_RENEWED;
}

/* Where the watch of a socket is when it is due. */
static inline struct twheel_watch_worker *twheel_conn_worker_of(const struct sock *sk)
{
	return &twheel_rules_of_net(sock_net(sk))->worker;
}

/* When was that? */
static inline u64 twheel_conn_first_seen(const struct twheel_conn *conn)
{
	u64 first = (u64)conn->timer.node.state << 32 | conn->timer.node.generation;

	return first << TWHEEL_CONN_FIRST_SHIFT;
}

/* Is a connection only about to be established? */
static inline bool twheel_is_connecting(int state)
{
	return state == TCP_SYN_SENT || state == TCP_SYN_RECV;
}

/* Nanoseconds from one connection that a rule may close to the next. */
static inline u64 twheel_conn_step_of(const struct twheel_idle_rule *rule)
{
	return div64_u64(NSEC_PER_SEC, twheel_limits_of(rule)->rate);
}

u64 twheel_connection_cookie(struct sock *sk);
void twheel_connection_addresses(const struct sock *sk, void *local, void *remote);
void twheel_conn_queue(struct twheel_conn *conn);
void twheel_conn_attach(struct twheel_conn *conn, struct twheel_idle_rule *rule, u16 flags);
void twheel_conn_return_token(struct twheel_conn *conn, struct twheel_idle_rule *rule);
void twheel_conn_detach(struct twheel_conn *conn, struct twheel_idle_rule *rule);
void twheel_conn_renew(struct twheel_conn *conn);
void twheel_conn_change_rule(struct twheel_conn *conn, struct twheel_idle_rule *rule, u16 flags);

#endif /* _TWHEEL_RULES_CONN_H */
