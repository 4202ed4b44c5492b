/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: adding, changing and removing rules, and setting up for rules in all namespaces
 */
#ifndef _TWHEEL_RULES_ADMIN_H
#define _TWHEEL_RULES_ADMIN_H

#include <linux/types.h>

struct net;
struct twheel_match;
struct twheel_rule;

#ifdef CONFIG_INET
int twheel_rules_init(void);
void twheel_rules_exit(void);
int twheel_rules_add(struct net *net, struct twheel_rule *spec,
		     const struct twheel_match *matches);
int twheel_rules_set(struct net *net, const struct twheel_rule *spec);
int twheel_rules_remove(struct net *net, u32 id);
#else

static inline int twheel_rules_init(void)
{
	return 0;
}

static inline void twheel_rules_exit(void)
{
}
#endif /* CONFIG_INET */

#endif /* _TWHEEL_RULES_ADMIN_H */
