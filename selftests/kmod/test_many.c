// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API: many timers
 */
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "test.h"

static unsigned int very_many = 100000;
module_param(very_many, uint, 0444);
MODULE_PARM_DESC(very_many, "timers for the tests that take very many (100000)");

/**
 * struct many - timers of a test
 * @probes:	the timers
 * @from:	index of the first timer that a CPU arms
 * @to:		index after the last one
 * @deadline:	the deadline of all timers, or 0 for random ones
 * @failures:	calls that returned the wrong value
 */
struct many {
	struct probe	*probes;
	unsigned int	from;
	unsigned int	to;
	u64		deadline;
	unsigned int	failures;
};

static void many_add(void *arg)
{
	struct many *many = arg;
	unsigned int i;
	u64 deadline;

	for (i = many->from; i < many->to; i++) {
		deadline = many->deadline ?: in_ns(random_ns(NSEC_PER_SEC));
		many->failures += probe_add(&many->probes[i], deadline) != 0;
		if (!(i & 255))
			cond_resched();
	}
}

static unsigned int probes_sum(const struct probe *probes, unsigned int n)
{
	unsigned int i, sum = 0;

	for (i = 0; i < n; i++)
		sum += atomic_read(&probes[i].fired);
	return sum;
}

/* Was each of them called once, as promised? */
static void expect_all_called(struct probe *probes, unsigned int n)
{
	unsigned int i, wrong = 0;

	EXPECT(WAIT_FOR(probes_sum(probes, n) >= n));
	for (i = 0; i < n; i++)
		wrong += atomic_read(&probes[i].fired) != 1 || atomic_read(&probes[i].early) ||
			 atomic_read(&probes[i].wrong) || twheel_pending(&probes[i].timer);
	EXPECT(wrong == 0);
}

void test_many(void)
{
	unsigned int cpu, share = very_many / num_online_cpus();
	struct many many = { };

	many.probes = probes_create(very_many);
	EXPECT(many.probes);
	if (!many.probes)
		return;
	for_each_online_cpu(cpu) {
		many.to = min(very_many, many.from + share);
		on_cpu(cpu, many_add, &many);
		many.from = many.to;
	}
	many.to = very_many;
	many_add(&many);
	EXPECT(many.failures == 0);
	expect_all_called(many.probes, very_many);
	probes_destroy(many.probes, very_many);
}

void test_burst(void)
{
	struct many many = { .to = very_many / 4, .deadline = in_ns(300 * NSEC_PER_MSEC) };

	many.probes = probes_create(many.to);
	EXPECT(many.probes);
	if (!many.probes)
		return;
	on_cpu(other_cpu(), many_add, &many);
	EXPECT(many.failures == 0);
	expect_all_called(many.probes, many.to);
	probes_destroy(many.probes, many.to);
}
