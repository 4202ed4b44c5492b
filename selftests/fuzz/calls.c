// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: the ways to submit an array of operations
 */
#include <liburing.h>

#include "fuzz.h"

/* Makes an ioctl, whatever it is, such that it cannot harm the caller. */
int call_ioctl(int fd, unsigned int cmd, void *arg)
{
	add_count(&fuzz->calls, 1);
	return wh_ioctl(fd, cmd, arg);
}

static int single_add(int fd, struct twheel_op *op)
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
	int ret = wh_add_timer(fd, &add);

	if (ret >= 0)
		op->handle = add.handle;
	return ret;
}

/* Does an operation with its own ioctl, as far as that can express it. */
int call_single(int fd, struct twheel_op *op)
{
	const struct twheel_timer_rearm rearm = {
		.handle	= op->handle,
		.time	= op->time,
		.flags	= op->flags,
		.limit	= op->limit,
		.slack	= op->slack,
		.spread	= op->spread,
	};

	add_count(&fuzz->calls, 1);
	if (op->opcode == TWHEEL_OP_ADD)
		op->result = single_add(fd, op);
	else if (op->opcode == TWHEEL_OP_CANCEL)
		op->result = wh_cancel_flags(fd, op->handle, op->flags);
	else
		op->result = wh_rearm_timer(fd, &rearm);
	return op->result;
}

static void pack_ops(void *to, const struct twheel_op *ops, unsigned int nr, unsigned int size)
{
	unsigned int i, known = size < sizeof(*ops) ? size : sizeof(*ops);

	memset(to, 0, (size_t)nr * size);
	for (i = 0; i < nr; i++)
		memcpy((char *)to + (size_t)i * size, &ops[i], known);
}

/* Takes what the kernel may have written, and checks that it has written nothing else. */
static int unpack_ops(struct twheel_op *ops, void *from, unsigned int nr, unsigned int size,
		      int done)
{
	unsigned int i, known = size < sizeof(*ops) ? size : sizeof(*ops);
	struct twheel_op told;

	for (i = 0; i < nr; i++) {
		memcpy(&told, (char *)from + (size_t)i * size, known);
		if ((int)i < done) {
			ops[i].result = told.result;
			if (ops[i].opcode == TWHEEL_OP_ADD && told.result >= 0)
				ops[i].handle = told.handle;
		}
		if (memcmp(&told, &ops[i], known))
			return -EPROTO;
	}
	return done;
}

/* TWHEEL_IOC_SUBMIT. Returns its result; the results and handles in @ops are set. */
int call_submit(int fd, struct twheel_op *ops, unsigned int nr, unsigned int size,
		unsigned int flags)
{
	__u64 array[nr * size / 8 + 1];
	int ret;

	pack_ops(array, ops, nr, size);
	add_count(&fuzz->calls, 1);
	ret = wh_submit(fd, array, nr, size, flags);
	return ret == -EPROTO ? ret : unpack_ops(ops, array, nr, size, ret);
}

/* Returns a ring for a thread, or NULL if this kernel has none. */
struct io_uring *call_uring_open(void)
{
	struct io_uring *ring = calloc(1, sizeof(*ring));

	if (ring && !io_uring_queue_init(4, ring, 0))
		return ring;
	free(ring);
	say_once("not here: io_uring");
	return NULL;
}

/* Waits for a completion. */
static int wait_completion(struct io_uring *ring, __u64 *user_data)
{
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe(ring, &cqe);
	} while (ret == -EINTR);
	if (ret)
		fuzz_fail("io_uring: no completion: %d", ret);
	ret = cqe->res;
	*user_data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

/* Submits an entry, and waits for its completion. */
static int submit_and_wait(struct io_uring *ring)
{
	__u64 unused;

	add_count(&fuzz->calls, 1);
	io_uring_submit(ring);
	return wait_completion(ring, &unused);
}

/* read() with io_uring, which waits a little although the file is open for non-blocking reads. */
int call_uring_read(struct io_uring *ring, int fd, void *to, size_t bytes)
{
	struct __kernel_timespec patience = { .tv_nsec = 20 * MSEC };
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	int i, got, ret = 0;
	__u64 which;

	add_count(&fuzz->calls, 1);
	io_uring_prep_read(sqe, fd, to, bytes, 0);
	sqe->flags = IOSQE_IO_LINK;
	sqe->user_data = 1;
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_link_timeout(sqe, &patience, 0);
	sqe->user_data = 2;
	io_uring_submit(ring);
	for (i = 0; i < 2; i++) {
		got = wait_completion(ring, &which);
		if (which == 1)
			ret = got;
	}
	return ret == -ECANCELED || ret == -EINTR ? -EAGAIN : ret;
}

/* Like call_submit(), with io_uring. With 2 in @flags, in a worker. */
int call_uring(struct io_uring *ring, int fd, struct twheel_op *ops, unsigned int nr,
	       unsigned int size, unsigned int flags)
{
	__u64 array[nr * size / 8 + 1];
	struct twheel_submit submit = {
		.ops		= (uintptr_t)array,
		.nr_ops		= nr,
		.op_size	= size,
		.flags		= flags & 1,
	};
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	pack_ops(array, ops, nr, size);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = TWHEEL_URING_SUBMIT;
	memcpy(sqe->cmd, &submit, sizeof(submit));
	sqe->flags = flags & 2 ? IOSQE_ASYNC : 0;
	return unpack_ops(ops, array, nr, size, submit_and_wait(ring));
}
