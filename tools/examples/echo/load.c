// SPDX-License-Identifier: MIT
/*
 * echo-load: very many connections to an echo server, each with a heartbeat
 *
 * Some of the connections fall silent, and must be kicked when their idle timeout has elapsed; no
 * other connection may be. Each records when it was kicked, if at all. A tenth of the connections
 * are IPv6, as far as ports last; the others are IPv4, to many addresses of the loopback device.
 *
 * usage: echo-load [--control] CONNECTIONS HEARTBEAT TIMEOUT SILENT DURATION [PORT]
 *
 * HEARTBEAT, TIMEOUT and DURATION are in seconds; SILENT is the number of connections that fall
 * silent, one after the other, the last one so that its timeout ends at about the end of the run.
 * The run ends when all of these have been kicked, or when that takes far too long. Then it prints
 * one name and value per line. With --control it starts its heartbeats at a line on standard
 * input.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "echo.h"

/* Connections per address: finding a free port is slow when most are in use. */
#define PER_ADDRESS	10000

/* Connections that are set up, or events that are handled, together. */
#define BATCH		256

/* A kick is missed if it has not happened this long after its time, in nanoseconds. */
#define PATIENCE	60000000000ULL

/*
 * @sent: when its last message was sent
 * @sent_tick: the same by the kernel's tick, with which it records activity: the tick can be late
 * @kicked: when the load generator saw that it was closed; 0: it is open
 * @left: heartbeats until it falls silent; negative: never
 * @owed: messages whose echo has not been read
 */
struct connection {
	uint64_t	sent;
	uint64_t	sent_tick;
	uint64_t	kicked;
	int		fd;
	int		left;
	uint32_t	owed;
};

const char *program = "echo-load";

static struct connection *connections;
static uint32_t nr, nr_silent, nr_six, waiting;
static uint64_t heartbeat, timeout, duration;
static uint64_t heartbeats, latest_heartbeat, echoes;
static uint16_t port = 7777;
static int epoll;

/* ---- setting up */

static int connect_to(uint32_t i)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd;

	if (i % 10 == 9 && nr_six < PER_ADDRESS) {
		six.sin6_addr = in6addr_loopback;
		fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0) {
			check_errno(connect(fd, (struct sockaddr *)&six, sizeof(six)), "connect");
			nr_six++;
			return fd;
		}
		/* A kernel may lack it. */
	}
	four.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i / PER_ADDRESS);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check_errno(fd, "socket");
	check_errno(connect(fd, (struct sockaddr *)&four, sizeof(four)), "connect");
	return fd;
}

static uint64_t coarse_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void send_message(struct connection *connection)
{
	uint64_t message = connection - connections;

	connection->sent_tick = coarse_now();
	connection->sent = now();
	if (send(connection->fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) ==
	    sizeof(message))
		connection->owed++;
}

/* Waits for an echo without reading it: like the echoes of heartbeats, it stays until the next. */
static void wait_for_echo(const struct connection *connection)
{
	uint64_t message;

	recv(connection->fd, &message, sizeof(message), MSG_WAITALL | MSG_PEEK);
}

/* Reads the echoes that have arrived. */
static void read_echoes(struct connection *connection)
{
	uint64_t message;

	while (connection->owed &&
	       recv(connection->fd, &message, sizeof(message), MSG_DONTWAIT) ==
	       sizeof(message)) {
		if (message != (uint64_t)(connection - connections))
			check(-EBADMSG, "echo");
		connection->owed--;
		echoes++;
	}
}

/* No more at a time than the server's backlog takes. */
static void connect_all(void)
{
	struct epoll_event event = { .events = EPOLLRDHUP };
	uint32_t i, first = 0;

	for (i = 0; i < nr; i++) {
		connections[i].fd = connect_to(i);
		connections[i].left = -1;
		send_message(&connections[i]);
		event.data.u32 = i;
		check_errno(epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event),
			    "epoll_ctl");
		if ((i + 1) % BATCH && i + 1 < nr)
			continue;
		for (; first <= i; first++)
			wait_for_echo(&connections[first]);
	}
}

/* Spread over all connections and over the run; each has at least one heartbeat. */
static void choose_silent(void)
{
	uint64_t beats = duration > timeout ? (duration - timeout) / heartbeat : 0;
	uint32_t i;

	for (i = 0; i < nr_silent; i++)
		connections[(uint64_t)i * nr / nr_silent].left = 1 + (beats ? i % beats : 0);
	waiting = nr_silent;
}

/* ---- the run */

/* Visits connections in a permuted order, so that neighbours in memory are not consecutive. */
static uint32_t pick_connection(uint64_t turn)
{
	static uint32_t stride;
	uint32_t a, b, swap;

	if (!stride)
		for (stride = nr * 0.618 + 1; ; stride++) {
			for (a = stride, b = nr; b; swap = a % b, a = b, b = swap)
				;
			if (a == 1)
				break;
		}
	return turn % nr * stride % nr;
}

static void send_heartbeat(struct connection *connection, uint64_t due)
{
	if (connection->kicked || !connection->left)
		return;
	read_echoes(connection);
	send_message(connection);
	heartbeats++;
	if (connection->sent - due > latest_heartbeat)
		latest_heartbeat = connection->sent - due;
	if (connection->left > 0)
		connection->left--;
}

/*
 * Sends the heartbeats that are due, each in its connection's part of the interval; not all at
 * once if this machine cannot keep up.
 */
static void send_heartbeats(uint64_t begin)
{
	static uint64_t turn;
	uint64_t due;
	int i;

	for (i = 0; i < BATCH && (due = begin + turn * heartbeat / nr) <= now(); i++)
		send_heartbeat(&connections[pick_connection(turn++)], due);
}

static void record_kick(struct connection *connection)
{
	if (connection->kicked)
		return;
	connection->kicked = now();
	read_echoes(connection);
	close(connection->fd);
	if (connection->left >= 0)
		waiting--;
}

static void record_kicks(void)
{
	struct epoll_event ready[BATCH];
	int i, n = epoll_wait(epoll, ready, BATCH, 1);

	for (i = 0; i < n; i++)
		record_kick(&connections[ready[i].data.u32]);
}

static void run_heartbeats(void)
{
	uint64_t begin = now(), end = begin + duration, give_up;

	give_up = end + 2 * heartbeat + timeout + PATIENCE;
	while (now() < end || (waiting && now() < give_up)) {
		send_heartbeats(begin);
		record_kicks();
	}
	duration = now() - begin;
}

/* ---- results */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_value(const char *name, uint64_t value)
{
	printf("%s %llu\n", name, (unsigned long long)value);
}

/* Lateness is relative to just before the last message was sent. */
static uint64_t lateness(const struct connection *connection)
{
	uint64_t due = connection->sent + timeout;

	return connection->kicked < due ? 0 : connection->kicked - due;
}

static int print_report(void)
{
	uint64_t *late = allocate(nr, sizeof(*late)), kicked = 0, early = 0, missed = 0;
	struct connection *connection;

	for (connection = connections; connection < connections + nr; connection++) {
		if (!connection->kicked)
			missed += connection->left >= 0;
		else if (connection->kicked < connection->sent_tick + timeout)
			early++;
		else
			late[kicked++] = lateness(connection);
	}
	qsort(late, kicked, sizeof(*late), compare_u64);
	print_value("connections", nr);
	print_value("ipv6", nr_six);
	print_value("run_ns", duration);
	print_value("heartbeats", heartbeats);
	print_value("latest_heartbeat_ns", latest_heartbeat);
	print_value("echoes", echoes);
	print_value("silent", nr_silent);
	print_value("kicked", kicked);
	print_value("false_kicks", early);
	print_value("missed_kicks", missed);
	print_value("late_p50_ns", kicked ? late[(kicked - 1) / 2] : 0);
	print_value("late_p99_ns", kicked ? late[(kicked - 1) * 99 / 100] : 0);
	print_value("late_max_ns", kicked ? late[kicked - 1] : 0);
	return early || missed;
}

static void wait_for_line(void)
{
	char line[64];

	if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
		exit(0);
}

static void usage(void)
{
	fputs("usage: echo-load [--control] CONNECTIONS HEARTBEAT TIMEOUT SILENT DURATION [PORT]\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	int control = argc > 1 && !strcmp(argv[1], "--control");

	argv += control;
	argc -= control;
	if (argc < 6 || argc > 7)
		usage();
	nr = parse_number("the number of connections", argv[1], 1, 1000000);
	heartbeat = parse_seconds("the heartbeat", argv[2]);
	timeout = parse_seconds("the timeout", argv[3]);
	nr_silent = parse_number("the number of silent ones", argv[4], 0, nr);
	duration = parse_seconds("the duration", argv[5]);
	if (argc > 6)
		port = parse_number("the port", argv[6], 1, 65535);
	setvbuf(stdout, NULL, _IOLBF, 0);
	raise_file_limit();
	connections = allocate(nr, sizeof(*connections));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	check_errno(epoll, "epoll_create1");
	connect_all();
	choose_silent();
	puts("ready");
	if (control)
		wait_for_line();
	run_heartbeats();
	return print_report();
}
