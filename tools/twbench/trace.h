/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench: traces, which are what mixtures generate, record takes from a running machine, and
 * replay does with each scheme
 */
#ifndef TRACE_H
#define TRACE_H

#include "twbench.h"

#define NS_PER_US	1000ULL
#define NS_PER_MS	1000000ULL
#define NS_PER_S	1000000000ULL

/* The largest number of bytes in a note. */
#define TRACE_NOTE	1000

/**
 * struct trace - operations on timers, sorted by time
 * @op:		the operations; times and deadlines are multiples of a microsecond, and count from
 *		the beginning of the trace
 * @nr:		number of operations
 * @max:	number of allocated ones
 * @length_ns:	when the trace ends
 * @nr_objects:	objects are numbered from 0 to this
 * @note:	what it is, for people
 */
struct trace {
	struct twheel_bench_op	*op;
	uint64_t		nr;
	uint64_t		max;
	uint64_t		length_ns;
	uint32_t		nr_objects;
	char			note[TRACE_NOTE + 1];
};

/**
 * struct truth - what any scheme has to do with a prepared trace
 * @fired:	number of expiries
 * @checksum:	of these, like that of struct twheel_bench_replay
 */
struct truth {
	uint64_t	fired;
	uint64_t	checksum;
};

/* trace.c */
void trace_add(struct trace *trace, uint32_t kind, uint64_t time_ns, uint32_t object,
	       uint64_t deadline_ns);
void trace_sort(struct trace *trace);
void trace_multiply(struct trace *trace, uint32_t copies, uint64_t seed);
void trace_hurry(struct trace *trace, double speed);
void trace_free(struct trace *trace);
uint64_t random_below(uint64_t *state, uint64_t limit);

/**
 * struct trace_file - a file that a trace is to be written to
 * @name:	its name, for messages
 * @stream:	what is written to
 * @temporary:	what this is called until all is written; NULL if @name is written as it is
 * @target:	what it is called then
 */
struct trace_file {
	const char	*name;
	FILE		*stream;
	char		*temporary;
	char		*target;
};

/* trace-file.c */
void trace_create(struct trace_file *file, const char *name);
void trace_finish(struct trace_file *file, const struct trace *trace);
void trace_write(const struct trace *trace, const char *name);
void trace_read(struct trace *trace, const char *name);

/* trace-prepare.c */
void trace_prepare(struct trace *trace, uint64_t margin_ns, struct truth *truth);

/**
 * struct mixture - the numbers that a mixture is generated from
 * @name:	its name
 * @what:	what it is, in a few words
 * @timeout_min: the shortest timeout, in nanoseconds as all times here
 * @timeout_max: the longest
 * @far:	share of the owners that have far timeouts, in percent as all shares
 * @far_min:	the shortest far timeout
 * @far_max:	the longest
 * @silent:	share of the timers whose owner does nothing, so that they expire
 * @next_min:	shortest time from arming a timer until its owner does something
 * @next_max:	the longest
 * @cancel:	share of what owners do that cancels the timer; the others re-arm it
 * @pause_min:	shortest time from a cancel until the timer is armed again
 * @pause_max:	the longest
 * @return_min:	the same from an expiry
 * @return_max:	the longest
 * @once:	not 0: a timer that has expired is not armed again
 * @backoff:	by what a timeout is multiplied with each expiry in a row, up to the longest; or 0
 * @equal:	not 0: all begin at time 0; 0: they are spread, as after a long time
 * @length:	length of the trace
 */
struct mixture {
	const char	*name;
	const char	*what;
	double		timeout_min;
	double		timeout_max;
	double		far;
	double		far_min;
	double		far_max;
	double		silent;
	double		next_min;
	double		next_max;
	double		cancel;
	double		pause_min;
	double		pause_max;
	double		return_min;
	double		return_max;
	double		once;
	double		backoff;
	double		equal;
	double		length;
};

/* mixture.c */
extern const struct mixture mixtures[];
const struct mixture *mixture_find(const char *name);
void mixture_set(struct mixture *mixture, const char *setting);
void mixture_check(const struct mixture *mixture);
void mixture_print(FILE *out, const struct mixture *mixture);

/* generate.c */
void mixture_generate(const struct mixture *mixture, uint32_t nr, uint64_t seed,
		      struct trace *trace);

/* Figures of a scheme that replays a trace. */
enum replay_figure {
	REPLAY_ARM,
	REPLAY_MOVE,
	REPLAY_CANCEL,
	REPLAY_EXPIRY,
	REPLAY_CPU,
	REPLAY_INTERRUPTS,
	REPLAY_SOFTIRQS,
	REPLAY_LATE_P50,
	REPLAY_LATE_P99,
	REPLAY_LATE_MAX,
	REPLAY_LONGEST,
	REPLAY_LONGEST_INTERRUPT,
	REPLAY_BYTES,
	REPLAY_NR_FIGURES,
};

/**
 * struct replay_record - what one scheme made of a trace
 * @scheme:	its name
 * @fired:	number of expiries, of the last round
 * @most_armed:	the largest number of armed timers, of the last round
 * @figure:	figures; without values if there is nothing to measure
 */
struct replay_record {
	const char	*scheme;
	uint64_t	fired;
	uint32_t	most_armed;
	struct samples	figure[REPLAY_NR_FIGURES];
};

/**
 * struct replay_result - what the schemes made of a trace
 * @name:	name of the mixture, or of the file
 * @size:	number of timers of a mixture, or of copies of a trace
 * @length_ns:	how long it is; this and the following ones are those of the last round
 * @ops:	by kind, number of operations
 * @nr_objects:	number of objects
 * @truth:	what each scheme has done
 * @record:	by scheme
 * @nr:		number of records
 */
struct replay_result {
	const char		*name;
	uint32_t		size;
	uint64_t		length_ns;
	uint64_t		ops[TWHEEL_BENCH_NR_OP_KINDS];
	uint32_t		nr_objects;
	struct truth		truth;
	struct replay_record	*record;
	size_t			nr;
};

/* replay.c */
void replay_begin(const struct setup *setup, unsigned int rounds, struct replay_result *result);
void replay_round(const struct setup *setup, const struct trace *trace,
		  const struct truth *truth, struct replay_result *result);
void replay_end(struct replay_result *result);

/* replay-report.c */
void replay_print(FILE *out, const struct setup *setup, const struct replay_result *result);
void replay_json(FILE *out, const struct setup *setup, const struct replay_result *result,
		 size_t nr);

/* record.c */
struct record_plan {
	double		seconds;
	const char	*events;
	const char	*note;
};

void record_trace(const struct record_plan *plan, struct trace *trace);

/* trace-main.c */
bool is_trace_command(const char *word);
int trace_main(int argc, char **argv);

#endif /* TRACE_H */
