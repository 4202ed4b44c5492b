/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the connections of a network namespace, in the kernel's table
 */
#ifndef _TWHEEL_RULES_SOCKS_H
#define _TWHEEL_RULES_SOCKS_H

#include <linux/types.h>

struct net;
struct sock;

/**
 * struct twheel_found - sockets that were found
 * @socks:	the sockets, with references
 * @nr:		how many these are
 * @room:	how many fit
 */
struct twheel_found {
	struct sock	**socks;
	u32		nr;
	u32		room;
};

void twheel_found_put(struct twheel_found *found);
void twheel_found_free(struct twheel_found *found);
int twheel_found_make_room(struct twheel_found *found, u32 room);
int twheel_found_pause(const struct net *net);
int twheel_find_next(struct net *net, u32 *bucket, u32 most, struct twheel_found *found);

#endif /* _TWHEEL_RULES_SOCKS_H */
