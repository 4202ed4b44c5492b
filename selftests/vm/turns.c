// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into QEMU where it counts instructions: its main loop only runs while all of the
 * guest's processors are idle.
 *
 * Without this, what the guest does depends on the host's scheduler now and then. QEMU runs the
 * processors in one thread and its main loop in another. Each timer of the guest's devices wakes
 * the main loop, which takes the big lock, moves the clock on if all processors have halted, and
 * runs the timers that are due. If the main loop does that just when a processor ends its slice of
 * instructions, but has not yet accounted for them, it uses a clock that is behind; or it runs a
 * timer that the processors' thread was about to run, and interrupts their slices: see
 * accel/tcg/tcg-accel-ops-rr.c, accel/tcg/icount-common.c and util/main-loop.c in QEMU.
 *
 * The processors' thread waits on a condition when all are idle, and the main loop signals that
 * condition when one has to go on. So each has its turn:
 *
 *	main loop				processors' thread
 *	signals: it is the processors' turn
 *	waits in ppoll() for its turn		run until all are idle
 *						waits: it is the main loop's turn
 *	polls, takes the lock, runs timers
 *
 * Nothing else in QEMU signals that condition, and no other thread waits on one, as the guests
 * have neither disks nor a network.
 *
 * Whoever ends the guest, be it the guest itself, which then need not become idle, or a signal, and
 * gdb when it interrupts, come out of turn: what the guest does no longer matters, or is no longer
 * what it would have been.
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

/* QEMU's: why it is to end, if it is. NULL if this one does not show it to its modules. */
static int (*why_to_end)(void);

/* How long the main loop waits before it looks whether it is wanted out of turn. */
static const struct timespec patience = { .tv_nsec = 200 * 1000 * 1000 };

/* What the processors' thread waits on, and with which lock. NULL before it has done so. */
static pthread_cond_t *_Atomic idle;
static pthread_mutex_t *_Atomic big_lock;

/* Is it the processors' turn? A futex. */
static atomic_int processors_turn;

/* How often the main loop had to wait for its turn. */
static unsigned long waits;

static void give_up(const char *why)
{
	fprintf(stderr, "turns: %s\n", why);
	_exit(1);
}

/* A function of the C library's, of this version where it has several. */
static void *find(const char *name, const char *version)
{
	void *function = dlvsym(RTLD_NEXT, name, version);

	if (!function)
		function = dlsym(RTLD_NEXT, name);
	if (!function)
		give_up(name);
	return function;
}

/* A QEMU that works in another way would only look as if it took turns. selftests/vm/run reads this. */
static void tell(int status, void *unused)
{
	(void)status;
	(void)unused;
	if (waits)
		fprintf(stderr, "turns: taken\n");
}

__attribute__((constructor))
static void begin(void)
{
	real_ppoll = find("ppoll", "GLIBC_2.4");
	real_wait = find("pthread_cond_wait", "GLIBC_2.3.2");
	real_broadcast = find("pthread_cond_broadcast", "GLIBC_2.3.2");
	why_to_end = dlsym(RTLD_DEFAULT, "qemu_shutdown_requested_get");
	if (on_exit(tell, NULL))
		give_up("on_exit");
}

static bool is_main(void)
{
	return syscall(SYS_gettid) == getpid();
}

/*
 * While it holds the lock, which the processors' thread needs, the main thread waits for something
 * else, as it does when QEMU ends. The C library notes in a lock which thread has it.
 */
static bool holds_big_lock(void)
{
	pthread_mutex_t *mutex = atomic_load(&big_lock);

	return mutex && mutex->__data.__owner == getpid();
}

/* Does somebody speak from outside? Only gdb does so by a socket. */
static bool is_spoken_to(const struct pollfd *fds, nfds_t n)
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

/* Returns whether the main loop may go on; a signal, such as that to end, comes before. */
static bool wait_for_turn(const struct pollfd *fds, nfds_t n)
{
	while (atomic_load(&processors_turn)) {
		waits++;
		if (!syscall(SYS_futex, &processors_turn, FUTEX_WAIT_PRIVATE, 1, &patience))
			continue;
		if (errno == EINTR)
			return false;
		if (errno == ETIMEDOUT &&
		    ((why_to_end && why_to_end()) || is_spoken_to(fds, n)))
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
		/* The main loop cannot go on before the lock is released, in the wait. */
		atomic_store(&processors_turn, 0);
		syscall(SYS_futex, &processors_turn, FUTEX_WAKE_PRIVATE, 1);
	}
	return real_wait(cond, mutex);
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	/* Before the thread is woken, which may find nothing to do and wait again. */
	if (cond == atomic_load(&idle))
		atomic_store(&processors_turn, 1);
	return real_broadcast(cond);
}
