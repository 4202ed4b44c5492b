// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the watches of connections that rules apply to
 *
 * A watch is 64 bytes: a timer, the socket's side of it, and in what is left of the timer
 * the time at which the connection was first seen. It names its rule by number.
 *
 * A new watch is *fresh*: its rule is a guess, because the change that has told of the
 * connection may not be complete, or because the socket has not been given to a program yet,
 * whose uid it gets then. It is made due at once, and the worker decides.
 *
 * There is one place where a watch changes its rule, ends, or closes its connection: decide(),
 * called by the worker. Everybody else makes the watch due: the timer's callback, the end of
 * a connection, the removal of a rule.
 *
 * Locks
 * -----
 *
 * The lock of a socket, one of an array, makes the calls for the timer of its watch one after
 * the other, and guards the watch's @rule, @flags and its being in the table. It is taken in
 * process and softirq context; inside of it are twheel_watch_kind.lock,
 * twheel_idle_rule.lock and the wheel's. With it held a watch's state is
 * TWHEEL_WATCH_IDLE or it is not, whatever the worker does: the worker takes the watch out of
 * the list without the lock, but it takes the lock to give it back.
 *
 * Rules are found under RCU. A rule that is removed is first taken out of the list; after a
 * grace period nobody finds it there any more, and @users does not increase. Then watches that
 * name it are made due until there are none.
 *
 *	softirq				worker
 *	the timer leaves the wheel
 *					lock; the watch ends; unlock
 *	lock; no rule: return
 *
 * The memory of the watch is there until softirqs that were running are over, see end().
 */
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/sock_diag.h>
#include <net/inet_sock.h>

#include "rules.h"
#include "trace.h"
#include "watch.h"

/* Flags of a watch beside those of linux/twheel.h, which begin at bit 6. */
#define FRESH		BIT(0)	/* the rule is a guess, and counts nothing */
#define OWN		BIT(1)	/* the process of the rule has begun the connection */
#define EXPIRED		BIT(2)	/* it is with the worker because it was idle */
#define WAITS		BIT(3)	/* it has its turn, and waits for it */
#define COUNTED		BIT(4)	/* dry run: nothing has come since it was counted */
#define LOOK		BIT(5)	/* the socket was busy: it may be over */
#define ACTIONS		(TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT |		\
			 TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)

/* When to look again whether a connection has come about. */
#define CONNECT_NS	NSEC_PER_SEC

#define NR_LOCKS	256

/* Nanoseconds that a connection's age is exact to, as a power of two. */
#define FIRST_SHIFT	16

/**
 * struct kick - a watch of a connection
 * @timer:	its timer. @node.generation and @node.state hold when the connection
 *		was first seen
 * @unused:	lies over what must stay as it is
 * @rcu:	frees the watch. It lies over @node.link, which nobody uses any more
 * @watch:	the socket's side
 */
struct kick {
	union {
		struct twheel_timer	timer;
		struct {
			u64		unused;
			struct rcu_head	rcu;
		};
	};
	struct twheel_watch		watch;
};

/**
 * enum verdict - what becomes of a watch
 * @KEEP:	it goes on
 * @DROP:	it ends
 * @CLOSE:	it ends, and so does the connection
 */
enum verdict {
	KEEP,
	DROP,
	CLOSE,
};

static bool judge(struct twheel_watch *watch, enum twheel_watch_finding finding);
static void over(struct twheel_watch *watch, struct sock *sk);
static void changed(const struct twheel_watch_change *change);

static struct twheel_watch_kind kind = {
	.name		= "rules",
	.timer_offset	= offsetof(struct kick, watch),
	.judge		= judge,
	.over		= over,
	.changed	= changed,
};

/* Guards @nr_users. Taken in process context, outside of all others. */
static DEFINE_MUTEX(kind_lock);
static unsigned int nr_users;

/* See the head of this file. */
static spinlock_t locks[NR_LOCKS];

static spinlock_t *lock_of(const struct sock *sk)
{
	return &locks[hash_ptr(sk, ilog2(NR_LOCKS))];
}

static struct kick *kick_of(struct twheel_watch *watch)
{
	return container_of(watch, struct kick, watch);
}

/*
 * Limits
 */

static void set_first_seen(struct kick *kick, u64 now)
{
	/* Not before it was. */
	u64 first = (now >> FIRST_SHIFT) + 1;

	kick->timer.node.generation = first;
	kick->timer.node.state = first >> 32;
}

static u64 first_seen(const struct kick *kick)
{
	u64 first = (u64)kick->timer.node.state << 32 | kick->timer.node.generation;

	return first << FIRST_SHIFT;
}

/* A connection's own share of its rule's spread. */
static u64 spread_of(const struct kick *kick, const struct twheel_idle_rule *rule)
{
	if (!rule->spec.spread)
		return 0;
	return mul_u64_u32_shr(rule->spec.spread,
			       jhash_2words((unsigned long)kick->watch.sk,
					    kick->timer.node.generation, rule->seed), 32);
}

/* When a connection is to be closed if nothing happens, in nanoseconds. */
static u64 limit_of(const struct kick *kick, const struct twheel_idle_rule *rule, u64 now)
{
	const u64 spread = spread_of(kick, rule);
	u64 limit = U64_MAX, active;

	if (rule->spec.idle) {
		active = twheel_watch_active(kick->watch.sk, rule->spec.flags, now);
		limit = active + min_t(u64, rule->spec.idle + spread, TWHEEL_TIME_MAX);
	}
	if (rule->spec.lifetime)
		limit = min(limit, first_seen(kick) +
			    min_t(u64, rule->spec.lifetime + spread, TWHEEL_TIME_MAX));
	return limit;
}

/*
 * A token bucket that holds a tenth of a second's worth. Returns when a connection may be
 * closed: it has a token for then.
 */
static u64 take_turn(struct twheel_idle_rule *rule, u64 now)
{
	const u64 rate = rule->spec.rate;
	const u64 burst = max_t(u64, rate / 10, 1) - 1;
	u64 turn;

	spin_lock(&rule->lock);
	turn = max(rule->turn, now - min(now, div64_u64(burst * NSEC_PER_SEC, rate)));
	rule->turn = turn + div64_u64(NSEC_PER_SEC, rate);
	spin_unlock(&rule->lock);
	return turn;
}

/*
 * One watch. Its socket's lock is held, and the RCU read lock.
 */

static struct twheel_idle_rule *rule_of(const struct kick *kick)
{
	return twheel_rules_by_index(kick->watch.rule);
}

static void arm(struct kick *kick, u64 expires)
{
	twheel_rearm(&kick->timer, expires);
}

static void set_flag(struct kick *kick, u16 flag, bool on)
{
	struct twheel_watch *watch = &kick->watch;

	/* Pairs with the worker's, which looks before it has the lock. */
	WRITE_ONCE(watch->flags, on ? watch->flags | flag : watch->flags & ~flag);
}

static void make_due(struct kick *kick)
{
	/* Pairs with the worker's stores. See the head of this file. */
	if (READ_ONCE(kick->watch.state) != TWHEEL_WATCH_IDLE)
		return;
	/* If this comes too late, the callback finds the watch due. */
	twheel_cancel(&kick->timer);
	twheel_watch_due(&kind, &kick->watch);
}

/* Takes a watch from its rule. */
static void leave_rule(struct kick *kick, struct twheel_idle_rule *rule)
{
	if (!(kick->watch.flags & FRESH))
		atomic64_dec(&rule->watched);
	kick->watch.rule = 0;
	/* The rule may go now, after a grace period. */
	atomic_dec(&rule->users);
}

/* Gives a watch that has no rule one. */
static void join_rule(struct kick *kick, struct twheel_idle_rule *rule, u16 flags)
{
	atomic_inc(&rule->users);
	kick->watch.rule = rule->index;
	/* Pairs with the worker's, which looks before it has the lock. */
	WRITE_ONCE(kick->watch.flags, (rule->spec.flags & ACTIONS) | flags);
	if (flags & FRESH)
		return;
	atomic64_inc(&rule->watched);
	atomic64_inc(&rule->matched);
}

/* Gives a watch another rule, or the same one, FRESH or not. */
static void change_rule(struct kick *kick, struct twheel_idle_rule *rule, u16 flags)
{
	struct twheel_idle_rule *old = rule_of(kick);

	if (kick->watch.flags & OWN && rule->pid == old->pid)
		flags |= OWN;
	leave_rule(kick, old);
	join_rule(kick, rule, flags);
}

static const struct pid *begun_by(const struct kick *kick, const struct twheel_idle_rule *rule)
{
	return kick->watch.flags & OWN ? rule->pid : NULL;
}

static bool is_connecting(int state)
{
	return state == TCP_SYN_SENT || state == TCP_SYN_RECV;
}

/* The connection is over, or is only about to begin. */
static enum verdict decide_over(struct kick *kick, u64 now)
{
	struct twheel_idle_rule *rule = rule_of(kick);

	if (!is_connecting(inet_sk_state_load(kick->watch.sk)) || !(kick->watch.flags & OWN))
		return DROP;
	rule = twheel_rules_of_pid(sock_net(kick->watch.sk), rule->pid);
	if (!rule)
		return DROP;
	change_rule(kick, rule, FRESH);
	set_first_seen(kick, now);
	arm(kick, now + CONNECT_NS);
	return KEEP;
}

/*
 * In how many nanoseconds to look again at a socket that a program is at work with; or that
 * none has accepted, for which that is as long as it has been so.
 */
static u64 again(const struct kick *kick, u64 now)
{
	const u64 first = first_seen(kick);

	if (twheel_watch_accepted(kick->watch.sk))
		return TICK_NSEC;
	return clamp_t(u64, now - min(first, now), TICK_NSEC, NSEC_PER_SEC);
}

/* Which rule is it? */
static enum verdict decide_rule(struct kick *kick, struct twheel_idle_rule *rule, bool busy,
				u64 now)
{
	change_rule(kick, rule, busy ? FRESH : 0);
	arm(kick, busy ? now + TICK_NSEC : limit_of(kick, rule, now));
	return KEEP;
}

/* Dry run: the connection has been counted. */
static void wait_for_activity(struct kick *kick, const struct twheel_idle_rule *rule, u64 now)
{
	set_flag(kick, COUNTED, true);
	arm(kick, rule->spec.idle ? now + rule->spec.idle : U64_MAX);
}

/* The limit is over, and the socket is locked. */
static enum verdict decide_expired(struct kick *kick, struct twheel_idle_rule *rule, u64 now)
{
	struct sock *sk = kick->watch.sk;
	u64 turn;

	if (kick->watch.flags & COUNTED) {
		wait_for_activity(kick, rule, now);
		return KEEP;
	}
	if (!(kick->watch.flags & WAITS)) {
		turn = take_turn(rule, now);
		if (turn > now) {
			atomic64_inc(&rule->delayed);
			set_flag(kick, WAITS, true);
			arm(kick, turn);
			return KEEP;
		}
	}
	atomic64_inc(&rule->closed);
	trace_twheel_kick(sk, rule->spec.id, rule->spec.flags,
			  now - twheel_watch_active(sk, rule->spec.flags, now));
	if (!(rule->spec.flags & TWHEEL_RULE_DRY_RUN))
		return CLOSE;
	set_flag(kick, WAITS, false);
	wait_for_activity(kick, rule, now);
	return KEEP;
}

static enum verdict decide(struct kick *kick, enum twheel_watch_finding finding)
{
	const bool busy = finding == TWHEEL_FOUND_BUSY;
	struct twheel_idle_rule *rule = rule_of(kick), *first;
	const u64 now = ktime_get_ns();
	const bool fresh = kick->watch.flags & FRESH;
	bool dead;
	u64 limit;

	if (finding == TWHEEL_FOUND_OVER)
		return decide_over(kick, now);
	/* Pairs with the store when it is removed. */
	dead = READ_ONCE(rule->dead);
	if (busy && fresh && !dead) {
		/* It may be connecting, and not have its ports, or wait for who accepts it. */
		arm(kick, now + again(kick, now));
		return KEEP;
	}
	limit = limit_of(kick, rule, now);
	if (fresh || limit <= now || dead) {
		first = twheel_rules_match(kick->watch.sk, begun_by(kick, rule),
					   fresh ? NULL : rule);
		if (!first)
			return DROP;
		if (fresh || first != rule)
			return decide_rule(kick, first, busy, now);
	}
	if (busy) {
		set_flag(kick, LOOK, true);
		arm(kick, now + TICK_NSEC);
		return KEEP;
	}
	if (limit > now) {
		/* There was activity at the last moment. */
		if (kick->watch.flags & EXPIRED)
			atomic64_inc(&rule->spared);
		set_flag(kick, EXPIRED | WAITS | COUNTED | LOOK, false);
		arm(kick, limit);
		return KEEP;
	}
	set_flag(kick, EXPIRED | LOOK, false);
	return decide_expired(kick, rule, now);
}

/*
 * The worker has found a watch. Its callback may be on its way in a softirq: that is over when
 * an RCU grace period is, because softirqs are off in it.
 */
static bool judge(struct twheel_watch *watch, enum twheel_watch_finding finding)
{
	struct kick *kick = kick_of(watch);
	struct sock *sk = watch->sk;
	spinlock_t *lock = lock_of(sk);
	enum verdict verdict;

	spin_lock_bh(lock);
	rcu_read_lock();
	twheel_watch_judged(&kind, watch);
	verdict = decide(kick, finding);
	if (verdict != KEEP) {
		twheel_watch_remove(&kind, watch);
		leave_rule(kick, rule_of(kick));
	}
	rcu_read_unlock();
	spin_unlock_bh(lock);
	if (verdict != KEEP) {
		kfree_rcu(kick, rcu);
		/* Not the last one: the worker has one, too. */
		sock_put(sk);
	}
	return verdict == CLOSE;
}

/* The timer's callback, in softirq context. */
static void expire(struct twheel_timer *timer)
{
	struct kick *kick = container_of(timer, struct kick, timer);
	/* Pairs with the store when the watch ends. */
	struct sock *sk = READ_ONCE(kick->watch.sk);
	struct twheel_idle_rule *rule;
	spinlock_t *lock = lock_of(sk);
	u64 now, limit = 0;

	if (!sk)
		return;
	spin_lock(lock);
	rcu_read_lock();
	/* Who came first had the watch end, made it due, or armed it anew. */
	if (!kick->watch.rule || READ_ONCE(kick->watch.state) != TWHEEL_WATCH_IDLE ||
	    twheel_pending(timer))
		goto out;
	rule = rule_of(kick);
	now = ktime_get_ns();
	if (!(kick->watch.flags & (FRESH | LOOK)))
		limit = limit_of(kick, rule, now);
	if (limit > now) {
		if (kick->watch.flags & WAITS)
			atomic64_inc(&rule->spared);
		set_flag(kick, WAITS | COUNTED, false);
		arm(kick, limit);
	} else if (limit && kick->watch.flags & COUNTED &&
		   limit <= timer->node.deadline + spread_of(kick, rule)) {
		/* Nothing has come since it was armed, an idle timeout before its deadline. */
		wait_for_activity(kick, rule, now);
	} else {
		set_flag(kick, COUNTED, false);
		if (limit)
			set_flag(kick, EXPIRED, true);
		twheel_watch_due(&kind, &kick->watch);
	}
out:
	rcu_read_unlock();
	spin_unlock(lock);
}

/*
 * New watches
 */

/*
 * The rule that a connection is to be watched for, if it has no watch yet; or NULL. @state is
 * told of before the socket says so.
 */
static struct twheel_idle_rule *find_rule(struct sock *sk, const struct pid *pid, int state)
{
	struct twheel_idle_rule *rule = NULL;
	struct twheel_watch *watch;
	struct kick *kick;

	if (is_connecting(state))
		rule = pid ? twheel_rules_of_pid(sock_net(sk), pid) : NULL;
	else if (twheel_watchable(state))
		rule = twheel_rules_match(sk, pid, NULL);
	/* As long as there is a rule, there is the table. */
	watch = rule ? twheel_watch_find(&kind, sk) : NULL;
	if (!watch)
		return rule;
	kick = kick_of(watch);
	/* It is told only now who has begun it. */
	if (pid && rule->pid == pid && !(watch->flags & OWN))
		change_rule(kick, rule, FRESH | OWN);
	if (watch->flags & FRESH)
		make_due(kick);
	return NULL;
}

/* There is no memory for a watch. Returns -ENOMEM. */
static int miss(struct twheel_idle_rule *rule, const struct sock *sk)
{
	atomic64_inc(&rule->missed);
	twheel_rules_find_again(sock_net(sk), HZ);
	return -ENOMEM;
}

/* Puts a watch into the table. Returns 0, or 1 if there is no need, or -ENOMEM. */
static int begin(struct kick *kick, struct sock *sk, const struct pid *pid, int state)
{
	struct twheel_idle_rule *rule = find_rule(sk, pid, state);

	if (!rule)
		return 1;
	if (twheel_watch_insert(&kind, &kick->watch, sk))
		return miss(rule, sk);
	join_rule(kick, rule, FRESH | (pid && rule->pid == pid ? OWN : 0));
	set_first_seen(kick, ktime_get_ns());
	twheel_watch_due(&kind, &kick->watch);
	return 0;
}

/**
 * twheel_kick_consider - watch a connection if a rule applies to it
 * @sk:		its socket
 * @pid:	the process that has begun it, or NULL
 * @state:	its state, or that which it is about to get
 *
 * It may be watched already. Without memory it is looked for again in a second.
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int twheel_kick_consider(struct sock *sk, const struct pid *pid, int state)
{
	spinlock_t *lock = lock_of(sk);
	struct twheel_idle_rule *rule;
	struct kick *kick = NULL;
	int ret = 0;

	if (!twheel_is_for_rules(sk))
		return 0;
	spin_lock_bh(lock);
	rcu_read_lock();
	rule = find_rule(sk, pid, state);
	rcu_read_unlock();
	spin_unlock_bh(lock);
	if (!rule)
		return 0;
	kick = kzalloc(sizeof(*kick), GFP_KERNEL | __GFP_NOWARN);
	if (kick)
		twheel_timer_init(&kick->timer, expire);
	spin_lock_bh(lock);
	rcu_read_lock();
	if (kick) {
		ret = begin(kick, sk, pid, state);
	} else {
		rule = find_rule(sk, pid, state);
		ret = rule ? miss(rule, sk) : 0;
	}
	rcu_read_unlock();
	spin_unlock_bh(lock);
	if (ret)
		kfree(kick);
	return min(ret, 0);
}

static void over(struct twheel_watch *found, struct sock *sk)
{
	spinlock_t *lock = lock_of(sk);
	struct twheel_watch *watch;

	spin_lock_bh(lock);
	/* It may be another one by now. */
	watch = twheel_watch_find(&kind, sk);
	if (watch)
		make_due(kick_of(watch));
	spin_unlock_bh(lock);
}

static struct pid *get_pid_of(const struct twheel_watch_change *change)
{
	struct pid *pid;

	if (!change->pid)
		return NULL;
	rcu_read_lock();
	pid = get_pid(find_pid_ns(change->pid, &init_pid_ns));
	rcu_read_unlock();
	return pid;
}

static void changed(const struct twheel_watch_change *change)
{
	struct pid *pid;

	if (!change) {
		twheel_rules_find_everywhere();
		return;
	}
	/* A socket that is not for rules may outlive its namespace. */
	if (!twheel_is_for_rules(change->sk))
		return;
	pid = change->state == TCP_ESTABLISHED ? NULL : get_pid_of(change);
	if (change->state == TCP_LISTEN)
		twheel_rules_listening(change->sk, pid);
	else if (pid || change->state == TCP_ESTABLISHED)
		twheel_kick_consider(change->sk, pid, change->state);
	put_pid(pid);
}

/*
 * All watches
 */

/* Makes watches due whose rules are removed. */
static void make_orphans_due(void)
{
	struct rhashtable_iter iter;
	struct twheel_idle_rule *rule;
	struct twheel_watch *watch;
	unsigned int n = 0;
	spinlock_t *lock;
	struct sock *sk;

	rhashtable_walk_enter(&kind.table, &iter);
	rhashtable_walk_start(&iter);
	while ((watch = rhashtable_walk_next(&iter))) {
		/* The table was resized: it goes on with the new one. */
		if (IS_ERR(watch))
			continue;
		/* Pairs with the store when the watch ends. */
		sk = READ_ONCE(watch->sk);
		if (!sk)
			continue;
		lock = lock_of(sk);
		spin_lock_bh(lock);
		rule = watch->rule ? rule_of(kick_of(watch)) : NULL;
		/* Pairs with the store when it is removed. */
		if (rule && READ_ONCE(rule->dead))
			make_due(kick_of(watch));
		spin_unlock_bh(lock);
		if (++n % 1024)
			continue;
		rhashtable_walk_stop(&iter);
		cond_resched();
		rhashtable_walk_start(&iter);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
}

/**
 * twheel_kick_settle - wait until the worker has looked at new connections
 *
 * Context: process; may sleep. There is a twheel_kick_get().
 */
void twheel_kick_settle(void)
{
	int most = atomic_read(&kind.table.nelems);

	/* The worker is not done with all of them at once. Others may come for ever. */
	do {
		twheel_watch_flush(&kind);
	} while (most-- > 0 && !list_empty_careful(&kind.due));
}

/**
 * twheel_kick_release - have rules that are removed give up their connections
 * @gone:	the rules, by @gone. Nobody finds them any more
 *
 * Connections go to other rules that they match, or are not watched any more.
 *
 * Context: process; may sleep.
 */
void twheel_kick_release(struct list_head *gone)
{
	struct twheel_idle_rule *rule;

	list_for_each_entry(rule, gone, gone) {
		/* A walk may miss some if others are removed meanwhile. */
		while (atomic_read(&rule->users)) {
			make_orphans_due();
			twheel_watch_flush(&kind);
		}
	}
}

/**
 * twheel_kick_get - there will be a rule
 *
 * Context: process; may sleep.
 * Return: 0, or an errno.
 */
int twheel_kick_get(void)
{
	int ret = 0;

	mutex_lock(&kind_lock);
	if (!nr_users)
		ret = twheel_watch_kind_add(&kind);
	if (!ret)
		nr_users++;
	mutex_unlock(&kind_lock);
	return ret;
}

/**
 * twheel_kick_put - the opposite of twheel_kick_get()
 *
 * Context: process; may sleep. An RCU grace period after the rule was removed.
 */
void twheel_kick_put(void)
{
	mutex_lock(&kind_lock);
	if (!--nr_users)
		twheel_watch_kind_del(&kind);
	mutex_unlock(&kind_lock);
}

/**
 * twheel_kick_cookie - a socket's number, that ss -e shows
 * @sk:		the socket
 *
 * Context: any.
 * Return: the number.
 */
u64 twheel_kick_cookie(struct sock *sk)
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
	/* The port is at the same place in both. */
	address->sin6_family = sk->sk_family;
	address->sin6_port = port;
	if (sk->sk_family == AF_INET6)
		address->sin6_addr = *ipv6;
	else
		in->sin_addr.s_addr = ipv4;
}

/**
 * twheel_kick_addresses - the addresses of a connection
 * @sk:		its socket
 * @local:	gets a struct sockaddr_in or, with zeros, a struct sockaddr_in6
 * @remote:	likewise
 *
 * Context: any.
 */
void twheel_kick_addresses(const struct sock *sk, void *local, void *remote)
{
	const struct in6_addr *local6 = NULL, *remote6 = NULL;

#if IS_ENABLED(CONFIG_IPV6)
	local6 = &sk->sk_v6_rcv_saddr;
	remote6 = &sk->sk_v6_daddr;
#endif
	set_address(local, sk, sk->sk_rcv_saddr, local6, inet_sk(sk)->inet_sport);
	set_address(remote, sk, sk->sk_daddr, remote6, inet_sk(sk)->inet_dport);
}

static void copy_address(u8 *to, const struct sockaddr_in6 *address)
{
	if (address->sin6_family == AF_INET6)
		memcpy(to, &address->sin6_addr, sizeof(address->sin6_addr));
	else
		memcpy(to, &((struct sockaddr_in *)address)->sin_addr, sizeof(struct in_addr));
}

static void describe_addresses(const struct sock *sk, struct twheel_connection *connection)
{
	struct sockaddr_in6 local, remote;

	twheel_kick_addresses(sk, &local, &remote);
	connection->family = sk->sk_family;
	connection->local_port = ntohs(local.sin6_port);
	connection->remote_port = ntohs(remote.sin6_port);
	copy_address(connection->local_address, &local);
	copy_address(connection->remote_address, &remote);
}

/* Does a watch belong to the rule with this id? With the socket's lock held. */
static struct twheel_idle_rule *find_id(const struct twheel_watch *watch, u32 id)
{
	struct twheel_idle_rule *rule;

	if (!watch || watch->flags & FRESH)
		return NULL;
	rule = rule_of(kick_of((struct twheel_watch *)watch));
	return rule->spec.id == id ? rule : NULL;
}

/**
 * twheel_kick_describe - tell of a connection that a rule applies to
 * @sk:		the socket
 * @id:		the rule, which must be there
 * @connection:	gets what there is to know
 *
 * Context: process.
 * Return: true if so; false if the rule does not apply to it.
 */
bool twheel_kick_describe(struct sock *sk, u32 id, struct twheel_connection *connection)
{
	const u64 now = ktime_get_ns();
	spinlock_t *lock = lock_of(sk);
	struct twheel_idle_rule *rule = NULL;
	struct twheel_watch *watch;
	u64 limit;

	memset(connection, 0, sizeof(*connection));
	spin_lock_bh(lock);
	rcu_read_lock();
	/* As long as there is a rule, there is the table. */
	if (twheel_rules_from(sock_net(sk), id)) {
		watch = twheel_watch_find(&kind, sk);
		rule = find_id(watch, id);
	}
	if (rule) {
		limit = limit_of(kick_of(watch), rule, now);
		connection->remaining = limit - min(limit, now);
		connection->idle = now - twheel_watch_active(sk, rule->spec.flags, now);
	}
	rcu_read_unlock();
	spin_unlock_bh(lock);
	if (!rule)
		return false;
	connection->cookie = twheel_kick_cookie(sk);
	connection->uid = from_kuid_munged(current_user_ns(), twheel_uid_of(sk));
	describe_addresses(sk, connection);
	return true;
}

/**
 * twheel_kick_init - get ready
 *
 * Context: process.
 */
void __init twheel_kick_init(void)
{
	int i;

	BUILD_BUG_ON(!IS_ENABLED(CONFIG_LOCKDEP) && sizeof(struct kick) > 64);
	BUILD_BUG_ON(offsetof(struct kick, rcu) < offsetof(struct kick, timer.node.link) ||
		     offsetofend(struct kick, rcu) > offsetofend(struct kick, timer.node.link));
	for (i = 0; i < NR_LOCKS; i++)
		spin_lock_init(&locks[i]);
}
