// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: sockets that change their state: who notices, and who is told
 *
 * The probe of the tracepoint inet_sock_set_state is called with preemption off, when nearly
 * nothing can be done on PREEMPT_RT, and before the state has changed. So it only notes the
 * socket for a worker, which makes the watch due, or tells of a connection that begins:
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
#include <linux/kfifo.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <net/tcp.h>

#include "watch.h"

/* Changes of a CPU that can be noted. */
#define NR_CHANGES	512

/* Most kinds of watches. */
#define NR_KINDS	2

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

/* Does anybody care for this change? */
static bool is_wanted(const struct sock *sk, int before, int after)
{
	struct twheel_watch_kind *kind;
	bool ends = twheel_watchable(before) && !twheel_watchable(after);
	bool begins = after == TCP_ESTABLISHED || after == TCP_SYN_SENT || after == TCP_LISTEN;
	int i;

	for (i = 0; i < NR_KINDS; i++) {
		/* Pairs with those in twheel_changes_subscribe() and _unsubscribe(). */
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
	queue_work(twheel_watch_queue, &mine->work);
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
 * Who is told
 */

static int register_probe(void)
{
	if (!tracepoint)
		return -EOPNOTSUPP;
	return tracepoint_probe_register(tracepoint, state_changes, NULL);
}

static void unregister_probe(void)
{
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
 * twheel_changes_subscribe - tell a kind of watches of changes
 * @kind:	the kind; its table is there
 *
 * Context: process; may sleep. No lock is held that the owner takes in changed().
 * Return: 0; or
 * * %-EOPNOTSUPP - this kernel does not tell of changes
 * * %-ENOMEM	- no memory
 */
int twheel_changes_subscribe(struct twheel_watch_kind *kind)
{
	int ret, i;

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
	return ret;
}

/**
 * twheel_changes_unsubscribe - tell a kind of watches of changes no more
 * @kind:	the kind, whose watches have been removed
 *
 * An RCU grace period goes by, and nobody uses the kind's table any more on account of a change.
 *
 * Context: process; may sleep. No lock is held that the owner takes in over() and changed().
 */
void twheel_changes_unsubscribe(struct twheel_watch_kind *kind)
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
}

/* Watches in the table of a kind, if it is there at all. */
static int nr_watches(struct twheel_watch_kind *kind)
{
	return kinds[0] == kind || kinds[1] == kind ? atomic_read(&kind->table.nelems) : 0;
}

static void show_kind(struct seq_file *m, struct twheel_watch_kind *kind)
{
	seq_printf(m, "%s watches: %d\n", kind->name, nr_watches(kind));
	twheel_watch_show_counts(m, kind);
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
 * twheel_changes_init - get ready to notice changes
 *
 * Context: process; may sleep. The workers' queue is there.
 * Return: 0, or -ENOMEM.
 */
int __init twheel_changes_init(void)
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
	return 0;
}

/**
 * twheel_changes_exit - the opposite of twheel_changes_init()
 *
 * Context: process; may sleep. No work is under way.
 */
void twheel_changes_exit(void)
{
	free_percpu(changes);
}
