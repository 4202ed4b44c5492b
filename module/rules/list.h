/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: lists the connections that a rule applies to
 */
#ifndef _TWHEEL_RULES_LIST_H
#define _TWHEEL_RULES_LIST_H

#include <linux/types.h>

struct net;
struct twheel_connections;

long twheel_connections_list(struct net *net, struct twheel_connections *list);

#endif /* _TWHEEL_RULES_LIST_H */
