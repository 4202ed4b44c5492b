/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench connections: what its parts share
 */
#ifndef TWBENCH_CONNECTIONS_H
#define TWBENCH_CONNECTIONS_H

#include <stdint.h>

#include "twbench.h"

/**
 * struct connections_plan - what every scheme is put to
 * @nr:		number of connections
 * @silent:	how many of these fall silent
 * @heartbeat:	seconds from one message of a connection to the next
 * @timeout:	seconds without one, after which it is to be kicked
 */
struct connections_plan {
	uint32_t	nr;
	uint32_t	silent;
	double		heartbeat;
	double		timeout;
};

/**
 * struct connections_scheme - a way to keep the timeouts
 * @name:	its name, in tables
 * @program:	the server, in the directory of the examples
 * @timeouts:	what the server calls it
 * @rule:	the server has none: a rule is added
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
 * @CPU_WORKER:		workers' functions of twheel
 * @CPU_NR_PARTS:	their number
 */
enum cpu_part {
	CPU_INTERRUPT,
	CPU_SOFTIRQ,
	CPU_WORKER,
	CPU_NR_PARTS,
};

/**
 * struct cpu_use - CPU time, in nanoseconds
 * @time:	by the clock
 * @busy:	of whatever was not idle, on all CPUs
 * @part:	of the parts of the kernel
 */
struct cpu_use {
	double	time;
	double	busy;
	double	part[CPU_NR_PARTS];
};

/**
 * struct connections_result - what was measured of a scheme
 * @scheme:	which
 * @messages:	messages that the server has answered, while the CPU time was measured
 * @server:	CPU time of the scheme's code in the server, in nanoseconds
 * @cpu:	of everything, and of the kernel
 * @cpu_total:	on the scheme's timeouts: @server and what the kernel took more than
 *		without any
 * @arming:	nanoseconds in the server for each connection, to begin and end its timeout
 * @memory:	bytes for each connection; less than 0: not measured
 * @silent:	connections that fell silent
 * @kicked:	connections that were kicked when their time was over
 * @false_kicks: connections that were kicked before
 * @missed_kicks: connections that were silent, and not kicked
 * @latest_heartbeat: how late the load's heartbeats were at most, in nanoseconds
 * @late_p50:	lateness of kicks, in nanoseconds: half were not later
 * @late_p99:	99 in 100 were not
 * @late_max:	none was
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
 * struct connections_results - all that was measured
 * @plan:	what was done
 * @result:	by scheme, the first without timeouts
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
