// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stalls CPUs, for tests of what is late then
 *
 * Writing a number of nanoseconds to /sys/module/twheel_stall/parameters/ns makes all other
 * CPUs spin for that long, with interrupts off. The write does not wait for them. If one of them
 * is the CPU that counts jiffies, jiffies stand still for some ticks.
 *
 * Writing one to parameters/update_ns stalls the CPU that sets a clock, from now on, in the middle
 * of the update: modules that were loaded before have been notified, and other CPUs that read a
 * clock spin until it is over.
 *
 * Writing one to parameters/state_ns stalls, once, whoever changes the state of a TCP socket to
 * parameters/state, if one of its ports is parameters/port: modules that were loaded before have
 * been notified of the change, and the socket does not have its new state yet. When the stall
 * begins, state_ns becomes 0.
 *
 * Writing one to parameters/function_ns stalls, once, whoever calls the function next whose name
 * has been written to parameters/function. When the stall begins, function_ns becomes 0.
 */
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/kstrtox.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/pvclock_gtod.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/time64.h>
#include <linux/tracepoint.h>
#include <net/inet_sock.h>

/* The kernel itself would complain about longer ones. */
#define MOST_NS	(200ULL * NSEC_PER_MSEC)

static void stall_cpu(void *us)
{
	udelay((unsigned long)us % USEC_PER_MSEC);
	mdelay((unsigned long)us / USEC_PER_MSEC);
}

static int parse_ns(const char *value, u64 *ns)
{
	int ret = kstrtou64(value, 0, ns);

	return ret ?: *ns > MOST_NS ? -ERANGE : 0;
}

static int set_ns(const char *value, const struct kernel_param *kp)
{
	u64 ns;
	int ret = parse_ns(value, &ns);

	if (ret)
		return ret;
	preempt_disable();
	smp_call_function(stall_cpu, (void *)(unsigned long)(ns / NSEC_PER_USEC), false);
	preempt_enable();
	return 0;
}

static const struct kernel_param_ops ns_ops = { .set = set_ns };
module_param_cb(ns, &ns_ops, NULL, 0200);
MODULE_PARM_DESC(ns, "hold up the other CPUs for so long");

/* For stalls that come later: sets what @kp->arg points to. */
static int set_later_ns(const char *value, const struct kernel_param *kp)
{
	u64 ns;
	int ret = parse_ns(value, &ns);

	if (ret)
		return ret;
	/* Pairs with stall_update(), stall_change() and stall_call(). */
	smp_store_release((u64 *)kp->arg, ns);
	return 0;
}

static int get_later_ns(char *buffer, const struct kernel_param *kp)
{
	/* Pairs with stall_change() and stall_call(). */
	return sysfs_emit(buffer, "%llu\n", READ_ONCE(*(u64 *)kp->arg));
}

static const struct kernel_param_ops later_ns_ops = {
	.set	= set_later_ns,
	.get	= get_later_ns,
};

/*
 * Those who set a clock
 */

/* Written by the parameter, and read by updates. */
static u64 update_ns;
module_param_cb(update_ns, &later_ns_ops, &update_ns, 0600);
MODULE_PARM_DESC(update_ns, "hold up those who set a clock for so long");

static int stall_update(struct notifier_block *block, unsigned long was_set, void *priv)
{
	if (was_set)
		stall_cpu((void *)(unsigned long)(READ_ONCE(update_ns) / NSEC_PER_USEC));
	return NOTIFY_OK;
}

static struct notifier_block update_notifier = {
	.notifier_call	= stall_update,
	.priority	= INT_MIN,
};

/*
 * Those who change the state of a socket
 */

/* Written by the parameter, and reset by the change. */
static u64 state_ns;
module_param_cb(state_ns, &later_ns_ops, &state_ns, 0600);
MODULE_PARM_DESC(state_ns, "hold up the next change of a socket's state for so long");

/* Not to be written while state_ns is set. */
static unsigned int state;
module_param(state, uint, 0600);
MODULE_PARM_DESC(state, "the state that the socket is about to get");

static unsigned int port;
module_param(port, uint, 0600);
MODULE_PARM_DESC(port, "a port of the socket");

static struct tracepoint *state_tp;

static void stall_change(void *unused, const struct sock *sk, const int oldstate,
			 const int newstate)
{
	/* Pairs with set_later_ns(). */
	if (!smp_load_acquire(&state_ns) || newstate != state || sk->sk_protocol != IPPROTO_TCP)
		return;
	if (inet_sk(sk)->inet_num != port && ntohs(inet_sk(sk)->inet_dport) != port)
		return;
	stall_cpu((void *)(unsigned long)(xchg(&state_ns, 0) / NSEC_PER_USEC));
}

static void find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "inet_sock_set_state"))
		state_tp = tp;
}

/* Runs after the probes of other modules. */
static int register_stall_change(void)
{
	if (IS_ENABLED(CONFIG_TRACEPOINTS))
		for_each_kernel_tracepoint(find_tracepoint, NULL);
	return state_tp ? tracepoint_probe_register_prio(state_tp, stall_change, NULL, 0) : 0;
}

static void unregister_stall_change(void)
{
	if (!state_tp)
		return;
	tracepoint_probe_unregister(state_tp, stall_change, NULL);
	tracepoint_synchronize_unregister();
}

/*
 * Those who call a function
 */

/* Written by the parameter, and reset by the call. */
static u64 function_ns;
module_param_cb(function_ns, &later_ns_ops, &function_ns, 0600);
MODULE_PARM_DESC(function_ns, "hold up the next call of the function for so long");

static int stall_call(struct kprobe *unused, struct pt_regs *regs)
{
	/* Pairs with set_later_ns(). */
	const u64 ns = xchg(&function_ns, 0);

	if (ns)
		stall_cpu((void *)(unsigned long)(ns / NSEC_PER_USEC));
	return 0;
}

static struct kprobe call_probe;
static char function[KSYM_NAME_LEN];

static void unregister_stall_call(void)
{
	if (call_probe.addr)
		unregister_kprobe(&call_probe);
	memset(&call_probe, 0, sizeof(call_probe));
}

static int set_function(const char *value, const struct kernel_param *kp)
{
	int ret;

	unregister_stall_call();
	if (strscpy(function, value, sizeof(function)) < 0)
		return -E2BIG;
	call_probe.symbol_name = strim(function);
	call_probe.pre_handler = stall_call;
	ret = register_kprobe(&call_probe);
	if (ret)
		call_probe.addr = NULL;
	return ret;
}

static const struct kernel_param_ops function_ops = { .set = set_function };
module_param_cb(function, &function_ops, NULL, 0200);
MODULE_PARM_DESC(function, "the function");

static int __init twheel_stall_init(void)
{
	int ret = register_stall_change();

	if (ret)
		return ret;
	ret = pvclock_gtod_register_notifier(&update_notifier);
	if (ret)
		unregister_stall_change();
	return ret;
}
module_init(twheel_stall_init);

/* Only this waits for stalls: the code must not go away before they have ended. */
static void __exit twheel_stall_exit(void)
{
	pvclock_gtod_unregister_notifier(&update_notifier);
	unregister_stall_change();
	unregister_stall_call();
	kick_all_cpus_sync();
}
module_exit(twheel_stall_exit);

MODULE_DESCRIPTION("Holds CPUs up, for tests of twheel");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
