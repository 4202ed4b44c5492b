// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program stores in its words moves no other timers, and takes no more than its context's
 * share of the softirq.
 */
#include "touch_test.h"

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

TEST_HARNESS_MAIN
