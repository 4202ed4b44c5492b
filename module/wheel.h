/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the data structure
 *
 * A hierarchical timing wheel whose slots are chains of cache-line chunks. It
 * has no lock, no clock and no allocator of its own: the caller serialises the
 * calls, says what time it is and supplies chunks. See wheel.c for how it works.
 */
#ifndef _TWHEEL_WHEEL_H
#define _TWHEEL_WHEEL_H

#include <linux/cache.h>
#include <linux/list.h>
#include <linux/types.h>

/*
 * 9 levels of 64 slots hold any deadline below 2^63 ns for ticks of 2^10 ns and
 * longer. The unit tests compile the wheel with far fewer, to try them all.
 */
#ifndef TWHEEL_BITS
#define TWHEEL_BITS		6
#endif
#ifndef TWHEEL_LEVELS
#define TWHEEL_LEVELS		9
#endif
#if TWHEEL_BITS < 1 || TWHEEL_BITS > 6 || TWHEEL_BITS * TWHEEL_LEVELS > 63
#error "a level has 2 to 64 slots, and a tick number 63 bits at the most"
#endif

#define TWHEEL_SLOTS		(1U << TWHEEL_BITS)

/* A tick that never comes: twheel_next() of an empty wheel. */
#define TWHEEL_NEVER		(~0ULL)

/* A chunk is one cache line: two links, the rest are cells. */
#define TWHEEL_CHUNK_BYTES	64
#define TWHEEL_CHUNK_CELLS	(TWHEEL_CHUNK_BYTES / sizeof(void *) - 2)

/* Values of struct twheel_node::where. */
#define TWHEEL_NOWHERE		0	/* the node has no entry */
#define TWHEEL_IN_CELL		1	/* a cell of a chunk points to it */
#define TWHEEL_SPILLED		2	/* it is linked by its own fields */
#define TWHEEL_IN_TRANSIT	3	/* its owner moves it to another wheel */

/**
 * struct twheel_node - the wheel's part of a timer
 * @deadline:	when the timer is due, in nanoseconds. May be moved to later, and
 *		to earlier down to what twheel_may_defer() allows, without telling
 *		the wheel
 * @cell:	the cell that points to this node, if @where is %TWHEEL_IN_CELL
 * @filed:	the tick at which the wheel comes to the node's entry, likewise
 * @spill:	link of a slot's spill list, if @where is %TWHEEL_SPILLED
 * @link:	the owner's, while @where is %TWHEEL_NOWHERE
 * @where:	whether the node has an entry, and of which kind. Written by the
 *		wheel, but for %TWHEEL_IN_TRANSIT
 * @owner:	not used by the wheel
 */
struct twheel_node {
	u64				deadline;
	union {
		struct {
			struct twheel_node	**cell;
			u64			filed;
		};
		struct hlist_node	spill;
		struct list_head	link;
	};
	u32				where;
	u32				owner;
};

/**
 * struct twheel_chunk - a cache line of entries
 * @next:	the next chunk of the chain, or of the free chunks
 * @pprev:	the pointer that points to this chunk
 * @cell:	nodes, or NULL where one was removed or none was filed yet
 *
 * A chunk with no node in it is free: none stays in a chain, but for the one
 * that is being worked off.
 */
struct twheel_chunk {
	struct twheel_chunk	*next;
	struct twheel_chunk	**pprev;
	struct twheel_node	*cell[TWHEEL_CHUNK_CELLS];
} __aligned(TWHEEL_CHUNK_BYTES);

/**
 * struct twheel_slot - the entries that the wheel comes to at one tick
 * @head:	first chunk
 * @fill:	the cell for the next entry. When the last chunk is full it points
 *		behind it, which is where a chunk would begin; NULL without chunks
 * @spill:	the entries for which there was no chunk
 */
struct twheel_slot {
	struct twheel_chunk	*head;
	struct twheel_node	**fill;
	struct hlist_head	spill;
};

/**
 * struct twheel_stats - what a wheel holds and has done
 * @entries:	nodes that have an entry now
 * @spilled:	entries ever filed without a chunk
 * @cascades:	entries filed again because their deadline was not yet there
 * @chunks:	chunks supplied
 * @free:	chunks of these that are free
 */
struct twheel_stats {
	unsigned long	entries;
	unsigned long	spilled;
	unsigned long	cascades;
	unsigned long	chunks;
	unsigned long	free;
};

/**
 * struct twheel - a wheel
 * @now:	the tick up to which all slots have been taken. What is left of the
 *		last one taken is in @work
 * @shift:	a tick is 2^@shift units of struct twheel_node::deadline
 * @levels:	bit l is set if @occupied[l] is not 0
 * @occupied:	bit s of word l is set if slot s of level l may hold an entry
 * @work:	the slot that is being worked off
 * @cursor:	the next cell of @work to look at; in its first chunk, if it has one
 * @free:	chunks for new entries; all their cells are NULL
 * @stats:	counters
 * @slot:	the slots
 */
struct twheel {
	u64			now;
	unsigned int		shift;
	unsigned int		levels;
	u64			occupied[TWHEEL_LEVELS];
	struct twheel_slot	work;
	struct twheel_node	**cursor;
	struct twheel_chunk	*free;
	struct twheel_stats	stats;
	struct twheel_slot	slot[TWHEEL_LEVELS][TWHEEL_SLOTS];
};

void twheel_init(struct twheel *wheel, unsigned int shift, u64 now);
void twheel_supply(struct twheel *wheel, struct twheel_chunk *chunk);
u64 twheel_file(struct twheel *wheel, struct twheel_node *node);
void twheel_remove(struct twheel *wheel, struct twheel_node *node);
u64 twheel_next(const struct twheel *wheel);
void twheel_forward(struct twheel *wheel, u64 tick);
struct twheel_node *twheel_expire(struct twheel *wheel, u64 tick, unsigned int *budget);
struct twheel_node *twheel_evict(struct twheel *wheel);
void twheel_reset(struct twheel *wheel, u64 now);

/**
 * twheel_due_tick - the first tick at which a deadline has passed
 * @wheel:	the wheel, for the length of its tick
 * @deadline:	in nanoseconds, below 2^63
 *
 * Return: @deadline in ticks, rounded up: nothing is ever early.
 */
static inline u64 twheel_due_tick(const struct twheel *wheel, u64 deadline)
{
	return (deadline + (1ULL << wheel->shift) - 1) >> wheel->shift;
}

/**
 * twheel_may_defer - may a node's deadline change without filing it again?
 * @wheel:	the wheel that the node is filed on
 * @node:	the node; it has an entry
 * @deadline:	the new deadline, in nanoseconds
 *
 * The wheel looks at the deadline when it comes to the entry, so it is enough
 * that the entry comes up no later than the deadline.
 *
 * Return: true if storing @deadline is all there is to do.
 */
static inline bool twheel_may_defer(const struct twheel *wheel,
				    const struct twheel_node *node, u64 deadline)
{
	if (node->where == TWHEEL_SPILLED)
		return deadline >= node->deadline;
	return twheel_due_tick(wheel, deadline) >= node->filed;
}

#endif /* _TWHEEL_WHEEL_H */
