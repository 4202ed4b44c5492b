// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the touch array: programs tell of activity with a store
 *
 * What they store is the time that the kernel publishes in the same mapping. The first page of
 * each is the same one, which programs can only read: so to publish the time is one store,
 * however many arrays there are. It is made whenever the kernel brings its own clocks up to
 * date (timekeeper.c):
 *
 *  - each jiffy, on one of the CPUs that are not idle. A CPU that is idle is not woken;
 *  - when a CPU leaves idle and no other has kept the time meanwhile: on the way into the
 *    interrupt that woke it, or out of the idle loop, and so before a program runs there.
 *
 * The clocks move by whole jiffies, and what is left over waits for the next: the time that
 * a program finds is at most %STALENESS_MAX old. Should the CPU that keeps the time be held up, then
 * it stands still for all, as it does for CLOCK_MONOTONIC_COARSE. Whoever reads a word takes
 * it for %STALENESS_MAX younger: rather a little late than before the idle timeout has gone by.
 */
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "context.h"
#include "lib/mapping.h"
#include "lib/memory.h"
#include "touch.h"

#define WORDS_MAX	(1U << 24)

/* How old a published time may be, in nanoseconds. */
#define STALENESS_MAX	(2 * TICK_NSEC)

/**
 * struct twheel_touch_array - a touch array
 * @mapping:	its memory: a page with the time, and the words, which the program can write
 * @words:	how many words it has
 */
struct twheel_touch_array {
	struct twheel_mapping	mapping;
	u32			words;
};

/*
 * The first page of all arrays. There from before the timekeeper's notifier is registered until
 * after it is gone.
 */
static struct page *time_page;

/**
 * twheel_touch_publish - tell all programs what time it is
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: any; one at a time.
 */
void twheel_touch_publish(u64 now)
{
	struct twheel_touch *shared = page_address(time_page);

	/*
	 * The clock that is read while the others are updated may go back by a hair; a published
	 * time does not. Read by programs.
	 */
	if (now > shared->now)
		WRITE_ONCE(shared->now, now);
}

/**
 * twheel_touch_init - get the page in which the time is published
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int __init twheel_touch_init(void)
{
	time_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	return time_page ? 0 : -ENOMEM;
}

/**
 * twheel_touch_exit - the opposite of twheel_touch_init()
 *
 * Context: process. Nothing is published any more, and no array is there.
 */
void twheel_touch_exit(void)
{
	__free_page(time_page);
}

/**
 * twheel_touch_available - can there be touch arrays?
 *
 * Context: any.
 * Return: whether this kernel's pages are as long as what programs take for the first one.
 */
bool twheel_touch_available(void)
{
	return PAGE_SIZE == offsetof(struct twheel_touch, words);
}

/* A context's touch array, or NULL. */
static struct twheel_touch_array *touch_of(const struct twheel_context *ctx)
{
	/* Pairs with the smp_store_release() in twheel_touch_create(). */
	return READ_ONCE(ctx->touch);
}

/**
 * twheel_touch_create - give a context its touch array
 * @ctx:	the context
 * @words:	how many timers it is for
 *
 * Context: process, with the context's @grow_lock held.
 * Return: 0; or
 * * %-EINVAL	- @words is 0, or too large
 * * %-EOPNOTSUPP - there are none in this kernel
 * * %-EBUSY	- there is one
 * * %-ENOMEM	- no memory
 */
int twheel_touch_create(struct twheel_context *ctx, u32 words)
{
	struct twheel_touch_array *touch;
	int ret;

	lockdep_assert_held(&ctx->grow_lock);
	if (!words || words > WORDS_MAX)
		return -EINVAL;
	if (!twheel_touch_available())
		return -EOPNOTSUPP;
	if (ctx->touch)
		return -EBUSY;
	touch = kzalloc(sizeof(*touch), TWHEEL_GFP_USER);
	if (!touch)
		return -ENOMEM;
	touch->words = words;
	ret = twheel_mapping_create(&touch->mapping, words * sizeof(u64), TWHEEL_TOUCH_OFFSET,
				    time_page);
	if (ret) {
		kfree(touch);
		return ret;
	}
	spin_lock_bh(&ctx->lock);
	/* Pairs with the READ_ONCE() in touch_of(). */
	smp_store_release(&ctx->touch, touch);
	spin_unlock_bh(&ctx->lock);
	return 0;
}

/**
 * twheel_touch_destroy - free a context's touch array, if it has one
 * @ctx:	the context; nobody uses it any more
 *
 * Context: process; may sleep.
 */
void twheel_touch_destroy(struct twheel_context *ctx)
{
	if (!ctx->touch)
		return;
	twheel_mapping_destroy(&ctx->touch->mapping);
	kfree(ctx->touch);
}

/**
 * twheel_touch_mapping - the memory of a context's touch array
 * @ctx:	the context
 *
 * Context: any.
 * Return: the memory; NULL if there is no touch array.
 */
struct twheel_mapping *twheel_touch_mapping(const struct twheel_context *ctx)
{
	struct twheel_touch_array *touch = touch_of(ctx);

	return touch ? &touch->mapping : NULL;
}

/**
 * twheel_touch_words - how many words a context's touch array has
 * @ctx:	the context
 *
 * Context: any.
 * Return: their number; 0 if there is no array.
 */
u32 twheel_touch_words(const struct twheel_context *ctx)
{
	const struct twheel_touch_array *touch = touch_of(ctx);

	return touch ? touch->words : 0;
}

/**
 * twheel_touch_active - when was there activity?
 * @ctx:	the context; it has a touch array
 * @et:		a timer with %TWHEEL_TOUCHED
 * @now:	the time, in nanoseconds
 *
 * A time that has passed is that of the activity, or of up to %STALENESS_MAX before it. One in the
 * future is no time, but as the program has changed its mind there was activity when it was
 * first seen. So whatever a hostile program stores, or half of a store that was not atomic,
 * it puts the timer off once.
 *
 * Context: with the context's lock held.
 * Return: the latest time of activity known, in nanoseconds, not after @now.
 */
u64 twheel_touch_active(struct twheel_context *ctx, struct twheel_extended_timer *et, u64 now)
{
	const u64 *words = ctx->touch->mapping.memory;
	/* Written by the program. */
	u64 value = READ_ONCE(words[et->touch]);

	if (value < now)
		return max(et->last_active, min(value + STALENESS_MAX, now));
	if (value == et->last_future)
		return et->last_active;
	et->last_future = value;
	return now;
}
