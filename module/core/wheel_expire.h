/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the data structure: expiring the slot that the wheel has reached
 *
 * For speed, it is compiled into the code that expires timers.
 */
#ifndef _TWHEEL_CORE_WHEEL_EXPIRE_H
#define _TWHEEL_CORE_WHEEL_EXPIRE_H

#include <linux/atomic.h>
#include <linux/overflow.h>
#include <linux/prefetch.h>
#include <linux/spinlock.h>

#include "wheel.h"

/*
 * Prefetches for the chunks that follow the one that is expiring: the nodes of the chunk after
 * the next, and the chunk after that. They arrive while the nodes of the next chunk expire.
 */
static __always_inline void twheel_chunk_prefetch(const struct twheel_chunk *chunk)
{
	const struct twheel_chunk *ahead;
	unsigned long link = chunk->link;
	unsigned int i;

	if (unlikely(!twheel_link_is_chunk(link)))
		return;
	link = ((const struct twheel_chunk *)link)->link;
	if (unlikely(!twheel_link_is_chunk(link)))
		return;
	ahead = (const struct twheel_chunk *)link;
	prefetchw((void *)ahead->link);
#pragma GCC unroll 6
	for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
		/* Pairs with the cmpxchg() in dequeue_from_cell(). Only a hint. */
		prefetchw(READ_ONCE(ahead->cell[i]));
	}
}

/**
 * twheel_chunk_first - the next chunk to expire, if any
 * @wheel:	the wheel; by its owner
 *
 * It remains the first chunk of the expiring slot, which nothing drops, until it is passed
 * to twheel_chunk_retire().
 *
 * Return: the chunk; NULL if there is none: see twheel_advance().
 */
static inline struct twheel_chunk *twheel_chunk_first(struct twheel *wheel)
{
	unsigned long link = wheel->expiring.head;

	return twheel_link_is_chunk(link) ? (struct twheel_chunk *)link : NULL;
}

/* As twheel_chunk_retire(), but without counting. Returns the link to the next chunk. */
static __always_inline unsigned long twheel_chunk_done(struct twheel *wheel,
						       struct twheel_chunk *chunk)
{
	unsigned long link;

	twheel_chunk_free(wheel, chunk);
	/* A free chunk keeps its link until it is used again, which only the owner does. */
	link = chunk->link;
	wheel->expiring.head = link;
	return link;
}

/**
 * twheel_chunk_retire - free a chunk whose nodes have all been handled
 * @wheel:	the wheel; by its owner
 * @chunk:	from twheel_chunk_first(); all its cells are NULL
 */
static inline void twheel_chunk_retire(struct twheel *wheel, struct twheel_chunk *chunk)
{
	twheel_chunk_done(wheel, chunk);
	wheel->stats.free++;
}

/**
 * twheel_cell_take - take the node out of a cell that another CPU may be about to empty
 * @cell:	the cell, in a chunk from twheel_chunk_first()
 *
 * Return: the node that was in it, which now belongs to the caller; or NULL.
 */
static __always_inline struct twheel_node *twheel_cell_take(struct twheel_node **cell)
{
#ifdef CONFIG_SMP
	/* Pairs with the cmpxchg() in dequeue_from_cell(). */
	return xchg(cell, NULL);
#else
	/* On x86, xchg() is a locked instruction even on UP. */
	struct twheel_node *node = *cell;

	*cell = NULL;
	return node;
#endif
}

/* Expires the nodes of the first chunk. For the other parameters see __twheel_expire(). */
static __always_inline void
twheel_chunk_expire(struct twheel *wheel, struct twheel_chunk *chunk, u64 due,
		    void (*expire)(void *arg, struct twheel_node *node, u64 late), void *arg,
		    u64 (*cascade)(struct twheel *wheel, struct twheel_node *node))
{
	struct twheel_node *node;
	unsigned int i;
	u64 late;

#pragma GCC unroll 6
	for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
		node = twheel_cell_take(&chunk->cell[i]);
		if (unlikely(!node))
			continue;
		/* Plain: a task of this CPU may be about to store it, but is not running now. */
		if (likely(!check_sub_overflow(due, node->deadline, &late)))
			expire(arg, node, late);
		else
			cascade(wheel, node);
	}
}

/*
 * Takes the nodes that are not due out of a chunk. It takes the lock, under which other CPUs
 * take nodes, once, instead of one exchange per cell. Returns how many nodes are now in
 * @requeue, to be enqueued again, and sets *@more if any nodes are left.
 */
static __always_inline unsigned int twheel_chunk_take_early(struct twheel *wheel,
							    struct twheel_chunk *chunk, u64 due,
							    bool *more)
{
	struct twheel_node *node;
	unsigned int i, nr = 0;
	unsigned long flags;

	*more = false;
	raw_spin_lock_irqsave(&wheel->lock, flags);
#pragma GCC unroll 6
	for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
		node = chunk->cell[i];
		if (unlikely(!node))
			continue;
		/* Plain, as in twheel_chunk_expire(). */
		if (unlikely(node->deadline <= due)) {
			*more = true;
			continue;
		}
		/* Pairs with the READ_ONCE() in cells_empty(). */
		WRITE_ONCE(chunk->cell[i], NULL);
		wheel->requeue[nr++] = node;
	}
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	return nr;
}

/**
 * twheel_due_until - the time up to which nodes in the expiring slot are due
 * @wheel:	the wheel; by its owner
 * @now:	the time, in nanoseconds
 *
 * This is the time of the slot, so that nodes expire in the order of their ticks. If that is
 * more than %TWHEEL_BEHIND ticks ago, it is @now: what is already late need not cascade.
 *
 * Return: the time, in nanoseconds.
 */
static inline u64 twheel_due_until(const struct twheel *wheel, u64 now)
{
	return now > wheel->now_ns + TWHEEL_BEHIND * wheel->tick_ns ? now : wheel->now_ns;
}

/**
 * __twheel_expire - expire what is due in a slot
 * @wheel:	the wheel; by its owner
 * @max_chunks:	maximum number of chunks to process
 * @due:	from twheel_due_until()
 * @expire:	called for every node that is due; must call twheel_detach(). It may enqueue,
 *		dequeue and free nodes. @late is the number of nanoseconds from the node's
 *		deadline to @due
 * @arg:	passed to @expire
 * @cascade:	called for every other node: twheel_cascade() or a wrapper of it
 *
 * Processes the slot that twheel_advance() has reached. Nodes that are not due are enqueued
 * again. Inlined into its caller, for speed.
 *
 * Return: the number of chunks processed; less than @max_chunks if the slot has no more.
 */
static __always_inline unsigned int
__twheel_expire(struct twheel *wheel, unsigned int max_chunks, u64 due,
		void (*expire)(void *arg, struct twheel_node *node, u64 late), void *arg,
		u64 (*cascade)(struct twheel *wheel, struct twheel_node *node))
{
	unsigned long link = wheel->expiring.head;
	struct twheel_chunk *chunk;
	unsigned int i, nr, left = max_chunks;
	bool more;

	/* A chunk is freed when it is done, but counted together with the others at the end. */
	for (; left && wheel->expiring_last > due && twheel_link_is_chunk(link); left--) {
		chunk = (struct twheel_chunk *)link;
		twheel_chunk_prefetch(chunk);
		nr = twheel_chunk_take_early(wheel, chunk, due, &more);
		/* If all of it is due, so is most of the rest. */
		if (!nr)
			wheel->expiring_last = 0;
		for (i = 0; i < nr; i++)
			cascade(wheel, wheel->requeue[i]);
		if (more)
			twheel_chunk_expire(wheel, chunk, due, expire, arg, cascade);
		link = twheel_chunk_done(wheel, chunk);
	}
	for (; left && likely(twheel_link_is_chunk(link)); left--) {
		chunk = (struct twheel_chunk *)link;
		twheel_chunk_prefetch(chunk);
		twheel_chunk_expire(wheel, chunk, due, expire, arg, cascade);
		link = twheel_chunk_done(wheel, chunk);
	}
	wheel->stats.free += max_chunks - left;
	return max_chunks - left;
}

/**
 * twheel_cascade_spilled - enqueue a node that was on a spill list again
 * @wheel:	the wheel; by its owner
 * @node:	the node, from twheel_unspill()
 * @cascade:	enqueues it
 *
 * It is not given a new chunk, as nobody has paid for one: it goes into a chunk with room,
 * or onto a spill list.
 */
static inline void
twheel_cascade_spilled(struct twheel *wheel, struct twheel_node *node,
		       u64 (*cascade)(struct twheel *wheel, struct twheel_node *node))
{
	const bool withheld = wheel->withheld;

	twheel_withhold_chunks(wheel, true);
	cascade(wheel, node);
	twheel_withhold_chunks(wheel, withheld);
}

/**
 * __twheel_expire_spilled - __twheel_expire() for spilled nodes, one at a time
 * @wheel:	the wheel; by its owner
 * @due:	as for __twheel_expire()
 * @expire:	as for __twheel_expire()
 * @arg:	as for __twheel_expire()
 * @cascade:	as for __twheel_expire()
 *
 * Return: true if there was a node, which has been expired or enqueued again.
 */
static inline bool
__twheel_expire_spilled(struct twheel *wheel, u64 due,
			void (*expire)(void *arg, struct twheel_node *node, u64 late), void *arg,
			u64 (*cascade)(struct twheel *wheel, struct twheel_node *node))
{
	struct twheel_node *node = twheel_unspill(wheel, &wheel->expiring_spill);

	if (!node)
		return false;
	if (node->deadline <= due)
		expire(arg, node, due - node->deadline);
	else
		twheel_cascade_spilled(wheel, node, cascade);
	return true;
}

/**
 * twheel_expire - __twheel_expire() with twheel_cascade()
 * @wheel:	as for __twheel_expire()
 * @max_chunks:	as for __twheel_expire()
 * @due:	as for __twheel_expire()
 * @expire:	as for __twheel_expire()
 * @arg:	as for __twheel_expire()
 *
 * Return: as for __twheel_expire().
 */
static __always_inline unsigned int
twheel_expire(struct twheel *wheel, unsigned int max_chunks, u64 due,
	      void (*expire)(void *arg, struct twheel_node *node, u64 late), void *arg)
{
	return __twheel_expire(wheel, max_chunks, due, expire, arg, twheel_cascade);
}

/**
 * twheel_expire_spilled - __twheel_expire_spilled() with twheel_cascade()
 * @wheel:	as for __twheel_expire_spilled()
 * @due:	as for __twheel_expire_spilled()
 * @expire:	as for __twheel_expire_spilled()
 * @arg:	as for __twheel_expire_spilled()
 *
 * Return: as for __twheel_expire_spilled().
 */
static inline bool
twheel_expire_spilled(struct twheel *wheel, u64 due,
		      void (*expire)(void *arg, struct twheel_node *node, u64 late), void *arg)
{
	return __twheel_expire_spilled(wheel, due, expire, arg, twheel_cascade);
}

#endif /* _TWHEEL_CORE_WHEEL_EXPIRE_H */
