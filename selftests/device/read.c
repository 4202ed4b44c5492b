// SPDX-License-Identifier: GPL-2.0-only
/*
 * read() and poll(): sizes, blocking, signals, readiness, bad buffers, many readers. Whatever a
 * reader does, no event is lost and none comes twice.
 */
#include <sys/select.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "twheel_test.h"
#include "late_memory.h"

#define EVENT	sizeof(struct twheel_event)
#define PAGE	4096UL

FIXTURE(read)
{
	int fd;
	__u64 seq;
	__u64 id;
};

FIXTURE_SETUP(read)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->seq = 0;
	self->id = 0;
}

FIXTURE_TEARDOWN(read)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Causes @n more events, with consecutive user data. */
static void make_events(struct __test_metadata *_metadata, FIXTURE_DATA(read) * self,
			unsigned int n)
{
	__u64 before = wh_nr_events(self->fd);
	unsigned int i;

	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, self->id, NULL));
		self->id++;
		/* One at a time, so that they come in this order. */
		ASSERT_EQ(true, wh_wait_events(self->fd, before + i + 1));
	}
}

/* Checks that these are the next @n events. */
static void expect_next(struct __test_metadata *_metadata, FIXTURE_DATA(read) * self,
			const struct twheel_event *events, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		EXPECT_EVENT_OK(&events[i]);
		EXPECT_EQ(self->seq, events[i].seq);
		EXPECT_EQ(self->seq, events[i].user_data);
		self->seq++;
	}
}

static void set_blocking(struct __test_metadata *_metadata, FIXTURE_DATA(read) * self)
{
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, fcntl(self->fd, F_GETFL) & ~O_NONBLOCK));
}

TEST_F(read, buffer_too_small)
{
	struct twheel_event event;
	unsigned int i, round;
	size_t size;

	/* Without an event and with one. */
	for (round = 0; round < 2; round++) {
		for (size = 0; size < EVENT; size++) {
			memset(&event, 0xa5, EVENT);
			ASSERT_EQ(-1, read(self->fd, &event, size));
			EXPECT_EQ(EINVAL, errno);
			for (i = 0; i < EVENT; i++)
				ASSERT_EQ(0xa5, ((unsigned char *)&event)[i]);
		}
		if (!round)
			make_events(_metadata, self, 1);
	}
	EXPECT_EQ(1, wh_nr_events(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	expect_next(_metadata, self, &event, 1);
}

TEST_F(read, arrays_and_partial_sizes)
{
	const size_t extra[] = { 0, 1, 8, EVENT - 1 };
	struct {
		struct twheel_event	events[8];
		unsigned char		guard[2 * EVENT];
	} buffer;
	size_t i, n, k, room;

	for (n = 1; n <= 8; n++) {
		for (i = 0; i < ARRAY_SIZE(extra); i++) {
			make_events(_metadata, self, 5);
			memset(&buffer, 0xa5, sizeof(buffer));
			room = n < 5 ? n : 5;
			ASSERT_EQ(room * EVENT,
				  read(self->fd, &buffer, n * EVENT + extra[i]));
			expect_next(_metadata, self, buffer.events, room);
			/* Nothing after the last whole event is written. */
			for (k = room * EVENT; k < sizeof(buffer); k++)
				ASSERT_EQ(0xa5, ((unsigned char *)&buffer)[k]);
			EXPECT_EQ(5 - room, wh_nr_events(self->fd));
			if (room < 5) {
				ASSERT_EQ(5 - room, wh_read(self->fd, buffer.events, 8));
				expect_next(_metadata, self, buffer.events, 5 - room);
			}
		}
	}
	ASSERT_EQ(-EAGAIN, wh_read(self->fd, buffer.events, 8));
}

TEST_F(read, large_batches)
{
	static struct twheel_event events[1000];
	unsigned int i, n;

	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, wh_add(self->fd, now_ns() + i * 10 * USEC, ABS, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1000));
	for (i = 0; i < 1000; i += n) {
		n = 1 + i % 100;
		if (n > 1000 - i)
			n = 1000 - i;
		ASSERT_EQ(n, wh_read(self->fd, &events[i], n));
	}
	for (i = 0; i < 1000; i++) {
		EXPECT_EVENT_OK(&events[i]);
		EXPECT_EQ(i, events[i].seq);
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(read, nothing_there)
{
	struct twheel_event event;

	EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
	EXPECT_EQ(0xa5, *(unsigned char *)&event);
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, NULL));
	EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
}

TEST_F(read, blocks_until_an_expiry)
{
	__u64 handle, deadline = now_ns() + 50 * MSEC;
	struct twheel_event events[2];

	set_blocking(_metadata, self);
	ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, 0, &handle));
	ASSERT_EQ(1, wh_read(self->fd, events, 2));
	EXPECT_LE(deadline, now_ns());
	EXPECT_EQ(handle, events[0].handle);
	expect_next(_metadata, self, events, 1);
}

static void *add_after_a_while(void *arg)
{
	sleep_ns(50 * MSEC);
	return (void *)(long)wh_add(*(int *)arg, 0, 0, 0, NULL);
}

TEST_F(read, blocks_with_no_timer_at_all)
{
	struct twheel_event event;
	pthread_t thread;
	void *ret;

	set_blocking(_metadata, self);
	ASSERT_EQ(0, pthread_create(&thread, NULL, add_after_a_while, &self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	expect_next(_metadata, self, &event, 1);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
}

static volatile sig_atomic_t signals;

static void on_alarm(int signal)
{
	(void)signal;
	signals++;
}

/* Sends a signal every 20 ms, so that one arrives while read() blocks. */
static int start_alarms(int flags)
{
	const struct itimerval each = {
		.it_interval	= { .tv_usec = 20000 },
		.it_value	= { .tv_usec = 20000 },
	};
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };

	signals = 0;
	return sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &each, NULL);
}

static int stop_alarms(void)
{
	const struct itimerval never = { };

	return setitimer(ITIMER_REAL, &never, NULL);
}

TEST_F(read, a_signal_interrupts)
{
	struct twheel_event event;
	__u64 handle;
	int ret;

	set_blocking(_metadata, self);
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 0, &handle));
	ASSERT_EQ(0, start_alarms(0));
	ret = wh_read(self->fd, &event, 1);
	ASSERT_EQ(0, stop_alarms());
	EXPECT_EQ(-EINTR, ret);
	EXPECT_LT(0, signals);
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handle, 0, 0));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	expect_next(_metadata, self, &event, 1);
}

TEST_F(read, a_read_is_restarted)
{
	struct twheel_event event;
	int ret;

	set_blocking(_metadata, self);
	ASSERT_EQ(0, wh_add(self->fd, 200 * MSEC, 0, 0, NULL));
	ASSERT_EQ(0, start_alarms(SA_RESTART));
	ret = wh_read(self->fd, &event, 1);
	ASSERT_EQ(0, stop_alarms());
	ASSERT_EQ(1, ret);
	EXPECT_LT(0, signals);
	expect_next(_metadata, self, &event, 1);
}

static int poll_now(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&pollfd, 1, 0);
}

TEST_F(read, poll_is_level_triggered)
{
	struct pollfd pollfd = { .fd = self->fd, .events = POLLIN | POLLRDNORM | POLLOUT };
	struct twheel_event event;
	unsigned int i;

	EXPECT_EQ(0, poll_now(self->fd));
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 99, NULL));
	EXPECT_EQ(0, poll_now(self->fd));
	make_events(_metadata, self, 5);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, poll(&pollfd, 1, 0));
		EXPECT_EQ(POLLIN | POLLRDNORM, pollfd.revents);
		/* It stays readable until the event is read. */
		ASSERT_EQ(1, poll(&pollfd, 1, 0));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		expect_next(_metadata, self, &event, 1);
	}
	EXPECT_EQ(0, poll_now(self->fd));
}

TEST_F(read, poll_waits_for_an_expiry)
{
	__u64 deadline = now_ns() + 50 * MSEC;
	struct twheel_event event;

	ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, 0, NULL));
	ASSERT_EQ(true, wh_wait(self->fd));
	EXPECT_LE(deadline, now_ns());
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	expect_next(_metadata, self, &event, 1);
}

TEST_F(read, select_too)
{
	struct timeval none = { }, guard = { .tv_sec = GUARD_MS / 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(self->fd, &set);
	EXPECT_EQ(0, select(self->fd + 1, &set, NULL, NULL, &none));
	ASSERT_EQ(0, wh_add(self->fd, 30 * MSEC, 0, 0, NULL));
	FD_SET(self->fd, &set);
	EXPECT_EQ(1, select(self->fd + 1, &set, NULL, NULL, &guard));
	EXPECT_EQ(true, FD_ISSET(self->fd, &set));
	FD_ZERO(&set);
	FD_SET(self->fd, &set);
	EXPECT_EQ(0, select(self->fd + 1, NULL, &set, NULL, &none));
}

TEST_F(read, epoll_level_and_edge)
{
	int level = wh_epoll(self->fd, EPOLLIN), edge = wh_epoll(self->fd, EPOLLIN | EPOLLET);
	struct twheel_event events[2];
	struct epoll_event got;

	ASSERT_GE(level, 0);
	ASSERT_GE(edge, 0);
	EXPECT_EQ(0, epoll_wait(level, &got, 1, 0));
	EXPECT_EQ(0, epoll_wait(edge, &got, 1, 0));

	ASSERT_EQ(0, wh_add(self->fd, 20 * MSEC, 0, self->id++, NULL));
	ASSERT_EQ(1, epoll_wait(edge, &got, 1, GUARD_MS));
	EXPECT_EQ(EPOLLIN, got.events);
	ASSERT_EQ(1, epoll_wait(level, &got, 1, GUARD_MS));
	EXPECT_EQ(EPOLLIN, got.events);
	/* An edge is reported once, a level until all events have been read. */
	EXPECT_EQ(0, epoll_wait(edge, &got, 1, 0));
	EXPECT_EQ(1, epoll_wait(level, &got, 1, 0));

	/* The next expiry is another edge, although nothing was read. */
	make_events(_metadata, self, 2);
	EXPECT_EQ(1, epoll_wait(edge, &got, 1, GUARD_MS));
	ASSERT_EQ(2, wh_read(self->fd, events, 2));
	expect_next(_metadata, self, events, 2);
	EXPECT_EQ(1, epoll_wait(level, &got, 1, 0));
	ASSERT_EQ(1, wh_read(self->fd, events, 1));
	expect_next(_metadata, self, events, 1);
	EXPECT_EQ(0, epoll_wait(level, &got, 1, 0));
	EXPECT_EQ(0, close(level));
	EXPECT_EQ(0, close(edge));
}

/* Maps two consecutive pages: the first is writable, the second is not. */
static unsigned char *map_half_bad(int protection)
{
	unsigned char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	memset(memory, 0xa5, 2 * PAGE);
	if (mprotect(memory + PAGE, PAGE, protection))
		return NULL;
	return memory;
}

TEST_F(read, a_bad_buffer_loses_nothing)
{
	unsigned char *bad[] = { NULL, map_half_bad(PROT_NONE), map_half_bad(PROT_READ) };
	struct twheel_event events[4], other;
	size_t i;

	ASSERT_NE(NULL, bad[1]);
	ASSERT_NE(NULL, bad[2]);
	bad[1] += PAGE;
	bad[2] += PAGE;
	make_events(_metadata, self, 3);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_EQ(-1, read(self->fd, bad[i], EVENT));
		EXPECT_EQ(EFAULT, errno);
		ASSERT_EQ(-1, read(self->fd, bad[i], 10 * EVENT));
		EXPECT_EQ(EFAULT, errno);
		/* Either only the last byte of the event is in bad memory, or all but the first. */
		if (bad[i]) {
			ASSERT_EQ(-1, read(self->fd, bad[i] - EVENT + 1, EVENT));
			EXPECT_EQ(EFAULT, errno);
			ASSERT_EQ(-1, read(self->fd, bad[i] - 1, 2 * EVENT));
			EXPECT_EQ(EFAULT, errno);
		}
		EXPECT_EQ(3, wh_nr_events(self->fd));
		EXPECT_EQ(3, wh_nr_timers(self->fd));
		EXPECT_EQ(true, wh_ready(self->fd));
	}
	/* The events are still in order. */
	ASSERT_EQ(3, wh_read(self->fd, events, 4));
	expect_next(_metadata, self, events, 3);
	ASSERT_EQ(-EAGAIN, wh_read(self->fd, &other, 1));
}

TEST_F(read, a_buffer_that_goes_bad_midway)
{
	unsigned char *memory = map_half_bad(PROT_NONE);
	struct twheel_event events[64];
	unsigned int whole, slack;

	ASSERT_NE(NULL, memory);
	/* @whole events fit before the bad page, and a part of the next. */
	for (whole = 1; whole <= 40; whole += 3) {
		for (slack = 0; slack < EVENT; slack += 13) {
			make_events(_metadata, self, whole + 2);
			ASSERT_EQ(whole * EVENT,
				  read(self->fd, memory + PAGE - whole * EVENT - slack,
				       64 * EVENT < PAGE ? 64 * EVENT : PAGE));
			memcpy(events, memory + PAGE - whole * EVENT - slack, whole * EVENT);
			expect_next(_metadata, self, events, whole);
			EXPECT_EQ(2, wh_nr_events(self->fd));
			ASSERT_EQ(2, wh_read(self->fd, events, 64));
			expect_next(_metadata, self, events, 2);
		}
	}
}

TEST_F(read, scattered)
{
	struct twheel_event events[4];
	unsigned char *bytes = (unsigned char *)events;
	struct iovec pieces[] = {
		{ bytes, 1 },
		{ bytes + 1, EVENT },
		{ bytes + 1 + EVENT, 0 },
		{ bytes + 1 + EVENT, 2 * EVENT + 5 },
	};
	struct iovec small[] = { { bytes, EVENT / 2 }, { bytes + EVENT / 2, EVENT / 2 - 1 } };
	struct iovec bad[] = { { bytes, EVENT + 8 }, { NULL, EVENT } };

	make_events(_metadata, self, 5);
	memset(events, 0xa5, sizeof(events));
	ASSERT_EQ(3 * EVENT, readv(self->fd, pieces, ARRAY_SIZE(pieces)));
	expect_next(_metadata, self, events, 3);
	ASSERT_EQ(-1, readv(self->fd, small, ARRAY_SIZE(small)));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(EVENT, readv(self->fd, bad, ARRAY_SIZE(bad)));
	expect_next(_metadata, self, events, 1);
	ASSERT_EQ(1, wh_read(self->fd, events, 4));
	expect_next(_metadata, self, events, 1);
}

/**
 * struct crowd - readers of one context
 * @fd:		the context
 * @seen:	how often each timer's event was read
 * @seqs:	how often each sequence number was read
 * @read:	events read by all
 * @running:	readers that have not exited
 * @faults:	events that were wrong
 */
struct crowd {
	int		fd;
	unsigned char	*seen;
	unsigned char	*seqs;
	unsigned int	read;
	unsigned int	running;
	unsigned int	faults;
};

#define CROWD_TIMERS	20000
#define CROWD_STOP	(1ULL << 40)
#define CROWD_READERS	4

/* Reads until an event says stop. */
static void *run_reader(void *arg)
{
	struct twheel_event events[CROWD_READERS];
	static unsigned int numbers;
	struct crowd *crowd = arg;
	int n, i, max = 1 + __atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED) % CROWD_READERS;
	bool stop = false;

	while (!stop) {
		n = wh_read(crowd->fd, events, max);
		for (i = 0; i < n; i++) {
			if (wh_event_fault(&events[i]))
				__atomic_fetch_add(&crowd->faults, 1, __ATOMIC_RELAXED);
			if (events[i].user_data == CROWD_STOP) {
				stop = true;
				continue;
			}
			__atomic_fetch_add(&crowd->seen[events[i].user_data], 1,
					   __ATOMIC_RELAXED);
			if (events[i].seq >= CROWD_TIMERS)
				__atomic_fetch_add(&crowd->faults, 1, __ATOMIC_RELAXED);
			else
				__atomic_fetch_add(&crowd->seqs[events[i].seq], 1,
						   __ATOMIC_RELAXED);
			__atomic_fetch_add(&crowd->read, 1, __ATOMIC_RELAXED);
		}
		if (n < 0) {
			__atomic_fetch_add(&crowd->faults, 1, __ATOMIC_RELAXED);
			break;
		}
	}
	__atomic_fetch_sub(&crowd->running, 1, __ATOMIC_RELAXED);
	return NULL;
}

TEST_F_TIMEOUT(read, many_readers, 90)
{
	struct crowd crowd = {
		.fd		= self->fd,
		.seen		= calloc(CROWD_TIMERS, 1),
		.seqs		= calloc(CROWD_TIMERS, 1),
		.running	= CROWD_READERS,
	};
	__u64 end = now_ns() + GUARD_MS * MSEC;
	pthread_t threads[CROWD_READERS];
	unsigned int i;

	ASSERT_NE(NULL, crowd.seen);
	ASSERT_NE(NULL, crowd.seqs);
	random_seed();
	/* So many expire at once that checking each for lateness would take long. */
	punctual_off();
	set_blocking(_metadata, self);
	for (i = 0; i < CROWD_READERS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run_reader, &crowd));
	for (i = 0; i < CROWD_TIMERS; i++)
		ASSERT_EQ(0, wh_add(self->fd, random_below(300 * MSEC), 0, i, NULL));
	while (__atomic_load_n(&crowd.read, __ATOMIC_RELAXED) < CROWD_TIMERS) {
		ASSERT_GT(end, now_ns()) TH_LOG("%u of %u read", crowd.read, CROWD_TIMERS);
		sleep_ns(MSEC);
	}
	while (__atomic_load_n(&crowd.running, __ATOMIC_RELAXED)) {
		ASSERT_GT(end, now_ns()) TH_LOG("%u readers hang", crowd.running);
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, CROWD_STOP, NULL));
		sleep_ns(MSEC);
	}
	for (i = 0; i < CROWD_READERS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, crowd.faults);
	EXPECT_EQ(CROWD_TIMERS, crowd.read);
	for (i = 0; i < CROWD_TIMERS; i++) {
		ASSERT_EQ(1, crowd.seen[i]);
		ASSERT_EQ(1, crowd.seqs[i]);
	}
	free(crowd.seen);
	free(crowd.seqs);
}

/**
 * struct bad_reader - a thread that reads into bad memory
 * @fd:		the context
 * @buffer:	the memory
 * @stop:	the thread must exit
 * @wrong:	reads that did not fail
 */
struct bad_reader {
	int		fd;
	unsigned char	*buffer;
	bool		stop;
	unsigned int	wrong;
};

static void *run_bad_reader(void *arg)
{
	struct bad_reader *bad = arg;

	while (!__atomic_load_n(&bad->stop, __ATOMIC_RELAXED)) {
		if (read(bad->fd, bad->buffer, EVENT) >= 0)
			bad->wrong++;
	}
	return NULL;
}

/* A reader whose reads fail must not hide an event from those that wait for it. */
TEST_F_TIMEOUT(read, a_failing_reader_hides_no_event, 90)
{
	struct bad_reader bad = { .fd = self->fd, .buffer = map_half_bad(PROT_NONE) };
	struct twheel_event event;
	unsigned int i, polls = 0;
	pthread_t thread;
	__u64 end;

	ASSERT_NE(NULL, bad.buffer);
	bad.buffer += PAGE;
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_bad_reader, &bad));
	/* Most rounds end while the failing reader is in a call. */
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
		for (end = now_ns() + 20 * MSEC; now_ns() < end; polls++)
			ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("after %u polls", polls);
		while (wh_read(self->fd, &event, 1) != 1)
			ASSERT_EQ(true, wh_wait(self->fd));
		expect_next(_metadata, self, &event, 1);
	}
	__atomic_store_n(&bad.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, bad.wrong);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/**
 * struct late_reader - a thread that reads an event into memory which is missing
 * @fd:		the context
 * @memory:	the memory
 * @error:	with what the read failed
 */
struct late_reader {
	int	fd;
	char	*memory;
	int	error;
};

static void *read_late(void *arg)
{
	struct late_reader *late = arg;

	late->error = read(late->fd, late->memory, EVENT) < 0 ? errno : 0;
	return NULL;
}

/* A periodic timer is cancelled, or re-armed, while a read that fails has its event. */
TEST_F(read, a_failing_reader_leaves_no_event_uncounted)
{
	struct twheel_timer_add add = { .period = HOUR, .clock = CLOCK_MONOTONIC };
	struct late_reader late = { .fd = self->fd };
	struct twheel_context_stats stats;
	pthread_t thread;
	int i, uffd, ret;

	for (i = 0; i < 2; i++) {
		uffd = late_memory(&late.memory, PAGE);
		if (uffd < 0)
			SKIP(return, "no userfaultfd");
		ASSERT_EQ(0, wh_add_timer(self->fd, &add));
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(0, pthread_create(&thread, NULL, read_late, &late));
		ASSERT_EQ(true, memory_wanted(uffd));
		ret = i ? wh_rearm(self->fd, add.handle, HOUR, 0) :
			  wh_cancel(self->fd, add.handle);
		EXPECT_EQ(TWHEEL_WAS_DELIVERED, ret);
		ASSERT_EQ(true, let_memory_go(uffd, late.memory, PAGE));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(EFAULT, late.error);
		close(uffd);
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, add.handle));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(2, stats.expiries);
	EXPECT_EQ(2, stats.taken_back);
	EXPECT_EQ(0, stats.delivered);
	EXPECT_EQ(0, stats.nr_timers);
}

/* Causes very many events, and allocates memory for all of them. */
static struct twheel_event *cause_many_events(int fd, unsigned int n)
{
	struct twheel_event *events = calloc(n, EVENT);
	unsigned int i;

	for (i = 0; events && i < n; i++)
		if (wh_add(fd, 0, 0, i, NULL))
			return NULL;
	return wh_wait_events(fd, n) ? events : NULL;
}

/* Waits until a read() has started to take the @n events. */
static bool wait_until_read(int fd, unsigned int n)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (wh_nr_events(fd) == n)
		if (now_ns() > end)
			return false;
	return true;
}

/* If a process is killed during a long read(), the read stops. */
TEST_F_TIMEOUT(read, can_be_killed, 90)
{
	const unsigned int n = very_many();
	struct twheel_event *events = cause_many_events(self->fd, n);
	__u64 left;
	pid_t child;

	ASSERT_NE(NULL, events);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(read(self->fd, events, n * EVENT) < 0);
	EXPECT_EQ(true, wait_until_read(self->fd, n));
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	left = wh_nr_events(self->fd);
	printf("# %llu of %u events are left\n", left, n);
	EXPECT_LT(0, left);
	/*
	 * The events that it read are gone with it, and the sequence numbers continue after them.
	 */
	ASSERT_EQ(1, wh_read(self->fd, events, 1));
	EXPECT_EQ(n - left, events->seq);
	free(events);
}

static void on_signal(int signal)
{
	(void)signal;
}

/* A read() that a signal interrupts returns what it has read so far. */
TEST_F_TIMEOUT(read, ends_short_at_a_signal, 90)
{
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	const unsigned int n = very_many();
	struct twheel_event *events = cause_many_events(self->fd, n);
	pid_t child, parent = getpid();
	unsigned int i;
	ssize_t ret;

	ASSERT_NE(NULL, events);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		wait_until_read(self->fd, n);
		_exit(kill(parent, SIGUSR1));
	}
	ret = read(self->fd, events, n * EVENT);
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	ASSERT_LT(0, ret);
	EXPECT_EQ(0, ret % EVENT);
	ret /= EVENT;
	printf("# %zd of %u events\n", ret, n);
	EXPECT_GT(n, ret);
	EXPECT_EQ(n - ret, wh_nr_events(self->fd));
	for (i = 0; i < ret; i++)
		ASSERT_EQ(i, events[i].seq);
	free(events);
}

TEST_HARNESS_MAIN
