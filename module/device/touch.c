// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the touch array: programs report activity with a store
 *
 * They store the time that the kernel publishes in the same mapping. The first page of every
 * mapping is the same one, which programs can only read: publishing the time is one store, however
 * many arrays there are. It happens whenever the kernel updates its own clocks (timekeeper.c):
 *
 *  - each jiffy, on one of the CPUs that are not idle. An idle CPU is not woken;
 *  - when a CPU leaves idle and no other CPU has kept the time meanwhile: on the way into the
 *    interrupt that woke it, or out of the idle loop, and so before a program runs there.
 *
 * The clocks advance by whole jiffies, and the remainder waits for the next update: the time that
 * a program finds is at most %STALENESS_MAX old. Should the CPU that keeps the time be held up, it
 * stands still for everyone, as it does for CLOCK_MONOTONIC_COARSE. When a word is read, it is
 * taken to be %STALENESS_MAX younger: better a little late than before the idle timeout has
 * passed.
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

/* How old the published time may be, in nanoseconds. */
#define STALENESS_MAX	(2 * TICK_NSEC)

/**
 * struct twheel_touch_array - a touch array
 * @mapping:	its memory: a page with the time, and the words, which the program can write
 * @words:	number of words
 */
struct twheel_touch_array {
	struct twheel_mapping	mapping;
	u32			words;
};

/*
 * The first page of all arrays. Allocated before the timekeeper's notifier is registered, and freed
 * after it is unregistered.
 */
static struct page *time_page;

/**
 * twheel_touch_publish - publish the time to all programs
 * @now:	nanoseconds of CLOCK_MONOTONIC
 *
 * Context: any; one call at a time.
 */
void twheel_touch_publish(u64 now)
{
	struct twheel_touch *shared = page_address(time_page);

	/*
	 * The clock that is readable during an update may go back a little; the published time
	 * does not. Read by programs.
	 */
	if (now > shared->now)
		WRITE_ONCE(shared->now, now);
}

/**
 * twheel_touch_init - allocate the page in which the time is published
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
 * twheel_touch_exit - undo twheel_touch_init()
 *
 * Context: process. Nothing is published any more, and there are no arrays.
 */
void twheel_touch_exit(void)
{
	__free_page(time_page);
}

/**
 * twheel_touch_available - check whether this kernel supports touch arrays
 *
 * Context: any.
 * Return: true if a page has the size that programs expect of the first one.
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
 * twheel_touch_create - create a context's touch array
 * @ctx:	the context
 * @words:	number of words
 *
 * Context: process, with the context's @grow_lock held.
 * Return: 0; or
 * * %-EINVAL	- @words is 0, or too large
 * * %-EOPNOTSUPP - this kernel does not support touch arrays
 * * %-EBUSY	- the context has an array already
 * * %-ENOMEM	- out of memory
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
 * @ctx:	the context, which is not in use any more
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
 * Return: the number; 0 if there is no array.
 */
u32 twheel_touch_words(const struct twheel_context *ctx)
{
	const struct twheel_touch_array *touch = touch_of(ctx);

	return touch ? touch->words : 0;
}

/**
 * twheel_touch_active - the last activity that a touch array reports for a timer
 * @ctx:	the context, which has a touch array
 * @et:		a timer with %TWHEEL_TOUCHED
 * @now:	the current time, in nanoseconds
 *
 * A time in the past is that of the activity, or up to %STALENESS_MAX before it. A time in the
 * future is not a valid one; but the program has changed the word, so there was activity when that
 * was first seen. So whatever a hostile program stores, or half of a store that was not atomic,
 * defers the timer once.
 *
 * Context: with the context's lock held.
 * Return: the time of the last known activity, in nanoseconds, not after @now.
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
