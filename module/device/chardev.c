// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the device
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <uapi/linux/twheel.h>
#include <uapi/linux/twheel_rules.h>

#include "chardev.h"
#include "context.h"
#include "deliver.h"
#include "lib/ioctl.h"
#include "lib/mapping.h"
#include "ops.h"
#include "pool.h"
#include "ring.h"
#include "rules/ioctl.h"
#include "submit.h"
#include "tcp/sk_state.h"
#include "touch.h"
#include "twheel.h"
#include "uring.h"

/* The most timers that fdinfo shows. */
#define MAX_SHOWN		1024

#define FEATURES	(TWHEEL_FEATURE_SUBMIT | TWHEEL_FEATURE_KEYS |		\
			 TWHEEL_FEATURE_PERIODIC | TWHEEL_FEATURE_CLOCKS |	\
			 TWHEEL_FEATURE_LIMITS | TWHEEL_FEATURE_RING |		\
			 TWHEEL_FEATURE_EVENT_KEYS |				\
			 (IS_ENABLED(CONFIG_IO_URING) ? TWHEEL_FEATURE_URING : 0))

static long run_info(const struct twheel_ioctl_call *call)
{
	struct twheel_context *ctx = call->file->private_data;
	struct twheel_info *info = call->arg;

	memset(info, 0, sizeof(*info));
	info->features = FEATURES;
	if (twheel_touch_available())
		info->features |= TWHEEL_FEATURE_TOUCH;
	if (twheel_watch_available())
		info->features |= TWHEEL_FEATURE_WATCH | TWHEEL_FEATURE_RULES;
	info->tick_ns = 1ULL << twheel_tick_shift();
	info->event_size = sizeof(struct twheel_event);
	spin_lock_bh(&ctx->lock);
	info->max_timers = twheel_max_timers(ctx);
	info->nr_timers = ctx->nr_timers;
	info->nr_events = ctx->nr_events;
	spin_unlock_bh(&ctx->lock);
	return twheel_ioctl_respond(call);
}

/* Runs one operation. Returns its result. */
static long run_single_op(const struct twheel_ioctl_call *call, struct twheel_op *op)
{
	twheel_ops_run(call->file->private_data, op, 1, false, false);
	return op->result;
}

static long run_add(const struct twheel_ioctl_call *call)
{
	struct twheel_timer_add *add = call->arg;
	struct twheel_op op = {
		.opcode		= TWHEEL_OP_ADD,
		.time		= add->time,
		.user_data	= add->user_data,
		.flags		= add->flags,
		.clock		= add->clock,
		.key		= add->key,
		.period		= add->period,
		.slack		= add->slack,
		.spread		= add->spread,
		.idle		= add->idle,
		.lifetime	= add->lifetime,
		.touch		= add->touch,
	};
	struct twheel_op undo = { .opcode = TWHEEL_OP_CANCEL };
	long ret;

	if (add->reserved)
		return -EINVAL;
	/* Is the handle writable? Checked before there is a timer to lose. */
	ret = twheel_ioctl_respond(call);
	if (ret)
		return ret;
	ret = run_single_op(call, &op);
	if (ret < 0)
		return ret;
	add->handle = op.handle;
	if (!twheel_ioctl_respond(call))
		return ret;
	/* A timer with a key can be found by that. Others may have found it, and moved it. */
	if (add->flags & TWHEEL_KEYED)
		return ret;
	undo.handle = op.handle;
	run_single_op(call, &undo);
	return -EFAULT;
}

static long run_cancel(const struct twheel_ioctl_call *call)
{
	const struct twheel_timer_cancel *cancel = call->arg;
	struct twheel_op op = {
		.opcode	= TWHEEL_OP_CANCEL,
		.handle	= cancel->handle,
		.flags	= cancel->flags,
	};

	if (cancel->reserved)
		return -EINVAL;
	return run_single_op(call, &op);
}

static long run_rearm(const struct twheel_ioctl_call *call)
{
	const struct twheel_timer_rearm *rearm = call->arg;
	struct twheel_op op = {
		.opcode	= TWHEEL_OP_REARM,
		.handle	= rearm->handle,
		.time	= rearm->time,
		.flags	= rearm->flags,
		.limit	= rearm->limit,
		.slack	= rearm->slack,
		.spread	= rearm->spread,
	};

	return run_single_op(call, &op);
}

static long run_query(const struct twheel_ioctl_call *call)
{
	long ret;

	ret = twheel_ops_query(call->file->private_data, call->arg);
	if (ret)
		return ret;
	return twheel_ioctl_respond(call);
}

static long run_submit(const struct twheel_ioctl_call *call)
{
	return twheel_submit(call->file->private_data, call->arg);
}

static long run_drain(const struct twheel_ioctl_call *call)
{
	long done;

	/* Is the cursor writable? */
	if (twheel_ioctl_respond(call))
		return -EFAULT;
	done = twheel_drain(call->file->private_data, call->arg);
	if (done >= 0 && twheel_ioctl_respond(call))
		return -EFAULT;
	return done;
}

static long run_stats(const struct twheel_ioctl_call *call)
{
	struct twheel_context *ctx = call->file->private_data;
	struct twheel_context_stats *stats = call->arg;
	u64 bytes = twheel_context_bytes(ctx);

	spin_lock_bh(&ctx->lock);
	*stats = ctx->stats;
	stats->nr_timers = ctx->nr_timers;
	stats->nr_events = ctx->nr_events;
	spin_unlock_bh(&ctx->lock);
	stats->bytes = bytes;
	return twheel_ioctl_respond(call);
}

static int check_setup(const struct twheel_setup *setup)
{
	if (setup->flags & ~TWHEEL_SETUP_EVENT_KEYS)
		return -EOPNOTSUPP;
	if (setup->reserved || (setup->ring_entries && setup->touch_words))
		return -EINVAL;
	return 0;
}

/* Sets up what is asked for. The caller holds the context's grow_lock. */
static int apply_setup(struct twheel_context *ctx, const struct twheel_setup *setup)
{
	bool event_keys = setup->flags & TWHEEL_SETUP_EVENT_KEYS;
	int ret = 0;

	if (setup->ring_entries) {
		ret = twheel_ring_create(ctx, setup->ring_entries, event_keys);
		if (!ret)
			twheel_deliver_to_ring(ctx);
	}
	if (setup->touch_words)
		ret = twheel_touch_create(ctx, setup->touch_words);
	if (ret)
		return ret;
	if (setup->max_timers)
		twheel_context_limit(ctx, setup->max_timers);
	if (event_keys) {
		spin_lock_bh(&ctx->lock);
		ctx->event_keys = true;
		spin_unlock_bh(&ctx->lock);
	}
	return 0;
}

static long run_setup(const struct twheel_ioctl_call *call)
{
	struct twheel_context *ctx = call->file->private_data;
	struct twheel_setup *setup = call->arg;
	long ret;

	ret = check_setup(setup);
	if (ret)
		return ret;
	if (twheel_ioctl_respond(call))
		return -EFAULT;
	if (mutex_lock_killable(&ctx->grow_lock))
		return -EINTR;
	ret = apply_setup(ctx, setup);
	setup->ring_bytes = twheel_mapping_bytes(twheel_ring_mapping(ctx));
	setup->touch_bytes = twheel_mapping_bytes(twheel_touch_mapping(ctx));
	mutex_unlock(&ctx->grow_lock);
	return ret ?: twheel_ioctl_respond(call);
}

static const struct twheel_ioctl ioctls[] = {
	TWHEEL_IOCTL(TWHEEL_IOC_INFO, struct twheel_info, reserved, run_info),
	TWHEEL_IOCTL(TWHEEL_IOC_TIMER_ADD, struct twheel_timer_add, clock, run_add),
	TWHEEL_IOCTL(TWHEEL_IOC_TIMER_CANCEL, struct twheel_timer_cancel, reserved, run_cancel),
	TWHEEL_IOCTL(TWHEEL_IOC_TIMER_REARM, struct twheel_timer_rearm, limit, run_rearm),
	TWHEEL_IOCTL(TWHEEL_IOC_TIMER_QUERY, struct twheel_timer_query, flags, run_query),
	TWHEEL_IOCTL(TWHEEL_IOC_SUBMIT, struct twheel_submit, flags, run_submit),
	TWHEEL_IOCTL(TWHEEL_IOC_DRAIN, struct twheel_drain, cursor, run_drain),
	TWHEEL_IOCTL(TWHEEL_IOC_STATS, struct twheel_context_stats, bytes, run_stats),
	TWHEEL_IOCTL(TWHEEL_IOC_SETUP, struct twheel_setup, touch_bytes, run_setup),
};

static long twheel_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	twheel_context_note_caller(file->private_data);
	if (_IOC_NR(cmd) >= _IOC_NR(TWHEEL_IOC_RULE_ADD))
		return twheel_rules_ioctl(file, cmd, user);
	return twheel_ioctl_run(ioctls, ARRAY_SIZE(ioctls), file, cmd, user);
}

static int twheel_open(struct inode *inode, struct file *file)
{
	struct twheel_context *ctx = twheel_context_create();

	if (!ctx)
		return -ENOMEM;
	file->private_data = ctx;
	/* A read() that finds no event does not wait if it must not. */
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int twheel_release(struct inode *inode, struct file *file)
{
	twheel_context_destroy(file->private_data);
	return 0;
}

static ssize_t twheel_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *file = iocb->ki_filp;
	bool nonblock = file->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT;

	twheel_context_note_caller(file->private_data);
	return twheel_deliver_read(file->private_data, to, nonblock);
}

static __poll_t twheel_poll(struct file *file, poll_table *wait)
{
	twheel_context_note_caller(file->private_data);
	return twheel_deliver_poll(file->private_data, file, wait);
}

static int twheel_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct twheel_context *ctx = file->private_data;

	twheel_context_note_caller(ctx);
	switch (vma->vm_pgoff << PAGE_SHIFT) {
	case TWHEEL_RING_OFFSET:
		return twheel_mapping_mmap(twheel_ring_mapping(ctx), vma);
	case TWHEEL_TOUCH_OFFSET:
		return twheel_mapping_mmap(twheel_touch_mapping(ctx), vma);
	default:
		return -EINVAL;
	}
}

static void show_timer(struct seq_file *m, const struct twheel_timer_query *timer)
{
	seq_printf(m, "twheel-timer:\t%016llx %s deadline:%llu clock:%u remaining:%llu period:%llu ",
		   timer->handle,
		   timer->state == TWHEEL_STATE_PENDING ? "pending" : "expired",
		   timer->deadline, timer->clock, timer->remaining, timer->period);
	if (timer->flags & TWHEEL_KEYED)
		seq_printf(m, "key:%llx ", timer->key);
	else
		seq_puts(m, "key:- ");
	seq_printf(m, "user-data:%llx\n", timer->user_data);
}

/* Shows one timer. Returns 1; 0 if none has been found yet, -ENOENT at the end. */
static int show_next_timer(struct twheel_context *ctx, struct seq_file *m, u64 *cursor)
{
	unsigned int budget = TWHEEL_LOCK_BATCH;
	struct twheel_utimer *ut;
	struct twheel_timer_query timer;

	spin_lock_bh(&ctx->lock);
	ut = twheel_utimer_next(ctx, cursor, &budget);
	if (!IS_ERR_OR_NULL(ut))
		twheel_utimer_describe(ut, &timer);
	spin_unlock_bh(&ctx->lock);
	if (IS_ERR_OR_NULL(ut))
		return PTR_ERR_OR_ZERO(ut);
	show_timer(m, &timer);
	return 1;
}

static void twheel_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct twheel_context *ctx = file->private_data;
	u64 bytes = twheel_context_bytes(ctx), nr_timers, nr_events, max, cursor = 0, shown = 0;
	int ret = 0;

	spin_lock_bh(&ctx->lock);
	nr_timers = ctx->nr_timers;
	nr_events = ctx->nr_events;
	max = twheel_max_timers(ctx);
	spin_unlock_bh(&ctx->lock);
	seq_printf(m, "twheel-timers:\t%llu\n", nr_timers);
	seq_printf(m, "twheel-max-timers:\t%llu\n", max);
	seq_printf(m, "twheel-events:\t%llu\n", nr_events);
	seq_printf(m, "twheel-bytes:\t%llu\n", bytes);
	seq_printf(m, "twheel-ring:\t%u\n", twheel_ring_entries(ctx));
	seq_printf(m, "twheel-touch:\t%u\n", twheel_touch_words(ctx));
	while (ret >= 0 && shown < MAX_SHOWN && !signal_pending(current)) {
		ret = show_next_timer(ctx, m, &cursor);
		shown += ret > 0;
		cond_resched();
	}
	if (nr_timers > shown)
		seq_printf(m, "twheel-timers-not-shown:\t%llu\n", nr_timers - shown);
}

static const struct file_operations twheel_fops = {
	.owner		= THIS_MODULE,
	.open		= twheel_open,
	.release	= twheel_release,
	.read_iter	= twheel_read_iter,
	.poll		= twheel_poll,
	.unlocked_ioctl	= twheel_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= twheel_mmap,
	.show_fdinfo	= twheel_show_fdinfo,
	.uring_cmd	= twheel_uring_cmd,
};

static struct miscdevice twheel_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "twheel",
	.fops	= &twheel_fops,
	.mode	= 0600,
};

/**
 * twheel_chardev_init - create /dev/twheel
 *
 * Return: 0, or an errno.
 */
int twheel_chardev_init(void)
{
	return misc_register(&twheel_device);
}

/**
 * twheel_chardev_exit - remove /dev/twheel, which is not open any more
 */
void twheel_chardev_exit(void)
{
	misc_deregister(&twheel_device);
}
