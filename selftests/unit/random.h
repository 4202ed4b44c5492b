/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random numbers that are the same on every machine. Each thread has its own state.
 */
#ifndef _RANDOM_H
#define _RANDOM_H

#include "kernel.h"

/* Determines all numbers drawn later. */
static __thread u64 random_state;

/* splitmix64: small and good enough. */
static inline u64 draw(void)
{
	u64 z = (random_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static inline u64 draw_below(u64 n)
{
	return draw() % n;
}

/* Small and large numbers alike: the number of bits is uniform, up to @bits. */
static inline u64 draw_bits(unsigned int bits)
{
	unsigned int n = draw_below(bits + 1);

	return n ? draw() >> (64 - n) : 0;
}

#endif /* _RANDOM_H */
