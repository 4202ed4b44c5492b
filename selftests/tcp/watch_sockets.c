// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers that watch connections: which sockets can be watched, by which calls, and what happens to
 * a timer when a file descriptor is closed or passed on, or its process ends.
 */
#include <sys/wait.h>

#include "watch_test.h"

/* Long enough for a program to do something in between, on a slow kernel. */
#define IDLE		(200 * MSEC)
/* A fraction of it. */
#define PAUSE		(IDLE / 5)

FIXTURE(watched)
{
	int fd;
	int here;
	int there;
};

FIXTURE_SETUP(watched)
{
	ASSERT_EQ(0, network());
	self->fd = wh_open(O_NONBLOCK);
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
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(watched, what_is_no_watch)
{
	const __u32 actions = TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT;
	struct twheel_timer_add add;
	__u32 flag;

	for (flag = TWHEEL_WATCH_RECEIVED; flag <= TWHEEL_WATCH_ABORT; flag <<= 1) {
		add = watch_add(0, HOUR, flag);
		add.flags &= ~TWHEEL_WATCHED;
		EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add)) TH_LOG("%x", flag);
	}
	EXPECT_EQ(-EOPNOTSUPP, watch(self->fd, self->here, HOUR, flag, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, HOUR, actions, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, HOUR, TWHEEL_TOUCHED, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, TWHEEL_TIME_MAX, 0, NULL));
	add = watch_add(self->here, 0, 0);
	add.time = HOUR;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	add = watch_add(self->here, HOUR, 0);
	add.clock = CLOCK_BOOTTIME;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	add = watch_add(self->here, HOUR, 0);
	add.period = HOUR;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	/* None of these calls has left anything behind. */
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, 0, NULL));
	EXPECT_EQ(-EBUSY, watch(self->fd, self->here, HOUR, 0, NULL));
	EXPECT_EQ(1, wh_nr_timers(self->fd));
}

/* The shortest idle timeout of a connection, when adding and when re-arming. */
TEST_F(watched, too_short)
{
	struct twheel_timer_rearm rearm = { .limit = TWHEEL_LIMIT_IDLE };
	struct twheel_timer_add add = watch_add(self->here, TWHEEL_IDLE_MIN - 1, 0);
	struct twheel_timer_query before, after;
	__u64 begin;

	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, 1, 0, NULL));
	EXPECT_EQ(-EINVAL, watch(self->fd, self->here, TWHEEL_IDLE_MIN - 1, 0, NULL));
	/* Nor together with a limit that is long enough. */
	add.lifetime = HOUR;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, 0, &rearm.handle));
	ASSERT_EQ(0, wh_query(self->fd, rearm.handle, &before));
	rearm.time = 1;
	EXPECT_EQ(-EINVAL, wh_rearm_timer(self->fd, &rearm));
	rearm.time = TWHEEL_IDLE_MIN - 1;
	EXPECT_EQ(-EINVAL, wh_rearm_timer(self->fd, &rearm));
	ASSERT_EQ(0, wh_query(self->fd, rearm.handle, &after));
	EXPECT_EQ(before.deadline, after.deadline);
	/* The shortest one is accepted. */
	begin = now_ns();
	rearm.time = TWHEEL_IDLE_MIN;
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm_timer(self->fd, &rearm));
	EXPECT_EXPIRY(rearm.handle, begin + TWHEEL_IDLE_MIN, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(0, watch(self->fd, self->here, TWHEEL_IDLE_MIN, 0, &rearm.handle));
}

TEST_F(watched, limit_of_the_context)
{
	struct twheel_setup setup = { .max_timers = 1 };
	int here, there;

	ASSERT_EQ(0, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
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
		WATCHES(sock, idle, flags),
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
	ASSERT_EQ(3, wh_submit(self->fd, ops, 5, sizeof(*ops), TWHEEL_SUBMIT_STOP));
	EXPECT_EQ(0, ops[0].result);
	EXPECT_EQ(0, ops[1].result);
	EXPECT_EQ(-EBUSY, ops[2].result);
	EXPECT_EQ(2, wh_nr_timers(self->fd));
	ASSERT_EQ(2, wh_submit(self->fd, &ops[3], 2, sizeof(*ops), 0));
	EXPECT_EQ(-EBADF, ops[3].result);
	EXPECT_EQ(0, ops[4].result);
	/* Without room for a limit. */
	*short_op = ops[1];
	ASSERT_EQ(1, wh_submit(self->fd, short_op, 1, TWHEEL_OP_SIZE_MIN, 0));
	EXPECT_EQ(-EINVAL, short_op->result);
	EXPECT_EXPIRY(ops[1].handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(2, wh_nr_timers(self->fd));
}

static int watch_key(int fd, __u64 key, int sock, __u64 idle, __u32 flags)
{
	struct twheel_timer_add add = watch_add(sock, idle, TWHEEL_KEYED | flags);

	add.key = key;
	return wh_add_timer(fd, &add);
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
	EXPECT_EQ(1, wh_nr_timers(self->fd));
	ASSERT_EQ(0, wh_query_key(self->fd, 1, &query));
	EXPECT_EQ(TWHEEL_KEYED | TWHEEL_WATCHED | TWHEEL_WATCH_ABORT, query.flags);
	EXPECT_LT(HOUR, query.remaining);
	/* To another connection. */
	EXPECT_EQ(TWHEEL_WAS_PENDING, watch_key(self->fd, 1, here, HOUR, 0));
	EXPECT_EQ(TWHEEL_WAS_ABSENT, watch_key(self->fd, 2, self->here, HOUR, 0));
	/* Not to one that already has a timer: nothing changes. */
	EXPECT_EQ(-EBUSY, watch_key(self->fd, 1, self->here, HOUR, 0));
	EXPECT_EQ(-EBUSY, watch_key(self->fd, 3, here, HOUR, 0));
	EXPECT_EQ(2, wh_nr_timers(self->fd));
	/* To a timer that watches nothing, and back. */
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_set(self->fd, 1, HOUR, 0, 0, NULL));
	EXPECT_EQ(TWHEEL_WAS_ABSENT, watch_key(self->fd, 3, here, HOUR, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel_key(self->fd, 3));
	before = now_ns();
	EXPECT_EQ(TWHEEL_WAS_PENDING, watch_key(self->fd, 1, here, IDLE, 0));
	EXPECT_EQ(2, wh_nr_timers(self->fd));
	ASSERT_EQ(0, wh_query_key(self->fd, 1, &query));
	EXPECT_EXPIRY(query.handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_EQ(TWHEEL_WAS_ABSENT, watch_key(self->fd, 1, here, IDLE, 0));
	/* Its event is taken back. */
	ASSERT_TRUE(wh_wait(self->fd));
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, watch_key(self->fd, 1, here, HOUR, 0));
	EXPECT_FALSE(wh_ready(self->fd));
	ASSERT_EQ(0, close(self->here));
	EXPECT_TRUE(wait_timers(self->fd, 1));
	EXPECT_EQ(-ENOENT, wh_query_key(self->fd, 2, &query));
}

/* The socket is watched, not its file descriptor. */
TEST_F(watched, file_descriptors)
{
	int here, there, copy = dup(self->here);
	__u64 handle, before = now_ns();

	ASSERT_GE(copy, 0);
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	ASSERT_EQ(0, watch(self->fd, self->here, IDLE, TWHEEL_WATCH_ABORT, &handle));
	EXPECT_EQ(-EBUSY, watch(self->fd, copy, IDLE, 0, NULL));
	/* Now the descriptor refers to another connection. */
	ASSERT_EQ(self->here, dup2(here, self->here));
	EXPECT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, NULL));
	EXPECT_EXPIRY(handle, before + IDLE, TWHEEL_LIMIT_IDLE);
	EXPECT_TRUE(wait_tcp_state(copy, TCP_CLOSE));
	EXPECT_TRUE(say(here, there));
	EXPECT_EQ(1, wh_nr_timers(self->fd));
}

static int wait_child(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child ? status : -1;
}

/* A child has a connection of its own, and exits or is killed by a signal. */
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
		EXPECT_EQ(killed ? SIGKILL : 0, wait_child(child));
		EXPECT_TRUE(wait_timers(self->fd, 0));
	}
}

/* The socket is passed to a program that knows nothing of the timer. */
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
	/* It has reached the end of its input. */
	EXPECT_EQ(0, wait_child(child));
}

static int pass_fd(int through, int fd)
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

/* As long as a socket is in a message that has not been read, it is open. */
TEST_F(watched, in_flight)
{
	__u64 handle;
	int pair[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ASSERT_EQ(0, watch(self->fd, self->here, HOUR, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, pass_fd(pair[0], self->here));
	ASSERT_EQ(0, close(self->here));
	sleep_ns(PAUSE);
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle));
	ASSERT_EQ(0, close(pair[0]));
	ASSERT_EQ(0, close(pair[1]));
	EXPECT_ENDED(handle);
}

#define CROWD	1500

/* The number of TCP sockets in memory, or POISON if the kernel does not provide it. */
static __u64 nr_tcp_socks(void)
{
	FILE *file = fopen("/proc/slabinfo", "r"), *shrink;
	unsigned long active, all;
	__u64 found = POISON;
	char line[512];

	if (!file)
		return POISON;
	/* Without this, free ones in slabs may be counted as in use. */
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
TEST_F_TIMEOUT(watched, a_crowd, 120)
{
	static int pair[CROWD][2], events[CROWD];
	/* Fewer on a slow kernel: half of them must be heard from in time. */
	const unsigned int n = very_many() < 100000 ? CROWD / 5 : CROWD;
	const __u64 socks = nr_tcp_socks();
	struct twheel_context_stats stats;
	struct twheel_event event;
	struct twheel_timer_add add;
	unsigned int i, silent = 0;
	__u64 last = 0, begin, idle;

	/* Closing a connection takes longer than anything else that is done for a timer. */
	punctual_off();
	ASSERT_EQ(0, many_files());
	begin = now_ns();
	ASSERT_EQ(0, connections(AF_INET, pair, n));
	/* The first one is this old by now, and will be twice as old before it is heard from. */
	idle = 1500 * MSEC + 4 * (now_ns() - begin);
	for (i = 0; i < n; i++) {
		add = watch_add(pair[i][0], idle, TWHEEL_WATCH_ABORT);
		add.user_data = i;
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	}
	sleep_ns(idle / 2);
	for (i = 0; i < n; i += 2) {
		last = last ?: coarse_ns();
		ASSERT_TRUE(say(pair[i][1], pair[i][0]));
	}
	while (silent < n / 2) {
		ASSERT_TRUE(wh_wait(self->fd));
		while (wh_read(self->fd, &event, 1) == 1) {
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
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(n, stats.expiries + stats.ended);
	/* No timer keeps a socket in memory. Some free ones, in a CPU's slabs, are counted. */
	for (i = 0; socks != POISON && i < 200 && nr_tcp_socks() > socks + n / 4; i++)
		sleep_ns(10 * MSEC);
	if (socks != POISON)
		EXPECT_GE(socks + n / 4, nr_tcp_socks());
}

TEST_HARNESS_MAIN
