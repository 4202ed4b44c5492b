// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: rules for idle connections of programs that know nothing of them
 *
 * Each network namespace has a list of rules. To find the one that applies to a connection it
 * is searched from its beginning, under RCU. Watches name their rule by a number among
 * those of all namespaces: that is all there is room for.
 *
 * A rule is removed in this order: it is taken out of its list; a grace period later nobody
 * can find it there any more; its watches are given up (kick.c), which find it by its number
 * until then; nothing is left but readers under RCU, so another grace period later
 * it is freed. Whoever takes it out of the list, with the mutex held, does the rest.
 *
 *	rules_lock			process		all lists, @last_id, @nr
 *	locks of kick.c			process, softirq
 *
 * rules_lock is not held for what takes long.
 */
#include <linux/bitmap.h>
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/xarray.h>
#include <net/inet_sock.h>
#include <net/mptcp.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "ioctl.h"
#include "rules.h"
#include "watch.h"

/* Rules of a namespace. */
#define NR_RULES	256

#define MATCHES		(TWHEEL_RULE_LOCAL_PORT | TWHEEL_RULE_REMOTE_PORT |	\
			 TWHEEL_RULE_UID | TWHEEL_RULE_CGROUP | TWHEEL_RULE_PID)
#define ACTIONS		(TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)
#define FLAGS		(MATCHES | ACTIONS | TWHEEL_RULE_DRY_RUN |		\
			 TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT)

/* Size of the first struct twheel_connection. */
#define RECORD_SIZE_MIN	72

/* See the head of this file. */
static DEFINE_MUTEX(rules_lock);

/* The rules of all namespaces, by @index. */
static DEFINE_XARRAY_ALLOC1(rules);
static u32 next_index;

static unsigned int net_id;

static struct twheel_rules *rules_of(const struct net *net)
{
	return net_generic(net, net_id);
}

/*
 * Which rule applies?
 */

#ifdef CONFIG_SOCK_CGROUP_DATA
static bool is_in_cgroup(const struct sock *sk, struct cgroup *ancestor)
{
	struct cgroup *cgroup = sock_cgroup_ptr((struct sock_cgroup_data *)&sk->sk_cgrp_data);

	/* A socket that was made in an interrupt has none. */
	return cgroup && cgroup_is_descendant(cgroup, ancestor);
}

/* Finds the cgroup that a rule asks for. */
static int find_cgroup(struct twheel_idle_rule *rule)
{
	struct cgroup *cgroup = cgroup_get_from_id(rule->spec.cgroup);

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
static bool is_in_cgroup(const struct sock *sk, struct cgroup *ancestor)
{
	return false;
}

static int find_cgroup(struct twheel_idle_rule *rule)
{
	return -EOPNOTSUPP;
}

static void put_cgroup(struct twheel_idle_rule *rule) { }
#endif

static bool is_alive(struct pid *pid)
{
	return pid_has_task(pid, PIDTYPE_TGID);
}

static bool matches_process(const struct twheel_idle_rule *rule, const struct sock *sk,
			    const struct pid *begun_by, bool is_new)
{
	if (is_new && !is_alive(rule->pid))
		return false;
	return rule->pid == begun_by || test_bit(inet_sk(sk)->inet_num, rule->ports);
}

static bool matches(const struct twheel_idle_rule *rule, const struct sock *sk,
		    const struct pid *begun_by, bool is_new)
{
	const struct twheel_rule *spec = &rule->spec;

	if (spec->flags & TWHEEL_RULE_LOCAL_PORT && inet_sk(sk)->inet_num != spec->local_port)
		return false;
	if (spec->flags & TWHEEL_RULE_REMOTE_PORT &&
	    inet_sk(sk)->inet_dport != htons(spec->remote_port))
		return false;
	if (spec->flags & TWHEEL_RULE_UID && twheel_watch_accepted(sk) &&
	    !uid_eq(twheel_uid_of(sk), rule->uid))
		return false;
	if (spec->flags & TWHEEL_RULE_CGROUP && !is_in_cgroup(sk, rule->cgroup))
		return false;
	return !(spec->flags & TWHEEL_RULE_PID) || matches_process(rule, sk, begun_by, is_new);
}

/**
 * twheel_rules_match - find the rule that applies to a connection
 * @sk:		its socket. As long as no program has it, its uid does not matter
 * @begun_by:	the process that has begun the connection, or NULL if that is not known
 * @now:	the rule that applies so far, or NULL
 *
 * Context: any but NMI, under rcu_read_lock().
 * Return: the first rule that the connection matches; or NULL.
 */
struct twheel_idle_rule *twheel_rules_match(const struct sock *sk, const struct pid *begun_by,
					    const struct twheel_idle_rule *now)
{
	struct twheel_idle_rule *rule;

	/* What such a connection carries may go on over another one. */
	if (sk_is_mptcp(sk))
		return NULL;
	list_for_each_entry_rcu(rule, &rules_of(sock_net(sk))->list, list)
		if (matches(rule, sk, begun_by, rule != now))
			return rule;
	return NULL;
}

/**
 * twheel_rules_of_pid - find the rule for a connection that is only about to begin
 * @net:	its namespace
 * @pid:	the process that begins it
 *
 * Context: any but NMI, under rcu_read_lock().
 * Return: the first rule for this process, if it is there; or NULL.
 */
struct twheel_idle_rule *twheel_rules_of_pid(const struct net *net, const struct pid *pid)
{
	struct twheel_idle_rule *rule;

	list_for_each_entry_rcu(rule, &rules_of(net)->list, list)
		if (rule->pid && rule->pid == pid && is_alive(rule->pid))
			return rule;
	return NULL;
}

/**
 * twheel_rules_by_index - find the rule that a watch names
 * @index:	its number, of a rule that has users
 *
 * Context: any but NMI, under rcu_read_lock().
 * Return: the rule.
 */
struct twheel_idle_rule *twheel_rules_by_index(u32 index)
{
	return xa_load(&rules, index);
}

/**
 * twheel_rules_from - find a rule by its id
 * @net:	its namespace
 * @id:		the id, or less
 *
 * Context: under rcu_read_lock().
 * Return: the first rule with this or a larger id; or NULL.
 */
struct twheel_idle_rule *twheel_rules_from(struct net *net, u32 id)
{
	struct twheel_idle_rule *rule;

	list_for_each_entry_rcu(rule, &rules_of(net)->list, list)
		if (rule->spec.id >= id)
			return rule;
	return NULL;
}

static struct twheel_idle_rule *find(struct net *net, u32 id)
{
	struct twheel_idle_rule *rule = twheel_rules_from(net, id);

	return rule && rule->spec.id == id ? rule : NULL;
}

/*
 * Ports that processes listen on
 */

/**
 * twheel_rules_listening - a socket begins to listen
 * @sk:		the socket
 * @pid:	the process that has it, or NULL
 *
 * It may fail to, and somebody else may have listened on this port before: so the processes
 * concerned are looked at again a little later.
 *
 * Context: process.
 */
void twheel_rules_listening(const struct sock *sk, const struct pid *pid)
{
	/* Written as it begins to listen, if it had no port. */
	const u16 port = READ_ONCE(inet_sk(sk)->inet_num);
	struct twheel_idle_rule *rule;
	bool concerned = false;

	rcu_read_lock();
	list_for_each_entry_rcu(rule, &rules_of(sock_net(sk))->list, list) {
		if (!rule->pid)
			continue;
		if (rule->pid == pid)
			set_bit(port, rule->ports);
		concerned |= test_bit(port, rule->ports);
	}
	if (concerned)
		twheel_rules_find_again(sock_net(sk), HZ / 10);
	rcu_read_unlock();
}

/**
 * twheel_rules_set_ports - a process listens on these ports, and no others
 * @net:	the namespace
 * @id:		a rule for the process
 * @ports:	a bit for each port
 *
 * Context: process.
 */
void twheel_rules_set_ports(struct net *net, u32 id, const unsigned long *ports)
{
	struct twheel_idle_rule *rule;
	size_t i;

	rcu_read_lock();
	rule = find(net, id);
	/* Pairs with test_bit(). What set_bit() does meanwhile is made up for, see above. */
	for (i = 0; rule && i < BITS_TO_LONGS(TWHEEL_PORTS); i++)
		WRITE_ONCE(rule->ports[i], ports[i]);
	rcu_read_unlock();
}

/*
 * Looking for connections
 */

/**
 * twheel_rules_find_again - look for connections that were missed
 * @net:	the namespace
 * @delay:	when, in jiffies
 *
 * Context: any but NMI. There is a rule, under rcu_read_lock(); or the caller keeps the module
 * and @net from going away.
 */
void twheel_rules_find_again(struct net *net, unsigned long delay)
{
	queue_delayed_work(system_unbound_wq, &rules_of(net)->find, delay);
}

/**
 * twheel_rules_find_everywhere - look for connections that were missed in any namespace
 *
 * Context: process.
 */
void twheel_rules_find_everywhere(void)
{
	struct net *net;

	rcu_read_lock();
	/* One that is on its way out is not in the list, or waits for a grace period. */
	for_each_net_rcu(net)
		if (!list_empty(&rules_of(net)->list))
			mod_delayed_work(system_unbound_wq, &rules_of(net)->find, 0);
	rcu_read_unlock();
}

static void work_on_find(struct work_struct *work)
{
	struct twheel_rules *ours = container_of(to_delayed_work(work), struct twheel_rules, find);

	if (twheel_find_all(ours->net))
		twheel_rules_find_again(ours->net, HZ);
}

/*
 * Adding and removing
 */

static int check_matches(const struct twheel_rule *spec)
{
	const u32 flags = spec->flags;

	if (!(flags & MATCHES))
		return -EINVAL;
	if (!(flags & TWHEEL_RULE_LOCAL_PORT) != !spec->local_port ||
	    !(flags & TWHEEL_RULE_REMOTE_PORT) != !spec->remote_port)
		return -EINVAL;
	if ((!(flags & TWHEEL_RULE_UID) && spec->uid) ||
	    (!(flags & TWHEEL_RULE_CGROUP) && spec->cgroup) ||
	    (!(flags & TWHEEL_RULE_PID) && spec->pid))
		return -EINVAL;
	return 0;
}

static int check(const struct twheel_rule *spec)
{
	if (spec->flags & ~FLAGS)
		return -EOPNOTSUPP;
	if (spec->reserved || hweight32(spec->flags & ACTIONS) != 1)
		return -EINVAL;
	if (!(spec->idle | spec->lifetime) ||
	    (spec->idle | spec->lifetime | spec->spread) > TWHEEL_TIME_MAX)
		return -EINVAL;
	if (spec->idle && spec->idle + spec->spread > TWHEEL_WATCH_IDLE_MAX)
		return -EINVAL;
	return check_matches(spec);
}

/* Finds what a rule names. What has been found is for free_rule() to let go of. */
static int resolve(struct twheel_idle_rule *rule)
{
	const struct twheel_rule *spec = &rule->spec;

	if (spec->flags & TWHEEL_RULE_UID) {
		rule->uid = make_kuid(current_user_ns(), spec->uid);
		if (!uid_valid(rule->uid))
			return -EINVAL;
	}
	if (spec->flags & TWHEEL_RULE_PID) {
		rule->pid = find_get_pid(spec->pid);
		if (!rule->pid || !is_alive(rule->pid))
			return -ESRCH;
		rule->ports = bitmap_zalloc(TWHEEL_PORTS, GFP_KERNEL_ACCOUNT);
		if (!rule->ports)
			return -ENOMEM;
	}
	return spec->flags & TWHEEL_RULE_CGROUP ? find_cgroup(rule) : 0;
}

static void free_rule(struct twheel_idle_rule *rule)
{
	put_cgroup(rule);
	put_pid(rule->pid);
	bitmap_free(rule->ports);
	kfree(rule);
}

/* Makes a rule, which nobody finds yet. */
static struct twheel_idle_rule *make_rule(const struct twheel_rule *spec)
{
	struct twheel_idle_rule *rule = kzalloc(sizeof(*rule), GFP_KERNEL_ACCOUNT);
	int ret = -ENOMEM;

	if (!rule)
		return ERR_PTR(ret);
	spin_lock_init(&rule->lock);
	rule->seed = get_random_u32();
	rule->spec = *spec;
	rule->spec.rate = spec->rate ?: TWHEEL_RULE_RATE;
	ret = resolve(rule);
	if (!ret)
		ret = xa_alloc_cyclic(&rules, &rule->index, rule, XA_LIMIT(1, U32_MAX), &next_index,
				      GFP_KERNEL_ACCOUNT);
	if (ret >= 0)
		return rule;
	free_rule(rule);
	return ERR_PTR(ret);
}

/* The opposite of make_rule(). */
static void drop_rule(struct twheel_idle_rule *rule)
{
	xa_erase(&rules, rule->index);
	free_rule(rule);
}

/* Puts a rule at the end of its namespace's. Returns 0, or -ENOSPC. */
static int publish(struct net *net, struct twheel_idle_rule *rule)
{
	struct twheel_rules *ours = rules_of(net);
	int ret = -ENOSPC;

	mutex_lock(&rules_lock);
	if (ours->nr < NR_RULES) {
		ours->nr++;
		rule->spec.id = ++ours->last_id;
		list_add_tail_rcu(&rule->list, &ours->list);
		ret = 0;
	}
	mutex_unlock(&rules_lock);
	return ret;
}

/* Takes a rule out of its namespace's list. The mutex is held. */
static void unpublish(struct net *net, struct twheel_idle_rule *rule, struct list_head *gone)
{
	rules_of(net)->nr--;
	list_del_rcu(&rule->list);
	/* Pairs with the loads in kick.c. */
	WRITE_ONCE(rule->dead, true);
	list_add_tail(&rule->gone, gone);
}

/* Frees rules that were taken out of their lists, when nobody has anything to do with them. */
static void bury(struct list_head *gone)
{
	struct twheel_idle_rule *rule, *next;

	if (list_empty(gone))
		return;
	synchronize_rcu();
	twheel_kick_release(gone);
	list_for_each_entry(rule, gone, gone)
		twheel_kick_put();
	synchronize_rcu();
	list_for_each_entry_safe(rule, next, gone, gone)
		drop_rule(rule);
}

/*
 * The ioctls. The caller's namespace stays as long as the call lasts.
 */

static bool may_rule(const struct net *net)
{
	return ns_capable(net->user_ns, CAP_NET_ADMIN);
}

static struct net *callers_net(void)
{
	return current->nsproxy->net_ns;
}

static long remove(struct net *net, u32 id)
{
	struct twheel_idle_rule *rule;
	LIST_HEAD(gone);

	mutex_lock(&rules_lock);
	rcu_read_lock();
	rule = find(net, id);
	rcu_read_unlock();
	if (rule)
		unpublish(net, rule, &gone);
	mutex_unlock(&rules_lock);
	if (!rule)
		return -ENOENT;
	bury(&gone);
	/* Others may be for processes, of which watches of this rule know nothing. */
	if (!list_empty(&rules_of(net)->list))
		twheel_rules_find_again(net, 0);
	return 0;
}

/* Adds a rule, and has it find its connections. */
static long add(struct net *net, struct twheel_idle_rule *rule, u32 *id)
{
	long ret;

	ret = twheel_kick_get();
	if (ret)
		return ret;
	ret = publish(net, rule);
	if (ret) {
		twheel_kick_put();
		return ret;
	}
	*id = rule->spec.id;
	return 0;
}

static long run_add(const struct twheel_ioctl_call *call)
{
	struct twheel_rule *spec = call->arg;
	struct net *net = callers_net();
	struct twheel_idle_rule *rule;
	long ret;

	if (!may_rule(net))
		return -EPERM;
	ret = check(spec);
	if (ret)
		return ret;
	/* Can the id be told? */
	if (twheel_ioctl_respond(call))
		return -EFAULT;
	/* As long as this call needs the watches, the rule may be gone again. */
	ret = twheel_kick_get();
	if (ret)
		return ret;
	rule = make_rule(spec);
	if (IS_ERR(rule)) {
		ret = PTR_ERR(rule);
		goto out;
	}
	ret = add(net, rule, &spec->id);
	if (ret) {
		drop_rule(rule);
		goto out;
	}
	if (twheel_ioctl_respond(call)) {
		remove(net, spec->id);
		ret = -EFAULT;
		goto out;
	}
	if (twheel_find_all(net))
		twheel_rules_find_again(net, HZ);
	twheel_kick_settle();
out:
	twheel_kick_put();
	return ret;
}

static long run_remove(const struct twheel_ioctl_call *call)
{
	const struct twheel_rule *spec = call->arg;
	struct net *net = callers_net();

	return may_rule(net) ? remove(net, spec->id) : -EPERM;
}

static void describe(const struct twheel_idle_rule *rule, struct twheel_rule *spec)
{
	*spec = rule->spec;
	if (spec->flags & TWHEEL_RULE_UID)
		spec->uid = from_kuid_munged(current_user_ns(), rule->uid);
	spec->pid = pid_vnr(rule->pid);
	spec->watched = atomic64_read(&rule->watched);
	spec->matched = atomic64_read(&rule->matched);
	spec->closed = atomic64_read(&rule->closed);
	spec->spared = atomic64_read(&rule->spared);
	spec->delayed = atomic64_read(&rule->delayed);
	spec->missed = atomic64_read(&rule->missed);
}

static long run_next(const struct twheel_ioctl_call *call)
{
	struct twheel_rule *spec = call->arg;
	struct net *net = callers_net();
	struct twheel_idle_rule *rule;

	if (!may_rule(net))
		return -EPERM;
	rcu_read_lock();
	rule = spec->id < U32_MAX ? twheel_rules_from(net, spec->id + 1) : NULL;
	if (rule)
		describe(rule, spec);
	rcu_read_unlock();
	return rule ? twheel_ioctl_respond(call) : -ENOENT;
}

/*
 * The cursor of a listing: a bucket of the kernel's table, and the cookie of the last
 * connection of it that was told of. Within a bucket they are told of in the order of their
 * cookies, so that none is left out when others come and go.
 */
#define COOKIE_BITS	40
#define COOKIE_MASK	GENMASK_ULL(COOKIE_BITS - 1, 0)

static u64 order_of(const void *socks)
{
	return twheel_kick_cookie(*(struct sock **)socks) & COOKIE_MASK;
}

static int compare(const void *a, const void *b)
{
	u64 one = order_of(a), other = order_of(b);

	return one < other ? -1 : one > other;
}

/* Writes a record. Returns 0 or -EFAULT. */
static int write_record(void __user *user, const struct twheel_connection *connection, u32 size)
{
	const u32 known = min_t(u32, size, sizeof(*connection));

	if (copy_to_user(user, connection, known) || clear_user(user + known, size - known))
		return -EFAULT;
	return 0;
}

/* Tells of the connections of a bucket. Returns of how many, or -EFAULT; moves the cursor. */
static long list_bucket(struct twheel_connections *list, const struct twheel_found *found,
			u32 bucket, void __user *user, u32 most)
{
	u64 last = list->cursor >> COOKIE_BITS == bucket ? list->cursor & COOKIE_MASK : 0, order;
	struct twheel_connection connection;
	long done = 0;
	u32 i;

	sort(found->socks, found->nr, sizeof(*found->socks), compare, NULL);
	for (i = 0; i < found->nr; i++) {
		order = order_of(&found->socks[i]);
		if (order <= last ||
		    !twheel_kick_describe(found->socks[i], list->id, &connection))
			continue;
		if (done == most)
			return done;
		if (write_record(user + (size_t)done * list->record_size, &connection,
				 list->record_size))
			return done ?: -EFAULT;
		list->cursor = (u64)bucket << COOKIE_BITS | order;
		done++;
	}
	list->cursor = (u64)(bucket + 1) << COOKIE_BITS;
	return done;
}

static long list_connections(struct net *net, struct twheel_connections *list)
{
	void __user *user = u64_to_user_ptr(list->records);
	u32 bucket = list->cursor >> COOKIE_BITS;
	struct twheel_found found = { };
	long done = 0, ret = 0;

	while (done < list->nr_records) {
		ret = fatal_signal_pending(current) ? -EINTR :
						      twheel_find_next(net, &bucket, &found);
		if (ret > 0)
			ret = list_bucket(list, &found, bucket,
					  user + (size_t)done * list->record_size,
					  list->nr_records - done);
		else if (!ret)
			break;
		if (ret < 0)
			break;
		twheel_found_put(&found);
		done += ret;
		bucket = list->cursor >> COOKIE_BITS;
	}
	twheel_found_free(&found);
	return done ?: ret;
}

static long run_connections(const struct twheel_ioctl_call *call)
{
	struct twheel_connections *list = call->arg;
	struct net *net = callers_net();
	bool there;
	long ret;

	if (!may_rule(net))
		return -EPERM;
	if (list->flags)
		return -EOPNOTSUPP;
	if (list->reserved || list->record_size < RECORD_SIZE_MIN || list->record_size % 8 ||
	    !list->nr_records || list->nr_records > INT_MAX)
		return -EINVAL;
	rcu_read_lock();
	there = find(net, list->id);
	rcu_read_unlock();
	if (!there)
		return -ENOENT;
	/* Can the cursor be told? */
	if (twheel_ioctl_respond(call))
		return -EFAULT;
	ret = list_connections(net, list);
	if (ret >= 0 && twheel_ioctl_respond(call))
		return -EFAULT;
	return ret;
}

static const struct twheel_ioctl ioctls[] = {
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_ADD, struct twheel_rule, missed, run_add),
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_REMOVE, struct twheel_rule, missed, run_remove),
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_NEXT, struct twheel_rule, missed, run_next),
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_CONNECTIONS, struct twheel_connections, reserved,
		     run_connections),
};

/**
 * twheel_rules_ioctl - do an ioctl of linux/twheel_rules.h
 * @file:	as given to the device, as are the others
 * @cmd:	its number
 * @user:	its argument
 *
 * Context: process; may sleep.
 * Return: what the ioctl returns.
 */
long twheel_rules_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return twheel_ioctl_run(ioctls, ARRAY_SIZE(ioctls), file, cmd, user);
}

/*
 * Namespaces
 */

static int __net_init init_net_rules(struct net *net)
{
	struct twheel_rules *ours = rules_of(net);

	INIT_LIST_HEAD(&ours->list);
	ours->net = net;
	INIT_DELAYED_WORK(&ours->find, work_on_find);
	return 0;
}

/* A namespace goes: its sockets are gone. */
static void exit_net_rules(struct net *net)
{
	struct twheel_idle_rule *rule, *next;
	LIST_HEAD(gone);

	mutex_lock(&rules_lock);
	list_for_each_entry_safe(rule, next, &rules_of(net)->list, list)
		unpublish(net, rule, &gone);
	mutex_unlock(&rules_lock);
	bury(&gone);
	/* Who has it look again does so for a rule, under RCU. */
	cancel_delayed_work_sync(&rules_of(net)->find);
}

static struct pernet_operations net_ops = {
	.init	= init_net_rules,
	.exit	= exit_net_rules,
	.id	= &net_id,
	.size	= sizeof(struct twheel_rules),
};

/**
 * twheel_rules_init - get ready for rules
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int __init twheel_rules_init(void)
{
	twheel_kick_init();
	return register_pernet_subsys(&net_ops);
}

/**
 * twheel_rules_exit - remove all rules, and leave their connections alone
 *
 * Context: process; may sleep. The device is gone.
 */
void twheel_rules_exit(void)
{
	/*
	 * Without rules nobody is told of changes: so no change finds a namespace whose part of
	 * this is gone already.
	 */
	unregister_pernet_subsys(&net_ops);
	xa_destroy(&rules);
}
