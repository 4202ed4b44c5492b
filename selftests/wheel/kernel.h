/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What module/wheel.c uses of the kernel's headers, for userspace. Each header
 * in linux/ beside this one includes it.
 */
#ifndef _KERNEL_H
#define _KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;
typedef unsigned int u32;

#define __aligned(n)		__attribute__((aligned(n)))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#define prefetch(p)		__builtin_prefetch(p)
#define prefetchw(p)		__builtin_prefetch(p, 1)
#define __ffs(x)		((unsigned int)__builtin_ctzl(x))
#define __ffs64(x)		((unsigned int)__builtin_ctzll(x))
#define container_of(p, type, member) \
	((type *)((char *)(p) - offsetof(type, member)))

#define max(a, b) ({							\
	__typeof__(a) _a = (a);						\
	__typeof__(b) _b = (b);						\
	(void)(&_a == &_b);						\
	_a > _b ? _a : _b; })

/* What "cannot happen" ends the test. */
#define WARN_ON_ONCE(x) do {						\
	if (x) {							\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);	\
		abort();						\
	} } while (0)

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#define hlist_entry(p, type, member)	container_of(p, type, member)

static inline bool hlist_empty(const struct hlist_head *head)
{
	return !head->first;
}

static inline void hlist_add_head(struct hlist_node *node, struct hlist_head *head)
{
	node->next = head->first;
	if (node->next)
		node->next->pprev = &node->next;
	node->pprev = &head->first;
	head->first = node;
}

static inline void hlist_del(struct hlist_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
}

static inline void hlist_move_list(struct hlist_head *from, struct hlist_head *to)
{
	to->first = from->first;
	if (to->first)
		to->first->pprev = &to->first;
	from->first = NULL;
}

#endif /* _KERNEL_H */
