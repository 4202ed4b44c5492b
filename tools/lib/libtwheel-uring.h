/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: batches through io_uring
 *
 * Works with and without liburing: if you use it, include <liburing.h> first.
 */
#ifndef LIBTWHEEL_URING_H
#define LIBTWHEEL_URING_H

#include <stddef.h>
#include <linux/io_uring.h>
#include <libtwheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * twheel_uring_prep_submit - prepare an io_uring submission of a batch
 * @sqe:	the submission; every field is set, user_data and flags to 0
 * @fd:		the context
 * @batch:	the batch. Its operations must stay until the completion has arrived; the
 *		struct twheel_batch need not
 * @flags:	as for twheel_batch_submit(); flags that it would reject are rejected by the kernel
 *
 * The result of the completion is what twheel_batch_submit() would return. Only for the thread
 * that uses the batch and the io_uring.
 */
static __inline__ void twheel_uring_prep_submit(struct io_uring_sqe *sqe, int fd,
						const struct twheel_batch *batch,
						unsigned int flags)
{
	const size_t room = sizeof(*sqe) - offsetof(struct io_uring_sqe, cmd);
	struct twheel_submit submit;

	submit.ops = (uintptr_t)batch->ops;
	submit.nr_ops = batch->nr_ops;
	submit.op_size = sizeof(*batch->ops);
	/* Flags that do not fit the field have to be rejected, too. */
	submit.flags = (__u16)(flags > 0xffff ? 0xffff : flags);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = TWHEEL_URING_SUBMIT;
	/* A longer structure does not fit; none of its fields after these is set here. */
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), &submit,
	       sizeof(submit) < room ? sizeof(submit) : room);
}

#ifdef __cplusplus
}
#endif

#endif /* LIBTWHEEL_URING_H */
