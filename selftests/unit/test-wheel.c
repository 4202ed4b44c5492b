// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel against the oracle.
 *
 * Prints TAP. Every run prints its seed, and -s SEED repeats it.
 */
#include <errno.h>
#include <getopt.h>
#include <time.h>

#include "model.h"
#include "random.h"

#define __unused	__attribute__((unused))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static u64 seed;
static const char *test_name;

void check_failed(const char *file, int line, const char *what)
{
	printf("# %s:%d: %s\n# repeat with -s %llu\nnot ok - %s\n",
	       file, line, what, seed, test_name);
	fflush(stdout);
	abort();
}

/*
 * Every pair of deadlines from every start, with time advancing in every step: the
 * second timer is added halfway and then, in turn, kept, cancelled, or moved to the
 * deadline of the first. Only for wheels with few ticks.
 */
static void try_pair(struct model *m, u64 start, u64 a, u64 b, u64 step, unsigned int act)
{
	u64 now;

	twheel_reset(m->wheel, start);
	model_arm(m, &m->timers[0], a);
	for (now = start; now + step < TICK_MAX && m->armed; now += step) {
		if (now == start + step)
			model_arm(m, &m->timers[1], b);
		if (now == start + 2 * step && m->timers[1].armed) {
			if (act == 1)
				model_cancel(m, &m->timers[1]);
			if (act == 2)
				model_rearm(m, &m->timers[1], a);
		}
		model_check(m);
		model_advance(m, now + step);
	}
	model_advance(m, TICK_MAX);
	CHECK(!m->armed);
	model_check(m);
}

static void test_exhaustive(unsigned int loops __unused)
{
	struct model m;
	u64 start, a, b, step;
	unsigned int act;

	if (TICK_MAX >= 128)
		return;
	model_init(&m, 2, 0, 0);
	model_add_chunks(&m, 2);
	for (start = 0; start < TICK_MAX; start++)
		for (a = 0; a <= TICK_MAX; a++)
			for (b = 0; b <= TICK_MAX; b += 1 + TICK_MAX / 20)
				for (step = 1; step <= TICK_MAX / 2; step += 1 + step / 2)
					for (act = 0; act < 3; act++)
						try_pair(&m, start, a, b, step, act);
	model_free(&m);
}

/**
 * struct config - a kind of random run
 * @name:	for the reader
 * @nr:		number of timers
 * @shift:	nanoseconds per tick, as a power of two
 * @bits:	maximum number of bits of a distance, in nanoseconds
 * @step:	maximum number of bits of a step of time, in ticks
 * @chunks:	chunks given to the wheel, in percent of the timers
 * @cancel:	weight of cancelling against adding, in percent
 * @budget:	maximum number of entries examined in one go, or 0 for all
 */
struct config {
	const char *name;
	unsigned int nr, shift, bits, step, chunks, cancel, budget;
};

static const struct config configs[] = {
	{ "near",		64,	0,	6,	3,	101,	30,	0 },
	{ "mixed",		200,	0,	14,	8,	101,	50,	0 },
	{ "mixed, in portions",	200,	0,	14,	8,	101,	50,	7 },
	{ "far",		100,	20,	63,	40,	101,	50,	0 },
	{ "far, short tick",	100,	10,	63,	52,	101,	50,	3 },
	{ "all cancelled",	300,	20,	36,	4,	101,	99,	0 },
	{ "few chunks",		200,	0,	12,	6,	5,	50,	5 },
	{ "no chunk",		100,	4,	16,	6,	0,	50,	4 },
	{ "crowded slots",	500,	12,	14,	1,	101,	40,	16 },
};

/* Distances that fit, whatever the size of the wheel. */
static u64 draw_deadline(const struct model *m, const struct config *c)
{
	unsigned int bits = TWHEEL_BITS * TWHEEL_LEVELS + c->shift - 1;
	unsigned int room = bits < 62 ? bits : 62;
	u64 deadline = (m->wheel->now << c->shift) + draw_bits(c->bits < room ? c->bits : room);
	u64 limit = 1ULL << room;

	/* Most bugs are at the edges of slots. */
	if (draw_below(4) == 0)
		deadline &= ~0ULL << draw_below(room);
	if (draw_below(16) == 0)
		deadline = draw_below(deadline + 1);
	return deadline < limit ? deadline : limit;
}

static void random_op(struct model *m, const struct config *c)
{
	struct timer *t = &m->timers[draw_below(m->nr)];

	if (!t->armed && draw_below(8) == 0)
		model_queue_remote(m, t, draw_deadline(m, c));
	else if (!t->armed)
		model_arm(m, t, draw_deadline(m, c));
	else if (draw_below(100) < c->cancel / 2)
		model_dequeue_remote(m, t);
	else if (draw_below(100) < c->cancel)
		model_cancel(m, t);
	else
		model_rearm(m, t, draw_deadline(m, c));
}

static void random_step(struct model *m, const struct config *c, u64 *clock, u64 end)
{
	u64 step = draw_bits(c->step);

	if (draw_below(8) == 0)
		model_forward(m, draw_below(4) ? *clock : draw_below(*clock + 1));
	*clock = step < end - *clock ? *clock + step : end;
	model_expire(m, *clock, c->budget ? 1 + draw_below(c->budget) : ~0U);
}

struct random_run {
	struct model model;
	const struct config *config;
};

/* A callback may use any timer, including its own. */
static void random_expired(struct model *m, struct timer *t __unused)
{
	const struct random_run *run = container_of(m, struct random_run, model);

	if (draw_below(4) == 0)
		random_op(m, run->config);
}

static void random_run(const struct config *c, unsigned int rounds)
{
	/* Half of the wheel's range in ticks, so that every deadline fits. */
	unsigned int room = TWHEEL_BITS * TWHEEL_LEVELS - 1;
	u64 end = 1ULL << (room + c->shift > 61 ? 61 - c->shift : room);
	u64 clock = draw_below(end);
	struct random_run run = { .config = c };
	struct model *m = &run.model;

	model_init(m, c->nr, c->shift, clock);
	model_add_chunks(m, c->nr * c->chunks / 100);
	m->expired = random_expired;
	while (rounds--) {
		unsigned int ops = draw_below(2 * c->nr);

		while (ops--)
			random_op(m, c);
		model_check(m);
		random_step(m, c, &clock, end);
		model_check(m);
		if (draw_below(64) == 0)
			model_add_chunks(m, c->nr / 10);
		if (draw_below(16) == 0) {
			model_release(m, draw_below(2 * TWHEEL_PAGE_CHUNKS), draw_bits(8));
			model_check(m);
			model_withhold(m);
			model_add_chunks(m, c->nr * c->chunks / 100);
		}
		if (draw_below(16) == 0)
			twheel_withhold_chunks(m->wheel, draw_below(4) == 0);
		if (clock == end) {
			model_evict_all(m);
			clock = draw_below(end);
			twheel_reset(m->wheel, clock);
		}
	}
	model_free(m);
}

static void test_random(unsigned int loops)
{
	while (loops--)
		for (unsigned int i = 0; i < ARRAY_SIZE(configs); i++)
			random_run(&configs[i], 100);
}

/* A lone timer wakes the wheel at most once per level, wherever it starts. */
static void test_wakeups(unsigned int loops)
{
	struct model m;

	loops *= 200;
	model_init(&m, 1, 0, 0);
	model_add_chunks(&m, 1);
	while (loops--) {
		unsigned int wakeups = 0;
		u64 start = draw_bits(TWHEEL_BITS * TWHEEL_LEVELS - 1);
		u64 next;

		twheel_reset(m.wheel, start);
		CHECK(twheel_next_expiry(m.wheel) == TWHEEL_NEVER);
		model_arm(&m, &m.timers[0], start + draw_bits(TWHEEL_BITS * TWHEEL_LEVELS - 1));
		while ((next = twheel_next_expiry(m.wheel)) != TWHEEL_NEVER && m.armed) {
			model_advance(&m, next);
			wakeups++;
		}
		CHECK(!m.armed);
		CHECK(wakeups <= TWHEEL_LEVELS);
		/* A removed node does not get in the way when the wheel is reset. */
		model_arm(&m, &m.timers[0], m.wheel->now + 1);
		model_cancel(&m, &m.timers[0]);
	}
	model_free(&m);
}

/* A timer that is always re-armed before it is due is handled once per timeout, not per re-arm. */
static void test_heartbeat(unsigned int loops __unused)
{
	const u64 timeout = TICK_MAX / 8;
	struct model m;
	u64 now;

	if (timeout < 4)
		return;
	model_init(&m, 1, 0, 0);
	model_add_chunks(&m, 1);
	model_arm(&m, &m.timers[0], timeout);
	for (now = 0; now + 2 * timeout < TICK_MAX; now += 1 + timeout / 100) {
		model_advance(&m, now);
		model_rearm(&m, &m.timers[0], now + timeout);
		model_check(&m);
	}
	CHECK(m.armed == 1);
	CHECK(m.wheel->stats.cascades <= (now / timeout + 1) * TWHEEL_LEVELS);
	model_advance(&m, TICK_MAX);
	CHECK(!m.armed);
	model_free(&m);
}

/*
 * The orders of operations that might hoard chunks: chunks in use must be bounded by the timers
 * still armed, and chunks ever used by the most timers armed at once.
 */
static void test_memory(unsigned int loops __unused)
{
	const unsigned int nr = 1200;
	struct model m;
	unsigned int round, i, keep;
	u64 far = TICK_MAX / 2;

	model_init(&m, nr, 0, 0);
	model_add_chunks(&m, nr);
	for (keep = 2; keep <= 2 * TWHEEL_CHUNK_CELLS; keep++) {
		for (round = 0; round < 50; round++) {
			for (i = 0; i < nr; i++)
				if (!m.timers[i].armed)
					model_arm(&m, &m.timers[i], 1 + draw_below(far));
			CHECK(!m.wheel->stats.spilled);
			for (i = 0; i < nr; i++)
				if (i % keep && i % 3)
					model_dequeue_remote(&m, &m.timers[i]);
				else if (i % keep)
					model_cancel(&m, &m.timers[i]);
			/* Chunks emptied by others are dropped at the next enqueue. */
			if (!m.wheel->emptied)
				CHECK(m.wheel->stats.chunks - m.wheel->stats.free <=
				      m.armed + TWHEEL_PENDING_CLEAR);
		}
		/* The same slot over and over: a chunk is emptied again and again. */
		for (round = 0; round < 1000; round++) {
			model_arm(&m, &m.timers[1], far);
			model_cancel(&m, &m.timers[1]);
		}
		model_check(&m);
	}
	model_free(&m);
}

/*
 * Many chunks emptied by another CPU are not dropped in one go, but are not forgotten either.
 * Counts the maximum number of steps that any call takes.
 */
static void test_steps(unsigned int loops __unused)
{
	const unsigned int nr = 20000;
	struct twheel_return ret = { .nr_to_scan = nr };
	unsigned long most = 0, used;
	struct model m;
	unsigned int i;
	bool more;

	model_init(&m, nr, 0, 0);
	model_add_chunks(&m, m.most_pages * TWHEEL_PAGE_CHUNKS);
	for (i = 0; i < nr; i++)
		model_arm(&m, &m.timers[i], TICK_MAX - i % 2);
	used = m.wheel->stats.chunks - m.wheel->stats.free;
	for (i = 0; i < nr; i++)
		model_dequeue_remote(&m, &m.timers[i]);
	for (i = 0; i < nr; i++) {
		steps = 0;
		model_arm(&m, &m.timers[i], TICK_MAX - i % 2);
		most = max(most, steps);
		CHECK(m.wheel->stats.chunks - m.wheel->stats.free <= used);
	}
	CHECK(most && most <= TWHEEL_STEPS);
	CHECK(!m.wheel->emptied);
	for (i = 0; i < nr; i++) {
		if (i % 2)
			model_dequeue_remote(&m, &m.timers[i]);
		else
			model_cancel(&m, &m.timers[i]);
	}
	do {
		steps = 0;
		more = twheel_release_pages(m.wheel, &ret);
		CHECK(steps <= TWHEEL_STEPS);
	} while (more);
	/* The pages still belong to the model. */
	CHECK(!m.wheel->stats.chunks);
	model_free(&m);
}

/* After a peak, all pages without a timer are released, whatever the order. */
static void test_pages(unsigned int loops)
{
	const unsigned int nr = 5000;
	unsigned int i, keep, round;
	struct model m;

	model_init(&m, nr, 0, 0);
	for (round = 0; round < loops; round++) {
		model_add_chunks(&m, m.most_pages * TWHEEL_PAGE_CHUNKS);
		for (i = 0; i < nr; i++)
			model_arm(&m, &m.timers[i], 1 + draw_below(TICK_MAX / 2));
		keep = draw_below(nr / 10);
		for (i = keep; i < nr; i++) {
			if (draw_below(2))
				model_dequeue_remote(&m, &m.timers[i]);
			else
				model_cancel(&m, &m.timers[i]);
		}
		model_release(&m, 0, 0);
		model_check(&m);
		CHECK(m.nr_pages <= m.armed);
		for (i = 0; i < keep; i++)
			model_cancel(&m, &m.timers[i]);
		model_release(&m, 0, 0);
		model_check(&m);
		CHECK(!m.nr_pages && !m.wheel->stats.chunks);
	}
	CHECK(!m.wheel->stats.spilled);
	model_free(&m);
}

/* Whatever the order of freeing, the chunks of a page are taken in memory order. */
static void test_order(unsigned int loops)
{
	const unsigned int nr = 3000;
	unsigned long location, last, falls;
	unsigned int i, other;
	struct timer *t;
	struct model m;

	model_init(&m, nr, 0, 0);
	model_add_chunks(&m, m.most_pages * TWHEEL_PAGE_CHUNKS);
	while (loops--) {
		last = 0;
		falls = 0;
		for (i = 0; i < nr; i++) {
			t = &m.timers[i];
			model_arm(&m, t, TICK_MAX);
			location = t->node.location;
			falls += last / TWHEEL_PAGE_BYTES == location / TWHEEL_PAGE_BYTES &&
				 last > location;
			last = location;
		}
		CHECK(!falls);
		while (m.armed) {
			other = draw_below(nr);
			for (i = 0; i < nr && !m.timers[other].armed; i++)
				other = (other + 1) % nr;
			model_cancel(&m, &m.timers[other]);
		}
		twheel_flush_dequeued(m.wheel);
	}
	model_free(&m);
}

/* Timers that are re-armed at once for a time that has passed; and how often that was done. */
#define PUSHY	4
static unsigned int nr_pushed;

static void arm_again(struct model *m, struct timer *t)
{
	if (t >= &m->timers[PUSHY])
		return;
	model_arm(m, t, 0);
	/* Only if others are waiting. */
	nr_pushed += m->armed > PUSHY;
}

/* A timer whose deadline has passed when it is armed does not precede those overdue by then. */
static void test_overdue(unsigned int loops __unused)
{
	const unsigned int nr = min(TICK_MAX / 2, 2000ULL);
	struct model m;
	unsigned int i;

	model_init(&m, PUSHY + nr, 0, 0);
	model_add_chunks(&m, m.most_pages * TWHEEL_PAGE_CHUNKS);
	m.expired = arm_again;
	for (i = 0; i < PUSHY; i++)
		model_arm(&m, &m.timers[i], 0);
	for (i = 0; i < nr; i++)
		model_arm(&m, &m.timers[PUSHY + i], 1 + i);
	nr_pushed = 0;
	model_expire(&m, nr, 0);
	model_expire(&m, nr, ~0U);
	/* Before the last of the others: once per level, and once before that. */
	CHECK(nr_pushed && nr_pushed <= PUSHY * (1 + TWHEEL_LEVELS));
	CHECK(m.armed == PUSHY);
	model_check(&m);
	model_free(&m);
}

/* A timer queued remotely again and again does not precede those queued before it. */
static void test_remote_list(unsigned int loops __unused)
{
	const unsigned int nr = 1000;
	unsigned int i, others;
	struct timer *t;
	struct model m;

	model_init(&m, PUSHY + nr, 0, 0);
	model_add_chunks(&m, m.most_pages * TWHEEL_PAGE_CHUNKS);
	for (i = PUSHY + nr; i--;)
		model_queue_remote(&m, &m.timers[i], TICK_MAX);
	for (i = others = 0; i < PUSHY + nr; i++) {
		t = model_unqueue_remote(&m);
		CHECK(t);
		if (t < &m.timers[PUSHY]) {
			model_dequeue_remote(&m, t);
			model_queue_remote(&m, t, TICK_MAX);
		} else {
			others++;
		}
	}
	CHECK(others == nr);
	model_check(&m);
	model_free(&m);
}

/* What the owner does while another CPU stops a node and asks whether its callback is running. */
static struct {
	struct twheel wheel;
	struct twheel_node node;
	void (*meanwhile)(void);
	bool busy;
} stopped;

static bool is_busy(const struct twheel *wheel, const struct twheel_node *node)
{
	CHECK(wheel == &stopped.wheel && node == &stopped.node);
	if (stopped.meanwhile)
		stopped.meanwhile();
	return stopped.busy;
}

static int try_stop(bool busy, void (*meanwhile)(void))
{
	stopped.busy = busy;
	stopped.meanwhile = meanwhile;
	return twheel_dequeue_not_running(&stopped.wheel, &stopped.node, is_busy);
}

static void enqueue_meanwhile(void)
{
	stopped.node.deadline = TICK_MAX;
	twheel_enqueue(&stopped.wheel, &stopped.node, TICK_MAX);
}

static void requeue_meanwhile(void)
{
	stopped.node.deadline = TICK_MAX - 1;
	twheel_requeue(&stopped.wheel, &stopped.node, TICK_MAX - 1);
}

static void dequeue_meanwhile(void)
{
	twheel_dequeue(&stopped.wheel, &stopped.node);
}

/* Takes the node out of its cell, as when its slot expires. */
static void empty_meanwhile(void)
{
	struct twheel_node **cell = (void *)(stopped.node.location - TWHEEL_IN_CELL);

	CHECK(twheel_cell_take(cell) == &stopped.node);
}

static void detach_node(void *arg __unused, struct twheel_node *node, u64 late __unused)
{
	twheel_detach(node);
}

/* With few levels, a requeued node may be where it was. */
static bool location_changed(unsigned long location)
{
	return stopped.node.location != location;
}

/* The node is in a cell, or on a spill list if there are no chunks. */
static void stop_enqueued(void)
{
	unsigned long location;

	enqueue_meanwhile();
	location = stopped.node.location;
	CHECK(try_stop(true, NULL) == -EBUSY && !location_changed(location));
	CHECK(try_stop(false, NULL) == 1 && !stopped.node.location);
	CHECK(try_stop(false, NULL) == 0);
}

/* Stopping a node leaves it to its callback, which may do anything with it. */
static void test_stop(unsigned int loops __unused)
{
	void *page = model_page();
	unsigned long location;

	memset(&stopped, 0, sizeof(stopped));
	twheel_init(&stopped.wheel, 0, 0, 0);
	CHECK(try_stop(false, NULL) == 0);
	CHECK(try_stop(true, NULL) == -EBUSY);
	stop_enqueued();
	twheel_add_page(&stopped.wheel, page, false);
	stop_enqueued();
	CHECK(try_stop(false, enqueue_meanwhile) == -EAGAIN);
	location = stopped.node.location;
	CHECK(location);
	CHECK(try_stop(false, requeue_meanwhile) == -EAGAIN && location_changed(location));
	CHECK(stopped.node.location);
	CHECK(try_stop(false, dequeue_meanwhile) == -EAGAIN && !stopped.node.location);
	enqueue_meanwhile();
	/* The node expires. To advance to another slot, the owner takes the lock. */
	locks = 0;
	while (!twheel_chunk_first(&stopped.wheel))
		CHECK(twheel_advance(&stopped.wheel, TICK_MAX));
	CHECK(locks);
	CHECK(try_stop(false, empty_meanwhile) == -EAGAIN && stopped.node.location);
	twheel_detach(&stopped.node);
	CHECK(try_stop(false, NULL) == 0);
	twheel_expire(&stopped.wheel, 1, TICK_MAX, detach_node, NULL);
	free(page);
}

/* A node that was shut down has no entry, whichever call asks. */
static void test_shut(unsigned int loops __unused)
{
	memset(&stopped, 0, sizeof(stopped));
	twheel_init(&stopped.wheel, 0, 0, 0);
	stopped.node.location = TWHEEL_SHUT;
	CHECK(!twheel_may_defer(&stopped.node, TICK_MAX));
	CHECK(twheel_dequeue_remote(&stopped.wheel, &stopped.node) == 0);
	CHECK(try_stop(false, NULL) == 0);
	CHECK(try_stop(true, NULL) == -EBUSY);
	CHECK(stopped.node.location == TWHEEL_SHUT);
}

struct test {
	const char *name;
	void (*run)(unsigned int loops);
};

static const struct test tests[] = {
	{ "every pair of deadlines on a tiny wheel", test_exhaustive },
	{ "random operations against the oracle", test_random },
	{ "a lone timer wakes at most once per level", test_wakeups },
	{ "heartbeats do not move entries", test_heartbeat },
	{ "chunks are bounded by timers in the worst orders", test_memory },
	{ "no call takes many steps", test_steps },
	{ "pages come back after a peak", test_pages },
	{ "chunks are taken in the order of memory", test_order },
	{ "what has passed waits for what is overdue", test_overdue },
	{ "what is sent waits for what was sent before", test_remote_list },
	{ "who stops a node leaves it to its callback", test_stop },
	{ "a node that is shut down has no entry", test_shut },
};

static u64 parse_number(const char *text)
{
	char *end;
	u64 value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end || end == text) {
		fprintf(stderr, "test-wheel: '%s' is not a number\n", text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	unsigned int loops = 20, i;
	int opt;

	seed = (u64)time(NULL) * 1000003;
	while ((opt = getopt(argc, argv, "s:l:")) != -1) {
		switch (opt) {
		case 's':
			seed = parse_number(optarg);
			break;
		case 'l':
			loops = parse_number(optarg);
			break;
		default:
			fprintf(stderr, "usage: test-wheel [-s SEED] [-l LOOPS]\n");
			return 2;
		}
	}
	printf("TAP version 13\n# %u levels of %u slots, seed %llu\n1..%zu\n",
	       TWHEEL_LEVELS, TWHEEL_SLOTS, seed, ARRAY_SIZE(tests));
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		random_state = seed;
		test_name = tests[i].name;
		tests[i].run(loops);
		printf("ok %u %s\n", i + 1, test_name);
		fflush(stdout);
	}
	return 0;
}
