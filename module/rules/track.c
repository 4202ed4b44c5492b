// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the watches of connections that rules apply to
 *
 * A new watch is *fresh*: its rule is a guess, because the change that has told of the
 * connection may not be complete, or because the socket has not been given to a program yet,
 * whose uid it gets then. It is made due at once, and the worker decides.
 *
 * There is one place where a watch ends, or closes its connection: decide() in enforce.c, called by
 * the worker. Everybody else makes the watch due: the timer's callback, the end of a connection,
 * the removal of a rule, and who learns only now which process has begun the connection, and gives
 * the watch a rule of that.
 *
 * Rules are found under RCU. A rule that is removed is first taken out of the list; after a
 * grace period nobody finds it there any more, and @users does not increase. Then watches that
 * name it are made due until there are none.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/inet_sock.h>

#include "conn.h"
#include "enforce.h"
#include "lib/inject.h"
#include "match.h"
#include "rules.h"
#include "socks.h"
#include "tcp/watch.h"
#include "tcp/watch_table.h"
#include "tcp/watch_worker.h"
#include "track.h"
#include "twheel.h"

/* Guards @nr_users. Taken in process context, outside of all others. */
static DEFINE_MUTEX(kind_lock);
static unsigned int nr_users;

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
	struct twheel_conn *conn;

	if (twheel_is_connecting(state))
		rule = pid ? twheel_rules_of_pid(sock_net(sk), pid) : NULL;
	else if (twheel_watchable(state))
		rule = twheel_rules_match(sk, pid, NULL);
	/* As long as there is a rule, there is the table. */
	watch = rule ? twheel_watch_find(&twheel_conn_kind, sk) : NULL;
	if (!watch)
		return rule;
	conn = twheel_conn_of(watch);
	twheel_conn_renew(conn);
	/* It is told only now who has begun it. */
	if (pid && rule->pid == pid && !(watch->flags & TWHEEL_CONN_BY_PID))
		twheel_conn_change_rule(conn, rule, TWHEEL_CONN_PROVISIONAL | TWHEEL_CONN_BY_PID);
	if (watch->flags & TWHEEL_CONN_PROVISIONAL)
		twheel_conn_queue(conn);
	return NULL;
}

/* There is no memory for a watch. Returns -ENOMEM. */
static int track_failed(struct twheel_idle_rule *rule, const struct sock *sk)
{
	atomic64_inc(&rule->missed);
	twheel_scan_later(sock_net(sk), HZ);
	return -ENOMEM;
}

/* Puts a watch into the table. Returns 0, or 1 if there is no need, or -ENOMEM. */
static int begin_tracking(struct twheel_conn *conn, struct sock *sk, const struct pid *pid,
			  int state)
{
	struct twheel_idle_rule *rule = find_rule(sk, pid, state);
	const int now = inet_sk_state_load(sk);

	if (!rule)
		return 1;
	if (twheel_watch_insert(&twheel_conn_kind, &conn->watch, sk))
		return track_failed(rule, sk);
	/* If it is over, or only about to begin, the worker may find another one. */
	if (!twheel_watchable(now) && now != TCP_SYN_RECV)
		WRITE_ONCE(conn->watch.ended, TWHEEL_CONN_RENEWED);
	twheel_conn_attach(conn, rule, TWHEEL_CONN_PROVISIONAL |
			   (pid && rule->pid == pid ? TWHEEL_CONN_BY_PID : 0));
	twheel_conn_set_first_seen(conn, ktime_get_ns());
	twheel_watch_enqueue(twheel_conn_worker_of(sk), &conn->watch);
	return 0;
}

/**
 * twheel_track - watch a connection if a rule applies to it
 * @sk:		its socket
 * @pid:	the process that has begun it, or NULL
 * @state:	its state, or that which it is about to get
 *
 * It may be watched already. Without memory it is looked for again in a second.
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int twheel_track(struct sock *sk, const struct pid *pid, int state)
{
	spinlock_t *lock = twheel_conn_lock_of(sk);
	struct twheel_idle_rule *rule;
	struct twheel_conn *conn = NULL;
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
	conn = kzalloc(sizeof(*conn), GFP_KERNEL | __GFP_NOWARN);
	if (conn)
		twheel_timer_init(&conn->timer, twheel_enforce_expire);
	spin_lock_bh(lock);
	rcu_read_lock();
	if (conn) {
		ret = begin_tracking(conn, sk, pid, state);
	} else {
		rule = find_rule(sk, pid, state);
		ret = rule ? track_failed(rule, sk) : 0;
	}
	rcu_read_unlock();
	spin_unlock_bh(lock);
	if (ret)
		kfree(conn);
	return min(ret, 0);
}

static void conn_sk_closed(struct twheel_watch *stale, struct sock *sk)
{
	spinlock_t *lock = twheel_conn_lock_of(sk);
	struct twheel_watch *watch;

	spin_lock_bh(lock);
	/* It may be another one by now. */
	watch = twheel_watch_find(&twheel_conn_kind, sk);
	if (watch)
		twheel_conn_queue(twheel_conn_of(watch));
	spin_unlock_bh(lock);
}

static struct pid *get_change_pid(const struct twheel_watch_change *change)
{
	struct pid *pid;

	if (!change->pid)
		return NULL;
	rcu_read_lock();
	pid = get_pid(find_pid_ns(change->pid, &init_pid_ns));
	rcu_read_unlock();
	return pid;
}

static void conn_sk_changed(const struct twheel_watch_change *change)
{
	struct pid *pid;

	if (!change) {
		twheel_rescan_all();
		return;
	}
	/* A socket that is not for rules may outlive its namespace. */
	if (!twheel_is_for_rules(change->sk))
		return;
	if (change->port) {
		pid = get_change_pid(change);
		twheel_rules_listened(sock_net(change->sk), change->port, pid);
		put_pid(pid);
		return;
	}
	pid = change->state == TCP_ESTABLISHED ? NULL : get_change_pid(change);
	if (change->state == TCP_LISTEN)
		twheel_rules_listening(change->sk, pid);
	else if (pid || change->state == TCP_ESTABLISHED)
		twheel_track(change->sk, pid, change->state);
	put_pid(pid);
}

/*
 * All watches
 */

/* Watches looked at before others get their turn. */
#define BATCH		64

/* Makes a watch due if its rule is removed. Out of line, for a test that counts it. */
static noinline void queue_orphan(struct twheel_watch *watch)
{
	/* Pairs with the store when the watch ends. */
	struct sock *sk = READ_ONCE(watch->sk);
	struct twheel_idle_rule *rule;
	spinlock_t *lock;

	if (!sk)
		return;
	lock = twheel_conn_lock_of(sk);
	spin_lock_bh(lock);
	rule = watch->rule ? twheel_conn_rule_of(twheel_conn_of(watch)) : NULL;
	/* Pairs with the store when it is removed. */
	if (rule && READ_ONCE(rule->dead))
		twheel_conn_queue(twheel_conn_of(watch));
	spin_unlock_bh(lock);
}

/* Does so with some. Returns whether there are more. */
static bool queue_some_orphans(struct rhashtable_iter *iter)
{
	struct twheel_watch *watch = NULL;
	int i;

	rhashtable_walk_start(iter);
	for (i = 0; i < BATCH; i++) {
		watch = rhashtable_walk_next(iter);
		if (!watch)
			break;
		/* If not, the table was resized: it goes on with the new one. */
		if (!IS_ERR(watch))
			queue_orphan(watch);
	}
	rhashtable_walk_stop(iter);
	return watch;
}

/* Makes watches due whose rules are removed. Returns -EINTR if a @killable caller is killed. */
static int queue_orphans(bool killable)
{
	struct rhashtable_iter iter;
	int ret = 0;

	rhashtable_walk_enter(&twheel_conn_kind.table, &iter);
	while (!ret && queue_some_orphans(&iter)) {
		cond_resched();
		if (killable && fatal_signal_pending(current))
			ret = -EINTR;
	}
	rhashtable_walk_exit(&iter);
	return ret;
}

/**
 * twheel_track_release - have a rule that is removed give up its connections
 * @rule:	the rule. Nobody finds it any more
 *
 * Connections go to other rules that they match, or are not watched any more.
 *
 * Context: process; may sleep.
 * Return: 0, or -EINTR if the caller is killed.
 */
int twheel_track_release(const struct twheel_idle_rule *rule)
{
	int ret = 0;

	/* A walk may miss some if others are removed meanwhile. */
	while (!ret && atomic_read(&rule->users)) {
		ret = queue_orphans(true) ?:
		      twheel_watch_worker_flush(&twheel_rules_of_net(rule->net)->worker);
		/* Who changes the rule keeps it meanwhile, and may need this CPU for that. */
		if (!ret && atomic_read(&rule->users))
			schedule_timeout_killable(1);
	}
	return ret;
}

/**
 * twheel_track_release_all - have all rules that are removed give up their connections
 *
 * Without a wait until they have. It may miss some.
 *
 * Context: process; may sleep. Nobody finds the rules any more.
 */
void twheel_track_release_all(void)
{
	queue_orphans(false);
}

/* Makes the watch of a socket due, if it has one, and if it is @rule's, should that be given. */
static void recheck_conn(struct sock *sk, const struct twheel_idle_rule *rule)
{
	spinlock_t *lock = twheel_conn_lock_of(sk);
	struct twheel_watch *watch = NULL;

	spin_lock_bh(lock);
	rcu_read_lock();
	/* As long as there is a rule, there is the table. */
	if (!list_empty(&twheel_rules_of_net(sock_net(sk))->list))
		watch = twheel_watch_find(&twheel_conn_kind, sk);
	if (watch && (!rule || watch->rule == rule->index)) {
		/* Pairs with the worker's, which looks before it has the lock. */
		if (!rule)
			WRITE_ONCE(watch->flags, watch->flags | TWHEEL_CONN_REMATCH);
		twheel_conn_queue(twheel_conn_of(watch));
	}
	rcu_read_unlock();
	spin_unlock_bh(lock);
}

/**
 * twheel_track_recheck - have the worker look again at a connection, if it is watched
 * @sk:		its socket
 *
 * Context: process.
 */
void twheel_track_recheck(struct sock *sk)
{
	recheck_conn(sk, NULL);
}

/**
 * twheel_track_recheck_all - have the worker look at connections again, and wait until it has
 * @net:	their namespace
 * @rule:	their rule, which was changed; or NULL: all of the namespace's, as a rule was added
 *		before others
 *
 * Those that are missed are looked at a little later: there is no memory, or the caller is killed.
 *
 * Context: process; may sleep.
 */
void twheel_track_recheck_all(struct net *net, const struct twheel_idle_rule *rule)
{
	struct twheel_socks found = { };
	u32 bucket, i;
	int ret;

	for (bucket = 0; (ret = twheel_socks_next(net, &bucket, U32_MAX, &found)) > 0; bucket++) {
		for (i = 0; i < found.nr; i++)
			recheck_conn(found.socks[i], rule);
		twheel_socks_put(&found);
	}
	twheel_socks_free(&found);
	if (ret)
		twheel_rescan(net);
	else
		twheel_watch_worker_flush(&twheel_rules_of_net(net)->worker);
}

/**
 * twheel_track_get - there will be a rule
 *
 * Context: process; may sleep.
 * Return: 0, or an errno.
 */
int twheel_track_get(void)
{
	int ret = 0;

	mutex_lock(&kind_lock);
	if (!nr_users)
		ret = twheel_watch_kind_add(&twheel_conn_kind);
	if (!ret)
		nr_users++;
	mutex_unlock(&kind_lock);
	return ret;
}

/**
 * twheel_track_put - the opposite of twheel_track_get()
 *
 * Context: process; may sleep. An RCU grace period after the rule was removed.
 */
void twheel_track_put(void)
{
	mutex_lock(&kind_lock);
	if (!--nr_users)
		twheel_watch_kind_del(&twheel_conn_kind);
	mutex_unlock(&kind_lock);
}

/**
 * twheel_track_init - get ready
 *
 * Context: process.
 */
void __init twheel_track_init(void)
{
	int i;

	BUILD_BUG_ON(!IS_ENABLED(CONFIG_LOCKDEP) && sizeof(struct twheel_conn) > 64);
	BUILD_BUG_ON(offsetof(struct twheel_conn, rcu) <
		     offsetof(struct twheel_conn, timer.node.link));
	BUILD_BUG_ON(offsetofend(struct twheel_conn, rcu) >
		     offsetofend(struct twheel_conn, timer.node.link));
	for (i = 0; i < TWHEEL_CONN_LOCKS; i++)
		spin_lock_init(&twheel_conn_locks[i]);
	twheel_conn_kind.evaluate = twheel_enforce_evaluate;
	twheel_conn_kind.sk_closed = conn_sk_closed;
	twheel_conn_kind.sk_changed = conn_sk_changed;
}
