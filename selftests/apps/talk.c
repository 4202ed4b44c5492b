// SPDX-License-Identifier: GPL-2.0-only
/*
 * talk: connections to a server, of which one is busy and the others fall silent
 *
 * usage: talk PORT SILENT MILLISECONDS TEXT
 *
 * Opens SILENT connections, on every other of which it sends TEXT once, and a busy one, on which
 * it sends TEXT five times a second, until shortly before the end. After MILLISECONDS, prints
 * what became of each:
 *	silent 2000 Connection reset by peer	(closed after 2000 ms, and how)
 *	silent - open
 *	busy - open 12 12			(number of requests and answers)
 * All answers are as long as the first. Times count from just before the last request, or the
 * connect(): the server cannot have seen either earlier.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS	200
#define LAST_MS		600
#define MAX_SILENT	1000

/**
 * struct talk - a connection
 * @since:	the earliest time at which it can last have been active, in ms
 * @closed:	when it was closed, in ms; 0 if it is open
 * @how:	how it was closed
 * @asked:	number of requests
 * @bytes:	total length of the answers so far
 */
struct talk {
	int64_t		since;
	int64_t		closed;
	const char	*how;
	unsigned int	asked;
	size_t		bytes;
};

static struct talk talks[MAX_SILENT + 1];
static struct pollfd fds[MAX_SILENT + 1];
static unsigned int nr;

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void open_talk(unsigned int i, uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	fds[i].fd = socket(AF_INET, SOCK_STREAM, 0);
	fds[i].events = POLLIN;
	talks[i].since = now_ms();
	if (connect(fds[i].fd, (struct sockaddr *)&address, sizeof(address)))
		err(1, "cannot connect to port %u", port);
}

static void close_talk(unsigned int i, const char *how)
{
	talks[i].closed = now_ms();
	talks[i].how = how;
	close(fds[i].fd);
	fds[i].fd = -1;
}

static void send_request(unsigned int i, const char *text)
{
	if (talks[i].closed)
		return;
	talks[i].since = now_ms();
	talks[i].asked++;
	if (write(fds[i].fd, text, strlen(text)) < 0)
		close_talk(i, strerror(errno));
}

static void receive_answer(unsigned int i)
{
	char text[4096];
	ssize_t length = read(fds[i].fd, text, sizeof(text));

	if (length > 0)
		talks[i].bytes += length;
	else
		close_talk(i, length ? strerror(errno) : "end of file");
}

/* Receives until then. */
static void listen_until(int64_t when)
{
	int64_t left;
	unsigned int i;

	while ((left = when - now_ms()) > 0) {
		if (poll(fds, nr, left) <= 0)
			continue;
		for (i = 0; i < nr; i++)
			if (fds[i].revents)
				receive_answer(i);
	}
}

/* Sends a request on the busy connection. Returns the length of the answer, once complete. */
static size_t first_answer(const char *text)
{
	send_request(nr - 1, text);
	while (!talks[nr - 1].bytes && !talks[nr - 1].closed)
		listen_until(now_ms() + PAUSE_MS);
	return talks[nr - 1].bytes;
}

static void print_talk(unsigned int i, size_t answer)
{
	const struct talk *talk = &talks[i];

	printf("%s ", i == nr - 1 ? "busy" : "silent");
	if (talk->closed)
		printf("%lld %s", (long long)(talk->closed - talk->since), talk->how);
	else
		printf("- open");
	if (i == nr - 1)
		printf(" %u %zu", talk->asked, answer ? talk->bytes / answer : 0);
	putchar('\n');
}

int main(int argc, char **argv)
{
	int64_t last;
	size_t answer;
	unsigned int i;

	if (argc != 5 || atoi(argv[2]) > MAX_SILENT)
		errx(2, "usage: talk PORT SILENT MILLISECONDS TEXT");
	signal(SIGPIPE, SIG_IGN);
	last = now_ms() + atoi(argv[3]);
	nr = atoi(argv[2]) + 1;
	for (i = 0; i < nr; i++)
		open_talk(i, atoi(argv[1]));
	for (i = 0; i < nr - 1; i += 2)
		send_request(i, argv[4]);
	answer = first_answer(argv[4]);
	while (now_ms() < last - LAST_MS) {
		send_request(nr - 1, argv[4]);
		listen_until(now_ms() + PAUSE_MS);
	}
	listen_until(last);
	for (i = 0; i < nr; i++)
		print_talk(i, answer);
	return 0;
}
