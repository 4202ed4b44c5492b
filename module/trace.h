/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: tracepoints; Documentation/tracing.rst explains them to users
 *
 * Their names begin with "twheel_" because a tracepoint's name is global to the kernel,
 * which has a timer_init of its own. Times are nanoseconds of CLOCK_MONOTONIC. A timer
 * is read only where nobody else can free it: on its CPU with softirqs kept off, or
 * before it is given away. The events that come later have its address, and no more.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM twheel

#if !defined(_TWHEEL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TWHEEL_TRACE_H

#include <linux/ktime.h>
#include <linux/tracepoint.h>
#include <net/inet_sock.h>

#include "core/cpu_base.h"
#include "tcp/watch.h"

struct twheel_limits;

/**
 * twheel_timer_init - a timer is made ready to be armed
 * @timer:	the timer
 */
TRACE_EVENT(twheel_timer_init,
	    TP_PROTO(const struct twheel_timer *timer),
	    TP_ARGS(timer),
	    TP_STRUCT__entry(__field(const void *, timer)
			     __field(void *, function)),
	    TP_fast_assign(__entry->timer = timer;
			   __entry->function = timer->function;),
	    TP_printk("timer=%p function=%ps", __entry->timer, __entry->function));

/* A timer has been armed. */
DECLARE_EVENT_CLASS(twheel_timer_arm,
		    TP_PROTO(const struct twheel_base *base, const struct twheel_timer *timer,
			     u64 slot, bool remote),
		    TP_ARGS(base, timer, slot, remote),
		    TP_STRUCT__entry(__field(const void *, timer)
				     __field(void *, function)
				     __field(u64, now)
				     __field(u64, deadline)
				     __field(u64, slot)
				     __field(unsigned int, cpu)
				     __field(unsigned int, level)
				     __field(bool, remote)),
		    TP_fast_assign(__entry->timer = timer;
				   __entry->function = timer->function;
				   __entry->now = ktime_get_ns();
				   __entry->deadline = timer->node.deadline;
				   __entry->slot = slot;
				   __entry->cpu = base->cpu;
				   __entry->level = slot ? twheel_level(&base->wheel, slot) : 0;
				   __entry->remote = remote;),
		    TP_printk("timer=%p function=%ps now=%llu deadline=%llu slot=%llu cpu=%u level=%u remote=%d",
			      __entry->timer, __entry->function, __entry->now, __entry->deadline,
			      __entry->slot, __entry->cpu, __entry->level, __entry->remote));

/**
 * twheel_timer_add - a timer that was not pending has been armed
 * @base:	whose wheel it is on
 * @timer:	the timer
 * @slot:	when the wheel comes to its entry; 0 if its callback is running on the
 *		base's CPU, which will file it afterwards
 * @remote:	the timer was last on another CPU's wheel than the caller's
 */
DEFINE_EVENT(twheel_timer_arm, twheel_timer_add,
	     TP_PROTO(const struct twheel_base *base, const struct twheel_timer *timer, u64 slot,
		      bool remote),
	     TP_ARGS(base, timer, slot, remote));

/**
 * twheel_timer_rearm - a pending timer has been armed anew
 * @base:	as for twheel_timer_add
 * @timer:	as there
 * @slot:	as there. If it is the slot that the timer was in, only the deadline has
 *		been stored
 * @remote:	as there
 */
DEFINE_EVENT(twheel_timer_arm, twheel_timer_rearm,
	     TP_PROTO(const struct twheel_base *base, const struct twheel_timer *timer, u64 slot,
		      bool remote),
	     TP_ARGS(base, timer, slot, remote));

/**
 * twheel_timer_cancel - twheel_cancel() has disarmed a timer, or come too late
 * @timer:	the timer
 * @cpu:	the CPU whose wheel it was on
 * @pending:	it was pending
 * @remote:	the caller is on another CPU
 */
TRACE_EVENT(twheel_timer_cancel,
	    TP_PROTO(const struct twheel_timer *timer, unsigned int cpu, bool pending, bool remote),
	    TP_ARGS(timer, cpu, pending, remote),
	    TP_STRUCT__entry(__field(const void *, timer)
			     __field(void *, function)
			     __field(u64, now)
			     __field(u64, deadline)
			     __field(unsigned int, cpu)
			     __field(bool, pending)
			     __field(bool, remote)),
	    TP_fast_assign(__entry->timer = timer;
			   __entry->function = timer->function;
			   __entry->now = ktime_get_ns();
			   __entry->deadline = timer->node.deadline;
			   __entry->cpu = cpu;
			   __entry->pending = pending;
			   __entry->remote = remote;),
	    TP_printk("timer=%p function=%ps now=%llu deadline=%llu cpu=%u pending=%d remote=%d",
		      __entry->timer, __entry->function, __entry->now, __entry->deadline,
		      __entry->cpu, __entry->pending, __entry->remote));

/**
 * twheel_timer_expire_entry - a timer's function is about to be called
 * @base:	whose wheel the timer was on
 * @timer:	the timer: only an address
 * @function:	its function
 * @deadline:	its deadline
 */
TRACE_EVENT(twheel_timer_expire_entry,
	    TP_PROTO(const struct twheel_base *base, const struct twheel_timer *timer,
		     void *function, u64 deadline),
	    TP_ARGS(base, timer, function, deadline),
	    TP_STRUCT__entry(__field(const void *, timer)
			     __field(void *, function)
			     __field(u64, now)
			     __field(u64, deadline)
			     __field(unsigned int, cpu)),
	    TP_fast_assign(__entry->timer = timer;
			   __entry->function = function;
			   __entry->now = ktime_get_ns();
			   __entry->deadline = deadline;
			   __entry->cpu = base->cpu;),
	    TP_printk("timer=%p function=%ps now=%llu deadline=%llu cpu=%u",
		      __entry->timer, __entry->function, __entry->now, __entry->deadline,
		      __entry->cpu));

/**
 * twheel_timer_expire_exit - a timer's function has returned
 * @base:	as for twheel_timer_expire_entry
 * @timer:	the timer: only an address, of what may have been freed
 * @function:	the function
 */
TRACE_EVENT(twheel_timer_expire_exit,
	    TP_PROTO(const struct twheel_base *base, const struct twheel_timer *timer,
		     void *function),
	    TP_ARGS(base, timer, function),
	    TP_STRUCT__entry(__field(const void *, timer)
			     __field(void *, function)
			     __field(u64, now)
			     __field(unsigned int, cpu)),
	    TP_fast_assign(__entry->timer = timer;
			   __entry->function = function;
			   __entry->now = ktime_get_ns();
			   __entry->cpu = base->cpu;),
	    TP_printk("timer=%p function=%ps now=%llu cpu=%u",
		      __entry->timer, __entry->function, __entry->now, __entry->cpu));

/**
 * twheel_timer_cascade - a timer whose entry came up before its deadline is filed again
 * @base:	whose wheel it is on
 * @timer:	the timer: only an address, because others can take it by now
 * @function:	its function
 * @deadline:	its deadline
 * @slot:	when the wheel comes to the new entry
 */
TRACE_EVENT(twheel_timer_cascade,
	    TP_PROTO(const struct twheel_base *base, const struct twheel_timer *timer,
		     void *function, u64 deadline, u64 slot),
	    TP_ARGS(base, timer, function, deadline, slot),
	    TP_STRUCT__entry(__field(const void *, timer)
			     __field(void *, function)
			     __field(u64, now)
			     __field(u64, deadline)
			     __field(u64, slot)
			     __field(unsigned int, cpu)
			     __field(unsigned int, level)),
	    TP_fast_assign(__entry->timer = timer;
			   __entry->function = function;
			   __entry->now = ktime_get_ns();
			   __entry->deadline = deadline;
			   __entry->slot = slot;
			   __entry->cpu = base->cpu;
			   __entry->level = twheel_level(&base->wheel, slot);),
	    TP_printk("timer=%p function=%ps now=%llu deadline=%llu slot=%llu cpu=%u level=%u",
		      __entry->timer, __entry->function, __entry->now, __entry->deadline,
		      __entry->slot, __entry->cpu, __entry->level));

/**
 * twheel_tick_entry - the hrtimer of a CPU's wheel has come
 * @base:	the CPU's base
 */
TRACE_EVENT(twheel_tick_entry,
	    TP_PROTO(const struct twheel_base *base),
	    TP_ARGS(base),
	    TP_STRUCT__entry(__field(u64, now)
			     __field(u64, programmed)
			     __field(unsigned int, cpu)),
	    TP_fast_assign(__entry->now = ktime_get_ns();
			   __entry->programmed = base->programmed;
			   __entry->cpu = base->cpu;),
	    TP_printk("now=%llu programmed=%llu cpu=%u",
		      __entry->now, __entry->programmed, __entry->cpu));

/**
 * twheel_tick_exit - the hrtimer's function is done
 * @base:	the CPU's base
 * @entries:	cells that it has looked at, empty ones too
 */
TRACE_EVENT(twheel_tick_exit,
	    TP_PROTO(const struct twheel_base *base, unsigned int entries),
	    TP_ARGS(base, entries),
	    TP_STRUCT__entry(__field(u64, now)
			     __field(u64, programmed)
			     __field(unsigned int, cpu)
			     __field(unsigned int, entries)),
	    TP_fast_assign(__entry->now = ktime_get_ns();
			   __entry->programmed = base->programmed;
			   __entry->cpu = base->cpu;
			   __entry->entries = entries;),
	    TP_printk("now=%llu programmed=%lld cpu=%u entries=%u",
		      __entry->now, __entry->programmed, __entry->cpu, __entry->entries));

#ifdef CONFIG_INET
/**
 * twheel_watch - the worker has looked at a watched connection
 * @timer:	the timer: only an address
 * @sk:		the socket
 * @deadline:	when the timer was due, or would have been: its connection may have ended before
 * @found:	an enum twheel_watch_finding
 * @action:	what is done now: TWHEEL_WATCHED, and the watch's action; 0 if nothing
 */
TRACE_EVENT(twheel_watch,
	    TP_PROTO(const struct twheel_timer *timer, const struct sock *sk, u64 deadline,
		     unsigned int found, unsigned int action),
	    TP_ARGS(timer, sk, deadline, found, action),
	    TP_STRUCT__entry(__field(const void *, timer)
			     __field(const void *, skaddr)
			     __field(u16, sport)
			     __field(u16, dport)
			     __field(u64, now)
			     __field(u64, deadline)
			     __field(unsigned int, found)
			     __field(unsigned int, action)),
	    TP_fast_assign(__entry->timer = timer;
			   __entry->skaddr = sk;
			   __entry->sport = ntohs(inet_sk(sk)->inet_sport);
			   __entry->dport = ntohs(inet_sk(sk)->inet_dport);
			   __entry->now = ktime_get_ns();
			   __entry->deadline = deadline;
			   __entry->found = found;
			   __entry->action = action;),
	    TP_printk("timer=%p skaddr=%p sport=%u dport=%u now=%llu deadline=%llu found=%s action=%s",
		      __entry->timer, __entry->skaddr, __entry->sport, __entry->dport,
		      __entry->now, __entry->deadline,
		      __print_symbolic(__entry->found, { TWHEEL_FOUND_OPEN, "open" },
				       { TWHEEL_FOUND_OVER, "over" },
				       { TWHEEL_FOUND_BUSY, "busy" }),
		      !__entry->action ? "none" :
		      __entry->action & TWHEEL_WATCH_ABORT ? "abort" :
		      __entry->action & TWHEEL_WATCH_SHUTDOWN ? "shutdown" : "notify"));

/**
 * twheel_kick - an idle connection is closed, or would be
 * @sk:		its socket, which is locked
 * @rule:	id of the rule that applies, in the connection's network namespace
 * @limits:	the rule's
 * @now:	what CLOCK_MONOTONIC shows, in nanoseconds
 * @late:	nanoseconds since it was due
 */
TRACE_EVENT(twheel_kick,
	    TP_PROTO(struct sock *sk, u32 rule, const struct twheel_limits *limits, u64 now,
		     u64 late),
	    TP_ARGS(sk, rule, limits, now, late),
	    TP_STRUCT__entry(__field(u64, cookie)
			     __field(u64, idle)
			     __field(u32, rule)
			     __field(u32, flags)
			     __array(u8, local, sizeof(struct sockaddr_in6))
			     __array(u8, remote, sizeof(struct sockaddr_in6))
			     __field(u64, late)
			     __field(u32, unsent)
			     __field(u32, unacked)
			     __array(char, name, TWHEEL_RULE_NAME)),
	    TP_fast_assign(__entry->cookie = twheel_connection_cookie(sk);
			   __entry->idle = now - twheel_watch_active(sk, limits->flags, now);
			   __entry->rule = rule;
			   __entry->flags = limits->flags;
			   twheel_connection_addresses(sk, __entry->local, __entry->remote);
			   __entry->late = late;
			   __entry->unsent = twheel_watch_queue_of(sk, &__entry->unacked);
			   memcpy(__entry->name, limits->name, TWHEEL_RULE_NAME);),
	    TP_printk("rule=%u cookie=%llx local=%pISpc remote=%pISpc idle=%llu action=%s dry_run=%d late=%llu unsent=%u unacked=%u name=%s",
		      __entry->rule, __entry->cookie, __entry->local, __entry->remote,
		      __entry->idle,
		      __entry->flags & TWHEEL_WATCH_ABORT ? "abort" : "shutdown",
		      !!(__entry->flags & TWHEEL_RULE_DRY_RUN), __entry->late,
		      __entry->unsent, __entry->unacked, __entry->name));
#endif

#endif /* _TWHEEL_TRACE_H */

/* Outside of the guard: read again, to make code of it. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
