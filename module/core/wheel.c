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
 * every node comes out at the very tick that its deadline is rounded up to. If the
 * owner comes to a slot very late, what has become due since is handed out from there:
 * see twheel_due_until().
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
 *    one per TWHEEL_CHUNK_CELLS nodes. (Another CPU that empties a chunk only
 *    reports it. The owner drops those of one page whenever it needs a chunk, so at least
 *    as many as it takes. And it clears the cells of its last TWHEEL_PENDING_CLEAR removals
 *    together, and drops the chunk that it is working off when that is done.)
 *
 * 4. Filing cannot fail. If there is no free chunk, the node is linked into the
 *    slot's spill list by its own fields. It comes up at the same tick; only
 *    walking such a list costs a cache miss per node.
 *
 * Slots are not lists of nodes because expiry and cascading would then wait for
 * each node's cache line before they know the address of the next one. A chunk
 * names six nodes whose lines can be fetched at the same time, and ahead.
 *
 * Who may do what
 * ---------------
 *
 * Chains, chunks and occupancy are the owner's alone, and plain memory to it: a
 * locked instruction or a fence, when lines are cold, makes each operation wait for
 * the misses of the one before. Another CPU may only take a node out of its cell
 * (or spill list), and that races with one thing: the owner, whose time has come to
 * that cell. Both go for the cell with an atomic exchange, and who finds the node in
 * it has it:
 *
 *	owner, twheel_expire()			other CPU, twheel_dequeue_remote()
 *	xchg(cell, NULL) == node		cell = node->place
 *	due?  yes: node->place = 0		cmpxchg(cell, node, NULL) != node:
 *	      no:  node->place = new cell		place is about to change: again
 *		   *new cell = node
 *
 * Others do so under the wheel's lock. The owner takes it where most nodes of a chunk
 * are going to be filed again, once for all of them; then a plain store empties a cell.
 *
 * A cell whose node the owner has removed is cleared some removals later, by
 * twheel_flush_dequeued(), and names the node until then. Nobody is misled: others go by the
 * node's place, which is 0 or another cell by now, and the owner settles before it
 * works off a cell.
 *
 * Calls for one node must otherwise be serialised by whoever owns the node: two
 * CPUs that add, move or remove the same node at once do to it what two list_del()
 * of one entry do to a list.
 *
 * Who stops a node may find it handed out, and what it is handed out to files, moves and
 * removes it, with plain stores. So that CPU keeps off when it is: see
 * twheel_dequeue_not_running().
 *
 * Pages
 * -----
 *
 * Chunks come in pages. The first chunk of a page says which of the others are free, so to
 * free one is to set a bit, and those of a page are taken in the order of memory: entries
 * that are filed one after the other are written to consecutive lines. Pages with a free
 * chunk form a queue. The first one is used up, and one that gets its first free chunk is
 * put at the end; by the time that its turn comes, more of it may be free.
 *
 * A page of which all chunks are free can be given back. Nothing of the owner's leads to it:
 * a free chunk is in no chain, and twheel_flush_dequeued() has cleared the cells of the last
 * removals before. Two things of other CPUs might:
 *
 * - A report that one of its chunks was emptied: the page is then in @emptied. A chunk that
 *   another CPU has just emptied may have been dropped, or worked off, before it is reported.
 *   But between the exchange and the report that CPU holds the wheel's lock; so the owner,
 *   with the lock, sees the report, and leaves such a page for later. Without a report there
 *   will be none: for one, a node has to be in a cell.
 *
 * - A place that another CPU has read from a node, in twheel_dequeue_remote(). It need not be the
 *   node's place any more when that CPU goes to the cell, and finds another node there, or
 *   none. So the place is read, and the page used, in one read-side section of RCU, and the
 *   page is freed, or used for something else, a grace period after it was given back. A
 *   section that this does not wait for began later, and so reads a place that was written
 *   after the page was given back, or 0: the node left the cell before the chunk was freed.
 *   The owner wrote what it has as its place then; or else the CPU did so that took it, still
 *   in its section, or will, and until it has nobody else may call anything for this node.
 *
 * A page says which wheel it belongs to, in its first chunk. That is written before a place
 * in it is, and read after it.
 *
 * Nothing here takes more than TWHEEL_STEPS steps in one call, except what is given a number.
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

/* The chunk that a cell lies in: chunks are aligned to their size. */
static struct twheel_chunk *chunk_of(struct twheel_node **cell)
{
	return (struct twheel_chunk *)((unsigned long)cell & ~(TWHEEL_CHUNK_BYTES - 1UL));
}

/* A chunk by its number in the page. */
static struct twheel_chunk *page_chunk(struct twheel_page *page, unsigned int nr)
{
	return (struct twheel_chunk *)page + nr;
}

/* Is there no cell at @cell: does it point behind a chunk, or nowhere? */
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

/* In two halves: the first is enough for most, and more branches would cost more. */
static bool chunk_empty(struct twheel_chunk *chunk)
{
	return cells_empty(chunk, 0, TWHEEL_CHUNK_CELLS / 2) &&
	       cells_empty(chunk, TWHEEL_CHUNK_CELLS / 2, TWHEEL_CHUNK_CELLS);
}

/* The chunk that a link leads to; NULL if it is the last one. */
static struct twheel_chunk *chunk_at(unsigned long link)
{
	return twheel_link_is_chunk(link) ? (struct twheel_chunk *)link : NULL;
}

/* The first chunk of the slot that is being worked off is nobody's to drop. */
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

/* The first page with free chunks. */
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
 * @memory:	memory of the size and alignment of a page, all zero
 * @charged:	somebody is charged for it
 */
void twheel_add_page(struct twheel *wheel, void *memory, bool charged)
{
	struct twheel_page *page = memory;

	page->wheel = wheel;
	page->charged = charged;
	page->free = TWHEEL_PAGE_FREE;
	queue_page(wheel, page);
	wheel->stats.chunks += TWHEEL_PAGE_CHUNKS;
	wheel->stats.free += TWHEEL_PAGE_CHUNKS;
}

/**
 * twheel_withhold_chunks - shall who needs a chunk get none, though there are some?
 * @wheel:	the wheel; by its owner
 * @withheld:	whether
 *
 * What is filed meanwhile gets into chunks that have room, or into the spill lists.
 */
void twheel_withhold_chunks(struct twheel *wheel, bool withhold)
{
	if (wheel->withheld == withhold)
		return;
	wheel->withheld = withhold;
	swap(wheel->page, wheel->withheld_page);
}

/**
 * twheel_free_first_chunk - free a chunk of a page that has no free one
 * @wheel:	the wheel; by its owner
 * @chunk:	the chunk
 *
 * The page queues up behind the others: until its turn comes, more of it may become free.
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

/* A slot loses its last chunk, which is empty; it may have others. */
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
 * twheel_reclaim - drop chunks that other CPUs have emptied, of one page
 * @wheel:	the wheel; by its owner
 *
 * Return: whether there are more.
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
		WRITE_ONCE(wheel->emptied, page->next_emptied);
		emptied = page->emptied;
		page->emptied = 0;
	}
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	/*
	 * Some may have been worked off meanwhile, and filled again. What is empty stays so:
	 * only the owner fills.
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

/* Appends a free chunk, of @wheel->page, to the slot. */
static __always_inline void slot_extend(struct twheel *wheel, struct twheel_slot *slot)
{
	struct twheel_page *page = wheel->page;
	u64 free = page->free;
	struct twheel_chunk *chunk = page_chunk(page, __ffs64(free));
	unsigned long *link;

	/* Most likely the next one, for when this is full. */
	prefetchw(chunk + 1);
	free &= free - 1;
	page->free = free;
	if (unlikely(!free))
		wheel->page = page->next;
	wheel->stats.free--;

	/* A slot that has chunks is occupied already. */
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

/* Links a node into a spill list. The lock is held. */
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

/* Takes a node out of its spill list. The lock is held. */
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

/* Enters a node in the next cell of a slot, which comes at @time. */
static __always_inline void slot_append(struct twheel *wheel, struct twheel_slot *slot,
					struct twheel_node *node, u64 time)
{
	struct twheel_node **cell = slot->tail;

	slot->tail = cell + 1;
	/* Pairs with the READ_ONCE() in twheel_may_defer(), which a softirq may interrupt. */
	WRITE_ONCE(node->defer_after, time - wheel->tick_ns);
	/* Who finds it looks into the page's first chunk. Pairs as what follows. */
	smp_store_release(&node->location, (unsigned long)cell | TWHEEL_IN_CELL);
	/* From here on others may take it. Pairs with twheel_dequeue_remote(). */
	smp_store_release(cell, node);
}

/* As slot_append_new_chunk(), if other CPUs have emptied chunks, or if there is no free one. */
static noinline u64 slot_append_slow(struct twheel *wheel, struct twheel_slot *slot,
				     struct twheel_node *node, u64 time)
{
	/* More is freed than will be taken. Pairs with the WRITE_ONCE() in report_emptied(). */
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

/* As slot_append(), for a slot that has no next cell. */
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
 * Files a node, for the first time or again, to come up at @earliest or later. Times are in
 * nanoseconds here: nothing needs to be shifted to ticks, and back.
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
 * twheel_enqueue - enter a node
 * @wheel:	the wheel; by its owner
 * @node:	the node; it has no entry, and its deadline is set. If that has passed,
 *		it comes up at the next tick, or, if the wheel is behind, after what is overdue
 * @deadline:	the same deadline, at hand: to read it back from where it has just been
 *		stored would wait until the node's cache line is here
 *
 * Return: the time, in nanoseconds, at which the wheel comes to the node. That is not
 * after the node's due tick, and may be before it.
 */
u64 twheel_enqueue(struct twheel *wheel, struct twheel_node *node, u64 deadline)
{
	wheel->stats.enqueued++;
	return __enqueue(wheel, node, deadline, wheel->earliest);
}

/**
 * twheel_cascade - enter a node again whose entry has come up before its deadline
 * @wheel:	the wheel; by its owner
 * @node:	the node. From here on others may take it
 *
 * Return: as twheel_enqueue().
 */
u64 twheel_cascade(struct twheel *wheel, struct twheel_node *node)
{
	wheel->stats.cascades++;
	return __enqueue(wheel, node, READ_ONCE(node->deadline), wheel->now_ns + wheel->tick_ns);
}

/**
 * twheel_enqueue_from_remote - enter a node that another CPU has sent
 * @wheel:	the wheel; by its owner
 * @node:	the node, from twheel_unqueue_remote(). From here on others may take it
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
 * removals after it is known, when its cache line has come. At once, the store would be one
 * to an address that is not known before the node's line is there; processors that let no
 * load pass such a store (some never do; where speculative store bypass is switched
 * off, none does) then wait for the misses of each removal before those of the next. And
 * the fence, without which the owner and another CPU that empty the last two cells of a
 * chunk might each see the other's node in it still, is one for all of them.
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
		/* Noted in place of what is done with. The neighbours are fetched all together. */
		prefetchw(chunk->pprev);
		prefetchw((void *)chunk->link);
		wheel->pending_clear[dropped++] = chunk->cell;
	}
	wheel->nr_pending_clear = 0;
	for (i = 0; i < dropped; i++) {
		chunk = container_of(wheel->pending_clear[i], struct twheel_chunk, cell[0]);
		/* It is here once for each of its cells that was cleared. */
		if (chunk->pprev)
			drop_chunk(wheel, chunk);
	}
}

/* May a page leave, if @keep chunks are to be free without it? */
static bool may_release(const struct twheel *wheel, unsigned long keep)
{
	return twheel_nr_free(&wheel->stats) >= keep + TWHEEL_PAGE_CHUNKS;
}

/**
 * twheel_release_pages - take pages away from the wheel of which no chunk is in use
 * @wheel:	the wheel; by its owner
 * @ret:	how many of them, and what has become of it
 *
 * Does some of it: for all, call until it returns false.
 *
 * Other CPUs may still look at the pages: nothing must be written to them but @rcu and
 * @next, and they must not be freed, before a grace period of RCU has passed.
 *
 * Return: whether there may be more to be done.
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
 * twheel_dequeue_spilled - twheel_dequeue() for a node in a spill list
 * @wheel:	the wheel that the node is filed on; by its owner
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
 * twheel_requeue - twheel_dequeue() and twheel_enqueue() in one, for the speed of it
 * @wheel:	the wheel that the node is filed on; by its owner
 * @node:	the node; it has an entry, and its new deadline is set
 * @deadline:	that deadline, as for twheel_enqueue()
 *
 * Return: as twheel_enqueue().
 */
u64 twheel_requeue(struct twheel *wheel, struct twheel_node *node, u64 deadline)
{
	/* Pairs with the WRITE_ONCE()s in spill_add() and spill_del(), for a neighbour. */
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
 * twheel_next_expiry - when is the next slot due?
 * @wheel:	the wheel; by its owner
 *
 * Return: the tick of the next occupied slot; the current tick if it is being
 * worked off; %TWHEEL_NEVER if there is none. No node comes up before this tick.
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
 * twheel_forward - move the current tick, unless a slot comes before
 * @wheel:	the wheel; by its owner
 * @tick:	where to
 *
 * A wheel that slept for long files on coarser levels than it has to. This mends
 * it, before the first node is filed that will wake it.
 */
void twheel_forward(struct twheel *wheel, u64 tick)
{
	if (tick > wheel->now && twheel_next_expiry(wheel) > tick)
		set_now(wheel, tick);
}

/* Moves all of a spill list to another one, which is empty. */
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

/* Moves time to the next occupied slot, at @tick, and its content to @expiring. */
static void begin_slot(struct twheel *wheel, u64 tick)
{
	u64 time = tick << wheel->shift;
	struct twheel_digit digit = wheel->msb_map[__fls(time ^ wheel->now_ns)];
	struct twheel_slot *slot = &wheel->slot[digit.level][time >> digit.shift & DIGIT_MASK];
	struct twheel_chunk *first = chunk_at(slot->head);

	set_now(wheel, tick);
	wheel->expiring_last = time + (1ULL << digit.shift) - wheel->tick_ns;
	clear_occupied(wheel, slot_number(wheel, slot));
	/* Also if there is nothing: it takes the lock, see twheel_dequeue_not_running(). */
	move_spill_list(wheel, spill_list_of(wheel, slot), &wheel->expiring_spill);
	if (!first)
		return;
	wheel->expiring.head = slot->head;
	chunk_of(slot->tail - 1)->link = last_link(&wheel->expiring);
	slot->head = last_link(slot);
	slot->tail = NULL;
}

/**
 * twheel_advance - let time pass, up to the next slot that is due
 * @wheel:	the wheel; by its owner
 * @tick:	the tick that it is now. If it lies behind the wheel's current tick, only
 *		what is left over from there is to be worked off
 *
 * To empty a wheel, @tick is the last one before %TWHEEL_NEVER.
 *
 * Return: true if there may be something to be worked off, by twheel_expire() and
 * twheel_expire_spilled(); false if nothing is due any more.
 */
bool twheel_advance(struct twheel *wheel, u64 tick)
{
	u64 next;

	/* From here on a cell names a node that is there, or none. */
	twheel_flush_dequeued(wheel);
	wheel->max_pending_clear = 1;
	if (has_expiring(wheel))
		return true;
	next = twheel_next_expiry(wheel);
	if (next <= tick) {
		begin_slot(wheel, next);
		return true;
	}
	wheel->max_pending_clear = TWHEEL_PENDING_CLEAR;
	twheel_forward(wheel, tick);
	return false;
}

/**
 * twheel_unspill - take a node out of a spill list
 * @wheel:	the wheel; by its owner
 * @list:	the list
 *
 * Return: the node, which is pending and nobody can take: it is to be filed by
 * twheel_cascade(), or to be given to twheel_detach(), at once. NULL if there is none.
 */
struct twheel_node *twheel_unspill(struct twheel *wheel, struct twheel_node **list)
{
	struct twheel_node *node;
	unsigned long flags;

	if (likely(!READ_ONCE(*list)))
		return NULL;
	raw_spin_lock_irqsave(&wheel->lock, flags);
	node = *list;
	if (node) {
		spill_del(node);
		WRITE_ONCE(node->location, TWHEEL_HELD);
	}
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	return node;
}

/**
 * twheel_unqueue_remote - take a node that another CPU has sent
 * @wheel:	the wheel; by its owner
 *
 * What is sent after this has begun with some comes after all of those.
 *
 * Return: as twheel_unspill(); to be filed by twheel_enqueue_from_remote().
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
	/* It may go back. */
	wheel->earliest = 0;
	set_now(wheel, now);
}

/* The lock is held. Pairs with the READ_ONCE() of who shows it. */
static void count_remote_dequeued(struct twheel *wheel, unsigned long nr)
{
	WRITE_ONCE(wheel->remote_dequeued, wheel->remote_dequeued + nr);
}

/* Tells the owner that a chunk of its was found to be empty. The lock is held. */
static void report_emptied(struct twheel *wheel, struct twheel_chunk *chunk)
{
	struct twheel_page *page = twheel_page_of(chunk);

	if (!page->emptied) {
		page->next_emptied = wheel->emptied;
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
	 * Pairs with the xchg() in twheel_cell_empty(); and with the smp_mb() in
	 * twheel_flush_dequeued(): the owner sees this, or chunk_empty() what the owner has cleared.
	 */
	if (cmpxchg(cell, node, NULL) != node)
		return -EAGAIN;
	WRITE_ONCE(node->location, 0);
	count_remote_dequeued(wheel, 1);
	if (chunk_empty(chunk))
		report_emptied(wheel, chunk);
	return 1;
}

/* Takes a node out of its spill list, if it is in one of this wheel's. The lock is held. */
static int dequeue_from_spill(struct twheel *wheel, struct twheel_node *node)
{
	/* A dead CPU's nodes get another owner while they are held. */
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
 * twheel_dequeue_remote - take a node's entry away, from any CPU
 * @wheel:	the wheel that @node.owner names
 * @node:	the node
 *
 * May be called while the owner does anything but to file or remove this very node,
 * as a part of expiry excepted: that is what this is made for.
 *
 * Return:
 * * %1		- the node had an entry
 * * %0		- it had none
 * * %-EAGAIN	- the owner has the node in its hands, for a moment; or @node.owner has
 *		  changed
 */
int twheel_dequeue_remote(struct twheel *wheel, struct twheel_node *node)
{
	unsigned long location, flags;
	int ret = -EAGAIN;

	/* Keeps the page there: pairs with the grace period that twheel_release_pages() takes. */
	rcu_read_lock();
	/* Pairs with the smp_store_release()s of @location. */
	location = smp_load_acquire(&node->location);
	if (!(location & TWHEEL_ENTRY)) {
		ret = 0;
	} else if (!(location & TWHEEL_HELD)) {
		/* The cell may be another node's by now, or the wheel another. */
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

/* Is a node's entry, at @location, on a wheel? It was when its lock was taken, or is no more. */
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
 * @running:	tells whether it is, from before twheel_detach() until it is through. Called
 *		with the wheel's lock held
 *
 * As twheel_dequeue_remote(); and the function that __twheel_expire() calls may file, move and
 * remove the node as well, without a lock.
 *
 * While the lock is held the owner does not come to another slot, and what it files does not go
 * into the one that it works off. So one call for this node may begin meanwhile, for an entry
 * that was there already. If that is what is seen here, the owner has emptied its cell. If the
 * call before has filed what is seen, that is over when @running says so, and as the place is
 * still the same afterwards, it is what that has left behind.
 *
 * Return:
 * * %1		- the node had an entry
 * * %0		- it had none, and is not handed out
 * * %-EBUSY	- what it is handed out to is at work, and goes on
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
 * twheel_queue_remote - have the owner of a wheel file a node
 * @wheel:	the wheel, whose owner will look into the inbox; @wheel->lock is held
 * @node:	the node; it has no entry, and is pending from here on
 */
void twheel_queue_remote(struct twheel *wheel, struct twheel_node *node)
{
	count_remote_dequeued(wheel, -1UL);
	spill_add(&wheel->remote_list, node);
}
