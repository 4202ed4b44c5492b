// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: what one user may cost others, measured while nobody else is there
 */
#include "fuzz.h"

/* ---- memory */

#define BULK	20000U

/* The chunks that a CPU may keep when there are no timers, 64 bytes each. */
#define KEPT	256

/* Adds timers on this CPU, and cancels five out of six, so that few chunks are empty. */
static void fill_wheel(int fd)
{
	static __u64 handle[BULK];
	unsigned int i;

	for (i = 0; i < BULK; i++)
		if (wh_add(fd, HOUR + i * USEC, 0, 0, &handle[i]))
			fuzz_fail("add: errno %d", errno);
	for (i = 0; i < BULK; i++)
		if (i % 6 && wh_cancel(fd, handle[i]))
			fuzz_fail("cancel");
	add_count(&fuzz->calls, 2 * BULK);
}

/* Memory that a user made the kernel use is released soon after the user has gone. */
static void memory_comes_back(void)
{
	__u64 before = total("chunks"), after = 0, most;
	int list[64], n = cpus(list, 64), i;
	int fd = wh_open(0);

	if (before == POISON) {
		say_once("not here: debugfs");
		return;
	}
	most = before + KEPT * n;
	for (i = 0; i < n; i++) {
		pin(list[i]);
		fill_wheel(fd);
	}
	sched_setaffinity(0, sizeof(cpu_set_t), &(cpu_set_t){ .__bits = { ~0UL } });
	close(fd);
	for (i = 0; i < 1000; i++) {
		after = total("chunks");
		if (after <= most)
			return;
		sleep_ns(10 * MSEC);
	}
	fuzz_fail("a context has left %llu chunks behind, there were %llu", after, before);
}

/* ---- clocks of others */

#define CLOCKED	200
#define ARRAYS	50

/* Touch arrays that come and go do not affect the timers of others. */
static void clocks_stay(void)
{
	int fd = wh_open(0), other;
	struct twheel_setup setup;
	__u64 before, after;
	unsigned int i;

	for (i = 0; i < CLOCKED; i++) {
		struct twheel_timer_add add = {
			.time	= clock_ns(CLOCK_REALTIME) + HOUR,
			.flags	= ABS,
			.clock	= CLOCK_REALTIME,
		};

		if (wh_add_timer(fd, &add))
			fuzz_fail("add: errno %d", errno);
	}
	before = total("rearms");
	if (before == POISON) {
		say_once("not here: debugfs");
		return;
	}
	for (i = 0; i < ARRAYS; i++) {
		other = wh_open(0);
		if (wh_setup(other, 0, 8, &setup))
			fuzz_fail("setup: errno %d", errno);
		close(other);
	}
	sleep_ns(100 * MSEC);
	after = total("rearms");
	if (after - before > CLOCKED)
		fuzz_fail("%u touch arrays of another user re-arm %u timers %llu times", ARRAYS,
			  CLOCKED, after - before);
	close(fd);
	add_count(&fuzz->calls, CLOCKED + ARRAYS);
}

/* ---- softirqs without a call */

#define IDLE		64
#define IDLE_NS		(10 * MSEC)

/* How often a timer may be deferred because of a word that was written once. */
#define LOOKS		4

/* Words from the future are written once: the kernel must not check their timers for ever. */
static void words_count_once(void)
{
	struct twheel_timer_add add = {
		.time	= TWHEEL_TIME_NONE,
		.flags	= TWHEEL_TOUCHED,
		.clock	= CLOCK_MONOTONIC,
		.idle	= IDLE_NS,
	};
	struct twheel_context_stats stats;
	struct twheel_touch *touch;
	struct twheel_setup setup;
	int fd = wh_open(0);

	if (wh_setup(fd, 0, IDLE, &setup))
		fuzz_fail("setup: errno %d", errno);
	touch = wh_map(fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
	if (!touch)
		fuzz_fail("mmap: errno %d", errno);
	for (add.touch = 0; add.touch < IDLE; add.touch++) {
		touch->words[add.touch] = ~0ULL - add.touch;
		if (wh_add_timer(fd, &add))
			fuzz_fail("add: errno %d", errno);
	}
	sleep_ns(50 * IDLE_NS);
	if (wh_stats(fd, &stats))
		fuzz_fail("stats: errno %d", errno);
	if (stats.deferrals > LOOKS * IDLE)
		fuzz_fail("%u timers were put off %llu times for a store each", IDLE,
			  stats.deferrals);
	munmap(touch, setup.touch_bytes);
	close(fd);
	add_count(&fuzz->calls, IDLE);
}

/* What one user may cost others; -x leaves out some of it. */
void check_budgets(void)
{
	static const struct {
		const char	*name;
		void		(*check)(void);
	} all[] = {
		{ "clocks", clocks_stay },
		{ "memory", memory_comes_back },
		{ "words", words_count_once },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (fuzz_with(all[i].name))
			all[i].check();
}
