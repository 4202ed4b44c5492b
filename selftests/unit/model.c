// SPDX-License-Identifier: GPL-2.0-only
#include "model.h"

/* Withholds the free chunks of a page from the wheel, which does not count them. */
static void withhold_page(struct model *m, struct twheel_page *page)
{
	struct twheel_chunk *chunk;

	for (; page->free; page->free &= page->free - 1) {
		chunk = (struct twheel_chunk *)page + __ffs64(page->free);
		chunk->link = (unsigned long)m->withheld;
		m->withheld = chunk;
	}
}

/* Takes away the wheel's free chunks, so that it runs out of them. */
void model_withhold(struct model *m)
{
	struct twheel *wheel = m->wheel;
	bool withheld = wheel->withheld;

	/* A report must not refer to a chunk that is neither free nor in use. */
	while (wheel->emptied)
		twheel_reclaim(wheel);
	twheel_withhold_chunks(wheel, false);
	for (; wheel->page; wheel->page = wheel->page->next)
		withhold_page(m, wheel->page);
	twheel_withhold_chunks(wheel, withheld);
	wheel->stats.chunks -= wheel->stats.free;
	wheel->stats.free = 0;
}

void model_init(struct model *m, unsigned int nr, unsigned int shift, u64 now)
{
	const u16 owner = 7;
	unsigned int i;

	memset(m, 0, sizeof(*m));
	m->nr = nr;
	m->most_pages = nr / TWHEEL_PAGE_CHUNKS + 1;
	m->wheel = aligned_alloc(64, sizeof(*m->wheel));
	m->timers = calloc(nr, sizeof(*m->timers));
	m->pages = calloc(m->most_pages, sizeof(*m->pages));
	if (!m->wheel || !m->timers || !m->pages) {
		perror("model: malloc");
		exit(2);
	}
	for (i = 0; i < nr; i++)
		m->timers[i].node.owner = owner;
	twheel_init(m->wheel, shift, owner, now);
}

/* Allocated separately, so that overruns are detected. */
void *model_page(void)
{
	void *page = aligned_alloc(TWHEEL_PAGE_BYTES, TWHEEL_PAGE_BYTES);

	if (!page) {
		perror("model: malloc");
		exit(2);
	}
	return memset(page, 0, TWHEEL_PAGE_BYTES);
}

static void add_chunk(struct model *m)
{
	struct twheel_chunk *chunk = m->withheld;

	m->withheld = (struct twheel_chunk *)chunk->link;
	twheel_chunk_free(m->wheel, chunk);
	m->wheel->stats.free++;
	m->wheel->stats.chunks++;
}

/* Gives the wheel up to @nr chunks, as many as there are. */
void model_add_chunks(struct model *m, unsigned int nr)
{
	struct twheel_page *page;

	while (nr) {
		if (m->withheld) {
			add_chunk(m);
			nr--;
			continue;
		}
		if (m->nr_pages == m->most_pages)
			break;
		page = model_page();
		m->pages[m->nr_pages++] = page;
		if (nr >= TWHEEL_PAGE_CHUNKS) {
			twheel_add_page(m->wheel, page, m->nr_pages % 2);
			nr -= TWHEEL_PAGE_CHUNKS;
			continue;
		}
		page->wheel = m->wheel;
		page->free = TWHEEL_PAGE_FREE;
		withhold_page(m, page);
	}
}

/* Forgets a page that the wheel has released. */
static void forget_page(struct model *m, const struct twheel_page *page)
{
	unsigned int i;

	for (i = 0; m->pages[i] != page; i++)
		CHECK(i < m->nr_pages);
	m->pages[i] = m->pages[--m->nr_pages];
}

/*
 * Makes the wheel release the pages beyond @keep free chunks, and @reserve more in pages that are
 * charged to nobody. It must release all of them.
 */
void model_release(struct model *m, unsigned long keep, unsigned long reserve)
{
	struct twheel_return ret = { .keep = keep, .reserve = reserve, .nr_to_scan = m->nr_pages };
	/* Reclaiming a chunk frees it, and does not change this. */
	unsigned long chunks = m->wheel->stats.chunks, left;
	struct twheel_page *page;
	unsigned int i;

	while (twheel_release_pages(m->wheel, &ret))
		;
	while ((page = ret.pages)) {
		ret.pages = page->next;
		CHECK(page->free == TWHEEL_PAGE_FREE);
		chunks -= TWHEEL_PAGE_CHUNKS;
		forget_page(m, page);
		free(page);
	}
	CHECK(!m->wheel->emptied);
	CHECK(m->wheel->stats.chunks == chunks);
	left = m->wheel->stats.free;
	/* The excess is in pages that are not entirely free. */
	for (i = 0; i < m->nr_pages; i++)
		CHECK(m->pages[i]->free != TWHEEL_PAGE_FREE ||
		      left < keep + TWHEEL_PAGE_CHUNKS +
			     (m->pages[i]->charged ? 0 : reserve));
}

void model_free(struct model *m)
{
	while (m->nr_pages)
		free(m->pages[--m->nr_pages]);
	free(m->pages);
	free(m->timers);
	free(m->wheel);
}

/* The tick of the slot for a timer due at @tick: the finest slot that reaches that far. */
static u64 slot_tick(const struct model *m, u64 tick)
{
	u64 width = 1;

	while (tick / width / TWHEEL_SLOTS != m->wheel->now / width / TWHEEL_SLOTS)
		width *= TWHEEL_SLOTS;
	return tick / width * width;
}

/* Sets when the wheel reaches a timer that is enqueued now. */
static void set_earliest(struct model *m, struct timer *t)
{
	u64 due = due_tick(m->wheel, t->node.deadline);

	t->earliest = max(due, m->wheel->earliest >> m->wheel->shift);
	t->passed = t->earliest > max(due, m->wheel->now + 1);
}

/* Enqueues a node with @enqueue, and checks where it is. */
static void enqueue_by(struct model *m, struct timer *t, u64 deadline,
		       u64 (*enqueue)(struct twheel *wheel, struct twheel_node *node, u64 deadline))
{
	t->node.deadline = deadline;
	set_earliest(m, t);
	CHECK(enqueue(m->wheel, &t->node, deadline) >> m->wheel->shift ==
	      slot_tick(m, t->earliest));
	CHECK(t->node.location);
}

void model_arm(struct model *m, struct timer *t, u64 deadline)
{
	CHECK(!t->node.location);
	enqueue_by(m, t, deadline, twheel_enqueue);
	t->armed = true;
	m->armed++;
}

static void note_disarmed(struct model *m, struct timer *t)
{
	CHECK(t->armed && !t->node.location);
	t->armed = false;
	t->on_remote = false;
	m->armed--;
}

void model_cancel(struct model *m, struct timer *t)
{
	twheel_dequeue(m->wheel, &t->node);
	note_disarmed(m, t);
}

/* Cancels it as another CPU would. */
void model_dequeue_remote(struct model *m, struct timer *t)
{
	CHECK(twheel_dequeue_remote(m->wheel, &t->node) == 1);
	CHECK(twheel_dequeue_remote(m->wheel, &t->node) == 0);
	note_disarmed(m, t);
}

/* Arms it as another CPU would, while this one is busy. */
void model_queue_remote(struct model *m, struct timer *t, u64 deadline)
{
	t->node.deadline = deadline;
	twheel_queue_remote(m->wheel, &t->node);
	t->armed = true;
	t->on_remote = true;
	m->armed++;
}

/* The owner processes one node of the remote list. Returns it once enqueued, or NULL. */
struct timer *model_unqueue_remote(struct model *m)
{
	struct twheel_node *node = twheel_unqueue_remote(m->wheel);
	struct timer *t;

	if (!node)
		return NULL;
	t = container_of(node, struct timer, node);
	CHECK(t->armed && t->on_remote);
	CHECK(twheel_dequeue_remote(m->wheel, node) == -EAGAIN);
	t->on_remote = false;
	set_earliest(m, t);
	twheel_enqueue_from_remote(m->wheel, node);
	return t;
}

/* The tick at which the wheel reaches a timer in a cell. */
static u64 entry_tick(const struct model *m, const struct timer *t)
{
	return due_tick(m->wheel, t->node.defer_after + 1);
}

/* As core/timer.c does it: only store the deadline if that is enough. */
void model_rearm(struct model *m, struct timer *t, u64 deadline)
{
	u64 due = due_tick(m->wheel, deadline);

	if (!twheel_may_defer(&t->node, deadline)) {
		enqueue_by(m, t, deadline, twheel_requeue);
		t->on_remote = false;
		return;
	}
	/* The entry stays: the wheel must not reach it too late. */
	CHECK(due >= entry_tick(m, t));
	t->earliest = max(due, m->wheel->now);
	t->passed = false;
	t->node.deadline = deadline;
}

/* The first tick at which the oracle expects a timer to expire. */
static u64 model_next(const struct model *m)
{
	u64 next = TWHEEL_NEVER;
	unsigned int i;

	for (i = 0; i < m->nr; i++)
		if (m->timers[i].armed && !m->timers[i].on_remote)
			next = min(next, m->timers[i].earliest);
	return next;
}

/* The wheel has handed out a node, which nobody else can get now. */
static void note_dequeued(struct model *m, struct timer *t)
{
	CHECK(twheel_dequeue_remote(m->wheel, &t->node) == -EAGAIN);
	twheel_detach(&t->node);
	note_disarmed(m, t);
}

static void expire_timer(void *arg, struct twheel_node *node, u64 late)
{
	struct timer *t = container_of(node, struct timer, node);
	struct model *m = arg;

	CHECK(!t->on_remote);
	/* Never early, and in terms of the wheel's time never late. */
	CHECK(node->deadline <= m->due);
	CHECK(late == m->due - node->deadline);
	CHECK(m->wheel->now <= t->earliest);
	/* In order, unless the wheel is behind, or the deadline had passed when it was armed. */
	CHECK(t->passed || m->wheel->now == t->earliest ||
	      m->due > (m->wheel->now + TWHEEL_BEHIND) << m->wheel->shift);
	/* A timer due at the next tick may expire too, if its deadline has been reached. */
	CHECK(t->passed || t->earliest <= (m->due >> m->wheel->shift) + 1);
	note_dequeued(m, t);
	if (m->expired)
		m->expired(m, t);
}

/* A time within a tick, always the same one. */
static u64 time_within(const struct model *m, u64 tick)
{
	u64 part = tick * 0x9e3779b97f4a7c15ULL >> 1 >> (63 - m->wheel->shift);

	return tick << m->wheel->shift | part;
}

/*
 * Expires timers, in at most @budget steps. If there are more, it stops when the wheel has
 * advanced to the next slot and nothing in that slot has expired yet.
 */
void model_expire(struct model *m, u64 tick, unsigned int budget)
{
	while (model_unqueue_remote(m))
		;
	for (; twheel_advance(m->wheel, tick); budget--) {
		if (!budget) {
			twheel_set_earliest(m->wheel, time_within(m, tick));
			return;
		}
		m->due = twheel_due_until(m->wheel, time_within(m, tick));
		if (!twheel_expire(m->wheel, 1, m->due, expire_timer, m))
			twheel_expire_spilled(m->wheel, m->due, expire_timer, m);
	}
	CHECK(m->wheel->now >= tick);
	CHECK(model_next(m) > tick);
	CHECK(twheel_next_expiry(m->wheel) > tick);
}

/* Moves time forward, never back, and never past an occupied slot. */
void model_forward(struct model *m, u64 tick)
{
	u64 now = m->wheel->now;

	twheel_forward(m->wheel, tick);
	CHECK(m->wheel->now == now || (m->wheel->now == tick && tick > now));
	CHECK(m->wheel->now == now || model_next(m) > tick);
}

void model_advance(struct model *m, u64 tick)
{
	model_expire(m, tick, ~0U);
}

static void evict_timer(struct model *m, struct twheel_node *node)
{
	m->wheel->stats.dequeued++;
	note_dequeued(m, container_of(node, struct timer, node));
}

/* Empties the wheel like that of a dead CPU, which is then reused. */
void model_evict_all(struct model *m)
{
	struct twheel_chunk *chunk;
	struct twheel_node *node;
	unsigned int i;

	twheel_flush_dequeued(m->wheel);
	do {
		while ((chunk = twheel_chunk_first(m->wheel))) {
			for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
				node = chunk->cell[i];
				chunk->cell[i] = NULL;
				if (node)
					evict_timer(m, node);
			}
			twheel_chunk_retire(m->wheel, chunk);
		}
		node = twheel_unspill(m->wheel, &m->wheel->expiring_spill);
		if (!node)
			node = twheel_unqueue_remote(m->wheel);
		if (node)
			evict_timer(m, node);
	} while (node || twheel_advance(m->wheel, TWHEEL_NEVER - 1));
	CHECK(!m->armed);
}

void model_check(const struct model *m)
{
	check_wheel(m->wheel, m->armed);
	CHECK(twheel_next_expiry(m->wheel) <= model_next(m));
	/* An empty chunk that is expiring has not been freed yet. */
	if (!m->wheel->stats.spilled && !m->wheel->emptied && !m->armed &&
	    !m->wheel->nr_pending_clear && !twheel_chunk_first(m->wheel))
		CHECK(twheel_next_expiry(m->wheel) == TWHEEL_NEVER);
}
