// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: TCP connections that are watched: the sockets' side
 *
 * A socket keeps the times at which it has last received and sent data. When the timer of
 * a watch comes up its owner compares them with the limit, without a lock, and arms the
 * timer anew as a rule: all that a connection costs is this, once in an idle timeout. Only
 * if there was no activity the watch goes to a worker, who locks the socket and has the owner
 * look again. So no data can come in between this look and the action.
 *
 * The worker does not wait for a socket that a program is at work with: a page fault of
 * that program could keep it for ever, and all other connections with it. The owner arms the
 * timer for a little later then. Nor does it lock a socket that nobody has accepted: when the
 * one that listens is closed TCP relies on its being free, to reset it.
 *
 * A watch holds a reference to its socket, and lets go of it when the connection is over:
 * the tracepoint inet_sock_set_state tells. It calls with preemption off, when nearly
 * nothing can be done on PREEMPT_RT, and before the state has changed, and so it
 * only notes the socket for another worker, which makes the watch due:
 *
 *	who changes the state		who begins to watch
 *	socket is locked
 *	tracepoint: in the table? no
 *					into the table
 *	state changes			the socket is busy: looks again later
 *	socket is unlocked		...
 *					locks the socket: it is over
 *
 * If there are more changes than can be noted, all watches are looked at instead.
 */
#include <linux/jiffies.h>
#include <linux/kfifo.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/net.h>
#include <linux/percpu.h>
#include <linux/rhashtable.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <net/tcp.h>
#include <uapi/linux/twheel.h>

#include "compat.h"
#include "trace.h"
#include "watch.h"

/* Changes of a CPU that can be noted. */
#define NR_CHANGES	512

/* Most kinds of watches. */
#define NR_KINDS	2

/* Watches looked at before others get a chance to see the worker idle. */
#define PORTION		64

/* Is this the watch of another socket? It may just be removed, and inserted elsewhere. */
static int differs(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct twheel_watch *watch = obj;
	struct sock *const *sk = arg->key;

	/* Pairs with the WRITE_ONCE()s of @sk. */
	return READ_ONCE(watch->sk) != *sk;
}

static const struct rhashtable_params params = {
	.key_len		= sizeof_field(struct twheel_watch, sk),
	.key_offset		= offsetof(struct twheel_watch, sk),
	.head_offset		= offsetof(struct twheel_watch, hash),
	.obj_cmpfn		= differs,
	.automatic_shrinking	= true,
};

/**
 * struct cpu_changes - changes that a CPU has noted
 * @fifo:	the changes, each with a reference to its socket. Written by the CPU with
 *		interrupts off, read by @work
 * @work:	passes them on
 */
struct cpu_changes {
	DECLARE_KFIFO(fifo, struct twheel_watch_change, NR_CHANGES);
	struct work_struct	work;
};

static struct cpu_changes __percpu *changes;
static struct workqueue_struct *queue;
static struct tracepoint *tracepoint;

/*
 * Guards the table of kinds, their list, and the registration of the probe. Taken in process
 * context, outside of all others but watched.c's.
 */
static DEFINE_MUTEX(kinds_lock);
/* Read by the probe without the lock. */
static struct twheel_watch_kind *kinds[NR_KINDS];
static unsigned int nr_kinds;
/* All kinds that there ever were; they are part of the module. */
static LIST_HEAD(known_kinds);

/* A change could not be noted. Written by the probe, taken back by who makes up for it. */
static atomic_t overflown = ATOMIC_INIT(0);

static struct twheel_timer *timer_of(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	return (void *)watch - kind->timer_offset;
}

static struct twheel_watch *watch_of(struct twheel_watch_kind *kind, struct twheel_node *node)
{
	return (void *)container_of(node, struct twheel_timer, node) + kind->timer_offset;
}

/*
 * Changes of state
 */

/* Does anybody care for this change? */
static bool is_wanted(const struct sock *sk, int before, int after)
{
	struct twheel_watch_kind *kind;
	bool ends = twheel_watchable(before) && !twheel_watchable(after);
	bool begins = after == TCP_ESTABLISHED || after == TCP_SYN_SENT || after == TCP_LISTEN;
	int i;

	for (i = 0; i < NR_KINDS; i++) {
		/* Pairs with those in twheel_watch_kind_add() and _del(). */
		kind = READ_ONCE(kinds[i]);
		if (!kind)
			continue;
		if (begins && kind->changed)
			return true;
		if (ends && twheel_watch_find(kind, sk))
			return true;
	}
	return false;
}

/* The pid of who does this, if it is a process. */
static pid_t culprit(void)
{
	return in_task() && !(current->flags & PF_KTHREAD) ? task_tgid_nr(current) : 0;
}

/*
 * The probe. Its context is any that TCP runs in, with preemption off; the socket is
 * locked, by a process or in softirq context.
 */
static void state_changes(void *unused, const struct sock *sk, int before, int after)
{
	struct twheel_watch_change change = {
		.sk	= (struct sock *)sk,
		.state	= after,
	};
	struct cpu_changes *mine;
	unsigned long flags;
	bool wanted;

	if (sk->sk_protocol != IPPROTO_TCP)
		return;
	rcu_read_lock();
	wanted = is_wanted(sk, before, after);
	rcu_read_unlock();
	if (!wanted)
		return;
	change.pid = culprit();
	local_irq_save(flags);
	mine = this_cpu_ptr(changes);
	sock_hold(change.sk);
	/* Pairs with work_on_changes(). kfifo orders the accesses to its indices, unmarked. */
	if (!data_race(kfifo_put(&mine->fifo, change))) {
		/* Not the last reference: who changes the state has one. */
		sock_put(change.sk);
		atomic_set(&overflown, 1);
	}
	queue_work(queue, &mine->work);
	local_irq_restore(flags);
}

/*
 * May a connection be over? If its state is about to change, its socket is locked from before
 * this is told until after it has changed.
 */
static bool may_be_over(struct sock *sk)
{
	if (spin_is_locked(&sk->sk_lock.slock) || sock_owned_by_user_nocheck(sk))
		return true;
	/* What was stored before the socket was unlocked is seen. */
	smp_rmb();
	return !twheel_watchable(inet_sk_state_load(sk));
}

/* Makes all watches of a kind due whose connections are over, or may be. */
static void look_for_ended(struct twheel_watch_kind *kind)
{
	struct rhashtable_iter iter;
	struct twheel_watch *watch;
	struct sock *sk;

	rhashtable_walk_enter(&kind->table, &iter);
	rhashtable_walk_start(&iter);
	while ((watch = rhashtable_walk_next(&iter))) {
		/* The table was resized: it goes on with the new one. */
		if (IS_ERR(watch))
			continue;
		/*
		 * Pairs with the WRITE_ONCE()s. The socket may be freed, but not the slab that it
		 * is in, under the RCU lock.
		 */
		sk = READ_ONCE(watch->sk);
		if (sk && may_be_over(sk))
			kind->over(watch, sk);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
}

static void pass_on(struct twheel_watch_kind *kind, const struct twheel_watch_change *change)
{
	struct twheel_watch *watch;

	switch (change->state) {
	case TCP_ESTABLISHED:
	case TCP_SYN_SENT:
	case TCP_LISTEN:
		if (kind->changed)
			kind->changed(change);
		break;
	default:
		rcu_read_lock();
		watch = twheel_watch_find(kind, change->sk);
		if (watch)
			kind->over(watch, change->sk);
		rcu_read_unlock();
	}
}

/* The worker of a CPU's changes. */
static void work_on_changes(struct work_struct *work)
{
	struct cpu_changes *theirs = container_of(work, struct cpu_changes, work);
	struct twheel_watch_change change;
	int i;

	mutex_lock(&kinds_lock);
	/* Pairs with state_changes(), as there. */
	while (data_race(kfifo_get(&theirs->fifo, &change))) {
		for (i = 0; i < NR_KINDS; i++)
			if (kinds[i])
				pass_on(kinds[i], &change);
		sock_put(change.sk);
		cond_resched();
	}
	if (atomic_xchg(&overflown, 0)) {
		for (i = 0; i < NR_KINDS; i++) {
			if (!kinds[i])
				continue;
			look_for_ended(kinds[i]);
			if (kinds[i]->changed)
				kinds[i]->changed(NULL);
		}
	}
	mutex_unlock(&kinds_lock);
}

/*
 * Watches that are due
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
	queue_work(queue, &abort->work);
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
	queue_work(queue, &kind->work);
}

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
	queue_work(queue, &kind->work);
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

/*
 * Sockets and their watches
 */

/**
 * twheel_watch_socket - find a connection that can be watched
 * @fd:		a file descriptor of the calling process
 *
 * Context: process; may sleep.
 * Return: the socket, with a reference that the caller puts; or
 * * %-EBADF	- @fd is not open
 * * %-EOPNOTSUPP - it is no TCP socket
 * * %-ENOTCONN	- it has no connection that is established, or closed by its peer only
 */
struct sock *twheel_watch_socket(int fd)
{
	struct socket *sock;
	struct sock *sk;
	int ret;

	sock = sockfd_lookup(fd, &ret);
	if (!sock)
		return ERR_PTR(ret == -ENOTSOCK ? -EOPNOTSUPP : ret);
	sk = sock->sk;
	if (!sk_is_tcp(sk) || (sk->sk_family != AF_INET && sk->sk_family != AF_INET6))
		ret = -EOPNOTSUPP;
	else if (!twheel_watchable(inet_sk_state_load(sk)))
		ret = -ENOTCONN;
	else
		ret = 0;
	if (!ret)
		sock_hold(sk);
	sockfd_put(sock);
	return ret ? ERR_PTR(ret) : sk;
}

/**
 * twheel_watch_insert - begin to watch a socket
 * @kind:	a kind
 * @watch:	the watch; its flags are set. Its state becomes %TWHEEL_WATCH_IDLE
 * @sk:		the socket, which a watch of this kind must not have yet
 *
 * Unless the caller has the socket locked, and found it open, it has the worker look at the
 * watch first.
 *
 * Context: process and softirq; the owner's lock may be held.
 * Return: 0; or
 * * %-EBUSY	- the socket has a watch of this kind
 * * %-ENOMEM	- no memory
 */
int twheel_watch_insert(struct twheel_watch_kind *kind, struct twheel_watch *watch,
			struct sock *sk)
{
	int ret;

	/* Pairs with the READ_ONCE()s of who looks for another socket. */
	WRITE_ONCE(watch->sk, sk);
	watch->state = TWHEEL_WATCH_IDLE;
	sock_hold(sk);
	ret = rhashtable_lookup_insert_fast(&kind->table, &watch->hash, params);
	if (!ret)
		return 0;
	/* As above. */
	WRITE_ONCE(watch->sk, NULL);
	/* Not the last one: the caller has one, too. */
	sock_put(sk);
	return ret == -EEXIST ? -EBUSY : -ENOMEM;
}

/**
 * twheel_watch_replace - watch a socket by another watch
 * @kind:	the kind of both
 * @old:	a watch in the table, which leaves it
 * @watch:	a watch that takes its place; as for twheel_watch_insert()
 *
 * Needs no memory.
 *
 * Context: process and softirq, with the owner's lock held.
 */
void twheel_watch_replace(struct twheel_watch_kind *kind, struct twheel_watch *old,
			  struct twheel_watch *watch)
{
	/* As in twheel_watch_insert(). */
	WRITE_ONCE(watch->sk, old->sk);
	watch->state = TWHEEL_WATCH_IDLE;
	rhashtable_replace_fast(&kind->table, &old->hash, &watch->hash, params);
	/* As there. */
	WRITE_ONCE(old->sk, NULL);
}

/**
 * twheel_watch_remove - watch a socket no more
 * @kind:	the kind of the watch
 * @watch:	a watch in the table, in state %TWHEEL_WATCH_IDLE or %TWHEEL_WATCH_IN_WORK. Its
 *		memory may be read until an RCU grace period is over
 *
 * Context: process and softirq, with the owner's lock held.
 * Return: the socket, whose reference the caller has to put. As TCP frees sockets with whatever
 * lock its devices hold when a packet is gone, so may the caller; but not with kinds' locks.
 */
struct sock *twheel_watch_remove(struct twheel_watch_kind *kind, struct twheel_watch *watch)
{
	struct sock *sk = watch->sk;

	rhashtable_remove_fast(&kind->table, &watch->hash, params);
	/* As in twheel_watch_insert(). */
	WRITE_ONCE(watch->sk, NULL);
	return sk;
}

/**
 * twheel_watch_find - find the watch of a socket
 * @kind:	its kind
 * @sk:		the socket
 *
 * Context: any but NMI, under rcu_read_lock().
 * Return: the watch, which may just be removed; or NULL.
 */
struct twheel_watch *twheel_watch_find(struct twheel_watch_kind *kind, const struct sock *sk)
{
	return rhashtable_lookup(&kind->table, &sk, params);
}

/*
 * When jiffy 0 began, in nanoseconds of CLOCK_MONOTONIC: jiffies begin on time, as a rule, and
 * never before it, so the earliest beginning seen is right. Starts at the end of time. Written by
 * whoever has seen an earlier one; should two do so at once the next one puts it right.
 */
static u64 first_jiffy = U64_MAX;

static u64 begin_of_first_jiffy(u64 now, u64 jiffy)
{
	/* Pairs with the store below. */
	u64 known = READ_ONCE(first_jiffy), seen;

	if (likely(now - jiffy * TICK_NSEC >= known && known != U64_MAX))
		return known;
	/* A jiffy may have begun since @now was read. */
	jiffy = get_jiffies_64();
	seen = ktime_get_ns() - jiffy * TICK_NSEC;
	if (seen >= known && known != U64_MAX)
		return known;
	WRITE_ONCE(first_jiffy, seen);
	return seen;
}

/*
 * Learns when jiffies begin, by waiting for some. To sleep would be to wake up too late. It is
 * done once.
 */
static void learn_jiffies(void)
{
	u64 jiffy;
	int i;

	/* Pairs with the WRITE_ONCE() above. */
	if (READ_ONCE(first_jiffy) != U64_MAX)
		return;
	for (i = 0; i < 3; i++) {
		jiffy = get_jiffies_64();
		while (!time_after64(get_jiffies_64(), jiffy))
			cpu_relax();
		begin_of_first_jiffy(ktime_get_ns(), jiffy);
	}
}

/* Jiffies since a stamp; 0 if it is of one that has begun since @jiffy was read. */
static u32 age_of(u32 stamp, u64 jiffy)
{
	u32 age = (u32)jiffy - stamp;

	return age > U32_MAX - HZ ? 0 : age;
}

/**
 * twheel_watch_active - when was a connection last active?
 * @sk:		a TCP socket
 * @flags:	TWHEEL_WATCH_RECEIVED and _SENT: what is activity; if neither, both are
 * @now:	what CLOCK_MONOTONIC shows, in nanoseconds
 *
 * The kernel counts this in jiffies. The answer is the end of that jiffy: rather
 * a little late than before the limit is over.
 *
 * Context: any but NMI. If the socket is locked, there is no later one until it is unlocked.
 * Return: nanoseconds of CLOCK_MONOTONIC, not after @now.
 */
u64 twheel_watch_active(const struct sock *sk, u16 flags, u64 now)
{
	u64 jiffy = get_jiffies_64();
	/* Written by TCP, with the socket locked; each is read by itself. */
	u32 received = age_of(READ_ONCE(inet_csk(sk)->icsk_ack.lrcvtime), jiffy);
	u32 sent = age_of(READ_ONCE(tcp_sk(sk)->lsndtime), jiffy);
	u32 age = min(received, sent);

	flags &= TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT;
	if (flags == TWHEEL_WATCH_RECEIVED)
		age = received;
	else if (flags == TWHEEL_WATCH_SENT)
		age = sent;
	/* This jiffy has not ended. */
	if (!age)
		return now;
	return min(now, begin_of_first_jiffy(now, jiffy) + (jiffy - age + 1) * TICK_NSEC);
}

/*
 * Kinds
 */

static int register_probe(void)
{
	if (!tracepoint)
		return -EOPNOTSUPP;
	return tracepoint_probe_register(tracepoint, state_changes, NULL);
}

static void unregister_probe(void)
{
	if (tracepoint)
		tracepoint_probe_unregister(tracepoint, state_changes, NULL);
	tracepoint_synchronize_unregister();
}

/* Changes that were noted when the last kind was there. */
static void drop_changes(void)
{
	struct twheel_watch_change change;
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		while (kfifo_get(&per_cpu_ptr(changes, cpu)->fifo, &change))
			sock_put(change.sk);
}

/**
 * twheel_watch_kind_add - there will be watches of a kind
 * @kind:	the kind; what its owner has to set is set
 *
 * From here on changes are told. The first time it takes some jiffies.
 *
 * Context: process; may sleep. No lock is held that the owner takes in changed().
 * Return: 0; or
 * * %-EOPNOTSUPP - this kernel does not tell of changes
 * * %-ENOMEM	- no memory
 */
int twheel_watch_kind_add(struct twheel_watch_kind *kind)
{
	int ret, i;

	learn_jiffies();
	spin_lock_init(&kind->lock);
	INIT_LIST_HEAD(&kind->due);
	INIT_WORK(&kind->work, work_on_due);
	ret = rhashtable_init(&kind->table, &params);
	if (ret)
		return ret;
	mutex_lock(&kinds_lock);
	ret = nr_kinds ? 0 : register_probe();
	if (!ret) {
		nr_kinds++;
		if (!kind->known.next)
			list_add_tail(&kind->known, &known_kinds);
		i = kinds[0] ? 1 : 0;
		/* Pairs with the READ_ONCE() in is_wanted(), which then uses @kind. */
		smp_store_release(&kinds[i], kind);
	}
	mutex_unlock(&kinds_lock);
	if (ret)
		rhashtable_destroy(&kind->table);
	return ret;
}

/**
 * twheel_watch_kind_del - there will be no more watches of a kind
 * @kind:	the kind, whose watches have been removed
 *
 * An RCU grace period goes by.
 *
 * Context: process; may sleep. No lock is held that the owner takes in what it is called for.
 */
void twheel_watch_kind_del(struct twheel_watch_kind *kind)
{
	mutex_lock(&kinds_lock);
	/* Pairs with the READ_ONCE() in is_wanted(); both of what follows wait for its end. */
	WRITE_ONCE(kinds[kinds[0] == kind ? 0 : 1], NULL);
	if (!--nr_kinds) {
		unregister_probe();
		drop_changes();
	} else {
		synchronize_rcu();
	}
	mutex_unlock(&kinds_lock);
	flush_work(&kind->work);
	rhashtable_destroy(&kind->table);
}

/* Watches in the table of a kind, if it is there at all. */
static int nr_watches(struct twheel_watch_kind *kind)
{
	return kinds[0] == kind || kinds[1] == kind ? atomic_read(&kind->table.nelems) : 0;
}

static void show_kind(struct seq_file *m, struct twheel_watch_kind *kind)
{
	/* The worker may just count. */
	const struct twheel_watch_counts *counts = &kind->counts;
	unsigned int i;
	u64 n;

	seq_printf(m, "%s watches: %d\n", kind->name, nr_watches(kind));
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

/**
 * twheel_watch_show - show what has become of watches
 * @m:		what is printed goes there
 *
 * Context: process; may sleep.
 */
void twheel_watch_show(struct seq_file *m)
{
	struct twheel_watch_kind *kind;

	mutex_lock(&kinds_lock);
	list_for_each_entry(kind, &known_kinds, known)
		show_kind(m, kind);
	mutex_unlock(&kinds_lock);
}

/**
 * twheel_watch_available - can sockets be watched?
 *
 * Context: any.
 * Return: whether this kernel tells of changes.
 */
bool twheel_watch_available(void)
{
	return tracepoint;
}

static void find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "inet_sock_set_state"))
		tracepoint = tp;
}

/**
 * twheel_watch_init - get ready to watch sockets
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int __init twheel_watch_init(void)
{
	struct cpu_changes *theirs;
	unsigned int cpu;

	if (IS_ENABLED(CONFIG_TRACEPOINTS))
		for_each_kernel_tracepoint(find_tracepoint, NULL);
	changes = alloc_percpu(struct cpu_changes);
	if (!changes)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		theirs = per_cpu_ptr(changes, cpu);
		INIT_KFIFO(theirs->fifo);
		INIT_WORK(&theirs->work, work_on_changes);
	}
	queue = alloc_workqueue("twheel", WQ_UNBOUND, 0);
	if (!queue) {
		free_percpu(changes);
		return -ENOMEM;
	}
	return 0;
}

/**
 * twheel_watch_exit - the opposite of twheel_watch_init()
 *
 * Context: process; may sleep. There are no kinds left.
 */
void twheel_watch_exit(void)
{
	/* Waits for works that are under way, resets among them. */
	destroy_workqueue(queue);
	free_percpu(changes);
}
