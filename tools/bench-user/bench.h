/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bench-user: what its parts share
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench-common.h"

/* A program's object: a cache line that has a timer in it. */
#define OBJECT_BYTES	64
#define TIMER_BYTES	48

/* Times are in units of 2^TIME_SHIFT ns. */
#define TIME_SHIFT	10
#define TIME_OF_MS(ms)	((uint32_t)((ms) * 1000000ULL >> TIME_SHIFT))

/**
 * struct object - what a timer is a part of
 * @timer:	a scheme's timer
 * @fired:	how often it has expired; counted by the callback
 * @value:	what the limit line changes
 */
struct object {
	_Alignas(OBJECT_BYTES) unsigned char timer[TIMER_BYTES];
	uint64_t	fired;
	uint64_t	value;
};

/**
 * struct step - one operation
 * @object:	number of the object
 * @time:	for which to arm its timer, from the beginning of the run
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
 * struct scheme - a kind of timers
 * @name:	for the tables
 * @timer_bytes: size of a timer, at most TIMER_BYTES
 * @create:	called before everything else, once for each number of timers
 * @destroy:	called last
 * @init:	make the timer of an object ready to be armed
 * @begin:	a run begins: this moment is time 0 of the steps. @expire tells that its
 *		timers will be left to expire
 * @add:	arm the timers of @nr steps, which are not armed
 * @rearm:	arm them for another time
 * @cancel:	disarm them
 * @expire:	let time pass until step.time @last, and all have expired
 * @pending:	is an object's timer armed?
 * @memory:	bytes allocated, without those of the objects
 */
struct scheme {
	const char	*name;
	size_t		timer_bytes;
	void		(*create)(size_t nr);
	void		(*destroy)(void);
	void		(*init)(struct object *object);
	void		(*begin)(bool expire);
	void		(*add)(struct object *objects, const struct step *steps, size_t nr);
	void		(*rearm)(struct object *objects, const struct step *steps, size_t nr);
	void		(*cancel)(struct object *objects, const struct step *steps, size_t nr);
	void		(*expire)(uint32_t last);
	bool		(*pending)(const struct object *object);
	size_t		(*memory)(void);
};

/**
 * struct record - a scheme and a workload, measured
 * @scheme:	the scheme
 * @workload:	the workload
 * @size:	number of timers
 * @ns:		time per operation
 * @limit:	that of the limit line just before
 * @ratio:	the one by the other
 * @memory:	bytes per timer, with the timer
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
 * struct memory - what the objects of a table are in
 * @large:	how much of it is in large pages
 * @stores:	what storing through a pointer in each costs, against the limit line
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

/* memory.c */
void *large_alloc(size_t bytes);
void large_free(void *memory, size_t bytes);
size_t large_bytes(const void *memory);

/* measure.c */
void measure(const struct common_setup *setup, size_t size, struct record *record,
	     struct memory *memory);

/* report.c */
void table_header(FILE *out, const struct common_setup *setup);
void table_print(FILE *out, const struct record *record, size_t nr,
		 const struct memory *memory);
void report_json(FILE *out, const struct common_setup *setup, const struct record *record,
		 size_t nr);

#endif /* BENCH_H */
