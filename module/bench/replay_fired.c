// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: what the callbacks of a replay check, and count
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "replay.h"

/* The replay in progress. */
static struct bench_replay *current_replay;

static unsigned int bucket_of(u64 late)
{
	unsigned int shift;

	if (late < BENCH_LATE_STEPS)
		return late;
	shift = fls64(late) - 1 - BENCH_LATE_BITS;
	return (shift + 1) * BENCH_LATE_STEPS + (late >> shift) % BENCH_LATE_STEPS;
}

/* The largest lateness that is counted in a bucket. */
static u64 bucket_end(unsigned int bucket)
{
	unsigned int shift = bucket / BENCH_LATE_STEPS;
	u64 step = bucket % BENCH_LATE_STEPS;

	if (!shift)
		return step;
	return ((BENCH_LATE_STEPS + step + 1) << (shift - 1)) - 1;
}

/* Remembers the first callback that should not have come. */
static void note_fault(struct bench_replay *replay, u64 *count, struct bench_obj *obj, u64 due,
		       u64 now)
{
	if (!replay->early && !replay->stray) {
		replay->fault_object = obj - replay->work.pass.objs;
		replay->fault_due = due;
		replay->fault_at = now;
	}
	/* Pairs with the READ_ONCE()s in bench_replay_check_fired(). */
	WRITE_ONCE(*count, *count + 1);
}

static void count_expiry(struct bench_replay *replay, unsigned long object, u64 deadline, u64 now)
{
	u64 due = replay->origin + deadline, late = now - min(now, due);

	replay->late[bucket_of(late)]++;
	replay->late_max = max(replay->late_max, late);
	replay->req->checksum += bench_mix_bits(bench_mix_bits(object) + deadline);
	replay->last_at = now;
	/* Pairs with the READ_ONCE()s in replay.c. */
	WRITE_ONCE(replay->fired, replay->fired + 1);
	if (replay->fired == READ_ONCE(replay->awaited))
		complete(&replay->done);
}

/* Called by each callback, in softirq context, on the CPU of the run. */
static void replay_fired(struct bench_obj *obj)
{
	struct bench_replay *replay = current_replay;
	unsigned long object = obj - replay->work.pass.objs;
	u64 *model = &replay->work.deadline[object];
	u64 deadline = READ_ONCE(*model), now = ktime_get_ns();

	if (deadline & BENCH_EXPIRED) {
		note_fault(replay, &replay->stray, obj, 0, now);
		return;
	}
	if (now < replay->origin + deadline)
		note_fault(replay, &replay->early, obj, replay->origin + deadline, now);
	/* Pairs with the READ_ONCE() in bench_replay_take(). */
	WRITE_ONCE(*model, deadline | BENCH_EXPIRED);
	WRITE_ONCE(replay->called, replay->called + 1);
	if (deadline <= replay->req->length_ns)
		count_expiry(replay, object, deadline, now);
}

/**
 * bench_replay_watch - have callbacks checked and counted, from zero on
 * @replay:	the replay
 *
 * Context: process, with no timer armed.
 */
void bench_replay_watch(struct bench_replay *replay)
{
	replay->req->checksum = 0;
	replay->called = 0;
	replay->fired = 0;
	replay->awaited = U64_MAX;
	replay->early = 0;
	replay->stray = 0;
	replay->last_at = 0;
	replay->late_max = 0;
	memset(replay->late, 0, sizeof(replay->late));
	init_completion(&replay->done);
	current_replay = replay;
	bench_fire_start(0, replay_fired);
}

/**
 * bench_replay_check_fired - have callbacks come that should not have?
 * @replay:	the replay
 *
 * Context: process.
 * Return: 0, or 1 after a fault.
 */
int bench_replay_check_fired(struct bench_replay *replay)
{
	/* Once one of them is set, what else is read stays as it is. */
	if (!READ_ONCE(replay->early) && !READ_ONCE(replay->stray))
		return 0;
	barrier();
	if (replay->fault_due)
		return bench_replay_fault(replay, TWHEEL_BENCH_FIRED_EARLY, replay->fault_object,
					  replay->fault_due - replay->origin,
					  replay->fault_at - replay->origin);
	return bench_replay_fault(replay, TWHEEL_BENCH_FIRED_STRAY, replay->fault_object, 0,
				  replay->stray);
}

/**
 * bench_replay_late - how late a share of all expiries was at most
 * @replay:	the replay
 * @permille:	the share
 *
 * Return: nanoseconds, rounded up to the end of a bucket.
 */
u64 bench_replay_late(const struct bench_replay *replay, unsigned int permille)
{
	u64 wanted = div_u64(replay->fired * permille + 999, 1000), seen = 0;
	unsigned int bucket;

	for (bucket = 0; bucket < BENCH_LATE_BUCKETS; bucket++) {
		seen += replay->late[bucket];
		if (seen >= wanted && seen)
			return min(bucket_end(bucket), replay->late_max);
	}
	return 0;
}
