// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: a thread that has a context to itself: the connections that its timers watch
 *
 * Both ends of each connection are its own, so that it knows when data flows, and when a connection
 * ends. TCP counts both in jiffies, which are late if the CPU that counts them is held up.
 */
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "solo.h"

/* jiffies_ns() counts in these. */
#define TICK		(10 * MSEC)
#define DATA_MAX	100

/* By how much jiffies are late, unless it is less than can be seen. */
static __u64 lateness(void)
{
	static __s64 least = INT64_MAX;
	__s64 offset = now_ns() - jiffies_ns();

	if (offset < least)
		least = offset;
	return offset - least > (__s64)TICK ? offset - least : 0;
}

/* When TCP's stamps of what it does from now on may begin, at the earliest. */
static __u64 earliest_stamp(void)
{
	const __u64 coarse = clock_ns(CLOCK_MONOTONIC_COARSE);
	__u64 margin = lateness() + (clock_sets() ? TICK : 0);

	/* This is as late as jiffies are, unless a clock has been set. */
	margin += now_ns() - coarse;
	return coarse - (margin < coarse ? margin : coarse);
}

/* When TCP's stamps of what it has done until now end, at the latest. */
static __u64 latest_stamp(const struct model *model)
{
	return now_ns() + 2 * model->jiffy + lateness() + (clock_sets() ? TICK : 0);
}

static struct end *neighbour(struct model *model, const struct end *end)
{
	return &model->end[(end - model->end) ^ 1];
}

static int new_end(int fd)
{
	int on = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		fuzz_fail("no socket: errno %d", errno);
	return fd;
}

static void open_pair(struct model *model, struct end *end)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t length = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (void *)&in, length) || listen(fd, 1) ||
	    getsockname(fd, (void *)&in, &length))
		fuzz_fail("no listener: errno %d", errno);
	end[0] = (struct end){ .fd = new_end(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) };
	if (connect(end[0].fd, (void *)&in, length))
		fuzz_fail("no connection: errno %d", errno);
	end[1] = (struct end){ .fd = new_end(accept4(fd, NULL, NULL, SOCK_CLOEXEC)) };
	close(fd);
	end[0].received.hi = latest_stamp(model);
	end[0].sent.hi = end[0].received.hi;
	end[1].received.hi = end[0].received.hi;
	end[1].sent.hi = end[0].received.hi;
	trace("connect %llu and %llu", end[0].fd, end[1].fd, 0, 0, 0);
}

/* Data that has been acknowledged is not sent again. */
static void note_acknowledged(struct model *model)
{
	struct end *end;
	int unacked;

	for (end = model->end; end < model->end + MOST_ENDS; end++)
		if (end->fd >= 0 && end->sent.hi == TWHEEL_TIME_NONE &&
		    !ioctl(end->fd, SIOCOUTQ, &unacked) && !unacked)
			end->sent.hi = latest_stamp(model);
}

/* Takes data that has been sent. Returns whether all of it has arrived. */
static bool take_data(struct end *end, ssize_t bytes)
{
	struct pollfd pollfd = { .fd = end->fd, .events = POLLIN };
	char data[DATA_MAX];
	ssize_t n;

	while (bytes > 0) {
		n = poll(&pollfd, 1, GUARD_MS) == 1 ? recv(end->fd, data, bytes, MSG_DONTWAIT) : -1;
		if (n <= 0 && end->may_end)
			return false;
		if (n <= 0)
			fuzz_fail("%zd bytes do not arrive: errno %d", bytes, errno);
		bytes -= n;
	}
	return true;
}

/* Sends data from one end to the other. */
static void send_data(struct model *model, struct end *from, size_t bytes)
{
	static const char data[DATA_MAX];
	struct end *to = neighbour(model, from);
	__u64 lo;
	ssize_t n;

	end_touch(model, from);
	end_touch(model, to);
	lo = earliest_stamp();
	from->sent.hi = TWHEEL_TIME_NONE;
	to->received.hi = TWHEEL_TIME_NONE;
	n = send(from->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	trace("%llu sends %llu", from->fd, bytes, 0, 0, n);
	if (n != (ssize_t)bytes && !from->may_end)
		fuzz_fail("send: errno %d", errno);
	if (n > 0)
		from->sent.lo = lo;
	if (n > 0 && take_data(to, n)) {
		to->received.lo = lo;
		to->received.hi = latest_stamp(model);
	}
}

/* Waits until a timer whose connection has ended ends as well, or turns out to have expired. */
static void settle(struct solo *solo, struct timer *timer)
{
	const __u64 handle = timer->handle, end = now_ns() + GUARD_MS * MSEC;
	struct twheel_timer_query query;
	struct span span;
	int ret;

	do {
		span = span_begin();
		ret = wh_query_flags(solo->fd, handle, 0, &query);
		span_end(&span);
		trace("query %llx: state %llu", handle, query.state, 0, 0, ret);
		model_query(&solo->model, handle, 0, &query, ret, &span);
	} while (!ret && query.state == TWHEEL_STATE_PENDING && now_ns() < end &&
		 (sleep_ns(MSEC / 4), true));
	if (!ret && query.state == TWHEEL_STATE_PENDING)
		fuzz_fail("timer %llx does not end with its connection", handle);
	/* Nothing more is known of the connection, nor needed. */
	timer = model_by_handle(&solo->model, handle);
	if (timer) {
		timer->active.hi = now_ns();
		timer->end = NULL;
	}
}

/* Ends a connection with a reset; then the timers that watch it end, without an event. */
static void close_pair(struct solo *solo, struct end *end)
{
	struct pollfd pollfd = { .fd = end[1].fd, .events = POLLIN };
	struct linger linger = { .l_onoff = 1 };
	struct model *model = &solo->model;
	unsigned int i = 0;

	trace("close %llu and %llu", end[0].fd, end[1].fd, 0, 0, 0);
	end_touch(model, &end[0]);
	end_touch(model, &end[1]);
	end[0].may_end = true;
	end[1].may_end = true;
	setsockopt(end[0].fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(end[0].fd);
	if (poll(&pollfd, 1, GUARD_MS) != 1)
		fuzz_fail("a reset does not arrive");
	setsockopt(end[1].fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(end[1].fd);
	end[0].fd = -1;
	end[1].fd = -1;
	while (i < model->nr)
		if (model->timer[i].end == &end[0] || model->timer[i].end == &end[1])
			settle(solo, &model->timer[i]);
		else
			i++;
}

/* Makes connections, ends them, and sends data. */
void solo_sockets(struct solo *solo)
{
	struct choices *choices = &solo->choices;
	struct model *model = &solo->model;
	struct end *end = &model->end[choose(choices, MOST_ENDS)];
	struct end *first = &model->end[(end - model->end) & ~1UL];

	note_acknowledged(model);
	if (first->fd < 0)
		open_pair(model, first);
	else if (one_of(choices, 6))
		close_pair(solo, first);
	else
		send_data(model, end, 1 + choose(choices, DATA_MAX));
}

/* Ends all connections. */
void solo_sockets_close(struct solo *solo)
{
	struct end *end;

	for (end = solo->model.end; end < solo->model.end + MOST_ENDS; end += 2)
		if (end->fd >= 0)
			close_pair(solo, end);
}

/* Has a timer watch a connection, or something else. */
void solo_choose_watch(struct solo *solo, struct twheel_op *op)
{
	static const __u32 actions[] = { TWHEEL_WATCH_SHUTDOWN, TWHEEL_WATCH_ABORT };
	struct choices *choices = &solo->choices;
	struct end *end = &solo->model.end[choose(choices, MOST_ENDS)];

	op->flags |= TWHEEL_WATCHED | choose(choices, 4) << 6;
	op->touch = one_of(choices, 16) ? choose_garbage(choices) : (__u64)end->fd;
	/* Whether an event is in the ring is not known, and so not why a timer is gone. */
	if (one_of(choices, 6) && !solo->ring)
		op->flags |= actions[choose(choices, 2)];
	if (one_of(choices, 8))
		return;
	if (op->idle > HOUR)
		op->idle = HOUR;
	op->idle = sum(op->idle, TWHEEL_IDLE_MIN);
}

/* Can a connection end at any time? */
bool solo_may_end(const struct solo *solo)
{
	const struct end *end;

	for (end = solo->model.end; end < solo->model.end + MOST_ENDS; end++)
		if (end->fd >= 0 && end->may_end)
			return true;
	return false;
}
