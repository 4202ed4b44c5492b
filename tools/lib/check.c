// SPDX-License-Identifier: MIT
/*
 * Tests of libtwheel that need no device: errors, and the inline calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <libtwheel.h>
#include <libtwheel-uring.h>

#define EXPECT(condition) expect(condition, #condition, __LINE__)

static void expect(int holds, const char *condition, int line)
{
	if (!holds) {
		printf("check.c:%d: %s is false\n", line, condition);
		exit(1);
	}
}

#define FAILS(call, error) do {				\
	errno = 4711;					\
	EXPECT((call) == -(error) && errno == 4711);	\
} while (0)

/* Every call on a file that is not a context. */
static void check_errors(int fd, int error, int map_error)
{
	struct twheel_op op = { .opcode = TWHEEL_OP_CANCEL };
	struct twheel_batch batch = { .ops = &op, .nr_ops = 1, .room = 1 };
	struct twheel_timer_rearm rearm = { .handle = 1 };
	struct twheel_timer_add add = { .time = 1 };
	struct twheel_context_stats stats;
	struct twheel_timer_query query;
	struct twheel_setup setup = { 0 };
	struct twheel_touch *touch;
	struct twheel_ring *ring;
	struct twheel_info info;
	uint64_t handle = 42, cursor = 43;

	FAILS(twheel_info(fd, &info), error);
	FAILS(twheel_stats(fd, &stats), error);
	FAILS(twheel_setup(fd, &setup), error);
	FAILS(twheel_add(fd, 1, 0, 2, &handle), error);
	FAILS(twheel_rearm(fd, 1, 2, 0), error);
	FAILS(twheel_active(fd, 1), error);
	FAILS(twheel_cancel(fd, 1), error);
	FAILS(twheel_query(fd, 1, &query), error);
	FAILS(twheel_add_key(fd, 1, 2, 0, 3), error);
	FAILS(twheel_rearm_key(fd, 1, 2, 0), error);
	FAILS(twheel_active_key(fd, 1), error);
	FAILS(twheel_cancel_key(fd, 1), error);
	FAILS(twheel_query_key(fd, 1, &query), error);
	FAILS(twheel_timer_add(fd, &add), error);
	FAILS(twheel_watch(fd, 0, TWHEEL_IDLE_MIN, 0, 1, &handle), error);
	FAILS(twheel_watch(fd, 0, TWHEEL_IDLE_MIN, TWHEEL_KEYED, 1, &handle), EINVAL);
	FAILS(twheel_watch(fd, 0, TWHEEL_IDLE_MIN, TWHEEL_TIME_ABS, 1, &handle), EINVAL);
	FAILS(twheel_timer_rearm(fd, &rearm), error);
	FAILS(twheel_drain(fd, &query, 1, &cursor), error);
	FAILS(twheel_batch_submit(fd, &batch, 0), error);
	FAILS(twheel_batch_submit(fd, &batch, 0x10000), EOPNOTSUPP);
	FAILS(twheel_ring_map(fd, 4096, &ring), map_error);
	FAILS(twheel_touch_map(fd, 4096, &touch), map_error);
	EXPECT(handle == 42 && cursor == 43);
}

/* Sizes that no structure has, or that would be truncated. */
static void check_sizes(int fd)
{
	struct twheel_timer_rearm rearm = { .handle = 1 };
	struct twheel_op op = { .opcode = TWHEEL_OP_CANCEL };
	struct twheel_timer_add add = { .time = 1 };
	struct twheel_context_stats stats;
	struct twheel_timer_query query;
	struct twheel_setup setup = { 0 };
	struct twheel_event event;
	struct twheel_info info;
	uint64_t cursor = 43;

	FAILS(twheel_info_sized(fd, &info, 0x4000 + sizeof(info)), EINVAL);
	FAILS(twheel_stats_sized(fd, &stats, 0x4000 + sizeof(stats)), EINVAL);
	FAILS(twheel_setup_sized(fd, &setup, 0x4000 + sizeof(setup)), EINVAL);
	FAILS(twheel_timer_add_sized(fd, &add, 0x4000 + sizeof(add)), EINVAL);
	FAILS(twheel_timer_rearm_sized(fd, &rearm, 0x4000 + sizeof(rearm)), EINVAL);
	FAILS(twheel_query_sized(fd, 1, 0, &query, TWHEEL_RECORD_SIZE_MIN - 8), EINVAL);
	FAILS(twheel_query_sized(fd, 1, 0, &query, SIZE_MAX), EINVAL);
	FAILS(twheel_drain_sized(fd, &query, 1, &cursor, 0x10000 + sizeof(query)), EINVAL);
	FAILS(twheel_submit_sized(fd, &op, 1, 0, 0x10000 + sizeof(op)), EINVAL);
	FAILS(twheel_read_sized(fd, &event, 1, sizeof(event) - 8), EINVAL);
	FAILS(twheel_read_sized(fd, &event, 1, 0x4000 + sizeof(event)), EINVAL);
}

static void check_batch(void)
{
	struct twheel_op ops[4], *op;
	struct twheel_batch batch;

	memset(ops, 0xa5, sizeof(ops));
	twheel_batch_init(&batch, ops, 3);
	op = twheel_batch_add(&batch, 1, TWHEEL_TIME_ABS, 2);
	EXPECT(op == &ops[0] && op->opcode == TWHEEL_OP_ADD && op->time == 1 &&
	       op->flags == TWHEEL_TIME_ABS && op->user_data == 2 &&
	       op->clock == CLOCK_MONOTONIC && !op->handle && !op->key && !op->limit);
	op = twheel_batch_rearm(&batch, 3, 4, TWHEEL_BY_KEY);
	EXPECT(op == &ops[1] && op->opcode == TWHEEL_OP_REARM && op->handle == 3 &&
	       op->time == 4 && op->flags == TWHEEL_BY_KEY && !op->user_data && !op->limit);
	op = twheel_batch_cancel(&batch, 5, 0);
	EXPECT(op == &ops[2] && op->opcode == TWHEEL_OP_CANCEL && op->handle == 5 &&
	       !op->time && !op->flags && !op->limit);
	EXPECT(batch.nr_ops == 3);
	EXPECT(!twheel_batch_next(&batch) && !twheel_batch_add(&batch, 1, 0, 0) &&
	       !twheel_batch_rearm(&batch, 1, 0, 0) && !twheel_batch_cancel(&batch, 1, 0));
	EXPECT(batch.nr_ops == 3 && ops[3].handle == 0xa5a5a5a5a5a5a5a5ULL);
	twheel_batch_clear(&batch);
	EXPECT(twheel_batch_next(&batch) == &ops[0] && !ops[0].time);
}

static void check_uring(void)
{
	struct twheel_op ops[2];
	struct twheel_batch batch = { .ops = ops, .nr_ops = 2, .room = 2 };
	struct twheel_submit submit;
	struct io_uring_sqe sqe;

	memset(&sqe, 0xa5, sizeof(sqe));
	twheel_uring_prep_submit(&sqe, 7, &batch, TWHEEL_SUBMIT_STOP);
	memcpy(&submit, (char *)&sqe + 48, sizeof(submit));
	EXPECT(sqe.opcode == IORING_OP_URING_CMD && sqe.fd == 7 && !sqe.user_data &&
	       sqe.cmd_op == TWHEEL_URING_SUBMIT && !sqe.flags);
	EXPECT(submit.ops == (uintptr_t)ops && submit.nr_ops == 2 &&
	       submit.op_size == sizeof(ops[0]) && submit.flags == TWHEEL_SUBMIT_STOP);
	/* Flags that do not fit are not truncated to valid ones: no kernel knows all of 0xffff. */
	twheel_uring_prep_submit(&sqe, 7, &batch, 0x10000 | TWHEEL_SUBMIT_STOP);
	memcpy(&submit, (char *)&sqe + 48, sizeof(submit));
	EXPECT(submit.flags == 0xffff);
}

/* Plays the kernel, as the header describes it, for a ring of eight whose counters wrap. */
static void check_ring(void)
{
	enum { ENTRIES = 8, LAST = 1000 };
	struct twheel_ring *ring = calloc(1, sizeof(*ring) +
					     ENTRIES * sizeof(struct twheel_event));
	const struct twheel_event *events;
	unsigned int i, n, take, written = 0, taken = 0;

	ring->mask = ENTRIES - 1;
	ring->head = -LAST / 2;
	ring->tail = ring->head;
	EXPECT(twheel_ring_peek(ring, &events) == 0);
	while (taken < LAST) {
		for (i = rand() % (ENTRIES + 1); i && written - taken < ENTRIES; i--)
			ring->events[ring->head++ & ring->mask].seq = written++;
		n = twheel_ring_peek(ring, &events);
		EXPECT(n <= written - taken && !n == (written == taken));
		EXPECT(events + n <= ring->events + ENTRIES);
		take = n ? rand() % n + 1 : 0;
		for (i = 0; i < take; i++)
			EXPECT(events[i].seq == taken++);
		twheel_ring_advance(ring, take);
		EXPECT(ring->head - ring->tail == written - taken);
	}
	EXPECT(!twheel_ring_waiting(ring));
	ring->flags = TWHEEL_RING_WAITING;
	EXPECT(twheel_ring_waiting(ring));
	free(ring);
}

static void check_touch(void)
{
	struct twheel_touch *touch = calloc(1, sizeof(*touch) + 2 * sizeof(__u64));

	touch->now = 0x123456789abcdef0;
	twheel_touch(touch, 1);
	EXPECT(touch->words[1] == touch->now && !touch->words[0]);
	free(touch);
}

int main(void)
{
	struct twheel_event event;
	int null = open("/dev/null", O_RDWR), ends[2];

	EXPECT(twheel_version() == LIBTWHEEL_VERSION);
	FAILS(twheel_open(O_APPEND), EINVAL);
	check_errors(-1, EBADF, EBADF);
	check_errors(null, ENOTTY, ENODEV);
	check_sizes(null);
	FAILS(twheel_read(-1, &event, 1), EBADF);
	FAILS(twheel_wait(-1, 0), EBADF);
	FAILS(twheel_ring_map(null, 0, NULL), EINVAL);
	if (pipe(ends))
		return 1;
	EXPECT(twheel_wait(ends[0], 1) == 0);
	EXPECT(write(ends[1], "", 1) == 1 && twheel_wait(ends[0], -1) == 1);
	close(ends[0]);
	FAILS(twheel_wait(ends[0], -1), EBADF);
	check_batch();
	check_uring();
	check_ring();
	check_touch();
	return 0;
}
