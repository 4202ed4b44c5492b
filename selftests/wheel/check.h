/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does a wheel keep its invariants? Found out by looking at everything in it.
 */
#ifndef _CHECK_H
#define _CHECK_H

#include "wheel.h"

/* Ends the test, with the place and the seed, if @x is not true. */
#define CHECK(x) do {							\
	if (!(x))							\
		check_failed(__FILE__, __LINE__, #x);			\
	} while (0)

void check_failed(const char *file, int line, const char *what) __attribute__((noreturn));
void check_wheel(const struct twheel *wheel);

#endif /* _CHECK_H */
