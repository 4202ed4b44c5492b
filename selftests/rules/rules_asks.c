// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: lists of ports, addresses and families that they match.
 */
#include "rules_test.h"

#define NOT	TWHEEL_MATCH_NOT

/* Adds a rule with the given list of matches. Returns its id or -errno. */
static int add_list(int fd, const struct twheel_match *list, __u32 nr, __u64 idle)
{
	struct twheel_rule rule = {
		.flags		= ABORT,
		.idle		= idle,
		.matches	= (uintptr_t)list,
		.nr_matches	= nr,
	};

	return add(fd, &rule) ?: (int)rule.id;
}

/* Returns how many connections a rule with this list applies to. Both ends of a pair count. */
static int nr_matched(int fd, const struct twheel_match *list, __u32 nr)
{
	int id = add_list(fd, list, nr, HOUR), ret;

	if (id < 0)
		return id;
	ret = look(fd, id).watched;
	return remove_rule(fd, id) ?: ret;
}

#define NR_MATCHED(...) ({							\
	const struct twheel_match _list[] = { __VA_ARGS__ };			\
	nr_matched(self->fd, _list, ARRAY_SIZE(_list));				\
})

static struct twheel_match ports(__u16 kind, __u16 flags, __u16 first, __u16 last)
{
	return (struct twheel_match) {
		.kind = kind, .flags = flags, .first = first, .last = last,
	};
}

static struct twheel_match net(const char *address, __u8 prefix, __u16 flags)
{
	struct twheel_match match = {
		.kind	= TWHEEL_MATCH_REMOTE,
		.flags	= flags,
		.family	= strchr(address, ':') ? AF_INET6 : AF_INET,
		.prefix	= prefix,
	};

	inet_pton(match.family, address, match.address);
	return match;
}

static struct twheel_match family(__u16 family, __u16 flags)
{
	return (struct twheel_match) {
		.kind = TWHEEL_MATCH_FAMILY, .flags = flags, .family = family,
	};
}

/* However they are spread over rules. */
TEST_F_TIMEOUT(rules, as_many_entries_as_there_may_be, TIMEOUT)
{
	enum { RULES = 1024 / TWHEEL_RULE_MATCHES };
	struct twheel_match list[TWHEEL_RULE_MATCHES];
	int ids[RULES], i;

	for (i = 0; i < TWHEEL_RULE_MATCHES; i++)
		list[i] = ports(TWHEEL_MATCH_LOCAL_PORT, 0, i + 1, i + 1);
	for (i = 0; i < RULES; i++) {
		ids[i] = add_list(self->fd, list, TWHEEL_RULE_MATCHES, HOUR);
		ASSERT_LT(0, ids[i]);
	}
	EXPECT_EQ(-ENOSPC, add_list(self->fd, list, 1, HOUR));
	EXPECT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	ASSERT_EQ(0, remove_rule(self->fd, ids[3]));
	ASSERT_LT(0, add_list(self->fd, list, 1, HOUR));
	EXPECT_EQ(-ENOSPC, add_list(self->fd, list, TWHEEL_RULE_MATCHES, HOUR));
	EXPECT_LT(0, add_list(self->fd, list, TWHEEL_RULE_MATCHES - 1, HOUR));
	EXPECT_EQ(-ENOSPC, add_list(self->fd, list, 1, HOUR));
}

TEST_F_TIMEOUT(rules, ports, TIMEOUT)
{
	const __u16 here = TWHEEL_MATCH_LOCAL_PORT, there = TWHEEL_MATCH_REMOTE_PORT;
	const __u16 port = self->port;
	struct pair pair;
	__u16 other;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	other = local_port(pair.client);
	/* A rule that stays: removing the last one takes longer. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	EXPECT_EQ(1, NR_MATCHED(ports(here, 0, port, port)));
	EXPECT_EQ(1, NR_MATCHED(ports(there, 0, port, port)));
	EXPECT_EQ(2, NR_MATCHED(ports(here, 0, 1, 65535)));
	EXPECT_EQ(0, NR_MATCHED(ports(here, 0, 1, 1), ports(here, 0, 3, 4)));
	EXPECT_EQ(1, NR_MATCHED(ports(here, 0, 1, 1), ports(here, 0, port, port)));
	EXPECT_EQ(2, NR_MATCHED(ports(here, 0, other, other), ports(here, 0, port, port)));
	EXPECT_EQ(1, NR_MATCHED(ports(here, 0, port - 1, port)));
	EXPECT_EQ(0, NR_MATCHED(ports(here, 0, port - 1, port - 1)));
	EXPECT_EQ(1, NR_MATCHED(ports(here, 0, 1, 65535), ports(here, NOT, other, other)));
	EXPECT_EQ(1, NR_MATCHED(ports(here, NOT, other, other)));
	EXPECT_EQ(0, NR_MATCHED(ports(here, NOT, 1, 65535)));
	/* One of each kind. */
	EXPECT_EQ(1, NR_MATCHED(ports(here, 0, port, port), ports(there, 0, other, other)));
	EXPECT_EQ(0, NR_MATCHED(ports(here, 0, port, port), ports(there, 0, port, port)));
}

TEST_F_TIMEOUT(rules, addresses, TIMEOUT)
{
	struct pair pair;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	EXPECT_EQ(2, NR_MATCHED(net("127.0.0.1", 32, 0)));
	EXPECT_EQ(0, NR_MATCHED(net("127.0.0.2", 32, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("127.0.0.0", 8, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("127.0.0.0", 31, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("126.0.0.0", 7, 0)));
	EXPECT_EQ(0, NR_MATCHED(net("128.0.0.0", 1, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("0.0.0.0", 0, 0)));
	EXPECT_EQ(0, NR_MATCHED(net("10.0.0.0", 8, 0), net("192.168.0.0", 16, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("10.0.0.0", 8, 0), net("127.0.0.0", 16, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("10.0.0.0", 8, NOT)));
	EXPECT_EQ(0, NR_MATCHED(net("127.0.0.0", 8, NOT)));
	EXPECT_EQ(0, NR_MATCHED(net("0.0.0.0", 0, 0), net("127.0.0.1", 32, NOT)));
	EXPECT_EQ(0, NR_MATCHED(net("::", 0, 0)));
	EXPECT_EQ(2, NR_MATCHED(family(AF_INET, 0)));
	EXPECT_EQ(0, NR_MATCHED(family(AF_INET, NOT)));
	EXPECT_EQ(0, NR_MATCHED(family(AF_INET6, 0)));
	EXPECT_EQ(2, NR_MATCHED(family(AF_INET6, NOT)));
	EXPECT_EQ(2, NR_MATCHED(family(AF_INET6, 0), family(AF_INET, 0)));
}

/* IPv4 is IPv4, whatever the family of the socket. */
TEST_F_TIMEOUT(rules, addresses_of_ipv6, TIMEOUT)
{
	int listener = serve(AF_INET6, true, 0), listener6;

	if (listener < 0)
		SKIP(return, "this kernel has no IPv6");
	listener6 = serve(AF_INET6, false, local_port(listener));
	ASSERT_LE(0, listener6);
	ASSERT_LE(0, reach(AF_INET6, true, local_port(listener)));
	ASSERT_LE(0, accept(listener, NULL, NULL));
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	EXPECT_EQ(2, NR_MATCHED(net("127.0.0.0", 8, 0)));
	EXPECT_EQ(0, NR_MATCHED(net("::", 0, 0)));
	EXPECT_EQ(2, NR_MATCHED(family(AF_INET, 0)));
	EXPECT_EQ(0, NR_MATCHED(family(AF_INET6, 0)));
	ASSERT_LE(0, reach(AF_INET6, false, local_port(listener)));
	ASSERT_LE(0, accept(listener6, NULL, NULL));
	EXPECT_EQ(2, NR_MATCHED(net("::1", 128, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("::", 127, 0)));
	EXPECT_EQ(0, NR_MATCHED(net("::2", 127, 0)));
	EXPECT_EQ(0, NR_MATCHED(net("8000::", 1, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("fe80::", 10, NOT), family(AF_INET6, 0)));
	EXPECT_EQ(2, NR_MATCHED(net("0.0.0.0", 0, 0)));
	EXPECT_EQ(4, NR_MATCHED(net("0.0.0.0", 0, 0), net("::1", 128, 0)));
	EXPECT_EQ(2, NR_MATCHED(family(AF_INET6, 0)));
}

/* A list is one more condition, in addition to the others. */
TEST_F_TIMEOUT(rules, a_list_is_one_more, TIMEOUT)
{
	const struct twheel_match list[] = { net("127.0.0.0", 8, 0) };
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.local_port	= self->port,
		.idle		= 200 * MSEC,
		.matches	= (uintptr_t)list,
		.nr_matches	= 1,
	};
	struct pair pair;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, look(self->fd, rule.id).matched);
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	/* And it finds a new connection. */
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	EXPECT_EQ(2, look(self->fd, rule.id).closed);
}

TEST_F_TIMEOUT(rules, what_is_no_list, TIMEOUT)
{
	const __u16 here = TWHEEL_MATCH_LOCAL_PORT;
	struct twheel_match match, many[TWHEEL_RULE_MATCHES + 1];
	struct twheel_rule rule;
	int i;

	EXPECT_EQ(-EINVAL, NR_MATCHED(ports(0, 0, 1, 1)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(ports(5, 0, 1, 1)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(ports(here, 2, 1, 1)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(ports(here, 0, 0, 1)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(ports(here, 0, 2, 1)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(net("10.0.0.1", 8, 0)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(net("10.0.0.0", 33, 0)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(net("fe80::1", 64, 0)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(net("::", 129, 0)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(family(AF_UNIX, 0)));
	EXPECT_EQ(-EINVAL, NR_MATCHED(family(0, 0)));
	match = net("10.0.0.0", 8, 0);
	match.address[4] = 1;
	EXPECT_EQ(-EINVAL, NR_MATCHED(match));
	match = net("10.0.0.0", 8, 0);
	match.first = 1;
	EXPECT_EQ(-EINVAL, NR_MATCHED(match));
	match = ports(here, 0, 1, 1);
	match.family = AF_INET;
	EXPECT_EQ(-EINVAL, NR_MATCHED(match));
	match = ports(here, 0, 1, 1);
	match.reserved[4] = 1;
	EXPECT_EQ(-EINVAL, NR_MATCHED(match));
	match = family(AF_INET, 0);
	match.prefix = 1;
	EXPECT_EQ(-EINVAL, NR_MATCHED(match));
	/* The valid entries of a list make no difference. */
	EXPECT_EQ(-EINVAL, NR_MATCHED(ports(here, 0, 1, 1), match));
	for (i = 0; i <= TWHEEL_RULE_MATCHES; i++)
		many[i] = ports(here, 0, i + 1, i + 1);
	EXPECT_EQ(-EINVAL, nr_matched(self->fd, many, TWHEEL_RULE_MATCHES + 1));
	EXPECT_EQ(0, nr_matched(self->fd, many, TWHEEL_RULE_MATCHES));
	EXPECT_EQ(-EFAULT, nr_matched(self->fd, (void *)8, 1));
	EXPECT_EQ(-EINVAL, nr_matched(self->fd, NULL, 1));
	EXPECT_EQ(-EINVAL, nr_matched(self->fd, many, 0));
	EXPECT_EQ(-ENOENT, next(self->fd, 0, &rule));
}

/* Lists are returned as they were given. */
TEST_F_TIMEOUT(rules, lists_are_told, TIMEOUT)
{
	const struct twheel_match list[] = {
		ports(TWHEEL_MATCH_LOCAL_PORT, 0, 80, 90), net("10.0.0.0", 8, NOT),
		family(AF_INET, 0),
	};
	struct twheel_match told[4];
	struct twheel_rule rule = { .matches = (uintptr_t)told, .nr_matches = 4 };
	int id = add_list(self->fd, list, 3, HOUR);

	ASSERT_LT(0, id);
	memset(told, 0xa5, sizeof(told));
	ASSERT_EQ(0, wh_ioctl(self->fd, TWHEEL_IOC_RULE_NEXT, &rule));
	EXPECT_EQ(id, rule.id);
	EXPECT_EQ(3, rule.nr_matches);
	EXPECT_EQ((uintptr_t)told, rule.matches);
	EXPECT_EQ(0, memcmp(list, told, sizeof(list)));
	EXPECT_EQ(0xa5a5, told[3].kind);
	/* As many as there is room for. */
	memset(told, 0xa5, sizeof(told));
	rule = (struct twheel_rule) { .matches = (uintptr_t)told, .nr_matches = 2 };
	EXPECT_EQ(-ENOSPC, wh_ioctl(self->fd, TWHEEL_IOC_RULE_NEXT, &rule));
	EXPECT_EQ(id, rule.id);
	EXPECT_EQ(3, rule.nr_matches);
	EXPECT_EQ(0, memcmp(list, told, 2 * sizeof(list[0])));
	EXPECT_EQ(0xa5a5, told[2].kind);
	rule = (struct twheel_rule) { .matches = 8, .nr_matches = 4 };
	EXPECT_EQ(-EFAULT, wh_ioctl(self->fd, TWHEEL_IOC_RULE_NEXT, &rule));
	/* Callers that do not ask for them get their number. */
	rule = (struct twheel_rule) { };
	EXPECT_EQ(0, wh_ioctl(self->fd, TWHEEL_IOC_RULE_NEXT, &rule));
	EXPECT_EQ(3, rule.nr_matches);
	EXPECT_EQ(0, rule.matches);
	/* What was returned for one rule does not prevent reading the next. */
	EXPECT_EQ(-ENOENT, wh_ioctl(self->fd, TWHEEL_IOC_RULE_NEXT, &rule));
	rule = (struct twheel_rule) { .matches = (uintptr_t)told };
	EXPECT_EQ(-ENOSPC, wh_ioctl(self->fd, TWHEEL_IOC_RULE_NEXT, &rule));
}

TEST_HARNESS_MAIN
