/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: which rule applies to a connection
 */
#ifndef _TWHEEL_RULES_MATCH_H
#define _TWHEEL_RULES_MATCH_H

#include <linux/types.h>

struct net;
struct pid;
struct sock;
struct twheel_idle_rule;

struct twheel_idle_rule *twheel_rules_match(const struct sock *sk, const struct pid *initiator,
					    const struct twheel_idle_rule *cur);
struct twheel_idle_rule *twheel_rules_match_pid(const struct net *net, const struct pid *pid);

#endif /* _TWHEEL_RULES_MATCH_H */
