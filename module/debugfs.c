// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: /sys/kernel/debug/twheel: for people; programs use an ioctl
 *
 *	totals		a line "key: value" for each counter, summed over all CPUs
 *	cpus		a line for each CPU that was ever used, below a heading
 *	levels		a line for each level of a CPU's wheel that is occupied
 *	lateness	expiries by the time from deadline to callback, in powers of two
 *	watch		a line "kind key: value" for each counter of watched connections
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "core/stats.h"
#include "core/wheel.h"
#include "debugfs.h"
#include "device/context.h"
#include "tcp/sk_state.h"
#include "twheel.h"

static struct dentry *root;

/**
 * struct column - a counter of a CPU's wheel, and its name
 * @name:	its name
 * @offset:	its offset in struct twheel_snapshot
 * @is_long:	it is an unsigned long, not a u64
 */
struct column {
	const char	*name;
	size_t		offset;
	bool		is_long;
};

#define COUNT(member)	{ #member, offsetof(struct twheel_snapshot, counts.member), false }
#define STAT(name, member) \
	{ name, offsetof(struct twheel_snapshot, wheel.member), true }

/* Columns from which a ratio is calculated. */
enum { CANCELS = 2, EXPIRIES = 5 };

static const struct column columns[] = {
	{ "pending", offsetof(struct twheel_snapshot, pending), false },
	COUNT(adds),
	[CANCELS] = COUNT(cancels),
	COUNT(remote_cancels),
	COUNT(rearms),
	[EXPIRIES] = { "expiries", offsetof(struct twheel_snapshot, expiries), false },
	STAT("cascades", cascades),
	COUNT(ticks),
	COUNT(empty_ticks),
	STAT("spilled", spilled),
	STAT("chunks", chunks),
	STAT("free_chunks", free),
};

static u64 column_value(const struct twheel_snapshot *snapshot, const struct column *column)
{
	const void *p = (const void *)snapshot + column->offset;

	return column->is_long ? *(const unsigned long *)p : *(const u64 *)p;
}

/* How many in a thousand timers that ended had not expired. */
static u64 cancelled_permille(u64 cancels, u64 expiries)
{
	return div64_u64(cancels * 1000, cancels + expiries ?: 1);
}

/**
 * struct view - a file being read
 * @m:		where to print
 * @sum:	counters summed over all CPUs
 */
struct view {
	struct seq_file	*m;
	u64		*sum;
};

/* Calls @visit for each CPU. */
static int visit_cpus(struct view *view, void (*visit)(struct view *view, unsigned int cpu,
						       const struct twheel_snapshot *snapshot))
{
	struct twheel_snapshot *snapshot;
	unsigned int cpu;

	snapshot = kmalloc(sizeof(*snapshot), GFP_KERNEL);
	if (!snapshot)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		twheel_stats_snapshot(cpu, snapshot);
		visit(view, cpu, snapshot);
	}
	kfree(snapshot);
	return 0;
}

static void add_columns(struct view *view, unsigned int cpu,
			const struct twheel_snapshot *snapshot)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(columns); i++)
		view->sum[i] += column_value(snapshot, &columns[i]);
}

static int totals_show(struct seq_file *m, void *unused)
{
	u64 sum[ARRAY_SIZE(columns)] = { 0 };
	struct view view = { .m = m, .sum = sum };
	int ret = visit_cpus(&view, add_columns);
	size_t i;

	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(columns); i++)
		seq_printf(m, "%s: %llu\n", columns[i].name, sum[i]);
	seq_printf(m, "cancelled_permille: %llu\n",
		   cancelled_permille(sum[CANCELS], sum[EXPIRIES]));
	seq_printf(m, "contexts: %u\n", twheel_nr_contexts());
	seq_printf(m, "tick_ns: %llu\n", 1ULL << twheel_tick_shift());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(totals);

static void print_columns(struct view *view, unsigned int cpu,
			  const struct twheel_snapshot *snapshot)
{
	size_t i;

	if (!cpu_online(cpu) && !snapshot->counts.adds)
		return;
	seq_printf(view->m, "%u", cpu);
	for (i = 0; i < ARRAY_SIZE(columns); i++)
		seq_printf(view->m, " %llu", column_value(snapshot, &columns[i]));
	seq_printf(view->m, " %llu\n",
		   cancelled_permille(column_value(snapshot, &columns[CANCELS]),
				      column_value(snapshot, &columns[EXPIRIES])));
}

static int cpus_show(struct seq_file *m, void *unused)
{
	struct view view = { .m = m };
	size_t i;

	seq_puts(m, "cpu");
	for (i = 0; i < ARRAY_SIZE(columns); i++)
		seq_printf(m, " %s", columns[i].name);
	seq_puts(m, " cancelled_permille\n");
	return visit_cpus(&view, print_columns);
}
DEFINE_SHOW_ATTRIBUTE(cpus);

static int levels_show(struct seq_file *m, void *unused)
{
	struct twheel_level levels[TWHEEL_LEVELS];
	unsigned int cpu, l;

	seq_puts(m, "cpu level slots chunks timers more\n");
	for_each_possible_cpu(cpu) {
		memset(levels, 0, sizeof(levels));
		if (twheel_stats_levels(cpu, levels))
			continue;
		for (l = 0; l < TWHEEL_LEVELS; l++) {
			if (levels[l].slots)
				seq_printf(m, "%u %u %lu %lu %lu %u\n", cpu, l,
					   levels[l].slots, levels[l].chunks,
					   levels[l].timers, levels[l].more);
		}
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(levels);

static void add_late(struct view *view, unsigned int cpu,
		     const struct twheel_snapshot *snapshot)
{
	unsigned int i;

	for (i = 0; i < TWHEEL_LATE_BUCKETS; i++)
		view->sum[i] += snapshot->counts.late[i];
}

static int lateness_show(struct seq_file *m, void *unused)
{
	u64 sum[TWHEEL_LATE_BUCKETS] = { 0 };
	struct view view = { .m = m, .sum = sum };
	int ret = visit_cpus(&view, add_late);
	unsigned int i, first, last;

	if (ret)
		return ret;
	for (first = 0; first < TWHEEL_LATE_BUCKETS && !sum[first]; first++)
		;
	for (last = TWHEEL_LATE_BUCKETS; last > first && !sum[last - 1]; last--)
		;
	for (i = first; i < last; i++) {
		if (i == TWHEEL_LATE_BUCKETS - 1)
			seq_printf(m, "inf: %llu\n", sum[i]);
		else
			seq_printf(m, "%llu: %llu\n", 2ULL << i, sum[i]);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(lateness);

static int watch_show(struct seq_file *m, void *unused)
{
	twheel_watch_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(watch);

/**
 * twheel_debugfs_init - create the files; without debugfs, do nothing
 */
void twheel_debugfs_init(void)
{
	root = debugfs_create_dir("twheel", NULL);
	debugfs_create_file("totals", 0444, root, NULL, &totals_fops);
	debugfs_create_file("cpus", 0444, root, NULL, &cpus_fops);
	debugfs_create_file("levels", 0444, root, NULL, &levels_fops);
	debugfs_create_file("lateness", 0444, root, NULL, &lateness_fops);
	debugfs_create_file("watch", 0444, root, NULL, &watch_fops);
}

/**
 * twheel_debugfs_exit - remove the files, and wait for their readers
 */
void twheel_debugfs_exit(void)
{
	debugfs_remove(root);
}
