/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bench-programs: what the programs in C and C++ have in common
 *
 * Each program is linked with one scheme, which the makefile names.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "bench.h"

/* Times are divided by this if timers are to expire while the clock is watched. */
#define SHORTER_CHECK	200

#ifdef __cplusplus
extern "C" {
#endif

extern const struct scheme SCHEME;

/*
 * How many timers there can be, if @wanted are wanted; prints a note if there can be fewer.
 * By default, as many as are wanted.
 */
size_t program_limit(size_t wanted);

/* By how many ns a timer may be early, because the library says so or is known for it. */
uint64_t program_early(void);

/* measure.c */
void measure(size_t size, uint64_t seed);

/* check.c */
void check(size_t size, uint64_t seed);

/* common.c */
struct work *new_work(size_t size, uint64_t seed);
void begin_run(struct work *work, unsigned int shorter);
void clock_start(void);
uint64_t clock_elapsed(void);
void clock_sleep(uint32_t time, unsigned int shorter);
void print_figure(size_t size, const char *order, const char *operation, double value);

#ifdef __cplusplus
}
#endif

#endif /* PROGRAM_H */
