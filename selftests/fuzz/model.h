/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fuzz-device: what linux/twheel.h promises to a thread that has a context to itself
 *
 * For each timer, the model knows between which times each of its limits is, as seen from
 * outside: a call took place between two readings of the clock. It cannot know whether a timer
 * has expired, only whether it may have. It accepts any answer that is possible, and holds the
 * kernel to it from then on. Everything else it predicts.
 */
#ifndef _FUZZ_MODEL_H
#define _FUZZ_MODEL_H

#include "fuzz.h"

#define MOST_TIMERS	192
#define MOST_HANDLES	4096
#define MOST_WORDS	64
#define MOST_ENDS	4

/* Errnos are less than this. */
#define MOST_ERRNOS	140

/**
 * struct moment - what the clocks show
 * @monotonic:	CLOCK_MONOTONIC
 * @realtime:	CLOCK_REALTIME
 * @boottime:	CLOCK_BOOTTIME
 */
struct moment {
	__u64 monotonic;
	__u64 realtime;
	__u64 boottime;
};

/**
 * struct span - when a call was made
 * @before:	the clocks before it
 * @after:	the clocks after it
 * @clock_sets:	clock_sets() before it
 */
struct span {
	struct moment before;
	struct moment after;
	__u32 clock_sets;
};

/**
 * struct range - a time that is not known exactly
 * @lo:		the earliest, or TWHEEL_TIME_NONE if there is none
 * @hi:		the latest
 */
struct range {
	__u64 lo;
	__u64 hi;
};

/**
 * struct timer - what is known about a timer
 * @handle:	its handle
 * @user_data:	as it was added
 * @key:	its key, with TWHEEL_KEYED in @flags
 * @flags:	TWHEEL_KEYED, TWHEEL_TOUCHED, TWHEEL_WATCHED and its flags
 * @limits:	it was added with an idle timeout or a lifetime
 * @expired:	the kernel has reported so
 * @untold:	it may have expired before the last activity in the touch array or on its connection
 * @owed:	the kernel has reported that it ended with an event, which must be in the ring
 * @clock:	the clock of its deadline
 * @added_on:	the clock that it was added with
 * @clock_sets:	as of when it was armed
 * @deadline:	on @clock
 * @active:	the last activity that was reported to the kernel by a call
 * @death:	the end of its lifetime
 * @slack:	of the deadline
 * @period:	its period, or 0
 * @idle:	the idle timeout, or 0
 * @touch:	the index of its word
 * @end:	the end that it watches, or NULL: also one that it watched until it expired
 */
struct timer {
	__u64		handle;
	__u64		user_data;
	__u64		key;
	__u32		flags;
	bool		limits;
	bool		expired;
	bool		untold;
	bool		owed;
	__u32		clock;
	__u32		added_on;
	__u32		clock_sets;
	struct range	deadline;
	struct range	active;
	struct range	death;
	__u64		slack;
	__u64		period;
	__u64		idle;
	__u32		touch;
	struct end	*end;
};

/* What has become of a handle. */
enum fate { ALIVE, DELIVERED, CANCELLED };

/**
 * struct past - a handle that was given out
 * @handle:	the handle
 * @fate:	an enum fate
 */
struct past {
	__u64		handle;
	enum fate	fate;
};

/**
 * struct word - a word of the touch array
 * @value:	what is stored there
 * @active:	the activity that it records
 */
struct word {
	__u64		value;
	struct range	active;
};

/**
 * struct end - an end of a connection; the other one is its neighbour
 * @fd:		its socket, or -1
 * @may_end:	the connection may end at any time, as a timer has been told to end it
 * @received:	the last data that it has received
 * @sent:	the last data that it has sent; with TWHEEL_TIME_NONE, the kernel may send it again
 */
struct end {
	int		fd;
	bool		may_end;
	struct range	received;
	struct range	sent;
};

/**
 * struct model - what is known about a context
 * @timer:	its timers, and those whose events are owed
 * @nr:		their number
 * @lingering:	timers that are gone, but may have been counted a moment longer
 * @past:	all handles that were given out
 * @nr_past:	their number
 * @stats:	what the kernel must have counted
 * @seq:	number of the next event
 * @max_timers:	its limit
 * @ring:	its events go to a ring
 * @event_keys: its events name timers by their keys
 * @nr_words:	length of the touch array
 * @word:	the words of the touch array
 * @end:	the ends of connections, in pairs
 * @one_shots:	events with which their timers ended
 * @activity:	how often timers with a word of the touch array, or a connection, were armed, or
 *		active
 * @jiffy:	the length of a jiffy in nanoseconds
 */
struct model {
	struct timer			timer[MOST_TIMERS];
	unsigned int			nr;
	unsigned int			lingering;
	struct past			past[MOST_HANDLES];
	unsigned int			nr_past;
	struct twheel_context_stats	stats;
	__u64				seq;
	__u64				max_timers;
	bool				ring;
	bool				event_keys;
	__u32				nr_words;
	struct word			word[MOST_WORDS];
	struct end			end[MOST_ENDS];
	__u64				one_shots;
	__u64				activity;
	__u64				jiffy;
};

/**
 * struct expect - what a call may return
 * @must:	success is impossible: it returns one of the errors
 * @error:	errors that it may return
 */
struct expect {
	bool must;
	bool error[MOST_ERRNOS];
};

static inline void must_fail(struct expect *expect, int error)
{
	expect->must = true;
	expect->error[error] = true;
}

static inline void may_fail(struct expect *expect, int error)
{
	expect->error[error] = true;
}

static inline bool is_expected(const struct expect *expect, long result)
{
	if (result >= 0)
		return !expect->must;
	return -result < MOST_ERRNOS && expect->error[-result];
}

static inline __u64 sum(__u64 a, __u64 b)
{
	if (a == TWHEEL_TIME_NONE)
		return a;
	return a + b > TWHEEL_TIME_MAX || a + b < a ? TWHEEL_TIME_MAX : a + b;
}

/* model-timer.c */
struct moment read_clocks(void);
__u64 time_on(const struct moment *moment, __u32 clock);
bool set_since(__u32 clock, __u32 sets);
bool clock_was_set(const struct timer *timer);
struct range idle_end(const struct model *model, const struct timer *timer,
		      const struct moment *now);
bool may_have_expired(const struct model *model, const struct timer *timer,
		      const struct moment *now);
bool may_vanish(const struct timer *timer);
bool has_to_expire(const struct model *model, const struct timer *timer,
		   const struct moment *now);
void timer_begin(struct timer *timer, const struct twheel_op *op, const struct span *span);
void timer_rearm(struct timer *timer, const struct twheel_op *op, const struct span *span);
void timer_told(const struct model *model, struct timer *timer, __u64 deadline, __u32 limit,
		bool pending, const struct span *span);
void word_touch(struct model *model, __u32 word);
void word_store(struct model *model, __u32 word, __u64 value, __u64 now);
struct end *end_of_fd(struct model *model, __u32 fd);
void end_touch(struct model *model, const struct end *end);

/* model.c */
void model_init(struct model *model, __u64 max_timers);
struct timer *model_by_handle(struct model *model, __u64 handle);
struct timer *model_by_key(struct model *model, __u64 key);
struct timer *model_named(struct model *model, __u64 name, __u32 flags, const struct span *span,
			  struct expect *expect);
void model_end(struct model *model, struct timer *timer, enum fate fate);
void model_gone(struct model *model, struct timer *timer, int error, const struct span *span);
void model_vanished(struct model *model, struct timer *timer);
struct range model_nr(const struct model *model, const struct moment *now);
void model_op(struct model *model, const struct twheel_op *said, const struct twheel_op *told,
	      const struct span *span);

/* model-answers.c */
void model_query(struct model *model, __u64 name, __u32 flags,
		 const struct twheel_timer_query *query, int result, const struct span *span);
void model_record(struct model *model, const struct twheel_timer_query *record,
		  const struct span *span);
void model_event(struct model *model, const struct twheel_event *event, const struct span *span);
void model_info(struct model *model, const struct twheel_info *info, const struct span *span);
void model_stats(struct model *model, const struct twheel_context_stats *stats,
		 const struct span *span);
void model_read(struct model *model, int result, unsigned int room, const struct span *span);

#endif /* _FUZZ_MODEL_H */
