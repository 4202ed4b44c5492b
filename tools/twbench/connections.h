/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench connections: declarations shared by its files
 */
#ifndef TWBENCH_CONNECTIONS_H
#define TWBENCH_CONNECTIONS_H

#include <stdint.h>

#include "twbench.h"

/**
 * struct connections_plan - the load for every scheme
 * @nr:		number of connections
 * @silent:	how many of these fall silent
 * @heartbeat:	seconds between messages of a connection
 * @timeout:	seconds without a message after which a connection must be kicked
 */
struct connections_plan {
	uint32_t	nr;
	uint32_t	silent;
	double		heartbeat;
	double		timeout;
};

/**
 * struct connections_scheme - a way to implement the timeouts
 * @name:	its name in the tables
 * @program:	the server, in the directory of the examples
 * @timeouts:	the server's name for it
 * @rule:	the server has no timeouts: a rule is added instead
 * @wheel:	its timers are in the wheels of /dev/twheel
 */
struct connections_scheme {
	const char	*name;
	const char	*program;
	const char	*timeouts;
	bool		rule;
	bool		wheel;
};

/**
 * enum cpu_part - where the kernel spends CPU time on timers
 * @CPU_INTERRUPT:	interrupts of the timer
 * @CPU_SOFTIRQ:	the softirq of hrtimers
 * @CPU_WORKER:		twheel's work functions
 * @CPU_NR_PARTS:	number of parts
 */
enum cpu_part {
	CPU_INTERRUPT,
	CPU_SOFTIRQ,
	CPU_WORKER,
	CPU_NR_PARTS,
};

/**
 * struct cpu_use - CPU time, in nanoseconds
 * @time:	wall-clock time
 * @busy:	time not idle, on all CPUs
 * @part:	time in the parts of the kernel
 */
struct cpu_use {
	double	time;
	double	busy;
	double	part[CPU_NR_PARTS];
};

/**
 * struct connections_result - the results of a scheme
 * @scheme:	the scheme
 * @messages:	messages that the server answered while CPU time was measured
 * @server:	CPU time of the scheme's code in the server, in nanoseconds
 * @cpu:	CPU time of everything, and of the kernel
 * @cpu_total:	CPU time of the scheme's timeouts: @server, and what the kernel took in excess
 *		of what it takes without timeouts
 * @arming:	nanoseconds per connection in the server, to begin and end its timeout
 * @memory:	bytes per connection; less than 0: not measured
 * @silent:	connections that fell silent
 * @kicked:	connections that were kicked after their timeout
 * @false_kicks: connections that were kicked too early
 * @missed_kicks: connections that were silent but not kicked
 * @latest_heartbeat: maximum lateness of the load's heartbeats, in nanoseconds
 * @late_p50:	lateness of kicks, in nanoseconds: the median
 * @late_p99:	the 99th percentile
 * @late_max:	the maximum
 */
struct connections_result {
	const struct connections_scheme	*scheme;
	double				messages;
	double				server;
	struct cpu_use			cpu;
	double				cpu_total;
	double				arming;
	double				memory;
	uint64_t			silent;
	uint64_t			kicked;
	uint64_t			false_kicks;
	uint64_t			missed_kicks;
	uint64_t			latest_heartbeat;
	uint64_t			late_p50;
	uint64_t			late_p99;
	uint64_t			late_max;
};

/**
 * struct connections_results - the results of all schemes
 * @plan:	the load
 * @result:	results by scheme; the first one is without timeouts
 * @nr:		number of schemes
 */
struct connections_results {
	struct connections_plan		plan;
	struct connections_result	*result;
	size_t				nr;
};

/* connections.c */
void connections_measure(const struct setup *setup, const struct connections_plan *plan,
			 char *schemes, struct connections_results *results);

/* connections-cpu.c */
struct cpu_use cpu_use_now(const struct setup *setup);
struct cpu_use cpu_use_since(const struct setup *setup, const struct cpu_use *then);

/* connections-report.c */
const struct connections_result *
connections_find(const struct connections_results *results, const char *name);
bool connections_went_well(const struct connections_results *results);
void connections_print(FILE *out, const struct setup *setup,
		       const struct connections_results *results);
void connections_json(FILE *out, const struct setup *setup,
		      const struct connections_results *results);

#endif /* TWBENCH_CONNECTIONS_H */
