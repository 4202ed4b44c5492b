// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: the objects of a run, their order, and their deadlines. All of this
 * is generated before the clock starts, and is the same for all schemes that are run
 * with the same seed.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "bench.h"

#define TIMEOUT_MIN	(60 * NSEC_PER_SEC)
#define TIMEOUT_SPREAD	(60 * NSEC_PER_SEC)
#define LATER		(30 * NSEC_PER_SEC)

/*
 * When expiry is measured, all timers are due within this time: short enough that in
 * any scheme all of them are due when the first callback comes, and long enough that
 * a million of them have different deadlines.
 */
#define BURST_SPREAD	(500 * NSEC_PER_USEC)

/*
 * A burst is due this many ticks after the wheel reaches a slot of its second level,
 * where timers are until shortly before they are due. So the wheel has to cascade
 * them once, as it does with any user's timers, just before they expire. If the burst
 * were in the slot's first tick, they would not be cascaded.
 */
#define BURST_TICK	4

/* Number of slots in a level of the wheel, as a power of two. */
#define LEVEL_BITS	6

/*
 * How long before that slot the run wakes up to watch, in ticks. A busy machine may wake it
 * some milliseconds late.
 */
#define BURST_MARGIN	8

/**
 * bench_alloc - allocate zeroed memory, in large pages if possible
 * @nr:		number of elements
 * @size:	size of an element
 *
 * Return: the memory, to be freed by kvfree(), or NULL.
 */
void *bench_alloc(size_t nr, size_t size)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	size_t bytes = array_size(nr, size);

	if (bytes >= PMD_SIZE)
		return vmalloc_huge(bytes, gfp);
	/* Contiguous memory is mapped by the kernel's own large pages. */
	return kvmalloc(bytes, gfp);
}

/**
 * bench_seed - start a sequence of random numbers
 * @rnd:	the generator
 * @seed:	any number
 */
void bench_seed(struct rnd_state *rnd, u64 seed)
{
	/* The generator starts almost the same sequence for close seeds. */
	seed = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	seed ^= seed >> 29;
	prandom_seed_state(rnd, seed * 0xbf58476d1ce4e5b9ULL);
}

/**
 * bench_work_init - create the objects and arrays of a run
 * @work:	filled in
 * @nr:		number of objects
 * @random:	whether to visit them in random order
 * @seed:	seed of the random numbers
 *
 * Context: process.
 * Return: 0, -ENOMEM or -EINTR. If it is not 0, there is nothing to free.
 */
int bench_work_init(struct bench_work *work, unsigned long nr, bool random, u64 seed)
{
	struct bench_pass *pass = &work->pass;
	unsigned long i;

	memset(work, 0, sizeof(*work));
	work->nr = nr;
	work->random = random;
	bench_seed(&work->rnd, seed);
	pass->objs = bench_alloc(nr, sizeof(*pass->objs));
	pass->order = bench_alloc(nr, sizeof(*pass->order));
	pass->when = bench_alloc(nr, sizeof(*pass->when));
	work->deadline = bench_alloc(nr, sizeof(*work->deadline));
	if (!pass->objs || !pass->order || !pass->when || !work->deadline) {
		bench_work_destroy(work);
		return -ENOMEM;
	}
	for (i = 0; i < nr; i++)
		pass->order[i] = i;
	return 0;
}

/**
 * bench_work_destroy - free the objects and arrays of a run
 * @work:	the work
 *
 * Context: process.
 */
void bench_work_destroy(struct bench_work *work)
{
	kvfree(work->deadline);
	kvfree(work->pass.when);
	kvfree(work->pass.order);
	kvfree(work->pass.objs);
}

static u32 random_below(struct bench_work *work, u32 limit)
{
	return mul_u32_u32(prandom_u32_state(&work->rnd), limit) >> 32;
}

/**
 * bench_work_shuffle - reorder the objects, if their order is random
 * @work:	the work
 *
 * Return: 0 or -EINTR.
 */
int bench_work_shuffle(struct bench_work *work)
{
	u32 *order = work->pass.order;
	unsigned long i;
	u32 other;
	int ret;

	if (!work->random)
		return 0;
	for (i = work->nr - 1; i; i--) {
		other = random_below(work, i + 1);
		swap(order[i], order[other]);
		ret = bench_pause_at(i);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Gives each object, in the order of the pass, the deadline that @next computes from
 * its last one, the current time and a random number.
 */
static __always_inline int
set_deadlines(struct bench_work *work, u64 now, u64 (*next)(u64 last, u64 now, u32 random))
{
	const u32 *order = work->pass.order;
	u64 earliest = U64_MAX, *deadline;
	unsigned long k;
	int ret;

	for (k = 0; k < work->nr; k++) {
		deadline = &work->deadline[order[k]];
		*deadline = next(*deadline, now, prandom_u32_state(&work->rnd));
		earliest = min(earliest, *deadline);
		work->pass.when[k] = *deadline;
		ret = bench_pause_at(k);
		if (ret)
			return ret;
	}
	work->earliest = earliest;
	return 0;
}

static __always_inline u64 draw_timeout(u64 last, u64 now, u32 random)
{
	return now + TIMEOUT_MIN + mul_u64_u32_shr(TIMEOUT_SPREAD, random, 32);
}

static __always_inline u64 move_later(u64 last, u64 now, u32 random)
{
	return last + LATER;
}

static __always_inline u64 move_earlier(u64 last, u64 now, u32 random)
{
	return now + (last - now) / 2;
}

static __always_inline u64 draw_burst(u64 last, u64 now, u32 random)
{
	return now + (mul_u32_u32(random, BURST_SPREAD) >> 32);
}

/**
 * bench_work_timeouts - set deadlines for new timeouts
 * @work:	the work
 *
 * Return: 0 or -EINTR.
 */
int bench_work_timeouts(struct bench_work *work)
{
	return set_deadlines(work, ktime_get_ns(), draw_timeout);
}

/**
 * bench_work_later - move all deadlines to a later time
 * @work:	the work
 *
 * Return: 0 or -EINTR.
 */
int bench_work_later(struct bench_work *work)
{
	return set_deadlines(work, ktime_get_ns(), move_later);
}

/**
 * bench_work_earlier - move all deadlines to an earlier time
 * @work:	the work
 *
 * Return: 0 or -EINTR.
 */
int bench_work_earlier(struct bench_work *work)
{
	return set_deadlines(work, ktime_get_ns(), move_earlier);
}

/**
 * bench_burst_start - choose when to start arming timers for a burst
 * @lead:	how long before the burst, in nanoseconds
 *
 * Timers armed across a slot boundary of the wheel's third level are cascaded twice.
 * Whether they are would depend on the time of the run, so the burst never crosses
 * that boundary, unless @lead is too long.
 *
 * Return: the current time, or the time to wait for, in nanoseconds.
 */
u64 bench_burst_start(u64 lead)
{
	u64 near = 1ULL << (twheel_tick_shift() + LEVEL_BITS);
	u64 far = near << LEVEL_BITS;
	u64 now = ktime_get_ns();

	if (lead + 2 * near < far && now % far + lead + 2 * near >= far)
		return round_up(now, far);
	return now;
}

/**
 * bench_work_burst - set all deadlines to about the same time
 * @work:	the work
 * @start:	earliest time, in nanoseconds
 * @align:	the scheme's @align
 *
 * Return: 0 or -EINTR.
 */
int bench_work_burst(struct bench_work *work, u64 start, u64 (*align)(u64 ns))
{
	u64 tick = 1ULL << twheel_tick_shift();
	u64 slot = round_up(start, tick << LEVEL_BITS);
	u64 when = slot + BURST_TICK * tick;
	unsigned long k;
	int ret;

	work->busy_from = slot;
	work->wake_at = slot - BURST_MARGIN * tick;
	/* A deadline on the edge of a tick would expire in a tick of its own. */
	ret = set_deadlines(work, when + 1, draw_burst);
	if (ret || !align)
		return ret;
	when = align(when + BURST_SPREAD);
	for (k = 0; k < work->nr; k++)
		work->pass.when[k] = when;
	work->busy_from = when - BURST_TICK * tick;
	work->wake_at = work->busy_from - BURST_MARGIN * tick;
	return 0;
}
