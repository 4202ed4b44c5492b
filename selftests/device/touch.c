// SPDX-License-Identifier: GPL-2.0-only
/*
 * The touch array: the time in it is fresh where programs run, a timer that is touched does not
 * expire, and what a hostile program stores moves no other timers and takes no more than its share
 * of the softirq.
 */
#include <sys/wait.h>

#include "twheel_test.h"

#define WORDS	1000
#define IDLE	(200 * MSEC)

/* Even on a busy host, the published time is no older than this. */
#define FRESH	(60 * MSEC)

FIXTURE(touch)
{
	int fd;
	struct twheel_touch *touch;
	size_t bytes;
	__u64 jiffy;
	int n;
	int cpu[64];
};

FIXTURE_SETUP(touch)
{
	struct twheel_setup setup;
	struct timespec jiffy;

	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, 0, WORDS, &setup));
	EXPECT_EQ(0, setup.ring_bytes);
	EXPECT_LE(sizeof(*self->touch) + WORDS * sizeof(self->touch->words[0]),
		  setup.touch_bytes);
	self->bytes = setup.touch_bytes;
	self->touch = wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, self->touch);
	/* The coarse clocks advance by jiffies. */
	ASSERT_EQ(0, clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy));
	self->jiffy = jiffy.tv_nsec;
	self->n = cpus(self->cpu, 64);
	random_seed();
}

FIXTURE_TEARDOWN(touch)
{
	EXPECT_EQ(0, munmap(self->touch, self->bytes));
	EXPECT_EQ(0, close(self->fd));
}

static __u64 published_time(const struct twheel_touch *touch)
{
	return __atomic_load_n(&touch->now, __ATOMIC_RELAXED);
}

static void store_word(struct twheel_touch *touch, unsigned int word, __u64 value)
{
	__atomic_store_n(&touch->words[word], value, __ATOMIC_RELAXED);
}

/* Touches a word, as a program does. Returns the time that it stored. */
static __u64 touch_word(struct twheel_touch *touch, unsigned int word)
{
	__u64 now = published_time(touch);

	store_word(touch, word, now);
	return now;
}

/* Adds a timer with an idle timeout that is touched through @word. */
static int add_idle(int fd, __u64 idle, __u64 lifetime, __u32 word, __u64 *handle)
{
	struct twheel_timer_add add = {
		.time		= TWHEEL_TIME_NONE,
		.user_data	= word,
		.flags		= TWHEEL_TOUCHED,
		.clock		= CLOCK_MONOTONIC,
		.idle		= idle,
		.lifetime	= lifetime,
		.touch		= word,
	};
	int ret = wh_add_timer(fd, &add);

	if (ret >= 0 && handle)
		*handle = add.handle;
	return ret;
}

/* Waits for the next event. Returns false if it times out. */
static bool next_event(int fd, struct twheel_event *event)
{
	return wh_wait(fd) && wh_read(fd, event, 1) == 1;
}

/* Checks that an event was due from @min to @max: later if the kernel has seen a touch too many. */
static void expect_due(struct __test_metadata *_metadata, const struct twheel_event *event,
		       __u32 reason, __u64 min, __u64 max)
{
	EXPECT_EQ(reason, event->reason);
	EXPECT_LE(event->deadline, event->fired);
	EXPECT_LE(min, event->deadline);
	EXPECT_LE(event->deadline, max);
}

/* The same, and that it was punctual. */
static void expect_fired(struct __test_metadata *_metadata, const struct twheel_event *event,
			 __u32 reason, __u64 min, __u64 max)
{
	expect_due(_metadata, event, reason, min, max);
	EXPECT_PUNCTUAL(event, 0);
}

static int compare_times(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorts times, prints the median and the maximum, and returns the median. */
static __u64 print_median(const char *what, __u64 *times, unsigned int n)
{
	qsort(times, n, sizeof(*times), compare_times);
	printf("# %s: %lld us, at most %lld us\n", what, (long long)times[n / 2] / 1000,
	       (long long)times[n - 1] / 1000);
	return times[n / 2];
}

/*
 * Checks that time advances while only the CPU that we run on is busy. If it did not, half of the
 * ages would be more than half of the time that we observe it.
 */
static void expect_alive(struct __test_metadata *_metadata, FIXTURE_DATA(touch) * self, int cpu)
{
	const unsigned int max = 10000;
	__u64 time, last = 0, now, begin, ages[max];
	unsigned int n = 0;

	ASSERT_EQ(0, pin(cpu));
	for (begin = now_ns(); now_ns() < begin + 10 * FRESH;) {
		time = published_time(self->touch);
		now = now_ns();
		ASSERT_LE(time, now);
		ASSERT_LE(last, time);
		last = time;
		/* Samples are evenly distributed over time, on any machine. */
		if (n < max && now >= begin + n * (10 * FRESH / max))
			ages[n++] = now - time;
	}
	EXPECT_GT(FRESH, print_median("age on a busy CPU", ages, n));
}

TEST_F_TIMEOUT(touch, time_goes_on_while_a_cpu_is_busy, 90)
{
	int i;

	for (i = 0; i < self->n; i++)
		expect_alive(_metadata, self, self->cpu[i]);
}

TEST_F_TIMEOUT(touch, time_is_fresh_after_a_sleep, 90)
{
	__u64 ages[10], time;
	unsigned int k;
	int i;

	for (i = 0; i < self->n; i++) {
		ASSERT_EQ(0, pin(self->cpu[i]));
		for (k = 0; k < ARRAY_SIZE(ages); k++) {
			sleep_ns(4 * FRESH);
			time = published_time(self->touch);
			ages[k] = now_ns() - time;
			ASSERT_LE(time, now_ns());
		}
		/* A time that was published before the sleep would be older. */
		EXPECT_GT(FRESH, print_median("age after a sleep", ages, ARRAY_SIZE(ages)));
	}
}

TEST_F(touch, every_array_is_told)
{
	struct twheel_setup setup;
	struct twheel_touch *other;
	int fd = wh_open(0), i;
	__u64 time;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, wh_setup(fd, 0, 1, &setup));
	other = wh_map(fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, other);
	/* Right from the start. */
	EXPECT_NE(0, published_time(other));
	EXPECT_LE(published_time(other), now_ns());
	for (i = 0; i < 5; i++) {
		time = now_ns();
		sleep_ns(20 * self->jiffy);
		EXPECT_LE(time, published_time(self->touch));
		EXPECT_LE(time, published_time(other));
	}
	EXPECT_EQ(0, munmap(other, setup.touch_bytes));
	EXPECT_EQ(0, close(fd));
	time = now_ns();
	sleep_ns(20 * self->jiffy);
	EXPECT_LE(time, published_time(self->touch));
}

/* The physical frame number of a page; 0 if it cannot be read. */
static __u64 frame_of(const void *address)
{
	const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	__u64 entry = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, 8, (uintptr_t)address / 4096 * 8) != 8)
		entry = 0;
	close(fd);
	return entry & ((1ULL << 55) - 1);
}

/*
 * On each jiffy, the kernel publishes the time with interrupts disabled. That is a single store,
 * however many arrays there are: all map the same page.
 */
TEST_F(touch, one_store_for_all)
{
	enum { ARRAYS = 16 };
	struct twheel_touch *other[ARRAYS];
	struct twheel_setup setup;
	int fd[ARRAYS], i;
	__u64 frame;

	if (access("/proc/self/pagemap", F_OK))
		SKIP(return, "this kernel does not show in which frame a page is");
	store_word(self->touch, 0, 1);
	EXPECT_NE(0, published_time(self->touch));
	frame = frame_of(self->touch);
	ASSERT_NE(0, frame);
	for (i = 0; i < ARRAYS; i++) {
		fd[i] = wh_open(0);
		ASSERT_LE(0, fd[i]);
		ASSERT_EQ(0, wh_setup(fd[i], 0, 1, &setup));
		other[i] = wh_map(fd[i], setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
		ASSERT_NE(NULL, other[i]);
		/* Reading the page maps it. */
		EXPECT_NE(0, published_time(other[i]));
		store_word(other[i], 0, 1);
		EXPECT_EQ(frame, frame_of(other[i]));
		/* Each array has its own words. */
		EXPECT_NE(frame, frame_of(other[i]->words));
		EXPECT_NE(frame_of(self->touch->words), frame_of(other[i]->words));
	}
	for (i = 0; i < ARRAYS; i++) {
		EXPECT_EQ(0, munmap(other[i], setup.touch_bytes));
		EXPECT_EQ(0, close(fd[i]));
	}
}

/*
 * Stores to a word of the page with the time, in a child. Returns the signal that kills it, or 0.
 */
static int signal_of_store(volatile __u64 *word)
{
	int status;
	pid_t child = fork();

	if (!child) {
		*word = 1;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -ECHILD;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* All contexts share the page: nobody can write to it, whether or not it was accessed before. */
TEST_F(touch, the_time_can_only_be_read)
{
	volatile __u64 *last = &self->touch->reserved[510], *first = &self->touch->now;
	char path[] = "/proc/self/mem";
	__u64 nonsense = ~0ULL;
	int memory, pipes[2];

	EXPECT_EQ(SIGBUS, signal_of_store(first));
	EXPECT_EQ(SIGBUS, signal_of_store(last));
	EXPECT_NE(0, *first);
	EXPECT_EQ(SIGBUS, signal_of_store(first));
	EXPECT_EQ(0, *last);
	EXPECT_EQ(SIGBUS, signal_of_store(last));
	/* Nor can the kernel be made to write there. */
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(8, write(pipes[1], &nonsense, 8));
	EXPECT_EQ(-1, read(pipes[0], (void *)last, 8));
	EXPECT_EQ(EFAULT, errno);
	memory = open(path, O_RDWR);
	ASSERT_LE(0, memory);
	EXPECT_NE(8, pwrite(memory, &nonsense, 8, (uintptr_t)last));
	EXPECT_EQ(0, *last);
	/* The words start right after it, and are writable. */
	EXPECT_EQ(0, mprotect(self->touch, self->bytes, PROT_READ));
	EXPECT_EQ(0, mprotect(self->touch, self->bytes, PROT_READ | PROT_WRITE));
	EXPECT_EQ(SIGBUS, signal_of_store(last));
	store_word(self->touch, 0, 1);
	EXPECT_EQ(4096, (char *)&self->touch->words[0] - (char *)self->touch);
	close(memory);
	close(pipes[0]);
	close(pipes[1]);
}

/* Arrays are created and destroyed, and time advances in each. */
TEST_F_TIMEOUT(touch, arrays_come_and_go, 90)
{
	struct twheel_setup setup;
	struct twheel_touch *other;
	int i, fd;
	__u64 time;

	/* So that there is no array in between. */
	ASSERT_EQ(0, munmap(self->touch, self->bytes));
	ASSERT_EQ(0, close(self->fd));
	for (i = 0; i < 20; i++) {
		fd = wh_open(0);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, wh_setup(fd, 0, 1, &setup));
		other = wh_map(fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
		ASSERT_NE(NULL, other);
		time = now_ns();
		sleep_ns(20 * self->jiffy);
		EXPECT_LE(time, published_time(other));
		EXPECT_EQ(0, munmap(other, setup.touch_bytes));
		EXPECT_EQ(0, close(fd));
	}
	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, 0, WORDS, &setup));
	self->touch = wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, self->touch);
}

/*
 * Touches a word every 20 ms, for @duration. Returns whether it did so in time: on a busy machine,
 * it may not have run for a while.
 */
static bool keep_touching(struct twheel_touch *touch, unsigned int word, __u64 duration)
{
	__u64 begin = now_ns(), last, touched = begin, gap = 0;

	while (touched < begin + duration) {
		sleep_ns(20 * MSEC);
		last = touched;
		touch_word(touch, word);
		touched = now_ns();
		if (touched - last > gap)
			gap = touched - last;
	}
	return gap < IDLE / 2;
}

/* How often to try what needs a machine that is not too busy. */
#define TRIES	(simulated() ? 1 : 20)

TEST_F_TIMEOUT(touch, a_touched_timer_lives, 90)
{
	struct twheel_context_stats stats, before;
	struct twheel_event event;
	int tries = TRIES;
	__u64 touched;
	bool in_time;

	do {
		ASSERT_EQ(0, wh_stats(self->fd, &before));
		ASSERT_EQ(0, add_idle(self->fd, IDLE, 0, 7, NULL));
		in_time = keep_touching(self->touch, 7, SEC);
		touched = self->touch->words[7];
		ASSERT_EQ(true, next_event(self->fd, &event));
	} while (!in_time && --tries);
	ASSERT_EQ(true, in_time) TH_LOG("the machine is too busy");
	expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE, touched + IDLE,
		     touched + IDLE + 2 * self->jiffy);
	EXPECT_EQ(7, event.user_data);
	printf("# fired %llu us after the touch and the idle timeout\n",
	       (event.fired - touched - IDLE) / USEC);
	/* A touch costs the kernel nothing: it checks the word about once per idle timeout. */
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_LE(5, stats.deferrals - before.deferrals);
	EXPECT_GE(2 * (SEC / IDLE + 1), stats.deferrals - before.deferrals);
}

/*
 * The stored time is some jiffies old, yet the idle timeout counts from the touch itself: no timer
 * is early because of this. On a busy host, time stands still now and then, so only the median of
 * many has to be right, and not at the first try.
 */
TEST_F_TIMEOUT(touch, no_jiffy_is_lost, 90)
{
	enum { N = 51 };
	__u64 touched[N], over[N], last;
	struct twheel_event event;
	int i, tries = TRIES;

	do {
		for (i = 0; i < N; i++)
			ASSERT_EQ(0, add_idle(self->fd, IDLE, 0, i, NULL));
		for (i = 0; i < N; i++) {
			touched[i] = now_ns();
			touch_word(self->touch, i);
			/* At random points of a jiffy. */
			while (now_ns() < touched[i] + random_below(self->jiffy))
				;
		}
		for (i = 0; i < N; i++) {
			ASSERT_EQ(true, next_event(self->fd, &event));
			ASSERT_GT(N, event.user_data);
			over[i] = event.deadline - touched[event.user_data] - IDLE;
			ASSERT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
		}
		/* If a timer is early, this is a very large number. */
		last = print_median("later than idle", over, N);
	} while (last > 2 * self->jiffy && --tries);
	EXPECT_GE(2 * self->jiffy, last);
}

/* Without a touch after the add, the idle timeout counts from the add. */
TEST_F(touch, an_untouched_timer_expires)
{
	__u64 before[3], after[3];
	struct twheel_event event;
	int i;

	store_word(self->touch, 1, 12345);
	store_word(self->touch, 2, now_ns() - SEC);
	for (i = 0; i < 3; i++) {
		before[i] = now_ns();
		ASSERT_EQ(0, add_idle(self->fd, 50 * MSEC, 0, i, NULL));
		after[i] = now_ns();
	}
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(true, next_event(self->fd, &event));
		ASSERT_GT(3, event.user_data);
		expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE,
			     before[event.user_data] + 50 * MSEC,
			     after[event.user_data] + 50 * MSEC + 2 * self->jiffy);
	}
}

/* Each timeout counts from two jiffies after the stored time, which may have been that old. */
TEST_F(touch, several_timers_share_a_word)
{
	struct twheel_event event;
	__u64 touched, due;
	int i;

	for (i = 1; i <= 4; i++)
		ASSERT_EQ(0, add_idle(self->fd, i * 50 * MSEC, 0, WORDS - 1, NULL));
	touched = now_ns();
	store_word(self->touch, WORDS - 1, touched);
	for (i = 1; i <= 4; i++) {
		ASSERT_EQ(true, next_event(self->fd, &event));
		due = touched + 2 * self->jiffy + i * 50 * MSEC;
		expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE, due, due);
	}
}

/* Activity is reported by a call and through the word: the later one counts. */
TEST_F_TIMEOUT(touch, the_call_counts_too, 90)
{
	struct twheel_event event;
	__u64 handle, before, after;
	int tries = TRIES, ret;

	do {
		ASSERT_EQ(0, add_idle(self->fd, IDLE, 0, 3, &handle));
		touch_word(self->touch, 3);
		sleep_ns(IDLE / 4);
		before = now_ns();
		ret = wh_active(self->fd, handle);
		after = now_ns();
		ASSERT_EQ(true, next_event(self->fd, &event));
	} while (ret != TWHEEL_WAS_PENDING && --tries);
	ASSERT_EQ(TWHEEL_WAS_PENDING, ret);
	expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE, before + IDLE,
		     after + IDLE + 2 * self->jiffy);
}

/* A time in the future counts as activity when the kernel first sees it, and only then. */
TEST_F(touch, the_future_counts_once)
{
	const __u64 values[] = { ~0ULL, 1ULL << 63, TWHEEL_TIME_MAX, now_ns() + HOUR };
	struct twheel_context_stats stats;
	struct twheel_event event;
	__u64 before[4], after[4];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		store_word(self->touch, i, values[i]);
		before[i] = now_ns();
		ASSERT_EQ(0, add_idle(self->fd, 50 * MSEC, HOUR, i, NULL));
		after[i] = now_ns();
	}
	/* The kernel sees it when the timer is added. */
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(true, next_event(self->fd, &event));
		ASSERT_GT(4, event.user_data);
		expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE,
			     before[event.user_data] + 50 * MSEC,
			     after[event.user_data] + 50 * MSEC);
	}
	/* A different one counts as activity again, at the time when the kernel sees it. */
	store_word(self->touch, 0, ~0ULL);
	before[0] = now_ns();
	ASSERT_EQ(0, add_idle(self->fd, 100 * MSEC, HOUR, 0, NULL));
	store_word(self->touch, 0, ~1ULL);
	ASSERT_EQ(true, next_event(self->fd, &event));
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
	EXPECT_LE(before[0] + 200 * MSEC, event.deadline);
	/* In all, the kernel has deferred a timer only once. */
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(1, stats.deferrals);
	EXPECT_EQ(5, stats.expiries);
}

/* The shortest idle timeout of a touched timer. */
TEST_F(touch, too_short)
{
	struct twheel_timer_rearm rearm = { .limit = TWHEEL_LIMIT_IDLE };

	EXPECT_EQ(-EINVAL, add_idle(self->fd, 1, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, add_idle(self->fd, TWHEEL_IDLE_MIN - 1, HOUR, 0, NULL));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	ASSERT_EQ(0, add_idle(self->fd, HOUR, 0, 0, &rearm.handle));
	rearm.time = TWHEEL_IDLE_MIN - 1;
	EXPECT_EQ(-EINVAL, wh_rearm_timer(self->fd, &rearm));
	rearm.time = TWHEEL_IDLE_MIN;
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm_timer(self->fd, &rearm));
	EXPECT_EQ(0, add_idle(self->fd, TWHEEL_IDLE_MIN, 0, 0, NULL));
}

/**
 * struct toucher - a thread that touches words until it is stopped
 * @touch:	the array
 * @n:		how many words, from the first
 * @every:	how long it stores the same time: timers that it touches are reached together
 * @stop:	the thread must exit
 */
struct toucher {
	struct twheel_touch	*touch;
	unsigned int		n;
	__u64			every;
	bool			stop;
};

static void *run_toucher(void *arg)
{
	struct toucher *toucher = arg;
	unsigned int i;
	__u64 now = 0;

	while (!__atomic_load_n(&toucher->stop, __ATOMIC_RELAXED)) {
		if (published_time(toucher->touch) >= now + toucher->every)
			now = published_time(toucher->touch);
		for (i = 0; i < toucher->n; i++)
			store_word(toucher->touch, i, now);
	}
	return NULL;
}

#define SHARE	64

/*
 * Could a softirq re-arm more timers in a tick than it is allowed to? Not on a slow kernel: a
 * re-arm takes it as long as an add in a batch.
 */
static bool is_fast(void)
{
	struct twheel_op ops[SHARE] = {};
	struct twheel_info info = {};
	int fd = wh_open(0), i, done;
	__u64 begin;

	for (i = 0; i < SHARE; i++) {
		ops[i].opcode = TWHEEL_OP_ADD;
		ops[i].time = now_ns() + SEC;
	}
	/* The first batch allocates the memory. */
	wh_info(fd, &info);
	wh_submit(fd, ops, SHARE, sizeof(*ops), 0);
	begin = now_ns();
	done = wh_submit(fd, ops, SHARE, sizeof(*ops), 0);
	begin = now_ns() - begin;
	printf("# %d adds took %llu us\n", done, begin / 1000);
	close(fd);
	return done == SHARE && begin < info.tick_ns;
}

/*
 * With one store each, a program keeps very many timers alive that are reached again and again. A
 * softirq re-arms no more than 64 of them in a tick; a worker handles the others, which in the end
 * are just as exact.
 */
TEST_F_TIMEOUT(touch, a_share_of_the_softirq, 90)
{
	const unsigned int n = very_many() / 5;
	struct twheel_context_stats before, stats;
	struct twheel_setup setup;
	struct toucher toucher = { .n = n, .every = 100 * MSEC };
	struct twheel_event event;
	const bool fast = is_fast();
	struct twheel_info info;
	__u64 begin, last, i, in_softirq;
	pthread_t thread;
	int fd = wh_open(0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, wh_info(fd, &info));
	ASSERT_EQ(0, wh_setup(fd, 0, n, &setup));
	toucher.touch = wh_map(fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, toucher.touch);
	/* A worker handles most of the timers. */
	punctual_off();
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_toucher, &toucher));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, add_idle(fd, 500 * MSEC, 0, i, NULL));
	begin = now_ns();
	ASSERT_EQ(0, wh_stats(fd, &before));
	sleep_ns(2 * SEC);
	ASSERT_EQ(0, wh_stats(fd, &stats));
	last = now_ns();
	in_softirq = stats.deferrals - before.deferrals;
	in_softirq -= in_softirq < stats.postponed - before.postponed ?
		      in_softirq : stats.postponed - before.postponed;
	printf("# armed anew %llu times, postponed %llu times in %llu ticks\n",
	       stats.deferrals - before.deferrals, stats.postponed - before.postponed,
	       (last - begin) / info.tick_ns);
	EXPECT_TRUE(stats.postponed || !fast);
	/* Some were postponed before the measurement, and re-armed during it. */
	EXPECT_GE(SHARE * ((last - begin) / info.tick_ns + 2) + n, in_softirq);
	__atomic_store_n(&toucher.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	last = now_ns();
	/* Each expires once, and none early. */
	for (i = 0; i < n; i++) {
		ASSERT_EQ(true, next_event(fd, &event));
		ASSERT_GT(n, event.user_data);
		ASSERT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
		ASSERT_LE(event.deadline, event.fired);
		ASSERT_LE(toucher.touch->words[event.user_data] + 500 * MSEC, event.deadline);
		ASSERT_NE(1, toucher.touch->words[event.user_data]);
		store_word(toucher.touch, event.user_data, 1);
	}
	EXPECT_EQ(0, wh_nr_timers(fd));
	EXPECT_EQ(0, munmap(toucher.touch, setup.touch_bytes));
	EXPECT_EQ(0, close(fd));
}

/**
 * struct account - what calls for touched timers have returned
 * @n:		how many timers
 * @handle:	their handles
 * @cancelled:	how many were cancelled, and added again
 * @rearmed:	how many were re-armed
 * @wrong:	calls that did not find a pending timer
 */
struct account {
	unsigned int	n;
	__u64	handle[20000];
	__u64	cancelled;
	__u64	rearmed;
	__u64	wrong;
};

/* Cancels, re-arms or queries a timer that must be pending. */
static void use_timer(struct __test_metadata *_metadata, int fd, struct account *account)
{
	unsigned int i = random_below(account->n);
	__u64 handle = account->handle[i];

	switch (random_below(3)) {
	case 0:
		account->wrong += wh_cancel(fd, handle) != TWHEEL_WAS_PENDING;
		ASSERT_EQ(-ENOENT, wh_state(fd, handle));
		ASSERT_EQ(0, add_idle(fd, SEC, 0, i % WORDS, &account->handle[i]));
		account->cancelled++;
		break;
	case 1:
		account->wrong += wh_active(fd, handle) != TWHEEL_WAS_PENDING;
		account->rearmed++;
		break;
	default:
		account->wrong += wh_state(fd, handle) != TWHEEL_STATE_PENDING;
	}
}

/* Reports activity of many timers in one call, so that they are reached at the same time. */
static bool report_activity(int fd, const __u64 *handle, int n)
{
	struct twheel_op ops[1000] = {};
	int i;

	for (i = 0; i < n; i++) {
		ops[i].opcode = TWHEEL_OP_REARM;
		ops[i].handle = handle[i];
		ops[i].flags = TWHEEL_ACTIVE;
		ops[i].limit = TWHEEL_LIMIT_IDLE;
	}
	return wh_submit(fd, ops, n, sizeof(*ops), 0) == n;
}

/* Calls for timers that are postponed find them pending. */
TEST_F_TIMEOUT(touch, postponed_timers_are_pending, 90)
{
	struct toucher toucher = { .n = WORDS, .touch = self->touch, .every = 100 * MSEC };
	struct account *account = calloc(1, sizeof(*account));
	const unsigned int n = very_many() / 5;
	struct twheel_context_stats stats;
	const bool fast = is_fast();
	pthread_t thread;
	unsigned int i;
	__u64 end;

	ASSERT_NE(NULL, account);
	ASSERT_GE(ARRAY_SIZE(account->handle), n);
	account->n = n;
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_toucher, &toucher));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, add_idle(self->fd, SEC, 0, i % WORDS, &account->handle[i]));
	/*
	 * A second from now they are reached all at once, too many for a tick; and again every
	 * second.
	 */
	for (i = 0; i < n; i += 1000)
		ASSERT_TRUE(report_activity(self->fd, account->handle + i, 1000));
	account->rearmed += n;
	/* Few enough calls that most timers are still reached meanwhile. */
	for (end = now_ns() + 4 * SEC; now_ns() < end; sleep_ns(MSEC)) {
		for (i = 0; i < 10; i++)
			use_timer(_metadata, self->fd, account);
	}
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	printf("# %llu cancelled, %llu moved, %llu times postponed, %llu wrong\n",
	       account->cancelled, account->rearmed, stats.postponed, account->wrong);
	EXPECT_EQ(0, account->wrong);
	EXPECT_TRUE(stats.postponed || !fast);
	EXPECT_EQ(account->cancelled, stats.cancels);
	EXPECT_EQ(account->rearmed, stats.rearms);
	EXPECT_EQ(n + account->cancelled, stats.adds);
	__atomic_store_n(&toucher.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_TRUE(wh_wait_events(self->fd, n));
	free(account);
}

/* Closes a context while some of its timers are postponed. */
TEST_F_TIMEOUT(touch, closed_while_postponed, 90)
{
	struct toucher toucher = { .n = WORDS };
	__u64 pending = total("pending");
	struct twheel_context_stats stats;
	struct twheel_setup setup;
	const bool fast = is_fast();
	unsigned int round, i;
	pthread_t thread;
	__u64 begin;
	int fd;

	for (round = 0; round < 5; round++) {
		fd = wh_open(0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, wh_setup(fd, 0, WORDS, &setup));
		toucher.touch = wh_map(fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
		ASSERT_NE(NULL, toucher.touch);
		toucher.stop = false;
		ASSERT_EQ(0, pthread_create(&thread, NULL, run_toucher, &toucher));
		for (i = 0; i < 10000; i++)
			ASSERT_EQ(0, add_idle(fd, 20 * MSEC, 0, i % WORDS, NULL));
		begin = now_ns();
		do {
			ASSERT_EQ(0, wh_stats(fd, &stats));
		} while (stats.postponed < 1000 &&
			 (fast || now_ns() < begin + SEC));
		__atomic_store_n(&toucher.stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(0, munmap(toucher.touch, setup.touch_bytes));
		EXPECT_EQ(0, close(fd));
		EXPECT_EQ(pending, total("pending"));
	}
}

/**
 * struct vandal - a thread that writes random data to the first half of the array
 * @touch:	the array
 * @seed:	seed of its random numbers
 * @stop:	the thread must exit
 */
struct vandal {
	struct twheel_touch	*touch;
	__u64			seed;
	bool			stop;
};

static void *run_vandal(void *arg)
{
	struct vandal *vandal = arg;
	__u32 *half;
	__u64 value;

	random_thread(vandal->seed, 1);
	while (!__atomic_load_n(&vandal->stop, __ATOMIC_RELAXED)) {
		unsigned int word = random_below(WORDS / 2);

		value = random_below(2) ? random_u64() : random_magnitude(64);
		store_word(vandal->touch, word, value);
		/* Also halves of words, as a 32-bit program does. */
		half = (__u32 *)&vandal->touch->words[word] + (value & 1);
		__atomic_store_n(half, value >> 32, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F_TIMEOUT(touch, a_vandal_moves_its_own_timers_only, 120)
{
	struct vandal vandal = { .touch = self->touch, .seed = random_u64() };
	__u64 before[WORDS], after[WORDS], idle[WORDS], lifetime[WORDS], end;
	unsigned int i, exact = 0, moved = 0;
	struct twheel_event event;
	pthread_t thread;

	/* With a vandal, a worker handles timers. */
	punctual_allow(2 * self->jiffy);
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_vandal, &vandal));
	for (i = 0; i < WORDS; i++) {
		idle[i] = 20 * MSEC + random_below(200 * MSEC);
		lifetime[i] = idle[i] + random_below(400 * MSEC);
		before[i] = now_ns();
		ASSERT_EQ(0, add_idle(self->fd, idle[i], lifetime[i], i, NULL));
		after[i] = now_ns();
	}
	for (i = 0; i < WORDS; i++) {
		ASSERT_EQ(true, next_event(self->fd, &event));
		ASSERT_GT(WORDS, event.user_data);
		end = before[event.user_data];
		/* Nobody touches the others: they expire by their idle timeout. */
		if (event.user_data >= WORDS / 2) {
			end += idle[event.user_data];
			/* The vandal may have used up its context's share of the softirq. */
			expect_due(_metadata, &event, TWHEEL_LIMIT_IDLE, end,
				   after[event.user_data] + idle[event.user_data] +
				   2 * self->jiffy);
			exact++;
			continue;
		}
		EXPECT_LE(event.deadline, event.fired);
		EXPECT_LE(end + idle[event.user_data], event.fired);
		EXPECT_LE(event.deadline, after[event.user_data] +
			  lifetime[event.user_data]);
		if (event.reason != TWHEEL_LIMIT_IDLE) {
			EXPECT_EQ(TWHEEL_LIMIT_LIFETIME, event.reason);
			EXPECT_LE(end + lifetime[event.user_data], event.fired);
		}
		moved += event.deadline > after[event.user_data] + idle[event.user_data] +
			2 * self->jiffy;
	}
	__atomic_store_n(&vandal.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	printf("# %u exact, %u moved\n", exact, moved);
	EXPECT_EQ(WORDS / 2, exact);
	EXPECT_LT(0, moved);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F_TIMEOUT(touch, is_shared_by_processes, 90)
{
	struct twheel_event event;
	int tries = TRIES, status;
	__u64 last;
	pid_t child;

	do {
		ASSERT_EQ(0, add_idle(self->fd, IDLE, 0, 5, NULL));
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			_exit(keep_touching(self->touch, 5, 3 * IDLE) ? 0 : 1);
		ASSERT_EQ(child, waitpid(child, &status, 0));
		last = self->touch->words[5];
		ASSERT_EQ(true, next_event(self->fd, &event));
	} while (status && --tries);
	ASSERT_EQ(0, status);
	expect_fired(_metadata, &event, TWHEEL_LIMIT_IDLE, last + IDLE,
		     last + IDLE + 2 * self->jiffy);
}

TEST_F(touch, words_that_are_not_there)
{
	const __u32 words[] = { WORDS, WORDS + 1, self->bytes / 8, 1U << 31, ~0U };
	struct twheel_timer_add add = {
		.time	= TWHEEL_TIME_NONE,
		.clock	= CLOCK_MONOTONIC,
		.idle	= HOUR,
	};
	int bare = wh_open(0);
	size_t i;

	ASSERT_GE(bare, 0);
	for (i = 0; i < ARRAY_SIZE(words); i++)
		EXPECT_EQ(-EINVAL, add_idle(self->fd, HOUR, 0, words[i], NULL));
	EXPECT_EQ(-EINVAL, add_idle(bare, HOUR, 0, 0, NULL));
	/* Only an idle timeout can be touched. */
	EXPECT_EQ(-EINVAL, add_idle(self->fd, 0, HOUR, 0, NULL));
	add.touch = 1;
	EXPECT_EQ(-EINVAL, wh_add_timer(self->fd, &add));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(0, close(bare));
}

TEST_F(touch, refuses_other_mappings)
{
	const char *fault = wh_map_fault(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);

	EXPECT_EQ(NULL, fault) TH_LOG("maps %s", fault);
	EXPECT_EQ(NULL, wh_map(self->fd, self->bytes, TWHEEL_RING_OFFSET));
	EXPECT_EQ(-1, mprotect(self->touch, self->bytes, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(self->touch, self->bytes, 2 * self->bytes,
				     MREMAP_MAYMOVE));
}

/* The number of local timer interrupts, on all CPUs; or POISON. */
static __u64 timer_interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	char line[4096], *rest, *end;
	__u64 sum = POISON, number;

	if (!file)
		return POISON;
	while (fgets(line, sizeof(line), file)) {
		rest = line + strspn(line, " ");
		if (strncmp(rest, "LOC:", 4))
			continue;
		sum = 0;
		for (rest += 4; number = strtoull(rest, &end, 10), end != rest; rest = end)
			sum += number;
	}
	fclose(file);
	return sum;
}

/* With an array and all CPUs idle, no CPU wakes up on each jiffy for it. */
TEST_F_TIMEOUT(touch, costs_nothing_when_idle, 60)
{
	const __u64 jiffies = 2 * SEC / self->jiffy;
	__u64 ticks, without, with;
	struct twheel_setup setup;

	ASSERT_EQ(0, munmap(self->touch, self->bytes));
	ASSERT_EQ(0, close(self->fd));
	without = timer_interrupts();
	ASSERT_NE(POISON, without);
	sleep_ns(2 * SEC);
	without = timer_interrupts() - without;

	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, 0, WORDS, &setup));
	self->touch = wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, self->touch);
	ticks = total("ticks");
	with = timer_interrupts();
	sleep_ns(2 * SEC);
	with = timer_interrupts() - with;
	printf("# timer interrupts in %llu jiffies: %llu, without the array %llu\n", jiffies,
	       with, without);
	EXPECT_GT(without + jiffies / 2, with);
	EXPECT_EQ(ticks, total("ticks"));
}

TEST_F_TIMEOUT(touch, cpus_come_and_go, 120)
{
	struct twheel_setup setup;
	int i;

	if (self->n < 2)
		SKIP(return, "takes two CPUs");
	for (i = 1; i < self->n; i++) {
		ASSERT_EQ(0, pin(self->cpu[0]));
		ASSERT_EQ(0, set_cpu_online(self->cpu[i], 0));
		expect_alive(_metadata, self, self->cpu[0]);
		ASSERT_EQ(0, set_cpu_online(self->cpu[i], 1));
		expect_alive(_metadata, self, self->cpu[i]);
	}
	/* A CPU that is offline when the first array is created, and comes back only afterwards. */
	ASSERT_EQ(0, pin(self->cpu[0]));
	ASSERT_EQ(0, set_cpu_online(self->cpu[1], 0));
	ASSERT_EQ(0, munmap(self->touch, self->bytes));
	ASSERT_EQ(0, close(self->fd));
	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, 0, WORDS, &setup));
	self->touch = wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, self->touch);
	ASSERT_EQ(0, set_cpu_online(self->cpu[1], 1));
	expect_alive(_metadata, self, self->cpu[1]);
	expect_alive(_metadata, self, self->cpu[0]);
}

TEST_HARNESS_MAIN
