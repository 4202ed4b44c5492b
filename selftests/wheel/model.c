// SPDX-License-Identifier: GPL-2.0-only
#include "model.h"

/* Takes the wheel's free chunks away, for it to run out of them. */
void model_withhold(struct model *m)
{
	struct twheel_chunk *chunk;

	while ((chunk = m->wheel->free)) {
		m->wheel->free = (struct twheel_chunk *)chunk->link;
		chunk->link = (unsigned long)m->withheld;
		m->withheld = chunk;
	}
	m->wheel->stats.chunks -= m->wheel->stats.free;
	m->wheel->stats.free = 0;
}

void model_init(struct model *m, unsigned int nr, unsigned int shift, u64 now)
{
	const unsigned int pages = nr / TWHEEL_PAGE_CHUNKS + 1;
	const u16 owner = 7;
	unsigned int i;

	memset(m, 0, sizeof(*m));
	m->nr = nr;
	m->wheel = aligned_alloc(64, sizeof(*m->wheel));
	m->timers = calloc(nr, sizeof(*m->timers));
	m->pages = aligned_alloc(TWHEEL_PAGE_BYTES, pages * sizeof(*m->pages));
	if (!m->wheel || !m->timers || !m->pages) {
		perror("model: malloc");
		exit(2);
	}
	memset(m->pages, 0, pages * sizeof(*m->pages));
	for (i = 0; i < nr; i++)
		m->timers[i].node.owner = owner;
	twheel_init(m->wheel, shift, owner, now);
	for (i = 0; i < pages; i++)
		twheel_supply(m->wheel, &m->pages[i]);
	model_withhold(m);
}

/* Gives the wheel so many chunks, as far as there are any. */
void model_supply(struct model *m, unsigned int nr)
{
	struct twheel_chunk *chunk;

	for (; nr; nr--) {
		chunk = m->withheld;
		if (!chunk)
			break;
		m->withheld = (struct twheel_chunk *)chunk->link;
		chunk->link = (unsigned long)m->wheel->free;
		m->wheel->free = chunk;
		m->wheel->stats.free++;
		m->wheel->stats.chunks++;
	}
}

void model_free(struct model *m)
{
	free(m->pages);
	free(m->timers);
	free(m->wheel);
}

/* The tick of the slot for what is due at @tick: the finest that reaches so far. */
static u64 slot_tick(const struct model *m, u64 tick)
{
	u64 width = 1;

	while (tick / width / TWHEEL_SLOTS != m->wheel->now / width / TWHEEL_SLOTS)
		width *= TWHEEL_SLOTS;
	return tick / width * width;
}

/* Enters a node in the wheel by @file, and looks where it is. */
static void enter(struct model *m, struct timer *t, u64 deadline,
		  u64 (*file)(struct twheel *wheel, struct twheel_node *node, u64 deadline))
{
	t->node.deadline = deadline;
	t->earliest = max(due_tick(m->wheel, deadline), m->wheel->now + 1);
	CHECK(file(m->wheel, &t->node, deadline) >> m->wheel->shift ==
	      slot_tick(m, t->earliest));
	CHECK(t->node.place);
}

void model_arm(struct model *m, struct timer *t, u64 deadline)
{
	CHECK(!t->node.place);
	enter(m, t, deadline, twheel_file);
	t->armed = true;
	m->armed++;
}

static void disarmed(struct model *m, struct timer *t)
{
	CHECK(t->armed && !t->node.place);
	t->armed = false;
	t->sent = false;
	m->armed--;
}

void model_cancel(struct model *m, struct timer *t)
{
	twheel_remove(m->wheel, &t->node);
	disarmed(m, t);
}

/* As another CPU would cancel it. */
void model_take(struct model *m, struct timer *t)
{
	CHECK(twheel_try_take(m->wheel, &t->node) == 1);
	CHECK(twheel_try_take(m->wheel, &t->node) == 0);
	disarmed(m, t);
}

/* As another CPU would arm it, while this one works. */
void model_send(struct model *m, struct timer *t, u64 deadline)
{
	t->node.deadline = deadline;
	twheel_send(m->wheel, &t->node);
	t->armed = true;
	t->sent = true;
	m->armed++;
}

/* The owner looks into the inbox. */
static void model_receive(struct model *m)
{
	struct twheel_node *node;
	struct timer *t;

	while ((node = twheel_unspill(m->wheel, &m->wheel->inbox))) {
		t = container_of(node, struct timer, node);
		CHECK(t->armed && t->sent);
		CHECK(twheel_try_take(m->wheel, node) == -EAGAIN);
		t->sent = false;
		t->earliest = max(due_tick(m->wheel, node->deadline), m->wheel->now + 1);
		twheel_cascade(m->wheel, node);
	}
}

/* The tick at which the wheel comes to a timer in a cell. */
static u64 entry_tick(const struct model *m, const struct timer *t)
{
	return due_tick(m->wheel, t->node.after + 1);
}

/* As the engine does it: store the deadline if that is enough. */
void model_rearm(struct model *m, struct timer *t, u64 deadline)
{
	u64 due = due_tick(m->wheel, deadline);

	if (!twheel_may_defer(&t->node, deadline)) {
		enter(m, t, deadline, twheel_move);
		t->sent = false;
		return;
	}
	/* The entry stays: the wheel must not get there too late. */
	CHECK(due >= entry_tick(m, t));
	t->earliest = max(due, m->wheel->now);
	t->node.deadline = deadline;
}

/* The first tick at which the oracle has something to hand out. */
static u64 model_next(const struct model *m)
{
	u64 next = TWHEEL_NEVER;
	unsigned int i;

	for (i = 0; i < m->nr; i++)
		if (m->timers[i].armed && !m->timers[i].sent)
			next = min(next, m->timers[i].earliest);
	return next;
}

/* A node has come out of the wheel, and nobody else has got it. */
static void model_left(struct model *m, struct timer *t)
{
	CHECK(twheel_try_take(m->wheel, &t->node) == -EAGAIN);
	twheel_leave(&t->node);
	disarmed(m, t);
}

static void model_expired(void *arg, struct twheel_node *node, u64 late)
{
	struct timer *t = container_of(node, struct timer, node);
	struct model *m = arg;

	CHECK(!t->sent);
	/* Never early, and in wheel time never late. */
	CHECK(node->deadline <= m->due);
	CHECK(late == m->due - node->deadline);
	CHECK(m->wheel->now <= t->earliest);
	/* In order, or it is later than what is in order. */
	CHECK(m->wheel->now == t->earliest ||
	      m->due > (m->wheel->now + TWHEEL_BEHIND) << m->wheel->shift);
	/* If its time has come, one for the next tick may come, too. */
	CHECK(t->earliest <= (m->due >> m->wheel->shift) + 1);
	model_left(m, t);
	if (m->expired)
		m->expired(m, t);
}

/* Some time within a tick, always the same. */
static u64 time_within(const struct model *m, u64 tick)
{
	u64 part = tick * 0x9e3779b97f4a7c15ULL >> 1 >> (63 - m->wheel->shift);

	return tick << m->wheel->shift | part;
}

/*
 * Takes what the wheel hands out, in at most @budget steps. If there is more, it stops
 * where time has come to the next slot, with nothing of it worked off.
 */
void model_work(struct model *m, u64 tick, unsigned int budget)
{
	model_receive(m);
	for (; twheel_advance(m->wheel, tick); budget--) {
		if (!budget)
			return;
		m->due = twheel_due(m->wheel, time_within(m, tick));
		if (!twheel_expire(m->wheel, 1, m->due, model_expired, m))
			twheel_expire_spilled(m->wheel, m->due, model_expired, m);
	}
	CHECK(m->wheel->now >= tick);
	CHECK(model_next(m) > tick);
	CHECK(twheel_next(m->wheel) > tick);
}

/* Moves time forward, never back, and never over a slot that is to be taken. */
void model_forward(struct model *m, u64 tick)
{
	u64 now = m->wheel->now;

	twheel_forward(m->wheel, tick);
	CHECK(m->wheel->now == now || (m->wheel->now == tick && tick > now));
	CHECK(m->wheel->now == now || model_next(m) > tick);
}

void model_advance(struct model *m, u64 tick)
{
	model_work(m, tick, ~0U);
}

static void model_evicted(struct model *m, struct twheel_node *node)
{
	m->wheel->stats.removed++;
	model_left(m, container_of(node, struct timer, node));
}

/* As a dead CPU's wheel is emptied, and then used again. */
void model_empty(struct model *m)
{
	struct twheel_chunk *chunk;
	struct twheel_node *node;
	unsigned int i;

	twheel_settle(m->wheel);
	do {
		while ((chunk = twheel_chunk_get(m->wheel))) {
			for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
				node = chunk->cell[i];
				chunk->cell[i] = NULL;
				if (node)
					model_evicted(m, node);
			}
			twheel_chunk_put(m->wheel, chunk);
		}
		node = twheel_unspill(m->wheel, &m->wheel->work_spill);
		if (!node)
			node = twheel_unspill(m->wheel, &m->wheel->inbox);
		if (node)
			model_evicted(m, node);
	} while (node || twheel_advance(m->wheel, TWHEEL_NEVER - 1));
	CHECK(!m->armed);
}

void model_check(const struct model *m)
{
	check_wheel(m->wheel, m->armed);
	CHECK(twheel_next(m->wheel) <= model_next(m));
	if (!m->wheel->stats.spilled && !m->wheel->emptied && !m->armed &&
	    !m->wheel->nr_removed)
		CHECK(twheel_next(m->wheel) == TWHEEL_NEVER);
}
