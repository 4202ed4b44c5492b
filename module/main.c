// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: loading and unloading
 */
#include <linux/module.h>

#include "core/core.h"
#include "debugfs.h"
#include "device/chardev.h"
#include "device/clock_jumps.h"
#include "device/context.h"
#include "device/timekeeper.h"
#include "device/touch.h"
#include "lib/users.h"
#include "rules/admin.h"
#include "tcp/watch.h"

static int __init twheel_module_init(void)
{
	int ret;

	ret = twheel_core_init();
	if (ret)
		return ret;
	ret = twheel_touch_init();
	if (ret)
		goto err_core;
	ret = twheel_users_init();
	if (ret)
		goto err_touch;
	ret = twheel_contexts_init();
	if (ret)
		goto err_users;
	ret = twheel_timekeeper_init();
	if (ret)
		goto err_contexts;
	ret = twheel_watch_init();
	if (ret)
		goto err_timekeeper;
	ret = twheel_rules_init();
	if (ret)
		goto err_watch;
	ret = twheel_chardev_init();
	if (ret)
		goto err_rules;
	twheel_debugfs_init();
	return 0;

err_rules:
	twheel_rules_exit();
err_watch:
	twheel_watch_exit();
err_timekeeper:
	twheel_timekeeper_exit();
	twheel_clock_jumps_exit();
err_contexts:
	twheel_contexts_exit();
err_users:
	twheel_users_exit();
err_touch:
	twheel_touch_exit();
err_core:
	twheel_core_exit();
	return ret;
}

static void __exit twheel_module_exit(void)
{
	twheel_debugfs_exit();
	twheel_chardev_exit();
	twheel_contexts_wait();
	twheel_rules_exit();
	twheel_watch_exit();
	twheel_timekeeper_exit();
	twheel_clock_jumps_exit();
	twheel_contexts_exit();
	twheel_users_exit();
	twheel_touch_exit();
	twheel_core_exit();
}

module_init(twheel_module_init);
module_exit(twheel_module_exit);

MODULE_DESCRIPTION("Timeouts by the million: hierarchical timing wheels");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(TWHEEL_VERSION);
