/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fuzz-device: a thread that has a context to itself
 */
#ifndef _FUZZ_SOLO_H
#define _FUZZ_SOLO_H

#include "model.h"

struct io_uring;

/**
 * struct solo - a running program
 * @fd:		the context
 * @choices:	the program
 * @model:	what is known about the context
 * @uring:	an io_uring, or NULL
 * @memory:	two pages, of which the second cannot be accessed
 * @ring:	the ring's mapping, or NULL
 * @ring_bytes:	its length
 * @tail:	events read from it
 * @touch:	the touch array's mapping, or NULL
 * @touch_bytes: its length
 */
struct solo {
	int			fd;
	struct choices		choices;
	struct model		model;
	struct io_uring		*uring;
	char			*memory;
	struct twheel_ring	*ring;
	__u64			ring_bytes;
	__u32			tail;
	struct twheel_touch	*touch;
	__u64			touch_bytes;
};

static inline struct span span_begin(void)
{
	__u32 sets = clock_sets();

	return (struct span){ .before = read_clocks(), .clock_sets = sets };
}

static inline void span_end(struct span *span)
{
	span->after = read_clocks();
}

/* solo-memory.c */
void solo_setup(struct solo *solo);
void solo_ring(struct solo *solo);
void solo_touch(struct solo *solo);
void solo_bad_call(struct solo *solo);
void solo_bad_read(struct solo *solo);
void solo_map(struct solo *solo);
void solo_unmap(struct solo *solo);

/* solo-sockets.c */
void solo_sockets(struct solo *solo);
void solo_sockets_close(struct solo *solo);
void solo_choose_watch(struct solo *solo, struct twheel_op *op);
bool solo_may_end(const struct solo *solo);

#endif /* _FUZZ_SOLO_H */
