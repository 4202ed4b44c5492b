// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: which connections they apply to.
 */
#include "child_test.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif

/* Makes a rule with the conditions in @what; the server's end meets all but those in @wrong. */
static void make_rule(struct twheel_rule *rule, unsigned int what, unsigned int wrong,
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

	/* The server's end belongs to another user, who accepts it. */
	pair.client = reach(AF_INET, false, self->port);
	ASSERT_EQ(0, seteuid(OTHER_UID));
	pair.server = accept(self->listener, NULL, NULL);
	ASSERT_EQ(0, seteuid(0));
	/* A rule that stays: removing the last one takes longer. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	for (what = 1; what < 16; what++) {
		for (wrong = 0; wrong < 16; wrong++) {
			if (wrong & ~what)
				continue;
			make_rule(&rule, what, wrong, &pair);
			ASSERT_EQ(0, add(self->fd, &rule));
			/* The process alone matches the client's end as well. */
			EXPECT_EQ(wrong ? 0 : what == 8 ? 2 : 1,
				  look(self->fd, rule.id).watched)
				TH_LOG("what %x wrong %x", what, wrong);
			ASSERT_EQ(0, remove_rule(self->fd, rule.id));
		}
	}
}

/* A server's connection belongs to its listener until it is accepted. */
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
	/* When that rule is removed, the next one takes over. */
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
	/* The wheel does not hold anything for it any more. */
	EXPECT_TRUE(wait_total("pending", 0));
}

/* ---- in-kernel connections */

#define SOCKETS		"/sys/module/twheel_sockets/parameters/"
/* The number of ways in which the module makes them. */
#define NR_OWNERS	4

/* By port: the user's connections are closed. */
TEST_F_TIMEOUT(rules, kernels_own_by_port, TIMEOUT)
{
	int servers[NR_OWNERS], id, i;
	struct twheel_rule rule;
	struct pair pair;

	ASSERT_EQ(0, system("modprobe twheel_sockets"));
	ASSERT_EQ(0, file_write(SOCKETS "connect", self->port));
	for (i = 0; i < NR_OWNERS; i++)
		servers[i] = accept(self->listener, NULL, NULL);
	id = add_port(self->fd, REMOTE | ABORT, self->port, 50 * MSEC);
	ASSERT_LT(0, id);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_TRUE(is_reset(pair.server));
	close_pair(&pair);
	sleep_ns(200 * MSEC);
	/* Adding a rule waits until the worker is idle. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	rule = look(self->fd, id);
	EXPECT_EQ(1, rule.matched);
	EXPECT_EQ(1, rule.closed);
	EXPECT_EQ(0, rule.watched);
	for (i = 0; i < NR_OWNERS; i++) {
		EXPECT_EQ(TCP_ESTABLISHED, tcp_info(servers[i]).tcpi_state) TH_LOG("%d", i);
		close(servers[i]);
	}
	EXPECT_EQ(0, file_write(SOCKETS "close", 0));
	EXPECT_EQ(0, system("rmmod twheel_sockets"));
}

/* By uid: a connection that the kernel has accepted. */
TEST_F_TIMEOUT(rules, kernels_own_by_uid, TIMEOUT)
{
	struct twheel_rule rule = {
		.flags	= TWHEEL_RULE_UID | ABORT,
		.idle	= 50 * MSEC,
	};
	struct pair pair;
	int client;

	ASSERT_EQ(0, system("modprobe twheel_sockets"));
	ASSERT_EQ(0, file_write(SOCKETS "listen", self->port ^ 1));
	client = reach(AF_INET, false, self->port ^ 1);
	ASSERT_LE(0, client);
	/* This end does not belong to root. */
	ASSERT_EQ(0, fchown(client, OTHER_UID, -1));
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_EQ(0, file_write(SOCKETS "accept", 0));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	/* Both ends belong to root, and either may be closed first. */
	EXPECT_NE(-ETIME, error_of(pair.client));
	sleep_ns(200 * MSEC);
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	EXPECT_EQ(0, look(self->fd, rule.id).watched);
	EXPECT_EQ(TCP_ESTABLISHED, tcp_info(client).tcpi_state);
	close(client);
	close_pair(&pair);
	EXPECT_EQ(0, file_write(SOCKETS "close", 0));
	EXPECT_EQ(0, system("rmmod twheel_sockets"));
}

/* ---- processes and cgroups */

TEST_F_TIMEOUT(rules, process_that_connects, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .port = self->port, .listener = self->listener };
	struct twheel_connection record;
	__u64 cursor = 0;
	struct pair pair;
	int port;

	ASSERT_TRUE(start_child(&child, connect_often));
	ASSERT_TRUE(send_request(&child));
	port = read_answer(&child);
	rule.pid = child.pid;
	/* A connection that the process began earlier. */
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	EXPECT_EQ(child.pid, look(self->fd, rule.id).pid);
	ASSERT_EQ(1, list(self->fd, rule.id, &record, 1, sizeof(record), &cursor));
	EXPECT_EQ(port, record.local_port);
	/* One that it begins now; and one of another process. */
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(send_request(&child));
	read_answer(&child);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_TRUE(send_request(&child));
	read_answer(&child);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 3));
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	kill_child(child.pid);
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 0));
	/* The process does not exist any more. */
	EXPECT_EQ(-ESRCH, add(self->fd, &rule));
}

static void *connect_once(void *arg)
{
	struct child *child = arg;

	/* What the first thread leaves behind belongs to its process. */
	sleep_ns(200 * MSEC);
	send_answer(child, local_port(reach(AF_INET, false, child->port)));
	wait_request(child);
	return NULL;
}

static void leave_to_another_thread(void *arg)
{
	struct child *child = arg;
	pthread_t thread;

	close(child->listener);
	if (pthread_create(&thread, NULL, connect_once, child))
		_exit(1);
	pthread_exit(NULL);
}

/* The first thread of the process has ended, and the others continue. */
TEST_F_TIMEOUT(rules, process_without_its_first_thread, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .port = self->port, .listener = self->listener };

	ASSERT_TRUE(start_child(&child, leave_to_another_thread));
	ASSERT_LT(0, read_answer(&child));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	kill_child(child.pid);
}

/* A process that no rule knows begins a connection that is never established. */
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

/* A connection is only as old as itself, however long others were attempted. */
TEST_F_TIMEOUT(rules, process_that_connects_elsewhere, TIMEOUT)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_PID | TWHEEL_RULE_REMOTE_PORT | ABORT,
		.pid		= getpid(),
		.remote_port	= self->port,
		.lifetime	= 3 * SEC,
	};
	int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), sock, i;
	struct sockaddr_in6 in6;
	socklen_t len = address(AF_INET, false, 0, &in6);
	__u64 begun;

	/* Nobody accepts there, and the backlog is full. */
	ASSERT_EQ(0, bind(full, (void *)&in6, len));
	ASSERT_EQ(0, listen(full, 0));
	address(AF_INET, false, local_port(full), &in6);
	for (i = 0; i < 3; i++) {
		sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(sock, (void *)&in6, len);
		sleep_ns(100 * MSEC);
	}
	close(sock);
	ASSERT_EQ(0, add(self->fd, &rule));
	sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ASSERT_EQ(-1, connect(sock, (void *)&in6, len));
	ASSERT_EQ(EINPROGRESS, errno);
	sleep_ns(900 * MSEC);
	ASSERT_EQ(TCP_SYN_SENT, tcp_info(sock).tcpi_state);
	ASSERT_EQ(0, connect(sock, &nowhere, sizeof(nowhere)));
	address(AF_INET, false, self->port, &in6);
	begun = now_ns();
	connect(sock, (void *)&in6, len);
	ASSERT_EQ(true, wait_tcp_state(sock, TCP_ESTABLISHED));
	ASSERT_EQ(true, wait_for(self->fd, rule.id, closed, 1));
	EXPECT_LE(begun + rule.lifetime, now_ns());
}

/* Listens when asked to, has a child that accepts, and lives on. */
static void accept_all(void *arg)
{
	struct child *child = arg;

	/* The child outlives its parent, but not the test. */
	prctl(PR_SET_PDEATHSIG, 0);
	alarm(2 * GUARD_MS / 1000);
	for (;;)
		send_answer(child, accept(child->listener, NULL, NULL));
}

static void listen_often(void *arg)
{
	struct child *child = arg;

	setpgid(0, 0);
	/* Otherwise it would be listening there as well. */
	close(child->listener);
	for (;;) {
		child->listener = serve(AF_INET, false, 0);
		spawn(accept_all, child);
		send_answer(child, local_port(child->listener));
		wait_request(child);
	}
}

TEST_F_TIMEOUT(rules, process_that_listens, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener };
	struct pair pair;
	int port;

	ASSERT_TRUE(start_child(&child, listen_often));
	port = read_answer(&child);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, read_answer(&child));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	/* Its child has accepted it. */
	EXPECT_EQ(1, look(self->fd, rule.id).watched);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, read_answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 2));
	/* Another port from now on. */
	ASSERT_TRUE(send_request(&child));
	port = read_answer(&child);
	sleep_ns(200 * MSEC);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, read_answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 3));
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	/* Without the process there are no new ones, although others accept. */
	kill_child(child.pid);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, read_answer(&child));
	sleep_ns(100 * MSEC);
	EXPECT_EQ(3, look(self->fd, rule.id).matched);
	EXPECT_EQ(3, look(self->fd, rule.id).watched);
	kill(-child.pid, SIGKILL);
}

/* Listens on a port that the kernel chooses, until asked to stop. */
static void listen_for_a_while(void *arg)
{
	struct child *child = arg;
	int sock = socket(AF_INET, SOCK_STREAM, 0);

	/* Otherwise it would be listening there as well. */
	close(child->listener);
	if (listen(sock, 1))
		_exit(1);
	send_answer(child, local_port(sock));
	wait_request(child);
	close(sock);
	send_answer(child, 0);
	wait_request(child);
}

/* Once it has stopped listening, the port is free for others, as are connections from there. */
TEST_F_TIMEOUT(rules, port_of_a_process_that_listened, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = 200 * MSEC };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct child child = { .listener = self->listener };
	struct sockaddr_in6 in6;
	socklen_t len;
	int port;

	ASSERT_TRUE(start_child(&child, listen_for_a_while));
	port = read_answer(&child);
	ASSERT_LT(0, port);
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_TRUE(send_request(&child));
	ASSERT_EQ(0, read_answer(&child));
	/* The change is on its way to the worker. */
	sleep_ns(500 * MSEC);
	len = address(AF_INET, false, port, &in6);
	ASSERT_EQ(0, bind(sock, (void *)&in6, len));
	address(AF_INET, false, self->port, &in6);
	ASSERT_EQ(0, connect(sock, (void *)&in6, len));
	sleep_ns(SEC);
	EXPECT_EQ(TCP_ESTABLISHED, tcp_info(sock).tcpi_state);
	EXPECT_EQ(0, look(self->fd, rule.id).matched);
	kill_child(child.pid);
	close(sock);
}

/* Another address on that port belongs to another process, which sometimes listens there. */
TEST_F_TIMEOUT(rules, port_of_others_that_listen, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .lifetime = 2 * SEC };
	struct child child = { .listener = self->listener };
	__u64 begun, closed, end;
	int port, sock, other;

	ASSERT_TRUE(start_child(&child, listen_often));
	port = read_answer(&child);
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	begun = now_ns();
	sock = reach(AF_INET, false, port);
	ASSERT_LE(0, sock);
	ASSERT_LE(0, read_answer(&child));
	end = begun + GUARD_MS * MSEC;
	while (tcp_info(sock).tcpi_state == TCP_ESTABLISHED && now_ns() < end) {
		other = serve(AF_INET6, false, port);
		ASSERT_LE(0, other);
		close(other);
		sleep_ns(100 * MSEC);
	}
	closed = now_ns();
	EXPECT_LE(begun + rule.lifetime, closed);
	EXPECT_GE(begun + 4 * rule.lifetime, closed);
	EXPECT_EQ(1, look(self->fd, rule.id).matched);
	kill_child(child.pid);
	kill(-child.pid, SIGKILL);
}

/* Listens when asked to, for connections that can use several paths, and accepts. */
static void accept_mptcp(void *arg)
{
	struct child *child = arg;
	struct sockaddr_in6 in6;
	socklen_t len = address(AF_INET, false, 0, &in6);
	int sock;

	/* Otherwise it would be listening there as well. */
	close(child->listener);
	wait_request(child);
	sock = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
	if (sock >= 0 && (bind(sock, (void *)&in6, len) || listen(sock, 10)))
		_exit(1);
	send_answer(child, sock < 0 ? 0 : local_port(sock));
	for (;;)
		send_answer(child, accept(sock, NULL, NULL));
}

/* Many servers listen so by default, while their clients use TCP. */
TEST_F_TIMEOUT(rules, mptcp_listener, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener };
	int port;

	ASSERT_TRUE(start_child(&child, accept_mptcp));
	port = ask_child(&child);
	if (!port)
		SKIP(return, "this kernel has no MPTCP");
	ASSERT_LT(0, port);
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, read_answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	kill_child(child.pid);
}

/* The rule is there first: the port is recorded at once, and the next scan does not forget it. */
TEST_F_TIMEOUT(rules, mptcp_listener_later, TIMEOUT)
{
	struct twheel_rule rule = { .flags = TWHEEL_RULE_PID | ABORT, .idle = HOUR };
	struct child child = { .listener = self->listener };
	int port;

	ASSERT_TRUE(start_child(&child, accept_mptcp));
	rule.pid = child.pid;
	ASSERT_EQ(0, add(self->fd, &rule));
	port = ask_child(&child);
	if (!port)
		SKIP(return, "this kernel has no MPTCP");
	ASSERT_LT(0, port);
	sleep_ns(2 * SEC);
	ASSERT_LE(0, reach(AF_INET, false, port));
	ASSERT_LE(0, read_answer(&child));
	EXPECT_TRUE(wait_for(self->fd, rule.id, watched, 1));
	kill_child(child.pid);
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
	/* This end is made in the child; the other one belongs to the listener. */
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
	/* The cgroup's directory may be removed before the rule. */
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

#define TRACING		"/sys/kernel/tracing/"
#define NR_NAMESPACES	40

/* Not with stdio, which looks for the end of the file. */
static int trace_write(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_APPEND), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, line, strlen(line)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Returns how often the module has waited for a grace period since tracing was enabled. */
static int nr_waits(void)
{
	FILE *file = fopen(TRACING "trace", "r");
	char line[512];
	int n = 0;

	while (file && fgets(line, sizeof(line), file))
		n += strstr(line, "twheel_waits") && strstr(line, "[twheel]");
	if (file)
		fclose(file);
	return n;
}

/* Waits until there are no more waits. Returns how many there were. */
static int last_nr_waits(void)
{
	int n, before = 0;

	for (n = nr_waits(); !n || n != before; n = nr_waits()) {
		before = n;
		sleep_ns(3 * SEC);
	}
	return n;
}

/* Makes namespaces with one rule each, which end together with this process. */
static void use_many_namespaces(void *arg)
{
	int fd = *(int *)arg, i;

	for (i = 0; i < NR_NAMESPACES; i++)
		if (network() || open("/proc/self/ns/net", O_RDONLY) < 0 ||
		    add_port(fd, LOCAL | ABORT, 1, HOUR) != 1)
			_exit(1);
}

/* Namespaces that end together wait together: a grace period takes as long as for one. */
TEST_F_TIMEOUT(rules, namespaces_end_together, TIMEOUT)
{
	int ret;

	/* A rule that stays: removing the last one takes longer. */
	ASSERT_LT(0, add_port(self->fd, LOCAL | ABORT, 1, HOUR));
	/* Harmless if it is already mounted. */
	(void)!mount("tracefs", TRACING, "tracefs", 0, NULL);
	ret = trace_write(TRACING "kprobe_events",
			  "p:twheel_waits synchronize_rcu caller=+0($stack):symbol");
	if (ret == -ENOENT)
		SKIP(return, "this kernel cannot trace functions");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, trace_write(TRACING "events/kprobes/twheel_waits/enable", "1"));
	EXPECT_EQ(0, reap(spawn(use_many_namespaces, &self->fd)));
	ret = last_nr_waits();
	printf("# %d waits for %d namespaces\n", ret, NR_NAMESPACES);
	EXPECT_GT(NR_NAMESPACES, ret);
	EXPECT_EQ(0, trace_write(TRACING "events/kprobes/twheel_waits/enable", "0"));
	EXPECT_EQ(0, trace_write(TRACING "kprobe_events", "-:twheel_waits"));
}

TEST_HARNESS_MAIN
