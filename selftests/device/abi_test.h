/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the tests of arguments: valid ones, and invalid ones that must change nothing.
 */
#ifndef _TWHEEL_ABI_TEST_H
#define _TWHEEL_ABI_TEST_H

#include "twheel_test.h"

#define IOC_SIZE_MAX	((1 << _IOC_SIZEBITS) - 1)

/* The first sizes of structures that have grown since: they must always be accepted. */
#define ADD_SIZE_FIRST		32
#define REARM_SIZE_FIRST	24
#define QUERY_SIZE_FIRST	40
#define STATS_SIZE_FIRST	80

union argument {
	struct twheel_info		info;
	struct twheel_timer_add		add;
	struct twheel_timer_cancel	cancel;
	struct twheel_timer_rearm	rearm;
	struct twheel_timer_query	query;
	struct twheel_submit		submit;
	struct twheel_drain		drain;
	struct twheel_context_stats	stats;
	struct twheel_setup		setup;
	unsigned char			bytes[IOC_SIZE_MAX];
};

/**
 * struct sample - a context with two timers
 * @fd:		the device
 * @pending:	handle of a timer that is pending
 * @expired:	handle of a timer that has expired
 * @before:	their state at the start
 */
struct sample {
	int		fd;
	__u64		pending;
	__u64		expired;
	struct wh_view	before;
};

/* Makes a sample. Returns 0 or -errno. */
static inline int sample_open(struct sample *sample)
{
	int ret;

	sample->fd = wh_open(O_NONBLOCK);
	if (sample->fd < 0)
		return sample->fd;
	ret = wh_add(sample->fd, 1, ABS, 100, &sample->expired);
	if (ret)
		return ret;
	if (!wh_wait_events(sample->fd, 1))
		return -ETIME;
	ret = wh_add(sample->fd, HOUR, 0, 200, &sample->pending);
	return ret ?: wh_look(sample->fd, sample->pending, sample->expired, &sample->before);
}

static inline void expect_unchanged(struct __test_metadata *_metadata, struct sample *sample)
{
	struct wh_view after;

	ASSERT_EQ(0, wh_look(sample->fd, sample->pending, sample->expired, &after));
	EXPECT_EQ(0, memcmp(&sample->before, &after, sizeof(after)));
}

/*
 * Fills in a valid argument, for a call that returns 0. A cancel gets a new timer. The array of
 * operations is empty, and there is nothing to drain.
 */
static inline int good(struct sample *sample, unsigned int cmd, union argument *argument)
{
	memset(argument, 0, sizeof(*argument));
	switch (cmd) {
	case TWHEEL_IOC_TIMER_ADD:
		argument->add.time = HOUR;
		argument->add.user_data = 300;
		argument->add.clock = CLOCK_MONOTONIC;
		return 0;
	case TWHEEL_IOC_TIMER_CANCEL:
		return wh_add(sample->fd, HOUR, 0, 400, &argument->cancel.handle);
	case TWHEEL_IOC_TIMER_REARM:
		argument->rearm.handle = sample->pending;
		/* Its current deadline, so that nothing changes if the call is accepted. */
		argument->rearm.time = sample->before.pending.deadline;
		argument->rearm.flags = ABS;
		return 0;
	case TWHEEL_IOC_TIMER_QUERY:
		argument->query.handle = sample->pending;
		return 0;
	case TWHEEL_IOC_SUBMIT:
		argument->submit.op_size = TWHEEL_OP_SIZE_MIN;
		return 0;
	case TWHEEL_IOC_DRAIN:
		argument->drain.nr_records = 1;
		argument->drain.record_size = sizeof(struct twheel_timer_query);
		/* A cursor beyond all timers. */
		argument->drain.cursor = 1ULL << 62;
		return 0;
	default:
		return 0;
	}
}

/* A call that must fail with @error, write nothing and change nothing. */
static inline void expect_error(struct __test_metadata *_metadata, struct sample *sample,
				unsigned int cmd, const union argument *argument, int error)
{
	union argument copy = *argument;

	EXPECT_EQ(-error, wh_ioctl(sample->fd, cmd, &copy))
		TH_LOG("cmd %x size %u", cmd, _IOC_SIZE(cmd));
	EXPECT_EQ(0, memcmp(&copy, argument, sizeof(copy)));
}

#endif /* _TWHEEL_ABI_TEST_H */
