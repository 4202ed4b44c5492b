// SPDX-License-Identifier: MIT
/* A session that is over if its peer has been silent for some time */
#include <linux/module.h>
#include <linux/spinlock.h>

#include "twheel.h"

static unsigned int timeout_ms = 100;
module_param(timeout_ms, uint, 0444);

struct session {
	spinlock_t		lock;
	struct twheel_timer	idle;
	bool			over;
};

/* Softirq context. A message may arrive at this very moment: hence the lock. */
static void session_idle(struct twheel_timer *timer)
{
	struct session *s = container_of(timer, struct session, idle);

	spin_lock(&s->lock);
	/* It may have been re-armed meanwhile. Nobody cancels it. */
	s->over = !twheel_pending(timer);
	spin_unlock(&s->lock);
}

static struct session session = {
	.lock = __SPIN_LOCK_UNLOCKED(session.lock),
	.idle = TWHEEL_TIMER_INITIALIZER(session_idle),
};

/* A write stands for a message. Re-arming to a later time only stores the deadline. */
static int session_heard(const char *value, const struct kernel_param *kp)
{
	spin_lock_bh(&session.lock);
	if (twheel_rearm_rel(&session.idle, timeout_ms * NSEC_PER_MSEC) >= 0)
		session.over = false;
	spin_unlock_bh(&session.lock);
	return 0;
}

static int session_show(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", READ_ONCE(session.over) ? "over" : "alive");
}

static const struct kernel_param_ops heard_ops = { .set = session_heard, .get = session_show };
module_param_cb(heard, &heard_ops, NULL, 0644);

/* No init function is needed. Before the module goes, nobody may arm the timer any more. */
static void __exit example_exit(void)
{
	spin_lock_bh(&session.lock);
	twheel_shutdown(&session.idle);
	spin_unlock_bh(&session.lock);
	twheel_shutdown_sync(&session.idle);
}
module_exit(example_exit);
MODULE_DESCRIPTION("An example of a module with a timer of twheel");
MODULE_LICENSE("Dual MIT/GPL");
