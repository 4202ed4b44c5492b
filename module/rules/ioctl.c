// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the ioctls of linux/twheel_rules.h
 *
 * The caller's namespace exists as long as the call lasts.
 */
#include <linux/bitops.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include "admin.h"
#include "ioctl.h"
#include "lib/ioctl.h"
#include "list.h"
#include "match_list.h"
#include "rules.h"
#include "scan.h"
#include "tcp/watch.h"
#include "tcp/watch_worker.h"
#include "track.h"

#define ACTIONS		(TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT | TWHEEL_RULE_KEEP)
#define ACTIVITY	(TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT)
#define FLAGS		(TWHEEL_RULE_CRITERIA | ACTIONS | TWHEEL_RULE_DRY_RUN |		\
			 ACTIVITY)

/* Size of the first version of struct twheel_connection. */
#define RECORD_SIZE_MIN	72

static bool has_net_admin(const struct net *net)
{
	return ns_capable(net->user_ns, CAP_NET_ADMIN);
}

static struct net *current_net(void)
{
	return current->nsproxy->net_ns;
}

static int check_criteria(const struct twheel_rule *spec)
{
	const u32 flags = spec->flags;

	if (!(flags & TWHEEL_RULE_LOCAL_PORT) != !spec->local_port ||
	    !(flags & TWHEEL_RULE_REMOTE_PORT) != !spec->remote_port)
		return -EINVAL;
	if ((!(flags & TWHEEL_RULE_UID) && spec->uid) ||
	    (!(flags & TWHEEL_RULE_CGROUP) && spec->cgroup) ||
	    (!(flags & TWHEEL_RULE_PID) && spec->pid))
		return -EINVAL;
	if (spec->nr_matches > TWHEEL_RULE_MATCHES || !spec->nr_matches != !spec->matches)
		return -EINVAL;
	return 0;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Is this a valid name, or none? */
static bool is_valid_name(const char *name)
{
	const size_t length = strnlen(name, TWHEEL_RULE_NAME);
	size_t i;

	if (length == TWHEEL_RULE_NAME || memchr_inv(name + length, 0, TWHEEL_RULE_NAME - length))
		return false;
	for (i = 0; i < length; i++)
		if (!is_letter(name[i]) && (!i || !strchr("0123456789-_.", name[i])))
			return false;
	return true;
}

static int check_idle(const struct twheel_rule *spec)
{
	if (!spec->idle)
		return 0;
	/* TCP's stamps are too coarse for an idle timeout shorter than two jiffies. */
	if (spec->idle < max_t(u64, TWHEEL_IDLE_MIN, 2 * TICK_NSEC) ||
	    spec->idle + spec->spread > TWHEEL_WATCH_IDLE_MAX)
		return -EINVAL;
	return 0;
}

static int check_limits(const struct twheel_rule *spec)
{
	const bool keeps = spec->flags & TWHEEL_RULE_KEEP;

	if (hweight32(spec->flags & ACTIONS) != 1 || !is_valid_name(spec->name))
		return -EINVAL;
	if ((spec->idle | spec->lifetime | spec->spread | spec->stalled) > TWHEEL_TIME_MAX)
		return -EINVAL;
	/* Exceptions have no limits, and all other rules have one. */
	if (keeps ? spec->idle | spec->lifetime | spec->spread | spec->stalled | spec->rate :
		    !(spec->idle | spec->lifetime))
		return -EINVAL;
	if (keeps && spec->flags & (TWHEEL_RULE_DRY_RUN | ACTIVITY))
		return -EINVAL;
	return check_idle(spec);
}

static int check_rule(const struct twheel_rule *spec)
{
	if (spec->flags & ~FLAGS)
		return -EOPNOTSUPP;
	if (spec->reserved || spec->reserved2)
		return -EINVAL;
	return check_limits(spec) ?: check_criteria(spec);
}

static void describe_limits(const struct twheel_limits *limits, struct twheel_rule *spec)
{
	spec->flags |= limits->flags;
	spec->rate = limits->rate;
	spec->idle = limits->idle;
	spec->lifetime = limits->lifetime;
	spec->spread = limits->spread;
	spec->stalled = limits->stalled;
	memcpy(spec->name, limits->name, sizeof(spec->name));
}

static void describe_counts(const struct twheel_idle_rule *rule, struct twheel_rule *spec)
{
	int i;

	spec->watched = atomic64_read(&rule->watched);
	spec->matched = atomic64_read(&rule->matched);
	spec->closed = atomic64_read(&rule->closed);
	spec->would_close = atomic64_read(&rule->would_close);
	spec->untimed = atomic64_read(&rule->untimed);
	spec->spared = atomic64_read(&rule->spared);
	spec->delayed = atomic64_read(&rule->delayed);
	spec->missed = atomic64_read(&rule->missed);
	spec->overdue = atomic64_read(&rule->overdue);
	spec->waited = atomic64_read(&rule->waited);
	for (i = 0; i < TWHEEL_RULE_LATE; i++)
		spec->late[i] = atomic64_read(&rule->late[i]);
}

/* A rule's place in its namespace's list, from 1. The caller holds the RCU read lock. */
static u32 get_place(const struct twheel_idle_rule *rule)
{
	const struct twheel_idle_rule *other;
	u32 place = 1;

	list_for_each_entry_rcu(other, &twheel_rules_of_net(rule->net)->list, list) {
		if (other == rule)
			break;
		place++;
	}
	return place;
}

/* Describes a rule, except for its lists. The caller holds the RCU read lock. */
static void describe_rule(const struct twheel_idle_rule *rule, struct twheel_rule *spec)
{
	*spec = (struct twheel_rule) {
		.id		= rule->id,
		.flags		= rule->criteria,
		.local_port	= rule->local_port,
		.remote_port	= rule->remote_port,
		.pid		= pid_vnr(rule->pid),
		.cgroup		= rule->cgroup_id,
		.nr_matches	= rule->nr_matches,
		.place		= get_place(rule),
		.age		= ktime_get_boottime_ns() - rule->added_boot,
	};
	if (rule->criteria & TWHEEL_RULE_UID)
		spec->uid = from_kuid_munged(current_user_ns(), rule->uid);
	describe_limits(twheel_limits_of(rule), spec);
	describe_counts(rule, spec);
}

/* Describes a rule that was added or changed, if it still exists. What the caller passed stays. */
static void describe_updated(struct net *net, struct twheel_rule *spec)
{
	const u64 matches = spec->matches;
	const u32 before = spec->before;
	struct twheel_idle_rule *rule;

	rcu_read_lock();
	rule = twheel_rules_by_id(net, spec->id);
	if (rule) {
		describe_rule(rule, spec);
		spec->matches = matches;
		spec->before = before;
	}
	rcu_read_unlock();
}

/* Reads the lists of a rule. Returns them, NULL for none, or an error. */
static struct twheel_match *read_matches(const struct twheel_rule *spec)
{
	struct twheel_match *matches;

	if (!spec->nr_matches)
		return NULL;
	matches = memdup_user(u64_to_user_ptr(spec->matches), spec->nr_matches * sizeof(*matches));
	if (!IS_ERR(matches) && !twheel_match_list_valid(matches, spec->nr_matches)) {
		kfree(matches);
		return ERR_PTR(-EINVAL);
	}
	return matches;
}

/*
 * Adds a rule, and watches the connections that it applies to. The caller holds twheel_track_get().
 */
static long add_rule(const struct twheel_ioctl_call *call, struct net *net,
		     const struct twheel_match *matches)
{
	struct twheel_rule *spec = call->arg;
	const bool is_before = spec->before;
	long ret;

	ret = twheel_rules_add(net, spec, matches);
	if (ret)
		return ret;
	if (twheel_ioctl_respond(call)) {
		twheel_rules_remove(net, spec->id);
		return -EFAULT;
	}
	/* If the caller is killed, the rest is done later. */
	if (twheel_scan_run(net))
		twheel_scan_later(net, HZ);
	if (is_before)
		twheel_track_recheck_all(net, NULL);
	else
		twheel_watch_worker_flush(&twheel_rules_of_net(net)->worker);
	describe_updated(net, spec);
	/* The rule has been added and its id returned, whether this succeeds or not. */
	(void)twheel_ioctl_respond(call);
	return 0;
}

static long run_rule_add(const struct twheel_ioctl_call *call)
{
	const struct twheel_rule *spec = call->arg;
	struct net *net = current_net();
	struct twheel_match *matches;
	long ret;

	if (!has_net_admin(net))
		return -EPERM;
	ret = check_rule(spec);
	if (ret)
		return ret;
	if (!(spec->flags & TWHEEL_RULE_CRITERIA) && !spec->nr_matches)
		return -EINVAL;
	/* Is the id writable? Checked before the rule is added. */
	if (twheel_ioctl_respond(call))
		return -EFAULT;
	matches = read_matches(spec);
	if (IS_ERR(matches))
		return PTR_ERR(matches);
	/* This call needs the watches even if the rule is removed meanwhile. */
	ret = twheel_track_get();
	if (!ret) {
		ret = add_rule(call, net, matches);
		twheel_track_put();
	}
	kfree(matches);
	return ret;
}

static long run_rule_set(const struct twheel_ioctl_call *call)
{
	struct twheel_rule *spec = call->arg;
	struct net *net = current_net();
	long ret;

	if (!has_net_admin(net))
		return -EPERM;
	ret = check_rule(spec);
	if (ret)
		return ret;
	if (spec->flags & TWHEEL_RULE_CRITERIA || spec->nr_matches || spec->before)
		return -EINVAL;
	/* Is the rule writable? Checked before it is changed. */
	if (twheel_ioctl_respond(call))
		return -EFAULT;
	ret = twheel_rules_set(net, spec);
	if (ret)
		return ret;
	describe_updated(net, spec);
	/* The rule has been changed, whether this succeeds or not. */
	(void)twheel_ioctl_respond(call);
	return 0;
}

static long run_rule_remove(const struct twheel_ioctl_call *call)
{
	const struct twheel_rule *spec = call->arg;
	struct net *net = current_net();

	return has_net_admin(net) ? twheel_rules_remove(net, spec->id) : -EPERM;
}

/*
 * Describes the rule with the next id, and copies its lists, up to @capacity entries. Returns 0 or
 * -ENOENT.
 */
static long find_next_rule(struct net *net, struct twheel_rule *spec,
			   struct twheel_match *matches, u32 capacity)
{
	struct twheel_idle_rule *rule = NULL;

	rcu_read_lock();
	if (spec->id < U32_MAX)
		rule = twheel_rules_from(net, spec->id + 1);
	if (rule) {
		describe_rule(rule, spec);
		if (rule->nr_matches)
			memcpy(matches, rule->matches,
			       min(capacity, rule->nr_matches) * sizeof(*matches));
	}
	rcu_read_unlock();
	return rule ? 0 : -ENOENT;
}

static long run_rule_next(const struct twheel_ioctl_call *call)
{
	struct twheel_rule *spec = call->arg;
	const u64 user = spec->matches;
	const u32 capacity = user ? min_t(u32, spec->nr_matches, TWHEEL_RULE_MATCHES) : 0;
	struct net *net = current_net();
	struct twheel_match *matches;
	long ret;

	if (!has_net_admin(net))
		return -EPERM;
	matches = kcalloc(TWHEEL_RULE_MATCHES, sizeof(*matches), GFP_KERNEL);
	if (!matches)
		return -ENOMEM;
	ret = find_next_rule(net, spec, matches, capacity);
	if (!ret) {
		spec->matches = user;
		if (copy_to_user(u64_to_user_ptr(user), matches,
				 min(capacity, spec->nr_matches) * sizeof(*matches)))
			ret = -EFAULT;
	}
	kfree(matches);
	if (ret)
		return ret;
	ret = twheel_ioctl_respond(call);
	/* A program that does not know of lists gets the rule without them. */
	return ret ?: user && spec->nr_matches > capacity ? -ENOSPC : 0;
}

static long run_rule_connections(const struct twheel_ioctl_call *call)
{
	struct twheel_connections *list = call->arg;
	struct net *net = current_net();
	bool exists;
	long ret;

	if (!has_net_admin(net))
		return -EPERM;
	if (list->flags)
		return -EOPNOTSUPP;
	if (list->reserved || list->record_size < RECORD_SIZE_MIN || list->record_size % 8 ||
	    !list->nr_records || list->nr_records > INT_MAX)
		return -EINVAL;
	rcu_read_lock();
	exists = twheel_rules_by_id(net, list->id);
	rcu_read_unlock();
	if (!exists)
		return -ENOENT;
	/* Is the cursor writable? Checked before anything is listed. */
	if (twheel_ioctl_respond(call))
		return -EFAULT;
	ret = twheel_connections_list(net, list);
	if (ret >= 0 && twheel_ioctl_respond(call))
		return -EFAULT;
	return ret;
}

static const struct twheel_ioctl rule_ioctls[] = {
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_ADD, struct twheel_rule, missed, run_rule_add),
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_REMOVE, struct twheel_rule, missed, run_rule_remove),
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_NEXT, struct twheel_rule, missed, run_rule_next),
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_CONNECTIONS, struct twheel_connections, reserved,
		     run_rule_connections),
	TWHEEL_IOCTL(TWHEEL_IOC_RULE_SET, struct twheel_rule, late, run_rule_set),
};

/**
 * twheel_rules_ioctl - run an ioctl of linux/twheel_rules.h
 * @file:	as passed to the device, as are the others
 * @cmd:	its number
 * @user:	its argument
 *
 * Context: process; may sleep.
 * Return: what the ioctl returns.
 */
long twheel_rules_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return twheel_ioctl_run(rule_ioctls, ARRAY_SIZE(rule_ioctls), file, cmd, user);
}
