// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the watches of connections that rules apply to
 *
 * A new watch is *provisional*: its rule is a guess, because the change that reported the
 * connection may not be complete, or because the socket has not been accepted yet, and gets its uid
 * only then. It is queued at once, and the worker decides.
 *
 * There is one place where a watch ends, or closes its connection: decide() in enforce.c, called by
 * the worker. Everything else queues the watch: the timer's callback, the end of a connection, the
 * removal of a rule, and code that learns only now which process began the connection, and gives
 * the watch a rule for that process.
 *
 * Rules are found under RCU. A rule that is removed is first taken off the list; after a grace
 * period it can no longer be found there, and @users does not increase. Then watches that refer to
 * it are queued until there are none.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/inet_sock.h>

#include "changes.h"
#include "conn.h"
#include "enforce.h"
#include "lib/inject.h"
#include "match.h"
#include "ports.h"
#include "rules.h"
#include "socks.h"
#include "tcp/watch.h"
#include "tcp/watch_table.h"
#include "tcp/watch_worker.h"
#include "track.h"
#include "twheel.h"

/*
 * Guards @nr_users, and is held while @twheel_conn_kind is added and removed. Taken in process
 * context, outside of all other locks.
 */
static DEFINE_MUTEX(kind_lock);
/* Rules, and calls that add one. */
static unsigned int nr_users;

/*
 * New watches
 */

/**
 * struct sighting - a connection that was found, or that is reported
 * @sk:		its socket
 * @pid:	the process that began it, or has the socket and may have begun it; or NULL
 * @state:	its state, or the one that it is about to get
 * @begins:	it is reported as it begins
 */
struct sighting {
	struct sock		*sk;
	const struct pid	*pid;
	int			state;
	bool			begins;
};

/* Only now is it known that the process of @rule has the connection, and may have begun it. */
static void set_initiator(struct twheel_conn *conn, struct twheel_idle_rule *rule)
{
	struct twheel_watch *watch = &conn->watch;

	if (watch->rule != rule->index || watch->flags & TWHEEL_CONN_PROVISIONAL)
		twheel_conn_change_rule(conn, rule, TWHEEL_CONN_PROVISIONAL | TWHEEL_CONN_BY_PID);
	else
		/* Counted already. Pairs with the worker's READ_ONCE(), without the lock. */
		WRITE_ONCE(watch->flags, watch->flags | TWHEEL_CONN_BY_PID);
}

/* The connection has a watch, and @rule applies to it; NULL if none does, as far as is known. */
static void update_watch(const struct sighting *seen, struct twheel_watch *watch,
			 struct twheel_idle_rule *rule)
{
	struct twheel_conn *conn = twheel_conn_of(watch);

	/* Another process began one before, and this one begins another. */
	if (seen->begins && watch->flags & TWHEEL_CONN_BY_PID &&
	    twheel_conn_rule_of(conn)->pid != seen->pid)
		twheel_conn_start_over(conn);
	else
		twheel_conn_renew(conn);
	if (rule && seen->pid && rule->pid == seen->pid && !(watch->flags & TWHEEL_CONN_BY_PID))
		set_initiator(conn, rule);
	if (watch->flags & TWHEEL_CONN_PROVISIONAL)
		twheel_conn_queue(conn);
}

/*
 * Finds the rule to watch a connection for; returns NULL if there is none, or if the connection has
 * a watch already.
 */
static struct twheel_idle_rule *find_rule(const struct sighting *seen)
{
	struct net *net = sock_net(seen->sk);
	struct twheel_idle_rule *rule = NULL;
	struct twheel_watch *watch;

	if (twheel_is_connecting(seen->state))
		rule = seen->pid ? twheel_rules_match_pid(net, seen->pid) : NULL;
	else if (twheel_watchable(seen->state))
		rule = twheel_rules_match(seen->sk, seen->pid, NULL);
	else
		return NULL;
	/* The table exists as long as there is a rule. */
	watch = list_empty(&twheel_rules_of_net(net)->list) ? NULL :
		twheel_watch_find(&twheel_conn_kind, seen->sk);
	if (!watch)
		return rule;
	update_watch(seen, watch, rule);
	return NULL;
}

/* There is no memory for a watch. Returns -ENOMEM. */
static int track_failed(struct twheel_idle_rule *rule, const struct sock *sk)
{
	atomic64_inc(&rule->missed);
	twheel_scan_later(sock_net(sk), HZ);
	return -ENOMEM;
}

/* May a socket whose watch has just been inserted get another connection, and nobody note that? */
static bool may_become_another(const struct sock *sk)
{
	const bool may_change = twheel_sk_may_change(sk);
	const int state = inet_sk_state_load(sk);

	return state != TCP_SYN_RECV && (may_change || !twheel_watchable(state));
}

/* Inserts a watch into the table. Returns 0, or 1 if there is no need, or -ENOMEM. */
static int begin_tracking(struct twheel_conn *conn, const struct sighting *seen)
{
	struct twheel_idle_rule *rule = find_rule(seen);
	struct sock *sk = seen->sk;

	if (!rule)
		return 1;
	if (twheel_watch_insert(&twheel_conn_kind, &conn->watch, sk))
		return track_failed(rule, sk);
	/*
	 * If it has ended, is about to, or is only about to begin, the worker may find another
	 * connection. An end that is reported from now on is noted by note_end() in sk_state.c.
	 */
	if (may_become_another(sk))
		WRITE_ONCE(conn->watch.ended, TWHEEL_CONN_RENEWED);
	twheel_conn_attach(conn, rule, TWHEEL_CONN_PROVISIONAL |
			   (seen->pid && rule->pid == seen->pid ? TWHEEL_CONN_BY_PID : 0));
	twheel_conn_set_first_seen(conn, ktime_get_ns());
	twheel_watch_enqueue(twheel_conn_worker_of(sk), &conn->watch);
	return 0;
}

static int track(const struct sighting *seen)
{
	struct sock *sk = seen->sk;
	spinlock_t *lock = twheel_conn_lock_of(sk);
	struct twheel_idle_rule *rule;
	struct twheel_conn *conn = NULL;
	int ret = 0;

	if (!twheel_is_for_rules(sk))
		return 0;
	spin_lock_bh(lock);
	rcu_read_lock();
	rule = find_rule(seen);
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
		ret = begin_tracking(conn, seen);
	} else {
		rule = find_rule(seen);
		ret = rule ? track_failed(rule, sk) : 0;
	}
	rcu_read_unlock();
	spin_unlock_bh(lock);
	if (ret)
		kfree(conn);
	return min(ret, 0);
}

/**
 * twheel_track - watch a connection if a rule applies to it
 * @sk:		its socket
 * @pid:	the process that has the socket, or NULL. If nothing else is known, it began the
 *		connection
 * @state:	its state, or the one that it is about to get
 *
 * It may be watched already. Without memory, another scan finds it in a second.
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int twheel_track(struct sock *sk, const struct pid *pid, int state)
{
	const struct sighting seen = { .sk = sk, .pid = pid, .state = state };

	return track(&seen);
}

/**
 * twheel_track_connect - watch a connection that is about to begin, if there is a rule for it
 * @sk:		its socket
 * @pid:	the process that begins it, or NULL if none does
 *
 * Context: as for twheel_track().
 */
void twheel_track_connect(struct sock *sk, const struct pid *pid)
{
	const struct sighting seen = {
		.sk = sk, .pid = pid, .state = TCP_SYN_SENT, .begins = true,
	};

	track(&seen);
}

static void handle_sk_closed(struct twheel_watch *stale, struct sock *sk)
{
	spinlock_t *lock = twheel_conn_lock_of(sk);
	struct twheel_watch *watch;

	spin_lock_bh(lock);
	/* It may be another watch by now. */
	watch = twheel_watch_find(&twheel_conn_kind, sk);
	if (watch)
		twheel_conn_queue(twheel_conn_of(watch));
	spin_unlock_bh(lock);
}

/*
 * All watches
 */

/* Watches visited before others get their turn. */
#define BATCH		64

/* Queues a watch if its rule is being removed. Out of line, for a test that counts it. */
static noinline void queue_orphan(struct twheel_watch *watch)
{
	/* Pairs with the WRITE_ONCE() in twheel_watch_remove(). */
	struct sock *sk = READ_ONCE(watch->sk);
	struct twheel_idle_rule *rule;
	spinlock_t *lock;

	if (!sk)
		return;
	lock = twheel_conn_lock_of(sk);
	spin_lock_bh(lock);
	rule = watch->rule ? twheel_conn_rule_of(twheel_conn_of(watch)) : NULL;
	/* Pairs with the WRITE_ONCE() in unpublish_rule(). */
	if (rule && READ_ONCE(rule->dead))
		twheel_conn_queue(twheel_conn_of(watch));
	spin_unlock_bh(lock);
}

/* Queues those of a batch of watches that are orphans. Returns whether there are more. */
static bool queue_some_orphans(struct rhashtable_iter *iter)
{
	struct twheel_watch *watch = NULL;
	int i;

	rhashtable_walk_start(iter);
	for (i = 0; i < BATCH; i++) {
		watch = rhashtable_walk_next(iter);
		if (!watch)
			break;
		/* On an error the table was resized: the walk goes on with the new one. */
		if (!IS_ERR(watch))
			queue_orphan(watch);
	}
	rhashtable_walk_stop(iter);
	return watch;
}

/* Queues watches whose rules are being removed. Returns -EINTR if a @killable caller is killed. */
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
 * twheel_track_release - make a rule that is being removed give up its connections
 * @rule:	the rule, which can no longer be found
 *
 * Its connections go to other rules that they match, or are no longer watched.
 *
 * Context: process; may sleep.
 * Return: 0, or -EINTR if the caller is killed.
 */
int twheel_track_release(const struct twheel_idle_rule *rule)
{
	int ret = 0;

	/* A walk may miss some if others are removed concurrently. */
	while (!ret && atomic_read(&rule->users)) {
		ret = queue_orphans(true) ?:
		      twheel_watch_worker_flush(&twheel_rules_of_net(rule->net)->worker);
		/*
		 * A task that changes the rule keeps it meanwhile, and may need this CPU for that.
		 */
		if (!ret && atomic_read(&rule->users))
			schedule_timeout_killable(1);
	}
	return ret;
}

/**
 * twheel_track_release_all - make all rules that are being removed give up their connections
 *
 * Does not wait until they have, and may miss some.
 *
 * Context: process; may sleep. The rules can no longer be found.
 */
void twheel_track_release_all(void)
{
	queue_orphans(false);
}

/*
 * Queues the watch of a socket, if it has one, and if it is @rule's, unless that is NULL. Out of
 * line, for a test that counts this.
 */
static noinline void recheck_conn(struct sock *sk, const struct twheel_idle_rule *rule)
{
	spinlock_t *lock = twheel_conn_lock_of(sk);
	struct twheel_watch *watch = NULL;

	spin_lock_bh(lock);
	rcu_read_lock();
	/* The table exists as long as there is a rule. */
	if (!list_empty(&twheel_rules_of_net(sock_net(sk))->list))
		watch = twheel_watch_find(&twheel_conn_kind, sk);
	if (watch && (!rule || watch->rule == rule->index)) {
		/* Pairs with the worker's READ_ONCE(), which does not hold the lock. */
		if (!rule)
			WRITE_ONCE(watch->flags, watch->flags | TWHEEL_CONN_REMATCH);
		twheel_conn_queue(twheel_conn_of(watch));
	}
	rcu_read_unlock();
	spin_unlock_bh(lock);
}

/**
 * twheel_track_recheck - queue a connection for evaluation, if it is watched
 * @sk:		its socket
 *
 * Context: process.
 */
void twheel_track_recheck(struct sock *sk)
{
	recheck_conn(sk, NULL);
}

/* Evaluates these connections again, and drops the references. Returns 0, or -EINTR. */
static int recheck_found(struct net *net, const struct twheel_idle_rule *rule,
			 struct twheel_socks *found)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < found->nr && !ret; i++) {
		recheck_conn(found->socks[i], rule);
		if (i % BATCH == BATCH - 1)
			ret = twheel_socks_pause(net);
	}
	twheel_socks_put(found);
	return ret;
}

/**
 * twheel_track_recheck_all - evaluate connections again, and wait until that is done
 * @net:	their namespace
 * @rule:	their rule, which was changed; or NULL for all connections of the namespace, as a
 *		rule was added before others
 *
 * Those that are missed, for want of memory or because the caller is killed, are evaluated a little
 * later.
 *
 * Context: process; may sleep.
 */
void twheel_track_recheck_all(struct net *net, const struct twheel_idle_rule *rule)
{
	struct twheel_socks found = { };
	u32 bucket = 0;
	int ret;

	while ((ret = twheel_socks_next(net, &bucket, U32_MAX, &found)) > 0) {
		ret = recheck_found(net, rule, &found);
		if (ret)
			break;
		bucket++;
	}
	twheel_socks_free(&found);
	if (ret)
		twheel_recheck_later(net);
	else
		twheel_watch_worker_flush(&twheel_rules_of_net(net)->worker);
}

/**
 * twheel_track_get - enable the tracking of connections, for a rule that is to be added
 *
 * Context: process; may sleep.
 * Return: 0, or an errno.
 */
int twheel_track_get(void)
{
	int ret = 0;

	if (mutex_lock_killable(&kind_lock))
		return -EINTR;
	if (!nr_users)
		ret = twheel_watch_kind_add(&twheel_conn_kind);
	if (!ret)
		nr_users++;
	mutex_unlock(&kind_lock);
	return ret;
}

/**
 * twheel_track_put - undo twheel_track_get()
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
 * twheel_track_init - set up the locks and callbacks
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
	twheel_conn_kind.sk_closed = handle_sk_closed;
	twheel_conn_kind.sk_changed = twheel_changes_add;
	twheel_conn_kind.listener_gone = twheel_ports_listener_gone;
}
