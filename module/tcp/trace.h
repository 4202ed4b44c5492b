/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: tracepoints of watched connections
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM twheel

#if !defined(_TWHEEL_TCP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TWHEEL_TCP_TRACE_H

#include <linux/ktime.h>
#include <linux/tracepoint.h>
#include <net/inet_sock.h>

#include "tcp/watch.h"
#include "twheel.h"

/* The format that tools read has their values, not their names. */
TRACE_DEFINE_ENUM(TWHEEL_SK_OPEN);
TRACE_DEFINE_ENUM(TWHEEL_SK_CLOSED);
TRACE_DEFINE_ENUM(TWHEEL_SK_BUSY);

/**
 * twheel_watch - the worker has evaluated a watched connection
 * @timer:	the timer: only an address
 * @sk:		the socket
 * @deadline:	when the timer was due, or would have been: its connection may have ended before
 * @found:	an enum twheel_sk_status
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
		      __print_symbolic(__entry->found, { TWHEEL_SK_OPEN, "open" },
				       { TWHEEL_SK_CLOSED, "over" },
				       { TWHEEL_SK_BUSY, "busy" }),
		      !__entry->action ? "none" :
		      __entry->action & TWHEEL_WATCH_ABORT ? "abort" :
		      __entry->action & TWHEEL_WATCH_SHUTDOWN ? "shutdown" : "notify"));

#endif /* _TWHEEL_TCP_TRACE_H */

/* Outside of the guard: define_trace.h includes this file again to generate code. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH tcp
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
