// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the timers of a CPU that is gone
 */
#include <linux/cpu.h>
#include <linux/sched.h>

#include "base.h"

static enum cpuhp_state hotplug_state;

/* Files a dead CPU's timer here. */
static void move_here(struct twheel_base *dead, struct twheel_base *live,
		      struct twheel_node *node)
{
	dead->wheel.stats.removed++;
	/* Pairs with the READ_ONCE()s of @owner. */
	WRITE_ONCE(node->owner, live->cpu);
	twheel_base_file(live, container_of(node, struct twheel_timer, node), node->deadline);
}

/* Moves some of a dead CPU's timers here. Returns whether there may be more. */
static bool bury_some(struct twheel_base *dead, struct twheel_base *live)
{
	struct twheel *wheel = &dead->wheel;
	struct twheel_chunk *chunk = twheel_chunk_get(wheel);
	struct twheel_node *node;
	unsigned int i;

	if (chunk) {
		for (i = 0; i < TWHEEL_CHUNK_CELLS; i++) {
			node = twheel_cell_empty(&chunk->cell[i]);
			if (node)
				move_here(dead, live, node);
		}
		twheel_chunk_put(wheel, chunk);
		return true;
	}
	node = twheel_unspill(wheel, &wheel->work_spill);
	if (node)
		move_here(dead, live, node);
	return twheel_advance(wheel, TWHEEL_NEVER - 1);
}

/*
 * Called on a live CPU when @cpu is gone for good. Until here the hrtimer, which
 * the hrtimer code moved when the CPU went, has expired its timers elsewhere.
 */
static int cpu_dead(unsigned int cpu)
{
	struct twheel_base *dead = twheel_base_of(cpu), *live;
	unsigned long flags;
	unsigned int i;
	bool more;

	hrtimer_cancel(&dead->hrtimer);
	twheel_settle(&dead->wheel);
	do {
		twheel_base_supply();
		live = twheel_base_enter(&flags);
		for (more = true, i = 0; more && i < TWHEEL_PORTION; i++)
			more = bury_some(dead, live);
		twheel_base_leave(live, flags);
		twheel_inject(TWHEEL_POINT_BURY);
		cond_resched();
	} while (more);
	twheel_reset(&dead->wheel, twheel_base_now(dead));
	dead->programmed = TWHEEL_NEVER;
	return 0;
}

/**
 * twheel_hotplug_init - from now on, move the timers of CPUs that go
 *
 * Return: 0, or an errno.
 */
int twheel_hotplug_init(void)
{
	/* Called after the CPU has gone, so there is no need for a call when it comes. */
	int ret = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "twheel:dead", NULL,
					    cpu_dead);

	if (ret < 0)
		return ret;
	hotplug_state = ret;
	return 0;
}

/**
 * twheel_hotplug_exit - no more of that; no timer is armed any more
 */
void twheel_hotplug_exit(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
}
