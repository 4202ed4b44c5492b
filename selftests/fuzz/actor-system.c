// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: what the system does meanwhile, and observers of everything
 */
#include "shared.h"

#define CPU_DIRECTORY	"/sys/devices/system/cpu/cpu"

/* Moves to some CPU. */
void move_cpu(struct choices *choices)
{
	int list[64], n = cpus(list, 64);

	if (n > 1)
		pin(list[choose(choices, n)]);
	/* Allows it to go elsewhere the next time. */
	sched_setaffinity(0, sizeof(cpu_set_t), &(cpu_set_t){ .__bits = { ~0UL } });
}

static int set_online(unsigned int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), CPU_DIRECTORY "%u/online", cpu);
	return access(path, W_OK) ? -errno : file_write(path, online);
}

/* Takes a CPU offline for a while. */
static void flip_cpu(struct choices *choices)
{
	static bool told;
	long nr = sysconf(_SC_NPROCESSORS_CONF);
	unsigned int cpu = nr > 1 ? 1 + choose(choices, nr - 1) : 0;
	int ret = cpu ? set_online(cpu, false) : -ENOENT;

	trace("CPU %llu off", cpu, 0, 0, 0, ret);
	if (ret == -ENOENT && !told)
		say_once("not here: CPUs that go off");
	told |= ret == -ENOENT;
	if (ret)
		return;
	sleep_ns(choose(choices, 30) * MSEC);
	ret = set_online(cpu, true);
	if (ret)
		fuzz_fail("CPU %u does not come back: %d", cpu, ret);
}

/* Sets the clock forward or back by a few seconds at most. */
static void set_clock(struct choices *choices)
{
	__u64 now = clock_ns(CLOCK_REALTIME) + choose(choices, 4 * SEC) - 2 * SEC;
	struct timespec ts = { .tv_sec = now / SEC, .tv_nsec = now % SEC };

	__atomic_fetch_add(&fuzz->clock_sets, 1, __ATOMIC_SEQ_CST);
	clock_settime(CLOCK_REALTIME, &ts);
	__atomic_fetch_add(&fuzz->clock_sets, 1, __ATOMIC_SEQ_CST);
	trace("clock set", 0, 0, 0, 0, 0);
}

/* In a test build, changes the delays between steps that can race. */
static void set_delays(struct choices *choices)
{
	static const unsigned int us[] = { 20, 50, 200, 1000 };

	if (access(PARAMETERS "inject_points", W_OK))
		return;
	file_write(PARAMETERS "inject_points", choose(choices, 1024));
	file_write(PARAMETERS "inject_us", us[choose(choices, ARRAY_SIZE(us))]);
}

/* Changes CPUs, the clock, and delays. */
void system_actor(struct choices *choices)
{
	while (!arena_over()) {
		switch (choose(choices, 8)) {
		case 0:
			flip_cpu(choices);
			break;
		case 1:
			if (one_of(choices, 4))
				set_clock(choices);
			break;
		case 2:
			set_delays(choices);
			break;
		default:
			sleep_ns(choose(choices, 40 * MSEC));
		}
	}
}

static void read_file(const char *path)
{
	char data[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	while (read(fd, data, sizeof(data)) > 0)
		;
	add_count(&fuzz->calls, 1);
	close(fd);
}

static void look_at(int fd, struct choices *choices)
{
	static const char * const files[] = { "totals", "cpus", "levels", "lateness", "watch" };
	struct twheel_context_stats stats;
	struct twheel_info info;
	char path[64];

	switch (choose(choices, 6)) {
	case 0:
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		return read_file(path);
	case 1:
		snprintf(path, sizeof(path), DEBUGFS "/twheel/%s",
			 files[choose(choices, ARRAY_SIZE(files))]);
		return read_file(path);
	case 2:
		if (wh_stats(fd, &stats))
			fuzz_fail("stats: errno %d", errno);
		return;
	case 3:
		if (wh_info(fd, &info))
			fuzz_fail("info: errno %d", errno);
		return;
	default:
		sleep_ns(choose(choices, 4 * MSEC));
	}
}

/* Looks at everything, through files that come and go. */
void look_actor(struct choices *choices)
{
	int fd, epfd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct context *context;

	while (!arena_over()) {
		context = &arena->context[choose(choices, PLACES)];
		fd = dup(context->fd);
		epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event);
		epoll_wait(epfd, &event, 1, choose(choices, 2));
		look_at(fd, choices);
		trace("look", 0, 0, 0, 0, 0);
		close(fd);
	}
	close(epfd);
}
