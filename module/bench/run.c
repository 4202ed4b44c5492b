// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: a measured run of one scheme
 *
 * The clock is read around chunks of operations, with interrupts enabled, and the
 * cost of reading it is subtracted. Other tasks may run between the chunks.
 *
 * Expiry is timed from the first to the last callback. Some schemes have work to
 * do before the first one, and are idle between others, so CPU time is measured as
 * well. The kernel's own accounting is too coarse for that, or wrong if a softirq
 * that interrupted the idle loop is itself interrupted. So the run keeps the CPU
 * busy meanwhile, by reading the clock in a loop: any gap between two reads is time
 * that something else took, including the scheme and the interrupts.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/smp.h>

#include "bench.h"

/* How long before a burst arming begins, as a multiple of what it took before. */
#define LEAD_FACTOR	2
#define LEAD_MIN	(20 * NSEC_PER_MSEC)
#define LEAD_TRIES	5

/* How often a burst is repeated if the machine was too busy to watch it. */
#define EXPIRE_TRIES	20

/* How late a callback may be before it is considered lost: per timer, and in total. */
#define LATE_EACH	(100 * NSEC_PER_USEC)
#define LATE_ALL	(10 * NSEC_PER_SEC)

/**
 * struct run - a run
 * @scheme:	the scheme
 * @req:	the request, which receives the results
 * @work:	the objects
 * @clock_ps:	cost of reading the clock, in picoseconds
 * @add_ns:	time that arming all timers took, in nanoseconds
 */
struct run {
	const struct bench_scheme	*scheme;
	struct twheel_bench_run		*req;
	struct bench_work		work;
	u64				clock_ps;
	u64				add_ns;
};

/* The time between two reads of the clock is a gap only if it is at least this long. */
#define GAP_MIN		(1 * NSEC_PER_USEC)
#define GAP_READS	4

struct bench_fire bench_fire;

/**
 * bench_fire_start - start to count callbacks
 * @expected:	number of callbacks to wait for
 * @each:	called by every callback; NULL to record the times of the first and the last
 *
 * Context: process, with no timer armed.
 */
void bench_fire_start(unsigned long expected, void (*each)(struct bench_obj *obj))
{
	bench_fire = (struct bench_fire) {
		.countdown	= 1,
		.expected	= expected,
		.each		= each,
	};
	init_completion(&bench_fire.done);
}

/**
 * bench_fire_count - read how many callbacks have come
 *
 * Context: process; only if bench_fire_start() was called without @each.
 * Return: their number, even if it is more than expected.
 */
unsigned long bench_fire_count(void)
{
	/* A softirq may change it meanwhile. */
	unsigned long countdown = READ_ONCE(bench_fire.countdown);

	return bench_fire.first ? bench_fire.expected - countdown : 0;
}

/**
 * bench_fired_special - handle a callback that takes the countdown to 0
 * @obj:	the object whose timer expired
 *
 * Context: softirq, on the CPU of the run.
 */
void bench_fired_special(struct bench_obj *obj)
{
	struct bench_fire *fire = &bench_fire;

	if (fire->each) {
		fire->countdown = 1;
		fire->each(obj);
		return;
	}
	if (!fire->first) {
		fire->first = ktime_get_ns();
		fire->countdown = fire->expected - 1;
		if (fire->countdown)
			return;
	}
	fire->last = ktime_get_ns();
	fire->last_obj = obj;
	complete(&fire->done);
}

/**
 * bench_clock_ps - measure the cost of reading the clock
 *
 * Context: process.
 * Return: picoseconds; the minimum of several rounds.
 */
u64 bench_clock_ps(void)
{
	const unsigned int rounds = 32, reads = 256;
	u64 best = U64_MAX, start, end;
	unsigned int i, j;

	for (i = 0; i < rounds; i++) {
		start = ktime_get_ns();
		for (j = 0; j < reads; j++)
			end = ktime_get_ns();
		best = min(best, end - start);
	}
	return best * 1000 / reads;
}

/**
 * bench_batches - run an operation on all objects
 * @work:	the objects
 * @op:		the operation; NULL does nothing
 * @found:	receives the number of timers that were found armed; or NULL
 *
 * Context: process.
 * Return: 0 or -EINTR.
 */
int bench_batches(const struct bench_work *work, bench_batch *op, unsigned long *found)
{
	unsigned long from, to, armed = 0;
	int ret;

	for (from = 0; op && from < work->nr; from = to) {
		to = min(from + BENCH_CHUNK, work->nr);
		armed += op(&work->pass, from, to);
		ret = bench_pause();
		if (ret)
			return ret;
	}
	if (found)
		*found = armed;
	return 0;
}

/**
 * bench_stop - disarm all timers and wait for their callbacks, even if a signal is pending
 * @scheme:	the scheme
 * @work:	the objects
 *
 * Context: process.
 */
void bench_stop(const struct bench_scheme *scheme, const struct bench_work *work)
{
	unsigned long from, to;

	for (from = 0; scheme->stop && from < work->nr; from = to) {
		to = min(from + BENCH_CHUNK, work->nr);
		scheme->stop(&work->pass, from, to);
		cond_resched();
	}
}

/**
 * bench_begin - create the objects of a run and their timers
 * @scheme:	the scheme
 * @work:	filled in
 * @nr:		number of objects
 * @random:	whether to visit them in random order
 * @seed:	seed of the random numbers
 * @speed:	how many times as fast as usual the schemes tick that have ticks of their own
 *
 * Context: process.
 * Return: 0, -ENOMEM or -EINTR. If it is not 0, there is nothing to end.
 */
int bench_begin(const struct bench_scheme *scheme, struct bench_work *work,
		unsigned long nr, bool random, u64 seed, u32 speed)
{
	int ret;

	bench_fire_start(0, NULL);
	ret = bench_work_init(work, nr, random, seed);
	if (ret)
		return ret;
	work->speed = speed;
	work->free_before = bench_free_bytes();
	if (scheme->setup)
		ret = scheme->setup(work);
	if (ret)
		goto out_work;
	ret = bench_batches(work, scheme->init, NULL);
	if (!ret)
		return 0;
	if (scheme->teardown)
		scheme->teardown();
out_work:
	bench_work_destroy(work);
	return ret;
}

/**
 * bench_end - free the objects of a run, whatever the state of their timers
 * @scheme:	the scheme
 * @work:	the objects
 *
 * Context: process.
 */
void bench_end(const struct bench_scheme *scheme, struct bench_work *work)
{
	bench_stop(scheme, work);
	if (scheme->teardown)
		scheme->teardown();
	bench_work_destroy(work);
}

/* Like bench_batches(), but timed. */
static int measure_op(const struct run *run, bench_batch *op, u64 *ns, unsigned long *found)
{
	const struct bench_work *work = &run->work;
	unsigned long from, to, chunks = 0;
	u64 start, sum = 0;
	int ret;

	*found = 0;
	for (from = 0; from < work->nr; from = to) {
		to = min(from + BENCH_CHUNK, work->nr);
		start = ktime_get_ns();
		*found += op(&work->pass, from, to);
		sum += ktime_get_ns() - start;
		chunks++;
		ret = bench_pause();
		if (ret)
			return ret;
	}
	*ns = sum - min(sum, div_u64(chunks * run->clock_ps, 1000));
	return 0;
}

/* Records a fault. Returns 1, which ends the run. */
static int set_fault(struct run *run, u32 workload, u32 what, u64 expected, u64 found)
{
	run->req->fault = what;
	run->req->fault_workload = workload;
	run->req->fault_expected = expected;
	run->req->fault_found = found;
	return 1;
}

/* Checks the counts of @workload. Returns 0, 1 if they are wrong, or -EINTR. */
static int verify_counts(struct run *run, u32 workload, u64 begun, unsigned long found,
			 unsigned long expected, unsigned long expected_pending)
{
	const struct bench_work *work = &run->work;
	unsigned long pending;
	u64 now, end;
	int ret;

	ret = bench_batches(work, run->scheme->pending, &pending);
	if (ret)
		return ret;
	now = ktime_get_ns();
	end = workload == TWHEEL_BENCH_EXPIRE ? work->wake_at : work->earliest;
	if (now >= end)
		return set_fault(run, workload, TWHEEL_BENCH_TOO_SLOW,
				 end - min(begun, end), now - begun);
	if (bench_fire_count())
		return set_fault(run, workload, TWHEEL_BENCH_WRONG_FIRED, 0, bench_fire_count());
	if (found != expected)
		return set_fault(run, workload, TWHEEL_BENCH_WRONG_VERDICT, expected, found);
	if (pending != expected_pending)
		return set_fault(run, workload, TWHEEL_BENCH_WRONG_PENDING,
				 expected_pending, pending);
	return 0;
}

static bool is_requested(const struct run *run, u32 workload)
{
	return run->req->workloads & BIT(workload);
}

static void report_result(struct run *run, u32 workload, u64 time_ns, u64 cpu_ns)
{
	struct twheel_bench_result *result = &run->req->result[workload];

	if (!is_requested(run, workload))
		return;
	result->ops = run->work.nr;
	result->time_ns = time_ns;
	result->cpu_ns = cpu_ns;
}

/*
 * Runs a workload of one operation on every timer: @prepare sets the deadlines, and
 * @expected and @pending timers are armed before and after. Returns 0, 1 after a
 * fault, or -EINTR.
 */
static int run_simple(struct run *run, u32 workload, int (*prepare)(struct bench_work *work),
		      bench_batch *op, unsigned long expected, unsigned long pending)
{
	unsigned long found;
	u64 begun, ns;
	int ret;

	ret = bench_work_shuffle(&run->work);
	if (ret)
		return ret;
	begun = ktime_get_ns();
	if (prepare) {
		ret = prepare(&run->work);
		if (!ret)
			ret = bench_batches(&run->work, run->scheme->convert, NULL);
		if (ret)
			return ret;
	}
	ret = measure_op(run, op, &ns, &found);
	if (!ret)
		ret = verify_counts(run, workload, begun, found, expected, pending);
	if (ret)
		return ret;
	if (workload == TWHEEL_BENCH_ADD)
		run->add_ns = ns;
	report_result(run, workload, ns, 0);
	return 0;
}

/**
 * bench_sleep_until - sleep until the given time
 * @when:	the time, in nanoseconds of CLOCK_MONOTONIC
 *
 * Context: process; may sleep.
 * Return: 0 or -EINTR.
 */
int bench_sleep_until(u64 when)
{
	ktime_t expires = ns_to_ktime(when);

	while (ktime_get_ns() < when) {
		set_current_state(TASK_KILLABLE);
		schedule_hrtimeout_range(&expires, 0, HRTIMER_MODE_ABS);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/*
 * Keeps the CPU busy until the callbacks have come, or until @limit. Any other
 * thread takes precedence over this one. Returns 0 or -EINTR, and in @taken how
 * long anything else had the CPU.
 */
static int spin_until_fired(const struct run *run, u64 limit, u64 *taken)
{
	u64 gap = max_t(u64, GAP_MIN, GAP_READS * div_u64(run->clock_ps, 1000));
	u64 start = ktime_get_ns(), last = start, own = 0, now;
	int nice = task_nice(current), ret = 0;

	set_user_nice(current, MAX_NICE);
	while (!ret && last < limit && !completion_done(&bench_fire.done)) {
		ret = bench_pause();
		now = ktime_get_ns();
		if (now - last < gap)
			own += now - last;
		last = now;
	}
	*taken = ktime_get_ns() - start - own;
	set_user_nice(current, nice);
	return ret;
}

/* Arms all timers for a time that is far enough ahead for arming to be done by then. */
static int arm_burst(struct run *run)
{
	u64 lead = LEAD_MIN + LEAD_FACTOR * run->add_ns, begun, ns;
	struct bench_work *work = &run->work;
	unsigned long found;
	unsigned int tries;
	int ret;

	ret = bench_work_shuffle(work);
	for (tries = 0; !ret && tries < LEAD_TRIES; tries++, lead *= LEAD_FACTOR) {
		ret = bench_sleep_until(bench_burst_start(lead));
		begun = ktime_get_ns();
		if (!ret)
			ret = bench_work_burst(work, begun + lead, run->scheme->align);
		if (!ret)
			ret = bench_batches(work, run->scheme->convert, NULL);
		if (ret)
			break;
		bench_fire_start(work->nr, NULL);
		ret = measure_op(run, run->scheme->add, &ns, &found);
		if (!ret)
			ret = verify_counts(run, TWHEEL_BENCH_EXPIRE, begun, found, 0, work->nr);
		if (ret <= 0 || run->req->fault != TWHEEL_BENCH_TOO_SLOW)
			break;
		bench_stop(run->scheme, work);
		if (tries < LEAD_TRIES - 1) {
			run->req->fault = TWHEEL_BENCH_OK;
			ret = 0;
		}
	}
	return ret;
}

/* Waits until the last callback has returned. */
static void wait_last_callback(const struct run *run)
{
	struct bench_pass last = run->work.pass;
	u32 first = 0;

	last.objs = bench_fire.last_obj;
	last.order = &first;
	run->scheme->stop(&last, 0, 1);
}

/*
 * Lets a burst expire. Returns 0, 1 after a fault, or -EINTR; in @woken the time at
 * which it began to watch, and in @taken the CPU time since then.
 */
static int expire_burst(struct run *run, u64 *woken, u64 *taken)
{
	struct bench_work *work = &run->work;
	u64 limit;
	int ret;

	/* timer_list may be late by an eighth. */
	limit = work->earliest + (work->earliest - ktime_get_ns()) / 8 +
		LATE_ALL + work->nr * LATE_EACH;
	ret = bench_sleep_until(work->wake_at);
	*woken = ktime_get_ns();
	if (!ret)
		ret = spin_until_fired(run, limit, taken);
	if (ret)
		return ret;
	if (completion_done(&bench_fire.done))
		wait_last_callback(run);
	if (bench_fire_count() != work->nr)
		return set_fault(run, TWHEEL_BENCH_EXPIRE, TWHEEL_BENCH_WRONG_FIRED,
				 work->nr, bench_fire_count());
	return 0;
}

static int run_expire(struct run *run)
{
	struct bench_fire *fire = &bench_fire;
	struct bench_work *work = &run->work;
	unsigned int tries = 0;
	u64 woken, taken;
	int ret;

	/* If the run woke too late for a burst, part of the CPU time would be missing. */
	do {
		ret = arm_burst(run);
		if (!ret)
			ret = expire_burst(run, &woken, &taken);
		if (ret)
			return ret;
	} while (woken >= work->busy_from && ++tries < EXPIRE_TRIES);
	if (woken >= work->busy_from)
		return set_fault(run, TWHEEL_BENCH_EXPIRE, TWHEEL_BENCH_TOO_SLOW,
				 work->busy_from - work->wake_at, woken - work->wake_at);
	if (fire->first < work->earliest)
		return set_fault(run, TWHEEL_BENCH_EXPIRE, TWHEEL_BENCH_FIRED_EARLY,
				 work->earliest, fire->first);
	report_result(run, TWHEEL_BENCH_EXPIRE, fire->last - fire->first, taken);
	return 0;
}

static int run_workload(struct run *run, u32 workload)
{
	const struct bench_scheme *scheme = run->scheme;
	unsigned long nr = run->work.nr;

	switch (workload) {
	case TWHEEL_BENCH_ADD:
		return run_simple(run, workload, bench_work_timeouts, scheme->add, 0, nr);
	case TWHEEL_BENCH_REARM_LATER:
		return run_simple(run, workload, bench_work_later, scheme->rearm, nr, nr);
	case TWHEEL_BENCH_REARM_EARLIER:
		return run_simple(run, workload, bench_work_earlier, scheme->rearm, nr, nr);
	case TWHEEL_BENCH_CANCEL:
		return run_simple(run, workload, NULL, scheme->cancel, nr, 0);
	case TWHEEL_BENCH_EXPIRE:
		return run_expire(run);
	case TWHEEL_BENCH_RMW:
		return run_simple(run, workload, NULL, scheme->rmw, 0, 0);
	}
	return 0;
}

/*
 * Only the second pass is measured. The first one allocates memory, unless the scheme still has it
 * from before; it may have given some of that back meanwhile.
 */
static int warm_up(struct run *run)
{
	u32 workload;
	int ret = 0;

	for (workload = TWHEEL_BENCH_ADD; !ret && workload <= TWHEEL_BENCH_CANCEL; workload++)
		if (run->scheme->workloads & BIT(workload))
			ret = run_workload(run, workload);
	return ret;
}

/* Runs all workloads of the scheme, in order, up to the last one that was requested. */
static int run_workloads(struct run *run)
{
	int ret = warm_up(run);
	u32 workload;

	for (workload = 0; !ret && run->req->workloads >> workload; workload++) {
		if (!(run->scheme->workloads & BIT(workload)))
			continue;
		if (workload == TWHEEL_BENCH_EXPIRE && !is_requested(run, workload))
			continue;
		ret = run_workload(run, workload);
	}
	return ret;
}

/**
 * bench_run - measure a scheme
 * @scheme:	the scheme
 * @req:	the request, which receives the results
 *
 * Context: process; the caller stays on its CPU.
 * Return: 0, -ENOMEM or -EINTR.
 */
int bench_run(const struct bench_scheme *scheme, struct twheel_bench_run *req)
{
	struct run run = { .scheme = scheme, .req = req };
	int ret;

	ret = bench_begin(scheme, &run.work, req->nr_timers,
			  req->order == TWHEEL_BENCH_RANDOM, req->seed, 1);
	if (ret)
		return ret;
	/* No deadlines have been set yet. */
	run.work.earliest = U64_MAX;
	run.clock_ps = bench_clock_ps();
	req->cpu = smp_processor_id();
	ret = run_workloads(&run);
	if (ret > 0) {
		memset(req->result, 0, sizeof(req->result));
		ret = 0;
	}
	bench_end(scheme, &run.work);
	return ret;
}
