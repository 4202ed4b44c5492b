// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: decides what happens to a connection that a rule applies to
 *
 * The callback of its watch's timer compares the time of the last activity with the limits, in
 * softirq context, and usually re-arms the timer for the time that is left. If its namespace's
 * share of the softirqs (share.h) is used up, the worker does that, too. Everything else is decided
 * by decide(), called by the worker. The two may race:
 *
 *	softirq				worker
 *	the timer leaves the wheel
 *					lock; the watch ends; unlock
 *	lock; no rule: return
 *
 * The memory of the watch remains valid until softirqs that were running are done, see
 * twheel_enforce_evaluate().
 */
#include <linux/bitops.h>
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/inet_sock.h>

#include "conn.h"
#include "core/share.h"
#include "enforce.h"
#include "match.h"
#include "rules.h"
#include "tcp/last_activity.h"
#include "tcp/watch.h"
#include "tcp/watch_table.h"
#include "tcp/watch_worker.h"
#include "trace.h"
#include "twheel.h"

/* How long to wait before checking again whether a connection has been established. */
#define CONNECT_NS	NSEC_PER_SEC

/* The first entry of struct twheel_idle_rule::late is for less than 2^LATE_SHIFT nanoseconds. */
#define LATE_SHIFT	20

/**
 * enum decision - what happens to a watch
 * @GO_ON:	it goes on
 * @DROP:	it ends
 * @CLOSE:	it ends, and so does the connection
 */
enum decision {
	GO_ON,
	DROP,
	CLOSE,
};

/**
 * struct due - a connection that is due
 * @deadline:	since when, in nanoseconds
 * @reason:	because of which limit
 */
struct due {
	u64			deadline;
	enum twheel_kick_reason	reason;
};

/*
 * Limits
 */

/* A connection's own share of its rule's spread. */
static u64 conn_spread(const struct twheel_conn *conn, const struct twheel_idle_rule *rule)
{
	const u64 spread = twheel_limits_of(rule)->spread;

	if (!spread)
		return 0;
	return mul_u64_u32_shr(spread, jhash_2words((unsigned long)conn->watch.sk,
						    conn->timer.node.generation, rule->seed), 32);
}

/* When to close a connection if it stays idle, in nanoseconds. */
static u64 idle_deadline(const struct twheel_conn *conn, const struct twheel_idle_rule *rule,
			 u64 now)
{
	const struct twheel_limits *limits = twheel_limits_of(rule);
	const struct sock *sk = conn->watch.sk;
	u64 active;

	if (!limits->idle)
		return U64_MAX;
	active = twheel_last_activity(sk, limits->flags, now);
	/* Until then, at least, there was something to wait for. */
	if (conn->watch.flags & TWHEEL_CONN_PEER_WAIT)
		active = max(active, twheel_last_ack(sk, now));
	return active + min_t(u64, limits->idle + conn_spread(conn, rule), TWHEEL_TIME_MAX);
}

/* When to close it, idle or not. */
static u64 lifetime_end(const struct twheel_conn *conn, const struct twheel_idle_rule *rule)
{
	const u64 lifetime = twheel_limits_of(rule)->lifetime;

	if (!lifetime)
		return U64_MAX;
	return twheel_conn_first_seen(conn) +
	       min_t(u64, lifetime + conn_spread(conn, rule), TWHEEL_TIME_MAX);
}

/* When to close a connection if nothing happens, in nanoseconds. */
static u64 close_deadline(const struct twheel_conn *conn, const struct twheel_idle_rule *rule,
			  u64 now)
{
	return min(idle_deadline(conn, rule, now), lifetime_end(conn, rule));
}

/*
 * When to close a connection that waits for its peer to acknowledge what is in its send queue, if
 * nothing happens; 0 if it does not wait. Exact while its socket is locked.
 */
static u64 stalled_deadline(const struct twheel_conn *conn, const struct twheel_idle_rule *rule,
			    u64 now)
{
	const u64 stalled = twheel_limits_of(rule)->stalled;
	const struct sock *sk = conn->watch.sk;
	u32 unacked;

	/* With the shortest time it does not even wait for a window probe. */
	if (stalled <= 1 || (!twheel_unacked_queue(sk, &unacked) && !unacked))
		return 0;
	return twheel_owed_since(sk, now) + min_t(u64, stalled, TWHEEL_TIME_MAX);
}

/* When to close a connection if nothing happens, whether it waits for its peer or not. */
static u64 final_deadline(const struct twheel_conn *conn, const struct twheel_idle_rule *rule,
			  u64 now)
{
	return max(close_deadline(conn, rule, now),
		   min(stalled_deadline(conn, rule, now), lifetime_end(conn, rule)));
}

/*
 * A token bucket that holds a tenth of a second's worth. Connections that find it empty queue up:
 * each reserves a place, which is a time, and takes a token when that time has come. Returns a time
 * up to @now if the connection has got its token, and may be closed; else the time at which to ask
 * again, with @queued set.
 *
 * Places are given back, so that two connections may have the same one: if there is no token for
 * it, a connection goes to the end of the queue.
 */
static u64 take_token(struct twheel_idle_rule *rule, u64 now, bool queued)
{
	const u64 rate = twheel_limits_of(rule)->rate, burst = max_t(u64, rate / 10, 1) - 1;
	const u64 earliest = now - min(now, div64_u64(burst * NSEC_PER_SEC, rate));
	u64 when = now, token;

	spin_lock(&rule->lock);
	if (!queued) {
		when = max(rule->next_token, earliest);
		rule->next_token = when + twheel_rule_token_interval(rule);
	}
	token = max(rule->token, earliest);
	if (when <= now && token <= now) {
		rule->token = token + twheel_rule_token_interval(rule);
	} else if (when <= now) {
		when = max(rule->next_token, token);
		rule->next_token = when + twheel_rule_token_interval(rule);
	}
	spin_unlock(&rule->lock);
	return when;
}

/*
 * Decisions. The caller holds the connection's lock, which twheel_conn_lock_of() returns, and the
 * RCU read lock. "The socket is locked", in contrast, means by lock_sock().
 */

static void arm_conn(struct twheel_conn *conn, u64 expires)
{
	twheel_rearm(&conn->timer, expires);
}

static void set_flag(struct twheel_conn *conn, u16 flag, bool on)
{
	struct twheel_watch *watch = &conn->watch;

	/* Pairs with the READ_ONCE() in process_watch(), which does not hold the lock. */
	WRITE_ONCE(watch->flags, on ? watch->flags | flag : watch->flags & ~flag);
}

static const struct pid *get_initiator(const struct twheel_conn *conn,
				       const struct twheel_idle_rule *rule)
{
	return conn->watch.flags & TWHEEL_CONN_BY_PID ? rule->pid : NULL;
}

/*
 * The connection has ended, or is only about to begin. If that is the next one, it is not known yet
 * who begins it: it is tracked by itself.
 */
static enum decision decide_closed(struct twheel_conn *conn, u64 now)
{
	struct twheel_idle_rule *rule = twheel_conn_rule_of(conn);

	if (!twheel_is_connecting(inet_sk_state_load(conn->watch.sk)) ||
	    !(conn->watch.flags & TWHEEL_CONN_BY_PID) ||
	    twheel_watch_has_ended(&twheel_conn_kind, &conn->watch))
		return DROP;
	rule = twheel_rules_match_pid(sock_net(conn->watch.sk), rule->pid);
	if (!rule)
		return DROP;
	twheel_conn_change_rule(conn, rule, TWHEEL_CONN_PROVISIONAL);
	/* It may fail, and the next one begin at once. Pairs with note_end() in sk_state.c. */
	WRITE_ONCE(conn->watch.ended, TWHEEL_CONN_RENEWED);
	arm_conn(conn, now + CONNECT_NS);
	return GO_ON;
}

/*
 * Re-arms the timer for another attempt at a busy socket. While user context owns the socket, the
 * delay grows with the time that it does; while the socket has not been accepted, the delay is the
 * time that it has been waiting.
 */
static void arm_retry(struct twheel_conn *conn, u64 now)
{
	const u64 first = twheel_conn_first_seen(conn);

	if (twheel_watch_accepted(conn->watch.sk))
		arm_conn(conn, now + twheel_watch_back_off(&conn->watch));
	else
		arm_conn(conn, now + clamp_t(u64, now - min(first, now), TICK_NSEC, NSEC_PER_SEC));
}

/*
 * Does a connection belong to the kernel itself, as those of NVMe over TCP, NFS and iSCSI do?
 * Then nobody may close it: freeing memory, or the root file system, may depend on it. Such a
 * socket has no file; or was created by the kernel, even if it has a file; or notifies the kernel
 * of its end; or allocates memory otherwise than for programs, such as one that nbd got from a
 * program. The socket is locked.
 */
static bool is_kernel_socket(const struct sock *sk)
{
	const struct socket *sock = sk->sk_socket;

	/* Pairs with sock_alloc_file(). */
	if (sock && !READ_ONCE(sock->file))
		return true;
	/* A bit-field: this bit never changes, but its neighbours do. */
	return data_race((bool)sk->sk_kern_sock) ||
	       /* Pairs with whoever in the kernel replaces it, under sk_callback_lock. */
	       READ_ONCE(sk->sk_state_change) != twheel_rules_state_change ||
	       /* Likewise; some do so whenever they send. */
	       READ_ONCE(sk->sk_allocation) != GFP_KERNEL;
}

/* Attaches a connection to the rule that applies to it. */
static enum decision assign_rule(struct twheel_conn *conn, struct twheel_idle_rule *rule, bool busy,
				 u64 now)
{
	twheel_conn_change_rule(conn, rule, busy ? TWHEEL_CONN_PROVISIONAL : 0);
	if (busy) {
		arm_retry(conn, now);
		return GO_ON;
	}
	if (final_deadline(conn, rule, now) <= now)
		atomic64_inc(&rule->overdue);
	arm_conn(conn, close_deadline(conn, rule, now));
	return GO_ON;
}

/*
 * The connection has been idle for long enough, but waits for its peer, until @deadline. Checks
 * again then, or when it may have been idle for as long once more.
 */
static void spare_waiting(struct twheel_conn *conn, struct twheel_idle_rule *rule, u64 deadline,
			  u64 now)
{
	atomic64_inc(&rule->waited);
	twheel_conn_return_token(conn, rule);
	set_flag(conn, TWHEEL_CONN_EXPIRED | TWHEEL_CONN_COUNTED | TWHEEL_CONN_RECHECK, false);
	set_flag(conn, TWHEEL_CONN_PEER_WAIT, true);
	arm_conn(conn, min(deadline, now + twheel_limits_of(rule)->idle));
}

/*
 * The connection was active, or had another reason to stay, until a moment ago: it may stay until
 * @deadline.
 */
static void spare_active(struct twheel_conn *conn, struct twheel_idle_rule *rule, u64 deadline,
			 bool peer_wait)
{
	if (conn->watch.flags & TWHEEL_CONN_EXPIRED)
		atomic64_inc(&rule->spared);
	twheel_conn_return_token(conn, rule);
	set_flag(conn, TWHEEL_CONN_EXPIRED | TWHEEL_CONN_COUNTED | TWHEEL_CONN_RECHECK, false);
	/* While this is set, the last acknowledgment counts as activity: see idle_deadline(). */
	if (!peer_wait)
		set_flag(conn, TWHEEL_CONN_PEER_WAIT, false);
	arm_conn(conn, deadline);
}

/* Has a dry run counted the connection, with no activity since? */
static bool is_counted(const struct twheel_conn *conn, const struct twheel_idle_rule *rule)
{
	return conn->watch.flags & TWHEEL_CONN_COUNTED &&
	       twheel_limits_of(rule)->flags & TWHEEL_RULE_DRY_RUN;
}

/*
 * Dry run: the connection has been counted, as there was no activity for an idle timeout. If this
 * is a moment too early to see new activity, or if the stamp of that is late because the kernel's
 * jiffies are, the stamp lies in the latter half of the timeout: the next check takes anything
 * younger than that for new. This goes on for ever, but not more often than once per half of
 * TWHEEL_IDLE_MIN.
 */
static void wait_for_activity(struct twheel_conn *conn, const struct twheel_idle_rule *rule,
			      u64 now)
{
	const u64 idle = twheel_limits_of(rule)->idle;

	set_flag(conn, TWHEEL_CONN_COUNTED, true);
	arm_conn(conn, idle ? now + idle / 2 : U64_MAX);
}

/* Counts a connection that is closed, or would be if this were no dry run, and how late that is. */
static void count_closed(struct twheel_conn *conn, struct twheel_idle_rule *rule,
			 const struct twheel_limits *limits, const struct due *due, u64 now)
{
	const u64 late = now - due->deadline;
	const u32 i = min_t(u32, fls64(late >> LATE_SHIFT), TWHEEL_RULE_LATE - 1);
	/* What was due before says nothing. Pairs with restart_lateness() in admin.c. */
	const bool overdue = due->deadline < READ_ONCE(rule->late_from);

	atomic64_inc(limits->flags & TWHEEL_RULE_DRY_RUN ? &rule->would_close : &rule->closed);
	atomic64_inc(overdue ? &rule->untimed : &rule->late[i]);
	trace_twheel_kick(conn->watch.sk, rule->id, limits, due->reason, overdue, now, late);
}

/*
 * The rule's action may have changed since the connection got the rule. The worker reads the action
 * before it calls evaluate(), so it has to evaluate the watch once more: then this returns
 * true.
 */
static bool update_action(struct twheel_conn *conn, const struct twheel_idle_rule *rule)
{
	const u16 action = twheel_limits_of(rule)->flags & TWHEEL_WATCH_ACTIONS;
	const u16 flags = conn->watch.flags;

	if ((flags & TWHEEL_WATCH_ACTIONS) == action)
		return false;
	/* Pairs with the READ_ONCE() in process_watch(). */
	WRITE_ONCE(conn->watch.flags, (flags & ~TWHEEL_WATCH_ACTIONS) | action);
	return true;
}

/* The deadline has passed, and the socket is locked. */
static enum decision decide_expired(struct twheel_conn *conn, struct twheel_idle_rule *rule,
				    const struct due *due, u64 now)
{
	const bool queued = conn->watch.flags & TWHEEL_CONN_TOKEN_WAIT;
	/* Once: they may be replaced meanwhile, and what is counted is what is done. */
	const struct twheel_limits *limits = twheel_limits_of(rule);
	u64 when;

	if (is_counted(conn, rule)) {
		wait_for_activity(conn, rule, now);
		return GO_ON;
	}
	if (update_action(conn, rule)) {
		arm_conn(conn, now);
		return GO_ON;
	}
	when = take_token(rule, now, queued);
	if (when > now) {
		if (!queued)
			atomic64_inc(&rule->delayed);
		set_flag(conn, TWHEEL_CONN_TOKEN_WAIT, true);
		arm_conn(conn, when);
		return GO_ON;
	}
	/* Its place in the queue is used up. */
	set_flag(conn, TWHEEL_CONN_TOKEN_WAIT, false);
	count_closed(conn, rule, limits, due, now);
	if (!(limits->flags & TWHEEL_RULE_DRY_RUN))
		return CLOSE;
	wait_for_activity(conn, rule, now);
	return GO_ON;
}

/*
 * A connection's timer has expired. Re-arms it if there is nothing to decide, because there was
 * activity, or none since the connection was counted; otherwise returns false.
 */
static bool try_rearm(struct twheel_conn *conn, struct twheel_idle_rule *rule, u64 now)
{
	const u64 deadline = close_deadline(conn, rule, now);

	if (deadline > now) {
		if (conn->watch.flags & TWHEEL_CONN_TOKEN_WAIT)
			atomic64_inc(&rule->spared);
		twheel_conn_return_token(conn, rule);
		set_flag(conn, TWHEEL_CONN_COUNTED, false);
		arm_conn(conn, deadline);
		return true;
	}
	if (is_counted(conn, rule) &&
	    deadline <= conn->timer.node.deadline + conn_spread(conn, rule)) {
		/* No activity since an idle timeout before the deadline. */
		wait_for_activity(conn, rule, now);
		return true;
	}
	set_flag(conn, TWHEEL_CONN_COUNTED, false);
	set_flag(conn, TWHEEL_CONN_EXPIRED, true);
	return false;
}

/* Does what the softirq has left to the worker. Returns whether there is nothing to decide. */
static bool handle_postponed(struct twheel_conn *conn, u64 now)
{
	struct twheel_idle_rule *rule = twheel_conn_rule_of(conn);

	if (!(conn->watch.flags & TWHEEL_CONN_POSTPONED))
		return false;
	set_flag(conn, TWHEEL_CONN_POSTPONED, false);
	/* Pairs with the WRITE_ONCE() in unpublish_rule(). */
	if (READ_ONCE(rule->dead) || !try_rearm(conn, rule, now))
		return false;
	if (!(conn->watch.flags & TWHEEL_CONN_REMATCH))
		return true;
	/* It remains to decide which rule applies. The watch may end. */
	twheel_cancel(&conn->timer);
	return false;
}

/* The socket is locked: whatever connection it has is the watch's, and its age counts from @now. */
static void restart_conn(struct twheel_conn *conn, u64 now)
{
	/* Pairs with note_end() in sk_state.c, which runs before or after this. */
	WRITE_ONCE(conn->watch.ended, 0);
	twheel_conn_set_first_seen(conn, now);
}

/* The rule still applies, and the socket is locked. */
static enum decision decide_open(struct twheel_conn *conn, struct twheel_idle_rule *rule,
				 u64 deadline, u64 now)
{
	const u64 stalled_until = stalled_deadline(conn, rule, now);
	const u64 lifetime = lifetime_end(conn, rule);
	struct due due;

	if (deadline > now) {
		spare_active(conn, rule, deadline, stalled_until);
		return GO_ON;
	}
	deadline = max(deadline, min(stalled_until, lifetime));
	if (deadline > now && !is_counted(conn, rule)) {
		spare_waiting(conn, rule, deadline, now);
		return GO_ON;
	}
	due.deadline = min(deadline, now);
	due.reason = deadline == lifetime ? TWHEEL_KICK_LIFETIME :
		     deadline == stalled_until ? TWHEEL_KICK_STALLED : TWHEEL_KICK_IDLE;
	set_flag(conn, TWHEEL_CONN_EXPIRED | TWHEEL_CONN_RECHECK, false);
	return decide_expired(conn, rule, &due, now);
}

static enum decision decide(struct twheel_conn *conn, enum twheel_sk_status status)
{
	const bool busy = status == TWHEEL_SK_BUSY;
	struct twheel_idle_rule *rule = twheel_conn_rule_of(conn), *match;
	const u64 now = ktime_get_ns();
	bool provisional, dead;
	u64 deadline;

	if (status == TWHEEL_SK_CLOSED) {
		if (!twheel_watchable(inet_sk_state_load(conn->watch.sk)))
			return decide_closed(conn, now);
		/* But there is another connection. */
		twheel_conn_renew(conn);
	}
	if (!busy && twheel_conn_is_renewed(conn))
		restart_conn(conn, now);
	if (handle_postponed(conn, now))
		return GO_ON;
	provisional = conn->watch.flags & TWHEEL_CONN_PROVISIONAL;
	if (!busy && is_kernel_socket(conn->watch.sk))
		return DROP;
	/* Pairs with the WRITE_ONCE() in unpublish_rule(). */
	dead = READ_ONCE(rule->dead);
	if (busy && provisional && !dead) {
		/*
		 * It may be connecting, and not have its ports, or may not have been accepted yet.
		 */
		arm_retry(conn, now);
		return GO_ON;
	}
	deadline = close_deadline(conn, rule, now);
	if (provisional || deadline <= now || dead || conn->watch.flags & TWHEEL_CONN_REMATCH) {
		match = twheel_rules_match(conn->watch.sk, get_initiator(conn, rule),
					   provisional ? NULL : rule);
		if (!match)
			return DROP;
		if (provisional || match != rule)
			return assign_rule(conn, match, busy, now);
		set_flag(conn, TWHEEL_CONN_REMATCH, false);
	}
	if (!busy)
		return decide_open(conn, rule, deadline, now);
	set_flag(conn, TWHEEL_CONN_RECHECK, true);
	arm_retry(conn, now);
	return GO_ON;
}

/*
 * Entry points: the worker, the timer, and listings
 */

/**
 * twheel_enforce_evaluate - evaluate the watch of a connection
 * @watch:	the watch
 * @status:	in what state the worker has found the socket
 *
 * The watch's callback may still be running in a softirq. An RCU grace period waits for that, as
 * softirqs are disabled then.
 *
 * Context: process; see @evaluate of struct twheel_watch_kind.
 * Return: whether the connection is to be closed.
 */
bool twheel_enforce_evaluate(struct twheel_watch *watch, enum twheel_sk_status status)
{
	struct twheel_conn *conn = twheel_conn_of(watch);
	struct sock *sk = watch->sk;
	spinlock_t *lock = twheel_conn_lock_of(sk);
	enum decision decision;

	spin_lock_bh(lock);
	rcu_read_lock();
	twheel_watch_put_back(twheel_conn_worker_of(sk), watch);
	if (status != TWHEEL_SK_BUSY)
		twheel_watch_set_busy_count(watch, 0);
	decision = decide(conn, status);
	if (decision != GO_ON) {
		twheel_watch_remove(&twheel_conn_kind, watch);
		twheel_conn_detach(conn, twheel_conn_rule_of(conn));
	}
	rcu_read_unlock();
	spin_unlock_bh(lock);
	if (decision != GO_ON) {
		kfree_rcu(conn, rcu);
		/* Not the last reference: the worker holds one, too. */
		sock_put(sk);
	}
	return decision == CLOSE;
}

/*
 * Takes from the share of a connection's namespace, for a timer that may have to be re-armed.
 * Returns whether any share was left.
 */
static bool take_share(const struct sock *sk, u64 now)
{
	struct twheel_rules *net_rules = twheel_rules_of_net(sock_net(sk));
	bool has_share;

	spin_lock(&net_rules->share_lock);
	has_share = twheel_share_left(&net_rules->share, now);
	if (has_share)
		twheel_share_take(&net_rules->share, now);
	spin_unlock(&net_rules->share_lock);
	return has_share;
}

/* The timer has expired. Returns whether the worker has to evaluate the watch. */
static bool needs_worker(struct twheel_conn *conn, u64 now)
{
	struct twheel_idle_rule *rule = twheel_conn_rule_of(conn);
	const u16 flags = conn->watch.flags;

	/* One that was counted waits for activity, and no longer for its peer. */
	if (flags & (TWHEEL_CONN_PROVISIONAL | TWHEEL_CONN_RECHECK) ||
	    (flags & TWHEEL_CONN_PEER_WAIT && !is_counted(conn, rule))) {
		set_flag(conn, TWHEEL_CONN_COUNTED, false);
		return true;
	}
	if (take_share(conn->watch.sk, now))
		return !try_rearm(conn, rule, now);
	set_flag(conn, TWHEEL_CONN_POSTPONED, true);
	return true;
}

/**
 * twheel_enforce_expire - handle the expiry of a connection's timer
 * @timer:	the timer of its watch
 *
 * Context: softirq.
 */
void twheel_enforce_expire(struct twheel_timer *timer)
{
	struct twheel_conn *conn = container_of(timer, struct twheel_conn, timer);
	/* Pairs with the WRITE_ONCE() in twheel_watch_remove(). */
	struct sock *sk = READ_ONCE(conn->watch.sk);
	spinlock_t *lock = twheel_conn_lock_of(sk);

	if (!sk)
		return;
	spin_lock(lock);
	rcu_read_lock();
	/*
	 * Whatever came first has ended the watch, queued it, or re-armed it. @state pairs with the
	 * WRITE_ONCE()s of the worker.
	 */
	if (conn->watch.rule && READ_ONCE(conn->watch.state) == TWHEEL_WATCH_IDLE &&
	    !twheel_pending(timer) && needs_worker(conn, ktime_get_ns()))
		twheel_watch_enqueue(twheel_conn_worker_of(sk), &conn->watch);
	rcu_read_unlock();
	spin_unlock(lock);
}

/* Returns a watch's rule if it has this id, else NULL. The caller holds the connection's lock. */
static struct twheel_idle_rule *match_rule_id(struct twheel_watch *watch, u32 id)
{
	struct twheel_idle_rule *rule;

	if (!watch || watch->flags & TWHEEL_CONN_PROVISIONAL)
		return NULL;
	rule = twheel_conn_rule_of(twheel_conn_of(watch));
	return rule->id == id ? rule : NULL;
}

static void describe_conn(const struct twheel_conn *conn, const struct twheel_idle_rule *rule,
			  u64 now, struct twheel_connection *connection)
{
	const u64 deadline = final_deadline(conn, rule, now);
	const struct sock *sk = conn->watch.sk;

	connection->remaining = deadline - min(deadline, now);
	connection->idle = now - twheel_last_activity(sk, twheel_limits_of(rule)->flags, now);
	connection->unsent = twheel_unacked_queue(sk, &connection->unacked);
	if (is_counted(conn, rule))
		connection->flags |= TWHEEL_CONNECTION_COUNTED;
}

/**
 * twheel_enforce_describe - describe a connection that a rule applies to
 * @sk:		the socket
 * @id:		the rule's id
 * @connection:	its @idle and @remaining, and what is in its send queue, are filled in
 *
 * Context: process.
 * Return: true if so; false if the rule does not apply to the connection.
 */
bool twheel_enforce_describe(const struct sock *sk, u32 id, struct twheel_connection *connection)
{
	const u64 now = ktime_get_ns();
	spinlock_t *lock = twheel_conn_lock_of(sk);
	struct twheel_idle_rule *rule = NULL;
	struct twheel_watch *watch;

	spin_lock_bh(lock);
	rcu_read_lock();
	/* The table exists as long as there is a rule. */
	if (twheel_rules_from(sock_net(sk), id)) {
		watch = twheel_watch_find(&twheel_conn_kind, sk);
		rule = match_rule_id(watch, id);
	}
	if (rule)
		describe_conn(twheel_conn_of(watch), rule, now, connection);
	rcu_read_unlock();
	spin_unlock_bh(lock);
	return rule;
}
