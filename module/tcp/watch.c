// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: watched TCP connections: the sockets' side
 *
 * A socket keeps the times at which it last received and sent data. When the timer of a watch
 * expires, its owner compares them with the limit, without a lock, and usually re-arms the timer:
 * this, once per idle timeout, is all that a connection costs. Only if there was no activity does
 * the watch go to a worker, which locks the socket and lets the owner check again. So no data can
 * arrive between this check and the action (watch_worker.c).
 *
 * A watch holds a reference to its socket, and drops it when sk_state.c reports that the connection
 * has ended.
 */
#include <linux/workqueue.h>

#include "sk_state.h"
#include "watch.h"
#include "watch_table.h"
#include "watch_worker.h"

/**
 * twheel_watch_kind_add - register a kind of watches
 * @kind:	the kind, with everything set that its owner has to set
 *
 * State changes are reported from here on.
 *
 * Context: process; may sleep. The caller holds no lock that the owner takes in sk_changed().
 * Return: 0; or
 * * %-EOPNOTSUPP - this kernel does not report state changes
 * * %-ENOMEM	- no memory
 */
int twheel_watch_kind_add(struct twheel_watch_kind *kind)
{
	int ret;

	ret = twheel_watch_table_init(kind);
	if (ret)
		return ret;
	ret = twheel_sk_state_subscribe(kind);
	if (ret)
		twheel_watch_table_destroy(kind);
	return ret;
}

/**
 * twheel_watch_kind_del - unregister a kind of watches
 * @kind:	the kind, whose watches have been removed
 *
 * Waits for an RCU grace period.
 *
 * Context: process; may sleep. The caller holds no lock that the owner takes in sk_closed() and
 * sk_changed().
 */
void twheel_watch_kind_del(struct twheel_watch_kind *kind)
{
	twheel_sk_state_unsubscribe(kind);
	twheel_watch_table_destroy(kind);
}

/**
 * twheel_watch_init - set up the watching of sockets
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int __init twheel_watch_init(void)
{
	int ret;

	twheel_watch_queue = alloc_workqueue("twheel", WQ_UNBOUND, 0);
	if (!twheel_watch_queue)
		return -ENOMEM;
	ret = twheel_sk_state_init();
	if (ret)
		destroy_workqueue(twheel_watch_queue);
	return ret;
}

/**
 * twheel_watch_exit - undo twheel_watch_init()
 *
 * Context: process; may sleep. No kinds are left.
 */
void twheel_watch_exit(void)
{
	twheel_sk_state_exit();
	/* Waits for works that are running. */
	destroy_workqueue(twheel_watch_queue);
}
