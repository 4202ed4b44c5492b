// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the memory of the wheels: pages of chunks, got and given back
 *
 * A wheel is given a page when few chunks are free, by whoever arms or expires a timer,
 * with no wait. If there is none the wheel goes on without (see wheel.c), so arming never
 * fails.
 *
 * Who pays
 * --------
 *
 * A task that arms a timer is charged for the page that it brings. A softirq or a worker that
 * arms a context's timer anew has him charged who has opened the context. Nobody is charged
 * for what softirqs need as timers move down the levels. But tasks bring a page as soon as
 * there are fewer than TWHEEL_CHUNKS_LOW_TASK, so that softirqs, which need chunks for what
 * cascades and leave them free again, find some.
 *
 * Who cannot pay gets no chunk at all, or he would use those of others: what he arms goes into
 * chunks that have room, or is spilled, and remains so until it comes up. He is not asked to
 * pay for RETRY_TIME then, and after that he has to pay for a page before he gets any chunk,
 * however many there are. While such a one comes, %TWHEEL_FREE_ASK has all come here before
 * they arm, and look who they are. He is forgotten when he has paid, or when none has come for
 * FORGET_TIME; and when another one gets his place, as the CPU remembers only a few. Who is not
 * remembered may be such a one then: for FORGET_TIME, he has to show that he could pay, by a
 * page that goes back at once.
 *
 * What goes back
 * --------------
 *
 * Pages of which no chunk is in use. Those for which nobody is charged are kept, as long as
 * they have no more than RESERVE chunks. trim_wheels() comes every TRIM_INTERVAL while there is
 * much, or something changes, and what it finds free twice in a row goes back; so a program
 * that needs as much again within this time does not get it from the page allocator each
 * time. When the kernel is short of memory, the shrinker asks for all.
 *
 * A wheel is its CPU's alone. So both only ask: a work on that CPU takes pages out of the
 * wheel, in small portions, and they are freed after a grace period of RCU (see wheel.c).
 */
#include <linux/cgroup.h>
#include <linux/cpumask.h>
#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/shrinker.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "cpu_base.h"
#include "lib/compat.h"
#include "lib/inject.h"
#include "pages.h"
#include "wheel.h"

#define TRIM_INTERVAL	(4 * HZ)

/* So long nothing is asked of who could not pay. */
#define RETRY_TIME	(HZ / 10)

/* Since who could not pay has come last. */
#define FORGET_TIME	(10 * HZ)

/* How many a CPU remembers: in so many rows, as a power of two, of so many each. */
#define FAILED_ROW_BITS	3
#define FAILED_PER_ROW	4

/* More than the number of free chunks at which a task brings a page. */
#define RESERVE		(2 * TWHEEL_CHUNKS_LOW)

/**
 * struct page_request - asks a CPU for pages
 * @work:	runs on the CPU
 * @cpu:	the CPU
 * @keep:	how many free chunks it may keep. Written by who asks, read by @work
 * @reserve:	how many more, if nobody is charged for them. Likewise
 * @last_free:	how many chunks were free when trim_wheels() came last; its own
 * @last_chunks:	how many there were. Likewise
 */
struct page_request {
	struct work_struct	work;
	unsigned int		cpu;
	unsigned long		keep;
	unsigned long		reserve;
	unsigned long		last_free;
	unsigned long		last_chunks;
};

static DEFINE_PER_CPU(struct page_request, requests);

/**
 * struct failed_payer - who could not pay for a page of chunks
 * @group:	his cgroup; NULL: nobody
 * @retry:	when to ask him again, in jiffies
 */
struct failed_payer {
	const void	*group;
	unsigned long	retry;
};

/**
 * struct failed_payers - those of a CPU; its base's owner's
 * @forget:	when none of them will have come for long, in jiffies
 * @evicted_until:	until when who is not known has to show that he could pay, in jiffies, as one has
 *		lost his place to another; 0: he need not
 * @entry:		themselves, each in the row that a hash of the group tells
 */
struct failed_payers {
	unsigned long		forget;
	unsigned long		evicted_until;
	struct failed_payer	entry[FAILED_PER_ROW << FAILED_ROW_BITS];
};

static DEFINE_PER_CPU(struct failed_payers, failed_payers);
static struct workqueue_struct *pages_queue;
static struct shrinker *shrinker;

static void trim_wheels(struct work_struct *unused);
static DECLARE_DELAYED_WORK(trim_work, trim_wheels);

/**
 * twheel_pages_trim_later - chunks may be free soon: look after a while
 *
 * Context: any.
 */
void twheel_pages_trim_later(void)
{
	if (!delayed_work_pending(&trim_work))
		queue_delayed_work(pages_queue, &trim_work, TRIM_INTERVAL);
}

/*
 * Who is charged, to be compared with: his cgroup. It may be gone by the next time. NULL: nobody,
 * as this is the kernel's own work.
 */
static const void *current_payer(void)
{
	const void *group = current;

#ifdef CONFIG_MEMCG
	group = in_task() ? current->active_memcg : this_cpu_read(int_active_memcg);
	if (group)
		return group;
#endif
	if (!in_task() || current->flags & PF_KTHREAD)
		return NULL;
#ifdef CONFIG_MEMCG
	rcu_read_lock();
	group = task_css(current, memory_cgrp_id);
	rcu_read_unlock();
#endif
	return group;
}

/* The poor who may be in the same row as a group. By the base's owner. */
static struct failed_payer *failed_row(const struct twheel_base *base, const void *group)
{
	struct failed_payer *all = per_cpu(failed_payers, base->cpu).entry;

	return &all[FAILED_PER_ROW * hash_ptr(group, FAILED_ROW_BITS)];
}

/* What is remembered of a group, or NULL. By the base's owner. */
static struct failed_payer *find_failed(const struct twheel_base *base, const void *group)
{
	struct failed_payer *row = failed_row(base, group);
	unsigned int i;

	for (i = 0; i < FAILED_PER_ROW; i++)
		if (group && row[i].group == group)
			return &row[i];
	return NULL;
}

/* The place for a group that is not remembered: one that is free, or the one asked longest ago. */
static struct failed_payer *pick_entry(const struct twheel_base *base, const void *group)
{
	struct failed_payer *row = failed_row(base, group), *entry = row;
	unsigned int i;

	for (i = 1; i < FAILED_PER_ROW && entry->group; i++)
		if (!row[i].group || time_before(row[i].retry, entry->retry))
			entry = &row[i];
	return entry;
}

/* Who could not pay has come: until when he is remembered. By the base's owner. */
static void keep_failed(struct twheel_base *base)
{
	per_cpu(failed_payers, base->cpu).forget = jiffies + FORGET_TIME;
	base->wheel.stats.free |= TWHEEL_FREE_ASK;
}

/* Forgets the poor when none has come for long. By the base's owner. */
static void forget_failed(struct twheel_base *base)
{
	struct failed_payers *failed = per_cpu_ptr(&failed_payers, base->cpu);

	if (!(base->wheel.stats.free & TWHEEL_FREE_ASK) || time_before(jiffies, failed->forget))
		return;
	memset(failed->entry, 0, sizeof(failed->entry));
	failed->evicted_until = 0;
	base->wheel.stats.free &= ~TWHEEL_FREE_ASK;
}

/* Are there too few chunks? @group is NULL if nobody pays. By the base's owner. */
static bool chunks_low(const struct twheel_base *base, const void *group)
{
	return twheel_nr_free(&base->wheel.stats) <
	       (group ? TWHEEL_CHUNKS_LOW_TASK : TWHEEL_CHUNKS_LOW);
}

/* Has somebody lost his place not long ago? By the base's owner. */
static bool evicted_recently(const struct twheel_base *base)
{
	struct failed_payers *failed = per_cpu_ptr(&failed_payers, base->cpu);

	if (failed->evicted_until && time_after(jiffies, failed->evicted_until))
		failed->evicted_until = 0;
	return failed->evicted_until;
}

/*
 * Is who is here to bring a page, as there are too few chunks, as he could not the last time, or as
 * that is not known any more? And may he take a chunk, otherwise? By the base's owner.
 */
static bool wants_page(struct twheel_base *base, const void *group)
{
	const struct failed_payer *failed;
	bool withhold;

	forget_failed(base);
	failed = find_failed(base, group);
	if (!failed) {
		twheel_withhold_chunks(&base->wheel, false);
		return chunks_low(base, group) || (group && evicted_recently(base));
	}
	keep_failed(base);
	withhold = time_before(jiffies, failed->retry);
	twheel_withhold_chunks(&base->wheel, withhold);
	return !withhold;
}

/* Who is here could not pay. By the base's owner. */
static void add_failed(struct twheel_base *base, const void *group)
{
	struct failed_payer *failed = find_failed(base, group) ?: pick_entry(base, group);

	if (failed->group && failed->group != group)
		per_cpu(failed_payers, base->cpu).evicted_until = (jiffies + FORGET_TIME) | 1;
	failed->group = group;
	failed->retry = jiffies + RETRY_TIME;
	keep_failed(base);
	twheel_withhold_chunks(&base->wheel, true);
}

/*
 * Who is here can pay. Does he have to, as he could not the last time, or as there are too few
 * chunks? By the base's owner.
 */
static bool must_pay(struct twheel_base *base, const void *group)
{
	struct failed_payer *failed = find_failed(base, group);

	if (!failed)
		return chunks_low(base, group);
	failed->group = NULL;
	return true;
}

static void free_chunk_page(void *page)
{
	kmemleak_free(page);
	free_page((unsigned long)page);
}

/**
 * twheel_pages_refill - give this CPU's wheel a page of chunks, if it wants one
 *
 * An isolated CPU's gets none: so each timer that it arms comes by here, and those that
 * others arm do not pay for the question.
 *
 * Context: process or softirq; does not sleep.
 * Return: false if the CPU is isolated.
 */
bool twheel_pages_refill(void)
{
	const void *group = current_payer();
	gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN | __GFP_ZERO;
	struct twheel_base *base = raw_cpu_read(twheel_bases);
	unsigned long flags;
	struct page *page;
	bool wanted, used;

	/* A hint, as in twheel_base_refill(): any wheel can take any timer. */
	if (base->isolated)
		return false;
	base = twheel_base_enter(&flags);
	wanted = wants_page(base, group);
	twheel_base_leave(base, flags);
	if (!wanted || twheel_inject_no_page())
		return true;
	page = alloc_page(group ? gfp | __GFP_ACCOUNT : gfp);
	/* Pages are not what it looks for by itself. */
	if (page)
		kmemleak_alloc(page_address(page), PAGE_SIZE, 1, GFP_NOWAIT | __GFP_NOWARN);
	base = twheel_base_enter(&flags);
	used = page && must_pay(base, group);
	if (used)
		twheel_add_page(&base->wheel, page_address(page), group);
	else if (!page && group)
		add_failed(base, group);
	twheel_base_leave(base, flags);
	if (used)
		twheel_pages_trim_later();
	else if (page)
		free_chunk_page(page_address(page));
	return true;
}

/**
 * twheel_payer_begin - have another charged for the chunks of what is armed next
 * @payer:	who is to be charged; NULL for who would be anyway
 *
 * Context: any. Does not nest: what runs in between does not call this.
 * Return: for twheel_payer_end().
 */
struct mem_cgroup *twheel_payer_begin(struct mem_cgroup *payer)
{
	return set_active_memcg(payer);
}

/**
 * twheel_payer_end - it is as before
 * @old:	as twheel_payer_begin() has returned it
 *
 * If the payer has got no chunk, that does not concern what cascades after this in the same
 * softirq, which would not ask.
 *
 * Context: as for twheel_payer_begin().
 */
void twheel_payer_end(struct mem_cgroup *old)
{
	set_active_memcg(old);
	twheel_base_refill();
}

static unsigned long nr_free_chunks(unsigned int cpu)
{
	/* Its owner goes on counting: a number of this moment, or of the next. */
	return data_race(twheel_nr_free(&twheel_base_of(cpu)->wheel.stats));
}

static unsigned long nr_chunks(unsigned int cpu)
{
	/* Likewise. */
	return data_race(twheel_base_of(cpu)->wheel.stats.chunks);
}

/* Have others emptied chunks of a CPU's that are free when it looks at them? */
static bool has_emptied(unsigned int cpu)
{
	/* Pairs with the WRITE_ONCE()s of @emptied. */
	return READ_ONCE(twheel_base_of(cpu)->wheel.emptied);
}

/* How many pages a CPU may give back, about. */
static unsigned long nr_spare_pages(unsigned int cpu)
{
	return nr_free_chunks(cpu) / TWHEEL_PAGE_CHUNKS + has_emptied(cpu);
}

static void free_page_list(struct twheel_page *page)
{
	struct twheel_page *next;

	for (; page; page = next) {
		next = page->next;
		free_chunk_page(page);
	}
}

static void free_page_list_rcu(struct rcu_head *rcu)
{
	free_page_list(container_of(rcu, struct twheel_page, rcu));
}

/* Frees pages that were given back together. */
static void defer_free_pages(struct twheel_page *pages)
{
	if (pages)
		call_rcu(&pages->rcu, free_page_list_rcu);
}

/* On the CPU that is asked, unless that has gone: then its wheel has no pages. */
static void handle_request(struct work_struct *work)
{
	struct page_request *request = container_of(work, struct page_request, work);
	/* Pair with the WRITE_ONCE()s in request_pages(). */
	struct twheel_return ret = {
		.keep		= READ_ONCE(request->keep),
		.reserve	= READ_ONCE(request->reserve),
		.nr_to_scan	= nr_chunks(request->cpu) / TWHEEL_PAGE_CHUNKS,
	};
	struct twheel_base *base;
	unsigned long flags;
	bool more = true;

	while (more) {
		ret.pages = NULL;
		base = twheel_base_enter(&flags);
		more = base->cpu == request->cpu && twheel_release_pages(&base->wheel, &ret);
		twheel_base_leave(base, flags);
		defer_free_pages(ret.pages);
		cond_resched();
	}
}

/* Asks for what is free beyond so many chunks. Returns whether that was not asked yet. */
static bool request_pages(struct page_request *request, unsigned long keep, unsigned long reserve)
{
	/* Pair with the READ_ONCE()s in handle_request(). */
	WRITE_ONCE(request->keep, keep);
	WRITE_ONCE(request->reserve, reserve);
	/* If the CPU goes meanwhile, the work finds itself elsewhere. */
	return queue_work_on(request->cpu, pages_queue, &request->work);
}

/* Looks at a CPU. Returns whether to look again. */
static bool trim_cpu(struct page_request *request)
{
	unsigned long free = nr_free_chunks(request->cpu), chunks = nr_chunks(request->cpu);
	unsigned long spare = min(free, request->last_free);
	bool changed = free != request->last_free || chunks != request->last_chunks;

	request->last_free = free;
	request->last_chunks = chunks;
	/* The chunks of the last removals may not be free yet. */
	if (spare + TWHEEL_PENDING_CLEAR >= TWHEEL_PAGE_CHUNKS || has_emptied(request->cpu))
		request_pages(request, free - spare, RESERVE);
	return changed || chunks >= RESERVE + TWHEEL_PAGE_CHUNKS;
}

static void trim_wheels(struct work_struct *unused)
{
	bool again = false;
	unsigned int cpu;

	for_each_online_cpu(cpu)
		again |= trim_cpu(per_cpu_ptr(&requests, cpu));
	if (again)
		queue_delayed_work(pages_queue, &trim_work, TRIM_INTERVAL);
}

static unsigned long shrinker_count(struct shrinker *unused, struct shrink_control *control)
{
	unsigned long pages = 0;
	unsigned int cpu;

	for_each_online_cpu(cpu)
		pages += nr_spare_pages(cpu);
	return pages ?: SHRINK_EMPTY;
}

/* May be called with the locks of whoever needs memory, so it waits for nothing. */
static unsigned long shrinker_scan(struct shrinker *unused, struct shrink_control *control)
{
	unsigned long spare, pages = 0;
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		spare = nr_spare_pages(cpu);
		if (spare && request_pages(per_cpu_ptr(&requests, cpu), 0, 0))
			pages += spare;
	}
	return pages ?: SHRINK_STOP;
}

/**
 * twheel_pages_drain - give back all pages of a wheel that has no timers
 * @wheel:	the wheel, of a CPU that has gone, or of a module that goes
 *
 * Context: process; nobody else uses the wheel but to take timers that it has not.
 */
void twheel_pages_drain(struct twheel *wheel)
{
	struct twheel_return ret = { .nr_to_scan = ULONG_MAX };
	bool more = true;

	while (more) {
		ret.pages = NULL;
		more = twheel_release_pages(wheel, &ret);
		defer_free_pages(ret.pages);
		cond_resched();
	}
	WARN_ON_ONCE(wheel->stats.chunks);
}

/**
 * twheel_pages_init - from now on, pages go back when they are not needed
 *
 * Return: 0, or -ENOMEM.
 */
int twheel_pages_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct page_request *request = per_cpu_ptr(&requests, cpu);

		INIT_WORK(&request->work, handle_request);
		request->cpu = cpu;
	}
	pages_queue = alloc_workqueue("twheel_pages", WQ_MEM_RECLAIM | WQ_PERCPU, 0);
	if (!pages_queue)
		return -ENOMEM;
	shrinker = shrinker_alloc(0, "twheel");
	if (!shrinker) {
		destroy_workqueue(pages_queue);
		return -ENOMEM;
	}
	shrinker->count_objects = shrinker_count;
	shrinker->scan_objects = shrinker_scan;
	shrinker_register(shrinker);
	return 0;
}

/**
 * twheel_pages_stop - no more of that; no timer is armed any more
 */
void twheel_pages_stop(void)
{
	shrinker_free(shrinker);
	cancel_delayed_work_sync(&trim_work);
	destroy_workqueue(pages_queue);
}

/**
 * twheel_pages_exit - wait until all that was given back is freed
 */
void twheel_pages_exit(void)
{
	rcu_barrier();
}
