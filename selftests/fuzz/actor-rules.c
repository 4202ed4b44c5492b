// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: rules for idle connections that come and go
 */
#include "shared.h"
#include "tcp_test.h"

#include <linux/twheel_rules.h>

/* Chooses when a rule closes connections, and how; sets @is_short if a limit is too short. */
static void choose_limits(struct twheel_rule *rule, struct choices *choices, bool *is_short)
{
	*is_short = false;
	if (one_of(choices, 6)) {
		rule->flags |= TWHEEL_RULE_KEEP;
		return;
	}
	rule->flags |= one_of(choices, 2) ? TWHEEL_WATCH_ABORT : TWHEEL_WATCH_SHUTDOWN;
	rule->idle = TWHEEL_IDLE_MIN - MSEC + choose(choices, 40 * MSEC);
	rule->rate = choose(choices, 3) * 100;
	*is_short = rule->idle < TWHEEL_IDLE_MIN;
	if (one_of(choices, 3))
		rule->flags |= TWHEEL_RULE_DRY_RUN;
	if (one_of(choices, 3))
		rule->flags |= TWHEEL_WATCH_RECEIVED;
	if (one_of(choices, 3))
		rule->lifetime = 1 + choose(choices, 100 * MSEC);
	if (one_of(choices, 3))
		rule->spread = choose(choices, 10 * MSEC);
	if (one_of(choices, 3))
		rule->stalled = 1 + choose(choices, 100 * MSEC);
}

static void choose_name(struct twheel_rule *rule, struct choices *choices)
{
	if (one_of(choices, 4))
		rule->name[0] = 'a' + choose(choices, 4);
}

/* Some ports and addresses that connections of the arena have, and some that they do not have. */
static void choose_lists(struct twheel_match *match, struct choices *choices, __u16 port)
{
	memset(match, 0, sizeof(*match));
	match->kind = 1 + choose(choices, TWHEEL_MATCH_FAMILY);
	match->flags = one_of(choices, 3) ? TWHEEL_MATCH_NOT : 0;
	switch (match->kind) {
	case TWHEEL_MATCH_REMOTE:
		match->family = AF_INET;
		match->prefix = 8;
		match->address[0] = one_of(choices, 2) ? 127 : 10;
		return;
	case TWHEEL_MATCH_FAMILY:
		match->family = one_of(choices, 2) ? AF_INET : AF_INET6;
		return;
	}
	match->first = one_of(choices, 2) ? port : 1;
	match->last = one_of(choices, 2) ? match->first : 65535;
}

static void add_rule(int fd, struct choices *choices, __u16 port)
{
	struct twheel_match matches[4];
	struct twheel_rule rule = { };
	bool is_short;
	__u32 i;
	int ret;

	choose_limits(&rule, choices, &is_short);
	choose_name(&rule, choices);
	if (one_of(choices, 2)) {
		rule.flags |= TWHEEL_RULE_LOCAL_PORT;
		rule.local_port = port;
	} else {
		rule.flags |= TWHEEL_RULE_REMOTE_PORT;
		rule.remote_port = port;
	}
	if (one_of(choices, 3)) {
		rule.nr_matches = 1 + choose(choices, 4);
		rule.matches = (uintptr_t)matches;
		for (i = 0; i < rule.nr_matches; i++)
			choose_lists(&matches[i], choices, port);
	}
	if (one_of(choices, 4))
		rule.before = choose(choices, 8);
	ret = call_ioctl(fd, TWHEEL_IOC_RULE_ADD, &rule);
	trace("rule for port %llu", port, 0, 0, 0, ret);
	if ((ret == -EEXIST && *rule.name) || (ret == -ENOENT && rule.before))
		return;
	if (is_short ? ret != -EINVAL && ret != -EPERM :
	    ret && ret != -ENOSPC && ret != -ENOMEM && ret != -EPERM && ret != -EOPNOTSUPP &&
	    ret != -EINTR)
		fuzz_fail("rule: %d", ret);
}

/* Changes the limits of one of the arena's rules: others belong to actors that rely on them. */
static void set_rule(int fd, struct choices *choices, __u16 port)
{
	struct twheel_rule rule = { .id = choose(choices, 8) }, change = { };
	bool is_short;
	int ret;

	if (call_ioctl(fd, TWHEEL_IOC_RULE_NEXT, &rule) ||
	    (rule.local_port != port && rule.remote_port != port))
		return;
	change.id = rule.id;
	choose_limits(&change, choices, &is_short);
	choose_name(&change, choices);
	ret = call_ioctl(fd, TWHEEL_IOC_RULE_SET, &change);
	trace("rule %llu is changed", rule.id, 0, 0, 0, ret);
	if ((ret == -EEXIST && *change.name) || ret == -ENOENT)
		return;
	if (is_short ? ret != -EINVAL && ret != -EPERM :
	    ret && ret != -ENOMEM && ret != -EPERM && ret != -EINTR)
		fuzz_fail("change of a rule: %d", ret);
}

static void remove_rule(int fd, struct choices *choices)
{
	struct twheel_rule rule = { .id = choose(choices, 8) };
	int ret = call_ioctl(fd, TWHEEL_IOC_RULE_NEXT, &rule);

	trace("rule %llu", rule.id, 0, 0, 0, ret);
	if (!ret)
		call_ioctl(fd, TWHEEL_IOC_RULE_REMOVE, &rule);
}

static void list_connections(int fd, struct choices *choices)
{
	struct twheel_connection records[8];
	struct twheel_rule rule = { .id = 0 };
	struct twheel_connections list = {
		.records	= (uintptr_t)records,
		.nr_records	= 8,
		.record_size	= sizeof(records[0]),
		.cursor		= one_of(choices, 2) ? 0 : choose_bits(choices),
	};

	if (call_ioctl(fd, TWHEEL_IOC_RULE_NEXT, &rule))
		return;
	list.id = rule.id;
	call_ioctl(fd, TWHEEL_IOC_RULE_CONNECTIONS, &list);
}

/* Does something with rules. */
void rules_step(int fd, struct choices *choices, __u16 port)
{
	switch (choose(choices, 9)) {
	case 0 ... 1:
		return add_rule(fd, choices, port);
	case 2 ... 3:
		return remove_rule(fd, choices);
	case 4:
		return list_connections(fd, choices);
	case 8:
		return set_rule(fd, choices, port);
	default:
		return sleep_ns(choose(choices, 20 * MSEC));
	}
}

/* Works on rules for the arena's connections. */
void rules_actor(struct choices *choices)
{
	while (!arena_over())
		rules_step(arena->context[CHAOS].fd, choices, arena->port);
}

/* Adds a rule that nothing matches, and that stays: the module tracks connections all the time. */
void rules_hold(void)
{
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_LOCAL_PORT | TWHEEL_WATCH_ABORT,
		.local_port	= 1,
		.idle		= HOUR,
	};
	int fd = wh_open(0);

	if (network() || call_ioctl(fd, TWHEEL_IOC_RULE_ADD, &rule))
		say_once("not here: rules");
	close(fd);
}

/**
 * struct live - a connection on which data flows
 * @end:	its ends
 * @last:	when data last got through, on two clocks
 */
struct live {
	int	end[2];
	__u64	last[2];
};

static const __u64 LIVE_IDLE = 300 * MSEC;

/* CLOCK_MONOTONIC_COARSE would not do: it is not late any more once a clock has been set. */
static void live_note(struct live *live)
{
	live->last[0] = now_ns();
	live->last[1] = jiffies_ns();
}

static bool live_open(struct live *live, __u16 *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t length = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* Before the calls: we may be preempted at any time, and idle long enough in between. */
	live_note(live);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (void *)&in, length) || listen(fd, 8) ||
	    getsockname(fd, (void *)&in, &length))
		return false;
	live->end[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(live->end[0], (void *)&in, length))
		return false;
	live->end[1] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	close(fd);
	*port = ntohs(in.sin_port);
	return live->end[1] >= 0;
}

/* A connection is closed: was there data all the time, on both clocks? */
static void live_judge(const struct live *live, int error)
{
	__u64 silent = now_ns() - live->last[0], ticked = jiffies_ns() - live->last[1];
	struct tcp_info info = { };
	socklen_t length = sizeof(info);

	if (silent >= LIVE_IDLE / 2 || ticked >= LIVE_IDLE / 2)
		return;
	getsockopt(live->end[1], IPPROTO_TCP, TCP_INFO, &info, &length);
	fuzz_fail("rule of %llu ms: closed %llu (%llu) ms after data, at %u, %u ms: error %d",
		  LIVE_IDLE / MSEC, silent / MSEC, ticked / MSEC, info.tcpi_last_data_sent,
		  info.tcpi_last_data_recv, error);
}

/* Sends a byte each way. Returns whether the connection is open. */
static bool live_say(struct live *live)
{
	struct live before = *live;

	live_note(live);
	errno = 0;
	if (say(live->end[0], live->end[1]) && say(live->end[1], live->end[0]))
		return true;
	live_judge(&before, errno);
	return false;
}

/* Keeps a connection that is never idle, under a rule: it must survive. */
void alive_actor(struct choices *choices)
{
	struct twheel_rule rule = {
		.flags	= TWHEEL_RULE_LOCAL_PORT | TWHEEL_WATCH_ABORT,
		.idle	= LIVE_IDLE,
	};
	struct live live;

	if (!live_open(&live, &rule.local_port))
		return;
	if (!call_ioctl(arena->context[CHAOS].fd, TWHEEL_IOC_RULE_ADD, &rule))
		while (!arena_over() && live_say(&live))
			sleep_ns((10 + choose(choices, 40)) * MSEC);
	close(live.end[0]);
	close(live.end[1]);
	/* The actor for rules may have removed it. */
	call_ioctl(arena->context[CHAOS].fd, TWHEEL_IOC_RULE_REMOVE, &rule);
}
