// SPDX-License-Identifier: GPL-2.0-only
/*
 * TWHEEL_BENCH_IOC_REPLAY: what it accepts, what it counts, and what it reports as a fault
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/twheel_bench.h>

#include "kselftest_harness.h"

#define MS	1000000ULL

/* Some more operations than the kernel takes at a time. */
#define MANY	10000

FIXTURE(replay)
{
	int fd;
	struct twheel_bench_op op[4];
	struct twheel_bench_replay arg;
};

/* The wheel arms two timers, moves one of them, and cancels the other. */
FIXTURE_SETUP(replay)
{
	self->fd = open("/dev/twheel_bench", O_RDWR | O_CLOEXEC);
	if (self->fd < 0 && errno == ENOENT)
		SKIP(return, "twheel_bench.ko is not loaded");
	ASSERT_GE(self->fd, 0);
	self->op[0] = (struct twheel_bench_op) { 0, 200 * MS, 0, TWHEEL_BENCH_OP_ARM };
	self->op[1] = (struct twheel_bench_op) { 1 * MS, 200 * MS, 1, TWHEEL_BENCH_OP_ARM };
	self->op[2] = (struct twheel_bench_op) { 2 * MS, 300 * MS, 0, TWHEEL_BENCH_OP_MOVE };
	self->op[3] = (struct twheel_bench_op) { 3 * MS, 0, 1, TWHEEL_BENCH_OP_CANCEL };
	self->arg = (struct twheel_bench_replay) {
		.ops		= (uintptr_t)self->op,
		.nr_ops		= 4,
		.length_ns	= 400 * MS,
		.nr_objects	= 2,
	};
}

FIXTURE_TEARDOWN(replay)
{
	close(self->fd);
}

static int replay_errno(int fd, struct twheel_bench_replay arg)
{
	return ioctl(fd, TWHEEL_BENCH_IOC_REPLAY, &arg) ? errno : 0;
}

/* How many schemes there are. */
static uint32_t count_schemes(int fd)
{
	struct twheel_bench_scheme scheme = { 0 };

	while (!ioctl(fd, TWHEEL_BENCH_IOC_SCHEME, &scheme))
		scheme.index++;
	return scheme.index;
}

/* Fills MANY operations: a timer is armed, and moved once a time, each time to later. */
static void move_often(struct twheel_bench_op *op, uint64_t every_ns)
{
	uint64_t i;

	for (i = 0; i < MANY; i++)
		op[i] = (struct twheel_bench_op) {
			.time_ns	= i * every_ns,
			.deadline_ns	= 3600 * 1000 * MS + i * every_ns,
			.kind		= i ? TWHEEL_BENCH_OP_MOVE : TWHEEL_BENCH_OP_ARM,
		};
}

TEST_F(replay, counts)
{
	ASSERT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &self->arg));
	EXPECT_EQ(TWHEEL_BENCH_OK, self->arg.fault);
	EXPECT_EQ(1, self->arg.fired);
	EXPECT_EQ(2, self->arg.most_armed);
	/* Those of time 0 are not measured. */
	EXPECT_EQ(1, self->arg.op[TWHEEL_BENCH_OP_ARM].ops);
	EXPECT_EQ(1, self->arg.op[TWHEEL_BENCH_OP_MOVE].ops);
	EXPECT_EQ(1, self->arg.op[TWHEEL_BENCH_OP_CANCEL].ops);
	EXPECT_GE(self->arg.elapsed_ns, 400 * MS);
	EXPECT_GE(self->arg.late_max_ns, self->arg.late_p50_ns);
}

/* What is due after the end is neither waited for nor counted. */
TEST_F(replay, end)
{
	self->arg.length_ns = 250 * MS;
	ASSERT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &self->arg));
	EXPECT_EQ(TWHEEL_BENCH_OK, self->arg.fault);
	EXPECT_EQ(0, self->arg.fired);
	EXPECT_EQ(0, self->arg.checksum);
}

/* Each differs from a valid call in one field. */
TEST_F(replay, arguments)
{
	struct twheel_bench_replay arg = self->arg;

	arg.scheme = 1000;
	EXPECT_EQ(ENOENT, replay_errno(self->fd, arg));
	arg = self->arg;
	arg.reserved = 1;
	EXPECT_EQ(EINVAL, replay_errno(self->fd, arg));
	arg = self->arg;
	arg.nr_ops = 0;
	EXPECT_EQ(EINVAL, replay_errno(self->fd, arg));
	arg.nr_ops = TWHEEL_BENCH_MAX_OPS + 1;
	EXPECT_EQ(EINVAL, replay_errno(self->fd, arg));
	arg = self->arg;
	arg.nr_objects = 0;
	EXPECT_EQ(EINVAL, replay_errno(self->fd, arg));
	arg.nr_objects = TWHEEL_BENCH_MAX_TIMERS + 1;
	EXPECT_EQ(EINVAL, replay_errno(self->fd, arg));
	arg = self->arg;
	arg.length_ns = TWHEEL_BENCH_MAX_TIMEOUT_NS + 1;
	EXPECT_EQ(EINVAL, replay_errno(self->fd, arg));
	arg = self->arg;
	arg.ops = 0;
	EXPECT_EQ(EFAULT, replay_errno(self->fd, arg));
	arg.ops = UINT64_MAX - 8;
	EXPECT_EQ(EFAULT, replay_errno(self->fd, arg));
}

/* So does each of these, in an operation. */
TEST_F(replay, operations)
{
	const struct twheel_bench_op op[4] = {
		self->op[0], self->op[1], self->op[2], self->op[3],
	};
	static const struct {
		int			at;
		struct twheel_bench_op	op;
	} wrong[] = {
		/* Not sorted; after the end, by more and more; no such object; no such kind. */
		{ 3, { 1 * MS, 0, 1, TWHEEL_BENCH_OP_CANCEL } },
		{ 3, { 401 * MS, 0, 1, TWHEEL_BENCH_OP_CANCEL } },
		{ 3, { TWHEEL_BENCH_MAX_DEADLINE_NS, 0, 1, TWHEEL_BENCH_OP_CANCEL } },
		{ 3, { INT64_MAX, 0, 1, TWHEEL_BENCH_OP_CANCEL } },
		{ 3, { UINT64_MAX, 0, 1, TWHEEL_BENCH_OP_CANCEL } },
		{ 3, { 3 * MS, 0, 2, TWHEEL_BENCH_OP_CANCEL } },
		{ 3, { 3 * MS, 0, 1, TWHEEL_BENCH_NR_OP_KINDS } },
		/* A cancel with a deadline; a deadline before its operation; one too far. */
		{ 3, { 3 * MS, 9 * MS, 1, TWHEEL_BENCH_OP_CANCEL } },
		{ 2, { 2 * MS, 1 * MS, 0, TWHEEL_BENCH_OP_MOVE } },
		{ 2, { 2 * MS, TWHEEL_BENCH_MAX_DEADLINE_NS + 1, 0, TWHEEL_BENCH_OP_MOVE } },
		/* Armed already; not armed. */
		{ 2, { 2 * MS, 300 * MS, 0, TWHEEL_BENCH_OP_ARM } },
		{ 1, { 1 * MS, 200 * MS, 1, TWHEEL_BENCH_OP_MOVE } },
		{ 1, { 1 * MS, 0, 1, TWHEEL_BENCH_OP_CANCEL } },
	};
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		memcpy(self->op, op, sizeof(op));
		self->op[wrong[i].at] = wrong[i].op;
		EXPECT_EQ(EINVAL, replay_errno(self->fd, self->arg))
			TH_LOG("operation %zu", i);
	}
}

/* If it fails, nothing is written; and it can only be read to its end. */
TEST_F(replay, memory)
{
	const long page = sysconf(_SC_PAGESIZE);
	struct twheel_bench_replay arg = self->arg;
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_EQ(0, mprotect(memory + page, page, PROT_NONE));
	arg.ops = (uintptr_t)memcpy(memory + page - sizeof(self->op), self->op, sizeof(self->op));
	EXPECT_EQ(0, replay_errno(self->fd, arg));
	arg.nr_ops++;
	memset(&arg.cpu, 0x5a, sizeof(arg) - offsetof(struct twheel_bench_replay, cpu));
	ASSERT_EQ(-1, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &arg));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0x5a5a5a5a5a5a5a5a, arg.most_bytes);
	munmap(memory, 2 * page);
}

/* An object that is armed too soon after its deadline: schemes with long ticks have not fired. */
TEST_F(replay, late)
{
	struct twheel_bench_scheme scheme = { 0 };

	while (strcmp(scheme.name, "php")) {
		ASSERT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_SCHEME, &scheme));
		scheme.index++;
	}
	self->arg.scheme = scheme.index - 1;
	self->arg.nr_ops = 2;
	self->op[0].deadline_ns = 5 * MS;
	self->op[1] = (struct twheel_bench_op) { 10 * MS, 200 * MS, 0, TWHEEL_BENCH_OP_ARM };
	ASSERT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &self->arg));
	/* Its first tick comes a second after it was set up. */
	EXPECT_EQ(TWHEEL_BENCH_NOT_FIRED, self->arg.fault);
	EXPECT_EQ(0, self->arg.fault_object);
	EXPECT_EQ(5 * MS, self->arg.fault_expected);
	EXPECT_GE(self->arg.fault_found, 10 * MS);
	EXPECT_EQ(0, self->arg.fired);
}

/* What is as far as can be asked for, in all schemes; and a trace that ends when it begins. */
TEST_F(replay, far)
{
	const uint32_t nr = count_schemes(self->fd);

	self->op[0].deadline_ns = TWHEEL_BENCH_MAX_DEADLINE_NS;
	self->op[1] = (struct twheel_bench_op) { 0, TWHEEL_BENCH_MAX_DEADLINE_NS, 1, 0 };
	self->op[2] = (struct twheel_bench_op) { 0, TWHEEL_BENCH_MAX_DEADLINE_NS - 1, 0, 1 };
	for (; self->arg.scheme < nr; self->arg.scheme++) {
		self->arg.nr_ops = 3;
		self->arg.length_ns = 0;
		ASSERT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &self->arg));
		EXPECT_EQ(TWHEEL_BENCH_OK, self->arg.fault) TH_LOG("%u", self->arg.scheme);
		EXPECT_EQ(0, self->arg.fired);
		self->arg.length_ns = 50 * MS;
		ASSERT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &self->arg));
		EXPECT_EQ(TWHEEL_BENCH_OK, self->arg.fault) TH_LOG("%u", self->arg.scheme);
		EXPECT_EQ(0, self->arg.fired);
	}
}

/* All operations are on one timer: what a scheme leaves behind of each takes memory. */
TEST_F(replay, moves)
{
	struct twheel_bench_op *op = calloc(MANY, sizeof(*op));
	const uint32_t nr = count_schemes(self->fd);

	ASSERT_NE(NULL, op);
	move_often(op, 1000);
	self->arg.ops = (uintptr_t)op;
	self->arg.nr_ops = MANY;
	self->arg.nr_objects = 1;
	for (; self->arg.scheme < nr; self->arg.scheme++) {
		ASSERT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &self->arg));
		EXPECT_EQ(TWHEEL_BENCH_OK, self->arg.fault) TH_LOG("%u", self->arg.scheme);
		EXPECT_EQ(MANY - 1, self->arg.op[TWHEEL_BENCH_OP_MOVE].ops);
	}
	free(op);
}

/* What it may say about operations that make no sense. */
static bool is_answer(int error)
{
	return !error || error == EINVAL || error == EFAULT;
}

static uint64_t draw(uint64_t *random)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return *random >> 33;
}

/* Makes a wrong operation, or one that may be right. */
static struct twheel_bench_op draw_op(uint64_t *random, uint64_t time)
{
	static const uint64_t odd[] = {
		0, 1, INT64_MAX, UINT64_MAX, TWHEEL_BENCH_MAX_DEADLINE_NS, 1ULL << 63, UINT32_MAX,
	};
	struct twheel_bench_op op = {
		.time_ns	= time,
		.deadline_ns	= time + draw(random) % (20 * MS),
		.object		= draw(random) % 4,
		.kind		= draw(random) % 3,
	};

	if (op.kind == TWHEEL_BENCH_OP_CANCEL)
		op.deadline_ns = 0;
	switch (draw(random) % 64) {
	case 0:
		op.time_ns = odd[draw(random) % 7];
		break;
	case 1:
		op.deadline_ns = odd[draw(random) % 7];
		break;
	case 2:
		op.object = odd[draw(random) % 7];
		break;
	case 3:
		op.kind = odd[draw(random) % 7];
		break;
	}
	return op;
}

/* Random operations: whatever comes of them, the next replay is as good as ever. */
TEST_F_TIMEOUT(replay, nonsense, 200)
{
	const uint32_t nr = count_schemes(self->fd);
	struct twheel_bench_replay arg = self->arg;
	struct twheel_bench_op op[64];
	uint64_t random = 1, time;
	int i, j;

	arg.ops = (uintptr_t)op;
	arg.nr_ops = 64;
	arg.nr_objects = 4;
	arg.length_ns = 30 * MS;
	for (i = 0; i < 70; i++) {
		for (j = 0, time = 0; j < 64; j++) {
			op[j] = draw_op(&random, time);
			/* Much of it would be wrong at once. */
			if (j < 4)
				op[j] = (struct twheel_bench_op) {
					.deadline_ns	= draw(&random) % (20 * MS),
					.object		= j,
				};
			time += draw(&random) % (2 * MS) * (draw(&random) % 2);
		}
		arg.scheme = i % nr;
		EXPECT_TRUE(is_answer(replay_errno(self->fd, arg))) TH_LOG("round %d", i);
	}
	ASSERT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &self->arg));
	EXPECT_EQ(TWHEEL_BENCH_OK, self->arg.fault);
	EXPECT_EQ(1, self->arg.fired);
}

/**
 * struct other - what another thread does during a replay
 * @op:		the operations
 * @fd:		a second file of the device
 * @done:	the replay has ended
 * @error:	what the device said to a second replay
 */
struct other {
	struct twheel_bench_op	*op;
	int			fd;
	bool			done;
	int			error;
};

static void *scribble(void *data)
{
	struct other *other = data;
	uint64_t random = 7;

	while (!__atomic_load_n(&other->done, __ATOMIC_RELAXED)) {
		const uint64_t at = draw(&random) % MANY;

		other->op[at] = draw_op(&random, at * 1000);
		usleep(1000);
	}
	return NULL;
}

/* Operations that change while they are read. They are checked as they are used. */
TEST_F(replay, changing)
{
	struct other other = { .op = calloc(MANY, sizeof(*other.op)) };
	pthread_t thread;
	int error;

	ASSERT_NE(NULL, other.op);
	move_often(other.op, 20 * 1000);
	self->arg.ops = (uintptr_t)other.op;
	self->arg.nr_ops = MANY;
	ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &other));
	error = replay_errno(self->fd, self->arg);
	__atomic_store_n(&other.done, true, __ATOMIC_RELAXED);
	EXPECT_EQ(0, pthread_join(thread, NULL));
	EXPECT_TRUE(is_answer(error));
	free(other.op);
}

static void *unmap_and_close(void *data)
{
	struct twheel_bench_replay again = { .ops = 1, .nr_ops = 1, .nr_objects = 1 };
	struct other *other = data;

	usleep(60000);
	other->error = ioctl(other->fd, TWHEEL_BENCH_IOC_REPLAY, &again) ? errno : 0;
	munmap(other->op, MANY * sizeof(*other->op));
	close(other->fd);
	return NULL;
}

/* Neither the file nor the operations are there any more when the rest of these is read. */
TEST_F(replay, closed)
{
	struct other other = { .fd = self->fd };
	pthread_t thread;

	other.op = mmap(NULL, MANY * sizeof(*other.op), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, other.op);
	move_often(other.op, 20 * 1000);
	self->arg.ops = (uintptr_t)other.op;
	self->arg.nr_ops = MANY;
	ASSERT_EQ(0, pthread_create(&thread, NULL, unmap_and_close, &other));
	EXPECT_EQ(EFAULT, replay_errno(self->fd, self->arg));
	EXPECT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(EBUSY, other.error);
	self->fd = open("/dev/twheel_bench", O_RDWR | O_CLOEXEC);
	ASSERT_GE(self->fd, 0);
	self->arg.ops = (uintptr_t)self->op;
	self->arg.nr_ops = 4;
	EXPECT_EQ(0, replay_errno(self->fd, self->arg));
}

static void ignore(int signal)
{
	(void)signal;
}

/* A signal that a program handles is handled afterwards. */
TEST_F(replay, signals)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	const struct sigaction action = { .sa_handler = ignore };

	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	EXPECT_EQ(0, ioctl(self->fd, TWHEEL_BENCH_IOC_REPLAY, &self->arg));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	EXPECT_EQ(TWHEEL_BENCH_OK, self->arg.fault);
	EXPECT_EQ(1, self->arg.fired);
}

/* One that kills it ends any scheme, at any time; then there is nothing left that is busy. */
TEST_F(replay, killed)
{
	struct twheel_bench_op *op = calloc(MANY, sizeof(*op));
	const uint32_t nr = count_schemes(self->fd);
	struct twheel_bench_replay arg = self->arg;
	int status;
	pid_t pid;

	ASSERT_NE(NULL, op);
	move_often(op, MS / 2);
	arg.ops = (uintptr_t)op;
	arg.nr_ops = MANY;
	arg.length_ns = MANY * MS;
	for (; arg.scheme < nr; arg.scheme++) {
		pid = fork();
		if (!pid) {
			replay_errno(self->fd, arg);
			_exit(0);
		}
		ASSERT_GT(pid, 0);
		usleep(arg.scheme * 7000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status)) TH_LOG("%u", arg.scheme);
	}
	EXPECT_EQ(0, replay_errno(self->fd, self->arg));
	free(op);
}

TEST_HARNESS_MAIN
