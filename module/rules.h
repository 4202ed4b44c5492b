/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: rules for idle connections
 *
 * rules.c has the rules, rules_ioctl.c what a program can do with them, match.c finds the one that
 * applies to a connection, kick.c has the watches of connections that rules apply to, decide.c
 * closes these, connections.c lists them, find.c looks for those that are there already.
 */
#ifndef _TWHEEL_RULES_H
#define _TWHEEL_RULES_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <uapi/linux/twheel_rules.h>

/* Port numbers. */
#define TWHEEL_PORTS		65536

struct cgroup;
struct file;
struct pid;

/**
 * struct twheel_idle_rule - a rule
 * @list:	in the rules of its namespace; RCU
 * @gone:	in the list of those that are being removed together
 * @spec:	what was asked for, and its @id; constant
 * @index:	its number among the rules of all namespaces; constant. Watches have it
 * @seed:	makes the spread random; constant
 * @uid:	the owner asked for; constant
 * @cgroup:	the cgroup asked for, with a reference, or NULL; constant
 * @pid:	the process asked for, with a reference, or NULL; constant
 * @ports:	a bit for each port that @pid listens on; NULL without @pid. Read without a lock
 * @dead:	it is not in the rules of its namespace any more, and its watches must find
 *		another one. Written once; read without a lock
 * @lock:	guards @turn. Taken in process context, inside of twheel_kick_locks
 * @turn:	when the next connection may be closed, in nanoseconds
 * @users:	watches that have its @index, and those that are about to. While there are
 *		any, the rule is there
 * @watched:	counts, as in struct twheel_rule
 * @matched:	likewise, as are the others
 * @closed:	likewise
 * @spared:	likewise
 * @delayed:	likewise
 * @missed:	likewise
 */
struct twheel_idle_rule {
	struct list_head	list;
	struct list_head	gone;
	struct twheel_rule	spec;
	u32			index;
	u32			seed;
	kuid_t			uid;
	struct cgroup		*cgroup;
	struct pid		*pid;
	unsigned long		*ports;
	bool			dead;
	spinlock_t		lock;
	u64			turn;
	atomic_t		users;
	atomic64_t		watched;
	atomic64_t		matched;
	atomic64_t		closed;
	atomic64_t		spared;
	atomic64_t		delayed;
	atomic64_t		missed;
};

/**
 * struct twheel_rules - the rules of a network namespace
 * @list:	in the order in which they were added. Changed with the mutex of rules.c
 *		held; read under RCU
 * @last_id:	the last id given out; guarded by that mutex
 * @nr:		how many rules there are; guarded by that mutex
 * @net:	the namespace; constant
 * @find:	looks for connections that have no watch, and should have one
 */
struct twheel_rules {
	struct list_head	list;
	u32			last_id;
	u32			nr;
	struct net		*net;
	struct delayed_work	find;
};

/**
 * struct twheel_found - sockets that were found
 * @socks:	the sockets, with references
 * @nr:		how many these are
 * @room:	how many fit
 */
struct twheel_found {
	struct sock	**socks;
	u32		nr;
	u32		room;
};

#ifdef CONFIG_INET

/* Where a network namespace has its rules. Constant once there are any. */
extern unsigned int twheel_rules_net_id;

static inline struct twheel_rules *twheel_rules_of_net(const struct net *net)
{
	return net_generic(net, twheel_rules_net_id);
}

/* rules.c */
int twheel_rules_init(void);
void twheel_rules_exit(void);
int twheel_rules_add(struct net *net, struct twheel_rule *spec);
int twheel_rules_remove(struct net *net, u32 id);
struct twheel_idle_rule *twheel_rules_by_index(u32 index);
struct twheel_idle_rule *twheel_rules_from(struct net *net, u32 id);
struct twheel_idle_rule *twheel_rules_by_id(struct net *net, u32 id);

/* rules_ioctl.c */
long twheel_rules_ioctl(struct file *file, unsigned int cmd, unsigned long user);

/* match.c */
struct twheel_idle_rule *twheel_rules_match(const struct sock *sk, const struct pid *begun_by,
					    const struct twheel_idle_rule *now);
struct twheel_idle_rule *twheel_rules_of_pid(const struct net *net, const struct pid *pid);
void twheel_rules_listening(const struct sock *sk, const struct pid *pid);
void twheel_rules_set_ports(struct net *net, u32 id, const unsigned long *ports);

/* kick.c */
void twheel_kick_init(void);
int twheel_kick_get(void);
void twheel_kick_put(void);
int twheel_kick_consider(struct sock *sk, const struct pid *pid, int state);
void twheel_kick_settle(void);
void twheel_kick_release(struct list_head *gone);

/* decide.c */
bool twheel_kick_describe(const struct sock *sk, u32 id, struct twheel_connection *connection);

/* connections.c */
u64 twheel_connection_cookie(struct sock *sk);
void twheel_connection_addresses(const struct sock *sk, void *local, void *remote);
long twheel_connections_list(struct net *net, struct twheel_connections *list);

/* find.c */
void twheel_found_put(struct twheel_found *found);
void twheel_found_free(struct twheel_found *found);
int twheel_find_next(struct net *net, u32 *bucket, struct twheel_found *found);
int twheel_find_all(struct net *net);
void twheel_find_later(struct net *net, unsigned long delay);
void twheel_find_everywhere(void);
void twheel_find_work(struct work_struct *work);

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

#else

static inline int twheel_rules_init(void)
{
	return 0;
}

static inline void twheel_rules_exit(void)
{
}

static inline long twheel_rules_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return -ENOTTY;
}

#endif /* CONFIG_INET */

#endif /* _TWHEEL_RULES_H */
