// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: names, order, exceptions, and changes of existing rules.
 */
#include "rules_test.h"

#include <sys/syscall.h>

#define KEEP	TWHEEL_RULE_KEEP

/* Returns a rule for a port, with a name. */
static struct twheel_rule named_rule(const char *name, __u32 flags, __u16 port, __u64 idle)
{
	struct twheel_rule rule = {
		.flags		= LOCAL | flags,
		.local_port	= port,
		.idle		= idle,
	};

	memcpy(rule.name, name, strnlen(name, sizeof(rule.name)));
	return rule;
}

/* Adds an exception for a port, before another rule or at the end. Returns its id or -errno. */
static int add_keep(int fd, __u16 port, __u32 before)
{
	struct twheel_rule rule = named_rule("", KEEP, port, 0);

	rule.before = before;
	return add(fd, &rule) ?: (int)rule.id;
}

/* Changes a rule. On an error nothing is written. */
static int set_rule(int fd, struct twheel_rule *rule)
{
	struct twheel_rule asked = *rule;
	int ret = wh_ioctl(fd, TWHEEL_IOC_RULE_SET, rule);

	return ret && memcmp(&asked, rule, sizeof(asked)) ? -EPROTO : ret;
}

/* Changes the idle timeout and the flags of a rule. */
static int set_idle(int fd, __u32 id, __u32 flags, __u64 idle)
{
	struct twheel_rule rule = { .id = id, .flags = flags, .idle = idle };

	return set_rule(fd, &rule);
}

/* ---- names */

TEST_F_TIMEOUT(rules, names, TIMEOUT)
{
	static const char *const good[] = {
		"a", "Web-1", "x_y.z", "abcdefghijklmnopqrstuvwxyz01234",
	};
	static const char *const bad[] = {
		"1", "-a", ".a", "_", "a b", "a/b", "a\n", "\xc3\xa4", "a\x7f",
		"abcdefghijklmnopqrstuvwxyz012345",
	};
	struct twheel_rule rule;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		rule = named_rule(good[i], ABORT, self->port, HOUR);
		ASSERT_EQ(0, add(self->fd, &rule));
		EXPECT_STREQ(good[i], look(self->fd, rule.id).name);
		rule = named_rule(good[i], ABORT, self->port, HOUR);
		EXPECT_EQ(-EEXIST, add(self->fd, &rule));
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		rule = named_rule(bad[i], ABORT, self->port, HOUR);
		EXPECT_EQ(-EINVAL, add(self->fd, &rule)) TH_LOG("name %zu", i);
	}
	/* Something after the end of the name. */
	rule = named_rule("b", ABORT, self->port, HOUR);
	rule.name[5] = 'c';
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
}

TEST_F_TIMEOUT(rules, a_name_is_free_again, TIMEOUT)
{
	struct twheel_rule rule = named_rule("web", ABORT, self->port, HOUR);
	struct twheel_rule other = named_rule("db", ABORT, self->port, HOUR), change;

	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(0, add(self->fd, &other));
	change = (struct twheel_rule) { .id = other.id, .flags = ABORT, .idle = HOUR };
	memcpy(change.name, "web", sizeof("web"));
	EXPECT_EQ(-EEXIST, set_rule(self->fd, &change));
	EXPECT_STREQ("db", look(self->fd, other.id).name);
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	EXPECT_EQ(0, set_rule(self->fd, &change));
	EXPECT_STREQ("web", look(self->fd, other.id).name);
	/* A rule's own name, and no name. */
	change = (struct twheel_rule) { .id = other.id, .flags = ABORT, .idle = HOUR };
	memcpy(change.name, "web", sizeof("web"));
	EXPECT_EQ(0, set_rule(self->fd, &change));
	EXPECT_EQ(0, set_idle(self->fd, other.id, ABORT, HOUR));
	EXPECT_STREQ("", look(self->fd, other.id).name);
}

/* ---- order */

TEST_F_TIMEOUT(rules, places, TIMEOUT)
{
	struct twheel_rule rule = named_rule("", ABORT, self->port, HOUR);
	int first = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	int last = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);

	rule.before = last;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(2, rule.place);
	EXPECT_EQ(1, look(self->fd, first).place);
	EXPECT_EQ(3, look(self->fd, last).place);
	/* Rules are found by their ids. */
	EXPECT_EQ(last, look(self->fd, last).id);
	EXPECT_EQ(rule.id, look(self->fd, rule.id).id);
	rule.before = 1000;
	EXPECT_EQ(-ENOENT, add(self->fd, &rule));
	rule.before = first;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, rule.place);
	ASSERT_EQ(0, remove_rule(self->fd, first));
	EXPECT_EQ(3, look(self->fd, last).place);
}

/* A rule that is inserted before others gets their connections at once. */
TEST_F_TIMEOUT(rules, one_that_comes_before, TIMEOUT)
{
	struct twheel_rule rule;
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	EXPECT_EQ(1, look(self->fd, id).watched);
	rule = named_rule("", ABORT, self->port, 200 * MSEC);
	rule.before = id;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, rule.watched);
	EXPECT_EQ(0, look(self->fd, id).watched);
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	EXPECT_EQ(1, look(self->fd, rule.id).closed);
	EXPECT_EQ(0, look(self->fd, id).closed);
	EXPECT_EQ(0, look(self->fd, id).spared);
}

/* A rule before others that matches something else leaves them their connections. */
TEST_F_TIMEOUT(rules, one_before_that_is_for_others, TIMEOUT)
{
	struct twheel_rule rule = named_rule("", ABORT, 1, 100 * MSEC);
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 500 * MSEC);
	rule.before = id;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(0, rule.watched);
	EXPECT_EQ(1, look(self->fd, id).watched);
	EXPECT_EQ(1, look(self->fd, id).matched);
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	EXPECT_EQ(1, look(self->fd, id).closed);
}

/* ---- exceptions */

TEST_F_TIMEOUT(rules, an_exception_keeps_connections, TIMEOUT)
{
	const __u64 idle = 200 * MSEC;
	struct pair old, new;
	int id, keep;

	ASSERT_TRUE(connect_pair(self->listener, &old));
	id = add_port(self->fd, LOCAL | ABORT, self->port, idle);
	keep = add_keep(self->fd, self->port, id);
	ASSERT_LT(0, keep);
	ASSERT_TRUE(connect_pair(self->listener, &new));
	sleep_ns(5 * idle);
	EXPECT_TRUE(is_open(&old));
	EXPECT_TRUE(is_open(&new));
	EXPECT_EQ(2, look(self->fd, keep).watched);
	EXPECT_EQ(0, look(self->fd, keep).closed);
	EXPECT_EQ(0, look(self->fd, id).closed);
	/* Without it they are idle. */
	ASSERT_EQ(0, remove_rule(self->fd, keep));
	EXPECT_EQ(ETIMEDOUT, error_of(old.server));
	EXPECT_EQ(ETIMEDOUT, error_of(new.server));
}

/* An exception after the rule is none. */
TEST_F_TIMEOUT(rules, an_exception_behind_a_rule, TIMEOUT)
{
	struct pair pair;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, self->port, 200 * MSEC));
	ASSERT_LT(0, add_keep(self->fd, self->port, 0));
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
}

/* It applies once accepted: before that, the owner of the connection is not known. */
TEST_F_TIMEOUT(rules, an_exception_for_a_user, TIMEOUT)
{
	struct twheel_rule keep = {
		.flags	= KEEP | TWHEEL_RULE_UID,
		.uid	= OTHER_UID,
	};
	const __u64 idle = 200 * MSEC;
	struct pair mine, his;

	ASSERT_EQ(0, add(self->fd, &keep));
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, self->port, idle));
	mine.client = reach(AF_INET, false, self->port);
	mine.server = accept(self->listener, NULL, NULL);
	his.client = reach(AF_INET, false, self->port);
	ASSERT_EQ(0, seteuid(OTHER_UID));
	his.server = accept(self->listener, NULL, NULL);
	ASSERT_EQ(0, seteuid(0));
	EXPECT_EQ(ETIMEDOUT, error_of(mine.server));
	sleep_ns(5 * idle);
	EXPECT_TRUE(is_open(&his));
}

TEST_F_TIMEOUT(rules, what_no_exception_has, TIMEOUT)
{
	struct twheel_rule good = named_rule("", KEEP, self->port, 0), rule;

	rule = good;
	rule.idle = HOUR;
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
	rule = good;
	rule.lifetime = HOUR;
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
	rule = good;
	rule.spread = 1;
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
	rule = good;
	rule.stalled = 1;
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
	rule = good;
	rule.rate = 1;
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
	rule = good;
	rule.flags |= ABORT;
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
	rule = good;
	rule.flags |= DRY;
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
	rule = good;
	rule.flags |= TWHEEL_WATCH_SENT;
	EXPECT_EQ(-EINVAL, add(self->fd, &rule));
	EXPECT_EQ(0, add(self->fd, &good));
}

/* ---- changes */

TEST_F_TIMEOUT(rules, a_shorter_timeout_applies_at_once, TIMEOUT)
{
	struct pair pair;
	__u64 begin;
	int id;

	/* Before the connection's last activity. */
	begin = now_ns();
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	ASSERT_EQ(0, set_idle(self->fd, id, ABORT, 300 * MSEC));
	EXPECT_EQ(300 * MSEC, look(self->fd, id).idle);
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	EXPECT_LE(begin + 300 * MSEC - 10 * MSEC, now_ns());
	EXPECT_EQ(1, look(self->fd, id).closed);
	EXPECT_EQ(1, look(self->fd, id).matched);
	EXPECT_EQ(0, look(self->fd, id).spared);
}

TEST_F_TIMEOUT(rules, a_longer_timeout_applies_at_once, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, SEC);
	ASSERT_EQ(0, set_idle(self->fd, id, ABORT, HOUR));
	sleep_ns(3 * SEC);
	EXPECT_TRUE(is_open(&pair));
	EXPECT_EQ(1, look(self->fd, id).watched);
	EXPECT_EQ(1, look(self->fd, id).matched);
}

/* What a dry run has counted is idle once the rule goes live. */
TEST_F_TIMEOUT(rules, a_dry_run_goes_live, TIMEOUT)
{
	struct twheel_connection connection;
	const __u64 idle = 200 * MSEC;
	struct twheel_rule rule;
	struct pair pair;
	__u64 cursor = 0;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT | DRY, self->port, idle);
	ASSERT_EQ(1, list(self->fd, id, &connection, 1, sizeof(connection), &cursor));
	EXPECT_EQ(0, connection.flags);
	ASSERT_TRUE(wait_for(self->fd, id, would_close, 1));
	cursor = 0;
	ASSERT_EQ(1, list(self->fd, id, &connection, 1, sizeof(connection), &cursor));
	EXPECT_EQ(TWHEEL_CONNECTION_COUNTED, connection.flags);
	EXPECT_TRUE(is_open(&pair));
	ASSERT_EQ(0, set_idle(self->fd, id, ABORT, idle));
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
	rule = look(self->fd, id);
	EXPECT_EQ(1, rule.closed);
	EXPECT_EQ(1, rule.would_close);
	/* Nobody could have closed it before the rule went live. */
	EXPECT_EQ(1, rule.untimed);
	EXPECT_EQ(1, rule.matched);
}

TEST_F_TIMEOUT(rules, a_live_rule_becomes_a_dry_run, TIMEOUT)
{
	const __u64 idle = 300 * MSEC;
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, idle);
	ASSERT_EQ(0, set_idle(self->fd, id, ABORT | DRY, idle));
	ASSERT_TRUE(wait_for(self->fd, id, would_close, 1));
	sleep_ns(2 * idle);
	EXPECT_TRUE(is_open(&pair));
	EXPECT_EQ(1, look(self->fd, id).would_close);
}

TEST_F_TIMEOUT(rules, another_action, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	ASSERT_EQ(0, set_idle(self->fd, id, TWHEEL_WATCH_SHUTDOWN, 200 * MSEC));
	/* The connection has ended, with an error on neither end. */
	EXPECT_EQ(0, hear(pair.client));
	EXPECT_EQ(0, hear(pair.server));
	EXPECT_EQ(1, look(self->fd, id).closed);
}

/* Connections that wait for their turn do not wait at the old rate. */
TEST_F_TIMEOUT(rules, another_rate, TIMEOUT)
{
	struct twheel_rule rule = named_rule("", ABORT, self->port, 200 * MSEC);
	struct pair pairs[20];
	__u64 begin;
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	rule.rate = 1;
	ASSERT_EQ(0, add(self->fd, &rule));
	sleep_ns(1500 * MSEC);
	EXPECT_GE(3, look(self->fd, rule.id).closed);
	EXPECT_EQ(0, set_rule(self->fd, &(struct twheel_rule) {
		.id = rule.id, .flags = ABORT, .rate = 1000, .idle = 200 * MSEC }));
	begin = now_ns();
	for (i = 0; i < 20; i++)
		EXPECT_EQ(ETIMEDOUT, error_of(pairs[i].server));
	/* At the old rate it would be 17 seconds. One that waits gets its token after a second. */
	EXPECT_GE(begin + 8 * SEC, now_ns());
	EXPECT_EQ(20, look(self->fd, rule.id).closed);
}

TEST_F_TIMEOUT(rules, a_rule_becomes_an_exception, TIMEOUT)
{
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	id = add_port(self->fd, LOCAL | ABORT, self->port, 300 * MSEC);
	ASSERT_EQ(0, set_idle(self->fd, id, KEEP, 0));
	sleep_ns(SEC);
	EXPECT_TRUE(is_open(&pair));
	ASSERT_EQ(0, set_idle(self->fd, id, ABORT, 300 * MSEC));
	EXPECT_EQ(ETIMEDOUT, error_of(pair.server));
}

TEST_F_TIMEOUT(rules, what_cannot_be_changed, TIMEOUT)
{
	struct twheel_rule good = { .flags = ABORT, .idle = HOUR }, rule, before;

	good.id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	before = look(self->fd, good.id);
	rule = good;
	rule.id++;
	EXPECT_EQ(-ENOENT, set_rule(self->fd, &rule));
	rule = good;
	rule.flags |= LOCAL;
	rule.local_port = self->port;
	EXPECT_EQ(-EINVAL, set_rule(self->fd, &rule));
	rule = good;
	rule.before = good.id;
	EXPECT_EQ(-EINVAL, set_rule(self->fd, &rule));
	rule = good;
	rule.uid = 1;
	EXPECT_EQ(-EINVAL, set_rule(self->fd, &rule));
	rule = good;
	rule.idle = 0;
	EXPECT_EQ(-EINVAL, set_rule(self->fd, &rule));
	rule = good;
	rule.flags = 0;
	EXPECT_EQ(-EINVAL, set_rule(self->fd, &rule));
	rule = good;
	rule.flags |= 1;
	EXPECT_EQ(-EOPNOTSUPP, set_rule(self->fd, &rule));
	rule = good;
	rule.reserved2 = 1;
	EXPECT_EQ(-EINVAL, set_rule(self->fd, &rule));
	rule = look(self->fd, good.id);
	before.age = rule.age;
	EXPECT_EQ(0, memcmp(&before, &rule, sizeof(rule)));
}

/* ---- what is reported */

/* Connections that had been idle for longer before the rule existed do not count as late. */
TEST_F_TIMEOUT(rules, overdue, TIMEOUT)
{
	struct twheel_rule rule = named_rule("", ABORT, self->port, 300 * MSEC);
	struct pair old[3], new;
	__u64 late = 0;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_TRUE(connect_pair(self->listener, &old[i]));
	sleep_ns(2 * SEC);
	ASSERT_TRUE(connect_pair(self->listener, &new));
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(3, rule.overdue);
	EXPECT_EQ(4, rule.matched);
	EXPECT_EQ(ETIMEDOUT, error_of(new.server));
	rule = look(self->fd, rule.id);
	EXPECT_EQ(4, rule.closed);
	EXPECT_EQ(3, rule.overdue);
	for (i = 0; i < TWHEEL_RULE_LATE; i++)
		late += rule.late[i];
	EXPECT_EQ(1, late);
	/* Late by less than 2^28 ns, not by 1.7 s. */
	for (late = 0, i = 0; i < 9; i++)
		late += rule.late[i];
	EXPECT_EQ(1, late);
}

static __u64 sum_of_late(int fd, __u32 id)
{
	const struct twheel_rule rule = look(fd, id);
	__u64 sum = 0;
	int i;

	for (i = 0; i < TWHEEL_RULE_LATE; i++)
		sum += rule.late[i];
	return sum;
}

/* Nor do those that the rule could not close, because of another rule, or before it was changed. */
TEST_F_TIMEOUT(rules, overdue_by_a_change, TIMEOUT)
{
	int first, id;
	struct pair old, new;

	ASSERT_TRUE(connect_pair(self->listener, &old));
	first = add_keep(self->fd, self->port, 0);
	id = add_port(self->fd, LOCAL | ABORT, self->port, 300 * MSEC);
	ASSERT_LT(0, id);
	sleep_ns(2 * SEC);
	ASSERT_EQ(0, remove_rule(self->fd, first));
	EXPECT_EQ(ETIMEDOUT, error_of(old.server));
	EXPECT_EQ(1, look(self->fd, id).overdue);
	EXPECT_EQ(1, look(self->fd, id).closed);
	EXPECT_EQ(0, sum_of_late(self->fd, id));
	ASSERT_EQ(0, set_idle(self->fd, id, ABORT, HOUR));
	ASSERT_TRUE(connect_pair(self->listener, &old));
	sleep_ns(2 * SEC);
	ASSERT_EQ(0, set_idle(self->fd, id, ABORT, 300 * MSEC));
	EXPECT_EQ(ETIMEDOUT, error_of(old.server));
	EXPECT_EQ(2, look(self->fd, id).closed);
	EXPECT_EQ(0, sum_of_late(self->fd, id));
	/* One that it could have closed counts. */
	ASSERT_TRUE(connect_pair(self->listener, &new));
	EXPECT_EQ(ETIMEDOUT, error_of(new.server));
	EXPECT_EQ(1, sum_of_late(self->fd, id));
}

/* Waits until the module has that many users. Returns false on a timeout. */
static bool wait_users(__u64 n)
{
	__u64 end = now_ns() + GUARD_MS * MSEC;

	while (file_number("/sys/module/twheel/refcnt") != n)
		if (sleep_ns(MSEC), now_ns() > end)
			return false;
	return true;
}

/* As long as there is a rule, the module stays, even if the device is closed. */
TEST_F_TIMEOUT(rules, the_module_stays, TIMEOUT)
{
	int id;

	/* The rules of other tests are gone. */
	ASSERT_TRUE(wait_users(1));
	id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	close(self->fd);
	ASSERT_TRUE(wait_users(1));
	EXPECT_EQ(-1, syscall(SYS_delete_module, "twheel", O_NONBLOCK));
	EXPECT_EQ(EAGAIN, errno);
	self->fd = wh_open(0);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(HOUR, look(self->fd, id).idle);
	ASSERT_EQ(0, remove_rule(self->fd, id));
	EXPECT_TRUE(wait_users(1));
}

TEST_F_TIMEOUT(rules, age, TIMEOUT)
{
	__u64 before = now_ns(), age;
	int id = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);

	sleep_ns(100 * MSEC);
	age = look(self->fd, id).age;
	EXPECT_LE(100 * MSEC, age);
	EXPECT_GE(now_ns() - before, age);
}

TEST_HARNESS_MAIN
