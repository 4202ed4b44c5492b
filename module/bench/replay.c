// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: a replay of a trace
 *
 * The operations of time 0 set up what was there before: they are done before the trace begins,
 * however long that takes, and are repeated with more time if it was too long. Then the run
 * sleeps from one slice to the next, so that whatever else this CPU does is the scheme's.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "replay.h"

/* What comes within this time is done together. */
#define SLICE		NSEC_PER_MSEC

/* Time for the operations of time 0: initial, for each, and maximum. */
#define LEAD_MIN	(20 * NSEC_PER_MSEC)
#define LEAD_EACH	(2 * NSEC_PER_USEC)
#define LEAD_MAX	(120 * NSEC_PER_SEC)

/* How long to wait after the trace: for repeated callbacks, and for late ones. */
#define GRACE		(20 * NSEC_PER_MSEC)
#define LATE_MAX	(10 * NSEC_PER_SEC)

/* How often it is asked how much memory is free. */
#define SAMPLE		(100 * NSEC_PER_MSEC)

/**
 * bench_replay_fault - record what went wrong
 * @replay:	the replay
 * @what:	one of enum twheel_bench_fault
 * @object:	the object, or 0
 * @expected:	the expected value
 * @found:	the value found
 *
 * Context: process.
 * Return: 1, which ends the replay.
 */
int bench_replay_fault(struct bench_replay *replay, u32 what, u32 object, u64 expected, u64 found)
{
	u64 now = ktime_get_ns();

	replay->req->fault = what;
	replay->req->fault_object = object;
	replay->req->fault_time_ns = now - min(now, replay->origin);
	replay->req->fault_expected = expected;
	replay->req->fault_found = found;
	return 1;
}

/* What it costs to measure a batch of nothing, in picoseconds. */
static u64 measure_call(const struct bench_replay *replay)
{
	const unsigned int rounds = 32, calls = 64;
	const struct bench_scheme *scheme = replay->scheme;
	bench_batch *op = scheme->add ?: scheme->rmw;
	u64 best = U64_MAX, start, sum;
	unsigned int i, j;

	for (i = 0; i < rounds; i++) {
		for (j = 0, sum = 0; j < calls; j++) {
			start = ktime_get_ns();
			op(&replay->work.pass, 0, 0);
			sum += ktime_get_ns() - start;
		}
		best = min(best, sum);
	}
	return best * 1000 / calls;
}

static void sample_memory(struct bench_replay *replay)
{
	u64 before = replay->work.free_before, now = ktime_get_ns();

	if (now < replay->sampled_at + SAMPLE)
		return;
	replay->sampled_at = now;
	replay->req->most_bytes = max(replay->req->most_bytes,
				      before - min(before, bench_free_bytes()));
}

/* Takes all operations up to a time of the trace. Returns 0, 1 after a fault, or -errno. */
static int run_until(struct bench_replay *replay, u64 time, const struct twheel_bench_op **op)
{
	int ret;

	for (;;) {
		ret = bench_replay_peek(replay, op);
		if (ret || !*op || (*op)->time_ns > time)
			break;
		ret = bench_replay_take(replay, *op);
		if (ret)
			break;
	}
	return ret ?: bench_replay_flush(replay);
}

/* Begins, or begins anew; no timer is armed. */
static void reset(struct bench_replay *replay)
{
	u32 kind;

	memset(replay->work.deadline, 0xff, replay->work.nr * sizeof(*replay->work.deadline));
	memset(replay->stamp, 0, replay->work.nr * sizeof(*replay->stamp));
	for (kind = 0; kind < TWHEEL_BENCH_NR_OP_KINDS; kind++)
		replay->batch[kind].nr = 0;
	replay->slice = 1;
	replay->earliest = U64_MAX;
	replay->armed = 0;
	replay->expected = 0;
	replay->next = 0;
	replay->time = 0;
	replay->req->fault = TWHEEL_BENCH_OK;
	replay->req->most_armed = 0;
	bench_replay_watch(replay);
}

/* Does what was there before the trace. Returns 0, 1 after a fault, or -errno. */
static int set_up(struct bench_replay *replay)
{
	u64 lead = LEAD_MIN + LEAD_EACH * min_t(u64, replay->req->nr_ops, replay->work.nr);
	const struct twheel_bench_op *op;
	int ret;

	for (;; lead *= 2) {
		reset(replay);
		replay->origin = ktime_get_ns() + lead;
		ret = run_until(replay, 0, &op);
		if (ktime_get_ns() < replay->origin || lead > LEAD_MAX)
			break;
		if (ret < 0)
			return ret;
		bench_stop(replay->scheme, &replay->work);
	}
	if (!ret && ktime_get_ns() >= replay->origin)
		ret = bench_replay_fault(replay, TWHEEL_BENCH_TOO_SLOW, 0, lead,
					 ktime_get_ns() + lead - replay->origin);
	return ret;
}

/* Does the rest, slice by slice. Returns 0, 1 after a fault, or -errno. */
static int run_slices(struct bench_replay *replay)
{
	const struct twheel_bench_op *op;
	u64 now = 0;
	int ret;

	ret = bench_replay_peek(replay, &op);
	while (!ret && op) {
		ret = bench_sleep_until(replay->origin + max(op->time_ns, now + SLICE));
		if (ret)
			break;
		now = ktime_get_ns() - replay->origin;
		ret = run_until(replay, now, &op);
		sample_memory(replay);
	}
	return ret;
}

/* Waits for all callbacks that are to come. Returns 0 or -EINTR. */
static int wait_expected(struct bench_replay *replay)
{
	u64 limit = replay->req->length_ns / 8 + LATE_MAX;
	int ret;

	ret = bench_sleep_until(replay->origin + replay->req->length_ns);
	if (ret || !bench_replay_has_timers(replay))
		return ret;
	/* Pairs with the WRITE_ONCE() in count_expiry(), in a softirq of this CPU. */
	WRITE_ONCE(replay->awaited, replay->expected);
	barrier();
	if (READ_ONCE(replay->fired) < replay->expected &&
	    wait_for_completion_killable_timeout(&replay->done, nsecs_to_jiffies(limit)) < 0)
		return -EINTR;
	return 0;
}

static unsigned long count_armed(const struct bench_replay *replay)
{
	unsigned long nr = 0, i;

	for (i = 0; i < replay->work.nr; i++)
		nr += !(READ_ONCE(replay->work.deadline[i]) & BENCH_EXPIRED);
	return nr;
}

/* Are the timers pending that should be? Those that are not may expire meanwhile. */
static int check_pending(struct bench_replay *replay)
{
	unsigned long most = count_armed(replay), least, pending;
	int ret;

	ret = bench_batches(&replay->work, replay->scheme->pending, &pending);
	if (ret)
		return ret;
	least = count_armed(replay);
	if (pending >= least && pending <= most)
		return 0;
	return bench_replay_fault(replay, TWHEEL_BENCH_WRONG_PENDING, 0, most, pending);
}

/* Checks what has expired. Returns 0, 1 after a fault, or -EINTR. */
static int check_end(struct bench_replay *replay)
{
	int ret;

	if (!bench_replay_has_timers(replay))
		return 0;
	ret = bench_sleep_until(ktime_get_ns() + GRACE);
	if (!ret)
		ret = bench_replay_check_fired(replay);
	if (ret)
		return ret;
	if (READ_ONCE(replay->fired) != replay->expected)
		return bench_replay_fault(replay, TWHEEL_BENCH_WRONG_FIRED, 0, replay->expected,
					  replay->fired);
	return check_pending(replay);
}

static void report_cpu(struct bench_replay *replay)
{
	struct twheel_bench_replay *req = replay->req;
	struct bench_cpu_use use;

	if (!req->cpu_known)
		return;
	bench_cpu_use(&use);
	req->interrupts = use.interrupts - replay->cpu.interrupts;
	req->softirqs = use.softirqs - replay->cpu.softirqs;
	req->interrupt_ns = use.interrupt_ns - replay->cpu.interrupt_ns;
	req->softirq_ns = use.softirq_ns - replay->cpu.softirq_ns;
	req->longest_interrupt_ns = use.longest_interrupt_ns;
	req->longest_softirq_ns = use.longest_softirq_ns;
}

static void report(struct bench_replay *replay)
{
	struct twheel_bench_replay *req = replay->req;
	const struct bench_replay_batch *batch;
	u64 calls;
	u32 kind;

	req->elapsed_ns = max(req->length_ns, replay->last_at - min(replay->last_at,
								    replay->origin));
	req->fired = replay->fired;
	for (kind = 0; kind < TWHEEL_BENCH_NR_OP_KINDS; kind++) {
		batch = &replay->batch[kind];
		calls = div_u64(batch->batches * replay->call_ps, 1000);
		req->op[kind].ops = batch->ops;
		req->op[kind].time_ns = batch->time_ns - min(batch->time_ns, calls);
	}
	req->late_p50_ns = bench_replay_late(replay, 500);
	req->late_p99_ns = bench_replay_late(replay, 990);
	req->late_max_ns = replay->late_max;
}

static int run_trace(struct bench_replay *replay)
{
	int ret;

	replay->call_ps = measure_call(replay);
	ret = set_up(replay);
	if (ret)
		return ret;
	sample_memory(replay);
	ret = bench_sleep_until(replay->origin);
	if (ret)
		return ret;
	bench_cpu_reset_longest();
	bench_cpu_use(&replay->cpu);
	replay->measure = true;
	ret = run_slices(replay);
	if (!ret)
		ret = wait_expected(replay);
	if (ret)
		return ret;
	report_cpu(replay);
	replay->sampled_at = 0;
	sample_memory(replay);
	ret = check_end(replay);
	if (!ret)
		report(replay);
	return ret;
}

static int allocate(struct bench_replay *replay)
{
	struct bench_replay_batch *batch;
	u32 kind;

	replay->chunk = bench_alloc(BENCH_CHUNK, sizeof(*replay->chunk));
	replay->stamp = bench_alloc(replay->req->nr_objects, sizeof(*replay->stamp));
	if (!replay->chunk || !replay->stamp)
		return -ENOMEM;
	for (kind = 0; kind < TWHEEL_BENCH_NR_OP_KINDS; kind++) {
		batch = &replay->batch[kind];
		batch->order = bench_alloc(BENCH_CHUNK, sizeof(*batch->order));
		batch->when = bench_alloc(BENCH_CHUNK, sizeof(*batch->when));
		if (!batch->order || !batch->when)
			return -ENOMEM;
	}
	return 0;
}

static void release(struct bench_replay *replay)
{
	u32 kind;

	for (kind = 0; kind < TWHEEL_BENCH_NR_OP_KINDS; kind++) {
		kvfree(replay->batch[kind].when);
		kvfree(replay->batch[kind].order);
	}
	kvfree(replay->stamp);
	kvfree(replay->chunk);
	kvfree(replay);
}

/**
 * bench_replay - do what a trace says, and measure it
 * @scheme:	the scheme
 * @req:	the request, which receives the results
 *
 * Context: process; the caller stays on its CPU.
 * Return: 0, -ENOMEM, -EINTR, -EFAULT or -EINVAL.
 */
int bench_replay(const struct bench_scheme *scheme, struct twheel_bench_replay *req)
{
	struct bench_replay *replay = bench_alloc(1, sizeof(*replay));
	struct twheel_bench_cpu unused;
	int ret;

	if (!replay)
		return -ENOMEM;
	replay->scheme = scheme;
	replay->req = req;
	ret = allocate(replay);
	if (!ret)
		ret = bench_begin(scheme, &replay->work, req->nr_objects, false, 0, 1);
	if (ret)
		goto out;
	req->cpu = smp_processor_id();
	/* Registers the probes; without them, there is no CPU time. */
	req->cpu_known = !bench_cpu_read(&unused);
	ret = run_trace(replay);
	if (req->fault == TWHEEL_BENCH_OK) {
		req->fault_object = 0;
		req->fault_time_ns = 0;
		req->fault_expected = 0;
		req->fault_found = 0;
	} else {
		memset_startat(req, 0, elapsed_ns);
	}
	bench_end(scheme, &replay->work);
out:
	release(replay);
	return min(ret, 0);
}
