// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: actors that take events of shared contexts
 */
#include "shared.h"

#define EVENTS	32
#define PAGE	4096UL
#define SIZE	sizeof(struct twheel_event)

static bool readers_over(void)
{
	return __atomic_load_n(&arena->readers_stop, __ATOMIC_RELAXED) || fuzz_over();
}

static void wait_events(const struct context *context, struct choices *choices)
{
	struct pollfd pollfd = { .fd = context->fd, .events = POLLIN };

	poll(&pollfd, 1, choose(choices, 4));
}

static void account_events(struct context *context, const char *from, ssize_t bytes)
{
	struct twheel_event event;
	ssize_t i;

	if (bytes % (ssize_t)SIZE)
		fuzz_fail("read: %zd bytes", bytes);
	for (i = 0; i < bytes; i += SIZE) {
		memcpy(&event, from + i, SIZE);
		account_event(context, &event);
	}
}

/* Reads events of the exact contexts. */
void reader_actor(struct choices *choices)
{
	struct io_uring *uring = call_uring_open();
	struct twheel_event events[EVENTS];
	struct context *context;
	ssize_t ret, bytes;

	while (!readers_over()) {
		context = &arena->context[choose(choices, CHAOS)];
		wait_events(context, choices);
		bytes = SIZE * (1 + choose(choices, EVENTS));
		if (uring && one_of(choices, 4)) {
			ret = call_uring_read(uring, context->fd, events, bytes);
		} else {
			ret = read(context->fd, events, bytes);
			ret = ret < 0 ? -errno : ret;
		}
		trace("read", 0, 0, 0, 0, ret);
		if (ret > 0)
			account_events(context, (char *)events, ret);
		else if (ret != -EAGAIN && ret != -EBUSY)
			fuzz_fail("read: %zd", ret);
	}
}

/* The same, into memory that ends too early. */
void bad_reader_actor(struct choices *choices)
{
	char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *to;
	struct context *context;
	unsigned int whole;
	ssize_t ret;

	if (memory == MAP_FAILED || mprotect(memory + PAGE, PAGE, PROT_NONE))
		fuzz_fail("no memory: errno %d", errno);
	while (!readers_over()) {
		context = &arena->context[choose(choices, CHAOS)];
		wait_events(context, choices);
		whole = choose(choices, 4);
		to = memory + PAGE - whole * SIZE - choose(choices, SIZE);
		ret = read(context->fd, to, SIZE * EVENTS);
		ret = ret < 0 ? -errno : ret;
		trace("read into bad memory, %llu whole", whole, 0, 0, 0, ret);
		if (ret > 0)
			account_events(context, to, ret);
		else if (ret != -EAGAIN && ret != -EBUSY && (ret != -EFAULT || whole))
			fuzz_fail("read into bad memory: %zd", ret);
		sleep_ns(choose(choices, 10) * MSEC);
	}
}

/* Takes what is in the ring. Returns whether there was anything. */
static bool take_events(struct context *context, __u32 *tail)
{
	struct twheel_ring *ring = context->ring;
	__u32 head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	bool some = head != *tail;

	if (head - *tail > RING_ENTRIES)
		fuzz_fail("ring: head %u, tail %u", head, *tail);
	while (*tail != head)
		account_event(context, &ring->events[(*tail)++ & (RING_ENTRIES - 1)]);
	__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
	return some;
}

/* Creates a ring in the middle of everything, while others read, and then takes its events. */
void ring_actor(struct choices *choices)
{
	struct context *context = &arena->context[RING];
	__u64 begin = now_ns() + choose(choices, SEC);
	__u32 tail = 0;

	while (!arena_over() && now_ns() < begin)
		sleep_ns(choose(choices, 3 * MSEC));
	make_ring(context);
	if (!context->ring)
		return;
	while (!readers_over()) {
		wait_events(context, choices);
		take_events(context, &tail);
		trace("ring, tail %llu", tail, 0, 0, 0, 0);
	}
	/* Each take makes room for events that are waiting. */
	do {
		wait_events(context, choices);
	} while (take_events(context, &tail));
}
