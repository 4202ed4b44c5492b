// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: hashed wheels, as libraries set them up
 *
 * netty: 512 slots of 100 ms, the defaults of HashedWheelTimer of Netty 4.1. There a tick also
 * takes over what other threads have added, 100 thousand at most; here all calls are made on the
 * wheel's CPU, and take effect at once. Netty rounds down what it gets, so timers come early.
 *
 * gozero: 300 slots of 1 s, as go-zero's cache sets up its TimingWheel. Moving a timer to a later
 * time only notes that, until its slot comes. There, moves are off by a turn now and then.
 *
 * php: 60 slots of 1 s, what an article on idle connections of Workerman proposes in place of its
 * heap.
 */
#include "bench.h"
#include "hashed.h"

static struct bench_hashed wheel;

static void object_fired(struct bench_hashed_node *node)
{
	bench_fired(container_of(node, struct bench_obj, hashed));
}

static int setup_netty(const struct bench_work *work)
{
	return bench_hashed_init(&wheel, 512, 100 * NSEC_PER_MSEC / work->speed, false);
}

static int setup_gozero(const struct bench_work *work)
{
	return bench_hashed_init(&wheel, 300, NSEC_PER_SEC / work->speed, true);
}

static int setup_php(const struct bench_work *work)
{
	return bench_hashed_init(&wheel, 60, NSEC_PER_SEC / work->speed, false);
}

static void teardown_wheel(void)
{
	bench_hashed_destroy(&wheel);
}

/* All timers that are due within a tick of the wheel expire together. */
static u64 align_expiry(u64 ns)
{
	return bench_ticker_align(&wheel.ticker, ns);
}

static u64 slack_of(u64 timeout)
{
	return wheel.ticker.period;
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	INIT_HLIST_NODE(&obj->hashed.link);
	obj->hashed.function = object_fired;
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	return bench_hashed_arm(&wheel, &obj->hashed, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return bench_hashed_cancel(&wheel, &obj->hashed);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return bench_hashed_pending(&obj->hashed);
}

static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	int found = cancel_one(obj, when);

	bench_ticker_stop(&wheel.ticker);
	return found;
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

#define HASHED_SCHEME(_name, _setup)					\
	DEFINE_BENCH_SCHEME(_name,					\
			    .object_size = sizeof(struct bench_hashed_node), \
			    .rearm = add_batch,				\
			    .align = align_expiry,			\
			    .slack = slack_of,				\
			    .setup = _setup,				\
			    .teardown = teardown_wheel)

HASHED_SCHEME(netty, setup_netty);
HASHED_SCHEME(gozero, setup_gozero);
HASHED_SCHEME(php, setup_php);
