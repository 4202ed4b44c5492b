/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel_bench: what the schemes and their drivers share
 *
 * A scheme is a table of operations, in a file of its own. An operation works on
 * a batch of objects, so that the loop that is timed is compiled together with
 * the one call that it is about: a call through a pointer for every timer would
 * cost as much as some of the schemes.
 *
 * One run at a time, on one CPU, which the run stays on to its end. So callbacks
 * need no lock against each other; against the run they are ordered by the
 * completion, or by softirqs running on the same CPU.
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
#include "twheel.h"

/**
 * struct bench_obj - what a user of timers would have: an object with one in it
 * @wheel:	the timer of the scheme "wheel"
 * @list:	the timer of the scheme "timer_list"
 * @heap:	the timer of the scheme "heap"
 * @word:	what the scheme "limit" changes
 * @deadline:	when the timer is due, in nanoseconds; self check only
 * @state:	what the model of the self check says of the timer
 * @fired:	callbacks so far; the work that a callback does on its object
 *
 * The same size and place in memory for all schemes.
 */
struct bench_obj {
	union {
		struct twheel_timer	wheel;
		struct timer_list	list;
		struct bench_heap_node	heap;
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
 * struct bench_pass - what an operation works through
 * @objs:	the objects
 * @order:	at position k comes object @order[k]
 * @when:	with this deadline, in the scheme's own unit
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
 * struct bench_scheme - a way to keep timers
 * @name:	as it is called in tables; shorter than %TWHEEL_BENCH_NAME_SIZE
 * @object_size: bytes that a timer takes in its object
 * @workloads:	bits of the workloads that it knows
 * @align:	gives a time not before @ns at which it would expire a timer, however
 *		long before that was armed. The deadlines of timers that are measured
 *		expiring are made that one time, because rounding would put some of
 *		them a whole step of the scheme later, which is idle time. NULL if it
 *		does not round
 * @setup:	gets what it needs for the timers of a run; may be NULL. Returns 0 or
 *		-errno
 * @teardown:	gives it back, when no timer is pending any more; may be NULL
 * @convert:	turns @when of a pass from nanoseconds of CLOCK_MONOTONIC into its
 *		own unit, never to earlier; NULL if it is the same. Returns 0
 * @init:	initialises timers. Returns 0
 * @add:	arms timers that are not armed
 * @rearm:	arms timers, armed or not
 * @cancel:	disarms timers
 * @pending:	returns how many timers are armed
 * @stop:	as @cancel, and waits for callbacks
 * @rmw:	changes a word of each object, if it has no timers: then @init and
 *		@add to @stop are NULL
 *
 * The batch operations return how many timers they found armed.
 */
struct bench_scheme {
	const char	*name;
	size_t		object_size;
	u32		workloads;
	u64		(*align)(u64 ns);
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
extern const struct bench_scheme bench_scheme_limit;

/**
 * bench_each - the loop of every batch operation
 * @pass:	what to work through
 * @from:	first position
 * @to:		behind the last position
 * @op:		what to do with each object; an inline function
 *
 * Return: the sum of what @op returned.
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
		/* Nothing may be put off until after the loop, or left out. */
		barrier();
	}
	return found;
}

/**
 * DEFINE_BENCH_BATCH - define a batch operation
 * @name:	its name. What it does with each object is the inline function
 *		@name_one, as for bench_each()
 */
#define DEFINE_BENCH_BATCH(name)					\
static unsigned long name##_batch(const struct bench_pass *pass,	\
				  unsigned long from, unsigned long to)	\
{									\
	return bench_each(pass, from, to, name##_one);			\
}

/**
 * DEFINE_BENCH_TIMERS - define the scheme and the batch operations of a kind of timers
 * @_name:	name of the scheme
 * @...:	what else there is to say of it, as members of struct bench_scheme
 *
 * What the operations @init to @stop do with each object are the inline functions
 * init_one() to stop_one(), as for bench_each().
 */
#define DEFINE_BENCH_TIMERS(_name, ...)					\
DEFINE_BENCH_BATCH(init)						\
DEFINE_BENCH_BATCH(add)							\
DEFINE_BENCH_BATCH(rearm)						\
DEFINE_BENCH_BATCH(cancel)						\
DEFINE_BENCH_BATCH(pending)						\
DEFINE_BENCH_BATCH(stop)						\
									\
const struct bench_scheme bench_scheme_##_name = {			\
	.name		= #_name,					\
	.workloads	= BENCH_TIMER_WORKLOADS,			\
	.init		= init_batch,					\
	.add		= add_batch,					\
	.rearm		= rearm_batch,					\
	.cancel		= cancel_batch,					\
	.pending	= pending_batch,				\
	.stop		= stop_batch,					\
	__VA_ARGS__							\
}

/**
 * struct bench_fire - what the callbacks count
 * @countdown:	callbacks until the next one that does more than count: the first,
 *		the last, or each
 * @expected:	callbacks that are waited for
 * @first:	when the first one came, in nanoseconds
 * @last:	when the @expected one came
 * @last_obj:	whose that was
 * @each:	called by each callback, instead of taking these times; or NULL
 * @done:	the @expected one has come
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
 * bench_fired - what the callback of every scheme does
 * @obj:	the object whose timer expired
 *
 * The same for all, and so little that it does not hide what the schemes do: it
 * touches the object, and counts.
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
 * @random:	whether they are taken in random order
 * @rnd:	where all that is random comes from
 * @pass:	for the next operation
 * @deadline:	of each object, in nanoseconds
 * @earliest:	the earliest of them
 * @wake_at:	of a burst: somewhat before a scheme has anything to do
 * @busy_from: of a burst: until then no scheme has anything to do
 * @free_before: bytes that the page allocator had left before the scheme got any
 */
struct bench_work {
	unsigned long		nr;
	bool			random;
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
		unsigned long nr, bool random, u64 seed);
void bench_end(const struct bench_scheme *scheme, struct bench_work *work);
u64 bench_free_bytes(void);

int bench_run(const struct bench_scheme *scheme, struct twheel_bench_run *req);
int bench_check_run(const struct bench_scheme *scheme, struct twheel_bench_check *req);
int bench_lateness(const struct bench_scheme *scheme, struct twheel_bench_lateness *req);
int bench_memory(const struct bench_scheme *scheme, struct twheel_bench_memory *req);
int bench_cpu_read(struct twheel_bench_cpu *answer);
void bench_cpu_exit(void);

/* Positions between two looks at the clock, at signals and at the scheduler. */
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
 * bench_pause_at - let others run, in a loop whose every pass is short
 * @k:		passes of the loop so far
 *
 * Return: 0, or -EINTR if a fatal signal is pending.
 */
static inline int bench_pause_at(unsigned long k)
{
	return k % BENCH_CHUNK ? 0 : bench_pause();
}

#endif /* _TWHEEL_BENCH_H */
