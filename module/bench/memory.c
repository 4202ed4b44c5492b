// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: measures how much memory a scheme takes
 *
 * This asks the page allocator how many pages are free, so that nothing is missed:
 * neither what a scheme forgets to count, nor what other allocators take from it.
 */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nodemask.h>

#include "bench.h"

static unsigned long count_free_pages(struct zone *zone)
{
	unsigned long nr = zone_page_state_snapshot(zone, NR_FREE_PAGES);
	unsigned int cpu;

	/* Pages on the per-CPU lists are free, too. */
	for_each_online_cpu(cpu)
		nr += READ_ONCE(per_cpu_ptr(zone->per_cpu_pageset, cpu)->count);
	return nr;
}

/**
 * bench_free_bytes - read how much memory the page allocator has free
 *
 * Context: any.
 * Return: bytes; exact if nothing is allocated or freed meanwhile.
 */
u64 bench_free_bytes(void)
{
	unsigned long nr = 0;
	struct zone *zone;
	int node, i;

	for_each_online_node(node) {
		for (i = 0; i < MAX_NR_ZONES; i++) {
			zone = &NODE_DATA(node)->node_zones[i];
			if (populated_zone(zone))
				nr += count_free_pages(zone);
		}
	}
	return (u64)nr << PAGE_SHIFT;
}

/* Arms all timers, and raises *@max_bytes if the scheme has taken more memory than that. */
static int arm_all(const struct bench_scheme *scheme, struct bench_work *work,
		   int (*prepare)(struct bench_work *work), bench_batch *op, u64 *max_bytes)
{
	unsigned long pending;
	u64 free_now;
	int ret;

	ret = bench_work_shuffle(work);
	if (!ret)
		ret = prepare(work);
	if (!ret)
		ret = bench_batches(work, scheme->convert, NULL);
	if (!ret)
		ret = bench_batches(work, op, NULL);
	if (!ret)
		ret = bench_batches(work, scheme->pending, &pending);
	if (ret)
		return ret;
	if (pending != work->nr)
		return -ETIME;
	free_now = bench_free_bytes();
	*max_bytes = max(*max_bytes, work->free_before - min(work->free_before, free_now));
	return 0;
}

/**
 * bench_memory - measure how much memory a scheme takes
 * @scheme:	a scheme that has timers
 * @req:	the request, which receives the results
 *
 * Context: process; the caller stays on its CPU.
 * Return: 0, -ENOMEM, -EINTR or -ETIME.
 */
int bench_memory(const struct bench_scheme *scheme, struct twheel_bench_memory *req)
{
	struct bench_work work;
	int ret;

	ret = bench_begin(scheme, &work, req->nr_timers, true, req->seed, 1);
	if (ret)
		return ret;
	ret = arm_all(scheme, &work, bench_work_timeouts, scheme->add, &req->added);
	req->most = req->added;
	if (!ret)
		ret = arm_all(scheme, &work, bench_work_later, scheme->rearm, &req->most);
	if (!ret)
		ret = arm_all(scheme, &work, bench_work_earlier, scheme->rearm, &req->most);
	bench_end(scheme, &work);
	return ret;
}
