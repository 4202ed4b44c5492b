/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: what differs between kernels, from 6.1 on
 *
 * The code is written for the newest kernel. What an older one lacks is made up
 * for here, and nowhere else.
 */
#ifndef _TWHEEL_COMPAT_H
#define _TWHEEL_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/io_uring.h>
#include <linux/mm.h>
#include <linux/timer.h>
#include <linux/version.h>

/* 6.8 has a header for those who implement commands of io_uring. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "twheel needs Linux 6.1 or newer"
#endif

/* 6.3 has the flags of a mapping changed by a function. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* 6.13 sets up an hrtimer and its function in one call. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* 6.16 renamed from_timer(). */
#ifndef timer_container_of
#define timer_container_of	from_timer
#endif

/* What a command of io_uring brings along. 6.5 hands on the whole submission. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define io_uring_cmd_area(ioucmd)	((ioucmd)->cmd)
#else
#define io_uring_cmd_area(ioucmd)	((const void *)(ioucmd)->sqe->cmd)
#endif

/* 6.18 has no second result, which only large completions have. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define io_uring_cmd_done(ioucmd, ret, issue_flags)			\
	io_uring_cmd_done(ioucmd, ret, 0, issue_flags)
#endif

/* 6.5 has sockets reset that BPF has locked. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0) && defined(CONFIG_BPF_SYSCALL)
#include <linux/bpf.h>
#include <net/tcp.h>

#define TWHEEL_TCP_ABORT_LOCKED

static inline void twheel_tcp_abort_locked(struct sock *sk, int err)
{
	struct bpf_run_ctx ctx, *old = bpf_set_run_ctx(&ctx);

	tcp_abort(sk, err);
	bpf_reset_run_ctx(old);
}
#endif

#endif /* _TWHEEL_COMPAT_H */
