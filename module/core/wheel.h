/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the data structure
 *
 * A hierarchical timing wheel whose slots are chains of cache-line chunks. It has
 * no clock and no allocator of its own: who calls says what time it is and supplies
 * the memory. One CPU owns it and needs no lock and no atomic operation but one per
 * entry that comes up; others can take nodes away. See wheel.c for how it works.
 */
#ifndef _TWHEEL_CORE_WHEEL_H
#define _TWHEEL_CORE_WHEEL_H

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/prefetch.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "twheel_types.h"

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

/* A tick that never comes: twheel_next_expiry() of an empty wheel. */
#define TWHEEL_NEVER		(~0ULL)

/* A chunk is one cache line: two links, the rest are cells. */
#define TWHEEL_CHUNK_BYTES	64
#define TWHEEL_CHUNK_CELLS	6

/* A wheel that is more ticks behind than this hands out what is due without order. */
#define TWHEEL_BEHIND		16

/* Removals whose cells are cleared together. */
#define TWHEEL_PENDING_CLEAR		16

/* A page of chunks, the first of which is the page's own. */
#define TWHEEL_PAGE_BYTES	4096UL
#define TWHEEL_PAGE_CHUNKS	(TWHEEL_PAGE_BYTES / TWHEEL_CHUNK_BYTES - 1)

/* Of a page, all chunks but the first. */
#define TWHEEL_PAGE_FREE	(~1ULL)

/*
 * The most that is done in one go with interrupts off: cells or chunks looked at. A test
 * counts them.
 */
#define TWHEEL_STEPS		64
#ifndef twheel_step
#define twheel_step()		do { } while (0)
#endif

/* Added to the number of free chunks by who wants to be asked before each new entry. */
#define TWHEEL_FREE_ASK		(1UL << 63)

/* Bit 0 of a chunk's link: it leads to a slot, not to a chunk. */
#define TWHEEL_LAST		1UL

/**
 * struct twheel_chunk - a cache line of entries
 * @link:	the address of the next chunk of the chain; of the last chunk that of the
 *		slot, and bit 0
 * @pprev:	the link that leads to this chunk; NULL when it has been dropped from its
 *		chain. Nothing if it is the first of the slot that is being worked off
 * @cell:	nodes, or NULL where one was removed or none was filed yet. A node that was
 *		removed a moment ago may still be named: see twheel_flush_dequeued()
 *
 * A chunk with no node in it is in no chain, unless another CPU has just emptied it, or it
 * is the first of the slot that is being worked off. The cells of a free chunk are NULL.
 */
struct twheel_chunk {
	unsigned long		link;
	unsigned long		*pprev;
	struct twheel_node	*cell[TWHEEL_CHUNK_CELLS];
} __aligned(TWHEEL_CHUNK_BYTES);

/**
 * struct twheel_page - what begins a page of chunks, which is aligned to its size
 * @wheel:	the wheel that it was supplied to
 * @next:	the next page with free chunks; or the next of those given back together
 * @free:	bit i is set if chunk i of the page is free; chunk 0 is this
 * @emptied:	bit i is set if another CPU emptied chunk i and it was not looked at yet
 * @next_emptied: the next page with such chunks
 * @charged:	somebody is charged for it: it is not kept in reserve
 * @rcu:	not used by the wheel: for who frees the page
 */
struct twheel_page {
	struct twheel		*wheel;
	struct twheel_page	*next;
	u64			free;
	u64			emptied;
	struct twheel_page	*next_emptied;
	bool			charged;
	struct rcu_head		rcu;
};

static_assert(sizeof(struct twheel_page) <= TWHEEL_CHUNK_BYTES);

/**
 * struct twheel_return - what a wheel is to give back, and has
 * @keep:	how many free chunks it shall have left
 * @reserve:	how many more, if it has pages for which nobody is charged
 * @nr_to_scan:	how many pages are still to be looked at
 * @pages:	those that it has given back, by @next
 */
struct twheel_return {
	unsigned long		keep;
	unsigned long		reserve;
	unsigned long		nr_to_scan;
	struct twheel_page	*pages;
};

/**
 * struct twheel_slot - the entries that the wheel comes to at one tick, in chunks
 * @head:	the link to the first chunk; see struct twheel_chunk
 * @tail:	the cell for the next entry. When the last chunk is full it points
 *		behind it, which is where a chunk would begin; NULL without chunks
 */
struct twheel_slot {
	unsigned long		head;
	struct twheel_node	**tail;
};

/**
 * struct twheel_digit - how to read a time in which a bit is the highest that differs
 * from now
 * @shift:	where the digit of the bit begins
 * @level:	that digit's level
 */
struct twheel_digit {
	u8	shift;
	u8	level;
};

/**
 * struct twheel_stats - what a wheel has done
 * @enqueued:	nodes entered, but for those that cascaded or were moved
 * @pending_clear:	nodes removed by the owner, but for those that were moved
 * @cascades:	entries filed again because their deadline was not yet there
 * @spilled:	entries ever filed without a chunk
 * @chunks:	chunks supplied and not given back
 * @free:	chunks of these that are free, and %TWHEEL_FREE_ASK. Those that are just
 *		being worked off count when all of them are
 */
struct twheel_stats {
	unsigned long	enqueued;
	unsigned long	dequeued;
	unsigned long	cascades;
	unsigned long	spilled;
	unsigned long	chunks;
	unsigned long	free;
};

/**
 * struct twheel - a wheel
 * @now:	the tick up to which all slots have been taken. What is left of the
 *		last one taken is in @expiring
 * @shift:	a tick is 2^@shift units of struct twheel_node::deadline
 * @owner:	the wheel's number
 * @now_ns:	the same in nanoseconds
 * @earliest:	when what is filed now comes up at the earliest, in nanoseconds: the tick after
 *		@now, or, if the wheel is behind, that after its owner has last looked
 * @tick_ns:	length of a tick
 * @msb_map:	for every bit of a time in nanoseconds
 * @occupied_levels:	bit l is set if @occupied[l] is not 0
 * @page:	the page from which chunks are taken for new entries, and by @next all others
 *		that have free ones; NULL if there is none, or who asks for one shall get none
 * @stats:	counters
 * @occupied:	bit s of word l is set if slot s of level l may hold an entry
 * @expiring:	the slot that is being worked off
 * @expiring_last:	the last deadline, in nanoseconds, for which a node belongs in it; 0 from
 *		where all of it is taken to be due
 * @requeue:	nodes that are being filed again
 * @expiring_spill:	what had spilled of it
 * @remote_batch:	a spill list of what was in @remote_list
 * @last_page:	the last of these pages
 * @withheld:	who asks for a chunk shall get none
 * @withheld_page: stands for @page meanwhile
 * @nr_pending_clear:	length of @pending_clear
 * @max_pending_clear: at this length the cells are cleared: %TWHEEL_PENDING_CLEAR, or 1 while slots
 *		are being worked off
 * @pending_clear:	cells whose nodes were removed, and that are still to be cleared
 * @lock:	guards the spill lists, @remote_list, @emptied and what hangs off it, and @remote_dequeued,
 *		against other CPUs, and keeps these from taking nodes while some cascade.
 *		Taken with interrupts off, from any context but NMI, by any CPU;
 *		innermost
 * @remote_list:	a spill list of nodes that other CPUs want to be filed here
 * @emptied:	pages with chunks that other CPUs have emptied
 * @remote_dequeued:	nodes taken away by other CPUs, less those sent by them
 * @slot:	the slots
 * @spill:	of each slot, the entries for which there was no chunk
 */
struct twheel {
	u64			now_ns;
	u64			earliest;
	u64			tick_ns;
	struct twheel_digit	msb_map[64];
	u64			now;
	unsigned int		shift;
	u16			owner;
	unsigned int		occupied_levels;
	struct twheel_page	*page;
	struct twheel_stats	stats;
	u64			occupied[TWHEEL_LEVELS];
	struct twheel_slot	expiring;
	u64			expiring_last;
	struct twheel_node	*requeue[TWHEEL_CHUNK_CELLS];
	struct twheel_node	*expiring_spill;
	struct twheel_node	*remote_batch;
	struct twheel_page	*last_page;
	struct twheel_page	*withheld_page;
	bool			withheld;
	unsigned int		nr_pending_clear;
	unsigned int		max_pending_clear;
	struct twheel_node	**pending_clear[TWHEEL_PENDING_CLEAR];

	raw_spinlock_t		lock ____cacheline_aligned;
	struct twheel_node	*remote_list;
	struct twheel_page	*emptied;
	unsigned long		remote_dequeued;

	struct twheel_slot	slot[TWHEEL_LEVELS][TWHEEL_SLOTS] ____cacheline_aligned;
	struct twheel_node	*spill[TWHEEL_LEVELS * TWHEEL_SLOTS];
};

void twheel_init(struct twheel *wheel, unsigned int shift, u16 owner, u64 now);
void twheel_add_page(struct twheel *wheel, void *memory, bool charged);
void twheel_withhold_chunks(struct twheel *wheel, bool withhold);
void twheel_free_first_chunk(struct twheel *wheel, struct twheel_chunk *chunk);
bool twheel_reclaim(struct twheel *wheel);
bool twheel_release_pages(struct twheel *wheel, struct twheel_return *ret);
u64 twheel_enqueue(struct twheel *wheel, struct twheel_node *node, u64 deadline);
void twheel_dequeue_spilled(struct twheel *wheel, struct twheel_node *node);
u64 twheel_requeue(struct twheel *wheel, struct twheel_node *node, u64 deadline);
void twheel_flush_dequeued(struct twheel *wheel);
u64 twheel_next_expiry(const struct twheel *wheel);
void twheel_forward(struct twheel *wheel, u64 tick);
bool twheel_advance(struct twheel *wheel, u64 tick);
u64 twheel_cascade(struct twheel *wheel, struct twheel_node *node);
u64 twheel_enqueue_from_remote(struct twheel *wheel, struct twheel_node *node);
struct twheel_node *twheel_unspill(struct twheel *wheel, struct twheel_node **list);
struct twheel_node *twheel_unqueue_remote(struct twheel *wheel);
void twheel_reset(struct twheel *wheel, u64 now);

int twheel_dequeue_remote(struct twheel *wheel, struct twheel_node *node);
int twheel_dequeue_not_running(struct twheel *wheel, struct twheel_node *node,
			       bool (*running)(const struct twheel *wheel,
					       const struct twheel_node *node));
void twheel_queue_remote(struct twheel *wheel, struct twheel_node *node);

static __always_inline struct twheel_page *twheel_page_of(const struct twheel_chunk *chunk)
{
	return (struct twheel_page *)((unsigned long)chunk & ~(TWHEEL_PAGE_BYTES - 1));
}

/* The bit of a chunk in its page's words. */
static __always_inline u64 twheel_chunk_bit(const struct twheel_chunk *chunk)
{
	return 1ULL << ((unsigned long)chunk / TWHEEL_CHUNK_BYTES & 63);
}

/* Does a link lead to a chunk? */
static __always_inline bool twheel_link_is_chunk(unsigned long link)
{
	return !(link & TWHEEL_LAST);
}

/* Frees a chunk, which is in no chain any more, but does not count it. */
static __always_inline void twheel_chunk_free(struct twheel *wheel, struct twheel_chunk *chunk)
{
	struct twheel_page *page = twheel_page_of(chunk);
	u64 free = page->free;

	if (likely(free))
		page->free = free | twheel_chunk_bit(chunk);
	else
		twheel_free_first_chunk(wheel, chunk);
}

/* How many chunks are free? */
static inline unsigned long twheel_nr_free(const struct twheel_stats *stats)
{
	return stats->free & ~TWHEEL_FREE_ASK;
}

/* Has the cell that is a node's place cleared: see twheel_flush_dequeued(). */
static __always_inline void twheel_defer_clear(struct twheel *wheel, unsigned long location)
{
	struct twheel_node **cell = (struct twheel_node **)(location - TWHEEL_IN_CELL);
	unsigned int nr = wheel->nr_pending_clear;

	prefetchw(cell);
	wheel->pending_clear[nr] = cell;
	wheel->nr_pending_clear = ++nr;
	if (unlikely(nr >= wheel->max_pending_clear))
		twheel_flush_dequeued(wheel);
}

/**
 * twheel_dequeue - take a node's entry away
 * @wheel:	the wheel that the node is filed on; by its owner
 * @node:	the node; it has an entry
 */
static __always_inline void twheel_dequeue(struct twheel *wheel, struct twheel_node *node)
{
	/* Pairs with the WRITE_ONCE()s in spill_add() and spill_del(), for a neighbour. */
	unsigned long location = READ_ONCE(node->location);

	wheel->stats.dequeued++;
	if (unlikely(!(location & TWHEEL_IN_CELL))) {
		twheel_dequeue_spilled(wheel, node);
		return;
	}
	/* Pairs with the READ_ONCE() in twheel_pending(). */
	WRITE_ONCE(node->location, 0);
	twheel_defer_clear(wheel, location);
}

/**
 * twheel_set_earliest - the owner has looked, and may not be done
 * @wheel:	the wheel; by its owner
 * @now:	the time, in nanoseconds
 *
 * What is overdue already comes before what is filed from now on. Otherwise, who files nodes whose
 * time has passed faster than they expire would have the wheel's time stand still.
 */
static inline void twheel_set_earliest(struct twheel *wheel, u64 now)
{
	wheel->earliest = max(wheel->earliest, (now & -wheel->tick_ns) + wheel->tick_ns);
}

/**
 * twheel_level - the level of a slot
 * @wheel:	the wheel; by its owner
 * @time:	when the wheel comes to the slot, in nanoseconds
 *
 * Return: the level; 0 for the slot that is being worked off.
 */
static inline unsigned int twheel_level(const struct twheel *wheel, u64 time)
{
	return wheel->msb_map[__fls((time ^ wheel->now_ns) | 1)].level;
}

/**
 * twheel_may_defer - may a node's deadline change without filing it again?
 * @node:	the node
 * @deadline:	the new deadline, in nanoseconds; false if it is 2^63 or more
 *
 * The wheel looks at the deadline when it comes to the entry, so it is enough
 * that the entry comes up no later than the deadline. By the owner only.
 *
 * Return: true if storing @deadline is all there is to do.
 */
static inline bool twheel_may_defer(const struct twheel_node *node, u64 deadline)
{
	/* Pairs with the WRITE_ONCE()s in spill_add() and spill_del(), for a neighbour. */
	return READ_ONCE(node->location) & TWHEEL_IN_CELL &&
	       (s64)deadline > (s64)READ_ONCE(node->defer_after);
}

/**
 * twheel_detach - a node that came out of the wheel has no entry any more
 * @node:	the node
 *
 * By the function that twheel_expire() calls, before anything that shall not happen
 * to a node that is still pending.
 */
static inline void twheel_detach(struct twheel_node *node)
{
	/* Pairs with the smp_load_acquire()s in wheel.c, and the one in may_add(). */
	smp_store_release(&node->location, 0);
}

#endif /* _TWHEEL_CORE_WHEEL_H */
