// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API: slow callbacks, which must give others a turn
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "lib/compat.h"
#include "test.h"

#define TIMERS		1000
#define CALLBACK_US	100

/* A softirq has to end after 2 ms plus a batch of 32 chunks with 6 timers each. */
#define MOST		(2000 / CALLBACK_US + 32 * 6)

/* From the first callback to the last: after all softirqs but the first, a rest just as long. */
#define LEAST_NS	(3ULL * TIMERS * CALLBACK_US * NSEC_PER_USEC / 2)

/* But a rest is never longer than the work before it, nor longer than 4 ms. */
#define REST_NS		(4ULL * NSEC_PER_MSEC)

/* Shorter than a rest, and longer than any other gap between two callbacks. */
#define SLACK_NS	(1ULL * NSEC_PER_MSEC)

/*
 * What may come on top of a rest, in simulated time: other softirqs and interrupts. These take
 * longer on a kernel that checks all locks.
 */
#define MAX_EXCESS_NS	((IS_ENABLED(CONFIG_PROVE_LOCKING) ? 4ULL : 1ULL) * NSEC_PER_MSEC)

/**
 * struct turns - slow timers and a competitor, on one CPU
 * @other:	the competitor: runs every millisecond, in softirqs like those of the wheel
 * @timers:	all due at the same time
 * @called:	number of timers called
 * @first:	when the first was called
 * @last:	when the last was called
 * @begun:	when the first was called after a rest
 * @rest:	the longest rest
 * @excess:	by how much a rest exceeded its limit, at most
 * @had:	how many times @other has run
 * @in_a_row:	timers called since then
 * @most:	the maximum of @in_a_row
 * @failures:	calls that returned the wrong value
 * @done:	@other does not run any more
 *
 * Softirqs write this on one CPU only, where they run one at a time.
 */
struct turns {
	struct hrtimer		other;
	struct twheel_timer	timers[TIMERS];
	atomic_t		called;
	u64			first;
	u64			last;
	u64			begun;
	u64			rest;
	u64			excess;
	unsigned int		had;
	unsigned int		in_a_row;
	unsigned int		most;
	unsigned int		failures;
	bool			done;
};

static struct turns turns;

static void spin_callback(void)
{
	const u64 end = in_ns(CALLBACK_US * NSEC_PER_USEC);

	/* By this clock: udelay() may be calibrated badly in a guest. */
	while (ktime_get_ns() < end)
		cpu_relax();
}

/* A callback begins. If there was a rest, checks how long it was. */
static void note_rest(u64 now)
{
	const u64 rest = now - turns.last, most = min(turns.last - turns.begun, REST_NS);

	if (!turns.first) {
		turns.begun = now;
	} else if (rest > SLACK_NS) {
		WRITE_ONCE(turns.rest, max(turns.rest, rest));
		WRITE_ONCE(turns.excess, max(turns.excess, rest - min(rest, most)));
		turns.begun = now;
	}
}

static void slow_called(struct twheel_timer *timer)
{
	note_rest(ktime_get_ns());
	spin_callback();
	WRITE_ONCE(turns.in_a_row, turns.in_a_row + 1);
	WRITE_ONCE(turns.most, max(turns.most, turns.in_a_row));
	WRITE_ONCE(turns.last, ktime_get_ns());
	if (!turns.first)
		WRITE_ONCE(turns.first, turns.last);
	atomic_inc(&turns.called);
}

static enum hrtimer_restart other_fired(struct hrtimer *hrtimer)
{
	WRITE_ONCE(turns.had, turns.had + 1);
	WRITE_ONCE(turns.in_a_row, 0);
	if (READ_ONCE(turns.done))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(hrtimer, NSEC_PER_MSEC);
	return HRTIMER_RESTART;
}

static void start_turns(void *unused)
{
	const u64 deadline = in_ns(50 * NSEC_PER_MSEC);
	unsigned int i;

	hrtimer_setup(&turns.other, other_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
	hrtimer_start(&turns.other, NSEC_PER_MSEC, HRTIMER_MODE_REL_PINNED_SOFT);
	for (i = 0; i < TIMERS; i++) {
		twheel_timer_init(&turns.timers[i], slow_called);
		turns.failures += twheel_add(&turns.timers[i], deadline) != 0;
	}
}

void test_turns(void)
{
	unsigned int i;
	u64 took;

	memset(&turns, 0, sizeof(turns));
	on_cpu(other_cpu(), start_turns, NULL);
	EXPECT(turns.failures == 0);
	EXPECT(WAIT_FOR(atomic_read(&turns.called) == TIMERS));
	took = READ_ONCE(turns.last) - READ_ONCE(turns.first);
	pr_info("%u of %u callbacks in a row, in %llu us; others had %u turns; rests of up to %llu us, too long by %llu\n",
		READ_ONCE(turns.most), TIMERS, div_u64(took, NSEC_PER_USEC),
		READ_ONCE(turns.had), div_u64(READ_ONCE(turns.rest), NSEC_PER_USEC),
		div_u64(READ_ONCE(turns.excess), NSEC_PER_USEC));
	EXPECT(READ_ONCE(turns.most) <= MOST);
	EXPECT(took >= LEAST_NS);
	/* A stalled host makes a rest longer. */
	EXPECT(!simulated || READ_ONCE(turns.excess) <= MAX_EXCESS_NS);
	WRITE_ONCE(turns.done, true);
	hrtimer_cancel(&turns.other);
	for (i = 0; i < TIMERS; i++)
		twheel_cancel_sync(&turns.timers[i]);
}

/* Timers that re-arm themselves, for a time long past, until there were that many calls. */
#define PUSHY		200
#define CALLS		5000

/* Less than it takes to call all of them once. */
#define OTHER_NS	(10 * NSEC_PER_MSEC)

/**
 * struct pushing - timers that make another one wait, on one CPU
 * @timers:	the timers, all due at the same time
 * @other:	the other one, due OTHER_NS later
 * @calls:	number of calls of @timers
 * @before:	@calls when @other was called; 0 until then
 * @failures:	calls that returned the wrong value
 */
struct pushing {
	struct twheel_timer	timers[PUSHY];
	struct twheel_timer	other;
	atomic_t		calls;
	unsigned int		before;
	unsigned int		failures;
};

static struct pushing pushing;

static void pushing_called(struct twheel_timer *timer)
{
	spin_callback();
	if (atomic_inc_return(&pushing.calls) <= CALLS - PUSHY)
		pushing.failures += twheel_add(timer, 1) != 0;
}

static void other_called(struct twheel_timer *timer)
{
	WRITE_ONCE(pushing.before, atomic_read(&pushing.calls));
}

static void start_pushing(void *unused)
{
	const u64 deadline = in_ns(50 * NSEC_PER_MSEC);
	unsigned int i;

	for (i = 0; i < PUSHY; i++) {
		twheel_timer_init(&pushing.timers[i], pushing_called);
		pushing.failures += twheel_add(&pushing.timers[i], deadline) != 0;
	}
	twheel_timer_init(&pushing.other, other_called);
	pushing.failures += twheel_add(&pushing.other, deadline + OTHER_NS) != 0;
}

/*
 * Timers that are armed late follow those that are overdue by then. Only these precede the other
 * one here: timers called before it is known that callbacks are slow, and timers armed meanwhile.
 */
void test_overdue(void)
{
	unsigned int i;

	memset(&pushing, 0, sizeof(pushing));
	on_cpu(other_cpu(), start_pushing, NULL);
	EXPECT(WAIT_FOR(atomic_read(&pushing.calls) == CALLS));
	pr_info("%u of %u calls before that of another\n", READ_ONCE(pushing.before), CALLS);
	EXPECT(READ_ONCE(pushing.before));
	EXPECT(READ_ONCE(pushing.before) <= 5 * PUSHY);
	EXPECT(pushing.failures == 0);
	for (i = 0; i < PUSHY; i++)
		twheel_cancel_sync(&pushing.timers[i]);
	twheel_cancel_sync(&pushing.other);
}
