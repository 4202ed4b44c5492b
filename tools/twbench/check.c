// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks what twbench does with traces before a kernel sees them: generates, prepares, writes and
 * reads them. Prints TAP.
 * usage: check DIRECTORY	for files that are left behind
 */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace.h"

#define OWNERS		2000
#define DAMAGED		600

/* As trace-prepare.c promises. */
#define MARGIN_SHARE	4
#define MARGIN_MIN_NS	(2 * NS_PER_MS)
#define MARGIN_MAX_NS	(50 * NS_PER_MS)
#define LATE_NS		(3 * NS_PER_S)

#define NOT_ARMED	UINT64_MAX

static int number, failed;
static char file[4096];

static void tap(bool good, const char *name, const char *what)
{
	number++;
	failed += !good;
	printf("%sok %d %s%s%s\n", good ? "" : "not ", number, name, what ? ": " : "", what ?: "");
}

static bool same_trace(const struct trace *a, const struct trace *b)
{
	return a->nr == b->nr && a->length_ns == b->length_ns && a->nr_objects == b->nr_objects &&
	       !strcmp(a->note, b->note) && !memcmp(a->op, b->op, a->nr * sizeof(*a->op));
}

static bool is_sorted(const struct trace *trace)
{
	uint64_t i;

	for (i = 1; i < trace->nr; i++)
		if (trace->op[i].time_ns < trace->op[i - 1].time_ns)
			return false;
	return true;
}

static uint64_t margin_of(uint64_t timeout)
{
	const uint64_t margin = timeout / MARGIN_SHARE;

	return margin < MARGIN_MIN_NS ? MARGIN_MIN_NS : margin > MARGIN_MAX_NS ? MARGIN_MAX_NS :
	       margin;
}

/*
 * Goes through a prepared trace as a scheme that is late by LATE_NS would. Returns what is wrong,
 * or NULL; and the number of expiries.
 */
static const char *walk(const struct trace *trace, uint64_t *fired)
{
	uint64_t *deadline = allocate(trace->nr_objects, sizeof(*deadline)), i;
	uint64_t *timeout = allocate(trace->nr_objects, sizeof(*timeout));
	const char *wrong = NULL;

	memset(deadline, 0xff, trace->nr_objects * sizeof(*deadline));
	*fired = 0;
	for (i = 0; i < trace->nr && !wrong; i++) {
		const struct twheel_bench_op *op = &trace->op[i];
		uint64_t *due = &deadline[op->object];

		if (op->object >= trace->nr_objects) {
			wrong = "an object that there is not";
		} else if (op->kind == TWHEEL_BENCH_OP_ARM) {
			if (*due != NOT_ARMED && *due + LATE_NS > op->time_ns)
				wrong = "an object is armed while it may still expire";
			*fired += *due <= trace->length_ns;
		} else if (*due == NOT_ARMED) {
			wrong = "an operation on a timer that is not armed";
		} else if (*due <= op->time_ns + margin_of(timeout[op->object])) {
			wrong = "an operation on a timer that is due";
		}
		if (op->kind != TWHEEL_BENCH_OP_CANCEL && op->deadline_ns < op->time_ns)
			wrong = "a deadline in the past";
		timeout[op->object] = op->deadline_ns - op->time_ns;
		*due = op->kind == TWHEEL_BENCH_OP_CANCEL ? NOT_ARMED : op->deadline_ns;
	}
	for (i = 0; i < trace->nr_objects; i++)
		*fired += deadline[i] <= trace->length_ns;
	free(deadline);
	free(timeout);
	return wrong;
}

static void check_prepared(struct trace *trace, const char *name)
{
	struct truth truth, again;
	uint64_t fired, nr;
	const char *wrong;
	char what[256];

	trace_prepare(trace, 0, &truth);
	nr = trace->nr;
	wrong = is_sorted(trace) ? walk(trace, &fired) : "not sorted";
	if (!wrong && fired != truth.fired)
		wrong = "another number of expiries";
	trace_prepare(trace, 0, &again);
	if (!wrong && (again.fired != truth.fired || again.checksum != truth.checksum ||
		       trace->nr != nr))
		wrong = "not the same if it is prepared again";
	snprintf(what, sizeof(what), "%s: one outcome", name);
	tap(!wrong, what, wrong);
}

static void check_mixture(const struct mixture *mixture)
{
	struct trace trace, other;
	char what[256];

	mixture_generate(mixture, OWNERS, 1, &trace);
	mixture_generate(mixture, OWNERS, 1, &other);
	snprintf(what, sizeof(what), "%s: a seed is a trace", mixture->name);
	tap(same_trace(&trace, &other), what, NULL);
	trace_free(&other);
	trace_write(&trace, file);
	trace_read(&other, file);
	snprintf(what, sizeof(what), "%s: a file is a trace", mixture->name);
	tap(same_trace(&trace, &other), what, NULL);
	trace_free(&other);
	trace_multiply(&trace, 3, 1);
	trace_hurry(&trace, 2);
	check_prepared(&trace, mixture->name);
	trace_free(&trace);
}

/* All that can happen, at random times: also what no owner would do. */
static void check_nonsense(void)
{
	struct trace trace = { .length_ns = 20 * NS_PER_S, .nr_objects = 100 };
	uint64_t random = 7, time = 0;
	int i;

	for (i = 0; i < 100000 && time < trace.length_ns; i++) {
		uint32_t kind = random_below(&random, TWHEEL_BENCH_NR_OP_KINDS);

		trace_add(&trace, kind, time, random_below(&random, trace.nr_objects),
			  kind == TWHEEL_BENCH_OP_CANCEL ? 0 :
			  time + random_below(&random, random_below(&random, 4) ?
					      200 * NS_PER_MS : 10 * NS_PER_S));
		time += random_below(&random, NS_PER_MS);
	}
	check_prepared(&trace, "nonsense");
	trace_free(&trace);
}

static uint32_t crc(const uint8_t *data, size_t nr)
{
	uint32_t crc = ~0U;
	int bit;

	while (nr--)
		for (crc ^= *data++, bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	return ~crc;
}

/* Returns the exit status of a process that calls a function which may exit. */
static int status_of(void (*function)(void))
{
	int status;

	fflush(stdout);
	if (!fork()) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(3);
		function();
		_exit(0);
	}
	return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

static void read_file(void)
{
	struct trace trace;

	trace_read(&trace, file);
	trace_free(&trace);
}

/*
 * A file with a wrong byte is refused because of its checksum. If that is made to fit, it is
 * refused or read, and nothing else happens.
 */
static void check_damage(void)
{
	uint64_t random = 1, refused = 0, wrong = 0, crashed = 0;
	static uint8_t data[65536], damaged[65536];
	struct trace trace;
	size_t nr, at;
	uint32_t sum;
	FILE *out;
	int i, status;

	mixture_generate(mixture_find("rpc"), 100, 1, &trace);
	trace_write(&trace, file);
	out = fopen(file, "r");
	nr = fread(data, 1, sizeof(data), out);
	fclose(out);
	for (i = 0; i < DAMAGED; i++) {
		memcpy(damaged, data, nr);
		at = i < 200 ? i % nr : random_below(&random, nr);
		damaged[at] ^= 1 + random_below(&random, 255);
		if (i % 2) {
			sum = crc(damaged + 16, nr - 16);
			memcpy(damaged + 12, &sum, sizeof(sum));
		}
		out = fopen(file, "w");
		fwrite(damaged, 1, nr - (i % 7 ? 0 : random_below(&random, nr)), out);
		fclose(out);
		status = status_of(read_file);
		refused += status == 1;
		wrong += i % 2 == 0 && status != 1;
		crashed += status > 1;
	}
	tap(!wrong, "a damaged file is refused", NULL);
	tap(!crashed && refused < DAMAGED, "nor does one whose checksum fits do harm", NULL);
	trace_free(&trace);
}

/* The longest trace, with a deadline as late as there may be. */
static struct trace extreme_trace(void)
{
	struct trace trace = { .length_ns = TWHEEL_BENCH_MAX_TIMEOUT_NS, .nr_objects = 1 };

	trace_add(&trace, TWHEEL_BENCH_OP_ARM, 0, 0, TWHEEL_BENCH_MAX_DEADLINE_NS);
	trace_add(&trace, TWHEEL_BENCH_OP_MOVE, trace.length_ns, 0, TWHEEL_BENCH_MAX_DEADLINE_NS);
	return trace;
}

static void multiply_extreme(void)
{
	struct trace trace = extreme_trace();

	trace_multiply(&trace, 2, 1);
}

static void slow_extreme(void)
{
	struct trace trace = extreme_trace();

	trace_hurry(&trace, 0.999);
}

static void stop_extreme(void)
{
	struct trace trace = extreme_trace();

	trace_hurry(&trace, DBL_MIN);
}

static void write_empty(void)
{
	struct trace trace = extreme_trace();

	trace.nr = 1;
	trace.length_ns = 0;
	trace_write(&trace, file);
	trace_free(&trace);
	read_file();
}

/* Do all operations of a trace have times that the kernel takes? */
static bool in_range(const struct trace *trace)
{
	uint64_t i;

	for (i = 0; i < trace->nr; i++)
		if (trace->op[i].time_ns > trace->length_ns ||
		    trace->op[i].deadline_ns > TWHEEL_BENCH_MAX_DEADLINE_NS)
			return false;
	return trace->length_ns <= TWHEEL_BENCH_MAX_TIMEOUT_NS;
}

/* No time gets larger than the kernel takes it. */
static void check_extremes(void)
{
	struct trace trace = extreme_trace(), other;

	trace_write(&trace, file);
	trace_read(&other, file);
	tap(same_trace(&trace, &other), "the longest trace", NULL);
	trace_free(&other);
	tap(status_of(multiply_extreme) == 1, "it cannot be shifted", NULL);
	tap(status_of(slow_extreme) == 1 && status_of(stop_extreme) == 1, "nor be slower", NULL);
	tap(status_of(write_empty) == 1, "none is without length", NULL);
	trace.length_ns /= 4;
	trace.op[1].time_ns /= 4;
	trace_multiply(&trace, 5, 1);
	trace_hurry(&trace, 0.5);
	tap(in_range(&trace), "deadlines stay within bounds", NULL);
	trace_free(&trace);
}

/* Of many requests, one in a thousand is not answered. */
static void check_shares(void)
{
	struct mixture rpc = *mixture_find("rpc");
	uint64_t nr[TWHEEL_BENCH_NR_OP_KINDS] = { 0 }, i;
	struct truth truth;
	struct trace trace;

	mixture_set(&rpc, "length=20s");
	mixture_generate(&rpc, 100000, 3, &trace);
	trace_prepare(&trace, 0, &truth);
	for (i = 0; i < trace.nr; i++)
		nr[trace.op[i].kind]++;
	tap(truth.fired > nr[TWHEEL_BENCH_OP_ARM] / 1000 * 8 / 10 &&
	    truth.fired < nr[TWHEEL_BENCH_OP_ARM] / 1000 * 12 / 10, "1 in 1000 expires", NULL);
	trace_free(&trace);
}

int main(int argc, char **argv)
{
	const struct mixture *mixture;
	int nr = 0;

	if (argc != 2)
		return 2;
	snprintf(file, sizeof(file), "%s/trace", argv[1]);
	for (mixture = mixtures; mixture->name; mixture++)
		nr++;
	printf("TAP version 13\n1..%d\n", 3 * nr + 9);
	for (mixture = mixtures; mixture->name; mixture++)
		check_mixture(mixture);
	check_nonsense();
	check_shares();
	check_extremes();
	check_damage();
	return !!failed;
}
