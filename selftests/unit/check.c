// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"

__thread unsigned long steps, locks;

struct count {
	unsigned long nodes;
	unsigned long chunks;
	unsigned long emptied;
};

/* What all entries of a slot have in common. */
struct place {
	u64 tick;
	bool work;
};

static void check_node(const struct twheel *wheel, const struct twheel_node *node,
		       const struct place *place)
{
	if (place->work)
		return;
	CHECK(place->tick > wheel->now);
	CHECK(node->defer_after == (place->tick - 1) << wheel->shift);
	/* Or its deadline had already passed when it was enqueued. */
	CHECK(twheel_may_defer(node, node->deadline) ||
	      place->tick <= wheel->earliest >> wheel->shift);
}

/* Has another CPU reported this chunk as emptied? */
static bool is_reported(const struct twheel *wheel, const struct twheel_chunk *chunk)
{
	const struct twheel_page *page = twheel_page_of(chunk), *listed;

	for (listed = wheel->emptied; listed; listed = listed->next_emptied)
		if (listed == page)
			return page->emptied & twheel_chunk_bit(chunk);
	return false;
}

/* Has its node been dequeued, with the cell still to be cleared? */
static bool is_pending_clear(const struct twheel *wheel, struct twheel_node *const *cell)
{
	unsigned int i;

	for (i = 0; i < wheel->nr_pending_clear; i++)
		if (wheel->pending_clear[i] == cell)
			return true;
	return false;
}

static void check_chain(const struct twheel *wheel, const struct twheel_slot *slot,
			const struct place *place, struct count *count)
{
	const struct twheel_chunk *chunk, *last = NULL;
	const unsigned long *link = &slot->head;
	unsigned int i, used, stale;

	for (; !(*link & 1); link = &chunk->link) {
		chunk = (struct twheel_chunk *)*link;
		CHECK((unsigned long)chunk % TWHEEL_CHUNK_BYTES == 0);
		CHECK(chunk->pprev == link || link == &wheel->expiring.head);
		CHECK(!(twheel_page_of(chunk)->free & twheel_chunk_bit(chunk)));
		for (used = stale = i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
			const struct twheel_node *node = chunk->cell[i];

			if (!node)
				continue;
			if (is_pending_clear(wheel, &chunk->cell[i])) {
				stale++;
				continue;
			}
			CHECK(node->location == ((unsigned long)&chunk->cell[i] | TWHEEL_IN_CELL));
			CHECK(node->owner == wheel->owner);
			check_node(wheel, node, place);
			used++;
		}
		if (!used) {
			CHECK(stale || link == &wheel->expiring.head || is_reported(wheel, chunk));
			count->emptied++;
		}
		count->nodes += used;
		count->chunks++;
		last = chunk;
	}
	CHECK(*link == ((unsigned long)slot | 1));
	if (place->work)
		return;
	if (!last) {
		CHECK(!slot->tail);
		return;
	}
	CHECK(slot->tail > last->cell && slot->tail <= last->cell + TWHEEL_CHUNK_CELLS);
	for (i = slot->tail - last->cell; i < TWHEEL_CHUNK_CELLS; i++)
		CHECK(!last->cell[i]);
}

static void check_spill(struct twheel_node *const *list, struct count *count)
{
	for (; *list; list = &(*list)->next) {
		CHECK((*list)->location == ((unsigned long)list | TWHEEL_SPILLED));
		count->nodes++;
	}
}

static void check_level(const struct twheel *wheel, unsigned int level, struct count *count)
{
	unsigned int shift = level * TWHEEL_BITS, i;
	u64 above = wheel->now >> shift >> TWHEEL_BITS;

	CHECK(!!wheel->occupied[level] == !!(wheel->occupied_levels & 1U << level));
	for (i = 0; i < TWHEEL_SLOTS; i++) {
		const struct twheel_slot *slot = &wheel->slot[level][i];
		struct place place = { .tick = (above << TWHEEL_BITS | i) << shift };
		bool marked = wheel->occupied[level] >> i & 1;

		if (!(slot->head & 1) || wheel->spill[level * TWHEEL_SLOTS + i]) {
			CHECK(marked);
			CHECK(place.tick > wheel->now);
		} else if (marked) {
			/* The last node of a spill list does not record its slot. */
			CHECK(wheel->stats.spilled);
		}
		check_chain(wheel, slot, &place, count);
		check_spill(&wheel->spill[level * TWHEEL_SLOTS + i], count);
	}
}

/* Returns the number of free chunks in a page. */
static unsigned long check_page(const struct twheel *wheel, const struct twheel_page *page)
{
	const struct twheel_chunk *chunk;
	unsigned long nr = 0;
	unsigned int i;
	u64 free;

	CHECK(page->wheel == wheel);
	CHECK(!((page->free | page->emptied) & ~TWHEEL_PAGE_FREE));
	for (free = page->free; free; free &= free - 1, nr++) {
		chunk = (const struct twheel_chunk *)page + __ffs64(free);
		for (i = 0; i < TWHEEL_CHUNK_CELLS; i++)
			CHECK(!chunk->cell[i]);
	}
	return nr;
}

/* Returns the number of free chunks in all pages. */
static unsigned long check_pages(const struct twheel *wheel)
{
	const struct twheel_page *page = wheel->withheld ? wheel->withheld_page : wheel->page;
	unsigned long free = 0, nr;

	CHECK(!(wheel->withheld ? wheel->page : wheel->withheld_page));
	for (; page; page = page->next) {
		nr = check_page(wheel, page);
		CHECK(nr);
		CHECK(page->next || page == wheel->last_page);
		free += nr;
	}
	return free;
}

void check_wheel(const struct twheel *wheel, unsigned long entries)
{
	struct place work = { .work = true };
	struct count count = { 0 };
	unsigned long free;
	unsigned int i;

	check_chain(wheel, &wheel->expiring, &work, &count);
	check_spill(&wheel->expiring_spill, &count);
	check_spill(&wheel->remote_list, &count);
	check_spill(&wheel->remote_batch, &count);
	for (i = 0; i < TWHEEL_LEVELS; i++)
		check_level(wheel, i, &count);
	CHECK(count.nodes == entries);
	CHECK(count.chunks - count.emptied <= count.nodes);

	free = check_pages(wheel);
	CHECK(free == twheel_nr_free(&wheel->stats));
	CHECK(free + count.chunks == wheel->stats.chunks);
}
