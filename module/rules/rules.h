/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: rules for idle connections: what they are, and how one is found
 */
#ifndef _TWHEEL_RULES_RULES_H
#define _TWHEEL_RULES_RULES_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <uapi/linux/twheel_rules.h>

#include "core/share.h"
#include "socks.h"
#include "tcp/watch_worker.h"

/* Flags of a struct twheel_rule that say what it asks for. */
#define TWHEEL_RULE_CRITERIA	(TWHEEL_RULE_LOCAL_PORT | TWHEEL_RULE_REMOTE_PORT |	\
				 TWHEEL_RULE_UID | TWHEEL_RULE_CGROUP | TWHEEL_RULE_PID)

/* Port numbers. */
#define TWHEEL_PORTS		65536

struct cgroup;
struct file;
struct pid;

/**
 * struct twheel_limits - what of a rule can be changed; constant itself, and replaced as a whole
 * @rcu:	frees it
 * @flags:	the action, what is activity, TWHEEL_RULE_DRY_RUN, as in struct twheel_rule
 * @rate:	likewise, as are the others; not 0
 * @idle:	an idle timeout, or 0
 * @lifetime:	a limit on the connection's life, or 0
 * @spread:	how much later at most
 * @stalled:	how long the peer may acknowledge nothing; not 0
 * @name:	the rule's name, or ""
 */
struct twheel_limits {
	struct rcu_head	rcu;
	u32		flags;
	u32		rate;
	u64		idle;
	u64		lifetime;
	u64		spread;
	u64		stalled;
	char		name[TWHEEL_RULE_NAME];
};

/**
 * struct twheel_idle_rule - a rule
 * @list:	in the rules of its namespace; RCU
 * @removed:	in the list of those that are being removed together
 * @net:	its namespace; constant
 * @id:		its number in the namespace; constant once it is in the list
 * @criteria:	what it asks for: those TWHEEL_RULE_* that say so; constant
 * @local_port:	the port of this machine asked for; constant
 * @remote_port: the port of the other one asked for; constant
 * @matches:	what it asks for by lists; constant
 * @nr_matches:	how many these are; constant
 * @limits:	when and how it closes connections. Replaced with the mutex of admin.c held; read
 *		under RCU
 * @added_boot:	when it was added, in nanoseconds of CLOCK_BOOTTIME; constant
 * @late_from:	what was due before this, in nanoseconds of CLOCK_MONOTONIC, could not be closed
 *		then: it was added, changed, or a rule before it was removed. Written with the
 *		mutex of admin.c held; read without a lock
 * @index:	its number among the rules of all namespaces; constant. Watches have it
 * @seed:	makes the spread random; constant
 * @uid:	the owner asked for; constant
 * @cgroup_id:	the cgroup asked for, or 0; constant
 * @cgroup:	that cgroup, with a reference, or NULL; constant
 * @pid:	the process asked for, with a reference, or NULL; constant
 * @ports:	a bit for each port that @pid listens on; NULL without @pid. Read without a lock
 * @dead:	it is not in the rules of its namespace any more, and its watches must find
 *		another one. Written once; read without a lock
 * @lock:	guards @next_token and @token. Taken in process and softirq context, inside of
 *		twheel_conn_locks
 * @next_token:	the end of the queue of connections that may not be closed yet, in nanoseconds
 * @token:	when the next connection may be closed, likewise
 * @users:	watches that have its @index, and those that are about to. While there are
 *		any, the rule is there
 * @watched:	counts, as in struct twheel_rule
 * @matched:	likewise, as are the others
 * @closed:	likewise
 * @spared:	likewise
 * @delayed:	likewise
 * @missed:	likewise
 * @overdue:	likewise
 * @waited:	likewise
 * @late:	likewise
 */
struct twheel_idle_rule {
	struct list_head	list;
	struct list_head	removed;
	struct net		*net;
	u32			id;
	u32			criteria;
	u16			local_port;
	u16			remote_port;
	struct twheel_match	*matches;
	u32			nr_matches;
	struct twheel_limits __rcu *limits;
	u64			added_boot;
	u64			late_from;
	u32			index;
	u32			seed;
	kuid_t			uid;
	u64			cgroup_id;
	struct cgroup		*cgroup;
	struct pid		*pid;
	unsigned long		*ports;
	bool			dead;
	spinlock_t		lock;
	u64			next_token;
	u64			token;
	atomic_t		users;
	atomic64_t		watched;
	atomic64_t		matched;
	atomic64_t		closed;
	atomic64_t		spared;
	atomic64_t		delayed;
	atomic64_t		missed;
	atomic64_t		overdue;
	atomic64_t		waited;
	atomic64_t		late[TWHEEL_RULE_LATE];
};

/**
 * struct twheel_scan - a search for connections, and how far it has come; see scan.c
 * @id:		the rule up to which there were searches for processes
 * @pid:	the process that it is at, with a reference; or NULL
 * @fd:		the descriptors of that one up to which it has been
 * @ports:	those that it listens on
 * @listen_seq:	that of the namespace when it began with the process
 * @all:	there are no more processes; it goes through all connections
 * @bucket:	the bucket of these up to which it has been
 * @recheck:	connections that are watched are looked at again
 * @found:	what a portion has found: between portions none
 */
struct twheel_scan {
	u32			id;
	struct pid		*pid;
	unsigned int		fd;
	unsigned long		*ports;
	int			listen_seq;
	bool			all;
	u32			bucket;
	bool			recheck;
	struct twheel_socks	found;
};

/**
 * struct twheel_rules - the rules of a network namespace
 * @list:	in the order in which they were added. Changed with the mutex of admin.c
 *		held; read under RCU
 * @last_id:	the last id given out; guarded by that mutex
 * @nr:		how many rules there are, with those that are not freed yet; guarded by that mutex
 * @net:	the namespace; constant
 * @exiting:	the namespace goes: its search is to end
 * @scan_work:	looks for connections that have no watch, and should have one, step by step
 * @scanning:	it is in the middle of that. @scan_work's
 * @scan:	and that is how far it is. Likewise
 * @last_scan:	when that was begun last, in jiffies. Written by @scan_work, read by who asks for it
 * @scan_requests:	how often it was asked for
 * @seen_requests:	how often that was when the search began. @scan_work's
 * @recheck:	the next search is for connections that are watched, too
 * @listen_seq:	how often a socket has begun or ceased to listen
 * @share_lock:	guards @share. Taken in softirq context only, inside of twheel_conn_locks; nothing
 *		is taken inside of it
 * @share:	what was taken of the namespace's share of the softirqs, for its connections' timers
 * @leftover:	rules that were taken out of @list by who was killed then; guarded by that mutex
 * @reap_work:	frees them, when they have no connections any more
 * @user:	whose the namespace is, once there are rules; NULL if it is of the first user
 *		namespace
 * @worker:	watches of its connections that are due
 */
struct twheel_rules {
	struct list_head	list;
	u32			last_id;
	u32			nr;
	struct net		*net;
	bool			exiting;
	struct delayed_work	scan_work;
	bool			scanning;
	struct twheel_scan	scan;
	unsigned long		last_scan;
	atomic_t		scan_requests;
	int			seen_requests;
	atomic_t		recheck;
	atomic_t		listen_seq;
	spinlock_t		share_lock;
	struct twheel_share	share;
	struct list_head	leftover;
	struct delayed_work	reap_work;
	struct twheel_user	*user;
	struct twheel_watch_worker	worker;
};

#ifdef CONFIG_INET

/* Where searches are done. Constant once there are any rules. */
extern struct workqueue_struct *twheel_scan_queue;

/* Where a network namespace has its rules. Constant once there are any. */
extern unsigned int twheel_rules_net_id;

/* What a socket calls when its state changes, if nobody has it call something else. Constant. */
extern void (*twheel_rules_state_change)(struct sock *sk);

static inline struct twheel_rules *twheel_rules_of_net(const struct net *net)
{
	return net_generic(net, twheel_rules_net_id);
}

int twheel_rules_register(struct twheel_idle_rule *rule);
void twheel_rules_unregister(struct twheel_idle_rule *rule);
void twheel_rules_destroy(void);
struct twheel_idle_rule *twheel_rules_by_index(u32 index);
struct twheel_idle_rule *twheel_rules_from(struct net *net, u32 id);
struct twheel_idle_rule *twheel_rules_by_id(struct net *net, u32 id);
void twheel_scan_later(struct net *net, unsigned long delay);
void twheel_rescan(struct net *net);
void twheel_rescan_all(void);

/* How a rule closes connections. The RCU read lock is held. */
static inline const struct twheel_limits *twheel_limits_of(const struct twheel_idle_rule *rule)
{
	return rcu_dereference(rule->limits);
}

/* Is this a connection, or a listener, that rules are for? */
static inline bool twheel_is_for_rules(const struct sock *sk)
{
	/* The kernel's own keep no namespace alive. A bit that is set once, among others. */
	return data_race((bool)sk->sk_net_refcnt) && sk_is_tcp(sk) &&
	       (sk->sk_family == AF_INET || sk->sk_family == AF_INET6);
}

/* Until a program has accepted a connection, it is that of the socket that listens. */
static inline kuid_t twheel_uid_of(const struct sock *sk)
{
	/* Written when it is accepted, and by fchown(). */
	return READ_ONCE(sk->sk_uid);
}

#endif /* CONFIG_INET */

#endif /* _TWHEEL_RULES_RULES_H */
