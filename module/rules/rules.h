/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: rules for idle connections: their types, and how to find a rule
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

/* Flags of a struct twheel_rule for the criteria that a connection has to meet. */
#define TWHEEL_RULE_CRITERIA	(TWHEEL_RULE_LOCAL_PORT | TWHEEL_RULE_REMOTE_PORT |	\
				 TWHEEL_RULE_UID | TWHEEL_RULE_CGROUP | TWHEEL_RULE_PID)

/* Number of ports. */
#define TWHEEL_PORTS		65536

struct cgroup;
struct pid;
struct twheel_changes;

/**
 * struct twheel_limits - what can be changed of a rule; constant, and replaced as a whole
 * @rcu:	frees it
 * @flags:	the action, what counts as activity, and TWHEEL_RULE_DRY_RUN, as in struct
 *		twheel_rule
 * @rate:	as in struct twheel_rule, like the fields below; not 0
 * @idle:	an idle timeout, or 0
 * @lifetime:	a limit on the connection's lifetime, or 0
 * @spread:	the most by which limits are randomly extended
 * @stalled:	how long the peer may go without acknowledging anything; not 0
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
 * @list:	node in the list of its namespace's rules; RCU
 * @removed:	node in a list of rules that are being removed together
 * @net:	its namespace; constant
 * @id:		its number in the namespace; constant once the rule is in the list
 * @criteria:	the criteria that it has: TWHEEL_RULE_* flags; constant
 * @local_port:	the local port to match; constant
 * @remote_port: the remote port to match; constant
 * @matches:	the criteria that are given as lists; constant
 * @nr_matches:	number of entries in @matches; constant
 * @limits:	when and how it closes connections. Replaced with the mutex of admin.c held; read
 *		under RCU
 * @added_boot:	when it was added, in nanoseconds of CLOCK_BOOTTIME; constant
 * @late_from:	connections due before this time, in nanoseconds of CLOCK_MONOTONIC, could not be
 *		closed when they were due: the rule was added or changed since, or a rule before it
 *		was removed. Written with the mutex of admin.c held; read without a lock
 * @index:	its number among the rules of all namespaces, which watches store; constant
 * @seed:	makes the spread random; constant
 * @uid:	the owner to match; constant
 * @cgroup_id:	the cgroup to match, or 0; constant
 * @cgroup:	that cgroup, with a reference, or NULL; constant
 * @pid:	the process to match, with a reference, or NULL; constant
 * @ports:	a bit for each port that @pid listens on; NULL without @pid. Read without a lock
 * @owner:	who owned the first listener of @pid that was found; or INVALID_UID. Written once;
 *		read without a lock
 * @several_owners: there was another owner since. Likewise
 * @dead:	the rule has been taken off its namespace's list, and its watches must find another
 *		one. Written once; read without a lock
 * @lock:	guards @next_token and @token. Taken in process and softirq context, inside of
 *		twheel_conn_locks
 * @next_token:	the first token that is not reserved, which is the end of the queue of connections
 *		that may not be closed yet: its time in nanoseconds
 * @token:	the first token that is not taken: when the next connection may be closed, likewise
 * @users:	watches that store its @index, or are about to, and tasks that change the rule. The
 *		rule exists as long as there are any
 * @watched:	a counter, as in struct twheel_rule
 * @matched:	likewise, as are the others
 * @closed:	likewise
 * @would_close: likewise
 * @spared:	likewise
 * @delayed:	likewise
 * @missed:	likewise
 * @overdue:	likewise
 * @waited:	likewise
 * @late:	likewise
 * @untimed:	likewise
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
	kuid_t			owner;
	bool			several_owners;
	bool			dead;
	spinlock_t		lock;
	u64			next_token;
	u64			token;
	atomic_t		users;
	atomic64_t		watched;
	atomic64_t		matched;
	atomic64_t		closed;
	atomic64_t		would_close;
	atomic64_t		spared;
	atomic64_t		delayed;
	atomic64_t		missed;
	atomic64_t		overdue;
	atomic64_t		waited;
	atomic64_t		late[TWHEEL_RULE_LATE];
	atomic64_t		untimed;
};

/**
 * enum twheel_kick_reason - why a connection is closed
 * @TWHEEL_KICK_IDLE: its idle timeout is over
 * @TWHEEL_KICK_LIFETIME: its lifetime is
 * @TWHEEL_KICK_STALLED: it is idle but for what its peer does not acknowledge
 */
enum twheel_kick_reason {
	TWHEEL_KICK_IDLE,
	TWHEEL_KICK_LIFETIME,
	TWHEEL_KICK_STALLED,
};

/**
 * struct twheel_scan - a scan for connections, and its progress; see scan.c
 * @id:		the rule up to which processes have been scanned
 * @pid:	the process that is being scanned, with a reference; or NULL
 * @fd:		the descriptor of that process up to which it has been scanned
 * @ports:	the ports that it listens on
 * @listen_seq:	that of the namespace when the scan of the process began, and by how much this scan
 *		has incremented it since
 * @unsettled:	the state of one of its sockets may have been about to change
 * @all:	no processes are left; all connections are scanned
 * @bucket:	the bucket up to which these have been scanned
 * @recheck:	connections that are watched already are evaluated again
 * @found:	the sockets found: between batches those of @bucket, or none
 * @next:	the first of these that has not been scanned
 */
struct twheel_scan {
	u32			id;
	struct pid		*pid;
	unsigned int		fd;
	unsigned long		*ports;
	int			listen_seq;
	bool			unsettled;
	bool			all;
	u32			bucket;
	bool			recheck;
	struct twheel_socks	found;
	u32			next;
};

/**
 * struct twheel_rules - the rules of a network namespace
 * @list:	the rules, in the order in which they are tried. Changed with the mutex of admin.c
 *		held; read under RCU
 * @last_id:	the last id given out; guarded by that mutex
 * @nr:		number of rules, including those that have not been freed yet; guarded by that mutex
 * @nr_matches:	number of entries in all their lists; likewise
 * @net:	the namespace; constant
 * @exiting:	the namespace is going away: its scan has to end
 * @scan_work:	scans for connections that should have a watch and have none, step by step
 * @scanning:	a scan is in progress. Only used by @scan_work
 * @scan:	how far it has got. Likewise
 * @last_scan:	when the last scan began, in jiffies. Written by @scan_work, read when a scan is
 *		requested
 * @scan_requests: how often a scan was requested
 * @seen_requests: the value of @scan_requests when the scan began. Only used by @scan_work
 * @recheck:	the next scan has to evaluate watched connections again, too
 * @listen_seq:	how often a socket has started listening, or was recorded as a listener
 * @share_lock:	guards @share. Taken in softirq context only, inside of twheel_conn_locks; nothing
 *		is taken inside of it
 * @share:	how much of the namespace's share of the softirqs its connections' timers have used
 * @leftover:	rules that a task took off @list before it was killed; guarded by that mutex
 * @reap_work:	frees these, once they have no connections left
 * @user:	the owner of the namespace, once there are rules; NULL for namespaces of the initial
 *		user namespace
 * @worker:	evaluates watches of the namespace's connections that are due
 * @changes:	changes of its sockets that wait to be handled, once there are rules
 */
struct twheel_rules {
	struct list_head	list;
	u32			last_id;
	u32			nr;
	u32			nr_matches;
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
	struct twheel_changes	*changes;
};

#ifdef CONFIG_INET

/* The workqueue of scans. Constant once there are any rules. */
extern struct workqueue_struct *twheel_scan_queue;

/* The index of a namespace's rules for net_generic(). Constant once there are any rules. */
extern unsigned int twheel_rules_net_id;

/* The sk_state_change() of TCP sockets for which nobody has replaced it. Constant. */
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
void twheel_recheck_later(struct net *net);
void twheel_scan_all_later(void);

/* When and how a rule closes connections. The caller holds the RCU read lock. */
static inline const struct twheel_limits *twheel_limits_of(const struct twheel_idle_rule *rule)
{
	return rcu_dereference(rule->limits);
}

/* Is this a connection, or a listener, that rules are for? */
static inline bool twheel_is_for_rules(const struct sock *sk)
{
	/* Sockets of the kernel keep no namespace alive. A bit that is set once, among others. */
	return data_race((bool)sk->sk_net_refcnt) && sk_is_tcp(sk) &&
	       (sk->sk_family == AF_INET || sk->sk_family == AF_INET6);
}

/* Until a connection has been accepted, this is the uid of the listening socket. */
static inline kuid_t twheel_uid_of(const struct sock *sk)
{
	/* Written by accept() and by fchown(). */
	return READ_ONCE(sk->sk_uid);
}

#endif /* CONFIG_INET */

#endif /* _TWHEEL_RULES_RULES_H */
