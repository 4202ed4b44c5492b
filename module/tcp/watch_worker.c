// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the workers that evaluate watches that are due, and close their connections
 *
 * Each context has one, and so has each network namespace with rules; the workers of one user take
 * turns (users.c). A batch ends early when it takes long: closing a connection wakes up all tasks
 * that wait for it, however many these are.
 *
 * The worker never waits for a socket owned by user context: a page fault there could stall it for
 * ever, and all other connections with it. Instead, the owner re-arms the timer for a little later,
 * see twheel_watch_back_off(). Nor does the worker lock a socket that has not been accepted yet:
 * when the listener is closed, TCP relies on such sockets being unlocked, to reset them.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>
#include <net/tcp.h>
#include <uapi/linux/twheel.h>

#include "lib/compat.h"
#include "trace.h"
#include "twheel.h"
#include "watch.h"
#include "watch_worker.h"

/* Watches processed before others get their turn, and the time limit, in nanoseconds. */
#define BATCH		64
#define BATCH_MAX_NS	(2 * NSEC_PER_MSEC)

/* Retries that are a jiffy apart when a socket is busy: it may be so for a moment only. */
#define QUICK_RETRIES	8U
/* How many times the time to the next retry may be doubled after that. */
#define DOUBLINGS	10U

struct workqueue_struct *twheel_watch_queue;

static struct twheel_timer *timer_of(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	return (void *)watch - kind->timer_offset;
}

static struct twheel_watch *watch_of(struct twheel_watch_kind *kind, struct twheel_node *node)
{
	return (void *)container_of(node, struct twheel_timer, node) + kind->timer_offset;
}

/*
 * Sockets
 */

/*
 * lock_sock(), unless user context owns the socket, or it has not been accepted yet. Returns
 * whether the socket has been locked.
 */
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

/* shutdown(SHUT_RDWR) of a locked socket. */
static void shutdown_sock(struct sock *sk)
{
	/* Pairs with TCP's READ_ONCE()s, as in tcp_poll(). */
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | SHUTDOWN_MASK);
	sk->sk_prot->shutdown(sk, SHUTDOWN_MASK);
	/* Wakes up tasks that wait for the socket. */
	sk->sk_state_change(sk);
}

/* Carries out a watch's action on a locked socket, and unlocks it. */
static void apply_action(struct sock *sk, u16 flags)
{
	if (flags & TWHEEL_WATCH_ABORT)
		twheel_tcp_abort_locked(sk, ETIMEDOUT);
	else if (flags & TWHEEL_WATCH_SHUTDOWN)
		shutdown_sock(sk);
	release_sock(sk);
}

/*
 * The worker
 */

static void count_kick(struct twheel_watch_kind *kind, u64 deadline)
{
	u64 now = ktime_get_ns();

	atomic64_inc(&kind->counts.kicks);
	/* At least 1: __fls() is undefined for 0. */
	atomic64_inc(&kind->counts.delay[__fls(now > deadline ? now - deadline : 1)]);
}

/*
 * Evaluates a watch, and carries out its action. The watch may be gone afterwards. Meanwhile its
 * owner may change its flags and its deadline, or remove it. The deadline as it is read here only
 * goes into the statistics and the trace.
 */
static void process_watch(struct twheel_watch_kind *kind, struct twheel_watch *watch,
			  struct sock *sk)
{
	const struct twheel_timer *timer = timer_of(kind, watch);
	/* Pairs with the WRITE_ONCE()s of whoever arms the timer, and in rearm_extended(). */
	u64 deadline = READ_ONCE(timer->node.deadline);
	enum twheel_sk_status status;
	/* Pairs with the WRITE_ONCE()s of the owner, which keeps the busy count there, too. */
	u16 flags = READ_ONCE(watch->flags) & TWHEEL_WATCH_ACTIONS;
	bool wanted;

	if (!trylock_sock(sk)) {
		trace_twheel_watch(timer, sk, deadline, TWHEEL_SK_BUSY, 0);
		atomic64_inc(&kind->counts.busy);
		kind->evaluate(watch, TWHEEL_SK_BUSY);
		return;
	}
	status = twheel_watchable(sk->sk_state) && !twheel_watch_has_ended(kind, watch) ?
		TWHEEL_SK_OPEN : TWHEEL_SK_CLOSED;
	wanted = kind->evaluate(watch, status) && status == TWHEEL_SK_OPEN;
	trace_twheel_watch(timer, sk, deadline, status, wanted ? flags | TWHEEL_WATCHED : 0);
	if (!wanted) {
		atomic64_inc(status == TWHEEL_SK_CLOSED ? &kind->counts.ended :
							  &kind->counts.spared);
		release_sock(sk);
		return;
	}
	apply_action(sk, flags);
	count_kick(kind, deadline);
	if (kind->action_done)
		kind->action_done(watch);
}

/* Takes a watch off the list of those that are due. */
static void dequeue_watch(struct twheel_watch_worker *worker, struct twheel_watch *watch)
{
	struct twheel_node *node = &timer_of(worker->kind, watch)->node;

	lockdep_assert_held(&worker->lock);
	list_del(&node->link);
	node->location = 0;
	worker->nr--;
}

/*
 * Takes the first watch off the list: it has a socket, see enum twheel_watch_state. From here on
 * the owner may remove it, so the worker gets a reference of its own to the socket.
 */
static struct twheel_watch *take_first_watch(struct twheel_watch_worker *worker, struct sock **sk)
{
	struct twheel_watch *watch = NULL;
	struct twheel_node *node;

	spin_lock_bh(&worker->lock);
	node = list_first_entry_or_null(&worker->list, struct twheel_node, link);
	if (node) {
		watch = watch_of(worker->kind, node);
		dequeue_watch(worker, watch);
		/* Pairs with the READ_ONCE()s of the owner, which holds its own lock. */
		WRITE_ONCE(watch->state, TWHEEL_WATCH_PROCESSING);
		*sk = watch->sk;
		sock_hold(*sk);
		worker->taken++;
		worker->processing = true;
	}
	spin_unlock_bh(&worker->lock);
	return watch;
}

/* Processes a batch. */
static void process_batch(struct twheel_watch_worker *worker)
{
	const u64 end = ktime_get_ns() + BATCH_MAX_NS;
	struct twheel_watch *watch;
	struct sock *sk;
	int i;

	for (i = 0; i < BATCH && ktime_get_ns() < end; i++) {
		watch = take_first_watch(worker, &sk);
		if (!watch)
			break;
		process_watch(worker->kind, watch, sk);
		sock_put(sk);
		cond_resched();
	}
}

static void watch_work(struct work_struct *work)
{
	struct twheel_watch_worker *worker = container_of(work, struct twheel_watch_worker, work);

	process_batch(worker);
	spin_lock_bh(&worker->lock);
	worker->processing = false;
	/* If the list is empty, the next twheel_watch_enqueue() queues the work. */
	if (worker->nr)
		queue_work(worker->queue, &worker->work);
	spin_unlock_bh(&worker->lock);
	/* No barrier: is_flushed() takes the lock, after the waiter has queued itself. */
	wake_up_var(&worker->taken);
}

/**
 * twheel_watch_worker_init - initialise a worker
 * @worker:	the worker, which has no watches
 * @kind:	the kind of its watches
 * @queue:	the workqueue of the user whose worker it is
 *
 * Context: any.
 */
void twheel_watch_worker_init(struct twheel_watch_worker *worker, struct twheel_watch_kind *kind,
			      struct workqueue_struct *queue)
{
	worker->kind = kind;
	worker->queue = queue;
	spin_lock_init(&worker->lock);
	INIT_LIST_HEAD(&worker->list);
	worker->nr = 0;
	worker->taken = 0;
	worker->processing = false;
	INIT_WORK(&worker->work, watch_work);
}

/**
 * twheel_watch_worker_stop - wait until the worker is done with its current batch, and stop it
 * @worker:	the worker, for which no more watches are queued
 *
 * After this, the worker uses no watch that its owner took back or removed before the call.
 *
 * Context: process; may sleep. The caller holds no lock that the owner takes in evaluate() and
 * action_done().
 */
void twheel_watch_worker_stop(struct twheel_watch_worker *worker)
{
	cancel_work_sync(&worker->work);
}

/*
 * Has the worker taken @nr watches since @taken was @from, and is it done with the last of these?
 */
static bool is_flushed(struct twheel_watch_worker *worker, unsigned int from, unsigned int nr)
{
	unsigned int taken;
	bool flushed;

	spin_lock_bh(&worker->lock);
	taken = worker->taken - from;
	flushed = worker->processing ? taken > nr : taken >= nr || !worker->nr;
	spin_unlock_bh(&worker->lock);
	return flushed;
}

/**
 * twheel_watch_worker_flush - wait until the worker has processed the watches queued now
 * @worker:	the worker
 *
 * Does not wait for watches that are queued meanwhile.
 *
 * Context: process; may sleep. The caller holds no lock that the owner takes in evaluate() and
 * action_done().
 * Return: 0, or -EINTR if the caller is killed.
 */
int twheel_watch_worker_flush(struct twheel_watch_worker *worker)
{
	unsigned int from, nr;

	spin_lock_bh(&worker->lock);
	from = worker->taken;
	nr = worker->nr;
	spin_unlock_bh(&worker->lock);
	return wait_var_event_killable(&worker->taken, is_flushed(worker, from, nr)) ? -EINTR : 0;
}

/*
 * The owners' side
 */

/**
 * twheel_watch_enqueue - queue a watch for the worker
 * @worker:	the worker of its owner
 * @watch:	the watch, in the table, in state %TWHEEL_WATCH_IDLE, its timer not armed
 *
 * Context: process and softirq, with the owner's lock held.
 */
void twheel_watch_enqueue(struct twheel_watch_worker *worker, struct twheel_watch *watch)
{
	spin_lock_bh(&worker->lock);
	watch->state = TWHEEL_WATCH_QUEUED;
	list_add_tail(&timer_of(worker->kind, watch)->node.link, &worker->list);
	worker->nr++;
	spin_unlock_bh(&worker->lock);
	queue_work(worker->queue, &worker->work);
}

/**
 * twheel_watch_unqueue - take a watch back before the worker processes it
 * @worker:	the worker of its owner
 * @watch:	the watch
 *
 * Harmless if the watch is with its owner already. Fails if the worker is processing the watch:
 * then evaluate() is about to take the owner's lock.
 *
 * Context: process and softirq, with the owner's lock held.
 * Return: true if the watch is with its owner now.
 */
bool twheel_watch_unqueue(struct twheel_watch_worker *worker, struct twheel_watch *watch)
{
	bool is_ours;

	spin_lock_bh(&worker->lock);
	if (watch->state == TWHEEL_WATCH_QUEUED) {
		dequeue_watch(worker, watch);
		watch->state = TWHEEL_WATCH_IDLE;
	}
	is_ours = watch->state == TWHEEL_WATCH_IDLE;
	spin_unlock_bh(&worker->lock);
	return is_ours;
}

/**
 * twheel_watch_put_back - return a watch from the worker to its owner
 * @worker:	the worker of the owner
 * @watch:	the watch, in state %TWHEEL_WATCH_PROCESSING
 *
 * Context: in evaluate(), with the owner's lock held, before anything else.
 */
void twheel_watch_put_back(struct twheel_watch_worker *worker, struct twheel_watch *watch)
{
	spin_lock_bh(&worker->lock);
	watch->state = TWHEEL_WATCH_IDLE;
	spin_unlock_bh(&worker->lock);
}

/**
 * twheel_watch_back_off - count an attempt at a busy socket, and get the delay until the next one
 * @watch:	its watch. The owner resets the busy count to 0 when another status was found, or
 *		something else has happened
 *
 * The first times that is a jiffy. Then it doubles each time, up to a second, but is always shorter
 * than the time that the socket has been busy for: a program may keep as many sockets busy as it
 * likes, for as long as it likes, without the retries costing anybody anything.
 *
 * Context: in evaluate(), with the owner's lock held.
 * Return: the delay in nanoseconds.
 */
u64 twheel_watch_back_off(struct twheel_watch *watch)
{
	const unsigned int count = min(twheel_watch_busy_count(watch) + 1,
				       QUICK_RETRIES + DOUBLINGS);

	twheel_watch_set_busy_count(watch, count);
	return min_t(u64, (u64)TICK_NSEC << (max(count, QUICK_RETRIES) - QUICK_RETRIES),
		     NSEC_PER_SEC);
}

/**
 * twheel_watch_show_counts - show what the workers of a kind have done
 * @m:		the file to print to
 * @kind:	the kind
 *
 * Context: process. The workers may be counting concurrently.
 */
void twheel_watch_show_counts(struct seq_file *m, const struct twheel_watch_kind *kind)
{
	const struct twheel_watch_counts *counts = &kind->counts;
	unsigned int i;
	s64 n;

	seq_printf(m, "%s kicks: %lld\n", kind->name, atomic64_read(&counts->kicks));
	seq_printf(m, "%s ended: %lld\n", kind->name, atomic64_read(&counts->ended));
	seq_printf(m, "%s spared: %lld\n", kind->name, atomic64_read(&counts->spared));
	seq_printf(m, "%s busy: %lld\n", kind->name, atomic64_read(&counts->busy));
	seq_printf(m, "%s scans: %lld\n", kind->name, atomic64_read(&counts->scans));
	for (i = 0; i < TWHEEL_DELAY_BUCKETS - 1; i++) {
		n = atomic64_read(&counts->delay[i]);
		if (n)
			seq_printf(m, "%s delay %llu: %lld\n", kind->name, 2ULL << i, n);
	}
}
