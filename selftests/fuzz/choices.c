// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: choices, from random numbers or from a program of bytes
 */
#include "fuzz.h"

/* Derives the seed of one of many from another seed. */
__u64 mix_seed(__u64 seed, __u64 number)
{
	__u64 x = seed + (number + 1) * 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

void choices_random(struct choices *choices, __u64 seed)
{
	*choices = (struct choices){ .state = seed ?: 1 };
}

void choices_program(struct choices *choices, const __u8 *program, size_t length)
{
	*choices = (struct choices){ .program = program, .length = length };
}

bool choices_left(const struct choices *choices)
{
	return !choices->program || choices->next < choices->length;
}

static __u64 random_number(struct choices *choices)
{
	choices->state ^= choices->state >> 12;
	choices->state ^= choices->state << 25;
	choices->state ^= choices->state >> 27;
	return choices->state * 2685821657736338717ULL;
}

/* After its end, a program is all zeros. */
static __u64 next_bytes(struct choices *choices, unsigned int n)
{
	__u64 number = 0;

	while (n--) {
		number <<= 8;
		if (choices->next < choices->length)
			number |= choices->program[choices->next++];
	}
	return number;
}

/* A number below @n. */
__u64 choose(struct choices *choices, __u64 n)
{
	if (!choices->program)
		return random_number(choices) % n;
	return next_bytes(choices, n <= 1 ? 0 : n <= 256 ? 1 : n <= 65536 ? 2 : 8) % n;
}

/* Any 64-bit number. */
__u64 choose_bits(struct choices *choices)
{
	return choices->program ? next_bytes(choices, 8) : random_number(choices);
}

/* A number that may be at a limit, or any number. */
__u64 choose_garbage(struct choices *choices)
{
	static const __u64 numbers[] = {
		0, 1, 2, 3, 4, 7, 40, 48, 64, 96, 255, 4095, 4096, 65535, 0x7fffffff, 0x80000000,
		0xffffffff, 0x100000000, TWHEEL_TIME_MAX - 1, TWHEEL_TIME_MAX,
		TWHEEL_TIME_MAX + 1, TWHEEL_TIME_NONE - 1, TWHEEL_TIME_NONE,
	};
	__u64 i = choose(choices, ARRAY_SIZE(numbers) + 1);

	return i < ARRAY_SIZE(numbers) ? numbers[i] : choose_bits(choices);
}

/* A length of time: most are short, so that something happens. */
__u64 choose_time(struct choices *choices)
{
	switch (choose(choices, 16)) {
	case 0:
		return choose(choices, 3);
	case 1 ... 4:
		return choose(choices, 256) * 4 * USEC;
	case 5 ... 9:
		return MSEC / 2 + choose(choices, 256) * 16 * USEC;
	case 10 ... 11:
		return choose(choices, 256) * 200 * USEC;
	case 12:
		return choose(choices, 256) * SEC;
	case 13:
		return HOUR * (1 + choose(choices, 256));
	case 14:
		return TWHEEL_TIME_MAX - choose(choices, 3);
	default:
		return 1ULL << choose(choices, 63);
	}
}
