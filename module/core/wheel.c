// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the data structure
 *
 * Time, in ticks, is read as a number with one digit of TWHEEL_BITS bits per
 * level. A node due at tick T is placed on the level of the highest digit in
 * which T differs from the current tick, in the slot that this digit of T selects.
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
 * When time reaches a slot, each node in it is either due, and expires, or is
 * enqueued again, now on a lower level. Nothing is rounded to the width of a slot:
 * every node expires at the very tick that its deadline rounds up to. If the owner
 * reaches a slot very late, whatever has become due since then expires straight from
 * there: see twheel_due_until().
 *
 * Invariants
 * ----------
 *
 * 1. An occupied slot lies after the current tick: on its level its number is
 *    greater than the current tick's digit, and all higher digits are equal. So
 *    nothing wraps around within a level, every slot of a level comes before every
 *    slot of the levels above, and two find-first-set operations find the next slot,
 *    however far away it is. Moving the current tick, by any distance, to just before
 *    the next occupied slot preserves this: any slot whose higher digits would no
 *    longer be equal has been passed.
 *
 * 2. A node has at most one entry, and the time of the entry's slot is not after
 *    the node's due tick (or is the next tick, if the node was already due when it
 *    was enqueued). So storing a later deadline is enough to move it: the wheel
 *    reaches the entry too early, reads the deadline and enqueues the node again,
 *    with the same code that cascades.
 *
 * 3. A chunk without nodes is in no chain, so there are never more chunks in use
 *    than nodes, whatever the order of operations. Full chains need one chunk per
 *    TWHEEL_CHUNK_CELLS nodes. (Another CPU that empties a chunk only reports it. The
 *    owner drops those of one page whenever it needs a chunk, so at least as many as
 *    it takes. The owner also clears the cells of its last TWHEEL_PENDING_CLEAR
 *    removals together, and drops the chunk that is expiring when it is done with it.)
 *
 * 4. Enqueuing cannot fail. If there is no free chunk, the node is linked into the
 *    slot's spill list through its own fields. It expires at the same tick; the only
 *    cost is a cache miss per node when such a list is walked.
 *
 * Slots are not lists of nodes because expiry and cascading would then have to wait
 * for each node's cache line to learn the address of the next one. A chunk names six
 * nodes whose lines can be fetched in parallel, and ahead of time.
 *
 * Concurrency
 * -----------
 *
 * Only the owner touches chains, chunks and occupancy, with plain loads and stores:
 * when lines are cold, a locked instruction or a fence makes each operation wait for
 * the misses of the one before. Another CPU may only take a node out of its cell (or
 * off its spill list), and that races with just one thing: the owner whose time has
 * reached that cell. Both use an atomic exchange on the cell, and whichever finds the
 * node in it gets it:
 *
 *	owner, twheel_expire()			other CPU, twheel_dequeue_remote()
 *	xchg(cell, NULL) == node		cell = node->location
 *	due?  yes: node->location = 0		cmpxchg(cell, node, NULL) != node:
 *	      no:  node->location = new cell	location is about to change: retry
 *		   *new cell = node
 *
 * Other CPUs do so under the wheel's lock. The owner takes the lock where most nodes of
 * a chunk are going to be enqueued again, once for all of them; then a plain store
 * empties a cell.
 *
 * A cell whose node the owner has removed is cleared some removals later, by
 * twheel_flush_dequeued(), and names the node until then. This misleads nobody: other
 * CPUs go by the node's location, which by now is 0 or another cell, and the owner
 * flushes before it expires a cell.
 *
 * Otherwise, calls for one node must be serialised by whoever owns the node: two
 * CPUs that add, requeue or remove the same node at once do to it what two list_del()
 * of one entry do to a list.
 *
 * A CPU that wants to stop a node may find that it has been handed out to its callback,
 * which may enqueue, requeue and dequeue it with plain stores. So that CPU must not
 * touch the node meanwhile: see twheel_dequeue_not_running().
 *
 * Pages
 * -----
 *
 * Chunks come in pages. The first chunk of a page records which of the others are free, so
 * freeing a chunk sets a bit, and the chunks of a page are taken in memory order: entries
 * that are enqueued one after the other are written to consecutive lines. Pages with a free
 * chunk form a queue. Chunks are taken from the first page until it has none left, and a page
 * that gets its first free chunk goes to the end; by the time its turn comes, more of it may
 * be free.
 *
 * A page whose chunks are all free can be released. The owner has no pointer into it any
 * more: a free chunk is in no chain, and twheel_flush_dequeued() has already cleared the cells
 * of the last removals. Two things of other CPUs might still refer to it:
 *
 * - A report that one of its chunks was emptied: the page is then on @emptied. A chunk that
 *   another CPU has just emptied may have been dropped, or may have expired, before it is
 *   reported. But between the exchange and the report that CPU holds the wheel's lock; so the
 *   owner, holding the lock, sees the report, and leaves such a page for later. If there is no
 *   report, none will follow: that would take a node in a cell.
 *
 * - A location that another CPU has read from a node, in twheel_dequeue_remote(). By the time
 *   that CPU gets to the cell, the location may be stale, and the cell hold another node or
 *   none. So the location is read, and the page used, in one RCU read-side critical section,
 *   and the page is freed or reused a grace period after it was released. A section that
 *   this does not wait for began later, and so reads either a location written after the page
 *   was released, or 0: the node left the cell before the chunk was freed. By then either
 *   the owner has written the node's new location; or the CPU that took the node has, while
 *   still in its section, or is about to, and until it has, nobody else may call anything for
 *   this node.
 *
 * A page records which wheel it belongs to, in its first chunk. This is written before any
 * location in the page is, and read after the location.
 *
 * No call takes more than TWHEEL_STEPS steps, except those that are given a number.
 */
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "wheel.h"

#define DIGIT_MASK	(TWHEEL_SLOTS - 1)

/* The chunk that a cell is in: chunks are aligned to their size. */
static struct twheel_chunk *chunk_of(struct twheel_node **cell)
{
	return (struct twheel_chunk *)((unsigned long)cell & ~(TWHEEL_CHUNK_BYTES - 1UL));
}

/* A chunk by its number in the page. */
static struct twheel_chunk *page_chunk(struct twheel_page *page, unsigned int nr)
{
	return (struct twheel_chunk *)page + nr;
}

/* Is there no cell at @cell: does it point just past a chunk, or is it NULL? */
static bool needs_chunk(struct twheel_node **cell)
{
	return !((unsigned long)cell & (TWHEEL_CHUNK_BYTES - 1));
}

static __always_inline bool cells_empty(struct twheel_chunk *chunk, unsigned int from,
					unsigned int to)
{
	unsigned long nodes = 0;
	unsigned int i;

	/* Pairs with the cmpxchg() of other CPUs in twheel_dequeue_remote(). */
#pragma GCC unroll 6
	for (i = from; i < to; i++)
		nodes |= (unsigned long)READ_ONCE(chunk->cell[i]);
	return !nodes;
}

/* In two halves: the first mostly decides, and more branches would cost more. */
static bool chunk_empty(struct twheel_chunk *chunk)
{
	return cells_empty(chunk, 0, TWHEEL_CHUNK_CELLS / 2) &&
	       cells_empty(chunk, TWHEEL_CHUNK_CELLS / 2, TWHEEL_CHUNK_CELLS);
}

/* The chunk that a link points to; NULL if it is the last link of a chain. */
static struct twheel_chunk *chunk_at(unsigned long link)
{
	return twheel_link_is_chunk(link) ? (struct twheel_chunk *)link : NULL;
}

/* The first chunk of the expiring slot must not be dropped. */
static bool is_expiring_chunk(const struct twheel *wheel, const struct twheel_chunk *chunk)
{
	return wheel->expiring.head == (unsigned long)chunk;
}

static unsigned long last_link(struct twheel_slot *slot)
{
	return (unsigned long)slot | TWHEEL_LAST;
}

static unsigned long slot_number(const struct twheel *wheel, const struct twheel_slot *slot)
{
	return slot - wheel->slot[0];
}

static void set_occupied(struct twheel *wheel, unsigned long number)
{
	wheel->occupied[number / TWHEEL_SLOTS] |= 1ULL << number % TWHEEL_SLOTS;
	wheel->occupied_levels |= 1U << number / TWHEEL_SLOTS;
}

static void clear_occupied(struct twheel *wheel, unsigned long number)
{
	unsigned int level = number / TWHEEL_SLOTS;

	wheel->occupied[level] &= ~(1ULL << number % TWHEEL_SLOTS);
	if (!wheel->occupied[level])
		wheel->occupied_levels &= ~(1U << level);
}

static void set_now(struct twheel *wheel, u64 now)
{
	wheel->now = now;
	wheel->now_ns = now << wheel->shift;
	twheel_set_earliest(wheel, wheel->now_ns);
}

/**
 * twheel_init - make an empty wheel
 * @wheel:	the wheel
 * @shift:	a tick is 2^@shift nanoseconds. (2^63 >> @shift) must be less than
 *		2^(TWHEEL_BITS * TWHEEL_LEVELS)
 * @owner:	the wheel's number
 * @now:	the current tick
 */
void twheel_init(struct twheel *wheel, unsigned int shift, u16 owner, u64 now)
{
	struct twheel_slot *slot;
	unsigned int bit, i;

	memset(wheel, 0, sizeof(*wheel));
	raw_spin_lock_init(&wheel->lock);
	wheel->shift = shift;
	wheel->max_pending_clear = TWHEEL_PENDING_CLEAR;
	wheel->tick_ns = 1ULL << shift;
	for (bit = shift; bit < 64; bit++) {
		wheel->msb_map[bit].level = (bit - shift) / TWHEEL_BITS;
		wheel->msb_map[bit].shift = shift + wheel->msb_map[bit].level * TWHEEL_BITS;
	}
	wheel->owner = owner;
	set_now(wheel, now);
	wheel->expiring.head = last_link(&wheel->expiring);
	for (i = 0; i < TWHEEL_LEVELS * TWHEEL_SLOTS; i++) {
		slot = &wheel->slot[i / TWHEEL_SLOTS][i % TWHEEL_SLOTS];
		slot->head = last_link(slot);
	}
}

/* The head of the queue of pages with free chunks. */
static struct twheel_page **free_pages_head(struct twheel *wheel)
{
	return wheel->withheld ? &wheel->withheld_page : &wheel->page;
}

static void queue_page(struct twheel *wheel, struct twheel_page *page)
{
	struct twheel_page **first = free_pages_head(wheel);

	page->next = NULL;
	if (*first)
		wheel->last_page->next = page;
	else
		*first = page;
	wheel->last_page = page;
}

/**
 * twheel_add_page - give the wheel a page of chunks
 * @wheel:	the wheel; by its owner
 * @memory:	memory with the size and alignment of a page, all zeros
 * @charged:	the page is charged to somebody
 */
void twheel_add_page(struct twheel *wheel, void *memory, bool charged)
{
	struct twheel_page *page = memory;

	page->wheel = wheel;
	page->charged = charged;
	page->free = TWHEEL_PAGE_FREE;
	queue_page(wheel, page);
	wheel->pages_added++;
	wheel->stats.chunks += TWHEEL_PAGE_CHUNKS;
	wheel->stats.free += TWHEEL_PAGE_CHUNKS;
}

/**
 * twheel_withhold_chunks - start or stop withholding free chunks from new entries
 * @wheel:	the wheel; by its owner
 * @withhold:	true to start, false to stop
 *
 * What is enqueued meanwhile goes into chunks with room, or onto the spill lists.
 */
void twheel_withhold_chunks(struct twheel *wheel, bool withhold)
{
	if (wheel->withheld == withhold)
		return;
	wheel->withheld = withhold;
	swap(wheel->page, wheel->withheld_page);
}

/**
 * twheel_free_first_chunk - free a chunk of a page that has no other free chunk
 * @wheel:	the wheel; by its owner
 * @chunk:	the chunk
 *
 * The page goes to the end of the queue: more of it may become free before its turn comes.
 */
noinline void twheel_free_first_chunk(struct twheel *wheel, struct twheel_chunk *chunk)
{
	struct twheel_page *page = twheel_page_of(chunk);

	page->free = twheel_chunk_bit(chunk);
	queue_page(wheel, page);
}

static struct twheel_node **spill_list_of(struct twheel *wheel, const struct twheel_slot *slot)
{
	return &wheel->spill[slot_number(wheel, slot)];
}

/* Removes the last chunk of a slot, which is empty; the slot may have others. */
static noinline void drop_last_chunk(struct twheel *wheel, struct twheel_chunk *chunk)
{
	struct twheel_slot *slot = (struct twheel_slot *)(chunk->link & ~TWHEEL_LAST);

	slot->tail = NULL;
	if (chunk->pprev != &slot->head)
		slot->tail = container_of(chunk->pprev, struct twheel_chunk,
					  link)->cell + TWHEEL_CHUNK_CELLS;
	else if (!READ_ONCE(*spill_list_of(wheel, slot)))
		clear_occupied(wheel, slot_number(wheel, slot));
}

/* Takes the empty @chunk out of its chain. */
static __always_inline void drop_chunk(struct twheel *wheel, struct twheel_chunk *chunk)
{
	unsigned long link = chunk->link;

	*chunk->pprev = link;
	if (likely(twheel_link_is_chunk(link)))
		((struct twheel_chunk *)link)->pprev = chunk->pprev;
	else
		drop_last_chunk(wheel, chunk);
	chunk->pprev = NULL;
	twheel_chunk_free(wheel, chunk);
	wheel->stats.free++;
}

/**
 * twheel_reclaim - drop the chunks of one page that other CPUs have emptied
 * @wheel:	the wheel; by its owner
 *
 * Return: true if there are more such pages.
 */
noinline bool twheel_reclaim(struct twheel *wheel)
{
	struct twheel_chunk *chunk;
	struct twheel_page *page;
	unsigned long flags;
	u64 emptied = 0;

	raw_spin_lock_irqsave(&wheel->lock, flags);
	page = wheel->emptied;
	if (page) {
		/* Pairs with the READ_ONCE()s of @emptied without the lock. */
		WRITE_ONCE(wheel->emptied, page->next_emptied);
		emptied = page->emptied;
		page->emptied = 0;
	}
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	/*
	 * Some may have expired since, and been filled again. A chunk that is empty stays so:
	 * only the owner fills chunks.
	 */
	for (emptied &= page ? ~page->free : 0; emptied; emptied &= emptied - 1) {
		twheel_step();
		chunk = page_chunk(page, __ffs64(emptied));
		if (chunk_empty(chunk) && !is_expiring_chunk(wheel, chunk))
			drop_chunk(wheel, chunk);
	}
	/* Pairs with the WRITE_ONCE() in report_emptied(). */
	return READ_ONCE(wheel->emptied);
}

/* Appends a free chunk, from @wheel->page, to the slot. */
static __always_inline void slot_extend(struct twheel *wheel, struct twheel_slot *slot)
{
	struct twheel_page *page = wheel->page;
	u64 free = page->free;
	struct twheel_chunk *chunk = page_chunk(page, __ffs64(free));
	unsigned long *link;

	/* Most likely the next one to be used, when this one is full. */
	prefetchw(chunk + 1);
	free &= free - 1;
	page->free = free;
	if (unlikely(!free))
		wheel->page = page->next;
	wheel->stats.free--;

	/* A slot with chunks is already marked as occupied. */
	if (slot->tail) {
		link = &chunk_of(slot->tail - 1)->link;
	} else {
		link = &slot->head;
		set_occupied(wheel, slot_number(wheel, slot));
	}
	chunk->link = last_link(slot);
	chunk->pprev = link;
	*link = (unsigned long)chunk;
	slot->tail = chunk->cell;
}

/*
 * Links a node into a spill list. The lock is held. The head of a list, and the location of a node
 * on it, are also read without the lock.
 */
static void spill_add(struct twheel_node **list, struct twheel_node *node)
{
	struct twheel_node *next = *list;

	node->next = next;
	if (next)
		WRITE_ONCE(next->location, (unsigned long)&node->next | TWHEEL_SPILLED);
	WRITE_ONCE(*list, node);
	/* Pairs with the smp_load_acquire() in twheel_dequeue_remote(). */
	smp_store_release(&node->location, (unsigned long)list | TWHEEL_SPILLED);
}

/* Takes a node off its spill list. The lock is held, as for spill_add(). */
static void spill_del(struct twheel_node *node)
{
	struct twheel_node **pprev = (struct twheel_node **)(node->location & ~TWHEEL_SPILLED);
	struct twheel_node *next = node->next;

	WRITE_ONCE(*pprev, next);
	if (next)
		WRITE_ONCE(next->location, (unsigned long)pprev | TWHEEL_SPILLED);
}

static noinline void spill_to_slot(struct twheel *wheel, struct twheel_slot *slot,
				   struct twheel_node *node)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&wheel->lock, flags);
	spill_add(spill_list_of(wheel, slot), node);
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	set_occupied(wheel, slot_number(wheel, slot));
	wheel->stats.spilled++;
}

/* Puts a node into the next cell of a slot, which the wheel reaches at @time. */
static __always_inline void slot_append(struct twheel *wheel, struct twheel_slot *slot,
					struct twheel_node *node, u64 time)
{
	struct twheel_node **cell = slot->tail;

	slot->tail = cell + 1;
	/* Pairs with the READ_ONCE() in twheel_may_defer(), which a softirq may interrupt. */
	WRITE_ONCE(node->defer_after, time - wheel->tick_ns);
	/* Whoever finds it reads the page's first chunk. Pairs as the next one does. */
	smp_store_release(&node->location, (unsigned long)cell | TWHEEL_IN_CELL);
	/* From here on other CPUs may take it. Pairs with twheel_dequeue_remote(). */
	smp_store_release(cell, node);
}

/* As slot_append_new_chunk(), if other CPUs have emptied chunks or no chunk is free. */
static noinline u64 slot_append_slow(struct twheel *wheel, struct twheel_slot *slot,
				     struct twheel_node *node, u64 time)
{
	/* Frees at least as much as is taken. Pairs with the WRITE_ONCE() in report_emptied(). */
	if (READ_ONCE(wheel->emptied))
		twheel_reclaim(wheel);
	if (!wheel->page) {
		spill_to_slot(wheel, slot, node);
		return time;
	}
	slot_extend(wheel, slot);
	slot_append(wheel, slot, node, time);
	return time;
}

/* As slot_append(), for a slot without a free cell. */
static noinline u64 slot_append_new_chunk(struct twheel *wheel, struct twheel_slot *slot,
					  struct twheel_node *node, u64 time)
{
	/* Pairs with the WRITE_ONCE() in report_emptied(). */
	if (unlikely(READ_ONCE(wheel->emptied) || !wheel->page))
		return slot_append_slow(wheel, slot, node, time);
	slot_extend(wheel, slot);
	slot_append(wheel, slot, node, time);
	return time;
}

/*
 * Enqueues a node, for the first time or again, to expire at @earliest or later. Times are in
 * nanoseconds here: this saves shifting them to ticks and back.
 */
static __always_inline u64 __enqueue(struct twheel *wheel, struct twheel_node *node, u64 deadline,
				     u64 earliest)
{
	u64 due = max(deadline + wheel->tick_ns - 1, earliest);
	struct twheel_digit digit = wheel->msb_map[__fls(due ^ wheel->now_ns)];
	struct twheel_slot *slot;

	due >>= digit.shift;
	slot = &wheel->slot[digit.level][due & DIGIT_MASK];
	due <<= digit.shift;
	if (unlikely(needs_chunk(slot->tail)))
		return slot_append_new_chunk(wheel, slot, node, due);
	slot_append(wheel, slot, node, due);
	return due;
}

/**
 * twheel_enqueue - enqueue a node
 * @wheel:	the wheel; by its owner
 * @node:	the node; it has no entry, and its deadline is set. If that has passed,
 *		it expires at the next tick or, if the wheel is behind, after what is overdue
 * @deadline:	the same deadline, in a register: reading it back from the node, where it has
 *		just been stored, would wait for the node's cache line
 *
 * Return: the time, in nanoseconds, at which the wheel reaches the node. This is never
 * after the node's due tick, and may be before it.
 */
u64 twheel_enqueue(struct twheel *wheel, struct twheel_node *node, u64 deadline)
{
	wheel->stats.enqueued++;
	return __enqueue(wheel, node, deadline, wheel->earliest);
}

/**
 * twheel_cascade - enqueue again a node whose entry was reached before its deadline
 * @wheel:	the wheel; by its owner
 * @node:	the node. From here on other CPUs may take it
 *
 * Return: as twheel_enqueue().
 */
u64 twheel_cascade(struct twheel *wheel, struct twheel_node *node)
{
	wheel->stats.cascades++;
	return __enqueue(wheel, node, READ_ONCE(node->deadline), wheel->now_ns + wheel->tick_ns);
}

/**
 * twheel_enqueue_from_remote - enqueue a node that another CPU has queued
 * @wheel:	the wheel; by its owner
 * @node:	the node, from twheel_unqueue_remote(). From here on other CPUs may take it
 *
 * Return: as twheel_enqueue().
 */
u64 twheel_enqueue_from_remote(struct twheel *wheel, struct twheel_node *node)
{
	wheel->stats.cascades++;
	return __enqueue(wheel, node, READ_ONCE(node->deadline), wheel->earliest);
}

/**
 * twheel_flush_dequeued - clear the cells of the nodes that were removed last
 * @wheel:	the wheel; by its owner
 *
 * Called by twheel_advance(), twheel_dequeue() and twheel_requeue(). A cell is written some
 * removals after its address becomes known, when its cache line has arrived. If it were
 * written at once, the store would go to an address that is not known until the node's line
 * is there; processors that let no load pass such a store (some never do; with speculative
 * store bypass disabled, none does) would then wait for the misses of each removal before
 * those of the next. And the fence, without which the owner and another CPU that empty the
 * last two cells of a chunk might each still see the other's node in it, is shared by all of
 * the removals.
 */
void twheel_flush_dequeued(struct twheel *wheel)
{
	unsigned int nr = wheel->nr_pending_clear, dropped = 0, i;
	struct twheel_chunk *chunk;

	if (!nr)
		return;
	/* Pairs with the READ_ONCE() in cells_empty(). */
	for (i = 0; i < nr; i++)
		WRITE_ONCE(*wheel->pending_clear[i], NULL);
	/* Pairs with the cmpxchg() in dequeue_from_cell(). */
	smp_mb();
	for (i = 0; i < nr; i++) {
		twheel_step();
		chunk = chunk_of(wheel->pending_clear[i]);
		if (likely(!chunk_empty(chunk)) || is_expiring_chunk(wheel, chunk))
			continue;
		/* Reuses entries that are done with. Both neighbours are fetched in parallel. */
		prefetchw(chunk->pprev);
		prefetchw((void *)chunk->link);
		wheel->pending_clear[dropped++] = chunk->cell;
	}
	wheel->nr_pending_clear = 0;
	for (i = 0; i < dropped; i++) {
		chunk = container_of(wheel->pending_clear[i], struct twheel_chunk, cell[0]);
		/* It is listed once for each of its cells that was cleared. */
		if (chunk->pprev)
			drop_chunk(wheel, chunk);
	}
}

/* Can a page be released if @keep chunks must be free without it? */
static bool may_release(const struct twheel *wheel, unsigned long keep)
{
	return twheel_nr_free(&wheel->stats) >= keep + TWHEEL_PAGE_CHUNKS;
}

/**
 * twheel_release_pages - take pages without chunks in use away from the wheel
 * @wheel:	the wheel; by its owner
 * @ret:	how many to release, and the result
 *
 * Does a part of the work: call it until it returns false.
 *
 * Other CPUs may still access the pages: until an RCU grace period has passed, only their
 * @rcu and @next may be written, and they must not be freed.
 *
 * Return: true if there may be more to do.
 */
bool twheel_release_pages(struct twheel *wheel, struct twheel_return *ret)
{
	unsigned int left = TWHEEL_STEPS - TWHEEL_PENDING_CLEAR;
	struct twheel_page **first, *page;
	unsigned long flags;

	/* Pairs with the WRITE_ONCE() in report_emptied(). */
	if (READ_ONCE(wheel->emptied)) {
		twheel_reclaim(wheel);
		return true;
	}
	twheel_flush_dequeued(wheel);
	first = free_pages_head(wheel);
	/* Against report_emptied(). */
	raw_spin_lock_irqsave(&wheel->lock, flags);
	for (; left && ret->nr_to_scan; left--, ret->nr_to_scan--) {
		page = *first;
		if (!page || !may_release(wheel, ret->keep))
			break;
		twheel_step();
		*first = page->next;
		if (page->free != TWHEEL_PAGE_FREE || page->emptied ||
		    (!page->charged && !may_release(wheel, ret->keep + ret->reserve))) {
			queue_page(wheel, page);
			continue;
		}
		wheel->stats.chunks -= TWHEEL_PAGE_CHUNKS;
		wheel->stats.free -= TWHEEL_PAGE_CHUNKS;
		page->next = ret->pages;
		ret->pages = page;
	}
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	return !left && ret->nr_to_scan;
}

/**
 * twheel_dequeue_spilled - twheel_dequeue() for a node on a spill list
 * @wheel:	the wheel that the node is on; by its owner
 * @node:	the node
 */
void twheel_dequeue_spilled(struct twheel *wheel, struct twheel_node *node)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&wheel->lock, flags);
	spill_del(node);
	/* Pairs with the READ_ONCE() in twheel_pending(). */
	WRITE_ONCE(node->location, 0);
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
}

/**
 * twheel_requeue - twheel_dequeue() and twheel_enqueue() in one, for speed
 * @wheel:	the wheel that the node is on; by its owner
 * @node:	the node; it has an entry, and its new deadline is set
 * @deadline:	that deadline, as for twheel_enqueue()
 *
 * Return: as twheel_enqueue().
 */
u64 twheel_requeue(struct twheel *wheel, struct twheel_node *node, u64 deadline)
{
	/* Pairs with the WRITE_ONCE()s in spill_add() and spill_del() of a neighbour. */
	unsigned long location = READ_ONCE(node->location);

	if (likely(location & TWHEEL_IN_CELL))
		twheel_defer_clear(wheel, location);
	else
		twheel_dequeue_spilled(wheel, node);
	return __enqueue(wheel, node, deadline, wheel->earliest);
}

static bool has_expiring(const struct twheel *wheel)
{
	return chunk_at(wheel->expiring.head) || READ_ONCE(wheel->expiring_spill);
}

/**
 * twheel_next_expiry - the tick at which the wheel must be advanced next
 * @wheel:	the wheel; by its owner
 *
 * Return: the tick of the next occupied slot; the current tick if a slot is expiring;
 * %TWHEEL_NEVER if there is none. No node expires before this tick.
 */
u64 twheel_next_expiry(const struct twheel *wheel)
{
	unsigned int level, shift;

	if (has_expiring(wheel))
		return wheel->now;
	if (!wheel->occupied_levels)
		return TWHEEL_NEVER;
	level = __ffs(wheel->occupied_levels);
	shift = level * TWHEEL_BITS;
	return (wheel->now >> shift >> TWHEEL_BITS << TWHEEL_BITS |
		__ffs64(wheel->occupied[level])) << shift;
}

/**
 * twheel_forward - advance the current tick, unless a slot is due before that
 * @wheel:	the wheel; by its owner
 * @tick:	the new current tick
 *
 * A wheel that has been idle for long would use coarser levels than it needs. This
 * fixes it, before the first node that will wake it is enqueued.
 */
void twheel_forward(struct twheel *wheel, u64 tick)
{
	if (tick > wheel->now && twheel_next_expiry(wheel) > tick)
		set_now(wheel, tick);
}

/* Moves all nodes of a spill list to another one, which is empty. */
static void move_spill_list(struct twheel *wheel, struct twheel_node **from,
			    struct twheel_node **to)
{
	struct twheel_node *first;
	unsigned long flags;

	raw_spin_lock_irqsave(&wheel->lock, flags);
	first = *from;
	WRITE_ONCE(*from, NULL);
	WRITE_ONCE(*to, first);
	if (first)
		WRITE_ONCE(first->location, (unsigned long)to | TWHEEL_SPILLED);
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
}

/* Advances to the next occupied slot, at @tick, and moves its contents to @expiring. */
static void begin_slot(struct twheel *wheel, u64 tick)
{
	u64 time = tick << wheel->shift;
	struct twheel_digit digit = wheel->msb_map[__fls(time ^ wheel->now_ns)];
	struct twheel_slot *slot = &wheel->slot[digit.level][time >> digit.shift & DIGIT_MASK];
	struct twheel_chunk *first = chunk_at(slot->head);

	set_now(wheel, tick);
	wheel->expiring_last = time + (1ULL << digit.shift) - wheel->tick_ns;
	clear_occupied(wheel, slot_number(wheel, slot));
	/* Even if the list is empty: it takes the lock, see twheel_dequeue_not_running(). */
	move_spill_list(wheel, spill_list_of(wheel, slot), &wheel->expiring_spill);
	if (!first)
		return;
	wheel->expiring.head = slot->head;
	chunk_of(slot->tail - 1)->link = last_link(&wheel->expiring);
	slot->head = last_link(slot);
	slot->tail = NULL;
}

/* The rest of twheel_advance(), for when the slot is done: most batches find more in it. */
static noinline bool begin_next_slot(struct twheel *wheel, u64 tick)
{
	const u64 next = twheel_next_expiry(wheel);

	if (next <= tick) {
		begin_slot(wheel, next);
		return true;
	}
	wheel->max_pending_clear = TWHEEL_PENDING_CLEAR;
	twheel_forward(wheel, tick);
	return false;
}

/**
 * twheel_advance - advance to the next slot that is due
 * @wheel:	the wheel; by its owner
 * @tick:	the time now, in ticks. If it is before the wheel's current tick, only what
 *		is left over from there can expire
 *
 * To empty a wheel, pass the last tick before %TWHEEL_NEVER.
 *
 * Return: true if there may be entries to process with twheel_expire() and
 * twheel_expire_spilled(); false if nothing more is due.
 */
bool twheel_advance(struct twheel *wheel, u64 tick)
{
	/* From here on a cell holds a node that is really there, or NULL. */
	if (wheel->nr_pending_clear)
		twheel_flush_dequeued(wheel);
	wheel->max_pending_clear = 1;
	return has_expiring(wheel) || begin_next_slot(wheel, tick);
}

/**
 * twheel_unspill - take a node off a spill list
 * @wheel:	the wheel; by its owner
 * @list:	the list
 *
 * Return: the node, which is pending and which no other CPU can take: it must be passed to
 * twheel_cascade() or twheel_detach() right away. NULL if the list is empty.
 */
struct twheel_node *twheel_unspill(struct twheel *wheel, struct twheel_node **list)
{
	struct twheel_node *node;
	unsigned long flags;

	/* Pairs with the WRITE_ONCE()s of spill_add(), spill_del() and move_spill_list(). */
	if (likely(!READ_ONCE(*list)))
		return NULL;
	raw_spin_lock_irqsave(&wheel->lock, flags);
	node = *list;
	if (node) {
		spill_del(node);
		/* Pairs with the loads of @location by other CPUs. */
		WRITE_ONCE(node->location, TWHEEL_HELD);
	}
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	return node;
}

/**
 * twheel_unqueue_remote - take a node that another CPU has queued
 * @wheel:	the wheel; by its owner
 *
 * Nodes that are queued after the owner has begun on a batch come after all of that batch.
 *
 * Return: as twheel_unspill(); to be passed to twheel_enqueue_from_remote().
 */
struct twheel_node *twheel_unqueue_remote(struct twheel *wheel)
{
	struct twheel_node *node = twheel_unspill(wheel, &wheel->remote_batch);

	if (node)
		return node;
	move_spill_list(wheel, &wheel->remote_list, &wheel->remote_batch);
	return twheel_unspill(wheel, &wheel->remote_batch);
}

/**
 * twheel_reset - set the current tick of an empty wheel
 * @wheel:	the wheel; by its owner
 * @now:	the current tick
 */
void twheel_reset(struct twheel *wheel, u64 now)
{
	twheel_flush_dequeued(wheel);
	/* It may go backwards. */
	wheel->earliest = 0;
	set_now(wheel, now);
}

/* The lock is held. Pairs with the READ_ONCE() in twheel_stats_snapshot(). */
static void count_remote_dequeued(struct twheel *wheel, unsigned long nr)
{
	WRITE_ONCE(wheel->remote_dequeued, wheel->remote_dequeued + nr);
}

/* Tells the owner that a chunk has been found empty. The lock is held. */
static void report_emptied(struct twheel *wheel, struct twheel_chunk *chunk)
{
	struct twheel_page *page = twheel_page_of(chunk);

	if (!page->emptied) {
		page->next_emptied = wheel->emptied;
		/* As in twheel_reclaim(). */
		WRITE_ONCE(wheel->emptied, page);
	}
	page->emptied |= twheel_chunk_bit(chunk);
}

/* Takes a node out of its cell, unless the owner has just done so. The lock is held. */
static int dequeue_from_cell(struct twheel *wheel, struct twheel_node **cell,
			     struct twheel_node *node)
{
	struct twheel_chunk *chunk = chunk_of(cell);

	/*
	 * Pairs with the xchg() in twheel_cell_take(); and with the smp_mb() in
	 * twheel_flush_dequeued(): either the owner sees this store, or chunk_empty() sees what
	 * the owner has cleared.
	 */
	if (cmpxchg(cell, node, NULL) != node)
		return -EAGAIN;
	WRITE_ONCE(node->location, 0);
	count_remote_dequeued(wheel, 1);
	if (chunk_empty(chunk))
		report_emptied(wheel, chunk);
	return 1;
}

/* Takes a node off its spill list, if that is one of this wheel's. The lock is held. */
static int dequeue_from_spill(struct twheel *wheel, struct twheel_node *node)
{
	/* While a dead CPU's nodes are held, their owner changes. */
	if (!(READ_ONCE(node->location) & TWHEEL_SPILLED) || READ_ONCE(node->owner) != wheel->owner)
		return -EAGAIN;
	spill_del(node);
	WRITE_ONCE(node->location, 0);
	count_remote_dequeued(wheel, 1);
	return 1;
}

static struct twheel_node **cell_at(unsigned long location)
{
	return (struct twheel_node **)(location - TWHEEL_IN_CELL);
}

static struct twheel *wheel_of(struct twheel_node **cell)
{
	return twheel_page_of(chunk_of(cell))->wheel;
}

/**
 * twheel_dequeue_remote - remove a node's entry, from any CPU
 * @wheel:	the wheel that @node.owner names
 * @node:	the node
 *
 * The owner may be doing anything at the same time but enqueuing or removing this very
 * node; doing that as part of expiry is fine, which is what this function is for.
 *
 * Return:
 * * %1		- the node had an entry
 * * %0		- it had none
 * * %-EAGAIN	- the owner is handling the node at this moment; or @node.owner has changed
 */
int twheel_dequeue_remote(struct twheel *wheel, struct twheel_node *node)
{
	unsigned long location, flags;
	int ret = -EAGAIN;

	/* Keeps the page alive: pairs with the grace period after twheel_release_pages(). */
	rcu_read_lock();
	/* Pairs with the smp_store_release()s of @location. */
	location = smp_load_acquire(&node->location);
	if (!(location & TWHEEL_ENTRY)) {
		ret = 0;
	} else if (!(location & TWHEEL_HELD)) {
		/* By now the cell may hold another node, or the node be on another wheel. */
		if (location & TWHEEL_IN_CELL)
			wheel = wheel_of(cell_at(location));
		raw_spin_lock_irqsave(&wheel->lock, flags);
		ret = location & TWHEEL_IN_CELL ?
		      dequeue_from_cell(wheel, cell_at(location), node) :
		      dequeue_from_spill(wheel, node);
		raw_spin_unlock_irqrestore(&wheel->lock, flags);
	}
	rcu_read_unlock();
	return ret;
}

/*
 * Is a node's entry, at @location, on a wheel? If so, it was there when the wheel's lock was
 * taken, or it is gone by now.
 */
static bool is_on_wheel(const struct twheel *wheel, const struct twheel_node *node,
			unsigned long location)
{
	return READ_ONCE(node->owner) == wheel->owner &&
	       !(location & TWHEEL_IN_CELL && wheel_of(cell_at(location)) != wheel);
}

/**
 * twheel_dequeue_not_running - twheel_dequeue_remote(), unless the node's callback is running
 * @wheel:	the wheel that @node.owner names
 * @node:	the node
 * @running:	says whether it is, from before twheel_detach() until the callback is done.
 *		Called with the wheel's lock held
 *
 * As twheel_dequeue_remote(); in addition, the function that __twheel_expire() calls may
 * enqueue, requeue and dequeue the node at the same time, without a lock.
 *
 * While the lock is held, the owner does not advance to another slot, and nothing that it
 * enqueues goes into the slot that is expiring. So at most one callback of this node can begin
 * meanwhile, for an entry that already existed. If that entry is what is seen here, the owner has
 * already emptied its cell. If the previous callback enqueued what is seen here, that callback is
 * over once @running says so, and as the location is still the same afterwards, it is what the
 * callback left behind.
 *
 * Return:
 * * %1		- the node had an entry
 * * %0		- it had none, and its callback is not running
 * * %-EBUSY	- its callback is running, and continues
 * * %-EAGAIN	- as twheel_dequeue_remote()
 */
int twheel_dequeue_not_running(struct twheel *wheel, struct twheel_node *node,
			       bool (*running)(const struct twheel *wheel,
					       const struct twheel_node *node))
{
	unsigned long location, flags;
	int ret = -EAGAIN;

	/* As in twheel_dequeue_remote(). */
	rcu_read_lock();
	raw_spin_lock_irqsave(&wheel->lock, flags);
	/* Pairs with the smp_store_release()s of @location. */
	location = smp_load_acquire(&node->location);
	if (running(wheel, node))
		ret = -EBUSY;
	else if (READ_ONCE(node->location) != location || !is_on_wheel(wheel, node, location))
		ret = -EAGAIN;
	else if (!(location & TWHEEL_ENTRY))
		ret = 0;
	else if (location & TWHEEL_SPILLED)
		ret = dequeue_from_spill(wheel, node);
	else if (location & TWHEEL_IN_CELL)
		ret = dequeue_from_cell(wheel, cell_at(location), node);
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	rcu_read_unlock();
	return ret;
}

/**
 * twheel_queue_remote - ask the owner of a wheel to enqueue a node
 * @wheel:	the wheel, whose owner will check its @remote_list; @wheel->lock is held
 * @node:	the node; it has no entry, and is pending from here on
 */
void twheel_queue_remote(struct twheel *wheel, struct twheel_node *node)
{
	count_remote_dequeued(wheel, -1UL);
	spill_add(&wheel->remote_list, node);
}
