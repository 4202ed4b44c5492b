// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: sockets that change their state: who notices, and who is told
 *
 * The probe of the tracepoint inet_sock_set_state is called with preemption off (not so by the
 * newest kernels), when nearly nothing can be done on PREEMPT_RT, and before the state has
 * changed. So it only notes the socket for a worker, which makes the watch due, or tells of a
 * connection that begins:
 *
 *	who changes the state		who begins to watch
 *	socket is locked
 *	tracepoint: in the table? no
 *					into the table
 *	state changes			the socket is busy: looks again later
 *	socket is unlocked		...
 *					locks the socket: it is over
 *
 * The probe stays for a while when there is no kind left, and does nothing: to register it, and to
 * unregister it, has the kernel patch its code, with all CPUs, and programs can make kinds come and
 * go as fast as they like.
 *
 * If there are more changes than can be noted, all watches are looked at instead: by a work of its
 * own, in portions, and once in a second at the most, however many changes there are. Others'
 * changes do not wait for that.
 */
#include <linux/jiffies.h>
#include <linux/kfifo.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/tcp.h>

#include "sk_state.h"
#include "watch.h"
#include "watch_table.h"
#include "watch_worker.h"

/* Changes of a CPU that can be noted: 32 KB. */
#define FIFO_SIZE	2048

/* Changes, or watches, that are looked at before others get their turn. */
#define BATCH		64

/* How long the probe stays when the last kind is gone, in jiffies. */
#define PROBE_LINGER	(5 * HZ)

/* Most kinds of watches. */
#define KINDS_MAX	2

/**
 * struct cpu_changes - changes that a CPU has noted
 * @fifo:	the changes, each with a reference to its socket. Written by the CPU with
 *		interrupts off, read by @work
 * @work:	passes them on
 */
struct cpu_changes {
	DECLARE_KFIFO_PTR(fifo, struct twheel_watch_change);
	struct work_struct	work;
};

static struct cpu_changes __percpu *changes;
/* The works' of changes: before all others, so that there is room for the next ones. */
static struct workqueue_struct *changes_wq;
static struct tracepoint *state_tp;

/*
 * Guards the table of kinds, their list, and whether the probe is registered. Held for a portion of
 * changes at the most. Taken in process context, outside of all others but sock_timer.c's.
 */
static DEFINE_MUTEX(kinds_lock);
/* Read by the probe and by scan_kinds() without the lock. */
static struct twheel_watch_kind *kinds[KINDS_MAX];
static unsigned int nr_kinds;
static bool probe_registered;
/* All kinds that there ever were; they are part of the module. */
static LIST_HEAD(known_kinds);

/* Changes that could not be noted and that nobody has made up for. Written by the probe. */
static atomic_t nr_lost = ATOMIC_INIT(0);
/* When the last scan began, in jiffies. Written by the scan, read by who has it done again. */
static unsigned long last_scan;
/* The kind that is being scanned, or NULL. Written by the scan. */
static struct twheel_watch_kind *scanned_kind;
/* Who waits for that to change. */
static DECLARE_WAIT_QUEUE_HEAD(scan_wait);

/*
 * Notes in the watch of a socket that its connection ends. When the worker looks, the socket may
 * have another one, if a program has dissolved this and connected it again.
 *
 * The watch may be removed meanwhile, and begin another life with another socket, but not with this
 * one, which is locked:
 *
 *	who changes the state		who has the watch
 *	found by sk			sk = NULL
 *	its life			barrier
 *	barrier				the next life
 *	still sk? then that life
 *	is this socket's
 */
static void note_end(struct twheel_watch_kind *kind, struct twheel_watch *watch,
		     const struct sock *sk)
{
	const u8 life = twheel_watch_life(kind, watch);

	/* See above. Pairs with twheel_watch_remove(). */
	smp_rmb();
	/* Pairs with the WRITE_ONCE()s in watch_table.c. */
	if (READ_ONCE(watch->sk) == sk)
		/* Pairs with twheel_watch_has_ended(). */
		WRITE_ONCE(watch->ended, life);
}

/* Does a socket listen no more? The new one of a connection begins as a copy of it. */
static bool stops_listening(int oldstate, int newstate)
{
	return oldstate == TCP_LISTEN && newstate == TCP_CLOSE;
}

/* Does a kind care for this change? If the connection that it watches ends, that is noted. */
static bool kind_wants(struct twheel_watch_kind *kind, const struct sock *sk, int oldstate,
		       int newstate)
{
	bool ends = twheel_watchable(oldstate) && !twheel_watchable(newstate);
	bool begins = newstate == TCP_ESTABLISHED || newstate == TCP_SYN_SENT ||
		      newstate == TCP_LISTEN;
	struct twheel_watch *watch;

	watch = ends ? twheel_watch_find(kind, sk) : NULL;
	if (watch)
		note_end(kind, watch, sk);
	return watch || ((begins || stops_listening(oldstate, newstate)) && kind->sk_changed);
}

/* Does anybody care for this change? */
static bool any_kind_wants(const struct sock *sk, int oldstate, int newstate)
{
	struct twheel_watch_kind *kind;
	bool wanted = false;
	int i;

	for (i = 0; i < KINDS_MAX; i++) {
		/* Pairs with those in twheel_sk_state_subscribe() and _unsubscribe(). */
		kind = READ_ONCE(kinds[i]);
		if (kind && kind_wants(kind, sk, oldstate, newstate))
			wanted = true;
	}
	return wanted;
}

/* The pid of who does this, if it is a process. */
static pid_t initiator_pid(void)
{
	return in_task() && !(current->flags & PF_KTHREAD) ? task_tgid_nr(current) : 0;
}

/*
 * The probe. Its context is any that TCP runs in, mostly with preemption off; the socket is
 * locked, by a process or in softirq context.
 */
static void probe_inet_sock_set_state(void *unused, const struct sock *sk, int oldstate,
				      int newstate)
{
	struct twheel_watch_change change = {
		.sk	= (struct sock *)sk,
		.state	= newstate,
	};
	struct cpu_changes *pcpu;
	unsigned long flags;
	bool wanted;

	if (sk->sk_protocol != IPPROTO_TCP)
		return;
	rcu_read_lock();
	wanted = any_kind_wants(sk, oldstate, newstate);
	rcu_read_unlock();
	if (!wanted)
		return;
	change.pid = initiator_pid();
	/* If the kernel had chosen it, it may be somebody else's soon. */
	if (stops_listening(oldstate, newstate))
		change.port = ntohs(READ_ONCE(inet_sk(sk)->inet_sport));
	local_irq_save(flags);
	pcpu = this_cpu_ptr(changes);
	sock_hold(change.sk);
	/* Pairs with process_changes(). kfifo orders the accesses to its indices, unmarked. */
	if (!data_race(kfifo_put(&pcpu->fifo, change))) {
		/* Not the last reference: who changes the state has one. */
		sock_put(change.sk);
		atomic_inc(&nr_lost);
	}
	queue_work(changes_wq, &pcpu->work);
	local_irq_restore(flags);
}

/*
 * May the connection that is watched be over? If its state is about to change, its socket is locked
 * from before this is told until after it has changed. If its socket has another one by now, the
 * end was noted. Out of line, as is who calls it, for a test that counts both.
 */
static noinline __noclone bool may_have_ended(struct twheel_watch_kind *kind,
					      struct twheel_watch *watch, struct sock *sk)
{
	if (twheel_watch_has_ended(kind, watch))
		return true;
	if (spin_is_locked(&sk->sk_lock.slock) || sock_owned_by_user_nocheck(sk))
		return true;
	/* What was stored before the socket was unlocked is seen. */
	smp_rmb();
	return !twheel_watchable(inet_sk_state_load(sk));
}

/* Makes watches due whose connections are over, or may be. Returns whether there are more. */
static noinline bool scan_some_watches(struct twheel_watch_kind *kind, struct rhashtable_iter *iter)
{
	struct twheel_watch *watch = NULL;
	struct sock *sk;
	int i;

	rhashtable_walk_start(iter);
	for (i = 0; i < BATCH; i++) {
		watch = rhashtable_walk_next(iter);
		if (!watch)
			break;
		/* The table was resized: it goes on with the new one. */
		if (IS_ERR(watch))
			continue;
		/*
		 * Pairs with the WRITE_ONCE()s. The socket may be freed, but not the slab that it
		 * is in, under the RCU lock.
		 */
		sk = READ_ONCE(watch->sk);
		if (sk && may_have_ended(kind, watch, sk))
			kind->sk_closed(watch, sk);
	}
	rhashtable_walk_stop(iter);
	return watch;
}

/* Is a kind still there? If not, twheel_sk_state_unsubscribe() waits for this scan to end. */
static bool is_subscribed(const struct twheel_watch_kind *kind)
{
	/* Pairs with the WRITE_ONCE() there. */
	return READ_ONCE(kinds[0]) == kind || READ_ONCE(kinds[1]) == kind;
}

static void scan_watches(struct twheel_watch_kind *kind)
{
	struct rhashtable_iter iter;

	atomic64_inc(&kind->counts.scans);
	rhashtable_walk_enter(&kind->table, &iter);
	while (scan_some_watches(kind, &iter) && is_subscribed(kind))
		cond_resched();
	rhashtable_walk_exit(&iter);
}

/*
 * Scans a kind, if it is there. Either twheel_sk_state_unsubscribe() sees that it is scanned, or
 * this that it is gone:
 *
 *	scan					unsubscribe
 *	scanned = kind				kinds[] = NULL
 *	barrier					barrier
 *	still in kinds[]?			scanned == kind? wait
 */
static void scan_kind(struct twheel_watch_kind *kind)
{
	WRITE_ONCE(scanned_kind, kind);
	/* See above. */
	smp_mb();
	if (kind && is_subscribed(kind)) {
		scan_watches(kind);
		if (kind->sk_changed && is_subscribed(kind))
			kind->sk_changed(NULL);
	}
	/* It is done with the kind. Pairs with the smp_load_acquire() in is_being_scanned(). */
	smp_store_release(&scanned_kind, NULL);
	wake_up_all(&scan_wait);
}

static bool is_being_scanned(const struct twheel_watch_kind *kind)
{
	/* Pairs with scan_kind(). */
	return smp_load_acquire(&scanned_kind) == kind;
}

/* Makes up for changes that could not be noted. */
static void scan_kinds(struct work_struct *work)
{
	int i;

	/* Pairs with schedule_scan(). */
	WRITE_ONCE(last_scan, jiffies);
	/* What is lost from here on has this called again. */
	atomic_xchg(&nr_lost, 0);
	/* Pairs with those in twheel_sk_state_subscribe() and _unsubscribe(). */
	for (i = 0; i < KINDS_MAX; i++)
		scan_kind(READ_ONCE(kinds[i]));
}

static DECLARE_DELAYED_WORK(scan_work, scan_kinds);

/* Has that done, but not twice in a second. */
static void schedule_scan(void)
{
	/* Pairs with scan_kinds(). */
	unsigned long next = READ_ONCE(last_scan) + HZ, now = jiffies;

	queue_delayed_work(twheel_watch_queue, &scan_work, time_before(now, next) ? next - now : 0);
}

static void dispatch_change(struct twheel_watch_kind *kind,
			    const struct twheel_watch_change *change)
{
	struct twheel_watch *watch;

	if (change->port) {
		if (kind->sk_changed)
			kind->sk_changed(change);
		return;
	}
	switch (change->state) {
	case TCP_ESTABLISHED:
	case TCP_SYN_SENT:
	case TCP_LISTEN:
		if (kind->sk_changed)
			kind->sk_changed(change);
		break;
	default:
		rcu_read_lock();
		watch = twheel_watch_find(kind, change->sk);
		if (watch)
			kind->sk_closed(watch, change->sk);
		rcu_read_unlock();
	}
}

/* The worker of a CPU's changes. */
static void process_changes(struct work_struct *work)
{
	struct cpu_changes *pcpu = container_of(work, struct cpu_changes, work);
	struct twheel_watch_change change;
	int i, n;

	mutex_lock(&kinds_lock);
	for (n = 0; n < BATCH; n++) {
		/* Pairs with probe_inet_sock_set_state(), as there. */
		if (!data_race(kfifo_get(&pcpu->fifo, &change)))
			break;
		for (i = 0; i < KINDS_MAX; i++)
			if (kinds[i])
				dispatch_change(kinds[i], &change);
		sock_put(change.sk);
		cond_resched();
	}
	if (nr_kinds && atomic_read(&nr_lost))
		schedule_scan();
	mutex_unlock(&kinds_lock);
	if (n == BATCH)
		queue_work(changes_wq, &pcpu->work);
}

/*
 * Who is told
 */

static int register_probe(void)
{
	int ret;

	if (!state_tp)
		return -EOPNOTSUPP;
	if (probe_registered)
		return 0;
	ret = tracepoint_probe_register(state_tp, probe_inet_sock_set_state, NULL);
	probe_registered = !ret;
	return ret;
}

/* Takes the probe away if there is no kind. */
static void unregister_probe(struct work_struct *work)
{
	mutex_lock(&kinds_lock);
	if (probe_registered && !nr_kinds) {
		tracepoint_probe_unregister(state_tp, probe_inet_sock_set_state, NULL);
		tracepoint_synchronize_unregister();
		probe_registered = false;
	}
	mutex_unlock(&kinds_lock);
}

static DECLARE_DELAYED_WORK(unregister_work, unregister_probe);

/**
 * twheel_sk_state_subscribe - tell a kind of watches of changes
 * @kind:	the kind; its table is there
 *
 * Context: process; may sleep. No lock is held that the owner takes in sk_changed().
 * Return: 0; or
 * * %-EOPNOTSUPP - this kernel does not tell of changes
 * * %-ENOMEM	- no memory
 */
int twheel_sk_state_subscribe(struct twheel_watch_kind *kind)
{
	int ret, i;

	mutex_lock(&kinds_lock);
	ret = nr_kinds ? 0 : register_probe();
	if (!ret) {
		nr_kinds++;
		if (!kind->known.next)
			list_add_tail(&kind->known, &known_kinds);
		i = kinds[0] ? 1 : 0;
		/* Pairs with the READ_ONCE() in any_kind_wants(), which then uses @kind. */
		smp_store_release(&kinds[i], kind);
	}
	mutex_unlock(&kinds_lock);
	return ret;
}

/**
 * twheel_sk_state_unsubscribe - tell a kind of watches of changes no more
 * @kind:	the kind, whose watches have been removed
 *
 * An RCU grace period goes by, and nobody uses the kind's table any more on account of a change.
 *
 * Context: process; may sleep. No lock is held that the owner takes in sk_closed() and sk_changed().
 */
void twheel_sk_state_unsubscribe(struct twheel_watch_kind *kind)
{
	mutex_lock(&kinds_lock);
	/*
	 * Pairs with the READ_ONCE() in any_kind_wants(), for whose end synchronize_rcu() waits, and
	 * with those of scan_kinds().
	 */
	WRITE_ONCE(kinds[kinds[0] == kind ? 0 : 1], NULL);
	mutex_unlock(&kinds_lock);
	/* The other kind's changes do not wait for that. */
	synchronize_rcu();
	mutex_lock(&kinds_lock);
	/* If there is none left, the works drop what has been noted, in portions. */
	if (!--nr_kinds)
		mod_delayed_work(twheel_watch_queue, &unregister_work, PROBE_LINGER);
	mutex_unlock(&kinds_lock);
	/* See scan_kind(). It notices after a portion. */
	smp_mb();
	wait_event(scan_wait, !is_being_scanned(kind));
}

/* Watches in the table of a kind, if it is there at all. */
static int count_watches(struct twheel_watch_kind *kind)
{
	return kinds[0] == kind || kinds[1] == kind ? atomic_read(&kind->table.nelems) : 0;
}

static void show_kind(struct seq_file *m, struct twheel_watch_kind *kind)
{
	seq_printf(m, "%s watches: %d\n", kind->name, count_watches(kind));
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
	return state_tp;
}

static void find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "inet_sock_set_state"))
		state_tp = tp;
}

/* Frees what twheel_sk_state_init() has made, as far as it came. */
static void free_changes(void)
{
	unsigned int cpu;

	if (changes_wq)
		destroy_workqueue(changes_wq);
	cancel_delayed_work_sync(&scan_work);
	for_each_possible_cpu(cpu)
		kfifo_free(&per_cpu_ptr(changes, cpu)->fifo);
	free_percpu(changes);
}

/**
 * twheel_sk_state_init - get ready to notice changes
 *
 * Context: process; may sleep. The workers' queue is there.
 * Return: 0, or -ENOMEM.
 */
int __init twheel_sk_state_init(void)
{
	struct cpu_changes *pcpu;
	unsigned int cpu;

	if (IS_ENABLED(CONFIG_TRACEPOINTS))
		for_each_kernel_tracepoint(find_tracepoint, NULL);
	last_scan = jiffies - HZ;
	changes = alloc_percpu(struct cpu_changes);
	if (!changes)
		return -ENOMEM;
	changes_wq = alloc_workqueue("twheel_changes", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!changes_wq)
		goto err_free;
	for_each_possible_cpu(cpu) {
		pcpu = per_cpu_ptr(changes, cpu);
		INIT_WORK(&pcpu->work, process_changes);
		if (kfifo_alloc(&pcpu->fifo, FIFO_SIZE, GFP_KERNEL))
			goto err_free;
	}
	return 0;

err_free:
	free_changes();
	return -ENOMEM;
}

/**
 * twheel_sk_state_exit - the opposite of twheel_sk_state_init()
 *
 * Context: process; may sleep. There are no kinds left; the workers' queue is there.
 */
void twheel_sk_state_exit(void)
{
	cancel_delayed_work_sync(&unregister_work);
	unregister_probe(NULL);
	free_changes();
}
