// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of twheel's in-kernel API
 *
 * Loading the module runs them. /sys/kernel/debug/twheel_test/results then has the results in
 * TAP; kernel.sh reads them and unloads the module. Writing to the file "hotplug" arms timers on
 * a CPU that the script takes offline; see test_hotplug.c.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "test.h"

/**
 * struct test_case - a test and its result
 * @name:	its name in the results
 * @run:	runs it
 * @fault:	the first expectation that did not hold, or NULL
 * @file:	the file of that expectation
 * @line:	its line in that file
 * @skipped:	why the test was skipped, or NULL
 */
struct test_case {
	const char	*name;
	void		(*run)(void);
	const char	*fault;
	const char	*file;
	int		line;
	const char	*skipped;
};

static struct test_case *running;

void expect(bool holds, const char *what, const char *file, int line)
{
	if (holds || running->fault)
		return;
	running->fault = what;
	running->file = kbasename(file);
	running->line = line;
}

void skip(const char *why)
{
	running->skipped = why;
}

bool simulated;
module_param(simulated, bool, 0444);
MODULE_PARM_DESC(simulated, "time is the number of instructions: no timer is late (no)");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "do only the tests that have this in their names (all)");

static struct test_case cases[] = {
	{ "a timer is no larger than a timer_list",	test_size },
	{ "return values",				test_return_values },
	{ "expiry: when, where, in which context",	test_expiry },
	{ "expiry: at its tick",			test_punctual },
	{ "times in the past and after the end",	test_limits_of_time },
	{ "re-arm to earlier and later",		test_rearm },
	{ "a callback arms its timer",			test_callback_rearms },
	{ "a callback cancels its timer",		test_callback_cancels },
	{ "a callback frees its timer",			test_callback_frees },
	{ "a callback arms another timer",		test_callback_arms_another },
	{ "cancel_sync waits for the callback",		test_cancel_sync_waits },
	{ "cancel_sync of a timer that arms itself",	test_cancel_sync_against_rearming },
	{ "cancel_sync of one that does anything",	test_cancel_sync_against_anything },
	{ "pushed on while it expires",			test_push_while_it_expires },
	{ "armed on one CPU, moved from another",	test_from_one_cpu_to_another },
	{ "armed while its callback runs",		test_rearm_while_it_runs },
	{ "very many timers",				test_many },
	{ "many timers at one moment",			test_burst },
	{ "callbacks that take long",			test_turns },
	{ "callbacks that arm for a time long past",	test_overdue },
	{ "static timers",				test_static },
	{ "timers on the stack",			test_on_stack },
	{ "when a timer is due",			test_expires },
	{ "armed by a delay",				test_relative },
	{ "slack",					test_slack },
	{ "armed on a CPU",				test_add_on },
	{ "armed on a CPU, and then moved",		test_add_on_and_then },
	{ "armed on a CPU: refused",			test_add_on_refused },
	{ "armed on a CPU while its callback runs",	test_add_on_while_it_runs },
	{ "shut down",					test_shutdown },
	{ "shut down while others arm it",		test_shutdown_while_it_is_armed },
	{ "all CPUs at the same timers",		test_storm },
};

static bool is_chosen(const struct test_case *test)
{
	return strstr(test->name, only);
}

static int results_show(struct seq_file *m, void *unused)
{
	const struct test_case *test;
	unsigned int i, number = 0;

	seq_puts(m, "TAP version 13\n");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		test = &cases[i];
		if (!is_chosen(test))
			continue;
		if (test->fault)
			seq_printf(m, "# %s:%d: expected %s\n", test->file, test->line,
				   test->fault);
		seq_printf(m, "%sok %u %s", test->fault ? "not " : "", ++number,
			   test->name);
		if (test->skipped)
			seq_printf(m, " # SKIP %s", test->skipped);
		seq_putc(m, '\n');
	}
	seq_printf(m, "1..%u\n", number);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(results);

static struct dentry *root;

static int __init twheel_test_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		running = &cases[i];
		if (!is_chosen(running))
			continue;
		running->run();
		if (running->fault)
			pr_err("%s: %s:%d: expected %s\n", running->name, running->file,
			       running->line, running->fault);
		cond_resched();
	}
	root = debugfs_create_dir("twheel_test", NULL);
	debugfs_create_file("results", 0444, root, NULL, &results_fops);
	debugfs_create_file("hotplug", 0644, root, NULL, &hotplug_fops);
	return 0;
}

static void __exit twheel_test_exit(void)
{
	debugfs_remove(root);
	hotplug_refuse(false);
	hotplug_forget();
}

module_init(twheel_test_init);
module_exit(twheel_test_exit);

MODULE_DESCRIPTION("Tests of twheel's in-kernel API");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
