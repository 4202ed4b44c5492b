// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench api: /dev/twheel
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <liburing.h>
#include <linux/twheel.h>

#include "api.h"

#define DEVICE		"/dev/twheel"

/* Any odd number will do: it makes keys that are all different, and far apart. */
#define KEY_FACTOR	0x9e3779b97f4a7c15ULL

#define RING_ENTRIES	32768

static int fd;
static uint64_t *handles;
static struct twheel_op ops[API_BATCH];
static struct twheel_submit submit = { .ops = (uintptr_t)ops };
static struct twheel_ring *ring;
static struct twheel_touch *touch;
static uint64_t ring_bytes, touch_bytes;
static struct io_uring uring;

/* The kind of the timers: the flags with which they are added, and the size of an operation. */
static uint32_t kind;
static uint32_t op_size;

static void exit_with_error(const char *what, int error)
{
	errx(EXIT_FAILED, "%s: %s: %s%s", DEVICE, what, strerror(error),
	     error == ENOSPC ? " (raise max_timers of twheel.ko)" : "");
}

static void device_begin(uint32_t nr)
{
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(EXIT_FAILED, "%s", DEVICE);
	handles = allocate(nr, sizeof(*handles));
	/* The previous scheme may have used another operation size. */
	memset(ops, 0, sizeof(ops));
	kind = 0;
	op_size = TWHEEL_OP_SIZE_MIN;
}

static void device_end(void)
{
	close(fd);
	free(handles);
}

/* ---- arrays of operations */

/* The operation at @index of the array. */
static struct twheel_op *op_at(uint32_t index)
{
	return (struct twheel_op *)((char *)ops + (size_t)index * op_size);
}

static void submit_ioctl(uint32_t nr)
{
	int ret;

	submit.nr_ops = nr;
	submit.op_size = op_size;
	ret = ioctl(fd, TWHEEL_IOC_SUBMIT, &submit);
	if (ret != (int)nr)
		exit_with_error("submit", ret < 0 ? errno : EINTR);
}

static void submit_uring(uint32_t nr)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring);
	struct io_uring_cqe *cqe;
	int ret;

	submit.nr_ops = nr;
	submit.op_size = op_size;
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = TWHEEL_URING_SUBMIT;
	memcpy(sqe->cmd, &submit, sizeof(submit));
	ret = io_uring_submit_and_wait(&uring, 1);
	if (ret != 1 || io_uring_peek_cqe(&uring, &cqe))
		exit_with_error("io_uring_enter", ret < 0 ? -ret : EAGAIN);
	if (cqe->res != (int)nr)
		exit_with_error("submit", cqe->res < 0 ? -cqe->res : EINTR);
	io_uring_cqe_seen(&uring, cqe);
}

static void (*submit_ops)(uint32_t nr);

static void check_results(uint32_t nr, const char *what)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (op_at(i)->result < 0)
			exit_with_error(what, -op_at(i)->result);
}

static void array_add(const struct api_timer *timer, uint32_t nr)
{
	bool idle = kind & TWHEEL_TOUCHED;
	struct twheel_op *op;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		op = op_at(i);
		op->handle = 0;
		op->time = idle ? TWHEEL_TIME_NONE : timer[i].timeout;
		op->user_data = timer[i].number;
		op->opcode = TWHEEL_OP_ADD;
		op->flags = kind;
		op->clock = CLOCK_MONOTONIC;
		if (op_size == TWHEEL_OP_SIZE_MIN)
			continue;
		op->key = kind & TWHEEL_KEYED ? timer[i].number * KEY_FACTOR : 0;
		op->idle = idle ? timer[i].timeout : 0;
		op->touch = idle ? timer[i].number : 0;
		op->limit = TWHEEL_LIMIT_DEADLINE;
	}
	submit_ops(nr);
	check_results(nr, "add");
	for (i = 0; i < nr; i++)
		handles[timer[i].number] = op_at(i)->handle;
}

/* Fills in which timer an operation is for, and clears the other fields. */
static void name_timer(struct twheel_op *op, uint32_t number)
{
	bool keyed = kind & TWHEEL_KEYED;

	op->handle = keyed ? number * KEY_FACTOR : handles[number];
	op->flags = keyed ? TWHEEL_BY_KEY : 0;
	op->user_data = 0;
	op->clock = 0;
	if (op_size == TWHEEL_OP_SIZE_MIN)
		return;
	op->key = 0;
	op->idle = 0;
	op->touch = 0;
	op->limit = TWHEEL_LIMIT_DEADLINE;
}

static void array_rearm(const struct api_timer *timer, uint32_t nr)
{
	bool idle = kind & TWHEEL_TOUCHED;
	struct twheel_op *op;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		op = op_at(i);
		name_timer(op, timer[i].number);
		op->opcode = TWHEEL_OP_REARM;
		op->time = timer[i].timeout;
		if (idle)
			op->limit = TWHEEL_LIMIT_IDLE;
	}
	submit_ops(nr);
	check_results(nr, "re-arm");
}

static void array_cancel(const struct api_timer *timer, uint32_t nr)
{
	struct twheel_op *op;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		op = op_at(i);
		name_timer(op, timer[i].number);
		op->opcode = TWHEEL_OP_CANCEL;
		op->time = 0;
	}
	submit_ops(nr);
	check_results(nr, "cancel");
}

static uint32_t read_events(uint32_t nr)
{
	static struct twheel_event events[API_BATCH];
	ssize_t ret = read(fd, events, nr * sizeof(*events));

	if (ret < 0)
		exit_with_error("read", errno);
	return ret / sizeof(*events);
}

static void submit_begin(uint32_t nr)
{
	device_begin(nr);
	submit_ops = submit_ioctl;
}

/* A scheme that submits arrays and reads events. */
#define ARRAY_SCHEME(_name, _begin)		\
	{					\
		.name		= _name,	\
		.begin		= _begin,	\
		.add		= array_add,	\
		.rearm		= array_rearm,	\
		.cancel		= array_cancel,	\
		.collect	= read_events,	\
		.end		= device_end,	\
		.wheel		= true,		\
	}

const struct api_scheme api_submit = ARRAY_SCHEME("submit", submit_begin);

static void keyed_begin(uint32_t nr)
{
	submit_begin(nr);
	kind = TWHEEL_KEYED;
	op_size = sizeof(struct twheel_op);
}

const struct api_scheme api_keyed = ARRAY_SCHEME("submit_keyed", keyed_begin);

static void uring_begin(uint32_t nr)
{
	int ret;

	device_begin(nr);
	submit_ops = submit_uring;
	ret = io_uring_queue_init(2, &uring, 0);
	if (ret)
		errx(EXIT_FAILED, "io_uring_setup: %s", strerror(-ret));
}

static void uring_end(void)
{
	io_uring_queue_exit(&uring);
	device_end();
}

const struct api_scheme api_uring_cmd = {
	.name		= "submit_io_uring",
	.begin		= uring_begin,
	.add		= array_add,
	.rearm		= array_rearm,
	.cancel		= array_cancel,
	.end		= uring_end,
	.wheel		= true,
};

/* ---- idle timeouts with a touch array, and the ring of events */

static struct twheel_setup setup_ioctl(struct twheel_setup setup)
{
	if (ioctl(fd, TWHEEL_IOC_SETUP, &setup))
		exit_with_error("setup", errno);
	return setup;
}

static void *map_region(uint64_t bytes, off_t offset)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			    offset);

	if (memory == MAP_FAILED)
		exit_with_error("mmap", errno);
	return memory;
}

static void touched_begin(uint32_t nr)
{
	submit_begin(nr);
	kind = TWHEEL_TOUCHED;
	op_size = sizeof(struct twheel_op);
	ring_bytes = setup_ioctl((struct twheel_setup) { .ring_entries = RING_ENTRIES }).ring_bytes;
	touch_bytes = setup_ioctl((struct twheel_setup) { .touch_words = nr }).touch_bytes;
	ring = map_region(ring_bytes, TWHEEL_RING_OFFSET);
	touch = map_region(touch_bytes, TWHEEL_TOUCH_OFFSET);
}

static void touched_end(void)
{
	munmap(ring, ring_bytes);
	munmap(touch, touch_bytes);
	device_end();
}

/* Unrolled, so as not to measure the loop. */
static void touch_words(const struct api_timer *timer, uint32_t nr)
{
	struct twheel_touch *const array = touch;
	uint32_t i;

#pragma GCC unroll 8
	for (i = 0; i < nr; i++)
		__atomic_store_n(&array->words[timer[i].number],
				 __atomic_load_n(&array->now, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
}

/* Reads two words of each event, those that every program needs. */
static uint32_t ring_events(uint32_t nr)
{
	uint32_t tail = ring->tail, left;
	static volatile uint64_t seen;
	const struct twheel_event *event;
	uint64_t sum = 0;

	left = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - tail;
	if (left > nr)
		left = nr;
	for (nr = left; left; left--) {
		event = &ring->events[tail++ & ring->mask];
		sum += event->handle + event->user_data;
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	seen = sum;
	(void)seen;
	return nr;
}

const struct api_scheme api_touched = {
	.name		= "submit_touched",
	.begin		= touched_begin,
	.add		= array_add,
	.rearm		= array_rearm,
	.touch		= touch_words,
	.cancel		= array_cancel,
	.collect	= ring_events,
	.end		= touched_end,
	.wheel		= true,
};

/* ---- one call per timer */

static void ioctl_add(const struct api_timer *timer, uint32_t nr)
{
	struct twheel_timer_add add = { .clock = CLOCK_MONOTONIC };
	uint32_t i;

	for (i = 0; i < nr; i++) {
		add.time = timer[i].timeout;
		add.user_data = timer[i].number;
		if (ioctl(fd, TWHEEL_IOC_TIMER_ADD, &add))
			exit_with_error("add", errno);
		handles[timer[i].number] = add.handle;
	}
}

static void ioctl_rearm(const struct api_timer *timer, uint32_t nr)
{
	struct twheel_timer_rearm rearm = { 0 };
	uint32_t i;

	for (i = 0; i < nr; i++) {
		rearm.handle = handles[timer[i].number];
		rearm.time = timer[i].timeout;
		if (ioctl(fd, TWHEEL_IOC_TIMER_REARM, &rearm) < 0)
			exit_with_error("re-arm", errno);
	}
}

static void ioctl_cancel(const struct api_timer *timer, uint32_t nr)
{
	struct twheel_timer_cancel cancel = { 0 };
	uint32_t i;

	for (i = 0; i < nr; i++) {
		cancel.handle = handles[timer[i].number];
		if (ioctl(fd, TWHEEL_IOC_TIMER_CANCEL, &cancel) < 0)
			exit_with_error("cancel", errno);
	}
}

const struct api_scheme api_ioctl = {
	.name		= "ioctl",
	.begin		= device_begin,
	.add		= ioctl_add,
	.rearm		= ioctl_rearm,
	.cancel		= ioctl_cancel,
	.end		= device_end,
	.wheel		= true,
};
