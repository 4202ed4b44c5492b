// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched connections to which something happens at the very moment at which they are due:
 * either it was in time, or the connection is closed, and everybody who asks is told the same.
 */
#include <linux/userfaultfd.h>
#include <sys/syscall.h>

#include "watch_test.h"

/* Connections at a time. */
#define BATCH		100
/* From one becoming due to the next. */
#define STEP		(300 * USEC)
#define IDLE		(60 * MSEC)

/* Rounds of a race, for so many tries; fewer on a slow kernel. */
static int rounds(__u64 tries)
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
	/* When each is due, if nothing happens. */
	__u64 due[BATCH];
	/* Of the events that were read, by @user_data. */
	__u64 expired[BATCH];
	/* What was seen, to be sure that there was a race; and until the last round. */
	int early;
	int late;
	int early_before;
	int late_before;
	/* What makes it a race: something happens so many nanoseconds later. */
	__s64 shift;
};

FIXTURE_SETUP(races)
{
	random_seed();
	ASSERT_EQ(0, network());
	ASSERT_EQ(0, many_files());
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(races)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Makes connections that become due one after the other. */
static int begin(FIXTURE_DATA(races) * self, int family, __u32 flags)
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

/* Waits until about the time when a connection is dealt with. */
static void wait_until_due(const FIXTURE_DATA(races) * self, int i)
{
	__u64 end = self->due[i] + self->shift - MSEC + random_below(4 * MSEC);

	if (end > now_ns() + 5 * MSEC)
		sleep_ns(end - now_ns() - 2 * MSEC);
	while (now_ns() < end)
		;
}

/* Closes what is left, and has the next round aim better. */
static void end(FIXTURE_DATA(races) * self)
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

/* Notes the events that there are. Returns how many, or -1 if one is wrong. */
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

/* Waits for the event of a connection. Returns whether it came, and nothing wrong. */
static bool await_event(FIXTURE_DATA(races) * self, int i)
{
	while (!self->expired[i])
		if (!wh_wait(self->fd) || note_events(self) < 0)
			return false;
	return true;
}

/*
 * Data at the moment of the kick. If the kernel had it before it decided, the program gets it, and
 * the connection lives for another idle timeout; or the connection is closed, the program
 * does not get it, and the sender learns of it.
 */
static void data_at_the_kick(struct __test_metadata *_metadata, FIXTURE_DATA(races) * self,
			     int family, __u32 flags)
{
	__u64 sent[BATCH];
	int heard, i;

	ASSERT_EQ(0, begin(self, family, flags | TWHEEL_WATCH_RECEIVED));
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
			/* It was idle once more since. */
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
	end(self);
	EXPECT_TRUE(wait_for_last(self->fd));
	ASSERT_LE(0, note_events(self));
}

TEST_F_TIMEOUT(races, data_in_time, 120)
{
	/* Some seconds; on a slow kernel it would be minutes. */
	const int nr = rounds(very_many() < 100000 ? 3000 : 10000);
	int i;

	for (i = 0; i < nr; i++)
		data_at_the_kick(_metadata, self, i % 2 ? AF_INET6 : AF_INET,
				 i / 2 % 2 ? TWHEEL_WATCH_SHUTDOWN : TWHEEL_WATCH_ABORT);
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* A cancel that finds the timer pending keeps the connection from being touched. */
TEST_F_TIMEOUT(races, cancel, 120)
{
	int verdict[BATCH], round, i;

	for (round = 0; round < rounds(600); round++) {
		ASSERT_EQ(0, begin(self, AF_INET, TWHEEL_WATCH_ABORT));
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
		/* What the worker had is free when it is done with it. */
		EXPECT_TRUE(wait_timers(self->fd, 0));
		end(self);
	}
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* After a re-arm that finds the timer pending the connection has all of its time again. */
TEST_F_TIMEOUT(races, rearm, 120)
{
	int verdict[BATCH], round, i;
	__u64 before[BATCH];

	for (round = 0; round < rounds(600); round++) {
		ASSERT_EQ(0, begin(self, AF_INET6, TWHEEL_WATCH_SHUTDOWN));
		for (i = 0; i < BATCH; i++) {
			wait_until_due(self, i);
			before[i] = now_ns();
			verdict[i] = wh_active(self->fd, self->handle[i]);
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
				EXPECT_GT(before[i], self->expired[i]);
			}
			EXPECT_EQ(0, hear(self->pair[i][1]));
		}
		end(self);
	}
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* Ends a connection in one of the ways that there are. */
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
		/* It lingers for no time: a reset. */
		close(pair[1]);
		pair[1] = -1;
		break;
	default:
		/* Reuse of the number while the worker has the socket. */
		dup2(pair[1], pair[0]);
	}
}

/* A connection that ends when it is due has an event, or has none; its timer is gone. */
TEST_F_TIMEOUT(races, end_of_the_connection, 120)
{
	static const __u32 actions[] = { 0, TWHEEL_WATCH_SHUTDOWN, TWHEEL_WATCH_ABORT };
	struct twheel_context_stats stats;
	int round, i, n;

	for (round = 0; round < rounds(600); round++) {
		ASSERT_EQ(0, begin(self, AF_INET, actions[round % ARRAY_SIZE(actions)]));
		for (i = 0; i < BATCH; i++) {
			wait_until_due(self, i);
			end_connection(self->pair[i], random_below(4));
		}
		EXPECT_TRUE(wait_for_last(self->fd));
		n = note_events(self);
		ASSERT_LE(0, n);
		self->late += n;
		self->early += BATCH - n;
		end(self);
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

/* A context that is closed while its timers are due leaves nothing behind, and hits nobody else. */
TEST_F_TIMEOUT(races, end_of_the_context, 120)
{
	int round, i;

	for (round = 0; round < rounds(600); round++) {
		ASSERT_EQ(0, begin(self, AF_INET, TWHEEL_WATCH_ABORT));
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
		end(self);
		self->fd = wh_open(O_NONBLOCK);
		ASSERT_GE(self->fd, 0);
	}
	printf("# %d in time, %d too late\n", self->early, self->late);
	EXPECT_LT(0, self->early);
	EXPECT_LT(0, self->late);
}

/* Memory whose first page is not there until it is asked for. Returns the userfaultfd, or -1. */
static int late_memory(char **memory, size_t size)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (uffd < 0)
		return -1;
	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)*memory;
	range.range.len = size;
	if (*memory == MAP_FAILED || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &range)) {
		close(uffd);
		return -1;
	}
	return uffd;
}

struct sender {
	int sock;
	char *memory;
	ssize_t sent;
};

static void *send_late(void *arg)
{
	struct sender *sender = arg;

	sender->sent = send(sender->sock, sender->memory, 1, MSG_NOSIGNAL);
	return NULL;
}

/*
 * A program at work with its socket, for as long as it likes, keeps nobody else waiting; and what
 * it does counts.
 */
TEST_F_TIMEOUT(races, busy_socket, 60)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct sender sender = {};
	struct twheel_event event;
	struct uffdio_copy copy;
	struct uffd_msg message;
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
	/* Now it waits for its memory, with the socket locked. */
	ASSERT_EQ(sizeof(message), read(uffd, &message, sizeof(message)));
	ASSERT_EQ(0, watch(self->fd, pair[1][0], 3 * IDLE, TWHEEL_WATCH_ABORT, &handle[1]));
	ASSERT_TRUE(wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(handle[1], event.handle);
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle[0]));

	copy = (struct uffdio_copy) {
		.dst = (uintptr_t)sender.memory,
		.src = (uintptr_t)aligned_alloc(page, page),
		.len = page,
	};
	sent = coarse_ns();
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_COPY, &copy));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(1, sender.sent);
	EXPECT_EQ(1, recv(pair[0][1], &byte, 1, 0));
	ASSERT_TRUE(wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(handle[0], event.handle);
	EXPECT_LE(sent + IDLE, event.deadline);
	free((void *)(uintptr_t)copy.src);
	close(uffd);
}

TEST_HARNESS_MAIN
