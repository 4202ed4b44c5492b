// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench api: the alternatives to /dev/twheel: timerfd, POSIX timers, io_uring
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <liburing.h>

#include "api.h"

#define NSEC_PER_SEC	1000000000ULL

/* Files of this program other than those of the timers. */
#define OTHER_FILES	64

static void raise_limit(int resource, const char *what, uint32_t nr)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		err(EXIT_FAILED, "getrlimit");
	if (limit.rlim_cur >= nr)
		return;
	limit.rlim_cur = nr;
	if (limit.rlim_max < nr)
		limit.rlim_max = nr;
	if (setrlimit(resource, &limit))
		err(EXIT_FAILED, "cannot raise the limit on %s to %u", what, nr);
}

static void set_time(struct timespec *ts, uint64_t ns)
{
	ts->tv_sec = ns / NSEC_PER_SEC;
	ts->tv_nsec = ns % NSEC_PER_SEC;
}

/* ---- timerfd */

static int *timerfds, epoll;
static uint32_t nr_timerfds;

static void timerfd_begin(uint32_t nr)
{
	raise_limit(RLIMIT_NOFILE, "open files", nr + OTHER_FILES);
	timerfds = allocate(nr, sizeof(*timerfds));
	nr_timerfds = nr;
	epoll = -1;
}

static void timerfd_epoll_begin(uint32_t nr)
{
	timerfd_begin(nr);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		err(EXIT_FAILED, "epoll_create1");
}

static void timerfd_rearm(const struct api_timer *timer, uint32_t nr)
{
	struct itimerspec time = { 0 };
	uint32_t i;

	for (i = 0; i < nr; i++) {
		set_time(&time.it_value, timer[i].timeout);
		if (timerfd_settime(timerfds[timer[i].number], 0, &time, NULL))
			err(EXIT_FAILED, "timerfd_settime");
	}
}

static void timerfd_add(const struct api_timer *timer, uint32_t nr)
{
	struct epoll_event event = { .events = EPOLLIN };
	uint32_t i;
	int fd;

	for (i = 0; i < nr; i++) {
		fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (fd < 0)
			err(EXIT_FAILED, "timerfd_create");
		timerfds[timer[i].number] = fd;
		event.data.fd = fd;
		if (epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
			err(EXIT_FAILED, "epoll_ctl");
	}
	timerfd_rearm(timer, nr);
}

static void timerfd_cancel(const struct api_timer *timer, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (close(timerfds[timer[i].number]))
			err(EXIT_FAILED, "close");
}

static uint32_t timerfd_collect(uint32_t nr)
{
	static struct epoll_event events[API_BATCH];
	uint64_t expiries;
	int ready, i;

	ready = epoll_wait(epoll, events, nr, 0);
	if (ready < 0)
		err(EXIT_FAILED, "epoll_wait");
	for (i = 0; i < ready; i++)
		if (read(events[i].data.fd, &expiries, sizeof(expiries)) != sizeof(expiries))
			err(EXIT_FAILED, "read of a timerfd");
	return ready;
}

static void timerfd_end(void)
{
	uint32_t i;

	for (i = 0; i < nr_timerfds; i++)
		close(timerfds[i]);
	if (epoll >= 0)
		close(epoll);
	free(timerfds);
}

const struct api_scheme api_timerfd = {
	.name		= "timerfd",
	.begin		= timerfd_begin,
	.add		= timerfd_add,
	.rearm		= timerfd_rearm,
	.cancel		= timerfd_cancel,
	.end		= timerfd_end,
};

const struct api_scheme api_timerfd_epoll = {
	.name		= "timerfd_epoll",
	.begin		= timerfd_epoll_begin,
	.add		= timerfd_add,
	.rearm		= timerfd_rearm,
	.cancel		= timerfd_cancel,
	.collect	= timerfd_collect,
	.end		= timerfd_end,
};

/* ---- POSIX timers, with their signals read from a signalfd */

static timer_t *timers;
static uint32_t nr_timers;
static int signals;

static void posix_begin(uint32_t nr)
{
	sigset_t set;

	raise_limit(RLIMIT_SIGPENDING, "pending signals", nr + OTHER_FILES);
	timers = allocate(nr, sizeof(*timers));
	nr_timers = nr;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		err(EXIT_FAILED, "sigprocmask");
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		err(EXIT_FAILED, "signalfd");
}

static void posix_rearm(const struct api_timer *timer, uint32_t nr)
{
	struct itimerspec time = { 0 };
	uint32_t i;

	for (i = 0; i < nr; i++) {
		set_time(&time.it_value, timer[i].timeout);
		if (timer_settime(timers[timer[i].number], 0, &time, NULL))
			err(EXIT_FAILED, "timer_settime");
	}
}

static void posix_add(const struct api_timer *timer, uint32_t nr)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	uint32_t i;

	for (i = 0; i < nr; i++) {
		event.sigev_value.sival_int = timer[i].number;
		if (timer_create(CLOCK_MONOTONIC, &event, &timers[timer[i].number]))
			err(EXIT_FAILED, "timer_create");
	}
	posix_rearm(timer, nr);
}

static void posix_cancel(const struct api_timer *timer, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (timer_delete(timers[timer[i].number]))
			err(EXIT_FAILED, "timer_delete");
}

static uint32_t posix_collect(uint32_t nr)
{
	static struct signalfd_siginfo info[API_BATCH];
	ssize_t ret = read(signals, info, nr * sizeof(*info));

	if (ret < 0)
		err(EXIT_FAILED, "read of a signalfd");
	return ret / sizeof(*info);
}

static void posix_end(void)
{
	uint32_t i;

	for (i = 0; i < nr_timers; i++)
		timer_delete(timers[i]);
	close(signals);
	free(timers);
}

const struct api_scheme api_posix = {
	.name		= "posix_timer",
	.begin		= posix_begin,
	.add		= posix_add,
	.rearm		= posix_rearm,
	.cancel		= posix_cancel,
	.collect	= posix_collect,
	.end		= posix_end,
};

/* ---- io_uring timeouts */

static struct io_uring ring;

static void uring_begin(uint32_t nr)
{
	struct io_uring_params params = {
		.flags		= IORING_SETUP_CQSIZE,
		/* Both a cancel and the timeout that it cancels complete. */
		.cq_entries	= 2 * API_BATCH,
	};
	int ret = io_uring_queue_init_params(API_BATCH, &ring, &params);

	(void)nr;
	if (ret)
		errx(EXIT_FAILED, "io_uring_setup: %s", strerror(-ret));
}

/* Reaps @nr completions, whose results must be 0 or @expected. */
static void uring_reap(unsigned int nr, int expected)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		if (cqe->res && cqe->res != expected)
			errx(EXIT_FAILED, "io_uring: %s", strerror(-cqe->res));
		seen++;
	}
	io_uring_cq_advance(&ring, seen);
	if (seen != nr)
		errx(EXIT_FAILED, "io_uring: %u completions instead of %u", seen, nr);
}

/* Submits the @nr prepared entries, and waits for @completions. */
static void uring_submit(unsigned int nr, unsigned int completions)
{
	int ret = io_uring_submit_and_wait(&ring, completions);

	if (ret != (int)nr)
		errx(EXIT_FAILED, "io_uring_enter: %s", ret < 0 ? strerror(-ret) : "not all");
}

static struct __kernel_timespec uring_times[API_BATCH];

static struct __kernel_timespec *uring_time(uint32_t i, uint64_t ns)
{
	uring_times[i].tv_sec = ns / NSEC_PER_SEC;
	uring_times[i].tv_nsec = ns % NSEC_PER_SEC;
	return &uring_times[i];
}

static void uring_add(const struct api_timer *timer, uint32_t nr)
{
	struct io_uring_sqe *sqe;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_timeout(sqe, uring_time(i, timer[i].timeout), 0, 0);
		io_uring_sqe_set_data64(sqe, timer[i].number);
	}
	uring_submit(nr, 0);
}

static void uring_rearm(const struct api_timer *timer, uint32_t nr)
{
	struct io_uring_sqe *sqe;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_timeout_update(sqe, uring_time(i, timer[i].timeout),
					     timer[i].number, 0);
	}
	uring_submit(nr, nr);
	uring_reap(nr, 0);
}

static void uring_cancel(const struct api_timer *timer, uint32_t nr)
{
	struct io_uring_sqe *sqe;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_timeout_remove(sqe, timer[i].number, 0);
	}
	uring_submit(nr, 2 * nr);
	uring_reap(2 * nr, -ECANCELED);
}

static uint32_t uring_collect(uint32_t nr)
{
	uring_submit(0, nr);
	uring_reap(nr, -ETIME);
	return nr;
}

static void uring_end(void)
{
	io_uring_queue_exit(&ring);
}

const struct api_scheme api_io_uring = {
	.name		= "io_uring_timeout",
	.begin		= uring_begin,
	.add		= uring_add,
	.rearm		= uring_rearm,
	.cancel		= uring_cancel,
	.collect	= uring_collect,
	.end		= uring_end,
	.walks		= true,
};
