/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fuzz-device: shared declarations
 *
 * Each actor, a process or a thread, draws its choices from a stream of its own that is derived
 * from the seed of the run: the same seed replays the same choices. How they interleave is up
 * to the machine.
 */
#ifndef _FUZZ_H
#define _FUZZ_H

#include <stdarg.h>
#include <stdbool.h>
#include <sys/times.h>

/* For the helpers, without the harness, which is meant for single-file programs. */
#define __KSELFTEST_HARNESS_H
#include "kselftest.h"
#include "twheel_test.h"

/**
 * struct fuzz - what all processes of a run share, in memory that they inherit
 * @seed:	the seed of the run
 * @end:	when to stop, in nanoseconds of CLOCK_MONOTONIC
 * @programs:	how many a solo actor runs, including those in the corpus; 0 if unlimited
 * @failed:	an actor has found something
 * @calls:	number of calls made
 * @rounds:	number of rounds that the shared actors have completed
 * @clock_sets:	how often the clock has been set; odd while it is being set
 * @covered:	places of the kernel, and kinds of answers, that were seen
 * @without:	names of actors that are left out, separated by commas
 * @said:	what say_once() has printed, a bit each
 */
struct fuzz {
	__u64	seed;
	__u64	end;
	__u64	programs;
	int	failed;
	__u64	calls;
	__u64	rounds;
	__u32	clock_sets;
	__u64	covered;
	char	without[128];
	__u64	said;
};

extern struct fuzz *fuzz;

/* Is the run over, or has an actor found something? */
static inline bool fuzz_over(void)
{
	return __atomic_load_n(&fuzz->failed, __ATOMIC_RELAXED) || now_ns() > fuzz->end;
}

static inline __u32 clock_sets(void)
{
	return __atomic_load_n(&fuzz->clock_sets, __ATOMIC_SEQ_CST);
}

/* The kernel's jiffies, which are TCP's clock, and late if the CPU that counts them is stalled. */
static inline __u64 jiffies_ns(void)
{
	return times(NULL) * (SEC / sysconf(_SC_CLK_TCK));
}

/* Does an actor take part? */
static inline bool fuzz_with(const char *name)
{
	const char *found = strstr(fuzz->without, name);

	return !found || (found != fuzz->without && found[-1] != ',') ||
	       (found[strlen(name)] && found[strlen(name)] != ',');
}

/* Updates a counter that has several writers. */
static inline __u64 add_count(__u64 *counter, __u64 by)
{
	return __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

/* ---- choices.c */

/**
 * struct choices - where an actor's choices come from
 * @state:	of the random numbers, if there is no @program
 * @program:	recorded choices, a byte or more each
 * @length:	its length in bytes
 * @next:	index of the next byte
 */
struct choices {
	__u64		state;
	const __u8	*program;
	size_t		length;
	size_t		next;
};

__u64 mix_seed(__u64 seed, __u64 number);
void choices_random(struct choices *choices, __u64 seed);
void choices_program(struct choices *choices, const __u8 *program, size_t length);
bool choices_left(const struct choices *choices);
__u64 choose(struct choices *choices, __u64 n);
__u64 choose_bits(struct choices *choices);
__u64 choose_time(struct choices *choices);
__u64 choose_garbage(struct choices *choices);

/* True once in @n times. */
static inline bool one_of(struct choices *choices, unsigned int n)
{
	return !choose(choices, n);
}

/* ---- report.c */

void trace(const char *format, __u64 a, __u64 b, __u64 c, __u64 d, long result);
void traces_forget(void);
void fuzz_program(const __u8 *program, size_t length);
__attribute__((noreturn, format(printf, 1, 2))) void fuzz_fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) void say_once(const char *format, ...);

/* ---- coverage.c */

void coverage_open(void);
void coverage_begin(void);
void coverage_step(void);
void coverage_answer(__u32 what, __u32 state, long result);
unsigned int coverage_end(void);

/* ---- corpus.c */

#define PROGRAM_MAX	768

void corpus_load(const char *directory);
void corpus_keep(const __u8 *program, size_t length, const char *directory);
size_t corpus_draw(__u64 seed, __u8 *program);
size_t corpus_size(void);
const __u8 *corpus_program(size_t number, size_t *length);

/* ---- calls.c */

struct io_uring;

int call_ioctl(int fd, unsigned int cmd, void *arg);
int call_submit(int fd, struct twheel_op *ops, unsigned int nr, unsigned int size,
		unsigned int flags);
int call_uring(struct io_uring *ring, int fd, struct twheel_op *ops, unsigned int nr,
	       unsigned int size, unsigned int flags);
int call_uring_read(struct io_uring *ring, int fd, void *to, size_t bytes);
int call_single(int fd, struct twheel_op *op);
struct io_uring *call_uring_open(void);

/* ---- the actors */

void run_solo(unsigned int number, bool merge, const char *keep);
void solo_replay(const char *path);
void run_shared(void);
void check_budgets(void);
void groups_open(void);

#endif /* _FUZZ_H */
