// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: connections, their peers, and timers that watch them
 */
#include "shared.h"
#include "tcp_test.h"

/* Both ends of each connection; @listening is the listener for them. */
static int ends[SOCKETS][2];
static int listening = -1;

static struct sockaddr_in listen_address(void)
{
	return (struct sockaddr_in) {
		.sin_family		= AF_INET,
		.sin_port		= htons(arena->port),
		.sin_addr.s_addr	= htonl(INADDR_LOOPBACK),
	};
}

/* Closes with a reset. */
static void close_with_reset(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* Connects a socket; the other end replaces an old one. */
static void reconnect(unsigned int i)
{
	struct sockaddr_in in = listen_address();
	int fd;

	if (connect(ends[i][0], (void *)&in, sizeof(in)) && errno != EINPROGRESS)
		return;
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	close_with_reset(ends[i][1]);
	dup3(fd, ends[i][1], O_CLOEXEC);
	close(fd);
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		fuzz_fail("no socket: errno %d", errno);
	return fd;
}

/* Replaces a connection by another one. */
static void replace_connection(unsigned int i)
{
	int fd = new_socket();

	close_with_reset(ends[i][0]);
	dup3(fd, ends[i][0], O_CLOEXEC);
	close(fd);
	reconnect(i);
}

/* Makes all connections. */
void sockets_open(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t length = sizeof(in);
	unsigned int i;

	listening = new_socket();
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listening, (void *)&in, length) || listen(listening, 256) ||
	    getsockname(listening, (void *)&in, &length))
		fuzz_fail("no listener: errno %d", errno);
	arena->port = ntohs(in.sin_port);
	for (i = 0; i < SOCKETS; i++) {
		ends[i][0] = new_socket();
		ends[i][1] = new_socket();
		reconnect(i);
	}
}

/* Returns an end of some connection. */
int sockets_some(struct choices *choices)
{
	return ends[choose(choices, SOCKETS)][choose(choices, 2)];
}

static void say_something(int fd, size_t bytes)
{
	static const char data[65536];

	send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* What a peer does: it sends, stalls, shuts down, resets, disconnects and comes back. */
void peer_actor(struct choices *choices)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	char data[4096];
	unsigned int i;
	int fd;

	while (!arena_over()) {
		i = choose(choices, SOCKETS);
		fd = ends[i][choose(choices, 2)];
		switch (choose(choices, 16)) {
		case 0 ... 4:
			say_something(fd, 1 + choose(choices, 100));
			break;
		case 5 ... 8:
			recv(fd, data, sizeof(data), MSG_DONTWAIT);
			break;
		case 9:
			say_something(fd, 65536);
			break;
		case 10:
			shutdown(fd, choose(choices, 3));
			break;
		case 11:
			connect(ends[i][0], &none, sizeof(none));
			reconnect(i);
			break;
		case 12 ... 13:
			replace_connection(i);
			break;
		default:
			sleep_ns(choose(choices, 2 * MSEC));
		}
		trace("connection %llu", i, 0, 0, 0, 0);
	}
	for (i = 0; i < SOCKETS; i++) {
		close_with_reset(ends[i][0]);
		close(ends[i][0]);
		close(ends[i][1]);
	}
	close(listening);
}

static void choose_watch(struct context *context, struct choices *choices, struct twheel_op *op)
{
	static const __u32 actions[] = { 0, 0, TWHEEL_WATCH_SHUTDOWN, TWHEEL_WATCH_ABORT };
	__u64 kind = DATA_WATCHED;

	*op = (struct twheel_op) {
		.opcode	= TWHEEL_OP_ADD,
		.clock	= CLOCK_MONOTONIC,
		.time	= TWHEEL_TIME_NONE,
		.flags	= TWHEEL_WATCHED | actions[choose(choices, 4)] |
			  choose(choices, 4) << 6,
		.touch	= sockets_some(choices),
	};
	/* The timer of a connection is often added again. */
	if (!one_of(choices, 8))
		op->key = 100 + op->touch;
	if (!one_of(choices, 4))
		op->idle = TWHEEL_IDLE_MIN + choose(choices, 8 * MSEC);
	if (!op->idle || one_of(choices, 4))
		op->lifetime = 1 + choose(choices, 8 * MSEC);
	if (op->key || one_of(choices, 2)) {
		op->flags |= TWHEEL_KEYED;
		op->key = op->key ?: 100 + (__u64)sockets_some(choices);
		kind |= DATA_KEYED;
	}
	op->user_data = account_new(context, kind);
}

static void submit_adds(struct context *context, struct twheel_op *ops, unsigned int nr)
{
	unsigned int i;
	int done;

	done = call_submit(context->fd, ops, nr, sizeof(ops[0]), 0);
	if (done != (int)nr)
		fuzz_fail("array of %u: %d", nr, done);
	for (i = 0; i < nr; i++) {
		trace("watch of %llu, flags %llx, idle %llu, key %llu", ops[i].touch,
		      ops[i].flags, ops[i].idle, ops[i].key, ops[i].result);
		account_op(context, &ops[i], NULL);
	}
}

static void add_watches(struct context *context, struct choices *choices)
{
	struct twheel_op ops[16];
	unsigned int nr = 1 + choose(choices, 16), i;

	for (i = 0; i < nr; i++)
		choose_watch(context, choices, &ops[i]);
	submit_adds(context, ops, nr);
}

/*
 * Adds the timers of all connections again and again, so that all are due at about the same time:
 * then the worker has a long list.
 */
static void add_bursts(struct context *context, struct choices *choices)
{
	__u64 idle = TWHEEL_IDLE_MIN + choose(choices, 4) * MSEC;
	__u64 gap = idle + choose(choices, 5 * MSEC);
	unsigned int rounds = 1 + choose(choices, 8), i;
	struct twheel_op ops[SOCKETS];

	while (rounds-- && !arena_over()) {
		for (i = 0; i < SOCKETS; i++)
			ops[i] = (struct twheel_op) {
				.opcode		= TWHEEL_OP_ADD,
				.clock		= CLOCK_MONOTONIC,
				.time		= TWHEEL_TIME_NONE,
				.flags		= TWHEEL_WATCHED | TWHEEL_KEYED,
				.idle		= idle,
				.touch		= ends[i][i & 1],
				.key		= 100 + ends[i][i & 1],
				.user_data	= account_new(context, DATA_WATCHED | DATA_KEYED),
			};
		submit_adds(context, ops, SOCKETS);
		sleep_ns(gap);
	}
}

/* Changes timers by key, while the worker may be handling them. */
static void change_watches(struct context *context, struct choices *choices)
{
	struct twheel_op op = {
		.opcode	= one_of(choices, 2) ? TWHEEL_OP_CANCEL : TWHEEL_OP_REARM,
		.handle	= 100 + sockets_some(choices),
		.flags	= TWHEEL_BY_KEY,
	};

	if (op.opcode == TWHEEL_OP_REARM) {
		op.limit = TWHEEL_LIMIT_IDLE;
		op.time = TWHEEL_IDLE_MIN + choose(choices, 8 * MSEC);
	}
	call_single(context->fd, &op);
	trace("op %llu of key %llu", op.opcode, op.handle, 0, 0, op.result);
	account_op(context, &op, NULL);
}

/* Lets timers watch connections, and changes them. */
void watch_actor(struct choices *choices)
{
	struct context *context = &arena->context[WATCH];

	while (!arena_over()) {
		if (account_full(context) || one_of(choices, 3))
			sleep_ns(choose(choices, 4 * MSEC));
		else if (one_of(choices, 3))
			add_bursts(context, choices);
		else if (one_of(choices, 3))
			change_watches(context, choices);
		else
			add_watches(context, choices);
	}
}
