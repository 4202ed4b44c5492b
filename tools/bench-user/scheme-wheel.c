// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-user: module/core/wheel.c, called as module/core/timer.c calls it for a timer that is armed
 * and re-armed on its own CPU
 *
 * The functions up to twheel_cancel() are what remains of those in module/core for a caller with
 * softirqs disabled. As in the kernel, each is called and not inlined.
 */
#include <err.h>

#include "bench.h"
#include "wheel.h"
#include "wheel_expire.h"

#define TICK_SHIFT	20
#define EXPIRES_MAX	((u64)INT64_MAX)

/* A page is added when there are fewer free chunks than this. The module keeps more of them. */
#define CHUNKS_LOW	64

/* As in module/core, this many chunks are expired at a time. */
#define BATCH		32

/* Time advances in steps of this many ns. */
#define TIME_STEP	100000000ULL

#define noipa		__attribute__((noipa))

struct timer {
	struct twheel_node	node;
	void			(*function)(struct timer *timer);
};

_Static_assert(sizeof(struct timer) == 40, "as in module/include/twheel.h");

/**
 * struct base - the wheel of a CPU
 * @wheel:	the wheel
 * @running:	the timer whose callback is running
 * @programmed:	the time for which the clock event would be programmed
 * @behind:	ns from the time until which timers are due to now, +1: __fls() is undefined
 *		for 0
 * @late:	histogram of lateness, by power of two
 */
struct base {
	struct twheel	wheel;
	struct timer	*running;
	u64		programmed;
	u64		behind;
	unsigned long	late[64];
};

/* The kernel has a per-CPU variable instead. */
static struct base *this_base;

static char *pages;
static size_t nr_pages, pages_used;
static u64 now, origin;

static noipa void base_refill(struct base *base)
{
	if (pages_used == nr_pages)
		errx(EXIT_FAILED, "wheel: takes more chunks than there are timers");
	twheel_add_page(&base->wheel, pages + pages_used++ * TWHEEL_PAGE_BYTES, true);
}

static noipa void base_program(struct base *base)
{
	u64 next = twheel_next_expiry(&base->wheel);

	base->programmed = next == TWHEEL_NEVER ? next : next << TICK_SHIFT;
}

/* A timer has been enqueued; the wheel reaches its entry at @time. */
static inline void base_enqueued(struct base *base, u64 time)
{
	if (unlikely(time < base->programmed))
		base_program(base);
}

static noipa int twheel_add(struct timer *timer, u64 expires)
{
	struct base *base = this_base;

	if (unlikely(base->wheel.stats.free < CHUNKS_LOW))
		base_refill(base);
	expires = expires < EXPIRES_MAX ? expires : EXPIRES_MAX;
	if (unlikely(timer->node.location))
		return -EBUSY;
	WRITE_ONCE(timer->node.owner, base->wheel.owner);
	WRITE_ONCE(timer->node.deadline, expires);
	base_enqueued(base, twheel_enqueue(&base->wheel, &timer->node, expires));
	return 0;
}

static noipa int twheel_rearm(struct timer *timer, u64 expires)
{
	struct base *base = this_base;

	if (unlikely(timer->node.owner != base->wheel.owner))
		return -EAGAIN;
	expires = expires < EXPIRES_MAX ? expires : EXPIRES_MAX;
	if (likely(twheel_may_defer(&timer->node, expires))) {
		WRITE_ONCE(timer->node.deadline, expires);
		return 1;
	}
	if (unlikely(base->wheel.stats.free < CHUNKS_LOW))
		base_refill(base);
	WRITE_ONCE(timer->node.deadline, expires);
	base_enqueued(base, twheel_requeue(&base->wheel, &timer->node, expires));
	return 1;
}

static noipa int twheel_cancel(struct timer *timer)
{
	struct base *base = this_base;

	if (unlikely(timer->node.owner != base->wheel.owner))
		return -EAGAIN;
	if (!timer->node.location)
		return 0;
	twheel_dequeue(&base->wheel, &timer->node);
	return 1;
}

static __always_inline void call_timer(void *arg, struct twheel_node *node, u64 late)
{
	struct timer *timer = container_of(node, struct timer, node);
	struct base *base = arg;

	base->late[__fls(late + base->behind)]++;
	/* As in the kernel, for other CPUs. */
	smp_store_release(&base->running, timer);
	twheel_detach(node);
	timer->function(timer);
}

static noipa void run_tick(struct base *base, u64 time)
{
	u64 due;

	for (;;) {
		if (unlikely(base->wheel.stats.free < CHUNKS_LOW))
			base_refill(base);
		if (!twheel_advance(&base->wheel, time >> TICK_SHIFT))
			break;
		due = twheel_due_until(&base->wheel, time);
		base->behind = time + 1 - due;
		if (twheel_expire(&base->wheel, BATCH, due, call_timer, base) < BATCH)
			twheel_expire_spilled(&base->wheel, due, call_timer, base);
	}
	WRITE_ONCE(base->running, NULL);
	base_program(base);
}

static void count_expiry(struct timer *timer)
{
	((struct object *)timer)->fired++;
}

static struct timer *timer_of(struct object *objects, const struct step *step)
{
	return (struct timer *)objects[step->object].timer;
}

static u64 time_of(const struct step *step)
{
	return origin + ((u64)step->time << TIME_SHIFT);
}

static void wheel_create(size_t nr)
{
	/* A wheel has at most one chunk in use per timer. */
	nr_pages = (nr + CHUNKS_LOW) / TWHEEL_PAGE_CHUNKS + 2;
	pages = large_alloc(nr_pages * TWHEEL_PAGE_BYTES);
	pages_used = 0;
	this_base = large_alloc(sizeof(*this_base));
	now = 1ULL << 48;
	twheel_init(&this_base->wheel, TICK_SHIFT, 1, now >> TICK_SHIFT);
	base_program(this_base);
}

static void wheel_destroy(void)
{
	large_free(this_base, sizeof(*this_base));
	large_free(pages, nr_pages * TWHEEL_PAGE_BYTES);
}

static void wheel_init(struct object *object)
{
	*(struct timer *)object->timer = (struct timer) { .function = count_expiry };
}

static void wheel_begin(unsigned int shorter)
{
	(void)shorter;
	origin = now;
}

static void wheel_add(struct object *objects, const struct step *steps, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		twheel_add(timer_of(objects, &steps[i]), time_of(&steps[i]));
}

static void wheel_rearm(struct object *objects, const struct step *steps, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		twheel_rearm(timer_of(objects, &steps[i]), time_of(&steps[i]));
}

static void wheel_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		twheel_cancel(timer_of(objects, &steps[i]));
}

static void wheel_expire(uint32_t last)
{
	u64 end = origin + ((u64)last << TIME_SHIFT);

	/* The last timer expires at the tick that its deadline is rounded up to. */
	while (now < end + (1ULL << TICK_SHIFT)) {
		now += TIME_STEP;
		run_tick(this_base, now);
	}
}

static uint64_t wheel_turn(void)
{
	now += 1ULL << TICK_SHIFT;
	run_tick(this_base, now);
	return now - origin;
}

static bool wheel_pending(const struct object *object)
{
	return ((const struct timer *)object->timer)->node.location;
}

static size_t wheel_memory(void)
{
	return sizeof(struct base) + pages_used * TWHEEL_PAGE_BYTES;
}

const struct scheme scheme_wheel = {
	.name		= "wheel",
	.timer_bytes	= sizeof(struct timer),
	.shorter	= 1,
	.create		= wheel_create,
	.destroy	= wheel_destroy,
	.init		= wheel_init,
	.begin		= wheel_begin,
	.add		= wheel_add,
	.rearm		= wheel_rearm,
	.cancel		= wheel_cancel,
	.expire		= wheel_expire,
	.turn		= wheel_turn,
	.pending	= wheel_pending,
	.memory		= wheel_memory,
};
