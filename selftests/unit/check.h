/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does a wheel keep its invariants? Found out by looking at everything in it.
 */
#ifndef _CHECK_H
#define _CHECK_H

#include "wheel.h"
#include "wheel_expire.h"

/* Ends the test, with the place and the seed, if @x is not true. */
#define CHECK(x) do {							\
	if (!(x))							\
		check_failed(__FILE__, __LINE__, #x);			\
	} while (0)

/* The first tick that is not before @deadline, by a way of its own. */
static inline u64 due_tick(const struct twheel *wheel, u64 deadline)
{
	u64 tick_ns = 1ULL << wheel->shift;

	return deadline / tick_ns + (deadline % tick_ns != 0);
}

void check_failed(const char *file, int line, const char *what) __attribute__((noreturn));
void check_wheel(const struct twheel *wheel, unsigned long entries);

#endif /* _CHECK_H */
