// SPDX-License-Identifier: GPL-2.0-only
/*
 * Periods, slack and spread: no period is lost, counted twice or early, however late the reader is,
 * and the phase is kept.
 */
#include <pthread.h>

#include "late_memory.h"
#include "twheel_test.h"

#define MAX_OVERRUNS	0xffffffffU

FIXTURE(periodic)
{
	int fd;
	__u64 tick;
	__u64 seq;
};

FIXTURE_SETUP(periodic)
{
	struct twheel_info info;

	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_info(self->fd, &info));
	self->tick = info.tick_ns;
	self->seq = 0;
	random_seed();
}

FIXTURE_TEARDOWN(periodic)
{
	EXPECT_EQ(0, close(self->fd));
}

static int add_periodic(int fd, __u64 time, __u32 flags, __u64 period, __u64 user_data,
			__u64 *handle)
{
	struct twheel_timer_add add = {
		.time		= time,
		.user_data	= user_data,
		.flags		= flags,
		.clock		= CLOCK_MONOTONIC,
		.period		= period,
	};
	int ret = wh_add_timer(fd, &add);

	*handle = add.handle;
	return ret;
}

/*
 * Reads the next event, which must be that of @handle and cover the periods from @deadline on.
 * Returns the deadline of the event after it.
 */
static __u64 expect_periods(struct __test_metadata *_metadata, FIXTURE_DATA(periodic) * self,
			    __u64 handle, __u64 deadline, __u64 period)
{
	struct twheel_event event;
	__u64 last;

	ASSERT_EQ(true, wh_wait(self->fd)) {
		return POISON;
	}
	ASSERT_EQ(1, wh_read(self->fd, &event, 1)) {
		return POISON;
	}
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_EQ(self->seq++, event.seq);
	EXPECT_EQ(TWHEEL_LIMIT_DEADLINE, event.reason);
	EXPECT_LE(event.deadline, event.fired);
	EXPECT_PUNCTUAL(&event, 0);
	EXPECT_GE(now_ns(), event.fired);
	/* All periods that it counts have passed. */
	last = event.deadline + event.overruns * period;
	EXPECT_GE(now_ns(), last);
	return last + period;
}

TEST_F(periodic, phase_is_kept)
{
	const __u64 period = 5 * MSEC + 12345;
	__u64 handle, begin = now_ns() + 20 * MSEC, next = begin;
	unsigned int events;

	ASSERT_EQ(0, add_periodic(self->fd, begin, ABS, period, 1, &handle));
	for (events = 0; events < 60; events++)
		next = expect_periods(_metadata, self, handle, next, period);
	EXPECT_EQ(0, (next - begin) % period);
	/* At least one period per event: missed periods are counted. */
	EXPECT_LE(events, (next - begin) / period);
	EXPECT_GT(next + period, now_ns());
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(periodic, relative_begin)
{
	const __u64 period = 4 * MSEC;
	struct twheel_timer_query query;
	__u64 handle, before, after, next;
	unsigned int events;

	before = now_ns();
	ASSERT_EQ(0, add_periodic(self->fd, 30 * MSEC, 0, period, 1, &handle));
	after = now_ns();
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_LE(before + 30 * MSEC, query.deadline);
	EXPECT_GE(after + 30 * MSEC, query.deadline);
	EXPECT_EQ(period, query.period);
	next = query.deadline;
	for (events = 0; events < 10; events++)
		next = expect_periods(_metadata, self, handle, next, period);
}

/* One event covers all periods that have passed until it is read. */
TEST_F(periodic, a_reader_that_is_late)
{
	const __u64 period = 3 * MSEC;
	__u64 handle, begin = now_ns() + period, next = begin, before, after, round;
	struct twheel_event event;

	ASSERT_EQ(0, add_periodic(self->fd, begin, ABS, period, 1, &handle));
	for (round = 0; round < 5; round++) {
		sleep_ns((7 + 11 * round) * period);
		EXPECT_EQ(1, wh_nr_events(self->fd));
		EXPECT_EQ(1, wh_nr_timers(self->fd));
		before = now_ns();
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		after = now_ns();
		EXPECT_EQ(handle, event.handle);
		EXPECT_EQ(next, event.deadline);
		EXPECT_EQ(round, event.seq);
		EXPECT_LE(event.deadline, event.fired);
		EXPECT_PUNCTUAL(&event, 0);
		EXPECT_LE((before - next) / period, event.overruns);
		EXPECT_GE((after - next) / period, event.overruns);
		next += (event.overruns + 1) * period;
		/*
		 * The next event is for a period in the future: if the test is fast, it has not
		 * come yet.
		 */
		if (wh_nr_events(self->fd))
			EXPECT_LE(next, now_ns());
	}
}

/* Pending, expired, delivered and pending again: a cancel ends it. */
TEST_F(periodic, cancelled_in_every_state)
{
	const __u64 period = 2 * MSEC;
	struct twheel_event event;
	unsigned int state;
	__u64 handle;
	int ret;

	for (state = 0; state < 4; state++) {
		ASSERT_EQ(0, add_periodic(self->fd, state ? 0 : HOUR, 0,
					  state < 3 ? period : HOUR, state, &handle));
		if (state)
			ASSERT_EQ(true, wh_wait(self->fd));
		if (state >= 2)
			ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		/* Delivered once, and expired again. */
		if (state == 2)
			ASSERT_EQ(true, wh_wait(self->fd));
		ret = wh_cancel(self->fd, handle);
		EXPECT_EQ(state == 1 || state == 2 ? TWHEEL_WAS_EXPIRED : TWHEEL_WAS_PENDING, ret)
			TH_LOG("state %u", state);
		EXPECT_EQ(-ENOENT, wh_state(self->fd, handle));
		EXPECT_EQ(0, wh_nr_timers(self->fd));
		EXPECT_EQ(0, wh_nr_events(self->fd));
		sleep_ns(3 * period);
		EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
	}
}

/* A re-arm restarts the timer, with the same period. */
TEST_F(periodic, rearmed_in_every_state)
{
	const __u64 period = 4 * MSEC;
	struct twheel_event event;
	unsigned int state, events;
	__u64 handle, next;
	int ret;

	for (state = 0; state < 4; state++) {
		ASSERT_EQ(0, add_periodic(self->fd, state ? 0 : HOUR, 0,
					  state < 3 ? period : HOUR, state, &handle));
		if (state)
			ASSERT_EQ(true, wh_wait(self->fd));
		if (state >= 2) {
			ASSERT_EQ(1, wh_read(self->fd, &event, 1));
			self->seq++;
		}
		if (state == 2)
			ASSERT_EQ(true, wh_wait(self->fd));
		next = now_ns() + 7 * MSEC;
		ret = wh_rearm(self->fd, handle, next, ABS);
		EXPECT_EQ(state == 1 || state == 2 ? TWHEEL_WAS_EXPIRED : TWHEEL_WAS_PENDING, ret)
			TH_LOG("state %u", state);
		for (events = 0; events < (state < 3 ? 4 : 1); events++)
			next = expect_periods(_metadata, self, handle, next,
					      state < 3 ? period : HOUR);
		EXPECT_LE(0, wh_cancel(self->fd, handle));
		EXPECT_EQ(0, wh_nr_events(self->fd));
	}
}

/**
 * struct reader - a thread that reads an event once there is memory for it
 * @fd:		the context
 * @event:	where to store it
 * @result:	how many it has read, or -errno
 */
struct reader {
	int			fd;
	struct twheel_event	*event;
	int			result;
};

static void *run_reader(void *arg)
{
	struct reader *reader = arg;
	ssize_t ret = read(reader->fd, reader->event, sizeof(*reader->event));

	reader->result = ret < 0 ? -errno : ret / (ssize_t)sizeof(*reader->event);
	return NULL;
}

/* What is done to a timer while its event is being delivered. */
enum meanwhile { NOTHING, REARM, CANCEL };

/*
 * Reads the event of a timer to memory that is provided late, or never unless @comes, and calls for
 * the timer meanwhile. Returns how many events were read; 0 if the kernel has no userfaultfd; or
 * -errno.
 */
static int read_meanwhile(struct __test_metadata *_metadata, int fd, __u64 handle, __u64 next,
			  enum meanwhile what, bool comes)
{
	struct reader reader = { .fd = fd };
	size_t page = sysconf(_SC_PAGESIZE);
	pthread_t thread;
	char *memory;
	int uffd;

	uffd = late_memory(&memory, page);
	if (uffd < 0)
		return 0;
	reader.event = (struct twheel_event *)memory;
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_reader, &reader));
	EXPECT_EQ(true, memory_wanted(uffd));
	EXPECT_EQ(0, wh_nr_events(fd));
	if (what != NOTHING)
		EXPECT_EQ(TWHEEL_WAS_DELIVERED, what == REARM ? wh_rearm(fd, handle, next, ABS) :
								wh_cancel(fd, handle));
	EXPECT_EQ(true, comes ? let_memory_be(uffd, memory, page) :
				let_memory_go(uffd, memory, page));
	EXPECT_EQ(0, pthread_join(thread, NULL));
	if (comes)
		EXPECT_EQ(handle, reader.event->handle);
	EXPECT_EQ(0, munmap(memory, page));
	EXPECT_EQ(0, close(uffd));
	return reader.result;
}

/*
 * A call that is made while the event is being read takes effect, whether or not the read succeeds.
 */
TEST_F(periodic, while_its_event_is_read)
{
	const __u64 period = 50 * MSEC;
	struct twheel_context_stats stats;
	__u64 handle, begin, next;
	enum meanwhile what;
	int round, comes, ret, rearms = 0;

	for (round = 0; round < 24; round++) {
		what = round % (CANCEL + 1);
		comes = round & 1;
		begin = now_ns() + 5 * MSEC;
		ASSERT_EQ(0, add_periodic(self->fd, begin, ABS, period, what, &handle));
		ASSERT_EQ(true, wh_wait(self->fd));
		next = begin + 20 * MSEC;
		ret = read_meanwhile(_metadata, self->fd, handle, next, what, comes);
		if (!ret)
			SKIP(return, "no userfaultfd");
		EXPECT_EQ(comes ? 1 : -EFAULT, ret);
		self->seq += comes;
		rearms += what == REARM;
		if (what == NOTHING)
			next = begin + comes * period;
		if (what != CANCEL)
			expect_periods(_metadata, self, handle, next, period);
		EXPECT_EQ(what == CANCEL ? -ENOENT : TWHEEL_WAS_PENDING,
			  wh_cancel(self->fd, handle));
		EXPECT_EQ(0, wh_nr_timers(self->fd));
	}
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(rearms, stats.rearms);
	EXPECT_EQ(round, stats.cancels);
}

/* Its handle is valid until it is cancelled. */
TEST_F(periodic, the_handle_outlives_the_events)
{
	struct twheel_timer_query query;
	struct twheel_event event;
	unsigned int events;
	__u64 handle, other;

	ASSERT_EQ(0, add_periodic(self->fd, 0, 0, 200 * MSEC, 5, &handle));
	for (events = 0; events < 4; events++) {
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(0, wh_query(self->fd, handle, &query));
		EXPECT_EQ(TWHEEL_STATE_EXPIRED, query.state);
		EXPECT_EQ(0, query.remaining);
		EXPECT_EQ(200 * MSEC, query.period);
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EQ(query.deadline, event.deadline);
		EXPECT_EQ(5, event.user_data);
		ASSERT_EQ(0, wh_query(self->fd, handle, &query));
		EXPECT_EQ(event.deadline + (event.overruns + 1) * 200 * MSEC, query.deadline);
		EXPECT_EQ(5, query.user_data);
		/* No other timer gets its memory. */
		ASSERT_EQ(0, add_periodic(self->fd, HOUR, 0, HOUR, 6, &other));
		EXPECT_NE(handle, other);
		EXPECT_EQ(events + 2, wh_nr_timers(self->fd));
	}
	EXPECT_LE(0, wh_cancel(self->fd, handle));
	EXPECT_EQ(-ENOENT, wh_cancel(self->fd, handle));
}

TEST_F(periodic, shorter_than_a_tick)
{
	const __u64 periods[] = { 1, 999, 10 * USEC, self->tick / 3, self->tick - 1 };
	__u64 handle, next, period, begin;
	unsigned int events;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		period = periods[i];
		begin = now_ns() + MSEC;
		next = begin;
		ASSERT_EQ(0, add_periodic(self->fd, begin, ABS, period, 1, &handle));
		for (events = 0; events < 20; events++)
			next = expect_periods(_metadata, self, handle, next, period);
		/* It expires at ticks, so not more often than there were ticks. */
		EXPECT_LE((events - 1) * self->tick, now_ns() - begin + self->tick);
		EXPECT_LE(0, wh_cancel(self->fd, handle));
	}
}

TEST_F(periodic, more_overruns_than_fit)
{
	struct twheel_event event;
	__u64 handle;

	while (now_ns() <= MAX_OVERRUNS + SEC)
		sleep_ns(100 * MSEC);
	ASSERT_EQ(0, add_periodic(self->fd, 1, ABS, 1, 1, &handle));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(1, event.deadline);
	EXPECT_EQ(MAX_OVERRUNS, event.overruns);
	/* The timer continues. */
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
	EXPECT_LT(1, event.deadline);
	EXPECT_LE(event.deadline + event.overruns, now_ns());
	EXPECT_LE(0, wh_cancel(self->fd, handle));
}

TEST_F(periodic, the_longest_period)
{
	struct twheel_timer_query query;
	struct twheel_event event;
	__u64 handle;

	ASSERT_EQ(0, add_periodic(self->fd, 0, 0, TWHEEL_TIME_MAX, 1, &handle));
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(0, event.overruns);
	sleep_ns(5 * MSEC);
	EXPECT_EQ(0, wh_nr_events(self->fd));
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	EXPECT_EQ(TWHEEL_TIME_MAX, query.deadline);
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
}

/* Many timers with different periods, and one-shot timers among them: each keeps its own count. */
TEST_F_TIMEOUT(periodic, many_at_once, 60)
{
	enum { N = 200 };
	__u64 handles[N], next[N], period[N], end, periods = 0, events = 0;
	struct twheel_event event[32];
	__u64 i;
	int k, n;

	for (i = 0; i < N; i++) {
		period[i] = 2 * MSEC + random_below(50 * MSEC);
		next[i] = now_ns() + random_below(50 * MSEC);
		ASSERT_EQ(0, add_periodic(self->fd, next[i], ABS, period[i], i, &handles[i]));
	}
	end = now_ns() + SEC;
	while (now_ns() < end) {
		ASSERT_EQ(0, wh_add(self->fd, random_below(5 * MSEC), 0, N, NULL));
		ASSERT_EQ(true, wh_wait(self->fd));
		n = wh_read(self->fd, event, 32);
		for (k = 0; k < n; k++) {
			EXPECT_EVENT_OK((event[k].overruns = 0, &event[k]));
			ASSERT_EQ(self->seq++, event[k].seq);
			ASSERT_GE(N, event[k].user_data);
		}
		for (k = 0; k < n; k++) {
			i = event[k].user_data;
			if (i == N)
				continue;
			ASSERT_EQ(handles[i], event[k].handle);
			ASSERT_EQ(0, (event[k].deadline - next[i]) % period[i]);
			next[i] = event[k].deadline + period[i];
			events++;
		}
	}
	for (i = 0; i < N; i++) {
		EXPECT_LE(0, wh_cancel(self->fd, handles[i]));
		periods += period[i];
	}
	printf("# %llu events\n", events);
	EXPECT_LT(0, events);
}

/* Adds a timer with a deadline that slack or spread may move. Stores the resulting deadline. */
static int add_moved(int fd, __u64 time, __u32 flags, __u64 slack, __u64 spread, __u64 *deadline)
{
	struct twheel_timer_add add = {
		.time		= time,
		.flags		= flags,
		.clock		= CLOCK_MONOTONIC,
		.slack		= slack,
		.spread		= spread,
	};
	struct twheel_timer_query query;
	int ret = wh_add_timer(fd, &add);

	if (!ret)
		ret = wh_query(fd, add.handle, &query);
	*deadline = query.deadline;
	return ret;
}

TEST_F(periodic, slack_is_where_timers_meet)
{
	enum { N = 1000 };
	__u64 begin = now_ns() + HOUR, time, deadline, last = 0, different = 0, slack = SEC;
	unsigned int i;

	for (i = 0; i < N; i++) {
		/* In order, over a tenth of the slack. */
		time = begin + i * (slack / 10 / N);
		ASSERT_EQ(0, add_moved(self->fd, time, ABS, slack, 0, &deadline));
		EXPECT_LE(time, deadline);
		EXPECT_GE(time + slack, deadline);
		EXPECT_LE(last, deadline);
		different += deadline != last;
		last = deadline;
	}
	/*
	 * They share the roundest time within the slack. Timers may pass that time, and a rounder
	 * one may come within reach: each at most once, as multiples of 2^29 ns are further apart
	 * than all of these timers, and one of them is always within reach.
	 */
	EXPECT_GE(3, different);
}

TEST_F(periodic, slack_of_any_length)
{
	__u64 time, slack, deadline, before, after;
	unsigned int i;

	for (i = 0; i < 2000; i++) {
		time = HOUR + random_magnitude(62);
		slack = random_below(4) ? random_magnitude(63) - 1 : 0;
		ASSERT_EQ(0, add_moved(self->fd, time, ABS, slack, 0, &deadline));
		EXPECT_LE(time, deadline);
		EXPECT_GE(time + slack, deadline);
		EXPECT_GE(TWHEEL_TIME_MAX, deadline);
		if (i > 500)
			continue;
		before = now_ns();
		ASSERT_EQ(0, add_moved(self->fd, HOUR, 0, slack, 0, &deadline));
		after = now_ns();
		EXPECT_LE(before + HOUR, deadline);
		EXPECT_GE(after + HOUR + slack, deadline);
	}
	ASSERT_EQ(0, add_moved(self->fd, TWHEEL_TIME_MAX, ABS, TWHEEL_TIME_MAX, TWHEEL_TIME_MAX,
			       &deadline));
	EXPECT_EQ(TWHEEL_TIME_MAX, deadline);
	ASSERT_EQ(0, add_moved(self->fd, TWHEEL_TIME_MAX, 0, TWHEEL_TIME_MAX, TWHEEL_TIME_MAX,
			       &deadline));
	EXPECT_EQ(TWHEEL_TIME_MAX, deadline);
}

/* A timer with slack does not fire early, and the deadline in its event is within the slack. */
TEST_F(periodic, slack_is_kept)
{
	__u64 handle, time, end, slack = 20 * MSEC;
	struct twheel_timer_add add = { .clock = CLOCK_MONOTONIC, .slack = slack };
	struct twheel_timer_rearm rearm = { .flags = ABS, .slack = slack };
	struct twheel_timer_query query;
	struct twheel_event event;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		add.time = now_ns() + random_below(10 * MSEC);
		add.flags = ABS;
		time = add.time;
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		handle = add.handle;
		if (i & 1) {
			time = now_ns() + random_below(10 * MSEC);
			rearm.handle = handle;
			rearm.time = time;
			ASSERT_LE(0, wh_rearm_timer(self->fd, &rearm));
			ASSERT_EQ(0, wh_query(self->fd, handle, &query));
			EXPECT_LE(time, query.deadline);
			EXPECT_GE(time + slack, query.deadline);
		}
		ASSERT_EQ(true, wh_wait(self->fd));
		end = now_ns();
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_LE(time, event.deadline);
		EXPECT_GE(time + slack, event.deadline);
		EXPECT_GE(end, event.fired);
	}
}

/* With slack, periods are as far apart as without, and each is moved by no more than the slack. */
TEST_F(periodic, slack_of_a_period)
{
	struct twheel_timer_add add = {
		.time	= now_ns() + 5 * MSEC,
		.flags	= ABS,
		.clock	= CLOCK_MONOTONIC,
		.period	= 7 * MSEC,
		.slack	= 3 * MSEC,
	};
	__u64 nominal = add.time;
	struct twheel_event event;
	unsigned int i;

	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	for (i = 0; i < 40; i++) {
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_LE(nominal, event.deadline);
		EXPECT_GE(nominal + add.slack, event.deadline);
		EXPECT_LE(event.deadline, event.fired);
		EXPECT_PUNCTUAL(&event, nominal + add.slack);
		nominal += (event.overruns + 1) * add.period;
	}
}

/* Checks how many of @n deadlines fall into each eighth of the spread. */
static void expect_spread(struct __test_metadata *_metadata, const unsigned int *eighths,
			  unsigned int n)
{
	int i;

	/* A deviation of about seven standard deviations is not chance. */
	for (i = 0; i < 8; i++) {
		EXPECT_LT(n / 8 - n / 24, eighths[i]) TH_LOG("eighth %d", i);
		EXPECT_GT(n / 8 + n / 24, eighths[i]) TH_LOG("eighth %d", i);
	}
}

TEST_F(periodic, spread_is_even)
{
	enum { N = 4800 };
	struct twheel_timer_rearm rearm = { .flags = ABS };
	const __u64 spread = 8 * SEC, time = now_ns() + HOUR;
	unsigned int adds[8] = { }, rearms[8] = { }, equal = 0, i;
	struct twheel_timer_add add = {
		.time	= time,
		.flags	= ABS,
		.clock	= CLOCK_MONOTONIC,
		.spread	= spread,
	};
	struct twheel_timer_query query;
	__u64 last = 0;

	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		ASSERT_EQ(0, wh_query(self->fd, add.handle, &query));
		ASSERT_LE(time, query.deadline);
		ASSERT_GE(time + spread, query.deadline);
		adds[(query.deadline - time) * 8 / (spread + 1)]++;
		equal += query.deadline == last;
		last = query.deadline;

		rearm.handle = add.handle;
		rearm.time = time + HOUR;
		rearm.spread = spread;
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm_timer(self->fd, &rearm));
		ASSERT_EQ(0, wh_query(self->fd, add.handle, &query));
		ASSERT_LE(time + HOUR, query.deadline);
		ASSERT_GE(time + HOUR + spread, query.deadline);
		rearms[(query.deadline - time - HOUR) * 8 / (spread + 1)]++;
		/* Without spread, the deadline is exact. */
		rearm.spread = 0;
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm_timer(self->fd, &rearm));
		ASSERT_EQ(0, wh_query(self->fd, add.handle, &query));
		ASSERT_EQ(time + HOUR, query.deadline);
	}
	EXPECT_GT(3, equal);
	expect_spread(_metadata, adds, N);
	expect_spread(_metadata, rearms, N);
}

TEST_F(periodic, a_lifetime_is_spread)
{
	enum { N = 4800 };
	const __u64 spread = 8 * SEC;
	unsigned int eighths[8] = { }, i;
	struct twheel_timer_add add = {
		.time		= TWHEEL_TIME_NONE,
		.clock		= CLOCK_MONOTONIC,
		.spread		= spread,
		.lifetime	= HOUR,
	};
	struct twheel_timer_query query;
	__u64 before, after, offset;

	for (i = 0; i < N; i++) {
		before = now_ns();
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		after = now_ns();
		ASSERT_EQ(0, wh_query(self->fd, add.handle, &query));
		EXPECT_EQ(TWHEEL_LIMIT_LIFETIME, query.limit);
		ASSERT_LE(before + HOUR, query.deadline);
		ASSERT_GE(after + HOUR + spread, query.deadline);
		/* The call takes much less time than an eighth of the spread. */
		offset = query.deadline - before - HOUR;
		eighths[offset * 8 / (spread + 1) & 7]++;
	}
	expect_spread(_metadata, eighths, N);
}

/* Periods start anywhere within the spread, and keep that phase. */
TEST_F(periodic, spread_of_a_period)
{
	struct twheel_timer_add add = {
		.time	= now_ns() + 5 * MSEC,
		.flags	= ABS,
		.clock	= CLOCK_MONOTONIC,
		.period	= 3 * MSEC,
		.spread	= 10 * MSEC,
	};
	struct twheel_timer_query query;
	unsigned int i;
	__u64 next;

	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	ASSERT_EQ(0, wh_query(self->fd, add.handle, &query));
	EXPECT_LE(add.time, query.deadline);
	EXPECT_GE(add.time + add.spread, query.deadline);
	next = query.deadline;
	for (i = 0; i < 20; i++)
		next = expect_periods(_metadata, self, add.handle, next, add.period);
}

TEST_HARNESS_MAIN
