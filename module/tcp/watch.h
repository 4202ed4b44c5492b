/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: watched TCP connections
 *
 * The sockets' side of what timers of contexts (sock_timer.c) and rules (track.c) have in common.
 * Limits are the business of these owners alone.
 */
#ifndef _TWHEEL_TCP_WATCH_H
#define _TWHEEL_TCP_WATCH_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/inet_sock.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include <uapi/linux/twheel.h>

/**
 * struct twheel_watch - the socket's side of a timer
 * @hash:	node in the table of its kind
 * @sk:		the socket, with a reference, from twheel_watch_insert() until
 *		twheel_watch_remove(); else NULL. Written with the owner's lock held; also read by
 *		lookups of other sockets in the table
 * @rule:	if the watch belongs to a rule: the number of that rule
 * @flags:	%TWHEEL_WATCH_FLAGS, the owner's flags, and in the top bits how many times in a row
 *		the worker has found the socket busy. Guarded by the owner's lock
 * @state:	an enum twheel_watch_state; guarded by twheel_watch_worker.lock, except for what the
 *		owner does before the watch is in a table. The owner also reads it without that
 *		lock, as a watch becomes or ceases to be idle only under the owner's own
 * @ended:	the life whose connection has ended, see twheel_watch_kind.life(); else 0, or
 *		another number. Written without a lock by the code that changes the socket's state,
 *		and by the owner
 */
struct twheel_watch {
	struct rhash_head	hash;
	struct sock		*sk;
	u32			rule;
	u16			flags;
	u8			state;
	u8			ended;
};

/* Position of the busy count in struct twheel_watch::flags. */
#define TWHEEL_WATCH_BUSY_SHIFT	11

/* The flags of an add that belong to the watch. */
#define TWHEEL_WATCH_ACTIONS	(TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)
#define TWHEEL_WATCH_FLAGS	(TWHEEL_WATCHED | TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT | \
				 TWHEEL_WATCH_ACTIONS)

/* The longest idle timeout, in nanoseconds: TCP's stamps are in jiffies, and wrap around. */
#define TWHEEL_WATCH_IDLE_MAX	((u64)TICK_NSEC << 31)

/**
 * enum twheel_watch_state - where a watch is
 * @TWHEEL_WATCH_IDLE: not with the worker: its timer is armed, or its callback is running
 * @TWHEEL_WATCH_QUEUED: in the worker's list of watches that are due. Such a watch has a socket:
 *	twheel_watch_unqueue() takes it off the list before it loses that
 * @TWHEEL_WATCH_PROCESSING: the worker is processing it: its memory must stay valid until
 *	twheel_watch_kind.evaluate() returns. It may be removed meanwhile
 */
enum twheel_watch_state {
	TWHEEL_WATCH_IDLE,
	TWHEEL_WATCH_QUEUED,
	TWHEEL_WATCH_PROCESSING,
};

/**
 * enum twheel_sk_status - in what state the worker has found a socket
 * @TWHEEL_SK_OPEN: the socket is locked, and its connection can be watched: nothing is received,
 *	sent or closed until the worker is done
 * @TWHEEL_SK_CLOSED: the socket is locked, and the connection is closed or about to be, or the
 *	socket has another one by now
 * @TWHEEL_SK_BUSY: the socket is owned by user context, or has not been accepted yet: try again
 *	later
 */
enum twheel_sk_status {
	TWHEEL_SK_OPEN,
	TWHEEL_SK_CLOSED,
	TWHEEL_SK_BUSY,
};

/**
 * struct twheel_watch_change - a change of a socket's state
 * @sk:		the socket
 * @state:	its new state: TCP_ESTABLISHED, TCP_SYN_SENT or TCP_LISTEN; or another one, which
 *		ends what it was
 * @pid:	the process that made the change, as numbered in the initial pid namespace; 0 if
 *		none did
 */
struct twheel_watch_change {
	struct sock	*sk;
	int		state;
	pid_t		pid;
};

/* The worker's delay is counted by powers of two of nanoseconds, up to the range of a u64. */
#define TWHEEL_DELAY_BUCKETS	64

/**
 * struct twheel_watch_counts - statistics of a kind's watches, since the module was loaded
 *
 * Written by the workers, read by debugfs.
 *
 * @kicks:	watches that were due, and whose action was carried out
 * @ended:	watches whose connections had ended
 * @spared:	watches that were evaluated and left alone: there was activity, or their owner had
 *		changed its mind
 * @busy:	sockets found to be owned by user context, or not accepted yet
 * @scans:	scans of all watches, because changes of sockets were lost
 * @delay:	kicks, by the nanoseconds from the timer's deadline until the action was carried
 *		out: entry n counts those from 2^n to less than 2^(n+1), and 0 as 1. The last entry
 *		is not shown
 */
struct twheel_watch_counts {
	atomic64_t	kicks;
	atomic64_t	ended;
	atomic64_t	spared;
	atomic64_t	busy;
	atomic64_t	scans;
	atomic64_t	delay[TWHEEL_DELAY_BUCKETS];
};

/**
 * struct twheel_watch_kind - the watches of one owner
 * @name:	their name in debugfs
 * @timer_offset: bytes from a watch back to its struct twheel_timer
 * @evaluate:	called by the worker with the status of the socket. The owner frees the watch,
 *		re-arms it, or ends it with the decision that is returned: true if the watch's
 *		action is to be carried out. Afterwards the watch is only used to be passed to
 *		@action_done. In process context; the socket is locked unless it is busy
 * @action_done: the action that evaluate() has decided on has been carried out; NULL if the owner
 *		does not care. The watch's memory must stay valid until then. In process context;
 *		the socket is not locked
 * @sk_closed:	the connection of a socket with such a watch may have ended: queue the watch. It was
 *		in the table a moment ago; the owner has to find out whether it still is, and still
 *		@sk's, as it may belong to another socket by now. In process context, under
 *		rcu_read_lock()
 * @sk_changed:	a socket has changed its state, or, with NULL, changes were lost; NULL if the owner
 *		does not care. In process context
 * @listener_gone: a socket stops listening: it is out of the kernel's table, and its state changes
 *		when this returns; NULL if the owner does not care. In any context that TCP runs in,
 *		mostly with preemption disabled, under rcu_read_lock()
 * @life:	the number of the life that a watch is in, of those of its memory: not 0, and
 *		another one when it is inserted the next time. NULL if the memory is not reused
 *		before an RCU grace period has elapsed. In any context, under rcu_read_lock(),
 *		without a lock
 * @table:	the watches, by socket
 * @counts:	statistics
 * @known:	node in the list of all kinds that were ever added
 */
struct twheel_watch_kind {
	const char		*name;
	size_t			timer_offset;
	bool			(*evaluate)(struct twheel_watch *watch,
					    enum twheel_sk_status status);
	void			(*action_done)(struct twheel_watch *watch);
	void			(*sk_closed)(struct twheel_watch *watch, struct sock *sk);
	void			(*sk_changed)(const struct twheel_watch_change *change);
	void			(*listener_gone)(const struct sock *sk);
	u8			(*life)(const struct twheel_watch *watch);
	struct rhashtable	table;
	struct twheel_watch_counts counts;
	struct list_head	known;
};

#ifdef CONFIG_INET

/**
 * twheel_watchable - check whether a connection in this state can be watched
 * @state:	TCP_*
 *
 * Return: true if it is established, or closed by its peer only.
 */
static inline bool twheel_watchable(int state)
{
	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
}

/**
 * twheel_is_connecting - check whether a connection in this state is still being established
 * @state:	TCP_*
 *
 * Return: true if so.
 */
static inline bool twheel_is_connecting(int state)
{
	return state == TCP_SYN_SENT || state == TCP_SYN_RECV;
}

/**
 * twheel_sk_may_change - check whether the state of a socket may be about to change
 * @sk:		the socket
 *
 * A change is reported before the socket has its new state, while the socket is locked; it remains
 * locked until it has it.
 *
 * Context: any.
 * Return: false if all changes that were reported before the call can be seen afterwards.
 */
static inline bool twheel_sk_may_change(const struct sock *sk)
{
	bool is_locked;

	/* What the caller has published is seen by whoever locks the socket after this. */
	smp_mb();
	/* Written with the spinlock held, unmarked. */
	is_locked = data_race(sock_owned_by_user_nocheck(sk));
	/* Pairs with release_sock(): the owner gives it up with the spinlock held. */
	smp_rmb();
	is_locked |= spin_is_locked(&((struct sock *)sk)->sk_lock.slock);
	/* See what was stored before that was unlocked. Pairs with the spin_unlock() of either. */
	smp_rmb();
	return is_locked;
}

/**
 * twheel_sk_listens - check whether the kernel has a socket of TCP in its table of listeners
 * @sk:		the socket
 *
 * Context: any.
 * Return: true if so. Then the end of that was not reported before the call.
 */
static inline bool twheel_sk_listens(const struct sock *sk)
{
	/* Written with the lock of a bucket held. */
	const bool is_hashed = !hlist_unhashed_lockless(&sk->sk_node);

	/*
	 * It was in a table, and has this state after that: so it listens, or begins to. Pairs with
	 * inet_sk_state_store().
	 */
	smp_rmb();
	return is_hashed && inet_sk_state_load(sk) == TCP_LISTEN;
}

/**
 * twheel_watch_accepted - check whether a program has accepted a connection, or begun it
 * @sk:		the socket
 *
 * Context: any but NMI.
 * Return: false if the connection still has to be accepted. With @sk's spinlock held that does not
 * change; true never does.
 */
static inline bool twheel_watch_accepted(const struct sock *sk)
{
	/* The former is written with the socket locked; the latter is one bit among others. */
	return READ_ONCE(sk->sk_socket) || data_race(sock_flag(sk, SOCK_DEAD));
}

/**
 * twheel_watch_busy_count - get how many times in a row the worker has found the socket busy
 * @watch:	the watch
 *
 * Context: with the owner's lock held.
 * Return: the count.
 */
static inline unsigned int twheel_watch_busy_count(const struct twheel_watch *watch)
{
	return watch->flags >> TWHEEL_WATCH_BUSY_SHIFT;
}

/**
 * twheel_watch_set_busy_count - set how many times in a row the worker has found the socket busy
 * @watch:	the watch
 * @count:	0 when another status was found, or something else has happened; at most 31
 *
 * Context: with the owner's lock held.
 */
static inline void twheel_watch_set_busy_count(struct twheel_watch *watch, unsigned int count)
{
	const u16 flags = watch->flags & (BIT(TWHEEL_WATCH_BUSY_SHIFT) - 1);

	/* Pairs with the worker's READ_ONCE(), which does not hold the lock. */
	WRITE_ONCE(watch->flags, flags | count << TWHEEL_WATCH_BUSY_SHIFT);
}

static inline u8 twheel_watch_life(const struct twheel_watch_kind *kind,
				   const struct twheel_watch *watch)
{
	return kind->life ? kind->life(watch) : 1;
}

/**
 * twheel_watch_has_ended - check whether the watched connection has ended
 * @kind:	the watch's kind
 * @watch:	the watch, which stays in its current life
 *
 * The socket may have another connection by now.
 *
 * Context: any.
 * Return: true if so. Does not change while the socket is locked.
 */
static inline bool twheel_watch_has_ended(const struct twheel_watch_kind *kind,
					  const struct twheel_watch *watch)
{
	/* Pairs with note_end() in sk_state.c. */
	return READ_ONCE(watch->ended) == twheel_watch_life(kind, watch);
}

int twheel_watch_init(void);
void twheel_watch_exit(void);
int twheel_watch_kind_add(struct twheel_watch_kind *kind);
void twheel_watch_kind_del(struct twheel_watch_kind *kind);

#else

static inline int twheel_watch_init(void)
{
	return 0;
}

static inline void twheel_watch_exit(void)
{
}

#endif /* CONFIG_INET */

#endif /* _TWHEEL_TCP_WATCH_H */
