/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reader's side of a ring.
 */
#ifndef _TWHEEL_RING_TEST_H
#define _TWHEEL_RING_TEST_H

#include "twheel_test.h"

/* Takes an event out of a ring, as a program does. Returns false if there is none. */
static inline bool pop_event(struct twheel_ring *ring, struct twheel_event *event)
{
	__u32 tail = ring->tail;

	if (__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) == tail)
		return false;
	*event = ring->events[tail & ring->mask];
	__atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
	return true;
}

/* The same, but sleeps until there is one. Returns false if it times out. */
static inline bool wait_pop_event(int fd, struct twheel_ring *ring, struct twheel_event *event)
{
	while (!pop_event(ring, event))
		if (!wh_wait(fd))
			return false;
	return true;
}

#endif /* _TWHEEL_RING_TEST_H */
