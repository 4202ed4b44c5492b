// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the memory of the wheels: how they get pages of chunks, and give them back
 *
 * When a wheel runs low on free chunks, it is given a page by whoever arms or expires a timer,
 * without waiting. If no page is available, the wheel does without (see wheel.c), so arming
 * never fails.
 *
 * Who pays
 * --------
 *
 * A task that arms a timer is charged for the page that it adds. When a softirq or a worker
 * re-arms a timer of a context, the task that opened the context is charged. Nobody is charged
 * for what softirqs need as timers move down the levels. But tasks already add a page when
 * fewer than TWHEEL_CHUNKS_LOW_TASK chunks are free, so that softirqs, which need chunks for what
 * cascades and free them again afterwards, find some.
 *
 * A payer, that is a cgroup, that cannot be charged gets no chunks at all, or it would use up
 * those of others: what it arms goes into chunks with room or is spilled, and stays so until it
 * expires. It is not charged again for RETRY_TIME, and after that it must pay for a page before
 * it gets any chunk, however many are free. While such payers keep coming, %TWHEEL_FREE_ASK
 * makes everybody come here before arming a timer, to be identified; isolation.c sets it for a
 * reason of its own. A payer is forgotten once it has paid, or once none has come for FORGET_TIME;
 * or when another one takes its place, as a CPU remembers only a few. From then on an unknown
 * payer may be one of those that failed: for FORGET_TIME, each has to prove that it could pay, with
 * a page that is freed at once.
 *
 * What is given back
 * ------------------
 *
 * Pages without chunks in use are given back. Those that nobody is charged for are kept, as long
 * as they have no more than RESERVE chunks. trim_wheels() runs every TRIM_INTERVAL while there
 * are many chunks or anything changes, and what it finds free twice in a row is given back; so a
 * program that needs as much again within this time does not go to the page allocator each
 * time. When the kernel is short of memory, the shrinker asks for everything.
 *
 * A wheel belongs to its CPU alone. So both, wherever they run, only make requests: a work item on
 * that CPU takes pages out of the wheel, in small batches, and they are freed after an RCU grace
 * period (see wheel.c). Chunks that are free in pages of which others are in use, or that are kept,
 * look as if they could be given back. So that a CPU which is idle is not woken up for them time
 * and again, its work item notes when there was nothing left to be given back; until something
 * happens on the wheel, it is not requested again.
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
#include "isolation.h"
#include "lib/compat.h"
#include "lib/inject.h"
#include "pages.h"
#include "wheel.h"

#define TRIM_INTERVAL	(4 * HZ)

/* How long a payer is not charged again after a failure. */
#define RETRY_TIME	(HZ / 10)

/* How long failed payers are remembered after the last time that one of them came. */
#define FORGET_TIME	(10 * HZ)

/* How many a CPU remembers: the number of rows, as a power of two, and the entries of each. */
#define FAILED_ROW_BITS	3
#define FAILED_PER_ROW	4

/* Greater than the number of free chunks below which a task adds a page. */
#define RESERVE		(2 * TWHEEL_CHUNKS_LOW)

/**
 * struct page_request - asks a CPU for pages
 * @work:	runs on the CPU
 * @cpu:	the CPU
 * @keep:	how many free chunks it may keep. Written by the requester, read by @work
 * @reserve:	how many more, if nobody is charged for them. As @keep
 * @trimmed:	what nr_changes() was when there was nothing left that trim_wheels() asks for;
 *		%NEVER_TRIMMED at first. Written by @work, read by the requester
 * @shrunk:	the same for what the shrinker asks for, which includes the former. As @trimmed
 * @last_free:	how many chunks were free when trim_wheels() last ran; used by it only
 * @last_chunks: how many there were. As @last_free
 */
struct page_request {
	struct work_struct	work;
	unsigned int		cpu;
	unsigned long		keep;
	unsigned long		reserve;
	u64			trimmed;
	u64			shrunk;
	unsigned long		last_free;
	unsigned long		last_chunks;
};

static DEFINE_PER_CPU(struct page_request, requests);

#define NEVER_TRIMMED	(~0ULL)

/**
 * struct failed_payer - a payer that could not be charged for a page of chunks
 * @group:	its cgroup; NULL: the entry is unused
 * @retry:	when to charge it again, in jiffies
 */
struct failed_payer {
	const void	*group;
	unsigned long	retry;
};

/**
 * struct failed_payers - those of a CPU; for the owner of its base only
 * @forget:	when to forget them, if none comes before that, in jiffies
 * @evicted_until: until when, in jiffies, unknown payers have to prove that they could pay,
 *		because one has lost its entry to another; 0: they need not
 * @entry:	the payers, each in the row that the hash of its group selects
 */
struct failed_payers {
	unsigned long		forget;
	unsigned long		evicted_until;
	struct failed_payer	entry[FAILED_PER_ROW << FAILED_ROW_BITS];
};

static DEFINE_PER_CPU(struct failed_payers, failed_payers);
static struct workqueue_struct *pages_queue;
static struct shrinker *shrinker;

/* Not bound to a CPU, so that the kernel keeps it off those that are isolated. */
static void trim_wheels(struct work_struct *unused);
static DECLARE_DELAYED_WORK(trim_work, trim_wheels);

/**
 * twheel_pages_trim_later - chunks may soon be free: check after a while
 *
 * Context: any.
 */
void twheel_pages_trim_later(void)
{
	if (!delayed_work_pending(&trim_work))
		queue_delayed_work(system_dfl_wq, &trim_work, TRIM_INTERVAL);
}

/*
 * The cgroup to be charged (without CONFIG_MEMCG, the task), for comparison only: it may be gone
 * by the next time. NULL if nobody is charged, because this is work of the kernel's own.
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

/* The row of failed payers that may include a group. By the base's owner. */
static struct failed_payer *failed_row(const struct twheel_base *base, const void *group)
{
	struct failed_payer *all = per_cpu(failed_payers, base->cpu).entry;

	return &all[FAILED_PER_ROW * hash_ptr(group, FAILED_ROW_BITS)];
}

/* The entry of a group, or NULL. By the base's owner. */
static struct failed_payer *find_failed(const struct twheel_base *base, const void *group)
{
	struct failed_payer *row = failed_row(base, group);
	unsigned int i;

	for (i = 0; i < FAILED_PER_ROW; i++)
		if (group && row[i].group == group)
			return &row[i];
	return NULL;
}

/* An entry for a group that has none: an unused one, or that of the oldest failure. */
static struct failed_payer *pick_entry(const struct twheel_base *base, const void *group)
{
	struct failed_payer *row = failed_row(base, group), *entry = row;
	unsigned int i;

	for (i = 1; i < FAILED_PER_ROW && entry->group; i++)
		if (!row[i].group || time_before(row[i].retry, entry->retry))
			entry = &row[i];
	return entry;
}

/* A failed payer has come: remember them all for longer. By the base's owner. */
static void keep_failed(struct twheel_base *base)
{
	per_cpu(failed_payers, base->cpu).forget = jiffies + FORGET_TIME;
	twheel_base_set_ask(base, TWHEEL_ASK_PAYERS, true);
}

/* Forgets the failed payers when none has come for long. By the base's owner. */
static void forget_failed(struct twheel_base *base)
{
	struct failed_payers *failed = per_cpu_ptr(&failed_payers, base->cpu);

	if (!(base->ask & TWHEEL_ASK_PAYERS) || time_before(jiffies, failed->forget))
		return;
	memset(failed->entry, 0, sizeof(failed->entry));
	failed->evicted_until = 0;
	twheel_base_set_ask(base, TWHEEL_ASK_PAYERS, false);
}

/* Are there too few free chunks? @group is NULL if nobody pays. By the base's owner. */
static bool chunks_low(const struct twheel_base *base, const void *group)
{
	return twheel_nr_free(&base->wheel.stats) <
	       (group ? TWHEEL_CHUNKS_LOW_TASK : TWHEEL_CHUNKS_LOW);
}

/* Has a payer recently lost its entry to another? By the base's owner. */
static bool evicted_recently(const struct twheel_base *base)
{
	struct failed_payers *failed = per_cpu_ptr(&failed_payers, base->cpu);

	if (failed->evicted_until && time_after(jiffies, failed->evicted_until))
		failed->evicted_until = 0;
	return failed->evicted_until;
}

/*
 * Should the current payer add a page: because chunks are low, or because its last charge failed,
 * or may have failed but is no longer remembered? Also decides whether it may otherwise take a
 * chunk. By the base's owner.
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

/* The current payer could not be charged. By the base's owner. */
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
 * The current payer can be charged. Must it pay, because its last charge failed, or because chunks
 * are low? Forgets the failure. By the base's owner.
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
 * @arming:	a timer is about to be armed: on an isolated CPU it goes to another wheel, and needs
 *		no page of this one
 *
 * Context: process or softirq; does not sleep.
 * Return: false if @arming, and the timer must be enqueued on another CPU's wheel.
 */
bool twheel_pages_refill(bool arming)
{
	const void *group = current_payer();
	gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN | __GFP_ZERO;
	struct twheel_base *base;
	unsigned long flags;
	struct page *page;
	bool wanted, elsewhere, used;

	base = twheel_base_enter(&flags);
	/* First, because the timer may be enqueued here after all. */
	wanted = wants_page(base, group);
	elsewhere = arming && twheel_isolation_check(base);
	twheel_base_leave(base, flags);
	/* A hint, as in twheel_base_refill(): any wheel can take any timer. */
	if (elsewhere)
		return false;
	if (!wanted || twheel_inject_no_page())
		return true;
	page = alloc_page(group ? gfp | __GFP_ACCOUNT : gfp);
	/* kmemleak does not track pages by itself. */
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
 * twheel_payer_begin - charge somebody else for the chunks of what is armed next
 * @payer:	the cgroup to charge; NULL for the one that would be charged anyway
 *
 * Context: any. Does not nest: what runs in between must not call this.
 * Return: for twheel_payer_end().
 */
struct mem_cgroup *twheel_payer_begin(struct mem_cgroup *payer)
{
	return set_active_memcg(payer);
}

/**
 * twheel_payer_end - charge the previous payer again
 * @old:	what twheel_payer_begin() returned
 *
 * If the other payer was denied chunks, this must not affect what cascades later in the same
 * softirq, which would not check. The wheel is not given a page: what was armed may have gone to
 * another one, because this CPU is isolated.
 *
 * Context: as for twheel_payer_begin().
 */
void twheel_payer_end(struct mem_cgroup *old)
{
	struct twheel_base *base = raw_cpu_read(twheel_bases);
	unsigned long flags;

	set_active_memcg(old);
	/* Whoever is denied chunks has set this. A hint, as in twheel_base_refill(). */
	if (likely(!(data_race(base->ask) & TWHEEL_ASK_PAYERS)))
		return;
	base = twheel_base_enter(&flags);
	twheel_withhold_chunks(&base->wheel, false);
	twheel_base_leave(base, flags);
}

static unsigned long nr_free_chunks(unsigned int cpu)
{
	/* Its owner keeps counting: this value is current, or about to be. */
	return data_race(twheel_nr_free(&twheel_base_of(cpu)->wheel.stats));
}

static unsigned long nr_chunks(unsigned int cpu)
{
	/* As above. */
	return data_race(twheel_base_of(cpu)->wheel.stats.chunks);
}

/* Have other CPUs emptied chunks of a CPU that are free once it reclaims them? */
static bool has_emptied(unsigned int cpu)
{
	/* Pairs with the WRITE_ONCE()s of @emptied. */
	return READ_ONCE(twheel_base_of(cpu)->wheel.emptied);
}

/*
 * Grows with whatever may make a page of a CPU free, except for what has_emptied() reports: a page
 * that is added may never be used. What expires during a tick is not counted on its own.
 */
static u64 nr_changes(unsigned int cpu)
{
	const struct twheel_base *base = twheel_base_of(cpu);

	/* Its owner keeps counting, as in nr_free_chunks(). */
	return data_race(base->counts.ticks + base->counts.rearms + base->wheel.stats.enqueued +
			 base->wheel.stats.dequeued + base->wheel.pages_added);
}

/* Has nothing happened on a CPU since @changes? */
static bool is_unchanged(unsigned int cpu, u64 changes)
{
	return changes == nr_changes(cpu) && !has_emptied(cpu);
}

/* Roughly how many pages a CPU can give back. */
static unsigned long nr_spare_pages(const struct page_request *request)
{
	unsigned int cpu = request->cpu;

	/* Pairs with the WRITE_ONCE() in note_done(). */
	if (is_unchanged(cpu, READ_ONCE(request->shrunk)))
		return 0;
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

/* Frees pages that were released together, after a grace period. */
static void defer_free_pages(struct twheel_page *pages)
{
	if (pages)
		call_rcu(&pages->rcu, free_page_list_rcu);
}

/* All pages have been checked. If anything has happened meanwhile, @changes is out of date. */
static void note_done(struct page_request *request, const struct twheel_return *ret, u64 changes)
{
	/* Something was spared only because it had become free so recently. */
	if (ret->keep)
		return;
	/* Pair with the READ_ONCE()s in trim_cpu() and nr_spare_pages(). */
	WRITE_ONCE(request->trimmed, changes);
	if (!ret->reserve)
		WRITE_ONCE(request->shrunk, changes);
}

/* Runs on the requested CPU, unless that has gone offline: then its wheel has no pages. */
static void handle_request(struct work_struct *work)
{
	struct page_request *request = container_of(work, struct page_request, work);
	/* Pair with the WRITE_ONCE()s in request_pages(). */
	struct twheel_return ret = {
		.keep		= READ_ONCE(request->keep),
		.reserve	= READ_ONCE(request->reserve),
		.nr_to_scan	= nr_chunks(request->cpu) / TWHEEL_PAGE_CHUNKS,
	};
	const u64 changes = nr_changes(request->cpu);
	struct twheel_base *base;
	unsigned long flags;
	bool more = false, here, unsure = false;

	do {
		ret.pages = NULL;
		base = twheel_base_enter(&flags);
		here = base->cpu == request->cpu;
		/* PREEMPT_RT: a callback may be blocked. What the tick will free is not counted. */
		unsure |= base->in_expiry;
		/* Another CPU has emptied pages that may have been checked already. */
		unsure |= more && has_emptied(request->cpu);
		more = here && twheel_release_pages(&base->wheel, &ret);
		twheel_base_leave(base, flags);
		defer_free_pages(ret.pages);
		cond_resched();
	} while (more);
	if (here && !unsure)
		note_done(request, &ret, changes);
}

/* Requests what is free beyond so many chunks. Returns false if already requested. */
static bool request_pages(struct page_request *request, unsigned long keep, unsigned long reserve)
{
	/* Pair with the READ_ONCE()s in handle_request(). */
	WRITE_ONCE(request->keep, keep);
	WRITE_ONCE(request->reserve, reserve);
	/* If the CPU goes offline first, the work finds itself on another one. */
	return queue_work_on(request->cpu, pages_queue, &request->work);
}

/* Checks a CPU. Returns true if it should be checked again. */
static bool trim_cpu(struct page_request *request)
{
	unsigned long free = nr_free_chunks(request->cpu), chunks = nr_chunks(request->cpu);
	unsigned long spare = min(free, request->last_free);
	bool changed = free != request->last_free || chunks != request->last_chunks;

	request->last_free = free;
	request->last_chunks = chunks;
	/* The chunks of the last removals may not be free yet. */
	if (spare + TWHEEL_PENDING_CLEAR < TWHEEL_PAGE_CHUNKS && !has_emptied(request->cpu))
		return changed || chunks >= RESERVE + TWHEEL_PAGE_CHUNKS;
	/* Pairs with the WRITE_ONCE() in note_done(). */
	if (changed || !is_unchanged(request->cpu, READ_ONCE(request->trimmed)))
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
		queue_delayed_work(system_dfl_wq, &trim_work, TRIM_INTERVAL);
}

static unsigned long shrinker_count(struct shrinker *unused, struct shrink_control *control)
{
	unsigned long pages = 0;
	unsigned int cpu;

	for_each_online_cpu(cpu)
		pages += nr_spare_pages(per_cpu_ptr(&requests, cpu));
	return pages ?: SHRINK_EMPTY;
}

/* May be called with the locks of whoever needs memory held, so it does not wait. */
static unsigned long shrinker_scan(struct shrinker *unused, struct shrink_control *control)
{
	unsigned long spare, pages = 0;
	struct page_request *request;
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		request = per_cpu_ptr(&requests, cpu);
		spare = nr_spare_pages(request);
		if (spare && request_pages(request, 0, 0))
			pages += spare;
	}
	return pages ?: SHRINK_STOP;
}

/**
 * twheel_pages_drain - give back all pages of a wheel without timers
 * @wheel:	the wheel, of a CPU that has gone offline, or at module unload
 *
 * Context: process; nobody else uses the wheel, except to take timers that it does not have.
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
 * twheel_pages_init - start giving back pages that are not needed
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
		request->trimmed = NEVER_TRIMMED;
		request->shrunk = NEVER_TRIMMED;
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
 * twheel_pages_stop - stop giving back pages; no timer may be armed any more
 */
void twheel_pages_stop(void)
{
	shrinker_free(shrinker);
	cancel_delayed_work_sync(&trim_work);
	destroy_workqueue(pages_queue);
}

/**
 * twheel_pages_exit - wait until everything that was given back is freed
 */
void twheel_pages_exit(void)
{
	rcu_barrier();
}
