// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: scans for connections that exist already, and have no watch
 *
 * The task that adds a rule scans by itself. All other scans are done by one worker, so that they
 * take at most one CPU, however many namespaces there are: some batches of one, then some of the
 * next. A scan covers each process that there are rules for, and then all connections.
 */
#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <net/inet_hashtables.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "ports.h"
#include "rules.h"
#include "scan.h"
#include "socks.h"
#include "tcp/watch.h"
#include "track.h"

/* Buckets, connections of one, or descriptors of a process, scanned before others have a turn. */
#define BATCH		64

/* Batches before another namespace's scan gets its turn. */
#define BATCHES_PER_TURN	16

/**
 * twheel_scan_init - set up scans
 *
 * Return: 0, or -ENOMEM.
 */
int __init twheel_scan_init(void)
{
	twheel_scan_queue = alloc_ordered_workqueue("twheel_scan", 0);
	return twheel_scan_queue ? 0 : -ENOMEM;
}

/**
 * twheel_scan_exit - undo twheel_scan_init(); there are no more namespaces
 */
void twheel_scan_exit(void)
{
	destroy_workqueue(twheel_scan_queue);
}

/* Connections that such a socket accepts are TCP's if the other end cannot do more. */
static bool is_mptcp_listener(const struct sock *sk)
{
	return (sk->sk_family == AF_INET || sk->sk_family == AF_INET6) &&
	       sk->sk_protocol == IPPROTO_MPTCP && sk->sk_type == SOCK_STREAM &&
	       inet_sk_state_load(sk) == TCP_LISTEN;
}

/* Takes a reference to the socket of a file, if it is one that rules are for. */
static void collect_file(struct file *file, const struct net *net, struct twheel_socks *found)
{
	struct socket *sock = sock_from_file(file);
	struct sock *sk = sock ? sock->sk : NULL;

	if (sk && (twheel_is_for_rules(sk) || is_mptcp_listener(sk)) &&
	    net_eq(sock_net(sk), net)) {
		sock_hold(sk);
		found->socks[found->nr++] = sk;
	}
}

/*
 * Walks a batch of the file descriptors of a process: there may be very many, nearly all of them
 * unused, so that iterate_fd() would hold the lock for long. Sets @fd to where to go on, or to 0 at
 * the end. Returns whether there were any: a thread that has just exited has none.
 */
static bool walk_files(struct task_struct *task, unsigned int *fd, const struct net *net,
		       struct twheel_socks *found)
{
	const unsigned int end = *fd + min_t(unsigned int, BATCH, found->capacity);
	struct files_struct *files;
	unsigned int max = 0;
	struct file *file;

	task_lock(task);
	files = task->files;
	if (files) {
		spin_lock(&files->file_lock);
		max = files_fdtable(files)->max_fds;
		for (; *fd < min(end, max); ++*fd) {
			file = files_lookup_fd_locked(files, *fd);
			if (file)
				collect_file(file, net, found);
		}
		spin_unlock(&files->file_lock);
	}
	task_unlock(task);
	if (*fd >= max)
		*fd = 0;
	return files;
}

/* Records the port of a process's socket that listens, or that has the state of one that does. */
static void process_listener(struct twheel_scan *scan, const struct sock *sk)
{
	/* Read first: if the kernel chooses it, that is before the socket listens. */
	const bool is_listening = twheel_is_listening(sk);
	const u16 port = READ_ONCE(inet_sk(sk)->inet_num);

	/* A listener of MPTCP that is locked remains what it was. */
	if (is_listening || sk->sk_protocol == IPPROTO_MPTCP)
		__set_bit(port, scan->ports);
	/* The end of listening has been reported, or the beginning; perhaps to nobody who cared. */
	if (!is_listening) {
		scan->unsettled = true;
		return;
	}
	scan->listen_seq++;
	if (!twheel_ports_record(sk, port, scan->pid))
		scan->unsettled = true;
}

/*
 * Records the port of a process's socket if it listens, or tracks its connection. Returns 0, or
 * -ENOMEM if it was missed.
 */
static int process_sock(struct twheel_scan *scan, struct sock *sk)
{
	const bool may_change = twheel_sk_may_change(sk);
	const int state = inet_sk_state_load(sk);

	if (state == TCP_LISTEN) {
		process_listener(scan, sk);
		return 0;
	}
	/* That it listens or connects may have been reported already, and to nobody who cared. */
	if (state == TCP_CLOSE && may_change)
		scan->unsettled = true;
	return twheel_track(sk, scan->pid, state);
}

/* Does so for sockets of a process. Returns 0, or -ENOMEM if some were missed. */
static int process_socks(struct twheel_scan *scan)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < scan->found.nr && !ret; i++)
		ret = process_sock(scan, scan->found.socks[i]);
	return ret;
}

/* Is this the first rule for its process? */
static bool is_first_for_pid(const struct net *net, const struct twheel_idle_rule *rule)
{
	const struct twheel_idle_rule *first;

	list_for_each_entry_rcu(first, &twheel_rules_of_net(net)->list, list)
		if (first->pid == rule->pid)
			return first == rule;
	return false;
}

/*
 * Finds the next rule after @id that is the first one for its process. Returns the process with a
 * reference, or NULL. So each process is walked once, however many rules there are for it.
 */
static struct pid *next_process(struct net *net, u32 *id)
{
	struct twheel_idle_rule *rule;
	struct pid *pid = NULL;

	rcu_read_lock();
	while (!pid && (rule = twheel_rules_from(net, *id + 1))) {
		*id = rule->id;
		if (rule->pid && is_first_for_pid(net, rule))
			pid = get_pid(rule->pid);
	}
	rcu_read_unlock();
	return pid;
}

/* Done with the process. */
static void put_process(struct twheel_scan *scan)
{
	put_pid(scan->pid);
	bitmap_free(scan->ports);
	scan->pid = NULL;
	scan->ports = NULL;
	scan->fd = 0;
	scan->unsettled = false;
}

/*
 * Gets a thread of a process that still has its files, with a reference; or NULL if there is none,
 * or ERR_PTR(-EAGAIN) if none was found among so many. The first thread has none if it has exited
 * before the others. Other threads that have exited are soon gone unless they are traced.
 */
static struct task_struct *get_thread(struct pid *pid)
{
	struct task_struct *first, *thread, *found = NULL;
	int n = 0;

	rcu_read_lock();
	first = pid_task(pid, PIDTYPE_TGID);
	if (!first)
		goto unlock;
	for_each_thread(first, thread) {
		/* Flags that only the thread itself writes, of which this one is set once. */
		if (!(data_race(thread->flags) & PF_EXITING)) {
			found = thread;
			get_task_struct(found);
			break;
		}
		if (++n == BATCH) {
			found = ERR_PTR(-EAGAIN);
			break;
		}
	}
unlock:
	rcu_read_unlock();
	return found;
}

/*
 * Finds the connections of a process that there are rules for, and the ports that it listens on: a
 * batch of its descriptors. Returns 0, or -ENOMEM.
 */
static int scan_process(struct twheel_scan *scan, struct net *net)
{
	struct task_struct *task = get_thread(scan->pid);
	bool has_files = !IS_ERR(task);
	int ret;

	if (!task) {
		scan->fd = 0;
	} else if (has_files) {
		has_files = walk_files(task, &scan->fd, net, &scan->found);
		put_task_struct(task);
	}
	if (!has_files) {
		/* Another thread may have them. */
		twheel_scan_later(net, HZ / 10);
		put_process(scan);
		return 0;
	}
	ret = process_socks(scan);
	twheel_socks_put(&scan->found);
	if (ret || scan->fd)
		return ret;
	twheel_ports_retain(net, scan->pid, scan->ports);
	/*
	 * A port that others recorded meanwhile, and that was cleared just now, is found by another
	 * scan:
	 *
	 *	scan				record_port()
	 *	clear the bit			@listen_seq
	 *	barrier				barrier
	 *	@listen_seq			set the bit
	 */
	smp_mb();
	if (atomic_read(&twheel_rules_of_net(net)->listen_seq) != scan->listen_seq ||
	    scan->unsettled)
		twheel_scan_later(net, HZ / 10);
	put_process(scan);
	return 0;
}

/* Goes on to the next process or, at the end, to all connections. Returns 0, or -ENOMEM. */
static int start_next_process(struct twheel_scan *scan, struct net *net)
{
	scan->pid = next_process(net, &scan->id);
	scan->all = !scan->pid;
	/* Before any descriptor is read. */
	scan->listen_seq = atomic_read_acquire(&twheel_rules_of_net(net)->listen_seq);
	if (scan->all)
		return 0;
	scan->ports = bitmap_zalloc(TWHEEL_PORTS, GFP_KERNEL | __GFP_NOWARN);
	return scan->ports ? twheel_socks_grow(&scan->found, BATCH) : -ENOMEM;
}

/* Scans one of all connections. Returns 0 or -ENOMEM. */
static int scan_connection(const struct twheel_scan *scan, struct sock *sk)
{
	const int state = inet_sk_state_load(sk);

	if (scan->recheck)
		twheel_track_recheck(sk);
	/* It was collected because it may be about to be established. */
	return twheel_track(sk, NULL, twheel_is_connecting(state) ? TCP_ESTABLISHED : state);
}

/*
 * Scans a batch of the connections of a namespace that are in one bucket: of the one that the scan
 * is at or, if it is done with that, of the next one that has some, if that is not far away.
 * Returns 1, 0 if there are no more buckets, -ENOMEM or -EINTR.
 */
static int scan_bucket(struct twheel_scan *scan, struct net *net)
{
	struct twheel_socks *found = &scan->found;
	int ret = 0;
	u32 n;

	if (!found->nr) {
		scan->next = 0;
		ret = twheel_socks_next(net, &scan->bucket, BATCH, found);
		if (!ret)
			return scan->bucket <= net->ipv4.tcp_death_row.hashinfo->ehash_mask;
		if (ret < 0)
			return ret;
		ret = 0;
	}
	for (n = 0; n < BATCH && scan->next < found->nr && !ret; n++)
		ret = scan_connection(scan, found->socks[scan->next++]);
	if (scan->next == found->nr) {
		twheel_socks_put(found);
		scan->bucket++;
	}
	return ret ?: 1;
}

/*
 * Advances a scan by a batch: of a process that there are rules for or, at the end, of all
 * connections. Returns 1 if there is more to do; 0, -ENOMEM or -EINTR.
 */
static int advance_scan(struct twheel_scan *scan, struct net *net)
{
	int ret = twheel_socks_pause(net);

	if (!ret && !scan->pid && !scan->all)
		ret = start_next_process(scan, net);
	if (ret)
		return ret;
	if (scan->all)
		return scan_bucket(scan, net);
	return scan_process(scan, net) ?: 1;
}

/* Ends a scan, however far it has got. */
static void end_scan(struct twheel_scan *scan)
{
	put_process(scan);
	twheel_socks_free(&scan->found);
	memset(scan, 0, sizeof(*scan));
}

/**
 * twheel_scan_run - find connections that rules apply to and that have no watch
 * @net:	their namespace, which does not go away
 *
 * Context: process; may sleep.
 * Return: 0; or if some were missed -ENOMEM, or -EINTR if the caller is killed.
 */
int twheel_scan_run(struct net *net)
{
	struct twheel_scan scan = { };
	int ret;

	do
		ret = advance_scan(&scan, net);
	while (ret > 0);
	end_scan(&scan);
	return ret;
}

/**
 * twheel_scan_work - scan the connections of a namespace, as a work item
 * @work:	the work, in struct twheel_rules
 *
 * Context: process; may sleep.
 */
void twheel_scan_work(struct work_struct *work)
{
	struct twheel_rules *net_rules = container_of(to_delayed_work(work), struct twheel_rules,
						      scan_work);
	unsigned int i;
	int ret = 1;

	if (!net_rules->scanning) {
		net_rules->scanning = true;
		/* Pairs with twheel_scan_later(). */
		WRITE_ONCE(net_rules->last_scan, jiffies);
		/*
		 * A request after this may find that the work is pending, and then it runs at least
		 * once more after that.
		 */
		net_rules->seen_requests = atomic_read(&net_rules->scan_requests);
		/*
		 * After that: later callers request another scan. Pairs with
		 * twheel_recheck_later().
		 */
		net_rules->scan.recheck = atomic_xchg(&net_rules->recheck, 0);
	}
	for (i = 0; i < BATCHES_PER_TURN && ret > 0; i++)
		ret = advance_scan(&net_rules->scan, net_rules->net);
	if (ret > 0) {
		/* At once, and behind the others, even if a later time was requested. */
		mod_delayed_work(twheel_scan_queue, &net_rules->scan_work, 0);
		return;
	}
	if (ret && net_rules->scan.recheck)
		atomic_set(&net_rules->recheck, 1);
	end_scan(&net_rules->scan);
	net_rules->scanning = false;
	if (ret || atomic_read(&net_rules->scan_requests) != net_rules->seen_requests)
		twheel_scan_later(net_rules->net, ret ? HZ : 0);
}

/**
 * twheel_scan_stop - stop the scans of namespaces
 * @nets:	the namespaces, which are going away and have no rules left
 *
 * Waits for a scan that is in progress, for at most a batch.
 *
 * Context: process; may sleep.
 */
void twheel_scan_stop(struct list_head *nets)
{
	struct net *net;

	/* Pairs with twheel_socks_pause(). */
	list_for_each_entry(net, nets, exit_list)
		WRITE_ONCE(twheel_rules_of_net(net)->exiting, true);
	/* New scans are only requested on behalf of a rule, under RCU. */
	list_for_each_entry(net, nets, exit_list) {
		cancel_delayed_work_sync(&twheel_rules_of_net(net)->scan_work);
		end_scan(&twheel_rules_of_net(net)->scan);
	}
}
