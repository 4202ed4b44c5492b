/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the kernel's headers that module/core/wheel.c uses, for userspace. Each header
 * in linux/, next to this one, includes it.
 */
#ifndef _KERNEL_H
#define _KERNEL_H

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef long long s64;

/* In userspace, threads stand in for CPUs. */
#define CONFIG_SMP		1

#define __aligned(n)		__attribute__((aligned(n)))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define noinline		__attribute__((noinline))
#define ____cacheline_aligned	__aligned(64)
#define prefetchw(p)		__builtin_prefetch(p, 1)
#define __ffs(x)		((unsigned int)__builtin_ctzl(x))
#define check_sub_overflow(a, b, d)	__builtin_sub_overflow(a, b, d)
#define __fls(x)		(63 - (unsigned int)__builtin_clzll(x))
#define __ffs64(x)		((unsigned int)__builtin_ctzll(x))
#define container_of(p, type, member) \
	((type *)((char *)(p) - offsetof(type, member)))

#define max(a, b) ({							\
	__typeof__(a) _a = (a);						\
	__typeof__(b) _b = (b);						\
	(void)(&_a == &_b);						\
	_a > _b ? _a : _b; })

#define min(a, b) ({							\
	__typeof__(a) _a = (a);						\
	__typeof__(b) _b = (b);						\
	(void)(&_a == &_b);						\
	_a < _b ? _a : _b; })

#define swap(a, b) do {							\
	__typeof__(a) _a = (a);						\
	(a) = (b);							\
	(b) = _a;							\
	} while (0)

#define static_assert(x)	_Static_assert(x, #x)

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

/* For memory that is freed while others may still be reading it. */
struct rcu_head {
	struct rcu_head *next;
	void (*func)(struct rcu_head *head);
};

/* May be changed by another thread, as in the kernel. */
typedef struct {
	long counter;
} atomic_long_t;

/* A point where threads can race; in stress-wheel.c, one waits here for another. */
#ifdef STRESS
void race_point(void);
void rcu_read_lock(void);
void rcu_read_unlock(void);
#else
static inline void race_point(void)
{
}

static inline void rcu_read_lock(void)
{
}

static inline void rcu_read_unlock(void)
{
}
#endif

/*
 * Counts the steps of a thread, where there may be many, and how often it has taken a lock:
 * see test_steps() and test_stop().
 */
#ifdef COUNT_STEPS
extern __thread unsigned long steps, locks;
#define twheel_step()		((void)steps++)
#define count_lock()		((void)locks++)
#else
#define count_lock()		do { } while (0)
#endif

/* Marked accesses are atomic but unordered, as in the kernel. */
#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), v, __ATOMIC_RELAXED)

/* ThreadSanitizer does not support fences; an ordered read-modify-write does instead. */
#ifdef __SANITIZE_THREAD__
#define smp_mb() ({							\
	int _fence = 0;							\
	(void)__atomic_fetch_add(&_fence, 1, __ATOMIC_SEQ_CST); })
#else
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* What was written before the release is seen after the acquire. */
#define smp_load_acquire(p) ({						\
	__typeof__(*(p)) _value = __atomic_load_n(p, __ATOMIC_ACQUIRE);	\
	race_point();							\
	_value; })

/* See above. */
#define smp_store_release(p, v) do {					\
	race_point();							\
	__atomic_store_n(p, v, __ATOMIC_RELEASE);			\
	} while (0)

#define xchg(p, v) ({							\
	__typeof__(*(p)) _old;						\
	_old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);		\
	race_point();							\
	_old; })

#define cmpxchg(p, old, new) ({						\
	__typeof__(*(p)) _old = (old);					\
	race_point();							\
	__atomic_compare_exchange_n(p, &_old, new, false,		\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	race_point();							\
	_old; })

static inline long atomic_long_read(const atomic_long_t *v)
{
	return __atomic_load_n(&v->counter, __ATOMIC_RELAXED);
}

static inline void atomic_long_inc(atomic_long_t *v)
{
	__atomic_fetch_add(&v->counter, 1, __ATOMIC_RELAXED);
}

static inline void atomic_long_dec(atomic_long_t *v)
{
	__atomic_fetch_sub(&v->counter, 1, __ATOMIC_RELAXED);
}

/* There are no interrupts to disable, but there may be fewer processors than threads. */
typedef struct {
	int locked;
} raw_spinlock_t;

static inline void raw_spin_lock_init(raw_spinlock_t *lock)
{
	lock->locked = 0;
}

#define raw_spin_lock_irqsave(lock, flags) do {				\
	(flags) = 0;							\
	count_lock();							\
	while (__atomic_exchange_n(&(lock)->locked, 1, __ATOMIC_ACQUIRE)) \
		sched_yield();						\
	} while (0)

#define raw_spin_unlock_irqrestore(lock, flags) do {			\
	(void)(flags);							\
	__atomic_store_n(&(lock)->locked, 0, __ATOMIC_RELEASE);		\
	} while (0)

#endif /* _KERNEL_H */
