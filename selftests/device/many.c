// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many timers: all fire once, or none after they were cancelled; events wait until they are read;
 * the limit on the number of timers.
 */
#include "twheel_test.h"

#define BATCH	1024

FIXTURE(many)
{
	int fd;
	unsigned int n;
	__u64 *handles;
	__u64 *deadlines;
	unsigned char *seen;
	struct twheel_event *events;
	__u64 seq;
};

FIXTURE_SETUP(many)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->n = very_many();
	self->handles = calloc(self->n, sizeof(*self->handles));
	self->deadlines = calloc(self->n, sizeof(*self->deadlines));
	self->seen = calloc(self->n, sizeof(*self->seen));
	self->events = calloc(BATCH, sizeof(*self->events));
	ASSERT_NE(NULL, self->handles);
	ASSERT_NE(NULL, self->deadlines);
	ASSERT_NE(NULL, self->seen);
	ASSERT_NE(NULL, self->events);
	self->seq = 0;
	random_seed();
	/* So many expire at once that checking each for lateness would take minutes. */
	punctual_off();
}

FIXTURE_TEARDOWN(many)
{
	free(self->handles);
	free(self->deadlines);
	free(self->seen);
	free(self->events);
	EXPECT_EQ(0, close(self->fd));
}

/* Reads up to a batch of events. Returns how many it read. */
static int read_batch(struct __test_metadata *_metadata, FIXTURE_DATA(many) * self)
{
	const struct twheel_event *event;
	int i, count = wh_read(self->fd, self->events, BATCH);

	for (i = 0; i < count; i++) {
		event = &self->events[i];
		ASSERT_GT(self->n, event->user_data);
		EXPECT_EVENT_OK(event);
		ASSERT_EQ(self->handles[event->user_data], event->handle);
		ASSERT_EQ(self->deadlines[event->user_data], event->deadline);
		ASSERT_EQ(0, self->seen[event->user_data]++);
		ASSERT_EQ(self->seq++, event->seq);
	}
	if (count < 0)
		EXPECT_EQ(-EAGAIN, count);
	return count < 0 ? 0 : count;
}

/* Reads until there are no more events. Returns how many it read. */
static int drain(struct __test_metadata *_metadata, FIXTURE_DATA(many) * self)
{
	int count, sum = 0;

	while ((count = read_batch(_metadata, self)))
		sum += count;
	return sum;
}

TEST_F_TIMEOUT(many, all_fire_once, 120)
{
	__u64 i, left = self->n;

	for (i = 0; i < self->n; i++) {
		self->deadlines[i] = now_ns() + random_below(2 * SEC);
		ASSERT_EQ(0, wh_add(self->fd, self->deadlines[i], ABS, i, &self->handles[i]));
		if (!(i & 1023))
			left -= drain(_metadata, self);
	}
	while (left) {
		ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("%llu of %u never fired", left, self->n);
		left -= drain(_metadata, self);
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(0, wh_nr_events(self->fd));
}

/* A burst of timers with the same deadline, and a reader that starts when all have expired. */
TEST_F_TIMEOUT(many, unread_events_wait, 120)
{
	__u64 i, handle, deadline = now_ns() + 200 * MSEC;

	for (i = 0; i < self->n; i++) {
		self->deadlines[i] = deadline;
		ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, i, &self->handles[i]));
	}
	EXPECT_EQ(self->n, wh_nr_timers(self->fd));
	ASSERT_EQ(true, wh_wait_events(self->fd, self->n));
	EXPECT_EQ(self->n, wh_nr_timers(self->fd));
	/* Another event comes while they wait, and is revoked. */
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 0, &handle));
	ASSERT_EQ(true, wh_wait_events(self->fd, self->n + 1));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, handle));
	for (i = 0; i < self->n; i += 9973)
		EXPECT_EQ(TWHEEL_STATE_EXPIRED, wh_state(self->fd, self->handles[i]));
	EXPECT_EQ(self->n, drain(_metadata, self));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F_TIMEOUT(many, all_cancelled_none_fires, 120)
{
	struct twheel_event event;
	__u64 i, pending = total("pending");

	for (i = 0; i < self->n; i++)
		ASSERT_EQ(0, wh_add(self->fd, 30 * SEC + random_below(HOUR), 0, i,
				    &self->handles[i]));
	EXPECT_EQ(self->n, wh_nr_timers(self->fd));
	EXPECT_EQ(pending + self->n, total("pending"));
	for (i = 0; i < self->n; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, self->handles[i]));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(pending, total("pending"));
	EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
	for (i = 0; i < self->n; i += 997)
		EXPECT_EQ(-ENOENT, wh_state(self->fd, self->handles[i]));
}

/* Cancelled while they expire: each is either cancelled or read. */
TEST_F_TIMEOUT(many, cancel_while_they_fire, 120)
{
	__u64 some = self->n / 5;
	__u64 i, deadline = now_ns() + SEC, cancelled = 0, taken_back = 0, read = 0;
	int ret;

	for (i = 0; i < some; i++) {
		self->deadlines[i] = deadline + random_below(200 * MSEC);
		ASSERT_EQ(0, wh_add(self->fd, self->deadlines[i], ABS, i, &self->handles[i]));
	}
	while (now_ns() < deadline)
		sleep_ns(MSEC);
	for (i = 0; i < some; i++) {
		if (!(i % 512) && i)
			read += read_batch(_metadata, self);
		ret = wh_cancel(self->fd, self->handles[i]);
		if (self->seen[i]) {
			ASSERT_EQ(-EALREADY, ret);
			continue;
		}
		ASSERT_LE(0, ret);
		/* So that an event of it would be noticed. */
		self->seen[i]++;
		cancelled += ret == TWHEEL_WAS_PENDING;
		taken_back += ret == TWHEEL_WAS_EXPIRED;
	}
	read += drain(_metadata, self);
	printf("# %llu cancelled, %llu taken back, %llu read\n", cancelled, taken_back, read);
	EXPECT_EQ(some, cancelled + taken_back + read);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	sleep_ns(250 * MSEC);
	EXPECT_EQ(0, drain(_metadata, self));
}

FIXTURE(limit)
{
	int fd;
	__u64 saved;
	__u64 saved_total;
};

FIXTURE_SETUP(limit)
{
	self->saved = file_number(PARAMETERS "max_timers");
	ASSERT_NE(POISON, self->saved);
	self->saved_total = file_number(PARAMETERS "max_timers_total");
	ASSERT_NE(POISON, self->saved_total);
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(limit)
{
	EXPECT_EQ(0, file_write(PARAMETERS "max_timers", self->saved));
	EXPECT_EQ(0, file_write(PARAMETERS "max_timers_total", self->saved_total));
	EXPECT_EQ(0, close(self->fd));
}

TEST_F(limit, of_timers)
{
	enum { LIMIT = 1000 };
	__u64 handles[LIMIT], handle = 0, pending;
	struct wh_view before, after;
	struct twheel_event event;
	struct twheel_info info;
	int i, other;

	ASSERT_EQ(0, file_write(PARAMETERS "max_timers", LIMIT));
	ASSERT_EQ(0, wh_info(self->fd, &info));
	EXPECT_EQ(LIMIT, info.max_timers);
	ASSERT_EQ(0, wh_add(self->fd, 1, ABS, 0, &handles[0]));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	for (i = 1; i < LIMIT; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &handles[i]));

	/* Full: an add is rejected and changes nothing; everything else works. */
	pending = total("pending");
	ASSERT_EQ(0, wh_look(self->fd, handles[1], handles[0], &before));
	EXPECT_EQ(LIMIT, before.info.nr_timers);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, i, &handle));
	EXPECT_EQ(0, handle);
	ASSERT_EQ(0, wh_look(self->fd, handles[1], handles[0], &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_EQ(pending, total("pending"));
	EXPECT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, handles[5], 2 * HOUR, 0));

	/* The limit is per context. */
	other = wh_open(O_NONBLOCK);
	ASSERT_GE(other, 0);
	EXPECT_EQ(0, wh_add(other, HOUR, 0, 1, &handle));
	EXPECT_EQ(0, close(other));

	/* A cancel makes room for one. */
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[2]));
	EXPECT_EQ(0, wh_add(self->fd, HOUR, 0, 2, &handles[2]));
	EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, 3, &handle));

	/* So does a delivery. */
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(0, wh_add(self->fd, HOUR, 0, 4, &handles[0]));
	EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, 5, &handle));
	EXPECT_EQ(LIMIT, wh_nr_timers(self->fd));
}

TEST_F(limit, lowered_below_what_is_there)
{
	__u64 handles[10], handle;
	int i;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &handles[i]));
	ASSERT_EQ(0, file_write(PARAMETERS "max_timers", 5));
	EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, 1, &handle));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i]));
		EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, 1, &handle));
	}
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[5]));
	EXPECT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handle));
	for (i = 6; i < 10; i++)
		EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handles[i]));
}

/* Fills a context with timers of one kind, so that others can have none. Returns how many fit. */
static int fill_all(struct __test_metadata *_metadata, FIXTURE_DATA(limit) * self,
		    struct twheel_timer_add *add)
{
	int fd = wh_open(O_NONBLOCK), ret, n;

	ASSERT_GE(fd, 0);
	for (n = 0; (ret = wh_add_timer(fd, add)) >= 0; n++)
		if (add->flags & TWHEEL_KEYED)
			add->key++;
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(-ENOSPC, wh_add_timer(self->fd, add));
	EXPECT_EQ(n, wh_nr_timers(fd));
	EXPECT_EQ(0, close(fd));
	return n;
}

/*
 * The number of timers that all contexts together have memory for is limited, too; closing a
 * context returns all of it.
 */
TEST_F(limit, of_all_contexts)
{
	enum { LIMIT = 3000 };
	struct twheel_timer_add add[] = {
		{ .time = HOUR, .clock = CLOCK_MONOTONIC },
		{ .time = HOUR, .clock = CLOCK_MONOTONIC, .flags = TWHEEL_KEYED },
		{ .time = HOUR, .clock = CLOCK_MONOTONIC, .lifetime = HOUR },
	};
	size_t i, round;
	int first;

	ASSERT_EQ(0, file_write(PARAMETERS "max_timers_total", LIMIT));
	for (i = 0; i < ARRAY_SIZE(add); i++) {
		first = fill_all(_metadata, self, &add[i]);
		EXPECT_LT(0, first);
		EXPECT_GE(LIMIT, first);
		for (round = 0; round < 3; round++)
			EXPECT_EQ(first, fill_all(_metadata, self, &add[i]));
	}
}

TEST_F(limit, of_none)
{
	__u64 handle;

	ASSERT_EQ(0, file_write(PARAMETERS "max_timers", 0));
	EXPECT_EQ(-ENOSPC, wh_add(self->fd, HOUR, 0, 1, &handle));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_HARNESS_MAIN
