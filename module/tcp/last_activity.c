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
#include "lib/compat.h"

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

/**
 * struct asking - how TCP asks a peer whose window is closed whether it still is
 * @next:	when it asks next, in nanoseconds of CLOCK_MONOTONIC
 * @gap:	nanoseconds between that and the last time, unless this was not sent
 * @asked:	how often it has asked since the last acknowledgment; 2 may mean more
 * @longest:	@gap does not grow any more
 */
struct asking {
	u64	next;
	u64	gap;
	u32	asked;
	bool	longest;
};

/* By window probes, as nothing is in flight. Fields are written by TCP with the socket locked. */
static void get_probing(const struct sock *sk, struct asking *asking)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const u32 backoff = READ_ONCE(icsk->icsk_backoff), longest = tcp_rto_max(sk);
	const u64 first = max_t(u32, READ_ONCE(icsk->icsk_rto), TCP_RTO_MIN);
	const u64 gap = min_t(u64, first << min(backoff, 16U), longest);

	asking->gap = gap * TICK_NSEC;
	asking->asked = READ_ONCE(icsk->icsk_probes_out);
	asking->longest = gap == longest ||
			  backoff >= READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_retries2);
}

/* By retransmitting what is in flight: the peer has shrunk its window, or is out of memory. */
static void get_retransmitting(const struct sock *sk, struct asking *asking, u64 acked)
{
	const u32 gap = READ_ONCE(inet_csk(sk)->icsk_rto);
	/* Stamps in jiffies: of the same one, the answer is the later. */
	const s32 sent_after = READ_ONCE(tcp_sk(sk)->lsndtime) - READ_ONCE(tcp_sk(sk)->rcv_tstamp);

	asking->gap = (u64)gap * TICK_NSEC;
	asking->longest = gap >= tcp_rto_max(sk);
	asking->asked = 0;
	/* TCP does not count them. After the first one, @next is 1.5 gaps later than @acked. */
	if (sent_after > 0)
		asking->asked = asking->next - acked < asking->gap / 8 * 13 ? 1 : 2;
}

/*
 * Returns the time of the first question that has not been answered, the last answer being at
 * @acked; or that of the next one, if all have.
 *
 * Each gap is twice the one before, and so half of all the time since the answer, which began with
 * the gap that is wanted. But gaps do not grow any more once they are longest, nor after a question
 * that the host itself had no room to send; and timers are late. So there are several answers, of
 * which the latest is taken: a peer must not be blamed for what it was not asked.
 */
static u64 first_unanswered(const struct asking *asking, u64 acked)
{
	const u64 gap = asking->gap, spent = asking->next - min(acked, asking->next);
	u64 first = gap, since;

	if (!asking->asked)
		return asking->next;
	if (!asking->longest)
		first = min(gap, max(2 * gap - min(spent, 2 * gap),
				     gap >> min(asking->asked, 63U)));
	since = acked + first;
	if (asking->asked == 1)
		since = max(since, asking->next - min(gap, asking->next));
	return since;
}

/**
 * twheel_owed_since - get the time since when a connection's peer owes an acknowledgment
 * @sk:		a TCP socket with data in its send queue
 * @now:	the current time of CLOCK_MONOTONIC, in nanoseconds
 *
 * That is the last acknowledgment if something is in flight. But if the peer's window is closed, it
 * is to answer when TCP asks whether it still is, and owes that from the first question on that it
 * has not answered: the time between two questions doubles, up to two minutes.
 *
 * Context: any but NMI. Exact while the socket is locked.
 * Return: nanoseconds of CLOCK_MONOTONIC; later than @now if the question has not been asked yet.
 */
u64 twheel_owed_since(const struct sock *sk, u64 now)
{
	const u64 acked = twheel_last_ack(sk, now);
	struct asking asking;
	u32 unacked;
	long left;

	twheel_unacked_queue(sk, &unacked);
	if (unacked && READ_ONCE(tcp_sk(sk)->snd_wnd))
		return acked;
	left = tcp_timeout_expires(sk) - jiffies;
	asking.next = now + max(left, 0L) * TICK_NSEC;
	if (unacked)
		get_retransmitting(sk, &asking, acked);
	else
		get_probing(sk, &asking);
	/* With no timer it is only about to send, or to set one. */
	if (!READ_ONCE(inet_csk(sk)->icsk_pending))
		return acked + asking.gap;
	return first_unanswered(&asking, acked);
}
