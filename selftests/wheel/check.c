// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"

struct count {
	unsigned long nodes;
	unsigned long chunks;
};

/* What every entry of a slot has in common. */
struct place {
	u64 tick;
	bool work;
};

static void check_node(const struct twheel *wheel, const struct twheel_node *node,
		       const struct place *place)
{
	u64 due = due_tick(wheel, node->deadline);

	if (place->work) {
		CHECK(node->filed <= wheel->now);
	} else {
		CHECK(node->filed == place->tick);
		CHECK(node->filed > wheel->now);
	}
	/* A node that was overdue when it was filed comes up at the next tick. */
	CHECK(node->filed <= due || node->filed == wheel->now + 1 || node->filed <= wheel->now);
}

static void check_chain(const struct twheel *wheel, const struct twheel_slot *slot,
			const struct place *place, struct count *count)
{
	struct twheel_chunk *const *link = &slot->head;
	const struct twheel_chunk *chunk, *last = NULL;
	unsigned int i, used;

	for (chunk = slot->head; chunk; chunk = chunk->next) {
		CHECK((unsigned long)chunk % TWHEEL_CHUNK_BYTES == 0);
		CHECK(chunk->pprev == link);
		for (used = i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
			const struct twheel_node *node = chunk->cell[i];

			if (!node)
				continue;
			CHECK(node->where == TWHEEL_IN_CELL);
			CHECK(node->cell == &chunk->cell[i]);
			check_node(wheel, node, place);
			used++;
		}
		/* Only the chunk that the last node was just taken from is empty. */
		CHECK(used || (place->work && chunk == slot->head));
		count->nodes += used;
		count->chunks++;
		link = &chunk->next;
		last = chunk;
	}
	if (place->work)
		return;
	if (!last) {
		CHECK(!slot->fill);
		return;
	}
	CHECK(slot->fill > last->cell && slot->fill <= last->cell + TWHEEL_CHUNK_CELLS);
	for (i = slot->fill - last->cell; i < TWHEEL_CHUNK_CELLS; i++)
		CHECK(!last->cell[i]);
}

static void check_spill(const struct twheel *wheel, const struct twheel_slot *slot,
			struct count *count)
{
	const struct hlist_node *link;

	for (link = slot->spill.first; link; link = link->next) {
		const struct twheel_node *node = hlist_entry(link, struct twheel_node, spill);

		CHECK(node->where == TWHEEL_SPILLED);
		CHECK(*link->pprev == link);
		CHECK(wheel->stats.spilled);
		count->nodes++;
	}
}

static void check_level(const struct twheel *wheel, unsigned int level, struct count *count)
{
	unsigned int shift = level * TWHEEL_BITS, i;
	u64 above = wheel->now >> shift >> TWHEEL_BITS;

	CHECK(!!wheel->occupied[level] == !!(wheel->levels & 1U << level));
	for (i = 0; i < TWHEEL_SLOTS; i++) {
		const struct twheel_slot *slot = &wheel->slot[level][i];
		struct place place = { .tick = (above << TWHEEL_BITS | i) << shift };
		bool marked = wheel->occupied[level] >> i & 1;

		if (slot->head || slot->spill.first) {
			CHECK(marked);
			CHECK(place.tick > wheel->now);
		} else if (marked) {
			/* The last node of a spill list does not know its slot. */
			CHECK(wheel->stats.spilled);
		}
		check_chain(wheel, slot, &place, count);
		check_spill(wheel, slot, count);
	}
}

void check_wheel(const struct twheel *wheel)
{
	struct place work = { .work = true };
	const struct twheel_chunk *chunk;
	struct count count = { 0 };
	unsigned long free = 0;
	unsigned int i;

	check_chain(wheel, &wheel->work, &work, &count);
	check_spill(wheel, &wheel->work, &count);
	for (i = 0; i < TWHEEL_LEVELS; i++)
		check_level(wheel, i, &count);
	CHECK(count.nodes == wheel->stats.entries);
	CHECK(count.chunks <= count.nodes + 1);

	for (chunk = wheel->free; chunk; chunk = chunk->next) {
		for (i = 0; i < TWHEEL_CHUNK_CELLS; i++)
			CHECK(!chunk->cell[i]);
		free++;
	}
	CHECK(free == wheel->stats.free);
	CHECK(free + count.chunks == wheel->stats.chunks);
}
