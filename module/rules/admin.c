// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: adding, changing and removing rules, and setting up for rules in all namespaces
 *
 * A rule is removed in this order: it is taken off its list; after a grace period it can no longer
 * be found there; its watches, which find it by its number until then, are released (track.c); only
 * readers under RCU are left, so after another grace period it is freed. The task that takes it off
 * the list, with the mutex held, does the rest; or, if that task is killed, a work item of its
 * namespace does. See rules.c for how a rule is found.
 */
#include <linux/bitmap.h>
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/pid.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/user_namespace.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include "admin.h"
#include "changes.h"
#include "conn.h"
#include "lib/memory.h"
#include "lib/users.h"
#include "rules.h"
#include "scan.h"
#include "tcp/watch_worker.h"
#include "track.h"

/*
 * Maximum numbers of rules in a namespace, and of entries in all their lists. Each new connection
 * is compared with all of them.
 */
#define RULES_MAX	256
#define MATCHES_MAX	1024

/*
 * Guards, for all namespaces, the list of rules, their @limits and @late_from, and @last_id, @nr,
 * @nr_matches, @leftover, @user and @changes of struct twheel_rules. Taken in process context.
 * twheel_idle_rule.lock nests inside it, and no other lock of twheel; it is not held across
 * anything that takes long.
 */
static DEFINE_MUTEX(rules_lock);

/*
 * Adding and removing
 */

#ifdef CONFIG_SOCK_CGROUP_DATA
/* Finds the cgroup that a rule matches. */
static int get_cgroup(struct twheel_idle_rule *rule)
{
	struct cgroup *cgroup = cgroup_get_from_id(rule->cgroup_id);

	if (IS_ERR(cgroup))
		return -ENOENT;
	rule->cgroup = cgroup;
	return 0;
}

static void put_cgroup(struct twheel_idle_rule *rule)
{
	if (rule->cgroup)
		cgroup_put(rule->cgroup);
}
#else
static int get_cgroup(struct twheel_idle_rule *rule)
{
	return -EOPNOTSUPP;
}

static void put_cgroup(struct twheel_idle_rule *rule) { }
#endif

/* Finds what a rule refers to. free_rule() drops the references to what was found. */
static int resolve_criteria(struct twheel_idle_rule *rule, const struct twheel_rule *spec)
{
	if (spec->flags & TWHEEL_RULE_UID) {
		rule->uid = make_kuid(current_user_ns(), spec->uid);
		if (!uid_valid(rule->uid))
			return -EINVAL;
	}
	if (spec->flags & TWHEEL_RULE_PID) {
		rule->owner = INVALID_UID;
		rule->pid = find_get_pid(spec->pid);
		if (!rule->pid || !pid_has_task(rule->pid, PIDTYPE_TGID))
			return -ESRCH;
		rule->ports = bitmap_zalloc(TWHEEL_PORTS, TWHEEL_GFP_USER);
		if (!rule->ports)
			return -ENOMEM;
	}
	rule->cgroup_id = spec->cgroup;
	return spec->flags & TWHEEL_RULE_CGROUP ? get_cgroup(rule) : 0;
}

static void free_rule(struct twheel_idle_rule *rule)
{
	put_cgroup(rule);
	put_pid(rule->pid);
	bitmap_free(rule->ports);
	kfree(rule->matches);
	/* Nobody else uses the rule. */
	kfree(rcu_dereference_protected(rule->limits, true));
	kfree(rule);
}

/* Allocates the part of a rule that can be changed later. Returns NULL without memory. */
static struct twheel_limits *alloc_limits(const struct twheel_rule *spec)
{
	struct twheel_limits *limits = kzalloc(sizeof(*limits), TWHEEL_GFP_USER);

	if (!limits)
		return NULL;
	limits->flags = spec->flags & ~TWHEEL_RULE_CRITERIA;
	limits->rate = spec->rate ?: TWHEEL_RULE_RATE;
	limits->idle = spec->idle;
	limits->lifetime = spec->lifetime;
	limits->spread = spec->spread;
	limits->stalled = spec->stalled ?: TWHEEL_RULE_STALLED;
	memcpy(limits->name, spec->name, sizeof(limits->name));
	return limits;
}

/* Fills in a rule. Returns 0 or -ENOMEM; frees nothing. */
static int init_rule(struct twheel_idle_rule *rule, const struct twheel_rule *spec,
		     const struct twheel_match *matches)
{
	struct twheel_limits *limits = alloc_limits(spec);

	RCU_INIT_POINTER(rule->limits, limits);
	rule->criteria = spec->flags & TWHEEL_RULE_CRITERIA;
	rule->local_port = spec->local_port;
	rule->remote_port = spec->remote_port;
	rule->nr_matches = spec->nr_matches;
	if (spec->nr_matches)
		rule->matches = kmemdup(matches, spec->nr_matches * sizeof(*matches),
					TWHEEL_GFP_USER);
	return limits && (rule->matches || !spec->nr_matches) ? 0 : -ENOMEM;
}

/* Creates a rule, which cannot be found yet. */
static struct twheel_idle_rule *create_rule(struct net *net, const struct twheel_rule *spec,
					    const struct twheel_match *matches)
{
	struct twheel_idle_rule *rule = kzalloc(sizeof(*rule), TWHEEL_GFP_USER);
	int ret = -ENOMEM;

	if (!rule)
		return ERR_PTR(ret);
	spin_lock_init(&rule->lock);
	rule->net = net;
	rule->seed = get_random_u32();
	ret = init_rule(rule, spec, matches);
	if (!ret)
		ret = resolve_criteria(rule, spec);
	if (!ret)
		ret = twheel_rules_register(rule);
	if (ret < 0) {
		free_rule(rule);
		return ERR_PTR(ret);
	}
	/* Each rule pins the module. The caller has the device open. */
	__module_get(THIS_MODULE);
	return rule;
}

/* Undoes create_rule(). */
static void destroy_rule(struct twheel_idle_rule *rule)
{
	twheel_rules_unregister(rule);
	free_rule(rule);
	/* Unloading the module waits for code that is running here. */
	module_put(THIS_MODULE);
}

/*
 * Binds the worker of a namespace to the user who owns the namespace. If that is the initial user
 * namespace, the namespace has a worker of its own. Returns 0 or -ENOMEM.
 */
static int bind_user(struct twheel_rules *net_rules)
{
	struct user_namespace *ns = net_rules->net->user_ns;
	struct twheel_user *user;

	if (ns == &init_user_ns)
		return 0;
	user = twheel_user_get(ns);
	if (!user)
		return -ENOMEM;
	mutex_lock(&rules_lock);
	/* Once, before the first rule exists, and so before any watch is due. */
	if (!net_rules->user) {
		net_rules->worker.queue = user->queue;
		swap(net_rules->user, user);
	}
	mutex_unlock(&rules_lock);
	if (user)
		twheel_user_put(user);
	return 0;
}

/* Makes room for the changes of a namespace's sockets, once. Returns 0 or -ENOMEM. */
static int enable_changes(struct twheel_rules *net_rules)
{
	struct twheel_changes *changes;

	/* Pairs with the smp_store_release() below. */
	if (smp_load_acquire(&net_rules->changes))
		return 0;
	changes = twheel_changes_create(net_rules);
	if (!changes)
		return -ENOMEM;
	mutex_lock(&rules_lock);
	if (!net_rules->changes) {
		/* It is complete. Pairs with twheel_changes_add(). */
		smp_store_release(&net_rules->changes, changes);
		changes = NULL;
	}
	mutex_unlock(&rules_lock);
	twheel_changes_free(changes);
	return 0;
}

/* The limits of a rule. The caller holds the mutex. */
static struct twheel_limits *limits_locked(const struct twheel_idle_rule *rule)
{
	return rcu_dereference_protected(rule->limits, lockdep_is_held(&rules_lock));
}

/* Does another rule have this name? The caller holds the mutex. */
static bool is_name_taken(const struct twheel_rules *net_rules, const char *name,
			  const struct twheel_idle_rule *except)
{
	const struct twheel_idle_rule *rule;

	if (!*name)
		return false;
	list_for_each_entry(rule, &net_rules->list, list)
		if (rule != except && !strcmp(limits_locked(rule)->name, name))
			return true;
	return false;
}

/* Finds the rule with an id, or returns NULL. The caller holds the mutex. */
static struct twheel_idle_rule *find_rule_locked(struct net *net, u32 id)
{
	struct twheel_idle_rule *rule;

	lockdep_assert_held(&rules_lock);
	rcu_read_lock();
	rule = twheel_rules_by_id(net, id);
	rcu_read_unlock();
	return rule;
}

/*
 * Inserts a rule into its namespace's list, before the one with the id @before, or at its end. The
 * caller holds the mutex. Returns 0, -ENOENT, -EEXIST or -ENOSPC.
 */
static int insert_rule(struct twheel_rules *net_rules, struct twheel_idle_rule *rule, u32 before)
{
	struct list_head *next = &net_rules->list;
	struct twheel_idle_rule *other;

	if (before) {
		other = find_rule_locked(net_rules->net, before);
		if (!other)
			return -ENOENT;
		next = &other->list;
	}
	if (is_name_taken(net_rules, limits_locked(rule)->name, NULL))
		return -EEXIST;
	if (net_rules->nr == RULES_MAX || net_rules->nr_matches + rule->nr_matches > MATCHES_MAX)
		return -ENOSPC;
	net_rules->nr++;
	net_rules->nr_matches += rule->nr_matches;
	rule->id = ++net_rules->last_id;
	rule->late_from = ktime_get_ns();
	rule->added_boot = ktime_get_boottime_ns();
	list_add_tail_rcu(&rule->list, next);
	return 0;
}

/*
 * Adds a rule to its namespace, and stores its id. From here on it may be removed. Returns what
 * insert_rule() does, or -ENOMEM.
 */
static int publish_rule(struct net *net, struct twheel_idle_rule *rule, u32 before, u32 *id)
{
	struct twheel_rules *net_rules = twheel_rules_of_net(net);
	int ret;

	ret = bind_user(net_rules) ?: enable_changes(net_rules);
	if (ret)
		return ret;
	mutex_lock(&rules_lock);
	ret = insert_rule(net_rules, rule, before);
	if (!ret)
		*id = rule->id;
	mutex_unlock(&rules_lock);
	return ret;
}

/*
 * From now on a rule may close what was due before: that does not count as late. The caller holds
 * the mutex.
 */
static void restart_lateness(struct twheel_idle_rule *rule)
{
	/* Pairs with the READ_ONCE() in count_closed(). */
	WRITE_ONCE(rule->late_from, ktime_get_ns());
}

/* Takes a rule off its namespace's list. The caller holds the mutex. */
static void unpublish_rule(struct twheel_idle_rule *rule, struct list_head *removed)
{
	struct twheel_idle_rule *next = rule;

	/* The rules after it may get its connections. */
	list_for_each_entry_continue(next, &twheel_rules_of_net(rule->net)->list, list)
		restart_lateness(next);
	list_del_rcu(&rule->list);
	/* Pairs with the loads in track.c and enforce.c. */
	WRITE_ONCE(rule->dead, true);
	list_add_tail(&rule->removed, removed);
}

/* Makes rules give up their connections. Returns 0, or -EINTR if the caller is killed. */
static int release_conns(const struct list_head *removed)
{
	const struct twheel_idle_rule *rule;
	int ret = 0;

	list_for_each_entry(rule, removed, removed) {
		ret = twheel_track_release(rule);
		if (ret)
			break;
	}
	return ret;
}

/* Frees rules that have no connections and cannot be found, after the last reader is done. */
static void free_rules(struct list_head *removed)
{
	struct twheel_idle_rule *rule, *next;

	if (list_empty(removed))
		return;
	list_for_each_entry(rule, removed, removed)
		twheel_track_put();
	synchronize_rcu();
	mutex_lock(&rules_lock);
	list_for_each_entry(rule, removed, removed) {
		twheel_rules_of_net(rule->net)->nr--;
		twheel_rules_of_net(rule->net)->nr_matches -= rule->nr_matches;
	}
	mutex_unlock(&rules_lock);
	list_for_each_entry_safe(rule, next, removed, removed)
		destroy_rule(rule);
}

/*
 * Makes rules that can no longer be found give up their connections, without waiting: those that
 * have none are moved to @removed.
 */
static void try_release_conns(struct list_head *rules, struct list_head *removed)
{
	struct twheel_idle_rule *rule, *next;
	bool walked = false;

	list_for_each_entry_safe(rule, next, rules, removed) {
		if (atomic_read(&rule->users) && !walked) {
			twheel_track_release_all();
			walked = true;
		}
		if (!atomic_read(&rule->users))
			list_move_tail(&rule->removed, removed);
	}
}

/* Leaves rules to the work of their namespace. */
static void defer_reap(struct twheel_rules *net_rules, struct list_head *removed,
		       unsigned long delay)
{
	mutex_lock(&rules_lock);
	list_splice_tail(removed, &net_rules->leftover);
	mutex_unlock(&rules_lock);
	queue_delayed_work(net_rules->worker.queue, &net_rules->reap_work, delay);
}

/*
 * Frees rules that were taken off their namespace's list, once they are no longer in use. If the
 * caller is killed, the namespace's work does the rest.
 */
static void reap_rules(struct twheel_rules *net_rules, struct list_head *removed)
{
	synchronize_rcu();
	if (release_conns(removed))
		defer_reap(net_rules, removed, 0);
	else
		free_rules(removed);
}

/* Does not wait for connections: it may take long until one is evaluated. */
static void reap_leftover(struct work_struct *work)
{
	struct twheel_rules *net_rules = container_of(to_delayed_work(work), struct twheel_rules,
						      reap_work);
	LIST_HEAD(rules);
	LIST_HEAD(removed);

	mutex_lock(&rules_lock);
	list_splice_init(&net_rules->leftover, &rules);
	mutex_unlock(&rules_lock);
	try_release_conns(&rules, &removed);
	free_rules(&removed);
	if (!list_empty(&rules))
		defer_reap(net_rules, &rules, HZ);
}

/**
 * twheel_rules_add - add a rule
 * @net:	its namespace
 * @spec:	the rule, which has been checked; its id is filled in
 * @matches:	its criteria that are given as lists, likewise
 *
 * It applies to connections that begin from now on.
 *
 * Context: process; may sleep.
 * Return: 0; or
 * * %-EINVAL	- the user id has no mapping here
 * * %-ENOENT	- there is no such cgroup, or no rule to insert it before
 * * %-EEXIST	- another rule has its name
 * * %-ESRCH	- there is no such process
 * * %-EOPNOTSUPP - this kernel does not report state changes, or has no cgroups of sockets
 * * %-ENOSPC	- the namespace has the maximum number of rules, or of entries in their lists
 * * %-ENOMEM, %-EBUSY - no memory, or no number for it
 */
int twheel_rules_add(struct net *net, struct twheel_rule *spec,
		     const struct twheel_match *matches)
{
	struct twheel_idle_rule *rule = create_rule(net, spec, matches);
	int ret;

	if (IS_ERR(rule))
		return PTR_ERR(rule);
	ret = twheel_track_get();
	if (ret)
		goto err_drop;
	ret = publish_rule(net, rule, spec->before, &spec->id);
	if (ret)
		goto err_put;
	return 0;

err_put:
	twheel_track_put();
err_drop:
	destroy_rule(rule);
	return ret;
}

/* Starts the queue of connections that wait for a token afresh: the rate may have changed. */
static void reset_token_queue(struct twheel_idle_rule *rule)
{
	spin_lock_bh(&rule->lock);
	rule->next_token = 0;
	spin_unlock_bh(&rule->lock);
}

/*
 * Replaces the limits of a rule. The caller holds the mutex. Returns 0 or -EEXIST; frees the limits
 * that are not used.
 */
static int replace_limits(struct twheel_rules *net_rules, struct twheel_idle_rule *rule,
			  struct twheel_limits *limits)
{
	struct twheel_limits *old = limits_locked(rule);

	if (is_name_taken(net_rules, limits->name, rule)) {
		kfree(limits);
		return -EEXIST;
	}
	restart_lateness(rule);
	rcu_assign_pointer(rule->limits, limits);
	kfree_rcu(old, rcu);
	reset_token_queue(rule);
	return 0;
}

/**
 * twheel_rules_set - change a rule's limits
 * @net:	its namespace
 * @spec:	its id and the limits, which have been checked
 *
 * All of its connections are evaluated by the new limits; a little later if the caller is killed,
 * or there is no memory.
 *
 * Context: process; may sleep.
 * Return: 0; or
 * * %-ENOENT	- there is no such rule
 * * %-EEXIST	- another rule has the name
 * * %-ENOMEM	- no memory
 */
int twheel_rules_set(struct net *net, const struct twheel_rule *spec)
{
	struct twheel_limits *limits = alloc_limits(spec);
	struct twheel_idle_rule *rule;
	int ret;

	if (!limits)
		return -ENOMEM;
	mutex_lock(&rules_lock);
	rule = find_rule_locked(net, spec->id);
	if (rule) {
		/* Keeps the rule until its connections have been evaluated. */
		atomic_inc(&rule->users);
		ret = replace_limits(twheel_rules_of_net(net), rule, limits);
	} else {
		kfree(limits);
		ret = -ENOENT;
	}
	mutex_unlock(&rules_lock);
	if (!rule)
		return ret;
	if (!ret)
		twheel_track_recheck_all(net, rule);
	atomic_dec(&rule->users);
	return ret;
}

/**
 * twheel_rules_remove - remove a rule
 * @net:	its namespace
 * @id:		its id
 *
 * Its connections go to other rules that they match, or are no longer watched; a little later if
 * the caller is killed.
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOENT if there is no such rule.
 */
int twheel_rules_remove(struct net *net, u32 id)
{
	struct twheel_idle_rule *rule;
	LIST_HEAD(removed);

	mutex_lock(&rules_lock);
	rule = find_rule_locked(net, id);
	if (rule)
		unpublish_rule(rule, &removed);
	mutex_unlock(&rules_lock);
	if (!rule)
		return -ENOENT;
	reap_rules(twheel_rules_of_net(net), &removed);
	/* Other rules may match processes, of which watches of this rule know nothing. */
	if (!list_empty(&twheel_rules_of_net(net)->list))
		twheel_scan_later(net, 0);
	return 0;
}

/*
 * Namespaces
 */

static int __net_init init_net_rules(struct net *net)
{
	struct twheel_rules *net_rules = twheel_rules_of_net(net);

	INIT_LIST_HEAD(&net_rules->list);
	INIT_LIST_HEAD(&net_rules->leftover);
	INIT_DELAYED_WORK(&net_rules->reap_work, reap_leftover);
	net_rules->net = net;
	INIT_DELAYED_WORK(&net_rules->scan_work, twheel_scan_work);
	net_rules->last_scan = jiffies - HZ;
	spin_lock_init(&net_rules->share_lock);
	twheel_watch_worker_init(&net_rules->worker, &twheel_conn_kind, twheel_watch_queue);
	return 0;
}

/*
 * Takes the rules of a namespace that is going away. Its sockets are gone: no rule has connections
 * any more.
 */
static void take_net_rules(struct net *net, struct list_head *removed)
{
	struct twheel_rules *net_rules = twheel_rules_of_net(net);
	struct twheel_idle_rule *rule, *next;

	cancel_delayed_work_sync(&net_rules->reap_work);
	mutex_lock(&rules_lock);
	list_splice_tail_init(&net_rules->leftover, removed);
	list_for_each_entry_safe(rule, next, &net_rules->list, list)
		unpublish_rule(rule, removed);
	mutex_unlock(&rules_lock);
}

/* Tears down namespaces. All wait for the same grace periods. */
static void exit_net_rules(struct list_head *nets)
{
	LIST_HEAD(rules);
	LIST_HEAD(removed);
	struct net *net;

	list_for_each_entry(net, nets, exit_list)
		take_net_rules(net, &rules);
	if (!list_empty(&rules))
		synchronize_rcu();
	for (try_release_conns(&rules, &removed); !list_empty(&rules);
	     try_release_conns(&rules, &removed))
		msleep(20);
	free_rules(&removed);
	twheel_scan_stop(nets);
	list_for_each_entry(net, nets, exit_list) {
		twheel_changes_free(twheel_rules_of_net(net)->changes);
		twheel_watch_worker_stop(&twheel_rules_of_net(net)->worker);
		if (twheel_rules_of_net(net)->user)
			twheel_user_put(twheel_rules_of_net(net)->user);
	}
}

static struct pernet_operations net_ops = {
	.init		= init_net_rules,
	.exit_batch	= exit_net_rules,
	.id		= &twheel_rules_net_id,
	.size		= sizeof(struct twheel_rules),
};

/* Learns the sk_state_change() of sockets for which nobody has replaced it. */
static int __init learn_state_change(void)
{
	struct socket *sock;
	int ret;

	ret = sock_create_kern(&init_net, PF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	/* This is how the kernel reports that it has no memory for a socket. */
	if (ret)
		return ret == -ENFILE ? -ENOMEM : ret;
	twheel_rules_state_change = sock->sk->sk_state_change;
	sock_release(sock);
	return 0;
}

/**
 * twheel_rules_init - set up for rules
 *
 * Context: process; may sleep.
 * Return: 0, or an errno.
 */
int __init twheel_rules_init(void)
{
	int ret = learn_state_change();

	if (!ret)
		ret = twheel_scan_init();
	if (ret)
		return ret;
	twheel_track_init();
	ret = register_pernet_subsys(&net_ops);
	if (ret)
		twheel_scan_exit();
	return ret;
}

/**
 * twheel_rules_exit - undo twheel_rules_init()
 *
 * Context: process; may sleep. The device is gone, and there are no rules any more.
 */
void twheel_rules_exit(void)
{
	/*
	 * There are no rules, and without them nobody is notified of changes: so no change finds a
	 * namespace whose part of this is gone already.
	 */
	unregister_pernet_subsys(&net_ops);
	twheel_scan_exit();
	twheel_rules_destroy();
}
