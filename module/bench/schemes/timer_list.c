// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the kernel's timer_list
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math.h>
#include <linux/math64.h>

#include "bench.h"
#include "lib/compat.h"

/* Jiffies in a step of the third level; see align_expiry(). */
#define STEP	64

/* When jiffy 0 would have begun, in nanoseconds; may be a little late. */
static s64 origin;

/*
 * The kernel does not expose when a jiffy begins. Reading both clocks until jiffies
 * changes finds the smallest difference between them, which is the difference at the
 * start of a jiffy, or a little more if its interrupt was late.
 */
static int find_origin(const struct bench_work *work)
{
	u64 start = get_jiffies_64(), now;

	origin = S64_MAX;
	do {
		now = get_jiffies_64();
		origin = min_t(s64, origin, ktime_get_ns() - now * TICK_NSEC);
		cpu_relax();
	} while (now - start < 2);
	return 0;
}

/*
 * Rounds up, as a user would with jiffies + nsecs_to_jiffies(). Timers expire one step after
 * the time that they were given, which makes up for a late origin.
 */
static __always_inline u64 to_jiffies(u64 ns)
{
	return div_u64(ns - origin + TICK_NSEC - 1, TICK_NSEC);
}

static unsigned long convert_batch(const struct bench_pass *pass, unsigned long from,
				   unsigned long to)
{
	unsigned long k;

	for (k = from; k < to; k++)
		pass->when[k] = to_jiffies(pass->when[k]);
	return 0;
}

/*
 * A timer expires one step of its level after its expiry time rounded down to a step. So
 * the timers of all levels whose steps divide STEP, which are those armed up to 4032
 * jiffies ahead, expire together if their expiry time is one jiffy before a multiple of
 * STEP.
 */
static u64 align_expiry(u64 ns)
{
	u64 expires = round_up(to_jiffies(ns) + 1, STEP) - 1;

	return origin + expires * TICK_NSEC;
}

/* A timer is up to an eighth of its timeout late, which may count from a jiffy ago. */
static u64 slack_of(u64 timeout)
{
	return timeout / 8 + 4 * TICK_NSEC;
}

static void object_fired(struct timer_list *timer)
{
	struct bench_obj *obj = timer_container_of(obj, timer, list);

	bench_fired(obj);
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	timer_setup(&obj->list, object_fired, TIMER_PINNED);
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	obj->list.expires = when;
	add_timer(&obj->list);
	return 0;
}

static __always_inline int rearm_one(struct bench_obj *obj, u64 when)
{
	return mod_timer(&obj->list, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return timer_delete(&obj->list);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return timer_pending(&obj->list);
}

static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	return timer_delete_sync(&obj->list);
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(rearm)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

DEFINE_BENCH_SCHEME(timer_list,
		    .object_size = sizeof(struct timer_list),
		    .rearm = rearm_batch,
		    .align = align_expiry,
		    .slack = slack_of,
		    .setup = find_origin,
		    .convert = convert_batch);
