// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: changes of sockets that rules are for, handed to the worker of their namespace
 *
 * The worker that is notified of all sockets' changes is everybody's. To compare a connection with
 * the rules of its namespace may take a thousand steps, so it does not do that: it only hands
 * changes on to a work of the namespace, which runs on the queue of the user who owns it. Whoever
 * has many rules and makes many connections keeps no one waiting but himself. If there are more
 * changes than there is room for, a scan of the namespace makes up for them (scan.c).
 *
 * A scan cannot find out which process has begun a connection, if that has passed it on. So
 * connections that are only about to begin are tracked at once: the only rules for them are those
 * for the process, which are quickly found. Nor does it wait here that a listener is gone: see
 * ports.c.
 */
#include <linux/delay.h>
#include <linux/kfifo.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#include "changes.h"
#include "conn.h"
#include "lib/memory.h"
#include "match.h"
#include "ports.h"
#include "rules.h"
#include "tcp/watch.h"
#include "track.h"

/* Changes of a namespace that can wait: 8 KB. */
#define FIFO_SIZE	512

/* Changes handled before others get their turn. */
#define BATCH		64

/* How often a batch waits for sockets that are about to listen. */
#define PATIENCE	10

/**
 * struct twheel_changes - the changes of a namespace that wait
 * @fifo:	the changes, each with a reference to its socket. Written by twheel_changes_add(),
 *		read by @work
 * @work:	handles them
 * @net_rules:	the rules of the namespace; constant
 */
struct twheel_changes {
	DECLARE_KFIFO_PTR(fifo, struct twheel_watch_change);
	struct work_struct	work;
	struct twheel_rules	*net_rules;
};

static struct pid *get_change_pid(const struct twheel_watch_change *change)
{
	struct pid *pid;

	if (!change->pid)
		return NULL;
	rcu_read_lock();
	pid = get_pid(find_pid_ns(change->pid, &init_pid_ns));
	rcu_read_unlock();
	return pid;
}

static void handle_connect(const struct twheel_watch_change *change)
{
	struct pid *pid = get_change_pid(change);

	twheel_track_connect(change->sk, pid);
	put_pid(pid);
}

static bool has_rule(const struct net *net, const struct pid *pid)
{
	bool has;

	rcu_read_lock();
	has = pid && twheel_rules_match_pid(net, pid);
	rcu_read_unlock();
	return has;
}

/*
 * A process begins to listen: that is reported before it does. A scan would find it, but only a
 * second after the last one; so this waits a little, up to @patience times, and counts that down.
 */
static void handle_listen(const struct twheel_watch_change *change, int *patience)
{
	struct pid *pid = get_change_pid(change);
	const struct sock *sk = change->sk;

	while (*patience && !twheel_is_listening(sk) && twheel_sk_may_change(sk) &&
	       has_rule(sock_net(sk), pid)) {
		usleep_range(50, 100);
		--*patience;
	}
	twheel_ports_listener_added(sk, pid);
	put_pid(pid);
}

static void handle_change(const struct twheel_watch_change *change, int *patience)
{
	/* It may be established by any process that is interrupted by its packet. */
	if (change->state == TCP_ESTABLISHED)
		twheel_track(change->sk, NULL, TCP_ESTABLISHED);
	else
		handle_listen(change, patience);
}

static void handle_changes(struct work_struct *work)
{
	struct twheel_changes *changes = container_of(work, struct twheel_changes, work);
	struct twheel_watch_change change;
	int patience = PATIENCE, n;

	for (n = 0; n < BATCH; n++) {
		/* Pairs with hand_on(), by kfifo's own barriers; its indices are not marked. */
		if (data_race(kfifo_is_empty(&changes->fifo)))
			return;
		/* Between the index and the element, it has none. */
		smp_rmb();
		/* As above. */
		if (!data_race(kfifo_get(&changes->fifo, &change)))
			return;
		handle_change(&change, &patience);
		sock_put(change.sk);
		cond_resched();
	}
	queue_work(changes->net_rules->worker.queue, &changes->work);
}

/**
 * twheel_changes_create - make room for the changes of a namespace
 * @net_rules:	its rules: there are none yet, but the worker has its queue
 *
 * The memory is charged to the caller.
 *
 * Context: process; may sleep.
 * Return: the room; or NULL if there is no memory.
 */
struct twheel_changes *twheel_changes_create(struct twheel_rules *net_rules)
{
	struct twheel_changes *changes = kzalloc(sizeof(*changes), TWHEEL_GFP_USER);

	if (!changes)
		return NULL;
	if (kfifo_alloc(&changes->fifo, FIFO_SIZE, TWHEEL_GFP_USER)) {
		kfree(changes);
		return NULL;
	}
	INIT_WORK(&changes->work, handle_changes);
	changes->net_rules = net_rules;
	return changes;
}

/**
 * twheel_changes_free - undo twheel_changes_create()
 * @changes:	the room, or NULL. The namespace has no rules left, and nothing is added any more
 *
 * Waits for a batch that is being handled.
 *
 * Context: process; may sleep.
 */
void twheel_changes_free(struct twheel_changes *changes)
{
	struct twheel_watch_change change;

	if (!changes)
		return;
	cancel_work_sync(&changes->work);
	while (kfifo_get(&changes->fifo, &change))
		sock_put(change.sk);
	kfifo_free(&changes->fifo);
	kfree(changes);
}

/* Hands a change on. */
static void hand_on(struct twheel_changes *changes, const struct twheel_watch_change *change)
{
	sock_hold(change->sk);
	/* Pairs with handle_changes(). The caller is the only one that writes. */
	if (data_race(kfifo_put(&changes->fifo, *change))) {
		queue_work(changes->net_rules->worker.queue, &changes->work);
		return;
	}
	sock_put(change->sk);
	twheel_scan_later(changes->net_rules->net, 0);
}

/**
 * twheel_changes_add - handle a change of a socket, or make up for changes that were lost
 * @change:	the change; or NULL if some were lost
 *
 * Called by one worker at a time.
 *
 * Context: process.
 */
void twheel_changes_add(const struct twheel_watch_change *change)
{
	struct twheel_rules *net_rules;
	struct twheel_changes *changes;

	if (!change) {
		twheel_scan_all_later();
		return;
	}
	/* A socket that is not for rules may outlive its namespace. */
	if (!twheel_is_for_rules(change->sk))
		return;
	if (twheel_is_connecting(change->state)) {
		handle_connect(change);
		return;
	}
	net_rules = twheel_rules_of_net(sock_net(change->sk));
	/* Pairs with enable_changes(). */
	changes = smp_load_acquire(&net_rules->changes);
	rcu_read_lock();
	/* Without rules, there is nothing to compare it with. */
	if (changes && !list_empty(&net_rules->list))
		hand_on(changes, change);
	rcu_read_unlock();
}
