/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: differences between kernel versions, from 6.1 on
 *
 * The code is written for the newest kernel. This file, and no other, provides what
 * older kernels lack.
 */
#ifndef _TWHEEL_LIB_COMPAT_H
#define _TWHEEL_LIB_COMPAT_H

#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/io_uring.h>
#include <linux/mm.h>
#include <linux/sched/isolation.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <linux/workqueue.h>

/* Since 6.8 there is a header for implementers of io_uring commands. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "twheel needs Linux 6.1 or newer"
#endif

#ifndef CONFIG_64BIT
#error "twheel needs a 64-bit kernel: times and locations are read and written without a lock"
#endif

/* 6.18 renamed it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define system_dfl_wq system_unbound_wq
#endif

/* Since 6.3 a function changes the flags of a mapping. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* Since 6.7 shrinkers are allocated. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#include <linux/shrinker.h>
#include <linux/slab.h>

static inline struct shrinker *shrinker_alloc(unsigned int flags, const char *name)
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (shrinker) {
		shrinker->flags = flags;
		shrinker->seeks = DEFAULT_SEEKS;
	}
	return shrinker;
}

/* If there is no memory for its name, the shrinker is never called; that does no other harm. */
static inline void shrinker_register(struct shrinker *shrinker)
{
	int __always_unused ret = register_shrinker(shrinker, "twheel");
}

static inline void shrinker_free(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(shrinker);
}
#endif

/* Since 6.18 per-CPU workqueues have a flag of their own. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define WQ_PERCPU	0
#endif

/* Since 6.13 one call sets up an hrtimer and its function. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/*
 * Is a CPU in an isolated partition of a cpuset, or isolated by isolcpus=, which these functions
 * do not distinguish? Since 6.8 modules can find out. Since 7.0 both are a kind of housekeeping,
 * with a mask that is replaced under RCU.
 */
#if !defined(CONFIG_CPUSETS) || LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define TWHEEL_CPUSET_PARTITIONS	false
static inline bool twheel_cpuset_isolated(unsigned int cpu)
{
	return false;
}
#elif LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define TWHEEL_CPUSET_PARTITIONS	true
static inline bool twheel_cpuset_isolated(unsigned int cpu)
{
	return cpuset_cpu_is_isolated(cpu);
}
#else
#define TWHEEL_CPUSET_PARTITIONS	true
static inline bool twheel_cpuset_isolated(unsigned int cpu)
{
	bool isolated;

	rcu_read_lock();
	isolated = !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN);
	rcu_read_unlock();
	return isolated;
}
#endif

/* 6.16 renamed from_timer(). */
#ifndef timer_container_of
#define timer_container_of	from_timer
#endif

/* The payload of an io_uring command. Since 6.5 the whole SQE is passed on. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define io_uring_cmd_area(ioucmd)	((ioucmd)->cmd)
#else
#define io_uring_cmd_area(ioucmd)	((const void *)(ioucmd)->sqe->cmd)
#endif

/* 6.18 dropped the second result, which only large completions have. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define io_uring_cmd_done(ioucmd, ret, issue_flags)			\
	io_uring_cmd_done(ioucmd, ret, 0, issue_flags)
#endif

#ifdef CONFIG_INET
#include <linux/bpf.h>
#include <net/tcp.h>

/* When the timer for retransmissions and window probes expires, in jiffies: moved, and renamed. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define tcp_timeout_expires(sk)	READ_ONCE(inet_csk(sk)->icsk_timeout)
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define tcp_timeout_expires(sk)	icsk_timeout(inet_csk(sk))
#endif

/* Since 6.15 the longest time between two of them can be set. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
static inline u32 tcp_rto_max(const struct sock *sk)
{
	return TCP_RTO_MAX;
}
#endif

/* Since 6.5 tcp_abort() can reset a socket that BPF has locked. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0) && defined(CONFIG_BPF_SYSCALL)

static inline void twheel_tcp_abort_locked(struct sock *sk, int err)
{
	struct bpf_run_ctx ctx, *old = bpf_set_run_ctx(&ctx);

	tcp_abort(sk, err);
	bpf_reset_run_ctx(old);
}

#else

/*
 * Otherwise tcp_abort() locks the socket itself. Unlocking it first would be wrong: tcp_abort()
 * would reset whatever connection the socket has by then. So this does what tcp_abort() does, built
 * from functions that modules can use.
 */

/* Does the peer reject unsigned segments? */
static inline bool twheel_tcp_is_signed(const struct sock *sk)
{
#ifdef CONFIG_TCP_MD5SIG
	if (rcu_access_pointer(tcp_sk(sk)->md5sig_info))
		return true;
#endif
#ifdef CONFIG_TCP_AO
	if (rcu_access_pointer(tcp_sk(sk)->ao_info))
		return true;
#endif
	return false;
}

/* Returns a sequence number that lies in the peer's window. */
static inline u32 twheel_tcp_reset_seq(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const u32 end = tcp_wnd_end(tp);

	/* Within the rounding error of window scaling. */
	if (tp->rx_opt.wscale_ok && tp->snd_nxt - end < 1U << tp->rx_opt.rcv_wscale)
		return tp->snd_nxt;
	return before(end, tp->snd_nxt) ? end : tp->snd_nxt;
}

/* Without memory no reset is sent: the peer gets one in response to its next segment. */
static inline void twheel_tcp_send_reset(struct sock *sk)
{
	struct sk_buff *skb = alloc_skb(MAX_TCP_HEADER, GFP_ATOMIC | __GFP_NOWARN);
	struct tcphdr *th;

	TCP_INC_STATS(sock_net(sk), TCP_MIB_OUTRSTS);
	if (!skb)
		return;
	skb_reserve(skb, MAX_TCP_HEADER);
	th = skb_push(skb, sizeof(*th));
	skb_reset_transport_header(skb);
	*th = (struct tcphdr) {
		.source		= inet_sk(sk)->inet_sport,
		.dest		= inet_sk(sk)->inet_dport,
		.seq		= htonl(twheel_tcp_reset_seq(sk)),
		.ack_seq	= htonl(tcp_sk(sk)->rcv_nxt),
		.doff		= sizeof(*th) / 4,
		.rst		= 1,
		.ack		= 1,
	};
	skb->ip_summed = CHECKSUM_PARTIAL;
	inet_csk(sk)->icsk_af_ops->send_check(sk, skb);
	inet_csk(sk)->icsk_af_ops->queue_xmit(sk, skb, &inet_sk(sk)->cork.fl);
}

static inline void twheel_tcp_abort_locked(struct sock *sk, int err)
{
	const bool is_signed = twheel_tcp_is_signed(sk);

	/* The FIN is signed. */
	if (is_signed)
		sk->sk_prot->shutdown(sk, SEND_SHUTDOWN);
	local_bh_disable();
	bh_lock_sock(sk);
	if (sk->sk_state != TCP_CLOSE && !sock_flag(sk, SOCK_DEAD)) {
		WRITE_ONCE(sk->sk_err, err);
		/* Pairs with the smp_rmb() in tcp_poll(). */
		smp_wmb();
		sk_error_report(sk);
		if (!is_signed)
			twheel_tcp_send_reset(sk);
		tcp_done(sk);
	}
	bh_unlock_sock(sk);
	local_bh_enable();
}

#endif
#endif /* CONFIG_INET */

/*
 * Since 7.x the caller has to keep the CPU online. From 6.7 until then, work_on_cpu_safe() is a
 * macro.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0) && defined(CONFIG_SMP) && \
	!defined(work_on_cpu_safe)
static inline long work_on_cpu_safe(int cpu, long (*fn)(void *arg), void *arg)
{
	long ret = -ENODEV;

	cpus_read_lock();
	if (cpu_online(cpu))
		ret = work_on_cpu(cpu, fn, arg);
	cpus_read_unlock();
	return ret;
}
#endif

/* Since 7.0 functions set the flags of a device. The tests need this one. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define dev_set_offline(dev)	((dev)->offline = true)
#endif

#endif /* _TWHEEL_LIB_COMPAT_H */
