// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the ring: events in memory that the program maps
 *
 * The program can write all of it. The kernel trusts none of it but @tail, and that only as far as
 * it makes sense: a program that writes nonsense gets its events late or not at all, and affects
 * nobody else. Anything else that the kernel needs to know, it keeps to itself.
 *
 * An event is written before @head announces it, and read before @tail gives its place back:
 *
 *	expiry					program
 *	twheel_ring_reserve(): reads @tail	reads @head (acquire)
 *	writes the event			reads the event
 *	twheel_ring_commit(): @head (release)	writes @tail (release)
 *
 * The write of the event has a control dependency on the read of @tail, and so comes after it.
 *
 * No wake-up is lost. A program that finds the ring empty goes to sleep in poll() or
 * epoll_wait(), which check once more:
 *
 *	expiry					poll
 *	twheel_ring_commit(): head++		puts itself on the context's @waiters
 *	full barrier (wq_has_sleeper())		full barrier (smp_mb())
 *	checks for anyone on @waiters		twheel_ring_readable(): checks head
 *
 * At least one of the two sees the other. An epoll instance is always on @waiters; there, the
 * wake-up puts an entry on its ready list, which the next epoll_wait() finds, however late it
 * comes.
 *
 * Nor are events forgotten that did not fit:
 *
 *	expiry: the ring is full		program
 *	queues the event			reads the events, moves @tail
 *	sets TWHEEL_RING_WAITING		reads @flags: set, or not yet
 *	wakes as above				polls, at once or when the ring is empty
 *
 * Only poll() moves waiting events, and it checks the queue under the context's lock. So a program
 * that sleeps is safe whatever it read in @flags, and the flag needs no barrier: it is for programs
 * that are too busy to sleep, and for those that poll only when they are woken, as with EPOLLET.
 */
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "context.h"
#include "lib/mapping.h"
#include "lib/memory.h"
#include "ring.h"

#define ENTRIES_MAX	(1U << 20)

/**
 * struct twheel_ring_buffer - a ring
 * @mapping:	its memory, a struct twheel_ring
 * @entries:	how many events it holds, a power of two
 * @head:	number of events ever written. Written with the context's lock held; poll reads it
 *		without the lock
 */
struct twheel_ring_buffer {
	struct twheel_mapping	mapping;
	u32			entries;
	u32			head;
};

/* A context's ring, or NULL. Once there is one, it stays until the context is destroyed. */
static struct twheel_ring_buffer *ring_of(const struct twheel_context *ctx)
{
	/* Pairs with the smp_store_release() in twheel_ring_create(). */
	return READ_ONCE(ctx->ring);
}

static void free_ring(struct twheel_ring_buffer *ring)
{
	twheel_mapping_destroy(&ring->mapping);
	kfree(ring);
}

/* Allocates a ring. Returns it, or an error pointer. */
static struct twheel_ring_buffer *alloc_ring(u32 entries)
{
	struct twheel_ring_buffer *ring = kzalloc(sizeof(*ring), TWHEEL_GFP_USER);
	struct twheel_ring *shared;
	int ret;

	if (!ring)
		return ERR_PTR(-ENOMEM);
	ret = twheel_mapping_create(&ring->mapping, struct_size(shared, events, entries),
				    TWHEEL_RING_OFFSET, NULL);
	if (ret) {
		kfree(ring);
		return ERR_PTR(ret);
	}
	ring->entries = entries;
	shared = ring->mapping.memory;
	shared->mask = entries - 1;
	return ring;
}

/**
 * twheel_ring_create - create a context's ring
 * @ctx:	the context
 * @entries:	how many events the ring holds
 * @event_keys:	events name timers by their keys, from the first one on
 *
 * Waits for a read() that is delivering events: its sequence numbers come first.
 *
 * Context: process, with the context's @grow_lock held; may sleep.
 * Return: 0; or
 * * %-EINVAL	- @entries is not a power of two, or too large
 * * %-EBUSY	- the context has a ring already
 * * %-ENOMEM	- out of memory
 * * %-EINTR	- the task is being killed
 */
int twheel_ring_create(struct twheel_context *ctx, u32 entries, bool event_keys)
{
	struct twheel_ring_buffer *ring;

	lockdep_assert_held(&ctx->grow_lock);
	if (!is_power_of_2(entries) || entries > ENTRIES_MAX)
		return -EINVAL;
	if (ctx->ring)
		return -EBUSY;
	ring = alloc_ring(entries);
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	if (mutex_lock_killable(&ctx->read_lock)) {
		free_ring(ring);
		return -EINTR;
	}
	spin_lock_bh(&ctx->lock);
	/* Pairs with the READ_ONCE()s in ring_of() and has_ring(). */
	smp_store_release(&ctx->ring, ring);
	ctx->event_keys |= event_keys;
	spin_unlock_bh(&ctx->lock);
	mutex_unlock(&ctx->read_lock);
	return 0;
}

/**
 * twheel_ring_destroy - free a context's ring, if it has one
 * @ctx:	the context, which is not in use any more
 *
 * Context: process.
 */
void twheel_ring_destroy(struct twheel_context *ctx)
{
	if (ctx->ring)
		free_ring(ctx->ring);
}

/**
 * twheel_ring_mapping - the memory of a context's ring
 * @ctx:	the context
 *
 * Context: any.
 * Return: the memory; NULL if there is no ring.
 */
struct twheel_mapping *twheel_ring_mapping(const struct twheel_context *ctx)
{
	struct twheel_ring_buffer *ring = ring_of(ctx);

	return ring ? &ring->mapping : NULL;
}

/**
 * twheel_ring_entries - how many events a context's ring holds
 * @ctx:	the context
 *
 * Context: any.
 * Return: their number; 0 if there is no ring.
 */
u32 twheel_ring_entries(const struct twheel_context *ctx)
{
	const struct twheel_ring_buffer *ring = ring_of(ctx);

	return ring ? ring->entries : 0;
}

/**
 * twheel_ring_reserve - get the place in the ring for the next event
 * @ctx:	the context, which has a ring
 *
 * Context: any, with the context's lock held.
 * Return: where to write the event, before twheel_ring_commit(); NULL if there is no room.
 */
struct twheel_event *twheel_ring_reserve(struct twheel_context *ctx)
{
	struct twheel_ring_buffer *ring = ctx->ring;
	struct twheel_ring *shared = ring->mapping.memory;

	lockdep_assert_held(&ctx->lock);
	/* Pairs with the program's release. A tail ahead of the head counts as far behind. */
	if (ring->head - READ_ONCE(shared->tail) >= ring->entries)
		return NULL;
	return &shared->events[ring->head & (ring->entries - 1)];
}

/**
 * twheel_ring_commit - publish an event to the program
 * @ctx:	the context, whose event has been written to the place from twheel_ring_reserve()
 *
 * Context: any, with the context's lock held.
 */
void twheel_ring_commit(struct twheel_context *ctx)
{
	struct twheel_ring_buffer *ring = ctx->ring;
	struct twheel_ring *shared = ring->mapping.memory;
	const u32 head = ring->head + 1;

	lockdep_assert_held(&ctx->lock);
	/* Pairs with the READ_ONCE() in twheel_ring_readable(). */
	WRITE_ONCE(ring->head, head);
	/* Pairs with the program's acquire. */
	smp_store_release(&shared->head, head);
}

/**
 * twheel_ring_readable - check whether there is an event in the ring
 * @ctx:	the context, which has a ring
 *
 * Context: any.
 * Return: true if, going by its tail, the program has not read all events.
 */
bool twheel_ring_readable(const struct twheel_context *ctx)
{
	const struct twheel_ring_buffer *ring = ring_of(ctx);
	const struct twheel_ring *shared = ring->mapping.memory;

	/* Pairs with the WRITE_ONCE() in twheel_ring_commit(), and the program's release. */
	return READ_ONCE(ring->head) != READ_ONCE(shared->tail);
}

/**
 * twheel_ring_set_waiting - show the program whether events are waiting that did not fit
 * @ctx:	the context, which has a ring
 * @waiting:	true if there are any
 *
 * Context: any, with the context's lock held.
 */
void twheel_ring_set_waiting(struct twheel_context *ctx, bool waiting)
{
	struct twheel_ring *shared = ctx->ring->mapping.memory;

	lockdep_assert_held(&ctx->lock);
	/* Read by the program. */
	WRITE_ONCE(shared->flags, waiting ? TWHEEL_RING_WAITING : 0);
}
