// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: what becomes of a connection that a rule applies to
 *
 * The callback of its watch's timer compares the time of the last activity with the limits, in
 * softirq context, and arms the timer for what is left, as a rule. If nothing is left of its
 * namespace's share of the softirqs (share.h), the worker does that, too. Everything else is
 * decide()'s, called by the worker. The two may meet:
 *
 *	softirq				worker
 *	the timer leaves the wheel
 *					lock; the watch ends; unlock
 *	lock; no rule: return
 *
 * The memory of the watch is there until softirqs that were running are over, see
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

/* When to look again whether a connection has come about. */
#define CONNECT_NS	NSEC_PER_SEC

/* struct twheel_idle_rule::late begins with less than so many nanoseconds, as a power of two. */
#define LATE_SHIFT	20

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

/*
 * Limits
 */

/* A connection's own share of its rule's spread. */
static u64 spread_of(const struct twheel_conn *kick, const struct twheel_idle_rule *rule)
{
	const u64 spread = twheel_limits_of(rule)->spread;

	if (!spread)
		return 0;
	return mul_u64_u32_shr(spread, jhash_2words((unsigned long)kick->watch.sk,
						    kick->timer.node.generation, rule->seed), 32);
}

/* When a connection is to be closed if it stays idle, in nanoseconds. */
static u64 idle_limit_of(const struct twheel_conn *kick, const struct twheel_idle_rule *rule,
			 u64 now)
{
	const struct twheel_limits *limits = twheel_limits_of(rule);
	const struct sock *sk = kick->watch.sk;
	u64 active;

	if (!limits->idle)
		return U64_MAX;
	active = twheel_last_activity(sk, limits->flags, now);
	/* What it has waited for was there until then, at least. */
	if (kick->watch.flags & TWHEEL_CONN_WAITED)
		active = max(active, twheel_last_ack(sk, now));
	return active + min_t(u64, limits->idle + spread_of(kick, rule), TWHEEL_TIME_MAX);
}

/* When it is to be closed, idle or not. */
static u64 life_limit_of(const struct twheel_conn *kick, const struct twheel_idle_rule *rule)
{
	const u64 lifetime = twheel_limits_of(rule)->lifetime;

	if (!lifetime)
		return U64_MAX;
	return twheel_conn_first_seen(kick) +
	       min_t(u64, lifetime + spread_of(kick, rule), TWHEEL_TIME_MAX);
}

/* When a connection is to be closed if nothing happens, in nanoseconds. */
static u64 limit_of(const struct twheel_conn *kick, const struct twheel_idle_rule *rule, u64 now)
{
	return min(idle_limit_of(kick, rule, now), life_limit_of(kick, rule));
}

/*
 * When to close a connection that waits for its peer to acknowledge what is in its send queue, if
 * nothing happens; 0 if it does not wait. This is exact while its socket is locked.
 */
static u64 stalled_limit_of(const struct twheel_conn *kick, const struct twheel_idle_rule *rule,
			    u64 now)
{
	const struct sock *sk = kick->watch.sk;
	u32 unacked;

	if (!twheel_unacked_queue(sk, &unacked) && !unacked)
		return 0;
	return twheel_last_ack(sk, now) +
	       min_t(u64, twheel_limits_of(rule)->stalled, TWHEEL_TIME_MAX);
}

/*
 * A token bucket that holds a tenth of a second's worth. Those that find it empty queue up: each
 * has a place, which is a time, and takes a token when that has come. Returns a time up to @now if
 * the connection has its token, and may be closed; else when to ask again, as one that @waits.
 *
 * Places are given back, so there may be two at a time: who finds no token goes to the end.
 */
static u64 take_turn(struct twheel_idle_rule *rule, u64 now, bool waits)
{
	const u64 rate = twheel_limits_of(rule)->rate, burst = max_t(u64, rate / 10, 1) - 1;
	const u64 first = now - min(now, div64_u64(burst * NSEC_PER_SEC, rate));
	u64 turn = now, token;

	spin_lock(&rule->lock);
	if (!waits) {
		turn = max(rule->turn, first);
		rule->turn = turn + twheel_conn_step_of(rule);
	}
	token = max(rule->token, first);
	if (turn <= now && token <= now) {
		rule->token = token + twheel_conn_step_of(rule);
	} else if (turn <= now) {
		turn = max(rule->turn, token);
		rule->turn = turn + twheel_conn_step_of(rule);
	}
	spin_unlock(&rule->lock);
	return turn;
}

/*
 * Decisions. The lock of the watch's socket is held, and the RCU read lock.
 */

static void arm(struct twheel_conn *kick, u64 expires)
{
	twheel_rearm(&kick->timer, expires);
}

static void set_flag(struct twheel_conn *kick, u16 flag, bool on)
{
	struct twheel_watch *watch = &kick->watch;

	/* Pairs with the worker's, which looks before it has the lock. */
	WRITE_ONCE(watch->flags, on ? watch->flags | flag : watch->flags & ~flag);
}

static const struct pid *begun_by(const struct twheel_conn *kick,
				  const struct twheel_idle_rule *rule)
{
	return kick->watch.flags & TWHEEL_CONN_BY_PID ? rule->pid : NULL;
}

/* The connection is over, or is only about to begin. */
static enum verdict decide_over(struct twheel_conn *kick, u64 now)
{
	struct twheel_idle_rule *rule = twheel_conn_rule_of(kick);

	if (!twheel_is_connecting(inet_sk_state_load(kick->watch.sk)) ||
	    !(kick->watch.flags & TWHEEL_CONN_BY_PID))
		return DROP;
	rule = twheel_rules_of_pid(sock_net(kick->watch.sk), rule->pid);
	if (!rule)
		return DROP;
	twheel_conn_change_rule(kick, rule, TWHEEL_CONN_PROVISIONAL);
	/* It may come to nothing, and the next one be there at once. Pairs as in begin_anew(). */
	WRITE_ONCE(kick->watch.ended, TWHEEL_CONN_RENEWED);
	arm(kick, now + CONNECT_NS);
	return KEEP;
}

/*
 * Has the worker look again at a socket that a program is at work with, the later the longer that
 * is; or that none has accepted, as late as it has been so.
 */
static void look_again(struct twheel_conn *kick, u64 now)
{
	const u64 first = twheel_conn_first_seen(kick);

	if (twheel_watch_accepted(kick->watch.sk))
		arm(kick, now + twheel_watch_retry_at(&kick->watch));
	else
		arm(kick, now + clamp_t(u64, now - min(first, now), TICK_NSEC, NSEC_PER_SEC));
}

/*
 * Is a connection the kernel's own, as those of NVMe over TCP, NFS and iSCSI are? Then it is
 * nobody's to close: what waits for it may be the memory that is to be freed, or the root file
 * system. Such a socket has no file; or it has one which no program has, but was made for the
 * kernel, or has the kernel told of its end. The socket is locked.
 */
static bool is_kernels_own(const struct sock *sk)
{
	const struct socket *sock = sk->sk_socket;

	if (sock && !READ_ONCE(sock->file))
		return true;
	/* A bit that is set once, among others. */
	return data_race((bool)sk->sk_kern_sock) ||
	       READ_ONCE(sk->sk_state_change) != twheel_rules_state_change;
}

/* Which rule is it? */
static enum verdict decide_rule(struct twheel_conn *kick, struct twheel_idle_rule *rule, bool busy,
				u64 now)
{
	u64 limit;

	twheel_conn_change_rule(kick, rule, busy ? TWHEEL_CONN_PROVISIONAL : 0);
	if (busy) {
		look_again(kick, now);
		return KEEP;
	}
	limit = limit_of(kick, rule, now);
	if (limit <= now)
		atomic64_inc(&rule->overdue);
	arm(kick, limit);
	return KEEP;
}

/*
 * The connection has been idle for long enough, but waits for its peer, until @limit. Looks again
 * then, or when it may have been idle for as long once more.
 */
static void spare_waiting(struct twheel_conn *kick, struct twheel_idle_rule *rule, u64 limit,
			  u64 now)
{
	atomic64_inc(&rule->waited);
	twheel_conn_return_token(kick, rule);
	set_flag(kick, TWHEEL_CONN_EXPIRED | TWHEEL_CONN_COUNTED | TWHEEL_CONN_RECHECK, false);
	set_flag(kick, TWHEEL_CONN_WAITED, true);
	arm(kick, min(limit, now + twheel_limits_of(rule)->idle));
}

/*
 * The connection has been active, or had another reason to be there longer, until a moment ago: it
 * has until @limit.
 */
static void spare_active(struct twheel_conn *kick, struct twheel_idle_rule *rule, u64 limit,
			 bool waits)
{
	if (kick->watch.flags & TWHEEL_CONN_EXPIRED)
		atomic64_inc(&rule->spared);
	twheel_conn_return_token(kick, rule);
	set_flag(kick, TWHEEL_CONN_EXPIRED | TWHEEL_CONN_COUNTED | TWHEEL_CONN_RECHECK, false);
	/* When it ceases to wait, that counts as activity; but not for ever. */
	if (!waits)
		set_flag(kick, TWHEEL_CONN_WAITED, false);
	arm(kick, limit);
}

/* Has a dry run counted the connection, without activity since? */
static bool is_counted(const struct twheel_conn *kick, const struct twheel_idle_rule *rule)
{
	return kick->watch.flags & TWHEEL_CONN_COUNTED &&
	       twheel_limits_of(rule)->flags & TWHEEL_RULE_DRY_RUN;
}

/*
 * Dry run: the connection has been counted, as there was no activity for an idle timeout. Should
 * this be a moment too early to see that there is some again, or its stamp be late because the
 * kernel's jiffies are, then that stamp is of the latter half of the time: the next look takes
 * what is younger than that for new. This goes on for ever, but not more often than each half of
 * TWHEEL_IDLE_MIN.
 */
static void wait_for_activity(struct twheel_conn *kick, const struct twheel_idle_rule *rule,
			      u64 now)
{
	const u64 idle = twheel_limits_of(rule)->idle;

	set_flag(kick, TWHEEL_CONN_COUNTED, true);
	arm(kick, idle ? now + idle / 2 : U64_MAX);
}

/* Counts a connection that is closed, and by how much too late that is. */
static void count_closed(struct twheel_conn *kick, struct twheel_idle_rule *rule, u64 limit,
			 u64 now)
{
	const u64 late = now - limit;
	const unsigned int i = fls64(late >> LATE_SHIFT);

	atomic64_inc(&rule->closed);
	/* What was due before that tells nothing. Pairs with measure_anew() in admin.c. */
	if (limit >= READ_ONCE(rule->since))
		atomic64_inc(&rule->late[min_t(u32, i, TWHEEL_RULE_LATE - 1)]);
	trace_twheel_kick(kick->watch.sk, rule->id, twheel_limits_of(rule), now, late);
}

/*
 * The rule may do something else by now than when the connection came to it. What is to be done the
 * worker has read before it asks: so it has to look again. Returns whether that is so.
 */
static bool gets_other_action(struct twheel_conn *kick, const struct twheel_idle_rule *rule)
{
	const u16 action = twheel_limits_of(rule)->flags & TWHEEL_WATCH_ACTIONS;
	const u16 flags = kick->watch.flags;

	if ((flags & TWHEEL_WATCH_ACTIONS) == action)
		return false;
	/* Pairs with the worker's. */
	WRITE_ONCE(kick->watch.flags, (flags & ~TWHEEL_WATCH_ACTIONS) | action);
	return true;
}

/* The limit is over, and the socket is locked. */
static enum verdict decide_expired(struct twheel_conn *kick, struct twheel_idle_rule *rule,
				   u64 limit, u64 now)
{
	const bool waits = kick->watch.flags & TWHEEL_CONN_WAITS;
	const bool is_dry = twheel_limits_of(rule)->flags & TWHEEL_RULE_DRY_RUN;
	u64 turn;

	if (is_counted(kick, rule)) {
		wait_for_activity(kick, rule, now);
		return KEEP;
	}
	if (gets_other_action(kick, rule)) {
		arm(kick, now);
		return KEEP;
	}
	turn = take_turn(rule, now, waits);
	if (turn > now) {
		if (!waits)
			atomic64_inc(&rule->delayed);
		set_flag(kick, TWHEEL_CONN_WAITS, true);
		arm(kick, turn);
		return KEEP;
	}
	/* Its place is used up. */
	set_flag(kick, TWHEEL_CONN_WAITS, false);
	count_closed(kick, rule, limit, now);
	if (!is_dry)
		return CLOSE;
	wait_for_activity(kick, rule, now);
	return KEEP;
}

/*
 * The time of a connection has come. Arms its timer anew if nothing is to be decided, as there was
 * activity, or there was none since it was counted; or else returns false.
 */
static bool arm_anew(struct twheel_conn *kick, struct twheel_idle_rule *rule, u64 now)
{
	const u64 limit = limit_of(kick, rule, now);

	if (limit > now) {
		if (kick->watch.flags & TWHEEL_CONN_WAITS)
			atomic64_inc(&rule->spared);
		twheel_conn_return_token(kick, rule);
		set_flag(kick, TWHEEL_CONN_COUNTED, false);
		arm(kick, limit);
		return true;
	}
	if (is_counted(kick, rule) &&
	    limit <= kick->timer.node.deadline + spread_of(kick, rule)) {
		/* Nothing has come since an idle timeout before the deadline. */
		wait_for_activity(kick, rule, now);
		return true;
	}
	set_flag(kick, TWHEEL_CONN_COUNTED, false);
	set_flag(kick, TWHEEL_CONN_EXPIRED, true);
	return false;
}

/* Does what the softirq has left to the worker. Returns whether there is nothing to decide. */
static bool is_postponed(struct twheel_conn *kick, u64 now)
{
	struct twheel_idle_rule *rule = twheel_conn_rule_of(kick);

	if (!(kick->watch.flags & TWHEEL_CONN_POSTPONED))
		return false;
	set_flag(kick, TWHEEL_CONN_POSTPONED, false);
	/* Pairs with the store when it is removed. */
	if (READ_ONCE(rule->dead) || !arm_anew(kick, rule, now))
		return false;
	if (!(kick->watch.flags & TWHEEL_CONN_REMATCH))
		return true;
	/* Which rule it is remains to be decided. The watch may end. */
	twheel_cancel(&kick->timer);
	return false;
}

/* The socket is locked, and its connection is not older than this. */
static void begin_anew(struct twheel_conn *kick, u64 now)
{
	/* Pairs with note_end() in sk_state.c, which comes before or after. */
	WRITE_ONCE(kick->watch.ended, 0);
	twheel_conn_set_first_seen(kick, now);
}

/* The rule is still the one that applies, and the socket is locked. */
static enum verdict decide_open(struct twheel_conn *kick, struct twheel_idle_rule *rule, u64 limit,
				u64 now)
{
	const u64 stalled = stalled_limit_of(kick, rule, now);

	if (limit > now) {
		spare_active(kick, rule, limit, stalled);
		return KEEP;
	}
	limit = max(limit, min(stalled, life_limit_of(kick, rule)));
	if (limit > now && !is_counted(kick, rule)) {
		spare_waiting(kick, rule, limit, now);
		return KEEP;
	}
	set_flag(kick, TWHEEL_CONN_EXPIRED | TWHEEL_CONN_RECHECK, false);
	return decide_expired(kick, rule, min(limit, now), now);
}

static enum verdict decide(struct twheel_conn *kick, enum twheel_sk_status finding)
{
	const bool busy = finding == TWHEEL_SK_BUSY;
	struct twheel_idle_rule *rule = twheel_conn_rule_of(kick), *first;
	const u64 now = ktime_get_ns();
	bool fresh, dead;
	u64 limit;

	if (finding == TWHEEL_SK_CLOSED) {
		if (!twheel_watchable(inet_sk_state_load(kick->watch.sk)))
			return decide_over(kick, now);
		/* But there is another one. */
		twheel_conn_renew(kick);
	}
	if (!busy && twheel_conn_is_renewed(kick))
		begin_anew(kick, now);
	if (is_postponed(kick, now))
		return KEEP;
	fresh = kick->watch.flags & TWHEEL_CONN_PROVISIONAL;
	if (!busy && is_kernels_own(kick->watch.sk))
		return DROP;
	/* Pairs with the store when it is removed. */
	dead = READ_ONCE(rule->dead);
	if (busy && fresh && !dead) {
		/* It may be connecting, and not have its ports, or wait for who accepts it. */
		look_again(kick, now);
		return KEEP;
	}
	limit = limit_of(kick, rule, now);
	if (fresh || limit <= now || dead || kick->watch.flags & TWHEEL_CONN_REMATCH) {
		first = twheel_rules_match(kick->watch.sk, begun_by(kick, rule),
					   fresh ? NULL : rule);
		if (!first)
			return DROP;
		if (fresh || first != rule)
			return decide_rule(kick, first, busy, now);
		set_flag(kick, TWHEEL_CONN_REMATCH, false);
	}
	if (!busy)
		return decide_open(kick, rule, limit, now);
	set_flag(kick, TWHEEL_CONN_RECHECK, true);
	look_again(kick, now);
	return KEEP;
}

/*
 * The worker, the timer, and who asks
 */

/**
 * twheel_enforce_evaluate - the worker has found a watch
 * @watch:	the watch
 * @finding:	what it has found
 *
 * The watch's callback may be on its way in a softirq: that is over when an RCU grace period is,
 * because softirqs are off in it.
 *
 * Context: process; see @judge of struct twheel_watch_kind.
 * Return: whether the connection is to be closed.
 */
bool twheel_enforce_evaluate(struct twheel_watch *watch, enum twheel_sk_status finding)
{
	struct twheel_conn *kick = twheel_conn_of(watch);
	struct sock *sk = watch->sk;
	spinlock_t *lock = twheel_conn_lock_of(sk);
	enum verdict verdict;

	spin_lock_bh(lock);
	rcu_read_lock();
	twheel_watch_put_back(twheel_conn_worker_of(sk), watch);
	if (finding != TWHEEL_SK_BUSY)
		twheel_watch_set_busy_count(watch, 0);
	verdict = decide(kick, finding);
	if (verdict != KEEP) {
		twheel_watch_remove(&twheel_conn_kind, watch);
		twheel_conn_detach(kick, twheel_conn_rule_of(kick));
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

/*
 * Takes from the share of a connection's namespace for a timer that may have to be armed anew.
 * Returns whether something was left of it.
 */
static bool take_share(const struct sock *sk, u64 now)
{
	struct twheel_rules *ours = twheel_rules_of_net(sock_net(sk));
	bool left;

	spin_lock(&ours->share_lock);
	left = twheel_share_left(&ours->share, now);
	if (left)
		twheel_share_take(&ours->share, now);
	spin_unlock(&ours->share_lock);
	return left;
}

/* The timer has come up. Returns whether the worker is to look at it. */
static bool is_for_worker(struct twheel_conn *kick, u64 now)
{
	struct twheel_idle_rule *rule = twheel_conn_rule_of(kick);
	const u16 flags = kick->watch.flags;

	/* One that was counted waits for activity, and not for its peer any more. */
	if (flags & (TWHEEL_CONN_PROVISIONAL | TWHEEL_CONN_RECHECK) ||
	    (flags & TWHEEL_CONN_WAITED && !is_counted(kick, rule))) {
		set_flag(kick, TWHEEL_CONN_COUNTED, false);
		return true;
	}
	if (take_share(kick->watch.sk, now))
		return !arm_anew(kick, rule, now);
	set_flag(kick, TWHEEL_CONN_POSTPONED, true);
	return true;
}

/**
 * twheel_enforce_expire - the time of a connection has come
 * @timer:	its watch's timer
 *
 * Context: softirq.
 */
void twheel_enforce_expire(struct twheel_timer *timer)
{
	struct twheel_conn *kick = container_of(timer, struct twheel_conn, timer);
	/* Pairs with the store when the watch ends. */
	struct sock *sk = READ_ONCE(kick->watch.sk);
	spinlock_t *lock = twheel_conn_lock_of(sk);

	if (!sk)
		return;
	spin_lock(lock);
	rcu_read_lock();
	/* Who came first had the watch end, made it due, or armed it anew. */
	if (kick->watch.rule && READ_ONCE(kick->watch.state) == TWHEEL_WATCH_IDLE &&
	    !twheel_pending(timer) && is_for_worker(kick, ktime_get_ns()))
		twheel_watch_enqueue(twheel_conn_worker_of(sk), &kick->watch);
	rcu_read_unlock();
	spin_unlock(lock);
}

/* Does a watch belong to the rule with this id? With the socket's lock held. */
static struct twheel_idle_rule *find_id(struct twheel_watch *watch, u32 id)
{
	struct twheel_idle_rule *rule;

	if (!watch || watch->flags & TWHEEL_CONN_PROVISIONAL)
		return NULL;
	rule = twheel_conn_rule_of(twheel_conn_of(watch));
	return rule->id == id ? rule : NULL;
}

static void describe(const struct twheel_conn *kick, const struct twheel_idle_rule *rule, u64 now,
		     struct twheel_connection *connection)
{
	const struct sock *sk = kick->watch.sk;
	u64 limit = limit_of(kick, rule, now);

	limit = max(limit, min(stalled_limit_of(kick, rule, now), life_limit_of(kick, rule)));
	connection->remaining = limit - min(limit, now);
	connection->idle = now - twheel_last_activity(sk, twheel_limits_of(rule)->flags, now);
	connection->unsent = twheel_unacked_queue(sk, &connection->unacked);
	if (is_counted(kick, rule))
		connection->flags |= TWHEEL_CONNECTION_COUNTED;
}

/**
 * twheel_enforce_describe - tell of a connection that a rule applies to
 * @sk:		the socket
 * @id:		the rule, which must be there
 * @connection:	gets its @idle and @remaining, and what is in its send queue
 *
 * Context: process.
 * Return: true if so; false if the rule does not apply to it.
 */
bool twheel_enforce_describe(const struct sock *sk, u32 id, struct twheel_connection *connection)
{
	const u64 now = ktime_get_ns();
	spinlock_t *lock = twheel_conn_lock_of(sk);
	struct twheel_idle_rule *rule = NULL;
	struct twheel_watch *watch;

	spin_lock_bh(lock);
	rcu_read_lock();
	/* As long as there is a rule, there is the table. */
	if (twheel_rules_from(sock_net(sk), id)) {
		watch = twheel_watch_find(&twheel_conn_kind, sk);
		rule = find_id(watch, id);
	}
	if (rule)
		describe(twheel_conn_of(watch), rule, now, connection);
	rcu_read_unlock();
	spin_unlock_bh(lock);
	return rule;
}
