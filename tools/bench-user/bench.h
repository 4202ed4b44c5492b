/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bench-user: declarations shared by its files
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench-common.h"

/* A program's object: a cache line with a timer in it. */
#define OBJECT_BYTES	64
/* tools/bench-programs has schemes with larger timers. */
#ifndef TIMER_BYTES
#define TIMER_BYTES	48
#endif

/* Times are in units of 2^TIME_SHIFT ns. */
#define TIME_SHIFT	10
#define TIME_OF_MS(ms)	((uint32_t)((ms) * 1000000ULL >> TIME_SHIFT))

/**
 * struct object - the object that a timer is embedded in
 * @timer:	a scheme's timer
 * @fired:	number of times it has expired; counted by the callback
 * @value:	changed by the limit line
 */
struct object {
	unsigned char	timer[TIMER_BYTES] __attribute__((aligned(OBJECT_BYTES)));
	uint64_t	fired;
	uint64_t	value;
};

/**
 * struct step - one operation
 * @object:	number of the object
 * @time:	the time to arm its timer for, relative to the beginning of the run
 */
struct step {
	uint32_t	object;
	uint32_t	time;
};

enum workload {
	ADD_SEQUENTIAL,
	ADD_RANDOM,
	REARM_LATER,
	REARM_EARLIER,
	CANCEL,
	EXPIRE,
	NR_WORKLOADS,
};

/**
 * struct scheme - a timer implementation
 * @name:	its name in the tables
 * @timer_bytes: size of a timer, at most TIMER_BYTES
 * @shorter:	if the timers are left to expire, all times are divided by this; 1 if the scheme's
 *		clock is simulated
 * @create:	called before everything else, once for each number of timers
 * @destroy:	called last
 * @init:	initialise the timer of an object
 * @begin:	begin a run: now is time 0 of the steps, whose times are divided by @shorter
 * @add:	arm the timers of @nr steps, which are not armed
 * @rearm:	re-arm the timers of @nr steps
 * @cancel:	disarm the timers of @nr steps
 * @expire:	let time pass until step.time @last, so that all timers expire
 * @turn:	wait for a timer to come due, expire those that are due, and return the number of ns
 *		since begin(); only used by tools/bench-programs
 * @pending:	is an object's timer armed?
 * @memory:	get the number of bytes allocated, without those of the objects
 */
struct scheme {
	const char	*name;
	size_t		timer_bytes;
	unsigned int	shorter;
	void		(*create)(size_t nr);
	void		(*destroy)(void);
	void		(*init)(struct object *object);
	void		(*begin)(unsigned int shorter);
	void		(*add)(struct object *objects, const struct step *steps, size_t nr);
	void		(*rearm)(struct object *objects, const struct step *steps, size_t nr);
	void		(*cancel)(struct object *objects, const struct step *steps, size_t nr);
	void		(*expire)(uint32_t last);
	uint64_t	(*turn)(void);
	bool		(*pending)(const struct object *object);
	size_t		(*memory)(void);
};

/**
 * struct work - the work for a scheme; with the same seed it is the same for all
 * @size:	number of objects
 * @objects:	the objects
 * @order:	the numbers of all objects, in random order
 * @steps:	the operations to do
 * @time:	by object, the time that its timer is armed for
 * @random:	state of the random number generator
 * @sequential:	all workloads visit the objects in memory order
 */
struct work {
	size_t		size;
	struct object	*objects;
	uint32_t	*order;
	struct step	*steps;
	uint32_t	*time;
	uint64_t	random;
	bool		sequential;
};

/**
 * struct record - the measurements of a scheme with a workload
 * @scheme:	the scheme
 * @workload:	the workload
 * @size:	number of timers
 * @ns:		time per operation
 * @limit:	time per operation of the limit line, measured just before
 * @ratio:	@ns divided by @limit
 * @memory:	bytes per timer, including the timer
 */
struct record {
	const struct scheme	*scheme;
	enum workload		workload;
	size_t			size;
	struct samples		ns;
	struct samples		limit;
	struct samples		ratio;
	double			memory;
};

/**
 * struct memory - the memory that holds the objects of a table
 * @large:	bytes in large pages
 * @stores:	cost of storing through a pointer in each, as a multiple of the limit line
 */
struct memory {
	size_t	large;
	double	stores;
};

extern const struct scheme scheme_wheel;
extern const struct scheme scheme_libev;
extern const struct scheme *const schemes[];
extern const size_t nr_schemes;
extern const char *const workload_names[NR_WORKLOADS];

/* work.c */
void shuffle(struct work *work);
uint32_t make_steps(struct work *work, enum workload workload);
double clock_ns(void);

/* memory.c */
void *large_alloc(size_t bytes);
void large_free(void *memory, size_t bytes);
size_t large_bytes(const void *memory);

/* measure.c */
void measure_size(const struct common_setup *setup, size_t size, struct record *record,
		  struct memory *memory);

/* report.c */
void table_header(FILE *out, const struct common_setup *setup);
void table_print(FILE *out, const struct record *record, size_t nr,
		 const struct memory *memory);
void report_json(FILE *out, const struct common_setup *setup, const struct record *record,
		 size_t nr);

#endif /* BENCH_H */
