// SPDX-License-Identifier: GPL-2.0-only
/*
 * A handle only ever names its own timer: stale, foreign and made-up handles are rejected, and a
 * timer that reuses the memory of a stale one is left alone.
 */
#include "twheel_test.h"

FIXTURE(stale)
{
	int fd;
	__u64 pending;
	__u64 expired;
};

FIXTURE_SETUP(stale)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_add(self->fd, 2, ABS, 100, &self->expired));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 200, &self->pending));
	ASSERT_NE(self->pending, self->expired);
	random_seed();
}

FIXTURE_TEARDOWN(stale)
{
	EXPECT_EQ(0, close(self->fd));
}

/* Checks that every call rejects the handle with @error and changes nothing. */
static void expect_error(struct __test_metadata *_metadata, FIXTURE_DATA(stale) * self,
			 __u64 handle, int error)
{
	struct wh_view before, after;
	struct twheel_timer_query query;

	ASSERT_EQ(0, wh_look(self->fd, self->pending, self->expired, &before));
	EXPECT_EQ(-error, wh_query(self->fd, handle, &query)) TH_LOG("handle %llx", handle);
	EXPECT_EQ(-error, wh_rearm(self->fd, handle, 0, 0)) TH_LOG("handle %llx", handle);
	EXPECT_EQ(-error, wh_rearm(self->fd, handle, HOUR, 0)) TH_LOG("handle %llx", handle);
	EXPECT_EQ(-error, wh_cancel(self->fd, handle)) TH_LOG("handle %llx", handle);
	ASSERT_EQ(0, wh_look(self->fd, self->pending, self->expired, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
}

static void expect_refused(struct __test_metadata *_metadata, FIXTURE_DATA(stale) * self,
			   __u64 handle)
{
	expect_error(_metadata, self, handle, ENOENT);
}

TEST_F(stale, after_cancel)
{
	__u64 handle;

	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handle));
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handle));
	expect_refused(_metadata, self, handle);
}

TEST_F(stale, after_cancel_of_an_expired_one)
{
	__u64 handle;

	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, &handle));
	ASSERT_EQ(true, wh_wait_events(self->fd, 2));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_cancel(self->fd, handle));
	expect_refused(_metadata, self, handle);
}

TEST_F(stale, after_delivery)
{
	struct twheel_event events[2];
	__u64 handle;

	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, &handle));
	ASSERT_EQ(true, wh_wait_events(self->fd, 2));
	ASSERT_EQ(2, wh_read(self->fd, events, 2));
	ASSERT_EQ(self->expired, events[0].handle);
	ASSERT_EQ(handle, events[1].handle);
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, &self->expired));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	/* Another timer has reused the memory of one of them since. */
	expect_error(_metadata, self, handle, EALREADY);
	expect_error(_metadata, self, events[0].handle, EALREADY);
}

/* Calls fail with EALREADY until the memory has been reused twelve times. */
TEST_F(stale, after_delivery_and_other_lives)
{
	struct twheel_event events[2];
	__u64 handle, other;
	int i;

	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, &handle));
	ASSERT_EQ(true, wh_wait_events(self->fd, 2));
	/* So that its memory is the first to be reused. */
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, wh_rearm(self->fd, self->expired, HOUR, 0));
	ASSERT_EQ(1, wh_read(self->fd, events, 2));
	ASSERT_EQ(handle, events[0].handle);
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_rearm(self->fd, self->expired, 0, 0));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	expect_error(_metadata, self, handle, EALREADY);
	for (i = 0; i < 12; i++) {
		/* While the other timer exists, and afterwards. */
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &other));
		expect_error(_metadata, self, handle, EALREADY);
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, other));
		expect_error(_metadata, self, handle, i < 11 ? EALREADY : ENOENT);
		expect_error(_metadata, self, other, ENOENT);
	}
}

TEST_F(stale, never_given_out)
{
	const __u64 known[] = { self->pending, self->expired };
	__u64 handle;
	size_t i, bit;

	expect_refused(_metadata, self, 0);
	expect_refused(_metadata, self, ~0ULL);
	expect_refused(_metadata, self, 1);
	expect_refused(_metadata, self, 1ULL << 63);
	expect_refused(_metadata, self, 0xffffffffULL);
	expect_refused(_metadata, self, 0xffffffff00000000ULL);
	/* Handles that differ from a live one by one bit, and its neighbours. */
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		for (bit = 0; bit < 64; bit++) {
			handle = known[i] ^ 1ULL << bit;
			if (handle != self->pending && handle != self->expired)
				expect_refused(_metadata, self, handle);
		}
		for (bit = 0; bit < 64; bit++) {
			handle = known[i] + (1ULL << bit);
			if (handle != self->pending && handle != self->expired)
				expect_refused(_metadata, self, handle);
			handle = known[i] - (1ULL << bit);
			if (handle != self->pending && handle != self->expired)
				expect_refused(_metadata, self, handle);
		}
	}
	for (i = 0; i < 1000; i++) {
		handle = random_u64();
		if (handle == self->pending || handle == self->expired)
			continue;
		expect_refused(_metadata, self, handle);
		expect_refused(_metadata, self, random_magnitude(63) & ~self->pending &
						~self->expired);
	}
}

/*
 * The other context has reused its memory more often, so that none of its handles equals one of
 * ours.
 */
TEST_F(stale, of_another_context)
{
	int other = wh_open(O_NONBLOCK);
	struct wh_view before, after;
	__u64 pending = 0, expired, handle;
	unsigned int i;

	ASSERT_GE(other, 0);
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, wh_add(other, HOUR, 0, i, &handle));
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(other, handle));
	}
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, wh_add(other, HOUR, 0, i, &pending));
	ASSERT_EQ(0, wh_add(other, 0, 0, 1, &expired));
	ASSERT_EQ(true, wh_wait_events(other, 1));
	ASSERT_EQ(0, wh_look(other, pending, expired, &before));
	if (pending != self->pending && pending != self->expired)
		expect_refused(_metadata, self, pending);
	if (expired != self->pending && expired != self->expired)
		expect_refused(_metadata, self, expired);
	ASSERT_EQ(0, wh_look(other, pending, expired, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_EQ(0, close(other));
}

/* Two contexts may use equal handles; each means its own timer. */
TEST_F(stale, equal_handles_of_two_contexts)
{
	int other = wh_open(O_NONBLOCK);
	struct wh_view before, after;
	struct twheel_timer_query query;
	__u64 first;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, wh_look(self->fd, self->pending, self->expired, &before));
	ASSERT_EQ(0, wh_add(other, HOUR, 0, 5, &first));
	ASSERT_EQ(0, wh_query(other, first, &query));
	EXPECT_EQ(5, query.user_data);
	ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(other, first));
	ASSERT_EQ(0, wh_look(self->fd, self->pending, self->expired, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_EQ(0, close(other));
}

/* The memory of a timer is reused at once; its old handles stay stale. */
TEST_F(stale, a_recycled_timer_is_left_alone)
{
	enum { N = 200 };
	__u64 old[N], handle, deadline = now_ns() + HOUR;
	struct twheel_timer_query query;
	struct twheel_event event;
	size_t i;

	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &old[i]));
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, old[i]));
	}
	ASSERT_EQ(0, wh_add(self->fd, deadline, ABS, 4711, &handle));
	for (i = 0; i < N; i++) {
		ASSERT_NE(old[i], handle);
		expect_refused(_metadata, self, old[i]);
	}
	ASSERT_EQ(0, wh_query(self->fd, handle, &query));
	EXPECT_EQ(deadline, query.deadline);
	EXPECT_EQ(4711, query.user_data);
	EXPECT_EQ(TWHEEL_STATE_PENDING, query.state);

	/* The same when it has expired, and when its memory was freed by a delivery. */
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	ASSERT_EQ(self->expired, event.handle);
	old[0] = self->expired;
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, &self->expired));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));
	for (i = 0; i < N; i++)
		expect_error(_metadata, self, old[i], i ? ENOENT : EALREADY);
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, wh_state(self->fd, self->expired));
}

static int compare_handles(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

TEST_F_TIMEOUT(stale, handles_are_unique, 90)
{
	enum { LIVE = 50 };
	size_t i, n = very_many();
	__u64 *handles = calloc(n, sizeof(*handles));

	ASSERT_NE(NULL, handles);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, &handles[i]));
		ASSERT_NE(0, handles[i]);
		if (i >= LIVE)
			ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, handles[i - LIVE]));
	}
	qsort(handles, n, sizeof(*handles), compare_handles);
	for (i = 1; i < n; i++)
		ASSERT_NE(handles[i - 1], handles[i]);
	EXPECT_EQ(LIVE + 2, wh_nr_timers(self->fd));
	free(handles);
}

TEST_HARNESS_MAIN
