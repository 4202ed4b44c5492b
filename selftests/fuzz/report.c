// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: what it prints when it has found something
 *
 * Each thread keeps its last operations; the first thread that fails prints all of them.
 */
#include "fuzz.h"

#define TRACES	40

/**
 * struct operation - something that a thread has done
 * @format:	of the line, with four numbers
 * @number:	these numbers
 * @result:	its result
 */
struct operation {
	const char	*format;
	__u64		number[4];
	long		result;
};

static __thread struct operation operations[TRACES];
static __thread unsigned int nr_operations;
static __thread struct {
	const __u8	*bytes;
	size_t		length;
} program;

/* Records an operation. @format must stay valid. */
void trace(const char *format, __u64 a, __u64 b, __u64 c, __u64 d, long result)
{
	operations[nr_operations++ % TRACES] = (struct operation){
		.format	= format,
		.number	= { a, b, c, d },
		.result	= result,
	};
	add_count(&fuzz->calls, 1);
}

void traces_forget(void)
{
	nr_operations = 0;
}

/* Records the program that the thread is running, to be replayed. */
void fuzz_program(const __u8 *bytes, size_t length)
{
	program.bytes = bytes;
	program.length = length;
}

static void print_operations(void)
{
	unsigned int i = nr_operations > TRACES ? nr_operations - TRACES : 0;
	const struct operation *operation;

	printf("# the last of %u operations of this thread:\n", nr_operations);
	for (; i < nr_operations; i++) {
		operation = &operations[i % TRACES];
		printf("#   ");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
		printf(operation->format, operation->number[0], operation->number[1],
		       operation->number[2], operation->number[3]);
#pragma GCC diagnostic pop
		printf(" = %ld\n", operation->result);
	}
}

static void print_program(void)
{
	size_t i;

	if (!program.bytes)
		return;
	printf("# the program, these lines in a file for fuzz-device -p FILE:\n# ");
	for (i = 0; i < program.length; i++)
		printf("%02x%s", program.bytes[i], i % 40 == 39 ? "\n# " : "");
	printf("\n");
}

/* Something is not as it must be. */
void fuzz_fail(const char *format, ...)
{
	va_list list;
	sigset_t all;

	/* A signal would interrupt the output. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	if (!__atomic_exchange_n(&fuzz->failed, 1, __ATOMIC_SEQ_CST)) {
		printf("# FOUND: ");
		va_start(list, format);
		vprintf(format, list);
		va_end(list);
		printf("\n# seed %llu, after %llu calls\n", fuzz->seed, fuzz->calls);
		print_operations();
		print_program();
		fflush(stdout);
	}
	_exit(1);
}

/* Reports what a kernel lacks, for the reader: once per run. */
void say_once(const char *format, ...)
{
	__u64 bit = 1ULL << mix_seed((uintptr_t)format, 0) % 64;
	char line[256];
	va_list list;

	if (__atomic_fetch_or(&fuzz->said, bit, __ATOMIC_RELAXED) & bit)
		return;
	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	printf("# %s\n", line);
	fflush(stdout);
}
