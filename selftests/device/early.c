// SPDX-License-Identifier: GPL-2.0-only
/*
 * No timer fires before its deadline, and each fires exactly once: at random distances, while
 * timers are re-armed, and where a wheel cascades. In simulated time, none is late by a tick
 * either; elsewhere lateness depends on the machine, and is only printed.
 */
#include "twheel_test.h"

#define BATCH 256

/**
 * struct lateness - how late the events of a test were, in nanoseconds
 * @max:	the maximum
 * @sum:	the sum over all events
 * @n:		number of events
 */
struct lateness {
	__u64	max;
	__u64	sum;
	__u64	n;
};

static void record_lateness(struct lateness *lateness, const struct twheel_event *event)
{
	__u64 ns = event->fired - event->deadline;

	if (ns > lateness->max)
		lateness->max = ns;
	lateness->sum += ns;
	lateness->n++;
}

static void print_lateness(const struct lateness *lateness)
{
	if (!lateness->n)
		return;
	printf("# %llu timers, late by %llu us at most, %llu us on average\n",
	       lateness->n, lateness->max / USEC, lateness->sum / lateness->n / USEC);
	fflush(stdout);
}

/**
 * struct model - what the test knows about a timer
 * @handle:	its handle
 * @earliest:	its deadline, or the earliest that it can be
 * @latest:	the latest that its deadline can be
 * @armed:	when it was armed, at the latest
 * @events:	how many events were read since it was armed
 */
struct model {
	__u64	handle;
	__u64	earliest;
	__u64	latest;
	__u64	armed;
	int	events;
};

FIXTURE(early)
{
	int fd;
	__u64 tick;
	__u64 seq;
	struct lateness lateness;
};

FIXTURE_VARIANT(early)
{
	__u32 flags;
};

FIXTURE_VARIANT_ADD(early, absolute)
{
	.flags = TWHEEL_TIME_ABS,
};

FIXTURE_VARIANT_ADD(early, relative)
{
	.flags = 0,
};

FIXTURE_SETUP(early)
{
	struct twheel_info info;

	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_info(self->fd, &info));
	self->tick = info.tick_ns;
	self->seq = 0;
	memset(&self->lateness, 0, sizeof(self->lateness));
	random_seed();
}

FIXTURE_TEARDOWN(early)
{
	print_lateness(&self->lateness);
	EXPECT_EQ(0, close(self->fd));
}

/* Adds a timer that is due in @distance. */
static int model_add(int fd, __u32 flags, __u64 distance, __u64 id, struct model *model)
{
	int ret;

	model->events = 0;
	model->earliest = now_ns() + distance;
	ret = wh_add(fd, flags & ABS ? model->earliest : distance, flags, id, &model->handle);
	model->armed = now_ns();
	model->latest = flags & ABS ? model->earliest : model->armed + distance;
	return ret;
}

/* Adds a timer that is due at @deadline, directly or by re-arming it from elsewhere. */
static int model_add_at(int fd, bool directly, __u64 deadline, __u64 id, struct model *model)
{
	int ret;

	model->events = 0;
	model->earliest = deadline;
	model->latest = deadline;
	if (directly) {
		ret = wh_add(fd, deadline, ABS, id, &model->handle);
	} else {
		ret = wh_add(fd, 0, 0, id, &model->handle);
		if (!ret)
			ret = wh_rearm(fd, model->handle, HOUR, 0);
		if (ret >= 0)
			ret = wh_rearm(fd, model->handle, deadline, ABS);
	}
	model->armed = now_ns();
	return ret;
}

static int model_rearm(int fd, __u32 flags, __u64 distance, struct model *model)
{
	__u64 earliest = now_ns() + distance;
	int ret;

	ret = wh_rearm(fd, model->handle, flags & ABS ? earliest : distance, flags);
	model->armed = now_ns();
	model->earliest = earliest;
	model->latest = flags & ABS ? earliest : model->armed + distance;
	return ret;
}

/* Reads all available events and compares them with the model. */
static int drain(struct __test_metadata *_metadata, FIXTURE_DATA(early) * self,
		 struct model *models, size_t n)
{
	struct twheel_event events[BATCH];
	const struct twheel_event *event;
	struct model *model;
	int i, count, sum = 0;

	while ((count = wh_read(self->fd, events, BATCH)) > 0) {
		for (i = 0; i < count; i++) {
			event = &events[i];
			ASSERT_GT(n, event->user_data);
			model = &models[event->user_data];
			EXPECT_EVENT_OK(event);
			ASSERT_EQ(model->handle, event->handle);
			ASSERT_LE(model->earliest, event->deadline);
			ASSERT_GE(model->latest, event->deadline);
			ASSERT_EQ(0, model->events++);
			ASSERT_EQ(self->seq++, event->seq);
			EXPECT_PUNCTUAL(event, model->armed);
			record_lateness(&self->lateness, event);
		}
		sum += count;
	}
	EXPECT_EQ(-EAGAIN, count);
	return sum;
}

/* Reads until every timer of the model has had its event. */
static void drain_all(struct __test_metadata *_metadata, FIXTURE_DATA(early) * self,
		      struct model *models, size_t n)
{
	size_t i, left = 0;

	for (i = 0; i < n; i++)
		left += !models[i].events;
	while (left) {
		ASSERT_EQ(true, wh_wait(self->fd))
			TH_LOG("%zu of %zu timers never fired", left, n);
		left -= drain(_metadata, self, models, n);
	}
	/* No event comes twice. */
	sleep_ns(3 * self->tick);
	EXPECT_EQ(0, drain(_metadata, self, models, n));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F_TIMEOUT(early, random_distances, 90)
{
	enum { N = 4000 };
	static struct model models[N];
	__u64 distance;
	size_t i;

	for (i = 0; i < N; i++) {
		/* With a uniform distribution, short distances would be rare. */
		distance = i & 1 ? random_below(3 * SEC) : random_magnitude(31);
		ASSERT_EQ(0, model_add(self->fd, variant->flags, distance, i, &models[i]));
		if (!(i & 63))
			drain(_metadata, self, models, i + 1);
	}
	drain_all(_metadata, self, models, N);
}

/*
 * Timers are re-armed to random earlier and later times while they fire. A timer whose event was
 * not read can always be re-armed, one whose event was read never.
 */
TEST_F_TIMEOUT(early, rearm_storm, 90)
{
	enum { N = 500, MOVES = 20000 };
	static struct model models[N];
	__u64 end = now_ns() + SEC;
	unsigned int moved = 0, taken_back = 0;
	struct model *model;
	size_t i, move;
	int ret;

	for (i = 0; i < N; i++)
		ASSERT_EQ(0, model_add(self->fd, variant->flags, random_magnitude(29), i,
				       &models[i]));
	for (move = 0; move < MOVES && now_ns() < end; move++) {
		i = random_below(N);
		model = &models[i];
		if (model->events) {
			ret = wh_rearm(self->fd, model->handle, 0, 0);
			/* Its memory may have been reused many times since. */
			ASSERT_EQ(true, ret == -EALREADY || ret == -ENOENT);
			ASSERT_EQ(0, model_add(self->fd, variant->flags, random_magnitude(29),
					       i, model));
			continue;
		}
		ret = model_rearm(self->fd, variant->flags, random_magnitude(29), model);
		ASSERT_GE(ret, 0);
		moved += ret == TWHEEL_WAS_PENDING;
		taken_back += ret == TWHEEL_WAS_EXPIRED;
		if (!(move & 15))
			drain(_metadata, self, models, N);
	}
	printf("# %u moved, %u taken back\n", moved, taken_back);
	EXPECT_LT(0, moved);
	drain_all(_metadata, self, models, N);
}

/*
 * Deadlines at the ticks where digits of the tick number roll over, and a tick or a nanosecond
 * before and after, on whichever level the timers start.
 */
TEST_F_TIMEOUT(early, cascade_boundaries, 90)
{
	enum { PER_BOUNDARY = 11, BOUNDARIES = 9, N = 2 * BOUNDARIES * PER_BOUNDARY };
	static struct model models[N];
	const __s64 tick = self->tick;
	const __s64 around[PER_BOUNDARY] = {
		-2 * tick, -tick - 1, -tick, -tick + 1, -1, 0, 1, tick - 1, tick, tick + 1,
		2 * tick,
	};
	__u64 width, boundary, first, now;
	size_t i, n = 0;
	int level, k;

	for (level = 1; level <= 8; level++) {
		width = tick << 6 * level;
		now = now_ns();
		/* On the top level, the first rollover that can be reached in time is enough. */
		first = (now / width + 1) * width;
		if (first - now > 5 * SEC)
			break;
		for (k = 0; k < (level == 1 ? BOUNDARIES - 2 : 1); k++) {
			boundary = first + k * width;
			for (i = 0; i < PER_BOUNDARY; i++) {
				ASSERT_GT(N, n);
				ASSERT_EQ(0, model_add_at(self->fd, variant->flags & ABS,
							  boundary + around[i], n,
							  &models[n]));
				n++;
			}
		}
	}
	ASSERT_LT(0, n);
	drain_all(_metadata, self, models, n);
}

/* A timer with a later deadline must not hide one that is added after it. */
TEST_F_TIMEOUT(early, a_later_timer_hides_none, 90)
{
	static struct model models[2];
	struct twheel_event event;
	unsigned int level, i;
	__u64 distance;

	for (level = 0; level < 7; level++) {
		for (i = 0; i < 8; i++) {
			/* Never so soon that it could expire first on a slow machine. */
			distance = 30 * SEC + (self->tick << 6 * level) * (1 + random_below(64));
			ASSERT_EQ(0, model_add(self->fd, variant->flags, distance, 0, &models[0]));
			distance = random_below(self->tick * 8);
			ASSERT_EQ(0, model_add(self->fd, variant->flags, distance, 1, &models[1]));
			ASSERT_EQ(true, wh_wait(self->fd));
			ASSERT_EQ(1, wh_read(self->fd, &event, 1));
			EXPECT_EVENT_OK(&event);
			ASSERT_EQ(models[1].handle, event.handle);
			ASSERT_LE(models[1].earliest, event.deadline);
			ASSERT_GT(models[0].earliest, event.fired);
			EXPECT_PUNCTUAL(&event, models[1].armed);
			record_lateness(&self->lateness, &event);
			/*
			 * The wheel has examined the later one meanwhile; move it to an earlier
			 * time.
			 */
			ASSERT_EQ(TWHEEL_WAS_PENDING,
				  model_rearm(self->fd, variant->flags,
					      random_below(self->tick * 4), &models[0]));
			ASSERT_EQ(true, wh_wait(self->fd));
			ASSERT_EQ(1, wh_read(self->fd, &event, 1));
			EXPECT_EVENT_OK(&event);
			ASSERT_EQ(models[0].handle, event.handle);
			ASSERT_LE(models[0].earliest, event.deadline);
			EXPECT_PUNCTUAL(&event, models[0].armed);
			record_lateness(&self->lateness, &event);
		}
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/* A timer that is always re-armed to a few ticks ahead must not fire until this stops. */
TEST_F_TIMEOUT(early, pushed_ahead_for_long, 90)
{
	__u64 end = now_ns() + 300 * MSEC;
	struct twheel_event event;
	static struct model model;
	unsigned int fired = 0;
	int ret;

	ASSERT_EQ(0, model_add(self->fd, variant->flags, 3 * self->tick, 0, &model));
	while (now_ns() < end) {
		ret = model_rearm(self->fd, variant->flags, 3 * self->tick, &model);
		ASSERT_GE(ret, 0);
		/* The machine may have been stalled for that long. */
		fired += ret == TWHEEL_WAS_EXPIRED;
	}
	printf("# taken back %u times\n", fired);
	ASSERT_EQ(true, wh_wait(self->fd));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(0, event.seq);
	EXPECT_EQ(model.handle, event.handle);
	EXPECT_LE(model.earliest, event.deadline);
	EXPECT_GE(model.latest, event.deadline);
	EXPECT_PUNCTUAL(&event, model.armed);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_HARNESS_MAIN
