// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the data structure
 *
 * Time, in ticks, is read as a number with one digit of TWHEEL_BITS bits per
 * level. A node due at tick T is filed on the level of the highest digit in
 * which T differs from the current tick, in the slot that this digit of T names.
 * That slot's own time is T with all lower digits zero. With the default of 64
 * slots and a tick of 2^20 ns:
 *
 *	level	slot		reaches
 *	0	1.05 ms		67 ms
 *	1	67 ms		4.3 s
 *	2	4.3 s		4 min 35 s
 *	3	4 min 35 s	4 h 53 min
 *	4	4 h 53 min	13 days
 *	5	13 days		2 years 4 months
 *	...
 *
 * When time reaches a slot, each node in it is either due, and handed out, or is
 * filed again, now on a lower level. Nothing is rounded to the width of a slot:
 * every node comes out at the very tick that its deadline is rounded up to.
 *
 * What always holds
 * -----------------
 *
 * 1. A slot that is occupied lies behind the current tick: on its level its
 *    number is greater than the current tick's digit, and in all higher digits
 *    the two agree. So there is no wrap-around within a level, every slot of a
 *    level comes before every slot of the levels above, and the next slot is
 *    found with two find-first-set, however far away it is. Moving the current
 *    tick, by any distance, to just before the next occupied slot keeps this
 *    true: a slot whose higher digits would no longer agree has been passed.
 *
 * 2. A node has at most one entry, and the time of the entry's slot is not after
 *    the node's due tick (or is the next tick, if the node was due already when
 *    it was filed). So a deadline can be moved to later by storing it: the wheel
 *    comes to the entry too early, reads the deadline and files the node again,
 *    by the same code that cascades.
 *
 * 3. A chunk that holds no node is in no chain, so there are at most as many
 *    chunks in use as nodes, whatever the order of operations. Full chains need
 *    one per TWHEEL_CHUNK_CELLS nodes.
 *
 * 4. Filing cannot fail. If there is no free chunk, the node is linked into the
 *    slot's spill list by its own fields. It comes up at the same tick; only
 *    walking such a list costs a cache miss per node.
 *
 * Slots are not lists of nodes because expiry and cascading would then wait for
 * each node's cache line before they know the address of the next one. A chunk
 * names six nodes whose lines can be fetched at the same time, and ahead.
 */
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/string.h>

#include "wheel.h"

#define DIGIT_MASK	(TWHEEL_SLOTS - 1)

/* The chunk that a cell lies in: chunks are aligned to their size. */
static struct twheel_chunk *chunk_of(struct twheel_node **cell)
{
	return (struct twheel_chunk *)((unsigned long)cell & ~(TWHEEL_CHUNK_BYTES - 1UL));
}

/* Is there no cell at @cell: does it point behind a chunk, or nowhere? */
static bool no_cell(struct twheel_node **cell)
{
	return !((unsigned long)cell & (TWHEEL_CHUNK_BYTES - 1));
}

static bool chunk_empty(const struct twheel_chunk *chunk)
{
	unsigned int i;

	for (i = 0; i < TWHEEL_CHUNK_CELLS; i++)
		if (chunk->cell[i])
			return false;
	return true;
}

static void chunk_free(struct twheel *wheel, struct twheel_chunk *chunk)
{
	chunk->next = wheel->free;
	wheel->free = chunk;
	wheel->stats.free++;
}

/* The level of a tick that is not yet reached. */
static unsigned int level_of(const struct twheel *wheel, u64 tick)
{
	return (fls64(tick ^ wheel->now) - 1) / TWHEEL_BITS;
}

static unsigned int digit_of(u64 tick, unsigned int level)
{
	return (tick >> (level * TWHEEL_BITS)) & DIGIT_MASK;
}

static void set_occupied(struct twheel *wheel, unsigned int level, unsigned int digit)
{
	wheel->occupied[level] |= 1ULL << digit;
	wheel->levels |= 1U << level;
}

static void clear_occupied(struct twheel *wheel, unsigned int level, unsigned int digit)
{
	wheel->occupied[level] &= ~(1ULL << digit);
	if (!wheel->occupied[level])
		wheel->levels &= ~(1U << level);
}

/**
 * twheel_init - make an empty wheel
 * @wheel:	the wheel
 * @shift:	a tick is 2^@shift nanoseconds. (2^63 >> @shift) must be less than
 *		2^(TWHEEL_BITS * TWHEEL_LEVELS)
 * @now:	the current tick
 */
void twheel_init(struct twheel *wheel, unsigned int shift, u64 now)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->shift = shift;
	wheel->now = now;
}

/**
 * twheel_supply - give the wheel a chunk
 * @wheel:	the wheel; it never gives the chunk back
 * @chunk:	memory of the size and alignment of a chunk, all zero
 */
void twheel_supply(struct twheel *wheel, struct twheel_chunk *chunk)
{
	wheel->stats.chunks++;
	chunk_free(wheel, chunk);
}

/* Appends an empty chunk to the slot. Returns false if there is none. */
static bool slot_extend(struct twheel *wheel, struct twheel_slot *slot)
{
	struct twheel_chunk *chunk = wheel->free;
	struct twheel_chunk **link;

	if (unlikely(!chunk))
		return false;
	wheel->free = chunk->next;
	wheel->stats.free--;

	link = slot->fill ? &chunk_of(slot->fill - 1)->next : &slot->head;
	chunk->next = NULL;
	chunk->pprev = link;
	*link = chunk;
	slot->fill = chunk->cell;
	return true;
}

/**
 * twheel_file - enter a node
 * @wheel:	the wheel
 * @node:	the node; it has no entry. If its deadline has passed, it comes up
 *		at the next tick
 *
 * Return: the tick at which the wheel comes to the node. That is not after the
 * node's due tick, and may be before it.
 */
u64 twheel_file(struct twheel *wheel, struct twheel_node *node)
{
	u64 tick = max(twheel_due_tick(wheel, READ_ONCE(node->deadline)), wheel->now + 1);
	unsigned int level = level_of(wheel, tick);
	unsigned int digit = digit_of(tick, level);
	struct twheel_slot *slot = &wheel->slot[level][digit];

	tick = tick >> (level * TWHEEL_BITS) << (level * TWHEEL_BITS);
	if (likely(!no_cell(slot->fill) || slot_extend(wheel, slot))) {
		node->cell = slot->fill++;
		*node->cell = node;
		node->filed = tick;
		WRITE_ONCE(node->where, TWHEEL_IN_CELL);
	} else {
		hlist_add_head(&node->spill, &slot->spill);
		WRITE_ONCE(node->where, TWHEEL_SPILLED);
		wheel->stats.spilled++;
	}
	set_occupied(wheel, level, digit);
	wheel->stats.entries++;
	return tick;
}

/* The last chunk of a slot is about to go: entries then follow the one before. */
static void cut_tail(struct twheel *wheel, struct twheel_chunk *chunk, u64 filed)
{
	unsigned int level = level_of(wheel, filed);
	unsigned int digit = digit_of(filed, level);
	struct twheel_slot *slot = &wheel->slot[level][digit];

	if (chunk->pprev != &slot->head) {
		chunk = container_of(chunk->pprev, struct twheel_chunk, next);
		slot->fill = chunk->cell + TWHEEL_CHUNK_CELLS;
		return;
	}
	slot->fill = NULL;
	if (hlist_empty(&slot->spill))
		clear_occupied(wheel, level, digit);
}

/*
 * Takes the empty @chunk out of its chain. @filed is the tick of the entries that
 * were in it: if that has come, the chain is @work, which is not filled.
 */
static void drop_chunk(struct twheel *wheel, struct twheel_chunk *chunk, u64 filed)
{
	if (chunk->next) {
		chunk->next->pprev = chunk->pprev;
		if (chunk == wheel->work.head)
			wheel->cursor = chunk->next->cell;
	} else if (filed > wheel->now) {
		cut_tail(wheel, chunk, filed);
	}
	*chunk->pprev = chunk->next;
	chunk_free(wheel, chunk);
}

/**
 * twheel_remove - take a node's entry away
 * @wheel:	the wheel that the node is filed on
 * @node:	the node; it has an entry
 */
void twheel_remove(struct twheel *wheel, struct twheel_node *node)
{
	struct twheel_chunk *chunk;

	WARN_ON_ONCE(node->where == TWHEEL_NOWHERE);
	if (unlikely(node->where == TWHEEL_SPILLED)) {
		hlist_del(&node->spill);
	} else {
		*node->cell = NULL;
		chunk = chunk_of(node->cell);
		if (chunk_empty(chunk))
			drop_chunk(wheel, chunk, node->filed);
	}
	/* Pairs with the READ_ONCE() in twheel_pending(). */
	WRITE_ONCE(node->where, TWHEEL_NOWHERE);
	wheel->stats.entries--;
}

static bool working(const struct twheel *wheel)
{
	return wheel->work.head || !hlist_empty(&wheel->work.spill);
}

/**
 * twheel_next - when is the next slot due?
 * @wheel:	the wheel
 *
 * Return: the tick of the next occupied slot; the current tick if it is being
 * worked off; %TWHEEL_NEVER if there is none. No node comes up before this tick.
 */
u64 twheel_next(const struct twheel *wheel)
{
	unsigned int level, shift;

	if (working(wheel))
		return wheel->now;
	if (!wheel->levels)
		return TWHEEL_NEVER;
	level = __ffs(wheel->levels);
	shift = level * TWHEEL_BITS;
	return (wheel->now >> shift >> TWHEEL_BITS << TWHEEL_BITS |
		__ffs64(wheel->occupied[level])) << shift;
}

/**
 * twheel_forward - move the current tick, unless a slot comes before
 * @wheel:	the wheel
 * @tick:	where to
 *
 * A wheel that slept for long files on coarser levels than it has to. This mends
 * it, before the first node is filed that will wake it.
 */
void twheel_forward(struct twheel *wheel, u64 tick)
{
	if (tick > wheel->now && twheel_next(wheel) > tick)
		wheel->now = tick;
}

/* Moves time to the next occupied slot, at @tick, and its content to @work. */
static void take_slot(struct twheel *wheel, u64 tick)
{
	unsigned int level = level_of(wheel, tick);
	unsigned int digit = digit_of(tick, level);
	struct twheel_slot *slot = &wheel->slot[level][digit];

	wheel->now = tick;
	clear_occupied(wheel, level, digit);
	hlist_move_list(&slot->spill, &wheel->work.spill);
	wheel->work.head = slot->head;
	if (slot->head) {
		slot->head->pprev = &wheel->work.head;
		wheel->cursor = slot->head->cell;
	}
	slot->head = NULL;
	slot->fill = NULL;
}

/*
 * Starts to fetch the nodes of the chunk after @chunk, and the chunk after that:
 * their lines arrive while the nodes of @chunk are worked off.
 */
static void prefetch_ahead(const struct twheel_chunk *chunk)
{
	const struct twheel_chunk *next = chunk->next;
	unsigned int i;

	if (!next)
		return;
	prefetch(next->next);
	for (i = 0; i < TWHEEL_CHUNK_CELLS; i++)
		prefetchw(next->cell[i]);
}

/*
 * Takes the next entry out of the first chunk of @work. Leaves a chunk behind
 * that may be empty, as the one exception: the next call frees it.
 */
static struct twheel_node *pop_cell(struct twheel *wheel)
{
	struct twheel_chunk *chunk;
	struct twheel_node *node;

	while ((chunk = wheel->work.head)) {
		if (wheel->cursor == chunk->cell)
			prefetch_ahead(chunk);
		while (wheel->cursor < chunk->cell + TWHEEL_CHUNK_CELLS) {
			node = *wheel->cursor;
			*wheel->cursor++ = NULL;
			if (node)
				return node;
		}
		wheel->work.head = chunk->next;
		if (chunk->next) {
			chunk->next->pprev = &wheel->work.head;
			wheel->cursor = chunk->next->cell;
		}
		chunk_free(wheel, chunk);
	}
	return NULL;
}

/* Takes the next node out of @work, with its entry. */
static struct twheel_node *pop(struct twheel *wheel)
{
	struct twheel_node *node = pop_cell(wheel);

	if (!node && !hlist_empty(&wheel->work.spill)) {
		node = hlist_entry(wheel->work.spill.first, struct twheel_node, spill);
		hlist_del(&node->spill);
	}
	if (node) {
		/* Pairs with the READ_ONCE() in twheel_pending(). */
		WRITE_ONCE(node->where, TWHEEL_NOWHERE);
		wheel->stats.entries--;
	}
	return node;
}

/**
 * twheel_expire - let time pass, up to the next node that is due
 * @wheel:	the wheel
 * @tick:	the tick that it is now. If it lies behind the wheel's current
 *		tick, only what is left over from there is worked off
 * @budget:	how many entries to look at; what is left, on return
 *
 * To be called until it returns NULL. Between two calls nodes may be filed and
 * removed.
 *
 * Return: a node that is due and now has no entry; NULL if none is, or if
 * *@budget is 0.
 */
struct twheel_node *twheel_expire(struct twheel *wheel, u64 tick, unsigned int *budget)
{
	struct twheel_node *node;
	u64 next;

	for (;;) {
		while (*budget && (node = pop(wheel))) {
			--*budget;
			if (twheel_due_tick(wheel, READ_ONCE(node->deadline)) <= wheel->now)
				return node;
			twheel_file(wheel, node);
			wheel->stats.cascades++;
		}
		if (!*budget)
			return NULL;
		next = twheel_next(wheel);
		if (next > tick)
			break;
		take_slot(wheel, next);
	}
	twheel_forward(wheel, tick);
	return NULL;
}

/**
 * twheel_evict - take any node out of the wheel, due or not
 * @wheel:	the wheel. Its current tick loses its meaning: when the wheel is
 *		empty, it is to be set again by twheel_reset()
 *
 * Return: a node that now has no entry; NULL if there is none.
 */
struct twheel_node *twheel_evict(struct twheel *wheel)
{
	struct twheel_node *node;

	while (!(node = pop(wheel)) && wheel->levels)
		take_slot(wheel, twheel_next(wheel));
	return node;
}

/**
 * twheel_reset - set the current tick of an empty wheel
 * @wheel:	the wheel
 * @now:	the current tick
 */
void twheel_reset(struct twheel *wheel, u64 now)
{
	WARN_ON_ONCE(wheel->stats.entries);
	wheel->now = now;
}
