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
 * struct twheel_socks - sockets that were found
 * @socks:	the sockets, with references
 * @nr:		number of sockets
 * @capacity:	how many fit
 */
struct twheel_socks {
	struct sock	**socks;
	u32		nr;
	u32		capacity;
};

void twheel_socks_put(struct twheel_socks *found);
void twheel_socks_free(struct twheel_socks *found);
int twheel_socks_grow(struct twheel_socks *found, u32 capacity);
int twheel_socks_pause(const struct net *net);
int twheel_socks_next(struct net *net, u32 *bucket, u32 max, struct twheel_socks *found);

#endif /* _TWHEEL_RULES_SOCKS_H */
