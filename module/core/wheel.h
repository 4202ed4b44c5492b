/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the data structure
 *
 * A hierarchical timing wheel whose slots are chains of cache-line-sized chunks. It has
 * no clock and no allocator of its own: the caller passes in the time and the memory.
 * Each wheel is owned by one CPU, which adds and removes nodes without a lock or an atomic
 * operation, unless they have spilled or chunks emptied by other CPUs must be reclaimed.
 * Expiry takes the wheel's lock once per slot, and then one atomic exchange per entry or,
 * where most nodes cascade, the lock once per chunk. Other CPUs can take nodes away. See
 * wheel.c for how it works.
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
 * 9 levels of 64 slots cover every deadline below 2^63 ns for ticks of 2^10 ns and
 * longer. The unit tests build the wheel with far fewer, to test them exhaustively.
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

/* A tick that never arrives: twheel_next_expiry() of an empty wheel. */
#define TWHEEL_NEVER		(~0ULL)

/* A chunk is one cache line: two links, and cells in the rest. */
#define TWHEEL_CHUNK_BYTES	64
#define TWHEEL_CHUNK_CELLS	6

/* A wheel that is more than this many ticks behind expires what is due in no order. */
#define TWHEEL_BEHIND		16

/* The cells of this many removed nodes are cleared together. */
#define TWHEEL_PENDING_CLEAR		16

/* A page of chunks; the first one is the page's header. */
#define TWHEEL_PAGE_BYTES	4096UL
#define TWHEEL_PAGE_CHUNKS	(TWHEEL_PAGE_BYTES / TWHEEL_CHUNK_BYTES - 1)

/* The bits of all chunks in a page except the header. */
#define TWHEEL_PAGE_FREE	(~1ULL)

/*
 * The most steps taken in one go with interrupts off: cells or chunks visited. A test
 * counts them.
 */
#define TWHEEL_STEPS		64
#ifndef twheel_step
#define twheel_step()		do { } while (0)
#endif

/* Set in the count of free chunks: the allocator must be consulted before each new entry. */
#define TWHEEL_FREE_ASK		(1UL << 63)

/* Bit 0 of a chunk's link: it points to the slot, not to another chunk. */
#define TWHEEL_LAST		1UL

/**
 * struct twheel_chunk - a cache line of entries
 * @link:	the address of the next chunk in the chain; in the last chunk, that of the
 *		slot, with bit 0 set
 * @pprev:	the link that points to this chunk; NULL once it has been dropped from its
 *		chain. Not valid in the first chunk of the slot that is expiring
 * @cell:	nodes, or NULL where the node has been removed or none has been added yet.
 *		A node that was removed very recently may still be here: see
 *		twheel_flush_dequeued()
 *
 * A chunk without nodes is in no chain, unless another CPU has just emptied it or it is
 * the first chunk of the slot that is expiring. The cells of a free chunk are NULL.
 */
struct twheel_chunk {
	unsigned long		link;
	unsigned long		*pprev;
	struct twheel_node	*cell[TWHEEL_CHUNK_CELLS];
} __aligned(TWHEEL_CHUNK_BYTES);

/**
 * struct twheel_page - the header of a page of chunks, which is aligned to its size
 * @wheel:	the wheel that the page was given to
 * @next:	the next page with free chunks; or the next one released together with this
 * @free:	bit i is set if chunk i of the page is free; chunk 0 is this header
 * @emptied:	bit i is set if another CPU emptied chunk i and the owner has not checked it yet
 * @next_emptied: the next page with such chunks
 * @charged:	the page is charged to somebody, so it is not kept in reserve
 * @rcu:	not used by the wheel; for whatever frees the page
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
 * struct twheel_return - what a wheel should release, and what it has released
 * @keep:	the number of free chunks that must remain
 * @reserve:	how many more may remain, in pages that are charged to nobody
 * @nr_to_scan:	the number of pages still to be examined
 * @pages:	the pages released so far, linked by @next
 */
struct twheel_return {
	unsigned long		keep;
	unsigned long		reserve;
	unsigned long		nr_to_scan;
	struct twheel_page	*pages;
};

/**
 * struct twheel_slot - the entries that the wheel reaches at one tick, in chunks
 * @head:	the link to the first chunk; see struct twheel_chunk
 * @tail:	the cell for the next entry. Points just past the last chunk when that is
 *		full, which is where a chunk would begin; NULL if there are no chunks
 */
struct twheel_slot {
	unsigned long		head;
	struct twheel_node	**tail;
};

/**
 * struct twheel_digit - how to read a time whose most significant bit that differs from
 * now is a given one
 * @shift:	the position of the lowest bit of the digit that the bit belongs to
 * @level:	the level of that digit
 */
struct twheel_digit {
	u8	shift;
	u8	level;
};

/**
 * struct twheel_stats - what a wheel has done
 * @enqueued:	nodes enqueued, other than by a cascade or a requeue
 * @dequeued:	nodes dequeued by the owner, other than by a requeue
 * @cascades:	entries enqueued again because their deadline had not been reached
 * @spilled:	entries ever enqueued without a chunk
 * @chunks:	chunks given to the wheel and not released
 * @free:	how many of these are free, plus %TWHEEL_FREE_ASK if set. Chunks that are
 *		expiring in one batch are counted when the whole batch is done
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
 * @now_ns:	@now in nanoseconds
 * @earliest:	the earliest time, in nanoseconds, at which a node that is enqueued now can
 *		expire: the tick after @now or, if the wheel is behind, the tick after its
 *		owner last checked for expired nodes
 * @tick_ns:	length of a tick
 * @msb_map:	for every bit of a time in nanoseconds
 * @now:	the tick up to which all slots have been taken. What is left of the slot
 *		taken last is in @expiring
 * @shift:	a tick is 2^@shift units of struct twheel_node::deadline
 * @owner:	the wheel's number
 * @occupied_levels: bit l is set if @occupied[l] is not 0
 * @page:	the page that chunks for new entries are taken from, linked by @next to all
 *		others with free chunks; NULL if there are none, or if chunks are withheld
 * @stats:	counters
 * @occupied:	bit s of word l is set if slot s of level l may hold an entry
 * @expiring:	the slot that is expiring
 * @expiring_last: the last deadline, in nanoseconds, that belongs in this slot; 0 once
 *		all of the rest is assumed to be due
 * @requeue:	nodes that are being enqueued again
 * @expiring_spill: the spilled nodes of this slot
 * @remote_batch: a spill list, of the nodes that were on @remote_list
 * @last_page:	the last of the pages that @page begins
 * @withheld_page: takes the place of @page while chunks are withheld
 * @withheld:	new entries must not be given chunks
 * @nr_pending_clear: length of @pending_clear
 * @max_pending_clear: the length at which the cells are cleared: %TWHEEL_PENDING_CLEAR, or 1
 *		while slots are expiring
 * @pending_clear: cells whose nodes have been removed but that have yet to be cleared
 * @pages_added: how many pages the wheel has been given, ever
 * @lock:	guards the spill lists, @remote_list, @emptied and the pages linked from it, and
 *		@remote_dequeued against other CPUs, and stops these from taking nodes
 *		while some cascade. Taken with interrupts off, from any context but NMI, by
 *		any CPU; innermost
 * @remote_list: a spill list, of nodes that other CPUs want to be enqueued here
 * @emptied:	pages with chunks that other CPUs have emptied
 * @remote_dequeued: nodes dequeued by other CPUs, minus the nodes queued by them
 * @slot:	the slots
 * @spill:	for each slot, the entries that got no chunk
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
	unsigned long		pages_added;

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

/* A chunk's bit in the words of its page. */
static __always_inline u64 twheel_chunk_bit(const struct twheel_chunk *chunk)
{
	return 1ULL << ((unsigned long)chunk / TWHEEL_CHUNK_BYTES & 63);
}

/* Does a link point to a chunk? */
static __always_inline bool twheel_link_is_chunk(unsigned long link)
{
	return !(link & TWHEEL_LAST);
}

/* Frees a chunk that is no longer in a chain, without counting it. */
static __always_inline void twheel_chunk_free(struct twheel *wheel, struct twheel_chunk *chunk)
{
	struct twheel_page *page = twheel_page_of(chunk);
	u64 free = page->free;

	if (likely(free))
		page->free = free | twheel_chunk_bit(chunk);
	else
		twheel_free_first_chunk(wheel, chunk);
}

/* The number of free chunks. */
static inline unsigned long twheel_nr_free(const struct twheel_stats *stats)
{
	return stats->free & ~TWHEEL_FREE_ASK;
}

/* Arranges for the cell at a node's location to be cleared: see twheel_flush_dequeued(). */
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
 * twheel_dequeue - remove a node's entry
 * @wheel:	the wheel that the node is on; by its owner
 * @node:	the node; it has an entry
 */
static __always_inline void twheel_dequeue(struct twheel *wheel, struct twheel_node *node)
{
	/* Pairs with the WRITE_ONCE()s in spill_add() and spill_del() of a neighbour. */
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
 * twheel_set_earliest - the owner has checked for expired nodes, and may not be done
 * @wheel:	the wheel; by its owner
 * @now:	the time, in nanoseconds
 *
 * What is already overdue expires before anything that is enqueued from now on. Otherwise,
 * enqueuing nodes whose time has passed faster than they expire would stop the wheel's time.
 */
static inline void twheel_set_earliest(struct twheel *wheel, u64 now)
{
	wheel->earliest = max(wheel->earliest, (now & -wheel->tick_ns) + wheel->tick_ns);
}

/**
 * twheel_level - the level of a slot
 * @wheel:	the wheel; by its owner
 * @time:	when the wheel reaches the slot, in nanoseconds
 *
 * Return: the level; 0 for the slot that is expiring.
 */
static inline unsigned int twheel_level(const struct twheel *wheel, u64 time)
{
	return wheel->msb_map[__fls((time ^ wheel->now_ns) | 1)].level;
}

/**
 * twheel_may_defer - can a node's deadline change without enqueuing it again?
 * @node:	the node
 * @deadline:	the new deadline, in nanoseconds; false if it is 2^63 or more
 *
 * The wheel reads the deadline when it reaches the entry, so it is enough that it
 * reaches the entry no later than the deadline. By the owner only.
 *
 * Return: true if storing @deadline is all that needs to be done.
 */
static inline bool twheel_may_defer(const struct twheel_node *node, u64 deadline)
{
	/* Pairs with the WRITE_ONCE()s in spill_add() and spill_del() of a neighbour. */
	return READ_ONCE(node->location) & TWHEEL_IN_CELL &&
	       (s64)deadline > (s64)READ_ONCE(node->defer_after);
}

/**
 * twheel_detach - mark a node that came out of the wheel as having no entry
 * @node:	the node
 *
 * Called by the function that twheel_expire() calls, before anything that must not happen
 * to a node that is still pending.
 */
static inline void twheel_detach(struct twheel_node *node)
{
	/* Pairs with the smp_load_acquire()s in wheel.c, and the one in may_add(). */
	smp_store_release(&node->location, 0);
}

#endif /* _TWHEEL_CORE_WHEEL_H */
