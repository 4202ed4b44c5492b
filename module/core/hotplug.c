// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the timers of a CPU that has gone offline
 *
 * When a CPU goes offline, the hrtimer code moves its hrtimers to another one. There the
 * wheel's hrtimer acts as a proxy for the wheel, which nobody else touches: nothing runs on
 * the CPU any more.
 *
 * If the CPU was taken offline by hand, its timers are moved at once: it may stay away. For a
 * suspend, all CPUs but one go offline, and come back soon, so the timers stay where they are.
 * While the CPUs are away, the proxy continues. It stops before anything runs on a CPU
 * that comes back, so a wheel never has two owners:
 *
 *	cpu_dead()		after the CPU has gone, on another: the proxy is at work
 *	cpu_prepare()		before the CPU comes up, on another: the proxy has stopped
 *	cpu_came_online()	on the CPU: it sets its hrtimer itself
 *
 * Code that runs on the CPU before cpu_came_online() may arm a timer, and that sets the hrtimer,
 * too. The timers of a CPU that does not come back are moved after the system has
 * resumed, by handle_pm_event().
 */
#include <linux/bottom_half.h>
#include <linux/cpu.h>
#include <linux/sched.h>
#include <linux/suspend.h>

#include "cpu_base.h"
#include "expiry.h"
#include "hotplug.h"
#include "isolation.h"
#include "lib/inject.h"
#include "pages.h"
#include "timer.h"
#include "twheel.h"
#include "wheel.h"
#include "wheel_expire.h"

static enum cpuhp_state dead_state, online_state;

/* Enqueues a dead CPU's timer here; or, if this CPU is isolated, where its own timers go. */
static void migrate_timer(struct twheel_base *dead, struct twheel_base *live, bool isolated,
			  struct twheel_node *node)
{
	struct twheel_timer *timer = container_of(node, struct twheel_timer, node);
	struct twheel_base *other = isolated ? twheel_choose_target(timer) : NULL;

	dead->wheel.stats.dequeued++;
	if (other) {
		twheel_base_queue_remote(other, timer);
		return;
	}
	/* Pairs with the READ_ONCE()s of @owner. */
	WRITE_ONCE(node->owner, live->cpu);
	twheel_base_enqueue(live, timer, node->deadline);
}

/* Moves some of a dead CPU's timers here. Returns true if there may be more. */
static bool migrate_some(struct twheel_base *dead, struct twheel_base *live, bool isolated)
{
	struct twheel *wheel = &dead->wheel;
	struct twheel_chunk *chunk = twheel_chunk_first(wheel);
	struct twheel_node *node;
	unsigned int i;

	if (chunk) {
		for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
			node = twheel_cell_take(&chunk->cell[i]);
			if (node)
				migrate_timer(dead, live, isolated, node);
		}
		twheel_chunk_retire(wheel, chunk);
		return true;
	}
	node = twheel_unspill(wheel, &wheel->expiring_spill) ?: twheel_unqueue_remote(wheel);
	if (node) {
		migrate_timer(dead, live, isolated, node);
		return true;
	}
	return twheel_advance(wheel, TWHEEL_NEVER - 1);
}

/*
 * Moves a batch of a dead CPU's timers here. Returns true if there may be more. Out of line, for a
 * test that counts them.
 */
static noinline bool migrate_batch(struct twheel_base *dead)
{
	/* If this task then migrates, it makes no difference. */
	const bool isolated = !twheel_base_refill();
	struct twheel_base *live;
	unsigned long flags;
	bool more = true;
	unsigned int i;

	live = twheel_base_enter(&flags);
	for (i = 0; more && i < TWHEEL_BATCH; i++)
		more = migrate_some(dead, live, isolated);
	twheel_base_leave(live, flags);
	return more;
}

/* Moves all timers of a CPU that is offline here. Its hrtimer has been cancelled. */
static void migrate_timers(struct twheel_base *dead)
{
	bool more;

	twheel_flush_dequeued(&dead->wheel);
	do {
		more = migrate_batch(dead);
		twheel_inject(TWHEEL_POINT_MIGRATE);
		cond_resched();
	} while (more);
	twheel_reset(&dead->wheel, twheel_base_now(dead));
	twheel_pages_drain(&dead->wheel);
	dead->programmed = TWHEEL_NEVER;
	/* Nothing is queued to a CPU that is offline, unless a callback runs by proxy. */
	WRITE_ONCE(dead->remote_pending, false);
}

/* Restarts the hrtimer of a CPU that is offline on this one. It has been cancelled. */
static void expire_by_proxy(struct twheel_base *dead)
{
	local_bh_disable();
	twheel_base_lock(dead);
	twheel_expiry_program(dead);
	twheel_base_unlock(dead);
	local_bh_enable();
}

/*
 * Called on a live CPU when @cpu is gone, or has not come up after cpu_prepare(). Until
 * now the hrtimer has expired its timers elsewhere, unless it was cancelled there.
 */
static int cpu_dead(unsigned int cpu)
{
	struct twheel_base *dead = twheel_base_of(cpu);

	hrtimer_cancel(&dead->hrtimer);
	if (cpuhp_tasks_frozen)
		expire_by_proxy(dead);
	else
		migrate_timers(dead);
	return 0;
}

/* Called on a live CPU before @cpu comes up. */
static int cpu_prepare(unsigned int cpu)
{
	struct twheel_base *base = twheel_base_of(cpu);

	hrtimer_cancel(&base->hrtimer);
	twheel_isolation_stop(base);
	base->programmed = TWHEEL_NEVER;
	return 0;
}

/* Called on @cpu. */
static int cpu_came_online(unsigned int cpu)
{
	struct twheel_base *base;
	unsigned long flags;

	base = twheel_base_enter(&flags);
	if (!base->in_expiry)
		twheel_expiry_program(base);
	twheel_base_leave(base, flags);
	twheel_isolation_spread();
	return 0;
}

/* Moves the timers of CPUs that did not come back from a suspend, or from a failed attempt. */
static int handle_pm_event(struct notifier_block *notifier, unsigned long event, void *unused)
{
	struct twheel_base *base;
	unsigned int cpu;

	if (event != PM_POST_SUSPEND && event != PM_POST_HIBERNATION && event != PM_POST_RESTORE)
		return NOTIFY_DONE;
	cpus_read_lock();
	for_each_possible_cpu(cpu) {
		if (cpu_online(cpu))
			continue;
		base = twheel_base_of(cpu);
		hrtimer_cancel(&base->hrtimer);
		migrate_timers(base);
	}
	cpus_read_unlock();
	return NOTIFY_OK;
}

static struct notifier_block resume_notifier = { .notifier_call = handle_pm_event };

/**
 * twheel_hotplug_init - start moving the timers of CPUs that go offline
 *
 * Return: 0, or an errno.
 */
int twheel_hotplug_init(void)
{
	int ret;

	ret = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "twheel:dead", cpu_prepare,
					cpu_dead);
	if (ret < 0)
		return ret;
	dead_state = ret;
	ret = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "twheel:online",
					cpu_came_online, NULL);
	if (ret < 0)
		goto err_dead;
	online_state = ret;
	ret = register_pm_notifier(&resume_notifier);
	if (ret)
		goto err_online;
	return 0;

err_online:
	cpuhp_remove_state_nocalls(online_state);
err_dead:
	cpuhp_remove_state_nocalls(dead_state);
	return ret;
}

/**
 * twheel_hotplug_exit - stop moving timers; no timer may be armed any more
 */
void twheel_hotplug_exit(void)
{
	unregister_pm_notifier(&resume_notifier);
	cpuhp_remove_state_nocalls(online_state);
	cpuhp_remove_state_nocalls(dead_state);
}
