// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections while the kernel loses jiffies
 *
 * With a periodic tick, nothing makes up for ticks that did not occur because the CPU that counts
 * jiffies had its interrupts disabled: from then on, jiffies are behind. TCP's times are in
 * jiffies, and whatever counts them in nanoseconds has to find out that they are behind.
 */
#include <sys/times.h>

#include "rules_test.h"
#include "watch_test.h"

#define STALL		"/sys/module/twheel_stall/parameters/ns"
/* Some jiffies at a time, and in total much more than the idle timeout. */
#define STALL_NS	(40 * MSEC)
#define LOST_NS		(2 * SEC)
#define IDLE		(300 * MSEC)
#define PAUSE		(50 * MSEC)

/* The time that jiffies have counted, in nanoseconds. */
static __u64 counted_ns(void)
{
	return times(NULL) * (SEC / sysconf(_SC_CLK_TCK));
}

/* How far jiffies have fallen behind since @clock and @counted. */
static __s64 lost_ns(__u64 clock, __u64 counted)
{
	return (now_ns() - clock) - (counted_ns() - counted);
}

/* Makes the other CPUs, of which the first counts jiffies, lose some of them. */
static int lose_jiffies(void)
{
	__u64 end = now_ns() + STALL_NS;
	int ret = file_write(STALL, STALL_NS);

	while (now_ns() < end)
		continue;
	/* Until they are counted again. */
	sleep_ns(PAUSE);
	return ret;
}

TEST_F_TIMEOUT(rules, active_connections_stay, TIMEOUT)
{
	__u64 clock, counted, last, handle;
	struct twheel_context_stats stats;
	struct pair pair;
	int id, rounds;

	/* Stalls affect all CPUs but this one, and jiffies are counted by the first. */
	ASSERT_EQ(0, pin(1));
	ASSERT_EQ(0, system("modprobe twheel_stall"));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, IDLE);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, watch(self->fd, pair.client, IDLE, TWHEEL_WATCH_ABORT, &handle));
	clock = now_ns();
	counted = counted_ns();
	for (last = clock, rounds = 0; lost_ns(clock, counted) < (__s64)LOST_NS; rounds++) {
		ASSERT_GT(1000, rounds) TH_LOG("this kernel loses no jiffies");
		ASSERT_EQ(0, lose_jiffies());
		ASSERT_TRUE(is_open(&pair)) TH_LOG("round %d, %llu ns later", rounds,
						   now_ns() - last);
		ASSERT_TRUE(say(pair.client, pair.server));
		last = now_ns();
	}
	printf("# %lld ms of jiffies lost in %d stalls\n", lost_ns(clock, counted) / (__s64)MSEC,
	       rounds);
	EXPECT_EQ(0, look(self->fd, id).closed);
	ASSERT_EQ(0, wh_stats(self->fd, &stats));
	EXPECT_EQ(0, stats.expiries);
	/* But a connection that falls silent is closed, and not too early. */
	ASSERT_TRUE(wait_tcp_state(pair.server, TCP_CLOSE));
	EXPECT_LE(last + IDLE - PAUSE, now_ns());
	EXPECT_EQ(0, system("rmmod twheel_stall"));
	close_pair(&pair);
}

TEST_HARNESS_MAIN
