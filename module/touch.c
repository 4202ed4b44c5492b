// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the touch array: programs tell of activity with a store
 *
 * What they store is the time that the kernel publishes in the same mapping. It does so
 * whenever it brings its own clocks up to date, which it tells on the notifier chain that is
 * there for the clocks of virtual machines:
 *
 *  - each jiffy, on one of the CPUs that are not idle. A CPU that is idle is not woken;
 *  - when a CPU leaves idle and no other has kept the time meanwhile: on the way into the
 *    interrupt that woke it, or out of the idle loop, and so before a program runs there.
 *
 * The clocks move by whole jiffies, and what is left over waits for the next: the time that
 * a program finds is at most %STALE old. Should the CPU that keeps the time be held up, then
 * it stands still for all, as it does for CLOCK_MONOTONIC_COARSE. Whoever reads a word takes
 * it for %STALE younger: rather a little late than before the idle timeout has gone by.
 *
 * The notifier is there while there is an array.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/pvclock_gtod.h>
#include <linux/slab.h>

#include "context.h"
#include "mapping.h"

#define WORDS_MAX	(1U << 24)

/* How old a published time may be, in nanoseconds. */
#define STALE		(2 * TICK_NSEC)

/**
 * struct twheel_touch_array - a touch array
 * @mapping:	its memory, a struct twheel_touch. The program can write it
 * @words:	how many words it has
 * @link:	in the list of all arrays
 */
struct twheel_touch_array {
	struct twheel_mapping	mapping;
	u32			words;
	struct list_head	link;
};

/*
 * Guards @arrays and @published. Taken in process context, and by the notifier with the
 * kernel's clocks locked: so raw, with interrupts off, and with no look at these clocks
 * inside. Inside of @switch_lock.
 */
static DEFINE_RAW_SPINLOCK(publish_lock);
static LIST_HEAD(arrays);
/* The time in all arrays. */
static u64 published;

/*
 * Guards @nr_arrays, and is held while the notifier comes and goes. Taken in process
 * context, inside of twheel_context.grow_lock.
 */
static DEFINE_MUTEX(switch_lock);
static unsigned int nr_arrays;

static void publish(void)
{
	struct twheel_touch_array *touch;
	struct twheel_touch *shared;
	/* The only clock that can be read while the clocks are updated. */
	u64 now = ktime_get_mono_fast_ns();

	lockdep_assert_held(&publish_lock);
	/* That one may go back by a hair; a published time does not. */
	published = max(published, now);
	list_for_each_entry(touch, &arrays, link) {
		shared = touch->mapping.memory;
		/* Read by the program. */
		WRITE_ONCE(shared->now, published);
	}
}

static int clocks_updated(struct notifier_block *block, unsigned long was_set, void *timekeeper)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&publish_lock, flags);
	publish();
	raw_spin_unlock_irqrestore(&publish_lock, flags);
	return NOTIFY_OK;
}

static struct notifier_block clocks_notifier = {
	.notifier_call	= clocks_updated,
};

/* Adds an array to those that are published, with the time in it. */
static void add(struct twheel_touch_array *touch)
{
	unsigned long flags;

	mutex_lock(&switch_lock);
	raw_spin_lock_irqsave(&publish_lock, flags);
	list_add_tail(&touch->link, &arrays);
	publish();
	raw_spin_unlock_irqrestore(&publish_lock, flags);
	if (!nr_arrays++)
		pvclock_gtod_register_notifier(&clocks_notifier);
	mutex_unlock(&switch_lock);
}

static void del(struct twheel_touch_array *touch)
{
	unsigned long flags;

	mutex_lock(&switch_lock);
	if (!--nr_arrays)
		pvclock_gtod_unregister_notifier(&clocks_notifier);
	raw_spin_lock_irqsave(&publish_lock, flags);
	list_del(&touch->link);
	raw_spin_unlock_irqrestore(&publish_lock, flags);
	mutex_unlock(&switch_lock);
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
 * * %-EBUSY	- there is one
 * * %-ENOMEM	- no memory
 */
int twheel_touch_create(struct twheel_context *ctx, u32 words)
{
	struct twheel_touch_array *touch;
	struct twheel_touch *shared;
	int ret;

	lockdep_assert_held(&ctx->grow_lock);
	if (!words || words > WORDS_MAX)
		return -EINVAL;
	if (ctx->touch)
		return -EBUSY;
	touch = kzalloc(sizeof(*touch), GFP_KERNEL_ACCOUNT);
	if (!touch)
		return -ENOMEM;
	touch->words = words;
	ret = twheel_mapping_create(&touch->mapping, struct_size(shared, words, words),
				    TWHEEL_TOUCH_OFFSET);
	if (ret) {
		kfree(touch);
		return ret;
	}
	add(touch);
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
	del(ctx->touch);
	twheel_mapping_destroy(&ctx->touch->mapping);
	kfree(ctx->touch);
}

/**
 * twheel_touch_mmap - mmap(2) of a context's touch array
 * @ctx:	the context
 * @vma:	what the program asks for
 *
 * Context: process.
 * Return: 0; or -EINVAL if there is no array, or not for a mapping like this.
 */
int twheel_touch_mmap(struct twheel_context *ctx, struct vm_area_struct *vma)
{
	struct twheel_touch_array *touch = touch_of(ctx);

	return touch ? twheel_mapping_mmap(&touch->mapping, vma) : -EINVAL;
}

/**
 * twheel_touch_bytes - how long the mapping of a context's touch array is
 * @ctx:	the context
 *
 * Context: any.
 * Return: the length in bytes; 0 if there is no array.
 */
u64 twheel_touch_bytes(const struct twheel_context *ctx)
{
	const struct twheel_touch_array *touch = touch_of(ctx);

	return touch ? touch->mapping.bytes : 0;
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
 * twheel_touch_read - when was there activity?
 * @ctx:	the context; it has a touch array
 * @word:	a word of it
 * @now:	the time, in nanoseconds
 *
 * Context: any.
 * Return: the latest time at which the program may have stored what is in the word, in
 * nanoseconds, not after @now. Whatever a hostile program stores, or half of a store that
 * was not atomic: it is a time that has passed.
 */
u64 twheel_touch_read(const struct twheel_context *ctx, u32 word, u64 now)
{
	const struct twheel_touch *shared = touch_of(ctx)->mapping.memory;
	/* Written by the program. */
	u64 value = READ_ONCE(shared->words[word]);

	return value < now ? min(value + STALE, now) : now;
}
