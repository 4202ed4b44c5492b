// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: checks that a scheme works
 *
 * A random sequence of operations is run on a scheme's timers and on a model of
 * them, which is a state and a deadline in each object. For the result to be the
 * same with every scheme, however late its timers are, no timer may come due while
 * it is being operated on. So there are rounds: all operations of a round are done
 * before the first deadline, the round's origin; then timers with distant deadlines
 * are cancelled, and the run waits for those that are due soon. Some timers are
 * armed with a deadline in the past; these are left alone for the rest of the round.
 *
 * How late a timer is says as much about the machine as about the scheme. But what holds up one
 * timer holds up all others: a timer is late if another one, whose deadline is later by more than
 * the scheme rounds, has expired before it. If a scheme has all its timers late by the same, the
 * least late of them tells.
 *
 * If the operations are not done by the origin, the round is repeated with more
 * time. Deadlines count from the origin, so this does not change the result.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "bench.h"

#define ROUNDS		4
#define OPS_PER_TIMER	8

/*
 * Deadlines: range of the near ones, and of those which are several turns of a wheel away; how far
 * timers are moved later; what is waited for; range of the distant ones.
 */
#define NEAR_SPREAD	(60U * NSEC_PER_MSEC)
#define TURNS_SPREAD	(900U * NSEC_PER_MSEC)
#define LATER_SPREAD	(30U * NSEC_PER_MSEC)
#define WAITED_LIMIT	(1000U * NSEC_PER_MSEC)
#define FAR_MIN		(60ULL * NSEC_PER_SEC)
#define FAR_SPREAD	(60ULL * NSEC_PER_SEC)
#define PAST_SPREAD	(1U * NSEC_PER_MSEC)

/* Time for the operations of a round: initial, and maximum. */
#define LEAD_MIN	(20 * NSEC_PER_MSEC)
#define LEAD_MAX	(20 * NSEC_PER_SEC)

/* How long to wait after the last deadline: for repeated callbacks, and for late ones. */
#define GRACE		(20 * NSEC_PER_MSEC)
#define LATE_MAX	(10 * NSEC_PER_SEC)

/*
 * Schemes with ticks of their own tick so many times as fast, so that what has to wait for several
 * turns of a wheel does so in a round: the longest is go-zero's, of 300 ms then.
 */
#define SPEED		1000

/* struct bench_obj::state: the timer is armed; the timer is left alone in this round. */
#define ARMED		BIT(0)
#define HANDS_OFF	BIT(1)

/**
 * struct bench_check - a self-check
 * @scheme:	the scheme
 * @req:	the request, which receives the results. The callbacks count in it
 * @work:	the objects, and the random numbers
 * @one:	a pass of one object
 * @order:	the order of @one
 * @when:	the deadline of @one
 * @begun:	when the round began, in nanoseconds
 * @origin:	no timer that is operated on is due before this
 * @latest:	the latest deadline of the timers that have expired in this round
 */
struct bench_check {
	const struct bench_scheme	*scheme;
	struct twheel_bench_check	*req;
	struct bench_work		work;
	struct bench_pass		one;
	u32				order;
	u64				when;
	u64				begun;
	u64				origin;
	u64				latest;
};

/* The check in progress. */
static struct bench_check *current_check;

/**
 * bench_mix_bits - mix the bits of a number, for checksums
 * @x:		the number
 *
 * Return: another number, of which each bit depends on all bits of @x.
 */
u64 bench_mix_bits(u64 x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	return x ^ (x >> 32);
}

/* Notes how late a timer is, compared with others. */
static void note_lateness(struct bench_check *check, u64 deadline, u64 now)
{
	const struct bench_scheme *scheme = check->scheme;
	u64 slack = scheme->slack ? scheme->slack(deadline - check->begun) : 0;
	u64 due = deadline + slack;

	if (check->latest > due && !scheme->unordered)
		check->req->late++;
	check->latest = max(check->latest, deadline);
	check->req->least_late_ns = min(check->req->least_late_ns, now - min(now, due));
}

/* Called by each callback, in softirq context. */
static void check_fired(struct bench_obj *obj)
{
	struct bench_check *check = current_check;
	u64 from = obj->state & HANDS_OFF ? check->begun : check->origin;
	struct twheel_bench_check *req = check->req;
	u64 now = ktime_get_ns();

	if (now < obj->deadline)
		req->early++;
	if (!(obj->state & ARMED))
		req->stray++;
	if (!(obj->state & HANDS_OFF))
		note_lateness(check, obj->deadline, now);
	obj->state &= ~ARMED;
	req->checksum += bench_mix_bits(bench_mix_bits(obj - check->work.pass.objs) +
					obj->deadline - from);
	/* Pairs with the READ_ONCE() in wait_expected(). */
	WRITE_ONCE(req->fired, req->fired + 1);
}

/* Runs one operation; @armed is whether its timer should have been armed before. */
static void apply_op(struct bench_check *check, bench_batch *op, struct bench_obj *obj,
		     bool armed)
{
	check->order = obj - check->one.objs;
	check->when = obj->deadline;
	if (check->scheme->convert)
		check->scheme->convert(&check->one, 0, 1);
	if (op(&check->one, 0, 1) != armed)
		check->req->wrong++;
	check->req->ops++;
}

static u32 random_below(struct bench_check *check, u32 limit)
{
	return mul_u32_u32(prandom_u32_state(&check->work.rnd), limit) >> 32;
}

static u64 draw_deadline(struct bench_check *check)
{
	u32 kind = random_below(check, 16);
	u32 random;

	if (kind < 11)
		return check->origin + random_below(check, NEAR_SPREAD);
	if (kind == 11)
		return check->origin + random_below(check, TURNS_SPREAD);
	random = prandom_u32_state(&check->work.rnd);
	return check->origin + FAR_MIN + mul_u64_u32_shr(FAR_SPREAD, random, 32);
}

static u64 draw_earlier_deadline(struct bench_check *check, u64 deadline)
{
	u64 distance = min_t(u64, deadline - check->origin, NEAR_SPREAD);

	return check->origin + random_below(check, distance);
}

static void operate_on_armed(struct bench_check *check, struct bench_obj *obj)
{
	switch (random_below(check, 8)) {
	case 0 ... 2:
		obj->deadline += random_below(check, LATER_SPREAD);
		apply_op(check, check->scheme->rearm, obj, true);
		break;
	case 3 ... 5:
		obj->deadline = draw_earlier_deadline(check, obj->deadline);
		apply_op(check, check->scheme->rearm, obj, true);
		break;
	default:
		apply_op(check, check->scheme->cancel, obj, true);
		obj->state &= ~ARMED;
	}
}

static void operate_on_idle(struct bench_check *check, struct bench_obj *obj)
{
	switch (random_below(check, 16)) {
	case 0:
		apply_op(check, check->scheme->cancel, obj, false);
		break;
	case 1:
		obj->state |= HANDS_OFF | ARMED;
		obj->deadline = check->begun - random_below(check, PAST_SPREAD);
		apply_op(check, check->scheme->add, obj, false);
		break;
	case 2 ... 3:
		obj->state |= ARMED;
		obj->deadline = draw_deadline(check);
		apply_op(check, check->scheme->rearm, obj, false);
		break;
	default:
		obj->state |= ARMED;
		obj->deadline = draw_deadline(check);
		apply_op(check, check->scheme->add, obj, false);
	}
}

static int run_ops(struct bench_check *check)
{
	struct bench_work *work = &check->work;
	struct bench_obj *obj;
	unsigned long i;
	int ret;

	for (i = 0; i < work->nr * OPS_PER_TIMER; i++) {
		obj = &work->pass.objs[random_below(check, work->nr)];
		if (obj->state & HANDS_OFF)
			continue;
		if (obj->state & ARMED)
			operate_on_armed(check, obj);
		else
			operate_on_idle(check, obj);
		ret = bench_pause_at(i);
		if (ret)
			return ret;
	}
	return 0;
}

/* Cancels timers with distant deadlines, and counts the rest. Returns their last deadline. */
static u64 count_expected(struct bench_check *check)
{
	u64 last = check->origin;
	struct bench_obj *obj;
	unsigned long i;

	for (i = 0; i < check->work.nr; i++) {
		obj = &check->work.pass.objs[i];
		if (obj->state & HANDS_OFF) {
			check->req->expected++;
		} else if (!(obj->state & ARMED)) {
			continue;
		} else if (obj->deadline > check->origin + WAITED_LIMIT) {
			apply_op(check, check->scheme->cancel, obj, true);
			obj->state &= ~ARMED;
		} else {
			check->req->expected++;
			last = max(last, obj->deadline);
		}
	}
	return last;
}

/* Waits for the expected callbacks, and for any unexpected ones. Returns 0 or -EINTR. */
static int wait_expected(const struct bench_check *check, u64 last)
{
	/* Pairs with the WRITE_ONCE() in check_fired(). */
	while (ktime_get_ns() < last + GRACE ||
	       (READ_ONCE(check->req->fired) < check->req->expected &&
		ktime_get_ns() < last + LATE_MAX)) {
		schedule_timeout_killable(1);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/* Ends a round, in which no timer should still be armed. */
static int finish_round(struct bench_check *check)
{
	struct bench_work *work = &check->work;
	unsigned long pending, i;
	int ret;

	ret = bench_batches(work, check->scheme->pending, &pending);
	if (ret)
		return ret;
	check->req->left += pending;
	bench_stop(check->scheme, work);
	for (i = 0; i < work->nr; i++) {
		if (work->pass.objs[i].state & ARMED)
			check->req->missing++;
		work->pass.objs[i].state = 0;
	}
	return 0;
}

/* Runs a round. Returns 0, -EINTR, or -ETIME if the operations took longer than @lead. */
static int run_round(struct bench_check *check, u64 lead)
{
	u64 last;
	int ret;

	check->latest = 0;
	check->begun = ktime_get_ns();
	check->origin = check->begun + lead;
	ret = run_ops(check);
	if (ret)
		return ret;
	last = count_expected(check);
	if (ktime_get_ns() >= check->origin)
		return -ETIME;
	ret = wait_expected(check, last);
	if (ret)
		return ret;
	return finish_round(check);
}

static void reset_round(struct bench_check *check)
{
	unsigned long i;

	bench_stop(check->scheme, &check->work);
	for (i = 0; i < check->work.nr; i++)
		check->work.pass.objs[i].state = 0;
}

static int run_rounds(struct bench_check *check)
{
	struct twheel_bench_check req;
	struct rnd_state rnd;
	u64 lead = LEAD_MIN;
	unsigned int round;
	int ret = 0;

	for (round = 0; !ret && round < ROUNDS; round++) {
		req = *check->req;
		rnd = check->work.rnd;
		while ((ret = run_round(check, lead)) == -ETIME && lead < LEAD_MAX) {
			reset_round(check);
			*check->req = req;
			check->work.rnd = rnd;
			lead *= 2;
		}
	}
	return ret;
}

/**
 * bench_check_run - check that a scheme works
 * @scheme:	a scheme that has timers
 * @req:	the request, which receives the results
 *
 * Context: process; the caller stays on its CPU.
 * Return: 0, -ENOMEM, -EINTR or -ETIME.
 */
int bench_check_run(const struct bench_scheme *scheme, struct twheel_bench_check *req)
{
	struct bench_check check = { .scheme = scheme, .req = req };
	int ret;

	ret = bench_begin(scheme, &check.work, req->nr_timers, false, req->seed, SPEED);
	if (ret)
		return ret;
	check.one.objs = check.work.pass.objs;
	check.one.order = &check.order;
	check.one.when = &check.when;
	req->least_late_ns = U64_MAX;
	current_check = &check;
	bench_fire_start(0, check_fired);
	ret = run_rounds(&check);
	bench_end(scheme, &check.work);
	return ret;
}
