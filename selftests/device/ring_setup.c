// SPDX-License-Identifier: GPL-2.0-only
/*
 * TWHEEL_IOC_SETUP makes a ring or a touch array: invalid calls are rejected, waiting events go
 * into the ring in order, also beside a read(), and the poll() that moves them comes to an end.
 */
#include <sys/time.h>

#include "ring_test.h"

#include "late_memory.h"

FIXTURE(setup)
{
	int fd;
	size_t page;
};

FIXTURE_SETUP(setup)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->page = sysconf(_SC_PAGESIZE);
}

FIXTURE_TEARDOWN(setup)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Checks that there is neither a ring nor a touch array. */
static void expect_nothing(struct __test_metadata *_metadata, FIXTURE_DATA(setup) * self)
{
	struct twheel_event event;

	EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
	EXPECT_EQ(NULL, wh_map(self->fd, self->page, TWHEEL_RING_OFFSET));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, wh_map(self->fd, self->page, TWHEEL_TOUCH_OFFSET));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(setup, bad_fields)
{
	const __u32 entries[] = { 3, 5, 6, (1 << 20) - 1, (1 << 20) + 1, 1 << 21, 1U << 31, ~0U };
	const __u32 words[] = { (1 << 24) + 1, 1U << 31, ~0U };
	struct twheel_setup setup, bad;
	size_t i;

	expect_nothing(_metadata, self);
	for (i = 0; i < ARRAY_SIZE(entries); i++)
		EXPECT_EQ(-EINVAL, wh_setup(self->fd, entries[i], 0, &setup));
	for (i = 0; i < ARRAY_SIZE(words); i++)
		EXPECT_EQ(-EINVAL, wh_setup(self->fd, 0, words[i], &setup));
	/* A call sets up only one of the two. */
	EXPECT_EQ(-EINVAL, wh_setup(self->fd, 16, 16, &setup));
	for (i = 0; i < 32; i++) {
		bad = (struct twheel_setup){ .ring_entries = 16, .flags = 1U << i };
		if (bad.flags != TWHEEL_SETUP_EVENT_KEYS)
			EXPECT_EQ(-EOPNOTSUPP, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &bad));
		bad = (struct twheel_setup){ .ring_entries = 16, .reserved = 1U << i };
		EXPECT_EQ(-EINVAL, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &bad));
	}
	expect_nothing(_metadata, self);
}

TEST_F(setup, one_of_each)
{
	struct twheel_setup setup;

	/* Nothing is requested, so nothing happens. */
	EXPECT_EQ(0, wh_setup(self->fd, 0, 0, &setup));
	EXPECT_EQ(0, setup.ring_bytes);
	EXPECT_EQ(0, setup.touch_bytes);
	expect_nothing(_metadata, self);
	EXPECT_EQ(0, wh_setup(self->fd, 16, 0, &setup));
	EXPECT_EQ(-EBUSY, wh_setup(self->fd, 16, 0, &setup));
	EXPECT_EQ(NULL, wh_map(self->fd, self->page, TWHEEL_TOUCH_OFFSET));
	EXPECT_EQ(0, wh_setup(self->fd, 0, 8, &setup));
	EXPECT_EQ(self->page, setup.ring_bytes);
	EXPECT_EQ(2 * self->page, setup.touch_bytes);
	EXPECT_EQ(-EBUSY, wh_setup(self->fd, 0, 8, &setup));
	EXPECT_EQ(0, wh_setup(self->fd, 0, 0, &setup));
	EXPECT_EQ(self->page, setup.ring_bytes);
	EXPECT_EQ(2 * self->page, setup.touch_bytes);
}

/*
 * Events that came before the ring was made go into it in order, with consecutive sequence numbers.
 */
TEST_F(setup, with_events_that_wait)
{
	struct twheel_setup setup;
	struct twheel_ring *ring;
	struct twheel_event event;
	int i;

	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, wh_add(self->fd, i * 5 * MSEC, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 5));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	ASSERT_EQ(0, event.user_data);
	ASSERT_EQ(0, wh_setup(self->fd, 2, 0, &setup));
	ring = wh_map(self->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, ring);
	for (i = 1; i < 5; i++) {
		ASSERT_EQ(true, wait_pop_event(self->fd, ring, &event));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(i, event.user_data);
		EXPECT_EQ(i, event.seq);
	}
	EXPECT_EQ(false, wh_ready(self->fd));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(0, munmap(ring, setup.ring_bytes));
}

/**
 * struct call - a call in a thread of its own
 * @fd:		the context
 * @buffer:	where to store an event
 * @setup:	what to set up
 * @result:	what the call returned
 * @done:	it has returned
 */
struct call {
	int			fd;
	void			*buffer;
	struct twheel_setup	setup;
	int			result;
	bool			done;
};

static void *run_read(void *arg)
{
	struct call *call = arg;
	ssize_t ret = read(call->fd, call->buffer, sizeof(struct twheel_event));

	call->result = ret < 0 ? -errno : ret;
	__atomic_store_n(&call->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *run_setup(void *arg)
{
	struct call *call = arg;

	call->result = wh_setup(call->fd, 8, 0, &call->setup);
	__atomic_store_n(&call->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Does a call return within @ns? */
static bool returns_within(const struct call *call, __u64 ns)
{
	__u64 end = now_ns() + ns;

	while (!__atomic_load_n(&call->done, __ATOMIC_ACQUIRE) && now_ns() < end)
		sleep_ns(MSEC);
	return __atomic_load_n(&call->done, __ATOMIC_ACQUIRE);
}

/*
 * While a read() delivers an event, which takes until its memory is provided, the event's sequence
 * number must not be given to another event: the ring is made only when the read() is done.
 */
TEST_F_TIMEOUT(setup, while_a_read_delivers, 60)
{
	struct call reader = { .fd = self->fd }, maker = { .fd = self->fd };
	struct twheel_event event;
	struct twheel_ring *ring;
	pthread_t threads[2];
	char *memory;
	int uffd, i;

	uffd = late_memory(&memory, self->page);
	if (uffd < 0)
		SKIP(return, "no userfaultfd");
	reader.buffer = memory;
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 4));
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, run_read, &reader));
	ASSERT_EQ(true, memory_wanted(uffd));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, run_setup, &maker));
	EXPECT_EQ(false, returns_within(&maker, 200 * MSEC));
	ASSERT_EQ(true, let_memory_be(uffd, memory, self->page));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(sizeof(event), reader.result);
	ASSERT_EQ(0, maker.result);
	event = *(struct twheel_event *)memory;
	EXPECT_EQ(0, event.seq);
	ring = wh_map(self->fd, maker.setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, ring);
	for (i = 1; i < 4; i++) {
		ASSERT_EQ(true, wait_pop_event(self->fd, ring, &event));
		EXPECT_EQ(i, event.seq);
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(0, munmap(ring, maker.setup.ring_bytes));
	close(uffd);
}

/* A read() that waits for an event fails when a ring is made. */
TEST_F_TIMEOUT(setup, while_a_read_waits, 60)
{
	struct twheel_event event;
	struct call reader = { .fd = self->fd, .buffer = &event };
	struct twheel_setup setup;
	pthread_t thread;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_read, &reader));
	EXPECT_EQ(false, returns_within(&reader, 100 * MSEC));
	ASSERT_EQ(0, wh_setup(self->fd, 8, 0, &setup));
	ASSERT_EQ(true, returns_within(&reader, GUARD_MS * MSEC));
	EXPECT_EQ(-EBUSY, reader.result);
	ASSERT_EQ(0, pthread_join(thread, NULL));
}

/**
 * struct drainer - a thread that makes room in a ring until it is stopped
 * @ring:	the ring
 * @stop:	the thread must exit
 */
struct drainer {
	struct twheel_ring	*ring;
	bool			stop;
};

static void *run_drainer(void *arg)
{
	struct drainer *drainer = arg;

	while (!__atomic_load_n(&drainer->stop, __ATOMIC_RELAXED))
		__atomic_store_n(&drainer->ring->tail,
				 __atomic_load_n(&drainer->ring->head, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	return NULL;
}

/*
 * However fast a program makes room, a poll() moves no more events than the size of the ring plus a
 * batch.
 */
TEST_F_TIMEOUT(setup, a_poll_comes_to_an_end, 90)
{
	enum { ENTRIES = 4, BATCH = 16 };
	const unsigned int n = very_many() / 4;
	struct drainer drainer = { };
	struct twheel_setup setup;
	unsigned int i, polls;
	pthread_t thread;
	__u64 before, after;

	ASSERT_EQ(0, wh_setup(self->fd, ENTRIES, 0, &setup));
	drainer.ring = wh_map(self->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, drainer.ring);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, n - ENTRIES));
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_drainer, &drainer));
	for (polls = 0; (before = wh_nr_events(self->fd)); polls++) {
		EXPECT_EQ(true, wh_ready(self->fd));
		after = wh_nr_events(self->fd);
		ASSERT_GE(ENTRIES + BATCH, before - after);
	}
	printf("# %u events in %u polls\n", n, polls);
	EXPECT_LE(n / (ENTRIES + BATCH), polls + 1);
	__atomic_store_n(&drainer.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, munmap(drainer.ring, setup.ring_bytes));
}

static void on_signal(int signal)
{
	(void)signal;
}

/* A poll() that a signal interrupts moves a batch, and the next one moves the rest. */
TEST_F(setup, a_poll_ends_short_at_a_signal)
{
	enum { ENTRIES = 64, BATCH = 16 };
	const struct sigaction action = { .sa_handler = on_signal };
	struct pollfd pollfd = { .fd = self->fd, .events = POLLIN };
	sigset_t blocked, none;
	struct twheel_setup setup;
	struct twheel_ring *ring;
	int i;

	ASSERT_EQ(0, wh_setup(self->fd, ENTRIES, 0, &setup));
	ring = wh_map(self->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, ring);
	for (i = 0; i < 2 * ENTRIES; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, ENTRIES));
	__atomic_store_n(&ring->tail, ENTRIES, __ATOMIC_RELEASE);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &blocked, NULL));
	ASSERT_EQ(0, raise(SIGUSR1));
	/* Unblocks the signal just for this call. */
	EXPECT_EQ(1, ppoll(&pollfd, 1, NULL, &none));
	EXPECT_EQ(ENTRIES + BATCH, ring->head);
	EXPECT_EQ(TWHEEL_RING_WAITING, ring->flags);
	EXPECT_EQ(ENTRIES - BATCH, wh_nr_events(self->fd));
	EXPECT_EQ(true, wh_ready(self->fd));
	EXPECT_EQ(2 * ENTRIES, ring->head);
	EXPECT_EQ(0, ring->flags);
	EXPECT_EQ(0, munmap(ring, setup.ring_bytes));
}

/* Nor is a ring filled to the end, when it is made, if a signal comes; but by the next poll(). */
TEST_F_TIMEOUT(setup, ends_short_at_a_signal, 120)
{
	const struct itimerval often = { .it_interval.tv_usec = 200, .it_value.tv_usec = 200 };
	const struct itimerval never = {};
	const struct sigaction action = { .sa_handler = on_signal };
	const unsigned int n = very_many();
	struct twheel_setup setup;
	struct twheel_ring *ring;
	unsigned int i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, n));
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	EXPECT_EQ(0, wh_setup(self->fd, 1 << 17, 0, &setup));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	printf("# %u of %u events were left\n", (unsigned int)wh_nr_events(self->fd), n);
	EXPECT_LT(0, wh_nr_events(self->fd));
	EXPECT_EQ(true, wh_ready(self->fd));
	ring = wh_map(self->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, ring);
	EXPECT_EQ(n, ring->head);
	EXPECT_EQ(0, munmap(ring, setup.ring_bytes));
}

TEST_HARNESS_MAIN
