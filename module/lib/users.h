/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: users, who open contexts and add rules, and their workers; see users.c
 */
#ifndef _TWHEEL_LIB_USERS_H
#define _TWHEEL_LIB_USERS_H

#include <linux/list.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

struct user_namespace;

/**
 * struct twheel_user - a user who has opened contexts or added rules
 * @uid:	user id in the initial user namespace; constant
 * @queue:	runs the work items of this user's contexts, one at a time; constant
 * @refs:	number of contexts, and of network namespaces with rules
 * @link:	in the hash table of users.c
 * @free_work:	frees this structure if @refs is still 0
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
