/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: TCP connections that are watched
 *
 * What timers of contexts (sock_timer.c) and rules (track.c) have in common: the sockets' side
 * of it. They know limits.
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
#include <net/sock.h>
#include <net/tcp_states.h>
#include <uapi/linux/twheel.h>

/**
 * struct twheel_watch - the socket's side of a timer
 * @hash:	in the table of its kind
 * @sk:		the socket, with a reference, from twheel_watch_insert() on until
 *		twheel_watch_remove(); else NULL. Written with the owner's lock held; read by
 *		who looks for another socket in the table as well
 * @rule:	of a watch for a rule: that rule's number
 * @flags:	%TWHEEL_WATCH_FLAGS, the owner's, and in the top bits how many times the worker
 *		has found the socket busy, one after the other. Guarded by the owner's lock
 * @state:	an enum twheel_watch_state; guarded by twheel_watch_worker.lock, but for what the owner
 *		does before the watch is in a table
 * @ended:	the life of which the connection has ended, see twheel_watch_kind.life(); else 0,
 *		or another number. Written by who changes the socket's state, with no lock, and
 *		by the owner
 */
struct twheel_watch {
	struct rhash_head	hash;
	struct sock		*sk;
	u32			rule;
	u16			flags;
	u8			state;
	u8			ended;
};

/* Where struct twheel_watch::flags has the number of looks at a busy socket. */
#define TWHEEL_WATCH_BUSY_SHIFT	11

/* What of an add is a watch's. */
#define TWHEEL_WATCH_ACTIONS	(TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)
#define TWHEEL_WATCH_FLAGS	(TWHEEL_WATCHED | TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT | \
				 TWHEEL_WATCH_ACTIONS)

/* The longest idle timeout, in nanoseconds: TCP's stamps are in jiffies, and wrap. */
#define TWHEEL_WATCH_IDLE_MAX	((u64)TICK_NSEC << 31)

/**
 * enum twheel_watch_state - where a watch is
 * @TWHEEL_WATCH_IDLE: not with the worker: its timer is armed, or its callback runs
 * @TWHEEL_WATCH_QUEUED: in the list of those that the worker is to look at. Such a watch has a
 *	socket: it is taken out of the list, by twheel_watch_unqueue(), before it loses that
 * @TWHEEL_WATCH_PROCESSING: the worker looks at it: it must stay where it is until
 *	twheel_watch_kind.evaluate() returns. It may be removed meanwhile
 */
enum twheel_watch_state {
	TWHEEL_WATCH_IDLE,
	TWHEEL_WATCH_QUEUED,
	TWHEEL_WATCH_PROCESSING,
};

/**
 * enum twheel_sk_status - what the worker has found
 * @TWHEEL_SK_OPEN: the socket is locked, and the connection is one that can be watched:
 *	nothing is received, sent or closed until the worker is done
 * @TWHEEL_SK_CLOSED: the socket is locked, and the connection is closed or about to be, or the
 *	socket has another one by now
 * @TWHEEL_SK_BUSY: a program is at work with the socket, or none has accepted it: look
 *	again later
 */
enum twheel_sk_status {
	TWHEEL_SK_OPEN,
	TWHEEL_SK_CLOSED,
	TWHEEL_SK_BUSY,
};

/**
 * struct twheel_watch_change - a change of a socket's state
 * @sk:		the socket
 * @state:	its state now: TCP_ESTABLISHED, TCP_SYN_SENT or TCP_LISTEN; or another one that ends
 *		what it was
 * @port:	if not 0, it listened on this port until now
 * @pid:	the process that has changed it, as the first namespace shows it; or 0 if it
 *		was none
 */
struct twheel_watch_change {
	struct sock	*sk;
	u16		state;
	u16		port;
	pid_t		pid;
};

/* The worker's delay is counted by powers of two of nanoseconds, as far as a u64 goes. */
#define TWHEEL_DELAY_BUCKETS	64

/**
 * struct twheel_watch_counts - what has become of watches of a kind, since the module was loaded
 *
 * Written by the workers, read by debugfs.
 *
 * @kicks:	they were due, and dealt with as they say
 * @ended:	their connections were over
 * @spared:	they were looked at, and left alone: there was activity, or their owner had
 *		changed its mind
 * @busy:	a program was at work with the socket, or none had accepted it
 * @scans:	all of them were looked at, because changes of sockets could not be noted
 * @delay:	kicks, by the nanoseconds from the timer's deadline until the connection was dealt
 *		with: an entry for each power of two, less the last one
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
 * struct twheel_watch_kind - watches of one owner
 * @name:	what debugfs calls it
 * @timer_offset: bytes from a watch back to its struct twheel_timer
 * @evaluate:	the worker has found the watch, see enum twheel_sk_status. The owner frees it,
 *		arms it anew, or ends it with the decision that is returned: true
 *		if the watch's action is to be done. The watch is not used any more then,
 *		but to be given to @action_done.
 *		In process context; the socket is locked unless it is busy
 * @action_done:	what evaluate() has decided on is done; NULL if the owner does not care. Until then
 *		the watch must stay where it is. In process context; the socket is not locked
 * @sk_closed:	the connection of a socket with such a watch may be over: make it due.
 *		The watch was in the table a moment ago; whether it still is, and still
 *		@sk's, is the owner's to find out; it may just be somebody else's.
 *		In process context, under rcu_read_lock()
 * @sk_changed:	a socket has changed its state; NULL if the owner does not care. In process context
 * @life:	which of the lives that its memory has a watch is in, not 0; another one when it is
 *		inserted the next time. NULL if the memory is not used again before a grace period
 *		of RCU is over. In any context, under rcu_read_lock(), with no lock
 * @table:	the watches, by socket
 * @counts:	statistics
 * @known:	in the list of all kinds that there ever were
 */
struct twheel_watch_kind {
	const char		*name;
	size_t			timer_offset;
	bool			(*evaluate)(struct twheel_watch *watch,
					    enum twheel_sk_status status);
	void			(*action_done)(struct twheel_watch *watch);
	void			(*sk_closed)(struct twheel_watch *watch, struct sock *sk);
	void			(*sk_changed)(const struct twheel_watch_change *change);
	u8			(*life)(const struct twheel_watch *watch);
	struct rhashtable	table;
	struct twheel_watch_counts counts;
	struct list_head	known;
};

#ifdef CONFIG_INET

/**
 * twheel_watchable - can a connection in this state be watched?
 * @state:	TCP_*
 *
 * Return: true if it is established, or closed by its peer only.
 */
static inline bool twheel_watchable(int state)
{
	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
}

/**
 * twheel_watch_accepted - has a program accepted a connection, or made it?
 * @sk:		the socket
 *
 * Context: any but NMI.
 * Return: false if it waits for somebody who does. With @sk's spinlock held that stays so; true
 * does anyway.
 */
static inline bool twheel_watch_accepted(const struct sock *sk)
{
	/* The first is written with the socket locked; the other one is a bit among others. */
	return READ_ONCE(sk->sk_socket) || data_race(sock_flag(sk, SOCK_DEAD));
}

/**
 * twheel_watch_busy_count - how often the worker has found the socket busy, one after the other
 * @watch:	the watch
 *
 * Context: with the owner's lock held.
 * Return: the number.
 */
static inline unsigned int twheel_watch_busy_count(const struct twheel_watch *watch)
{
	return watch->flags >> TWHEEL_WATCH_BUSY_SHIFT;
}

/**
 * twheel_watch_set_busy_count - set that number
 * @watch:	the watch
 * @count:	0 when something else was found, or has happened; no more than 31
 *
 * Context: with the owner's lock held.
 */
static inline void twheel_watch_set_busy_count(struct twheel_watch *watch, unsigned int count)
{
	const u16 flags = watch->flags & (BIT(TWHEEL_WATCH_BUSY_SHIFT) - 1);

	/* Pairs with the worker's, which looks before it has the lock. */
	WRITE_ONCE(watch->flags, flags | count << TWHEEL_WATCH_BUSY_SHIFT);
}

static inline u8 twheel_watch_life(const struct twheel_watch_kind *kind,
				   const struct twheel_watch *watch)
{
	return kind->life ? kind->life(watch) : 1;
}

/**
 * twheel_watch_has_ended - is the connection that is watched over?
 * @kind:	the watch's kind
 * @watch:	the watch, which stays in the life that it is in
 *
 * The socket may have another connection by now.
 *
 * Context: any.
 * Return: true if so. With the socket locked, this does not change.
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
