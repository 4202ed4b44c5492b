// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the wheel, through its in-kernel API
 */
#include "bench.h"

static void object_fired(struct twheel_timer *timer)
{
	bench_fired(container_of(timer, struct bench_obj, wheel));
}

static u64 slack_of(u64 timeout)
{
	return 1ULL << twheel_tick_shift();
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	twheel_timer_init(&obj->wheel, object_fired);
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	return twheel_add(&obj->wheel, when) != 0;
}

static __always_inline int rearm_one(struct bench_obj *obj, u64 when)
{
	return twheel_rearm(&obj->wheel, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return twheel_cancel(&obj->wheel);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return twheel_pending(&obj->wheel);
}

static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	return twheel_cancel_sync(&obj->wheel);
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(rearm)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

DEFINE_BENCH_SCHEME(wheel,
		    .object_size = sizeof(struct twheel_timer),
		    .rearm = rearm_batch,
		    .slack = slack_of);
