// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: which connections they apply to.
 */
#include "rules_test.h"

/* Each of what can be asked for and that the server's end has, and something else. */
static void ask(struct twheel_rule *rule, unsigned int what, unsigned int wrong,
		const struct pair *pair)
{
	memset(rule, 0, sizeof(*rule));
	rule->flags = ABORT | (what & 1 ? LOCAL : 0) | (what & 2 ? REMOTE : 0) |
		      (what & 4 ? TWHEEL_RULE_UID : 0) | (what & 8 ? TWHEEL_RULE_PID : 0);
	rule->idle = HOUR;
	if (what & 1)
		rule->local_port = local_port(pair->server) ^ (wrong & 1);
	if (what & 2)
		rule->remote_port = local_port(pair->client) ^ (wrong >> 1 & 1);
	if (what & 4)
		rule->uid = OTHER_UID ^ (wrong >> 2 & 1);
	if (what & 8)
		rule->pid = wrong & 8 ? 1 : getpid();
}

TEST_F_TIMEOUT(rules, matches_all_that_it_asks_for, TIMEOUT)
{
	unsigned int what, wrong;
	struct twheel_rule rule;
	struct pair pair;

	/* The server's end belongs to somebody else: he accepts. */
	pair.client = reach(AF_INET, false, self->port);
	ASSERT_EQ(0, seteuid(OTHER_UID));
	pair.server = accept(self->listener, NULL, NULL);
	ASSERT_EQ(0, seteuid(0));
	/* A rule that stays: to remove the last one takes longer. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	for (what = 1; what < 16; what++) {
		for (wrong = 0; wrong < 16; wrong++) {
			if (wrong & ~what)
				continue;
			ask(&rule, what, wrong, &pair);
			ASSERT_EQ(0, add(self->fd, &rule));
			/* By its process alone it is the client's end as well. */
			EXPECT_EQ(wrong ? 0 : what == 8 ? 2 : 1,
				  look(self->fd, rule.id).watched)
				TH_LOG("what %x wrong %x", what, wrong);
			ASSERT_EQ(0, remove_rule(self->fd, rule.id));
		}
	}
}

/* A server's connection is its listener's until somebody accepts it. */
TEST_F_TIMEOUT(rules, uid_of_who_accepts, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_UID | LOCAL | ABORT,
		.local_port	= self->port,
		.uid		= OTHER_UID,
		.idle		= HOUR,
	};
	struct pair pair;

	ASSERT_EQ(0, add(self->fd, &rule));
	pair.client = reach(AF_INET, false, self->port);
	sleep_ns(200 * MSEC);
	EXPECT_EQ(0, look(self->fd, rule.id).watched);
	ASSERT_EQ(0, seteuid(OTHER_UID));
	pair.server = accept(self->listener, NULL, NULL);
	ASSERT_EQ(0, seteuid(0));
	ASSERT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	EXPECT_EQ(TCP_ESTABLISHED, tcp_info(pair.server).tcpi_state);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	sleep_ns(300 * MSEC);
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	EXPECT_EQ(1, look(self->fd, rule.id).matched);
}

TEST_F_TIMEOUT(rules, first_one_wins, TIMEOUT)
{
	struct pair pairs[3];
	int ids[3], i;

	for (i = 0; i < 3; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	ids[0] = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	ids[1] = add_port(self->fd, LOCAL | ABORT, self->port, 50 * MSEC);
	ids[2] = add_port(self->fd, LOCAL | ABORT, self->port, HOUR);
	EXPECT_EQ(3, look(self->fd, ids[0]).watched);
	EXPECT_EQ(0, look(self->fd, ids[1]).watched);
	sleep_ns(300 * MSEC);
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(is_open(&pairs[i]));
	/* When it goes, the next one takes over. */
	ASSERT_EQ(0, remove_rule(self->fd, ids[1]));
	EXPECT_EQ(3, look(self->fd, ids[0]).watched);
	ASSERT_EQ(0, remove_rule(self->fd, ids[0]));
	EXPECT_EQ(3, look(self->fd, ids[2]).watched);
	EXPECT_EQ(3, look(self->fd, ids[2]).matched);
	ids[0] = add_port(self->fd, LOCAL | ABORT, self->port, 50 * MSEC);
	ASSERT_EQ(0, remove_rule(self->fd, ids[2]));
	ASSERT_TRUE(wait_for(self->fd, ids[0], closed, 3));
}

TEST_F_TIMEOUT(rules, removed_ones_close_nothing, TIMEOUT)
{
	struct pair pairs[20];
	int round, id, i;

	for (i = 0; i < 20; i++)
		ASSERT_TRUE(connect_pair(self->listener, &pairs[i]));
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 20; i++)
			ASSERT_TRUE(say(pairs[i].client, pairs[i].server));
		id = add_port(self->fd, LOCAL | ABORT, self->port, 10 * SEC);
		ASSERT_LT(0, id);
		EXPECT_EQ(20, look(self->fd, id).watched);
		ASSERT_EQ(0, remove_rule(self->fd, id));
		EXPECT_EQ(-ENOENT, remove_rule(self->fd, id));
	}
	for (i = 0; i < 20; i++)
		EXPECT_TRUE(is_open(&pairs[i]));
	/* The wheel has nothing of it any more. */
	EXPECT_TRUE(wait_total("pending", 0));
}

/* ---- processes and cgroups */

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	reap(pid);
}

/* Does something when it is told to, by a byte in a pipe. */
struct child {
	pid_t pid;
	int tell[2];
	int told[2];
	__u16 port;
	int listener;
};

static void wait_word(struct child *child)
{
	char c;

	if (read(child->tell[0], &c, 1) != 1)
		_exit(1);
}

static bool tell(struct child *child)
{
	return write(child->tell[1], "x", 1) == 1;
}

/* Hears of a port, or a file descriptor, that the child has to do with. */
static int answer(struct child *child)
{
	int value = -1;

	return read(child->told[0], &value, sizeof(value)) == sizeof(value) ? value : -1;
}

static void report(struct child *child, int value)
{
	if (write(child->told[1], &value, sizeof(value)) != sizeof(value))
		_exit(1);
}

static bool begin(struct child *child, void (*function)(void *arg))
{
	if (pipe2(child->tell, O_CLOEXEC) || pipe2(child->told, O_CLOEXEC))
		return false;
	child->pid = spawn(function, child);
	return child->pid > 0;
}

/* Connects, again each time it is told to, and tells of its port. */
static void connect_often(void *arg)
{
	struct child *child = arg;

	/* Or it would be one that listens. */
	close(child->listener);
	for (;;) {
		wait_word(child);
		report(child, local_port(reach(AF_INET, false, child->port)));
	}
}

TEST_F_TIMEOUT(rules, process_that_connects, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .port = self->port, .listener = self->listener };
	struct twheel_connection record;
	__u64 cursor = 0;
	struct pair pair;
	int port;

	ASSERT_TRUE(begin(&child, connect_often));
	ASSERT_TRUE(tell(&child));
	port = answer(&child);
	rule.pid = child.pid;
	/* One that it has begun before. */
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	EXPECT_EQ(child.pid, look(self->fd, rule.id).pid);
	ASSERT_EQ(1, list(self->fd, rule.id, &record, 1, sizeof(record), &cursor));
	EXPECT_EQ(port, record.local_port);
	/* One that it begins; and one of somebody else. */
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(tell(&child));
	answer(&child);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(tell(&child));
	answer(&child);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 3));
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	stop(child.pid);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 0));
	/* There is no such process any more. */
	EXPECT_EQ(-ESRCH, add(self->fd, &rule));
}

/* A process that nobody knows of begins a connection that never comes about. */
TEST_F_TIMEOUT(rules, process_that_cannot_connect, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags	= TWHEEL_RULE_PID | ABORT,
		.pid	= getpid(),
		.idle	= HOUR,
	};
	struct sockaddr_in6 in6;
	socklen_t len;
	int fd, i;

	ASSERT_EQ(0, add(self->fd, &rule));
	for (i = 0; i < 20; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		len = address(AF_INET, false, 1, &in6);
		EXPECT_EQ(-1, connect(fd, (void *)&in6, len));
		EXPECT_EQ(ECONNREFUSED, errno);
		close(fd);
	}
	EXPECT_EQ(0, look(self->fd, rule.id).matched);
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	EXPECT_TRUE(wait_total("pending", 0));
}

/* Listens when it is told to, has a child that accepts, and lives on. */
static void accept_all(void *arg)
{
	struct child *child = arg;

	/* It outlives its parent, but not the test. */
	prctl(PR_SET_PDEATHSIG, 0);
	alarm(2 * GUARD_MS / 1000);
	for (;;)
		report(child, accept(child->listener, NULL, NULL));
}

static void listen_often(void *arg)
{
	struct child *child = arg;

	setpgid(0, 0);
	/* It would listen there as well. */
	close(child->listener);
	for (;;) {
		child->listener = serve(AF_INET, false, 0);
		spawn(accept_all, child);
		report(child, local_port(child->listener));
		wait_word(child);
	}
}

TEST_F_TIMEOUT(rules, process_that_listens, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener };
	struct pair pair;
	int port;

	ASSERT_TRUE(begin(&child, listen_often));
	port = answer(&child);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, answer(&child));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	/* Its child has accepted it. */
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
	/* Another port, from now on. */
	ASSERT_TRUE(tell(&child));
	port = answer(&child);
	sleep_ns(200 * MSEC);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 3));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	/* Without it there are no new ones, though others accept. */
	stop(child.pid);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, answer(&child));
	sleep_ns(100 * MSEC);
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	EXPECT_EQ(3, look(self->fd, rule.id).watched);
	kill(-child.pid, SIGKILL);
}

#define CGROUPS	"/tmp/cgroups"

static __u64 make_cgroup(const char *path)
{
	struct stat stat_buf;

	mkdir(path, 0755);
	return stat(path, &stat_buf) ? 0 : stat_buf.st_ino;
}

TEST_F_TIMEOUT(rules, cgroup, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_CGROUP | ABORT, .idle = HOUR };
	__u64 parent, child, other;
	struct pair pair;
	int ret;

	mkdir(CGROUPS, 0755);
	if (mount("cgroup2", CGROUPS, "cgroup2", 0, NULL) && errno != EBUSY)
		SKIP(return, "this kernel has no cgroups");
	parent = make_cgroup(CGROUPS "/parent");
	child = make_cgroup(CGROUPS "/parent/child");
	other = make_cgroup(CGROUPS "/other");
	ASSERT_NE(0, child);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, file_write(CGROUPS "/parent/child/cgroup.procs", getpid()));
	/* This end is made in the child; the other one is the listener's. */
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	rule.cgroup = parent;
	ret = add(self->fd, &rule);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "sockets of this kernel have no cgroups");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	ASSERT_EQ(0, remove_rule(self->fd, rule.id));
	rule.cgroup = child;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
	rule.cgroup = other;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(0, look(self->fd, rule.id).watched);
	/* Its directory may go before the rule does. */
	EXPECT_EQ(0, rmdir(CGROUPS "/other"));
	EXPECT_EQ(other, look(self->fd, rule.id).cgroup);
	EXPECT_EQ(-ENOENT, add(self->fd, &rule));
	file_write(CGROUPS "/cgroup.procs", getpid());
}

/* ---- namespaces */

TEST_F_TIMEOUT(rules, other_namespaces_are_left_alone, TIMEOUT)
{
	struct pair pair, other;
	int id, listener;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, network());
	listener = serve(AF_INET, false, self->port);
	ASSERT_TRUE(connect_pair(listener, &other));
	/* Both have the same ports. */
	id = add_port(self->fd, LOCAL | ABORT, self->port, 50 * MSEC);
	ASSERT_EQ(1, id);
	EXPECT_EQ(ETIMEDOUT, error_of(other.server));
	EXPECT_TRUE(is_open(&pair));
	EXPECT_EQ(1, look(self->fd, id).matched);
}

static void use_namespace(void *arg)
{
	int fd = *(int *)arg, listener, i;
	struct pair pair;

	if (network())
		_exit(1);
	listener = serve(AF_INET, false, 0);
	for (i = 0; i < 10; i++)
		if (!connect_pair(listener, &pair))
			_exit(2);
	if (add_port(fd, LOCAL | ABORT, local_port(listener), HOUR) != 1 ||
	    add_port(fd, REMOTE | ABORT, local_port(listener), HOUR) != 2)
		_exit(3);
	_exit(look(fd, 1).watched == 10 && look(fd, 2).watched == 10 ? 0 : 4);
}

TEST_F_TIMEOUT(rules, namespaces_go_with_their_rules, TIMEOUT)
{
	int i;

	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, reap(spawn(use_namespace, &self->fd)));
	EXPECT_TRUE(wait_total("pending", 0));
}

TEST_HARNESS_MAIN
