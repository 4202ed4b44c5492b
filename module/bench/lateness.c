// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: measures how late a scheme's timers are
 *
 * Timers with timeouts of all magnitudes are armed and left to expire. Each timeout counts
 * from the moment before its timer is armed, as it would for a user.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "bench.h"

/* How long to wait after the last deadline. timer_list may be late by another eighth. */
#define LATE_MAX	(10 * NSEC_PER_SEC)

/* The request of the current run, which receives the results. */
static struct twheel_bench_lateness *current_req;

/* Called by each callback, in softirq context. */
static void record_lateness(struct bench_obj *obj)
{
	u64 now = ktime_get_ns(), late = now - min(now, obj->deadline);
	unsigned int bucket = min(fls64(late), TWHEEL_BENCH_LATE_BUCKETS - 1);

	current_req->late[bucket]++;
	current_req->worst_ns = max(current_req->worst_ns, late);
	if (now < obj->deadline)
		current_req->early++;
	if (++current_req->fired == bench_fire.expected)
		complete(&bench_fire.done);
}

/*
 * Returns a random timeout between the limits: as many from 1 to 2 times the minimum as
 * from 2 to 4 times, and so on; the last of these ranges ends at the maximum.
 */
static u64 draw_timeout(struct bench_work *work)
{
	unsigned int magnitudes = fls64(div64_u64(current_req->max_ns, current_req->min_ns));
	u64 low = current_req->min_ns << (prandom_u32_state(&work->rnd) % magnitudes);
	u64 high = min(2 * low, current_req->max_ns);

	return low + mul_u64_u32_shr(high - low, prandom_u32_state(&work->rnd), 32);
}

static int arm_all(const struct bench_scheme *scheme, struct bench_work *work)
{
	unsigned long k;
	u64 timeout;
	int ret;

	for (k = 0; k < work->nr; k++) {
		timeout = draw_timeout(work);
		work->pass.objs[work->pass.order[k]].deadline = ktime_get_ns() + timeout;
		work->pass.when[k] = work->pass.objs[work->pass.order[k]].deadline;
		if (scheme->convert)
			scheme->convert(&work->pass, k, k + 1);
		scheme->add(&work->pass, k, k + 1);
		ret = bench_pause_at(k);
		if (ret)
			return ret;
	}
	return 0;
}

/* Waits until all callbacks have come, or should have. Returns 0 or -EINTR. */
static int wait_all(void)
{
	u64 limit = current_req->max_ns + current_req->max_ns / 8 + LATE_MAX;
	long ret;

	ret = wait_for_completion_killable_timeout(&bench_fire.done, nsecs_to_jiffies(limit));
	return ret < 0 ? -EINTR : 0;
}

/**
 * bench_lateness - measure how late a scheme's timers are
 * @scheme:	a scheme that has timers
 * @req:	the request, which receives the results
 *
 * Context: process; the caller stays on its CPU.
 * Return: 0, -ENOMEM or -EINTR.
 */
int bench_lateness(const struct bench_scheme *scheme, struct twheel_bench_lateness *req)
{
	struct bench_work work;
	int ret;

	ret = bench_begin(scheme, &work, req->nr_timers, true, req->seed, 1);
	if (ret)
		return ret;
	current_req = req;
	bench_fire_start(req->nr_timers, record_lateness);
	ret = bench_work_shuffle(&work);
	if (!ret)
		ret = arm_all(scheme, &work);
	if (!ret)
		ret = wait_all();
	bench_end(scheme, &work);
	return ret;
}
