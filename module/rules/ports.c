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
 *
 * The bit is cleared before the socket's state changes: whoever can listen on the port after that
 * does not get connections that count as the process's. (A port that the kernel chose can be taken
 * a moment earlier: TCP gives it back first.) A scan makes up for what the process has accepted
 * before, and for others that listen there, on other addresses or with SO_REUSEPORT. Users who have
 * never owned a listener of the process cannot clear its bits, although they may listen on the same
 * port of another address as often as they like.
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

/* Notes who owns a listener of a process. */
static void note_owner(struct twheel_idle_rule *rule, kuid_t uid)
{
	/* Pairs with has_owned(), as the bits do: this comes before the bit. */
	const uid_t first = cmpxchg(&rule->owner.val, INVALID_UID.val, uid.val);

	if (first != INVALID_UID.val && first != uid.val)
		WRITE_ONCE(rule->several_owners, true);
}

/* Could a listener of that owner be one of the process's? */
static bool has_owned(const struct twheel_idle_rule *rule, kuid_t uid)
{
	/* Pairs with note_owner(). */
	return READ_ONCE(rule->several_owners) || uid_eq(READ_ONCE(rule->owner), uid);
}

/* Records the port of a listener in a rule. Returns false if it does not listen there. */
static bool record_port(struct twheel_idle_rule *rule, const struct sock *sk, u16 port)
{
	bool was_set;

	note_owner(rule, twheel_uid_of(sk));
	/* Pairs with test_bit(). The barrier that it is pairs with twheel_ports_listener_gone(). */
	was_set = test_and_set_bit(port, rule->ports);
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
 * Increments the namespace's @listen_seq: another scan that has begun may be past this socket, and
 * about to clear the bit; see scan_process() in scan.c.
 *
 * Context: process.
 * Return: false if it does not listen there. Then the process has to be scanned again, as another
 * of its sockets may listen on the same port.
 */
bool twheel_ports_record(const struct sock *sk, u16 port, const struct pid *pid)
{
	struct twheel_idle_rule *rule;
	bool recorded = true;

	atomic_inc_return(&twheel_rules_of_net(sock_net(sk))->listen_seq);
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
 * twheel_ports_listener_gone - record that a socket stops listening
 * @sk:		the socket
 *
 * Other sockets of the processes concerned may listen on the same port: so these are scanned a
 * little later.
 *
 * Context: any but NMI, under rcu_read_lock().
 */
void twheel_ports_listener_gone(const struct sock *sk)
{
	/* If the kernel chose the port, it has been taken from @inet_num. */
	const u16 port = ntohs(READ_ONCE(inet_sk(sk)->inet_sport));
	const kuid_t uid = twheel_uid_of(sk);
	struct net *net = sock_net(sk);
	struct twheel_idle_rule *rule;
	bool affected = false;

	/* A socket that is not for rules may outlive its namespace. */
	if (!twheel_is_for_rules(sk))
		return;
	/* See the top of this file. Pairs with record_port(). */
	smp_mb();
	list_for_each_entry_rcu(rule, &twheel_rules_of_net(net)->list, list) {
		if (!rule->pid || !test_bit(port, rule->ports) || !has_owned(rule, uid))
			continue;
		affected = true;
		clear_bit(port, rule->ports);
	}
	if (affected)
		twheel_scan_later(net, HZ / 10);
}

/* Clears the bits of a rule that are not in @ports. Out of line, for a test that counts this. */
static noinline void retain_ports(struct twheel_idle_rule *rule, const unsigned long *ports)
{
	unsigned long gone;
	size_t i;

	for (i = 0; i < BITS_TO_LONGS(TWHEEL_PORTS); i++) {
		gone = READ_ONCE(rule->ports[i]) & ~ports[i];
		/* As clear_bit() does it. Others set and clear bits meanwhile. */
		if (gone)
			atomic_long_andnot(gone, (atomic_long_t *)&rule->ports[i]);
	}
}

/**
 * twheel_ports_retain - forget ports that a process does not listen on
 * @net:	the namespace
 * @pid:	the process
 * @ports:	a bit for each port that it may listen on
 *
 * Ports that are recorded meanwhile may be forgotten, too; see scan_process() in scan.c.
 *
 * Context: process; may sleep.
 */
void twheel_ports_retain(struct net *net, const struct pid *pid, const unsigned long *ports)
{
	struct twheel_idle_rule *rule;
	u32 id = 0;

	/* One at a time: there may be very many ports. */
	do {
		rcu_read_lock();
		rule = twheel_rules_from(net, id + 1);
		if (rule) {
			id = rule->id;
			if (rule->pid == pid)
				retain_ports(rule, ports);
		}
		rcu_read_unlock();
		cond_resched();
	} while (rule);
}
