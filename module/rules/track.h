/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the watches of connections that rules apply to: where they begin
 */
#ifndef _TWHEEL_RULES_TRACK_H
#define _TWHEEL_RULES_TRACK_H

#include <linux/types.h>

struct net;
struct pid;
struct sock;
struct twheel_idle_rule;
struct twheel_kick;

void twheel_kick_init(void);
int twheel_kick_get(void);
void twheel_kick_put(void);
int twheel_kick_consider(struct sock *sk, const struct pid *pid, int state);
int twheel_kick_release(const struct twheel_idle_rule *rule);
void twheel_kick_ask_back(void);
void twheel_kick_look_again(struct sock *sk);
void twheel_kick_reconsider(struct net *net, const struct twheel_idle_rule *rule);

#endif /* _TWHEEL_RULES_TRACK_H */
