// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: when data last came and went on a connection
 *
 * TCP notes both in each socket: the lower 32 bits of jiffies. That is read without a lock, and
 * made nanoseconds of CLOCK_MONOTONIC, for which it has to be known when jiffies begin: jiffy n
 * begins at n * TICK_NSEC, and when jiffy 0 began, as far as those go that are counted now.
 *
 * That beginning is learned from the timekeeper, which says when it is up to date, right after
 * jiffies were counted. What is *seen* there is not before the beginning, as no jiffy is counted
 * before it has begun, and less than a jiffy after it:
 *
 *  - with a tick that came in time, by the tick's latency;
 *  - when a CPU leaves idle and counts what has gone by, or a clock is set, by anything up to a
 *    jiffy.
 *
 * So the earliest that was seen is right, but for what moves the beginning itself:
 *
 *  - A tick that is periodic (highres=off nohz=off) and did not come, because its CPU had
 *    interrupts off: nobody makes up for it. All jiffies from then on begin one TICK_NSEC later
 *    for each. What is seen is later than what is known by a jiffy or more, which it cannot be
 *    otherwise, and is taken for known. It may be late by up to a jiffy, until the next tick.
 *  - The device of such a tick is faster or slower than CLOCK_MONOTONIC. If it is faster, each
 *    tick is earlier than the last one, and is taken for known. If it is slower, each is later:
 *    what is known moves on by up to a 256th of a jiffy with each, more than any device is wrong
 *    by. With high resolution there is no such device, and the earliest stays right.
 *    (That jiffies have been shorter or longer in the time since a stamp is not made up for; it is
 *    what the device is wrong by of that time.)
 *  - Jiffies that are late for a while, as the CPU that counts them is held up, and catch up. As
 *    long as they are late, and somebody is told, a later beginning is seen and known: late is the
 *    safe side. When they have caught up, the right one is.
 *
 * When jiffies have been lost and are counted again, and nobody has been told yet, what is known
 * is too early. But a stamp is no older than it is by jiffies, of which too few have been counted:
 * with a periodic tick twheel_last_activity() takes the later of both.
 *
 * What is left is a stamp that was made while jiffies were late, and is looked at when they have
 * caught up: nobody can see that it is younger than it says. Where another CPU has ticks it counts
 * jiffies in place of the one that is held up, after 5 of them.
 */
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <net/tcp.h>
#include <uapi/linux/twheel.h>

#include "last_activity.h"

/* By how much what is known moves on with a tick if that is periodic, in nanoseconds. */
#define SLEW_NS		(TICK_NSEC / 256)

/*
 * When jiffy 0 began, in nanoseconds of CLOCK_MONOTONIC, see the head of this file; it may be
 * before 0, modulo 2^64. Written by the timekeeper's notifier only, so by one at a time.
 */
static u64 jiffy_zero;
/* The resolution of the ticks by which it was learned: a new one begins anew. Likewise. */
static unsigned int learned_resolution;

/* Nanoseconds: a jiffy if ticks may be periodic, else 1. */
static unsigned int get_resolution(void)
{
	/* Written once, by the kernel. */
	return data_race(hrtimer_resolution);
}

/* May a device make the ticks, and not CLOCK_MONOTONIC? */
static bool tick_may_be_periodic(void)
{
	return get_resolution() >= TICK_NSEC;
}

/**
 * twheel_note_jiffy - the timekeeper is up to date
 * @jiffy:	what get_jiffies_64() has returned
 * @now:	nanoseconds of CLOCK_MONOTONIC, read after @jiffy: so that it is not before that
 *		jiffy has begun
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
	/* Pairs with the READ_ONCE() in twheel_last_activity(). */
	WRITE_ONCE(jiffy_zero, seen);
}

/* Jiffies since a stamp; 0 if it is of one that has begun since @jiffy was read. */
static u32 stamp_age(u32 stamp, u64 jiffy)
{
	u32 age = (u32)jiffy - stamp;

	return age > U32_MAX - HZ ? 0 : age;
}

/* The end of the jiffy that was @age jiffies before @jiffy, the one of @now; not after that. */
static u64 jiffy_end(u32 age, u64 jiffy, u64 now)
{
	s64 end;

	/* This jiffy has not ended. */
	if (!age)
		return now;
	/* Pairs with the WRITE_ONCE() in twheel_note_jiffy(). */
	end = READ_ONCE(jiffy_zero) + (jiffy - age + 1) * TICK_NSEC;
	/* Jiffies may be lost, and nobody have been told yet. */
	if (tick_may_be_periodic())
		end = max_t(s64, end, now - min(now, (u64)age * TICK_NSEC));
	return clamp_t(s64, end, 0, now);
}

/**
 * twheel_last_activity - when was a connection last active?
 * @sk:		a TCP socket
 * @flags:	TWHEEL_WATCH_RECEIVED and _SENT: what is activity; if neither, both are
 * @now:	what CLOCK_MONOTONIC shows, in nanoseconds
 *
 * The kernel counts this in jiffies. The answer is the end of that jiffy: rather
 * a little late than before the limit is over. See the head of this file.
 *
 * Context: any but NMI. If the socket is locked, there is no later one until it is unlocked.
 * Return: nanoseconds of CLOCK_MONOTONIC, not after @now.
 */
u64 twheel_last_activity(const struct sock *sk, u16 flags, u64 now)
{
	u64 jiffy = get_jiffies_64();
	/* Written by TCP, with the socket locked; each is read by itself. */
	u32 stamp = READ_ONCE(inet_csk(sk)->icsk_ack.lrcvtime);
	u32 sent = stamp_age(READ_ONCE(tcp_sk(sk)->lsndtime), jiffy);
	u32 received = stamp_age(stamp, jiffy), age;

	/*
	 * When both ends connect at the same time, TCP stamps for each that it has sent, and not
	 * that it has received. It may also be of jiffy 0.
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
 * twheel_last_ack - when has the peer of a connection acknowledged something, at the latest?
 * @sk:		a TCP socket with data in its send queue, or without
 * @now:	what CLOCK_MONOTONIC shows, in nanoseconds
 *
 * An answer to a probe of its window counts. If nothing of what is in the queue has been
 * acknowledged yet, it is the time from which that can be: when the first of it was sent.
 *
 * Context: any but NMI.
 * Return: nanoseconds of CLOCK_MONOTONIC, not after @now.
 */
u64 twheel_last_ack(const struct sock *sk, u64 now)
{
	u64 jiffy = get_jiffies_64();
	/* Both are written by TCP, with the socket locked; each is read by itself. */
	u32 age = stamp_age(READ_ONCE(tcp_sk(sk)->rcv_tstamp), jiffy);
	/* Microseconds. With nothing on its way, what is sent sets it, too. */
	u64 sent = READ_ONCE(tcp_sk(sk)->delivered_mstamp) * NSEC_PER_USEC;

	return max(min(sent, now), jiffy_end(age, jiffy, now));
}

/**
 * twheel_unacked_queue - what of a connection's data the peer has not acknowledged
 * @sk:		a TCP socket
 * @unacked:	gets the number of bytes that have been sent
 *
 * Context: any but NMI. If the socket is locked, this is exact.
 * Return: the number of bytes that have not been sent.
 */
u32 twheel_unacked_queue(const struct sock *sk, u32 *unacked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	/*
	 * Written by TCP, with the socket locked. In this order no difference is negative, unless
	 * the socket is connected anew.
	 */
	const u32 acked = READ_ONCE(tp->snd_una);
	const u32 sent = READ_ONCE(tp->snd_nxt);
	const u32 written = READ_ONCE(tp->write_seq);

	*unacked = sent - acked;
	return written - sent;
}
