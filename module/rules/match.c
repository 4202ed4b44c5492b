// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: which rule applies to a connection
 *
 * It is the first rule in the list of the connection's network namespace that the connection
 * matches; the list is searched under RCU. A rule for a process matches the connections that the
 * process begins, and those to ports that it listens on (ports.c).
 */
#include <linux/bitops.h>
#include <linux/cgroup.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <net/inet_sock.h>
#include <net/mptcp.h>

#include "match.h"
#include "match_list.h"
#include "rules.h"
#include "tcp/watch.h"

#ifdef CONFIG_SOCK_CGROUP_DATA
static bool is_in_cgroup(const struct sock *sk, struct cgroup *ancestor)
{
	struct cgroup *cgroup = sock_cgroup_ptr((struct sock_cgroup_data *)&sk->sk_cgrp_data);

	/* A socket that was created in an interrupt has none. */
	return cgroup && cgroup_is_descendant(cgroup, ancestor);
}
#else
static bool is_in_cgroup(const struct sock *sk, struct cgroup *ancestor)
{
	return false;
}
#endif

static bool is_alive(struct pid *pid)
{
	return pid_has_task(pid, PIDTYPE_TGID);
}

static bool matches_process(const struct twheel_idle_rule *rule, const struct sock *sk,
			    const struct pid *initiator, bool is_new)
{
	/* It matched before, whichever processes have stopped listening on that port since. */
	if (!is_new)
		return true;
	if (!is_alive(rule->pid))
		return false;
	/* The kernel may release the port meanwhile; then it is 0. */
	return rule->pid == initiator || test_bit(READ_ONCE(inet_sk(sk)->inet_num), rule->ports);
}

static bool rule_matches(const struct twheel_idle_rule *rule, const struct sock *sk,
			 const struct pid *initiator, bool is_new)
{
	/* The kernel may release a port meanwhile; then it is 0. */
	if (rule->criteria & TWHEEL_RULE_LOCAL_PORT &&
	    READ_ONCE(inet_sk(sk)->inet_num) != rule->local_port)
		return false;
	if (rule->criteria & TWHEEL_RULE_REMOTE_PORT &&
	    READ_ONCE(inet_sk(sk)->inet_dport) != htons(rule->remote_port))
		return false;
	if (!twheel_match_list(rule->matches, rule->nr_matches, sk))
		return false;
	if (rule->criteria & TWHEEL_RULE_UID && twheel_watch_accepted(sk) &&
	    !uid_eq(twheel_uid_of(sk), rule->uid))
		return false;
	if (rule->criteria & TWHEEL_RULE_CGROUP && !is_in_cgroup(sk, rule->cgroup))
		return false;
	return !(rule->criteria & TWHEEL_RULE_PID) || matches_process(rule, sk, initiator, is_new);
}

/**
 * twheel_rules_match - find the rule that applies to a connection
 * @sk:		its socket. Its uid does not matter until the connection has been accepted
 * @initiator:	the process that began the connection, or NULL if unknown
 * @cur:	the rule that has applied so far, or NULL
 *
 * Context: any but NMI, under rcu_read_lock().
 * Return: the first rule that the connection matches; or NULL.
 */
struct twheel_idle_rule *twheel_rules_match(const struct sock *sk, const struct pid *initiator,
					    const struct twheel_idle_rule *cur)
{
	struct twheel_idle_rule *rule;

	/* The data of such a connection may go on over another one. */
	if (sk_is_mptcp(sk))
		return NULL;
	list_for_each_entry_rcu(rule, &twheel_rules_of_net(sock_net(sk))->list, list)
		if (rule_matches(rule, sk, initiator, rule != cur))
			return rule;
	return NULL;
}

/**
 * twheel_rules_match_pid - find the rule for a connection that is only about to begin
 * @net:	its namespace
 * @pid:	the process that begins it
 *
 * Context: any but NMI, under rcu_read_lock().
 * Return: the first rule for this process, if the process exists; or NULL.
 */
struct twheel_idle_rule *twheel_rules_match_pid(const struct net *net, const struct pid *pid)
{
	struct twheel_idle_rule *rule;

	list_for_each_entry_rcu(rule, &twheel_rules_of_net(net)->list, list)
		if (rule->pid && rule->pid == pid && is_alive(rule->pid))
			return rule;
	return NULL;
}
