// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: arrays of operations, and draining a context's timers
 *
 * Operations are read, run and answered a batch at a time, so that the context is not locked for
 * long, and a call of any length needs no memory.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "context.h"
#include "lib/ioctl.h"
#include "ops.h"
#include "pool.h"
#include "submit.h"
#include "utimer.h"

/* Operations run, or timers drained, at a time. */
#define BATCH	16

#define MIN_SIZE_WORDS	(TWHEEL_OP_SIZE_MIN / sizeof(u64))

/*
 * Reads operations that have no more than their first 40 bytes. Returns how many are readable and
 * have a writable result.
 */
static unsigned int fetch_min_size(struct twheel_op *ops, void __user *from, unsigned int nr)
{
	u64 __user *word = from;
	unsigned int i = 0, k;
	u64 *to;

	if (!user_access_begin(from, nr * TWHEEL_OP_SIZE_MIN))
		return 0;
	while (i < nr) {
		to = (u64 *)&ops[i];
#pragma GCC unroll 5
		for (k = 0; k < MIN_SIZE_WORDS; k++)
			unsafe_get_user(to[k], &word[k], fault);
		/* Is the result writable? */
		unsafe_put_user(ops[i].result, &((struct twheel_op __user *)word)->result, fault);
		ops[i].result = 0;
		word += MIN_SIZE_WORDS;
		i++;
	}
fault:
	user_access_end();
	return i;
}

/*
 * Is the result of an operation writable? Checked before the operation takes effect. Returns 0, or
 * -EFAULT.
 */
static int check_result_writable(struct twheel_op __user *op)
{
	s32 result;

	return get_user(result, &op->result) ?: put_user(result, &op->result);
}

/*
 * As fetch_min_size(), for operations of any size. One whose unknown tail is not zero gets its
 * result here.
 */
static unsigned int fetch_any_size(struct twheel_op *ops, void __user *from, unsigned int nr,
				   unsigned int size)
{
	struct twheel_op __user *op = from;
	unsigned int i;
	int ret;

	for (i = 0; i < nr; i++) {
		ret = copy_struct_from_user(&ops[i], sizeof(*ops), op, size);
		if (ret == -EFAULT || check_result_writable(op))
			break;
		if (ret)
			ops[i].opcode = U32_MAX;
		ops[i].result = ret;
		op = (void __user *)op + size;
	}
	return i;
}

static unsigned int fetch_ops(struct twheel_op *ops, void __user *from, unsigned int nr,
			      unsigned int size)
{
	if (likely(size == TWHEEL_OP_SIZE_MIN))
		return fetch_min_size(ops, from, nr);
	return fetch_any_size(ops, from, nr, size);
}

/*
 * Writes the results, and the handles of adds. Returns how many could be written: all, unless their
 * memory has just gone away.
 */
static unsigned int put_results(const struct twheel_op *ops, void __user *to, unsigned int nr,
				unsigned int size)
{
	struct twheel_op __user *op = to;
	unsigned int i = 0;

	if (!user_write_access_begin(to, nr * size))
		return 0;
	while (i < nr) {
		if (ops[i].opcode == TWHEEL_OP_ADD && ops[i].result >= 0)
			unsafe_put_user(ops[i].handle, &op->handle, fault);
		unsafe_put_user(ops[i].result, &op->result, fault);
		op = (void __user *)op + size;
		i++;
	}
fault:
	user_write_access_end();
	return i;
}

/* Undoes an add whose handle nobody will know. A timer with a key can be found by that. */
static void undo_add(struct twheel_context *ctx, const struct twheel_op *op)
{
	struct twheel_utimer *ut;

	if (op->opcode != TWHEEL_OP_ADD || op->result < 0 || op->flags & TWHEEL_KEYED)
		return;
	spin_lock_bh(&ctx->lock);
	ut = twheel_utimer_lookup(ctx, op->handle);
	if (!IS_ERR(ut))
		twheel_utimer_cancel(ctx, ut);
	spin_unlock_bh(&ctx->lock);
}

/*
 * Runs up to BATCH operations. Returns how many have got their result; @failed says whether the
 * last one of these failed.
 */
static unsigned int submit_batch(struct twheel_context *ctx, struct twheel_op *ops,
				 void __user *user, unsigned int nr, unsigned int size,
				 bool stop, bool *failed)
{
	unsigned int done, answered, i;

	done = twheel_ops_run(ctx, ops, fetch_ops(ops, user, nr, size), stop,
			      size == TWHEEL_OP_SIZE_MIN);
	answered = put_results(ops, user, done, size);
	for (i = answered; i < done; i++)
		undo_add(ctx, &ops[i]);
	*failed = answered && ops[answered - 1].result < 0;
	return answered;
}

/**
 * twheel_submit - run an array of operations
 * @ctx:	the context
 * @submit:	what the program asks for
 *
 * Context: process; may sleep.
 * Return: how many operations have got their result; or
 * * %-EINVAL	- the size or the number of operations is out of range
 * * %-EOPNOTSUPP - an unknown flag
 * * %-EFAULT	- not even the first one is accessible
 * * %-EINTR	- the task is being killed, and nothing was done
 */
long twheel_submit(struct twheel_context *ctx, const struct twheel_submit *submit)
{
	void __user *user = u64_to_user_ptr(submit->ops);
	const u32 size = submit->op_size, nr = submit->nr_ops;
	const bool stop = submit->flags & TWHEEL_SUBMIT_STOP;
	/* If the operations have no more than 40 bytes, the rest stays 0. */
	struct twheel_op ops[BATCH] = {};
	u32 done = 0, n, answered;
	bool failed = false;

	if (submit->flags & ~TWHEEL_SUBMIT_STOP)
		return -EOPNOTSUPP;
	if (size < TWHEEL_OP_SIZE_MIN || size % 8 || size > PAGE_SIZE || nr > INT_MAX)
		return -EINVAL;
	while (done < nr && !(stop && failed)) {
		if (fatal_signal_pending(current))
			return done ?: -EINTR;
		n = min_t(u32, nr - done, BATCH);
		answered = submit_batch(ctx, ops, user + (size_t)done * size, n, size, stop,
					&failed);
		done += answered;
		if (answered < n && !(stop && failed))
			return done ?: -EFAULT;
		cond_resched();
	}
	return done;
}

/* Cancels up to @max timers, and fills in their records. */
static unsigned int drain_batch(struct twheel_context *ctx, u64 *cursor,
				struct twheel_timer_query *records, unsigned int max,
				bool *more)
{
	unsigned int n = 0, budget = TWHEEL_LOCK_BATCH;
	struct twheel_utimer *ut;

	spin_lock_bh(&ctx->lock);
	while (n < max) {
		ut = twheel_utimer_next(ctx, cursor, &budget);
		*more = !IS_ERR(ut);
		if (IS_ERR_OR_NULL(ut))
			break;
		twheel_utimer_describe(ut, &records[n++]);
		twheel_utimer_cancel(ctx, ut);
	}
	spin_unlock_bh(&ctx->lock);
	return n;
}

/* Copies records, of which the program knows @size bytes. */
static int copy_records(void __user *user, const struct twheel_timer_query *records,
			unsigned int n, unsigned int size)
{
	unsigned int i;

	for (i = 0; i < n; i++, user += size)
		if (twheel_copy_record(user, &records[i], sizeof(records[i]), size))
			return -EFAULT;
	return 0;
}

/**
 * twheel_drain - cancel timers of a context and hand them back
 * @ctx:	the context
 * @drain:	what the program asks for; its cursor is updated
 *
 * Context: process; may sleep.
 * Return: how many; or
 * * %-EINVAL	- the size or the number of records is out of range
 * * %-EOPNOTSUPP - an unknown flag
 * * %-EFAULT	- the records are not writable; nothing is cancelled, unless their memory has
 *		  just gone away
 * * %-EINTR	- the task is being killed, and nothing was done
 */
long twheel_drain(struct twheel_context *ctx, struct twheel_drain *drain)
{
	void __user *user = u64_to_user_ptr(drain->records);
	const u32 size = drain->record_size, nr = drain->nr_records;
	struct twheel_timer_query records[BATCH];
	u32 done = 0, n, max;
	bool more = true;

	if (drain->flags)
		return -EOPNOTSUPP;
	if (size < TWHEEL_RECORD_SIZE_MIN || size % 8 || size > PAGE_SIZE ||
	    !nr || nr > INT_MAX)
		return -EINVAL;
	while (done < nr && more) {
		if (fatal_signal_pending(current))
			return done ?: -EINTR;
		max = min_t(u32, nr - done, BATCH);
		/* Are the records writable? Checked before there is something to lose. */
		if (user && clear_user(user, max * size))
			return done ?: -EFAULT;
		n = drain_batch(ctx, &drain->cursor, records, max, &more);
		if (user && copy_records(user, records, n, size))
			return done ?: -EFAULT;
		user += user ? n * size : 0;
		done += n;
		cond_resched();
	}
	return done;
}
