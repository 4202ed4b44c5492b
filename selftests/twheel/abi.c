// SPDX-License-Identifier: GPL-2.0-only
/*
 * The interface as bytes: sizes, every bad input with its errno and nothing
 * changed, bad memory on the way in and on the way out, and 32-bit callers.
 */
#include <setjmp.h>

#include "twheel_test.h"

#define PAGE		4096UL
#define IOC_SIZE_MAX	((1 << _IOC_SIZEBITS) - 1)

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

_Static_assert(sizeof(struct twheel_context_stats) == 80, "twheel_context_stats");
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

_Static_assert(sizeof(struct twheel_touch) == 64, "twheel_touch");
ASSERT_FIELD(twheel_touch, now, 0, 8);
_Static_assert(offsetof(struct twheel_touch, words) == 64, "twheel_touch.words");

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
_Static_assert(TWHEEL_IOC_STATS == 0x805074a7, "TWHEEL_IOC_STATS");
_Static_assert(TWHEEL_IOC_SETUP == 0xc02874a8, "TWHEEL_IOC_SETUP");

/* The first sizes of what has grown: they must always do. */
#define ADD_SIZE_FIRST		32
#define REARM_SIZE_FIRST	24
#define QUERY_SIZE_FIRST	40

union argument {
	struct twheel_info		info;
	struct twheel_timer_add		add;
	struct twheel_timer_cancel	cancel;
	struct twheel_timer_rearm	rearm;
	struct twheel_timer_query	query;
	struct twheel_submit		submit;
	struct twheel_drain		drain;
	struct twheel_context_stats	stats;
	struct twheel_setup		setup;
	unsigned char			bytes[IOC_SIZE_MAX];
};

FIXTURE(abi)
{
	int fd;
	__u64 pending;
	__u64 expired;
	unsigned char *memory;
	struct tw_view before;
};

FIXTURE_VARIANT(abi)
{
	unsigned int cmd;
	unsigned int first;
};

FIXTURE_VARIANT_ADD(abi, info)
{
	.cmd = TWHEEL_IOC_INFO,
	.first = sizeof(struct twheel_info),
};

FIXTURE_VARIANT_ADD(abi, add)
{
	.cmd = TWHEEL_IOC_TIMER_ADD,
	.first = ADD_SIZE_FIRST,
};

FIXTURE_VARIANT_ADD(abi, cancel)
{
	.cmd = TWHEEL_IOC_TIMER_CANCEL,
	.first = sizeof(struct twheel_timer_cancel),
};

FIXTURE_VARIANT_ADD(abi, rearm)
{
	.cmd = TWHEEL_IOC_TIMER_REARM,
	.first = REARM_SIZE_FIRST,
};

FIXTURE_VARIANT_ADD(abi, query)
{
	.cmd = TWHEEL_IOC_TIMER_QUERY,
	.first = QUERY_SIZE_FIRST,
};

FIXTURE_VARIANT_ADD(abi, submit)
{
	.cmd = TWHEEL_IOC_SUBMIT,
	.first = sizeof(struct twheel_submit),
};

FIXTURE_VARIANT_ADD(abi, drain)
{
	.cmd = TWHEEL_IOC_DRAIN,
	.first = sizeof(struct twheel_drain),
};

FIXTURE_VARIANT_ADD(abi, stats)
{
	.cmd = TWHEEL_IOC_STATS,
	.first = sizeof(struct twheel_context_stats),
};

FIXTURE_VARIANT_ADD(abi, setup)
{
	.cmd = TWHEEL_IOC_SETUP,
	.first = sizeof(struct twheel_setup),
};

FIXTURE_SETUP(abi)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, tw_add(self->fd, 1, ABS, 100, &self->expired));
	ASSERT_EQ(true, tw_wait_events(self->fd, 1));
	ASSERT_EQ(0, tw_add(self->fd, HOUR, 0, 200, &self->pending));
	/* Two pages, and a hole behind them. */
	self->memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->memory);
	ASSERT_EQ(0, munmap(self->memory + 2 * PAGE, PAGE));
	ASSERT_EQ(0, tw_look(self->fd, self->pending, self->expired, &self->before));
}

FIXTURE_TEARDOWN(abi)
{
	munmap(self->memory, 2 * PAGE);
	EXPECT_EQ(0, close(self->fd));
}

static void expect_unchanged(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self)
{
	struct tw_view after;

	ASSERT_EQ(0, tw_look(self->fd, self->pending, self->expired, &after));
	EXPECT_EQ(0, memcmp(&self->before, &after, sizeof(after)));
}

/*
 * Fills in a good argument, for a call that returns 0; for a cancel that is a new
 * timer. An array of operations is empty, and there is nothing to drain.
 */
static int good(FIXTURE_DATA(abi) * self, unsigned int cmd, union argument *argument)
{
	memset(argument, 0, sizeof(*argument));
	switch (cmd) {
	case TWHEEL_IOC_TIMER_ADD:
		argument->add.time = HOUR;
		argument->add.user_data = 300;
		argument->add.clock = CLOCK_MONOTONIC;
		return 0;
	case TWHEEL_IOC_TIMER_CANCEL:
		return tw_add(self->fd, HOUR, 0, 400, &argument->cancel.handle);
	case TWHEEL_IOC_TIMER_REARM:
		argument->rearm.handle = self->pending;
		/* As it is, so that nothing changes if it is accepted. */
		argument->rearm.time = self->before.pending.deadline;
		argument->rearm.flags = ABS;
		return 0;
	case TWHEEL_IOC_TIMER_QUERY:
		argument->query.handle = self->pending;
		return 0;
	case TWHEEL_IOC_SUBMIT:
		argument->submit.op_size = TWHEEL_OP_SIZE_MIN;
		return 0;
	case TWHEEL_IOC_DRAIN:
		argument->drain.nr_records = 1;
		argument->drain.record_size = sizeof(struct twheel_timer_query);
		/* It goes on behind all timers. */
		argument->drain.cursor = 1ULL << 62;
		return 0;
	default:
		return 0;
	}
}

/* Takes back what a good call has done. */
static int undo(FIXTURE_DATA(abi) * self, unsigned int cmd, const union argument *argument)
{
	if (cmd == TWHEEL_IOC_TIMER_ADD)
		return tw_cancel(self->fd, argument->add.handle);
	return 0;
}

/* Takes back what good() has done for a call that was refused. */
static int undo_good(FIXTURE_DATA(abi) * self, unsigned int cmd,
		     const union argument *argument)
{
	if (cmd == TWHEEL_IOC_TIMER_CANCEL)
		return tw_cancel(self->fd, argument->cancel.handle);
	return 0;
}

static unsigned int resized(unsigned int cmd, unsigned int size)
{
	return (cmd & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT)) | size << _IOC_SIZESHIFT;
}

/* A call that must fail with @error, write nothing and change nothing. */
static void expect_error(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self,
			 unsigned int cmd, const union argument *argument, int error)
{
	union argument copy = *argument;

	EXPECT_EQ(-error, tw_ioctl(self->fd, cmd, &copy))
		TH_LOG("cmd %x size %u", cmd, _IOC_SIZE(cmd));
	EXPECT_EQ(0, memcmp(&copy, argument, sizeof(copy)));
}

TEST_F(abi, sizes)
{
	static union argument argument, copy;
	unsigned int size, shared, known = _IOC_SIZE(variant->cmd);
	unsigned int longer[] = {
		known, known + 1, known + 7, known + 8, known + 64, PAGE, PAGE + 8,
		IOC_SIZE_MAX,
	};
	size_t i;

	/* Shorter than it ever was. */
	ASSERT_EQ(0, good(self, variant->cmd, &argument));
	for (size = 0; size < variant->first; size++)
		expect_error(_metadata, self, resized(variant->cmd, size), &argument, EINVAL);

	/* Longer, with something in the tail. */
	for (i = 1; i < ARRAY_SIZE(longer); i++) {
		size = longer[i];
		argument.bytes[size - 1] = 1;
		expect_error(_metadata, self, resized(variant->cmd, size), &argument, E2BIG);
		argument.bytes[size - 1] = 0;
		argument.bytes[known] = 0x80;
		expect_error(_metadata, self, resized(variant->cmd, size), &argument, E2BIG);
		argument.bytes[known] = 0;
	}
	ASSERT_EQ(0, undo_good(self, variant->cmd, &argument));
	expect_unchanged(_metadata, self);

	/* As long as it ever was, and longer with nothing in the tail. */
	for (i = variant->first; i < known + ARRAY_SIZE(longer); i++) {
		size = i < known ? i : longer[i - known];
		shared = size < known ? size : known;
		ASSERT_EQ(0, good(self, variant->cmd, &argument));
		/* What lies behind is not the kernel's business. */
		memset(argument.bytes + size, 0xa5, sizeof(argument) - size);
		copy = argument;
		EXPECT_EQ(0, tw_ioctl(self->fd, resized(variant->cmd, size), &argument))
			TH_LOG("size %u", size);
		EXPECT_EQ(0, memcmp(argument.bytes + shared, copy.bytes + shared,
				    sizeof(argument) - shared));
		if (!(variant->cmd & IOC_OUT))
			EXPECT_EQ(0, memcmp(&argument, &copy, sizeof(copy)));
		EXPECT_EQ(0, undo(self, variant->cmd, &argument));
	}
	expect_unchanged(_metadata, self);
}

TEST_F(abi, other_numbers)
{
	static union argument argument;
	const unsigned int cmd = variant->cmd;
	unsigned int dir;

	ASSERT_EQ(0, good(self, cmd, &argument));
	for (dir = 0; dir < 4; dir++) {
		if (dir == _IOC_DIR(cmd))
			continue;
		expect_error(_metadata, self,
			     _IOC(dir, _IOC_TYPE(cmd), _IOC_NR(cmd), _IOC_SIZE(cmd)),
			     &argument, ENOTTY);
	}
	expect_error(_metadata, self, _IOC(_IOC_DIR(cmd), 'u', _IOC_NR(cmd), _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	expect_error(_metadata, self, _IOC(_IOC_DIR(cmd), 't', 0x9f, _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	expect_error(_metadata, self, _IOC(_IOC_DIR(cmd), 't', 0xa9, _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	expect_error(_metadata, self, _IOC(_IOC_DIR(cmd), 't', 0xbf, _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	expect_error(_metadata, self, _IOC(_IOC_DIR(cmd), 't', 0x20, _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	ASSERT_EQ(0, undo_good(self, cmd, &argument));
	expect_unchanged(_metadata, self);
}

/* Calls with the argument at @at, which is bad memory. */
static void expect_fault(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self,
			 unsigned int cmd, void *at)
{
	EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, cmd, at)) TH_LOG("cmd %x at %p", cmd, at);
	expect_unchanged(_metadata, self);
}

TEST_F(abi, bad_pointers)
{
	const unsigned int cmd = variant->cmd, size = _IOC_SIZE(cmd);
	unsigned char *hole = self->memory + 2 * PAGE;
	static union argument argument;
	__u64 pending = total("pending");

	expect_fault(_metadata, self, cmd, NULL);
	expect_fault(_metadata, self, cmd, (void *)8);
	expect_fault(_metadata, self, cmd, hole);
	expect_fault(_metadata, self, cmd, (void *)~0UL);
	expect_fault(_metadata, self, cmd, (void *)(~0UL - size + 1));
	expect_fault(_metadata, self, cmd, (void *)(1UL << 63));

	/* The last byte, or all but the first, is missing. */
	ASSERT_EQ(0, good(self, cmd, &argument));
	self->before.info.nr_timers = tw_nr_timers(self->fd);
	memcpy(hole - size + 1, &argument, size - 1);
	expect_fault(_metadata, self, cmd, hole - size + 1);
	memcpy(hole - 1, &argument, 1);
	expect_fault(_metadata, self, cmd, hole - 1);
	/* A tail that is not there. */
	memcpy(hole - size, &argument, size);
	expect_fault(_metadata, self, resized(cmd, size + 8), hole - size);

	memcpy(self->memory, &argument, size);
	ASSERT_EQ(0, mprotect(self->memory, PAGE, PROT_NONE));
	expect_fault(_metadata, self, cmd, self->memory);
	ASSERT_EQ(0, mprotect(self->memory, PAGE, PROT_READ | PROT_WRITE));

	/* And at the very end of the mapping all is well. */
	EXPECT_EQ(0, tw_ioctl(self->fd, cmd, hole - size));
	memcpy(&argument, hole - size, size);
	EXPECT_EQ(0, undo(self, cmd, &argument));
	EXPECT_EQ(pending, total("pending"));
}

TEST_F(abi, memory_that_cannot_be_written)
{
	const unsigned int cmd = variant->cmd, size = _IOC_SIZE(cmd);
	unsigned char *border = self->memory + PAGE;
	__u64 pending = total("pending");
	static union argument argument;
	unsigned int i;

	/* Often enough that what leaks at each call would show. */
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, good(self, cmd, &argument));
		memcpy(border, &argument, size);
		ASSERT_EQ(0, mprotect(border, PAGE, PROT_READ));
		if (cmd & IOC_OUT) {
			expect_fault(_metadata, self, cmd, border);
		} else {
			/* There is nothing to write. */
			EXPECT_EQ(0, tw_ioctl(self->fd, cmd, border));
			expect_unchanged(_metadata, self);
		}
		EXPECT_EQ(0, memcmp(border, &argument, size));
		ASSERT_EQ(0, mprotect(border, PAGE, PROT_READ | PROT_WRITE));
	}
	/* Only the last field of the answer meets the border. */
	if (cmd & IOC_OUT) {
		ASSERT_EQ(0, good(self, cmd, &argument));
		memcpy(border - size + 4, &argument, size);
		ASSERT_EQ(0, mprotect(border, PAGE, PROT_READ));
		expect_fault(_metadata, self, cmd, border - size + 4);
		ASSERT_EQ(0, mprotect(border, PAGE, PROT_READ | PROT_WRITE));
	}
	EXPECT_EQ(pending, total("pending"));
}

/* Each bit of a 32-bit field, one at a time. */
static void sweep_bits(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self,
		       unsigned int cmd, const union argument *valid, size_t offset,
		       __u32 known, int error)
{
	union argument argument = *valid;
	__u32 value, old;
	int bit;

	memcpy(&old, argument.bytes + offset, sizeof(old));
	for (bit = 0; bit < 32; bit++) {
		if (known & 1U << bit)
			continue;
		value = old | 1U << bit;
		memcpy(argument.bytes + offset, &value, sizeof(value));
		expect_error(_metadata, self, cmd, &argument, error);
	}
	memcpy(argument.bytes + offset, &old, sizeof(old));
}

TEST_F(abi, flags_and_reserved_fields)
{
	static union argument argument;

	ASSERT_EQ(0, good(self, variant->cmd, &argument));
	switch (variant->cmd) {
	case TWHEEL_IOC_INFO:
		/* All of it is ignored on the way in. */
		memset(&argument.info, 0xff, sizeof(argument.info));
		EXPECT_EQ(0, tw_ioctl(self->fd, variant->cmd, &argument));
		EXPECT_EQ(0, memcmp(&argument.info, &self->before.info, sizeof(argument.info)));
		break;
	case TWHEEL_IOC_TIMER_ADD:
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_timer_add, flags),
			   ABS | TWHEEL_KEYED | TWHEEL_TOUCHED, EOPNOTSUPP);
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_timer_add, reserved), 0, EINVAL);
		break;
	case TWHEEL_IOC_TIMER_CANCEL:
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_timer_cancel, flags), TWHEEL_BY_KEY,
			   EOPNOTSUPP);
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_timer_cancel, reserved), 0, EINVAL);
		break;
	case TWHEEL_IOC_TIMER_REARM:
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_timer_rearm, flags),
			   ABS | TWHEEL_BY_KEY | TWHEEL_ACTIVE, EOPNOTSUPP);
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_timer_rearm, limit),
			   TWHEEL_LIMIT_IDLE | TWHEEL_LIMIT_LIFETIME, EOPNOTSUPP);
		break;
	case TWHEEL_IOC_TIMER_QUERY:
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_timer_query, flags), TWHEEL_BY_KEY,
			   EOPNOTSUPP);
		break;
	case TWHEEL_IOC_SUBMIT:
		/* The flags are the upper half of these 32 bits. */
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_submit, op_size),
			   TWHEEL_SUBMIT_STOP << 16 | 0xffff, EOPNOTSUPP);
		break;
	case TWHEEL_IOC_DRAIN:
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_drain, record_size), 0xffff, EOPNOTSUPP);
		break;
	case TWHEEL_IOC_STATS:
		memset(&argument.stats, 0xff, sizeof(argument.stats));
		EXPECT_EQ(0, tw_ioctl(self->fd, variant->cmd, &argument));
		EXPECT_EQ(self->before.info.nr_timers, argument.stats.nr_timers);
		break;
	case TWHEEL_IOC_SETUP:
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_setup, flags), 0, EOPNOTSUPP);
		sweep_bits(_metadata, self, variant->cmd, &argument,
			   offsetof(struct twheel_setup, reserved), 0, EINVAL);
		break;
	}
	ASSERT_EQ(0, undo_good(self, variant->cmd, &argument));
	expect_unchanged(_metadata, self);
}

FIXTURE(abi_values)
{
	FIXTURE_DATA(abi) abi;
};

FIXTURE_SETUP(abi_values)
{
	self->abi.fd = tw_open(O_NONBLOCK);
	ASSERT_GE(self->abi.fd, 0);
	ASSERT_EQ(0, tw_add(self->abi.fd, 1, ABS, 100, &self->abi.expired));
	ASSERT_EQ(true, tw_wait_events(self->abi.fd, 1));
	ASSERT_EQ(0, tw_add(self->abi.fd, HOUR, 0, 200, &self->abi.pending));
	ASSERT_EQ(0, tw_look(self->abi.fd, self->abi.pending, self->abi.expired,
			     &self->abi.before));
}

FIXTURE_TEARDOWN(abi_values)
{
	EXPECT_EQ(0, close(self->abi.fd));
}

TEST_F(abi_values, clocks)
{
	static union argument argument;
	__u32 clock;

	ASSERT_EQ(0, good(&self->abi, TWHEEL_IOC_TIMER_ADD, &argument));
	for (clock = 0; clock < 32; clock++) {
		if (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME ||
		    clock == CLOCK_BOOTTIME)
			continue;
		argument.add.clock = clock;
		expect_error(_metadata, &self->abi, TWHEEL_IOC_TIMER_ADD, &argument, EOPNOTSUPP);
	}
	argument.add.clock = ~0U;
	expect_error(_metadata, &self->abi, TWHEEL_IOC_TIMER_ADD, &argument, EOPNOTSUPP);
	argument.add.clock = CLOCK_MONOTONIC | 1U << 31;
	expect_error(_metadata, &self->abi, TWHEEL_IOC_TIMER_ADD, &argument, EOPNOTSUPP);
	expect_unchanged(_metadata, &self->abi);
}

TEST_F(abi_values, times_out_of_range)
{
	const __u64 times[] = { TWHEEL_TIME_MAX + 1, TWHEEL_TIME_MAX + 2, -2ULL, -1ULL };
	static union argument argument;
	unsigned int i, flags;

	for (flags = 0; flags <= ABS; flags += ABS) {
		for (i = 0; i < ARRAY_SIZE(times); i++) {
			ASSERT_EQ(0, good(&self->abi, TWHEEL_IOC_TIMER_ADD, &argument));
			argument.add.time = times[i];
			argument.add.flags = flags;
			expect_error(_metadata, &self->abi, TWHEEL_IOC_TIMER_ADD, &argument,
				     EINVAL);
			ASSERT_EQ(0, good(&self->abi, TWHEEL_IOC_TIMER_REARM, &argument));
			argument.rearm.time = times[i];
			argument.rearm.flags = flags;
			expect_error(_metadata, &self->abi, TWHEEL_IOC_TIMER_REARM, &argument,
				     EINVAL);
			argument.rearm.handle = self->abi.expired;
			expect_error(_metadata, &self->abi, TWHEEL_IOC_TIMER_REARM, &argument,
				     EINVAL);
		}
	}
	expect_unchanged(_metadata, &self->abi);
}

/* An add that must fail with EINVAL and change nothing. */
static void expect_bad_add(struct __test_metadata *_metadata, FIXTURE_DATA(abi_values) * self,
			   struct twheel_timer_add add)
{
	static union argument argument;

	ASSERT_EQ(0, good(&self->abi, TWHEEL_IOC_TIMER_ADD, &argument));
	if (!add.time)
		add.time = argument.add.time;
	if (!add.clock)
		add.clock = CLOCK_MONOTONIC;
	argument.add = add;
	expect_error(_metadata, &self->abi, TWHEEL_IOC_TIMER_ADD, &argument, EINVAL);
}

#define EXPECT_BAD_ADD(...)						\
	expect_bad_add(_metadata, self, (struct twheel_timer_add){ __VA_ARGS__ })

TEST_F(abi_values, adds_that_are_out_of_range)
{
	const __u64 large[] = { TWHEEL_TIME_MAX + 1, TWHEEL_TIME_NONE - 1, TWHEEL_TIME_NONE };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(large); i++) {
		EXPECT_BAD_ADD(.period = large[i]);
		EXPECT_BAD_ADD(.slack = large[i]);
		EXPECT_BAD_ADD(.spread = large[i]);
		EXPECT_BAD_ADD(.idle = large[i]);
		EXPECT_BAD_ADD(.lifetime = large[i]);
	}
	EXPECT_BAD_ADD(.time = TWHEEL_TIME_NONE - 1, .idle = SEC);
	expect_unchanged(_metadata, &self->abi);
}

TEST_F(abi_values, adds_that_contradict_themselves)
{
	/* Nothing to expire for. */
	EXPECT_BAD_ADD(.time = TWHEEL_TIME_NONE);
	EXPECT_BAD_ADD(.time = TWHEEL_TIME_NONE, .period = SEC);
	EXPECT_BAD_ADD(.time = TWHEEL_TIME_NONE, .slack = SEC, .spread = SEC);
	/* A period and an end. */
	EXPECT_BAD_ADD(.period = SEC, .idle = SEC);
	EXPECT_BAD_ADD(.period = SEC, .lifetime = SEC);
	/* Limits are on one clock. */
	EXPECT_BAD_ADD(.clock = CLOCK_BOOTTIME, .idle = SEC);
	EXPECT_BAD_ADD(.clock = CLOCK_BOOTTIME, .lifetime = SEC);
	/* Numbers that nothing reads. */
	EXPECT_BAD_ADD(.key = 1);
	EXPECT_BAD_ADD(.touch = 1, .idle = SEC);
	/* No touch array; and what it would tell nothing of. */
	EXPECT_BAD_ADD(.flags = TWHEEL_TOUCHED, .idle = SEC);
	EXPECT_BAD_ADD(.flags = TWHEEL_TOUCHED);
	EXPECT_BAD_ADD(.flags = TWHEEL_TOUCHED, .lifetime = SEC);
	expect_unchanged(_metadata, &self->abi);
}

/* A re-arm of the pending timer that must fail with EINVAL and change nothing. */
#define EXPECT_BAD_REARM(...)						\
	EXPECT_EQ(-EINVAL, tw_rearm_timer(self->abi.fd, &(struct twheel_timer_rearm){	\
		.handle = self->abi.pending, __VA_ARGS__ }))

TEST_F(abi_values, rearms_that_are_out_of_range_or_contradict_themselves)
{
	const __u64 large[] = { TWHEEL_TIME_MAX + 1, TWHEEL_TIME_NONE - 1, TWHEEL_TIME_NONE };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(large); i++) {
		EXPECT_BAD_REARM(.time = SEC, .slack = large[i]);
		EXPECT_BAD_REARM(.time = SEC, .spread = large[i]);
	}
	/* It has a deadline, and that is its last limit. */
	EXPECT_BAD_REARM(.time = TWHEEL_TIME_NONE);
	EXPECT_BAD_REARM(.time = SEC, .limit = TWHEEL_LIMIT_IDLE);
	EXPECT_BAD_REARM(.time = SEC, .limit = TWHEEL_LIMIT_LIFETIME);
	EXPECT_BAD_REARM(.flags = TWHEEL_ACTIVE, .limit = TWHEEL_LIMIT_IDLE);
	EXPECT_BAD_REARM(.flags = TWHEEL_ACTIVE);
	EXPECT_BAD_REARM(.flags = TWHEEL_ACTIVE, .limit = TWHEEL_LIMIT_LIFETIME);
	EXPECT_BAD_REARM(.flags = TWHEEL_ACTIVE, .limit = TWHEEL_LIMIT_IDLE, .time = 1);
	expect_unchanged(_metadata, &self->abi);
}

TEST_F(abi_values, arrays_of_bad_sizes)
{
	const __u16 sizes[] = { 0, 8, 32, 39, 41, 44, 95, 97, 100, 0xffff };
	static union argument argument;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(0, good(&self->abi, TWHEEL_IOC_SUBMIT, &argument));
		argument.submit.op_size = sizes[i];
		expect_error(_metadata, &self->abi, TWHEEL_IOC_SUBMIT, &argument, EINVAL);
	}
	ASSERT_EQ(0, good(&self->abi, TWHEEL_IOC_SUBMIT, &argument));
	argument.submit.nr_ops = 1U << 31;
	expect_error(_metadata, &self->abi, TWHEEL_IOC_SUBMIT, &argument, EINVAL);
	argument.submit.nr_ops = ~0U;
	expect_error(_metadata, &self->abi, TWHEEL_IOC_SUBMIT, &argument, EINVAL);
	ASSERT_EQ(0, good(&self->abi, TWHEEL_IOC_DRAIN, &argument));
	argument.drain.nr_records = 0;
	expect_error(_metadata, &self->abi, TWHEEL_IOC_DRAIN, &argument, EINVAL);
	argument.drain.nr_records = 1U << 31;
	expect_error(_metadata, &self->abi, TWHEEL_IOC_DRAIN, &argument, EINVAL);
	for (i = 0; i < QUERY_SIZE_FIRST + 8; i++) {
		if (i == QUERY_SIZE_FIRST)
			continue;
		ASSERT_EQ(0, good(&self->abi, TWHEEL_IOC_DRAIN, &argument));
		argument.drain.records = (uintptr_t)&argument;
		argument.drain.record_size = i;
		expect_error(_metadata, &self->abi, TWHEEL_IOC_DRAIN, &argument, EINVAL);
	}
	expect_unchanged(_metadata, &self->abi);
}

TEST_F(abi_values, setups_that_are_out_of_range)
{
	const __u32 entries[] = { 3, 5, 6, 7, 12, 1000, (1 << 20) - 1, (1 << 20) + 1, 1 << 21,
				  1U << 31, ~0U };
	const __u32 words[] = { (1 << 24) + 1, 1 << 25, 1U << 31, ~0U };
	static union argument argument;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(entries); i++) {
		argument.setup.ring_entries = entries[i];
		expect_error(_metadata, &self->abi, TWHEEL_IOC_SETUP, &argument, EINVAL);
	}
	argument.setup.ring_entries = 0;
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		argument.setup.touch_words = words[i];
		expect_error(_metadata, &self->abi, TWHEEL_IOC_SETUP, &argument, EINVAL);
		/* Not the half of it either. */
		argument.setup.ring_entries = 64;
		argument.setup.max_timers = 5;
		expect_error(_metadata, &self->abi, TWHEEL_IOC_SETUP, &argument, EINVAL);
		argument.setup.ring_entries = 0;
		argument.setup.max_timers = 0;
	}
	expect_unchanged(_metadata, &self->abi);
}

TEST_F(abi_values, no_such_ioctl)
{
	static union argument argument;
	const unsigned int other[] = {
		0, 1, ~0U, TCGETS, FIONREAD, _IO('t', 0xa0), _IOC(3, 't', 0xbf, 8),
		_IOC(3, 0, 0, 0), _IOC(3, 't', 0xff, IOC_SIZE_MAX),
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(other); i++)
		expect_error(_metadata, &self->abi, other[i], &argument, ENOTTY);
	expect_unchanged(_metadata, &self->abi);
}

TEST_F(abi_values, write_is_refused)
{
	EXPECT_EQ(-1, write(self->abi.fd, "x", 1));
	EXPECT_EQ(EINVAL, errno);
	expect_unchanged(_metadata, &self->abi);
}

#ifdef __x86_64__
static sigjmp_buf no_compat;

static void on_sigsegv(int signal)
{
	siglongjmp(no_compat, signal);
}

/* A system call as a 32-bit program makes it. Returns the result or -errno. */
static int call_32(unsigned int nr, int fd, uintptr_t b, uintptr_t c)
{
	int ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "0" (nr), "b" (fd), "c" (b), "d" (c)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

#define IA32_READ	3
#define IA32_GETPID	20
#define IA32_IOCTL	54

TEST_F(abi_values, from_a_32_bit_program)
{
	union {
		union argument		argument;
		struct twheel_event	event;
		struct {
			struct twheel_submit	submit;
			struct twheel_op	ops[2];
		} array;
	} *low;
	const int fd = self->abi.fd;
	uintptr_t address;
	__u64 handle;

	signal(SIGSEGV, on_sigsegv);
	if (sigsetjmp(no_compat, 1))
		SKIP(return, "the kernel has no 32-bit system calls");
	ASSERT_EQ(getpid(), call_32(IA32_GETPID, 0, 0, 0));
	signal(SIGSEGV, SIG_DFL);

	low = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_NE(MAP_FAILED, low);
	address = (uintptr_t)low;
	ASSERT_EQ(0, call_32(IA32_IOCTL, fd, TWHEEL_IOC_INFO, address));
	EXPECT_EQ(0, memcmp(&low->argument.info, &self->abi.before.info,
			    sizeof(low->argument.info)));

	memset(low, 0, sizeof(*low));
	low->argument.add.time = TWHEEL_TIME_MAX;
	low->argument.add.user_data = 0x1122334455667788;
	low->argument.add.clock = CLOCK_MONOTONIC;
	ASSERT_EQ(0, call_32(IA32_IOCTL, fd, TWHEEL_IOC_TIMER_ADD, address));
	handle = low->argument.add.handle;

	memset(low, 0, sizeof(*low));
	low->argument.query.handle = handle;
	ASSERT_EQ(0, call_32(IA32_IOCTL, fd, TWHEEL_IOC_TIMER_QUERY, address));
	EXPECT_EQ(TWHEEL_TIME_MAX, low->argument.query.deadline);
	EXPECT_EQ(0x1122334455667788, low->argument.query.user_data);
	EXPECT_EQ(TWHEEL_STATE_PENDING, low->argument.query.state);

	/* An array, the address of which has 32 bits. */
	memset(low, 0, sizeof(*low));
	low->array.submit.ops = (uintptr_t)low->array.ops;
	low->array.submit.nr_ops = 2;
	low->array.submit.op_size = sizeof(struct twheel_op);
	low->array.ops[0].flags = TWHEEL_KEYED;
	low->array.ops[0].time = HOUR;
	low->array.ops[0].clock = CLOCK_MONOTONIC;
	low->array.ops[0].key = 0x8877665544332211;
	low->array.ops[1].opcode = TWHEEL_OP_CANCEL;
	low->array.ops[1].flags = TWHEEL_BY_KEY;
	low->array.ops[1].handle = 0x8877665544332211;
	ASSERT_EQ(2, call_32(IA32_IOCTL, fd, TWHEEL_IOC_SUBMIT, address));
	EXPECT_EQ(TWHEEL_WAS_ABSENT, low->array.ops[0].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, low->array.ops[1].result);

	memset(low, 0, sizeof(*low));
	low->argument.rearm.handle = handle;
	ASSERT_EQ(TWHEEL_WAS_PENDING, call_32(IA32_IOCTL, fd, TWHEEL_IOC_TIMER_REARM, address));
	ASSERT_EQ(true, tw_wait_events(fd, 2));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, call_32(IA32_IOCTL, fd, TWHEEL_IOC_TIMER_CANCEL, address));
	ASSERT_EQ(-ENOENT, call_32(IA32_IOCTL, fd, TWHEEL_IOC_TIMER_CANCEL, address));

	memset(low, 0xa5, sizeof(*low));
	ASSERT_EQ(sizeof(low->event), call_32(IA32_READ, fd, address, sizeof(low->event)));
	EXPECT_EVENT_OK(&low->event);
	EXPECT_EQ(self->abi.expired, low->event.handle);
	EXPECT_EQ(100, low->event.user_data);
	munmap(low, sizeof(*low));
}
#endif

TEST_HARNESS_MAIN
