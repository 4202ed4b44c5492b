// SPDX-License-Identifier: GPL-2.0-only
/*
 * The interface at the level of bytes: structures of all sizes, every bit of flags and reserved
 * fields, bad memory for arguments and results, and 32-bit callers. Every rejected call returns the
 * right errno and changes nothing. Values of fields are tested in values.c.
 */
#include <setjmp.h>

#include "abi_test.h"
#include "layout.h"

#define PAGE		4096UL

FIXTURE(abi)
{
	struct sample sample;
	unsigned char *memory;
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
	.first = STATS_SIZE_FIRST,
};

FIXTURE_VARIANT_ADD(abi, setup)
{
	.cmd = TWHEEL_IOC_SETUP,
	.first = sizeof(struct twheel_setup),
};

FIXTURE_SETUP(abi)
{
	ASSERT_EQ(0, sample_open(&self->sample));
	/* Two pages, followed by a hole. */
	self->memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->memory);
	ASSERT_EQ(0, munmap(self->memory + 2 * PAGE, PAGE));
}

FIXTURE_TEARDOWN(abi)
{
	munmap(self->memory, 2 * PAGE);
	EXPECT_EQ(0, close(self->sample.fd));
}

/* Undoes what a successful call has done. */
static int undo_call(struct sample *sample, unsigned int cmd, const union argument *argument)
{
	if (cmd == TWHEEL_IOC_TIMER_ADD)
		return wh_cancel(sample->fd, argument->add.handle);
	return 0;
}

/* Undoes what good() has done for a call that was rejected. */
static int undo_good(struct sample *sample, unsigned int cmd,
		     const union argument *argument)
{
	if (cmd == TWHEEL_IOC_TIMER_CANCEL)
		return wh_cancel(sample->fd, argument->cancel.handle);
	return 0;
}

static unsigned int resize_cmd(unsigned int cmd, unsigned int size)
{
	return (cmd & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT)) | size << _IOC_SIZESHIFT;
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

	/* Shorter than the first version. */
	ASSERT_EQ(0, good(&self->sample, variant->cmd, &argument));
	for (size = 0; size < variant->first; size++)
		expect_error(_metadata, &self->sample, resize_cmd(variant->cmd, size),
			     &argument, EINVAL);

	/* Longer, with a nonzero tail. */
	for (i = 1; i < ARRAY_SIZE(longer); i++) {
		size = longer[i];
		argument.bytes[size - 1] = 1;
		expect_error(_metadata, &self->sample, resize_cmd(variant->cmd, size),
			     &argument, E2BIG);
		argument.bytes[size - 1] = 0;
		argument.bytes[known] = 0x80;
		expect_error(_metadata, &self->sample, resize_cmd(variant->cmd, size),
			     &argument, E2BIG);
		argument.bytes[known] = 0;
	}
	ASSERT_EQ(0, undo_good(&self->sample, variant->cmd, &argument));
	expect_unchanged(_metadata, &self->sample);

	/* As long as the first version or longer, with a zero tail. */
	for (i = variant->first; i < known + ARRAY_SIZE(longer); i++) {
		size = i < known ? i : longer[i - known];
		shared = size < known ? size : known;
		ASSERT_EQ(0, good(&self->sample, variant->cmd, &argument));
		/* The kernel must not access what follows. */
		memset(argument.bytes + size, 0xa5, sizeof(argument) - size);
		copy = argument;
		EXPECT_EQ(0, wh_ioctl(self->sample.fd, resize_cmd(variant->cmd, size), &argument))
			TH_LOG("size %u", size);
		EXPECT_EQ(0, memcmp(argument.bytes + shared, copy.bytes + shared,
				    sizeof(argument) - shared));
		if (!(variant->cmd & IOC_OUT))
			EXPECT_EQ(0, memcmp(&argument, &copy, sizeof(copy)));
		EXPECT_EQ(0, undo_call(&self->sample, variant->cmd, &argument));
	}
	expect_unchanged(_metadata, &self->sample);
}

TEST_F(abi, other_numbers)
{
	static union argument argument;
	const unsigned int cmd = variant->cmd;
	unsigned int dir;

	ASSERT_EQ(0, good(&self->sample, cmd, &argument));
	for (dir = 0; dir < 4; dir++) {
		if (dir == _IOC_DIR(cmd))
			continue;
		expect_error(_metadata, &self->sample,
			     _IOC(dir, _IOC_TYPE(cmd), _IOC_NR(cmd), _IOC_SIZE(cmd)),
			     &argument, ENOTTY);
	}
	expect_error(_metadata, &self->sample,
		     _IOC(_IOC_DIR(cmd), 'u', _IOC_NR(cmd), _IOC_SIZE(cmd)), &argument, ENOTTY);
	expect_error(_metadata, &self->sample, _IOC(_IOC_DIR(cmd), 't', 0x9f, _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	expect_error(_metadata, &self->sample, _IOC(_IOC_DIR(cmd), 't', 0xa9, _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	expect_error(_metadata, &self->sample, _IOC(_IOC_DIR(cmd), 't', 0xbf, _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	expect_error(_metadata, &self->sample, _IOC(_IOC_DIR(cmd), 't', 0x20, _IOC_SIZE(cmd)),
		     &argument, ENOTTY);
	ASSERT_EQ(0, undo_good(&self->sample, cmd, &argument));
	expect_unchanged(_metadata, &self->sample);
}

/* Calls with an argument at @at, which is bad memory. */
static void expect_fault(struct __test_metadata *_metadata, FIXTURE_DATA(abi) * self,
			 unsigned int cmd, void *at)
{
	EXPECT_EQ(-EFAULT, wh_ioctl(self->sample.fd, cmd, at)) TH_LOG("cmd %x at %p", cmd, at);
	expect_unchanged(_metadata, &self->sample);
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
	ASSERT_EQ(0, good(&self->sample, cmd, &argument));
	self->sample.before.info.nr_timers = wh_nr_timers(self->sample.fd);
	memcpy(hole - size + 1, &argument, size - 1);
	expect_fault(_metadata, self, cmd, hole - size + 1);
	memcpy(hole - 1, &argument, 1);
	expect_fault(_metadata, self, cmd, hole - 1);
	/* The tail is missing. */
	memcpy(hole - size, &argument, size);
	expect_fault(_metadata, self, resize_cmd(cmd, size + 8), hole - size);

	memcpy(self->memory, &argument, size);
	ASSERT_EQ(0, mprotect(self->memory, PAGE, PROT_NONE));
	expect_fault(_metadata, self, cmd, self->memory);
	ASSERT_EQ(0, mprotect(self->memory, PAGE, PROT_READ | PROT_WRITE));

	/* At the very end of the mapping, the call succeeds. */
	EXPECT_EQ(0, wh_ioctl(self->sample.fd, cmd, hole - size));
	memcpy(&argument, hole - size, size);
	EXPECT_EQ(0, undo_call(&self->sample, cmd, &argument));
	EXPECT_EQ(pending, total("pending"));
}

TEST_F(abi, memory_that_cannot_be_written)
{
	const unsigned int cmd = variant->cmd, size = _IOC_SIZE(cmd);
	unsigned char *border = self->memory + PAGE;
	__u64 pending = total("pending");
	static union argument argument;
	unsigned int i;

	/* Often enough that a leak per call would show. */
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, good(&self->sample, cmd, &argument));
		memcpy(border, &argument, size);
		ASSERT_EQ(0, mprotect(border, PAGE, PROT_READ));
		if (cmd & IOC_OUT) {
			expect_fault(_metadata, self, cmd, border);
		} else {
			/* The kernel has nothing to write. */
			EXPECT_EQ(0, wh_ioctl(self->sample.fd, cmd, border));
			expect_unchanged(_metadata, &self->sample);
		}
		EXPECT_EQ(0, memcmp(border, &argument, size));
		ASSERT_EQ(0, mprotect(border, PAGE, PROT_READ | PROT_WRITE));
	}
	/* Only the last field of the result crosses the border. */
	if (cmd & IOC_OUT) {
		ASSERT_EQ(0, good(&self->sample, cmd, &argument));
		memcpy(border - size + 4, &argument, size);
		ASSERT_EQ(0, mprotect(border, PAGE, PROT_READ));
		expect_fault(_metadata, self, cmd, border - size + 4);
		ASSERT_EQ(0, mprotect(border, PAGE, PROT_READ | PROT_WRITE));
	}
	EXPECT_EQ(pending, total("pending"));
}

/* Sets each unknown bit of a 32-bit field, one at a time. */
static void sweep_bits(struct __test_metadata *_metadata, struct sample *sample,
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
		expect_error(_metadata, sample, cmd, &argument, error);
	}
	memcpy(argument.bytes + offset, &old, sizeof(old));
}

TEST_F(abi, flags_and_reserved_fields)
{
	static union argument argument;

	ASSERT_EQ(0, good(&self->sample, variant->cmd, &argument));
	switch (variant->cmd) {
	case TWHEEL_IOC_INFO:
		/* The kernel ignores its contents. */
		memset(&argument.info, 0xff, sizeof(argument.info));
		EXPECT_EQ(0, wh_ioctl(self->sample.fd, variant->cmd, &argument));
		EXPECT_EQ(0, memcmp(&argument.info, &self->sample.before.info,
				    sizeof(argument.info)));
		break;
	case TWHEEL_IOC_TIMER_ADD:
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_timer_add, flags),
			   ABS | TWHEEL_KEYED | TWHEEL_TOUCHED | WATCH_FLAGS, EOPNOTSUPP);
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_timer_add, flags), ~WATCH_FLAGS, EINVAL);
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_timer_add, reserved), 0, EINVAL);
		break;
	case TWHEEL_IOC_TIMER_CANCEL:
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_timer_cancel, flags), TWHEEL_BY_KEY,
			   EOPNOTSUPP);
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_timer_cancel, reserved), 0, EINVAL);
		break;
	case TWHEEL_IOC_TIMER_REARM:
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_timer_rearm, flags),
			   ABS | TWHEEL_BY_KEY | TWHEEL_ACTIVE, EOPNOTSUPP);
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_timer_rearm, limit),
			   TWHEEL_LIMIT_IDLE | TWHEEL_LIMIT_LIFETIME, EOPNOTSUPP);
		break;
	case TWHEEL_IOC_TIMER_QUERY:
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_timer_query, flags), TWHEEL_BY_KEY,
			   EOPNOTSUPP);
		break;
	case TWHEEL_IOC_SUBMIT:
		/* The flags are the upper half of these 32 bits. */
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_submit, op_size),
			   TWHEEL_SUBMIT_STOP << 16 | 0xffff, EOPNOTSUPP);
		break;
	case TWHEEL_IOC_DRAIN:
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_drain, record_size), 0xffff, EOPNOTSUPP);
		break;
	case TWHEEL_IOC_STATS:
		memset(&argument.stats, 0xff, sizeof(argument.stats));
		EXPECT_EQ(0, wh_ioctl(self->sample.fd, variant->cmd, &argument));
		EXPECT_EQ(self->sample.before.info.nr_timers, argument.stats.nr_timers);
		break;
	case TWHEEL_IOC_SETUP:
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_setup, flags), TWHEEL_SETUP_EVENT_KEYS,
			   EOPNOTSUPP);
		sweep_bits(_metadata, &self->sample, variant->cmd, &argument,
			   offsetof(struct twheel_setup, reserved), 0, EINVAL);
		break;
	}
	ASSERT_EQ(0, undo_good(&self->sample, variant->cmd, &argument));
	expect_unchanged(_metadata, &self->sample);
}

FIXTURE(abi_once)
{
	struct sample sample;
};

FIXTURE_SETUP(abi_once)
{
	ASSERT_EQ(0, sample_open(&self->sample));
}

FIXTURE_TEARDOWN(abi_once)
{
	EXPECT_EQ(0, close(self->sample.fd));
}

TEST_F(abi_once, no_such_ioctl)
{
	static union argument argument;
	const unsigned int other[] = {
		0, 1, ~0U, TCGETS, FIONREAD, _IO('t', 0xa0), _IOC(3, 't', 0xbf, 8),
		_IOC(3, 0, 0, 0), _IOC(3, 't', 0xff, IOC_SIZE_MAX),
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(other); i++)
		expect_error(_metadata, &self->sample, other[i], &argument, ENOTTY);
	expect_unchanged(_metadata, &self->sample);
}

TEST_F(abi_once, write_is_refused)
{
	EXPECT_EQ(-1, write(self->sample.fd, "x", 1));
	EXPECT_EQ(EINVAL, errno);
	expect_unchanged(_metadata, &self->sample);
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

TEST_F(abi_once, from_a_32_bit_program)
{
	union {
		union argument		argument;
		struct twheel_event	event;
		struct {
			struct twheel_submit	submit;
			struct twheel_op	ops[2];
		} array;
	} *low;
	const int fd = self->sample.fd;
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
	EXPECT_EQ(0, memcmp(&low->argument.info, &self->sample.before.info,
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

	/* An array at a 32-bit address. */
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
	ASSERT_EQ(true, wh_wait_events(fd, 2));
	ASSERT_EQ(TWHEEL_WAS_EXPIRED, call_32(IA32_IOCTL, fd, TWHEEL_IOC_TIMER_CANCEL, address));
	ASSERT_EQ(-ENOENT, call_32(IA32_IOCTL, fd, TWHEEL_IOC_TIMER_CANCEL, address));

	memset(low, 0xa5, sizeof(*low));
	ASSERT_EQ(sizeof(low->event), call_32(IA32_READ, fd, address, sizeof(low->event)));
	EXPECT_EVENT_OK(&low->event);
	EXPECT_EQ(self->sample.expired, low->event.handle);
	EXPECT_EQ(100, low->event.user_data);
	munmap(low, sizeof(*low));
}
#endif

TEST_HARNESS_MAIN
