/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel_bench: definitions shared by the schemes and the code that drives them
 *
 * A scheme is a table of operations, in a file of its own. An operation works on
 * a batch of objects, so that the timed loop is compiled together with the one
 * call that it measures: an indirect call per timer would cost as much as some of
 * the schemes.
 *
 * There is one run at a time, and it stays on one CPU until it ends. So callbacks
 * need no lock against each other; they are ordered against the run by the
 * completion, or because softirqs run on the same CPU.
 */
#ifndef _TWHEEL_BENCH_H
#define _TWHEEL_BENCH_H

#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <uapi/linux/twheel_bench.h>

#include "heap.h"
#include "nodes.h"
#include "twheel.h"

/**
 * struct bench_obj - an object with an embedded timer, as a user of timers would have
 * @wheel:	the timer of the scheme "wheel"
 * @list:	the timer of the scheme "timer_list"
 * @heap:	the timer of the scheme "heap"
 * @lazy:	the timer of the scheme "heap_lazy"
 * @rbtree:	the timer of the scheme "rbtree"
 * @hashed:	the timer of the schemes "netty", "gozero" and "php"
 * @keyed:	the timer of the schemes "keyed" and "idle_ring"
 * @kafka:	the timer of the scheme "kafka"
 * @scan:	the timer of the scheme "scan"
 * @word:	what the scheme "limit" changes
 * @deadline:	when the timer is due, in nanoseconds; self-check only
 * @state:	the state of the timer in the model of the self-check
 * @fired:	number of callbacks so far; updating it is the callback's work on the object
 *
 * All schemes use the same size and the same location in memory.
 */
struct bench_obj {
	union {
		struct twheel_timer	wheel;
		struct timer_list	list;
		struct bench_heap_node	heap;
		struct bench_lazy_node	lazy;
		struct bench_rbtree_node rbtree;
		struct bench_hashed_node hashed;
		struct bench_keyed_node	keyed;
		struct bench_kafka_node	kafka;
		struct bench_scan_node	scan;
		u64			word;
	};
	u64				deadline;
	u32				state;
	u32				fired;
} __aligned(64);

#ifndef CONFIG_LOCKDEP
static_assert(sizeof(struct bench_obj) == 64);
#endif

/**
 * struct bench_pass - the objects that an operation visits
 * @objs:	the objects
 * @order:	the object at position k is number @order[k]
 * @when:	its deadline, by position, in the scheme's own unit
 */
struct bench_pass {
	struct bench_obj	*objs;
	u32			*order;
	u64			*when;
};

struct bench_work;

typedef unsigned long bench_batch(const struct bench_pass *pass,
				  unsigned long from, unsigned long to);

/**
 * struct bench_scheme - a timer implementation
 * @name:	name in tables; shorter than %TWHEEL_BENCH_NAME_SIZE
 * @object_size: bytes that a timer takes in its object
 * @workloads:	bit mask of supported workloads
 * @align:	returns a time not before @ns at which the scheme would expire a timer,
 *		however long before that it was armed. When expiry is measured, all
 *		deadlines are set to that one time, because rounding would make some
 *		of them a whole step of the scheme later, which is idle time. NULL if
 *		the scheme does not round
 * @slack:	returns by how many nanoseconds a timer that is armed for no more than
 *		@timeout may be late because the scheme rounds, at the speed of the run;
 *		NULL if it does not
 * @unordered:	timers that have come due since the scheme last looked expire in any order
 * @setup:	prepares what the timers of a run need; may be NULL. Returns 0 or
 *		-errno
 * @teardown:	undoes that, once no timer is pending any more; may be NULL
 * @convert:	converts @when of a pass from nanoseconds of CLOCK_MONOTONIC to the
 *		scheme's own unit, never rounding down; NULL if it is the same.
 *		Returns 0
 * @init:	initialises timers. Returns 0
 * @add:	arms timers that are not armed
 * @rearm:	arms timers, armed or not; most schemes do not care, and have @add do both
 * @cancel:	disarms timers
 * @pending:	returns how many timers are armed
 * @stop:	like @cancel, and waits for callbacks
 * @rmw:	changes a word of each object, for a scheme without timers: then @init
 *		and @add to @stop are NULL
 *
 * The batch operations return how many timers they found armed.
 */
struct bench_scheme {
	const char	*name;
	size_t		object_size;
	u32		workloads;
	u64		(*align)(u64 ns);
	u64		(*slack)(u64 timeout);
	bool		unordered;
	int		(*setup)(const struct bench_work *work);
	void		(*teardown)(void);
	bench_batch	*convert;
	bench_batch	*init;
	bench_batch	*add;
	bench_batch	*rearm;
	bench_batch	*cancel;
	bench_batch	*pending;
	bench_batch	*stop;
	bench_batch	*rmw;
};

#define BENCH_TIMER_WORKLOADS						\
	(BIT(TWHEEL_BENCH_ADD) | BIT(TWHEEL_BENCH_REARM_LATER) |	\
	 BIT(TWHEEL_BENCH_REARM_EARLIER) | BIT(TWHEEL_BENCH_CANCEL) |	\
	 BIT(TWHEEL_BENCH_EXPIRE))

extern const struct bench_scheme bench_scheme_wheel;
extern const struct bench_scheme bench_scheme_timer_list;
extern const struct bench_scheme bench_scheme_hrtimer;
extern const struct bench_scheme bench_scheme_heap;
extern const struct bench_scheme bench_scheme_heap_lazy;
extern const struct bench_scheme bench_scheme_rbtree;
extern const struct bench_scheme bench_scheme_netty;
extern const struct bench_scheme bench_scheme_gozero;
extern const struct bench_scheme bench_scheme_php;
extern const struct bench_scheme bench_scheme_keyed;
extern const struct bench_scheme bench_scheme_kafka;
extern const struct bench_scheme bench_scheme_idle_ring;
extern const struct bench_scheme bench_scheme_scan;
extern const struct bench_scheme bench_scheme_limit;

/**
 * bench_each - the loop of every batch operation
 * @pass:	the objects to visit
 * @from:	first position
 * @to:		position after the last one
 * @op:		operation on each object; an inline function
 *
 * Return: the sum of the return values of @op.
 */
static __always_inline unsigned long
bench_each(const struct bench_pass *pass, unsigned long from, unsigned long to,
	   int (*op)(struct bench_obj *obj, u64 when))
{
	struct bench_obj *objs = pass->objs;
	const u32 *order = pass->order;
	const u64 *when = pass->when;
	unsigned long found = 0, k;

	for (k = from; k < to; k++) {
		found += op(&objs[order[k]], when[k]);
		/* Keeps the compiler from moving work out of the loop, or dropping it. */
		barrier();
	}
	return found;
}

/**
 * DEFINE_BENCH_BATCH - define a batch operation
 * @name:	name of the operation. The batch operation is name_batch(); the inline
 *		function name_one() is the operation on each object, as for bench_each()
 */
#define DEFINE_BENCH_BATCH(name)					\
static unsigned long name##_batch(const struct bench_pass *pass,	\
				  unsigned long from, unsigned long to)	\
{									\
	return bench_each(pass, from, to, name##_one);			\
}

/**
 * DEFINE_BENCH_SCHEME - define a scheme that has these batch operations
 * @_name:	name of the scheme
 * @...:	further members of struct bench_scheme, as initialisers; @rearm among them
 */
#define DEFINE_BENCH_SCHEME(_name, ...)					\
const struct bench_scheme bench_scheme_##_name = {			\
	.name		= #_name,					\
	.workloads	= BENCH_TIMER_WORKLOADS,			\
	.init		= init_batch,					\
	.add		= add_batch,					\
	.cancel		= cancel_batch,					\
	.pending	= pending_batch,				\
	.stop		= stop_batch,					\
	__VA_ARGS__							\
}

/**
 * struct bench_fire - what the callbacks count
 * @countdown:	number of callbacks up to the next one that does more than count: the
 *		first, the last, or every one
 * @expected:	number of callbacks to wait for
 * @first:	time of the first callback, in nanoseconds
 * @last:	time of callback number @expected
 * @last_obj:	object of that callback
 * @each:	called by every callback, instead of recording these times; or NULL
 * @done:	completed by callback number @expected
 */
struct bench_fire {
	unsigned long		countdown;
	unsigned long		expected;
	u64			first;
	u64			last;
	struct bench_obj	*last_obj;
	void			(*each)(struct bench_obj *obj);
	struct completion	done;
};

extern struct bench_fire bench_fire;

void bench_fire_start(unsigned long expected, void (*each)(struct bench_obj *obj));
unsigned long bench_fire_count(void);
void bench_fired_special(struct bench_obj *obj);

/**
 * bench_fired - the work of every scheme's callback
 * @obj:	the object whose timer expired
 *
 * It is the same for all schemes, and so little that it does not mask their costs:
 * it touches the object, and counts.
 */
static __always_inline void bench_fired(struct bench_obj *obj)
{
	obj->fired++;
	if (unlikely(!--bench_fire.countdown))
		bench_fired_special(obj);
}

/**
 * struct bench_work - the objects of a run and its arrays
 * @nr:		number of objects
 * @random:	whether they are visited in random order
 * @speed:	how many times as fast as usual the schemes tick that have ticks of their own
 * @rnd:	source of all random numbers
 * @pass:	arguments of the next operation
 * @deadline:	deadline of each object, in nanoseconds
 * @earliest:	the earliest of these
 * @wake_at:	for a burst: when the run wakes up, somewhat before @busy_from
 * @busy_from:	for a burst: no scheme has anything to do before this time
 * @free_before: bytes that the page allocator had free before the scheme allocated any
 */
struct bench_work {
	unsigned long		nr;
	bool			random;
	u32			speed;
	struct rnd_state	rnd;
	struct bench_pass	pass;
	u64			*deadline;
	u64			earliest;
	u64			wake_at;
	u64			busy_from;
	u64			free_before;
};

void *bench_alloc(size_t nr, size_t size);
int bench_work_init(struct bench_work *work, unsigned long nr, bool random, u64 seed);
void bench_work_destroy(struct bench_work *work);
int bench_work_shuffle(struct bench_work *work);
int bench_work_timeouts(struct bench_work *work);
int bench_work_later(struct bench_work *work);
int bench_work_earlier(struct bench_work *work);
u64 bench_burst_start(u64 lead);
int bench_work_burst(struct bench_work *work, u64 start, u64 (*align)(u64 ns));

void bench_seed(struct rnd_state *rnd, u64 seed);
u64 bench_clock_ps(void);
int bench_batches(const struct bench_work *work, bench_batch *op, unsigned long *found);
void bench_stop(const struct bench_scheme *scheme, const struct bench_work *work);
int bench_begin(const struct bench_scheme *scheme, struct bench_work *work,
		unsigned long nr, bool random, u64 seed, u32 speed);
void bench_end(const struct bench_scheme *scheme, struct bench_work *work);
u64 bench_free_bytes(void);

/**
 * struct bench_cpu_use - CPU time of timers on one CPU, since the probes were registered
 * @interrupt_ns: CPU time of timer interrupts, in nanoseconds
 * @softirq_ns:	CPU time of the softirqs of hrtimers and of timer_list
 * @interrupts:	number of these interrupts
 * @softirqs:	number of these softirqs
 * @longest_interrupt_ns: the longest of these interrupts since the last reset
 * @longest_softirq_ns: the longest of these softirqs since the last reset
 */
struct bench_cpu_use {
	u64			interrupt_ns;
	u64			softirq_ns;
	u64			interrupts;
	u64			softirqs;
	u64			longest_interrupt_ns;
	u64			longest_softirq_ns;
};

int bench_run(const struct bench_scheme *scheme, struct twheel_bench_run *req);
int bench_check_run(const struct bench_scheme *scheme, struct twheel_bench_check *req);
int bench_lateness(const struct bench_scheme *scheme, struct twheel_bench_lateness *req);
int bench_memory(const struct bench_scheme *scheme, struct twheel_bench_memory *req);
int bench_replay(const struct bench_scheme *scheme, struct twheel_bench_replay *req);
int bench_sleep_until(u64 when);
u64 bench_mix_bits(u64 x);
int bench_cpu_read(struct twheel_bench_cpu *answer);
void bench_cpu_use(struct bench_cpu_use *use);
u64 bench_cpu_taken(void);
void bench_cpu_reset_longest(void);
void bench_cpu_exit(void);

/* Number of positions between two reads of the clock and checks for signals and rescheduling. */
#define BENCH_CHUNK	8192

/**
 * bench_pause - let others run, between two chunks of work
 *
 * Return: 0, or -EINTR if a fatal signal is pending.
 */
static inline int bench_pause(void)
{
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/**
 * bench_pause_at - let others run, in a loop with short iterations
 * @k:		number of iterations so far
 *
 * Return: 0, or -EINTR if a fatal signal is pending.
 */
static inline int bench_pause_at(unsigned long k)
{
	return k % BENCH_CHUNK ? 0 : bench_pause();
}

#endif /* _TWHEEL_BENCH_H */
