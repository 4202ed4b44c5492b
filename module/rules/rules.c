// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the rules of all network namespaces: finding one, and requesting a scan
 *
 * Each network namespace has a list of rules, read under RCU and changed by admin.c. Watches refer
 * to their rule by a number that is unique among all namespaces: there is no room for more.
 */
#include <linux/jiffies.h>
#include <linux/rculist.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include "lib/memory.h"
#include "rules.h"

/* The rules of all namespaces, by @index. */
static DEFINE_XARRAY_ALLOC1(all_rules);
static u32 next_index;

unsigned int twheel_rules_net_id;

void (*twheel_rules_state_change)(struct sock *sk);

struct workqueue_struct *twheel_scan_queue;

/**
 * twheel_rules_register - give a rule a number that is unique among all namespaces
 * @rule:	the rule
 *
 * Context: process; may sleep.
 * Return: 0 or more; or
 * * %-ENOMEM	- no memory
 * * %-EBUSY	- no number is left
 */
int twheel_rules_register(struct twheel_idle_rule *rule)
{
	return xa_alloc_cyclic(&all_rules, &rule->index, rule, XA_LIMIT(1, U32_MAX), &next_index,
			       TWHEEL_GFP_USER);
}

/**
 * twheel_rules_unregister - release the number of a rule
 * @rule:	the rule, which no watch refers to any more
 *
 * Context: process.
 */
void twheel_rules_unregister(struct twheel_idle_rule *rule)
{
	xa_erase(&all_rules, rule->index);
}

/**
 * twheel_rules_destroy - free the table of all rules
 *
 * Context: process; may sleep. No rules are left.
 */
void twheel_rules_destroy(void)
{
	xa_destroy(&all_rules);
}

/**
 * twheel_rules_by_index - find the rule that a watch refers to
 * @index:	the number of a rule that has users
 *
 * Context: any but NMI, under rcu_read_lock().
 * Return: the rule.
 */
struct twheel_idle_rule *twheel_rules_by_index(u32 index)
{
	return xa_load(&all_rules, index);
}

/**
 * twheel_rules_from - find the next rule from an id on
 * @net:	its namespace
 * @id:		the smallest id to consider
 *
 * Context: under rcu_read_lock().
 * Return: of the rules with this or a larger id the one with the smallest; or NULL.
 */
struct twheel_idle_rule *twheel_rules_from(struct net *net, u32 id)
{
	struct twheel_idle_rule *rule, *first = NULL;

	list_for_each_entry_rcu(rule, &twheel_rules_of_net(net)->list, list)
		if (rule->id >= id && (!first || rule->id < first->id))
			first = rule;
	return first;
}

/**
 * twheel_rules_by_id - find a rule by its id
 * @net:	its namespace
 * @id:		the id
 *
 * Context: under rcu_read_lock().
 * Return: the rule; or NULL.
 */
struct twheel_idle_rule *twheel_rules_by_id(struct net *net, u32 id)
{
	struct twheel_idle_rule *rule = twheel_rules_from(net, id);

	return rule && rule->id == id ? rule : NULL;
}

/**
 * twheel_scan_later - schedule a scan for connections that were missed
 * @net:	the namespace
 * @delay:	the minimum delay, in jiffies
 *
 * Scans begin at most once a second.
 *
 * Context: any but NMI. Either there is a rule, under rcu_read_lock(), or the caller keeps the
 * module and @net from going away.
 */
void twheel_scan_later(struct net *net, unsigned long delay)
{
	struct twheel_rules *net_rules = twheel_rules_of_net(net);
	/* Pairs with twheel_scan_work(). */
	const unsigned long next = READ_ONCE(net_rules->last_scan) + HZ, now = jiffies;

	/* A scan that is in progress may be past the connections in question. */
	atomic_inc(&net_rules->scan_requests);
	if (time_before(now + delay, next))
		delay = next - now;
	queue_delayed_work(twheel_scan_queue, &net_rules->scan_work, delay);
}

/**
 * twheel_recheck_later - schedule a scan that also evaluates watched connections again
 * @net:	the namespace
 *
 * For callers that had to evaluate them, and could not.
 *
 * Context: process. The caller keeps the module and @net from going away.
 */
void twheel_recheck_later(struct net *net)
{
	/* Ordered before the increment of @scan_requests. Pairs with twheel_scan_work(). */
	atomic_xchg(&twheel_rules_of_net(net)->recheck, 1);
	twheel_scan_later(net, 0);
}

/**
 * twheel_scan_all_later - schedule a scan for missed connections in all namespaces
 *
 * Context: process.
 */
void twheel_scan_all_later(void)
{
	struct net *net;

	rcu_read_lock();
	/* A namespace that is going away is not in the list, or waits for a grace period. */
	for_each_net_rcu(net)
		if (!list_empty(&twheel_rules_of_net(net)->list))
			twheel_scan_later(net, 0);
	rcu_read_unlock();
}
