// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring: no event is lost however small the ring is and however long its reader sleeps, and
 * garbage in the ring harms nobody else.
 *
 * TWHEEL_SLEEP is how long a reader sleeps, in seconds.
 */
#include <sys/wait.h>

#include "ring_test.h"

/* How often a test sleeps until it is woken, with each size of the ring. */
#define ROUNDS	1000

FIXTURE(ring)
{
	int fd;
	struct twheel_ring *ring;
	size_t bytes;
	__u64 seq;
};

FIXTURE_VARIANT(ring)
{
	__u32 entries;
};

/* Full with the first event, full soon, and never full in these tests. */
FIXTURE_VARIANT_ADD(ring, of_1)
{
	.entries = 1,
};

FIXTURE_VARIANT_ADD(ring, of_4)
{
	.entries = 4,
};

FIXTURE_VARIANT_ADD(ring, of_8192)
{
	.entries = 8192,
};

FIXTURE_SETUP(ring)
{
	struct twheel_setup setup;

	self->seq = 0;
	/* Contexts of a previous test may end a little later than the test. */
	ASSERT_EQ(true, wait_total("contexts", 0));
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, variant->entries, 0, &setup));
	EXPECT_EQ(0, setup.touch_bytes);
	EXPECT_LE(sizeof(*self->ring) + variant->entries * sizeof(struct twheel_event),
		  setup.ring_bytes);
	self->bytes = setup.ring_bytes;
	self->ring = wh_map(self->fd, self->bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, self->ring);
	EXPECT_EQ(variant->entries - 1, self->ring->mask);
	random_seed();
}

FIXTURE_TEARDOWN(ring)
{
	EXPECT_EQ(0, munmap(self->ring, self->bytes));
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(0, total("contexts"));
}

/* Expects the next event of a one-shot timer. */
static void expect_next(struct __test_metadata *_metadata, FIXTURE_DATA(ring) * self,
			struct twheel_event *event)
{
	ASSERT_EQ(true, wait_pop_event(self->fd, self->ring, event))
		TH_LOG("no event %llu", self->seq);
	EXPECT_EVENT_OK(event);
	ASSERT_EQ(self->seq++, event->seq);
}

/* Checks that nothing is in the ring, and nothing waits. */
static void expect_end(struct __test_metadata *_metadata, FIXTURE_DATA(ring) * self)
{
	EXPECT_EQ(self->ring->head, self->ring->tail);
	EXPECT_EQ((__u32)self->seq, self->ring->head);
	EXPECT_EQ(0, self->ring->flags);
	EXPECT_EQ(false, wh_ready(self->fd));
	EXPECT_EQ(0, wh_nr_events(self->fd));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/* Waits until @n timers have expired since the context was opened. */
static bool wait_expiries(int fd, __u64 n)
{
	struct twheel_context_stats stats;
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (now_ns() < end) {
		if (wh_stats(fd, &stats))
			return false;
		if (stats.expiries == n)
			return true;
		sleep_ns(MSEC);
	}
	return false;
}

/* Adds @n timers that expire within @spread from now, identified by their user data. */
static void add_random(struct __test_metadata *_metadata, int fd, unsigned int n, __u64 spread)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(fd, random_below(spread), 0, i, NULL));
}

/* Takes @n events, each of which must come exactly once. */
static void expect_all(struct __test_metadata *_metadata, FIXTURE_DATA(ring) * self,
		       unsigned int n)
{
	unsigned char *seen = calloc(n, 1);
	struct twheel_event event;
	unsigned int i;

	ASSERT_NE(NULL, seen);
	for (i = 0; i < n; i++) {
		expect_next(_metadata, self, &event);
		ASSERT_GT(n, event.user_data);
		ASSERT_EQ(0, seen[event.user_data]++);
	}
	free(seen);
}

TEST_F_TIMEOUT(ring, loses_nothing, 90)
{
	add_random(_metadata, self->fd, 1000, 300 * MSEC);
	expect_all(_metadata, self, 1000);
	expect_end(_metadata, self);
}

/* A reader that never sleeps: it calls poll() when the ring's flags say that events wait. */
TEST_F_TIMEOUT(ring, the_reader_is_busy, 90)
{
	__u64 polls = 0, end = now_ns() + GUARD_MS * MSEC;
	struct twheel_event event;

	add_random(_metadata, self->fd, 5000, 300 * MSEC);
	while (self->seq < 5000) {
		if (pop_event(self->ring, &event)) {
			EXPECT_EVENT_OK(&event);
			ASSERT_EQ(self->seq++, event.seq);
		} else if (__atomic_load_n(&self->ring->flags, __ATOMIC_RELAXED) &
			   TWHEEL_RING_WAITING) {
			polls++;
			wh_ready(self->fd);
		}
		ASSERT_GT(end, now_ns()) TH_LOG("no event %llu", self->seq);
	}
	printf("# %llu polls\n", polls);
	expect_end(_metadata, self);
}

TEST_F(ring, tells_that_events_wait)
{
	unsigned int i, n = variant->entries + 1;
	struct twheel_event event;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wait_expiries(self->fd, n));
	EXPECT_EQ(TWHEEL_RING_WAITING, self->ring->flags);
	EXPECT_EQ(n - 1, self->ring->head);
	EXPECT_EQ(1, wh_nr_events(self->fd));
	/* There is no room: poll() moves nothing. */
	EXPECT_EQ(true, wh_ready(self->fd));
	EXPECT_EQ(n - 1, self->ring->head);
	ASSERT_EQ(true, pop_event(self->ring, &event));
	EXPECT_EQ(self->seq++, event.seq);
	EXPECT_EQ(true, wh_ready(self->fd));
	EXPECT_EQ(n, self->ring->head);
	EXPECT_EQ(0, self->ring->flags);
	while (self->seq < n)
		expect_next(_metadata, self, &event);
	expect_end(_metadata, self);
}

static __u64 sleep_time(void)
{
	const char *text = getenv("TWHEEL_SLEEP");

	return (text ? strtoull(text, NULL, 0) : 3) * SEC;
}

/* Nobody waits for the sleeper: another context's timers expire as they should. */
TEST_F_TIMEOUT(ring, the_reader_sleeps, 600)
{
	__u64 end, armed, lateness, worst = 0, early = 0;
	struct twheel_event event;
	struct twheel_setup setup;
	struct twheel_ring *other_ring;
	int other = wh_open(O_NONBLOCK);

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, wh_setup(other, 1, 0, &setup));
	other_ring = wh_map(other, setup.ring_bytes, TWHEEL_RING_OFFSET);
	ASSERT_NE(NULL, other_ring);
	add_random(_metadata, self->fd, 10000, sleep_time());
	for (end = now_ns() + sleep_time(); now_ns() < end;) {
		ASSERT_EQ(0, wh_add(other, random_below(10 * MSEC), 0, 0, NULL));
		armed = now_ns();
		ASSERT_EQ(true, wait_pop_event(other, other_ring, &event));
		EXPECT_EVENT_OK(&event);
		EXPECT_PUNCTUAL(&event, armed);
		EXPECT_EQ(early++, event.seq);
		lateness = event.fired - event.deadline;
		if (lateness > worst)
			worst = lateness;
	}
	/*
	 * How late they are depends on the machine: what matters is that they come before the
	 * sleeper wakes.
	 */
	printf("# beside it: %llu events, at most %llu us late\n", early, worst / USEC);
	expect_all(_metadata, self, 10000);
	expect_end(_metadata, self);
	EXPECT_EQ(0, munmap(other_ring, setup.ring_bytes));
	EXPECT_EQ(0, close(other));
}

TEST_F(ring, what_is_in_the_ring_is_delivered)
{
	unsigned int i, n = variant->entries + 3;
	struct twheel_timer_query query;
	struct twheel_event event;
	__u64 handles[n];

	/* No timer must expire while others are added: these would reuse its memory. */
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &handles[i]));
	for (i = 0; i < n; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handles[i], 0, 0));
	ASSERT_EQ(true, wait_expiries(self->fd, n));
	for (i = 0; i < variant->entries && i < 5; i++) {
		EXPECT_EQ(-EALREADY, wh_cancel(self->fd, self->ring->events[i].handle));
		EXPECT_EQ(-EALREADY, wh_rearm(self->fd, self->ring->events[i].handle, 0, 0));
		EXPECT_EQ(-EALREADY, wh_query(self->fd, self->ring->events[i].handle, &query));
	}
	/* Of the three that wait, one is cancelled and one re-armed: they leave no gap. */
	for (i = 0; i < n && wh_state(self->fd, handles[i]) != TWHEEL_STATE_EXPIRED;)
		i++;
	ASSERT_GT(n, i);
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, handles[i]));
	handles[i] = 0;
	for (i = 0; i < n && wh_state(self->fd, handles[i]) != TWHEEL_STATE_EXPIRED;)
		i++;
	ASSERT_GT(n, i);
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, wh_rearm(self->fd, handles[i], HOUR, 0));
	EXPECT_EQ(1, wh_nr_events(self->fd));
	while (self->seq < n - 2)
		expect_next(_metadata, self, &event);
	EXPECT_EQ(false, wh_ready(self->fd));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handles[i], 0, 0));
	expect_next(_metadata, self, &event);
	EXPECT_EQ(handles[i], event.handle);
	expect_end(_metadata, self);
}

TEST_F(ring, read_is_for_those_without)
{
	struct twheel_event event;

	EXPECT_EQ(-EBUSY, wh_read(self->fd, &event, 1));
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 0, NULL));
	ASSERT_EQ(true, wh_wait(self->fd));
	EXPECT_EQ(-EBUSY, wh_read(self->fd, &event, 1));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	EXPECT_EQ(-EBUSY, wh_read(self->fd, &event, 1));
	expect_next(_metadata, self, &event);
	EXPECT_EQ(-EBUSY, wh_read(self->fd, &event, 1));
	expect_end(_metadata, self);
}

/*
 * One burst at a time, so that the next timer never makes up for a lost wake-up; bursts of up to
 * three timers, so that a small ring becomes full.
 */
static void sleep_and_wake(struct __test_metadata *_metadata, FIXTURE_DATA(ring) * self,
			   unsigned int rounds, bool epolls)
{
	struct epoll_event interest = { .events = EPOLLIN }, got;
	int epoll = epoll_create1(EPOLL_CLOEXEC), cpu[64], n = cpus(cpu, 64);
	struct twheel_event event;
	__u64 slept = 0, begin;
	unsigned int i, burst;

	ASSERT_GE(epoll, 0);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->fd, &interest));
	for (i = 0; i < rounds; i++) {
		/*
		 * A timer expires on the CPU where it was added; now and then the sleeper is on
		 * another.
		 */
		if (i % 8 == 0)
			ASSERT_EQ(0, pin(cpu[random_below(n)]));
		burst = 1 + random_below(3);
		while (burst--) {
			ASSERT_EQ(0, wh_add(self->fd, random_below(200 * USEC), 0, i, NULL));
			self->seq++;
		}
		if (i % 8 == 4)
			ASSERT_EQ(0, pin(cpu[random_below(n)]));
		while (self->ring->tail != (__u32)self->seq) {
			if (pop_event(self->ring, &event)) {
				EXPECT_EVENT_OK(&event);
				continue;
			}
			slept++;
			begin = now_ns();
			ASSERT_EQ(true, epolls ? epoll_wait(epoll, &got, 1, GUARD_MS) == 1 :
				  wh_wait(self->fd)) TH_LOG("round %u: lost", i);
			/*
			 * After a timeout, poll() checks once more, so success does not prove a
			 * wake-up.
			 */
			ASSERT_GT(begin + GUARD_MS * MSEC, now_ns()) TH_LOG("round %u: lost", i);
		}
	}
	printf("# slept %llu times\n", slept);
	EXPECT_LT(rounds / 2, slept);
	expect_end(_metadata, self);
	/* Since then, there have been no further events to report. */
	EXPECT_EQ(0, epoll_wait(epoll, &got, 1, 0));
	EXPECT_EQ(0, close(epoll));
}

TEST_F_TIMEOUT(ring, poll_misses_no_event, 200)
{
	sleep_and_wake(_metadata, self, ROUNDS, false);
}

TEST_F_TIMEOUT(ring, epoll_misses_no_event, 200)
{
	sleep_and_wake(_metadata, self, ROUNDS, true);
}

TEST_F(ring, epoll_level_and_edge)
{
	int level = wh_epoll(self->fd, EPOLLIN), edge = wh_epoll(self->fd, EPOLLIN | EPOLLET);
	struct twheel_event events[2];
	struct epoll_event got;

	ASSERT_GE(level, 0);
	ASSERT_GE(edge, 0);
	EXPECT_EQ(0, epoll_wait(level, &got, 1, 0));
	EXPECT_EQ(0, epoll_wait(edge, &got, 1, 0));

	/* If the ring has one entry, the second event waits. */
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 0, NULL));
	ASSERT_EQ(1, epoll_wait(edge, &got, 1, GUARD_MS));
	EXPECT_EQ(0, epoll_wait(edge, &got, 1, 0));
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, NULL));
	ASSERT_EQ(1, epoll_wait(edge, &got, 1, GUARD_MS));
	EXPECT_EQ(EPOLLIN, got.events);
	EXPECT_EQ(1, epoll_wait(level, &got, 1, 0));
	EXPECT_EQ(1, epoll_wait(level, &got, 1, 0));
	expect_next(_metadata, self, &events[0]);
	EXPECT_EQ(1, epoll_wait(level, &got, 1, 0));
	expect_next(_metadata, self, &events[1]);
	EXPECT_EQ(0, epoll_wait(level, &got, 1, 0));
	EXPECT_EQ(0, close(level));
	EXPECT_EQ(0, close(edge));
	expect_end(_metadata, self);
}

/*
 * An event that another caller's poll() moves into the ring is an edge for those that wait for
 * edges.
 */
TEST_F(ring, edge_when_another_polls)
{
	const bool small = variant->entries < 8;
	const unsigned int n = small ? variant->entries + 1 : 2;
	int edge = wh_epoll(self->fd, EPOLLIN | EPOLLET);
	struct twheel_event event;
	struct epoll_event got;
	unsigned int i;

	ASSERT_GE(edge, 0);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	while (total("pending"))
		sleep_ns(MSEC);
	while (epoll_wait(edge, &got, 1, 0) == 1)
		;
	/* Makes room for the event that did not fit. */
	expect_next(_metadata, self, &event);
	EXPECT_EQ(true, wh_ready(self->fd));
	EXPECT_EQ(small, epoll_wait(edge, &got, 1, small ? GUARD_MS : 0));
	for (i = 1; i < n; i++)
		expect_next(_metadata, self, &event);
	EXPECT_EQ(0, close(edge));
	expect_end(_metadata, self);
}

TEST_F(ring, periodic)
{
	struct twheel_timer_add add = {
		.time	= now_ns() + 20 * MSEC,
		.flags	= TWHEEL_TIME_ABS,
		.clock	= CLOCK_MONOTONIC,
		.period	= 5 * MSEC,
	};
	__u64 periods = 0, overruns = 0;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add_timer(self->fd, &add));
	while (periods < 100) {
		ASSERT_EQ(true, wait_pop_event(self->fd, self->ring, &event));
		EXPECT_EQ(self->seq++, event.seq);
		EXPECT_EQ(add.handle, event.handle);
		EXPECT_LE(event.deadline, event.fired);
		/* No period is missing, and none is reported twice. */
		ASSERT_EQ(add.time + periods * add.period, event.deadline);
		periods += 1 + event.overruns;
		overruns += event.overruns;
		/* Now and then the reader is late, and the ring may become full. */
		if (self->seq % 16 == 0)
			sleep_ns(30 * MSEC);
	}
	printf("# %llu events, %llu overruns\n", self->seq, overruns);
	ASSERT_LE(0, wh_cancel(self->fd, add.handle));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(ring, is_shared_by_fork)
{
	struct twheel_event event;
	int status, i;
	pid_t child;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wait_expiries(self->fd, 4));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		for (i = 0; i < 2; i++)
			if (!wait_pop_event(self->fd, self->ring, &event) || event.seq != (__u64)i)
				_exit(1 + i);
		_exit(wh_add(self->fd, 0, 0, 9, NULL) ? 9 : 0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(2, self->ring->tail);
	self->seq = 2;
	for (i = 0; i < 3; i++)
		expect_next(_metadata, self, &event);
	EXPECT_EQ(9, event.user_data);
	expect_end(_metadata, self);
}

TEST_F(ring, outlives_the_descriptor)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add(self->fd, 20 * MSEC, 0, 7, NULL));
	ASSERT_EQ(0, close(self->fd));
	EXPECT_EQ(1, total("contexts"));
	while (!pop_event(self->ring, &event))
		ASSERT_GT(end, now_ns());
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(7, event.user_data);
	/* For the fixture to close. */
	self->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ASSERT_GE(self->fd, 0);
}

TEST_F(ring, counts_as_memory_of_the_context)
{
	struct twheel_context_stats stats;
	int other = wh_open(0);

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, wh_stats(other, &stats));
	EXPECT_GT(self->bytes, stats.bytes);
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_LE(self->bytes, stats.bytes);
	EXPECT_EQ(0, close(other));
}

TEST_F(ring, refuses_other_mappings)
{
	const char *fault = wh_map_fault(self->fd, self->bytes, TWHEEL_RING_OFFSET);
	void *memory;

	EXPECT_EQ(NULL, fault) TH_LOG("maps %s", fault);
	EXPECT_EQ(NULL, wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET));
	/* The mapping cannot be changed later either. */
	EXPECT_EQ(-1, mprotect(self->ring, self->bytes, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(self->ring, self->bytes, 2 * self->bytes,
				     MREMAP_MAYMOVE));
	/* A second, read-only mapping elsewhere is allowed. */
	memory = mmap(NULL, self->bytes, PROT_READ, MAP_SHARED, self->fd, TWHEEL_RING_OFFSET);
	ASSERT_NE(MAP_FAILED, memory);
	EXPECT_EQ(variant->entries - 1, ((struct twheel_ring *)memory)->mask);
	EXPECT_EQ(0, munmap(memory, self->bytes));
}

/* Stores an invalid tail before an event comes, and a valid one afterwards. */
TEST_F(ring, a_tail_that_makes_no_sense)
{
	const __u32 wrong[] = {
		1, 2, variant->entries, variant->entries + 1, 0x7fffffff, 0x80000000,
		-variant->entries, -1,
	};
	struct twheel_event event;
	__u32 head, right;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		head = self->ring->head;
		right = self->ring->tail;
		ASSERT_EQ(head, right);
		__atomic_store_n(&self->ring->tail, head + wrong[i], __ATOMIC_RELEASE);
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
		ASSERT_EQ(true, wait_expiries(self->fd, self->seq + 1));
		/* Behind the head by less than the size of the ring, it is a valid tail. */
		if (-wrong[i] < variant->entries) {
			EXPECT_EQ(head + 1, self->ring->head);
		} else {
			EXPECT_EQ(head, self->ring->head);
			EXPECT_EQ(TWHEEL_RING_WAITING, self->ring->flags);
			EXPECT_EQ(1, wh_nr_events(self->fd));
		}
		EXPECT_EQ(true, wh_ready(self->fd));
		__atomic_store_n(&self->ring->tail, right, __ATOMIC_RELEASE);
		expect_next(_metadata, self, &event);
		EXPECT_EQ(i, event.user_data);
	}
	expect_end(_metadata, self);
}

/**
 * struct vandal - a thread that writes random data all over a ring
 * @ring:	the ring
 * @bytes:	its length
 * @sane:	tails below this may be valid
 * @seed:	seed of its random numbers
 * @stop:	the thread must exit
 */
struct vandal {
	struct twheel_ring	*ring;
	size_t			bytes;
	unsigned int		sane;
	__u64			seed;
	bool			stop;
};

static void *run_vandal(void *arg)
{
	struct vandal *vandal = arg;
	__u32 *words = (__u32 *)vandal->ring;

	random_thread(vandal->seed, 1);
	while (!__atomic_load_n(&vandal->stop, __ATOMIC_RELAXED)) {
		/* Half of the stores go to the header, and some of those are even valid. */
		size_t n = (random_below(2) ? vandal->bytes : sizeof(*vandal->ring)) / 4;

		__atomic_store_n(&words[random_below(n)], random_u64(), __ATOMIC_RELAXED);
		if (!random_below(4))
			__atomic_store_n(&vandal->ring->tail, random_below(vandal->sane),
					 __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F_TIMEOUT(ring, a_vandal_harms_nobody_else, 120)
{
	const unsigned int n = 500;
	struct vandal vandal = {
		.ring	= self->ring,
		.bytes	= self->bytes,
		.sane	= n,
		.seed	= random_u64(),
	};
	struct twheel_context_stats stats;
	struct twheel_event event;
	int other = wh_open(0);
	pthread_t thread;
	__u64 kept, moved;
	unsigned int i;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_vandal, &vandal));
	add_random(_metadata, self->fd, n, 200 * MSEC);
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, wh_add(other, 2 * MSEC, 0, i, NULL));
		ASSERT_EQ(1, wh_read(other, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(i, event.seq);
		wh_ready(self->fd);
	}
	ASSERT_EQ(true, wait_expiries(self->fd, n));
	__atomic_store_n(&vandal.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));

	/* The kernel remembers what it has written, and continues from there. */
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(n, stats.expiries);
	EXPECT_EQ(n - stats.delivered, stats.nr_events);
	kept = stats.nr_events;
	printf("# %llu delivered meanwhile, %llu kept\n", stats.delivered, kept);
	self->seq = stats.delivered;
	self->ring->head = self->seq + 12345;
	__atomic_store_n(&self->ring->tail, self->seq, __ATOMIC_RELEASE);
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, n, NULL));
	ASSERT_EQ(true, wait_expiries(self->fd, n + 1));
	/* An expiry moves only a few events. */
	ASSERT_EQ(true, wh_ready(self->fd));
	moved = kept + 1 < variant->entries ? kept + 1 : variant->entries;
	EXPECT_EQ((__u32)(self->seq + moved), self->ring->head);
	EXPECT_EQ(moved <= kept ? TWHEEL_RING_WAITING : 0, self->ring->flags);
	self->ring->mask = variant->entries - 1;
	while (self->seq <= n)
		expect_next(_metadata, self, &event);
	EXPECT_EQ(n, event.user_data);
	expect_end(_metadata, self);
	EXPECT_EQ(0, close(other));
}

TEST_HARNESS_MAIN
