// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers that watch connections: what counts as activity, what is done to a connection, and when a
 * timer ends without an event.
 */
#include <sys/wait.h>

#include "watch_test.h"

#include "late_workers.h"

/* Long enough for a program to do something in between, on a slow kernel. */
#define IDLE		(200 * MSEC)
/* A fraction of it. */
#define PAUSE		(IDLE / 5)

FIXTURE(watch)
{
	int fd;
	/* Connected to each other; the first one is watched. */
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
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, connection(variant->family, &self->here, &self->there));
}

FIXTURE_TEARDOWN(watch)
{
	EXPECT_EQ(0, close(self->fd));
	close(self->here);
	close(self->there);
}

TEST_F(watch, silence_is_noticed)
{
	__u64 before = now_ns(), after, handle;
	struct twheel_timer_query query;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_SENT, &handle));
	after = now_ns();
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, query.limit);
	EXPECT_EQ(TWHEEL_WATCHED | TWHEEL_WATCH_SENT, query.flags);
	EXPECT_LE(before + IDLE, query.deadline);
	EXPECT_GE(after + IDLE, query.deadline);
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(-EALREADY, wh_state(self->fd, handle));
	/* No action was requested, and none was taken. */
	EXPECT_TRUE(say(self->here, self->there));
	EXPECT_TRUE(say(self->there, self->here));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	/* The socket is free to be watched again. */
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, 0, NULL));
}

/* Connections that are watched for some kind of activity, and see that kind or another. */
static const struct {
	__u32 flags;
	bool speaks;	/* the watched end sends, not the other one */
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

/* Prints when a connection was active, and when it was found idle. */
static void print_habit(const struct habit *habit, const struct twheel_event *event)
{
	printf("# %llu was active from %llu to %llu, and before at %llu;", event->user_data,
	       habit->before, habit->after, habit->earlier);
	printf(" due at %llu, came at %llu\n", event->deadline, event->fired);
}

/* Records events. Returns what is wrong with one, or NULL. */
static const char *note_events(int fd, struct habit *habit)
{
	struct twheel_event event;

	while (wh_read(fd, &event, 1) == 1) {
		if (event.user_data >= HABITS || habit[event.user_data].over)
			return "whose event?";
		habit += event.user_data;
		print_habit(habit, &event);
		if (event.deadline < habit->before + IDLE && !was_due(habit, event.deadline))
			return "too early";
		/* The jiffy of the activity ends later than that, but by no more than a jiffy. */
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
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
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
	/* That was three times the limit. */
	for (i = 0; i < HABITS; i++) {
		if (!habits[i].lives)
			EXPECT_TRUE(habit[i].over) TH_LOG("%u", i);
	}
	while (!fault && wh_nr_timers(self->fd)) {
		ASSERT_TRUE(wh_wait(self->fd));
		fault = note_events(self->fd, habit);
	}
	EXPECT_EQ(NULL, fault) TH_LOG("%s", fault);
}

#define EXACT	50

/*
 * The idle timeout begins when the jiffy of the activity ends. If jiffies stand still for a while
 * because the host is busy, it may be cut short, but less than half of the time.
 */
TEST_F(watch, to_the_jiffy)
{
	__u64 before[EXACT], after[EXACT];
	const __u64 idle = 500 * MSEC;
	struct twheel_event event;
	struct twheel_timer_add add;
	int pair[EXACT][2], i, early = 0;

	/*
	 * Timers of the same jiffy are due at once, and the worker handles one after the other; it
	 * may have to wait for its processor, or for this process.
	 */
	punctual_allow(jiffy_ns());
	ASSERT_EQ(0, connections(variant->family, pair, EXACT));
	for (i = 0; i < EXACT; i++) {
		add = watch_add(pair[i][0], idle, TWHEEL_WATCH_RECEIVED);
		add.user_data = i;
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	}
	for (i = 0; i < EXACT; i++) {
		sleep_ns(MSEC);
		before[i] = now_ns();
		ASSERT_TRUE(say(pair[i][1], pair[i][0]));
		after[i] = now_ns();
	}
	for (i = 0; i < EXACT; i++) {
		ASSERT_TRUE(wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		ASSERT_GT(EXACT, event.user_data);
		early += event.deadline < before[event.user_data] + idle;
		EXPECT_GE(after[event.user_data] + idle + begins_within(), event.deadline);
	}
	EXPECT_GT(EXACT / 2, early);
}

/*
 * Activity after the timer has expired and before the worker has checked the connection: the idle
 * timeout starts over, which is counted, and the event is no later than others.
 */
TEST_F(watch, active_just_before_the_worker_looks)
{
	struct twheel_context_stats before, after;
	struct twheel_timer_query query;
	struct late_workers late;
	__u64 handle, active, due;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	/* The connection may have begun in the same jiffy. */
	due = now_ns() + IDLE + begins_within();
	sleep_ns(IDLE - 2 * PAUSE);
	ASSERT_EQ(true, hold_workers(&late));
	sleep_ns(due + 2 * MSEC - now_ns());
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);
	EXPECT_EQ(0, query.remaining);
	ASSERT_EQ(0, wh_stats(self->fd, &before));
	active = coarse_ns();
	EXPECT_TRUE(say(self->there, self->here));
	/* Once that jiffy has ended, no check is repeated. */
	sleep_ns(2 * jiffy_ns());
	ASSERT_EQ(true, let_workers_be(&late));
	EXPECT_EXPIRY(handle, active + IDLE, TWHEEL_LIMIT_IDLE);
	ASSERT_EQ(0, wh_stats(self->fd, &after));
	EXPECT_EQ(before.deferrals + 1, after.deferrals);
	EXPECT_EQ(1, after.expiries);
}

TEST_F(watch, shutdown)
{
	__u64 before = now_ns(), handle;
	char byte;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_SHUTDOWN, &handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	/* The action came before the event. */
	EXPECT_NE(TCP_ESTABLISHED, tcp_info(self->here).tcpi_state);
	EXPECT_EQ(0, recv(self->here, &byte, 1, 0));
	EXPECT_EQ(-1, send(self->here, &byte, 1, MSG_NOSIGNAL));
	EXPECT_EQ(EPIPE, errno);
	EXPECT_EQ(0, recv(self->there, &byte, 1, 0));
}

TEST_F(watch, abort)
{
	__u64 before = now_ns(), handle;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_NE(TCP_ESTABLISHED, tcp_info(self->here).tcpi_state);
	ASSERT_TRUE(wait_tcp_state(self->here, TCP_CLOSE));
	ASSERT_TRUE(wait_tcp_state(self->there, TCP_CLOSE));
	EXPECT_EQ(ETIMEDOUT, socket_error(self->here));
	EXPECT_EQ(ECONNRESET, socket_error(self->there));
}

/* Both ends can be watched. Data that was received can still be read. */
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
	EXPECT_EQ(-ENOENT, wh_state(self->fd, handle));
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
	/* A probe was answered. */
	EXPECT_GT(1500, tcp_info(self->there).tcpi_last_ack_recv);
}

TEST_F(watch, first_of_several_limits)
{
	struct twheel_timer_add add = watch_add(self->here, HOUR, TWHEEL_WATCH_SHUTDOWN);
	__u64 before = now_ns();

	add.lifetime = IDLE;
	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	ASSERT_TRUE(say(self->there, self->here));
	EXPECT_EXPIRY(add.handle, before + IDLE, TWHEEL_LIMIT_LIFETIME);
	EXPECT_TRUE(wait_tcp_state(self->there, TCP_CLOSE_WAIT));
	/* The other end is closed by its peer only. */
	add = watch_add(self->there, 0, TWHEEL_WATCH_SHUTDOWN);
	add.lifetime = HOUR;
	add.time = IDLE;
	before = now_ns();
	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	EXPECT_EXPIRY(add.handle, before + IDLE, TWHEEL_LIMIT_DEADLINE);
	EXPECT_TRUE(wait_tcp_state(self->there, TCP_CLOSE));
}

TEST_F(watch, rearm)
{
	__u64 before, handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_active(self->fd, handle));
	EXPECT_EQ(-EINVAL, wh_rearm_limit(self->fd, handle, TWHEEL_TIME_MAX, 0,
					  TWHEEL_LIMIT_IDLE));
	EXPECT_EQ(-EINVAL, wh_rearm_limit(self->fd, handle, TWHEEL_TIME_NONE, 0,
					  TWHEEL_LIMIT_IDLE));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm_limit(self->fd, handle, HOUR, 0,
						     TWHEEL_LIMIT_LIFETIME));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm_limit(self->fd, handle, TWHEEL_TIME_NONE, 0,
						     TWHEEL_LIMIT_IDLE));
	before = now_ns();
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm_limit(self->fd, handle, IDLE, 0,
						     TWHEEL_LIMIT_IDLE));
	ASSERT_TRUE(wh_wait(self->fd));
	/* The action cannot be undone: only the event can be taken back. */
	EXPECT_EQ(-ENOTCONN, wh_active(self->fd, handle));
	EXPECT_EQ(-ENOTCONN, wh_rearm(self->fd, handle, HOUR, 0));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, wh_state(self->fd, handle));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
}

TEST_F(watch, cancel)
{
	struct twheel_context_stats stats;
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
	EXPECT_EQ(-ENOENT, wh_state(self->fd, handle));
	sleep_ns(2 * IDLE);
	EXPECT_TRUE(say(self->here, self->there));
	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_TRUE(wh_wait(self->fd));
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, handle));
	EXPECT_FALSE(wh_ready(self->fd));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(2, stats.cancels);
	EXPECT_EQ(1, stats.expiries);
	EXPECT_EQ(1, stats.taken_back);
	EXPECT_EQ(0, stats.ended);
}

/* An epoll instance is waited for so many times that waking all waiters takes a while. */
#define ENTRIES	60000

/* Waits for it that many times, for an event that never comes. */
static void *poll_many_times(void *arg)
{
	const int n = very_many() < ENTRIES ? very_many() : ENTRIES;
	struct pollfd *fds = calloc(n, sizeof(*fds));
	int i;

	for (i = 0; fds && i < n; i++)
		fds[i] = (struct pollfd){ .fd = *(int *)arg, .events = POLLPRI };
	if (fds)
		poll(fds, n, -1);
	free(fds);
	return NULL;
}

/*
 * A cancel while the connection is being shut down: the timer has expired, although its event does
 * not exist yet, and counts as one whose event was taken back. The worker that shuts it down is on
 * another CPU: on this one, nothing else would run before that is over.
 */
TEST_F(watch, cancel_in_the_action)
{
	struct twheel_context_stats stats;
	char everywhere[64];
	pthread_t thread;
	int list[2], epoll;
	__u64 handle;

	if (cpus(list, ARRAY_SIZE(list)) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, many_files());
	epoll = wh_epoll(self->here, EPOLLPRI);
	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_many_times, &epoll));
	ASSERT_EQ(0, pin(list[0]));
	ASSERT_TRUE(keep_workers_on(list[1], everywhere, sizeof(everywhere)));
	sleep_ns(SEC);
	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_SHUTDOWN, &handle));
	EXPECT_EQ(0, hear(self->there));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, wh_state(self->fd, handle));
	/* On a slow kernel or host, the shutdown may be over by now. */
	EXPECT_GE(simulated() && very_many() >= ENTRIES ? 0 : 1, wh_nr_events(self->fd));
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, handle));
	EXPECT_TRUE(wait_timers(self->fd, 0));
	EXPECT_FALSE(wh_ready(self->fd));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(1, stats.cancels);
	EXPECT_EQ(1, stats.expiries);
	EXPECT_EQ(1, stats.taken_back);
	EXPECT_TRUE(text_write(WORKERS_CPUS, everywhere));
	close(epoll);
}

TEST_F(watch, drain)
{
	struct twheel_timer_query record;
	__u64 handle, cursor = 0;

	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(1, wh_drain(self->fd, &record, 1, sizeof(record), &cursor));
	EXPECT_EQ(handle, record.handle);
	EXPECT_EQ(TWHEEL_WATCHED | TWHEEL_WATCH_ABORT, record.flags);
	EXPECT_EQ(0, wh_drain(self->fd, &record, 1, sizeof(record), &cursor));
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, 0, &handle));
}

TEST_F(watch, close_of_the_context)
{
	int other = wh_open(0);

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
	/* The connection still works. */
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

/* Changes to another user and closes contexts, of which nothing may be left then. */
static int close_as_another_user(int sock)
{
	int fd[50], i;

	for (i = 0; i < 50; i++)
		fd[i] = wh_open(0);
	if (setresuid(1000, 1000, 1000))
		return 1;
	for (i = 0; i < 50; i++)
		if (watch(fd[i], sock, HOUR, 0, NULL) || close(fd[i]))
			return 2;
	return 0;
}

TEST_F(watch, closed_by_who_has_become_another_user)
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(close_as_another_user(self->here));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

/* A connection closed by its peer is still watched, until it is closed on this side, too. */
TEST_F(watch, half_closed)
{
	__u64 handle;

	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, shutdown(self->there, SHUT_WR));
	ASSERT_TRUE(wait_tcp_state(self->here, TCP_CLOSE_WAIT));
	sleep_ns(PAUSE);
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle));
	EXPECT_TRUE(say(self->here, self->there));
	ASSERT_EQ(0, shutdown(self->here, SHUT_WR));
	EXPECT_ENDED(handle);
}

TEST_HARNESS_MAIN
