// SPDX-License-Identifier: MIT
/*
 * eventloop: timeouts of very many requests, in an epoll loop
 *
 * A peer answers most requests through a pipe, the last one first. An answer cancels the
 * request's timeout; a request whose timeout expires is given up. The twheel context is one
 * more file in the loop. Timers are added and cancelled in batches.
 *
 * usage: eventloop [--ring] [REQUESTS]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <libtwheel.h>

#define MSEC		1000000ULL
#define BATCH		256
#define RING_ENTRIES	1024

enum state {
	ASKED,
	ANSWERED,
	GIVEN_UP,
};

struct request {
	uint64_t handle;
	enum state state;
};

static struct request *requests;
static unsigned int nr_requests = 10000;
static unsigned int answered, given_up, too_late;
static uint64_t latest;
static int context;
static struct twheel_ring *ring;

static void check(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "eventloop: %s: %s\n", what, strerror(-ret));
		exit(1);
	}
}

static void check_errno(int ret, const char *what)
{
	check(ret < 0 ? -errno : ret, what);
}

/* The peer: a process that leaves one in ten requests unanswered. */
static int start_peer(void)
{
	uint32_t i, n;
	int ends[2];

	check_errno(pipe(ends), "pipe");
	switch (fork()) {
	case -1:
		check_errno(-1, "fork");
		break;
	case 0:
		for (i = 0; i < nr_requests; i++) {
			n = nr_requests - 1 - i;
			if (n % 10 && write(ends[1], &n, sizeof(n)) != sizeof(n))
				_exit(1);
			if (i % 1000 == 999)
				usleep(20000);
		}
		_exit(0);
	}
	close(ends[1]);
	check_errno(fcntl(ends[0], F_SETFL, O_NONBLOCK), "fcntl");
	return ends[0];
}

/* Timeouts of 1 to 3 s. */
static void ask_all(void)
{
	struct twheel_op ops[BATCH];
	struct twheel_batch batch;
	unsigned int i, done;

	twheel_batch_init(&batch, ops, BATCH);
	for (i = 0; i < nr_requests; i++) {
		twheel_batch_add(&batch, (1000 + i % 2001) * MSEC, 0, i);
		if (batch.nr_ops < BATCH && i + 1 < nr_requests)
			continue;
		check(twheel_batch_submit(context, &batch, 0), "submit");
		for (done = 0; done < batch.nr_ops; done++) {
			check(ops[done].result, "add");
			requests[ops[done].user_data].handle = ops[done].handle;
		}
		twheel_batch_clear(&batch);
	}
}

/* Returns 0 when there will be no more answers. */
static int take_answers(int peer)
{
	struct twheel_op ops[BATCH];
	struct twheel_batch batch;
	uint32_t numbers[BATCH];
	ssize_t bytes;
	unsigned int i;

	bytes = read(peer, numbers, sizeof(numbers));
	if (bytes < 0 && errno == EAGAIN)
		return 1;
	check_errno((int)bytes, "read");
	twheel_batch_init(&batch, ops, BATCH);
	for (i = 0; i < (size_t)bytes / sizeof(numbers[0]); i++)
		twheel_batch_cancel(&batch, requests[numbers[i]].handle, 0);
	if (batch.nr_ops)
		check(twheel_batch_submit(context, &batch, 0), "submit");
	for (i = 0; i < batch.nr_ops; i++) {
		/* If its event has been delivered, the request has been or will be given up. */
		if (ops[i].result == -EALREADY || ops[i].result == -ENOENT) {
			too_late++;
			continue;
		}
		check(ops[i].result, "cancel");
		requests[numbers[i]].state = ANSWERED;
		answered++;
	}
	return bytes > 0;
}

static void give_up(const struct twheel_event *event)
{
	struct request *request = &requests[event->user_data];

	if (request->state != ASKED || event->fired < event->deadline) {
		fprintf(stderr, "eventloop: request %llu: the event is wrong\n",
			(unsigned long long)event->user_data);
		exit(1);
	}
	request->state = GIVEN_UP;
	given_up++;
	if (event->fired - event->deadline > latest)
		latest = event->fired - event->deadline;
}

static void take_timeouts(void)
{
	struct twheel_event events[BATCH];
	int i, n = twheel_read(context, events, BATCH);

	if (n == -EAGAIN)
		return;
	check(n, "read");
	for (i = 0; i < n; i++)
		give_up(&events[i]);
}

/* The same, without a system call. */
static void take_timeouts_from_ring(void)
{
	const struct twheel_event *events;
	unsigned int i, n;

	while ((n = twheel_ring_peek(ring, &events))) {
		for (i = 0; i < n; i++)
			give_up(&events[i]);
		twheel_ring_advance(ring, n);
	}
}

static void make_ring(void)
{
	struct twheel_setup setup;

	memset(&setup, 0, sizeof(setup));
	setup.ring_entries = RING_ENTRIES;
	check(twheel_setup(context, &setup), "setup");
	check(twheel_ring_map(context, setup.ring_bytes, &ring), "map");
}

static void add_to_epoll(int epoll, int fd)
{
	struct epoll_event event;

	event.events = EPOLLIN;
	event.data.fd = fd;
	check_errno(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static void run_loop(int peer)
{
	struct epoll_event ready[2];
	int i, n, epoll = epoll_create1(EPOLL_CLOEXEC);

	check_errno(epoll, "epoll_create1");
	add_to_epoll(epoll, peer);
	add_to_epoll(epoll, context);
	while (answered + given_up < nr_requests) {
		n = epoll_wait(epoll, ready, 2, -1);
		check_errno(n, "epoll_wait");
		for (i = 0; i < n; i++) {
			if (ready[i].data.fd == context && ring)
				take_timeouts_from_ring();
			else if (ready[i].data.fd == context)
				take_timeouts();
			else if (!take_answers(peer))
				epoll_ctl(epoll, EPOLL_CTL_DEL, peer, NULL);
		}
	}
	close(epoll);
}

int main(int argc, char **argv)
{
	int want_ring = argc > 1 && !strcmp(argv[1], "--ring");

	if (argc > 1 + want_ring)
		nr_requests = (unsigned int)strtoul(argv[1 + want_ring], NULL, 10);
	if (argc > 2 + want_ring || !nr_requests) {
		fputs("usage: eventloop [--ring] [REQUESTS]\n", stderr);
		return 2;
	}
	requests = (struct request *)calloc(nr_requests, sizeof(*requests));
	if (!requests) {
		perror("eventloop");
		return 1;
	}
	context = twheel_open(O_NONBLOCK);
	check(context, "/dev/twheel");
	if (want_ring)
		make_ring();
	ask_all();
	run_loop(start_peer());
	printf("%u requests: %u answered, %u given up, at most %llu us after their time; "
	       "%u answers came too late\n", nr_requests, answered, given_up,
	       (unsigned long long)latest / 1000, too_late);
	return 0;
}
