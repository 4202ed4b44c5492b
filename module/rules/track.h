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

void twheel_track_init(void);
int twheel_track_get(void);
void twheel_track_put(void);
int twheel_track(struct sock *sk, const struct pid *pid, int state);
void twheel_track_connect(struct sock *sk, const struct pid *pid);
int twheel_track_release(const struct twheel_idle_rule *rule);
void twheel_track_release_all(void);
void twheel_track_recheck(struct sock *sk);
void twheel_track_recheck_all(struct net *net, const struct twheel_idle_rule *rule);

#endif /* _TWHEEL_RULES_TRACK_H */
