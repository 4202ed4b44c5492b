// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: TCP connections that are watched: the sockets' side
 *
 * A socket keeps the times at which it has last received and sent data. When the timer of
 * a watch comes up its owner compares them with the limit, without a lock, and arms the
 * timer anew as a rule: all that a connection costs is this, once in an idle timeout. Only
 * if there was no activity the watch goes to a worker, who locks the socket and has the owner
 * look again. So no data can come in between this look and the action (watch_worker.c).
 *
 * A watch holds a reference to its socket, and lets go of it when the connection is over:
 * sk_state.c tells.
 */
#include <linux/workqueue.h>

#include "sk_state.h"
#include "watch.h"
#include "watch_table.h"
#include "watch_worker.h"

/**
 * twheel_watch_kind_add - there will be watches of a kind
 * @kind:	the kind; what its owner has to set is set
 *
 * From here on changes are told.
 *
 * Context: process; may sleep. No lock is held that the owner takes in sk_changed().
 * Return: 0; or
 * * %-EOPNOTSUPP - this kernel does not tell of changes
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
 * twheel_watch_kind_del - there will be no more watches of a kind
 * @kind:	the kind, whose watches have been removed
 *
 * An RCU grace period goes by.
 *
 * Context: process; may sleep. No lock is held that the owner takes in sk_closed() and sk_changed().
 */
void twheel_watch_kind_del(struct twheel_watch_kind *kind)
{
	twheel_sk_state_unsubscribe(kind);
	twheel_watch_table_destroy(kind);
}

/**
 * twheel_watch_init - get ready to watch sockets
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
 * twheel_watch_exit - the opposite of twheel_watch_init()
 *
 * Context: process; may sleep. There are no kinds left.
 */
void twheel_watch_exit(void)
{
	twheel_sk_state_exit();
	/* Waits for works that are under way. */
	destroy_workqueue(twheel_watch_queue);
}
