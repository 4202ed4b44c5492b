/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the tables of watches, by socket
 */
#ifndef _TWHEEL_TCP_WATCH_TABLE_H
#define _TWHEEL_TCP_WATCH_TABLE_H

struct sock;
struct twheel_watch;
struct twheel_watch_kind;

int twheel_watch_table_init(struct twheel_watch_kind *kind);
void twheel_watch_table_destroy(struct twheel_watch_kind *kind);
struct sock *twheel_watch_sockfd_lookup(int fd);
int twheel_watch_insert(struct twheel_watch_kind *kind, struct twheel_watch *watch,
			struct sock *sk);
void twheel_watch_replace(struct twheel_watch_kind *kind, struct twheel_watch *old,
			  struct twheel_watch *watch);
struct sock *twheel_watch_remove(struct twheel_watch_kind *kind, struct twheel_watch *watch);
struct twheel_watch *twheel_watch_find(struct twheel_watch_kind *kind, const struct sock *sk);

#endif /* _TWHEEL_TCP_WATCH_TABLE_H */
