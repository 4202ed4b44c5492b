// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the worker that looks at watches that are due, and closes their connections
 *
 * The worker does not wait for a socket that a program is at work with: a page fault of
 * that program could keep it for ever, and all other connections with it. The owner arms the
 * timer for a little later then. Nor does it lock a socket that nobody has accepted: when the
 * one that listens is closed TCP relies on its being free, to reset it.
 */
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/tcp.h>
#include <uapi/linux/twheel.h>

#include "compat.h"
#include "trace.h"
#include "watch.h"

/* Watches looked at before others get a chance to see the worker idle. */
#define PORTION		64

static struct twheel_timer *timer_of(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	return (void *)watch - kind->timer_offset;
}

static struct twheel_watch *watch_of(struct twheel_watch_kind *kind, struct twheel_node *node)
{
	return (void *)container_of(node, struct twheel_timer, node) + kind->timer_offset;
}

/*
 * A socket, which the worker locks
 */

/* lock_sock() that does not wait. Returns whether the socket is locked. */
static bool trylock_sock(struct sock *sk)
{
	bool is_free;

	spin_lock_bh(&sk->sk_lock.slock);
	is_free = twheel_watch_accepted(sk) && !sock_owned_by_user_nocheck(sk);
	if (is_free) {
		sk->sk_lock.owned = 1;
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	}
	spin_unlock_bh(&sk->sk_lock.slock);
	return is_free;
}

/* shutdown(SHUT_RDWR) of a socket that is locked. */
static void shut_down(struct sock *sk)
{
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | SHUTDOWN_MASK);
	sk->sk_prot->shutdown(sk, SHUTDOWN_MASK);
	/* Wakes who waits for it. */
	sk->sk_state_change(sk);
}

#ifdef TWHEEL_TCP_ABORT_LOCKED

/* Resets a connection, whose socket is locked; unlocks it. */
static void reset(struct sock *sk)
{
	twheel_tcp_abort_locked(sk, ETIMEDOUT);
	release_sock(sk);
}

#else

/**
 * struct abort_work - a connection to be reset
 * @work:	does it
 * @sk:		its socket, with a reference
 */
struct abort_work {
	struct work_struct	work;
	struct sock		*sk;
};

static void work_on_abort(struct work_struct *work)
{
	struct abort_work *abort = container_of(work, struct abort_work, work);

	tcp_abort(abort->sk, ETIMEDOUT);
	sock_put(abort->sk);
	kfree(abort);
}

/*
 * tcp_abort() wants the socket unlocked. It is shut down first, so that it takes no more data,
 * and the peer sees a FIN before the reset. Others do not wait for a program that is
 * at work with the socket: each has a worker of its own. Without memory it stays at the FIN.
 */
static void reset(struct sock *sk)
{
	struct abort_work *abort = kmalloc(sizeof(*abort), GFP_KERNEL | __GFP_NOWARN);

	shut_down(sk);
	release_sock(sk);
	if (!abort)
		return;
	INIT_WORK(&abort->work, work_on_abort);
	sock_hold(sk);
	abort->sk = sk;
	queue_work(twheel_watch_queue, &abort->work);
}

#endif

/* Does what a watch says to a locked socket, and unlocks it. */
static void act(struct sock *sk, u16 flags)
{
	if (flags & TWHEEL_WATCH_ABORT) {
		reset(sk);
		return;
	}
	if (flags & TWHEEL_WATCH_SHUTDOWN)
		shut_down(sk);
	release_sock(sk);
}

/*
 * The worker
 */

/* One more of something. Only the worker counts; debugfs reads. */
static void count(u64 *n)
{
	WRITE_ONCE(*n, *n + 1);
}

static void count_kick(struct twheel_watch_kind *kind, u64 deadline)
{
	u64 now = ktime_get_ns();

	count(&kind->counts.kicks);
	/* At least 1, so that it has a logarithm. */
	count(&kind->counts.delay[__fls(now > deadline ? now - deadline : 1)]);
}

/*
 * Has a watch judged, and acts. The watch may be gone afterwards. What it says does not change as
 * long as it is with the worker, but for the deadline, which is only counted.
 */
static void look_at(struct twheel_watch_kind *kind, struct twheel_watch *watch, struct sock *sk)
{
	const struct twheel_timer *timer = timer_of(kind, watch);
	u64 deadline = READ_ONCE(timer->node.deadline);
	enum twheel_watch_finding found;
	u16 flags = watch->flags;
	bool wanted;

	if (!trylock_sock(sk)) {
		trace_twheel_watch(timer, sk, deadline, TWHEEL_FOUND_BUSY, 0);
		count(&kind->counts.busy);
		kind->judge(watch, TWHEEL_FOUND_BUSY);
		return;
	}
	found = twheel_watchable(sk->sk_state) ? TWHEEL_FOUND_OPEN : TWHEEL_FOUND_OVER;
	wanted = kind->judge(watch, found) && found == TWHEEL_FOUND_OPEN;
	trace_twheel_watch(timer, sk, deadline, found, wanted ? flags | TWHEEL_WATCHED : 0);
	if (!wanted) {
		count(found == TWHEEL_FOUND_OVER ? &kind->counts.ended : &kind->counts.spared);
		release_sock(sk);
		return;
	}
	act(sk, flags);
	count_kick(kind, deadline);
	if (kind->acted)
		kind->acted(watch);
}

/*
 * Takes the first watch out of the list. From here on its owner may remove it, so the worker
 * has a reference of its own to the socket.
 */
static struct twheel_watch *next_due(struct twheel_watch_kind *kind, struct sock **sk)
{
	struct twheel_watch *watch = NULL;
	struct twheel_node *node;

	spin_lock_bh(&kind->lock);
	node = list_first_entry_or_null(&kind->due, struct twheel_node, link);
	if (node) {
		list_del(&node->link);
		node->place = 0;
		watch = watch_of(kind, node);
		watch->state = TWHEEL_WATCH_IN_WORK;
		*sk = watch->sk;
		sock_hold(*sk);
	}
	spin_unlock_bh(&kind->lock);
	return watch;
}

static void work_on_due(struct work_struct *work)
{
	struct twheel_watch_kind *kind = container_of(work, struct twheel_watch_kind, work);
	struct twheel_watch *watch;
	struct sock *sk;
	int i;

	for (i = 0; i < PORTION; i++) {
		watch = next_due(kind, &sk);
		if (!watch)
			return;
		look_at(kind, watch, sk);
		sock_put(sk);
		cond_resched();
	}
	/* Who waits for this work does not wait for all that comes due meanwhile. */
	queue_work(twheel_watch_queue, &kind->work);
}

/**
 * twheel_watch_due_init - get the worker of a kind ready
 * @kind:	the kind, of which there are no watches
 *
 * Context: any.
 */
void twheel_watch_due_init(struct twheel_watch_kind *kind)
{
	spin_lock_init(&kind->lock);
	INIT_LIST_HEAD(&kind->due);
	INIT_WORK(&kind->work, work_on_due);
}

/*
 * What owners have to do with it
 */

/**
 * twheel_watch_due - have the worker look at a watch
 * @kind:	its kind
 * @watch:	the watch, in the table, in state %TWHEEL_WATCH_IDLE, its timer not armed
 *
 * Context: process and softirq, with the owner's lock held.
 */
void twheel_watch_due(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	spin_lock_bh(&kind->lock);
	watch->state = TWHEEL_WATCH_DUE;
	list_add_tail(&timer_of(kind, watch)->node.link, &kind->due);
	spin_unlock_bh(&kind->lock);
	queue_work(twheel_watch_queue, &kind->work);
}

/**
 * twheel_watch_take_back - take a watch from the worker
 * @kind:	its kind
 * @watch:	the watch
 *
 * This may fail: the watch is with its owner anyway, or it is in state %TWHEEL_WATCH_IN_WORK,
 * and judge() is about to get the owner's lock.
 *
 * Context: process and softirq, with the owner's lock held.
 * Return: true if the watch was in the list of those that are due.
 */
bool twheel_watch_take_back(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	struct twheel_node *node = &timer_of(kind, watch)->node;
	bool was_due;

	spin_lock_bh(&kind->lock);
	was_due = watch->state == TWHEEL_WATCH_DUE;
	if (was_due) {
		list_del(&node->link);
		node->place = 0;
		watch->state = TWHEEL_WATCH_IDLE;
	}
	spin_unlock_bh(&kind->lock);
	return was_due;
}

/**
 * twheel_watch_judged - the owner has got its watch back from the worker
 * @kind:	its kind
 * @watch:	the watch, in state %TWHEEL_WATCH_IN_WORK
 *
 * Context: in judge(), with the owner's lock held, before anything else.
 */
void twheel_watch_judged(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	spin_lock_bh(&kind->lock);
	watch->state = TWHEEL_WATCH_IDLE;
	spin_unlock_bh(&kind->lock);
}

/**
 * twheel_watch_flush - wait until the worker is done with what it has begun
 * @kind:	whose
 *
 * What the owner takes back, or removes, before this is not used any more afterwards.
 *
 * Context: process; may sleep. No lock is held that the owner takes in judge().
 */
void twheel_watch_flush(struct twheel_watch_kind *kind)
{
	flush_work(&kind->work);
}

/**
 * twheel_watch_show_counts - show what the worker of a kind has done
 * @m:		what is printed goes there
 * @kind:	the kind
 *
 * Context: process. The worker may just count.
 */
void twheel_watch_show_counts(struct seq_file *m, const struct twheel_watch_kind *kind)
{
	const struct twheel_watch_counts *counts = &kind->counts;
	unsigned int i;
	u64 n;

	seq_printf(m, "%s kicks: %llu\n", kind->name, READ_ONCE(counts->kicks));
	seq_printf(m, "%s ended: %llu\n", kind->name, READ_ONCE(counts->ended));
	seq_printf(m, "%s spared: %llu\n", kind->name, READ_ONCE(counts->spared));
	seq_printf(m, "%s busy: %llu\n", kind->name, READ_ONCE(counts->busy));
	for (i = 0; i < TWHEEL_DELAY_BUCKETS - 1; i++) {
		n = READ_ONCE(counts->delay[i]);
		if (n)
			seq_printf(m, "%s delay %llu: %llu\n", kind->name, 2ULL << i, n);
	}
}
