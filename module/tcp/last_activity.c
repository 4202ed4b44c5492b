// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: when data last came and went on a connection
 *
 * TCP stores both times in each socket, as the lower 32 bits of jiffies. The code here reads these
 * stamps without a lock and converts them to nanoseconds of CLOCK_MONOTONIC. For that it has to
 * know when jiffies begin: jiffy n begins n * TICK_NSEC after jiffy 0, and the start of jiffy 0 is
 * extrapolated from the jiffies that are counted now.
 *
 * That start is learned from the timekeeper, which notifies us when it is up to date, right after
 * jiffies were counted. The start *observed* there is never too early, as no jiffy is counted
 * before it has begun, and less than a jiffy too late:
 *
 *  - with a tick that came in time, by the tick's latency;
 *  - when a CPU leaves idle and counts the jiffies that have gone by, or when a clock is set, by
 *    anything up to a jiffy.
 *
 * So the earliest start observed is the right one, except for what moves the start itself:
 *
 *  - A periodic tick (highres=off nohz=off) is lost because its CPU had interrupts disabled, and
 *    nobody makes up for it. From then on all jiffies begin one TICK_NSEC later per lost tick. The
 *    start observed is later than the known one by a jiffy or more, which nothing else can cause,
 *    and replaces it. It may be late by up to a jiffy until the next tick.
 *  - The device of such a tick is faster or slower than CLOCK_MONOTONIC. If it is faster, each tick
 *    is earlier than the last one, and replaces the known start. If it is slower, each tick is
 *    later: the known start advances by up to a 256th of a jiffy per tick, which is more than the
 *    error of any device. With high resolution there is no such device, and the earliest start
 *    stays right. (Nothing corrects for jiffies that have been shorter or longer since a stamp was
 *    made; the error is that of the device over that time.)
 *  - Jiffies are late for a while, because the CPU that counts them is held up, and then catch up.
 *    If we are notified while they are late, a later start is observed and becomes the known one:
 *    late is the safe side. Once they have caught up, the right one does.
 *
 * When jiffies have been lost and counting has resumed, but we have not been notified yet, the
 * known start is too early. But too few jiffies have been counted, so that a stamp's age in jiffies
 * never makes it too old: with a periodic tick jiffy_end() takes the later of the two results.
 *
 * What remains is a stamp that was made while jiffies were late and is read after they have caught
 * up: nothing shows that it is younger than it says. If another CPU has ticks, it takes over
 * counting jiffies from the CPU that is held up after 5 of them.
 */
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <net/tcp.h>
#include <uapi/linux/twheel.h>

#include "last_activity.h"

/* By how much the known start may advance per tick if that is periodic, in nanoseconds. */
#define SLEW_NS		(TICK_NSEC / 256)

/*
 * When jiffy 0 began, in nanoseconds of CLOCK_MONOTONIC: see the top of this file. It may be before
 * 0, modulo 2^64. Only written by the timekeeper's notifier, so never concurrently.
 */
static u64 jiffy_zero;
/* The tick resolution with which it was learned; a new one starts over. Likewise. */
static unsigned int learned_resolution;

/* The resolution of ticks in nanoseconds: a jiffy if they may be periodic, else 1. */
static unsigned int get_resolution(void)
{
	/* Written once, by the kernel. */
	return data_race(hrtimer_resolution);
}

/* May ticks come from a device, and not from CLOCK_MONOTONIC? */
static bool tick_may_be_periodic(void)
{
	return get_resolution() >= TICK_NSEC;
}

/**
 * twheel_note_jiffy - learn when jiffies begin, from a timekeeper that is up to date
 * @jiffy:	the value of get_jiffies_64()
 * @now:	nanoseconds of CLOCK_MONOTONIC, read after @jiffy, so that this jiffy has begun by
 *		then
 *
 * Context: any, with the timekeeper's lock held.
 */
void twheel_note_jiffy(u64 jiffy, u64 now)
{
	u64 seen = now - jiffy * TICK_NSEC, known = jiffy_zero;
	s64 slew = tick_may_be_periodic() ? SLEW_NS : 0;
	s64 delta = seen - known;

	if (learned_resolution == get_resolution() && delta > slew && delta < TICK_NSEC)
		seen = known + slew;
	learned_resolution = get_resolution();
	/* Pairs with the READ_ONCE() in jiffy_end(). */
	WRITE_ONCE(jiffy_zero, seen);
}

/* Jiffies since @stamp, or 0 if its jiffy has begun since @jiffy was read. */
static u32 stamp_age(u32 stamp, u64 jiffy)
{
	u32 age = (u32)jiffy - stamp;

	return age > U32_MAX - HZ ? 0 : age;
}

/* The end of the jiffy that is @age jiffies before @jiffy, the one of @now; at most @now. */
static u64 jiffy_end(u32 age, u64 jiffy, u64 now)
{
	s64 end;

	/* This jiffy has not ended yet. */
	if (!age)
		return now;
	/* Pairs with the WRITE_ONCE() in twheel_note_jiffy(). */
	end = READ_ONCE(jiffy_zero) + (jiffy - age + 1) * TICK_NSEC;
	/* Jiffies may have been lost, without us having been notified yet. */
	if (tick_may_be_periodic())
		end = max_t(s64, end, now - min(now, (u64)age * TICK_NSEC));
	return clamp_t(s64, end, 0, now);
}

/**
 * twheel_last_activity - get the time of a connection's last activity
 * @sk:		a TCP socket
 * @flags:	TWHEEL_WATCH_RECEIVED and _SENT select what counts as activity; with neither, both
 *		do
 * @now:	the current time of CLOCK_MONOTONIC, in nanoseconds
 *
 * The kernel counts this in jiffies. The result is the end of that jiffy: rather a little late than
 * before the limit has been reached. See the top of this file.
 *
 * Context: any but NMI. While the socket is locked, there is no later activity.
 * Return: nanoseconds of CLOCK_MONOTONIC, at most @now.
 */
u64 twheel_last_activity(const struct sock *sk, u16 flags, u64 now)
{
	u64 jiffy = get_jiffies_64();
	/* Written by TCP with the socket locked; each is read on its own. */
	u32 stamp = READ_ONCE(inet_csk(sk)->icsk_ack.lrcvtime);
	u32 sent = stamp_age(READ_ONCE(tcp_sk(sk)->lsndtime), jiffy);
	u32 received = stamp_age(stamp, jiffy), age;

	/*
	 * When both ends connect at the same time, TCP stamps for each that it has sent, but not
	 * that it has received. A stamp of 0 may also be that of jiffy 0.
	 */
	if (!stamp)
		received = min(received, sent);
	age = min(received, sent);
	flags &= TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT;
	if (flags == TWHEEL_WATCH_RECEIVED)
		age = received;
	else if (flags == TWHEEL_WATCH_SENT)
		age = sent;
	return jiffy_end(age, jiffy, now);
}

/**
 * twheel_last_ack - get the time of the last acknowledgment from a connection's peer
 * @sk:		a TCP socket, with or without data in its send queue
 * @now:	the current time of CLOCK_MONOTONIC, in nanoseconds
 *
 * The result may be late, but not early, as for twheel_last_activity(). An answer to a window probe
 * counts. If nothing in the queue has been acknowledged yet, the result is the time from which it
 * could have been: when the first of it was sent.
 *
 * Context: any but NMI.
 * Return: nanoseconds of CLOCK_MONOTONIC, at most @now.
 */
u64 twheel_last_ack(const struct sock *sk, u64 now)
{
	u64 jiffy = get_jiffies_64();
	/* Both are written by TCP with the socket locked; each is read on its own. */
	u32 age = stamp_age(READ_ONCE(tcp_sk(sk)->rcv_tstamp), jiffy);
	/* In microseconds. With nothing in flight, sending sets it, too. */
	u64 sent = READ_ONCE(tcp_sk(sk)->delivered_mstamp) * NSEC_PER_USEC;

	return max(min(sent, now), jiffy_end(age, jiffy, now));
}

/**
 * twheel_unacked_queue - get how much of a connection's data the peer has not acknowledged
 * @sk:		a TCP socket
 * @unacked:	set to the number of bytes that have been sent, but not acknowledged
 *
 * Context: any but NMI. Exact while the socket is locked.
 * Return: the number of bytes that have not been sent.
 */
u32 twheel_unacked_queue(const struct sock *sk, u32 *unacked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	/*
	 * Written by TCP with the socket locked. Read in this order, no difference is negative
	 * unless the socket is reconnected.
	 */
	const u32 acked = READ_ONCE(tp->snd_una);
	const u32 sent = READ_ONCE(tp->snd_nxt);
	const u32 written = READ_ONCE(tp->write_seq);

	*unacked = sent - acked;
	return written - sent;
}
