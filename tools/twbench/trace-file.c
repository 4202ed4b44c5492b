// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: traces in files
 *
 * twbench-trace(5) describes the format. A file is read as a whole, and nothing of it is used
 * unless its checksum is right and all of it makes sense.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"

#define MAGIC		"TWTRACE"
#define VERSION		1
#define HEADER		40
#define SUMMED		16
#define MAX_BYTES	(1ULL << 32)

/* Of an operation: kind, object, and time; at least so many bytes. */
#define MIN_OP		2
#define KIND_BITS	2

/**
 * struct bytes - a file's contents
 * @data:	the bytes
 * @nr:		how many there are
 * @max:	how many are allocated
 * @at:		how many have been read
 * @wrong:	more has been read than there is, or a number is too large
 */
struct bytes {
	uint8_t		*data;
	size_t		nr;
	size_t		max;
	size_t		at;
	bool		wrong;
};

static void put_byte(struct bytes *bytes, uint8_t byte)
{
	if (bytes->nr == bytes->max) {
		bytes->max = bytes->max ? bytes->max * 2 : 4096;
		bytes->data = realloc(bytes->data, bytes->max);
		if (!bytes->data)
			errx(EXIT_FAILED, "out of memory");
	}
	bytes->data[bytes->nr++] = byte;
}

/* Writes a number in so many bytes, the lowest first. */
static void put_fixed(struct bytes *bytes, uint64_t number, int size)
{
	while (size--) {
		put_byte(bytes, number);
		number >>= 8;
	}
}

/* Writes a number seven bits at a time, the lowest first; all bytes but the last have a top bit. */
static void put_number(struct bytes *bytes, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		put_byte(bytes, number | 0x80);
	put_byte(bytes, number);
}

static uint64_t get_fixed(struct bytes *bytes, int size)
{
	uint64_t number = 0;
	int i;

	if (bytes->nr - bytes->at < (size_t)size) {
		bytes->wrong = true;
		return 0;
	}
	for (i = 0; i < size; i++)
		number |= (uint64_t)bytes->data[bytes->at++] << 8 * i;
	return number;
}

static uint64_t get_number(struct bytes *bytes)
{
	uint64_t number = 0;
	uint8_t byte;
	int shift;

	for (shift = 0; shift < 63; shift += 7) {
		byte = get_fixed(bytes, 1);
		number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return number;
	}
	/* Nothing here takes more than 63 bits. */
	bytes->wrong = true;
	return 0;
}

/* The CRC-32 of IEEE 802.3. */
static uint32_t checksum(const uint8_t *data, size_t nr)
{
	uint32_t crc = ~0U;
	int bit;

	while (nr--) {
		crc ^= *data++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void put_op(struct bytes *bytes, const struct twheel_bench_op *op, uint64_t last_ns)
{
	put_number(bytes, (op->time_ns - last_ns) / NS_PER_US << KIND_BITS | op->kind);
	put_number(bytes, op->object);
	if (op->kind != TWHEEL_BENCH_OP_CANCEL)
		put_number(bytes, (op->deadline_ns - op->time_ns) / NS_PER_US);
}

/* The file that is there so far, in place of the one that it will be. */
static char *unfinished;

static void remove_unfinished(void)
{
	if (unfinished)
		unlink(unfinished);
}

/* Opens a file in the same directory as @file->target, with the mode that this has or would get. */
static FILE *open_beside(struct trace_file *file, mode_t mode)
{
	static bool registered;
	int fd;

	if (asprintf(&file->temporary, "%s.XXXXXX", file->target) < 0)
		errx(EXIT_FAILED, "out of memory");
	fd = mkostemp(file->temporary, O_CLOEXEC);
	if (fd < 0)
		return NULL;
	unfinished = file->temporary;
	if (!registered)
		atexit(remove_unfinished);
	registered = true;
	/* A file that grows too large is an error, as any other is. */
	signal(SIGXFSZ, SIG_IGN);
	return fchmod(fd, mode) ? NULL : fdopen(fd, "w");
}

/**
 * trace_create - open a file that a trace is to be written to, or exit
 * @file:	filled in
 * @name:	the file's name
 *
 * What is there stays, until trace_finish() has written all of the trace: if the program exits
 * before, nothing has changed. What is no regular file, as a pipe, is written as it is.
 */
void trace_create(struct trace_file *file, const char *name)
{
	const mode_t mask = umask(0);
	struct stat stat_of;
	bool there;

	umask(mask);
	*file = (struct trace_file) { .name = name };
	/* A link to nothing is there as well. */
	there = !stat(name, &stat_of) || !lstat(name, &stat_of);
	if (!there) {
		file->target = strdup(name);
		file->stream = open_beside(file, 0666 & ~mask);
	} else {
		if (S_ISREG(stat_of.st_mode))
			file->target = realpath(name, NULL);
		if (!file->target)
			file->stream = fopen(name, "w");
		else if (!access(file->target, W_OK))
			file->stream = open_beside(file, stat_of.st_mode & 0777);
	}
	if (!file->stream)
		err(EXIT_FAILED, "%s", name);
}

/**
 * trace_finish - write a trace to its file, or exit
 * @file:	from trace_create()
 * @trace:	the trace
 */
void trace_finish(struct trace_file *file, const struct trace *trace)
{
	struct bytes bytes = { 0 }, head = { 0 };
	const size_t note = strlen(trace->note);
	uint64_t last_ns = 0, i;

	put_fixed(&bytes, trace->nr, 8);
	put_fixed(&bytes, trace->length_ns / NS_PER_US, 8);
	put_fixed(&bytes, trace->nr_objects, 4);
	put_fixed(&bytes, note, 4);
	for (i = 0; i < note; i++)
		put_byte(&bytes, trace->note[i]);
	for (i = 0; i < trace->nr; i++) {
		put_op(&bytes, &trace->op[i], last_ns);
		last_ns = trace->op[i].time_ns;
	}
	for (i = 0; i < sizeof(MAGIC); i++)
		put_byte(&head, MAGIC[i]);
	put_fixed(&head, VERSION, 4);
	put_fixed(&head, checksum(bytes.data, bytes.nr), 4);
	if (fwrite(head.data, 1, head.nr, file->stream) != head.nr ||
	    fwrite(bytes.data, 1, bytes.nr, file->stream) != bytes.nr || fclose(file->stream))
		err(EXIT_FAILED, "%s", file->name);
	if (file->temporary) {
		/* From here on it is whole, and is kept if it cannot get its name. */
		unfinished = NULL;
		if (rename(file->temporary, file->target))
			err(EXIT_FAILED, "%s: the trace is in %s instead", file->name,
			    file->temporary);
	}
	free(file->temporary);
	free(file->target);
	free(head.data);
	free(bytes.data);
}

/**
 * trace_write - write a trace to a file, or exit
 * @trace:	the trace
 * @name:	the file's name
 */
void trace_write(const struct trace *trace, const char *name)
{
	struct trace_file file;

	trace_create(&file, name);
	trace_finish(&file, trace);
}

static bool has_magic(const struct bytes *bytes)
{
	return bytes->nr >= HEADER && !memcmp(bytes->data, MAGIC, sizeof(MAGIC));
}

/* Reads a file, but no more of it than shows that it is no trace. */
static void read_bytes(struct bytes *bytes, const char *name)
{
	FILE *file = fopen(name, "r");
	size_t n;

	if (!file)
		err(EXIT_FAILED, "%s", name);
	do {
		if (bytes->nr > MAX_BYTES)
			errx(EXIT_FAILED, "%s: too large for a trace", name);
		bytes->max = bytes->nr + 65536 + bytes->nr / 2;
		bytes->data = realloc(bytes->data, bytes->max);
		if (!bytes->data)
			errx(EXIT_FAILED, "out of memory");
		n = fread(bytes->data + bytes->nr, 1, bytes->max - bytes->nr, file);
		bytes->nr += n;
	} while (n && (bytes->nr < HEADER || has_magic(bytes)));
	if (ferror(file))
		err(EXIT_FAILED, "%s", name);
	fclose(file);
}

/* Reads the header. Returns what is wrong with it, or NULL; and the number of operations. */
static const char *get_header(struct bytes *bytes, struct trace *trace, uint64_t *nr)
{
	uint32_t note, i;

	if (!has_magic(bytes))
		return "this is no trace";
	bytes->at = sizeof(MAGIC);
	if (get_fixed(bytes, 4) != VERSION)
		return "a trace of a version that is not known";
	if (get_fixed(bytes, 4) != checksum(bytes->data + SUMMED, bytes->nr - SUMMED))
		return "a damaged trace: its checksum is wrong";
	*nr = get_fixed(bytes, 8);
	trace->length_ns = get_fixed(bytes, 8);
	trace->nr_objects = get_fixed(bytes, 4);
	note = get_fixed(bytes, 4);
	if (!trace->length_ns || trace->length_ns > TWHEEL_BENCH_MAX_TIMEOUT_NS / NS_PER_US)
		return "a trace of no time, or of more than an hour";
	trace->length_ns *= NS_PER_US;
	if (!trace->nr_objects || trace->nr_objects > TWHEEL_BENCH_MAX_TIMERS)
		return "a trace of no timers, or of too many";
	if (note > TRACE_NOTE || note > bytes->nr - bytes->at)
		return "a trace whose note is too long";
	for (i = 0; i < note; i++)
		trace->note[i] = get_fixed(bytes, 1);
	if (!*nr || *nr > TWHEEL_BENCH_MAX_OPS || *nr > (bytes->nr - bytes->at) / MIN_OP)
		return "a trace of no operations, or of more than it has";
	return NULL;
}

/* Reads the operations. Returns what is wrong with them, or NULL. */
static const char *get_ops(struct bytes *bytes, struct trace *trace, uint64_t nr)
{
	uint64_t time_us = 0, timeout_us, object, number;
	uint32_t kind;

	while (nr--) {
		number = get_number(bytes);
		kind = number & ((1 << KIND_BITS) - 1);
		time_us += number >> KIND_BITS;
		object = get_number(bytes);
		timeout_us = kind == TWHEEL_BENCH_OP_CANCEL ? 0 : get_number(bytes);
		if (bytes->wrong)
			return "a trace that ends within an operation";
		if (kind >= TWHEEL_BENCH_NR_OP_KINDS || object >= trace->nr_objects ||
		    time_us > trace->length_ns / NS_PER_US ||
		    timeout_us > TWHEEL_BENCH_MAX_DEADLINE_NS / NS_PER_US - time_us)
			return "a trace with an operation that is not possible";
		trace_add(trace, kind, time_us * NS_PER_US, object,
			  kind == TWHEEL_BENCH_OP_CANCEL ? 0 : (time_us + timeout_us) * NS_PER_US);
	}
	return bytes->at == bytes->nr ? NULL : "a trace with something after its end";
}

/**
 * trace_read - read a trace from a file, or exit
 * @trace:	filled in
 * @name:	the file's name
 */
void trace_read(struct trace *trace, const char *name)
{
	struct bytes bytes = { 0 };
	const char *wrong;
	uint64_t nr;

	*trace = (struct trace) { 0 };
	read_bytes(&bytes, name);
	wrong = get_header(&bytes, trace, &nr);
	if (!wrong)
		wrong = get_ops(&bytes, trace, nr);
	if (wrong)
		errx(EXIT_FAILED, "%s: %s", name, wrong);
	free(bytes.data);
}
