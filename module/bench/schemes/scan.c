// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: no data structure at all
 *
 * A timer is a deadline in its object. Once a second, all objects are looked at, as servers do with
 * their connections. They are here in one array, in the order of memory, which is the best case.
 */
#include <linux/minmax.h>

#include "alarm.h"
#include "bench.h"
#include "ticker.h"

/* How many objects are looked at in one softirq. */
#define BATCH		65536

/* A timer that is not armed has this deadline. */
#define NEVER		KTIME_MAX

static struct {
	struct bench_ticker	ticker;
	/* Constant. */
	struct bench_obj	*objs;
	unsigned long		nr;
	/* Guarded by the ticker's lock: where the scan goes on, and what it takes as now. */
	unsigned long		next;
	u64			now;
} scan;

static void object_fired(struct bench_scan_node *node)
{
	bench_fired(container_of(node, struct bench_obj, scan));
}

static void call(struct bench_scan_node *node)
{
	/* Pairs with the READ_ONCE() in is_armed(). */
	WRITE_ONCE(node->deadline, NEVER);
	spin_unlock(&scan.ticker.lock);
	node->function(node);
	spin_lock(&scan.ticker.lock);
}

/* Looks at some objects. Returns true if that was not all of them. */
static bool scan_some(void)
{
	unsigned long end = min(scan.next + BATCH, scan.nr);
	unsigned int left = BENCH_BUDGET;
	struct bench_scan_node *node;

	while (scan.next < end && left) {
		node = &scan.objs[scan.next++].scan;
		if (node->deadline > scan.now)
			continue;
		call(node);
		left--;
	}
	return scan.next < scan.nr;
}

static enum hrtimer_restart handle_tick(struct hrtimer *hrtimer)
{
	enum hrtimer_restart restart;
	bool more;

	spin_lock(&scan.ticker.lock);
	if (!scan.next) {
		scan.now = ktime_get_ns();
		scan.ticker.tick = bench_ticker_now(&scan.ticker);
	}
	more = scan_some();
	if (!more)
		scan.next = 0;
	restart = bench_ticker_next(&scan.ticker, more);
	spin_unlock(&scan.ticker.lock);
	return restart;
}

static bool is_armed(const struct bench_scan_node *node)
{
	/* Pairs with the WRITE_ONCE()s in call() and set_deadline(). */
	return READ_ONCE(node->deadline) != NEVER;
}

static int set_deadline(struct bench_scan_node *node, u64 deadline)
{
	int pending;

	spin_lock_bh(&scan.ticker.lock);
	pending = is_armed(node);
	bench_ticker_start(&scan.ticker, false);
	/* Pairs with the READ_ONCE() in is_armed(). */
	WRITE_ONCE(node->deadline, deadline);
	spin_unlock_bh(&scan.ticker.lock);
	return pending;
}

static int setup_scan(const struct bench_work *work)
{
	scan.objs = work->pass.objs;
	scan.nr = work->nr;
	scan.next = 0;
	bench_ticker_init(&scan.ticker, NSEC_PER_SEC / work->speed, handle_tick);
	return 0;
}

static void teardown_scan(void)
{
	bench_ticker_stop(&scan.ticker);
}

/* A scan calls all that is due when it begins. */
static u64 align_expiry(u64 ns)
{
	return bench_ticker_align(&scan.ticker, ns);
}

static u64 slack_of(u64 timeout)
{
	return scan.ticker.period;
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	obj->scan.deadline = NEVER;
	obj->scan.function = object_fired;
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	return set_deadline(&obj->scan, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return set_deadline(&obj->scan, NEVER);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return is_armed(&obj->scan);
}

static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	int found = cancel_one(obj, when);

	bench_ticker_stop(&scan.ticker);
	return found;
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

DEFINE_BENCH_SCHEME(scan,
		    .object_size = sizeof(struct bench_scan_node),
		    .rearm = add_batch,
		    .align = align_expiry,
		    .slack = slack_of,
		    .unordered = true,
		    .setup = setup_scan,
		    .teardown = teardown_scan);
