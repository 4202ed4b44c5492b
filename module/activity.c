// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: when data last came and went on a connection
 *
 * TCP notes both in each socket: the lower 32 bits of jiffies. That is read without a lock, and
 * made nanoseconds of CLOCK_MONOTONIC, for which it has to be known when jiffies begin.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <net/tcp.h>
#include <uapi/linux/twheel.h>

#include "watch.h"

/*
 * When jiffy 0 began, in nanoseconds of CLOCK_MONOTONIC: jiffies begin on time, as a rule, and
 * never before it, so the earliest beginning seen is right. Starts at the end of time. Written by
 * whoever has seen an earlier one; should two do so at once the next one puts it right.
 */
static u64 first_jiffy = U64_MAX;

static u64 begin_of_first_jiffy(u64 now, u64 jiffy)
{
	/* Pairs with the store below. */
	u64 known = READ_ONCE(first_jiffy), seen;

	if (likely(now - jiffy * TICK_NSEC >= known && known != U64_MAX))
		return known;
	/* A jiffy may have begun since @now was read. */
	jiffy = get_jiffies_64();
	seen = ktime_get_ns() - jiffy * TICK_NSEC;
	if (seen >= known && known != U64_MAX)
		return known;
	WRITE_ONCE(first_jiffy, seen);
	return seen;
}

/**
 * twheel_watch_learn_jiffies - learn when jiffies begin
 *
 * That is by waiting for some, with the CPU busy: to sleep would be to wake up too late. It is
 * done once.
 *
 * Context: process.
 */
void twheel_watch_learn_jiffies(void)
{
	u64 jiffy;
	int i;

	/* Pairs with the WRITE_ONCE() above. */
	if (READ_ONCE(first_jiffy) != U64_MAX)
		return;
	for (i = 0; i < 3; i++) {
		jiffy = get_jiffies_64();
		while (!time_after64(get_jiffies_64(), jiffy))
			cpu_relax();
		begin_of_first_jiffy(ktime_get_ns(), jiffy);
	}
}

/* Jiffies since a stamp; 0 if it is of one that has begun since @jiffy was read. */
static u32 age_of(u32 stamp, u64 jiffy)
{
	u32 age = (u32)jiffy - stamp;

	return age > U32_MAX - HZ ? 0 : age;
}

/**
 * twheel_watch_active - when was a connection last active?
 * @sk:		a TCP socket
 * @flags:	TWHEEL_WATCH_RECEIVED and _SENT: what is activity; if neither, both are
 * @now:	what CLOCK_MONOTONIC shows, in nanoseconds
 *
 * The kernel counts this in jiffies. The answer is the end of that jiffy: rather
 * a little late than before the limit is over.
 *
 * Context: any but NMI. If the socket is locked, there is no later one until it is unlocked.
 * Return: nanoseconds of CLOCK_MONOTONIC, not after @now.
 */
u64 twheel_watch_active(const struct sock *sk, u16 flags, u64 now)
{
	u64 jiffy = get_jiffies_64();
	/* Written by TCP, with the socket locked; each is read by itself. */
	u32 received = age_of(READ_ONCE(inet_csk(sk)->icsk_ack.lrcvtime), jiffy);
	u32 sent = age_of(READ_ONCE(tcp_sk(sk)->lsndtime), jiffy);
	u32 age = min(received, sent);

	flags &= TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT;
	if (flags == TWHEEL_WATCH_RECEIVED)
		age = received;
	else if (flags == TWHEEL_WATCH_SENT)
		age = sent;
	/* This jiffy has not ended. */
	if (!age)
		return now;
	return min(now, begin_of_first_jiffy(now, jiffy) + (jiffy - age + 1) * TICK_NSEC);
}
