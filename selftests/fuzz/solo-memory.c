// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: a thread that has a context to itself: its mappings, and bad calls
 */
#include "solo.h"

#include <linux/twheel_rules.h>

#define PAGE	4096UL
#define SIZE	sizeof(struct twheel_op)

static bool is_periodic(const struct model *model)
{
	unsigned int i;

	for (i = 0; i < model->nr; i++)
		if (model->timer[i].period)
			return true;
	return false;
}

/* What TWHEEL_IOC_SETUP may return. */
static void expect_setup(const struct solo *solo, const struct twheel_setup *setup,
			 struct expect *expect)
{
	if (setup->flags & ~TWHEEL_SETUP_EVENT_KEYS)
		must_fail(expect, EOPNOTSUPP);
	if (setup->reserved || (setup->ring_entries && setup->touch_words))
		must_fail(expect, EINVAL);
	if (setup->ring_entries & (setup->ring_entries - 1) || setup->ring_entries > 1U << 20 ||
	    setup->touch_words > 1U << 24)
		must_fail(expect, EINVAL);
	if ((setup->ring_entries && solo->ring) || (setup->touch_words && solo->touch))
		must_fail(expect, EBUSY);
}

static void *map_context(const struct solo *solo, __u64 bytes, __u64 offset)
{
	void *memory = wh_map(solo->fd, bytes, offset);

	if (!memory)
		fuzz_fail("mmap of %llu bytes at %llx: errno %d", bytes, offset, errno);
	return memory;
}

static void note_setup(struct solo *solo, const struct twheel_setup *setup)
{
	struct model *model = &solo->model;

	if (setup->max_timers && setup->max_timers < (1ULL << 20))
		model->max_timers = setup->max_timers;
	else if (setup->max_timers)
		model->max_timers = 1ULL << 20;
	if (setup->flags & TWHEEL_SETUP_EVENT_KEYS)
		model->event_keys = true;
	if (setup->ring_entries) {
		solo->ring_bytes = setup->ring_bytes;
		solo->ring = map_context(solo, setup->ring_bytes, TWHEEL_RING_OFFSET);
		solo->tail = 0;
		model->ring = true;
		if (solo->ring->mask != setup->ring_entries - 1)
			fuzz_fail("mask %u of %u entries", solo->ring->mask, setup->ring_entries);
	}
	if (setup->touch_words) {
		solo->touch_bytes = setup->touch_bytes;
		solo->touch = map_context(solo, setup->touch_bytes, TWHEEL_TOUCH_OFFSET);
		model->nr_words = setup->touch_words < MOST_WORDS ? setup->touch_words :
								    MOST_WORDS;
	}
	if (setup->ring_bytes != solo->ring_bytes || setup->touch_bytes != solo->touch_bytes)
		fuzz_fail("setup: %llu bytes of ring, %llu of touch array", setup->ring_bytes,
			  setup->touch_bytes);
}

/* Sets limits, a ring, a touch array, or nonsense. */
void solo_setup(struct solo *solo)
{
	struct choices *choices = &solo->choices;
	struct twheel_setup setup = { }, copy;
	struct expect expect = { };
	int ret;

	switch (choose(choices, 6)) {
	case 0:
		setup.max_timers = one_of(choices, 2) ? 1 + choose(choices, 64) :
							1ULL << (20 + choose(choices, 40));
		/* For events in a ring, it is not known when they arrived. */
		if (setup.max_timers & 1 && !solo->ring)
			setup.flags = TWHEEL_SETUP_EVENT_KEYS;
		break;
	case 1 ... 2:
		if (!is_periodic(&solo->model) && !solo->model.event_keys && !solo_may_end(solo))
			setup.ring_entries = 1U << choose(choices, 8);
		break;
	case 3 ... 4:
		/* Usually few, so that stores and timers meet. */
		setup.touch_words = 1 + choose(choices, one_of(choices, 4) ? MOST_WORDS : 3);
		break;
	default:
		setup.flags = one_of(choices, 2) ? choose_garbage(choices) : 0;
		setup.flags &= ~TWHEEL_SETUP_EVENT_KEYS;
		setup.reserved = one_of(choices, 2) ? choose_garbage(choices) : 0;
		setup.ring_entries = 3 << choose(choices, 22);
	}
	copy = setup;
	ret = call_ioctl(solo->fd, TWHEEL_IOC_SETUP, &setup);
	trace("setup max %llu ring %u touch %u flags %x", copy.max_timers, copy.ring_entries,
	      copy.touch_words, copy.flags, ret);
	expect_setup(solo, &copy, &expect);
	coverage_answer(0x300000 | !!copy.ring_entries | !!copy.touch_words << 1,
			solo->model.ring | !!solo->touch << 1, ret);
	if (!is_expected(&expect, ret))
		fuzz_fail("setup: %d", ret);
	if (!ret)
		note_setup(solo, &setup);
}

/* Takes events up to @head that have arrived in the ring. */
static void take_events(struct solo *solo, __u32 head, const struct span *span)
{
	struct twheel_ring *ring = solo->ring;

	if (head - solo->tail > ring->mask + 1)
		fuzz_fail("ring: head %u, tail %u of %u", head, solo->tail, ring->mask + 1);
	while (solo->tail != head)
		model_event(&solo->model, &ring->events[solo->tail++ & ring->mask], span);
	__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
}

/* Reads what is in the ring; then no event of a timer that has ended may be missing. */
void solo_ring(struct solo *solo)
{
	struct pollfd pollfd = { .fd = solo->fd, .events = POLLIN };
	struct span span;
	unsigned int i;
	__u32 head, tail = solo->tail;

	if (!solo->ring)
		return;
	span = span_begin();
	poll(&pollfd, 1, 0);
	head = __atomic_load_n(&solo->ring->head, __ATOMIC_ACQUIRE);
	span_end(&span);
	trace("ring, head %llu tail %llu", head, solo->tail, 0, 0, 0);
	take_events(solo, head, &span);
	if (head != tail)
		return;
	for (i = 0; i < solo->model.nr; i++)
		if (solo->model.timer[i].owed)
			fuzz_fail("the event of %llx is not in the ring",
				  solo->model.timer[i].handle);
}

/* Writes words: the time in the array, of the clock, in the past, in the future. */
void solo_touch(struct solo *solo)
{
	struct choices *choices = &solo->choices;
	struct model *model = &solo->model;
	__u64 value, now;
	__u32 word;

	if (!solo->touch)
		return;
	word = choose(choices, model->nr_words);
	now = now_ns();
	switch (choose(choices, 6)) {
	case 0 ... 1:
		value = __atomic_load_n(&solo->touch->now, __ATOMIC_RELAXED);
		if (value > now_ns())
			fuzz_fail("touch array: now is %llu", value);
		break;
	case 2:
		value = now;
		break;
	case 3:
		value = now + choose_time(choices);
		break;
	case 4:
		value = now - choose(choices, 256) * MSEC;
		break;
	default:
		value = choose_garbage(choices);
	}
	trace("touch %llu: %llu", word, value, 0, 0, 0);
	__atomic_store_n(&solo->touch->words[word], value, __ATOMIC_RELAXED);
	word_touch(model, word);
	word_store(model, word, value, now);
}

/* An address that cannot be read, or not entirely. */
static void *bad_address(struct solo *solo, size_t bytes)
{
	switch (choose(&solo->choices, 4)) {
	case 0:
		return NULL;
	case 1:
		return (void *)0xffff888000000000UL;
	case 2:
		return solo->memory + PAGE;
	default:
		return solo->memory + PAGE - choose(&solo->choices, bytes);
	}
}

static const struct {
	unsigned int	cmd;
	unsigned int	least;
	unsigned int	size;
} ioctls[] = {
	{ TWHEEL_IOC_INFO, 48, sizeof(struct twheel_info) },
	{ TWHEEL_IOC_TIMER_ADD, 32, sizeof(struct twheel_timer_add) },
	{ TWHEEL_IOC_TIMER_CANCEL, 16, sizeof(struct twheel_timer_cancel) },
	{ TWHEEL_IOC_TIMER_REARM, 24, sizeof(struct twheel_timer_rearm) },
	{ TWHEEL_IOC_TIMER_QUERY, 40, sizeof(struct twheel_timer_query) },
	{ TWHEEL_IOC_SUBMIT, 16, sizeof(struct twheel_submit) },
	{ TWHEEL_IOC_DRAIN, 24, sizeof(struct twheel_drain) },
	{ TWHEEL_IOC_STATS, 80, sizeof(struct twheel_context_stats) },
	{ TWHEEL_IOC_SETUP, 40, sizeof(struct twheel_setup) },
	{ TWHEEL_IOC_RULE_ADD, 112, sizeof(struct twheel_rule) },
	{ TWHEEL_IOC_RULE_REMOVE, 112, sizeof(struct twheel_rule) },
	{ TWHEEL_IOC_RULE_NEXT, 112, sizeof(struct twheel_rule) },
	{ TWHEEL_IOC_RULE_CONNECTIONS, 32, sizeof(struct twheel_connections) },
	{ TWHEEL_IOC_RULE_SET, offsetof(struct twheel_rule, would_close),
	  sizeof(struct twheel_rule) },
};

/* Makes a call with one thing that is invalid: it is refused, and changes nothing. */
void solo_bad_call(struct solo *solo)
{
	struct choices *choices = &solo->choices;
	unsigned int i = choose(choices, ARRAY_SIZE(ioctls)), cmd = ioctls[i].cmd, size;
	__u8 arg[1024] = { };
	int wanted, ret;

	switch (choose(choices, 5)) {
	case 0:
		wanted = -EFAULT;
		ret = call_ioctl(solo->fd, cmd, bad_address(solo, ioctls[i].size));
		break;
	case 1:
		wanted = -EINVAL;
		size = choose(choices, ioctls[i].least);
		cmd = _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
		ret = call_ioctl(solo->fd, cmd, arg);
		break;
	case 2:
		wanted = -E2BIG;
		size = ioctls[i].size + 1 + choose(choices, 255);
		cmd = _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
		arg[ioctls[i].size + choose(choices, size - ioctls[i].size)] = 1;
		ret = call_ioctl(solo->fd, cmd, arg);
		break;
	case 3:
		wanted = -ENOTTY;
		cmd ^= 1U << (30 + choose(choices, 2));
		ret = call_ioctl(solo->fd, cmd, arg);
		break;
	default:
		wanted = -ENOTTY;
		cmd = _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd) ^ 1 << choose(choices, 8),
			   _IOC_NR(cmd), ioctls[i].size);
		ret = call_ioctl(solo->fd, cmd, arg);
	}
	trace("bad call %llx", cmd, 0, 0, 0, ret);
	coverage_answer(0x400000 | i, -wanted, ret);
	if (ret != wanted)
		fuzz_fail("ioctl %x: %d, not %d", cmd, ret, wanted);
}

/* Submits arrays that end at unmapped memory. What comes before it is done. */
static void bad_array(struct solo *solo)
{
	unsigned int whole = choose(&solo->choices, 20);
	struct twheel_op *ops = (void *)(solo->memory + PAGE - whole * SIZE - 8);
	struct twheel_op bad = { .opcode = 7 };
	unsigned int i;
	int ret;

	for (i = 0; i < whole; i++)
		ops[i] = bad;
	ret = wh_submit(solo->fd, ops, whole + 1 + choose(&solo->choices, 20), SIZE, 0);
	trace("array of %llu and bad memory", whole, 0, 0, 0, ret);
	if (ret != (whole ? (int)whole : -EFAULT))
		fuzz_fail("array of %u operations and bad memory: %d", whole, ret);
	for (i = 0; i < whole; i++)
		if (ops[i].result != -EOPNOTSUPP)
			fuzz_fail("operation %u of a bad array: %d", i, ops[i].result);
}

/* Reads into bad memory: events that cannot be copied as a whole are not lost. */
void solo_bad_read(struct solo *solo)
{
	const size_t size = sizeof(struct twheel_event);
	unsigned int whole = choose(&solo->choices, 4);
	char *to = solo->memory + PAGE - whole * size - choose(&solo->choices, size);
	struct span span;
	ssize_t ret, i;

	if (solo->ring || one_of(&solo->choices, 3))
		return bad_array(solo);
	span = span_begin();
	ret = read(solo->fd, to, (whole + 16) * size);
	ret = ret < 0 ? -errno : ret;
	span_end(&span);
	trace("read into %llu and bad memory", whole, 0, 0, 0, ret);
	add_count(&fuzz->calls, 1);
	if (ret == -EAGAIN) {
		model_read(&solo->model, ret, 1, &span);
		return;
	}
	if (ret == -EFAULT && !whole)
		return;
	if (ret <= 0 || ret % size || ret / size > whole)
		fuzz_fail("read into room for %u and bad memory: %zd", whole, ret);
	for (i = 0; i < ret / (ssize_t)size; i++) {
		struct twheel_event event;

		memcpy(&event, to + i * size, size);
		model_event(&solo->model, &event, &span);
	}
}

/* Tries to map what cannot be mapped. */
void solo_map(struct solo *solo)
{
	const char *fault = NULL;

	if (solo->ring)
		fault = wh_map_fault(solo->fd, solo->ring_bytes, TWHEEL_RING_OFFSET);
	if (solo->touch && !fault)
		fault = wh_map_fault(solo->fd, solo->touch_bytes, TWHEEL_TOUCH_OFFSET);
	trace("mmap", 0, 0, 0, 0, 0);
	if (fault)
		fuzz_fail("mmap: %s", fault);
}

void solo_unmap(struct solo *solo)
{
	if (solo->ring)
		munmap(solo->ring, solo->ring_bytes);
	if (solo->touch)
		munmap(solo->touch, solo->touch_bytes);
	solo->ring = NULL;
	solo->touch = NULL;
	solo->ring_bytes = 0;
	solo->touch_bytes = 0;
}
