// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many tasks wait for a context: a softirq wakes a few of them, a worker the others. Each event
 * wakes all of them, while others come and go.
 */
#include <pthread.h>

#include "twheel_test.h"

#include "late_workers.h"

/* Numbers of epoll instances. A softirq wakes 64. */
#define FEW		10
#define MANY		200

/**
 * struct others - a thread that starts and stops waiting
 * @fd:		the context
 * @stop:	the thread must exit
 */
struct others {
	int	fd;
	bool	stop;
};

FIXTURE(waiters)
{
	int fd;
	int epoll[MANY];
	struct others others;
};

FIXTURE_VARIANT(waiters)
{
	int n;
	__u32 events;
};

FIXTURE_VARIANT_ADD(waiters, few)
{
	.n = FEW,
	.events = EPOLLIN,
};

FIXTURE_VARIANT_ADD(waiters, many)
{
	.n = MANY,
	.events = EPOLLIN,
};

FIXTURE_VARIANT_ADD(waiters, many_edges)
{
	.n = MANY,
	.events = EPOLLIN | EPOLLET,
};

FIXTURE_SETUP(waiters)
{
	int i;

	self->fd = wh_open(O_NONBLOCK);
	self->others = (struct others){ .fd = self->fd };
	ASSERT_LE(0, self->fd);
	for (i = 0; i < variant->n; i++) {
		self->epoll[i] = wh_epoll(self->fd, variant->events);
		ASSERT_LE(0, self->epoll[i]);
	}
}

FIXTURE_TEARDOWN(waiters)
{
	EXPECT_EQ(0, close(self->fd));
}

/*
 * Counts the instances that are woken within @timeout ms. After one that is not, counts only those
 * already woken.
 */
static int count_woken(const FIXTURE_DATA(waiters) * self, int n, int timeout)
{
	struct epoll_event event;
	int woken = 0, i;

	for (i = 0; i < n; i++) {
		if (epoll_wait(self->epoll[i], &event, 1, timeout) == 1)
			woken++;
		else
			timeout = 0;
	}
	return woken;
}

/* Causes an event, and counts the instances that it wakes. */
static int wake_all(FIXTURE_DATA(waiters) * self, int n)
{
	return wh_add(self->fd, MSEC, 0, 0, NULL) ? -1 : count_woken(self, n, GUARD_MS);
}

/* Starts and stops waiting, in epolls of all kinds and in poll(). */
static void *run_others(void *arg)
{
	const __u32 events[] = { EPOLLIN, EPOLLIN | EPOLLET, EPOLLIN | EPOLLEXCLUSIVE };
	struct others *others = arg;
	struct pollfd pollfd = { .fd = others->fd, .events = POLLIN };
	int epoll[FEW] = {}, i;

	for (i = 0; !__atomic_load_n(&others->stop, __ATOMIC_RELAXED); i = (i + 1) % FEW) {
		if (epoll[i])
			close(epoll[i]);
		epoll[i] = wh_epoll(others->fd, events[i % ARRAY_SIZE(events)]);
		if (epoll[i] < 0 || poll(&pollfd, 1, 0) < 0)
			return "cannot wait";
	}
	for (i = 0; i < FEW; i++)
		if (epoll[i])
			close(epoll[i]);
	return NULL;
}

TEST_F_TIMEOUT(waiters, all_are_woken, 120)
{
	struct twheel_event event;
	void *wrong = NULL;
	pthread_t thread;
	int round;

	ASSERT_EQ(0, pthread_create(&thread, NULL, run_others, &self->others));
	for (round = 0; round < 100; round++) {
		EXPECT_EQ(variant->n, wake_all(self, variant->n));
		EXPECT_EQ(1, wh_read(self->fd, &event, 1));
	}
	__atomic_store_n(&self->others.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, &wrong));
	EXPECT_EQ(NULL, wrong) TH_LOG("%s", (char *)wrong);
}

/* By each event, even if nothing is read. */
TEST_F_TIMEOUT(waiters, by_each_event, 120)
{
	int round;

	for (round = 0; round < 20; round++)
		EXPECT_EQ(variant->n, wake_all(self, variant->n));
	EXPECT_EQ(true, wh_wait_events(self->fd, 20));
}

/*
 * By an event that comes before the worker has woken all waiters for the previous one. A waiter
 * that was woken, and found the event read by somebody else, waits again like the others.
 */
TEST_F_TIMEOUT(waiters, while_others_are_still_woken, 60)
{
	struct late_workers late;
	struct twheel_event event;
	int first;

	ASSERT_EQ(true, hold_workers(&late));
	ASSERT_EQ(0, wh_add(self->fd, MSEC, 0, 0, NULL));
	EXPECT_EQ(true, wh_wait_events(self->fd, 1));
	first = count_woken(self, variant->n, 0);
	EXPECT_LE(1, first);
	EXPECT_GE(simulated() && variant->n == MANY ? MANY - 1 : variant->n, first);
	EXPECT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(0, count_woken(self, variant->n, 0));
	ASSERT_EQ(0, wh_add(self->fd, MSEC, 0, 0, NULL));
	EXPECT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(true, let_workers_be(&late));
	EXPECT_EQ(variant->n, count_woken(self, variant->n, GUARD_MS));
}

/* The worker may be waking waiters when the context is closed. */
TEST_F_TIMEOUT(waiters, and_then_it_closes, 120)
{
	int round, fd, i, epoll[MANY];

	for (round = 0; round < 50; round++) {
		fd = wh_open(0);
		for (i = 0; i < variant->n; i++)
			epoll[i] = wh_epoll(fd, variant->events);
		ASSERT_EQ(0, wh_add(fd, 0, 0, 0, NULL));
		sleep_ns(round * 100 * USEC);
		ASSERT_EQ(0, close(fd));
		for (i = 0; i < variant->n; i++)
			close(epoll[i]);
	}
	EXPECT_EQ(true, wait_total("contexts", 1));
}

static void *wait_in_epoll(void *arg)
{
	struct epoll_event event;

	return (void *)(long)(epoll_wait(*(int *)arg, &event, 1, 2000) == 1);
}

/* Tasks that wait with EPOLLEXCLUSIVE must not all be woken. */
TEST(of_those_who_want_to_be_alone)
{
	int fd = wh_open(O_NONBLOCK), epoll[MANY], i, nr = 0;
	pthread_t thread[MANY];
	void *woken;

	ASSERT_LE(0, fd);
	for (i = 0; i < MANY; i++) {
		epoll[i] = wh_epoll(fd, EPOLLIN | EPOLLEXCLUSIVE);
		ASSERT_LE(0, epoll[i]);
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, wait_in_epoll, &epoll[i]));
	}
	ASSERT_EQ(0, wh_add(fd, SEC, 0, 0, NULL));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, pthread_join(thread[i], &woken));
		nr += (long)woken;
	}
	EXPECT_LE(1, nr);
	EXPECT_GE(FEW, nr);
	for (i = 0; i < MANY; i++)
		close(epoll[i]);
	EXPECT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
