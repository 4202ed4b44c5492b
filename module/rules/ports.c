// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the ports that processes with rules listen on
 *
 * They are recorded when a process starts listening, and whenever its files are scanned (scan.c),
 * until a socket stops listening there.
 */
#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/jiffies.h>
#include <linux/rculist.h>
#include <net/inet_sock.h>

#include "ports.h"
#include "rules.h"

/**
 * twheel_ports_listener_added - record that a socket starts listening
 * @sk:		the socket
 * @pid:	the process that has it, or NULL
 *
 * It may fail to, and another process may have listened on this port before: so the processes
 * concerned are scanned again a little later.
 *
 * Context: process.
 */
void twheel_ports_listener_added(const struct sock *sk, const struct pid *pid)
{
	/* If the socket had no port, this is written as it starts listening. */
	const u16 port = READ_ONCE(inet_sk(sk)->inet_num);
	struct twheel_idle_rule *rule;
	bool affected = false;

	/* Ordered as in twheel_ports_listener_gone(). */
	atomic_inc_return(&twheel_rules_of_net(sock_net(sk))->listen_seq);
	rcu_read_lock();
	list_for_each_entry_rcu(rule, &twheel_rules_of_net(sock_net(sk))->list, list) {
		if (!rule->pid)
			continue;
		if (rule->pid == pid)
			set_bit(port, rule->ports);
		affected |= test_bit(port, rule->ports);
	}
	if (affected)
		twheel_scan_later(sock_net(sk), HZ / 10);
	rcu_read_unlock();
}

/**
 * twheel_ports_listener_gone - record that a socket no longer listens
 * @net:	its namespace
 * @port:	where it did
 * @pid:	the process that ended that, or NULL
 *
 * Connections from this port may be anybody's now. But on other addresses, other processes may have
 * listened there: only the process that has stopped by itself is taken off the port at once. The
 * files of the others are scanned a little later, and so are its own, in case it has other sockets
 * that listen there.
 *
 * Context: process.
 */
void twheel_ports_listener_gone(struct net *net, u16 port, const struct pid *pid)
{
	struct twheel_idle_rule *rule;
	bool affected = false;

	/* Ordered before the bits are read; see scan_process(). */
	atomic_inc_return(&twheel_rules_of_net(net)->listen_seq);
	rcu_read_lock();
	list_for_each_entry_rcu(rule, &twheel_rules_of_net(net)->list, list) {
		if (!rule->pid || !test_bit(port, rule->ports))
			continue;
		affected = true;
		if (rule->pid == pid)
			clear_bit(port, rule->ports);
	}
	if (affected)
		twheel_scan_later(net, HZ / 10);
	rcu_read_unlock();
}

/**
 * twheel_ports_set - set the ports that a process listens on
 * @net:	the namespace
 * @pid:	the process; the ports are set in all rules for it
 * @ports:	a bit for each port
 * @complete:	it listens on no others
 *
 * Context: process.
 */
void twheel_ports_set(const struct net *net, const struct pid *pid,
			    const unsigned long *ports, bool complete)
{
	struct twheel_idle_rule *rule;
	size_t i;

	rcu_read_lock();
	list_for_each_entry_rcu(rule, &twheel_rules_of_net(net)->list, list) {
		if (rule->pid != pid)
			continue;
		/* Pairs with test_bit(). Concurrent changes are made up for, see scan.c. */
		for (i = 0; i < BITS_TO_LONGS(TWHEEL_PORTS); i++)
			WRITE_ONCE(rule->ports[i],
				   ports[i] | (complete ? 0 : READ_ONCE(rule->ports[i])));
	}
	rcu_read_unlock();
}
