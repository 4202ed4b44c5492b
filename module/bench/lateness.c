// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: how late are a scheme's timers?
 *
 * Timers with timeouts of all magnitudes are armed, and come due by themselves. Each
 * deadline counts from the moment before its timer is armed, as a user's would.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "bench.h"

/* Time to wait after the last deadline; timer_list may be an eighth late, besides. */
#define PATIENCE	(10 * NSEC_PER_SEC)

/* The answer of the run that is going on. */
static struct twheel_bench_lateness *answer;

/* What each callback does, in softirq context. */
static void late_fired(struct bench_obj *obj)
{
	u64 now = ktime_get_ns(), late = now - min(now, obj->deadline);
	unsigned int bucket = min(fls64(late), TWHEEL_BENCH_LATE_BUCKETS - 1);

	answer->late[bucket]++;
	answer->worst_ns = max(answer->worst_ns, late);
	if (now < obj->deadline)
		answer->early++;
	if (++answer->fired == bench_fire.expected)
		complete(&bench_fire.done);
}

/*
 * A timeout between the limits: as many from 1 to 2 times the least as from 2 to 4
 * times, and so on.
 */
static u64 some_timeout(struct bench_work *work)
{
	unsigned int magnitudes = fls64(div64_u64(answer->max_ns, answer->min_ns));
	u64 low, timeout;

	do {
		low = answer->min_ns << (prandom_u32_state(&work->rnd) % magnitudes);
		timeout = low + mul_u64_u32_shr(low, prandom_u32_state(&work->rnd), 32);
	} while (timeout > answer->max_ns);
	return timeout;
}

static int arm_all(const struct bench_scheme *scheme, struct bench_work *work)
{
	unsigned long k;
	u64 timeout;
	int ret;

	for (k = 0; k < work->nr; k++) {
		timeout = some_timeout(work);
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

/* Waits until all have come, or should have. Returns 0 or -EINTR. */
static int await_all(void)
{
	u64 limit = answer->max_ns + answer->max_ns / 8 + PATIENCE;
	long ret;

	ret = wait_for_completion_killable_timeout(&bench_fire.done, nsecs_to_jiffies(limit));
	return ret < 0 ? -EINTR : 0;
}

/**
 * bench_lateness - find out how late a scheme's timers are
 * @scheme:	the scheme; it has timers
 * @req:	what to do; the answer is written to it
 *
 * Context: process; the caller stays on its CPU.
 * Return: 0, -ENOMEM or -EINTR.
 */
int bench_lateness(const struct bench_scheme *scheme, struct twheel_bench_lateness *req)
{
	struct bench_work work;
	int ret;

	ret = bench_begin(scheme, &work, req->nr_timers, true, req->seed);
	if (ret)
		return ret;
	answer = req;
	bench_fire_start(req->nr_timers, late_fired);
	ret = bench_work_shuffle(&work);
	if (!ret)
		ret = arm_all(scheme, &work);
	if (!ret)
		ret = await_all();
	bench_end(scheme, &work);
	return ret;
}
