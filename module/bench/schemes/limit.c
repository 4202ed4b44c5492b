// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the limit line: the cost of just touching the objects
 */
#include "bench.h"

static __always_inline int rmw_one(struct bench_obj *obj, u64 when)
{
	obj->word++;
	return 0;
}

DEFINE_BENCH_BATCH(rmw);

const struct bench_scheme bench_scheme_limit = {
	.name		= "limit",
	.object_size	= sizeof(u64),
	.workloads	= BIT(TWHEEL_BENCH_RMW),
	.rmw		= rmw_batch,
};
