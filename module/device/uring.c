// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: io_uring: arrays of operations by IORING_OP_URING_CMD
 *
 * A command runs when it is issued: like an ioctl it may wait for memory, for pages of the
 * program and, to watch a socket, for the socket's lock, but for no other event. So no command is
 * ever pending, there is nothing to cancel when an io_uring is closed, and a command holds the
 * file only while it runs. A long one does not run where others of the same io_uring would wait
 * for it: there it fails with -EAGAIN, and io_uring hands it to a worker.
 */
#include <linux/build_bug.h>
#include <linux/fs.h>

#include "context.h"
#include "lib/compat.h"
#include "submit.h"
#include "uring.h"

/* The command area of a submission queue entry of the usual size. */
static_assert(sizeof(struct twheel_submit) <= 16);

/* The longest array that runs where io_uring must not wait. */
#define INLINE_MAX	1024

/**
 * twheel_uring_cmd - run a command of io_uring
 * @cmd:	the command
 * @issue_flags: how it was issued
 *
 * Context: Process context, that of the program, of a worker or of the thread that polls for
 * submissions, with the program's memory.
 * Return: -EIOCBQUEUED, as the command has been completed; or
 * * %-EAGAIN	- it is too long to run here
 * * %-EOPNOTSUPP - there is no such command
 */
int twheel_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct twheel_submit *area = io_uring_cmd_area(cmd);
	/* The program can write there at any time: what is checked is what is used. */
	struct twheel_submit submit = {
		.ops		= READ_ONCE(area->ops),
		.nr_ops		= READ_ONCE(area->nr_ops),
		.op_size	= READ_ONCE(area->op_size),
		.flags		= READ_ONCE(area->flags),
	};
	long ret;

	if (cmd->cmd_op != TWHEEL_URING_SUBMIT)
		return -EOPNOTSUPP;
	if (issue_flags & IO_URING_F_NONBLOCK && submit.nr_ops > INLINE_MAX)
		return -EAGAIN;
	twheel_context_note_caller(cmd->file->private_data);
	ret = twheel_submit(cmd->file->private_data, &submit);
	/* Not returned: 6.1 never completes a command that returns more than 0 to a worker. */
	io_uring_cmd_done(cmd, ret, issue_flags);
	return -EIOCBQUEUED;
}
