/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fuzz-device: contexts that many share, and the account of what becomes of their timers
 *
 * A run is a sequence of rounds. Each has new contexts, an arena, which threads and processes use
 * at the same time, and ends with a check of the account.
 */
#ifndef _FUZZ_SHARED_H
#define _FUZZ_SHARED_H

#include "fuzz.h"

#define SLOTS		128
#define IDS		(1U << 19)
#define SEQS		(1U << 20)
#define SOCKETS		96
#define TOUCH_WORDS	64
#define RING_ENTRIES	64

/* The contents of a timer's user_data: its number, and its kind. */
#define DATA_KEYED	(1ULL << 32)
#define DATA_PERIODIC	(1ULL << 33)
#define DATA_WATCHED	(1ULL << 34)

/* struct context::end: the timer was added, and must end; and below it how often it has. */
#define END_ADDED	0x80
#define END_COUNT	0x0f

/**
 * enum place - the contexts of an arena
 * @READ:	its events are read
 * @RING:	they are read, until an actor creates a ring
 * @WATCH:	its timers watch connections
 * @CHAOS:	processes that use it are killed
 * @GARBAGE:	likewise, and garbage is written to its ring as well
 * @PLACES:	their number
 */
enum place { READ, RING, WATCH, CHAOS, GARBAGE, PLACES };

/**
 * struct slot - a timer that others can find
 * @handle:	its handle, or 0
 * @data:	its user_data
 */
struct slot {
	__u64 handle;
	__u64 data;
};

/**
 * struct context - a context, and its account
 * @fd:		its file
 * @exact:	no process that uses it is killed: everything is known
 * @touch:	its touch array, or NULL
 * @ring:	its ring, or NULL
 * @ring_bytes:	the length of the ring
 * @slot:	timers that were added
 * @ids:	numbers of timers that were given out
 * @begun:	adds that have begun a timer
 * @replaced:	adds that have replaced another timer
 * @rearmed:	re-arms
 * @cancelled:	cancels
 * @drained:	timers drained
 * @in_delivery: verdicts that an event is being delivered
 * @events:	events that have arrived
 * @one_shots:	those with which a timer has ended
 * @last_seq:	the largest number of an event
 * @end:	for each timer, what has become of it
 * @seq:	for each event, whether it has arrived, a bit each
 */
struct context {
	int			fd;
	bool			exact;
	struct twheel_touch	*touch;
	struct twheel_ring	*ring;
	__u64			ring_bytes;
	struct slot		slot[SLOTS];
	__u32			ids;
	__u64			begun;
	__u64			replaced;
	__u64			rearmed;
	__u64			cancelled;
	__u64			drained;
	__u64			in_delivery;
	__u64			events;
	__u64			one_shots;
	__u64			last_seq;
	__u8			end[IDS];
	__u64			seq[SEQS / 64];
};

/**
 * struct arena - what a round works on
 * @seed:	of the round
 * @stop:	the actors must end
 * @readers_stop: and so must those that read
 * @context:	by enum place
 * @killed:	number of processes killed
 * @port:	where to connect to
 */
struct arena {
	__u64		seed;
	int		stop;
	int		readers_stop;
	struct context	context[PLACES];
	__u64		killed;
	__u16		port;
};

extern struct arena *arena;

/* Is the round over for those that arm timers? */
static inline bool arena_over(void)
{
	return __atomic_load_n(&arena->stop, __ATOMIC_RELAXED) || fuzz_over();
}

/* account.c */
__u64 account_new(struct context *context, __u64 kind);
bool account_full(const struct context *context);
void account_op(struct context *context, const struct twheel_op *op, const struct slot *slot);
void account_event(struct context *context, const struct twheel_event *event);
void account_drained(struct context *context, const struct twheel_timer_query *record);
void account_close(struct context *context, const char *name);

/* actor-timers.c */
void timers_step(struct context *context, struct choices *choices, struct io_uring *uring);
void timers_actor(struct choices *choices);
void make_ring(struct context *context);
void make_touch(struct context *context);

/* actor-events.c */
void reader_actor(struct choices *choices);
void bad_reader_actor(struct choices *choices);
void ring_actor(struct choices *choices);
void handover_actor(struct choices *choices);

/* actor-sockets.c */
void sockets_open(void);
int sockets_some(struct choices *choices);
void peer_actor(struct choices *choices);
void watch_actor(struct choices *choices);

/* actor-rules.c */
void rules_actor(struct choices *choices);
void rules_step(int fd, struct choices *choices, __u16 port);
void alive_actor(struct choices *choices);
void rules_hold(void);

/* actor-system.c */
void system_actor(struct choices *choices);
void look_actor(struct choices *choices);
void move_cpu(struct choices *choices);

/* actor-chaos.c */
void run_nursery(__u64 seed);

#endif /* _FUZZ_SHARED_H */
