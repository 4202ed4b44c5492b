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

/* ---- contexts that get their ring while a read() delivers */

/* Many batches of a read(). */
#define HANDED_OVER	512

/* How long all events may take to arrive. */
#define HANDOVER_NS	(60 * SEC)

/**
 * struct handover - a context whose events are read first, and then taken from its ring
 * @fd:		its file
 * @most:	the number of events that will come
 * @nr:		the number of those that have arrived
 * @seen:	for each sequence number, whether it has arrived
 */
struct handover {
	int		fd;
	unsigned int	most;
	unsigned int	nr;
	bool		seen[HANDED_OVER];
};

static void see_event(struct handover *handover, const struct twheel_event *event, const char *how)
{
	if (event->seq >= handover->most)
		fuzz_fail("of %u events, number %llu comes from %s", handover->most, event->seq,
			  how);
	if (handover->seen[event->seq])
		fuzz_fail("of %u events, after %u, number %llu comes twice, now from %s",
			  handover->most, handover->nr, event->seq, how);
	handover->seen[event->seq] = true;
	handover->nr++;
}

static void *read_until_ring(void *data)
{
	struct handover *handover = data;
	struct twheel_event events[HANDED_OVER / 4];
	ssize_t ret, i;

	for (;;) {
		ret = read(handover->fd, events, sizeof(events));
		if (ret < 0 && errno == EBUSY)
			return NULL;
		if (ret < 0)
			fuzz_fail("read: errno %d", errno);
		for (i = 0; i < ret / (ssize_t)SIZE; i++)
			see_event(handover, &events[i], "a read()");
	}
}

/* Takes the events that were not read. */
static void take_rest(struct handover *handover, struct twheel_ring *ring)
{
	struct pollfd pollfd = { .fd = handover->fd, .events = POLLIN };
	__u64 end = now_ns() + HANDOVER_NS;

	while (handover->nr < handover->most) {
		if (now_ns() > end)
			fuzz_fail("of %u events, only %u came", handover->most, handover->nr);
		poll(&pollfd, 1, 100);
		while (ring->tail != __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE)) {
			see_event(handover, &ring->events[ring->tail & ring->mask], "the ring");
			__atomic_store_n(&ring->tail, ring->tail + 1, __ATOMIC_RELEASE);
		}
	}
}

/* Adds timers that are all due at the same time, soon. Returns how many there is memory for. */
static unsigned int add_for_handover(int fd, struct choices *choices)
{
	struct twheel_op ops[HANDED_OVER];
	__u64 due = now_ns() + choose(choices, 4 * MSEC);
	unsigned int i, nr = 0;

	for (i = 0; i < HANDED_OVER; i++)
		ops[i] = (struct twheel_op) {
			.opcode	= TWHEEL_OP_ADD,
			.clock	= CLOCK_MONOTONIC,
			.flags	= TWHEEL_TIME_ABS,
			.time	= due,
		};
	if (call_submit(fd, ops, HANDED_OVER, sizeof(ops[0]), 0) != HANDED_OVER)
		fuzz_fail("array of %u: not all are done", HANDED_OVER);
	for (i = 0; i < HANDED_OVER; i++) {
		if (ops[i].result && ops[i].result != -ENOMEM && ops[i].result != -ENOSPC)
			fuzz_fail("add: %d", ops[i].result);
		nr += !ops[i].result;
	}
	return nr;
}

static void hand_over(struct choices *choices)
{
	struct handover handover = { .fd = wh_open(0) };
	struct pollfd pollfd = { .fd = handover.fd, .events = POLLIN };
	struct twheel_setup setup;
	struct twheel_ring *ring;
	pthread_t reader;
	int ret;

	if (handover.fd < 0)
		fuzz_fail("open: %d", handover.fd);
	handover.most = add_for_handover(handover.fd, choices);
	if (pthread_create(&reader, NULL, read_until_ring, &handover))
		fuzz_fail("no thread: errno %d", errno);
	/* When the reader has begun, or will soon. */
	poll(&pollfd, 1, 4);
	if (one_of(choices, 2))
		sleep_ns(choose(choices, MSEC));
	do
		ret = wh_setup(handover.fd, RING_ENTRIES, 0, &setup);
	while (ret == -ENOMEM);
	if (ret)
		fuzz_fail("setup of a ring: %d", ret);
	ring = wh_map(handover.fd, setup.ring_bytes, TWHEEL_RING_OFFSET);
	if (!ring)
		fuzz_fail("mmap of a ring: errno %d", errno);
	pthread_join(reader, NULL);
	trace("ring after %llu events", handover.nr, 0, 0, 0, 0);
	take_rest(&handover, ring);
	munmap(ring, setup.ring_bytes);
	close(handover.fd);
}

/*
 * Creates rings while others read, as the actor above does, but very many: with each, a sequence
 * number could be used twice.
 */
void handover_actor(struct choices *choices)
{
	while (!arena_over()) {
		hand_over(choices);
		sleep_ns(choose(choices, 10 * MSEC));
	}
}
