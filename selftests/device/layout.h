/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The binary interface: sizes, offsets and numbers, which must never change.
 */
#ifndef _TWHEEL_LAYOUT_H
#define _TWHEEL_LAYOUT_H

#include <linux/twheel.h>

#define ASSERT_FIELD(type, field, offset, size)				\
	_Static_assert(offsetof(struct type, field) == (offset) &&	\
		       sizeof(((struct type *)0)->field) == (size),	\
		       #type "." #field)

_Static_assert(sizeof(struct twheel_info) == 48, "twheel_info");
ASSERT_FIELD(twheel_info, features, 0, 8);
ASSERT_FIELD(twheel_info, tick_ns, 8, 8);
ASSERT_FIELD(twheel_info, max_timers, 16, 8);
ASSERT_FIELD(twheel_info, nr_timers, 24, 8);
ASSERT_FIELD(twheel_info, nr_events, 32, 8);
ASSERT_FIELD(twheel_info, event_size, 40, 4);
ASSERT_FIELD(twheel_info, reserved, 44, 4);

_Static_assert(sizeof(struct twheel_timer_add) == 88, "twheel_timer_add");
ASSERT_FIELD(twheel_timer_add, time, 0, 8);
ASSERT_FIELD(twheel_timer_add, user_data, 8, 8);
ASSERT_FIELD(twheel_timer_add, handle, 16, 8);
ASSERT_FIELD(twheel_timer_add, flags, 24, 4);
ASSERT_FIELD(twheel_timer_add, clock, 28, 4);
ASSERT_FIELD(twheel_timer_add, key, 32, 8);
ASSERT_FIELD(twheel_timer_add, period, 40, 8);
ASSERT_FIELD(twheel_timer_add, slack, 48, 8);
ASSERT_FIELD(twheel_timer_add, spread, 56, 8);
ASSERT_FIELD(twheel_timer_add, idle, 64, 8);
ASSERT_FIELD(twheel_timer_add, lifetime, 72, 8);
ASSERT_FIELD(twheel_timer_add, touch, 80, 4);
ASSERT_FIELD(twheel_timer_add, sock_fd, 80, 4);
ASSERT_FIELD(twheel_timer_add, reserved, 84, 4);

_Static_assert(sizeof(struct twheel_timer_cancel) == 16, "twheel_timer_cancel");
ASSERT_FIELD(twheel_timer_cancel, handle, 0, 8);
ASSERT_FIELD(twheel_timer_cancel, flags, 8, 4);
ASSERT_FIELD(twheel_timer_cancel, reserved, 12, 4);

_Static_assert(sizeof(struct twheel_timer_rearm) == 40, "twheel_timer_rearm");
ASSERT_FIELD(twheel_timer_rearm, handle, 0, 8);
ASSERT_FIELD(twheel_timer_rearm, time, 8, 8);
ASSERT_FIELD(twheel_timer_rearm, flags, 16, 4);
ASSERT_FIELD(twheel_timer_rearm, limit, 20, 4);
ASSERT_FIELD(twheel_timer_rearm, slack, 24, 8);
ASSERT_FIELD(twheel_timer_rearm, spread, 32, 8);

_Static_assert(sizeof(struct twheel_timer_query) == 64, "twheel_timer_query");
ASSERT_FIELD(twheel_timer_query, handle, 0, 8);
ASSERT_FIELD(twheel_timer_query, deadline, 8, 8);
ASSERT_FIELD(twheel_timer_query, remaining, 16, 8);
ASSERT_FIELD(twheel_timer_query, user_data, 24, 8);
ASSERT_FIELD(twheel_timer_query, state, 32, 4);
ASSERT_FIELD(twheel_timer_query, flags, 36, 4);
ASSERT_FIELD(twheel_timer_query, key, 40, 8);
ASSERT_FIELD(twheel_timer_query, period, 48, 8);
ASSERT_FIELD(twheel_timer_query, clock, 56, 4);
ASSERT_FIELD(twheel_timer_query, limit, 60, 4);

_Static_assert(sizeof(struct twheel_op) == 96, "twheel_op");
_Static_assert(TWHEEL_OP_SIZE_MIN == 40, "TWHEEL_OP_SIZE_MIN");
ASSERT_FIELD(twheel_op, handle, 0, 8);
ASSERT_FIELD(twheel_op, time, 8, 8);
ASSERT_FIELD(twheel_op, user_data, 16, 8);
ASSERT_FIELD(twheel_op, opcode, 24, 4);
ASSERT_FIELD(twheel_op, flags, 28, 4);
ASSERT_FIELD(twheel_op, clock, 32, 4);
ASSERT_FIELD(twheel_op, result, 36, 4);
ASSERT_FIELD(twheel_op, key, 40, 8);
ASSERT_FIELD(twheel_op, period, 48, 8);
ASSERT_FIELD(twheel_op, slack, 56, 8);
ASSERT_FIELD(twheel_op, spread, 64, 8);
ASSERT_FIELD(twheel_op, idle, 72, 8);
ASSERT_FIELD(twheel_op, lifetime, 80, 8);
ASSERT_FIELD(twheel_op, touch, 88, 4);
ASSERT_FIELD(twheel_op, sock_fd, 88, 4);
ASSERT_FIELD(twheel_op, limit, 92, 4);

_Static_assert(sizeof(struct twheel_submit) == 16, "twheel_submit");
ASSERT_FIELD(twheel_submit, ops, 0, 8);
ASSERT_FIELD(twheel_submit, nr_ops, 8, 4);
ASSERT_FIELD(twheel_submit, op_size, 12, 2);
ASSERT_FIELD(twheel_submit, flags, 14, 2);

_Static_assert(sizeof(struct twheel_drain) == 24, "twheel_drain");
ASSERT_FIELD(twheel_drain, records, 0, 8);
ASSERT_FIELD(twheel_drain, nr_records, 8, 4);
ASSERT_FIELD(twheel_drain, record_size, 12, 2);
ASSERT_FIELD(twheel_drain, flags, 14, 2);
ASSERT_FIELD(twheel_drain, cursor, 16, 8);

_Static_assert(sizeof(struct twheel_context_stats) == 96, "twheel_context_stats");
ASSERT_FIELD(twheel_context_stats, adds, 0, 8);
ASSERT_FIELD(twheel_context_stats, cancels, 8, 8);
ASSERT_FIELD(twheel_context_stats, rearms, 16, 8);
ASSERT_FIELD(twheel_context_stats, expiries, 24, 8);
ASSERT_FIELD(twheel_context_stats, taken_back, 32, 8);
ASSERT_FIELD(twheel_context_stats, delivered, 40, 8);
ASSERT_FIELD(twheel_context_stats, deferrals, 48, 8);
ASSERT_FIELD(twheel_context_stats, nr_timers, 56, 8);
ASSERT_FIELD(twheel_context_stats, nr_events, 64, 8);
ASSERT_FIELD(twheel_context_stats, bytes, 72, 8);
ASSERT_FIELD(twheel_context_stats, ended, 80, 8);
ASSERT_FIELD(twheel_context_stats, postponed, 88, 8);

_Static_assert(sizeof(struct twheel_setup) == 40, "twheel_setup");
ASSERT_FIELD(twheel_setup, max_timers, 0, 8);
ASSERT_FIELD(twheel_setup, ring_entries, 8, 4);
ASSERT_FIELD(twheel_setup, touch_words, 12, 4);
ASSERT_FIELD(twheel_setup, flags, 16, 4);
ASSERT_FIELD(twheel_setup, reserved, 20, 4);
ASSERT_FIELD(twheel_setup, ring_bytes, 24, 8);
ASSERT_FIELD(twheel_setup, touch_bytes, 32, 8);

_Static_assert(sizeof(struct twheel_ring) == 128, "twheel_ring");
ASSERT_FIELD(twheel_ring, head, 0, 4);
ASSERT_FIELD(twheel_ring, flags, 4, 4);
ASSERT_FIELD(twheel_ring, mask, 8, 4);
ASSERT_FIELD(twheel_ring, tail, 64, 4);
_Static_assert(offsetof(struct twheel_ring, events) == 128, "twheel_ring.events");

_Static_assert(sizeof(struct twheel_touch) == 4096, "twheel_touch");
ASSERT_FIELD(twheel_touch, now, 0, 8);
_Static_assert(offsetof(struct twheel_touch, words) == 4096, "twheel_touch.words");

_Static_assert(sizeof(struct twheel_event) == 48, "twheel_event");
ASSERT_FIELD(twheel_event, handle, 0, 8);
ASSERT_FIELD(twheel_event, user_data, 8, 8);
ASSERT_FIELD(twheel_event, deadline, 16, 8);
ASSERT_FIELD(twheel_event, fired, 24, 8);
ASSERT_FIELD(twheel_event, seq, 32, 8);
ASSERT_FIELD(twheel_event, overruns, 40, 4);
ASSERT_FIELD(twheel_event, reason, 44, 4);

/* The numbers, spelled out: they must never change. */
_Static_assert(TWHEEL_IOC_INFO == 0x803074a0, "TWHEEL_IOC_INFO");
_Static_assert(TWHEEL_IOC_TIMER_ADD == 0xc05874a1, "TWHEEL_IOC_TIMER_ADD");
_Static_assert(TWHEEL_IOC_TIMER_CANCEL == 0x401074a2, "TWHEEL_IOC_TIMER_CANCEL");
_Static_assert(TWHEEL_IOC_TIMER_REARM == 0x402874a3, "TWHEEL_IOC_TIMER_REARM");
_Static_assert(TWHEEL_IOC_TIMER_QUERY == 0xc04074a4, "TWHEEL_IOC_TIMER_QUERY");
_Static_assert(TWHEEL_IOC_SUBMIT == 0x401074a5, "TWHEEL_IOC_SUBMIT");
_Static_assert(TWHEEL_IOC_DRAIN == 0xc01874a6, "TWHEEL_IOC_DRAIN");
_Static_assert(TWHEEL_IOC_STATS == 0x806074a7, "TWHEEL_IOC_STATS");
_Static_assert(TWHEEL_IOC_SETUP == 0xc02874a8, "TWHEEL_IOC_SETUP");

#endif /* _TWHEEL_LAYOUT_H */
