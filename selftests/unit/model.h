/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The oracle: a wheel, and next to it a list of timers that is searched linearly every time. All
 * operations go through it, and their results are compared.
 */
#ifndef _MODEL_H
#define _MODEL_H

#include "check.h"

#define TICK_MAX	((1ULL << (TWHEEL_BITS * TWHEEL_LEVELS)) - 1)

/**
 * struct timer - a timer as the oracle sees it
 * @node:	the wheel's view of it
 * @earliest:	the first tick at which the wheel may hand it out, and the last
 * @passed:	its deadline had passed when it was enqueued, while the wheel was behind
 * @armed:	the wheel must hold it
 * @on_remote:	it is on the remote list: @earliest is not known yet
 */
struct timer {
	struct twheel_node node;
	u64 earliest;
	bool passed, armed, on_remote;
};

/**
 * struct model - a wheel and its oracle
 * @wheel:	the wheel
 * @due:	the time in nanoseconds up to which timers are expired
 * @timers:	the timers
 * @nr:		number of timers
 * @armed:	number of armed timers
 * @expired:	called when a timer has expired, if not NULL. May use any timer, but must not
 *		advance time
 * @pages:	the wheel's pages of chunks
 * @nr_pages:	number of pages
 * @most_pages:	the maximum number of pages
 * @withheld:	chunks of these pages that the wheel has not been given
 */
struct model {
	struct twheel *wheel;
	u64 due;
	struct timer *timers;
	unsigned int nr, armed;
	void (*expired)(struct model *m, struct timer *t);
	struct twheel_page **pages;
	unsigned int nr_pages, most_pages;
	struct twheel_chunk *withheld;
};

void model_init(struct model *m, unsigned int nr, unsigned int shift, u64 now);
void model_free(struct model *m);
void model_withhold(struct model *m);
void model_add_chunks(struct model *m, unsigned int nr);
void model_release(struct model *m, unsigned long keep, unsigned long reserve);
void *model_page(void);

void model_arm(struct model *m, struct timer *t, u64 deadline);
void model_rearm(struct model *m, struct timer *t, u64 deadline);
void model_cancel(struct model *m, struct timer *t);
void model_dequeue_remote(struct model *m, struct timer *t);
void model_queue_remote(struct model *m, struct timer *t, u64 deadline);
struct timer *model_unqueue_remote(struct model *m);

void model_expire(struct model *m, u64 tick, unsigned int budget);
void model_advance(struct model *m, u64 tick);
void model_forward(struct model *m, u64 tick);
void model_evict_all(struct model *m);
void model_check(const struct model *m);

#endif /* _MODEL_H */
