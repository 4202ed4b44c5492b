/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench api: declarations shared by its files
 */
#ifndef TWBENCH_API_H
#define TWBENCH_API_H

#include <stdint.h>

#include "twbench.h"

/* Number of timers per call, if a call takes several. */
#define API_BATCH	256

/**
 * enum api_operation - the operations that are measured
 * @API_FILL:		add a timer for the first time, which includes allocating its memory
 * @API_ADD:		add a timer in place of one that was cancelled
 * @API_REARM_LATER:	re-arm it to a later time
 * @API_REARM_EARLIER:	re-arm it to an earlier time
 * @API_TOUCH:		report activity, through mapped memory
 * @API_CANCEL:		cancel it
 * @API_EVENT:		fetch its expiry event, which is already pending
 * @API_NR_OPERATIONS:	number of operations
 */
enum api_operation {
	API_FILL,
	API_ADD,
	API_REARM_LATER,
	API_REARM_EARLIER,
	API_TOUCH,
	API_CANCEL,
	API_EVENT,
	API_NR_OPERATIONS,
};

/**
 * struct api_timer - the operand of an operation
 * @timeout:	relative timeout, in nanoseconds
 * @number:	the timer's number, from 0
 */
struct api_timer {
	uint64_t	timeout;
	uint32_t	number;
};

/**
 * struct api_scheme - an interface through which a program can have timers
 * @name:	its name
 * @begin:	prepare for @nr timers
 * @add:	add timers, up to %API_BATCH at once
 * @rearm:	re-arm timers
 * @touch:	report activity of timers; or NULL
 * @cancel:	cancel timers
 * @collect:	fetch up to @nr events, and return how many; or NULL
 * @end:	release everything
 * @wheel:	its timers are in the wheels of /dev/twheel
 * @walks:	re-arming and cancelling search all timers, so only few are measured
 *
 * All but @begin and @end are measured. Errors end the program.
 */
struct api_scheme {
	const char	*name;
	void		(*begin)(uint32_t nr);
	void		(*add)(const struct api_timer *timer, uint32_t nr);
	void		(*rearm)(const struct api_timer *timer, uint32_t nr);
	void		(*touch)(const struct api_timer *timer, uint32_t nr);
	void		(*cancel)(const struct api_timer *timer, uint32_t nr);
	uint32_t	(*collect)(uint32_t nr);
	void		(*end)(void);
	bool		wheel;
	bool		walks;
};

/**
 * struct api_memory - memory of a scheme's pending timers, in bytes per timer
 * @charged:	charged to the memory cgroup of the program
 * @pages:	from the page allocator, charged or not
 */
struct api_memory {
	double	charged;
	double	pages;
};

/**
 * struct api_result - the results of a scheme
 * @scheme:	the scheme
 * @time:	time of each operation; no samples if the scheme does not have the operation
 * @memory:	memory of its pending timers
 */
struct api_result {
	const struct api_scheme	*scheme;
	struct samples		time[API_NR_OPERATIONS];
	struct api_memory	memory;
};

/**
 * struct api_results - the results of all schemes
 * @nr_timers:	number of timers
 * @result:	results, by scheme
 * @nr:		number of schemes
 * @settime:	reference for times: timerfd_settime() of a pending timer
 * @timerfd:	reference for memory: that of a timerfd
 */
struct api_results {
	uint32_t		nr_timers;
	struct api_result	*result;
	size_t			nr;
	double			settime;
	double			timerfd;
};

extern const char *const api_operation_names[API_NR_OPERATIONS];

/* api.c */
uint64_t api_timeout(uint64_t *random);
void api_measure(const struct setup *setup, uint32_t nr, struct api_results *results);
void api_print(FILE *out, const struct setup *setup, const struct api_results *results);

/* report.c */
void report_api(FILE *out, const struct setup *setup, const struct api_results *results);

/* api-memory.c */
void api_memory_measure(const struct setup *setup, uint32_t nr, struct api_result *result);

/* api-twheel.c */
extern const struct api_scheme api_submit, api_keyed, api_touched, api_uring_cmd, api_ioctl;

/* api-peers.c */
extern const struct api_scheme api_timerfd, api_timerfd_epoll, api_posix, api_io_uring;

#endif /* TWBENCH_API_H */
