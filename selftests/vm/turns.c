// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into QEMU where it counts instructions: its main loop only runs while all of the
 * guest's processors are idle.
 *
 * Without this, what the guest does depends on the host's scheduler now and then. QEMU runs the
 * processors in one thread and its main loop in another. Each timer of the guest's devices wakes
 * the main loop, which takes the big lock, advances the clock if all processors have halted, and
 * runs the timers that are due. If the main loop does that just when a processor has ended its
 * slice of instructions, but has not accounted for them yet, it uses a clock that is behind; or it
 * runs a timer that the processors' thread was about to run, and interrupts their slices: see
 * accel/tcg/tcg-accel-ops-rr.c, accel/tcg/icount-common.c and util/main-loop.c in QEMU.
 *
 * The processors' thread waits on a condition when all are idle, and the main loop signals that
 * condition when one has to continue. So they take turns:
 *
 *	main loop				processors' thread
 *	signals: it is the processors' turn
 *	waits in ppoll() for its turn		runs until all are idle
 *						waits: it is the main loop's turn
 *	polls, takes the lock, runs timers
 *
 * Nothing else in QEMU signals that condition, and no other thread waits on one, as the guests
 * have neither disks nor a network.
 *
 * Three things come out of turn: the guest ending itself, which it need not be idle for; a signal
 * that ends it; and gdb interrupting it. What the guest does then no longer matters, or no longer
 * is what it would have been.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int (*real_ppoll)(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
			 const sigset_t *mask);
static int (*real_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex);
static int (*real_broadcast)(pthread_cond_t *cond);

/* QEMU's reason to shut down, if any. NULL if this QEMU does not export it to its modules. */
static int (*why_to_end)(void);

/* How long the main loop waits before it checks whether it is needed out of turn. */
static const struct timespec patience = { .tv_nsec = 200 * 1000 * 1000 };

/* What the processors' thread waits on, and with which lock. NULL until its first wait. */
static pthread_cond_t *_Atomic idle;
static pthread_mutex_t *_Atomic big_lock;

/* Is it the processors' turn? A futex. */
static atomic_int processors_turn;

/* How often the main loop has waited for its turn. */
static unsigned long waits;

static void fail_preload(const char *why)
{
	fprintf(stderr, "turns: %s\n", why);
	_exit(1);
}

/* A function of the C library, in this version if it has several. */
static void *find_function(const char *name, const char *version)
{
	void *function = dlvsym(RTLD_NEXT, name, version);

	if (!function)
		function = dlsym(RTLD_NEXT, name);
	if (!function)
		fail_preload(name);
	return function;
}

/* A QEMU that works differently would only seem to take turns. selftests/vm/run reads this. */
static void report_turns(int status, void *unused)
{
	(void)status;
	(void)unused;
	if (waits)
		fprintf(stderr, "turns: taken\n");
}

__attribute__((constructor))
static void init_turns(void)
{
	real_ppoll = find_function("ppoll", "GLIBC_2.4");
	real_wait = find_function("pthread_cond_wait", "GLIBC_2.3.2");
	real_broadcast = find_function("pthread_cond_broadcast", "GLIBC_2.3.2");
	why_to_end = dlsym(RTLD_DEFAULT, "qemu_shutdown_requested_get");
	if (on_exit(report_turns, NULL))
		fail_preload("on_exit");
}

static bool is_main(void)
{
	return syscall(SYS_gettid) == getpid();
}

/*
 * While the main thread holds the lock, which the processors' thread needs, it waits for something
 * else, as it does when QEMU ends. The C library records in a lock which thread holds it.
 */
static bool holds_big_lock(void)
{
	pthread_mutex_t *mutex = atomic_load(&big_lock);

	return mutex && mutex->__data.__owner == getpid();
}

/* Is there input from outside? Only gdb uses a socket. */
static bool has_input(const struct pollfd *fds, nfds_t n)
{
	static const struct timespec at_once;
	struct stat file;
	nfds_t i;

	for (i = 0; i < n; i++) {
		struct pollfd fd = { .fd = fds[i].fd, .events = POLLIN };

		if (!fstat(fd.fd, &file) && S_ISSOCK(file.st_mode) &&
		    real_ppoll(&fd, 1, &at_once, NULL) > 0)
			return true;
	}
	return false;
}

/* Returns whether the main loop may continue; a signal, such as one that ends it, comes first. */
static bool wait_for_turn(const struct pollfd *fds, nfds_t n)
{
	while (atomic_load(&processors_turn)) {
		waits++;
		if (!syscall(SYS_futex, &processors_turn, FUTEX_WAIT_PRIVATE, 1, &patience))
			continue;
		if (errno == EINTR)
			return false;
		if (errno == ETIMEDOUT &&
		    ((why_to_end && why_to_end()) || has_input(fds, n)))
			return true;
	}
	return true;
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	if (is_main() && !holds_big_lock() && !wait_for_turn(fds, n))
		return -1;
	return real_ppoll(fds, n, timeout, mask);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (!is_main()) {
		atomic_store(&idle, cond);
		atomic_store(&big_lock, mutex);
		/* The main loop cannot continue before the wait releases the lock. */
		atomic_store(&processors_turn, 0);
		syscall(SYS_futex, &processors_turn, FUTEX_WAKE_PRIVATE, 1);
	}
	return real_wait(cond, mutex);
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	/* Before waking the thread, which may find nothing to do and wait again. */
	if (cond == atomic_load(&idle))
		atomic_store(&processors_turn, 1);
	return real_broadcast(cond);
}
