/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks the invariants of a wheel by examining everything in it.
 */
#ifndef _CHECK_H
#define _CHECK_H

#include "wheel.h"
#include "wheel_expire.h"

/* Ends the test with the location and the seed if @x is not true. */
#define CHECK(x) do {							\
	if (!(x))							\
		check_failed(__FILE__, __LINE__, #x);			\
	} while (0)

/* The first tick not before @deadline, computed independently of the wheel. */
static inline u64 due_tick(const struct twheel *wheel, u64 deadline)
{
	u64 tick_ns = 1ULL << wheel->shift;

	return deadline / tick_ns + (deadline % tick_ns != 0);
}

void check_failed(const char *file, int line, const char *what) __attribute__((noreturn));
void check_wheel(const struct twheel *wheel, unsigned long entries);

#endif /* _CHECK_H */
