/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timers of which a test knows what must become of them: each expires exactly once, at its
 * deadline, unless it is cancelled.
 */
#ifndef _ISOLATED_TIMERS_H
#define _ISOLATED_TIMERS_H

#include "twheel_test.h"

#define N 4000

/**
 * struct timers - the timers of a context
 * @fd:		the context
 * @records:	what was asked for: a handle, a deadline, and whether the timer is armed
 */
struct timers {
	int fd;
	struct record {
		__u64	handle;
		__u64	deadline;
		bool	pending;
	} records[N];
};

static inline void add_timer(struct __test_metadata *_metadata, struct timers *timers,
			     unsigned int i, __u64 distance)
{
	struct record *record = &timers->records[i];

	record->deadline = now_ns() + distance;
	record->pending = true;
	ASSERT_EQ(0, wh_add(timers->fd, record->deadline, ABS, i, &record->handle));
}

static inline bool is_pending(const struct timers *timers, unsigned int i)
{
	return wh_state(timers->fd, timers->records[i].handle) == TWHEEL_STATE_PENDING;
}

/* Re-arms it. It may have expired a moment ago, with its event not read yet. */
static inline void rearm_timer(struct __test_metadata *_metadata, struct timers *timers,
			       unsigned int i, __u64 distance)
{
	struct record *record = &timers->records[i];
	__u64 before = record->deadline;
	int ret;

	record->deadline = now_ns() + distance;
	ret = wh_rearm(timers->fd, record->handle, record->deadline, ABS);
	if (ret != TWHEEL_WAS_EXPIRED || now_ns() < before)
		ASSERT_EQ(TWHEEL_WAS_PENDING, ret);
}

static inline void cancel_timer(struct __test_metadata *_metadata, struct timers *timers,
				unsigned int i)
{
	struct record *record = &timers->records[i];
	int ret = wh_cancel(timers->fd, record->handle);

	if (ret != TWHEEL_WAS_EXPIRED || now_ns() < record->deadline)
		ASSERT_EQ(TWHEEL_WAS_PENDING, ret);
	record->pending = false;
	ASSERT_EQ(-ENOENT, wh_cancel(timers->fd, record->handle));
}

/* Reads the pending events. */
static inline void drain_events(struct __test_metadata *_metadata, struct timers *timers)
{
	struct twheel_event events[64];
	struct record *record;
	int i, n;

	while ((n = wh_read(timers->fd, events, 64)) > 0) {
		for (i = 0; i < n; i++) {
			EXPECT_EVENT_OK(&events[i]);
			ASSERT_GT(N, events[i].user_data);
			record = &timers->records[events[i].user_data];
			ASSERT_EQ(true, record->pending);
			ASSERT_EQ(record->handle, events[i].handle);
			ASSERT_EQ(record->deadline, events[i].deadline);
			record->pending = false;
		}
	}
	ASSERT_EQ(-EAGAIN, n);
}

/* Everything armed must expire. */
static inline void drain_all(struct __test_metadata *_metadata, struct timers *timers)
{
	while (wh_nr_timers(timers->fd)) {
		ASSERT_EQ(true, wh_wait(timers->fd))
			TH_LOG("%llu never fired", wh_nr_timers(timers->fd));
		drain_events(_metadata, timers);
	}
}

#endif /* _ISOLATED_TIMERS_H */
