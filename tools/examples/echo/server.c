// SPDX-License-Identifier: MIT
/*
 * echo: an echo server with epoll, whose idle connections are closed
 *
 * It sends back whatever it receives. A connection that has received nothing for the timeout is
 * reset. There are several implementations of timeouts that behave the same, each in its own file;
 * the server calls them through struct timeouts. With "none" it has no timeouts at all, and a rule
 * can be added from outside:
 *
 *	twctl idle --port 7777 --timeout 30s
 *
 * usage: echo-server [--control] [--late] [TIMEOUTS [SECONDS [PORT]]]
 *
 *	--control  answer each line on standard input with a line of counters; end at
 *		   end-of-file
 *	--late	   start a connection's timeout at its second message
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

/* The kind of file, in the upper half of epoll's data; the lower half is a number. */
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
 * Counters.
 * @arming: clock ticks that timeouts took when connections were opened and closed
 * @running: clock ticks that they took otherwise
 */
static struct {
	uint64_t connections;
	uint64_t messages;
	uint64_t kicked;
	uint64_t arming;
	uint64_t running;
} counts;

/* ---- CPU time of the timeouts, with --control */

static uint64_t begin_ns, begin_ticks, entered, overhead = UINT64_MAX;

/* The finest clock available, which disturbs the measurement little. */
static uint64_t read_ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return now();
#endif
}

static double ns_per_tick(void)
{
	return (double)(now() - begin_ns) / (read_ticks() - begin_ticks);
}

/* Measures the cost of reading the clock, which is not counted. */
static void calibrate_clock(void)
{
	uint64_t took;
	int i;

	begin_ns = now();
	begin_ticks = read_ticks();
	for (i = 0; i < 1000; i++) {
		took = read_ticks();
		took = read_ticks() - took;
		if (took < overhead)
			overhead = took;
	}
}

static void start_timing(void)
{
	if (control)
		entered = read_ticks();
}

static void stop_timing(uint64_t *sum)
{
	if (control)
		*sum += read_ticks() - entered - overhead;
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

/* The connection is closed once the timeouts' function has returned. */
void timed_out(int fd)
{
	due[nr_due++] = fd;
}

static void arm_timeout(int fd)
{
	state[fd] = ARMED;
	if (!timeouts->add)
		return;
	start_timing();
	timeouts->add(fd);
	stop_timing(&counts.arming);
}

static void close_connection(int fd)
{
	if (timeouts->remove && state[fd] == ARMED) {
		start_timing();
		timeouts->remove(fd);
		stop_timing(&counts.arming);
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
			arm_timeout(fd);
	}
}

static void report_activity(int fd)
{
	if (!timeouts->active)
		return;
	start_timing();
	timeouts->active(fd);
	stop_timing(&counts.running);
}

/* A client that does not take such a short echo is treated like a silent one. */
static void echo_message(int fd)
{
	char message[4096];
	ssize_t bytes = recv(fd, message, sizeof(message), 0);

	if (bytes < 0 && errno == EAGAIN)
		return;
	/* The kernel has reset an idle connection. */
	if (bytes < 0 && errno == ETIMEDOUT)
		counts.kicked++;
	if (bytes <= 0 || send(fd, message, bytes, MSG_NOSIGNAL) != bytes) {
		close_connection(fd);
		return;
	}
	counts.messages++;
	if (state[fd] == ARMED)
		report_activity(fd);
	else if (state[fd] == GREETED)
		arm_timeout(fd);
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
	start_timing();
	timeouts->event(number);
	stop_timing(&counts.running);
	close_due();
}

static void handle_event(const struct epoll_event *event)
{
	int number = (uint32_t)event->data.u64;

	switch (event->data.u64 >> 32) {
	case LISTENER:
		accept_all(number);
		break;
	case CONNECTION:
		/* It may have timed out in this round. */
		if (state[number] != ABSENT)
			echo_message(number);
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
	start_timing();
	function();
	stop_timing(&counts.running);
}

static int get_wait_ms(void)
{
	int ms;

	if (!timeouts->wait)
		return -1;
	start_timing();
	ms = timeouts->wait();
	stop_timing(&counts.running);
	return ms;
}

static void run_loop(void)
{
	struct epoll_event ready[BATCH];
	int i, n;

	while (!ended) {
		n = epoll_wait(epoll, ready, BATCH, get_wait_ms());
		if (n < 0 && errno != EINTR)
			check_errno(n, "epoll_wait");
		call_timeouts(timeouts->woken);
		for (i = 0; i < n; i++)
			handle_event(&ready[i]);
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

static void choose_timeouts(const char *name)
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
		choose_timeouts(argv[i++]);
	if (i < argc)
		limit = parse_seconds("the timeout", argv[i++]);
	if (i < argc)
		port = parse_number("the port", argv[i++], 1, 65535);
	setvbuf(stdout, NULL, _IOLBF, 0);
	max_files = raise_file_limit();
	state = allocate(max_files, sizeof(*state));
	due = allocate(max_files, sizeof(*due));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	check_errno(epoll, "epoll_create1");
	calibrate_clock();
	if (timeouts->begin)
		timeouts->begin();
	if (control)
		add_to_epoll(STDIN_FILENO, CONTROL, 0);
	check_errno(listen_on(AF_INET, port), "socket");
	/* A kernel may lack it. */
	listen_on(AF_INET6, port);
	puts("ready");
	run_loop();
	return 0;
}
