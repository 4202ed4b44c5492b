// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: what they return, about themselves and about connections; errors, and
 * permissions.
 */
#include "rules_test.h"

static __u64 socket_cookie(int fd)
{
	__u64 value = 0;
	socklen_t len = sizeof(value);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &value, &len);
	return value;
}

static int compare_cookies(const void *a, const void *b)
{
	__u64 one = *(const __u64 *)a, other = *(const __u64 *)b;

	return one < other ? -1 : one > other;
}

/* Many sizes of batches and records: each connection is listed once. */
TEST_F_TIMEOUT(rules, list_of_connections, TIMEOUT)
{
	static const struct {
		__u32 nr;
		__u16 size;
	} ways[] = { { 1, 72 }, { 7, 72 }, { 100, 80 }, { 99, 4096 }, { 1000, 104 } };
	__u64 cursor, told[100], known[100], seen;
	struct twheel_connection *record;
	struct pair pairs[100];
	char *records, *p;
	size_t way;
	int id, i, n;

	records = malloc(1000 * 4096);
	for (i = 0; i < 100; i++) {
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
		known[i] = socket_cookie(pairs[i].server);
	}
	qsort(known, 100, sizeof(known[0]), compare_cookies);
	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	for (way = 0; way < ARRAY_SIZE(ways); way++) {
		for (cursor = 0, seen = 0;; seen += n) {
			memset(records, 0xa5, 1000 * 4096);
			n = list(self->fd, id, records, ways[way].nr, ways[way].size, &cursor);
			if (n <= 0)
				break;
			ASSERT_GE(ways[way].nr, n);
			ASSERT_GE(100, seen + n);
			for (i = 0; i < n; i++) {
				p = records + i * ways[way].size;
				record = (void *)p;
				told[seen + i] = record->cookie;
				EXPECT_EQ(AF_INET, record->family);
				EXPECT_EQ(self->port, record->local_port);
				EXPECT_EQ(0, record->uid);
				EXPECT_EQ(0, memcmp(record->local_address, "\x7f\0\0\1", 4));
				EXPECT_GE(HOUR, record->idle + record->remaining);
				EXPECT_EQ(0, record->flags);
				for (p += sizeof(*record); p < records + (i + 1) * ways[way].size;)
					ASSERT_EQ(0, *p++);
			}
		}
		EXPECT_EQ(0, n);
		ASSERT_EQ(100, seen);
		qsort(told, 100, sizeof(told[0]), compare_cookies);
		EXPECT_EQ(0, memcmp(told, known, sizeof(known)));
	}
	free(records);
}

TEST_F_TIMEOUT(rules, ipv6, TIMEOUT)
{
	struct twheel_connection records[4];
	int listener = serve(AF_INET6, true, 0), listener6, id, i;
	__u64 cursor = 0;

	if (listener < 0)
		SKIP(return, "this kernel has no IPv6");
	/* The same port, and an address of its own. */
	listener6 = serve(AF_INET6, false, local_port(listener));
	ASSERT_LE(0, listener6);
	ASSERT_LE(0, reach(AF_INET6, false, local_port(listener)));
	ASSERT_LE(0, reach(AF_INET6, true, local_port(listener)));
	ASSERT_LE(0, accept(listener6, NULL, NULL));
	ASSERT_LE(0, accept(listener, NULL, NULL));
	id = add_port(self->fd, LOCAL | ABORT, local_port(listener), HOUR);
	ASSERT_EQ(2, list(self->fd, id, records, 4, sizeof(records[0]), &cursor));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(AF_INET6, records[i].family);
		EXPECT_EQ(0, memcmp(records[i].local_address, records[i].remote_address, 16));
		EXPECT_TRUE(!memcmp(records[i].local_address, &in6addr_loopback, 16) ||
			    !memcmp(records[i].local_address, &mapped, 16));
	}
	EXPECT_NE(0, memcmp(records[0].local_address, records[1].local_address, 16));
	add_port(self->fd, LOCAL | ABORT, local_port(listener), 50 * MSEC);
	ASSERT_EQ(0, remove_rule(self->fd, id));
	EXPECT_TRUE(wait_for(self->fd, id + 1, closed, 2));
}

TEST_F_TIMEOUT(rules, list_of_rules, TIMEOUT)
{
	struct {
		struct twheel_rule rule;
		__u64 more[4];
	} longer = { };
	struct twheel_rule asked = {
		.flags		= LOCAL | REMOTE | TWHEEL_RULE_UID | DRY | TWHEEL_WATCH_SENT |
				  TWHEEL_WATCH_SHUTDOWN,
		.rate		= 5,
		.local_port	= 1,
		.remote_port	= 2,
		.uid		= 3,
		.idle		= TWHEEL_IDLE_MIN,
		.lifetime	= 5,
		.spread		= 6,
		.watched	= POISON,
	}, got;
	const unsigned int cmd = TWHEEL_IOC_RULE_NEXT & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT);
	const unsigned int first = offsetof(struct twheel_rule, name);

	EXPECT_EQ(-ENOENT, next(self->fd, 0, &got));
	ASSERT_EQ(0, add(self->fd, &asked));
	EXPECT_EQ(0, asked.watched);
	ASSERT_EQ(0, next(self->fd, 0, &got));
	EXPECT_LE(asked.age, got.age);
	asked.age = got.age;
	EXPECT_EQ(0, memcmp(&asked, &got, sizeof(got)));
	EXPECT_EQ(-ENOENT, next(self->fd, 1, &got));
	EXPECT_EQ(-ENOENT, next(self->fd, ~0U, &got));
	/* A rate of 0 is valid, and ids are not reused. */
	ASSERT_EQ(0, remove_rule(self->fd, 1));
	asked.rate = 0;
	ASSERT_EQ(0, add(self->fd, &asked));
	EXPECT_EQ(2, asked.id);
	EXPECT_EQ(TWHEEL_RULE_RATE, look(self->fd, 2).rate);
	/* Longer structures, and ones that never existed. */
	EXPECT_EQ(0, wh_ioctl(self->fd, cmd | sizeof(longer) << _IOC_SIZESHIFT, &longer));
	EXPECT_EQ(2, longer.rule.id);
	longer.rule.id = 0;
	longer.more[3] = 1;
	EXPECT_EQ(-E2BIG, wh_ioctl(self->fd, cmd | sizeof(longer) << _IOC_SIZESHIFT, &longer));
	/* The first version ended before the name. What follows it is not touched. */
	memset(&got, 0xa5, sizeof(got));
	got.id = 0;
	EXPECT_EQ(0, wh_ioctl(self->fd, cmd | first << _IOC_SIZESHIFT, &got));
	EXPECT_EQ(2, got.id);
	EXPECT_EQ((char)0xa5, got.name[0]);
	EXPECT_EQ(-EINVAL, wh_ioctl(self->fd, cmd | (first - 8) << _IOC_SIZESHIFT, &got));
}

TEST_F_TIMEOUT(rules, as_many_as_there_may_be, TIMEOUT)
{
	struct twheel_rule rule;
	int i;

	for (i = 1; i <= 256; i++)
		ASSERT_EQ(i, add_port(self->fd, LOCAL | ABORT, i, HOUR));
	EXPECT_EQ(-ENOSPC, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	for (i = 0; i < 256; i++) {
		ASSERT_EQ(0, next(self->fd, i, &rule));
		ASSERT_EQ(i + 1, rule.id);
		ASSERT_EQ(i + 1, rule.local_port);
	}
	ASSERT_EQ(0, remove_rule(self->fd, 100));
	EXPECT_EQ(257, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	EXPECT_EQ(-ENOSPC, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
}

/* ---- errors */

static const struct {
	const char *what;
	int error;
	struct twheel_rule rule;
} wrong[] = {
	{ "asks for nothing", -EINVAL, { .flags = ABORT, .idle = SEC } },
	{ "no action", -EINVAL, { .flags = LOCAL, .local_port = 1, .idle = SEC } },
	{ "two actions", -EINVAL, { .flags = LOCAL | ABORT | TWHEEL_WATCH_SHUTDOWN,
				    .local_port = 1, .idle = SEC } },
	{ "no limit", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1 } },
	{ "port 0", -EINVAL, { .flags = LOCAL | ABORT, .idle = SEC } },
	{ "remote port 0", -EINVAL, { .flags = REMOTE | ABORT, .idle = SEC } },
	{ "port without flag", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
					  .remote_port = 1, .idle = SEC } },
	{ "uid without flag", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
					 .uid = 1, .idle = SEC } },
	{ "pid without flag", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
					 .pid = 1, .idle = SEC } },
	{ "cgroup without flag", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
					    .cgroup = 1, .idle = SEC } },
	{ "no uid", -EINVAL, { .flags = TWHEEL_RULE_UID | ABORT, .uid = -1U, .idle = SEC } },
	{ "no pid", -ESRCH, { .flags = TWHEEL_RULE_PID | ABORT, .pid = 0x7fffffff, .idle = SEC } },
	{ "pid 0", -ESRCH, { .flags = TWHEEL_RULE_PID | ABORT, .idle = SEC } },
	{ "pid -1", -ESRCH, { .flags = TWHEEL_RULE_PID | ABORT, .pid = -1, .idle = SEC } },
	{ "no cgroup", -ENOENT, { .flags = TWHEEL_RULE_CGROUP | ABORT, .cgroup = 1ULL << 60,
				  .idle = SEC } },
	{ "reserved", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1, .idle = SEC,
				 .reserved = 1 } },
	{ "idle", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1, .idle = 1ULL << 63 } },
	{ "short idle", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
				   .idle = TWHEEL_IDLE_MIN - 1 } },
	{ "short idle with a spread", -EINVAL, { .flags = LOCAL | ABORT | DRY, .local_port = 1,
						 .idle = 1, .lifetime = SEC, .spread = SEC } },
	{ "long idle", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
				  .idle = 1ULL << 62 } },
	{ "lifetime", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1,
				 .lifetime = 1ULL << 63 } },
	{ "spread", -EINVAL, { .flags = LOCAL | ABORT, .local_port = 1, .lifetime = 1,
			       .spread = 1ULL << 63 } },
	{ "unknown flag", -EOPNOTSUPP, { .flags = LOCAL | ABORT | 1U << 31, .local_port = 1,
					 .idle = SEC } },
	{ "a timer's flag", -EOPNOTSUPP, { .flags = LOCAL | ABORT | TWHEEL_WATCHED,
					   .local_port = 1, .idle = SEC } },
};

TEST_F_TIMEOUT(rules, errors, TIMEOUT)
{
	struct twheel_rule rule;
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		rule = wrong[i].rule;
		ret = add(self->fd, &rule);
		/* The kernel may not have cgroups at all. */
		EXPECT_TRUE(ret == wrong[i].error || (rule.cgroup && ret == -EOPNOTSUPP))
			TH_LOG("%s: %d", wrong[i].what, ret);
	}
	EXPECT_EQ(-EFAULT, wh_ioctl(self->fd, TWHEEL_IOC_RULE_ADD, (void *)8));
	EXPECT_EQ(-ENOENT, next(self->fd, 0, &rule));
	EXPECT_EQ(-ENOENT, remove_rule(self->fd, 0));
	EXPECT_EQ(-ENOENT, remove_rule(self->fd, 1));
	EXPECT_EQ(-ENOTTY, wh_ioctl(self->fd, _IO(TWHEEL_IOC_MAGIC, 0xb4), NULL));
}

TEST_F_TIMEOUT(rules, errors_of_a_list, TIMEOUT)
{
	struct twheel_connections good = {
		.nr_records	= 1,
		.record_size	= sizeof(struct twheel_connection),
	}, bad;
	const __u64 sockets = nr_sockets();
	struct twheel_connection record;
	struct pair pair;

	ASSERT_NE(POISON, sockets);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	good.records = (uintptr_t)&record;
	good.id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
#define TRY(error, change) do {						\
	bad = good;							\
	change;								\
	EXPECT_EQ(error, wh_ioctl(self->fd, TWHEEL_IOC_RULE_CONNECTIONS, &bad)); \
} while (0)
	TRY(-EINVAL, bad.nr_records = 0);
	TRY(-EINVAL, bad.nr_records = 1U << 31);
	TRY(-EINVAL, bad.record_size = 64);
	TRY(-EINVAL, bad.record_size = 76);
	TRY(-EINVAL, bad.reserved = 1);
	TRY(-EOPNOTSUPP, bad.flags = 1);
	TRY(-ENOENT, bad.id++);
	TRY(-EFAULT, bad.records = 8);
	TRY(0, bad.cursor = ~0ULL);
	TRY(1, (void)bad);
	/* None of these calls has kept anything that it found. */
	close_pair(&pair);
	EXPECT_TRUE(wait_sockets(sockets)) TH_LOG("%llu, not %llu", nr_sockets(), sockets);
}

/* ---- permissions */

static int call_all(int fd, int id)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | ABORT,
		.local_port	= 1,
		.idle		= HOUR,
	};
	struct twheel_connection record;
	__u64 cursor = 0;

	return add(fd, &rule) == -EPERM && remove_rule(fd, id) == -EPERM &&
	       next(fd, 0, &rule) == -EPERM &&
	       list(fd, id, &record, 1, sizeof(record), &cursor) == -EPERM ? 0 : 1;
}

static void call_without_rights(void *arg)
{
	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(2);
	_exit(call_all(*(int *)arg, 1));
}

/* The creator of a user namespace has capabilities in it, but not in the network namespace. */
static void call_with_rights_elsewhere(void *arg)
{
	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(2);
	if (unshare(CLONE_NEWUSER))
		_exit(KSFT_SKIP);
	_exit(call_all(*(int *)arg, 1));
}

static void call_with_rights(void *arg)
{
	struct twheel_rule rule = {
		.flags	= TWHEEL_RULE_UID | ABORT,
		.uid	= 0,
		.idle	= HOUR,
	};

	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(2);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		_exit(KSFT_SKIP);
	/* No uid is mapped here. */
	_exit(add_port(*(int *)arg, LOCAL | ABORT, 1, HOUR) == 1 &&
	      add(*(int *)arg, &rule) == -EINVAL ? 0 : 1);
}

TEST_F_TIMEOUT(rules, rights, TIMEOUT)
{
	int ret;

	ASSERT_EQ(1, add_port(self->fd, LOCAL | ABORT, self->port, HOUR));
	EXPECT_EQ(0, reap(spawn(call_without_rights, &self->fd)));
	ret = reap(spawn(call_with_rights_elsewhere, &self->fd));
	if (ret == KSFT_SKIP)
		SKIP(return, "this kernel has no namespaces of users");
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, reap(spawn(call_with_rights, &self->fd)));
	EXPECT_EQ(1, look(self->fd, 1).id);
}

TEST_HARNESS_MAIN
