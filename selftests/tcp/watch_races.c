// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched connections to which something happens at the very moment they are due: either it was in
 * time, or the connection is closed, and all calls agree on which.
 */
#include <sys/syscall.h>

#include "watch_test.h"

#include "late_memory.h"
#include "late_workers.h"

/* Connections per round. */
#define BATCH		100
/* The time from one becoming due to the next. */
#define STEP		(300 * USEC)
#define IDLE		(60 * MSEC)

/* The rounds of a race for this many tries; fewer on a slow kernel. */
static int nr_rounds(__u64 tries)
{
	int n = tries * very_many() / 100000 / BATCH;

	/* Enough to learn how to aim. */
	return n < 4 ? 4 : n;
}

FIXTURE(races)
{
	int fd;
	int pair[BATCH][2];
	__u64 handle[BATCH];
	/* When each of them is due if nothing happens. */
	__u64 due[BATCH];
	/* The deadlines of the events read so far, by @user_data. */
	__u64 expired[BATCH];
	/* Outcomes seen, to be sure that there was a race; and up to the previous round. */
	int early;
	int late;
	int early_before;
	int late_before;
	/* The aim: by how many nanoseconds something is delayed to make it a race. */
	__s64 shift;
};

FIXTURE_SETUP(races)
{
	random_seed();
	ASSERT_EQ(0, network());
	ASSERT_EQ(0, many_files());
	/* If many expire at once, the context's share of the softirq may not suffice. */
	punctual_allow(20 * MSEC);
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(races)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Makes connections that become due one after the other. */
static int begin_round(FIXTURE_DATA(races) * self, int family, __u32 flags)
{
	int ret = connections(family, self->pair, BATCH), i;
	__u64 start = now_ns();

	for (i = 0; i < BATCH && !ret; i++) {
		struct twheel_timer_add add = watch_add(self->pair[i][0], IDLE, flags);

		while (now_ns() < start + i * STEP)
			;
		add.user_data = i;
		self->due[i] = now_ns() + IDLE;
		ret = wh_add_timer(self->fd, &add);
		self->handle[i] = add.handle;
		self->expired[i] = 0;
	}
	return ret;
}

/* Waits until about the time when a connection is handled. */
static void wait_until_due(const FIXTURE_DATA(races) * self, int i)
{
	__u64 end = self->due[i] + self->shift - MSEC + random_below(4 * MSEC);

	if (end > now_ns() + 5 * MSEC)
		sleep_ns(end - now_ns() - 2 * MSEC);
	while (now_ns() < end)
		;
}

/* Closes what is left, and adjusts the aim for the next round. */
static void end_round(FIXTURE_DATA(races) * self)
{
	int early = self->early - self->early_before, late = self->late - self->late_before, i;

	self->shift += (early - late) * 2 * (__s64)MSEC / BATCH;
	self->early_before = self->early;
	self->late_before = self->late;
	for (i = 0; i < BATCH; i++) {
		close(self->pair[i][0]);
		close(self->pair[i][1]);
	}
}

/* Records the pending events. Returns how many, or -1 if one is wrong. */
static int note_events(FIXTURE_DATA(races) * self)
{
	struct twheel_event event;
	int n = 0;

	while (wh_read(self->fd, &event, 1) == 1) {
		if (event.user_data >= BATCH || self->expired[event.user_data] ||
		    event.handle != self->handle[event.user_data] ||
		    event.fired < event.deadline)
			return -1;
		self->expired[event.user_data] = event.deadline;
		n++;
	}
	return n;
}

/* Waits for the event of a connection. Returns whether it came, and nothing was wrong. */
static bool await_event(FIXTURE_DATA(races) * self, int i)
{
	while (!self->expired[i])
		if (!wh_wait(self->fd) || note_events(self) < 0)
			return false;
	return true;
}

/*
 * Data arrives at the moment of the action. If the kernel received it before the decision, the
 * program gets it, and the connection lives for another idle timeout; otherwise the connection is
 * closed, the program does not get the data, and the sender is notified.
 */
static void race_with_data(struct __test_metadata *_metadata, FIXTURE_DATA(races) * self,
			   int family, __u32 flags)
{
	__u64 sent[BATCH];
	int heard, i;

	ASSERT_EQ(0, begin_round(self, family, flags | TWHEEL_WATCH_RECEIVED));
	for (i = 0; i < BATCH; i++) {
		wait_until_due(self, i);
		sent[i] = coarse_ns();
		send(self->pair[i][1], "x", 1, MSG_NOSIGNAL);
	}
	for (i = 0; i < BATCH; i++) {
		heard = hear(self->pair[i][0]);
		if (heard == 1) {
			self->early++;
			if (say(self->pair[i][0], self->pair[i][1]))
				continue;
			/* It has been idle once more since. */
			ASSERT_TRUE(await_event(self, i));
			EXPECT_LE(sent[i] + IDLE, self->expired[i]);
			continue;
		}
		self->late++;
		EXPECT_TRUE(heard == 0 || heard == -ETIMEDOUT || heard == -ECONNRESET)
			TH_LOG("%d", heard);
		/* The sender does not wait for an answer for ever. */
		heard = hear(self->pair[i][1]);
		EXPECT_TRUE(heard == 0 || heard == -ECONNRESET || heard == -EPIPE)
			TH_LOG("%d", heard);
		EXPECT_TRUE(await_event(self, i));
	}
	end_round(self);
	EXPECT_TRUE(wait_for_last(self->fd));
	ASSERT_LE(0, note_events(self));
}

TEST_F_TIMEOUT(races, data_in_time, 120)
{
	/* Some seconds; on a slow kernel it would be minutes. */
	const int nr = nr_rounds(very_many() < 100000 ? 3000 : 10000);
	int i;

	for (i = 0; i < nr; i++)
		race_with_data(_metadata, self, i % 2 ? AF_INET6 : AF_INET,
			       i / 2 % 2 ? TWHEEL_WATCH_SHUTDOWN : TWHEEL_WATCH_ABORT);
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* A cancel that finds the timer pending keeps the connection from being touched. */
TEST_F_TIMEOUT(races, cancel, 120)
{
	int verdict[BATCH], round, i;

	for (round = 0; round < nr_rounds(600); round++) {
		ASSERT_EQ(0, begin_round(self, AF_INET, TWHEEL_WATCH_ABORT));
		for (i = 0; i < BATCH; i++) {
			wait_until_due(self, i);
			verdict[i] = wh_cancel(self->fd, self->handle[i]);
		}
		EXPECT_EQ(0, wh_nr_events(self->fd));
		sleep_ns(10 * MSEC);
		for (i = 0; i < BATCH; i++) {
			EXPECT_EQ(-ENOENT, wh_cancel(self->fd, self->handle[i]));
			if (verdict[i] == TWHEEL_WAS_PENDING) {
				self->early++;
				EXPECT_TRUE(say(self->pair[i][0], self->pair[i][1]));
				EXPECT_TRUE(say(self->pair[i][1], self->pair[i][0]));
			} else {
				self->late++;
				EXPECT_EQ(TWHEEL_WAS_EXPIRED, verdict[i]);
				EXPECT_TRUE(wait_tcp_state(self->pair[i][1], TCP_CLOSE));
			}
		}
		/* Whatever the worker had is freed when it is done. */
		EXPECT_TRUE(wait_timers(self->fd, 0));
		end_round(self);
	}
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* After a re-arm that finds the timer pending, the connection has its full timeout again. */
TEST_F_TIMEOUT(races, rearm, 120)
{
	__u64 before[BATCH], after[BATCH];
	int verdict[BATCH], round, i;

	for (round = 0; round < nr_rounds(600); round++) {
		ASSERT_EQ(0, begin_round(self, AF_INET6, TWHEEL_WATCH_SHUTDOWN));
		for (i = 0; i < BATCH; i++) {
			wait_until_due(self, i);
			before[i] = now_ns();
			verdict[i] = wh_active(self->fd, self->handle[i]);
			after[i] = now_ns();
		}
		EXPECT_TRUE(wh_wait_events(self->fd, BATCH));
		EXPECT_EQ(BATCH, note_events(self));
		for (i = 0; i < BATCH; i++) {
			if (verdict[i] == TWHEEL_WAS_PENDING) {
				self->early++;
				EXPECT_LE(before[i] + IDLE, self->expired[i]);
			} else {
				self->late++;
				EXPECT_EQ(-ENOTCONN, verdict[i]);
				/* Maybe during the call. */
				EXPECT_GT(after[i], self->expired[i]);
			}
			EXPECT_EQ(0, hear(self->pair[i][1]));
		}
		end_round(self);
	}
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* Ends a connection in one of the possible ways. */
static void end_connection(int *pair, int how)
{
	switch (how) {
	case 0:
		close(pair[0]);
		pair[0] = -1;
		break;
	case 1:
		shutdown(pair[0], SHUT_RDWR);
		break;
	case 2:
		/* With a linger time of zero: a reset. */
		close(pair[1]);
		pair[1] = -1;
		break;
	default:
		/* Reuses the file descriptor while the worker has the socket. */
		dup2(pair[1], pair[0]);
	}
}

/* A connection that ends when it is due has an event or has none; its timer is gone. */
TEST_F_TIMEOUT(races, end_of_the_connection, 120)
{
	static const __u32 actions[] = { 0, TWHEEL_WATCH_SHUTDOWN, TWHEEL_WATCH_ABORT };
	struct twheel_context_stats stats;
	int round, i, n;

	for (round = 0; round < nr_rounds(600); round++) {
		ASSERT_EQ(0, begin_round(self, AF_INET, actions[round % ARRAY_SIZE(actions)]));
		for (i = 0; i < BATCH; i++) {
			wait_until_due(self, i);
			end_connection(self->pair[i], random_below(4));
		}
		EXPECT_TRUE(wait_for_last(self->fd));
		n = note_events(self);
		ASSERT_LE(0, n);
		self->late += n;
		self->early += BATCH - n;
		end_round(self);
	}
	EXPECT_TRUE(wait_timers(self->fd, 0));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(round * BATCH, stats.adds);
	EXPECT_EQ(self->late, stats.expiries);
	EXPECT_EQ(self->early, stats.ended);
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* A context that is closed while its timers are due leaves nothing behind, and affects no other. */
TEST_F_TIMEOUT(races, end_of_the_context, 120)
{
	int round, i;

	for (round = 0; round < nr_rounds(600); round++) {
		ASSERT_EQ(0, begin_round(self, AF_INET, TWHEEL_WATCH_ABORT));
		wait_until_due(self, random_below(BATCH));
		ASSERT_EQ(0, close(self->fd));
		for (i = 0; i < BATCH; i++) {
			if (tcp_info(self->pair[i][0]).tcpi_state == TCP_ESTABLISHED) {
				self->early++;
				EXPECT_TRUE(say(self->pair[i][1], self->pair[i][0]));
			} else {
				self->late++;
				EXPECT_TRUE(wait_tcp_state(self->pair[i][1], TCP_CLOSE));
			}
		}
		end_round(self);
		self->fd = wh_open(O_NONBLOCK);
		ASSERT_GE(self->fd, 0);
	}
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* The number of timers that are replaced, and for how long. */
#define NR_KEYS		256
#define REPLACE_NS	(4 * SEC)

/* Adds a timer with a key, for one end or the other of a connection. Returns a verdict. */
static int set_timer(int fd, int (*pair)[2], int key, __u64 idle)
{
	struct twheel_timer_add add = watch_add(pair[key][random_below(2)], idle, TWHEEL_KEYED);

	add.key = key;
	return wh_add_timer(fd, &add);
}

/*
 * A timer that is replaced while the worker has it: on the same socket, or on another one.
 * Each arming ends in one way: it was replaced, or its event was read.
 */
TEST_F_TIMEOUT(races, replaced_when_due, 120)
{
	__u64 begin = now_ns(), end = begin + REPLACE_NS, adds = 0, read = 0;
	__u64 round = TWHEEL_IDLE_MIN;
	struct twheel_context_stats stats;
	struct twheel_event events[64];
	int pair[NR_KEYS][2], rounds, i, n, ret;
	__u64 pending = 0;

	ASSERT_EQ(0, connections(AF_INET, pair, NR_KEYS));
	/* On a slow machine, each round takes long. */
	for (rounds = 0; rounds < 3 || begin < end;
	     rounds++, round = now_ns() - begin, begin += round) {
		for (i = 0; i < NR_KEYS; i++) {
			/* Some are due before the next round, others are not. */
			ret = set_timer(self->fd, pair, i, TWHEEL_IDLE_MIN + random_below(round));
			ASSERT_LE(0, ret);
			adds++;
			pending += ret == TWHEEL_WAS_PENDING;
		}
		while ((n = wh_read(self->fd, events, ARRAY_SIZE(events))) > 0)
			read += n;
		sleep_ns(TWHEEL_IDLE_MIN / 2 + random_below(10) * MSEC);
	}
	EXPECT_TRUE(wait_for_last(self->fd));
	while ((n = wh_read(self->fd, events, ARRAY_SIZE(events))) > 0)
		read += n;
	EXPECT_TRUE(wait_timers(self->fd, 0));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(adds, stats.adds);
	EXPECT_EQ(0, stats.ended);
	EXPECT_EQ(read, stats.delivered);
	EXPECT_EQ(adds, stats.cancels + stats.delivered);
	printf("# %llu adds, %llu of them while the last timer was pending, %llu events\n", adds,
	       pending, read);
	EXPECT_LT(0, pending);
	EXPECT_LT(0, read);
	for (i = 0; i < NR_KEYS; i++) {
		EXPECT_TRUE(say(pair[i][0], pair[i][1]));
		close(pair[i][0]);
		close(pair[i][1]);
	}
}

/* A timer that is replaced while the worker is to look at it, and has not come to that yet. */
TEST_F_TIMEOUT(races, replaced_before_the_worker_comes, 120)
{
	struct twheel_context_stats stats;
	int pair[NR_KEYS][2], replaced = 0, expired = 0, read = 0, round, i, ret;
	struct twheel_event events[64];
	struct late_workers late;

	ASSERT_EQ(0, connections(AF_INET, pair, NR_KEYS));
	for (round = 0; round < 3; round++) {
		ASSERT_TRUE(hold_workers(&late));
		for (i = 0; i < NR_KEYS; i++)
			ASSERT_LE(0, set_timer(self->fd, pair, i, TWHEEL_IDLE_MIN));
		sleep_ns(3 * TWHEEL_IDLE_MIN);
		for (i = 0; i < NR_KEYS; i++) {
			ret = set_timer(self->fd, pair, i, TWHEEL_IDLE_MIN);
			ASSERT_LE(0, ret);
			replaced += ret == TWHEEL_WAS_PENDING;
			expired += ret == TWHEEL_WAS_EXPIRED;
		}
		EXPECT_TRUE(let_workers_be(&late));
		EXPECT_TRUE(wait_for_last(self->fd));
		while ((ret = wh_read(self->fd, events, ARRAY_SIZE(events))) > 0)
			read += ret;
		EXPECT_TRUE(wait_timers(self->fd, 0));
	}
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(2 * 3 * NR_KEYS, stats.adds);
	EXPECT_EQ(replaced + expired, stats.cancels);
	EXPECT_EQ(read, stats.delivered);
	EXPECT_EQ(stats.adds, stats.cancels + stats.delivered);
	printf("# %d replaced, %d events taken back, %d events read\n", replaced, expired, read);
	/* The workers are really late. */
	EXPECT_LT(0, replaced);
	for (i = 0; i < NR_KEYS; i++) {
		EXPECT_TRUE(say(pair[i][0], pair[i][1]));
		close(pair[i][0]);
		close(pair[i][1]);
	}
}

/* Waits until a connection is being closed. Returns false on a timeout. */
static bool await_end(int sock)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (tcp_info(sock).tcpi_state == TCP_ESTABLISHED)
		if (now_ns() > end)
			return false;
	return true;
}

/*
 * A program that connects again with the same socket as soon as it sees its connection end: the
 * reset is for the old connection, not for the new one.
 */
TEST_F_TIMEOUT(races, connected_again, 120)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int sock, here, there, fd, i, nr = nr_rounds(1000) * 5;
	struct sockaddr_storage address;
	socklen_t length;

	fd = listener(AF_INET, &address, &length);
	ASSERT_LE(0, fd);
	sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, connect(sock, (void *)&address, length));
		here = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		ASSERT_EQ(0, watch(self->fd, sock, TWHEEL_IDLE_MIN, TWHEEL_WATCH_ABORT, NULL));
		ASSERT_TRUE(await_end(sock));
		ASSERT_EQ(0, connect(sock, &nowhere, sizeof(nowhere)));
		ASSERT_EQ(0, connect(sock, (void *)&address, length)) TH_LOG("%d", errno);
		there = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		sleep_ns(2 * MSEC);
		ASSERT_TRUE(say(sock, there)) TH_LOG("round %d", i);
		ASSERT_TRUE(say(there, sock)) TH_LOG("round %d", i);
		ASSERT_EQ(0, connect(sock, &nowhere, sizeof(nowhere)));
		close(here);
		close(there);
	}
	close(sock);
	close(fd);
}

/* Sockets that are connected again, and both ends of what they are connected to. */
#define NR_AGAIN	10

struct again {
	int listener;
	struct sockaddr_storage address;
	socklen_t length;
	int sock[NR_AGAIN];
	int here[NR_AGAIN];
	int there[NR_AGAIN];
};

/* Both return 0 or a negative error number. */
static int connect_first(struct again *again, int i)
{
	again->sock[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(again->sock[i], (void *)&again->address, again->length))
		return -errno;
	again->here[i] = accept4(again->listener, NULL, NULL, SOCK_CLOEXEC);
	return again->here[i] < 0 ? -errno : 0;
}

static int connect_again(struct again *again, int i)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

	if (connect(again->sock[i], &nowhere, sizeof(nowhere)) ||
	    connect(again->sock[i], (void *)&again->address, again->length))
		return -errno;
	again->there[i] = accept4(again->listener, NULL, NULL, SOCK_CLOEXEC);
	return again->there[i] < 0 ? -errno : 0;
}

static void close_again(struct again *again)
{
	int i;

	for (i = 0; i < NR_AGAIN; i++) {
		close(again->sock[i]);
		close(again->here[i]);
		close(again->there[i]);
	}
	close(again->listener);
}

/*
 * A program that does so before the worker has checked the connection: a timer ends with its
 * connection, and does not go on to watch the next one.
 */
TEST_F_TIMEOUT(races, connected_again_at_once, 120)
{
	struct twheel_timer_add add = {
		.time		= TWHEEL_TIME_NONE,
		.flags		= TWHEEL_WATCHED | TWHEEL_WATCH_ABORT,
		.clock		= CLOCK_MONOTONIC,
		.lifetime	= 3 * SEC,
	};
	struct late_workers late;
	struct again again;
	int i;

	again.listener = listener(AF_INET, &again.address, &again.length);
	ASSERT_LE(0, again.listener);
	for (i = 0; i < NR_AGAIN; i++) {
		ASSERT_EQ(0, connect_first(&again, i));
		add.touch = again.sock[i];
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	}
	ASSERT_EQ(true, hold_workers(&late));
	for (i = 0; i < NR_AGAIN; i++)
		ASSERT_EQ(0, connect_again(&again, i));
	ASSERT_EQ(true, let_workers_be(&late));
	EXPECT_EQ(true, wait_timers(self->fd, 0));
	sleep_ns(4 * SEC);
	for (i = 0; i < NR_AGAIN; i++)
		EXPECT_EQ(TCP_ESTABLISHED, tcp_info(again.sock[i]).tcpi_state);
	close_again(&again);
}

/*
 * Nor does it keep the socket from being watched again at once, by this context or another: the
 * worker cannot run here.
 */
TEST_F_TIMEOUT(races, watched_again_at_once, 120)
{
	struct twheel_timer_add add = {
		.time		= TWHEEL_TIME_NONE,
		.flags		= TWHEEL_WATCHED,
		.clock		= CLOCK_MONOTONIC,
		.idle		= HOUR,
	};
	struct twheel_context_stats stats;
	struct late_workers late;
	struct again again;
	int other, i;

	again.listener = listener(AF_INET, &again.address, &again.length);
	ASSERT_LE(0, again.listener);
	other = wh_open(O_NONBLOCK);
	ASSERT_LE(0, other);
	for (i = 0; i < NR_AGAIN; i++) {
		ASSERT_EQ(0, connect_first(&again, i));
		add.touch = again.sock[i];
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		EXPECT_EQ(-EBUSY, wh_add_timer(other, &add));
	}
	ASSERT_EQ(true, hold_workers(&late));
	for (i = 0; i < NR_AGAIN; i++) {
		ASSERT_EQ(0, connect_again(&again, i));
		add.touch = again.sock[i];
		EXPECT_EQ(0, wh_add_timer(i % 2 ? other : self->fd, &add));
		EXPECT_EQ(-EBUSY, wh_add_timer(i % 2 ? self->fd : other, &add));
	}
	EXPECT_EQ(NR_AGAIN / 2, wh_nr_timers(other));
	EXPECT_EQ(NR_AGAIN - NR_AGAIN / 2, wh_nr_timers(self->fd));
	ASSERT_EQ(true, let_workers_be(&late));
	sleep_ns(SEC);
	EXPECT_EQ(NR_AGAIN / 2, wh_nr_timers(other));
	EXPECT_EQ(NR_AGAIN - NR_AGAIN / 2, wh_nr_timers(self->fd));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(NR_AGAIN, stats.ended);
	EXPECT_EQ(0, stats.cancels);
	EXPECT_EQ(0, wh_nr_events(self->fd) + wh_nr_events(other));
	close_again(&again);
	EXPECT_EQ(true, wait_timers(self->fd, 0));
	EXPECT_EQ(true, wait_timers(other, 0));
	close(other);
}

/*
 * A program that uses its socket, for as long as it likes, delays nobody else; and what it does
 * counts as activity.
 */
TEST_F_TIMEOUT(races, busy_socket, 60)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct sender sender = {};
	struct twheel_event event;
	int pair[2][2], uffd;
	__u64 handle[2], sent;
	pthread_t thread;
	char byte;

	uffd = late_memory(&sender.memory, page);
	if (uffd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, connections(AF_INET, pair, 2));
	sender.sock = pair[0][0];
	ASSERT_EQ(0, watch(self->fd, pair[0][0], IDLE, TWHEEL_WATCH_ABORT, &handle[0]));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &sender));
	/* Now the program waits for its memory, with the socket locked. */
	ASSERT_EQ(true, memory_wanted(uffd));
	ASSERT_EQ(0, watch(self->fd, pair[1][0], 3 * IDLE, TWHEEL_WATCH_ABORT, &handle[1]));
	ASSERT_TRUE(wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(handle[1], event.handle);
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle[0]));

	sent = coarse_ns();
	ASSERT_EQ(true, let_memory_be(uffd, sender.memory, page));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(1, sender.sent);
	EXPECT_EQ(1, recv(pair[0][1], &byte, 1, 0));
	ASSERT_TRUE(wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(handle[0], event.handle);
	EXPECT_LE(sent + IDLE, event.deadline);
	close(uffd);
}

/* The longer a socket is in use, the later the next check, up to a second; not the first ones. */
TEST_F_TIMEOUT(races, busy_for_long, 60)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	__u64 handle, busy, spared, look[MOST_LOOKS];
	struct sender sender = {};
	struct twheel_event event;
	int pair[1][2], uffd, n;
	const char *fault;
	pthread_t thread;

	uffd = late_memory(&sender.memory, page);
	if (uffd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, connections(AF_INET, pair, 1));
	sender.sock = pair[0][0];
	/* The counter exists once there are watches. */
	ASSERT_EQ(0, watch(self->fd, pair[0][0], SEC, TWHEEL_WATCH_ABORT, &handle));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &sender));
	ASSERT_EQ(true, memory_wanted(uffd));
	busy = watch_count("timers busy");
	spared = watch_count("timers spared");
	n = busy_looks(4 * SEC, look);
	busy = watch_count("timers busy") - busy;
	printf("# found busy %llu times\n", busy);
	EXPECT_LE(8, busy);
	EXPECT_GE(30, busy);
	EXPECT_GE(busy, n);
	fault = looks_fault(look, n);
	EXPECT_EQ(NULL, fault) TH_LOG("%s", fault);
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle));
	EXPECT_EQ(spared, watch_count("timers spared"));
	ASSERT_EQ(true, let_memory_be(uffd, sender.memory, page));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(1, sender.sent);
	ASSERT_TRUE(wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
	/* When the socket was finally free, there had been activity. */
	EXPECT_EQ(spared + 1, watch_count("timers spared"));
	close(uffd);
}

/* A re-arm sets a new limit, and nothing of an earlier one is left although the socket is busy. */
TEST_F_TIMEOUT(races, rearmed_while_busy, 60)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct twheel_timer_rearm rearm = { .limit = TWHEEL_LIMIT_IDLE, .time = HOUR };
	struct twheel_timer_query query;
	struct sender sender = {};
	__u64 before, looks[MOST_LOOKS];
	pthread_t thread;
	int pair[1][2], uffd;

	uffd = late_memory(&sender.memory, page);
	if (uffd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, connections(AF_INET, pair, 1));
	sender.sock = pair[0][0];
	ASSERT_EQ(0, watch(self->fd, pair[0][0], IDLE, TWHEEL_WATCH_ABORT, &rearm.handle));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &sender));
	ASSERT_EQ(true, memory_wanted(uffd));
	/* It is due, and is looked at again and again. */
	ASSERT_LT(1, busy_looks(20 * IDLE, looks));
	before = now_ns();
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm_timer(self->fd, &rearm));
	ASSERT_EQ(0, wh_query(self->fd, rearm.handle, &query));
	EXPECT_LE(before + HOUR, query.deadline);
	EXPECT_GE(now_ns() + HOUR, query.deadline);
	ASSERT_EQ(true, let_memory_be(uffd, sender.memory, page));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	close(uffd);
}

/* How many of the worker's delays in the histogram are below 2^@i ns? */
static __u64 delays_below(int i)
{
	char key[64];
	__u64 n;

	snprintf(key, sizeof(key), "timers delay %llu", 1ULL << i);
	n = watch_count(key);
	return n == POISON ? 0 : n;
}

/* What the worker has done is counted, as is its delay after the deadline. */
TEST_F_TIMEOUT(races, counts_of_what_was_done, 60)
{
	const __u64 tick = file_number(PARAMETERS "tick_ns");
	__u64 before[64], kicks, ended, least = 0;
	struct twheel_timer_add add;
	struct twheel_event event;
	int pair[2][2], i;

	ASSERT_EQ(0, connections(AF_INET, pair, 2));
	/* The counters exist once there are watches. */
	ASSERT_EQ(0, watch(self->fd, pair[1][0], HOUR, TWHEEL_WATCH_ABORT, NULL));
	kicks = watch_count("timers kicks");
	ended = watch_count("timers ended");
	for (i = 0; i < 64; i++)
		before[i] = delays_below(i);
	/* At least most of a tick passes until the next one. */
	add = watch_add(pair[0][0], HOUR, TWHEEL_TIME_ABS | TWHEEL_WATCH_ABORT);
	add.time = (now_ns() / tick + 20) * tick + tick / 8;
	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	ASSERT_TRUE(wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(add.time, event.deadline);
	EXPECT_EQ(kicks + 1, watch_count("timers kicks"));
	EXPECT_EQ(ended, watch_count("timers ended"));
	for (i = 0; i < 64 && !least; i++)
		if (delays_below(i) != before[i])
			least = 1ULL << i;
	EXPECT_LT(tick - tick / 8, least);
	EXPECT_GE(event.fired - event.deadline, least / 2);
	EXPECT_EQ(before[i - 1] + 1, delays_below(i - 1));
	/* The other connection just ends, which is counted shortly after its timer has ended. */
	close(pair[1][1]);
	EXPECT_EQ(true, wait_timers(self->fd, 0));
	for (i = 0; i < 1000 && watch_count("timers ended") == ended; i++)
		sleep_ns(MSEC);
	EXPECT_EQ(kicks + 1, watch_count("timers kicks"));
	EXPECT_EQ(ended + 1, watch_count("timers ended"));
}

TEST_HARNESS_MAIN
