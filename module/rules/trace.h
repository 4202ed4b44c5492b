/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: tracepoints of rules for idle connections
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM twheel

#if !defined(_TWHEEL_RULES_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TWHEEL_RULES_TRACE_H

#include <linux/tracepoint.h>

#include "rules/conn.h"
#include "rules/rules.h"
#include "tcp/last_activity.h"
#include "tcp/watch.h"

/* The format that tools read has their values, not their names. */
TRACE_DEFINE_ENUM(TWHEEL_KICK_IDLE);
TRACE_DEFINE_ENUM(TWHEEL_KICK_LIFETIME);
TRACE_DEFINE_ENUM(TWHEEL_KICK_STALLED);

/**
 * twheel_kick - an idle connection is closed, or would be
 * @sk:		its socket, which is locked
 * @rule:	id of the rule that applies, in the connection's network namespace
 * @limits:	the rule's limits
 * @reason:	which of them
 * @overdue:	it was due before the rule could have closed it
 * @now:	the current time of CLOCK_MONOTONIC, in nanoseconds
 * @late:	nanoseconds since it was due
 */
TRACE_EVENT(twheel_kick,
	    TP_PROTO(struct sock *sk, u32 rule, const struct twheel_limits *limits,
		     enum twheel_kick_reason reason, bool overdue, u64 now, u64 late),
	    TP_ARGS(sk, rule, limits, reason, overdue, now, late),
	    TP_STRUCT__entry(__field(u64, cookie)
			     __field(u64, idle)
			     __field(u32, rule)
			     __field(u32, flags)
			     __array(u8, local, sizeof(struct sockaddr_in6))
			     __array(u8, remote, sizeof(struct sockaddr_in6))
			     __field(u64, late)
			     __field(u32, netns)
			     __field(u8, reason)
			     __field(u8, overdue)
			     __field(u32, unsent)
			     __field(u32, unacked)
			     __array(char, name, TWHEEL_RULE_NAME)),
	    TP_fast_assign(__entry->cookie = twheel_connection_cookie(sk);
			   __entry->idle = now - twheel_last_activity(sk, limits->flags, now);
			   __entry->rule = rule;
			   __entry->flags = limits->flags;
			   twheel_connection_addresses(sk, __entry->local, __entry->remote);
			   __entry->late = late;
			   __entry->netns = sock_net(sk)->ns.inum;
			   __entry->reason = reason;
			   __entry->overdue = overdue;
			   __entry->unsent = twheel_unacked_queue(sk, &__entry->unacked);
			   memcpy(__entry->name, limits->name, TWHEEL_RULE_NAME);),
	    TP_printk("rule=%u cookie=%llx local=%pISpc remote=%pISpc idle=%llu action=%s dry_run=%d late=%llu unsent=%u unacked=%u reason=%s overdue=%d netns=%u name=%s",
		      __entry->rule, __entry->cookie, __entry->local, __entry->remote,
		      __entry->idle,
		      __entry->flags & TWHEEL_WATCH_ABORT ? "abort" : "shutdown",
		      !!(__entry->flags & TWHEEL_RULE_DRY_RUN), __entry->late,
		      __entry->unsent, __entry->unacked,
		      __print_symbolic(__entry->reason, { TWHEEL_KICK_IDLE, "idle" },
				       { TWHEEL_KICK_LIFETIME, "lifetime" },
				       { TWHEEL_KICK_STALLED, "stalled" }),
		      __entry->overdue, __entry->netns, __entry->name));

#endif /* _TWHEEL_RULES_TRACE_H */

/* Outside of the guard: define_trace.h includes this file again to generate code. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH rules
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
