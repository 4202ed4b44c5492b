// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: programs that have reached something new, and what becomes of them
 *
 * A program is a string of bytes. A new one is random, or a mutation of one that was kept.
 */
#include "fuzz.h"

#include <sys/stat.h>

#define MOST	1024

/**
 * struct kept - a program that was kept
 * @length:	its length
 * @bytes:	the program
 */
struct kept {
	size_t	length;
	__u8	bytes[PROGRAM_MAX];
};

static struct kept kept[MOST];
static size_t nr_kept;

static void keep_in_memory(const __u8 *program, size_t length)
{
	struct kept *place = &kept[nr_kept < MOST ? nr_kept++ :
				   mix_seed(length, program[0]) % MOST];

	place->length = length < PROGRAM_MAX ? length : PROGRAM_MAX;
	memcpy(place->bytes, program, place->length);
}

/* Loads all programs in a directory. */
void corpus_load(const char *directory)
{
	struct dirent **entries;
	__u8 program[PROGRAM_MAX];
	char path[512];
	int n, i, fd;
	ssize_t length;

	n = scandir(directory, &entries, NULL, alphasort);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		length = fd < 0 ? -1 : read(fd, program, sizeof(program));
		if (length > 0)
			keep_in_memory(program, length);
		if (fd >= 0)
			close(fd);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* Keeps a program, for the run and, if @directory is not NULL, for later. */
void corpus_keep(const __u8 *program, size_t length, const char *directory)
{
	char path[512];
	int fd;

	keep_in_memory(program, length);
	if (!directory)
		return;
	snprintf(path, sizeof(path), "%s/%016llx", directory,
		 mix_seed(mix_seed(fuzz->seed, nr_kept), length ^ getpid()));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (write(fd, program, length) != (ssize_t)length)
		say_once("%s: not written", path);
	close(fd);
}

/* Changes a program a little. Returns its new length. */
static size_t mutate_program(struct choices *choices, __u8 *program, size_t length)
{
	const struct kept *other = &kept[choose(choices, nr_kept)];
	size_t at = choose(choices, length), n;

	switch (choose(choices, 6)) {
	case 0:
		program[at] ^= 1 << choose(choices, 8);
		return length;
	case 1:
		program[at] = choose(choices, 256);
		return length;
	case 2:
		n = choose(choices, length - at) + 1;
		memmove(program + at, program + at + n, length - at - n);
		return length > n ? length - n : 1;
	case 3:
		n = choose(choices, 16) + 1;
		if (length + n > PROGRAM_MAX)
			return length;
		memmove(program + at + n, program + at, length - at);
		while (n--)
			program[at + n] = choose(choices, 256), length++;
		return length;
	default:
		n = choose(choices, other->length);
		if (at + other->length - n > PROGRAM_MAX)
			return length;
		memcpy(program + at, other->bytes + n, other->length - n);
		return at + other->length - n ?: 1;
	}
}

/* Makes a program. Returns its length. */
size_t corpus_draw(__u64 seed, __u8 *program)
{
	struct choices choices;
	size_t length, i, n;

	choices_random(&choices, seed);
	if (!nr_kept || one_of(&choices, 3)) {
		length = 32 + choose(&choices, PROGRAM_MAX - 32);
		for (i = 0; i < length; i++)
			program[i] = choose(&choices, 256);
		return length;
	}
	i = choose(&choices, nr_kept);
	length = kept[i].length;
	memcpy(program, kept[i].bytes, length);
	for (n = 1 + choose(&choices, 6); n; n--)
		length = mutate_program(&choices, program, length);
	return length;
}

size_t corpus_size(void)
{
	return nr_kept;
}

const __u8 *corpus_program(size_t number, size_t *length)
{
	*length = kept[number].length;
	return kept[number].bytes;
}
