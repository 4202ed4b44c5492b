// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the touch array: programs tell of activity with a store
 *
 * What they store is the time that the kernel publishes in the same mapping. It does so
 * where programs run, and only there:
 *
 *  - on each CPU a timer comes every jiffy. It is deferrable: a CPU that is idle is not
 *    woken for it;
 *  - a CPU that leaves idle publishes at once, before a program runs there: the tracepoint
 *    cpu_idle is in every idle loop, and its probe is called with the CPU still idle. A
 *    kernel without tracepoints wakes up each jiffy instead, as long as there is an array.
 *
 * So the time that a program finds is at most %STALE old, plus the delay of the timer's
 * softirq. Whoever reads a word takes it for %STALE younger: rather a little late
 * than before the idle timeout has gone by.
 *
 * All of it is switched on with the first array, and off with the last.
 */
#include <linux/cpu.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/ktime.h>
#include <trace/events/power.h>

#include "compat.h"
#include "context.h"
#include "mapping.h"

#define WORDS_MAX	(1U << 24)

/* A time younger than this is not published anew, in nanoseconds: CPUs tick at once. */
#define FRESH		(TICK_NSEC / 8)
#define STALE		(TICK_NSEC + FRESH)

#define TIMER_FLAGS	(TIMER_PINNED | (IS_ENABLED(CONFIG_TRACEPOINTS) ? TIMER_DEFERRABLE : 0))

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
 * Guards @arrays and @published. Taken in process context, by the timers and on the way out
 * of idle, so raw, and with interrupts off; inside of @switch_lock.
 */
static DEFINE_RAW_SPINLOCK(publish_lock);
static LIST_HEAD(arrays);
/* The time in all arrays; read without the lock. */
static u64 published;

/*
 * Guards @nr_arrays and @hotplug_state, and is held while publishing is switched on or off.
 * Taken in process context; inside of twheel_context.grow_lock, outside of the locks of CPU
 * hotplug.
 */
static DEFINE_MUTEX(switch_lock);
static unsigned int nr_arrays;
static enum cpuhp_state hotplug_state;

static DEFINE_PER_CPU(struct timer_list, ticker);

static void store(u64 now)
{
	struct twheel_touch_array *touch;
	struct twheel_touch *shared;

	lockdep_assert_held(&publish_lock);
	/* Pairs with the READ_ONCE() in publish(). */
	WRITE_ONCE(published, now);
	list_for_each_entry(touch, &arrays, link) {
		shared = touch->mapping.memory;
		/* Read by the program. */
		WRITE_ONCE(shared->now, now);
	}
}

/* If the lock is taken another CPU is publishing: that will do. */
static void publish(void)
{
	u64 now = ktime_get_ns();
	unsigned long flags;

	/* Pairs with the WRITE_ONCE() in store(). */
	if (now < READ_ONCE(published) + FRESH)
		return;
	if (!raw_spin_trylock_irqsave(&publish_lock, flags))
		return;
	/* Time does not go back, in no array. */
	if (now > published)
		store(now);
	raw_spin_unlock_irqrestore(&publish_lock, flags);
}

static void tick(struct timer_list *timer)
{
	publish();
	/* What is due already comes with the next jiffy; jiffies + 1 is the one after it. */
	mod_timer(timer, jiffies);
}

static void idle(void *unused, unsigned int state, unsigned int cpu)
{
	if (state == PWR_EVENT_EXIT)
		publish();
}

/* On the CPU itself: it has come, or publishing begins. */
static int start_cpu(unsigned int cpu)
{
	struct timer_list *timer = per_cpu_ptr(&ticker, cpu);

	timer->expires = jiffies;
	add_timer_on(timer, cpu);
	return 0;
}

/* Likewise, when it goes: otherwise its timer would move to another CPU. */
static int stop_cpu(unsigned int cpu)
{
	timer_delete_sync(per_cpu_ptr(&ticker, cpu));
	return 0;
}

static int start(void)
{
	int ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "twheel/touch:online", start_cpu,
				    stop_cpu);

	if (ret < 0)
		return ret;
	hotplug_state = ret;
	ret = IS_ENABLED(CONFIG_TRACEPOINTS) ? register_trace_cpu_idle(idle, NULL) : 0;
	if (ret)
		cpuhp_remove_state(hotplug_state);
	return ret;
}

/* A probe may still run: it finds no array that is gone, and twheel_touch_exit() waits. */
static void stop(void)
{
	if (IS_ENABLED(CONFIG_TRACEPOINTS))
		unregister_trace_cpu_idle(idle, NULL);
	cpuhp_remove_state(hotplug_state);
}

/* Adds an array to those that are published, with the time in it. */
static int add(struct twheel_touch_array *touch)
{
	unsigned long flags;
	int ret = 0;

	mutex_lock(&switch_lock);
	if (!nr_arrays)
		ret = start();
	if (!ret) {
		nr_arrays++;
		raw_spin_lock_irqsave(&publish_lock, flags);
		list_add_tail(&touch->link, &arrays);
		store(ktime_get_ns());
		raw_spin_unlock_irqrestore(&publish_lock, flags);
	}
	mutex_unlock(&switch_lock);
	return ret;
}

static void del(struct twheel_touch_array *touch)
{
	unsigned long flags;

	mutex_lock(&switch_lock);
	raw_spin_lock_irqsave(&publish_lock, flags);
	list_del(&touch->link);
	raw_spin_unlock_irqrestore(&publish_lock, flags);
	if (!--nr_arrays)
		stop();
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
 * * another	- the kernel refuses to tell of CPUs that come and go
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
	if (ret)
		goto err_touch;
	ret = add(touch);
	if (ret)
		goto err_mapping;
	spin_lock_bh(&ctx->lock);
	/* Pairs with the READ_ONCE() in touch_of(). */
	smp_store_release(&ctx->touch, touch);
	spin_unlock_bh(&ctx->lock);
	return 0;

err_mapping:
	twheel_mapping_destroy(&touch->mapping);
err_touch:
	kfree(touch);
	return ret;
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

/**
 * twheel_touch_init - prepare for touch arrays
 */
void twheel_touch_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		timer_setup(per_cpu_ptr(&ticker, cpu), tick, TIMER_FLAGS);
}

/**
 * twheel_touch_exit - wait until nothing of it runs any more; no array is left
 */
void twheel_touch_exit(void)
{
	tracepoint_synchronize_unregister();
}
