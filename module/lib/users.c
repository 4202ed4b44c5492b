// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: users: who opens contexts and has rules, and what workers do for him
 *
 * What softirqs leave to workers is done by one worker for each user, a portion of one context
 * after a portion of the next. So it has as much of the processors as one process of his, however
 * many contexts he has, and however long the portions take; and nobody waits for that of another.
 * Likewise for the connections of network namespaces that are his.
 *
 * Who has made a user namespace is the user of all that is in it, as he can have thousands of ids
 * there. If that was root, a container is a user.
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

/* A user without contexts and rules is forgotten after this: programs open and close. */
#define FREE_DELAY	(2 * HZ)

/*
 * Guards the table, and each user's @nr; @forget is queued with it held. Taken in process context;
 * none of ours is taken inside of it.
 */
static DEFINE_SPINLOCK(users_lock);
static DEFINE_HASHTABLE(users, 6);

static struct workqueue_struct *free_queue;

/**
 * twheel_users_init - get ready for users
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
	/* If it has been queued again by now, that is for the next time. */
	unused = !user->refs && !delayed_work_pending(&user->free_work);
	if (unused)
		hash_del(&user->link);
	spin_unlock(&users_lock);
	if (unused)
		free_user(user);
}

/**
 * twheel_users_exit - the opposite of twheel_users_init()
 *
 * Context: process; may sleep. There are no contexts left.
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

/* The user with this id, who has a context more; or, if there is none, @user becomes that. */
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

/* Whose a namespace is. In the first one, that is this task's user. */
static kuid_t owner_uid(struct user_namespace *ns)
{
	kuid_t uid;

	if (ns == &init_user_ns)
		return current_uid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	uid = uid_eq(ns->owner, GLOBAL_ROOT_UID) ? make_kuid(ns, 0) : ns->owner;
	/* Where it is only there to hide the others, its root is not another one. */
	return uid_valid(uid) && !uid_eq(uid, GLOBAL_ROOT_UID) ? uid : current_uid();
}

/**
 * twheel_user_get - the user that this task is one of, for a context or a network namespace
 * @ns:		its user namespace
 *
 * Context: process; may sleep.
 * Return: the user, or NULL if there is no memory.
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
 * twheel_user_put - a context of a user is gone, or a network namespace
 * @user:	the user. Nothing is queued for it any more
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
