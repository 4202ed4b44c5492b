/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench api: what its parts share
 */
#ifndef TWBENCH_API_H
#define TWBENCH_API_H

#include <stdint.h>

#include "twbench.h"

/* Timers of one call, where a call takes several. */
#define API_BATCH	256

/**
 * enum api_operation - what is measured
 * @API_FILL:		add a timer, the first ones: what memory they need is got
 * @API_ADD:		add a timer, where one has been cancelled
 * @API_REARM_LATER:	move it to later
 * @API_REARM_EARLIER:	move it to earlier
 * @API_TOUCH:		tell of activity, in mapped memory
 * @API_CANCEL:		cancel it
 * @API_EVENT:		take the event of its expiry, which is there
 * @API_NR_OPERATIONS:	their number
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
 * struct api_timer - a timer to do something to
 * @timeout:	from now, in nanoseconds
 * @number:	which timer, from 0
 */
struct api_timer {
	uint64_t	timeout;
	uint32_t	number;
};

/**
 * struct api_scheme - a way for a program to have timers
 * @name:	its name
 * @begin:	get ready for so many timers
 * @add:	add timers, up to %API_BATCH at once
 * @rearm:	arm them anew
 * @touch:	tell of their activity; or NULL
 * @cancel:	cancel them
 * @collect:	take up to so many events, and return how many; or NULL
 * @end:	give everything back
 * @wheel:	its timers are in the wheels of /dev/twheel
 * @walks:	re-arming and cancelling look through all timers: few are tried
 *
 * All but @begin and @end are measured. What fails ends the program.
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
 * struct api_memory - what pending timers of a scheme take, in bytes for each
 * @charged:	to the memory cgroup of the program
 * @pages:	from the page allocator, charged or not
 */
struct api_memory {
	double	charged;
	double	pages;
};

/**
 * struct api_result - what was measured of a scheme
 * @scheme:	which
 * @time:	of each operation; without samples if the scheme does not have it
 * @memory:	of its pending timers
 */
struct api_result {
	const struct api_scheme	*scheme;
	struct samples		time[API_NR_OPERATIONS];
	struct api_memory	memory;
};

/**
 * struct api_results - all that was measured
 * @nr_timers:	number of timers
 * @result:	by scheme
 * @nr:		number of schemes
 * @settime:	what all times are compared with: timerfd_settime(), of a pending timer
 * @timerfd:	what all memory is compared with: that of a timerfd
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
