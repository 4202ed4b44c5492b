// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers across CPUs: armed on one, moved and cancelled from another; and all CPUs using one
 * context at the same time, with every timer accounted for at the end.
 */
#include "twheel_test.h"

#define MAX_CPUS 64

FIXTURE(cpus)
{
	int fd;
	int n;
	int cpu[MAX_CPUS];
};

FIXTURE_SETUP(cpus)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->n = cpus(self->cpu, MAX_CPUS);
	ASSERT_LT(0, self->n);
	random_seed();
}

FIXTURE_TEARDOWN(cpus)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Reads the one event that must come, and checks it. */
static void expect_event(struct __test_metadata *_metadata, int fd, __u64 handle,
			 __u64 deadline, __u64 user_data)
{
	struct twheel_event event;

	ASSERT_EQ(true, wh_wait(fd));
	ASSERT_EQ(1, wh_read(fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_EQ(user_data, event.user_data);
	EXPECT_EQ(0, wh_nr_timers(fd));
}

TEST_F_TIMEOUT(cpus, from_one_to_another, 90)
{
	__u64 handle, deadline;
	int a, b;

	for (a = 0; a < self->n; a++) {
		for (b = 0; b < self->n; b++) {
			/* Cancelled from the other CPU. */
			ASSERT_EQ(0, pin(self->cpu[a]));
			ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handle));
			ASSERT_EQ(0, pin(self->cpu[b]));
			ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
			EXPECT_EQ(0, wh_nr_timers(self->fd));

			/* Moved to an earlier time from the other CPU. */
			ASSERT_EQ(0, pin(self->cpu[a]));
			ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 2, &handle));
			ASSERT_EQ(0, pin(self->cpu[b]));
			deadline = now_ns() + 5 * MSEC;
			ASSERT_EQ(TWHEEL_WAS_PENDING,
				  wh_rearm(self->fd, handle, deadline, ABS));
			expect_event(_metadata, self->fd, handle, deadline, 2);

			/* Moved to a later time from the other CPU. */
			ASSERT_EQ(0, pin(self->cpu[a]));
			deadline = now_ns() + 10 * MSEC;
			ASSERT_EQ(0, wh_add(self->fd, deadline - 5 * MSEC, ABS, 3, &handle));
			ASSERT_EQ(0, pin(self->cpu[b]));
			/*
			 * On a slow machine, it may have expired; then the re-arm revokes its
			 * event.
			 */
			ASSERT_LE(0, wh_rearm(self->fd, handle, deadline, ABS));
			expect_event(_metadata, self->fd, handle, deadline, 3);

			/* Expired here, its event revoked by a re-arm from the other CPU. */
			ASSERT_EQ(0, pin(self->cpu[a]));
			ASSERT_EQ(0, wh_add(self->fd, 0, 0, 4, &handle));
			ASSERT_EQ(true, wh_wait_events(self->fd, 1));
			ASSERT_EQ(0, pin(self->cpu[b]));
			deadline = now_ns() + 3 * MSEC;
			ASSERT_EQ(TWHEEL_WAS_EXPIRED,
				  wh_rearm(self->fd, handle, deadline, ABS));
			expect_event(_metadata, self->fd, handle, deadline, 4);
		}
	}
}

/* Each CPU's wheel expires its own timers. */
TEST_F_TIMEOUT(cpus, timers_of_all, 90)
{
	enum { PER_CPU = 500 };
	__u64 *deadlines = calloc(self->n * PER_CPU, sizeof(*deadlines));
	unsigned char *seen = calloc(self->n * PER_CPU, 1);
	struct twheel_event event;
	unsigned int i, n = 0;
	int c, read;

	ASSERT_NE(NULL, deadlines);
	ASSERT_NE(NULL, seen);
	for (c = 0; c < self->n; c++) {
		ASSERT_EQ(0, pin(self->cpu[c]));
		for (i = 0; i < PER_CPU; i++, n++) {
			deadlines[n] = now_ns() + random_below(300 * MSEC);
			ASSERT_EQ(0, wh_add(self->fd, deadlines[n], ABS, n, NULL));
		}
	}
	for (i = 0; i < n; i++) {
		ASSERT_EQ(true, wh_wait(self->fd));
		read = wh_read(self->fd, &event, 1);
		ASSERT_EQ(1, read);
		EXPECT_EVENT_OK(&event);
		ASSERT_GT(n, event.user_data);
		ASSERT_EQ(deadlines[event.user_data], event.deadline);
		ASSERT_EQ(0, seen[event.user_data]++);
		ASSERT_EQ(i, event.seq);
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	free(deadlines);
	free(seen);
}

/*
 * The account. Every timer that is added has a record, identified by its user data. It ends in
 * exactly one of three ways: its event is read, it is cancelled while pending, or it is cancelled
 * and its event revoked. Threads exchange timers through slots, so most calls come from another CPU
 * than the previous one, and many find a timer that another thread has just ended.
 */
#define RECORDS		400000
#define SLOTS		256
#define THREADS_MAX	8

struct record {
	__u64		handle;
	__u64		earliest;
	unsigned char	ended;
};

struct account {
	int		fd;
	bool		stop;
	struct record	*records;
	unsigned int	next;
	unsigned int	slots[SLOTS];
	__u64		added;
	__u64		rearmed_pending;
	__u64		rearmed_expired;
	__u64		cancelled_pending;
	__u64		cancelled_expired;
	__u64		stale;
	__u64		events;
	__u64		faults;
};

struct hammer {
	struct account	*account;
	int		cpu;
	pthread_t	thread;
	__u64		random;
};

static void count_one(__u64 *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void end_record(struct account *account, unsigned int id)
{
	if (__atomic_fetch_add(&account->records[id].ended, 1, __ATOMIC_RELAXED))
		count_one(&account->faults);
}

static __u64 hammer_random(struct hammer *hammer, __u64 below)
{
	hammer->random = hammer->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (hammer->random >> 33) % below;
}

static void hammer_add(struct hammer *hammer, unsigned int slot)
{
	struct account *account = hammer->account;
	unsigned int id = __atomic_fetch_add(&account->next, 1, __ATOMIC_RELAXED);
	struct record *record = &account->records[id];
	__u64 distance = hammer_random(hammer, 4 * MSEC);

	if (id >= RECORDS)
		return;
	record->earliest = now_ns() + distance;
	if (wh_add(account->fd, distance, 0, id, &record->handle)) {
		count_one(&account->faults);
		return;
	}
	count_one(&account->added);
	/* The slot's previous timer will expire. */
	__atomic_store_n(&account->slots[slot], id, __ATOMIC_RELEASE);
}

static void hammer_rearm(struct account *account, unsigned int id, __u64 distance)
{
	switch (wh_rearm(account->fd, account->records[id].handle, distance, 0)) {
	case TWHEEL_WAS_PENDING:
		count_one(&account->rearmed_pending);
		break;
	case TWHEEL_WAS_EXPIRED:
		count_one(&account->rearmed_expired);
		break;
	case -EALREADY:
	case -ENOENT:
		count_one(&account->stale);
		break;
	default:
		count_one(&account->faults);
	}
}

static void hammer_cancel(struct account *account, unsigned int id)
{
	switch (wh_cancel(account->fd, account->records[id].handle)) {
	case TWHEEL_WAS_PENDING:
		count_one(&account->cancelled_pending);
		end_record(account, id);
		break;
	case TWHEEL_WAS_EXPIRED:
		count_one(&account->cancelled_expired);
		end_record(account, id);
		break;
	case -EALREADY:
	case -ENOENT:
		count_one(&account->stale);
		break;
	default:
		count_one(&account->faults);
	}
}

static void hammer_read(struct account *account)
{
	struct twheel_event events[16];
	int i, n = wh_read(account->fd, events, ARRAY_SIZE(events));

	for (i = 0; i < n; i++) {
		if (wh_event_fault(&events[i]) || events[i].user_data >= RECORDS) {
			count_one(&account->faults);
			continue;
		}
		count_one(&account->events);
		end_record(account, events[i].user_data);
	}
	if (n < 0 && n != -EAGAIN)
		count_one(&account->faults);
}

static void *hammer_thread(void *arg)
{
	struct hammer *hammer = arg;
	struct account *account = hammer->account;
	unsigned int slot, id;

	if (pin(hammer->cpu))
		count_one(&account->faults);
	while (!__atomic_load_n(&account->stop, __ATOMIC_RELAXED)) {
		slot = hammer_random(hammer, SLOTS);
		id = __atomic_load_n(&account->slots[slot], __ATOMIC_ACQUIRE);
		switch (hammer_random(hammer, 8)) {
		case 0:
			hammer_add(hammer, slot);
			break;
		case 1:
			if (id)
				hammer_cancel(account, id);
			break;
		case 2:
			hammer_read(account);
			break;
		default:
			if (id)
				hammer_rearm(account, id, hammer_random(hammer, 4 * MSEC));
		}
	}
	return NULL;
}

/* Runs @work in two threads on each CPU, for @ns. */
static void run_hammers(struct __test_metadata *_metadata, FIXTURE_DATA(cpus) * self,
			struct account *account, void *(*work)(void *), __u64 ns)
{
	int i, n = self->n * 2 < THREADS_MAX ? self->n * 2 : THREADS_MAX;
	struct hammer hammers[THREADS_MAX];

	account->stop = false;
	for (i = 0; i < n; i++) {
		hammers[i].account = account;
		hammers[i].cpu = self->cpu[i % self->n];
		hammers[i].random = random_u64();
		ASSERT_EQ(0, pthread_create(&hammers[i].thread, NULL, work, &hammers[i]));
	}
	sleep_ns(ns);
	__atomic_store_n(&account->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, pthread_join(hammers[i].thread, NULL));
}

/* Only moves the timer in slot 0. */
static void *rearm_thread(void *arg)
{
	struct hammer *hammer = arg;
	struct account *account = hammer->account;

	if (pin(hammer->cpu))
		count_one(&account->faults);
	while (!__atomic_load_n(&account->stop, __ATOMIC_RELAXED))
		hammer_rearm(account, account->slots[0], hammer_random(hammer, 2 * MSEC));
	return NULL;
}

TEST_F_TIMEOUT(cpus, account_of_a_hammered_context, 90)
{
	__u64 adds, ends, end = now_ns() + GUARD_MS * MSEC;
	static struct account account;
	unsigned int id;

	account.fd = self->fd;
	account.next = 1;
	account.records = calloc(RECORDS, sizeof(*account.records));
	ASSERT_NE(NULL, account.records);
	adds = total("adds");
	ends = total("expiries") + total("cancels") + total("pending");
	run_hammers(_metadata, self, &account, hammer_thread, 2 * SEC);
	/* All remaining timers expire soon. */
	while (wh_nr_timers(self->fd)) {
		ASSERT_GT(end, now_ns()) TH_LOG("%llu timers never fire",
						wh_nr_timers(self->fd));
		hammer_read(&account);
	}
	printf("# %llu added, %llu + %llu re-armed, %llu + %llu cancelled, %llu read, %llu stale\n",
	       account.added, account.rearmed_pending, account.rearmed_expired,
	       account.cancelled_pending, account.cancelled_expired, account.events,
	       account.stale);
	EXPECT_EQ(0, account.faults);
	EXPECT_LT(0, account.added);
	EXPECT_LT(0, account.rearmed_pending);
	EXPECT_LT(0, account.cancelled_pending);
	EXPECT_LT(0, account.events);
	EXPECT_EQ(account.added, account.cancelled_pending + account.cancelled_expired +
				 account.events);
	for (id = 1; id < account.next && id < RECORDS; id++)
		ASSERT_EQ(1, account.records[id].ended) TH_LOG("timer %u", id);
	/* The wheels' own account: every timer that was armed has expired or was cancelled. */
	EXPECT_EQ(total("adds") - adds,
		  total("expiries") + total("cancels") + total("pending") - ends);
	free(account.records);
}

/* One timer, all CPUs: it is re-armed while it expires, and finally expires. */
TEST_F_TIMEOUT(cpus, one_timer_from_all, 90)
{
	static struct account account;
	struct twheel_event event;
	__u64 handle, deadline;
	unsigned int round;

	account.fd = self->fd;
	account.records = calloc(RECORDS, sizeof(*account.records));
	ASSERT_NE(NULL, account.records);
	account.slots[0] = 1;
	for (round = 0; round < 5; round++) {
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handle));
		account.records[1].handle = handle;
		account.records[1].ended = 0;
		run_hammers(_metadata, self, &account, rearm_thread, 200 * MSEC);
		EXPECT_EQ(0, account.faults);
		EXPECT_EQ(0, account.stale);
		deadline = now_ns() + MSEC;
		ASSERT_LE(0, wh_rearm(self->fd, handle, deadline, ABS));
		ASSERT_EQ(true, wh_wait(self->fd));
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EVENT_OK(&event);
		EXPECT_EQ(handle, event.handle);
		EXPECT_EQ(deadline, event.deadline);
		EXPECT_EQ(round, event.seq);
		EXPECT_EQ(0, wh_nr_timers(self->fd));
	}
	printf("# re-armed %llu pending, %llu expired\n", account.rearmed_pending,
	       account.rearmed_expired);
	free(account.records);
}

TEST_HARNESS_MAIN
