// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the ioctls of linux/twheel_rules.h
 *
 * The caller's namespace stays as long as the call lasts.
 */
#include <linux/bitops.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <net/net_namespace.h>

#include "ioctl.h"
#include "rules.h"
#include "watch.h"

#define MATCHES		(TWHEEL_RULE_LOCAL_PORT | TWHEEL_RULE_REMOTE_PORT |	\
			 TWHEEL_RULE_UID | TWHEEL_RULE_CGROUP | TWHEEL_RULE_PID)
#define ACTIONS		(TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)
#define FLAGS		(MATCHES | ACTIONS | TWHEEL_RULE_DRY_RUN |		\
			 TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT)

/* Size of the first struct twheel_connection. */
#define RECORD_SIZE_MIN	72

static bool may_rule(const struct net *net)
{
	return ns_capable(net->user_ns, CAP_NET_ADMIN);
}

static struct net *callers_net(void)
{
	return current->nsproxy->net_ns;
}

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
	if (spec->idle && (spec->idle < TWHEEL_IDLE_MIN ||
			   spec->idle + spec->spread > TWHEEL_WATCH_IDLE_MAX))
		return -EINVAL;
	return check_matches(spec);
}

static long run_add(const struct twheel_ioctl_call *call)
{
	struct twheel_rule *spec = call->arg;
	struct net *net = callers_net();
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
	ret = twheel_rules_add(net, spec);
	if (ret)
		goto out;
	if (twheel_ioctl_respond(call)) {
		twheel_rules_remove(net, spec->id);
		ret = -EFAULT;
		goto out;
	}
	/* Should the caller be killed, the rest is for later. */
	if (twheel_find_all(net))
		twheel_find_later(net, HZ);
	twheel_due_settle(&twheel_rules_of_net(net)->due);
out:
	twheel_kick_put();
	return ret;
}

static long run_remove(const struct twheel_ioctl_call *call)
{
	const struct twheel_rule *spec = call->arg;
	struct net *net = callers_net();

	return may_rule(net) ? twheel_rules_remove(net, spec->id) : -EPERM;
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
	there = twheel_rules_by_id(net, list->id);
	rcu_read_unlock();
	if (!there)
		return -ENOENT;
	/* Can the cursor be told? */
	if (twheel_ioctl_respond(call))
		return -EFAULT;
	ret = twheel_connections_list(net, list);
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
