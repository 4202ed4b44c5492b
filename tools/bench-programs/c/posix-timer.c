// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: a POSIX timer for each timer, whose signals come by a signalfd, in arrays
 *
 * The timers are created before anything is measured, and kept.
 */
#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

/*
 * A timer that comes due before it is re-armed has sent its signal already, so the times have to be
 * long compared to what it takes to arm all timers.
 */
#define SHORTER		30U
#define SIGNALS		256

/* A turn takes no longer than this, in ms. */
#define TURN_MS		20

/* The kernel finds a free number for a new timer by a search: of a million, each takes 70 us. */
#define MOST_TIMERS	100000

/* The limit is one of all signals that are pending for this user. */
#define OTHER_SIGNALS	1000

struct timer {
	timer_t	id;
	bool	created;
	bool	armed;
};

static int signals = -1;
static unsigned int divisor;
static struct timespec origin;

/* Returns how many timers this user may have beside others; raises the limit if it may. */
static size_t raise_limit(size_t wanted)
{
	struct rlimit limit = { wanted + OTHER_SIGNALS, wanted + OTHER_SIGNALS };
	struct rlimit before;

	getrlimit(RLIMIT_SIGPENDING, &before);
	if (before.rlim_cur >= limit.rlim_cur || !setrlimit(RLIMIT_SIGPENDING, &limit))
		return wanted;
	before.rlim_cur = before.rlim_max;
	setrlimit(RLIMIT_SIGPENDING, &before);
	if (before.rlim_cur >= limit.rlim_cur)
		return wanted;
	if (before.rlim_cur <= OTHER_SIGNALS)
		errx(EXIT_FAILED, "RLIMIT_SIGPENDING is too low: raise it with ulimit -i");
	return before.rlim_cur - OTHER_SIGNALS;
}

size_t program_limit(size_t wanted)
{
	size_t possible = raise_limit(wanted < MOST_TIMERS ? wanted : MOST_TIMERS);

	if (possible < wanted)
		printf("# posix_timer: %zu timers for %zu, as %s\n", possible, wanted,
		       possible < MOST_TIMERS ? "RLIMIT_SIGPENDING allows no more" :
						"creating more takes minutes");
	return possible;
}

static void posix_create(size_t nr)
{
	sigset_t set;

	(void)nr;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (signals < 0)
		err(EXIT_FAILED, "signalfd");
}

static void posix_destroy(void)
{
}

static void posix_init(struct object *object)
{
	struct timer *timer = (struct timer *)object->timer;
	struct sigevent event = {
		.sigev_notify		= SIGEV_SIGNAL,
		.sigev_signo		= SIGRTMIN,
		.sigev_value.sival_ptr	= object,
	};

	timer->armed = false;
	if (timer->created)
		return;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer->id))
		err(EXIT_FAILED, "timer_create: has this user other timers or signals pending?");
	timer->created = true;
}

static void posix_begin(unsigned int shorter)
{
	clock_start();
	clock_gettime(CLOCK_MONOTONIC, &origin);
	divisor = shorter;
}

static void posix_arm(struct object *objects, const struct step *steps, size_t nr)
{
	struct itimerspec when = { 0 };
	struct timer *timer;
	uint64_t ns;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = (struct timer *)objects[steps[i].object].timer;
		ns = ((uint64_t)steps[i].time << TIME_SHIFT) / divisor + origin.tv_nsec;
		when.it_value.tv_sec = origin.tv_sec + ns / 1000000000;
		when.it_value.tv_nsec = ns % 1000000000;
		timer_settime(timer->id, TIMER_ABSTIME, &when, NULL);
		timer->armed = true;
	}
}

static void posix_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	const struct itimerspec never = { 0 };
	struct timer *timer;
	size_t i;

	for (i = 0; i < nr; i++) {
		timer = (struct timer *)objects[steps[i].object].timer;
		timer_settime(timer->id, 0, &never, NULL);
		timer->armed = false;
	}
}

static void receive_signals(void)
{
	struct signalfd_siginfo array[SIGNALS];
	struct object *object;
	ssize_t bytes, i;

	while ((bytes = read(signals, array, sizeof(array))) > 0) {
		for (i = 0; i < bytes / (ssize_t)sizeof(array[0]); i++) {
			object = (struct object *)array[i].ssi_ptr;
			object->fired++;
			((struct timer *)object->timer)->armed = false;
		}
	}
}

static void posix_expire(uint32_t last)
{
	clock_sleep(last, divisor);
	receive_signals();
}

static uint64_t posix_turn(void)
{
	struct pollfd poll_signals = { .fd = signals, .events = POLLIN };

	poll(&poll_signals, 1, TURN_MS);
	receive_signals();
	return clock_elapsed();
}

static bool posix_pending(const struct object *object)
{
	return ((const struct timer *)object->timer)->armed;
}

const struct scheme scheme_posix_timer = {
	.name		= "posix_timer",
	.timer_bytes	= sizeof(struct timer),
	.shorter	= SHORTER,
	.create		= posix_create,
	.destroy	= posix_destroy,
	.init		= posix_init,
	.begin		= posix_begin,
	.add		= posix_arm,
	.rearm		= posix_arm,
	.cancel		= posix_cancel,
	.expire		= posix_expire,
	.turn		= posix_turn,
	.pending	= posix_pending,
};
