// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the kernel's hrtimers, one per object
 *
 * A struct hrtimer fills a cache line, so it does not fit into an object. Objects of
 * two lines would change the memory costs of all other schemes. So the hrtimers are in
 * an array of their own: an operation touches one line, and a callback two, as if the
 * object were larger.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/mm.h>

#include "bench.h"
#include "lib/compat.h"

/* Pinned like the timers of the other schemes: callbacks run on the CPU of the run. */
#define MODE	HRTIMER_MODE_ABS_PINNED_SOFT

static struct hrtimer *timers;
static struct bench_obj *objs;

static int setup_hrtimers(const struct bench_work *work)
{
	objs = work->pass.objs;
	timers = bench_alloc(work->nr, sizeof(*timers));
	return timers ? 0 : -ENOMEM;
}

static void teardown_hrtimers(void)
{
	kvfree(timers);
}

static __always_inline struct hrtimer *timer_of(struct bench_obj *obj)
{
	return &timers[obj - objs];
}

/*
 * Timers that come due one after the other take an interrupt each, for as long as the
 * callbacks keep up. Timers that are due at the same moment share one.
 */
static u64 align_expiry(u64 ns)
{
	return ns;
}

static enum hrtimer_restart object_fired(struct hrtimer *timer)
{
	bench_fired(&objs[timer - timers]);
	return HRTIMER_NORESTART;
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	hrtimer_setup(timer_of(obj), object_fired, CLOCK_MONOTONIC, MODE);
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	hrtimer_start(timer_of(obj), ns_to_ktime(when), MODE);
	return 0;
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return hrtimer_is_queued(timer_of(obj));
}

static __always_inline int rearm_one(struct bench_obj *obj, u64 when)
{
	int pending = pending_one(obj, when);

	add_one(obj, when);
	return pending;
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return hrtimer_try_to_cancel(timer_of(obj)) > 0;
}

static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	return hrtimer_cancel(timer_of(obj));
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(rearm)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

DEFINE_BENCH_SCHEME(hrtimer,
		    .object_size = 0,
		    .rearm = rearm_batch,
		    .align = align_expiry,
		    .setup = setup_hrtimers,
		    .teardown = teardown_hrtimers);
