// SPDX-License-Identifier: GPL-2.0-only
/*
 * The touch array as memory: the time in it is fresh wherever programs run, is the same page for
 * all, and can only be read.
 */
#include <sys/wait.h>

#include "touch_test.h"

/* Even on a busy host, the published time is no older than this. */
#define FRESH	(60 * MSEC)

/*
 * Checks that time advances while only the CPU that we run on is busy. If it did not, half of the
 * ages would be more than half of the time that we observe it.
 */
static void expect_alive(struct __test_metadata *_metadata, FIXTURE_DATA(touch) * self, int cpu)
{
	const unsigned int max = 10000;
	__u64 time, last = 0, now, begin, ages[max];
	unsigned int n = 0;

	ASSERT_EQ(0, pin(cpu));
	for (begin = now_ns(); now_ns() < begin + 10 * FRESH;) {
		time = published_time(self->touch);
		now = now_ns();
		ASSERT_LE(time, now);
		ASSERT_LE(last, time);
		last = time;
		/* Samples are evenly distributed over time, on any machine. */
		if (n < max && now >= begin + n * (10 * FRESH / max))
			ages[n++] = now - time;
	}
	EXPECT_GT(FRESH, print_median("age on a busy CPU", ages, n));
}

TEST_F_TIMEOUT(touch, time_goes_on_while_a_cpu_is_busy, 90)
{
	int i;

	for (i = 0; i < self->n; i++)
		expect_alive(_metadata, self, self->cpu[i]);
}

TEST_F_TIMEOUT(touch, time_is_fresh_after_a_sleep, 90)
{
	__u64 ages[10], time;
	unsigned int k;
	int i;

	for (i = 0; i < self->n; i++) {
		ASSERT_EQ(0, pin(self->cpu[i]));
		for (k = 0; k < ARRAY_SIZE(ages); k++) {
			sleep_ns(4 * FRESH);
			time = published_time(self->touch);
			ages[k] = now_ns() - time;
			ASSERT_LE(time, now_ns());
		}
		/* A time that was published before the sleep would be older. */
		EXPECT_GT(FRESH, print_median("age after a sleep", ages, ARRAY_SIZE(ages)));
	}
}

TEST_F(touch, every_array_is_told)
{
	struct twheel_setup setup;
	struct twheel_touch *other;
	int fd = wh_open(0), i;
	__u64 time;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, wh_setup(fd, 0, 1, &setup));
	other = wh_map(fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, other);
	/* Right from the start. */
	EXPECT_NE(0, published_time(other));
	EXPECT_LE(published_time(other), now_ns());
	for (i = 0; i < 5; i++) {
		time = now_ns();
		sleep_ns(20 * self->jiffy);
		EXPECT_LE(time, published_time(self->touch));
		EXPECT_LE(time, published_time(other));
	}
	EXPECT_EQ(0, munmap(other, setup.touch_bytes));
	EXPECT_EQ(0, close(fd));
	time = now_ns();
	sleep_ns(20 * self->jiffy);
	EXPECT_LE(time, published_time(self->touch));
}

/* The physical frame number of a page; 0 if it cannot be read. */
static __u64 frame_of(const void *address)
{
	const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	__u64 entry = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, 8, (uintptr_t)address / 4096 * 8) != 8)
		entry = 0;
	close(fd);
	return entry & ((1ULL << 55) - 1);
}

/*
 * On each jiffy, the kernel publishes the time with interrupts disabled. That is a single store,
 * however many arrays there are: all map the same page.
 */
TEST_F(touch, one_store_for_all)
{
	enum { ARRAYS = 16 };
	struct twheel_touch *other[ARRAYS];
	struct twheel_setup setup;
	int fd[ARRAYS], i;
	__u64 frame;

	if (access("/proc/self/pagemap", F_OK))
		SKIP(return, "this kernel does not show in which frame a page is");
	store_word(self->touch, 0, 1);
	EXPECT_NE(0, published_time(self->touch));
	frame = frame_of(self->touch);
	ASSERT_NE(0, frame);
	for (i = 0; i < ARRAYS; i++) {
		fd[i] = wh_open(0);
		ASSERT_LE(0, fd[i]);
		ASSERT_EQ(0, wh_setup(fd[i], 0, 1, &setup));
		other[i] = wh_map(fd[i], setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
		ASSERT_NE(NULL, other[i]);
		/* Reading the page maps it. */
		EXPECT_NE(0, published_time(other[i]));
		store_word(other[i], 0, 1);
		EXPECT_EQ(frame, frame_of(other[i]));
		/* Each array has its own words. */
		EXPECT_NE(frame, frame_of(other[i]->words));
		EXPECT_NE(frame_of(self->touch->words), frame_of(other[i]->words));
	}
	for (i = 0; i < ARRAYS; i++) {
		EXPECT_EQ(0, munmap(other[i], setup.touch_bytes));
		EXPECT_EQ(0, close(fd[i]));
	}
}

/*
 * Stores to a word of the page with the time, in a child. Returns the signal that kills it, or 0.
 */
static int signal_of_store(volatile __u64 *word)
{
	int status;
	pid_t child = fork();

	if (!child) {
		*word = 1;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -ECHILD;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* All contexts share the page: nobody can write to it, whether or not it was accessed before. */
TEST_F(touch, the_time_can_only_be_read)
{
	volatile __u64 *last = &self->touch->reserved[510], *first = &self->touch->now;
	char path[] = "/proc/self/mem";
	__u64 nonsense = ~0ULL;
	int memory, pipes[2];

	EXPECT_EQ(SIGBUS, signal_of_store(first));
	EXPECT_EQ(SIGBUS, signal_of_store(last));
	EXPECT_NE(0, *first);
	EXPECT_EQ(SIGBUS, signal_of_store(first));
	EXPECT_EQ(0, *last);
	EXPECT_EQ(SIGBUS, signal_of_store(last));
	/* Nor can the kernel be made to write there. */
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(8, write(pipes[1], &nonsense, 8));
	EXPECT_EQ(-1, read(pipes[0], (void *)last, 8));
	EXPECT_EQ(EFAULT, errno);
	memory = open(path, O_RDWR);
	ASSERT_LE(0, memory);
	EXPECT_NE(8, pwrite(memory, &nonsense, 8, (uintptr_t)last));
	EXPECT_EQ(0, *last);
	/* The words start right after it, and are writable. */
	EXPECT_EQ(0, mprotect(self->touch, self->bytes, PROT_READ));
	EXPECT_EQ(0, mprotect(self->touch, self->bytes, PROT_READ | PROT_WRITE));
	EXPECT_EQ(SIGBUS, signal_of_store(last));
	store_word(self->touch, 0, 1);
	EXPECT_EQ(4096, (char *)&self->touch->words[0] - (char *)self->touch);
	close(memory);
	close(pipes[0]);
	close(pipes[1]);
}

/* Arrays are created and destroyed, and time advances in each. */
TEST_F_TIMEOUT(touch, arrays_come_and_go, 90)
{
	struct twheel_setup setup;
	struct twheel_touch *other;
	int i, fd;
	__u64 time;

	/* So that there is no array in between. */
	ASSERT_EQ(0, munmap(self->touch, self->bytes));
	ASSERT_EQ(0, close(self->fd));
	for (i = 0; i < 20; i++) {
		fd = wh_open(0);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, wh_setup(fd, 0, 1, &setup));
		other = wh_map(fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
		ASSERT_NE(NULL, other);
		time = now_ns();
		sleep_ns(20 * self->jiffy);
		EXPECT_LE(time, published_time(other));
		EXPECT_EQ(0, munmap(other, setup.touch_bytes));
		EXPECT_EQ(0, close(fd));
	}
	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, 0, WORDS, &setup));
	self->touch = wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, self->touch);
}

TEST_F(touch, refuses_other_mappings)
{
	const char *fault = wh_map_fault(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);

	EXPECT_EQ(NULL, fault) TH_LOG("maps %s", fault);
	EXPECT_EQ(NULL, wh_map(self->fd, self->bytes, TWHEEL_RING_OFFSET));
	EXPECT_EQ(-1, mprotect(self->touch, self->bytes, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(self->touch, self->bytes, 2 * self->bytes,
				     MREMAP_MAYMOVE));
}

/* The number of local timer interrupts, on all CPUs; or POISON. */
static __u64 timer_interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	char line[4096], *rest, *end;
	__u64 sum = POISON, number;

	if (!file)
		return POISON;
	while (fgets(line, sizeof(line), file)) {
		rest = line + strspn(line, " ");
		if (strncmp(rest, "LOC:", 4))
			continue;
		sum = 0;
		for (rest += 4; number = strtoull(rest, &end, 10), end != rest; rest = end)
			sum += number;
	}
	fclose(file);
	return sum;
}

/* With an array and all CPUs idle, no CPU wakes up on each jiffy for it. */
TEST_F_TIMEOUT(touch, costs_nothing_when_idle, 60)
{
	const __u64 jiffies = 2 * SEC / self->jiffy;
	__u64 ticks, without, with;
	struct twheel_setup setup;

	ASSERT_EQ(0, munmap(self->touch, self->bytes));
	ASSERT_EQ(0, close(self->fd));
	without = timer_interrupts();
	ASSERT_NE(POISON, without);
	sleep_ns(2 * SEC);
	without = timer_interrupts() - without;

	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, 0, WORDS, &setup));
	self->touch = wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, self->touch);
	ticks = total("ticks");
	with = timer_interrupts();
	sleep_ns(2 * SEC);
	with = timer_interrupts() - with;
	printf("# timer interrupts in %llu jiffies: %llu, without the array %llu\n", jiffies,
	       with, without);
	EXPECT_GT(without + jiffies / 2, with);
	EXPECT_EQ(ticks, total("ticks"));
}

TEST_F_TIMEOUT(touch, cpus_come_and_go, 120)
{
	struct twheel_setup setup;
	int i;

	if (self->n < 2)
		SKIP(return, "takes two CPUs");
	for (i = 1; i < self->n; i++) {
		ASSERT_EQ(0, pin(self->cpu[0]));
		ASSERT_EQ(0, set_cpu_online(self->cpu[i], 0));
		expect_alive(_metadata, self, self->cpu[0]);
		ASSERT_EQ(0, set_cpu_online(self->cpu[i], 1));
		expect_alive(_metadata, self, self->cpu[i]);
	}
	/* A CPU that is offline when the first array is created, and comes back only afterwards. */
	ASSERT_EQ(0, pin(self->cpu[0]));
	ASSERT_EQ(0, set_cpu_online(self->cpu[1], 0));
	ASSERT_EQ(0, munmap(self->touch, self->bytes));
	ASSERT_EQ(0, close(self->fd));
	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, wh_setup(self->fd, 0, WORDS, &setup));
	self->touch = wh_map(self->fd, self->bytes, TWHEEL_TOUCH_OFFSET);
	ASSERT_NE(NULL, self->touch);
	ASSERT_EQ(0, set_cpu_online(self->cpu[1], 1));
	expect_alive(_metadata, self, self->cpu[1]);
	expect_alive(_metadata, self, self->cpu[0]);
}

TEST_HARNESS_MAIN
