// SPDX-License-Identifier: GPL-2.0-only
/*
 * The full account. Threads arm, re-arm and cancel timers whose deadlines are around now, by handle
 * and by key; others read, one of them into bad memory. In the end, each arming has ended in
 * exactly one way: it was revoked, and no event of it was ever read; or its event was read once,
 * and later calls returned that they were too late.
 *
 * The lowest bits of the deadline identify the arming. All periods have zeros there.
 */
#include "twheel_test.h"

#define ARMING_BITS	12
#define ARMINGS		(1U << ARMING_BITS)
#define SLOTS		48
#define MAX_OWNERS	8
#define READERS		3
#define MAX_EVENTS	(1U << 25)
#define EVENT		sizeof(struct twheel_event)
#define PAGE		4096UL

/**
 * enum end - how an arming ended, as its owner's calls returned
 * @UNUSED:	never begun: the call that was to begin it came too late
 * @ARMED:	not ended yet
 * @TAKEN:	it was revoked
 * @GONE:	it fired
 * @LAST:	periodic, and ended while an event was being delivered
 */
enum end {
	UNUSED,
	ARMED,
	TAKEN,
	GONE,
	LAST,
};

/**
 * struct arming - one arming
 * @end:	an enum end; written by the owner
 * @end_seq:	how many events the context had delivered when it ended, if it is periodic
 * @events:	how many events of it were read; atomic
 * @last_seq:	the latest sequence number of these; atomic
 */
struct arming {
	__u32	end;
	__u32	end_seq;
	__u32	events;
	__u32	last_seq;
};

/**
 * struct slot - an owner's timer
 * @handle:	its handle
 * @used:	armings begun; the last is the current one if @armed
 * @gone:	the last arming for which a call came too late
 * @armed:	the timer is armed, as far as the owner knows
 * @keyed:	its key is its number
 * @periodic:	it has a period
 * @armings:	all armings
 */
struct slot {
	__u64		handle;
	__u32		used;
	__u32		gone;
	bool		armed;
	bool		keyed;
	bool		periodic;
	struct arming	armings[ARMINGS];
};

/**
 * struct account - what all threads share
 * @fd:		the context
 * @seed:	seed of the random numbers
 * @owners:	how many owners there are
 * @numbers:	where threads take their numbers from
 * @stop_owners: owners must exit
 * @stop_readers: readers must exit
 * @slots:	the slots of all owners
 * @seqs:	a bit for each sequence number
 * @events:	events read
 * @verdicts:	how often each was returned
 * @too_late:	calls that came too late
 * @faults:	violations
 */
struct account {
	int		fd;
	__u64		seed;
	unsigned int	owners;
	unsigned int	numbers;
	bool		stop_owners;
	bool		stop_readers;
	struct slot	*slots;
	__u64		*seqs;
	__u64		events;
	__u64		verdicts[4];
	__u64		too_late;
	__u64		faults;
};

FIXTURE(verdicts)
{
	struct account account;
};

FIXTURE_SETUP(verdicts)
{
	struct account *account = &self->account;
	int list[MAX_OWNERS];
	size_t i;

	memset(account, 0, sizeof(*account));
	account->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(account->fd, 0);
	account->seed = random_seed();
	account->owners = cpus(list, MAX_OWNERS);
	if (account->owners < 2)
		account->owners = 2;
	account->slots = calloc(account->owners * SLOTS, sizeof(*account->slots));
	account->seqs = calloc(MAX_EVENTS / 64, sizeof(*account->seqs));
	ASSERT_NE(NULL, account->slots);
	ASSERT_NE(NULL, account->seqs);
	for (i = 0; i < account->owners * SLOTS; i++) {
		account->slots[i].keyed = i & 1;
		account->slots[i].periodic = i & 2;
	}
}

FIXTURE_TEARDOWN(verdicts)
{
	free(self->account.slots);
	free(self->account.seqs);
	EXPECT_EQ(0, close(self->account.fd));
}

static void count_one(__u64 *number)
{
	__atomic_fetch_add(number, 1, __ATOMIC_RELAXED);
}

static void report_fault(struct account *account, const char *what, size_t slot, long value)
{
	if (__atomic_fetch_add(&account->faults, 1, __ATOMIC_RELAXED) < 20)
		printf("# slot %zu: %s: %ld\n", slot, what, value);
}

/* ---- owners */

/* Records the end of the timer's current arming, as a call returned it. */
static void end_arming(struct account *account, size_t number, int ret)
{
	struct slot *slot = &account->slots[number];
	struct arming *arming = &slot->armings[slot->used];
	struct twheel_context_stats stats;

	switch (ret) {
	case TWHEEL_WAS_DELIVERED:
		if (!slot->periodic)
			report_fault(account, "a one-shot timer was delivered", number, ret);
		arming->end = LAST;
		break;
	case TWHEEL_WAS_PENDING:
	case TWHEEL_WAS_EXPIRED:
		arming->end = TAKEN;
		break;
	case TWHEEL_WAS_ABSENT:
	case -EALREADY:
	case -ENOENT:
		if (slot->periodic)
			report_fault(account, "a periodic timer is gone", number, ret);
		arming->end = GONE;
		slot->gone = slot->used;
		count_one(&account->too_late);
		break;
	default:
		report_fault(account, "a call failed", number, ret);
	}
	if (ret >= 0)
		count_one(&account->verdicts[ret]);
	if (slot->periodic) {
		if (wh_stats(account->fd, &stats))
			report_fault(account, "stats", number, 0);
		arming->end_seq = stats.delivered;
	}
}

/* A deadline around now that identifies the arming. */
static __u64 deadline_of(const struct slot *slot)
{
	__u64 time = now_ns() + random_below(3 * MSEC) - random_below(MSEC);

	return (time | (ARMINGS - 1)) + 1 + slot->used;
}

/*
 * An event whose delivery to bad memory failed has been revoked since: the call that found it in
 * delivery was not too late after all.
 */
static void event_came_back(struct account *account, size_t number)
{
	struct slot *slot = &account->slots[number];

	if (!slot->keyed || slot->periodic || slot->armings[slot->gone].end != GONE)
		report_fault(account, "an event came back", number, slot->gone);
	slot->armings[slot->gone].end = TAKEN;
}

/* Adds the timer. If there is one with its key, the add re-arms that one. */
static void owner_add(struct account *account, size_t number)
{
	struct slot *slot = &account->slots[number];
	struct twheel_timer_add add = {
		.user_data	= number,
		.flags		= ABS | (slot->keyed ? TWHEEL_KEYED : 0),
		.clock		= CLOCK_MONOTONIC,
		.key		= slot->keyed ? number : 0,
		.period		= slot->periodic ? (1 + random_below(500)) << ARMING_BITS : 0,
	};
	bool armed = slot->armed;
	int ret;

	slot->used++;
	add.time = deadline_of(slot);
	slot->armings[slot->used].end = ARMED;
	ret = wh_add_timer(account->fd, &add);
	if (armed) {
		slot->used--;
		end_arming(account, number, ret);
		slot->used++;
	} else if (ret == TWHEEL_WAS_EXPIRED) {
		event_came_back(account, number);
	} else if (ret != (slot->keyed ? TWHEEL_WAS_ABSENT : 0)) {
		report_fault(account, "an add", number, ret);
	}
	slot->handle = add.handle;
	slot->armed = true;
}

static void owner_rearm(struct account *account, size_t number)
{
	struct slot *slot = &account->slots[number];
	__u64 deadline;
	int ret;

	slot->used++;
	deadline = deadline_of(slot);
	slot->armings[slot->used].end = ARMED;
	if (slot->keyed && random_below(2))
		ret = wh_rearm_key(account->fd, number, deadline, ABS);
	else
		ret = wh_rearm(account->fd, slot->handle, deadline, ABS);
	slot->used--;
	end_arming(account, number, ret);
	slot->used++;
	slot->armed = ret >= 0;
	if (ret < 0)
		slot->armings[slot->used].end = UNUSED;
}

static void owner_cancel(struct account *account, size_t number)
{
	struct slot *slot = &account->slots[number];
	int ret;

	if (slot->keyed && random_below(2))
		ret = wh_cancel_key(account->fd, number);
	else
		ret = wh_cancel(account->fd, slot->handle);
	end_arming(account, number, ret);
	slot->armed = false;
	if (ret >= 0 && wh_state(account->fd, slot->handle) != -ENOENT)
		report_fault(account, "cancelled, but still there", number, ret);
}

/* Makes a call for a timer, unless its armings are used up. */
static bool owner_act(struct account *account, size_t number)
{
	struct slot *slot = &account->slots[number];

	if (slot->used == ARMINGS - 1)
		return false;
	if (!slot->armed) {
		owner_add(account, number);
		return true;
	}
	switch (random_below(3)) {
	case 0:
		owner_cancel(account, number);
		break;
	case 1:
		owner_rearm(account, number);
		break;
	default:
		/* Without a key, this would add another timer. */
		if (slot->keyed)
			owner_add(account, number);
	}
	return true;
}

static unsigned int take_number(struct account *account)
{
	return __atomic_fetch_add(&account->numbers, 1, __ATOMIC_RELAXED);
}

static void *run_owner(void *arg)
{
	struct account *account = arg;
	unsigned int number = take_number(account), idle = 0;

	random_thread(account->seed, number);
	while (!__atomic_load_n(&account->stop_owners, __ATOMIC_RELAXED) && idle < 10 * SLOTS) {
		if (owner_act(account, number * SLOTS + random_below(SLOTS)))
			idle = 0;
		else
			idle++;
	}
	return NULL;
}

/* ---- readers */

static void record_event(struct account *account, const struct twheel_event *event)
{
	__u32 last, seq = event->seq;
	struct arming *arming;
	struct slot *slot;

	count_one(&account->events);
	if (event->user_data >= account->owners * SLOTS || event->seq >= MAX_EVENTS) {
		report_fault(account, "an event of no timer", event->user_data, event->seq);
		return;
	}
	if (__atomic_fetch_or(&account->seqs[seq / 64], 1ULL << seq % 64, __ATOMIC_RELAXED) &
	    1ULL << seq % 64)
		report_fault(account, "a number came twice", event->user_data, seq);
	slot = &account->slots[event->user_data];
	arming = &slot->armings[event->deadline & (ARMINGS - 1)];
	if (event->fired < event->deadline)
		report_fault(account, "early", event->user_data, event->deadline - event->fired);
	if (event->overruns && !slot->periodic)
		report_fault(account, "overruns", event->user_data, event->overruns);
	__atomic_fetch_add(&arming->events, 1, __ATOMIC_RELAXED);
	last = __atomic_load_n(&arming->last_seq, __ATOMIC_RELAXED);
	while (last < seq && !__atomic_compare_exchange_n(&arming->last_seq, &last, seq, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Reads into memory that ends after some events, or before the first. */
static void *run_reader(void *arg)
{
	struct account *account = arg;
	unsigned int number = take_number(account), whole, i;
	struct pollfd pollfd = { .fd = account->fd, .events = POLLIN };
	unsigned char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *buffer;
	bool bad = number % READERS == 0;
	struct twheel_event event;
	ssize_t ret;

	random_thread(account->seed, number);
	if (memory == MAP_FAILED || mprotect(memory + PAGE, PAGE, PROT_NONE)) {
		report_fault(account, "mmap", 0, errno);
		return NULL;
	}
	while (!__atomic_load_n(&account->stop_readers, __ATOMIC_RELAXED)) {
		poll(&pollfd, 1, 5);
		whole = random_below(40) + !bad;
		buffer = memory + PAGE - whole * EVENT - (bad ? random_below(EVENT) & ~7UL : 0);
		ret = read(account->fd, buffer, bad ? 50 * EVENT : whole * EVENT);
		if (ret < 0 && errno != EAGAIN && !(errno == EFAULT && bad && !whole))
			report_fault(account, "read", number, errno);
		for (i = 0; ret > 0 && i < ret / EVENT; i++) {
			memcpy(&event, buffer + i * EVENT, EVENT);
			record_event(account, &event);
		}
	}
	munmap(memory, 2 * PAGE);
	return NULL;
}

/* ---- the account */

/* Drains the remaining timers, with nobody else running. */
static void close_account(struct __test_metadata *_metadata, struct account *account)
{
	static struct twheel_timer_query records[MAX_OWNERS * SLOTS];
	unsigned int n = account->owners * SLOTS, i;
	struct slot *slot;
	__u64 cursor = 0;
	int drained;

	drained = wh_drain(account->fd, records, n, sizeof(*records), &cursor);
	ASSERT_LE(0, drained);
	EXPECT_EQ(0, wh_nr_timers(account->fd));
	EXPECT_EQ(0, wh_nr_events(account->fd));
	for (i = 0; i < (unsigned int)drained; i++) {
		ASSERT_GT(n, records[i].user_data);
		slot = &account->slots[records[i].user_data];
		EXPECT_EQ(true, slot->armed);
		EXPECT_EQ(slot->used, records[i].deadline & (ARMINGS - 1));
		EXPECT_EQ(slot->handle, records[i].handle);
		EXPECT_EQ(slot->keyed ? records[i].user_data : 0, records[i].key);
		end_arming(account, records[i].user_data, TWHEEL_WAS_PENDING);
		slot->armed = false;
	}
	for (i = 0; i < n; i++) {
		slot = &account->slots[i];
		if (slot->armed)
			end_arming(account, i, -EALREADY);
	}
}

/* Do an arming's events match its end? */
static bool is_balanced(const struct slot *slot, const struct arming *arming)
{
	switch (arming->end) {
	case UNUSED:
		return !arming->events;
	case TAKEN:
		if (!slot->periodic)
			return !arming->events;
		return !arming->events || arming->last_seq < arming->end_seq;
	case GONE:
		return arming->events == 1;
	case LAST:
		return true;
	default:
		return false;
	}
}

static void check_account(struct __test_metadata *_metadata, struct account *account)
{
	static const char * const ends[] = { "unused", "armed", "taken back", "gone", "last" };
	__u64 sums[ARRAY_SIZE(ends)] = { }, armings = 0, seq;
	const struct arming *arming;
	struct slot *slot;
	unsigned int wrong = 0;
	size_t i, k;

	for (i = 0; i < account->owners * SLOTS; i++) {
		slot = &account->slots[i];
		for (k = 1; k <= slot->used; k++) {
			arming = &slot->armings[k];
			armings += arming->end != UNUSED;
			sums[arming->end]++;
			if (!is_balanced(slot, arming) && wrong++ < 10)
				printf("# slot %zu%s%s, arming %zu: %s, %u events, %u of %u\n",
				       i, slot->keyed ? " keyed" : "",
				       slot->periodic ? " periodic" : "", k, ends[arming->end],
				       arming->events, arming->last_seq, arming->end_seq);
		}
	}
	printf("# %llu armings: %llu taken back, %llu fired, %llu in delivery; %llu events\n",
	       armings, sums[TAKEN], sums[GONE], sums[LAST], account->events);
	printf("# pending %llu, expired %llu, absent %llu, delivered %llu, too late %llu\n",
	       account->verdicts[0], account->verdicts[1], account->verdicts[2],
	       account->verdicts[3], account->too_late);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(armings, sums[TAKEN] + sums[GONE] + sums[LAST]);
	/* There are no gaps in the sequence numbers. */
	for (seq = 0; seq < account->events && seq < MAX_EVENTS; seq++)
		ASSERT_NE(0, account->seqs[seq / 64] & 1ULL << seq % 64);
	EXPECT_LT(0, sums[GONE]);
	EXPECT_LT(0, account->verdicts[TWHEEL_WAS_PENDING]);
	EXPECT_LT(0, account->verdicts[TWHEEL_WAS_EXPIRED]);
}

TEST_F_TIMEOUT(verdicts, every_arming_ends_once, 120)
{
	pthread_t owners[MAX_OWNERS], readers[READERS];
	struct account *account = &self->account;
	struct twheel_context_stats stats;
	unsigned int i;

	for (i = 0; i < account->owners; i++)
		ASSERT_EQ(0, pthread_create(&owners[i], NULL, run_owner, account));
	/* Owners take the first numbers. */
	while (__atomic_load_n(&account->numbers, __ATOMIC_RELAXED) < account->owners)
		sched_yield();
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, pthread_create(&readers[i], NULL, run_reader, account));
	sleep_ns(5 * SEC);
	__atomic_store_n(&account->stop_owners, true, __ATOMIC_RELAXED);
	for (i = 0; i < account->owners; i++)
		ASSERT_EQ(0, pthread_join(owners[i], NULL));
	__atomic_store_n(&account->stop_readers, true, __ATOMIC_RELAXED);
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, pthread_join(readers[i], NULL));
	close_account(_metadata, account);
	check_account(_metadata, account);
	EXPECT_EQ(0, account->faults);
	ASSERT_EQ(0, wh_stats(account->fd, &stats));
	EXPECT_EQ(account->events, stats.delivered);
	/* An event in delivery may also have been dropped. */
	EXPECT_LE(stats.taken_back + stats.delivered, stats.expiries);
	EXPECT_GE(stats.taken_back + stats.delivered + account->verdicts[TWHEEL_WAS_DELIVERED],
		  stats.expiries);
}

TEST_HARNESS_MAIN
