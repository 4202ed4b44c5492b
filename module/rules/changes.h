/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: changes of sockets that rules are for, handed to the worker of their namespace
 */
#ifndef _TWHEEL_RULES_CHANGES_H
#define _TWHEEL_RULES_CHANGES_H

struct twheel_changes;
struct twheel_rules;
struct twheel_watch_change;

struct twheel_changes *twheel_changes_create(struct twheel_rules *net_rules);
void twheel_changes_free(struct twheel_changes *changes);
void twheel_changes_add(const struct twheel_watch_change *change);

#endif /* _TWHEEL_RULES_CHANGES_H */
