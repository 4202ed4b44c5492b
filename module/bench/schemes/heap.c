// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the binary heap
 */
#include "bench.h"

static struct bench_heap heap;

static void object_fired(struct bench_heap_node *node)
{
	bench_fired(container_of(node, struct bench_obj, heap));
}

/* The heap may be as late as the wheel. */
static int setup_heap(const struct bench_work *work)
{
	return bench_heap_init(&heap, work->nr, 1ULL << twheel_tick_shift());
}

static void teardown_heap(void)
{
	bench_heap_destroy(&heap);
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	obj->heap.index = BENCH_HEAP_NOWHERE;
	obj->heap.function = object_fired;
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	return bench_heap_arm(&heap, &obj->heap, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return bench_heap_cancel(&heap, &obj->heap);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return bench_heap_pending(&obj->heap);
}

/* All callbacks are called from one hrtimer. Arming a timer restarts it. */
static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	int found = cancel_one(obj, when);

	bench_alarm_stop(&heap.alarm);
	return found;
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

DEFINE_BENCH_SCHEME(heap,
		    .object_size = sizeof(struct bench_heap_node),
		    .rearm = add_batch,
		    .setup = setup_heap,
		    .teardown = teardown_heap);
