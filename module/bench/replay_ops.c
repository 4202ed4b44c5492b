// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the operations of a trace
 *
 * They are gathered into a slice, checked against a model of the timers, and then done as one
 * batch of each kind. A slice has no two operations on one object, so their order in it does
 * not matter.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "replay.h"

static bool is_valid(const struct bench_replay *replay, const struct twheel_bench_op *op)
{
	if (op->kind >= TWHEEL_BENCH_NR_OP_KINDS || op->object >= replay->req->nr_objects ||
	    op->time_ns < replay->time || op->time_ns > replay->req->length_ns)
		return false;
	if (op->kind == TWHEEL_BENCH_OP_CANCEL)
		return !op->deadline_ns;
	return op->deadline_ns >= op->time_ns && op->deadline_ns <= TWHEEL_BENCH_MAX_DEADLINE_NS;
}

/**
 * bench_replay_peek - get the next operation
 * @replay:	the replay
 * @op:		receives it; NULL if there is none
 *
 * Nobody has to wait for the time of an operation that is wrong.
 *
 * Context: process; may sleep.
 * Return: 0, -EFAULT, or -EINVAL if its numbers are out of range.
 */
int bench_replay_peek(struct bench_replay *replay, const struct twheel_bench_op **op)
{
	const struct twheel_bench_op __user *ops = u64_to_user_ptr(replay->req->ops);
	u64 left = replay->req->nr_ops - replay->next;

	*op = NULL;
	if (!left)
		return 0;
	if (replay->next - replay->chunk_from >= replay->chunk_nr) {
		replay->chunk_nr = 0;
		left = min_t(u64, left, BENCH_CHUNK);
		if (copy_from_user(replay->chunk, ops + replay->next, left * sizeof(*ops)))
			return -EFAULT;
		replay->chunk_from = replay->next;
		replay->chunk_nr = left;
	}
	*op = &replay->chunk[replay->next - replay->chunk_from];
	return is_valid(replay, *op) ? 0 : -EINVAL;
}

static bench_batch *batch_of(const struct bench_replay *replay, u32 kind)
{
	const struct bench_scheme *scheme = replay->scheme;

	if (!bench_replay_has_timers(replay))
		return scheme->rmw;
	if (kind == TWHEEL_BENCH_OP_ARM)
		return scheme->add;
	return kind == TWHEEL_BENCH_OP_MOVE ? scheme->rearm : scheme->cancel;
}

/* Does the operations of one kind. Returns how many of the timers were armed. */
static unsigned long run_batch(struct bench_replay *replay, u32 kind)
{
	struct bench_replay_batch *batch = &replay->batch[kind];
	struct bench_pass pass = {
		.objs	= replay->work.pass.objs,
		.order	= batch->order,
		.when	= batch->when,
	};
	u64 start, took, others = bench_cpu_taken();
	bench_batch *op = batch_of(replay, kind);
	unsigned long found;

	if (replay->scheme->convert && kind != TWHEEL_BENCH_OP_CANCEL)
		replay->scheme->convert(&pass, 0, batch->nr);
	start = ktime_get_ns();
	found = op(&pass, 0, batch->nr);
	took = ktime_get_ns() - start;
	if (!replay->measure)
		return found;
	others = bench_cpu_taken() - others;
	batch->time_ns += took - min(took, others);
	batch->ops += batch->nr;
	batch->batches++;
	return found;
}

/* Have operations been done too late to know what they should have found? */
static int check_time(struct bench_replay *replay)
{
	u64 now = ktime_get_ns(), time = replay->origin + replay->time;

	if (now < replay->earliest)
		return 0;
	return bench_replay_fault(replay, TWHEEL_BENCH_TOO_SLOW, 0,
				  replay->earliest - min(replay->earliest, time),
				  now - min(now, time));
}

/**
 * bench_replay_flush - do the operations of the slice, and begin another one
 * @replay:	the replay
 *
 * Context: process.
 * Return: 0, 1 after a fault, or -EINTR.
 */
int bench_replay_flush(struct bench_replay *replay)
{
	unsigned long expected, found, wrong = 0, armed = 0;
	u32 kind;
	int ret;

	for (kind = 0; kind < TWHEEL_BENCH_NR_OP_KINDS; kind++) {
		if (!replay->batch[kind].nr)
			continue;
		found = run_batch(replay, kind);
		expected = kind == TWHEEL_BENCH_OP_ARM ? 0 : replay->batch[kind].nr;
		if (found != expected && !wrong) {
			wrong = expected + 1;
			armed = found;
		}
		replay->batch[kind].nr = 0;
	}
	replay->slice++;
	replay->req->most_armed = max_t(u64, replay->req->most_armed,
					replay->armed - READ_ONCE(replay->called));
	ret = 0;
	if (bench_replay_has_timers(replay)) {
		ret = check_time(replay) ?: bench_replay_check_fired(replay);
		if (!ret && wrong)
			ret = bench_replay_fault(replay, TWHEEL_BENCH_WRONG_VERDICT, 0, wrong - 1,
						 armed);
	}
	replay->earliest = U64_MAX;
	return ret ?: bench_pause();
}

/* Compares an operation with the model. Returns 0, 1 after a fault, or -EINVAL. */
static int check_op(struct bench_replay *replay, const struct twheel_bench_op *op, u64 deadline)
{
	u64 due = deadline & ~BENCH_EXPIRED;
	bool armed = deadline != BENCH_NO_TIMER && due > op->time_ns;
	bool arms = op->kind == TWHEEL_BENCH_OP_ARM;
	int ret;

	/* Whether a trace is possible does not depend on when the scheme's timers expire. */
	if (armed == arms)
		return -EINVAL;
	if (!armed) {
		if (deadline & BENCH_EXPIRED || !bench_replay_has_timers(replay))
			return 0;
		return bench_replay_fault(replay, TWHEEL_BENCH_NOT_FIRED, op->object, deadline,
					  ktime_get_ns() - replay->origin);
	}
	if (!(deadline & BENCH_EXPIRED))
		return 0;
	ret = bench_replay_check_fired(replay);
	if (ret)
		return ret;
	return bench_replay_fault(replay, TWHEEL_BENCH_TOO_SLOW, op->object, due - op->time_ns,
				  ktime_get_ns() - replay->origin - op->time_ns);
}

/* Changes the model. */
static void apply_op(struct bench_replay *replay, const struct twheel_bench_op *op, u64 old)
{
	u64 deadline = op->kind == TWHEEL_BENCH_OP_CANCEL ? BENCH_NO_TIMER : op->deadline_ns;
	struct bench_replay_batch *batch = &replay->batch[op->kind];

	/* BENCH_NO_TIMER is not within the trace. */
	replay->expected += deadline <= replay->req->length_ns;
	if (op->kind != TWHEEL_BENCH_OP_ARM) {
		replay->expected -= old <= replay->req->length_ns;
		replay->earliest = min(replay->earliest, replay->origin + old);
	}
	/* Pairs with the read in replay_fired(), in a softirq of this CPU. */
	WRITE_ONCE(replay->work.deadline[op->object], deadline);
	replay->stamp[op->object] = replay->slice;
	batch->order[batch->nr] = op->object;
	batch->when[batch->nr] = replay->origin + op->deadline_ns;
	batch->nr++;
	replay->armed += (op->kind == TWHEEL_BENCH_OP_ARM) - (op->kind == TWHEEL_BENCH_OP_CANCEL);
}

/**
 * bench_replay_take - add the next operation to the slice
 * @replay:	the replay
 * @op:		the operation, from bench_replay_peek()
 *
 * Does what is in the slice first, if that has an operation on the same object, or is full.
 *
 * Context: process.
 * Return: 0, 1 after a fault, -EINVAL if the operation is not possible, or -EINTR.
 */
int bench_replay_take(struct bench_replay *replay, const struct twheel_bench_op *op)
{
	u64 deadline;
	int ret = 0;

	if (replay->stamp[op->object] == replay->slice ||
	    replay->batch[op->kind].nr == BENCH_CHUNK)
		ret = bench_replay_flush(replay);
	if (ret)
		return ret;
	/* Pairs with the WRITE_ONCE() in replay_fired(). */
	deadline = READ_ONCE(replay->work.deadline[op->object]);
	ret = check_op(replay, op, deadline);
	if (ret)
		return ret;
	apply_op(replay, op, deadline);
	replay->time = op->time_ns;
	replay->next++;
	return 0;
}
