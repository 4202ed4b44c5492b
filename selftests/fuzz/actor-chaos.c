// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: processes that are killed in the middle of whatever they do
 *
 * The nursery creates and kills them; they work on contexts that they have inherited or been
 * passed, and on some of their own.
 */
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "shared.h"
#include "tcp_test.h"

#define CHILDREN	3
#define GROUP		"/sys/fs/cgroup/fuzz"
#define PAGE		4096UL

/* The number of checks, a millisecond apart, for which a killed process may still exist. */
#define LOOKS		10000

/* ---- what the children do */

/* Passes a context's file over a socket, and gets it back as another descriptor. */
static int pass_file(int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = { }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	int pair[2], other = -1;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (sendmsg(pair[0], &message, 0) == 1 && recvmsg(pair[1], &message, 0) == 1)
		memcpy(&other, CMSG_DATA(head), sizeof(other));
	close(pair[0]);
	close(pair[1]);
	return other;
}

/* Reads events, and accounts for them. If killed here, it has events that nobody knows of. */
static void read_some(struct context *context, struct choices *choices)
{
	struct twheel_event events[16];
	int ret = wh_read(context->fd, events, 1 + choose(choices, 16)), i;

	trace("read", 0, 0, 0, 0, ret);
	for (i = 0; i < ret; i++)
		account_event(context, &events[i]);
}

static void spoil_ring(struct context *context, struct choices *choices)
{
	struct twheel_ring *ring = context->ring;
	struct pollfd pollfd = { .fd = context->fd, .events = POLLIN };

	if (!ring)
		return;
	switch (choose(choices, 4)) {
	case 0:
		ring->tail = choose_bits(choices);
		break;
	case 1:
		((__u32 *)ring)[choose(choices, context->ring_bytes / 4)] = choose_bits(choices);
		break;
	default:
		ring->tail = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - choose(choices, 3);
	}
	poll(&pollfd, 1, 0);
}

/* Makes a call with any argument, and ignores its result: a limit must not affect others. */
static void call_garbage(int fd, struct choices *choices)
{
	__u64 arg[32];
	unsigned int i, nr = choose(choices, 24), size = choose(choices, 200);

	for (i = 0; i < ARRAY_SIZE(arg); i++)
		arg[i] = one_of(choices, 2) ? 0 : choose_garbage(choices);
	call_ioctl(fd, _IOC(1 + choose(choices, 3), TWHEEL_IOC_MAGIC, 0xa0 + nr, size),
		   one_of(choices, 8) ? (void *)choose_bits(choices) : arg);
	/* Arrays where the program has no memory, or only read-only memory. */
	arg[0] = one_of(choices, 2) ? choose_bits(choices) : (uintptr_t)call_garbage;
	arg[1] = choose(choices, 64) | 96ULL << 32;
	call_ioctl(fd, TWHEEL_IOC_SUBMIT, arg);
}

/* Makes a context of its own, on which anything may be done, and which is not always closed. */
static void use_own_context(struct choices *choices)
{
	struct twheel_event events[8];
	struct twheel_setup setup;
	struct twheel_op op;
	unsigned int i;
	int fd = wh_open(one_of(choices, 2) ? O_NONBLOCK : 0), fds[2] = { fd, -1 };

	if (fd < 0)
		return;
	if (one_of(choices, 2))
		fds[1] = pass_file(fd);
	for (i = choose(choices, 200); i; i--) {
		op = (struct twheel_op) {
			.clock	= CLOCK_MONOTONIC,
			.time	= choose(choices, 3 * MSEC),
			.period	= one_of(choices, 4) ? 1 + choose(choices, MSEC) : 0,
			.flags	= one_of(choices, 2) ? TWHEEL_KEYED : 0,
		};
		op.key = op.flags ? choose(choices, 8) : 0;
		call_single(fds[fds[1] >= 0 && one_of(choices, 2)], &op);
	}
	call_garbage(fd, choices);
	wh_setup(fd, one_of(choices, 2) ? 0 : 8, 0, &setup);
	wh_setup(fd, 0, one_of(choices, 2) ? 0 : 100, &setup);
	rules_step(fd, choices, arena->port);
	if (op.time & 1)
		wh_read(fd, events, 8);
	if (one_of(choices, 2)) {
		close(fd);
		close(fds[1]);
	}
}

/* Makes a buffer for as many events as a read() can return, backed by memory for a few. */
static char *large_buffer(size_t *bytes)
{
	const size_t part = 8UL << 20, all = 2000UL << 20;
	char *memory = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);
	int fd = memfd_create("buffer", MFD_CLOEXEC);
	size_t i;

	*bytes = 0;
	if (memory == MAP_FAILED || fd < 0 || ftruncate(fd, part))
		return NULL;
	for (i = 0; i + part <= all; i += part)
		if (mmap(memory + i, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			return NULL;
	close(fd);
	*bytes = all;
	return memory;
}

/* Does a read() that always finds more events. */
static void read_greedily(struct choices *choices)
{
	struct twheel_op ops[64] = { };
	int fd = wh_open(0);
	size_t bytes;
	char *buffer = large_buffer(&bytes);
	unsigned int i;

	if (!buffer || fd < 0)
		return;
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		ops[i] = (struct twheel_op){ .clock = CLOCK_MONOTONIC, .period = 1 };
	for (i = 100 + choose(choices, 500); i; i--)
		call_submit(fd, ops, ARRAY_SIZE(ops), sizeof(ops[0]), 0);
	while (read(fd, buffer, bytes) > 0)
		;
}

/* Puts this process into a memory cgroup, which is soon full. */
static void join_group(struct choices *choices)
{
	__u64 group = choose(choices, CHILDREN);
	char path[96];
	int fd;

	snprintf(path, sizeof(path), GROUP "-%llu", group);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), GROUP "-%llu/memory.max", group);
	if (access(path, W_OK))
		return;
	file_write(path, (2 + choose(choices, 6)) << 20);
	snprintf(path, sizeof(path), GROUP "-%llu/cgroup.procs", group);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "0", 1) != 1)
		trace("no cgroup", 0, 0, 0, 0, -errno);
	close(fd);
}

/* Becomes another user, with the files that it has; or root in a namespace of its own. */
static void become_another(struct choices *choices)
{
	const uid_t uid = 1000 + choose(choices, CHILDREN);

	if (one_of(choices, 2))
		trace("setresuid", 0, 0, 0, 0, setresuid(uid, uid, uid));
	else if (unshare(CLONE_NEWUSER))
		say_once("not here: namespaces of users");
	/* Is forgotten with the old credentials. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void ignore_signal(int signal __attribute__((unused)))
{
}

/* Sends signals in the middle of everything: calls that wait must end, others continue. */
static void send_signals(void)
{
	const struct itimerval interval = { { 0, 700 }, { 0, 700 } };
	const struct sigaction action = { .sa_handler = ignore_signal };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
}

static void run_child(__u64 seed)
{
	struct io_uring *uring = NULL;
	struct context *context;
	struct choices choices;

	choices_random(&choices, seed);
	if (one_of(&choices, 2))
		uring = call_uring_open();
	if (one_of(&choices, 3))
		send_signals();
	if (one_of(&choices, 4))
		join_group(&choices);
	if (one_of(&choices, 4))
		become_another(&choices);
	if (one_of(&choices, 6))
		network();
	if (one_of(&choices, 8) && fuzz_with("greedy"))
		read_greedily(&choices);
	while (!arena_over()) {
		context = &arena->context[CHAOS + choose(&choices, 2)];
		switch (choose(&choices, 16)) {
		case 0:
			use_own_context(&choices);
			break;
		case 1 ... 2:
			if (context->ring)
				spoil_ring(context, &choices);
			else
				read_some(context, &choices);
			break;
		default:
			timers_step(context, &choices, uring);
		}
		if (one_of(&choices, 500) && !fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* It belongs to the parent. */
			uring = NULL;
		}
	}
}

/* ---- the nursery */

static pid_t start_child(__u64 seed)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	run_child(seed);
	_exit(0);
}

/* Kills a child, and all that it has created. It must be gone after a number of checks. */
static void kill_child(pid_t pid)
{
	unsigned int looks;
	int status;

	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	for (looks = 0; looks < LOOKS; looks++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		sleep_ns(MSEC);
	}
	if (looks == LOOKS)
		fuzz_fail("a process cannot be killed: it is there after %u looks", looks);
	/* It may have found something. */
	if (WIFEXITED(status) && WEXITSTATUS(status))
		_exit(1);
	add_count(&arena->killed, 1);
}

/*
 * Enables memory accounting for cgroups, and creates the first one: this makes the kernel patch its
 * code, which QEMU does not always survive if others are running that code.
 */
void groups_open(void)
{
	int fd = open("/sys/fs/cgroup/cgroup.subtree_control", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "+memory", 7) != 7)
		say_once("not here: memory cgroups");
	if (fd >= 0)
		close(fd);
	mkdir(GROUP "-0", 0755);
}

/* Creates children and kills them, until the round is over. */
void run_nursery(__u64 seed)
{
	pid_t children[CHILDREN];
	struct choices choices;
	__u64 number = 0;
	unsigned int i;

	choices_random(&choices, seed);
	/* Also for the other users among them. */
	if (chmod("/dev/twheel", 0666))
		fuzz_fail("chmod: %s", strerror(errno));
	for (i = 0; i < CHILDREN; i++)
		children[i] = start_child(mix_seed(seed, number++));
	while (!arena_over()) {
		sleep_ns(choose(&choices, 120) * MSEC);
		i = choose(&choices, CHILDREN);
		kill_child(children[i]);
		children[i] = start_child(mix_seed(seed, number++));
	}
	for (i = 0; i < CHILDREN; i++)
		kill_child(children[i]);
}
