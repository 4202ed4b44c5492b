// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the ports that processes with rules listen on
 *
 * A port is recorded when a process starts listening, and when a scan finds a listener among its
 * files (scan.c); until the process stops listening there, or a scan finds that it does not.
 *
 * Neither what is reported nor the state of a socket tells whether it listens: listen() is reported
 * before it can fail, and the end of listening before the state changes. It listens if the kernel
 * has it in the table of listeners: listen() puts it there last, and it is taken out before the end
 * is reported. So whoever records a port looks there, and again afterwards:
 *
 *	record				end of listening
 *	set the bit			take the socket out of the table
 *	barrier				barrier
 *	is it still in the table?	clear the bit
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/jiffies.h>
#include <linux/rculist.h>
#include <net/inet_sock.h>

#include "ports.h"
#include "rules.h"
#include "tcp/watch.h"

/**
 * twheel_is_listening - check whether a socket listens
 * @sk:		the socket
 *
 * A listener of MPTCP is not in the table itself: it must not be locked.
 *
 * Context: any.
 * Return: true if it does; false if not, or if that is not certain.
 */
bool twheel_is_listening(const struct sock *sk)
{
	if (sk->sk_protocol != IPPROTO_MPTCP)
		return twheel_sk_listens(sk);
	return !twheel_sk_may_change(sk) && inet_sk_state_load(sk) == TCP_LISTEN;
}

/* Records the port of a listener in a rule. Returns false if it does not listen there. */
static bool record_port(struct twheel_idle_rule *rule, const struct sock *sk, u16 port)
{
	/* Pairs with test_bit(). The barrier that it is pairs with twheel_ports_listener_gone(). */
	const bool was_set = test_and_set_bit(port, rule->ports);

	/* A port that the kernel chooses is there before the socket is in the table. */
	if (twheel_is_listening(sk) && READ_ONCE(inet_sk(sk)->inet_num) == port)
		return true;
	if (!was_set)
		clear_bit(port, rule->ports);
	return false;
}

/**
 * twheel_ports_record - record the port of a listener
 * @sk:		the socket
 * @port:	its port
 * @pid:	a process that has it
 *
 * Context: process.
 * Return: false if it does not listen there. Then the process has to be scanned again, as another
 * of its sockets may listen on the same port.
 */
bool twheel_ports_record(const struct sock *sk, u16 port, const struct pid *pid)
{
	struct twheel_idle_rule *rule;
	bool recorded = true;

	rcu_read_lock();
	list_for_each_entry_rcu(rule, &twheel_rules_of_net(sock_net(sk))->list, list)
		if (rule->pid && rule->pid == pid)
			recorded &= record_port(rule, sk, port);
	rcu_read_unlock();
	return recorded;
}

/**
 * twheel_ports_listener_added - record that a socket has started to listen
 * @sk:		the socket. It may have failed to, or be about to: in that case, a scan finds it
 * @pid:	the process that has it, or NULL
 *
 * Connections to this port may have been found before this was recorded, and another process may
 * have listened there before: so the processes concerned, and all connections, are scanned a little
 * later.
 *
 * Context: process.
 */
void twheel_ports_listener_added(const struct sock *sk, const struct pid *pid)
{
	struct net *net = sock_net(sk);
	struct twheel_idle_rule *rule;
	bool affected = false;
	u16 port;

	/* Ordered before the bits are set; see scan_process() in scan.c. */
	atomic_inc_return(&twheel_rules_of_net(net)->listen_seq);
	port = READ_ONCE(inet_sk(sk)->inet_num);
	if (pid && twheel_is_listening(sk))
		twheel_ports_record(sk, port, pid);
	rcu_read_lock();
	list_for_each_entry_rcu(rule, &twheel_rules_of_net(net)->list, list)
		affected |= rule->pid && (rule->pid == pid || test_bit(port, rule->ports));
	if (affected)
		twheel_scan_later(net, HZ / 10);
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

	/* See the top of this file. Pairs with record_port(). */
	smp_mb();
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

/* Clears the bits in a word of a rule's that are not in @found. */
static void retain_bits(unsigned long *word, unsigned long found)
{
	/* Pairs with the atomic changes of single bits, which may be concurrent. */
	const unsigned long gone = READ_ONCE(*word) & ~found;
	unsigned int bit;

	for_each_set_bit(bit, &gone, BITS_PER_LONG)
		clear_bit(bit, word);
}

/**
 * twheel_ports_retain - forget ports that a process does not listen on
 * @net:	the namespace
 * @pid:	the process
 * @ports:	a bit for each port that it may listen on
 *
 * Ports that are recorded meanwhile may be forgotten, too; see scan_process() in scan.c.
 *
 * Context: process.
 */
void twheel_ports_retain(const struct net *net, const struct pid *pid, const unsigned long *ports)
{
	struct twheel_idle_rule *rule;
	size_t i;

	rcu_read_lock();
	list_for_each_entry_rcu(rule, &twheel_rules_of_net(net)->list, list)
		for (i = 0; rule->pid == pid && i < BITS_TO_LONGS(TWHEEL_PORTS); i++)
			retain_bits(&rule->ports[i], ports[i]);
	rcu_read_unlock();
}
