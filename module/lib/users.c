// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: users, who open contexts and add rules, and their workers
 *
 * What softirqs defer to workers is done by one worker per user, which alternates between the
 * user's contexts, one batch of each. So it gets as much CPU time as one of the user's processes,
 * however many contexts there are and however long the batches take; and no user waits for another
 * one's worker. The same goes for connections in network namespaces that belong to the user.
 *
 * Whoever created the outermost user namespace is the user of everything in it, because they can
 * have thousands of ids there. If that was root, a container is a user.
 */
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/workqueue.h>

#include "memory.h"
#include "users.h"

/* A user without contexts or rules is freed after this delay, as programs may reopen the device. */
#define FREE_DELAY	(2 * HZ)

/*
 * Protects the table and each user's @refs; @free_work is queued with it held. Taken in process
 * context; no other lock of twheel nests inside it.
 */
static DEFINE_SPINLOCK(users_lock);
static DEFINE_HASHTABLE(users, 6);

static struct workqueue_struct *free_queue;

/**
 * twheel_users_init - allocate the workqueue that frees users
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int __init twheel_users_init(void)
{
	free_queue = alloc_workqueue("twheel_users", WQ_UNBOUND, 0);
	return free_queue ? 0 : -ENOMEM;
}

static void free_user(struct twheel_user *user)
{
	if (user->queue)
		destroy_workqueue(user->queue);
	kfree(user);
}

static void free_unused_user(struct work_struct *work)
{
	struct twheel_user *user = container_of(to_delayed_work(work), struct twheel_user,
						free_work);
	bool unused;

	spin_lock(&users_lock);
	/* If it has been queued again, leave the user to that run. */
	unused = !user->refs && !delayed_work_pending(&user->free_work);
	if (unused)
		hash_del(&user->link);
	spin_unlock(&users_lock);
	if (unused)
		free_user(user);
}

/**
 * twheel_users_exit - free all users; undoes twheel_users_init()
 *
 * Context: process; may sleep. There must be no contexts left.
 */
void twheel_users_exit(void)
{
	struct twheel_user *user;
	unsigned int i;

	spin_lock(&users_lock);
	hash_for_each(users, i, user, link)
		mod_delayed_work(free_queue, &user->free_work, 0);
	spin_unlock(&users_lock);
	destroy_workqueue(free_queue);
}

static struct twheel_user *create_user(kuid_t uid)
{
	struct twheel_user *user = kzalloc(sizeof(*user), TWHEEL_GFP_USER);

	if (!user)
		return NULL;
	user->uid = uid;
	INIT_DELAYED_WORK(&user->free_work, free_unused_user);
	user->queue = alloc_ordered_workqueue("twheel_user_%u", 0, __kuid_val(uid));
	if (user->queue)
		return user;
	kfree(user);
	return NULL;
}

/* Gets the user with this id. If there is none, inserts and returns @user, unless it is NULL. */
static struct twheel_user *get_or_insert_user(kuid_t uid, struct twheel_user *user)
{
	struct twheel_user *found;

	spin_lock(&users_lock);
	hash_for_each_possible(users, found, link, __kuid_val(uid))
		if (uid_eq(found->uid, uid))
			goto out;
	found = user;
	if (user)
		hash_add(users, &user->link, __kuid_val(uid));
out:
	if (found)
		found->refs++;
	spin_unlock(&users_lock);
	return found;
}

/* Returns the id of the user to whom a namespace belongs. In the initial one, the current user. */
static kuid_t owner_uid(struct user_namespace *ns)
{
	kuid_t uid;

	if (ns == &init_user_ns)
		return current_uid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	uid = uid_eq(ns->owner, GLOBAL_ROOT_UID) ? make_kuid(ns, 0) : ns->owner;
	/* If its root is the real root, it only hides other ids, and has no user of its own. */
	return uid_valid(uid) && !uid_eq(uid, GLOBAL_ROOT_UID) ? uid : current_uid();
}

/**
 * twheel_user_get - get the user who owns a context or a network namespace
 * @ns:		user namespace of the current task, or of the network namespace
 *
 * Context: process; may sleep.
 * Return: the user, with a reference taken, or NULL if there is no memory.
 */
struct twheel_user *twheel_user_get(struct user_namespace *ns)
{
	kuid_t uid = owner_uid(ns);
	struct twheel_user *user = get_or_insert_user(uid, NULL), *new;

	if (user)
		return user;
	new = create_user(uid);
	if (!new)
		return NULL;
	user = get_or_insert_user(uid, new);
	if (user != new)
		free_user(new);
	return user;
}

/**
 * twheel_user_put - drop the reference of a context or a network namespace
 * @user:	the user; none of the caller's work is queued any more
 *
 * Context: process.
 */
void twheel_user_put(struct twheel_user *user)
{
	spin_lock(&users_lock);
	if (!--user->refs)
		mod_delayed_work(free_queue, &user->free_work, FREE_DELAY);
	spin_unlock(&users_lock);
}
