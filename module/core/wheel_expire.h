/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the data structure: what is done with a slot that the wheel has come to
 *
 * It is compiled as a part of who expires timers, for the speed of it.
 */
#ifndef _TWHEEL_CORE_WHEEL_EXPIRE_H
#define _TWHEEL_CORE_WHEEL_EXPIRE_H

#include <linux/atomic.h>
#include <linux/overflow.h>
#include <linux/prefetch.h>
#include <linux/spinlock.h>

#include "wheel.h"

/*
 * Starts to fetch what comes after the chunk that is worked off now: the nodes of the chunk
 * after the next, and the chunk after that. They arrive while the nodes of the next are
 * worked off.
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
	for (i = 0; i < TWHEEL_CHUNK_CELLS; i++)
		prefetchw(READ_ONCE(ahead->cell[i]));
}

/**
 * twheel_chunk_get - the next chunk to be worked off, if there is one
 * @wheel:	the wheel; by its owner
 *
 * It stays the first of the slot that is being worked off, which nobody drops, until it is
 * given to twheel_chunk_put().
 *
 * Return: the chunk; NULL if there is none: see twheel_advance().
 */
static inline struct twheel_chunk *twheel_chunk_get(struct twheel *wheel)
{
	unsigned long link = wheel->expiring.head;

	return twheel_link_is_chunk(link) ? (struct twheel_chunk *)link : NULL;
}

/* As twheel_chunk_put(), but does not count. Returns the link to the next chunk. */
static __always_inline unsigned long twheel_chunk_done(struct twheel *wheel,
						       struct twheel_chunk *chunk)
{
	unsigned long link;

	twheel_chunk_free(wheel, chunk);
	link = chunk->link;
	wheel->expiring.head = link;
	return link;
}

/**
 * twheel_chunk_put - give back a chunk that has been worked off
 * @wheel:	the wheel; by its owner
 * @chunk:	from twheel_chunk_get(); all its cells are NULL
 */
static inline void twheel_chunk_put(struct twheel *wheel, struct twheel_chunk *chunk)
{
	twheel_chunk_done(wheel, chunk);
	wheel->stats.free++;
}

/**
 * twheel_cell_empty - empty a cell that another CPU may be about to empty
 * @cell:	the cell, of a chunk from twheel_chunk_get()
 *
 * Return: the node that was in it, and that is the caller's now; or NULL.
 */
static __always_inline struct twheel_node *twheel_cell_empty(struct twheel_node **cell)
{
#ifdef CONFIG_SMP
	/* Pairs with the cmpxchg() in dequeue_from_cell(). */
	return xchg(cell, NULL);
#else
	/* xchg() is a locked instruction even here. */
	struct twheel_node *node = *cell;

	*cell = NULL;
	return node;
#endif
}

/* Works off the first chunk. For the rest see __twheel_expire(). */
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
		node = twheel_cell_empty(&chunk->cell[i]);
		if (unlikely(!node))
			continue;
		/* Plain: a task of this CPU may be about to store it, but does not run now. */
		if (likely(!check_sub_overflow(due, node->deadline, &late)))
			expire(arg, node, late);
		else
			cascade(wheel, node);
	}
}

/*
 * Takes out of a chunk what is not due. For that it takes the lock, under which others
 * take nodes, once, instead of an exchange for each cell. Returns how many nodes are in
 * @requeue now, to be filed again, and whether there are @more.
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
		if (unlikely(READ_ONCE(node->deadline) <= due)) {
			*more = true;
			continue;
		}
		WRITE_ONCE(chunk->cell[i], NULL);
		wheel->requeue[nr++] = node;
	}
	raw_spin_unlock_irqrestore(&wheel->lock, flags);
	return nr;
}

/**
 * twheel_due_until - until when are nodes due, in the slot that is being worked off?
 * @wheel:	the wheel; by its owner
 * @now:	the time, in nanoseconds
 *
 * Until the slot's time, so that nodes come out in the order of their ticks. If that is
 * %TWHEEL_BEHIND ticks ago, until now: what is late already need not cascade.
 *
 * Return: the time, in nanoseconds.
 */
static inline u64 twheel_due_until(const struct twheel *wheel, u64 now)
{
	return now > wheel->now_ns + TWHEEL_BEHIND * wheel->tick_ns ? now : wheel->now_ns;
}

/**
 * __twheel_expire - hand out what is due of a slot
 * @wheel:	the wheel; by its owner
 * @max_chunks:	chunks to work off at most
 * @due:	from twheel_due_until()
 * @expire:	called for every node that is due, and must call twheel_detach(). It may
 *		file, remove and free nodes. @late is by how many nanoseconds
 *		its deadline lies before @due
 * @arg:	for @expire
 * @cascade:	called for every other node: twheel_cascade(), or what calls it
 *
 * Works off what twheel_advance() has come to. What is not due is filed again.
 * Compiled as a part of its caller, for the speed of it.
 *
 * Return: the number of chunks worked off; less than @max_chunks if the slot has no more.
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

	/* The chunk is freed when all is done to it, and counted when all of them are. */
	for (; left && wheel->expiring_last > due && twheel_link_is_chunk(link); left--) {
		chunk = (struct twheel_chunk *)link;
		twheel_chunk_prefetch(chunk);
		nr = twheel_chunk_take_early(wheel, chunk, due, &more);
		/* If it is all due, so is most of the rest. */
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
 * twheel_cascade_spilled - enter a node again that was in a spill list
 * @wheel:	the wheel; by its owner
 * @node:	the node, as twheel_unspill() gives it
 * @cascade:	enters it
 *
 * It gets no chunk, as nobody has paid for one: it goes into a chunk that has room, or into a
 * spill list.
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
 * __twheel_expire_spilled - as __twheel_expire(), for what has spilled
 * @wheel:	the wheel; by its owner
 * @due:	as there
 * @expire:	as there
 * @arg:	for @expire
 * @cascade:	as there
 *
 * Return: whether there was a node, which has been expired or filed again.
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
 * @wheel:	as there
 * @max_chunks:	as there
 * @due:	as there
 * @expire:	as there
 * @arg:	as there
 *
 * Return: as there.
 */
static __always_inline unsigned int
twheel_expire(struct twheel *wheel, unsigned int max_chunks, u64 due,
	      void (*expire)(void *arg, struct twheel_node *node, u64 late), void *arg)
{
	return __twheel_expire(wheel, max_chunks, due, expire, arg, twheel_cascade);
}

/**
 * twheel_expire_spilled - __twheel_expire_spilled() with twheel_cascade()
 * @wheel:	as there
 * @due:	as there
 * @expire:	as there
 * @arg:	as there
 *
 * Return: as there.
 */
static inline bool
twheel_expire_spilled(struct twheel *wheel, u64 due,
		      void (*expire)(void *arg, struct twheel_node *node, u64 late), void *arg)
{
	return __twheel_expire_spilled(wheel, due, expire, arg, twheel_cascade);
}

#endif /* _TWHEEL_CORE_WHEEL_EXPIRE_H */
