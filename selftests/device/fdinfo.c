// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/fdinfo/FD: what a context shows to anybody who may inspect the process.
 */
#include <sys/time.h>

#include "twheel_test.h"

#define MAX_SHOWN	1024

/**
 * struct shown - the contents of the file
 * @text:	all of it
 * @lines:	the lines that start with "twheel-timer:", in order
 * @n:		their number
 */
struct shown {
	char	text[1 << 19];
	char	*lines[2 * MAX_SHOWN];
	size_t	n;
};

FIXTURE(fdinfo)
{
	int fd;
	struct shown *shown;
};

FIXTURE_SETUP(fdinfo)
{
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	self->shown = malloc(sizeof(*self->shown));
	ASSERT_NE(NULL, self->shown);
}

FIXTURE_TEARDOWN(fdinfo)
{
	free(self->shown);
	EXPECT_EQ(0, close(self->fd));
}

static int read_fdinfo(FIXTURE_DATA(fdinfo) * self)
{
	struct shown *shown = self->shown;
	size_t size = 0;
	char path[64], *line;
	ssize_t ret;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((ret = read(fd, shown->text + size, sizeof(shown->text) - 1 - size)) > 0)
		size += ret;
	close(fd);
	shown->text[size] = 0;
	shown->n = 0;
	for (line = shown->text; (line = strstr(line, "\ntwheel-timer:\t")); line++)
		if (shown->n < ARRAY_SIZE(shown->lines))
			shown->lines[shown->n++] = line + 1;
	return ret < 0 ? -errno : 0;
}

/* The number in the line of @key, or POISON. */
static __u64 fdinfo_number(FIXTURE_DATA(fdinfo) * self, const char *key)
{
	__u64 number = POISON;
	char line[64], *found;

	snprintf(line, sizeof(line), "\n%s:\t", key);
	found = strstr(self->shown->text, line);
	/* There must be exactly one such line. */
	if (!found || strstr(found + 1, line))
		return POISON;
	return sscanf(found + strlen(line), "%llu", &number) == 1 ? number : POISON;
}

TEST_F(fdinfo, numbers)
{
	struct twheel_context_stats stats;
	struct twheel_setup setup = { .max_timers = 77 };
	int i;

	ASSERT_EQ(0, read_fdinfo(self));
	EXPECT_EQ(0, fdinfo_number(self, "twheel-timers"));
	EXPECT_EQ(file_number(PARAMETERS "max_timers"), fdinfo_number(self, "twheel-max-timers"));
	EXPECT_EQ(0, fdinfo_number(self, "twheel-events"));
	EXPECT_EQ(0, fdinfo_number(self, "twheel-ring"));
	EXPECT_EQ(0, fdinfo_number(self, "twheel-touch"));
	EXPECT_EQ(0, self->shown->n);

	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, wh_add(self->fd, i < 2 ? 0 : HOUR, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 2));
	ASSERT_EQ(0, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	ASSERT_EQ(0, read_fdinfo(self));
	EXPECT_EQ(5, fdinfo_number(self, "twheel-timers"));
	EXPECT_EQ(77, fdinfo_number(self, "twheel-max-timers"));
	EXPECT_EQ(2, fdinfo_number(self, "twheel-events"));
	EXPECT_EQ(stats.bytes, fdinfo_number(self, "twheel-bytes"));
	EXPECT_EQ(5, self->shown->n);
}

/* The line of a timer, without the remaining time; or NULL. */
static const char *timer_line(FIXTURE_DATA(fdinfo) * self, __u64 handle)
{
	char begin[64];
	size_t i;

	snprintf(begin, sizeof(begin), "twheel-timer:\t%016llx ", handle);
	for (i = 0; i < self->shown->n; i++)
		if (!strncmp(self->shown->lines[i], begin, strlen(begin)))
			return self->shown->lines[i];
	return NULL;
}

/* Checks that the line is exactly what the query implies. */
static void expect_line(struct __test_metadata *_metadata, FIXTURE_DATA(fdinfo) * self,
			__u64 handle)
{
	struct twheel_timer_query before, after;
	char expected[256], key[32] = "-";
	const char *line, *remaining;
	__u64 left;

	ASSERT_EQ(0, wh_query(self->fd, handle, &before));
	ASSERT_EQ(0, read_fdinfo(self));
	ASSERT_EQ(0, wh_query(self->fd, handle, &after));
	line = timer_line(self, handle);
	ASSERT_NE(NULL, line) TH_LOG("handle %llx", handle);
	remaining = strstr(line, "remaining:");
	ASSERT_NE(NULL, remaining);
	left = strtoull(remaining + strlen("remaining:"), NULL, 10);
	EXPECT_GE(before.remaining, left);
	EXPECT_LE(after.remaining, left);
	if (before.flags & TWHEEL_KEYED)
		snprintf(key, sizeof(key), "%llx", before.key);
	snprintf(expected, sizeof(expected),
		 "twheel-timer:\t%016llx %s deadline:%llu clock:%u remaining:%llu period:%llu key:%s user-data:%llx\n",
		 handle, before.state == TWHEEL_STATE_PENDING ? "pending" : "expired",
		 before.deadline, before.clock, left, before.period, key, before.user_data);
	EXPECT_EQ(0, strncmp(expected, line, strlen(expected)))
		TH_LOG("expected %s, seen %.200s", expected, line);
}

TEST_F(fdinfo, timers)
{
	struct twheel_timer_add adds[] = {
		{ .time = HOUR, .user_data = 0x123456789abcdef0 },
		{ .time = 0 },
		{ .time = HOUR, .flags = TWHEEL_KEYED, .key = 0xfedcba9876543210 },
		{ .time = HOUR, .flags = TWHEEL_KEYED, .key = 0 },
		{ .time = HOUR, .period = 12345678 },
		{ .time = 0, .period = HOUR, .flags = TWHEEL_KEYED, .key = ~0ULL },
		{ .time = TWHEEL_TIME_NONE, .idle = HOUR },
		{ .time = HOUR, .clock = CLOCK_BOOTTIME },
		{ .time = TWHEEL_TIME_MAX, .flags = ABS },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(adds); i++) {
		adds[i].clock = adds[i].clock ?: CLOCK_MONOTONIC;
		ASSERT_LE(0, wh_add_timer(self->fd, &adds[i]));
	}
	ASSERT_EQ(true, wh_wait_events(self->fd, 2));
	for (i = 0; i < ARRAY_SIZE(adds); i++)
		expect_line(_metadata, self, adds[i].handle);
	EXPECT_EQ(ARRAY_SIZE(adds), self->shown->n);
	EXPECT_EQ(POISON, fdinfo_number(self, "twheel-timers-not-shown"));
	/* Reading the file changes nothing. */
	EXPECT_EQ(ARRAY_SIZE(adds), wh_nr_timers(self->fd));
	EXPECT_EQ(2, wh_nr_events(self->fd));
}

TEST_F_TIMEOUT(fdinfo, very_many, 60)
{
	size_t i;

	for (i = 0; i < MAX_SHOWN; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, NULL));
	ASSERT_EQ(0, read_fdinfo(self));
	EXPECT_EQ(MAX_SHOWN, self->shown->n);
	EXPECT_EQ(POISON, fdinfo_number(self, "twheel-timers-not-shown"));
	for (i = 0; i < 3000; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, NULL));
	ASSERT_EQ(0, read_fdinfo(self));
	EXPECT_EQ(MAX_SHOWN, self->shown->n);
	EXPECT_EQ(3000, fdinfo_number(self, "twheel-timers-not-shown"));
	EXPECT_EQ(MAX_SHOWN + 3000, fdinfo_number(self, "twheel-timers"));
}

static volatile sig_atomic_t signals;

static void on_alarm(int signal)
{
	(void)signal;
	signals++;
}

/*
 * A signal interrupts reading, so a reader can be killed. The file then says how many timers it
 * left out.
 */
TEST_F_TIMEOUT(fdinfo, ends_short_at_a_signal, 60)
{
	/* Showing all timers takes longer than this. */
	const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { };
	const struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	__u64 left;
	size_t i;

	for (i = 0; i < MAX_SHOWN; i++)
		ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, i, NULL));
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	ASSERT_EQ(0, read_fdinfo(self));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	EXPECT_LT(0, signals);
	left = fdinfo_number(self, "twheel-timers-not-shown");
	ASSERT_NE(POISON, left);
	EXPECT_GT(MAX_SHOWN, self->shown->n);
	EXPECT_EQ(MAX_SHOWN, self->shown->n + left);
	/* Without signals, all are shown. */
	ASSERT_EQ(0, read_fdinfo(self));
	EXPECT_EQ(MAX_SHOWN, self->shown->n);
}

TEST_HARNESS_MAIN
