/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the ports that processes with rules listen on
 */
#ifndef _TWHEEL_RULES_PORTS_H
#define _TWHEEL_RULES_PORTS_H

#include <linux/types.h>

struct net;
struct pid;
struct sock;

bool twheel_is_listening(const struct sock *sk);
bool twheel_ports_record(const struct sock *sk, u16 port, const struct pid *pid);
void twheel_ports_listener_added(const struct sock *sk, const struct pid *pid);
void twheel_ports_listener_gone(const struct sock *sk);
void twheel_ports_retain(struct net *net, const struct pid *pid, const unsigned long *ports);

#endif /* _TWHEEL_RULES_PORTS_H */
