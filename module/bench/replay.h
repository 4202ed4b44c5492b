/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel_bench: replaying a trace of operations with a scheme
 *
 * replay.c is the run, replay_ops.c does the operations, replay_fired.c is what callbacks do.
 */
#ifndef _TWHEEL_BENCH_REPLAY_H
#define _TWHEEL_BENCH_REPLAY_H

#include <linux/completion.h>
#include <linux/types.h>

#include "bench.h"

/*
 * The model's deadline of a timer: its time, in nanoseconds of the trace; with this bit, it has
 * expired; or it is not armed.
 */
#define BENCH_EXPIRED	BIT_ULL(63)
#define BENCH_NO_TIMER	U64_MAX

/* Lateness is counted in buckets, of which there are so many for a doubling. */
#define BENCH_LATE_BITS		5
#define BENCH_LATE_STEPS	(1U << BENCH_LATE_BITS)
#define BENCH_LATE_BUCKETS	((64 - BENCH_LATE_BITS + 1) * BENCH_LATE_STEPS)

/**
 * struct bench_replay_batch - the operations of one kind in a slice
 * @order:	numbers of the objects
 * @when:	their deadlines, in nanoseconds of CLOCK_MONOTONIC
 * @nr:		how many there are
 * @ops:	how many have been measured
 * @batches:	in how many batches
 * @time_ns:	how long these took
 */
struct bench_replay_batch {
	u32			*order;
	u64			*when;
	unsigned long		nr;
	u64			ops;
	u64			batches;
	u64			time_ns;
};

/**
 * struct bench_replay - a replay
 * @scheme:	the scheme
 * @req:	the request, which receives the results
 * @work:	the objects; its @deadline is the model
 * @origin:	when the trace begins, in nanoseconds of CLOCK_MONOTONIC
 * @chunk:	some of the operations, copied from the program
 * @chunk_from:	number of the first of them
 * @chunk_nr:	how many they are
 * @next:	number of the operation that is next
 * @time:	time of the last operation, in nanoseconds of the trace
 * @measure:	operations are measured
 * @call_ps:	what measuring a batch costs, in picoseconds
 * @batch:	the current slice, by kind
 * @stamp:	by object, number of the last slice that had an operation on it
 * @slice:	number of the current slice
 * @earliest:	earliest deadline that the current slice moves or cancels, in nanoseconds of
 *		CLOCK_MONOTONIC
 * @armed:	timers armed, less those cancelled
 * @expected:	number of timers with deadlines within the trace
 * @sampled_at:	when memory was last sampled
 * @cpu:	CPU time at the beginning
 * @called:	number of callbacks. This and all below is written by them
 * @fired:	number of callbacks of timers with deadlines within the trace
 * @awaited:	@done is completed at this number of callbacks
 * @done:	all expected callbacks have come
 * @early:	number of callbacks before the deadline
 * @stray:	number of callbacks of timers that were not armed
 * @fault_object: object of the first of these callbacks
 * @fault_due:	deadline of that, in nanoseconds of CLOCK_MONOTONIC
 * @fault_at:	when it was
 * @last_at:	when the last expected callback was
 * @late_max:	lateness of the latest callback, in nanoseconds
 * @late:	number of callbacks, by bucket of lateness
 */
struct bench_replay {
	const struct bench_scheme	*scheme;
	struct twheel_bench_replay	*req;
	struct bench_work		work;
	u64				origin;
	struct twheel_bench_op		*chunk;
	u64				chunk_from;
	u64				chunk_nr;
	u64				next;
	u64				time;
	bool				measure;
	u64				call_ps;
	struct bench_replay_batch	batch[TWHEEL_BENCH_NR_OP_KINDS];
	u32				*stamp;
	u32				slice;
	u64				earliest;
	u64				armed;
	u64				expected;
	u64				sampled_at;
	struct bench_cpu_use		cpu;
	u64				called;
	u64				fired;
	u64				awaited;
	struct completion		done;
	u64				early;
	u64				stray;
	u32				fault_object;
	u64				fault_due;
	u64				fault_at;
	u64				last_at;
	u64				late_max;
	u32				late[BENCH_LATE_BUCKETS];
};

/* replay_fired.c */
void bench_replay_watch(struct bench_replay *replay);
int bench_replay_check_fired(struct bench_replay *replay);
u64 bench_replay_late(const struct bench_replay *replay, unsigned int permille);

/* replay_ops.c */
int bench_replay_peek(struct bench_replay *replay, const struct twheel_bench_op **op);
int bench_replay_take(struct bench_replay *replay, const struct twheel_bench_op *op);
int bench_replay_flush(struct bench_replay *replay);

/* replay.c */
int bench_replay_fault(struct bench_replay *replay, u32 what, u32 object, u64 expected, u64 found);

/* Without timers, nothing expires. */
static inline bool bench_replay_has_timers(const struct bench_replay *replay)
{
	return replay->scheme->add;
}

#endif /* _TWHEEL_BENCH_REPLAY_H */
