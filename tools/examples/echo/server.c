// SPDX-License-Identifier: MIT
/*
 * echo: an echo server with epoll, whose idle connections are closed
 *
 * It sends back what it is sent. A connection on which nothing has come for so long is
 * reset. All ways to keep these timeouts do the same, each in a file of its own; the server
 * calls them through struct timeouts. With none, it has no timeouts at all, and a rule can
 * be given from outside:
 *
 *	twctl idle --port 7777 --timeout 30s
 *
 * usage: echo-server [--control] [--late] [TIMEOUTS [SECONDS [PORT]]]
 *
 *	--control  a line on standard input is answered by one with what was counted; at its
 *		   end the server ends
 *	--late	   a connection's timeout begins with its second message
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "echo.h"

#define BATCH		256
#define BACKLOG		4096

/* What is ready, in the upper half of epoll's data; the lower is a number. */
enum kind {
	LISTENER,
	CONNECTION,
	TIMEOUTS,
	CONTROL,
};

enum state {
	ABSENT,
	NEW,
	GREETED,
	ARMED,
};

static const struct timeouts *const all[] = {
	&timeouts_none, &timeouts_watch, &timeouts_touch, &timeouts_heap, &timeouts_timerfd,
	&timeouts_scan,
#ifdef WITH_LIBEV
	&timeouts_libev,
#endif
};

const char *program = "echo-server";
uint64_t limit = 30000000000ULL;
unsigned int max_files;

static const struct timeouts *timeouts = &timeouts_watch;
static int epoll;
static uint8_t *state;
static int *due, nr_due;
static int late, control, ended;

/*
 * What was counted.
 * @arming: ticks of the clock that the timeouts took when connections came and went
 * @running: likewise, all the rest
 */
static struct {
	uint64_t connections;
	uint64_t messages;
	uint64_t kicked;
	uint64_t arming;
	uint64_t running;
} counts;

/* ---- what the timeouts take of the server's own time, with --control */

static uint64_t begin_ns, begin_ticks, entered, overhead = UINT64_MAX;

/* As fine as there is, and little trouble for what is measured. */
static uint64_t ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return now();
#endif
}

static double ns_per_tick(void)
{
	return (double)(now() - begin_ns) / (ticks() - begin_ticks);
}

/* What a look at the clock takes is not to be counted. */
static void calibrate(void)
{
	uint64_t took;
	int i;

	begin_ns = now();
	begin_ticks = ticks();
	for (i = 0; i < 1000; i++) {
		took = ticks();
		took = ticks() - took;
		if (took < overhead)
			overhead = took;
	}
}

static void enter(void)
{
	if (control)
		entered = ticks();
}

static void leave(uint64_t *sum)
{
	if (control)
		*sum += ticks() - entered - overhead;
}

/* ---- connections */

static void add_to_epoll(int fd, enum kind kind, int number)
{
	struct epoll_event event = {
		.events		= EPOLLIN,
		.data.u64	= (uint64_t)kind << 32 | (uint32_t)number,
	};

	check_errno(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void poll_timeouts(int file, int number)
{
	add_to_epoll(file, TIMEOUTS, number);
}

/* It is closed when the timeouts have returned. */
void timed_out(int fd)
{
	due[nr_due++] = fd;
}

static void arm(int fd)
{
	state[fd] = ARMED;
	if (!timeouts->add)
		return;
	enter();
	timeouts->add(fd);
	leave(&counts.arming);
}

static void close_connection(int fd)
{
	if (timeouts->remove && state[fd] == ARMED) {
		enter();
		timeouts->remove(fd);
		leave(&counts.arming);
	}
	state[fd] = ABSENT;
	counts.connections--;
	close(fd);
}

static void close_due(void)
{
	static const struct linger reset = { .l_onoff = 1 };
	int i;

	for (i = 0; i < nr_due; i++) {
		counts.kicked++;
		setsockopt(due[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close_connection(due[i]);
	}
	nr_due = 0;
}

static void accept_all(int listener)
{
	int fd, i;

	for (i = 0; i < BATCH; i++) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED))
			return;
		check_errno(fd, "accept");
		counts.connections++;
		state[fd] = NEW;
		add_to_epoll(fd, CONNECTION, fd);
		if (!late)
			arm(fd);
	}
}

static void tell_active(int fd)
{
	if (!timeouts->active)
		return;
	enter();
	timeouts->active(fd);
	leave(&counts.running);
}

/* Who does not take the echo of so little is no better than one who is silent. */
static void echo(int fd)
{
	char message[4096];
	ssize_t bytes = recv(fd, message, sizeof(message), 0);

	if (bytes < 0 && errno == EAGAIN)
		return;
	/* So the kernel says that it has reset an idle connection. */
	if (bytes < 0 && errno == ETIMEDOUT)
		counts.kicked++;
	if (bytes <= 0 || send(fd, message, bytes, MSG_NOSIGNAL) != bytes) {
		close_connection(fd);
		return;
	}
	counts.messages++;
	if (state[fd] == ARMED)
		tell_active(fd);
	else if (state[fd] == GREETED)
		arm(fd);
	else
		state[fd] = GREETED;
}

/* ---- the loop */

static int listen_on(int family, uint16_t port)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	int ret;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		ret = bind(fd, (struct sockaddr *)&six, sizeof(six));
	} else {
		ret = bind(fd, (struct sockaddr *)&four, sizeof(four));
	}
	check_errno(ret, "bind");
	check_errno(listen(fd, BACKLOG), "listen");
	add_to_epoll(fd, LISTENER, fd);
	return fd;
}

static void answer_control(void)
{
	char line[64];

	if (read(STDIN_FILENO, line, sizeof(line)) <= 0) {
		ended = 1;
		return;
	}
	printf("connections %llu messages %llu kicked %llu arming_ns %.0f running_ns %.0f\n",
	       (unsigned long long)counts.connections, (unsigned long long)counts.messages,
	       (unsigned long long)counts.kicked, counts.arming * ns_per_tick(),
	       counts.running * ns_per_tick());
}

static void timeouts_event(int number)
{
	enter();
	timeouts->event(number);
	leave(&counts.running);
	close_due();
}

static void handle(const struct epoll_event *event)
{
	int number = (uint32_t)event->data.u64;

	switch (event->data.u64 >> 32) {
	case LISTENER:
		accept_all(number);
		break;
	case CONNECTION:
		/* It may have timed out in this round. */
		if (state[number] != ABSENT)
			echo(number);
		break;
	case TIMEOUTS:
		timeouts_event(number);
		break;
	case CONTROL:
		answer_control();
		break;
	}
}

static void call_timeouts(void (*function)(void))
{
	if (!function)
		return;
	enter();
	function();
	leave(&counts.running);
}

static int how_long(void)
{
	int ms;

	if (!timeouts->wait)
		return -1;
	enter();
	ms = timeouts->wait();
	leave(&counts.running);
	return ms;
}

static void loop(void)
{
	struct epoll_event ready[BATCH];
	int i, n;

	while (!ended) {
		n = epoll_wait(epoll, ready, BATCH, how_long());
		if (n < 0 && errno != EINTR)
			check_errno(n, "epoll_wait");
		call_timeouts(timeouts->woken);
		for (i = 0; i < n; i++)
			handle(&ready[i]);
		call_timeouts(timeouts->expire);
		close_due();
	}
}

static void usage(void)
{
	unsigned int i;

	fputs("usage: echo-server [--control] [--late] [TIMEOUTS [SECONDS [PORT]]]\nTIMEOUTS:",
	      stderr);
	for (i = 0; i < ARRAY_SIZE(all); i++)
		fprintf(stderr, " %s", all[i]->name);
	fputc('\n', stderr);
	exit(2);
}

static void choose(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i]->name, name))
			break;
	if (i == ARRAY_SIZE(all))
		usage();
	timeouts = all[i];
}

int main(int argc, char **argv)
{
	uint16_t port = 7777;
	int i;

	for (i = 1; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--control"))
			control = 1;
		else if (!strcmp(argv[i], "--late"))
			late = 1;
		else
			usage();
	}
	if (argc - i > 3)
		usage();
	if (i < argc)
		choose(argv[i++]);
	if (i < argc)
		limit = seconds("the timeout", argv[i++]);
	if (i < argc)
		port = number("the port", argv[i++], 1, 65535);
	setvbuf(stdout, NULL, _IOLBF, 0);
	max_files = raise_files();
	state = allocate(max_files, sizeof(*state));
	due = allocate(max_files, sizeof(*due));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	check_errno(epoll, "epoll_create1");
	calibrate();
	if (timeouts->begin)
		timeouts->begin();
	if (control)
		add_to_epoll(STDIN_FILENO, CONTROL, 0);
	check_errno(listen_on(AF_INET, port), "socket");
	/* A kernel may lack it. */
	listen_on(AF_INET6, port);
	puts("ready");
	loop();
	return 0;
}
