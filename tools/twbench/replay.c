// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench: a trace, replayed by each scheme
 */
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "trace.h"

/* The scheme without timers: what the trace costs by itself. */
#define BASE	"limit"

static const char *fault_name(uint32_t fault)
{
	switch (fault) {
	case TWHEEL_BENCH_WRONG_VERDICT:
		return "of a batch, the timers found armed are";
	case TWHEEL_BENCH_WRONG_PENDING:
		return "at the end, the timers that are armed are";
	case TWHEEL_BENCH_WRONG_FIRED:
		return "the expiries are";
	case TWHEEL_BENCH_FIRED_EARLY:
		return "expired early, at nanosecond";
	case TWHEEL_BENCH_FIRED_STRAY:
		return "expired while it was not armed, or twice:";
	case TWHEEL_BENCH_NOT_FIRED:
		return "had not expired at nanosecond";
	}
	return "unknown fault";
}

/* Reports what is wrong with a replay, and exits. */
static void exit_with_fault(const struct twheel_bench_replay *replay, const char *name,
			    const char *scheme)
{
	char object[32] = "";

	if (replay->fault == TWHEEL_BENCH_TOO_SLOW)
		errx(EXIT_FAILED,
		     "%s, %s: too many timers for this machine: at %.3f s, operations were late by %.3f s, and had %.3f s; a larger --margin leaves such operations out",
		     name, scheme, replay->fault_time_ns / 1e9, replay->fault_found / 1e9,
		     replay->fault_expected / 1e9);
	if (replay->fault == TWHEEL_BENCH_FIRED_EARLY ||
	    replay->fault == TWHEEL_BENCH_FIRED_STRAY ||
	    replay->fault == TWHEEL_BENCH_NOT_FIRED)
		snprintf(object, sizeof(object), "object %u ", replay->fault_object);
	errx(EXIT_FAILED, "%s, %s, at %.3f s: %s%s %llu instead of %llu", name, scheme,
	     replay->fault_time_ns / 1e9, object, fault_name(replay->fault), replay->fault_found,
	     replay->fault_expected);
}

static const char *explain_error(int error)
{
	if (error == EINVAL)
		return "the kernel does not accept this trace";
	return device_error(error);
}

static void run_scheme(const struct setup *setup, uint32_t scheme, const struct trace *trace,
		       const char *name, struct twheel_bench_replay *replay)
{
	*replay = (struct twheel_bench_replay) {
		.ops		= (uintptr_t)trace->op,
		.nr_ops		= trace->nr,
		.length_ns	= trace->length_ns,
		.scheme		= scheme,
		.nr_objects	= trace->nr_objects,
	};
	if (ioctl(setup->fd, TWHEEL_BENCH_IOC_REPLAY, replay))
		errx(EXIT_FAILED, "%s, %s: %s", name, setup->schemes[scheme].name,
		     explain_error(errno));
	if (replay->fault != TWHEEL_BENCH_OK)
		exit_with_fault(replay, name, setup->schemes[scheme].name);
	if (replay->cpu != (uint32_t)setup->common.cpu)
		errx(EXIT_FAILED, "%s, %s: ran on CPU %u instead of %d", name,
		     setup->schemes[scheme].name, replay->cpu, setup->common.cpu);
}

/* Exits unless a scheme did what it had to. */
static void check_truth(const struct twheel_bench_replay *replay, const struct truth *truth,
			const char *name, const char *scheme)
{
	if (replay->fired != truth->fired || replay->checksum != truth->checksum)
		errx(EXIT_FAILED,
		     "%s, %s: %llu expiries with checksum %016llx, instead of %llu with %016llx",
		     name, scheme, replay->fired, replay->checksum,
		     (unsigned long long)truth->fired, (unsigned long long)truth->checksum);
}

static double more_than(uint64_t value, uint64_t base)
{
	return value > base ? value - base : 0;
}

/* Adds the figures of a round; @base is what the trace costs by itself. */
static void add_figures(const struct setup *setup, const struct twheel_bench_replay *replay,
			const struct twheel_bench_replay *base, struct replay_record *record)
{
	double cpu = more_than(replay->interrupt_ns + replay->softirq_ns,
			       base->interrupt_ns + base->softirq_ns), ops = 0;
	const double seconds = replay->elapsed_ns / 1e9;
	uint32_t kind;

	for (kind = 0; kind < TWHEEL_BENCH_NR_OP_KINDS; kind++) {
		ops += replay->op[kind].time_ns;
		if (replay->op[kind].ops)
			add_sample(&record->figure[REPLAY_ARM + kind],
				   (double)replay->op[kind].time_ns / replay->op[kind].ops);
	}
	if (replay->fired) {
		add_sample(&record->figure[REPLAY_LATE_P50], replay->late_p50_ns);
		add_sample(&record->figure[REPLAY_LATE_P99], replay->late_p99_ns);
		add_sample(&record->figure[REPLAY_LATE_MAX], replay->late_max_ns);
	}
	if (setup->schemes[replay->scheme].checked && replay->most_armed)
		add_sample(&record->figure[REPLAY_BYTES],
			   setup->schemes[replay->scheme].object_size +
			   (double)replay->most_bytes / replay->most_armed);
	if (!replay->cpu_known || !base->cpu_known)
		return;
	if (replay->fired)
		add_sample(&record->figure[REPLAY_EXPIRY], cpu / replay->fired);
	add_sample(&record->figure[REPLAY_CPU], (cpu + ops) / replay->elapsed_ns * 100);
	add_sample(&record->figure[REPLAY_INTERRUPTS],
		   more_than(replay->interrupts, base->interrupts) / seconds);
	add_sample(&record->figure[REPLAY_SOFTIRQS],
		   more_than(replay->softirqs, base->softirqs) / seconds);
	add_sample(&record->figure[REPLAY_LONGEST], replay->longest_softirq_ns);
	add_sample(&record->figure[REPLAY_LONGEST_INTERRUPT], replay->longest_interrupt_ns);
}

static uint32_t find_base(const struct setup *setup)
{
	uint32_t i;

	for (i = 0; i < setup->info.nr_schemes; i++)
		if (!strcmp(setup->schemes[i].name, BASE))
			return i;
	errx(EXIT_FAILED, "the device has no scheme '%s'", BASE);
}

/**
 * replay_begin - prepare for the results of a trace
 * @setup:	what was chosen
 * @rounds:	how often it will be replayed
 * @result:	@name and @size are set; the rest is filled in
 */
void replay_begin(const struct setup *setup, unsigned int rounds, struct replay_result *result)
{
	struct replay_record *record;
	uint32_t i;
	int figure;

	result->record = allocate(setup->info.nr_schemes, sizeof(*result->record));
	result->nr = 0;
	for (i = 0; i < setup->info.nr_schemes; i++) {
		if (setup->max_timers[i] < result->size)
			continue;
		record = &result->record[result->nr++];
		record->scheme = setup->schemes[i].name;
		for (figure = 0; figure < REPLAY_NR_FIGURES; figure++)
			record->figure[figure] = new_samples(rounds);
	}
	if (!result->nr)
		errx(EXIT_USAGE, "no scheme was chosen for %u timers", result->size);
}

/**
 * replay_round - have each chosen scheme replay a trace, and check what it did; exit if it is wrong
 * @setup:	what was chosen
 * @trace:	the trace, after trace_prepare()
 * @truth:	what trace_prepare() has found
 * @result:	the results are added to this
 */
void replay_round(const struct setup *setup, const struct trace *trace, const struct truth *truth,
		  struct replay_result *result)
{
	struct replay_record *record = result->record;
	const uint32_t base_scheme = find_base(setup);
	struct twheel_bench_replay base, replay;
	uint64_t op;
	uint32_t i;

	result->length_ns = trace->length_ns;
	result->nr_objects = trace->nr_objects;
	result->truth = *truth;
	memset(result->ops, 0, sizeof(result->ops));
	for (op = 0; op < trace->nr; op++)
		result->ops[trace->op[op].kind]++;
	run_scheme(setup, base_scheme, trace, result->name, &base);
	for (i = 0; i < setup->info.nr_schemes; i++) {
		if (setup->max_timers[i] < result->size)
			continue;
		if (i == base_scheme)
			replay = base;
		else
			run_scheme(setup, i, trace, result->name, &replay);
		if (setup->schemes[i].checked)
			check_truth(&replay, truth, result->name, setup->schemes[i].name);
		add_figures(setup, &replay, &base, record);
		record->fired = replay.fired;
		record->most_armed = replay.most_armed;
		record++;
	}
}

/**
 * replay_end - compute the medians
 * @result:	the results
 */
void replay_end(struct replay_result *result)
{
	size_t i;
	int figure;

	for (i = 0; i < result->nr; i++)
		for (figure = 0; figure < REPLAY_NR_FIGURES; figure++)
			if (result->record[i].figure[figure].nr)
				summarise(&result->record[i].figure[figure]);
}
