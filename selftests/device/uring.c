// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring: arrays of operations through IORING_OP_URING_CMD, events through IORING_OP_READ and
 * IORING_OP_POLL_ADD, and teardown in every order. Commands run at submission, in a worker, and in
 * the kernel thread that polls for submissions.
 */
#include <liburing.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "watch_test.h"

#define ENTRIES	16
#define SIZE	sizeof(struct twheel_op)
#define STOP	TWHEEL_SUBMIT_STOP
#define PAGE	4096UL

/* Not the result of any command. */
#define NOTHING	(-ETIME)

FIXTURE(uring)
{
	int fd;
	struct io_uring ring;
	__u64 references;
	__u64 contexts;
};

FIXTURE_VARIANT(uring)
{
	unsigned int setup;
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(uring, inline) { };
FIXTURE_VARIANT_ADD(uring, worker) { .flags = IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(uring, sqpoll) { .setup = IORING_SETUP_SQPOLL };

static __u64 module_references(void)
{
	return file_number("/sys/module/twheel/refcnt");
}

/*
 * Waits until everything has been released, some time after a ring was closed. Returns false if it
 * times out.
 */
static bool all_gone(const FIXTURE_DATA(uring) * self)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	if (!wait_total("contexts", self->contexts))
		return false;
	while (module_references() != self->references) {
		if (now_ns() > end)
			return false;
		sleep_ns(MSEC);
	}
	return true;
}

FIXTURE_SETUP(uring)
{
	struct io_uring_params params = { .flags = variant->setup, .sq_thread_idle = 10 };

	self->contexts = total("contexts");
	self->references = module_references();
	ASSERT_NE(POISON, self->references);
	self->fd = wh_open(0);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, io_uring_queue_init_params(ENTRIES, &self->ring, &params));
}

/* A test that has closed one of them itself sets fd or ring_fd to -1. */
FIXTURE_TEARDOWN(uring)
{
	if (self->ring.ring_fd >= 0)
		io_uring_queue_exit(&self->ring);
	if (self->fd >= 0)
		EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(true, all_gone(self));
}

/* Prepares the next submission: a command. */
static struct io_uring_sqe *prepare_command(FIXTURE_DATA(uring) * self,
					    const FIXTURE_VARIANT(uring) * variant,
					    const struct twheel_submit *submit)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, self->fd, NULL, 0, 0);
	sqe->cmd_op = TWHEEL_URING_SUBMIT;
	memcpy(sqe->cmd, submit, sizeof(*submit));
	sqe->flags = variant->flags;
	sqe->user_data = 0;
	return sqe;
}

static struct twheel_submit array_of(const void *ops, __u32 nr, __u16 size, __u16 flags)
{
	return (struct twheel_submit) {
		.ops		= (uintptr_t)ops,
		.nr_ops		= nr,
		.op_size	= size,
		.flags		= flags,
	};
}

/*
 * Submits @n entries. With a thread that polls for them, it has taken them when this returns, and
 * the number that liburing returns may include earlier ones.
 */
static bool submit_entries(FIXTURE_DATA(uring) * self, int n)
{
	int ret = io_uring_submit(&self->ring);

	if (!(self->ring.flags & IORING_SETUP_SQPOLL))
		return ret == n;
	while (io_uring_sq_ready(&self->ring))
		sched_yield();
	return ret >= n;
}

/* Waits for a completion. Returns its result. */
static int wait_result(FIXTURE_DATA(uring) * self, struct io_uring_cqe *copy)
{
	struct __kernel_timespec guard = { .tv_sec = GUARD_MS / 1000 };
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe_timeout(&self->ring, &cqe, &guard);
	} while (ret == -EINTR);
	if (ret)
		return NOTHING;
	/* A worker may have armed timers as late as now. */
	punctual_from_now();
	ret = cqe->res;
	if (copy)
		*copy = *cqe;
	io_uring_cqe_seen(&self->ring, cqe);
	return ret;
}

/* Runs an array of operations, as wh_submit() does. */
static int run_command(FIXTURE_DATA(uring) * self, const FIXTURE_VARIANT(uring) * variant,
		       const void *ops, __u32 nr, __u16 size, __u16 flags)
{
	const struct twheel_submit submit = array_of(ops, nr, size, flags);

	prepare_command(self, variant, &submit);
	if (!submit_entries(self, 1))
		return -EIO;
	return wait_result(self, NULL);
}

static bool nothing_completes(FIXTURE_DATA(uring) * self)
{
	struct io_uring_cqe *cqe;

	sleep_ns(20 * MSEC);
	return io_uring_peek_cqe(&self->ring, &cqe) == -EAGAIN;
}

static struct twheel_op add_op(__u64 time, __u64 user_data)
{
	return (struct twheel_op) {
		.time		= time,
		.user_data	= user_data,
		.opcode		= TWHEEL_OP_ADD,
		.clock		= CLOCK_MONOTONIC,
		.result		= -1,
	};
}

static struct twheel_op rearm_op(__u64 handle, __u64 time)
{
	return (struct twheel_op) {
		.handle	= handle,
		.time	= time,
		.opcode	= TWHEEL_OP_REARM,
		.result	= -1,
	};
}

static struct twheel_op cancel_op(__u64 handle)
{
	return (struct twheel_op) {
		.handle	= handle,
		.opcode	= TWHEEL_OP_CANCEL,
		.result	= -1,
	};
}

/* Does this process have an io_uring worker? */
static bool has_worker(void)
{
	DIR *tasks = opendir("/proc/self/task");
	bool found = false;
	struct dirent *task;
	char path[300], name[32];
	FILE *file;

	while (tasks && (task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		found |= fgets(name, sizeof(name), file) && !strncmp(name, "iou-wrk", 7);
		fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/*
 * A long array is not processed at submission, where it would delay other submissions or the thread
 * that polls: a worker processes it.
 */
TEST_F(uring, long_arrays_are_a_workers)
{
	enum { SHORT = 1024, LONG = SHORT + 1 };
	struct twheel_op *ops = calloc(LONG, SIZE);
	unsigned int i;

	ASSERT_NE(NULL, ops);
	for (i = 0; i < LONG; i++)
		ops[i] = add_op(HOUR, i);
	ASSERT_EQ(SHORT, run_command(self, variant, ops, SHORT, SIZE, 0));
	EXPECT_EQ(!!(variant->flags & IOSQE_ASYNC), has_worker());
	ASSERT_EQ(LONG, run_command(self, variant, ops, LONG, SIZE, 0));
	EXPECT_EQ(true, has_worker());
	for (i = 0; i < LONG; i++)
		ASSERT_EQ(0, ops[i].result);
	EXPECT_EQ(SHORT + LONG, wh_nr_timers(self->fd));
	free(ops);
}

/* Wherever a command runs, it uses the program's file descriptors. */
TEST_F(uring, watches)
{
	struct twheel_op op = add_op(TWHEEL_TIME_NONE, 1);
	struct twheel_event event;
	int here, there;

	ASSERT_EQ(0, network());
	ASSERT_EQ(0, connection(AF_INET, &here, &there));
	op.flags = TWHEEL_WATCHED | TWHEEL_WATCH_SHUTDOWN;
	op.idle = 50 * MSEC;
	op.touch = here;
	ASSERT_EQ(1, run_command(self, variant, &op, 1, SIZE, 0));
	EXPECT_EQ(0, op.result);
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(op.handle, event.handle);
	EXPECT_EQ(TWHEEL_LIMIT_IDLE, event.reason);
	EXPECT_TRUE(wait_tcp_state(there, TCP_CLOSE_WAIT));
	close(here);
	close(there);
}

TEST_F(uring, adds_rearms_and_cancels)
{
	struct twheel_op ops[4] = { add_op(HOUR, 1), add_op(HOUR, 2), add_op(0, 3) };
	struct twheel_event event;

	ASSERT_EQ(3, run_command(self, variant, ops, 3, SIZE, 0));
	EXPECT_EQ(0, ops[0].result);
	EXPECT_EQ(0, ops[1].result);
	EXPECT_EQ(0, ops[2].result);
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, ops[0].handle));
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, ops[1].handle));
	ASSERT_EQ(true, wh_wait_events(self->fd, 1));

	ops[3] = cancel_op(ops[0].handle);
	ops[0] = rearm_op(ops[0].handle, 2 * HOUR);
	ops[1] = cancel_op(ops[1].handle);
	ops[2] = rearm_op(ops[2].handle, 0);
	ASSERT_EQ(4, run_command(self, variant, ops, 4, SIZE, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ops[0].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ops[1].result);
	EXPECT_EQ(TWHEEL_WAS_EXPIRED, ops[2].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ops[3].result);

	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(3, event.user_data);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/* Operations of the minimum size, and more than the kernel processes at a time. */
TEST_F(uring, many_operations)
{
	enum { NR = 5000 };
	unsigned char *ops = calloc(NR, TWHEEL_OP_SIZE_MIN);
	struct twheel_op op;
	unsigned int i;

	ASSERT_NE(NULL, ops);
	op = add_op(HOUR, 7);
	for (i = 0; i < NR; i++)
		memcpy(ops + i * TWHEEL_OP_SIZE_MIN, &op, TWHEEL_OP_SIZE_MIN);
	ASSERT_EQ(NR, run_command(self, variant, ops, NR, TWHEEL_OP_SIZE_MIN, 0));
	EXPECT_EQ(NR, wh_nr_timers(self->fd));
	for (i = 0; i < NR; i++) {
		memcpy(&op, ops + i * TWHEEL_OP_SIZE_MIN, TWHEEL_OP_SIZE_MIN);
		ASSERT_EQ(0, op.result);
		op = cancel_op(op.handle);
		memcpy(ops + i * TWHEEL_OP_SIZE_MIN, &op, TWHEEL_OP_SIZE_MIN);
	}
	ASSERT_EQ(NR, run_command(self, variant, ops, NR, TWHEEL_OP_SIZE_MIN, 0));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	free(ops);
}

TEST_F(uring, failures_of_operations)
{
	struct twheel_op ops[3] = { add_op(HOUR, 1), cancel_op(POISON), add_op(HOUR, 2) };

	ASSERT_EQ(2, run_command(self, variant, ops, 3, SIZE, STOP));
	EXPECT_EQ(0, ops[0].result);
	EXPECT_EQ(-ENOENT, ops[1].result);
	EXPECT_EQ(-1, ops[2].result);
	EXPECT_EQ(1, wh_nr_timers(self->fd));

	ops[0] = cancel_op(ops[0].handle);
	ASSERT_EQ(3, run_command(self, variant, ops, 3, SIZE, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ops[0].result);
	EXPECT_EQ(-ENOENT, ops[1].result);
	EXPECT_EQ(0, ops[2].result);
	EXPECT_EQ(1, wh_nr_timers(self->fd));
}

TEST_F(uring, refused)
{
	struct twheel_op op = add_op(HOUR, 1);
	const struct twheel_submit submit = array_of(&op, 1, SIZE, 0);
	unsigned int i;

	EXPECT_EQ(-EINVAL, run_command(self, variant, &op, 1, 0, 0));
	EXPECT_EQ(-EINVAL, run_command(self, variant, &op, 1, TWHEEL_OP_SIZE_MIN - 8, 0));
	EXPECT_EQ(-EINVAL, run_command(self, variant, &op, 1, SIZE + 1, 0));
	EXPECT_EQ(-EINVAL, run_command(self, variant, &op, 1U << 31, SIZE, 0));
	for (i = 1; i < 16; i++)
		EXPECT_EQ(-EOPNOTSUPP, run_command(self, variant, &op, 1, SIZE, 1U << i));
	for (i = 0; i < 32; i++) {
		prepare_command(self, variant, &submit)->cmd_op = 1U << i;
		ASSERT_EQ(true, submit_entries(self, 1));
		EXPECT_EQ(-EOPNOTSUPP, wait_result(self, NULL));
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(-1, op.result);
	EXPECT_EQ(0, run_command(self, variant, NULL, 0, SIZE, 0));
	EXPECT_EQ(1, run_command(self, variant, &op, 1, SIZE, 0));
	EXPECT_EQ(1, wh_nr_timers(self->fd));
}

TEST_F(uring, bad_memory)
{
	unsigned char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct twheel_op *ops = (struct twheel_op *)(page + PAGE) - 3;
	unsigned int i;

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, mprotect(page + PAGE, PAGE, PROT_NONE));
	for (i = 0; i < 3; i++)
		ops[i] = add_op(HOUR, i);
	EXPECT_EQ(-EFAULT, run_command(self, variant, NULL, 1, SIZE, 0));
	EXPECT_EQ(-EFAULT, run_command(self, variant, page + PAGE, 1, SIZE, 0));
	EXPECT_EQ(-EFAULT, run_command(self, variant, (void *)-PAGE, 1, SIZE, 0));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(3, run_command(self, variant, ops, 5, SIZE, 0));
	EXPECT_EQ(3, wh_nr_timers(self->fd));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, ops[i].handle));
	munmap(page, 2 * PAGE);
}

/* Linked commands run one after the other, and not at all once one has failed. */
TEST_F(uring, linked)
{
	struct twheel_op set = add_op(HOUR, 1), cancel = cancel_op(42), last = add_op(HOUR, 2);
	struct twheel_submit submit[3] = {
		array_of(&set, 1, SIZE, 0), array_of(&cancel, 1, SIZE, 0),
		array_of(&last, 1, SIZE, 0),
	};
	int results[3] = { NOTHING, NOTHING, NOTHING }, i, round, ret;
	struct io_uring_cqe cqe = { };
	struct io_uring_sqe *sqe;

	set.flags = TWHEEL_KEYED;
	set.key = 42;
	cancel.flags = TWHEEL_BY_KEY;
	for (round = 0; round < 2; round++) {
		/* The second time the command in the middle fails. */
		submit[1].op_size = round ? 0 : SIZE;
		for (i = 0; i < 3; i++) {
			sqe = prepare_command(self, variant, &submit[i]);
			sqe->user_data = i;
			if (i < 2)
				sqe->flags |= IOSQE_IO_LINK;
		}
		ASSERT_EQ(true, submit_entries(self, 3));
		for (i = 0; i < 3; i++) {
			ret = wait_result(self, &cqe);
			ASSERT_NE(NOTHING, ret);
			results[cqe.user_data] = ret;
		}
		EXPECT_EQ(1, results[0]);
		EXPECT_EQ(TWHEEL_WAS_ABSENT, set.result);
		EXPECT_EQ(round ? -EINVAL : 1, results[1]);
		EXPECT_EQ(TWHEEL_WAS_PENDING, cancel.result);
		EXPECT_EQ(round ? -ECANCELED : 1, results[2]);
		EXPECT_EQ(round ? 2 : 1, wh_nr_timers(self->fd));
	}
}

static void *run_scribbler(void *arg)
{
	struct twheel_submit *area = arg;
	unsigned int i;

	for (i = 0; !__atomic_load_n(&area->op_size, __ATOMIC_RELAXED); i++)
		;
	while (__atomic_load_n(&area->op_size, __ATOMIC_RELAXED) != UINT16_MAX)
		__atomic_store_n(&area->nr_ops, i++ & 1 ? 1 : UINT32_MAX, __ATOMIC_RELAXED);
	return NULL;
}

/* The kernel executes the values that it has checked, whatever another thread writes meanwhile. */
TEST_F(uring, submission_that_changes)
{
	struct twheel_op op = cancel_op(POISON);
	const struct twheel_submit submit = array_of(&op, 1, SIZE, 0);
	__u64 end = now_ns() + 5 * SEC;
	unsigned int i, done = 0;
	pthread_t thread;
	int ret;

	/* All submissions use the same entry. */
	io_uring_queue_exit(&self->ring);
	ASSERT_EQ(0, io_uring_queue_init(1, &self->ring, variant->setup));
	memset(self->ring.sq.sqes->cmd, 0, sizeof(submit));
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_scribbler, self->ring.sq.sqes->cmd));
	/* Fewer rounds on a slow kernel. */
	for (i = 0; i < 2000 && (!done || now_ns() < end); i++) {
		prepare_command(self, variant, &submit);
		ASSERT_EQ(true, submit_entries(self, 1));
		ret = wait_result(self, NULL);
		ASSERT_EQ(true, ret == 1 || ret == -EINVAL) TH_LOG("result %d", ret);
		done += ret == 1;
	}
	__atomic_store_n(&((struct twheel_submit *)self->ring.sq.sqes->cmd)->op_size, UINT16_MAX,
			 __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_LT(0, done);
}

/* Submits a read of up to @nr events. */
static void begin_read(struct __test_metadata *_metadata, FIXTURE_DATA(uring) * self,
		       const FIXTURE_VARIANT(uring) * variant, struct twheel_event *events,
		       unsigned int nr)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);

	memset(events, 0xa5, nr * sizeof(*events));
	io_uring_prep_read(sqe, self->fd, events, nr * sizeof(*events), 0);
	sqe->flags = variant->flags;
	sqe->user_data = 1;
	ASSERT_EQ(true, submit_entries(self, 1));
}

TEST_F(uring, read_of_events_that_are_there)
{
	struct twheel_event events[4];
	unsigned int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	ASSERT_EQ(true, wh_wait_events(self->fd, 3));
	begin_read(_metadata, self, variant, events, 4);
	ASSERT_EQ(3 * sizeof(*events), wait_result(self, NULL));
	for (i = 0; i < 3; i++) {
		EXPECT_EVENT_OK(&events[i]);
		EXPECT_EQ(i, events[i].seq);
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(uring, read_that_waits)
{
	struct twheel_op op = add_op(20 * MSEC, 5);
	const struct twheel_submit submit = array_of(&op, 1, SIZE, 0);
	struct twheel_event event;
	struct io_uring_cqe cqe;
	int ret, i;

	begin_read(_metadata, self, variant, &event, 1);
	EXPECT_EQ(true, nothing_completes(self));
	/* Commands run while it waits. */
	prepare_command(self, variant, &submit);
	ASSERT_EQ(true, submit_entries(self, 1));
	for (i = 0; i < 2; i++) {
		ret = wait_result(self, &cqe);
		ASSERT_EQ(cqe.user_data ? (int)sizeof(event) : 1, ret);
	}
	EXPECT_EVENT_OK(&event);
	EXPECT_EQ(5, event.user_data);
}

/* A read that is cancelled takes no event. */
TEST_F(uring, read_that_is_cancelled)
{
	struct twheel_event event;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	int ret, i;

	begin_read(_metadata, self, variant, &event, 1);
	EXPECT_EQ(true, nothing_completes(self));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 0;
	ASSERT_EQ(true, submit_entries(self, 1));
	for (i = 0; i < 2; i++) {
		ret = wait_result(self, &cqe);
		EXPECT_EQ(true, cqe.user_data ? ret == -ECANCELED || ret == -EINTR :
						!ret || ret == -EALREADY)
			TH_LOG("%llu: %d", cqe.user_data, ret);
	}
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, NULL));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(0, event.seq);
}

TEST_F(uring, multishot_poll)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
	struct twheel_event event;
	struct io_uring_cqe cqe;
	unsigned int i;

	io_uring_prep_poll_multishot(sqe, self->fd, POLLIN);
	ASSERT_EQ(true, submit_entries(self, 1));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(true, nothing_completes(self));
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
		ASSERT_EQ(POLLIN, wait_result(self, &cqe) & POLLIN);
		EXPECT_EQ(IORING_CQE_F_MORE, cqe.flags & IORING_CQE_F_MORE);
		ASSERT_EQ(1, wh_read(self->fd, &event, 1));
		EXPECT_EQ(i, event.user_data);
	}
}

/* Entries of the context's ring. */
#define RING	16

/* A poll must not wake the poller itself: with a full ring, this would never end. */
TEST_F(uring, multishot_poll_of_a_full_ring)
{
	struct twheel_setup setup;
	struct io_uring_cqe cqe;
	unsigned int i;

	ASSERT_EQ(0, wh_setup(self->fd, RING, 0, &setup));
	for (i = 0; i < 2 * RING; i++)
		ASSERT_EQ(0, wh_add(self->fd, 0, 0, i, NULL));
	while (total("pending"))
		sleep_ns(MSEC);
	io_uring_prep_poll_multishot(io_uring_get_sqe(&self->ring), self->fd, POLLIN);
	ASSERT_EQ(true, submit_entries(self, 1));
	ASSERT_EQ(POLLIN, wait_result(self, &cqe) & POLLIN);
	EXPECT_EQ(IORING_CQE_F_MORE, cqe.flags & IORING_CQE_F_MORE);
	EXPECT_EQ(true, nothing_completes(self));
}

/* Leaves a read, a poll and a command in flight. */
static void leave_in_flight(struct __test_metadata *_metadata, FIXTURE_DATA(uring) * self,
			    const FIXTURE_VARIANT(uring) * variant, struct twheel_event *event,
			    struct twheel_op *ops, unsigned int nr)
{
	const struct twheel_submit submit = array_of(ops, nr, SIZE, 0);
	unsigned int i;

	for (i = 0; i < nr; i++)
		ops[i] = add_op(HOUR, i);
	begin_read(_metadata, self, variant, event, 1);
	io_uring_prep_poll_multishot(io_uring_get_sqe(&self->ring), self->fd, POLLIN);
	prepare_command(self, variant, &submit);
	ASSERT_EQ(true, submit_entries(self, 2));
}

TEST_F(uring, ring_closed_first)
{
	static struct twheel_op ops[2000];
	struct twheel_event event;

	leave_in_flight(_metadata, self, variant, &event, ops, ARRAY_SIZE(ops));
	io_uring_queue_exit(&self->ring);
	self->ring.ring_fd = -1;
	/* The context lives on, and nobody takes its events. */
	ASSERT_EQ(0, wh_add(self->fd, 0, 0, 1, NULL));
	ASSERT_EQ(1, wh_read(self->fd, &event, 1));
	EXPECT_EQ(0, event.seq);
	EXPECT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_EQ(true, all_gone(self));
}

TEST_F(uring, file_closed_first)
{
	static struct twheel_op ops[2000];
	struct twheel_event event;

	leave_in_flight(_metadata, self, variant, &event, ops, ARRAY_SIZE(ops));
	EXPECT_EQ(0, close(self->fd));
	self->fd = -1;
	/* Requests that wait for an event hold a reference to the file. */
	sleep_ns(20 * MSEC);
	EXPECT_EQ(self->contexts + 1, total("contexts"));
	io_uring_queue_exit(&self->ring);
	self->ring.ring_fd = -1;
	EXPECT_EQ(true, all_gone(self));
}

TEST_F(uring, registered_file)
{
	struct twheel_op op = add_op(HOUR, 1);
	const struct twheel_submit submit = array_of(&op, 1, SIZE, 0);
	struct io_uring_sqe *sqe;

	ASSERT_EQ(0, io_uring_register_files(&self->ring, &self->fd, 1));
	EXPECT_EQ(0, close(self->fd));
	self->fd = 0;
	sqe = prepare_command(self, variant, &submit);
	sqe->flags |= IOSQE_FIXED_FILE;
	ASSERT_EQ(true, submit_entries(self, 1));
	EXPECT_EQ(1, wait_result(self, NULL));
	EXPECT_EQ(0, op.result);
	EXPECT_EQ(self->contexts + 1, total("contexts"));
	ASSERT_EQ(0, io_uring_unregister_files(&self->ring));
	self->fd = -1;
	EXPECT_EQ(true, all_gone(self));
}

/* A process that is killed with commands in flight leaves nothing behind. */
TEST_F(uring, killed)
{
	static struct twheel_op ops[2000];
	struct twheel_event event;
	unsigned int i;
	int status;
	pid_t child;

	io_uring_queue_exit(&self->ring);
	for (i = 0; i < 10; i++) {
		child = fork();
		ASSERT_GE(child, 0);
		if (!child) {
			close(self->fd);
			self->fd = wh_open(0);
			if (io_uring_queue_init(ENTRIES, &self->ring, variant->setup))
				_exit(1);
			leave_in_flight(_metadata, self, variant, &event, ops, ARRAY_SIZE(ops));
			while (run_command(self, variant, ops, ARRAY_SIZE(ops), SIZE, 0) != NOTHING)
				;
			_exit(1);
		}
		ASSERT_EQ(true, wait_total("contexts", self->contexts + 2));
		sleep_ns(i * 3 * MSEC);
		ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, &status, 0));
		EXPECT_EQ(true, WIFSIGNALED(status));
		EXPECT_EQ(true, wait_total("contexts", self->contexts + 1));
	}
	self->ring.ring_fd = -1;
}

TEST_HARNESS_MAIN
