/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: criteria of a rule that are given as lists
 */
#ifndef _TWHEEL_RULES_MATCH_LIST_H
#define _TWHEEL_RULES_MATCH_LIST_H

#include <linux/types.h>

struct sock;
struct twheel_match;

bool twheel_match_list_valid(const struct twheel_match *list, u32 nr);
bool twheel_match_list(const struct twheel_match *list, u32 nr, const struct sock *sk);

#endif /* _TWHEEL_RULES_MATCH_LIST_H */
