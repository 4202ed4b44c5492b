/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: tracepoints of the timer core; Documentation/tracing.rst explains them to users
 *
 * Their names begin with "twheel_" because the names of tracepoints are global to the kernel,
 * which has a timer_init of its own. Times are in nanoseconds of CLOCK_MONOTONIC. A timer
 * is only read where nobody else can free it: on its CPU with softirqs kept out, or
 * before it is queued elsewhere. Later events only use its address.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM twheel

#if !defined(_TWHEEL_CORE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TWHEEL_CORE_TRACE_H

#include <linux/ktime.h>
#include <linux/tracepoint.h>

#include "core/cpu_base.h"

/**
 * twheel_timer_init - a timer has been initialised
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
 * @slot:	when the wheel reaches its entry; 0 if the base's CPU has yet to enqueue it,
 *		because its callback is running there, or because another CPU queued it
 * @remote:	the timer was last on, or goes to, the wheel of another CPU than the caller's
 */
DEFINE_EVENT(twheel_timer_arm, twheel_timer_add,
	     TP_PROTO(const struct twheel_base *base, const struct twheel_timer *timer, u64 slot,
		      bool remote),
	     TP_ARGS(base, timer, slot, remote));

/**
 * twheel_timer_rearm - a pending timer has been re-armed
 * @base:	as for twheel_timer_add
 * @timer:	as for twheel_timer_add
 * @slot:	as for twheel_timer_add. If it is the slot that the timer was in, only the
 *		deadline has been stored
 * @remote:	as for twheel_timer_add
 */
DEFINE_EVENT(twheel_timer_arm, twheel_timer_rearm,
	     TP_PROTO(const struct twheel_base *base, const struct twheel_timer *timer, u64 slot,
		      bool remote),
	     TP_ARGS(base, timer, slot, remote));

/**
 * twheel_timer_cancel - twheel_cancel() has disarmed a timer, or was too late
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
 * @timer:	the timer: only an address, as it may have been freed
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
 * twheel_timer_cascade - a timer whose entry was reached before its deadline is enqueued again
 * @base:	whose wheel it is on
 * @timer:	the timer: only an address, as others may have taken it by now
 * @function:	its function
 * @deadline:	its deadline
 * @slot:	when the wheel reaches the new entry
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
 * twheel_tick_entry - the hrtimer of a CPU's wheel has fired
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
 * @entries:	cells that it has processed, including empty ones
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

#endif /* _TWHEEL_CORE_TRACE_H */

/* Outside of the guard: read again, to generate code. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
