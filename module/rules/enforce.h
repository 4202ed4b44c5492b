/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: decides what happens to a connection that a rule applies to
 */
#ifndef _TWHEEL_RULES_ENFORCE_H
#define _TWHEEL_RULES_ENFORCE_H

#include <linux/types.h>

#include "tcp/watch.h"

struct sock;
struct twheel_connection;
struct twheel_timer;

bool twheel_enforce_describe(const struct sock *sk, u32 id, struct twheel_connection *connection);
void twheel_enforce_expire(struct twheel_timer *timer);
bool twheel_enforce_evaluate(struct twheel_watch *watch, enum twheel_sk_status status);

#endif /* _TWHEEL_RULES_ENFORCE_H */
