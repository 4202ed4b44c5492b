// SPDX-License-Identifier: GPL-2.0-only
/*
 * A typical server: an epoll loop, a timeout for each connection, a re-arm for each message.
 * Exactly the connections that fall silent time out.
 */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "twheel_test.h"

#define CONNECTIONS	1000
#define TIMEOUT		(400 * MSEC)
#define ROUNDS		8

/**
 * struct connection - what the server knows about a connection
 * @handle:	its timer; 0 if it has timed out
 * @earliest:	a lower bound of its deadline
 * @latest:	an upper bound of its deadline
 * @messages:	messages received
 */
struct connection {
	__u64		handle;
	__u64		earliest;
	__u64		latest;
	unsigned int	messages;
};

FIXTURE(heartbeat)
{
	int fd;
	int epoll;
	int server;
	pid_t clients;
	struct connection *connections;
};

/* How many messages a connection sends before it falls silent. */
static unsigned int messages_of(unsigned int connection)
{
	return connection % 10 ? ROUNDS : 1 + connection / 10 % (ROUNDS - 1);
}

/* Plays all clients: a message is the connection's number. */
static void run_clients(int socket)
{
	unsigned int round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < CONNECTIONS; i++)
			if (round < messages_of(i) && write(socket, &i, sizeof(i)) != sizeof(i))
				_exit(1);
		sleep_ns(100 * MSEC);
	}
	_exit(0);
}

FIXTURE_SETUP(heartbeat)
{
	struct epoll_event event = { .events = EPOLLIN };
	int sockets[2];

	self->connections = calloc(CONNECTIONS, sizeof(*self->connections));
	ASSERT_NE(NULL, self->connections);
	self->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets));
	self->server = sockets[0];
	self->epoll = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_GE(self->epoll, 0);
	event.data.fd = self->fd;
	ASSERT_EQ(0, epoll_ctl(self->epoll, EPOLL_CTL_ADD, self->fd, &event));
	event.data.fd = self->server;
	ASSERT_EQ(0, epoll_ctl(self->epoll, EPOLL_CTL_ADD, self->server, &event));
	self->clients = fork();
	ASSERT_GE(self->clients, 0);
	if (!self->clients) {
		/* When the server exits, for whatever reason, so do the clients. */
		close(sockets[0]);
		run_clients(sockets[1]);
	}
	ASSERT_EQ(0, close(sockets[1]));
}

FIXTURE_TEARDOWN(heartbeat)
{
	int status;

	EXPECT_EQ(0, close(self->server));
	EXPECT_EQ(0, close(self->epoll));
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(self->clients, waitpid(self->clients, &status, 0));
	EXPECT_EQ(0, status);
	free(self->connections);
}

/* Handles a message: the connection is alive. Returns false if the clients have exited. */
static bool handle_heartbeat(struct __test_metadata *_metadata, FIXTURE_DATA(heartbeat) * self)
{
	struct connection *connection;
	unsigned int number;
	ssize_t size = recv(self->server, &number, sizeof(number), 0);

	if (!size)
		return false;
	ASSERT_EQ(sizeof(number), size);
	ASSERT_GT(CONNECTIONS, number);
	connection = &self->connections[number];
	connection->messages++;
	connection->earliest = now_ns() + TIMEOUT;
	ASSERT_LE(0, connection->handle ?
		     wh_rearm(self->fd, connection->handle, TIMEOUT, 0) :
		     wh_add(self->fd, TIMEOUT, 0, number, &connection->handle));
	connection->latest = now_ns() + TIMEOUT;
	return true;
}

/* Handles timeouts of silent connections. Returns how many there were. */
static unsigned int handle_timeouts(struct __test_metadata *_metadata,
				    FIXTURE_DATA(heartbeat) * self, bool beaten)
{
	struct connection *connection;
	struct twheel_event events[16];
	int i, n = wh_read(self->fd, events, ARRAY_SIZE(events));

	/*
	 * The only event may have been revoked by a heartbeat that the same epoll_wait() reported.
	 */
	if (n == -EAGAIN && beaten)
		return 0;
	ASSERT_LT(0, n);
	for (i = 0; i < n; i++) {
		EXPECT_EVENT_OK(&events[i]);
		ASSERT_GT(CONNECTIONS, events[i].user_data);
		connection = &self->connections[events[i].user_data];
		ASSERT_EQ(connection->handle, events[i].handle);
		EXPECT_LE(connection->earliest, events[i].deadline);
		EXPECT_GE(connection->latest, events[i].deadline);
		connection->handle = 0;
	}
	return n;
}

TEST_F_TIMEOUT(heartbeat, epoll_server, 60)
{
	unsigned int i, timed_out = 0, expected = 0;
	struct epoll_event events[4];
	bool connected = true;
	int n, k;

	while (connected || wh_nr_timers(self->fd)) {
		n = epoll_wait(self->epoll, events, ARRAY_SIZE(events), GUARD_MS);
		ASSERT_LT(0, n);
		for (k = 0; k < n; k++) {
			if (events[k].data.fd == self->fd) {
				timed_out += handle_timeouts(_metadata, self, k > 0);
				continue;
			}
			connected = handle_heartbeat(_metadata, self);
			if (!connected)
				ASSERT_EQ(0, epoll_ctl(self->epoll, EPOLL_CTL_DEL, self->server,
						       NULL));
		}
	}
	for (i = 0; i < CONNECTIONS; i++) {
		EXPECT_EQ(0, self->connections[i].handle);
		EXPECT_EQ(messages_of(i), self->connections[i].messages);
		expected++;
	}
	/*
	 * There are more only if the machine was stalled for so long that connections seemed
	 * silent.
	 */
	EXPECT_LE(expected, timed_out);
	printf("# %u connections, %u timeouts\n", expected, timed_out);
}

TEST_HARNESS_MAIN
