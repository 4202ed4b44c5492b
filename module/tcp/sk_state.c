// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: detects state changes of sockets, and notifies the owners of watches
 *
 * The probe of the tracepoint inet_sock_set_state runs with preemption disabled (not on the newest
 * kernels), where hardly anything is allowed on PREEMPT_RT, and before the state has changed. So it
 * only records the socket for a worker, which queues the watch or reports the connection that
 * begins:
 *
 *	state change			start of a watch
 *	socket is locked
 *	tracepoint: in the table? no
 *					insert into the table
 *	state changes			socket is busy: retry later
 *	socket is unlocked		...
 *					lock the socket: closed
 *
 * The probe stays registered for a while after the last kind is gone, and does nothing: to register
 * and to unregister it, the kernel patches its code, which involves all CPUs, and programs can make
 * kinds come and go as fast as they like.
 *
 * If there are more changes than can be recorded, all watches are scanned instead: by a work item
 * of its own, in batches, and at most once a second, however many changes there are. Other changes
 * do not wait for that.
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

/* Changes that a CPU can record: 32 KB. */
#define FIFO_SIZE	2048

/* Changes, or watches, processed before others get their turn. */
#define BATCH		64

/* How long the probe stays registered after the last kind is gone, in jiffies. */
#define PROBE_LINGER	(5 * HZ)

/* Maximum number of kinds of watches. */
#define KINDS_MAX	2

/**
 * struct cpu_changes - changes recorded by a CPU
 * @fifo:	the changes, each with a reference to its socket. Written by the CPU with interrupts
 *		disabled, read by @work
 * @work:	processes the changes
 */
struct cpu_changes {
	DECLARE_KFIFO_PTR(fifo, struct twheel_watch_change);
	struct work_struct	work;
};

static struct cpu_changes __percpu *changes;
/* Runs the works of @changes: at high priority, so that there is room for the next changes. */
static struct workqueue_struct *changes_wq;
static struct tracepoint *state_tp;

/*
 * Guards the table of kinds, their list, and whether the probe is registered. Held for at most a
 * batch of changes. Taken in process context, outside of all locks but those of sock_timer.c and
 * track.c that guard whether there are watches.
 */
static DEFINE_MUTEX(kinds_lock);
/* Read by the probe and by scan_kinds() without the lock. */
static struct twheel_watch_kind *kinds[KINDS_MAX];
static unsigned int nr_kinds;
static bool probe_registered;
/* All kinds that were ever added; they are part of the module. */
static LIST_HEAD(known_kinds);

/*
 * Changes that were lost, and that no scan has made up for. Incremented by the probe, reset by the
 * scan.
 */
static atomic_t nr_lost = ATOMIC_INIT(0);
/* When the last scan began, in jiffies. Written by the scan, read by schedule_scan(). */
static unsigned long last_scan;
/* The kind that is being scanned, or NULL. Written by the scan. */
static struct twheel_watch_kind *scanned_kind;
/* Tasks that wait for @scanned_kind to change. */
static DECLARE_WAIT_QUEUE_HEAD(scan_wait);

/*
 * Records in the watch of a socket that its connection ends. By the time the worker locks the
 * socket, it may have another connection, if a program has dissolved this one and connected the
 * socket again.
 *
 * Meanwhile the watch may be removed and begin another life with another socket, but not with this
 * one, which is locked:
 *
 *	state change			owner of the watch
 *	found by sk			sk = NULL
 *	read its life			barrier
 *	barrier				the next life
 *	still sk? then that life
 *	is this socket's
 */
static void note_end(struct twheel_watch_kind *kind, struct twheel_watch *watch,
		     const struct sock *sk)
{
	const u8 life = twheel_watch_life(kind, watch);

	/* See above. Pairs with the smp_wmb() in twheel_watch_remove(). */
	smp_rmb();
	/* Pairs with the WRITE_ONCE()s in watch_table.c. */
	if (READ_ONCE(watch->sk) == sk)
		/* Pairs with twheel_watch_has_ended(). */
		WRITE_ONCE(watch->ended, life);
}

/* Is there a connection in this state, or an attempt at one? */
static bool is_connection(int state)
{
	return twheel_watchable(state) || twheel_is_connecting(state);
}

/*
 * Does a kind care about this change? If a connection that it watches ends, that is recorded. It is
 * told at once that a socket stops listening: another one may listen on the port as soon as the
 * state has changed, and its connections must not be taken for this one's.
 */
static bool kind_wants(struct twheel_watch_kind *kind, const struct sock *sk, int oldstate,
		       int newstate)
{
	bool ends = is_connection(oldstate) && !is_connection(newstate);
	bool begins = newstate == TCP_ESTABLISHED || newstate == TCP_SYN_SENT ||
		      newstate == TCP_LISTEN;
	struct twheel_watch *watch;

	watch = ends ? twheel_watch_find(kind, sk) : NULL;
	if (watch)
		note_end(kind, watch, sk);
	/* The socket of a new connection starts as a copy of the listener: it is not closed. */
	if (oldstate == TCP_LISTEN && newstate == TCP_CLOSE && kind->listener_gone)
		kind->listener_gone(sk);
	return watch || (begins && kind->sk_changed);
}

/* Does any kind care about this change? */
static bool any_kind_wants(const struct sock *sk, int oldstate, int newstate)
{
	struct twheel_watch_kind *kind;
	bool wanted = false;
	int i;

	for (i = 0; i < KINDS_MAX; i++) {
		/* Pairs with the stores in twheel_sk_state_subscribe() and _unsubscribe(). */
		kind = READ_ONCE(kinds[i]);
		if (kind && kind_wants(kind, sk, oldstate, newstate))
			wanted = true;
	}
	return wanted;
}

/* The pid of the process that makes the change, or 0 if none does. */
static pid_t initiator_pid(void)
{
	return in_task() && !(current->flags & PF_KTHREAD) ? task_tgid_nr(current) : 0;
}

/*
 * The probe. Runs in any context that TCP runs in, mostly with preemption disabled; the socket is
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
	local_irq_save(flags);
	pcpu = this_cpu_ptr(changes);
	sock_hold(change.sk);
	/* Pairs with process_changes(). kfifo orders the accesses to its indices, unmarked. */
	if (!data_race(kfifo_put(&pcpu->fifo, change))) {
		/* Not the last reference: the code that changes the state holds one. */
		sock_put(change.sk);
		atomic_inc(&nr_lost);
	}
	queue_work(changes_wq, &pcpu->work);
	local_irq_restore(flags);
}

/*
 * May the watched connection have ended? If its socket has another one by now, the end was
 * recorded. Out of line, as is the caller, for a test that counts both.
 */
static noinline __noclone bool may_have_ended(struct twheel_watch_kind *kind,
					      struct twheel_watch *watch, struct sock *sk)
{
	if (twheel_watch_has_ended(kind, watch) || twheel_sk_may_change(sk))
		return true;
	return !twheel_watchable(inet_sk_state_load(sk));
}

/* Reports watches whose connections have ended, or may have. Returns whether there are more. */
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
		/* The table was resized: the walk goes on with the new one. */
		if (IS_ERR(watch))
			continue;
		/*
		 * Pairs with the WRITE_ONCE()s. The socket may be freed, but not the slab that it
		 * is in, under the RCU read lock.
		 */
		sk = READ_ONCE(watch->sk);
		if (sk && may_have_ended(kind, watch, sk))
			kind->sk_closed(watch, sk);
	}
	rhashtable_walk_stop(iter);
	return watch;
}

/* Is a kind still subscribed? If not, twheel_sk_state_unsubscribe() waits for this scan to end. */
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
 * Scans a kind if it is subscribed. Either twheel_sk_state_unsubscribe() sees that the kind is
 * being scanned, or this sees that the kind is gone:
 *
 *	scan					unsubscribe
 *	scanned_kind = kind			kinds[] = NULL
 *	barrier					barrier
 *	still in kinds[]?			scanned_kind == kind? wait
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
	/* Done with the kind. Pairs with the smp_load_acquire() in is_being_scanned(). */
	smp_store_release(&scanned_kind, NULL);
	wake_up_all(&scan_wait);
}

static bool is_being_scanned(const struct twheel_watch_kind *kind)
{
	/* Pairs with scan_kind(). */
	return smp_load_acquire(&scanned_kind) == kind;
}

/* Makes up for changes that were lost. */
static void scan_kinds(struct work_struct *work)
{
	int i;

	/* Pairs with schedule_scan(). */
	WRITE_ONCE(last_scan, jiffies);
	/* If a change is lost from here on, another scan is scheduled. */
	atomic_xchg(&nr_lost, 0);
	/* Pairs with the stores in twheel_sk_state_subscribe() and _unsubscribe(). */
	for (i = 0; i < KINDS_MAX; i++)
		scan_kind(READ_ONCE(kinds[i]));
}

static DECLARE_DELAYED_WORK(scan_work, scan_kinds);

/* Schedules a scan. Scans begin at most once a second. */
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

/* Processes the changes recorded by a CPU. */
static void process_changes(struct work_struct *work)
{
	struct cpu_changes *pcpu = container_of(work, struct cpu_changes, work);
	struct twheel_watch_change change;
	int i, n;

	mutex_lock(&kinds_lock);
	for (n = 0; n < BATCH; n++) {
		/* Pairs with probe_inet_sock_set_state(), as described there. */
		if (data_race(kfifo_is_empty(&pcpu->fifo)))
			break;
		/* kfifo has no barrier between the index and the element. */
		smp_rmb();
		/* As above. */
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
 * Subscriptions
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

/* Unregisters the probe if there are no kinds. */
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
 * twheel_sk_state_subscribe - notify a kind of watches of state changes
 * @kind:	the kind; its table exists
 *
 * Context: process; may sleep. The caller holds no lock that the owner takes in sk_changed().
 * Return: 0; or
 * * %-EOPNOTSUPP - this kernel does not report state changes
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
 * twheel_sk_state_unsubscribe - stop notifying a kind of watches of state changes
 * @kind:	the kind, whose watches have been removed
 *
 * Waits for an RCU grace period. Afterwards state changes no longer cause anybody to use the kind's
 * table.
 *
 * Context: process; may sleep. The caller holds no lock that the owner takes in sk_closed() and
 * sk_changed().
 */
void twheel_sk_state_unsubscribe(struct twheel_watch_kind *kind)
{
	mutex_lock(&kinds_lock);
	/*
	 * Pairs with the READ_ONCE() in any_kind_wants(), whose callers synchronize_rcu() waits
	 * for, and with those in scan_kinds().
	 */
	WRITE_ONCE(kinds[kinds[0] == kind ? 0 : 1], NULL);
	mutex_unlock(&kinds_lock);
	/* Without the lock: the other kind's changes do not wait for this. */
	synchronize_rcu();
	mutex_lock(&kinds_lock);
	/* If no kind is left, the works drop the recorded changes, in batches. */
	if (!--nr_kinds)
		mod_delayed_work(twheel_watch_queue, &unregister_work, PROBE_LINGER);
	mutex_unlock(&kinds_lock);
	/* See scan_kind(). The scan notices after a batch. */
	smp_mb();
	wait_event(scan_wait, !is_being_scanned(kind));
}

/* Watches in the table of a kind, or 0 if it has none at present. */
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
 * twheel_watch_show - show the statistics of watches
 * @m:		the file to print to
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
 * twheel_watch_available - check whether sockets can be watched
 *
 * Context: any.
 * Return: whether this kernel reports state changes.
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

/* Frees what twheel_sk_state_init() has allocated, even if it failed. */
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
 * twheel_sk_state_init - set up the detection of state changes
 *
 * Context: process; may sleep. The workers' queue exists.
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
 * twheel_sk_state_exit - undo twheel_sk_state_init()
 *
 * Context: process; may sleep. No kinds are left; the workers' queue exists.
 */
void twheel_sk_state_exit(void)
{
	cancel_delayed_work_sync(&unregister_work);
	unregister_probe(NULL);
	free_changes();
}
