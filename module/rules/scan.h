/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: looks for connections that are there already
 */
#ifndef _TWHEEL_RULES_SCAN_H
#define _TWHEEL_RULES_SCAN_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct net;
struct pid;
struct sock;

/**
 * struct twheel_found - sockets that were found
 * @socks:	the sockets, with references
 * @nr:		how many these are
 * @room:	how many fit
 */
struct twheel_found {
	struct sock	**socks;
	u32		nr;
	u32		room;
};

/**
 * struct twheel_search - a search for connections, and how far it has come; see scan.c
 * @id:		the rule up to which there were searches for processes
 * @pid:	the process that it is at, with a reference; or NULL
 * @fd:		the descriptors of that one up to which it has been
 * @ports:	those that it listens on
 * @listened:	that of the namespace when it began with the process
 * @all:	there are no more processes; it goes through all connections
 * @bucket:	the bucket of these up to which it has been
 * @again:	connections that are watched are looked at again
 * @found:	what a portion has found: between portions none
 */
struct twheel_search {
	u32			id;
	struct pid		*pid;
	unsigned int		fd;
	unsigned long		*ports;
	int			listened;
	bool			all;
	u32			bucket;
	bool			again;
	struct twheel_found	found;
};

int twheel_find_init(void);
void twheel_find_exit(void);
void twheel_found_put(struct twheel_found *found);
void twheel_found_free(struct twheel_found *found);
int twheel_find_next(struct net *net, u32 *bucket, u32 most, struct twheel_found *found);
int twheel_find_all(struct net *net);
void twheel_find_later(struct net *net, unsigned long delay);
void twheel_find_again(struct net *net);
void twheel_find_everywhere(void);
void twheel_find_work(struct work_struct *work);
void twheel_find_stop(struct list_head *nets);

#endif /* _TWHEEL_RULES_SCAN_H */
