// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers that watch connections: what is activity, what is done to a connection, and when a timer
 * ends without a word. Races are in watch_races.c.
 */
#include <sys/un.h>

#include "watch_test.h"

/* Long enough for a program to do something in between, on a slow kernel. */
#define IDLE		(200 * MSEC)
/* A part of it. */
#define PAUSE		(IDLE / 5)

FIXTURE(watch)
{
	int fd;
	/* Connected with each other; the first one is watched. */
	int here;
	int there;
};

FIXTURE_VARIANT(watch)
{
	int family;
};

FIXTURE_VARIANT_ADD(watch, ipv4) { .family = AF_INET };
FIXTURE_VARIANT_ADD(watch, ipv6) { .family = AF_INET6 };

FIXTURE_SETUP(watch)
{
	ASSERT_EQ(0, network());
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, connection(variant->family, &self->here, &self->there));
}

FIXTURE_TEARDOWN(watch)
{
	EXPECT_EQ(0, close(self->fd));
	close(self->here);
	close(self->there);
}

/* Waits for the one event that there is to be, and checks it. */
static const char *expiry(int fd, __u64 handle, __u64 not_before, __u32 reason)
{
	struct twheel_event event[2];

	if (!tw_wait(fd))
		return "no event";
	if (tw_read(fd, event, 2) != 1)
		return "not one event";
	if (event->handle != handle || event->user_data != USER_DATA)
		return "another timer's event";
	if (event->reason != reason)
		return "wrong reason";
	if (event->deadline < not_before)
		return "before the limit";
	if (event->fired < event->deadline || event->fired > now_ns())
		return "wrong time";
	return event->overruns ? "overruns" : NULL;
}

#define EXPECT_EXPIRY(handle, not_before, reason) do {			\
	const char *__fault = expiry(self->fd, handle, not_before, reason); \
									\
	EXPECT_EQ(NULL, __fault) TH_LOG("%s", __fault);			\
} while (0)

/* The timer is gone, and there was no event. */
#define EXPECT_ENDED(handle) do {					\
	struct twheel_context_stats __stats;				\
									\
	EXPECT_TRUE(wait_timers(self->fd, 0));				\
	EXPECT_EQ(-ENOENT, tw_state(self->fd, handle));			\
	EXPECT_FALSE(tw_ready(self->fd));				\
	ASSERT_EQ(0, tw_stats(self->fd, &__stats));			\
	EXPECT_EQ(1, __stats.ended);					\
	EXPECT_EQ(0, __stats.expiries);					\
	EXPECT_EQ(0, __stats.cancels);					\
} while (0)

TEST_F(watch, silence_is_noticed)
{
	__u64 before = now_ns(), after, handle;
	struct twheel_timer_query query;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_SENT, &handle));
	after = now_ns();
	ASSERT_EQ(0, tw_query(self->fd, handle, &query));
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, query.limit);
	EXPECT_EQ(TWHEEL_WATCHED | TWHEEL_WATCH_SENT, query.flags);
	EXPECT_LE(before + IDLE, query.deadline);
	EXPECT_GE(after + IDLE, query.deadline);
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(-EALREADY, tw_state(self->fd, handle));
	/* Nothing was asked for, and nothing was done. */
	EXPECT_TRUE(say(self->here, self->there));
	EXPECT_TRUE(say(self->there, self->here));
	EXPECT_EQ(0, tw_nr_timers(self->fd));
	/* The socket is nobody's now. */
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, 0, NULL));
}

/* Connections that are watched for something, and have it happen, or something else. */
static const struct {
	__u32 flags;
	bool speaks;	/* the watched end does, not the other one */
	bool lives;
} habits[] = {
	{ TWHEEL_WATCH_RECEIVED, false, true },
	{ TWHEEL_WATCH_RECEIVED, true, false },
	{ TWHEEL_WATCH_SENT, true, true },
	{ TWHEEL_WATCH_SENT, false, false },
	{ 0, false, true },
	{ 0, true, true },
	{ TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT, true, true },
};

#define HABITS	ARRAY_SIZE(habits)

struct habit {
	__u64 before;	/* the last activity, or the add */
	__u64 after;
	__u64 earlier;	/* the activity before that */
	bool over;
};

/* Was it due before the last activity, which came too late? */
static bool was_due(const struct habit *habit, __u64 deadline)
{
	return deadline >= habit->earlier + IDLE && deadline <= habit->after;
}

/* Takes note of events. Returns what is wrong with one, or NULL. */
static const char *note_events(int fd, struct habit *habit)
{
	struct twheel_event event;

	while (tw_read(fd, &event, 1) == 1) {
		if (event.user_data >= HABITS || habit[event.user_data].over)
			return "whose event?";
		habit += event.user_data;
		if (event.deadline < habit->before + IDLE && !was_due(habit, event.deadline))
			return "too early";
		/* The jiffy of the activity ends later than that, but not by more than a jiffy. */
		if (event.deadline > habit->after + IDLE + begins_within())
			return "too late";
		habit->over = true;
		habit -= event.user_data;
	}
	return NULL;
}

TEST_F(watch, activity_is_what_is_asked_for)
{
	struct twheel_timer_add add;
	struct habit habit[HABITS];
	int pair[HABITS][2], round;
	const char *fault = NULL;
	unsigned int i;

	ASSERT_EQ(0, connections(variant->family, pair, HABITS));
	for (i = 0; i < HABITS; i++) {
		habit[i] = (struct habit) { .before = now_ns() };
		habit[i].earlier = habit[i].before;
		add = watch_add(pair[i][0], IDLE, habits[i].flags);
		add.user_data = i;
		ASSERT_EQ(0, tw_add_timer(self->fd, &add));
		habit[i].after = now_ns();
	}
	for (round = 0; round < 15 && !fault; round++) {
		sleep_ns(PAUSE);
		fault = note_events(self->fd, habit);
		for (i = 0; i < HABITS; i++) {
			__u64 before = coarse_ns();

			if (habit[i].over)
				continue;
			ASSERT_TRUE(say(pair[i][!habits[i].speaks], pair[i][habits[i].speaks]));
			if (!habits[i].lives)
				continue;
			habit[i].earlier = habit[i].before;
			habit[i].before = before;
			habit[i].after = now_ns();
		}
	}
	/* It was three times the limit. */
	for (i = 0; i < HABITS; i++) {
		if (!habits[i].lives)
			EXPECT_TRUE(habit[i].over) TH_LOG("%u", i);
	}
	while (!fault && tw_nr_timers(self->fd)) {
		ASSERT_TRUE(tw_wait(self->fd));
		fault = note_events(self->fd, habit);
	}
	EXPECT_EQ(NULL, fault) TH_LOG("%s", fault);
}

#define EXACT	50

/*
 * The idle timeout begins when the jiffy of the activity ends. Where jiffies stand still for
 * a while, as the host has other things to do, it may be cut short: not half of the time.
 */
TEST_F(watch, to_the_jiffy)
{
	__u64 before[EXACT], after[EXACT];
	const __u64 idle = 500 * MSEC;
	struct twheel_event event;
	struct twheel_timer_add add;
	int pair[EXACT][2], i, early = 0;

	ASSERT_EQ(0, connections(variant->family, pair, EXACT));
	for (i = 0; i < EXACT; i++) {
		add = watch_add(pair[i][0], idle, TWHEEL_WATCH_RECEIVED);
		add.user_data = i;
		ASSERT_EQ(0, tw_add_timer(self->fd, &add));
	}
	for (i = 0; i < EXACT; i++) {
		sleep_ns(MSEC);
		before[i] = now_ns();
		ASSERT_TRUE(say(pair[i][1], pair[i][0]));
		after[i] = now_ns();
	}
	for (i = 0; i < EXACT; i++) {
		ASSERT_TRUE(tw_wait(self->fd));
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		ASSERT_GT(EXACT, event.user_data);
		early += event.deadline < before[event.user_data] + idle;
		EXPECT_GE(after[event.user_data] + idle + begins_within(), event.deadline);
	}
	EXPECT_GT(EXACT / 2, early);
}

TEST_F(watch, shutdown)
{
	__u64 before = now_ns(), handle;
	char byte;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_SHUTDOWN, &handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	/* It was done before the event. */
	EXPECT_NE(TCP_ESTABLISHED, tcp_info(self->here).tcpi_state);
	EXPECT_EQ(0, recv(self->here, &byte, 1, 0));
	EXPECT_EQ(-1, send(self->here, &byte, 1, MSG_NOSIGNAL));
	EXPECT_EQ(EPIPE, errno);
	EXPECT_EQ(0, recv(self->there, &byte, 1, 0));
}

TEST_F(watch, abort)
{
	__u64 before = now_ns(), handle;
	int error;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_NE(TCP_ESTABLISHED, tcp_info(self->here).tcpi_state);
	ASSERT_TRUE(wait_tcp_state(self->here, TCP_CLOSE));
	ASSERT_TRUE(wait_tcp_state(self->there, TCP_CLOSE));
	EXPECT_EQ(ETIMEDOUT, socket_error(self->here));
	error = socket_error(self->there);
	/* The latter if there was a FIN before. */
	EXPECT_TRUE(error == ECONNRESET || error == EPIPE) TH_LOG("%d", error);
}

/* Both ends can be watched. What is received stays readable. */
TEST_F(watch, unread_data_is_not_lost)
{
	__u64 handle;
	char byte = 0;

	ASSERT_EQ(1, send(self->there, "x", 1, 0));
	ASSERT_EQ(0, watch(self->fd, self->there, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, NULL));
	ASSERT_TRUE(wait_tcp_state(self->here, TCP_CLOSE));
	EXPECT_EQ(1, recv(self->here, &byte, 1, 0));
	EXPECT_EQ('x', byte);
	ASSERT_TRUE(wait_timers(self->fd, 1));
	EXPECT_EQ(-ENOENT, tw_state(self->fd, handle));
}

TEST_F(watch, acks_are_no_life)
{
	const int one = 1;
	__u64 before, handle;

	ASSERT_EQ(0, setsockopt(self->there, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one)));
	ASSERT_EQ(0, setsockopt(self->there, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one)));
	ASSERT_EQ(0, setsockopt(self->there, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
	before = now_ns();
	ASSERT_EQ(0, watch(self->fd, self->here, 1600 * MSEC, 0, &handle));
	EXPECT_EXPIRY(handle, before + 1600 * MSEC, TWHEEL_LIMIT_IDLE);
	/* There was an answer to a probe. */
	EXPECT_GT(1500, tcp_info(self->there).tcpi_last_ack_recv);
}

TEST_F(watch, first_of_several_limits)
{
	struct twheel_timer_add add = watch_add(self->here, HOUR, TWHEEL_WATCH_SHUTDOWN);
	__u64 before = now_ns();

	add.lifetime = IDLE;
	ASSERT_EQ(0, tw_add_timer(self->fd, &add));
	ASSERT_TRUE(say(self->there, self->here));
	EXPECT_EXPIRY(add.handle, before + IDLE, TWHEEL_LIMIT_LIFETIME);
	EXPECT_TRUE(wait_tcp_state(self->there, TCP_CLOSE_WAIT));
	/* The other end is closed by its peer only. */
	add = watch_add(self->there, 0, TWHEEL_WATCH_SHUTDOWN);
	add.lifetime = HOUR;
	add.time = IDLE;
	before = now_ns();
	ASSERT_EQ(0, tw_add_timer(self->fd, &add));
	EXPECT_EXPIRY(add.handle, before + IDLE, TWHEEL_LIMIT_DEADLINE);
	EXPECT_TRUE(wait_tcp_state(self->there, TCP_CLOSE));
}

TEST_F(watch, rearm)
{
	__u64 before, handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_active(self->fd, handle));
	EXPECT_EQ(-EINVAL, tw_rearm_limit(self->fd, handle, TWHEEL_TIME_MAX, 0,
					  TWHEEL_LIMIT_IDLE));
	EXPECT_EQ(-EINVAL, tw_rearm_limit(self->fd, handle, TWHEEL_TIME_NONE, 0,
					  TWHEEL_LIMIT_IDLE));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm_limit(self->fd, handle, HOUR, 0,
						     TWHEEL_LIMIT_LIFETIME));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm_limit(self->fd, handle, TWHEEL_TIME_NONE, 0,
						     TWHEEL_LIMIT_IDLE));
	before = now_ns();
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm_limit(self->fd, handle, IDLE, 0,
						     TWHEEL_LIMIT_IDLE));
	ASSERT_TRUE(tw_wait(self->fd));
	/* What is done is done: only the event can be taken back. */
	EXPECT_EQ(-ENOTCONN, tw_active(self->fd, handle));
	EXPECT_EQ(-ENOTCONN, tw_rearm(self->fd, handle, HOUR, 0));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, tw_state(self->fd, handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
}

TEST_F(watch, cancel)
{
	struct twheel_context_stats stats;
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel(self->fd, handle));
	EXPECT_EQ(-ENOENT, tw_state(self->fd, handle));
	sleep_ns(2 * IDLE);
	EXPECT_TRUE(say(self->here, self->there));
	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_TRUE(tw_wait(self->fd));
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, tw_cancel(self->fd, handle));
	EXPECT_FALSE(tw_ready(self->fd));
	EXPECT_EQ(0, tw_nr_timers(self->fd));
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(2, stats.cancels);
	EXPECT_EQ(1, stats.expiries);
	EXPECT_EQ(1, stats.taken_back);
	EXPECT_EQ(0, stats.ended);
}

TEST_F(watch, drain)
{
	struct twheel_timer_query record;
	__u64 handle, cursor = 0;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(1, tw_drain(self->fd, &record, 1, sizeof(record), &cursor));
	EXPECT_EQ(handle, record.handle);
	EXPECT_EQ(TWHEEL_WATCHED | TWHEEL_WATCH_ABORT, record.flags);
	EXPECT_EQ(0, tw_drain(self->fd, &record, 1, sizeof(record), &cursor));
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, 0, &handle));
}

TEST_F(watch, close_of_the_context)
{
	int other = tw_open(0);

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, watch(other, self->here, IDLE, TWHEEL_WATCH_ABORT, NULL));
	EXPECT_EQ(-EBUSY, watch(self->fd, self->here, HOUR, 0, NULL));
	EXPECT_EQ(0, close(other));
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, 0, NULL));
	sleep_ns(2 * IDLE);
	EXPECT_TRUE(say(self->here, self->there));
}

TEST_F(watch, ends_when_closed)
{
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, close(self->here));
	EXPECT_ENDED(handle);
}

TEST_F(watch, ends_when_shut_down)
{
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, shutdown(self->here, SHUT_WR));
	EXPECT_ENDED(handle);
	EXPECT_EQ(-ENOTCONN, watch(self->fd, self->here, HOUR, 0, &handle));
	/* It is a connection still. */
	EXPECT_TRUE(say(self->there, self->here));
}

TEST_F(watch, ends_when_reset)
{
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, close(self->there));
	EXPECT_ENDED(handle);
	EXPECT_EQ(ECONNRESET, socket_error(self->here));
	EXPECT_EQ(-ENOTCONN, watch(self->fd, self->here, HOUR, 0, &handle));
}

TEST_F(watch, ends_when_disconnected)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, connect(self->here, &nobody, sizeof(nobody)));
	EXPECT_ENDED(handle);
}

/* Closed by its peer a connection is watched on, until it is closed here, too. */
TEST_F(watch, half_closed)
{
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, shutdown(self->there, SHUT_WR));
	ASSERT_TRUE(wait_tcp_state(self->here, TCP_CLOSE_WAIT));
	sleep_ns(PAUSE);
	EXPECT_EQ(TWHEEL_STATE_PENDING, tw_state(self->fd, handle));
	EXPECT_TRUE(say(self->here, self->there));
	ASSERT_EQ(0, shutdown(self->here, SHUT_WR));
	EXPECT_ENDED(handle);
}

/* What does not depend on the family. */
FIXTURE(watched)
{
	int fd;
	int here;
	int there;
};

FIXTURE_SETUP(watched)
{
	ASSERT_EQ(0, network());
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, connection(AF_INET, &self->here, &self->there));
}

FIXTURE_TEARDOWN(watched)
{
	EXPECT_EQ(0, close(self->fd));
	close(self->here);
	close(self->there);
}

TEST_F(watched, what_cannot_be_watched)
{
	struct sockaddr_storage address;
	int sock, pair[2];
	socklen_t length;

	sock = socket(AF_INET, SOCK_DGRAM, 0);
	EXPECT_EQ(-EOPNOTSUPP, watch(self->fd, sock, HOUR, 0, NULL));
	close(sock);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	EXPECT_EQ(-EOPNOTSUPP, watch(self->fd, pair[0], HOUR, 0, NULL));
	close(pair[0]);
	close(pair[1]);
	ASSERT_EQ(0, pipe(pair));
	EXPECT_EQ(-EOPNOTSUPP, watch(self->fd, pair[0], HOUR, 0, NULL));
	close(pair[0]);
	close(pair[1]);
	EXPECT_EQ(-EBADF, watch(self->fd, pair[0], HOUR, 0, NULL));
	EXPECT_EQ(-EBADF, watch(self->fd, -1, HOUR, 0, NULL));
	EXPECT_EQ(-EOPNOTSUPP, watch(self->fd, self->fd, HOUR, 0, NULL));
	sock = socket(AF_INET, SOCK_STREAM, 0);
	EXPECT_EQ(-ENOTCONN, watch(self->fd, sock, HOUR, 0, NULL));
	close(sock);
	sock = listener(AF_INET, &address, &length);
	ASSERT_GE(sock, 0);
	EXPECT_EQ(-ENOTCONN, watch(self->fd, sock, HOUR, 0, NULL));
	close(sock);
	EXPECT_EQ(0, tw_nr_timers(self->fd));
}

TEST_F(watched, what_is_no_watch)
{
	const __u32 actions = TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT;
	struct twheel_timer_add add;
	__u32 flag;

	for (flag = TWHEEL_WATCH_RECEIVED; flag <= TWHEEL_WATCH_ABORT; flag <<= 1) {
		add = watch_add(0, HOUR, flag);
		add.flags &= ~TWHEEL_WATCHED;
		EXPECT_EQ(-EINVAL, tw_add_timer(self->fd, &add)) TH_LOG("%x", flag);
	}
	EXPECT_EQ(-EOPNOTSUPP, watch(self->fd, self->here, HOUR, flag, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, HOUR, actions, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, HOUR, TWHEEL_TOUCHED, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, TWHEEL_TIME_MAX, 0, NULL));
	add = watch_add(self->here, 0, 0);
	add.time = HOUR;
	EXPECT_EQ(-EINVAL, tw_add_timer(self->fd, &add));
	add = watch_add(self->here, HOUR, 0);
	add.clock = CLOCK_REALTIME;
	EXPECT_EQ(-EINVAL, tw_add_timer(self->fd, &add));
	add = watch_add(self->here, HOUR, 0);
	add.period = HOUR;
	EXPECT_EQ(-EINVAL, tw_add_timer(self->fd, &add));
	EXPECT_EQ(0, tw_nr_timers(self->fd));
	/* None of these has left something behind. */
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, 0, NULL));
	EXPECT_EQ(-EBUSY, watch(self->fd, self->here, HOUR, 0, NULL));
	EXPECT_EQ(1, tw_nr_timers(self->fd));
}

TEST_F(watched, limit_of_the_context)
{
	struct twheel_setup setup = { .max_timers = 1 };
	int here, there;

	ASSERT_EQ(0, tw_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, 0, NULL));
	EXPECT_EQ(-ENOSPC, watch(self->fd, here, HOUR, 0, NULL));
	ASSERT_EQ(0, close(self->here));
	EXPECT_TRUE(wait_timers(self->fd, 0));
	EXPECT_EQ(0, watch(self->fd, here, HOUR, 0, NULL));
}

static struct twheel_op watch_op(int sock, __u64 idle, __u32 flags)
{
	return (struct twheel_op) {
		.opcode		= TWHEEL_OP_ADD,
		.time		= TWHEEL_TIME_NONE,
		.user_data	= USER_DATA,
		.flags		= TWHEEL_WATCHED | flags,
		.clock		= CLOCK_MONOTONIC,
		.idle		= idle,
		.touch		= sock,
	};
}

TEST_F(watched, arrays)
{
	struct twheel_op ops[5], short_op[1];
	const struct twheel_op plain = { .time = HOUR, .clock = CLOCK_MONOTONIC };
	__u64 before = now_ns();

	ops[0] = plain;
	ops[1] = watch_op(self->here, IDLE, TWHEEL_WATCH_SHUTDOWN);
	ops[2] = watch_op(self->here, IDLE, 0);
	ops[3] = watch_op(-1, IDLE, 0);
	ops[4] = plain;
	ASSERT_EQ(3, tw_submit(self->fd, ops, 5, sizeof(*ops), TWHEEL_SUBMIT_STOP));
	EXPECT_EQ(0, ops[0].result);
	EXPECT_EQ(0, ops[1].result);
	EXPECT_EQ(-EBUSY, ops[2].result);
	EXPECT_EQ(2, tw_nr_timers(self->fd));
	ASSERT_EQ(2, tw_submit(self->fd, &ops[3], 2, sizeof(*ops), 0));
	EXPECT_EQ(-EBADF, ops[3].result);
	EXPECT_EQ(0, ops[4].result);
	/* There is no room for a limit. */
	*short_op = ops[1];
	ASSERT_EQ(1, tw_submit(self->fd, short_op, 1, TWHEEL_OP_SIZE_MIN, 0));
	EXPECT_EQ(-EINVAL, short_op->result);
	EXPECT_EXPIRY(ops[1].handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(2, tw_nr_timers(self->fd));
}

static int watch_key(int fd, __u64 key, int sock, __u64 idle, __u32 flags)
{
	struct twheel_timer_add add = watch_add(sock, idle, TWHEEL_KEYED | flags);

	add.key = key;
	return tw_add_timer(fd, &add);
}

TEST_F(watched, keys)
{
	struct twheel_timer_query query;
	int here, there;
	__u64 before;

	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	EXPECT_EQ(TWHEEL_WAS_ABSENT, watch_key(self->fd, 1, self->here, HOUR, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, watch_key(self->fd, 1, self->here, 2 * HOUR,
						TWHEEL_WATCH_ABORT));
	EXPECT_EQ(1, tw_nr_timers(self->fd));
	ASSERT_EQ(0, tw_query_key(self->fd, 1, &query));
	EXPECT_EQ(TWHEEL_KEYED | TWHEEL_WATCHED | TWHEEL_WATCH_ABORT, query.flags);
	EXPECT_LT(HOUR, query.remaining);
	/* To another connection. */
	EXPECT_EQ(TWHEEL_WAS_PENDING, watch_key(self->fd, 1, here, HOUR, 0));
	EXPECT_EQ(TWHEEL_WAS_ABSENT, watch_key(self->fd, 2, self->here, HOUR, 0));
	/* Not to one that has a timer: nothing changes. */
	EXPECT_EQ(-EBUSY, watch_key(self->fd, 1, self->here, HOUR, 0));
	EXPECT_EQ(-EBUSY, watch_key(self->fd, 3, here, HOUR, 0));
	EXPECT_EQ(2, tw_nr_timers(self->fd));
	/* To a timer that watches nothing, and back. */
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_set(self->fd, 1, HOUR, 0, 0, NULL));
	EXPECT_EQ(TWHEEL_WAS_ABSENT, watch_key(self->fd, 3, here, HOUR, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel_key(self->fd, 3));
	before = now_ns();
	EXPECT_EQ(TWHEEL_WAS_PENDING, watch_key(self->fd, 1, here, IDLE, 0));
	EXPECT_EQ(2, tw_nr_timers(self->fd));
	ASSERT_EQ(0, tw_query_key(self->fd, 1, &query));
	EXPECT_EXPIRY(query.handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(TWHEEL_WAS_ABSENT, watch_key(self->fd, 1, here, IDLE, 0));
	/* Its event is taken back. */
	ASSERT_TRUE(tw_wait(self->fd));
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, watch_key(self->fd, 1, here, HOUR, 0));
	EXPECT_FALSE(tw_ready(self->fd));
	ASSERT_EQ(0, close(self->here));
	EXPECT_TRUE(wait_timers(self->fd, 1));
	EXPECT_EQ(-ENOENT, tw_query_key(self->fd, 2, &query));
}

/* It is the socket that is watched, not its file descriptor. */
TEST_F(watched, file_descriptors)
{
	int here, there, copy = dup(self->here);
	__u64 handle, before = now_ns();

	ASSERT_GE(copy, 0);
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EQ(-EBUSY, watch(self->fd, copy, IDLE, 0, NULL));
	/* The number is another connection's. */
	ASSERT_EQ(self->here, dup2(here, self->here));
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, NULL));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_TRUE(wait_tcp_state(copy, TCP_CLOSE));
	EXPECT_TRUE(say(here, there));
	EXPECT_EQ(1, tw_nr_timers(self->fd));
}

static int child_ends(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child ? status : -1;
}

/* A child has a connection of its own, and ends by itself or by a signal. */
TEST_F(watched, exit)
{
	int here, there, killed;
	pid_t child;

	for (killed = 0; killed < 2; killed++) {
		child = fork();
		ASSERT_GE(child, 0);
		if (!child) {
			if (network() || connection(AF_INET6, &here, &there) ||
			    watch(self->fd, here, HOUR, TWHEEL_WATCH_ABORT, NULL))
				_exit(1);
			if (killed)
				raise(SIGKILL);
			_exit(0);
		}
		EXPECT_EQ(killed ? SIGKILL : 0, child_ends(child));
		EXPECT_TRUE(wait_timers(self->fd, 0));
	}
}

/* The socket goes to a program that knows nothing of its timer. */
TEST_F(watched, exec)
{
	__u64 handle, before = now_ns();
	pid_t child;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_SHUTDOWN, &handle));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		/* As its standard input. */
		dup2(self->here, 0);
		execl("/bin/cat", "cat", NULL);
		_exit(1);
	}
	ASSERT_EQ(0, close(self->here));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	/* It has come to the end of its input. */
	EXPECT_EQ(0, child_ends(child));
}

static int pass_on(int through, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = {
		.cmsg_level	= SOL_SOCKET,
		.cmsg_type	= SCM_RIGHTS,
		.cmsg_len	= CMSG_LEN(sizeof(int)),
	} };
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct msghdr message = {
		.msg_iov	= &iov,
		.msg_iovlen	= 1,
		.msg_control	= &control,
		.msg_controllen	= sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(through, &message, 0) == 1 ? 0 : -errno;
}

/* As long as a socket is in a message that nobody has read it is open. */
TEST_F(watched, in_flight)
{
	__u64 handle;
	int pair[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, pass_on(pair[0], self->here));
	ASSERT_EQ(0, close(self->here));
	sleep_ns(PAUSE);
	EXPECT_EQ(TWHEEL_STATE_PENDING, tw_state(self->fd, handle));
	ASSERT_EQ(0, close(pair[0]));
	ASSERT_EQ(0, close(pair[1]));
	EXPECT_ENDED(handle);
}

#define CROWD	1500

/* Sockets of TCP that there are in memory, or POISON if the kernel does not tell. */
static __u64 tcp_socks(void)
{
	FILE *file = fopen("/proc/slabinfo", "r"), *shrink;
	unsigned long active, all;
	__u64 found = POISON;
	char line[512];

	if (!file)
		return POISON;
	/* Without that, slabs of free ones may count as if they were not. */
	shrink = fopen("/sys/kernel/slab/TCP/shrink", "w");
	if (shrink) {
		fputs("1", shrink);
		fclose(shrink);
	}
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "TCP %lu %lu", &active, &all) == 2)
			found = active;
	fclose(file);
	return found;
}

/* Every socket that falls silent is closed, once, and no other one. */
TEST_F(watched, a_crowd)
{
	static int pair[CROWD][2], events[CROWD];
	/* Fewer on a slow kernel: half of them are to be heard of in time. */
	const unsigned int n = very_many() < 100000 ? CROWD / 5 : CROWD;
	const __u64 idle = 1500 * MSEC, socks = tcp_socks();
	struct twheel_context_stats stats;
	struct twheel_event event;
	struct twheel_timer_add add;
	unsigned int i, silent = 0;
	__u64 last = 0;

	ASSERT_EQ(0, many_files());
	ASSERT_EQ(0, connections(AF_INET, pair, n));
	for (i = 0; i < n; i++) {
		add = watch_add(pair[i][0], idle, TWHEEL_WATCH_ABORT);
		add.user_data = i;
		ASSERT_EQ(0, tw_add_timer(self->fd, &add));
	}
	sleep_ns(idle / 2);
	for (i = 0; i < n; i += 2) {
		last = last ?: coarse_ns();
		ASSERT_TRUE(say(pair[i][1], pair[i][0]));
	}
	while (silent < n / 2) {
		ASSERT_TRUE(tw_wait(self->fd));
		while (tw_read(self->fd, &event, 1) == 1) {
			ASSERT_GT(n, event.user_data);
			events[event.user_data]++;
			silent += event.user_data % 2;
			if (!(event.user_data % 2))
				EXPECT_LE(last + idle, event.deadline);
		}
	}
	for (i = 1; i < n; i += 2) {
		EXPECT_EQ(1, events[i]);
		EXPECT_TRUE(wait_tcp_state(pair[i][1], TCP_CLOSE));
	}
	for (i = 0; i < n; i++) {
		close(pair[i][0]);
		close(pair[i][1]);
	}
	EXPECT_TRUE(wait_for_last(self->fd));
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(n, stats.expiries + stats.ended);
	/* No timer keeps a socket in memory. Some free ones count, those of a CPU's slabs. */
	for (i = 0; socks != POISON && i < 200 && tcp_socks() > socks + n / 4; i++)
		sleep_ns(10 * MSEC);
	if (socks != POISON)
		EXPECT_GE(socks + n / 4, tcp_socks());
}

TEST_HARNESS_MAIN
