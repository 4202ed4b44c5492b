/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The oracle: a wheel, and beside it a list of timers that is looked at from one end to
 * the other on every occasion. Whatever is done goes through here, and is compared.
 */
#ifndef _MODEL_H
#define _MODEL_H

#include "check.h"

#define TICK_MAX	((1ULL << (TWHEEL_BITS * TWHEEL_LEVELS)) - 1)

/**
 * struct timer - a timer as the oracle sees it
 * @node:	what the wheel sees of it
 * @earliest:	the first tick at which the wheel may hand it out, and the last
 * @passed:	its deadline had passed when it was filed, while the wheel was behind
 * @armed:	the wheel must hold it
 * @sent:	it is in the remote list: @earliest is not known yet
 */
struct timer {
	struct twheel_node node;
	u64 earliest;
	bool passed, armed, sent;
};

/**
 * struct model - a wheel and its oracle
 * @wheel:	the wheel
 * @due:	until when those are due that are handed out, in nanoseconds
 * @timers:	the timers
 * @nr:		how many
 * @armed:	how many of them are armed
 * @expired:	called when a timer has expired, if not NULL. May use any timer, but may
 *		not let time pass
 * @pages:	the wheel's pages of chunks
 * @nr_pages:	how many
 * @most_pages:	how many there may be
 * @withheld:	those of their chunks that the wheel has not got
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
void model_supply(struct model *m, unsigned int nr);
void model_give_back(struct model *m, unsigned long keep, unsigned long reserve);
void *model_page(void);

void model_arm(struct model *m, struct timer *t, u64 deadline);
void model_rearm(struct model *m, struct timer *t, u64 deadline);
void model_cancel(struct model *m, struct timer *t);
void model_take(struct model *m, struct timer *t);
void model_send(struct model *m, struct timer *t, u64 deadline);
struct timer *model_receive(struct model *m);

void model_work(struct model *m, u64 tick, unsigned int budget);
void model_advance(struct model *m, u64 tick);
void model_forward(struct model *m, u64 tick);
void model_empty(struct model *m);
void model_check(const struct model *m);

#endif /* _MODEL_H */
