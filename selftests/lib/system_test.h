/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the twheel selftests use of the system: clocks, files, CPUs, and random numbers.
 */
#ifndef _SYSTEM_TEST_H
#define _SYSTEM_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/types.h>

#define DEBUGFS		"/sys/kernel/debug"
#define PARAMETERS	"/sys/module/twheel/parameters/"

#define USEC		1000ULL
#define MSEC		1000000ULL
#define SEC		1000000000ULL
#define HOUR		(3600 * SEC)

#define POISON		0xa5a5a5a5a5a5a5a5ULL

/* Hang guard: nothing that works takes this long, however slow the machine. */
#define GUARD_MS	25000

static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static inline __u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_ns(__u64 ns)
{
	struct timespec ts = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/*
 * Random numbers: xorshift64*. The seed is printed; TWHEEL_SEED replays one. Each thread calls
 * random_thread() first.
 */
static __thread __u64 random_state;

static inline __u64 random_u64(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 2685821657736338717ULL;
}

static inline __u64 random_below(__u64 n)
{
	return random_u64() % n;
}

/* 1 to 2^@bits - 1, with every order of magnitude equally likely. */
static inline __u64 random_magnitude(unsigned int bits)
{
	unsigned int shift = random_below(bits);

	return (1ULL << shift) + random_below(1ULL << shift);
}

static inline __u64 random_seed(void)
{
	const char *seed = getenv("TWHEEL_SEED");

	random_state = seed ? strtoull(seed, NULL, 0) : now_ns() | 1;
	printf("# seed %llu\n", random_state);
	fflush(stdout);
	return random_state;
}

/* Gives a thread random numbers of its own, derived from the test's seed. */
static inline void random_thread(__u64 seed, unsigned int number)
{
	random_state = seed ^ (number + 1) * 0x9e3779b97f4a7c15ULL;
	if (!random_state)
		random_state = 1;
}

/* How many timers count as very many: TWHEEL_MANY lowers it for a slow kernel. */
static inline unsigned int very_many(void)
{
	const char *many = getenv("TWHEEL_MANY");

	return many ? strtoul(many, NULL, 0) : 100000;
}

static inline bool kernel_is_at_least(int major, int minor)
{
	struct utsname name;
	int version[2];

	return !uname(&name) && sscanf(name.release, "%d.%d", &version[0], &version[1]) == 2 &&
	       (version[0] > major || (version[0] == major && version[1] >= minor));
}

/* A number shared with children. Never freed: the test is a process of its own. */
static inline int *number_shared(void)
{
	void *page = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* The number at the start of a file, as @format finds it; or POISON. */
static inline __u64 file_scan(const char *path, const char *format)
{
	__u64 number = POISON;
	FILE *file = fopen(path, "r");

	if (!file)
		return POISON;
	if (fscanf(file, format, &number) != 1)
		number = POISON;
	fclose(file);
	return number;
}

/* The number in a file, or POISON. */
static inline __u64 file_number(const char *path)
{
	return file_scan(path, "%llu");
}

static inline int file_write(const char *path, __u64 number)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return -errno;
	fprintf(file, "%llu", number);
	return fclose(file) ? -errno : 0;
}

/* A counter of twheel/totals in debugfs, or POISON. */
static inline __u64 total(const char *key)
{
	__u64 number, found = POISON;
	char name[64];
	FILE *file;

	/* Harmless if it is already mounted. */
	(void)!mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	file = fopen(DEBUGFS "/twheel/totals", "r");
	if (!file)
		return POISON;
	while (fscanf(file, "%63[^:]: %llu\n", name, &number) == 2)
		if (!strcmp(name, key))
			found = number;
	fclose(file);
	return found;
}

/* A CPU's number in column @key of twheel/cpus in debugfs, or POISON. */
static inline __u64 cpu_number(int cpu, const char *key)
{
	int column = -1, i, number;
	char line[1024], *word;
	__u64 found = POISON;
	FILE *file;

	/* Harmless if it is already mounted. */
	(void)!mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	file = fopen(DEBUGFS "/twheel/cpus", "r");
	if (!file)
		return POISON;
	while (fgets(line, sizeof(line), file)) {
		number = atoi(line);
		for (i = 0, word = strtok(line, "\n "); word; i++, word = strtok(NULL, "\n ")) {
			if (!strcmp(word, key))
				column = i;
			else if (i == column && number == cpu)
				found = strtoull(word, NULL, 10);
		}
	}
	fclose(file);
	return found;
}

/* Waits until a counter of totals has a value. Returns false if it times out. */
static inline bool wait_total(const char *key, __u64 value)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (total(key) != value) {
		if (now_ns() > end)
			return false;
		sleep_ns(MSEC);
	}
	return true;
}

#define PM_TEST		"/sys/power/pm_test"
#define PM_TEST_DELAY	"/sys/module/suspend/parameters/pm_test_delay"

static inline bool text_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return written;
}

/* Is the guest's time its number of instructions? Then only the guest itself can cause delays. */
static inline bool simulated(void)
{
	const char *set = getenv("TWHEEL_SIMULATED");

	return set && *set;
}

static inline int pin_process(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(pid, sizeof(set), &set) ? -errno : 0;
}

static inline int pin(int cpu)
{
	return pin_process(0, cpu);
}

/* Lists the CPUs that this process may run on. Returns how many there are, up to @max. */
static inline int cpus(int *list, int max)
{
	cpu_set_t set;
	int cpu, n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	for (cpu = 0; cpu < CPU_SETSIZE && n < max; cpu++)
		if (CPU_ISSET(cpu, &set))
			list[n++] = cpu;
	return n;
}

#endif /* _SYSTEM_TEST_H */
