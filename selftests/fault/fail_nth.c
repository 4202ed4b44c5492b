// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes each call with its 1st, 2nd, ... nth allocation or copy failing, until none is left to
 * fail: a failed call has a proper errno and has changed nothing, and the same call works
 * afterwards. Leaks are left to kmemleak, after the run.
 *
 * To add a call, add a line to the table at the end.
 *
 * usage: fail_nth MODULE, the path of twheel.ko; a kernel with fault injection
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include <linux/twheel_rules.h>

#include "watch_test.h"

#define NR_EXPIRED	20
#define NR_OPS		40

/**
 * struct env - the environment of a call
 * @fd:		a context with a pending timer and NR_EXPIRED expired ones
 * @pending:	handle of the pending one
 * @expired:	handle of one of the others
 * @other:	a context that never had a timer, or has @in_other timers
 * @in_other:	how many it has: as many as it has memory for
 * @new:	what the call has opened or added, to be undone
 */
struct env {
	int fd;
	int other;
	__u64 in_other;
	__u64 pending;
	__u64 expired;
	__u64 new;
};

/**
 * struct op - a call under test
 * @name:	its name
 * @call:	makes the call. Returns its result, or -errno
 * @undo:	undoes what a successful call has done, and checks that there was
 *		something. Returns whether everything was right
 * @unloaded:	the module must not be loaded, and there is no context
 * @within:	instead of the nth allocation of the call, every allocation in this kernel function
 *		fails, which tries again when the first one does
 */
struct op {
	const char *name;
	long (*call)(struct env *env);
	bool (*undo)(struct env *env, long ret);
	bool unloaded;
	const char *within;
};

static const char *module;
static int fail_nth_fd, faults;
/* A connection. */
static int here, there;
static __u16 port;

static __u16 port_of(int sock)
{
	struct sockaddr_in in = {};
	socklen_t length = sizeof(in);

	getsockname(sock, (void *)&in, &length);
	return ntohs(in.sin_port);
}

static void set_fail_nth(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	/* This write copies, too. If that is what fails, the fault is used up. */
	if (pwrite(fail_nth_fd, text, len, 0) != len && (n || errno != EFAULT))
		ksft_exit_fail_msg("fail-nth: %s\n", strerror(errno));
}

/* Disables the injection. Returns whether a fault was injected. */
static bool clear_fail_nth(void)
{
	char text[16] = "";
	bool injected;
	ssize_t len;

	/* This read copies, too: it can be what fails after the call is through. */
	len = pread(fail_nth_fd, text, sizeof(text) - 1, 0);
	if (len <= 0 && errno != EFAULT)
		ksft_exit_fail_msg("fail-nth: %s\n", strerror(errno));
	injected = len > 0 && atoi(text) == 0;
	set_fail_nth(0);
	faults += injected;
	return injected;
}

/* Like wh_add_timer(), but with a key it succeeds if only the handle could not be returned. */
static int add_timer(int fd, struct twheel_timer_add *add)
{
	return wh_ioctl(fd, TWHEEL_IOC_TIMER_ADD, add);
}

/* Sets the timer that is always pending. Returns the previous state, or -errno. */
static int set_pending(struct env *env)
{
	struct twheel_timer_add add = {
		.time		= HOUR,
		.clock		= CLOCK_MONOTONIC,
		.flags		= TWHEEL_KEYED,
		.key		= 9,
		.user_data	= 99,
	};
	int ret = add_timer(env->fd, &add);

	/* If the handle could not be written, it is unchanged. */
	if (ret >= 0 && add.handle)
		env->pending = add.handle;
	return ret;
}

static void env_create(struct env *env)
{
	int i;

	env->fd = wh_open(O_NONBLOCK);
	env->other = wh_open(0);
	if (env->fd < 0 || env->other < 0)
		ksft_exit_fail_msg("open: %s\n", strerror(-env->fd));
	for (i = 0; i < NR_EXPIRED; i++)
		if (wh_add(env->fd, 0, 0, i, &env->expired))
			ksft_exit_fail_msg("cannot add a timer\n");
	if (set_pending(env) != TWHEEL_WAS_ABSENT || !wh_wait_events(env->fd, NR_EXPIRED))
		ksft_exit_fail_msg("cannot set up timers\n");
}

static int load_module(void)
{
	int fd = open(module, O_RDONLY | O_CLOEXEC);
	long ret = fd < 0 ? -1 : syscall(SYS_finit_module, fd, "", 0);

	if (ret)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

static int unload_module(void)
{
	return syscall(SYS_delete_module, "twheel", O_NONBLOCK) ? -errno : 0;
}

/* ---- the calls */

static long call_open(struct env *env)
{
	env->new = wh_open(0);
	return (int)env->new < 0 ? (int)env->new : 0;
}

static bool undo_open(struct env *env, long ret)
{
	return ret == 0 && close(env->new) == 0;
}

static long call_info(struct env *env)
{
	struct twheel_info info;

	return wh_info(env->fd, &info);
}

static bool undo_nothing(struct env *env __attribute__((unused)), long ret)
{
	return ret == 0;
}

static long call_add(struct env *env)
{
	return wh_add(env->fd, HOUR, 0, 7, &env->new);
}

static bool undo_add(struct env *env, long ret)
{
	return ret == 0 && wh_state(env->fd, env->new) == TWHEEL_STATE_PENDING &&
	       wh_cancel(env->fd, env->new) == TWHEEL_WAS_PENDING;
}

/* The first add of a context allocates memory for its timers. */
static long call_first_add(struct env *env)
{
	return wh_add(env->other, HOUR, 0, 7, &env->new);
}

static bool undo_first_add(struct env *env, long ret)
{
	if (ret || wh_nr_timers(env->other) != 1 || close(env->other))
		return false;
	env->other = wh_open(0);
	return env->other >= 0;
}

/* Adds timers until the next one needs memory. The handles of a block are consecutive. */
static bool fill_other(struct env *env)
{
	__u64 first, handle, i;
	int probe = wh_open(0);

	if (wh_add(probe, HOUR, 0, 7, &first))
		return false;
	env->in_other = 0;
	do {
		env->in_other++;
		if (wh_add(probe, HOUR, 0, 7, &handle))
			return false;
	} while (handle == first + env->in_other);
	close(probe);
	for (i = 0; i < env->in_other; i++)
		if (wh_add(env->other, HOUR, 0, 7, NULL))
			return false;
	return true;
}

static bool undo_growing_add(struct env *env, long ret)
{
	if (ret || wh_nr_timers(env->other) != env->in_other + 1 || close(env->other))
		return false;
	env->other = wh_open(0);
	return fill_other(env);
}

static long call_add_like(struct env *env, struct twheel_timer_add add)
{
	long ret;

	add.clock = CLOCK_MONOTONIC;
	ret = add_timer(env->other, &add);
	return ret == TWHEEL_WAS_ABSENT ? 0 : ret;
}

/* The first key of a context allocates the key table. */
static long call_first_key(struct env *env)
{
	return call_add_like(env, (struct twheel_timer_add){
		.time	= HOUR,
		.flags	= TWHEEL_KEYED,
		.key	= 5,
	});
}

/* After the key has been set, nothing can fail any more, or the call undoes it. */
static long call_key_again(struct env *env)
{
	return set_pending(env);
}

static bool undo_key_again(struct env *env, long ret)
{
	return ret == TWHEEL_WAS_PENDING && wh_state(env->fd, env->pending) == TWHEEL_STATE_PENDING;
}

static long call_first_limits(struct env *env)
{
	return call_add_like(env, (struct twheel_timer_add){
		.time		= HOUR,
		.idle		= HOUR,
		.lifetime	= HOUR,
	});
}

/* The first watch of all subscribes to state changes. After a failure, so does the next one. */
static long call_first_watch(struct env *env)
{
	long ret = watch(env->other, here, HOUR, TWHEEL_WATCH_ABORT, NULL);

	if (ret < 0) {
		close(env->other);
		env->other = wh_open(0);
	}
	return ret;
}

/* A timer that becomes one of another kind: memory for a new one is allocated. */
static long call_other_kind(struct env *env)
{
	struct twheel_timer_add add = {
		.time	= HOUR,
		.flags	= TWHEEL_KEYED,
		.clock	= CLOCK_MONOTONIC,
		.key	= 5,
	};
	long ret = add_timer(env->other, &add);
	int cancelled;

	if (ret < 0)
		return ret;
	add.period = HOUR;
	ret = add_timer(env->other, &add);
	/* If it is not the new timer, it is the old one. At most one fault is injected. */
	cancelled = wh_cancel_key(env->other, 5);
	if (cancelled == -EFAULT)
		cancelled = wh_cancel_key(env->other, 5);
	return cancelled == TWHEEL_WAS_PENDING ? ret : -EPROTO;
}

static bool undo_other_kind(struct env *env, long ret)
{
	if (ret != TWHEEL_WAS_PENDING || wh_nr_timers(env->other) || close(env->other))
		return false;
	env->other = wh_open(0);
	return env->other >= 0;
}

static __u64 drain_all(int fd)
{
	__u64 cursor = 0;

	return wh_drain(fd, NULL, 10 * NR_OPS, sizeof(struct twheel_timer_query), &cursor);
}

static long call_submit(struct env *env)
{
	struct twheel_op ops[NR_OPS];
	int i;

	memset(ops, 0, sizeof(ops));
	for (i = 0; i < NR_OPS; i++) {
		ops[i].time = HOUR;
		ops[i].clock = CLOCK_MONOTONIC;
	}
	i = wh_submit(env->other, ops, NR_OPS, sizeof(ops[0]), 0);
	/* A timer that could not be added has its own error, and did not stop the others. */
	if (i > 0 && ops[0].result < 0) {
		drain_all(env->other);
		return ops[0].result;
	}
	return i;
}

/* A fault in the middle ends the call; what it has reported exists, and nothing else. */
static bool undo_submit(struct env *env, long ret)
{
	__u64 timers = wh_nr_timers(env->other);

	if (ret < 1 || timers > (__u64)ret || drain_all(env->other) != timers ||
	    close(env->other))
		return false;
	env->other = wh_open(0);
	return env->other >= 0;
}

static long call_drain(struct env *env)
{
	struct twheel_timer_query records[3];
	__u64 cursor = 0;
	long ret = 0;
	int i;

	for (i = 0; i < 3 && !ret; i++)
		ret = wh_add(env->other, HOUR, 0, i, NULL);
	if (!ret)
		ret = wh_drain(env->other, records, 3, sizeof(records[0]), &cursor);
	drain_all(env->other);
	return ret;
}

static bool undo_drain(struct env *env, long ret)
{
	return ret == 3 && !wh_nr_timers(env->other);
}

static long call_stats(struct env *env)
{
	struct twheel_context_stats stats;

	return wh_stats(env->fd, &stats);
}

static long next_rule(struct env *env, struct twheel_rule *rule)
{
	*rule = (struct twheel_rule) { };
	return wh_ioctl(env->fd, TWHEEL_IOC_RULE_NEXT, rule);
}

/* Adds a rule for the connection. If it cannot be added, there is none. */
static long add_rule(struct env *env, struct twheel_rule *rule)
{
	long ret;

	*rule = (struct twheel_rule){
		.flags		= TWHEEL_RULE_LOCAL_PORT | TWHEEL_RULE_PID | TWHEEL_WATCH_ABORT,
		.local_port	= port,
		.pid		= getpid(),
		.idle		= HOUR,
	};
	ret = wh_ioctl(env->fd, TWHEEL_IOC_RULE_ADD, rule);
	return ret && next_rule(env, rule) != -ENOENT ? -EPROTO : ret;
}

/* All calls about a rule. Whatever else fails, the rule can be removed. */
static long call_rule(struct env *env)
{
	struct twheel_connection record;
	struct twheel_connections list = {
		.records	= (uintptr_t)&record,
		.nr_records	= 1,
		.record_size	= sizeof(record),
	};
	struct twheel_rule rule;
	long ret = add_rule(env, &rule);

	if (ret)
		return ret;
	list.id = rule.id;
	ret = wh_ioctl(env->fd, TWHEEL_IOC_RULE_CONNECTIONS, &list);
	if (ret >= 0)
		ret = next_rule(env, &rule);
	if (!ret)
		ret = wh_ioctl(env->fd, TWHEEL_IOC_RULE_REMOVE, &rule);
	/* At most one fault is injected. */
	if (ret && (next_rule(env, &rule) || wh_ioctl(env->fd, TWHEEL_IOC_RULE_REMOVE, &rule)))
		return -EPROTO;
	return ret;
}

/* Adds an exception for the connection, with a list, before another one. */
static long add_keep(struct env *env, struct twheel_rule *rule)
{
	static const struct twheel_match match = { .kind = TWHEEL_MATCH_FAMILY, .family = AF_INET };
	long ret = add_rule(env, rule);

	if (ret)
		return ret;
	*rule = (struct twheel_rule){
		.flags		= TWHEEL_RULE_KEEP,
		.name		= "keep",
		.matches	= (uintptr_t)&match,
		.nr_matches	= 1,
		.before		= rule->id,
	};
	return wh_ioctl(env->fd, TWHEEL_IOC_RULE_ADD, rule);
}

/* Waits until a rule has counted both ends of the connection. */
static bool wait_counted(struct env *env, __u32 id)
{
	const __u64 end = now_ns() + GUARD_MS * MSEC;
	struct twheel_rule rule;

	do {
		sleep_ns(100 * MSEC);
		rule = (struct twheel_rule){ .id = id - 1 };
		/* At most one fault is injected. */
		if (!wh_ioctl(env->fd, TWHEEL_IOC_RULE_NEXT, &rule) && rule.would_close >= 2)
			return true;
	} while (now_ns() < end);
	return false;
}

/* As above. */
static bool remove_all(struct env *env)
{
	struct twheel_rule rule;
	long ret;
	int faults = 0;

	while ((ret = next_rule(env, &rule)) != -ENOENT && faults < 2)
		if (ret || wh_ioctl(env->fd, TWHEEL_IOC_RULE_REMOVE, &rule))
			faults++;
	return ret == -ENOENT;
}

/* Changes a rule. If that works, the change applies to all its connections, at once or soon. */
static long call_set(struct env *env)
{
	struct twheel_rule rule;
	long ret = add_keep(env, &rule);

	if (!ret) {
		rule = (struct twheel_rule){
			.id	= rule.id,
			.flags	= TWHEEL_WATCH_ABORT | TWHEEL_RULE_DRY_RUN,
			.idle	= 50 * MSEC,
		};
		ret = wh_ioctl(env->fd, TWHEEL_IOC_RULE_SET, &rule);
		if (!ret && !wait_counted(env, rule.id))
			ret = -ETIME;
	}
	return remove_all(env) ? ret : -EPROTO;
}

/* Opens, sets up, maps, accesses, and closes: all of it may fail. */
static long map_and_read(__u32 ring_entries, __u32 touch_words, off_t offset)
{
	struct twheel_setup setup = {
		.ring_entries	= ring_entries,
		.touch_words	= touch_words,
	};
	volatile __u32 *map;
	int fd = wh_open(0);
	long ret;

	if (fd < 0)
		return fd;
	ret = wh_ioctl(fd, TWHEEL_IOC_SETUP, &setup);
	if (!ret) {
		map = mmap(NULL, setup.ring_bytes + setup.touch_bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, offset);
		if (map == MAP_FAILED) {
			ret = -errno;
		} else {
			ret = ring_entries && map[2] != ring_entries - 1 ? -EPROTO : 0;
			munmap((void *)map, setup.ring_bytes + setup.touch_bytes);
		}
	}
	close(fd);
	return ret;
}

static long call_map_ring(struct env *env __attribute__((unused)))
{
	return map_and_read(256, 0, TWHEEL_RING_OFFSET);
}

static long call_map_touch(struct env *env __attribute__((unused)))
{
	return map_and_read(0, 5000, TWHEEL_TOUCH_OFFSET);
}

static long call_cancel(struct env *env)
{
	return wh_cancel(env->fd, env->pending);
}

static bool undo_cancel(struct env *env, long ret)
{
	return ret == TWHEEL_WAS_PENDING && wh_state(env->fd, env->pending) == -ENOENT &&
	       set_pending(env) == TWHEEL_WAS_ABSENT;
}

static long call_rearm(struct env *env)
{
	return wh_rearm(env->fd, env->pending, 2 * HOUR, 0);
}

static bool undo_rearm(struct env *env, long ret)
{
	return ret == TWHEEL_WAS_PENDING &&
	       wh_rearm(env->fd, env->pending, HOUR, 0) == TWHEEL_WAS_PENDING;
}

static long call_query(struct env *env)
{
	struct twheel_timer_query query;

	return wh_query(env->fd, env->pending, &query);
}

static long call_read(struct env *env)
{
	struct twheel_event events[NR_EXPIRED];

	return wh_read(env->fd, events, NR_EXPIRED);
}

/* A fault in the middle makes a short read: what was not returned is still there. */
static bool undo_read(struct env *env, long ret)
{
	int i;

	if (ret < 1 || wh_nr_events(env->fd) != (__u64)(NR_EXPIRED - ret))
		return false;
	for (i = 0; i < ret; i++)
		if (wh_add(env->fd, 0, 0, i, &env->expired))
			return false;
	return wh_wait_events(env->fd, NR_EXPIRED);
}

static long call_poll(struct env *env)
{
	struct pollfd pollfd = { .fd = env->fd, .events = POLLIN };
	int ret = poll(&pollfd, 1, 0);

	return ret < 0 ? -errno : ret;
}

static bool undo_poll(struct env *env __attribute__((unused)), long ret)
{
	return ret == 1;
}

static long call_mmap(struct env *env)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, env->fd, 0);

	if (p != MAP_FAILED)
		return -EPROTO;
	/* There is nothing to map. */
	return errno == ENOMEM ? -ENOMEM : 0;
}

static long call_close(struct env *env)
{
	close(env->other);
	return close(env->fd) ? -errno : 0;
}

static bool undo_close(struct env *env, long ret)
{
	if (ret || total("contexts") != 0 || total("pending") != 0)
		return false;
	env_create(env);
	return true;
}

static long call_load(struct env *env __attribute__((unused)))
{
	return load_module();
}

static bool undo_load(struct env *env __attribute__((unused)), long ret)
{
	/* The module also works without debugfs. */
	return ret == 0 && access(DEVICE, F_OK) == 0 && unload_module() == 0;
}

/* ---- the sweep */

static void set_fault_attr(const char *attr, const char *file, __u64 value)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "/%s/%s", attr, file);
	if (file_write(path, value))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
}

/* Only what the function between these addresses calls may fail. */
static void set_filter(__u64 start, __u64 end)
{
	static const char *const attrs[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		set_fault_attr(attrs[i], "require-start", start);
		set_fault_attr(attrs[i], "require-end", end);
	}
}

static void filter_function(const char *function)
{
	unsigned long long address, start = 0, end = ~0ULL;
	FILE *file = fopen("/proc/kallsyms", "r");
	char name[128];

	while (file && fscanf(file, "%llx %*c %127s%*[^\n]", &address, name) == 2)
		if (!strcmp(name, function))
			start = address;
	rewind(file);
	while (fscanf(file, "%llx %*c %127s%*[^\n]", &address, name) == 2)
		if (address > start && address < end)
			end = address;
	fclose(file);
	if (!start)
		ksft_exit_fail_msg("no %s in /proc/kallsyms\n", function);
	set_filter(start, end);
}

/* Has a failed call changed nothing? */
static bool is_unchanged(const struct op *op, struct env *env, const struct wh_view *before)
{
	struct wh_view after;

	if (op->unloaded)
		return access(DEVICE, F_OK) && access(DEBUGFS "/twheel", F_OK);
	if (wh_look(env->fd, env->pending, env->expired, &after) ||
	    wh_nr_timers(env->other) != env->in_other)
		return false;
	return !memcmp(before, &after, sizeof(after));
}

/* Makes all allocations of this process fail that pass the filter, or none. */
static void set_fail_all(bool all)
{
	set_fault_attr("failslab", "probability", all ? 100 : 0);
	set_fault_attr("fail_page_alloc", "probability", all ? 100 : 0);
	if (file_write("/proc/self/make-it-fail", all))
		ksft_exit_fail_msg("make-it-fail: %s\n", strerror(errno));
}

static void start_injection(const struct op *op, int n)
{
	if (op->within)
		set_fail_all(n == 1);
	else
		set_fail_nth(n);
}

/* Disables the injection. Returns whether a fault was injected. */
static bool stop_injection(const struct op *op, int n)
{
	if (!op->within)
		return clear_fail_nth();
	set_fail_all(false);
	faults += n == 1;
	return n == 1;
}

/* Fails the nth point of a call. Returns 1 if there was one, 0 if not, -1 if anything is wrong. */
static int fail_once(const struct op *op, struct env *env, int n)
{
	struct wh_view before;
	bool injected;
	long ret;

	memset(&before, 0, sizeof(before));
	if (!op->unloaded && wh_look(env->fd, env->pending, env->expired, &before))
		return -1;
	start_injection(op, n);
	ret = op->call(env);
	injected = stop_injection(op, n);
	if (ret >= 0) {
		if (op->undo(env, ret) && !(op->within && injected))
			return injected;
		ksft_print_msg("%s, fault %d: %ld, but with a wrong effect\n",
			       op->name, n, ret);
		return -1;
	}
	if (injected && (ret == -ENOMEM || ret == -EFAULT) && is_unchanged(op, env, &before))
		return 1;
	ksft_print_msg("%s, fault %d%s: %s\n", op->name, n, injected ? "" : " (none)",
		       strerror(-ret));
	return -1;
}

static void sweep_op(const struct op *op)
{
	struct env env = { .fd = -1, .other = -1 };
	int n = 1, ret;

	if (!op->unloaded) {
		if (access(DEVICE, F_OK) && load_module())
			ksft_exit_fail_msg("%s: cannot load\n", module);
		env_create(&env);
	} else if (!access(DEVICE, F_OK) && unload_module()) {
		ksft_exit_fail_msg("cannot unload\n");
	}
	/*
	 * When the module is loaded, only its own allocations should fail: the kernel's loader
	 * logs its failures.
	 */
	if (op->unloaded)
		filter_function("do_init_module");
	else if (op->within)
		filter_function(op->within);
	else
		set_filter(0, ~0UL);
	if (op->within && !fill_other(&env))
		ksft_exit_fail_msg("cannot fill a context\n");
	while ((ret = fail_once(op, &env, n)) > 0)
		n++;
	ksft_test_result(ret == 0, "%s: %d points of failure\n", op->name, n - 1);
	if (!op->unloaded) {
		close(env.fd);
		close(env.other);
	}
}

static const struct op ops[] = {
	{ "load",	call_load,	undo_load,	true, NULL },
	{ "open",	call_open,	undo_open,	false, NULL },
	{ "info",	call_info,	undo_nothing,	false, NULL },
	{ "add",	call_add,	undo_add,	false, NULL },
	{ "first add",	call_first_add,	undo_first_add,	false, NULL },
	{ "growing add", call_first_add, undo_growing_add, false,
		"twheel_context_grow" },
	{ "cancel",	call_cancel,	undo_cancel,	false, NULL },
	{ "rearm",	call_rearm,	undo_rearm,	false, NULL },
	{ "query",	call_query,	undo_nothing,	false, NULL },
	{ "read",	call_read,	undo_read,	false, NULL },
	{ "poll",	call_poll,	undo_poll,	false, NULL },
	{ "mmap",	call_mmap,	undo_nothing,	false, NULL },
	{ "first key",	call_first_key,	undo_first_add,	false, NULL },
	{ "key again",	call_key_again,	undo_key_again,	false, NULL },
	{ "first limits", call_first_limits, undo_first_add, false, NULL },
	{ "first watch", call_first_watch, undo_first_add, false, NULL },
	{ "other kind",	call_other_kind, undo_other_kind, false, NULL },
	{ "submit",	call_submit,	undo_submit,	false, NULL },
	{ "drain",	call_drain,	undo_drain,	false, NULL },
	{ "stats",	call_stats,	undo_nothing,	false, NULL },
	{ "rule",	call_rule,	undo_nothing,	false, NULL },
	{ "rule set",	call_set,	undo_nothing,	false, NULL },
	{ "map ring",	call_map_ring,	undo_nothing,	false, NULL },
	{ "map touch",	call_map_touch,	undo_nothing,	false, NULL },
	{ "close",	call_close,	undo_close,	false, NULL },
};

/* Lets every kind of allocation and copy fail, without a message in the log. */
static void allow_faults(void)
{
	set_fault_attr("failslab", "ignore-gfp-wait", 0);
	set_fault_attr("failslab", "verbose", 0);
	set_fault_attr("failslab", "task-filter", 1);
	set_fault_attr("failslab", "times", 1 << 30);
	set_fault_attr("fail_page_alloc", "ignore-gfp-wait", 0);
	set_fault_attr("fail_page_alloc", "ignore-gfp-highmem", 0);
	set_fault_attr("fail_page_alloc", "min-order", 0);
	set_fault_attr("fail_page_alloc", "task-filter", 1);
	set_fault_attr("fail_page_alloc", "times", 1 << 30);
	set_fault_attr("fail_page_alloc", "verbose", 0);
	set_fault_attr("fail_usercopy", "verbose", 0);
}

int main(int argc, char **argv)
{
	size_t i;

	ksft_print_header();
	if (argc != 2)
		ksft_exit_fail_msg("usage: fail_nth MODULE\n");
	module = argv[1];
	fail_nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_nth_fd < 0)
		ksft_exit_skip("this kernel injects no faults\n");
	if (network() || connection(AF_INET, &here, &there))
		ksft_exit_fail_msg("no connection: %s\n", strerror(errno));
	port = port_of(here);
	allow_faults();
	ksft_set_plan(ARRAY_SIZE(ops));
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		sweep_op(&ops[i]);
	ksft_print_msg("%d faults injected\n", faults);
	if (!access(DEVICE, F_OK))
		unload_module();
	ksft_finished();
}
