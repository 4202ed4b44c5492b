/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: users: who opens contexts, and what workers do for him; see users.c
 */
#ifndef _TWHEEL_LIB_USERS_H
#define _TWHEEL_LIB_USERS_H

#include <linux/list.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

struct user_namespace;

/**
 * struct twheel_user - who opens contexts and has rules
 * @uid:	his id, in the first namespace; constant
 * @queue:	does the works of his contexts, one after the other; constant
 * @refs:	contexts, and network namespaces with rules
 * @link:	in the table of users.c
 * @free_work:	frees this if there are still no contexts
 */
struct twheel_user {
	kuid_t			uid;
	struct workqueue_struct	*queue;
	unsigned int		refs;
	struct hlist_node	link;
	struct delayed_work	free_work;
};

int twheel_users_init(void);
void twheel_users_exit(void);
struct twheel_user *twheel_user_get(struct user_namespace *ns);
void twheel_user_put(struct twheel_user *user);

#endif /* _TWHEEL_LIB_USERS_H */
