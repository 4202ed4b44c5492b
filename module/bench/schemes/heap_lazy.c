// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel_bench: a binary heap in which cancelled timers stay until they are due
 *
 * This is how java.util.Timer works, and ScheduledThreadPoolExecutor unless it is told to remove
 * what is cancelled: cancelling only marks a timer, and moving one is cancelling it and adding
 * another. So an operation is cheap, and what it leaves behind is held in memory, and is sifted,
 * until its time comes. Nothing is thrown out before (Timer.purge()) unless no timer is left.
 *
 * An entry is valid if its deadline is that of its timer. Entries are in pages, as there is no
 * bound on how many there are.
 */
#include <linux/minmax.h>
#include <linux/mm.h>

#include "alarm.h"
#include "bench.h"

#define PAGE_ENTRIES	(PAGE_SIZE / sizeof(struct entry))

/* For how many entries of each timer there is room at first: more than bursts make. */
#define FIRST_ENTRIES	256

/* A timer that is not armed has this deadline. */
#define NEVER		KTIME_MAX

struct entry {
	u64			deadline;
	struct bench_lazy_node	*node;
};

static struct {
	struct bench_alarm	alarm;
	/* Guarded by the alarm's lock; only the run itself adds pages. */
	struct entry		**page;
	unsigned long		nr_pages;
	unsigned long		max_pages;
	unsigned long		nr;
	unsigned long		nr_armed;
} heap;

static void object_fired(struct bench_lazy_node *node)
{
	bench_fired(container_of(node, struct bench_obj, lazy));
}

static bool is_armed(const struct bench_lazy_node *node)
{
	/* Pairs with the WRITE_ONCE() in set_deadline(). */
	return READ_ONCE(node->deadline) != NEVER;
}

static int set_deadline(struct bench_lazy_node *node, u64 deadline)
{
	int pending = is_armed(node);

	/* Pairs with the READ_ONCE() in is_armed(). */
	WRITE_ONCE(node->deadline, deadline);
	heap.nr_armed += (deadline != NEVER) - pending;
	return pending;
}

static struct entry *entry_at(unsigned long index)
{
	return &heap.page[index / PAGE_ENTRIES][index % PAGE_ENTRIES];
}

static void push(struct entry entry)
{
	unsigned long index = heap.nr++, parent;

	for (; index; index = parent) {
		parent = (index - 1) / 2;
		if (entry_at(parent)->deadline <= entry.deadline)
			break;
		*entry_at(index) = *entry_at(parent);
	}
	*entry_at(index) = entry;
}

static struct entry pop(void)
{
	struct entry first = *entry_at(0), last = *entry_at(--heap.nr);
	unsigned long index = 0, child;

	for (; (child = 2 * index + 1) < heap.nr; index = child) {
		if (child + 1 < heap.nr &&
		    entry_at(child + 1)->deadline < entry_at(child)->deadline)
			child++;
		if (last.deadline <= entry_at(child)->deadline)
			break;
		*entry_at(index) = *entry_at(child);
	}
	*entry_at(index) = last;
	return first;
}

static u64 first_deadline(void)
{
	return heap.nr ? entry_at(0)->deadline : KTIME_MAX;
}

static enum hrtimer_restart expire_timers(struct hrtimer *hrtimer)
{
	unsigned int left = BENCH_BUDGET;
	u64 now = ktime_get_ns();
	struct entry entry;

	bench_alarm_begin(&heap.alarm);
	while (first_deadline() <= now && left--) {
		entry = pop();
		if (entry.node->deadline != entry.deadline)
			continue;
		set_deadline(entry.node, NEVER);
		spin_unlock(&heap.alarm.lock);
		entry.node->function(entry.node);
		spin_lock(&heap.alarm.lock);
	}
	return bench_alarm_end(&heap.alarm, first_deadline(), now);
}

/* Makes room for more pages. */
static bool grow_pages(void)
{
	struct entry **old = heap.page, **page = bench_alloc(2 * heap.max_pages, sizeof(*page));

	if (!page)
		return false;
	spin_lock_bh(&heap.alarm.lock);
	memcpy(page, old, heap.nr_pages * sizeof(*page));
	heap.page = page;
	spin_unlock_bh(&heap.alarm.lock);
	heap.max_pages *= 2;
	kvfree(old);
	return true;
}

/* Adds a page of entries. Returns false if there is no memory. */
static bool add_page(void)
{
	struct entry *page;

	if (heap.nr_pages == heap.max_pages && !grow_pages())
		return false;
	/* Nobody is to be killed for a trace that moves a timer a million times. */
	page = (struct entry *)__get_free_page(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL |
					       __GFP_NOWARN);
	if (!page)
		return false;
	spin_lock_bh(&heap.alarm.lock);
	heap.page[heap.nr_pages++] = page;
	spin_unlock_bh(&heap.alarm.lock);
	return true;
}

static int arm(struct bench_lazy_node *node, u64 deadline)
{
	int pending;

	spin_lock_bh(&heap.alarm.lock);
	while (unlikely(heap.nr == heap.nr_pages * PAGE_ENTRIES)) {
		spin_unlock_bh(&heap.alarm.lock);
		/* Without room, the timer is not armed, which is noticed. */
		if (!add_page())
			return 0;
		spin_lock_bh(&heap.alarm.lock);
	}
	pending = set_deadline(node, deadline);
	push((struct entry) { .deadline = deadline, .node = node });
	bench_alarm_program(&heap.alarm, first_deadline());
	spin_unlock_bh(&heap.alarm.lock);
	return pending;
}

static int cancel(struct bench_lazy_node *node)
{
	int pending;

	spin_lock_bh(&heap.alarm.lock);
	pending = set_deadline(node, NEVER);
	spin_unlock_bh(&heap.alarm.lock);
	return pending;
}

static int setup_heap(const struct bench_work *work)
{
	memset(&heap, 0, sizeof(heap));
	heap.max_pages = DIV_ROUND_UP(work->nr * FIRST_ENTRIES, PAGE_ENTRIES);
	heap.page = bench_alloc(heap.max_pages, sizeof(*heap.page));
	if (!heap.page)
		return -ENOMEM;
	bench_alarm_init(&heap.alarm, 1ULL << twheel_tick_shift(), expire_timers);
	return 0;
}

static void teardown_heap(void)
{
	bench_alarm_stop(&heap.alarm);
	while (heap.nr_pages)
		free_page((unsigned long)heap.page[--heap.nr_pages]);
	kvfree(heap.page);
}

static __always_inline int init_one(struct bench_obj *obj, u64 when)
{
	obj->lazy.deadline = NEVER;
	obj->lazy.function = object_fired;
	return 0;
}

static __always_inline int add_one(struct bench_obj *obj, u64 when)
{
	return arm(&obj->lazy, when);
}

static __always_inline int cancel_one(struct bench_obj *obj, u64 when)
{
	return cancel(&obj->lazy);
}

static __always_inline int pending_one(struct bench_obj *obj, u64 when)
{
	return is_armed(&obj->lazy);
}

/* When none is armed any more, what is left are timers that were cancelled. */
static __always_inline int stop_one(struct bench_obj *obj, u64 when)
{
	int found = cancel_one(obj, when);

	bench_alarm_stop(&heap.alarm);
	if (!heap.nr_armed)
		heap.nr = 0;
	return found;
}

DEFINE_BENCH_BATCH(init)
DEFINE_BENCH_BATCH(add)
DEFINE_BENCH_BATCH(cancel)
DEFINE_BENCH_BATCH(pending)
DEFINE_BENCH_BATCH(stop)

DEFINE_BENCH_SCHEME(heap_lazy,
		    .object_size = sizeof(struct bench_lazy_node),
		    .rearm = add_batch,
		    .setup = setup_heap,
		    .teardown = teardown_heap);
