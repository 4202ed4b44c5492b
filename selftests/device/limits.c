// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several limits in one timer: an idle timeout, a lifetime and a deadline. The first that is
 * reached makes the timer expire, and the event says which one it was; activity postpones only the
 * idle timeout.
 */
#include "twheel_test.h"

#define NONE	TWHEEL_TIME_NONE

FIXTURE(limits)
{
	int fd;
};

FIXTURE_SETUP(limits)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	random_seed();
}

FIXTURE_TEARDOWN(limits)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Adds a timer with these limits, relative to now. */
static int add_limits(int fd, __u64 time, __u64 idle, __u64 lifetime, __u64 user_data,
		      __u64 *handle)
{
	struct twheel_timer_add add = {
		.time		= time,
		.user_data	= user_data,
		.clock		= CLOCK_MONOTONIC,
		.idle		= idle,
		.lifetime	= lifetime,
	};
	int ret = wh_add_timer(fd, &add);

	*handle = add.handle;
	return ret;
}

/* The limit that comes next, or -errno. */
static int next_limit(int fd, __u64 handle, __u64 *deadline)
{
	struct twheel_timer_query query;
	int ret = wh_query(fd, handle, &query);

	*deadline = query.deadline;
	return ret ? ret : (int)query.limit;
}

/*
 * Reads the one event that must come, with this reason, of a timer that was last armed no later
 * than at @armed. Returns the event's deadline.
 */
static __u64 expect_reason_again(struct __test_metadata *_metadata, int fd, __u64 handle,
				 enum twheel_limit reason, __u64 armed)
{
	struct twheel_event event = { };

	EXPECT_EQ(true, wh_wait(fd));
	EXPECT_EQ(1, wh_read(fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(reason, event.reason);
	EXPECT_LE(event.deadline, event.fired);
	EXPECT_PUNCTUAL(&event, armed);
	EXPECT_GE(now_ns(), event.fired);
	EXPECT_EQ(0, event.overruns);
	return event.deadline;
}

/* The same for a timer that was armed before its deadline. */
static __u64 expect_reason(struct __test_metadata *_metadata, int fd, __u64 handle,
			   enum twheel_limit reason)
{
	return expect_reason_again(_metadata, fd, handle, reason, 0);
}

TEST_F(limits, the_first_one_fires)
{
	static const __u64 near = 20 * MSEC, far[] = { HOUR, 2 * HOUR, NONE };
	__u64 values[3], before, after, handle, deadline;
	size_t first, a, b;

	/* Each limit first, with the others far away or absent. */
	for (first = 0; first < 3; first++) {
		for (a = 0; a < 3; a++) {
			for (b = 0; b < 3; b++) {
				values[first] = near;
				values[(first + 1) % 3] = far[a];
				values[(first + 2) % 3] = far[b];
				before = now_ns();
				ASSERT_EQ(0, add_limits(self->fd, values[0],
							values[1] == NONE ? 0 : values[1],
							values[2] == NONE ? 0 : values[2],
							7, &handle));
				after = now_ns();
				EXPECT_EQ((int)first, next_limit(self->fd, handle, &deadline));
				EXPECT_LE(before + near, deadline);
				EXPECT_GE(after + near, deadline);
				EXPECT_EQ(deadline, expect_reason(_metadata, self->fd, handle,
								  first));
				EXPECT_EQ(-EALREADY, wh_cancel(self->fd, handle));
				EXPECT_EQ(0, wh_nr_timers(self->fd));
			}
		}
	}
}

TEST_F(limits, activity_puts_off_the_idle_timeout)
{
	__u64 handle, begin, before, after, deadline;
	unsigned int i;

	begin = now_ns();
	ASSERT_EQ(0, add_limits(self->fd, NONE, 30 * MSEC, 0, 1, &handle));
	for (i = 0; i < 40; i++) {
		sleep_ns(3 * MSEC);
		before = now_ns();
		/* The sleep may have been too long; then the event is revoked. */
		ASSERT_LE(0, wh_active(self->fd, handle));
		after = now_ns();
		ASSERT_EQ(TWHEEL_LIMIT_IDLE, next_limit(self->fd, handle, &deadline));
		EXPECT_LE(before + 30 * MSEC, deadline);
		EXPECT_GE(after + 30 * MSEC, deadline);
	}
	/* Four times the timeout have passed without an event. */
	EXPECT_LE(begin + 120 * MSEC, now_ns());
	EXPECT_EQ(deadline, expect_reason(_metadata, self->fd, handle, TWHEEL_LIMIT_IDLE));
	EXPECT_EQ(-EALREADY, wh_active(self->fd, handle));
}

TEST_F(limits, activity_puts_off_nothing_else)
{
	__u64 handle, end, deadline;

	ASSERT_EQ(0, add_limits(self->fd, NONE, HOUR, 300 * MSEC, 1, &handle));
	ASSERT_EQ(TWHEEL_LIMIT_LIFETIME, next_limit(self->fd, handle, &end));
	while (now_ns() < end - 100 * MSEC) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_active(self->fd, handle));
		ASSERT_EQ(TWHEEL_LIMIT_LIFETIME, next_limit(self->fd, handle, &deadline));
		ASSERT_EQ(end, deadline);
	}
	EXPECT_EQ(end, expect_reason(_metadata, self->fd, handle, TWHEEL_LIMIT_LIFETIME));

	ASSERT_EQ(0, add_limits(self->fd, 300 * MSEC, HOUR, 0, 1, &handle));
	ASSERT_EQ(TWHEEL_LIMIT_DEADLINE, next_limit(self->fd, handle, &end));
	while (now_ns() < end - 100 * MSEC)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_active(self->fd, handle));
	EXPECT_EQ(end, expect_reason(_metadata, self->fd, handle, TWHEEL_LIMIT_DEADLINE));
}

/* Late activity revokes the event of the idle timeout for good, but not that of another limit. */
TEST_F(limits, activity_after_the_expiry)
{
	__u64 handle, deadline;

	ASSERT_EQ(0, add_limits(self->fd, HOUR, MSEC, 0, 1, &handle));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_active(self->fd, handle));
	expect_reason(_metadata, self->fd, handle, TWHEEL_LIMIT_IDLE);

	ASSERT_EQ(0, add_limits(self->fd, HOUR, HOUR, MSEC, 1, &handle));
	ASSERT_EQ(TWHEEL_LIMIT_LIFETIME, next_limit(self->fd, handle, &deadline));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_active(self->fd, handle));
	/* Its lifetime is over nevertheless: it expires again, for the same reason. */
	EXPECT_EQ(deadline, expect_reason_again(_metadata, self->fd, handle,
						TWHEEL_LIMIT_LIFETIME, now_ns()));
}

TEST_F(limits, each_one_armed_anew)
{
	__u64 handle, idle, deadline, before, after, end = now_ns() + 3 * HOUR;

	/* An idle timeout of an hour, starting now, is the first limit. */
	ASSERT_EQ(0, add_limits(self->fd, 2 * HOUR, HOUR, 4 * HOUR, 1, &handle));
	ASSERT_EQ(TWHEEL_LIMIT_IDLE, next_limit(self->fd, handle, &idle));

	/*
	 * Re-arms the others to later times: the idle timeout is still the first, and has
	 * restarted.
	 */
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, end, ABS));
	ASSERT_EQ(TWHEEL_LIMIT_IDLE, next_limit(self->fd, handle, &deadline));
	EXPECT_LT(idle, deadline);
	before = now_ns();
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  wh_rearm_limit(self->fd, handle, 5 * HOUR, 0, TWHEEL_LIMIT_LIFETIME));
	after = now_ns();
	ASSERT_EQ(TWHEEL_LIMIT_IDLE, next_limit(self->fd, handle, &deadline));
	EXPECT_LE(before + HOUR, deadline);
	EXPECT_GE(after + HOUR, deadline);

	/* Re-arms the others to earlier times. */
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, end - 5 * HOUR / 2, ABS));
	ASSERT_EQ(TWHEEL_LIMIT_DEADLINE, next_limit(self->fd, handle, &deadline));
	EXPECT_EQ(end - 5 * HOUR / 2, deadline);
	before = now_ns();
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  wh_rearm_limit(self->fd, handle, HOUR / 4, 0, TWHEEL_LIMIT_LIFETIME));
	after = now_ns();
	ASSERT_EQ(TWHEEL_LIMIT_LIFETIME, next_limit(self->fd, handle, &deadline));
	EXPECT_LE(before + HOUR / 4, deadline);
	EXPECT_GE(after + HOUR / 4, deadline);
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  wh_rearm_limit(self->fd, handle, end - 11 * HOUR / 4 - MSEC, ABS,
				 TWHEEL_LIMIT_LIFETIME));
	ASSERT_EQ(TWHEEL_LIMIT_LIFETIME, next_limit(self->fd, handle, &deadline));
	EXPECT_EQ(end - 11 * HOUR / 4 - MSEC, deadline);

	/* Re-arms the idle timeout, which restarts with the call. */
	before = now_ns();
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  wh_rearm_limit(self->fd, handle, HOUR / 8, 0, TWHEEL_LIMIT_IDLE));
	after = now_ns();
	ASSERT_EQ(TWHEEL_LIMIT_IDLE, next_limit(self->fd, handle, &deadline));
	EXPECT_LE(before + HOUR / 8, deadline);
	EXPECT_GE(after + HOUR / 8, deadline);
	/* It has this length from now on. */
	before = now_ns();
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_active(self->fd, handle));
	after = now_ns();
	ASSERT_EQ(TWHEEL_LIMIT_IDLE, next_limit(self->fd, handle, &deadline));
	EXPECT_LE(before + HOUR / 8, deadline);
	EXPECT_GE(after + HOUR / 8, deadline);
}

TEST_F(limits, taken_away_but_for_the_last)
{
	static const enum twheel_limit orders[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	__u64 handle, deadline, before;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		ASSERT_EQ(0, add_limits(self->fd, HOUR, HOUR + SEC, HOUR + 2 * SEC, 1, &handle));
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  wh_rearm_limit(self->fd, handle, NONE, 0, orders[i][0]));
		/* Removing a limit twice is no error as long as there is another limit. */
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  wh_rearm_limit(self->fd, handle, NONE, 0, orders[i][0]));
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  wh_rearm_limit(self->fd, handle, NONE, 0, orders[i][1]));
		EXPECT_EQ((int)orders[i][2], next_limit(self->fd, handle, &before));
		EXPECT_EQ(-EINVAL, wh_rearm_limit(self->fd, handle, NONE, 0, orders[i][2]));
		EXPECT_EQ((int)orders[i][2], next_limit(self->fd, handle, &deadline));
		EXPECT_EQ(before, deadline);
		if (orders[i][2] != TWHEEL_LIMIT_IDLE)
			EXPECT_EQ(-EINVAL, wh_active(self->fd, handle));
		/* The timer can be given any other limit. */
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  wh_rearm_limit(self->fd, handle, 10 * MSEC, 0, orders[i][0]));
		expect_reason(_metadata, self->fd, handle, orders[i][0]);
	}
}

/* A limit that was removed cannot fire, even if the timer was enqueued for it. */
TEST_F(limits, taken_away_in_the_last_moment)
{
	__u64 handle, witness;
	struct twheel_event event;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, add_limits(self->fd, 5 * MSEC, HOUR, 0, 1, &handle));
		sleep_ns(random_below(4 * MSEC));
		ASSERT_LE(0, wh_rearm(self->fd, handle, NONE, 0));
		ASSERT_EQ(0, wh_add(self->fd, 8 * MSEC, 0, 2, &witness));
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EQ(witness, event.handle);
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
	}
}

TEST_F(limits, contradictions)
{
	__u64 handle, deadline, before;

	ASSERT_EQ(0, add_limits(self->fd, HOUR, 2 * HOUR, 0, 1, &handle));
	ASSERT_EQ(TWHEEL_LIMIT_DEADLINE, next_limit(self->fd, handle, &before));
	/* Activity takes no time, and is only for the idle timeout. */
	EXPECT_EQ(-EINVAL, wh_rearm_limit(self->fd, handle, 1, TWHEEL_ACTIVE, TWHEEL_LIMIT_IDLE));
	EXPECT_EQ(-EINVAL, wh_rearm_limit(self->fd, handle, NONE, TWHEEL_ACTIVE,
					  TWHEEL_LIMIT_IDLE));
	EXPECT_EQ(-EINVAL, wh_rearm_limit(self->fd, handle, 0, TWHEEL_ACTIVE,
					  TWHEEL_LIMIT_DEADLINE));
	EXPECT_EQ(-EINVAL, wh_rearm_limit(self->fd, handle, 0, TWHEEL_ACTIVE,
					  TWHEEL_LIMIT_LIFETIME));
	/* A length cannot be absolute. */
	EXPECT_EQ(-EINVAL, wh_rearm_limit(self->fd, handle, HOUR, ABS, TWHEEL_LIMIT_IDLE));
	EXPECT_EQ(-EOPNOTSUPP, wh_rearm_limit(self->fd, handle, HOUR, 0, 3));
	EXPECT_EQ(-EOPNOTSUPP, wh_rearm_limit(self->fd, handle, HOUR, 0, ~0U));
	EXPECT_EQ(TWHEEL_LIMIT_DEADLINE, next_limit(self->fd, handle, &deadline));
	EXPECT_EQ(before, deadline);
}

/* With another limit, neither a deadline nor its clock need be given. */
TEST_F(limits, no_deadline_need_be_given)
{
	struct twheel_timer_add adds[] = {
		{ .idle = 20 * MSEC },
		{ .lifetime = 20 * MSEC },
		{ .idle = HOUR, .lifetime = 20 * MSEC, .clock = CLOCK_MONOTONIC },
		{ .idle = 20 * MSEC, .lifetime = HOUR, .time = NONE },
		{ .idle = 20 * MSEC, .flags = TWHEEL_KEYED, .key = 1 },
	};
	enum twheel_limit limits[] = { TWHEEL_LIMIT_IDLE, TWHEEL_LIMIT_LIFETIME,
				       TWHEEL_LIMIT_LIFETIME, TWHEEL_LIMIT_IDLE,
				       TWHEEL_LIMIT_IDLE };
	struct twheel_timer_query query;
	__u64 before;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(adds); i++) {
		before = now_ns();
		ASSERT_LE(0, wh_add_timer(self->fd, &adds[i])) TH_LOG("add %zu", i);
		ASSERT_EQ(0, wh_query(self->fd, adds[i].handle, &query));
		EXPECT_EQ(limits[i], query.limit) TH_LOG("add %zu", i);
		EXPECT_EQ(CLOCK_MONOTONIC, query.clock);
		EXPECT_LE(before + 20 * MSEC, query.deadline);
		EXPECT_GE(now_ns() + 20 * MSEC, query.deadline);
		EXPECT_EQ(query.deadline, expect_reason(_metadata, self->fd, adds[i].handle,
							limits[i]));
	}
}

/* A deadline that is given with another limit counts. */
TEST_F(limits, a_deadline_that_is_given)
{
	struct twheel_timer_add add = { .flags = ABS, .clock = CLOCK_MONOTONIC, .idle = HOUR };

	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	EXPECT_EQ(0, expect_reason_again(_metadata, self->fd, add.handle, TWHEEL_LIMIT_DEADLINE,
					 now_ns()));
	/* Not 0, which means no deadline. */
	add.flags = 0;
	add.time = 1;
	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	expect_reason_again(_metadata, self->fd, add.handle, TWHEEL_LIMIT_DEADLINE, now_ns());
	add.clock = CLOCK_REALTIME;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	add.flags = ABS;
	add.time = 0;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	add.time = NONE;
	add.clock = CLOCK_BOOTTIME;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
}

TEST_F(limits, no_deadline_in_an_array)
{
	struct twheel_op op = { .opcode = TWHEEL_OP_ADD, .idle = 20 * MSEC }, copy;

	copy = op;
	ASSERT_EQ(1, wh_submit(self->fd, &op, 1, sizeof(op), 0));
	copy.handle = op.handle;
	EXPECT_EQ(0, memcmp(&copy, &op, sizeof(op)));
	expect_reason(_metadata, self->fd, op.handle, TWHEEL_LIMIT_IDLE);
}

/* By key as well. */
TEST_F(limits, activity_by_key)
{
	struct twheel_timer_add add = {
		.time	= NONE,
		.flags	= TWHEEL_KEYED,
		.clock	= CLOCK_MONOTONIC,
		.key	= 77,
		.idle	= HOUR,
	};
	__u64 before, after, deadline;

	ASSERT_EQ(TWHEEL_WAS_ABSENT, wh_add_timer(self->fd, &add));
	sleep_ns(2 * MSEC);
	before = now_ns();
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  wh_rearm_limit(self->fd, 77, 0, TWHEEL_ACTIVE | TWHEEL_BY_KEY,
				 TWHEEL_LIMIT_IDLE));
	after = now_ns();
	ASSERT_EQ(TWHEEL_LIMIT_IDLE, next_limit(self->fd, add.handle, &deadline));
	EXPECT_LE(before + HOUR, deadline);
	EXPECT_GE(after + HOUR, deadline);
}

/**
 * struct model - what the test knows about a timer
 * @handle:	its handle
 * @idle:	the idle timeout
 * @begin:	when the idle timeout started, at the earliest and at the latest
 * @limits:	the deadline, and the end of its lifetime, at the earliest and at the latest
 * @fired:	its event was read
 */
struct model {
	__u64	handle;
	__u64	idle;
	__u64	begin[2];
	__u64	limits[3][2];
	bool	fired;
};

static void model_event(struct __test_metadata *_metadata, struct model *model,
			const struct twheel_event *event)
{
	const __u64 *limit = model->limits[event->reason];
	int i;

	ASSERT_EQ(false, model->fired);
	model->fired = true;
	ASSERT_EQ(model->handle, event->handle);
	ASSERT_LE(event->deadline, event->fired);
	model->limits[TWHEEL_LIMIT_IDLE][0] = model->begin[0] + model->idle;
	model->limits[TWHEEL_LIMIT_IDLE][1] = model->begin[1] + model->idle;
	EXPECT_LE(limit[0], event->deadline);
	EXPECT_GE(limit[1], event->deadline);
	/* No other limit is earlier. */
	for (i = 0; i < 3; i++)
		EXPECT_LE(event->deadline, model->limits[i][1]) TH_LOG("limit %d", i);
}

TEST_F_TIMEOUT(limits, against_a_model, 60)
{
	enum { N = 1500, SPAN = 400 * MSEC };
	static struct model models[N];
	struct twheel_event events[64];
	__u64 before, end = now_ns() + SEC, time, lifetime;
	unsigned int active = 0, reasons[3] = { };
	size_t i, left = N;
	int n, k, ret;

	for (i = 0; i < N; i++) {
		time = random_below(4) ? MSEC + random_below(2 * SPAN) : NONE;
		lifetime = random_below(4) ? MSEC + random_below(2 * SPAN) : 0;
		models[i].idle = MSEC + random_below(SPAN);
		before = now_ns();
		ASSERT_EQ(0, add_limits(self->fd, time, models[i].idle, lifetime, i,
					&models[i].handle));
		models[i].begin[0] = before;
		models[i].begin[1] = now_ns();
		models[i].limits[0][0] = time == NONE ? NONE : before + time;
		models[i].limits[0][1] = time == NONE ? NONE : now_ns() + time;
		models[i].limits[2][0] = lifetime ? before + lifetime : NONE;
		models[i].limits[2][1] = lifetime ? now_ns() + lifetime : NONE;
	}
	while (left) {
		i = random_below(N);
		if (now_ns() < end && !models[i].fired) {
			before = now_ns();
			ret = wh_active(self->fd, models[i].handle);
			ASSERT_LE(0, ret);
			models[i].begin[0] = before;
			models[i].begin[1] = now_ns();
			active++;
		} else if (now_ns() >= end) {
			ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("%zu never fired", left);
		}
		n = wh_read(self->fd, events, 64);
		for (k = 0; k < n; k++) {
			ASSERT_GT(N, events[k].user_data);
			ASSERT_GT(3, events[k].reason);
			model_event(_metadata, &models[events[k].user_data], &events[k]);
			reasons[events[k].reason]++;
		}
		left -= n > 0 ? n : 0;
	}
	printf("# active %u times; %u, %u, %u expired of each limit\n", active, reasons[0],
	       reasons[1], reasons[2]);
	for (k = 0; k < 3; k++)
		EXPECT_LT(0, reasons[k]);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_HARNESS_MAIN
