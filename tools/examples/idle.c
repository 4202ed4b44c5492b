// SPDX-License-Identifier: MIT
/*
 * idle: an epoll server whose idle connections the kernel shuts down
 *
 * The server registers each connection with the kernel when it accepts it, and does nothing else
 * for the timeout. The kernel shuts down a connection that is idle, and the server is notified
 * twice: its context is readable, and so is the connection, which has reached end-of-file. The
 * server closes the connection at whichever it sees first; at the other one it then finds nothing
 * to do.
 *
 * A child process contains the clients. Each sends something from time to time for a while. Then
 * one in four closes its connection, and the others fall silent.
 *
 * usage: idle [CONNECTIONS [MILLISECONDS]]
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <libtwheel.h>

#define MSEC	1000000ULL

/* The context's data in epoll; for a connection, this is its number. */
#define CONTEXT	(~0ULL)

struct connection {
	int sock;		/* -1: closed */
	uint64_t timer;		/* handle, or 0 */
};

static struct connection *connections;
static unsigned int nr_connections = 100;
static uint64_t timeout_ms = 500;
static unsigned int nr_accepted, nr_open, timed_out, closed_by_peer;
static int context, epoll;

static int check(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "idle: %s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

static int check_errno(int ret, const char *what)
{
	return check(ret < 0 ? -errno : ret, what);
}

/* ---- the server ---- */

static void add_to_epoll(int fd, uint64_t data)
{
	struct epoll_event event;

	event.events = EPOLLIN;
	event.data.u64 = data;
	check_errno(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static void add_connection(unsigned int i, int sock)
{
	struct connection *connection = &connections[i];
	int ret;

	connection->sock = sock;
	nr_open++;
	add_to_epoll(sock, i);
	ret = twheel_watch(context, sock, timeout_ms * MSEC,
			   TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SHUTDOWN, i, &connection->timer);
	/* The connection may have ended already, which recv() will report. */
	if (ret != -ENOTCONN)
		check(ret, "twheel_watch");
}

/*
 * Called at the first wake-up, or the only one. The cancel revokes an event that has not been read
 * yet. It may fail: the timer has ended with the connection, or its event has been read.
 */
static void close_connection(struct connection *connection, unsigned int *count)
{
	int verdict = -ENOENT;

	if (connection->timer)
		verdict = twheel_cancel(context, connection->timer);
	if (verdict == TWHEEL_WAS_EXPIRED || verdict == -EALREADY)
		count = &timed_out;
	++*count;
	connection->timer = 0;
	close(connection->sock);
	connection->sock = -1;
	nr_open--;
}

/* The handle of a closed connection differs from that of the one that took its place. */
static void take_events(void)
{
	struct twheel_event events[16];
	int i, n;

	n = twheel_read(context, events, 16);
	if (n == -EAGAIN)
		return;
	check(n, "twheel_read");
	for (i = 0; i < n; i++) {
		struct connection *connection = &connections[events[i].user_data];

		if (connection->timer == events[i].handle)
			close_connection(connection, &timed_out);
	}
}

static void receive(struct connection *connection)
{
	char message[64];

	/* It may have been closed in this round. */
	if (connection->sock < 0)
		return;
	if (recv(connection->sock, message, sizeof(message), 0) <= 0)
		close_connection(connection, &closed_by_peer);
}

static void serve(int listener)
{
	struct epoll_event ready[16];
	int i, n;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	check_errno(epoll, "epoll_create1");
	add_to_epoll(context, CONTEXT);
	while (nr_accepted < nr_connections)
		add_connection(nr_accepted++, check_errno(accept(listener, NULL, NULL), "accept"));
	while (nr_open) {
		n = check_errno(epoll_wait(epoll, ready, 16, -1), "epoll_wait");
		for (i = 0; i < n; i++) {
			if (ready[i].data.u64 == CONTEXT)
				take_events();
			else
				receive(&connections[ready[i].data.u64]);
		}
	}
}

/* ---- the clients ---- */

static int connect_to(const struct sockaddr_in *address)
{
	int sock = check_errno(socket(AF_INET, SOCK_STREAM, 0), "socket");

	check_errno(connect(sock, (const struct sockaddr *)address, sizeof(*address)), "connect");
	return sock;
}

/*
 * Each client sends four times per timeout, for two timeouts: a server that ignored activity would
 * close the connections.
 */
static void run_clients(const struct sockaddr_in *address)
{
	int *socks = (int *)calloc(nr_connections, sizeof(*socks));
	unsigned int i, round;
	char end_of_stream;

	if (!socks)
		check(-ENOMEM, "clients");
	for (i = 0; i < nr_connections; i++)
		socks[i] = connect_to(address);
	for (round = 0; round < 8; round++) {
		for (i = 0; i < nr_connections; i++)
			check_errno((int)send(socks[i], "x", 1, MSG_NOSIGNAL), "send");
		usleep((useconds_t)timeout_ms * 1000 / 4);
	}
	for (i = 0; i < nr_connections; i += 4)
		close(socks[i]);
	for (i = 0; i < nr_connections; i++)
		if (i % 4)
			recv(socks[i], &end_of_stream, 1, 0);
	free(socks);
}

/* Listens on any free port, and starts the child that connects to it. Returns the listener. */
static int start_clients(void)
{
	int listener = check_errno(socket(AF_INET, SOCK_STREAM, 0), "socket"), child;
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check_errno(bind(listener, (struct sockaddr *)&address, length), "bind");
	check_errno(listen(listener, 128), "listen");
	check_errno(getsockname(listener, (struct sockaddr *)&address, &length), "getsockname");
	child = check_errno(fork(), "fork");
	if (!child) {
		close(listener);
		run_clients(&address);
		_exit(0);
	}
	return listener;
}

int main(int argc, char **argv)
{
	unsigned int i;
	int listener;

	if (argc > 1)
		nr_connections = (unsigned int)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		timeout_ms = strtoul(argv[2], NULL, 10);
	if (argc > 3 || !nr_connections || timeout_ms < 10) {
		fputs("usage: idle [CONNECTIONS [MILLISECONDS]]\n", stderr);
		return 2;
	}
	connections = (struct connection *)calloc(nr_connections, sizeof(*connections));
	if (!connections) {
		perror("idle");
		return 1;
	}
	for (i = 0; i < nr_connections; i++)
		connections[i].sock = -1;
	context = check(twheel_open(O_NONBLOCK), "/dev/twheel");
	listener = start_clients();
	serve(listener);
	printf("%u connections: %u timed out, %u closed by their peers\n", nr_accepted, timed_out,
	       closed_by_peer);
	return 0;
}
