// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: actors that add, cancel and re-arm timers of a shared context
 */
#include "shared.h"

#define MOST	24
#define SIZE	sizeof(struct twheel_op)

/* Gives a context its ring; somebody else may be faster. */
void make_ring(struct context *context)
{
	struct twheel_setup setup;
	int ret = wh_setup(context->fd, RING_ENTRIES, 0, &setup);
	struct twheel_ring *ring;

	add_count(&fuzz->calls, 1);
	if (ret == -EBUSY || ret == -ENOMEM)
		return;
	if (ret)
		fuzz_fail("setup of a ring: %d", ret);
	ring = wh_map(context->fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	if (!ring)
		fuzz_fail("mmap of a ring: errno %d", errno);
	context->ring_bytes = setup.ring_bytes;
	__atomic_store_n(&context->ring, ring, __ATOMIC_RELEASE);
}

/* Gives a context its touch array. */
void make_touch(struct context *context)
{
	struct twheel_setup setup;
	int ret = wh_setup(context->fd, 0, TOUCH_WORDS, &setup);

	if (ret)
		fuzz_fail("setup of a touch array: %d", ret);
	context->touch = wh_map(context->fd, setup.touch_bytes, TWHEEL_TOUCH_OFFSET);
	if (!context->touch)
		fuzz_fail("mmap of a touch array: errno %d", errno);
}

/* Returns a time around now, mostly. */
static __u64 choose_near(struct choices *choices)
{
	switch (choose(choices, 8)) {
	case 0:
		return choose(choices, 10);
	case 1:
		return HOUR + choose(choices, HOUR);
	case 2:
		return choose(choices, 200 * MSEC);
	default:
		return choose(choices, 4 * MSEC);
	}
}

static void choose_add(struct context *context, struct choices *choices, struct twheel_op *op)
{
	__u64 kind = 0;

	op->opcode = TWHEEL_OP_ADD;
	op->clock = CLOCK_MONOTONIC;
	op->time = choose_near(choices);
	switch (choose(choices, 8)) {
	case 0:
		op->clock = one_of(choices, 2) ? CLOCK_REALTIME : CLOCK_BOOTTIME;
		if (one_of(choices, 2)) {
			op->flags |= TWHEEL_TIME_ABS;
			op->time += clock_ns(op->clock);
		}
		break;
	case 1:
		/* In chaos, nobody knows how many of its events have arrived. */
		if (context->exact) {
			op->period = 1 + choose_near(choices);
			kind = DATA_PERIODIC;
		}
		break;
	case 2 ... 3:
		op->time = TWHEEL_TIME_NONE;
		op->idle = 1 + choose_near(choices);
		op->lifetime = one_of(choices, 2) ? 1 + choose_near(choices) : 0;
		if (one_of(choices, 2)) {
			op->flags |= TWHEEL_TOUCHED;
			op->idle += TWHEEL_IDLE_MIN;
			op->touch = choose(choices, TOUCH_WORDS);
		}
		break;
	case 4:
		op->slack = choose_near(choices);
		op->spread = choose_near(choices);
		break;
	}
	if (one_of(choices, 3)) {
		op->flags |= TWHEEL_KEYED;
		op->key = choose(choices, 32);
		kind |= DATA_KEYED;
	}
	op->user_data = account_new(context, kind);
}

/* Names a timer that somebody has added; @slot becomes what was there. */
static void choose_name(struct context *context, struct choices *choices, struct twheel_op *op,
			struct slot *slot)
{
	struct slot *place = &context->slot[choose(choices, SLOTS)];

	if (one_of(choices, 4)) {
		op->flags |= TWHEEL_BY_KEY;
		op->handle = choose(choices, 32);
		return;
	}
	slot->handle = __atomic_load_n(&place->handle, __ATOMIC_ACQUIRE);
	slot->data = __atomic_load_n(&place->data, __ATOMIC_ACQUIRE);
	/* Written in the other order: both belong to one timer if the handle is still there. */
	if (slot->handle != __atomic_load_n(&place->handle, __ATOMIC_ACQUIRE))
		*slot = (struct slot){ };
	op->handle = slot->handle;
}

/* Records a timer for others. A handle is never given out twice. */
static void share_timer(struct context *context, struct choices *choices,
			const struct twheel_op *op)
{
	struct slot *place = &context->slot[choose(choices, SLOTS)];

	/* Two concurrent writers would mix their values. */
	if (__atomic_exchange_n(&place->handle, ~0ULL, __ATOMIC_ACQ_REL) == ~0ULL)
		return;
	__atomic_store_n(&place->data, op->user_data, __ATOMIC_RELEASE);
	__atomic_store_n(&place->handle, op->handle, __ATOMIC_RELEASE);
}

static void choose_op(struct context *context, struct choices *choices, struct twheel_op *op,
		      struct slot *slot)
{
	*op = (struct twheel_op){ };
	*slot = (struct slot){ };
	switch (choose(choices, 8)) {
	case 0 ... 3:
		choose_add(context, choices, op);
		break;
	case 4 ... 5:
		op->opcode = TWHEEL_OP_CANCEL;
		choose_name(context, choices, op, slot);
		break;
	default:
		op->opcode = TWHEEL_OP_REARM;
		choose_name(context, choices, op, slot);
		op->time = choose_near(choices);
		if (one_of(choices, 4)) {
			op->flags |= TWHEEL_ACTIVE;
			op->limit = TWHEEL_LIMIT_IDLE;
			op->time = 0;
		}
	}
}

static void submit_ops(struct context *context, struct choices *choices, struct io_uring *uring)
{
	struct twheel_op ops[MOST];
	struct slot slots[MOST];
	unsigned int nr = 1 + choose(choices, MOST), i, way = choose(choices, 4);
	int done = 1;

	if (way <= 1)
		nr = 1;
	for (i = 0; i < nr; i++)
		choose_op(context, choices, &ops[i], &slots[i]);
	if (way <= 1)
		call_single(context->fd, &ops[0]);
	else if (way == 2 && uring)
		done = call_uring(uring, context->fd, ops, nr, SIZE, choose(choices, 2) << 1);
	else
		done = call_submit(context->fd, ops, nr, SIZE, 0);
	/* From io_uring, if there is no memory for a worker. */
	if (done == -ECANCELED && way == 2 && !context->exact)
		return;
	if (done != (int)nr)
		fuzz_fail("array of %u: %d", nr, done);
	for (i = 0; i < nr; i++) {
		trace("op %llu of %llx flags %llx time %llu", ops[i].opcode, ops[i].handle,
		      ops[i].flags, ops[i].time, ops[i].result);
		account_op(context, &ops[i], &slots[i]);
		if (ops[i].opcode == TWHEEL_OP_ADD && ops[i].result >= 0)
			share_timer(context, choices, &ops[i]);
	}
}

static void query_timer(struct context *context, struct choices *choices)
{
	struct twheel_timer_query query;
	struct twheel_op op = { };
	struct slot slot = { };
	int ret;

	choose_name(context, choices, &op, &slot);
	ret = wh_query_flags(context->fd, op.handle, op.flags, &query);
	trace("query %llx flags %llx", op.handle, op.flags, 0, 0, ret);
	if (ret && ret != -ENOENT && ret != -EALREADY)
		fuzz_fail("query: %d", ret);
	if (!ret && slot.handle && !(slot.data & DATA_KEYED) && query.user_data != slot.data)
		fuzz_fail("query of %llx: user_data %llx, not %llx", slot.handle,
			  query.user_data, slot.data);
}

static void drain_timers(struct context *context, struct choices *choices)
{
	struct twheel_timer_query records[16];
	__u64 cursor = one_of(choices, 2) ? 0 : choose(choices, 1 << 14);
	int ret, i;

	ret = wh_drain(context->fd, records, 1 + choose(choices, 16), sizeof(*records), &cursor);
	trace("drain", 0, 0, 0, 0, ret);
	for (i = 0; i < ret; i++)
		account_drained(context, &records[i]);
}

/* Writes anything to words of the touch array. */
static void write_touch(struct context *context, struct choices *choices)
{
	__u64 value = one_of(choices, 3) ? choose_garbage(choices) :
		      now_ns() + choose(choices, 8 * MSEC) - 4 * MSEC;

	__atomic_store_n(&context->touch->words[choose(choices, TOUCH_WORDS)], value,
			 __ATOMIC_RELAXED);
}

/* Does something with timers. */
void timers_step(struct context *context, struct choices *choices, struct io_uring *uring)
{
	if (account_full(context))
		return sleep_ns(MSEC);
	switch (choose(choices, 64)) {
	case 0 ... 5:
		return query_timer(context, choices);
	case 6 ... 11:
		return write_touch(context, choices);
	case 12:
		return drain_timers(context, choices);
	case 13 ... 14:
		return sleep_ns(choose(choices, MSEC));
	case 15:
		return move_cpu(choices);
	default:
		return submit_ops(context, choices, uring);
	}
}

/* Works on all contexts whose account is exact. */
void timers_actor(struct choices *choices)
{
	struct io_uring *uring = call_uring_open();

	while (!arena_over())
		timers_step(&arena->context[choose(choices, CHAOS)], choices, uring);
}
