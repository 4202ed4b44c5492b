// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arrays of operations: each does what its ioctl does and returns the same result, whatever is
 * wrong with the others, with the memory, or with the size.
 */
#include <sys/time.h>

#include "twheel_test.h"

#define PAGE		4096UL
#define STOP		TWHEEL_SUBMIT_STOP
#define UNTOUCHED	(-123456)

FIXTURE(submit)
{
	int fd;
	int twin;
	__u32 size;
	unsigned char *ops;
};

FIXTURE_VARIANT(submit)
{
	__u32 op_size;
};

FIXTURE_VARIANT_ADD(submit, short_ops)
{
	.op_size = TWHEEL_OP_SIZE_MIN,
};

FIXTURE_VARIANT_ADD(submit, whole_ops)
{
	.op_size = sizeof(struct twheel_op),
};

FIXTURE_VARIANT_ADD(submit, longer_ops)
{
	.op_size = sizeof(struct twheel_op) + 24,
};

#define OPS 4096

FIXTURE_SETUP(submit)
{
	self->fd = wh_open(O_NONBLOCK);
	self->twin = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_GE(self->twin, 0);
	self->size = variant->op_size;
	self->ops = calloc(OPS, self->size);
	ASSERT_NE(NULL, self->ops);
	random_seed();
}

FIXTURE_TEARDOWN(submit)
{
	free(self->ops);
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(0, close(self->twin));
}

/* Operation @i. A short one has only the first fields. */
static struct twheel_op *op_at(FIXTURE_DATA(submit) * self, size_t i)
{
	return (struct twheel_op *)(self->ops + i * self->size);
}

static bool has_whole_ops(const FIXTURE_DATA(submit) * self)
{
	return self->size >= sizeof(struct twheel_op);
}

/*
 * Puts an operation into the array, as much of it as fits. @result shows whether it has been done.
 */
static void put_op(FIXTURE_DATA(submit) * self, size_t i, const struct twheel_op *op)
{
	struct twheel_op *at = op_at(self, i);

	memset(at, 0, self->size);
	memcpy(at, op, has_whole_ops(self) ? sizeof(*op) : TWHEEL_OP_SIZE_MIN);
	at->result = UNTOUCHED;
}

static void put_add(FIXTURE_DATA(submit) * self, size_t i, __u64 time, __u64 user_data)
{
	put_op(self, i, &(struct twheel_op){
		.opcode		= TWHEEL_OP_ADD,
		.time		= time,
		.user_data	= user_data,
		.clock		= CLOCK_MONOTONIC,
	});
}

static void put_rearm(FIXTURE_DATA(submit) * self, size_t i, __u64 handle, __u64 time)
{
	put_op(self, i, &(struct twheel_op){
		.opcode		= TWHEEL_OP_REARM,
		.handle		= handle,
		.time		= time,
	});
}

static void put_cancel(FIXTURE_DATA(submit) * self, size_t i, __u64 handle)
{
	put_op(self, i, &(struct twheel_op){
		.opcode		= TWHEEL_OP_CANCEL,
		.handle		= handle,
	});
}

static int submit_ops(FIXTURE_DATA(submit) * self, size_t n, __u16 flags)
{
	return wh_submit(self->fd, self->ops, n, self->size, flags);
}

/* Does an operation through its own ioctl. Returns the result; an add also stores the handle. */
static int run_by_ioctl(int fd, struct twheel_op *op)
{
	struct twheel_timer_add add = {
		.time		= op->time,
		.user_data	= op->user_data,
		.flags		= op->flags,
		.clock		= op->clock,
		.key		= op->key,
		.period		= op->period,
		.slack		= op->slack,
		.spread		= op->spread,
		.idle		= op->idle,
		.lifetime	= op->lifetime,
		.touch		= op->touch,
	};
	const struct twheel_timer_rearm rearm = {
		.handle		= op->handle,
		.time		= op->time,
		.flags		= op->flags,
		.limit		= op->limit,
		.slack		= op->slack,
		.spread		= op->spread,
	};
	int ret;

	switch (op->opcode) {
	case TWHEEL_OP_ADD:
		ret = wh_add_timer(fd, &add);
		if (ret >= 0)
			op->handle = add.handle;
		return ret;
	case TWHEEL_OP_CANCEL:
		return wh_cancel_flags(fd, op->handle, op->flags);
	default:
		return wh_rearm_timer(fd, &rearm);
	}
}

/* A time for which both contexts give the same result, or one that neither accepts. */
static __u64 random_time(void)
{
	switch (random_below(12)) {
	case 0:
		return TWHEEL_TIME_MAX + 1 + random_below(5);
	case 1:
		return TWHEEL_TIME_NONE;
	default:
		return now_ns() + HOUR + random_magnitude(50);
	}
}

static void random_add(FIXTURE_DATA(submit) * self, struct twheel_op *op)
{
	op->opcode = TWHEEL_OP_ADD;
	op->time = random_time();
	op->flags = ABS;
	op->user_data = random_u64();
	/* Not CLOCK_REALTIME, on which these times have already passed. */
	op->clock = random_below(20) ? CLOCK_MONOTONIC : 1 + random_below(11);
	if (!random_below(16))
		op->flags ^= 1U << (5 + random_below(27));
	if (!has_whole_ops(self))
		return;
	if (random_below(2)) {
		op->flags |= TWHEEL_KEYED;
		op->key = random_below(8);
	}
	if (!random_below(4))
		op->period = random_magnitude(64);
	if (!random_below(4))
		op->slack = random_magnitude(50);
	if (!random_below(4))
		op->idle = 2 * HOUR;
	if (!random_below(4))
		op->lifetime = 3 * HOUR;
}

/* A re-arm or cancel of timer @which of those added, of a key, or of nothing. */
static void random_rearm_or_cancel(FIXTURE_DATA(submit) * self, struct twheel_op *op, size_t *which,
				   size_t timers)
{
	op->opcode = TWHEEL_OP_CANCEL + random_below(2);
	*which = timers && random_below(10) ? random_below(timers) : ~0UL;
	if (*which == ~0UL && random_below(2)) {
		op->flags = TWHEEL_BY_KEY;
		op->handle = random_below(8);
	}
	if (op->opcode == TWHEEL_OP_REARM) {
		op->time = random_time();
		op->flags |= ABS;
		if (has_whole_ops(self) && !random_below(4))
			op->limit = random_below(4);
		if (has_whole_ops(self) && !random_below(4))
			op->slack = random_magnitude(50);
	}
	if (!random_below(16))
		op->flags ^= 1U << (5 + random_below(27));
}

TEST_F_TIMEOUT(submit, each_result_is_that_of_the_ioctl, 90)
{
	static struct twheel_op ops[OPS];
	static __u64 handles[OPS], twins[OPS];
	struct twheel_timer_query query, twin;
	size_t i, n, timers = 0, round, which, failed = 0;
	int ret;

	for (round = 0; round < 1500; round++) {
		n = 1 + random_below(20);
		memset(ops, 0, n * sizeof(*ops));
		for (i = 0; i < n; i++) {
			which = ~0UL;
			if (random_below(2))
				random_add(self, &ops[i]);
			else
				random_rearm_or_cancel(self, &ops[i], &which, timers);
			if (which != ~0UL)
				ops[i].handle = handles[which];
			put_op(self, i, &ops[i]);
			if (which != ~0UL)
				ops[i].handle = twins[which];
		}
		ASSERT_EQ(n, submit_ops(self, n, 0));
		for (i = 0; i < n; i++) {
			ret = run_by_ioctl(self->twin, &ops[i]);
			failed += ret < 0;
			ASSERT_EQ(ret, op_at(self, i)->result)
				TH_LOG("opcode %u flags %x time %llu limit %u", ops[i].opcode,
				       ops[i].flags, ops[i].time, ops[i].limit);
			if (ret >= 0 && ops[i].opcode == TWHEEL_OP_ADD && timers < OPS) {
				handles[timers] = op_at(self, i)->handle;
				twins[timers++] = ops[i].handle;
			}
		}
	}
	printf("# %zu timers, %zu operations refused\n", timers, failed);
	EXPECT_LT(0, failed);
	EXPECT_EQ(wh_nr_timers(self->twin), wh_nr_timers(self->fd));
	for (i = 0; i < timers; i++) {
		ret = wh_query(self->twin, twins[i], &twin);
		ASSERT_EQ(ret, wh_query(self->fd, handles[i], &query));
		if (ret)
			continue;
		/* Idle timeouts and lifetimes count from the call. */
		if (!twin.limit)
			EXPECT_EQ(twin.deadline, query.deadline);
		EXPECT_EQ(twin.user_data, query.user_data);
		EXPECT_EQ(twin.state, query.state);
		EXPECT_EQ(twin.key, query.key);
		EXPECT_EQ(twin.period, query.period);
		EXPECT_EQ(twin.limit, query.limit);
	}
}

/* Checks that these operations have not been done. */
static void expect_untouched(struct __test_metadata *_metadata, FIXTURE_DATA(submit) * self,
			     size_t from, size_t to)
{
	for (; from < to; from++)
		ASSERT_EQ(UNTOUCHED, op_at(self, from)->result) TH_LOG("operation %zu", from);
}

TEST_F(submit, a_bad_one_stops_the_others_if_asked_to)
{
	enum { N = 100 };
	size_t bad, i;

	for (bad = 0; bad < N; bad += 11) {
		for (i = 0; i < N; i++)
			put_add(self, i, i == bad ? TWHEEL_TIME_MAX + 1 : HOUR, i);
		ASSERT_EQ(bad + 1, submit_ops(self, N, STOP));
		EXPECT_EQ(-EINVAL, op_at(self, bad)->result);
		EXPECT_EQ(0, op_at(self, bad)->handle);
		expect_untouched(_metadata, self, bad + 1, N);
		EXPECT_EQ(bad, wh_nr_timers(self->fd));
		for (i = 0; i < bad; i++) {
			ASSERT_EQ(0, op_at(self, i)->result);
			ASSERT_EQ(TWHEEL_WAS_PENDING, wh_cancel(self->fd, op_at(self, i)->handle));
		}

		/* A verdict is not a failure. */
		ASSERT_EQ(N, submit_ops(self, N, 0));
		EXPECT_EQ(-EINVAL, op_at(self, bad)->result);
		EXPECT_EQ(N - 1, wh_nr_timers(self->fd));
		for (i = 0; i < N; i++)
			put_rearm(self, i, op_at(self, i == bad ? !bad : i)->handle, 0);
		ASSERT_EQ(N, submit_ops(self, N, STOP));
		ASSERT_EQ(true, wh_wait_events(self->fd, N - 1));
		for (i = 0; i < N; i++)
			put_rearm(self, i, op_at(self, i)->handle, 2 * HOUR);
		ASSERT_EQ(N, submit_ops(self, N, STOP));
		EXPECT_EQ(0, wh_nr_events(self->fd));
		EXPECT_EQ(TWHEEL_WAS_EXPIRED, op_at(self, N / 2)->result);
		for (i = 0; i < N; i++)
			if (i != bad)
				ASSERT_EQ(TWHEEL_WAS_PENDING,
					  wh_cancel(self->fd, op_at(self, i)->handle));
	}
}

TEST_F(submit, fields_that_an_operation_does_not_have)
{
	const struct twheel_op cancels[] = {
		{ .time = 1 }, { .user_data = 1 }, { .clock = 1 }, { .key = 1 }, { .period = 1 },
		{ .slack = 1 }, { .spread = 1 }, { .idle = 1 }, { .lifetime = 1 }, { .touch = 1 },
		{ .limit = 1 },
	};
	const struct twheel_op rearms[] = {
		{ .user_data = 1 }, { .clock = 1 }, { .key = 1 }, { .period = 1 }, { .idle = 1 },
		{ .lifetime = 1 }, { .touch = 1 },
	};
	size_t i, seen = has_whole_ops(self) ? 99 : 3;
	struct twheel_op op;
	__u64 handle;

	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handle));
	for (i = 0; i < ARRAY_SIZE(cancels) && i < seen; i++) {
		op = cancels[i];
		op.opcode = TWHEEL_OP_CANCEL;
		op.handle = handle;
		put_op(self, 0, &op);
		ASSERT_EQ(1, submit_ops(self, 1, 0));
		EXPECT_EQ(-EINVAL, op_at(self, 0)->result) TH_LOG("cancel, field %zu", i);
	}
	for (i = 0; i < ARRAY_SIZE(rearms) && i < seen - 1; i++) {
		op = rearms[i];
		op.opcode = TWHEEL_OP_REARM;
		op.handle = handle;
		op.time = HOUR;
		put_op(self, 0, &op);
		ASSERT_EQ(1, submit_ops(self, 1, 0));
		EXPECT_EQ(-EINVAL, op_at(self, 0)->result) TH_LOG("re-arm, field %zu", i);
	}
	EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handle));
	if (has_whole_ops(self)) {
		put_add(self, 0, HOUR, 1);
		op_at(self, 0)->limit = 1;
		ASSERT_EQ(1, submit_ops(self, 1, 0));
		EXPECT_EQ(-EINVAL, op_at(self, 0)->result);
	}
	put_add(self, 0, HOUR, 1);
	op_at(self, 0)->opcode = 3;
	put_add(self, 1, HOUR, 1);
	op_at(self, 1)->opcode = ~0U;
	ASSERT_EQ(2, submit_ops(self, 2, 0));
	EXPECT_EQ(-EOPNOTSUPP, op_at(self, 0)->result);
	EXPECT_EQ(-EOPNOTSUPP, op_at(self, 1)->result);
	EXPECT_EQ(1, wh_nr_timers(self->fd));
}

TEST_F(submit, operations_longer_than_the_kernel_knows)
{
	const size_t known = sizeof(struct twheel_op);
	size_t byte;

	if (self->size <= known) {
		/* What follows is another operation, not a tail. */
		put_add(self, 0, HOUR, 1);
		memset(op_at(self, 1), 0xff, self->size);
		ASSERT_EQ(1, submit_ops(self, 1, 0));
		EXPECT_EQ(0, op_at(self, 0)->result);
		return;
	}
	for (byte = known; byte < self->size; byte++) {
		put_add(self, 0, HOUR, 1);
		put_add(self, 1, HOUR, 1);
		put_add(self, 2, HOUR, 1);
		((unsigned char *)op_at(self, 1))[byte] = 1;
		ASSERT_EQ(3, submit_ops(self, 3, 0));
		EXPECT_EQ(0, op_at(self, 0)->result);
		EXPECT_EQ(-E2BIG, op_at(self, 1)->result) TH_LOG("byte %zu", byte);
		EXPECT_EQ(0, op_at(self, 2)->result);
		/* The kernel does not write the tail. */
		EXPECT_EQ(1, ((unsigned char *)op_at(self, 1))[byte]);
	}
	EXPECT_EQ(2 * (self->size - known), wh_nr_timers(self->fd));
}

/* In order: each operation sees what the previous ones have done. */
TEST_F(submit, one_after_the_other)
{
	size_t i;

	if (!has_whole_ops(self))
		return;
	for (i = 0; i < 2; i++) {
		put_add(self, i, (i + 1) * HOUR, i);
		op_at(self, i)->flags = TWHEEL_KEYED;
		op_at(self, i)->key = 5;
	}
	put_rearm(self, 2, 5, HOUR);
	put_cancel(self, 3, 5);
	put_cancel(self, 4, 5);
	for (i = 2; i < 5; i++)
		op_at(self, i)->flags = TWHEEL_BY_KEY;
	ASSERT_EQ(5, submit_ops(self, 5, 0));
	EXPECT_EQ(TWHEEL_WAS_ABSENT, op_at(self, 0)->result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, op_at(self, 1)->result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, op_at(self, 2)->result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, op_at(self, 3)->result);
	EXPECT_EQ(-ENOENT, op_at(self, 4)->result);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

TEST_F(submit, none_and_very_many)
{
	EXPECT_EQ(0, submit_ops(self, 0, 0));
	EXPECT_EQ(0, wh_submit(self->fd, NULL, 0, self->size, STOP));
	EXPECT_EQ(-EFAULT, wh_submit(self->fd, NULL, 1, self->size, 0));
	EXPECT_EQ(-EFAULT, wh_submit(self->fd, NULL, 0x7fffffff, self->size, 0));
	EXPECT_EQ(-EFAULT, wh_submit(self->fd, (void *)~0UL, 1, self->size, 0));
	EXPECT_EQ(-EFAULT, wh_submit(self->fd, (void *)(1UL << 63), 1, self->size, 0));
	EXPECT_EQ(-EFAULT, wh_submit(self->fd, (void *)-PAGE, 0x7fffffff, self->size, 0));
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

/*
 * Places the array so that operation @n, the first to reach @page, starts @reach bytes before it.
 */
static void array_before_page(FIXTURE_DATA(submit) * self, unsigned char *page, size_t n,
			      size_t reach)
{
	self->ops = page - n * self->size - reach;
}

TEST_F(submit, memory_that_ends_midway)
{
	unsigned char *memory = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *page;
	size_t i, n = 6 * PAGE / self->size, reach;

	ASSERT_NE(MAP_FAILED, memory);
	page = memory + 8 * PAGE;
	free(self->ops);
	for (reach = 0; reach < self->size; reach += 8) {
		array_before_page(self, page, n, reach);
		for (i = 0; i < n; i++)
			put_add(self, i, HOUR, i);
		ASSERT_EQ(0, mprotect(page, PAGE, PROT_NONE));
		ASSERT_EQ(n, submit_ops(self, 2 * n, 0)) TH_LOG("%zu bytes reach in", reach);
		EXPECT_EQ(n, wh_nr_timers(self->fd));
		EXPECT_EQ(-EFAULT, wh_submit(self->fd, op_at(self, n), n, self->size, 0));
		EXPECT_EQ(n, wh_nr_timers(self->fd));
		for (i = 0; i < n; i++) {
			ASSERT_EQ(0, op_at(self, i)->result);
			put_cancel(self, i, op_at(self, i)->handle);
		}
		ASSERT_EQ(n, submit_ops(self, 0x7fffffff, 0));
		EXPECT_EQ(0, wh_nr_timers(self->fd));
		ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
	}
	munmap(memory, 9 * PAGE);
	self->ops = NULL;
}

/* An operation whose result cannot be written is not done, nor are those after it. */
TEST_F(submit, results_that_cannot_be_written)
{
	unsigned char *memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *page;
	struct twheel_timer_query before, query;
	__u64 handles[2];
	size_t i, n, reach;

	ASSERT_NE(MAP_FAILED, memory);
	page = memory + 2 * PAGE;
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 0, &handles[0]));
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handles[1]));
	ASSERT_EQ(0, wh_query(self->fd, handles[0], &before));
	free(self->ops);
	/* The bad page starts at operation @n, or within its first bytes. */
	for (n = 0; n < 40; n += 3) {
		for (reach = 0; reach < TWHEEL_OP_SIZE_MIN; reach += 8) {
			array_before_page(self, page, n, reach);
			memset(page, 0, PAGE);
			for (i = 0; i <= n; i++)
				put_add(self, i, HOUR, i);
			put_rearm(self, n + 1, handles[0], 2 * HOUR);
			put_cancel(self, n + 2, handles[1]);
			ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ));
			ASSERT_EQ(n ? (int)n : -EFAULT, submit_ops(self, n + 3, 0))
				TH_LOG("operation %zu, %zu bytes", n, reach);
			ASSERT_EQ(2 + n, wh_nr_timers(self->fd));
			EXPECT_EQ(-EFAULT, wh_submit(self->fd, op_at(self, n + 1), 2, self->size,
						     0));
			EXPECT_EQ(-EFAULT, wh_submit(self->fd, op_at(self, n + 2), 1, self->size,
						     STOP));
			ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
			expect_untouched(_metadata, self, n, n + 3);
			ASSERT_EQ(0, wh_query(self->fd, handles[0], &query));
			EXPECT_EQ(before.deadline, query.deadline);
			EXPECT_EQ(TWHEEL_STATE_PENDING, wh_state(self->fd, handles[1]));
			for (i = 0; i < n; i++)
				ASSERT_EQ(TWHEEL_WAS_PENDING,
					  wh_cancel(self->fd, op_at(self, i)->handle));
		}
	}
	munmap(memory, 3 * PAGE);
	self->ops = NULL;
}

TEST_F(submit, the_limit_of_timers)
{
	struct twheel_setup setup = { .max_timers = 10 };
	size_t i;

	ASSERT_EQ(0, wh_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	for (i = 0; i < 15; i++)
		put_add(self, i, HOUR, i);
	ASSERT_EQ(15, submit_ops(self, 15, 0));
	for (i = 0; i < 15; i++)
		EXPECT_EQ(i < 10 ? 0 : -ENOSPC, op_at(self, i)->result);
	put_cancel(self, 0, op_at(self, 0)->handle);
	put_add(self, 1, HOUR, 1);
	put_add(self, 2, HOUR, 1);
	put_add(self, 3, HOUR, 1);
	ASSERT_EQ(3, submit_ops(self, 4, STOP));
	EXPECT_EQ(TWHEEL_WAS_PENDING, op_at(self, 0)->result);
	EXPECT_EQ(0, op_at(self, 1)->result);
	EXPECT_EQ(-ENOSPC, op_at(self, 2)->result);
	expect_untouched(_metadata, self, 3, 4);
	EXPECT_EQ(10, wh_nr_timers(self->fd));
}

/* All in one call, three times over. */
TEST_F_TIMEOUT(submit, very_many_in_one_call, 120)
{
	size_t i, n = very_many();
	struct twheel_event event;

	self->ops = realloc(self->ops, n * self->size);
	ASSERT_NE(NULL, self->ops);
	for (i = 0; i < n; i++)
		put_add(self, i, HOUR + i, i);
	ASSERT_EQ(n, submit_ops(self, n, 0));
	EXPECT_EQ(n, wh_nr_timers(self->fd));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, op_at(self, i)->result);
		put_rearm(self, i, op_at(self, i)->handle, i & 1 ? 2 * HOUR : HOUR / 2);
	}
	ASSERT_EQ(n, submit_ops(self, n, STOP));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, op_at(self, i)->result);
		put_cancel(self, i, op_at(self, i)->handle);
	}
	ASSERT_EQ(n, submit_ops(self, n, STOP));
	for (i = 0; i < n; i++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, op_at(self, i)->result);
	EXPECT_EQ(0, wh_nr_timers(self->fd));
	EXPECT_EQ(-EAGAIN, wh_read(self->fd, &event, 1));
}

/* Added in one call, they all fire. */
TEST_F(submit, what_was_added_fires)
{
	static struct twheel_event events[OPS];
	__u64 seen[OPS / 64] = { };
	int i, n = 0, ret;

	for (i = 0; i < OPS; i++)
		put_add(self, i, random_below(200 * MSEC), i);
	ASSERT_EQ(OPS, submit_ops(self, OPS, 0));
	while (n < OPS) {
		ASSERT_EQ(true, wh_wait(self->fd)) TH_LOG("%d of %d fired", n, OPS);
		ret = wh_read(self->fd, events, OPS);
		ASSERT_LT(0, ret);
		for (i = 0; i < ret; i++) {
			EXPECT_EVENT_OK(&events[i]);
			ASSERT_GT(OPS, events[i].user_data);
			ASSERT_EQ(op_at(self, events[i].user_data)->handle, events[i].handle);
			ASSERT_EQ(0, seen[events[i].user_data / 64] &
				     1ULL << events[i].user_data % 64);
			seen[events[i].user_data / 64] |= 1ULL << events[i].user_data % 64;
		}
		n += ret;
	}
	EXPECT_EQ(0, wh_nr_timers(self->fd));
}

static volatile sig_atomic_t signals;

static void on_alarm(int signal)
{
	(void)signal;
	signals++;
}

/* A signal that does not kill the process does not interrupt the call. */
TEST_F(submit, signals)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { };
	size_t i, round;
	__u64 handle;

	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handle));
	for (i = 0; i < OPS; i++)
		put_rearm(self, i, handle, HOUR + i);
	signal(SIGALRM, on_alarm);
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	for (round = 0; round < 1000 && signals < 50; round++)
		ASSERT_EQ(OPS, submit_ops(self, OPS, 0));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	EXPECT_LT(0, signals);
}

/* A fatal signal ends the call: with the same operations over and over, it would take long. */
TEST_F_TIMEOUT(submit, a_fatal_signal, 120)
{
	enum { LENGTH = 120, REPEAT = 1000 };
	const size_t bytes = LENGTH * PAGE;
	int status, memfd = memfd_create("ops", MFD_CLOEXEC);
	unsigned char *map;
	size_t i, n = bytes / self->size;
	__u64 handle, begin, once, killed;
	pid_t child;

	/* The size of an operation divides this many pages. */
	ASSERT_EQ(0, bytes % self->size);
	ASSERT_GE(memfd, 0);
	ASSERT_EQ(0, ftruncate(memfd, bytes));
	map = mmap(NULL, REPEAT * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	for (i = 0; i < REPEAT; i++)
		ASSERT_NE(MAP_FAILED, mmap(map + i * bytes, bytes, PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_FIXED, memfd, 0));
	ASSERT_EQ(0, wh_add(self->fd, HOUR, 0, 1, &handle));
	free(self->ops);
	self->ops = map;
	for (i = 0; i < n; i++)
		put_rearm(self, i, handle, HOUR + i);
	ASSERT_EQ(n, submit_ops(self, n, 0));
	begin = now_ns();
	ASSERT_EQ(n, submit_ops(self, n, 0));
	once = now_ns() - begin;
	child = fork();
	ASSERT_GE(child, 0);
	if (!child)
		_exit(submit_ops(self, REPEAT * n, 0) == (int)(REPEAT * n));
	sleep_ns(20 * MSEC + 20 * once);
	EXPECT_EQ(0, waitpid(child, &status, WNOHANG));
	ASSERT_EQ(0, kill(child, SIGKILL));
	killed = now_ns();
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(true, WIFSIGNALED(status));
	printf("# %zu operations take %llu us; dead after %llu us\n", n, once / USEC,
	       (now_ns() - killed) / USEC);
	EXPECT_GT(REPEAT / 4 * once, now_ns() - killed);
	munmap(map, REPEAT * bytes);
	self->ops = NULL;
}

TEST_HARNESS_MAIN
