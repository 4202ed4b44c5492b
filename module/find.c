// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: looks for connections that are there: those of a network namespace, and
 * those of a process
 *
 * References are taken under the kernel's locks, in portions, and what is to be done is done
 * outside of them.
 */
#include <linux/bitmap.h>
#include <linux/fdtable.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/inet_hashtables.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "rules.h"
#include "watch.h"

/* Sockets of a portion, at first. */
#define ROOM		64

/* File descriptors of a process that are looked at with its files locked. */
#define NR_FILES	512

/**
 * twheel_found_put - give back the references to sockets that were found
 * @found:	the sockets; there are none afterwards
 *
 * Context: process; may sleep.
 */
void twheel_found_put(struct twheel_found *found)
{
	while (found->nr)
		sock_put(found->socks[--found->nr]);
}

/**
 * twheel_found_free - free the memory of sockets that were found
 * @found:	the sockets
 *
 * Context: process; may sleep.
 */
void twheel_found_free(struct twheel_found *found)
{
	twheel_found_put(found);
	kvfree(found->socks);
}

/* Makes room for more sockets, none of which are there. Returns 0 or -ENOMEM. */
static int make_room(struct twheel_found *found, u32 room)
{
	struct sock **socks;

	if (room <= found->room)
		return 0;
	socks = kvmalloc_array(room, sizeof(*socks), GFP_KERNEL | __GFP_NOWARN);
	if (!socks)
		return -ENOMEM;
	kvfree(found->socks);
	found->socks = socks;
	found->room = room;
	return 0;
}

/*
 * Takes references to the connections of a namespace in a bucket of the kernel's table.
 * Returns how many there are: if that is more than there is room for, there are none.
 */
static u32 take_bucket(struct net *net, struct inet_hashinfo *table, u32 bucket,
		       struct twheel_found *found)
{
	spinlock_t *lock = inet_ehash_lockp(table, bucket);
	struct hlist_nulls_node *node;
	struct sock *sk;
	u32 nr = 0;

	spin_lock_bh(lock);
	sk_nulls_for_each(sk, node, &table->ehash[bucket].chain) {
		if (!net_eq(sock_net(sk), net) || !sk_fullsock(sk) || !twheel_is_for_rules(sk))
			continue;
		if (!twheel_watchable(inet_sk_state_load(sk)))
			continue;
		if (nr++ < found->room && refcount_inc_not_zero(&sk->sk_refcnt))
			found->socks[found->nr++] = sk;
	}
	spin_unlock_bh(lock);
	if (nr > found->room)
		twheel_found_put(found);
	return nr;
}

/**
 * twheel_find_next - find the connections in a bucket of the kernel's table
 * @net:	the namespace that they belong to
 * @bucket:	from which bucket on to look for some; set to that in which there are
 * @found:	gets them
 *
 * Context: process; may sleep.
 * Return: how many; 0 if there are none up to the end; or -ENOMEM.
 */
int twheel_find_next(struct net *net, u32 *bucket, struct twheel_found *found)
{
	struct inet_hashinfo *table = net->ipv4.tcp_death_row.hashinfo;
	u32 nr;
	int ret;

	ret = make_room(found, ROOM);
	for (; !ret && *bucket <= table->ehash_mask; ++*bucket) {
		if (!(*bucket % 256))
			cond_resched();
		if (hlist_nulls_empty(&table->ehash[*bucket].chain))
			continue;
		while ((nr = take_bucket(net, table, *bucket, found)) > found->room && !ret)
			ret = make_room(found, roundup_pow_of_two(nr));
		if (found->nr)
			return found->nr;
	}
	return ret;
}

/**
 * struct file_walk - a walk through the files of a process
 * @net:	the namespace whose sockets are looked for
 * @found:	those that were found
 * @left:	file descriptors to look at before there is a pause
 */
struct file_walk {
	const struct net	*net;
	struct twheel_found	*found;
	unsigned int		left;
};

/* Looks at a file descriptor. Returns where to go on if there is to be a pause, or 0. */
static int look_at_file(const void *arg, struct file *file, unsigned int fd)
{
	struct file_walk *walk = (void *)arg;
	struct twheel_found *found = walk->found;
	struct socket *sock = sock_from_file(file);
	struct sock *sk = sock ? sock->sk : NULL;

	if (sk && twheel_is_for_rules(sk) && net_eq(sock_net(sk), walk->net)) {
		sock_hold(sk);
		found->socks[found->nr++] = sk;
	}
	return --walk->left && found->nr < found->room ? 0 : fd + 1;
}

/* Finds sockets of a process. Returns where to go on, or 0 at the end. */
static int walk_files(struct task_struct *task, int fd, const struct net *net,
		      struct twheel_found *found)
{
	struct file_walk walk = {
		.net	= net,
		.found	= found,
		.left	= NR_FILES,
	};

	task_lock(task);
	fd = iterate_fd(task->files, fd, look_at_file, &walk);
	task_unlock(task);
	cond_resched();
	return fd;
}

static bool is_listening(const struct sock *sk)
{
	return inet_sk_state_load(sk) == TCP_LISTEN;
}

/* Sorts the sockets of a process that were found. Returns 0, or -ENOMEM if some were missed. */
static int sort_out(const struct twheel_found *found, struct pid *pid, unsigned long *ports)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < found->nr && !ret; i++) {
		if (is_listening(found->socks[i]))
			__set_bit(inet_sk(found->socks[i])->inet_num, ports);
		else
			ret = twheel_kick_consider(found->socks[i], pid,
						   inet_sk_state_load(found->socks[i]));
	}
	return ret;
}

/* Finds the connections of a rule's process, and the ports that it listens on. */
static int find_of_process(struct pid *pid, struct net *net, u32 id)
{
	struct task_struct *task = get_pid_task(pid, PIDTYPE_TGID);
	unsigned long *ports = bitmap_zalloc(TWHEEL_PORTS, GFP_KERNEL | __GFP_NOWARN);
	struct twheel_found found = { };
	int ret = ports ? make_room(&found, ROOM) : -ENOMEM, fd = 0;

	do {
		if (ret || !task)
			break;
		fd = walk_files(task, fd, net, &found);
		ret = sort_out(&found, pid, ports);
		twheel_found_put(&found);
	} while (fd > 0);
	if (!ret)
		twheel_rules_set_ports(net, id, ports);
	twheel_found_free(&found);
	bitmap_free(ports);
	if (task)
		put_task_struct(task);
	return ret;
}

/* The process of a rule with the next larger id than @id, with a reference; or NULL. */
static struct pid *next_process(struct net *net, u32 *id)
{
	struct twheel_idle_rule *rule;
	struct pid *pid = NULL;

	rcu_read_lock();
	while (!pid && (rule = twheel_rules_from(net, *id + 1))) {
		*id = rule->spec.id;
		pid = get_pid(rule->pid);
	}
	rcu_read_unlock();
	return pid;
}

/**
 * twheel_find_all - find connections that rules apply to, and that have no watch
 * @net:	their namespace, which does not go away
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM if some were missed.
 */
int twheel_find_all(struct net *net)
{
	struct twheel_found found = { };
	u32 bucket = 0, id = 0, i;
	struct pid *pid;
	int ret = 0, nr;

	while (!ret && (pid = next_process(net, &id))) {
		ret = find_of_process(pid, net, id);
		put_pid(pid);
	}
	while (!ret && (nr = twheel_find_next(net, &bucket, &found))) {
		if (nr < 0)
			ret = nr;
		for (i = 0; i < found.nr && !ret; i++)
			ret = twheel_kick_consider(found.socks[i], NULL,
						   inet_sk_state_load(found.socks[i]));
		twheel_found_put(&found);
		bucket++;
	}
	twheel_found_free(&found);
	return ret;
}

/**
 * twheel_find_later - look for connections that were missed
 * @net:	the namespace
 * @delay:	when, in jiffies
 *
 * Context: any but NMI. There is a rule, under rcu_read_lock(); or the caller keeps the module
 * and @net from going away.
 */
void twheel_find_later(struct net *net, unsigned long delay)
{
	queue_delayed_work(system_unbound_wq, &twheel_rules_of_net(net)->find, delay);
}

/**
 * twheel_find_everywhere - look for connections that were missed in any namespace
 *
 * Context: process.
 */
void twheel_find_everywhere(void)
{
	struct net *net;

	rcu_read_lock();
	/* One that is on its way out is not in the list, or waits for a grace period. */
	for_each_net_rcu(net)
		if (!list_empty(&twheel_rules_of_net(net)->list))
			mod_delayed_work(system_unbound_wq, &twheel_rules_of_net(net)->find, 0);
	rcu_read_unlock();
}

/**
 * twheel_find_work - the work of a namespace: look for connections
 * @work:	the work, in struct twheel_rules
 *
 * Context: process; may sleep.
 */
void twheel_find_work(struct work_struct *work)
{
	struct twheel_rules *ours = container_of(to_delayed_work(work), struct twheel_rules, find);

	if (twheel_find_all(ours->net))
		twheel_find_later(ours->net, HZ);
}
