// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers whose generations run out: each is retired after its last one, no handle is
 * given out twice, and other timers take their place. Needs a twheel.ko built with
 * injection points and loaded with a high inject_generation.
 */
#include "twheel_test.h"

/* The number of timers per round; more than fit into one block of memory. */
#define N	1000

FIXTURE(generations)
{
	int fd;
	unsigned int lives;
	__u64 *handles;
	unsigned int nr_handles;
};

FIXTURE_SETUP(generations)
{
	__u64 first = file_number(PARAMETERS "inject_generation");

	ASSERT_NE(POISON, first);
	self->lives = (1ULL << 32) - first;
	ASSERT_GE(10, self->lives) TH_LOG("takes a high inject_generation");
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->nr_handles = 0;
	self->handles = calloc((self->lives + 1) * N, sizeof(*self->handles));
	ASSERT_NE(NULL, self->handles);
}

FIXTURE_TEARDOWN(generations)
{
	free(self->handles);
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(0, total("contexts"));
	EXPECT_EQ(0, total("pending"));
}

static void add_timer(struct __test_metadata *_metadata, FIXTURE_DATA(generations) * self,
		      __u64 time)
{
	ASSERT_EQ(0, wh_add(self->fd, time, 0, self->nr_handles,
			    &self->handles[self->nr_handles]));
	self->nr_handles++;
}

/* The number of the timer in its context; its generation is in the other half. */
static __u32 timer_nr(__u64 handle)
{
	return handle;
}

static int compare_handles(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	/* By number, and then by generation. */
	x = x << 32 | x >> 32;
	y = y << 32 | y >> 32;
	return x < y ? -1 : x > y;
}

/*
 * All handles are stale, those of every third round by delivery if @delivered; some timers were
 * used up, and none was used more often than allowed.
 */
static void expect_used_up(struct __test_metadata *_metadata,
			   FIXTURE_DATA(generations) * self, bool delivered)
{
	unsigned int i, uses = 0, used_up = 0;
	int error;
	const __u64 *handles = self->handles;

	EXPECT_EQ(0, wh_nr_timers(self->fd));
	for (i = 0; i < self->nr_handles; i++) {
		error = delivered && i / N % 3 == 1 ? EALREADY : ENOENT;
		EXPECT_EQ(-error, wh_state(self->fd, handles[i]));
		/* What a wrapped generation would look like. */
		EXPECT_EQ(-ENOENT, wh_state(self->fd, timer_nr(handles[i])));
		EXPECT_EQ(-ENOENT, wh_cancel(self->fd, timer_nr(handles[i])));
	}
	qsort(self->handles, self->nr_handles, sizeof(*handles), compare_handles);
	for (i = 0; i < self->nr_handles; i++) {
		uses++;
		if (i + 1 < self->nr_handles && timer_nr(handles[i]) == timer_nr(handles[i + 1])) {
			ASSERT_NE(handles[i], handles[i + 1]);
			continue;
		}
		ASSERT_GE(self->lives, uses) TH_LOG("timer %u used again", timer_nr(handles[i]));
		used_up += uses == self->lives;
		uses = 0;
	}
	EXPECT_NE(0, used_up);
}

/* One at a time: the timer freed last is the next one to be used. */
TEST_F(generations, of_one_timer_after_another)
{
	unsigned int i;

	for (i = 0; i < self->lives * N; i++) {
		add_timer(_metadata, self, HOUR);
		ASSERT_EQ(1, wh_nr_timers(self->fd));
		ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, self->handles[i]));
	}
	expect_used_up(_metadata, self, false);
}

/* All at the same time, ended in every possible way; then others in their place. */
TEST_F(generations, of_all_timers_at_once)
{
	struct twheel_event events[N];
	unsigned int life, i, first;

	for (life = 0; life <= self->lives; life++) {
		first = self->nr_handles;
		for (i = 0; i < N; i++)
			add_timer(_metadata, self, life % 3 ? 0 : HOUR);
		ASSERT_EQ(N, wh_nr_timers(self->fd));
		if (life % 3)
			ASSERT_EQ(true, wh_wait_events(self->fd, N));
		if (life % 3 == 1) {
			ASSERT_EQ(N, wh_read(self->fd, events, N));
			continue;
		}
		for (i = 0; i < N; i++)
			ASSERT_EQ(life % 3 ? TWHEEL_WAS_EXPIRED : TWHEEL_WAS_PENDING,
				  wh_cancel(self->fd, self->handles[first + i]));
	}
	expect_used_up(_metadata, self, true);
}

TEST_HARNESS_MAIN
